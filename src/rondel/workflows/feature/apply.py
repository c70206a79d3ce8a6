"""Which files an action leaves, in order; the last one is the commit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from rondel.model.actions import Action, Ask, Derive, Probe, Run
from rondel.model.changes import Aside, Change, Document, Edit, Write, text
from rondel.model.marks import signature
from rondel.model.outcomes import Ended, Outcome
from rondel.model.times import stamp
from rondel.workflows.feature import layout, stamps
from rondel.workflows.feature.drafts import Draft, changes_made, parse_draft
from rondel.workflows.feature.history import added, entry
from rondel.workflows.feature.meta import records, word
from rondel.workflows.feature.phases import IMPLEMENT, PREVIOUS, VERIFY
from rondel.workflows.feature.plan import how_taken, previous_required
from rondel.workflows.feature.read import State
from rondel.workflows.feature.review import Issue, Review, parse_review, unreadable, without_asking
from rondel.workflows.feature.work import Take, Work

OUTPUT_MAX = 20_000


def apply(state: State, action: Action, outcome: Outcome) -> Sequence[Change]:
    """The files to leave; none where the phase cannot go on without the action."""
    work = state.work
    if work is None or outcome.finished_at is None:
        return ()
    match action:
        case Derive():
            return _derived(state, work, action, outcome.finished_at)
        case Ask(path) if path == layout.review(work.folder, work.number):
            return _reviewed(work, outcome)
        case Run():
            return _checked(action, outcome)
        case Probe(path) if outcome.ok:
            return (_json(path, outcome.data),)
        case Ask() if outcome.ok:
            return _edited(action, outcome) if work.phase == IMPLEMENT else _drafted(work, outcome)
    return ()


def _json(path: str, value: object) -> Write:
    return text(path, json.dumps(value, indent=2, ensure_ascii=False))


# -- what follows from the state ------------------------------------------------------------


def _derived(state: State, work: Work, action: Derive, at: datetime) -> Sequence[Change]:
    number = work.number
    settled = work.settled
    if action.path == layout.draft(work.folder, number):
        return _adopted(work)
    if action.path == layout.review(work.folder, number):
        return _refused(state, work, at)
    if action.path == work.artifact:
        return _published(work)
    if settled and action.path == layout.entry(work.folder, settled.number):
        return _entered(state, work)
    if action.path == layout.complete(work.folder):
        return _completed(state, work, at)
    if work.take and action.path == layout.opened(work.phase, work.take.number):
        return _opened(state, work, work.take, at)
    return _taken(state, work, action.path, at)


def _taken(state: State, work: Work, path: str, at: datetime) -> Sequence[Change]:
    """The phase is under way: how, for whom, and from what.

    A document that somebody else wrote is nothing to begin from: it is the first draft.
    """
    phase, how = work.phase, how_taken(state, work)
    number = work.take.number + 1 if work.take else 1
    goes_on = how in ("continue", "review") and work.take is not None and phase in state.partial
    take = Take(
        number,
        state.request.number if state.request else 0,
        how,
        work.take.passage if goes_on and work.take else number,
        work.take.base if goes_on and work.take else None if work.is_foreign else _digest(work),
    )
    asides: list[Change] = []
    if how == "review":
        take = replace(take, adopt=work.number if goes_on else 1)
    if how == "fresh" and work.artifact and _digest(work):
        asides.append(Aside(work.artifact, layout.before(phase, number)))
        take = replace(take, base=None)
    body = {
        "request": take.request,
        "how": take.how,
        "pass": take.passage,
        "base": take.base,
        "adopt": take.adopt,
        "branch": f"{state.branch}-{number}" if how == "fresh" and phase == IMPLEMENT else state.branch,
        "at": stamp(at),
        "before": records(state.meta).get(phase),
    }
    return (*asides, _json(path, body))


def _opened(state: State, work: Work, take: Take, at: datetime) -> Sequence[Change]:
    """The document says that the phase is under way, and to which branch its code goes."""
    found = state.files.json(layout.take(work.phase, take.number))
    branch = word(found, "branch") if isinstance(found, Mapping) and work.phase == IMPLEMENT else ""

    def change(meta: Document) -> Document:
        after = stamps.opened(meta, work.phase, at)
        return {**after, "branch": branch} if branch else after

    return (Edit(layout.META, change), _json(layout.opened(work.phase, take.number), {"at": stamp(at)}))


def _digest(work: Work) -> str | None:
    """The digest of the artifact now, not when the state was read."""
    return work.files.digest(work.artifact) if work.artifact else None


def _adopted(work: Work) -> Sequence[Change]:
    """What a person wrote is this iteration's draft; an agent's draft of it is kept."""
    number, theirs = work.number, work.files.data(work.artifact or "")
    path = layout.draft(work.folder, number)
    if theirs is None:
        return ()
    before = _text(work, number - 1)
    words = changes_made(before, Draft(theirs.decode(errors="replace")))
    return (
        Aside(path, layout.superseded(work.folder, number)),
        text(layout.changes(work.folder, number), f"By a person. {words}"),
        Write(path, theirs),
    )


def _published(work: Work) -> Sequence[Change]:
    """The artifact is a copy of the latest draft, unless a person changed it this very moment."""
    settled = work.settled
    number = work.number
    if work.files.digest(layout.draft(work.folder, number)) is None and settled:
        number = settled.number
    path = layout.draft(work.folder, number)
    data = work.files.data(path) or b""
    now = _digest(work)
    if now not in (None, work.published):
        return (Write(path, data),)
    return (Write(work.artifact or "", data),)


def _refused(state: State, work: Work, at: datetime) -> Sequence[Change]:
    """The verdict on what no reviewer need look at."""
    previous = PREVIOUS.get(work.phase)
    review = without_asking(
        state.files.text(previous) if previous else None,
        _text(work, work.number),
        previous_required=previous_required(state, work.phase),
    )
    return () if review is None else (_verdict(work, review, at, agent=""),)


def _entered(state: State, work: Work) -> Sequence[Change]:
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


def _completed(state: State, work: Work, at: datetime) -> Sequence[Change]:
    """The phase is completed: the message for a person, then the stamp, which is the commit."""
    settled = work.settled
    if settled is None or settled.verdict is None:
        return ()
    review, rounds = settled.verdict.review, min(settled.number, state.limit)
    now = _digest(work)
    edited = now is not None and now != settled.verdict.of
    concerns = [] if review.approved else [str(issue) for issue in review.issues]
    if edited:
        concerns.append(f"[note] {work.artifact} was edited after the last review")
    approved = review.approved and not edited
    message = complete_message(rounds, concerns)

    def change(meta: Document) -> Document:
        return stamps.closed(meta, work.phase, at, rounds=rounds, verified=approved, concerns=concerns)

    return (
        text(layout.complete(work.folder), message),
        *signed(state, work.phase, work.folder, at),
        Edit(layout.META, change),
    )


def signed(state: State, phase: str, folder: str, at: datetime) -> Sequence[Change]:
    """Rondel's mark for a phase that it completed; none in a session without an id."""
    found = signature(state.files, "feature", phase, folder)
    return (_json(layout.signed(folder), {"mark": found, "at": stamp(at)}),) if found else ()


