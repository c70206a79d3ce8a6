"""Which files an action leaves. The change of `session.json` that goes on is the last: it is the commit."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from rondel.errors import RondelError
from rondel.model.actions import Action, Ask, Derive
from rondel.model.changes import Aside, Change, Edit, Write, text
from rondel.model.cut import cut
from rondel.model.digests import digest
from rondel.model.outcomes import Outcome
from rondel.model.replies import fenced_json
from rondel.model.times import stamp
from rondel.model.written import is_theirs
from rondel.workflows.generate import documents, layout, v2
from rondel.workflows.generate.documents import outputs_hash
from rondel.workflows.generate.extract import checked
from rondel.workflows.generate.models import (
    Approval,
    Artifact,
    CycleState,
    IterationState,
    WorkflowPhase,
    WorkflowStage,
    WorkflowStatus,
)
from rondel.workflows.generate.prompting import profile_of, receive, render
from rondel.workflows.generate.read import Answer, State, Track, unusable
from rondel.workflows.generate.verdict import parse_verdict

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
ERROR_MAX = 2_000


def apply(state: State, action: Action, outcome: Outcome) -> Sequence[Change]:
    """The files to leave; none when the state has moved on without this action."""
    at = outcome.finished_at or NEVER
    for track in state.due:
        if isinstance(action, Ask) and action.path == track.gate_part:
            return [_gate_answer(track, outcome, at)]
        if isinstance(action, Ask) and action.path == track.file:
            return _answered(state, track, outcome, at)
        if isinstance(action, Derive) and action.path in (track.paths.standards, track.file, track.settled):
            try:
                return _derived(state, track, action, at)
            except RondelError as e:
                return [_failed(state, track, str(e), at)]
    return ()


def check(state: State, ask: Ask, said: str) -> str | None:
    """What is wrong with an answer."""
    for track in state.due:
        if ask.path == track.gate_part:
            return None if _gate_word(said) else 'give {"answer": "approve"} or {"answer": "reject"} as JSON'
        if ask.path == track.file:
            wrong = unusable(track.cycle.phase, said)
            return wrong or receive(state, track, said).error or None
    return None


def edit(state: State, track: Track, change: documents.Change, at: datetime) -> Edit:
    """A change of one cycle in the session's own format."""
    if state.flat:
        return v2.edit(state.files, track.cycle.position, change, at)
    return documents.edit_cycle(track.index, track.cycle.position, change, at)


# -- what code works out ------------------------------------------------------------------------


def _derived(state: State, track: Track, action: Derive, at: datetime) -> list[Change]:
    if action.path == track.paths.standards:
        return _opened(state, track, at)
    if action.path == track.settled:
        return _settled(state, track, at)
    if track.gives_plan:
        return [Write(track.file, state.files.data(track.paths.plan) or b"")]
    return _asking(state, track)


def _asking(state: State, track: Track) -> list[Change]:
    """The prompt of the phase; of a review, also which code is in it."""
    asked = text(track.prompt, render(state, track).text)
    if track.cycle.phase is not WorkflowPhase.REVIEW:
        return [asked]
    shown = json.dumps(track.code, indent=2, ensure_ascii=False)
    return [text(track.paths.shown(track.cycle.current_iteration), shown), asked]


def _opened(state: State, track: Track, at: datetime) -> list[Change]:
    """Begin a cycle: its standards, its first iteration at PLAN[PROMPT].

    Standards that somebody else has put there are the ones that count.
    """
    context = dict(state.session.context) if state.session else {}
    path = track.paths.standards
    theirs = state.files.data(path) if is_theirs(state.files, path) else None
    bundle = text(path, profile_of(state).standards(track.cycle.scope, context)) if theirs is None else None

    def change(cycle: CycleState) -> None:
        cycle.standards_hash = digest(bundle.data if bundle else theirs or b"")
        cycle.phase, cycle.stage = WorkflowPhase.PLAN, WorkflowStage.PROMPT
        cycle.current_iteration = 1
        cycle.iterations = [IterationState(number=1, started_at=stamp(at))]
        cycle.started_at = cycle.started_at or stamp(at)

    return [*([bundle] if bundle else []), edit(state, track, change, at)]


