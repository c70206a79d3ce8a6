"""Which files an action of a review leaves, in order; the last one is the commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rondel.model.actions import Action
from rondel.model.changes import Aside, Change, Document, Edit, Write, text
from rondel.model.digests import digest
from rondel.model.outcomes import Ended, Outcome
from rondel.model.times import stamp
from rondel.model.written import is_theirs
from rondel.workflows.review import layout, settle
from rondel.workflows.review.aggregate import aggregate, aggregation_document
from rondel.workflows.review.asking import what_is
from rondel.workflows.review.change import Change as TheChange
from rondel.workflows.review.findings import one_line, parse_reviewer_json
from rondel.workflows.review.plan import debaters, doubted
from rondel.workflows.review.probes import given_change
from rondel.workflows.review.read import ReviewState, phase_due
from rondel.workflows.review.report import (
    guidance_by_code,
    prose_by_code,
    render_context,
    render_discourse,
    render_final,
)
from rondel.workflows.review.responses import (
    Refutation,
    Ruling,
    parse_refutation,
    parse_responses,
    responses_document,
)
from rondel.workflows.review.result import meta_document
from rondel.workflows.review.signing import signed
from rondel.workflows.review.standards import Source, render_standards
from rondel.workflows.review.target import Pins

REASON_MAX = 500


def apply(state: ReviewState, action: Action, outcome: Outcome) -> Sequence[Change]:
    """The files to leave. A question that nobody could answer is recorded, and the review goes on without."""
    if action.path == layout.STATE:
        return _note(state, outcome)
    if action.path == state.at.discourse:
        return [text(action.path, _discourse(state))]
    if action.path == state.at.final:
        return _final(state, outcome)
    kind, name = what_is(state, action.path)
    return _BY_KIND[kind](state, name, outcome)


def _json(path: str, document: Mapping[str, object]) -> Write:
    return text(path, json.dumps(document, indent=2, ensure_ascii=False, default=str))


def _text(path: str, content: str) -> Write:
    """A text of an agent; what cannot be UTF-8 is replaced."""
    return text(path, content.encode("utf-8", "replace").decode())


def _why(outcome: Outcome) -> str:
    words = {
        Ended.TIMED_OUT: "timed out",
        Ended.REJECTED: "the answer cannot be used",
        Ended.FAILED: "failed",
    }.get(outcome.ended, outcome.ended.value)
    return f"{words}: {one_line(outcome.error, REASON_MAX) or 'no reason given'}"


# -- state.json --------------------------------------------------------------------------


def _note(state: ReviewState, outcome: Outcome) -> Sequence[Change]:
    """`state.json` says the phase now due. A damaged one is put aside first."""
    phase, number = phase_due(state), state.at.number
    now = stamp(outcome.finished_at) if outcome.finished_at else ""
    branch = state.branch or (state.pins.branch if state.pins else "")

    def change(document: Document) -> Document:
        noted: Document = {
            "session_id": document.get("session_id") or state.ref.id,
            "status": document.get("status") or "active",
            "current_phase": phase.value,
            "phase_number": phase.number,
            "current_round": number,
            "started_at": document.get("started_at") or state.request.opened_at or now,
            "updated_at": now,
        }
        if branch:
            noted["branch"] = branch
        return {**document, **noted}

    damaged = state.document is None and state.files.exists(layout.STATE)
    taken = state.files.names(".rondel/aside")
    spot = next(n for n in range(1, len(taken) + 2) if f"state.json.damaged-{n}" not in taken)
    first = [Aside(layout.STATE, f".rondel/aside/state.json.damaged-{spot}")] if damaged else []
    return [*first, Edit(layout.STATE, change)]


# -- phases 1 to 3 -----------------------------------------------------------------------


def _standards(state: ReviewState, _: str, outcome: Outcome) -> Sequence[Change]:
    if not outcome.ok or not isinstance(outcome.data, tuple):
        return ()
    sources = [s for s in outcome.data if isinstance(s, Source)]
    new = render_standards(tuple(sources))
    listed = [{"path": s.path, "scope": s.scope, "digest": digest(s.text)} for s in sources]
    return _root_file(state, layout.STANDARDS, new, "standards.json", {"sources": listed})


def _target(state: ReviewState, _: str, outcome: Outcome) -> Sequence[Change]:
    if not outcome.ok or not isinstance(outcome.data, Pins):
        return ()
    pins = outcome.data
    given = [_text(state.at.part("given.diff"), pins.given)] if pins.given else []
    return [*given, _json(state.at.part("target.json"), pins.document())]


def _change(state: ReviewState, _: str, outcome: Outcome) -> Sequence[Change]:
    if not outcome.ok:
        return ()
    found = outcome.data
    if not isinstance(found, TheChange):
        found = given_change(state.part_text("given.diff") or "")
    diff = Write(state.at.part("change.diff"), found.diff.encode("utf-8", "replace"))
    return [diff, _json(state.at.part("change.json"), found.document())]


def _since(state: ReviewState, _: str, outcome: Outcome) -> Sequence[Change]:
    if not outcome.ok or not isinstance(outcome.data, dict):
        return ()
    return [_json(state.at.part("since.json"), outcome.data)]


def _guidance(state: ReviewState, _: str, outcome: Outcome) -> Sequence[Change]:
    return _lead(state, "guidance", outcome, guidance_by_code(state.change))


def _lead(state: ReviewState, what: str, outcome: Outcome, instead: str) -> Sequence[Change]:
    """The lead's words; where the lead is code, or could not answer, the words that code finds."""
    path = state.at.part(f"{what}.md")
    if outcome.ok:
        return [_text(path, instead if state.lead_is_code else outcome.text)]
    return [_json(state.at.part(f"{what}.json"), {"missing": _why(outcome)}), _text(path, instead)]