def complete_message(rounds: int, concerns: Sequence[str]) -> str:
    """What a person is told when a phase ends."""
    if concerns:
        return f"Phase complete. Reviewer concerns: {'; '.join(concerns)}"
    return f"Phase complete ({rounds} iterations)"


# -- what agents and commands answered ------------------------------------------------------


def _drafted(work: Work, outcome: Outcome) -> Sequence[Change]:
    """A draft: what its author says of it, then the document itself."""
    draft = parse_draft(outcome.text)
    before = _text(work, work.number - 1)
    if before is None and work.artifact:
        before = work.files.text(work.artifact)
    return (
        text(layout.changes(work.folder, work.number), changes_made(before, draft)),
        text(layout.draft(work.folder, work.number), draft.document),
    )


def _edited(action: Ask, outcome: Outcome) -> Sequence[Change]:
    """An edit: its commit, what it touched, and what its author says of it."""
    body = {
        "commit": outcome.commit,
        "changed": list(outcome.changed),
        "title": action.title,
        "summary": outcome.text.strip()[:OUTPUT_MAX],
        "agent": outcome.agent,
        "at": stamp(outcome.finished_at) if outcome.finished_at else None,
    }
    return (_json(action.path, body),)


def _checked(action: Run, outcome: Outcome) -> Sequence[Change]:
    """What the project's tests said; that they fail is a result, not a reason to stop."""
    if outcome.ended not in (Ended.DONE, Ended.FAILED, Ended.TIMED_OUT):
        return ()
    body = {
        "command": action.command,
        "passed": outcome.ok,
        "exit_code": outcome.exit_code,
        "output": (outcome.text + (f"\n{outcome.error}" if outcome.error else ""))[-OUTPUT_MAX:],
    }
    return (_json(action.path, body),)


def _reviewed(work: Work, outcome: Outcome) -> Sequence[Change]:
    """A verdict. An answer that could not be read, even after one repair, is no approval.

    One about a text that was rewritten meanwhile is none about what is there: it is asked for again.
    """
    if outcome.finished_at is None or outcome.ended not in (Ended.DONE, Ended.REJECTED):
        return ()
    draft = layout.draft(work.folder, work.number)
    if outcome.inputs.get(draft) not in (None, work.files.digest(draft)):
        return ()
    parsed = parse_review(outcome.text)
    review = parsed.review or unreadable(parsed.error or outcome.error)
    if work.phase == VERIFY and checks_failed(work):
        failing = Issue("blocker", "the project's tests fail", None)
        review = Review(approved=False, issues=(*review.issues, failing), summary=review.summary)
    verdict = _verdict(work, review, outcome.finished_at, agent=outcome.agent)
    if work.phase != IMPLEMENT:
        return (verdict,)
    return (text(layout.changes(work.folder, work.number), _carried_out(work)), verdict)


def checks_failed(work: Work) -> bool:
    """Whether the project's tests were run before verification and did not pass."""
    value = work.files.json(layout.checks(work.folder))
    return isinstance(value, Mapping) and value.get("passed") is not True


def _carried_out(work: Work) -> str:
    """What the edits of an iteration were, for the history."""
    edits = work.edits[: len(work.tasks)] if work.number == 1 else work.edits[-1:]
    lines = []
    for edit in edits:
        said = str(edit.get("summary") or "").strip().splitlines()
        commit = str(edit.get("commit") or "no change")[:12]
        lines.append(f"- {edit.get('title')} ({commit}){': ' + said[0] if said else ''}")
    return "\n".join(lines) or "Nothing."


def _verdict(work: Work, review: Review, at: datetime, *, agent: str) -> Write:
    reviewed = (
        work.tip if work.phase == IMPLEMENT else work.files.digest(layout.draft(work.folder, work.number))
    )
    body = {**review.to_json(), "artifact": reviewed, "at": stamp(at), "agent": agent}
    return _json(layout.review(work.folder, work.number), body)


def _text(work: Work, number: int) -> str | None:
    return work.files.text(layout.draft(work.folder, number)) if number > 0 else None
