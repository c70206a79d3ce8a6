"""How a cycle goes on: when it is opened, when its file was approved or rejected, when a person wants more.

Whatever has to be there is written first. The change of `session.json` that goes on is the last: it is
the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from rondel.errors import UsageError
from rondel.model.changes import Aside, Change, Edit, Write, json_file, text
from rondel.model.names import digest
from rondel.model.texts import cut
from rondel.model.times import stamp
from rondel.workflows.generate import documents, layout
from rondel.workflows.generate.models import (
    FINAL,
    Approval,
    Artifact,
    CycleState,
    IterationState,
    WorkflowPhase,
    WorkflowStage,
    WorkflowState,
    WorkflowStatus,
    outputs_hash,
)
from rondel.workflows.generate.read import Answer, CycleView, State
from rondel.workflows.generate.responses import CodeFile, parse_verdict

ERROR_MAX = 2_000
STOPPED = (WorkflowStatus.ERROR, WorkflowStatus.CANCELLED)


def edit(view: CycleView, change: Callable[[CycleState], None], at: datetime) -> Edit:
    """A change of one cycle, where the document still shows it as it is in `view`."""
    return documents.edit_cycle(view.files, view.index, view.cycle.position, change, at)


def opened(view: CycleView, standards: bytes, at: datetime) -> Edit:
    """The cycle has begun, with these standards: its first iteration is at PLAN[PROMPT]."""

    def change(cycle: CycleState) -> None:
        cycle.standards_hash = digest(standards)
        cycle.phase, cycle.stage = WorkflowPhase.PLAN, WorkflowStage.PROMPT
        cycle.current_iteration = 1
        cycle.iterations = [IterationState(number=1, started_at=stamp(at))]
        cycle.started_at = cycle.started_at or stamp(at)

    return edit(view, change, at)


def failed(view: CycleView, words: str, at: datetime) -> Edit:
    """The cycle ends with an error; a retry goes on from there."""

    def change(cycle: CycleState) -> None:
        cycle.status = WorkflowStatus.ERROR
        cycle.last_error = cut(words, ERROR_MAX)

    return edit(view, change, at)


def given_up(view: CycleView, at: datetime) -> Edit:
    """This version of the stage's file does not count any more: another one is due."""

    def change(cycle: CycleState) -> None:
        cycle.retry_count = view.attempt

    return edit(view, change, at)


def open_iteration(cycle: CycleState, phase: WorkflowPhase, at: datetime) -> None:
    """The next iteration of a cycle, at the prompt of a phase. What was before stays as it is."""
    cycle.current_iteration += 1
    cycle.iterations.append(
        IterationState(number=cycle.current_iteration, first_phase=phase, started_at=stamp(at))
    )
    cycle.status = WorkflowStatus.IN_PROGRESS
    cycle.retry_count = 0
    cycle.phase, cycle.stage = phase, WorkflowStage.PROMPT


# -- what was said of the stage's file ----------------------------------------------------------


def rejected(view: CycleView, said: Answer, at: datetime) -> list[Change]:
    """The file is put aside. With words about it, it is made anew with them; without, the cycle halts."""
    changes: list[Change] = [Aside(view.file, layout.rejected(view.file, view.attempt))]
    goes_on = bool(said.comment.strip())
    if goes_on and view.cycle.stage is WorkflowStage.RESPONSE:
        changes.insert(0, _with_feedback(view, said.comment))

    def change(cycle: CycleState) -> None:
        cycle.retry_count = view.attempt
        cycle.approval_feedback = said.comment or None
        if not goes_on:
            cycle.status = WorkflowStatus.ERROR
            cycle.last_error = f"{cycle.stage_name} was rejected by {said.by}"

    return [*changes, edit(view, change, at)]


def _with_feedback(view: CycleView, comment: str) -> Change:
    """The prompt, with what was wrong with the answer at its end: what is asked is what the file says."""
    heading = f"## Feedback on answer {view.attempt}"
    asked = view.files.text(view.prompt) or ""
    if heading in asked:
        return text(view.prompt, asked)
    words = (
        f"{heading}\n\nYour answer was rejected. Answer again, in full. What must be different:\n\n{comment}"
    )
    return text(view.prompt, f"{asked.rstrip()}\n\n{words}\n")


