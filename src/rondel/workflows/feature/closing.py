"""How an iteration ends, of a document or of code: with a verdict, and an entry in the history."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import takewhile

from rondel.model.actions import Derive
from rondel.model.changes import Aside, Change, Document, Edit, Write, json_file, text
from rondel.model.marks import signature
from rondel.model.names import free_name, numbered
from rondel.model.outcomes import Ended, Outcome
from rondel.model.times import stamp
from rondel.model.workflow import Step
from rondel.workflows.feature import layout
from rondel.workflows.feature.phases import FINISH, IMPLEMENT
from rondel.workflows.feature.prompt import fill
from rondel.workflows.feature.read import State
from rondel.workflows.feature.review import Review, parse_review, verdict_in
from rondel.workflows.feature.stamps import feature_ended, phase_closed
from rondel.workflows.feature.work import Round, Work, read_work

Derivation = Callable[[State, Work, datetime], Sequence[Change]]


def derived(action: Derive, write: Derivation) -> Step[State]:
    """A step that asks nobody: its files follow from the phase under way."""

    def leave(state: State, outcome: Outcome) -> Sequence[Change]:
        if state.work is None or outcome.finished_at is None:
            return ()
        return write(state, state.work, outcome.finished_at)

    return Step(action, leave)


def current(state: State, work: Work) -> Work:
    """The same pass as it is now; as it was, where another one is under way meanwhile."""
    now = state.work
    return now if now is not None and now.folder == work.folder else work


def closing(state: State, work: Work, settled: Round) -> Step[State] | None:
    """What is left to do once an iteration was reviewed; None when another one is due."""
    number = settled.number
    if not settled.entered:
        action = Derive(
            layout.entry(work.folder, number),
            inputs=(layout.review(work.folder, number),),
            outputs=(layout.HISTORY,),
            title=f"{work.phase}: history",
        )
        return derived(action, _entered)
    verdict = settled.verdict
    as_reviewed = verdict is not None and (
        work.artifact is None or work.published is None or work.published == verdict.of
    )
    approved = verdict is not None and verdict.review.approved and as_reviewed
    if not approved and number < state.limit:
        return None
    if work.artifact and work.published is None:
        action = Derive(work.artifact, title=f"{work.phase}: publish draft {number}")
        return derived(action, partial(published, number))
    return derived(Derive(layout.complete(work.folder), title=f"{work.phase}: complete"), _completed)


def _entered(state: State, work: Work, _at: datetime) -> Sequence[Change]:
    """One more entry in the history."""
    settled = work.settled
    if settled is None or settled.verdict is None:
        return ()
    verdict = settled.verdict
    said = state.files.text(layout.changes(work.folder, settled.number))
    made = entry(settled.number, verdict.at, verdict.review, said or "Nothing is known about them.")
    history = added(state.files.text(layout.HISTORY), work.phase, made)
    return (
        text(layout.HISTORY, history, view=False),
        text(layout.entry(work.folder, settled.number), made),
    )


def published(number: int, _state: State, work: Work, _at: datetime) -> Sequence[Change]:
    """The artifact is a copy of a draft, unless a person changed it this very moment."""
    path = layout.draft(work.folder, number)
    data = work.files.data(path) or b""
    is_theirs = work.digest_now not in (None, work.published)
    return (Write(path if is_theirs else work.artifact or "", data),)


def _completed(state: State, work: Work, at: datetime) -> Sequence[Change]:
    """The phase is completed: the message for a person, then the stamp, which is the commit."""
    settled = work.settled
    if settled is None or settled.verdict is None:
        return ()
    review, rounds = settled.verdict.review, min(settled.number, state.limit)
    edited = work.digest_now is not None and work.digest_now != settled.verdict.of
    concerns = [] if review.approved else [str(issue) for issue in review.issues]
    if edited:
        concerns.append(f"[note] {work.artifact} was edited after the last review")
    approved = review.approved and not edited
    message = complete_message(rounds, concerns)

    def change(meta: Document) -> Document:
        return phase_closed(meta, work.phase, at, rounds=rounds, verified=approved, concerns=concerns)

    return (
        text(layout.complete(work.folder), message),
        *signed(state, work.phase, work.folder, at),
        Edit(layout.META, change),
    )


def signed(state: State, phase: str, folder: str, at: datetime) -> Sequence[Change]:
    """Rondel's mark for a phase that it completed; none in a session without an id."""
    found = signature(state.files, "feature", phase, folder)
    return (json_file(layout.signed(folder), {"mark": found, "at": stamp(at)}),) if found else ()


def complete_message(rounds: int, concerns: Sequence[str]) -> str:
    """What a person is told when a phase ends."""
    if concerns:
        return f"Phase complete. Reviewer concerns: {'; '.join(concerns)}"
    return f"Phase complete ({rounds} iterations)"


# -- verdicts -------------------------------------------------------------------------------


