"""The contract of a workflow: pure functions over a folder, and nothing else.

    read(files, given)             what the files show; total: bad data becomes a Problem
    steps(state)                   everything that is due now; independent steps come together
    step.prompt(state)             what to ask, made only when the step starts
    step.check(state, answer)      what is wrong with an answer
    step.write(state, outcome)     which files to leave, in order; the last one is the commit

The engine does the rest: it reads again after each single completion, so `steps` never
needs to know what is under way, and a step that is due twice is done once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from rondel.model.actions import Action
from rondel.model.changes import Change
from rondel.model.consent import Admits, Brought, Rule, admits_nothing
from rondel.model.outcomes import Outcome
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Conclusion, Problem, Summary
from rondel.model.workers import AskProgram, ask_nobody

if TYPE_CHECKING:
    import click

    from rondel.project import Project

S = TypeVar("S")


@dataclass(frozen=True)
class SessionRef:
    """A session: its id and its folder, relative to the repository.

    `beside` names files next to the folder that belong to it too; a path `../<name>` is
    good for exactly these.
    """

    workflow: str
    id: str
    folder: str
    beside: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """How a person names it: `review:2026-11-15-main`."""
        return f"{self.workflow}:{self.id}"


@dataclass(frozen=True)
class Started:
    """A session that was started, or taken up again, and is ready to run."""

    ref: SessionRef
    notes: tuple[str, ...] = ()  # what the person should be told
    lease: AbstractContextManager[Any] | None = None
    """The right to drive it, where starting took that: the run that follows has it, or `release` ends it."""

    def release(self) -> None:
        """Let others drive it: nobody here will."""
        if self.lease is not None:
            self.lease.__exit__(None, None, None)


Apply = Callable[[SessionRef, Sequence[Change]], None]  # writes into a session, on record as ours
Claim = Callable[[SessionRef], None]  # records that a session is begun here, before anything is in its folder


def unclaimed(_ref: SessionRef) -> None:
    """Record nothing: what is begun so is nobody's until it is adopted."""


@dataclass(frozen=True)
class Given:
    """What the core read for a workflow besides the session's files: the settings as they are now.

    A session keeps what a person asked for. How the project is tested, and what the workflow's
    own table says, is read anew for each run, so that a setting that was corrected counts for
    everything that is not done yet.
    """

    settings: Mapping[str, object] = field(default_factory=dict)  # what the workflow's table says
    test: str = ""  # runs the project's tests
    checks: str = ""  # must pass before an edit is taken over
    sandbox: str = ""  # what confines commands
    kind_of: Callable[[str], str] | None = None  # which kind of agent has a role
    admits: Admits = admits_nothing  # whether the person consented to something of the repository
    allowed: Callable[[], Container[str]] = frozenset  # the digests of commands that the person allowed, now
    ask: AskProgram = ask_nobody  # runs programs that answer questions
    is_known: Callable[[SessionRef], bool] = lambda _: True  # whether a session was begun or adopted here


NOTHING_GIVEN = Given()


class Repairs(Protocol):
    """What a person who asks for repairs said of each session."""

    def __call__(self, session: str, /, *files: str) -> bool:
        """Whether a session is to be repaired; these files of it then count as they are written next."""
        ...


