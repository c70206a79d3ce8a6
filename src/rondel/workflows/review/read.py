"""What the files of a review show. Total: whatever is missing or wrong has a meaning, never an exception.

The files are the truth about what exists; `state.json` is a note of where the work is, and
wherever the two differ the files are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from rondel.model.changes import Document
from rondel.model.jsons import items
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef
from rondel.workflows.review import layout
from rondel.workflows.review.aggregate import Item, fingerprint, items_of
from rondel.workflows.review.change import Change, change_of
from rondel.workflows.review.dialects import parse_review
from rondel.workflows.review.findings import Category
from rondel.workflows.review.layout import (
    Phase,
    Resolution,
    Round,
    RoundFiles,
    folders_in,
    resolve,
    round_files,
    round_in,
)
from rondel.workflows.review.request import LEAD, REFUTER, Request, request_for, with_settings
from rondel.workflows.review.responses import (
    CarriedAnswer,
    Refutation,
    Response,
    parse_answers,
    refutation_of,
    responses_of,
)
from rondel.workflows.review.result import (
    Attendance,
    Carried,
    Entry,
    FindingState,
    Made,
    Since,
    carried_of,
    enough,
    entries_in,
    made,
    since_of,
)
from rondel.workflows.review.target import Pins, pins_of


@dataclass(frozen=True)
class ReviewState:
    """A session as its files show it. Everything is looked up when it is asked for."""

    ref: SessionRef
    files: Snapshot
    given: Given = NOTHING_GIVEN

    # -- the session --------------------------------------------------------------------

    @cached_property
    def document(self) -> Mapping[str, object] | None:
        """`state.json`; None when it is missing or damaged."""
        found = self.files.json(layout.STATE)
        return found if isinstance(found, dict) else None

    @cached_property
    def round_folders(self) -> dict[int, str]:
        """The folder of each round that is there, in order of the numbers."""
        return folders_in(self.files)

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds that are there."""
        return tuple(round_in(self.files, *found) for found in self.round_folders.items())

    @cached_property
    def resolution(self) -> Resolution:
        """Where the next run works."""
        return resolve(self.rounds)

    @property
    def is_flat(self) -> bool:
        """Whether an old tool left its reviews here without rounds. Such a session is left alone."""
        return not self.round_folders and bool(self.files.names() & {"reviews/", "final.md", "discourse.md"})

    @property
    def is_closed(self) -> bool:
        """Whether a person closed it."""
        return self.document is not None and self.document.get("status") == "closed"

    @property
    def branch(self) -> str | None:
        """The branch it is about, where that is recorded."""
        name = (self.document or {}).get("branch")
        return name if isinstance(name, str) and name else None

    @property
    def has_requirements(self) -> bool:
        """Whether requirements were given."""
        return self.files.exists(layout.REQUIREMENTS)

    def last_complete(self, before: int | None = None) -> Round | None:
        """The last complete round, of those before round `before`."""
        done = (r for r in reversed(self.rounds) if r.complete and (before is None or r.number < before))
        return next(done, None)

    # -- the round ----------------------------------------------------------------------

    @cached_property
    def round(self) -> Round | None:
        """The last round that is there."""
        found = self.round_folders
        return round_in(self.files, *max(found.items())) if found else None

    @property
    def at(self) -> RoundFiles:
        """The files of the round that is shown and worked on: the last one there is."""
        return self.round.files if self.round else round_files(1)

    @property
    def is_complete(self) -> bool:
        """Whether the last round is."""
        return self.round is not None and self.round.complete

    @cached_property
    def request(self) -> Request:
        """What was asked for the round, with the settings as they are now."""
        return with_settings(request_for(self.files, self.at.number), self.given, self.reviewed)

    @cached_property
    def pins(self) -> Pins | None:
        """The commits of the round."""
        return pins_of(self.part("target.json"))

    @property
    def is_given(self) -> bool:
        """Whether the change came as a diff, which is then a part of its own."""
        target = self.part("target.json")
        return isinstance(target, dict) and target.get("given") is True

    def part(self, path: str) -> object:
        """A part of the round as JSON."""
        return self.files.json(self.at.part(path))

    def part_text(self, path: str) -> str | None:
        """A part of the round as text."""
        return self.files.text(self.at.part(path))

    def has_part(self, path: str) -> bool:
        """Whether a part of the round is there."""
        return self.files.exists(self.at.part(path))

    # -- the reviewers ------------------------------------------------------------------

    @cached_property
    def reviewed(self) -> tuple[str, ...]:
        """Whose reviews are there, asked by us or not."""
        names = self.files.names(self.at.reviews)
        return tuple(sorted(n.removesuffix(".md") for n in names if n.endswith(".md") and n != ".md"))

    @cached_property
    def missing(self) -> dict[str, str]:
        """Who did not answer, and why."""
        found = {}
        for name in sorted(self.files.names(self.at.part("missing"))):
            who = name.removesuffix(".json")
            if name.endswith(".json") and layout.is_reviewer(who) and who not in self.reviewed:
                part = self.part(f"missing/{name}")
                why = part.get("reason") if isinstance(part, dict) else None
                found[who] = str(why or "no reason recorded")
        return found

    @cached_property
    def attendance(self) -> Attendance:
        """The team and who of it answered."""
        team = tuple(dict.fromkeys((*(r.name for r in self.request.team), *self.reviewed)))
        missing = {name: why for name, why in self.missing.items() if name in team}
        return Attendance(team, missing, frozenset(n for n in team if self.is_mechanical(n)))

    def is_mechanical(self, reviewer: str) -> bool:
        """Whether no model answers for a reviewer."""
        return f"review.reviewer.{reviewer}" in self.request.mechanical

    @property
    def lead_is_code(self) -> bool:
        """Whether no model leads."""
        return LEAD in self.request.mechanical

    @property
    def refuter_is_code(self) -> bool:
        """Whether no model refutes."""
        return REFUTER in self.request.mechanical

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """Who has neither answered nor been given up."""
        return tuple(
            n for n in self.attendance.team if n not in self.reviewed and n not in self.attendance.missing
        )

    @property
    def lacks_quorum(self) -> bool:
        """Whether everybody was asked and fewer than half answered: there will be no verdict."""
        answered = self.attendance.answered
        return not self.asked and not enough(len(answered), len(self.attendance.team))

    @cached_property
    def reviews(self) -> dict[str, str]:
        """The reviewers' answers."""
        return {name: self.files.text(self.at.review(name)) or "" for name in self.reviewed}

    # -- what the round knows -----------------------------------------------------------

    @cached_property
    def change(self) -> Change:
        """The change under review."""
        return change_in(self.files, self.at)

    @cached_property
    def carried(self) -> tuple[Carried, ...]:
        """The open findings this round must answer."""
        if self.request.round == self.at.number:
            return carried_of(self.request.carried)
        last = self.last_complete(self.at.number)
        return carried_of(_carried_from(self, last) if last else ())

    @cached_property
    def since(self) -> Since:
        """What happened since the round the old findings come from."""
        return since_of(self.part("since.json"))

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The findings of the round."""
        return items_of(self.part("aggregation.json"))

    @cached_property
    def responses(self) -> tuple[Response, ...]:
        """What the reviewers said about each other's findings."""
        known = [item.id for item in self.items]
        return tuple(
            r
            for name in self.reviewed
            for r in responses_of(self.part(f"discourse/{name}.json"), name, known)
        )

    @cached_property
    def refutations(self) -> dict[str, Refutation]:
        """What the refuters found, by finding."""
        read = ((item.id, refutation_of(self.part(f"refute/{item.id}.json"))) for item in self.items)
        return {name: found for name, found in read if found is not None}

    @cached_property
    def answers(self) -> tuple[CarriedAnswer, ...]:
        """What the reviewers say became of the old findings."""
        known = [old.id for old in self.carried]
        return tuple(a for name, text in self.reviews.items() for a in parse_answers(text, name, known))

    @cached_property
    def true_quotes(self) -> frozenset[str]:
        """The quotations that were found in the code."""
        return frozenset(str(q) for q in items(self.part("quotes.json"), "found"))

    @cached_property
    def accepted(self) -> dict[str, str]:
        """What a person accepted, with the reason, by fingerprint."""
        found = {}
        for name in sorted(self.files.names(layout.DECISIONS)):
            if name.startswith("accept-") and name.endswith(".json"):
                part = self.files.json(f"{layout.DECISIONS}/{name}")
                if isinstance(part, dict) and part.get("answer") == "accept":
                    why = str(part.get("comment") or "accepted by a person")
                    found[name.removeprefix("accept-").removesuffix(".json")] = why
        return found

    @cached_property
    def before(self) -> tuple[Entry, ...]:
        """The entries of all earlier rounds, oldest first."""
        earlier = (r for r in self.rounds if r.number < self.at.number)
        return tuple(e for r in earlier for e in entries_of(self.files, r.files))

    @cached_property
    def made(self) -> Made:
        """Who made the final review of the round."""
        return made(self.files, self.at)

    @cached_property
    def meta(self) -> Document:
        """`round-meta.json` of the round; empty when there is none."""
        found = self.files.json(self.at.meta)
        return found if isinstance(found, dict) else {}