def check_verdict(_state: State, answer: str) -> str | None:
    """What is wrong with a reviewer's answer."""
    return parse_review(answer).error or None


def reviewed(outcome: Outcome) -> Review | None:
    """The verdict of a reviewer who answered. What cannot be read, even after one repair, is no approval."""
    if outcome.ended not in (Ended.DONE, Ended.REJECTED):
        return None
    return verdict_in(outcome.text, outcome.error)


def verdict_file(work: Work, number: int, review: Review, at: datetime, *, agent: str) -> Write:
    """A verdict on an iteration, with what it is a verdict on."""
    drafted = work.files.digest(layout.draft(work.folder, number))
    subject = work.tip if work.phase == IMPLEMENT else drafted
    body = {**review.to_json(), "artifact": subject, "at": stamp(at), "agent": agent}
    return json_file(layout.review(work.folder, number), body)


def feedback(template: str, state: State, work: Work) -> str:
    """What the last review said, for the one who revises; nothing before there is one."""
    settled = work.settled
    if settled is None or settled.verdict is None:
        return ""
    review = settled.verdict.review
    lines = [review.summary, *(f"- {issue}" for issue in review.issues)]
    said = "\n".join(line for line in lines if line) or "- nothing in particular"
    return fill(template, number=str(work.number), limit=str(state.limit), feedback=said) + "\n\n"


# -- the history ------------------------------------------------------------------------------


_PHASE = re.compile(r"(?m)^## Phase: ")
_HEADING = re.compile(r"(?m)^(#{1,6}\s|---\s*$)")


def entry(number: int, at: str, review: Review, changes: str) -> str:
    """What iteration `number` came to. Always the same for the same iteration."""
    issues = "\n".join(f"- {_line(str(issue))}" for issue in review.issues) or "- none"
    return (
        f"### Iteration {number} - {at}\n\n"
        f"**Reviewer Feedback:**\n{_body(review.summary) or _verdict(review)}\n\n"
        f"**Issues:**\n{issues}\n\n"
        f"**Changes Made:**\n{_body(changes)}\n\n---\n"
    )


def added(history: str | None, phase: str, text: str) -> str:
    """The history with this entry at its end. The last one of its phase is not added again."""
    before = history or ""
    heading = f"## Phase: {phase}"
    at = max((m.start() for m in _PHASE.finditer(before)), default=None)
    section = before[at:] if at is not None else ""
    same_phase = section.startswith(f"{heading}\n")
    if same_phase and text in section:
        return before
    if before and not before.endswith("\n"):
        before += "\n"
    gap = "\n" if before else ""
    return before + gap + ("" if same_phase else f"{heading}\n\n") + text


def _verdict(review: Review) -> str:
    return "Approved." if review.approved else "Not approved."


def _body(text: str) -> str:
    """Text of an agent that stays text: no line of it can pass for a heading or a rule."""
    return _HEADING.sub(lambda m: "\\" + m.group(0), text.strip())


def _line(text: str) -> str:
    return " ".join(text.split())


# -- the end of a feature ---------------------------------------------------------------------


_OPEN_BOX = re.compile(r"(?m)^[ \t]*[-*+][ \t]+\[ \][ \t]+(.+)$")


def unfinished(state: State) -> list[str]:
    """The tasks that are not done: those nobody carried out, or whose box is not ticked."""
    document = state.files.text(layout.TASKS)
    if document is None:
        return []
    work = read_work(state.files, IMPLEMENT)
    if work.base is not None:
        return [f"{task.key}: {task.title}" for task in work.open_tasks]
    if IMPLEMENT in state.completed:
        return [box.group(1).strip() for box in _OPEN_BOX.finditer(document)]
    return [f"{task.key}: {task.title}" for task in work.tasks]


def ending(
    state: State, status: str, at: datetime, *, worktree_gone: bool, reason: str = ""
) -> Sequence[Change]:
    """The history is put away, where it is kept; then the status is set, which is the commit."""

    def change(meta: Document) -> Document:
        after = feature_ended(meta, status, at, reason)
        return {**after, "worktree": None} if worktree_gone else after

    changes: list[Change] = []
    if state.files.exists(layout.HISTORY):
        changes.append(Aside(layout.HISTORY, free_name(_kept(), state.files.exists)))
    folder = layout.folder(FINISH, 1)
    return (*changes, *signed(state, FINISH, folder, at), Edit(layout.META, change))


def _kept() -> Iterator[str]:
    """The names of histories that were put away, in order."""
    return numbered(layout.HISTORY_KEPT.removesuffix(".md"), ".md")


def kept_history(state: State) -> str | None:
    """The history as it stands, or as it was put away at the end."""
    parts = list(takewhile(lambda text: text is not None, map(state.files.text, _kept())))
    now = state.files.text(layout.HISTORY)
    return "\n".join(text for text in (*parts, now) if text is not None) or None