class RepoReader(Protocol):
    """What a probe may do: look at the repository. Runs in a thread; may wait."""

    root: str  # the repository's folder, absolute
    admits: Admits  # whether the person consented to something of the repository

    @property
    def own_paths(self) -> tuple[str, ...]:
        """What every workflow says of itself: see `Workflow.own_paths`."""
        ...

    @property
    def at(self) -> datetime:
        """Now."""
        ...

    def git(self, *args: str, stdin: str = "", check: bool = True) -> str:
        """The standard output of a git command in the repository, bounded in time.

        Values are given after `rondel.model.refs.END`, or after `--`.
        """
        ...

    def git_in(self, folder: str, *args: str, check: bool = True) -> str:
        """The same in another checkout of the repository."""
        ...

    def git_with_attributes(self, commit: str, *args: str, stdin: str = "", check: bool = True) -> str:
        """The same in the repository, with the attributes of that commit and those of nothing else."""
        ...

    def own_folder(self, path: str) -> str:
        """The folder of the person's own session that a path of the repository belongs to.

        The path itself where it is a file beside that folder; empty where it is part of no session
        that they began or adopted here.
        """
        ...

    def unfiltered(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of these files whose attributes name a filter that may not run here."""
        ...

    def file(self, path: str, size_max: int = 1_000_000) -> bytes | None:
        """A regular file of the working tree that does not lead out of it."""
        ...

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60) -> tuple[int, str, str]:
        """A program's status, standard output and standard error, in the repository."""
        ...


def _leave_nothing(_state: object, _given: object) -> Sequence[Change]:
    return ()


def _accept(_state: object, _answer: str) -> str | None:
    return None


def _ask_nothing(_state: object) -> str:
    raise NotImplementedError("a step that asks somebody has a prompt")


def _look_at_nothing(_look: RepoReader) -> object:
    raise NotImplementedError("a step that looks at the repository says what for")


@dataclass(frozen=True)
class Step(Generic[S]):
    """Something that is due: an action, and what it means.

    Its functions get the state as it is when they are called, not as it was when the step was
    planned: another terminal may have changed it while an agent worked.
    """

    action: Action
    write: Callable[[S, Outcome], Sequence[Change]] = _leave_nothing
    """The files to leave. For an outcome that is not DONE: what records it, or nothing.

    Nothing means that the workflow cannot go on without this action: it stays due, and
    the run ends with its error.
    """
    prompt: Callable[[S], str] = _ask_nothing
    """What an `Ask` says to its agent."""
    check: Callable[[S, str], str | None] = _accept
    """What is wrong with an answer, in words the agent can act on; None when it will do.

    A wrong answer is sent back once with these words; a second wrong one is REJECTED.
    """
    look: Callable[[RepoReader], object] = _look_at_nothing
    """What a `Probe` found: the `data` of its outcome. Raises RondelError when it cannot look."""
    begin: Callable[[S, datetime], Sequence[Change]] = _leave_nothing
    """The files that say the action has started, where the workflow's documents show that."""


@dataclass(frozen=True)
class Edited:
    """An edit that counts as done: whose it is, the commit on the session's branch, what it is about."""

    action: str
    commit: str
    title: str = ""


Mark = tuple[object, tuple[str, ...]]  # one that is in a document, and what it must be the mark of


class Workflow(ABC, Generic[S]):
    """One workflow. Instances have no state of their own."""

    name: ClassVar[str]
    schema_version: ClassVar[int] = 1  # the highest of its documents that this code knows
    goes_without: ClassVar[bool] = False  # whether it can do without the repository's agents: others serve
    order: ClassVar[int] = 100  # its place in lists: the lowest first, equal ones by name
    fallback: ClassVar[str] = "manual"  # the agent that serves where none is installed or configured
    round_folder: ClassVar[str] = "round"  # the files of round 2 are below a folder `round-2`
    programs: ClassVar[Mapping[str, str]] = {}  # programs it can use, each with what needs it, for `doctor`
    options: ClassVar[type[Any] | None] = None  # a frozen dataclass: what a program may say to `start`
    # What in a repository is its own record, not a change to review: patterns of git, from the top. With
    # `loops/**` the folders of its sessions are left out whole.
    own_paths: ClassVar[tuple[str, ...]] = ()
    # What says which session a person means, likewise as patterns: no edit of an agent's holds it.
    unedited: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        """The sessions in a repository, from names alone where that is enough."""

    @abstractmethod
    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> S:
        """What the files show. Total."""

    def reread(
        self,
        state: S,
        files: Snapshot,
        ref: SessionRef,
        changed: frozenset[str],
        given: Given = NOTHING_GIVEN,
    ) -> S:
        """What the files show after only these changed; `state` is not used again.

        The engine asks for this after it wrote, and when it looked for what others wrote; a
        folder's path ends in `/`. A workflow whose sessions are large does here what does not
        cost their size.
        """
        return self.read(files, ref, given)

    @abstractmethod
    def steps(self, state: S) -> Iterable[Step[S]]:
        """Everything that is due now, most urgent first. Taken lazily: only as far as limits allow."""

    def step(self, state: S, path: str) -> Step[S] | None:
        """The step with this path, of those that are due."""
        return next((step for step in self.steps(state) if step.action.path == path), None)

    def plan(self, state: S) -> Iterable[Action]:
        """The actions of the steps that are due."""
        return (step.action for step in self.steps(state))

    @abstractmethod
    def summary(self, state: S) -> Summary:
        """The session in short. Cheap: it is asked for thousands of sessions."""

    def conclusion(self, state: S) -> Conclusion:
        """What the session came to, said and returned when a run ends, whichever command ran it."""
        foreign = self.summary(state).foreign
        words = f"not made by Rondel, and so no approval: {', '.join(foreign)}"
        return Conclusion(approved=False, notes=(words,)) if foreign else Conclusion()

    def document(self, state: S) -> dict[str, object]:
        """The workflow's own state document after reconciliation, and what is derived from it."""
        return self.summary(state).state

    def control(self, state: S, word: str, at: datetime) -> Sequence[Change]:
        """The files that show a person's word (pause, stop, resume, retry), where the documents do.

        `resume` comes with every run; `retry` instead where failed actions get their
        attempts back.
        """
        return ()

    def changes_code(self, state: S | None) -> bool:
        """Whether the run that is asked for changes code and tests it; None before there is a session."""
        return False

    def judges(self, state: S) -> tuple[str, str] | None:
        """The change that a session judges, by its base and its head; None where it judges none.

        What the repository says in its settings counts as it is at the base: a change does not say
        how it is judged.
        """
        return None

    def brings(self, state: S | None, given: Given, look: RepoReader) -> Iterable[Brought]:
        """What of the repository, besides its settings, a run would execute: it needs consent.

        None for the state stands for every run that could be asked for.
        """
        return ()

    def target(self, state: S) -> str | None:
        """The branch that the session's edits go to, empty while there is none; None where it never edits."""
        return None

    def edits(self, state: S) -> Iterable[Edited]:
        """The edits that count as done, as the session's own files record them: its branch must hold them.

        Not one that is to be done again, or that a person declared done.
        """
        return ()

    def redo(self, state: S, actions: Sequence[str]) -> str:
        """The command that has the edits of these actions done again; empty where none does."""
        return ""

    def uses(self, state: S, name: str) -> bool:
        """Whether the shared workspace of that name may still be worked in.

        One that is not is put aside when a run begins or ends: git keeps what is in it.
        """
        return True

    def frozen(self, state: S) -> Iterable[str]:
        """Folders whose files never change again: a finished round. Refresh leaves them alone."""
        return ()

    def looked_up(self, state: S) -> Iterable[str]:
        """The files of unfinished work that only say what the repository says: what probes left.

        Whoever adopts a foreign session has them made again, which costs nothing: what somebody else's
        file says of the repository may be untrue.
        """
        return ()

    def details(self, state: S, at: datetime) -> Sequence[str]:
        """Lines that `rondel watch` shows below the actions: where the session is, in its own words."""
        return ()

    def artifact(self, state: S, number: int | None) -> str | None:
        """The file a person most likely wants to see, of a round or of the last complete one."""
        return None

    def doctor(self, root: str, *, repair: Repairs) -> Iterable[tuple[str, Problem]]:
        """What is wrong in a repository's folders beyond what `summary` says, each with its session.

        Repairs what can be repaired where `repair`, which is told the files that are written, says so
        for that session, keeps what it replaces, and says so. The only part of a workflow that may write,
        through its `files` module.
        """
        return ()

    def documents(self, state: S) -> Iterable[str]:
        """The session's state documents: JSON objects, and logs (`.ndjson`) that only grow.

        A running driver puts them back where somebody damages them; those it edits it knows
        without being told.
        """
        return ()

    def marks(self, state: S) -> Iterable[Mark]:
        """The marks in the session's documents: what a lost id is known by (see `rondel.model.marks`)."""
        return ()

    def settings(self) -> Mapping[str, object]:
        """The workflow's own table of `rondel.toml`: each key with its default, which gives the type."""
        return {}

    def rules(self) -> Mapping[str, Rule]:
        """What a repository may say of these settings, by key; of one that is not here, it needs consent."""
        return {}

    def start(self, project: Project, options: Any) -> Started:
        """Start a session, or take one up again, as `options` ask: an instance of the class attribute.

        `Project.start` and the workflow's own command come through here. Asks no agent and no person;
        writes through the project (`create`, `change`) or through the workflow's `files` module.
        """
        raise NotImplementedError(f"{self.name} has options, and no `start` that takes them")

    def home(self, root: str, *, new: bool) -> str:
        """The checkout that sessions of somebody in `root` are kept in, or `new` ones belong to."""
        return root

    def commands(self) -> click.Group | None:
        """The command `rondel NAME`; None where a workflow has none. Imported when it is called."""
        return None