def change_in(files: Snapshot, at: RoundFiles) -> Change:
    """The change that a round reviewed."""
    return change_of(files.json(at.part("change.json")), files.text(at.part("change.diff")) or "")


def entries_of(files: Snapshot, at: RoundFiles) -> tuple[Entry, ...]:
    """The findings of a complete round; of one that another tool wrote, those of its final.md."""
    meta = files.json(at.meta)
    if isinstance(meta, dict):
        return entries_in(meta)
    parsed = parse_review(files.text(at.final) or "").findings
    named = (replace(f, fingerprint=fingerprint(f)) for f in parsed)
    return tuple(Entry(Item(f"F{n}", f, ()), FindingState.OPEN, 1) for n, f in enumerate(named, 1))


def carried_into(
    state: ReviewState, earlier: Iterable[ReviewState]
) -> tuple[tuple[Document, ...], dict[str, str]]:
    """The open findings that the next round must answer, and the session, round and commit they come from.

    Those of the session's last complete round; before there is one, the blockers of the last session
    on the branch that has one.
    """
    if last := state.last_complete():
        return _carried_from(state, last), _origin(state, last)
    for other in earlier:
        if other.ref.id != state.ref.id and (last := other.last_complete()):
            rows = _carried_from(other, last)
            kept = (r for r in rows if r["category"] == Category.BLOCKER)
            return tuple(r for r in kept if r["fingerprint"] not in other.accepted), _origin(other, last)
    return (), {}