def _context(state: ReviewState, _: str, __: Outcome) -> Sequence[Change]:
    guidance = state.part_text("guidance.md") or ""
    new = render_context(settle.about(state), state.carried, guidance, state.has_requirements)
    return _root_file(state, layout.CONTEXT, new, "context.json", {})


def _root_file(
    state: ReviewState, name: str, new: str, part: str, more: Mapping[str, object]
) -> Sequence[Change]:
    """A file at the root, made anew for this round; the old one is kept among the parts of its round.

    One that a person wrote or edited is theirs: where its inputs are unchanged it stays as it is,
    and where they changed it stays too and the new one is put beside it, among the parts. What
    another tool left with its rounds is of those rounds, and is made anew.
    """
    fresh = text(name, new)
    stamp_part = _json(state.at.part(part), {"generated": digest(fresh.data), **more})
    old = state.files.data(name)
    if old is None or old == fresh.data:
        return [fresh, stamp_part]
    number, made = _last_stamp(state, part)
    if made == digest(fresh.data):
        return [stamp_part]
    theirs = made != digest(old) and is_theirs(state.files, name)
    if theirs and (made is not None or state.at.number == 1):
        return [Write(state.at.part(name), fresh.data), stamp_part]
    return [Write(layout.round_files(number).part(name), old), fresh, stamp_part]


def _last_stamp(state: ReviewState, part: str) -> tuple[int, str | None]:
    """The last earlier round that made a file at the root, and the digest of what it made."""
    for number in range(state.at.number - 1, 0, -1):
        found = state.files.json(layout.round_files(number).part(part))
        if isinstance(found, dict) and isinstance(found.get("generated"), str):
            return number, found["generated"]
    return max(0, state.at.number - 1), None


# -- phases 4 to 6 -----------------------------------------------------------------------


def _review(state: ReviewState, name: str, outcome: Outcome) -> Sequence[Change]:
    """An answer, or the record that there is none. Half an answer that can be read is one."""
    usable = outcome.ended is Ended.REJECTED and parse_reviewer_json(outcome.text, name)[0]
    if outcome.ok or usable:
        return [_text(state.at.review(name), outcome.text)]
    at = stamp(outcome.finished_at) if outcome.finished_at else ""
    said = [_text(state.at.part(f"missing/{name}.md"), outcome.text)] if outcome.text.strip() else []
    record = {"reviewer": name, "ended": outcome.ended.value, "reason": _why(outcome), "at": at}
    return [*said, _json(state.at.part(f"missing/{name}.json"), record)]


def _aggregation(state: ReviewState, _: str, __: Outcome) -> Sequence[Change]:
    items = aggregate(state.reviews, state.change)
    return [_json(state.at.part("aggregation.json"), aggregation_document(items))]


def _response(state: ReviewState, name: str, outcome: Outcome) -> Sequence[Change]:
    path = state.at.part(f"discourse/{name}.json")
    responses, wrong = parse_responses(outcome.text, name, (i.id for i in state.items))
    missing = "" if outcome.ok and not wrong else _why(outcome)
    return [_json(path, responses_document(responses, missing))]


