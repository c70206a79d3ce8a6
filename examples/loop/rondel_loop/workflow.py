"""The workflow `loop`: work, judgement, work again, until the judge says yes.

loops/NAME/goal.md               what is wanted
loops/NAME/round-1/work.md       what the worker answered
loops/NAME/round-1/judgement.md  begins with `yes` or `no`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from typing_extensions import override

from rondel.errors import UsageError
from rondel.model.actions import Ask
from rondel.model.changes import Change, text
from rondel.model.consent import LOWER, Rule
from rondel.model.names import is_safe_name
from rondel.model.outcomes import Outcome
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Conclusion, Status, Summary, command_line
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef, Started, Step, Workflow

if TYPE_CHECKING:
    import click

    from rondel.project import Project

FOLDER = "loops"
GOAL = "goal.md"
ROUNDS_MAX = 3


@dataclass(frozen=True)
class LoopOptions:
    """What a person or a program may say of a new loop."""

    name: str
    goal: str


@dataclass(frozen=True)
class State:
    """What the files show."""

    ref: SessionRef
    files: Snapshot
    rounds_max: int

    @property
    def judged(self) -> int:
        """How many rounds were judged."""
        return sum(self.files.exists(judgement(n)) for n in range(1, self.rounds_max + 1))

    @property
    def round(self) -> int:
        """The round under way, or the last one."""
        return self.judged if self.is_over else self.judged + 1

    @property
    def is_approved(self) -> bool:
        """Whether a judge said yes."""
        return any(says_yes(self.files.text(judgement(n))) for n in range(1, self.judged + 1))

    @property
    def is_over(self) -> bool:
        """Whether nobody is asked any more."""
        return self.is_approved or self.judged == self.rounds_max


def work(number: int) -> str:
    """What the worker answered in a round."""
    return f"round-{number}/work.md"


def judgement(number: int) -> str:
    """What the judge said of it."""
    return f"round-{number}/judgement.md"


def says_yes(answer: str | None) -> bool:
    """Whether a judge is content. Anything but a clear yes is a no."""
    return (answer or "").lower().lstrip(" *#`").startswith("yes")


def working(state: State) -> Step[State]:
    """The worker is asked, and told what the judge said of the round before."""
    number = state.round
    before = (work(number - 1), judgement(number - 1)) if number > 1 else ()

    def prompt(state: State) -> str:
        goal, *others = (state.files.text(path) or "" for path in (GOAL, *before))
        again = "\n---\nYou made this:\n{}\n---\nIt will not do:\n{}".format(*others) if others else ""
        return f"{goal}{again}"

    return Step(Ask(work(number), "loop.worker", (GOAL, *before)), partial(keep, work(number)), prompt)


def judging(state: State) -> Step[State]:
    """The judge is asked about the work of the round."""
    made, path = work(state.round), judgement(state.round)

    def prompt(state: State) -> str:
        goal, answer = (state.files.text(path) or "" for path in (GOAL, made))
        return f"Is this what was wanted? Begin with yes or no, then say why.\n\n{goal}\n---\n{answer}"

    def check(_state: State, answer: str) -> str | None:
        is_clear = says_yes(answer) or answer.lower().lstrip(" *#`").startswith("no")
        return None if is_clear else "begin with yes or no"

    return Step(Ask(path, "loop.judge", (GOAL, made)), partial(keep, path), prompt, check)


def keep(path: str, _state: State, outcome: Outcome) -> Sequence[Change]:
    """An answer is the file that it was asked for."""
    return [text(path, outcome.text)] if outcome.ok else []


class Loop(Workflow[State]):
    """An agent works until a judge is content."""

    name = "loop"
    options = LoopOptions
    own_paths = (f"{FOLDER}/**",)

    @override
    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        """Every folder of `loops/` with a goal."""
        for name in sorted(n[:-1] for n in repo.names(FOLDER) if n.endswith("/")):
            if is_safe_name(name) and repo.exists(f"{FOLDER}/{name}/{GOAL}"):
                yield SessionRef(self.name, name, f"{FOLDER}/{name}")

    @override
    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
        said = given.settings.get("rounds_max", ROUNDS_MAX)
        return State(ref, files, max(said, 1) if isinstance(said, int) else ROUNDS_MAX)

    @override
    def steps(self, state: State) -> Iterable[Step[State]]:
        """The work of the round, then its judgement."""
        if not state.is_over:
            yield judging(state) if state.files.exists(work(state.round)) else working(state)

    @override
    def summary(self, state: State) -> Summary:
        title = (state.files.text(GOAL) or "").strip().partition("\n")[0]
        status = Status.COMPLETED if state.is_over else Status.ACTIVE
        then = "" if state.is_over else command_line("resume", state.ref.name)
        return Summary(title, status, f"round {state.round}", state.round, state.rounds_max, next=then)

    @override
    def conclusion(self, state: State) -> Conclusion:
        if not state.is_over:
            return Conclusion()
        words = "" if state.is_approved else f"no judge was content in {state.rounds_max} rounds"
        made = state.files.text(work(state.round)) or ""
        return Conclusion(state.is_approved, document=made, notes=(words,) if words else ())

    @override
    def artifact(self, state: State, number: int | None) -> str | None:
        path = work(number or state.round)
        return path if state.files.exists(path) else None

    @override
    def settings(self) -> Mapping[str, object]:
        """`[loop]`."""
        return {"rounds_max": ROUNDS_MAX}

    @override
    def rules(self) -> Mapping[str, Rule]:
        return {"rounds_max": LOWER}

    @override
    def start(self, project: Project, options: LoopOptions) -> Started:
        ref = SessionRef(self.name, options.name, f"{FOLDER}/{options.name}")
        if not is_safe_name(options.name) or ref in project.sessions(self.name):
            raise UsageError(f"{options.name!r} is no name for a new loop; choose another one")
        project.create(ref, [text(GOAL, options.goal)])
        return Started(ref)

    @override
    def commands(self) -> click.Group:
        from rondel_loop.commands import command

        return command