def _approve(cycle: CycleState, view: CycleView, said: Answer, at: datetime) -> str:
    """Note who let the file pass, with its digest as it is now."""
    found = view.files.digest(view.file) or ""
    cycle.approvals.append(
        Approval(
            phase=cycle.phase,
            stage=cycle.stage,
            iteration=cycle.current_iteration,
            by=said.by,
            at=stamp(at),
            sha256=found,
        )
    )
    cycle.last_error = None
    cycle.retry_count = 0
    if cycle.stage is WorkflowStage.RESPONSE:
        cycle.approval_feedback = None
    return found


def prompt_approved(view: CycleView, said: Answer, at: datetime) -> list[Change]:
    """The prompt may be asked: its response is due."""

    def change(cycle: CycleState) -> None:
        found = _approve(cycle, view, said, at)
        cycle.prompt_hashes[f"iteration-{cycle.current_iteration}/{cycle.phase}"] = found
        cycle.stage = WorkflowStage.RESPONSE

    return [edit(view, change, at)]


def plan_approved(view: CycleView, said: Answer, at: datetime) -> list[Change]:
    """The plan is the cycle's: code is due."""

    def change(cycle: CycleState) -> None:
        cycle.plan_hash = _approve(cycle, view, said, at)
        cycle.plan_approved = True
        cycle.phase, cycle.stage = WorkflowPhase.GENERATE, WorkflowStage.PROMPT

    plan = Write(view.paths.plan, (view.content or "").encode(), view=True)
    return [plan, edit(view, change, at)]


def code_approved(view: CycleView, said: Answer, files: Sequence[CodeFile], at: datetime) -> list[Change]:
    """The code of a response, under `code/` and nowhere else; then the review of it is due."""
    number, phase = view.cycle.current_iteration, view.cycle.phase
    writes = [Write(f"{view.paths.code(number)}/{file.path}", file.text.encode()) for file in files]
    made_at = documents.v2_stamp(at) if view.paths.flat else stamp(at)
    artifacts = [
        Artifact(path=w.path, phase=phase.value, iteration=number, sha256=digest(w.data), created_at=made_at)
        for w in writes
    ]

    def change(cycle: CycleState) -> None:
        _approve(cycle, view, said, at)
        fresh = {a.path for a in artifacts}
        cycle.artifacts = [a for a in cycle.artifacts if a.path not in fresh] + artifacts
        cycle.phase, cycle.stage = WorkflowPhase.REVIEW, WorkflowStage.PROMPT

    return [*writes, edit(view, change, at)]


def review_approved(view: CycleView, said: Answer, at: datetime) -> list[Change]:
    """PASS completes the cycle in one step; FAIL opens the next iteration at REVISE, while there is one."""
    verdict = parse_verdict(view.content or "")
    if verdict.error:
        return [failed(view, f"{view.file}: {verdict.error}", at)]
    left = view.iterations_left

    def change(cycle: CycleState) -> None:
        cycle.review_hash = _approve(cycle, view, said, at)
        cycle.review_approved = True
        if cycle.iterations:
            cycle.iterations[-1].verdict = "PASS" if verdict.passed else "FAIL"
            cycle.iterations[-1].completed_at = stamp(at)
        if verdict.passed:
            cycle.status = WorkflowStatus.COMPLETED
            cycle.completed_at = stamp(at)
            cycle.outputs_hash = outputs_hash(cycle.artifacts)
        elif left > 0:
            open_iteration(cycle, WorkflowPhase.REVISE, at)
        else:
            cycle.status = WorkflowStatus.ERROR
            cycle.last_error = (
                f"no PASS after {cycle.current_iteration - cycle.iterations_before} iterations; "
                "`rondel generate retry` opens another"
            )

    done: list[Change] = [edit(view, change, at)]
    if verdict.passed and view.mark is not None:  # Rondel's mark; a session without an id has none
        path = view.paths.signed(view.cycle.current_iteration)
        done.insert(0, json_file(path, {"mark": view.mark, "at": stamp(at)}))
    return done


# -- what a person asks for besides an answer: retry, skip, cancel ------------------------------