def _refute(state: ReviewState, name: str, outcome: Outcome) -> Sequence[Change]:
    path = state.at.part(f"refute/{name}.json")
    if state.refuter_is_code:
        item = next((i for i in state.items if i.id == name), None)
        found = _checked_by_code(verified=item is not None and item.finding.verified)
    else:
        read, wrong = parse_refutation(outcome.text)
        found = (
            Refutation(Ruling.UNCERTAIN, missing=_why(outcome))
            if wrong or not outcome.ok or not read
            else read
        )
    return [_json(path, found.document())]


def _checked_by_code(*, verified: bool) -> Refutation:
    if verified:
        return Refutation(Ruling.STANDS, "the code it quotes is in the change", by="the code")
    return Refutation(Ruling.UNCERTAIN, "the code it quotes is not in the change", by="the code")


def _quotes(state: ReviewState, _: str, outcome: Outcome) -> Sequence[Change]:
    if not outcome.ok or not isinstance(outcome.data, list):
        return ()
    return [_json(state.at.part("quotes.json"), {"found": outcome.data})]


def _moved(state: ReviewState, _: str, outcome: Outcome) -> Sequence[Change]:
    found = outcome.data if outcome.ok and isinstance(outcome.data, dict) else {"moved": False}
    return [_json(state.at.part("moved.json"), found)]


def _discourse(state: ReviewState) -> str:
    notes = []
    checkers = [name for name in state.reviewed if state.is_mechanical(name)]
    if checkers and not state.request.quick:
        notes.append(f"{', '.join(checkers)} are checks: they report and do not argue")
    for name in debaters(state):
        part = state.part(f"discourse/{name}.json")
        if isinstance(part, dict) and part.get("missing"):
            notes.append(f"{name} took no part: {part['missing']}")
    alone = sum(len(item.supporters) == 1 for item in state.items)
    if not state.request.quick and alone > len(doubted(state)):
        notes.append(f"{alone - len(doubted(state))} lesser findings went to no refuter (refuters_max)")
    return render_discourse(settle.about(state), settle.weighed(state), state.responses, notes)


# -- phases 7 and 8 ----------------------------------------------------------------------


def _synthesis(state: ReviewState, _: str, outcome: Outcome) -> Sequence[Change]:
    prose = prose_by_code(settle.result(state), state.attendance, settle.findings(state))
    return _lead(state, "synthesis", outcome, prose)


def _final(state: ReviewState, outcome: Outcome) -> Sequence[Change]:
    """round-meta.json, and last final.md, which marks the round as complete."""
    at, about, found = state.at, settle.about(state), settle.result(state)
    head: Document = {
        "round": at.number,
        "session": state.ref.id,
        "branch": about.pins.branch,
        "target": {"label": about.pins.label, "base": about.pins.base, "head": about.pins.head},
        "quick": about.quick,
        "not_looked_at": [
            {"path": f.path, "status": f.status, "reason": f.kind.value} for f in about.change.unshown
        ],
        "started_at": state.request.opened_at,
        "completed_at": stamp(outcome.finished_at) if outcome.finished_at else "",
    }
    meta = meta_document(found, state.attendance, settle.findings(state), head)
    prose = state.part_text("synthesis.md") or ""
    final = _text(at.final, render_final(about, found, state.attendance, prose))
    result = _json(at.meta, signed(state.files, at, meta, final.data))
    return [replace(result, view=True), final]


_BY_KIND: Mapping[str, Callable[[ReviewState, str, Outcome], Sequence[Change]]] = {
    "standards": _standards,
    "target": _target,
    "change": _change,
    "since": _since,
    "guidance": _guidance,
    "context": _context,
    "review": _review,
    "aggregation": _aggregation,
    "discourse": _response,
    "refute": _refute,
    "quotes": _quotes,
    "moved": _moved,
    "synthesis": _synthesis,
}


def again(state: ReviewState) -> Sequence[Change]:
    """What makes reviewers who did not answer due again, when too few did."""
    if not state.lacks_quorum or state.is_complete:
        return ()
    names = state.files.names(state.at.part("missing"))
    number = 1 + sum(".tried-" in name for name in names)
    return [
        Aside(state.at.part(f"missing/{name}.json"), state.at.part(f"missing/{name}.json.tried-{number}"))
        for name in state.attendance.missing
    ]
