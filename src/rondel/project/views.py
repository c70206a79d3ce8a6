"""What sessions show: their state, a summary with what only the outside knows, their files, what is wrong."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rondel import paths
from rondel.engine import kept
from rondel.engine.branch import Loss, loss_of
from rondel.engine.explain import Origin, explain
from rondel.engine.lost import lost
from rondel.engine.report import REPORT, Report, Stopped, last_report
from rondel.engine.session import Session, newer_documents, restored
from rondel.errors import MachineTrouble, RondelError, UsageError
from rondel.model.actions import Decide
from rondel.model.identity import IDENTITY, identity_of
from rondel.model.snapshot import Snapshot
from rondel.model.summary import FOREIGN_SESSION, Problem, Status, Summary, command_line
from rondel.model.workflow import SessionRef
from rondel.project.repository import Repository, now
from rondel.repo.branches import Branches
from rondel.repo.moves import cut_short, restore
from rondel.repo.worktrees import Worktrees
from rondel.store import ours
from rondel.store.changes import Written
from rondel.store.lease import NAME as LEASE
from rondel.store.lease import Holder, Lease, holder
from rondel.store.ours import OLD_RUN, RECORD, RESTORED
from rondel.store.snapshot import DiskSnapshot
from rondel.trust.doubts import WRITTEN_MEANWHILE, Doubts
from rondel.trust.seals import Believed, Seals


class Views:
    """The sessions of one repository, as a person may see them."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._workflow = repository.workflow

    @cached_property
    def trees(self) -> Worktrees:
        """Who only looks, or puts right what was cut short, needs no settings and no folder for worktrees."""
        return Worktrees(self._repository.root, Path(os.devnull))

    @cached_property
    def branches(self) -> Branches:
        """The branches of the repository, to look at."""
        return Branches(self.trees)

    def ref(self, name: str | None, workflow: str | None = None, *, looking: bool = False) -> SessionRef:
        """A session by any unique part of its name; without one, the only active one."""
        refs = self._repository.sessions(workflow)
        if name:
            return _pick(refs, name)
        active = [r for r in refs if not self.summary(r).status.is_over]
        if looking and not active:
            active = refs
        if len(active) == 1:
            return active[0]
        what = f"{workflow} session" if workflow else "session"
        if not active:
            raise UsageError(f"there is no active {what} here; `rondel status` lists what there is")
        there = ", ".join(r.name for r in active)
        raise UsageError(f"several sessions {'are there' if looking else 'are active'}; name one of: {there}")

    def session(self, ref: SessionRef) -> Session[Any]:
        """An open session."""
        given, known = self._repository.given(ref.workflow), self._repository.known.of(ref)
        return Session(self._repository.root, ref, self._workflow(ref.workflow), given, known)

    def runtime(self, ref: SessionRef) -> Path:
        """Where a session's lease, journal and spools are, once it runs: in the person's state folder."""
        return self._repository.known.of(ref).runtime

    def driver(self, ref: SessionRef) -> Holder | None:
        """The process that drives a session now; None for none."""
        return holder(self.runtime(ref), self._repository.folder(ref))

    # -- what the files show ------------------------------------------------------------------

    def files(self, ref: SessionRef) -> Snapshot:
        """The files of a session, without decisions that count for nothing."""
        found = self._repository.files(ref)
        seals = self._seals(ref, found)
        return Believed(found, seals, self.doubts(ref)) if seals else found

    def doubts(self, ref: SessionRef) -> Doubts:
        """Which texts of a session do not count before the person has adopted them."""
        return Doubts(self.runtime(ref), ref.name, Written(self._repository.folder(ref)).ours)

    def _seals(self, ref: SessionRef, shown: Snapshot) -> Seals | None:
        """By what decisions count; None in a foreign session, which is shown with all that it says."""
        known = self._repository.known.of(ref)
        return Seals(known) if known.knows(shown) else None

    def state(self, ref: SessionRef) -> Any:
        """What a session's files show."""
        return self._workflow(ref.workflow).read(self.files(ref), ref, self._repository.given(ref.workflow))

    def waiting(self, ref: SessionRef) -> list[Decide]:
        """The questions a person must answer now."""
        due = self._workflow(ref.workflow).plan(self.state(ref))
        return [action for action in due if isinstance(action, Decide)]

    def details(self, ref: SessionRef) -> Sequence[str]:
        """Where a session is, in its workflow's own words."""
        return self._workflow(ref.workflow).details(self.state(ref), now())

    def artifacts(self, ref: SessionRef) -> list[str]:
        """Every file of a session that is state, not runtime."""
        snapshot, there = self.files(ref), paths.files_below(self._repository.folder(ref))
        there += [f"../{name}" for name in ref.beside if not name.startswith(".")]
        runtime = (f"{OLD_RUN}/", RECORD, ours.LOCK)
        return sorted(p for p in there if not p.startswith(runtime) and snapshot.exists(p))

    def artifact(self, ref: SessionRef, name: str | None, number: int | None = None) -> str | None:
        """The file that a person means: by its path, by a unique part of that, or the one that matters most.

        A path that is a file's own, in the session or in the repository, means that file and no other.
        """
        flow = self._workflow(ref.workflow)
        if name is None:
            found = flow.artifact(self.state(ref), number)
            if found is None and number is not None:
                shows = command_line("status", ref.name)
                raise UsageError(f"{ref.name} has no round {number} to show; `{shows}`")
            return found
        whole = name.removeprefix("./").removeprefix(f"{ref.folder}/")
        there = self.artifacts(ref)
        if whole in there:
            return whole
        mark = "" if number is None else f"{flow.round_folder}-{number}/"
        named = [p for p in there if name in p and mark in p]
        match [p for p in named if p.endswith(f"/{name}")] or named:
            case [path]:
                return path
            case []:
                lists = command_line("show", ref.name)
                raise UsageError(f"{ref.name} has no file {name!r}; `{lists}` lists them")
            case several:
                raise UsageError(f"{name!r} may be any of: {', '.join(several[:10])}; say more of it")

    # -- what its runs left --------------------------------------------------------------------

    def last_report(self, ref: SessionRef) -> Report | None:
        """How the last run of a session ended, as far as anybody knows."""
        return last_report(self.runtime(ref)) if self._repository.is_recorded(ref) else None

    def explain(self, ref: SessionRef) -> list[Origin]:
        """Why each produced file is reused or stale."""
        return explain(self.session(ref), self._repository.config)

    # -- in short --------------------------------------------------------------------------------

    def survey(self) -> list[tuple[SessionRef, Summary]]:
        """Every session of every workflow, in one look at the disk."""
        repo = DiskSnapshot(self._repository.root, once=True)
        found, same = [], defaultdict[str, list[SessionRef]](list)
        for name in self._repository.workflow_names():
            for ref in self._workflow(name).sessions(repo):
                there = repo.below(ref.folder, ref.beside)
                found.append((ref, self._summary(ref, there)))
                if own := identity_of(there.json(IDENTITY)):
                    same[own.id].append(ref)
                repo.let_go(ref.folder)
        copies = {ref: copy for refs in same.values() for ref in refs if (copy := _same_id(ref, refs))}
        return [(ref, _with_problem(summary, copies.get(ref))) for ref, summary in found]

    def summary(self, ref: SessionRef) -> Summary:
        """A session in short, with what only the outside knows: running, paused."""
        return self._summary(ref, self._repository.files(ref))

    def status(self, ref: SessionRef) -> Summary:
        """Like `summary`, with what is seen only beside the other sessions: that one is a copy."""
        return _with_problem(self.summary(ref), self.copy(ref))

    def copy(self, ref: SessionRef) -> Problem | None:
        """That another session has the same id; None where none has."""
        own = identity_of(self.files(ref).json(IDENTITY))
        if own is None:
            return None
        there = self._repository.sessions(ref.workflow)
        known = ((other, identity_of(self.files(other).json(IDENTITY))) for other in there)
        same = [other for other, identity in known if identity and identity.id == own.id]
        is_recorded = self._repository.is_recorded
        if is_recorded(ref) and not self._repository.says_yes():  # a foreign copy stops nobody's own session
            same = [other for other in same if is_recorded(other)]
        return _same_id(ref, same)

    def _summary(self, ref: SessionRef, snapshot: Snapshot) -> Summary:
        seals = self._seals(ref, snapshot)
        if seals is None:
            found = self._summary_of(ref, snapshot, None, snapshot)
            return found if self._repository.says_yes() else _as_foreign(ref, found)
        doubts = self.doubts(ref)
        found = self._summary_of(ref, snapshot, seals, Believed(snapshot, seals, doubts))
        found = replace(found, problems=(*found.problems, *self._uncounted(ref, snapshot, seals, doubts)))
        waits = any(problem.rule == WRITTEN_MEANWHILE for problem in found.problems)
        return replace(found, next=command_line("adopt", ref.name)) if waits else found

    def _uncounted(
        self, ref: SessionRef, snapshot: Snapshot, seals: Seals, doubts: Doubts
    ) -> Iterator[Problem]:
        """What does not count: decisions and texts that are nobody's, and answers to what is asked again."""
        yield from seals.problems(snapshot)
        if old := list(seals.outdated(snapshot)):
            asked = {question.path for question in self.waiting(ref)}
            yield from (problem for problem in old if problem.file in asked)
        if not doubts.is_idle:
            yield from doubts.problems(snapshot, paths.files_below(self._repository.folder(ref)))

    def _summary_of(
        self, ref: SessionRef, snapshot: Snapshot, seals: Seals | None, shown: Snapshot
    ) -> Summary:
        """The same from what is `shown` to the workflow; one that is not on record has no runtime here."""
        flow = self._workflow(ref.workflow)
        state = flow.read(shown, ref, self._repository.given(ref.workflow))
        found = flow.summary(state)
        if found.status is Status.DAMAGED:  # nothing goes on before it is mended
            found = replace(found, next=command_line("doctor"))
        there = snapshot.names(ours.HOME)
        newer = newer_documents(snapshot, flow, state)
        if newer:
            return replace(found, status=Status.DAMAGED, problems=(*newer, *found.problems))
        if not there:  # nobody of ours was ever there
            return found
        if gone := lost(identity_of(snapshot.json(IDENTITY))):
            before = (*found.foreign, "what was completed before its id was lost")
            found = replace(found, problems=(*found.problems, *gone), foreign=before)
        run = self.runtime(ref)
        at_run = ours.names(run) if seals is not None else frozenset[str]()
        if seals is not None or self._repository.says_yes():
            record = snapshot.data(RECORD) if RESTORED in there else None
            run_record = ours.view(run / RESTORED) if RESTORED in at_run else None
            found = replace(found, problems=(*found.problems, *restored(record, run_record)))
        # Asking the kernel who holds a lock costs an open file each: only where there is one.
        folder = f"{self._repository.root}/{ref.folder}" if "lock" in there else None
        if (folder or LEASE in at_run) and holder(run, folder) is not None:
            problems = tuple(p for p in found.problems if not p.when_idle)
            watches = command_line("watch", ref.name)
            return replace(found, status=Status.RUNNING, problems=problems, next=watches)
        if found.status not in (Status.DAMAGED, Status.CANCELLED):
            found = _with_loss(found, self.loss(ref, state, snapshot))
        if found.status not in (Status.ACTIVE, Status.WAITING):
            return found
        if "control" in there:
            return replace(found, status=Status.PAUSED)
        return _with_report(found, last_report(run)) if REPORT in at_run else found

    def loss(self, ref: SessionRef, state: Any, snapshot: Snapshot) -> Loss | None:
        """What counts as done and is not on the session's branch. Where nobody can look, nothing is said."""
        identity = identity_of(snapshot.json(IDENTITY))
        if identity is None:
            return None
        with suppress(RondelError, MachineTrouble):
            return loss_of(ref, self._workflow(ref.workflow), state, identity, self.branches)
        return None

    # -- what is wrong ----------------------------------------------------------------------------

    def doctor(
        self, may_repair: Callable[..., bool], hold: Callable[[SessionRef], Lease], *, repair: bool
    ) -> list[tuple[str, Problem]]:
        """What is wrong, each with its session; with `repair`, after repairing what can be repaired."""
        found = [("", problem) for problem in (*self.cut_moves(repair=repair), *self._left(repair=repair))]
        for name in self._repository.workflow_names():
            refs = {ref.name: ref for ref in self._repository.sessions(name)} if repair else {}
            repairs = partial(may_repair, refs) if repair else _repairs_nothing
            found += self._workflow(name).doctor(str(self._repository.root), repair=repairs)
        found += [
            (ref.name, problem)
            for ref, summary in self.survey()
            if summary.status is Status.DAMAGED and self._repository.is_known(ref)
            for problem in self._damaged(ref, hold, repair=repair)
        ]
        known = {(s, p.rule, p.file) for s, p in found}
        for ref, summary in self.survey():
            found += [(ref.name, p) for p in summary.problems if (ref.name, p.rule, p.file) not in known]
        return found

    def _damaged(
        self, ref: SessionRef, hold: Callable[[SessionRef], Lease], *, repair: bool
    ) -> list[Problem]:
        """The documents of a session that its last run left whole, and that cannot be read now."""
        good = kept.last_good(self.runtime(ref), self._repository.folder(ref), ref.beside)
        found = list(kept.damaged(good, repair=False))
        if not found or not repair:
            return found
        with hold(ref):
            return list(kept.damaged(good, repair=True))

    def _left(self, *, repair: bool) -> Iterator[Problem]:
        """Runtimes of sessions whose folders are gone."""
        for left in self._repository.known.left(now()):
            words = f"the runtime of {left.session}, whose folder is gone, was not used for {left.days} days"
            if repair:
                left.remove()
            how = "" if repair else f"`{command_line('doctor', '--repair')}` removes it"
            yield Problem("runtime-left", str(left.run), words, how, repaired=repair)

    def cut_moves(self, *, repair: bool) -> list[Problem]:
        """Checkouts in which git was killed while it moved a branch for us."""
        rule, words = "cut-move", "git was cut off while it updated the files here"
        cut = [str(folder) for folder in cut_short(self.trees)]
        if not repair or not cut:
            how = f"`{command_line('doctor', '--repair')}` puts them right; what you wrote since stays"
            return [Problem(rule, folder, words, how) for folder in cut]
        try:
            done = {str(one.folder): one.words for one in restore(self.trees)}
        except RondelError as e:
            return [Problem(rule, folder, f"{words}: {e}") for folder in cut]
        gone = "the lock of the index is gone"
        return [Problem(rule, folder, done.get(folder, gone), repaired=True) for folder in cut]