# -- what an agent said -------------------------------------------------------------------------


def _answered(state: State, track: Track, outcome: Outcome, at: datetime) -> list[Change]:
    if outcome.ok:
        return [text(track.file, outcome.text)]
    words = f"{track.cycle.phase.name}: {outcome.error or outcome.ended}"
    kept: list[Change] = [_kept(track, outcome.text)] if outcome.text.strip() else []
    return [*kept, _failed(state, track, words, at)]


def _kept(track: Track, said: str) -> Write:
    """An answer that cannot be used, kept under a rejected name."""
    return text(layout.rejected(track.file, track.attempt), said)


def _gate_word(said: str) -> dict[str, str] | None:
    found = fenced_json(said).value
    if not isinstance(found, dict) or found.get("answer") not in ("approve", "reject"):
        return None
    comment = found.get("comment")
    return {"answer": found["answer"], "comment": comment if isinstance(comment, str) else ""}


def _gate_answer(track: Track, outcome: Outcome, at: datetime) -> Change:
    """What an agent says of a file; whatever is not clearly an answer leaves it to a person."""
    word = _gate_word(outcome.text) if outcome.ok else None
    if word is not None and word["answer"] == "reject" and not word["comment"].strip():
        word = None
    body: dict[str, str] = word or {"answer": "none", "comment": outcome.error or "no usable answer"}
    body |= {"by": f"gate: {outcome.agent or 'agent'}", "at": stamp(at)}
    return text(track.gate_part, json.dumps(body, indent=2, ensure_ascii=False))


def _failed(state: State, track: Track, words: str, at: datetime) -> Edit:
    """The cycle ends with an error; a retry goes on from there."""

    def change(cycle: CycleState) -> None:
        cycle.status = WorkflowStatus.ERROR
        cycle.last_error = cut(words, ERROR_MAX)

    return edit(state, track, change, at)


# -- what was said of a file --------------------------------------------------------------------


def _settled(state: State, track: Track, at: datetime) -> list[Change]:
    said = track.answer
    if said is not None and not said.approved:
        return _rejected(state, track, said, at)
    if said is None or track.content is None:
        return []
    if track.is_outdated:
        return _outdated(state, track, at)
    if track.cycle.stage is WorkflowStage.PROMPT:
        return [edit(state, track, lambda cycle: _pass_prompt(cycle, track, said, at), at)]
    if track.cycle.phase is WorkflowPhase.PLAN:
        plan = Write(track.paths.plan, (track.content or "").encode(), view=True)
        return [plan, edit(state, track, lambda cycle: _pass_plan(cycle, track, said, at), at)]
    if track.cycle.phase is WorkflowPhase.REVIEW:
        return _reviewed(state, track, said, at)
    return _generated(state, track, said, at)


def _outdated(state: State, track: Track, at: datetime) -> list[Change]:
    """A verdict on other code than what is there is none: the reviewer is asked again, about this code.

    Which code that is comes last: a death in between leaves a review that is still outdated.
    """

    def change(cycle: CycleState) -> None:
        cycle.retry_count = track.attempt

    names = (layout.rejected(track.file, number) for number in itertools.count(track.attempt))
    aside = Aside(track.file, next(name for name in names if not state.files.exists(name)))
    return [aside, edit(state, track, change, at), *reversed(_asking(state, track))]


def _rejected(state: State, track: Track, said: Answer, at: datetime) -> list[Change]:
    """The file is put aside. With words about it, it is made anew with them; without, the cycle halts."""
    cycle = track.cycle
    changes: list[Change] = [Aside(track.file, layout.rejected(track.file, track.attempt))]
    goes_on = bool(said.comment.strip())
    if goes_on and cycle.stage is WorkflowStage.RESPONSE:
        changes.insert(0, _with_feedback(track, said.comment))

    def change(cycle: CycleState) -> None:
        cycle.retry_count = track.attempt
        cycle.approval_feedback = said.comment or None
        if not goes_on:
            cycle.status = WorkflowStatus.ERROR
            cycle.last_error = f"{cycle.phase.name}[{cycle.stage.name}] was rejected by {said.by}"

    return [*changes, edit(state, track, change, at)]