def retry(
    state: State, name: str | None, phase: WorkflowPhase | None, feedback: str, at: datetime
) -> Sequence[Change]:
    """Go on with a cycle that stopped; or open its next iteration, at a phase, from the start without one.

    What was finished before stays: another iteration has another folder.
    """
    view = _named(state, name)
    kind = view.cycle.type
    if view.cycle.pending:
        raise UsageError(f"the cycle {kind} has not begun; `rondel generate run` begins it")
    if view.cycle.status is WorkflowStatus.SKIPPED and not view.cycle.iterations:
        return [edit(view, _revive, at)]
    if phase in (WorkflowPhase.REVIEW, WorkflowPhase.REVISE) and not view.cycle.artifacts:
        raise UsageError(f"the cycle {kind} has no code yet; retry it from plan or generate")
    if phase is WorkflowPhase.GENERATE and not view.cycle.plan_approved:
        raise UsageError(f"the cycle {kind} has no approved plan yet; retry it from plan")

    def change(cycle: CycleState) -> None:
        cycle.retry_count += 1
        cycle.last_error = None
        if feedback.strip():
            cycle.approval_feedback = feedback
        again = cycle.status in STOPPED and phase is None
        if again and not _ended(cycle):
            _revive(cycle)
            return
        cycle.iterations_before = cycle.current_iteration
        begin = phase or (WorkflowPhase.REVISE if again else WorkflowPhase.PLAN)
        if begin is not WorkflowPhase.REVIEW:
            cycle.stale = False
        open_iteration(cycle, begin, at)

    others = (v for v in state.views if v.index != view.index)
    cancelled = (v for v in others if v.cycle.status is WorkflowStatus.CANCELLED)
    return [*(edit(v, _revive, at) for v in cancelled), edit(view, change, at)]


def _ended(cycle: CycleState) -> bool:
    """Whether its last iteration is complete, so that going on means another one."""
    return bool(cycle.iterations) and cycle.iterations[-1].verdict is not None


def _revive(cycle: CycleState) -> None:
    cycle.status = WorkflowStatus.IN_PROGRESS


def retry_failed(state: State, at: datetime) -> Sequence[Change]:
    """Go on with every cycle that ended for want of a usable answer.

    One that a person halted, or whose iterations are used up, goes on when they name it: `retry`.
    """
    stopped = [v for v in state.views if v.cycle.status is WorkflowStatus.ERROR]
    again = [v for v in stopped if not v.halted and not _ended(v.cycle)]
    return [change for v in again for change in retry(state, v.cycle.type, None, "", at)]


def _named(state: State, name: str | None) -> CycleView:
    """The cycle a person means: the one they name, else the one that is due."""
    session = _readable(state)
    there = ", ".join(v.cycle.type for v in state.views)
    if name is None:
        stopped = [v for v in state.views if v.cycle.status in STOPPED]
        if not stopped and session.status is WorkflowStatus.COMPLETED and len(state.views) > 1:
            raise UsageError(f"{state.ref.name} is complete; name the cycle to redo with --cycle: {there}")
        return stopped[0] if stopped else state.views[session.current_index]
    found = next((v for v in state.views if v.cycle.type == name), None)
    if found is None:
        raise UsageError(f"{state.ref.name} has no cycle {name!r}; there are: {there}")
    return found


def _readable(state: State) -> WorkflowState:
    if state.session is None:
        raise UsageError(f"{state.ref.name} cannot be read; see `rondel doctor`")
    return state.session


def skip(state: State, name: str, at: datetime) -> Sequence[Change]:
    """Leave a cycle out. One that is complete stays."""
    view = _named(state, name)
    if state.flat:
        raise UsageError(f"{state.ref.name} is a v2 session: it has one cycle, which cannot be skipped")
    if view.cycle.status is WorkflowStatus.COMPLETED:
        raise UsageError(f"the cycle {name} is complete; there is nothing to skip")

    def change(cycle: CycleState) -> None:
        cycle.status = WorkflowStatus.SKIPPED
        cycle.last_error = None

    return [edit(view, change, at)]


def cancel(state: State, at: datetime) -> Sequence[Change]:
    """Give a session up: what is complete stays, nothing more is done. A retry takes it up again."""
    if _readable(state).status is WorkflowStatus.COMPLETED:
        raise UsageError(f"{state.ref.name} is complete; there is nothing to cancel")

    def change(session: WorkflowState) -> None:
        for cycle in session.cycles:
            if cycle.status not in FINAL:
                cycle.status = WorkflowStatus.CANCELLED

    return [documents.edit_session(state.files, change, at)]