def _repairs_nothing(_session: str, /, *_files: str) -> bool:
    return False


def _with_loss(found: Summary, loss: Loss | None) -> Summary:
    """What its branch does not hold any more, and what leads on from there."""
    if loss is None:
        return found
    return replace(found, problems=(*found.problems, loss.problem), next=loss.next)


def _with_report(found: Summary, report: Report | None) -> Summary:
    """What the last run said it could not go on without."""
    if report is None or found.waiting_for:
        return found
    if report.stopped is Stopped.FAILED:
        return replace(found, status=Status.FAILED, waiting_for=report.message)
    if report.stopped in (Stopped.WAITING, Stopped.PARKED, Stopped.LIMIT, Stopped.MACHINE):
        return replace(found, status=Status.WAITING, waiting_for=report.message)
    return found


def _as_foreign(ref: SessionRef, found: Summary) -> Summary:
    """A session that was not begun here: shown as it is, and nothing goes on before it is adopted."""
    adopts = command_line("adopt", ref.name)
    foreign = Problem(
        FOREIGN_SESSION,
        IDENTITY,
        "it is foreign: not begun or adopted here, so nothing goes on with it and nothing of it counts",
        f"`{adopts}` lists what it says is done and decided, and makes it yours",
    )
    then = found.next if found.status in (Status.COMPLETED, Status.CANCELLED) else adopts
    return replace(found, problems=(foreign, *found.problems), next=then)