def _with_feedback(track: Track, comment: str) -> Change:
    """The prompt, with what was wrong with the answer at its end: what is asked is what the file says."""
    heading = f"## Feedback on answer {track.attempt}"
    asked = track.files.text(track.prompt) or ""
    if heading in asked:
        return text(track.prompt, asked)
    words = (
        f"{heading}\n\nYour answer was rejected. Answer again, in full. What must be different:\n\n{comment}"
    )
    return text(track.prompt, f"{asked.rstrip()}\n\n{words}\n")


def _approve(cycle: CycleState, track: Track, said: Answer, at: datetime) -> str:
    """Note who let the file pass, with its digest as it is now."""
    found = track.files.digest(track.file) or ""
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


def _go_to(cycle: CycleState, phase: WorkflowPhase, stage: WorkflowStage) -> None:
    cycle.phase, cycle.stage = phase, stage


def _pass_prompt(cycle: CycleState, track: Track, said: Answer, at: datetime) -> None:
    found = _approve(cycle, track, said, at)
    cycle.prompt_hashes[f"iteration-{cycle.current_iteration}/{cycle.phase}"] = found
    cycle.stage = WorkflowStage.RESPONSE


def _pass_plan(cycle: CycleState, track: Track, said: Answer, at: datetime) -> None:
    cycle.plan_hash = _approve(cycle, track, said, at)
    cycle.plan_approved = True
    _go_to(cycle, WorkflowPhase.GENERATE, WorkflowStage.PROMPT)


def _generated(state: State, track: Track, said: Answer, at: datetime) -> list[Change]:
    """The code of a response, under `code/` and nowhere else; then the review of it is due."""
    made = receive(state, track, track.content or "")
    files = checked(made.files)
    if made.error or files.error:
        return [_failed(state, track, f"{track.file}: {made.error or files.error}", at)]
    number, phase = track.cycle.current_iteration, track.cycle.phase
    folder = track.paths.code(number)
    writes = [Write(f"{folder}/{file.path}", file.text.encode()) for file in files.files]
    artifacts = [
        Artifact(
            path=w.path,
            phase=phase.value,
            iteration=number,
            sha256=digest(w.data),
            created_at=_time(state, at),
        )
        for w in writes
    ]

    def change(cycle: CycleState) -> None:
        _approve(cycle, track, said, at)
        fresh = {a.path for a in artifacts}
        cycle.artifacts = [a for a in cycle.artifacts if a.path not in fresh] + artifacts
        _go_to(cycle, WorkflowPhase.REVIEW, WorkflowStage.PROMPT)

    return [*writes, edit(state, track, change, at)]


def _time(state: State, at: datetime) -> str:
    return v2.stamp(at) if state.flat else stamp(at)


def _reviewed(state: State, track: Track, said: Answer, at: datetime) -> list[Change]:
    """PASS completes the cycle in one step; FAIL opens the next iteration at REVISE, while there is one."""
    verdict = parse_verdict(track.content or "")
    if verdict.error:
        return [_failed(state, track, f"{track.file}: {verdict.error}", at)]
    left = track.iterations_left

    def change(cycle: CycleState) -> None:
        cycle.review_hash = _approve(cycle, track, said, at)
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

    signed = _signed(track, at) if verdict.passed else []
    return [*signed, edit(state, track, change, at)]


def _signed(track: Track, at: datetime) -> list[Change]:
    """Rondel's mark for a cycle that it completes; none in a session without an id."""
    if track.mark is None:
        return []
    body = json.dumps({"mark": track.mark, "at": stamp(at)}, indent=2)
    return [text(track.paths.signed(track.cycle.current_iteration), body)]


def open_iteration(cycle: CycleState, phase: WorkflowPhase, at: datetime) -> None:
    """The next iteration of a cycle, at the prompt of a phase. What was before stays as it is."""
    cycle.current_iteration += 1
    cycle.iterations.append(
        IterationState(number=cycle.current_iteration, first_phase=phase, started_at=stamp(at))
    )
    cycle.status = WorkflowStatus.IN_PROGRESS
    cycle.retry_count = 0
    _go_to(cycle, phase, WorkflowStage.PROMPT)