def _carried_from(state: ReviewState, found: Round) -> tuple[Document, ...]:
    """The open findings of a round, as a request carries them."""
    open_ = (entry for entry in entries_of(state.files, found.files) if entry.state.is_open)
    return tuple({**e.item.document(), "session": state.ref.id, "round": found.number} for e in open_)


def _origin(state: ReviewState, found: Round) -> dict[str, str]:
    pins = pins_of(state.files.json(found.files.part("target.json")))
    return {"session": state.ref.id, "round": str(found.number), "head": pins.head if pins else ""}


def phase_due(state: ReviewState) -> Phase:
    """The phase that is due now, from the files alone."""
    if state.is_complete:
        return Phase.COMPLETE
    at = state.at
    if not (state.has_part("standards.json") and state.files.exists(layout.STANDARDS)):
        return Phase.CONTEXT
    if not (
        state.pins and state.has_part("change.json") and (not state.carried or state.has_part("since.json"))
    ):
        return Phase.CHANGE_CONTEXT
    if not (
        state.has_part("guidance.md")
        and state.has_part("context.json")
        and state.files.exists(layout.CONTEXT)
    ):
        return Phase.ANALYSIS
    if state.asked or state.lacks_quorum:
        return Phase.REVIEWS
    if not state.has_part("aggregation.json"):
        return Phase.AGGREGATION
    return Phase.SYNTHESIS if state.files.exists(at.discourse) else Phase.DISCOURSE


def noted(document: Document, session: str, due: tuple[Phase, int], now: str, *, began: str = "") -> Document:
    """`state.json` with the phase and the round that are due; whatever else it holds stays."""
    phase, number = due
    return {
        **document,
        "session_id": document.get("session_id") or session,
        "status": document.get("status") or "active",
        "current_phase": phase.value,
        "phase_number": phase.number,
        "current_round": number,
        "started_at": document.get("started_at") or began or now,
        "updated_at": now,
    }