def _with_problem(found: Summary, problem: Problem | None) -> Summary:
    return replace(found, problems=(*found.problems, problem)) if problem else found


def _same_id(ref: SessionRef, refs: Iterable[SessionRef]) -> Problem | None:
    """That a session shares its id with another one of `refs`, since one is a copy of the other.

    Both would find the same commits as their own. Which one is the copy only a person knows.
    """
    other = next((other for other in refs if other.folder != ref.folder), None)
    if other is None:
        return None
    return Problem(
        "same-id",
        IDENTITY,
        f"{ref.folder} and {other.folder} have the same id, so one is a copy of the other, and both would "
        f"claim the same commits; `rm COPY/{IDENTITY}`, with the copy's folder for COPY, makes it a "
        "session of its own",
    )


def _pick(refs: Iterable[SessionRef], name: str) -> SessionRef:
    found = list(refs)
    for match in (
        [r for r in found if name in (r.name, r.id)],
        [r for r in found if r.id.startswith(f"{name}-") or r.id.endswith(f"-{name}")],
        [r for r in found if name in r.name],
        # As a terminal shows a name whose letters it does not have.
        [r for r in found if "?" in name and fnmatchcase(r.name, f"*{name}*")],
    ):
        if len(match) == 1:
            return match[0]
        if match:
            raise UsageError(f"{name!r} may be any of: {', '.join(r.name for r in match)}; say more of it")
    there = ", ".join(r.name for r in found[:10]) or "none"
    raise UsageError(f"no session {name!r}; there are: {there}")
