"""What people are shown of a round: context.md, discourse.md, final.md, its progress and its conclusion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rondel.model.changes import Document, Json
from rondel.model.summary import Conclusion
from rondel.model.times import parse_time
from rondel.workflows.review.change import Change
from rondel.workflows.review.dialects import parse_review
from rondel.workflows.review.findings import Category, Finding
from rondel.workflows.review.layout import Phase
from rondel.workflows.review.markdown import cell, counted, demoted, fenced, first_of, inline, listed, quoted
from rondel.workflows.review.read import ReviewState, phase_due
from rondel.workflows.review.responses import Response, Ruling, Verb
from rondel.workflows.review.result import (
    Attendance,
    Carried,
    Entry,
    FindingState,
    Made,
    Question,
    Result,
    Standing,
    Weighed,
)
from rondel.workflows.review.target import Pins

UNSHOWN_MAX = 1_000  # files in the list of those that nobody was shown; round-meta.json has all
QUICK = "This was a quick review: fewer reviewers, no discourse and no refuters."


@dataclass(frozen=True)
class About:
    """What a round is about."""

    round: int
    pins: Pins
    change: Change
    quick: bool = False
    notes: tuple[str, ...] = ()

    @property
    def commits(self) -> str:
        """The pinned commits in short."""
        return f"`{self.pins.base[:12]}..{self.pins.head[:12]}`"


def render_context(about: About, carried: Sequence[Carried], guidance: str, requirements: bool) -> str:
    """context.md: the change in short, and what the lead says to look at."""
    change = about.change
    commits = [*change.commits, *([f"… and {change.commits_more} more"] if change.commits_more else [])]
    parts = [
        f"# Context: round {about.round}",
        f"{about.pins.label} on `{about.pins.branch}`: {about.commits}, {change.size}.",
        "The requirements are in `requirements.md`." if requirements else "No requirements were given.",
        "## Files\n\n" + (listed([f.line() for f in change.files]) or "None."),
    ]
    if commits:
        parts.append("## Commits\n\n" + listed([cell(c, 200) for c in commits], 110))
    if change.notes:
        parts.append("## Left out\n\n" + listed(change.notes))
    if carried:
        parts.append("## Open findings of earlier rounds\n\n" + listed([carried_line(c) for c in carried]))
    parts.append("## Guidance of the lead\n\n" + demoted(guidance.strip() or "None."))
    return "\n\n".join(parts) + "\n"


def carried_line(carried: Carried) -> str:
    """An old finding as one line."""
    f = carried.finding
    return f"{carried.id} [{f.category.value}] {f.title} ({place_of(f)})"


def place_of(finding: Finding) -> str:
    """Where a finding is."""
    if finding.file is None:
        return "no place given"
    lines = "" if finding.line is None else f":{finding.line}"
    if finding.line_end and finding.line_end != finding.line:
        lines += f"-{finding.line_end}"
    return f"{finding.file}{lines}"


def render_discourse(
    about: About,
    weighed: Sequence[Weighed],
    responses: Sequence[Response],
    notes: Sequence[str],
) -> str:
    """discourse.md: what was said about each finding, and what it weighs now."""
    parts = [f"# Discourse: round {about.round}"]
    if about.quick:
        parts.append(QUICK)
    if not weighed:
        parts.append("There was no finding to discuss.")
    parts += [_discussed(w, [r for r in responses if r.finding == w.item.id]) for w in weighed]
    surfaced = [r for r in responses if r.verb is Verb.SURFACE and not r.finding]
    if surfaced:
        parts.append("## Surfaced\n\n" + listed([f"{r.reviewer}: {cell(r.reason, 500)}" for r in surfaced]))
    if notes:
        parts.append("## Notes\n\n" + listed(list(notes)))
    return "\n\n".join(parts) + "\n"


def _discussed(weighed: Weighed, responses: Iterable[Response]) -> str:
    item = weighed.item
    facts = [
        f"{item.finding.category.value}, {place_of(item.finding)}",
        f"made by {', '.join(item.supporters) or 'nobody'}",
        f"weight {weighed.weight}, {weighed.standing.value}",
    ]
    if not item.finding.verified:
        facts.append("its quotation is not in the change")
    rows = [f"## {item.id}: {inline(item.finding.title)}", "; ".join(facts)]
    said = [f"{r.verb.value} {r.reviewer}: {cell(r.reason, 500) or 'no reason given'}" for r in responses]
    if weighed.refutation:
        r = weighed.refutation
        words = {Ruling.REFUTED: "refuted", Ruling.STANDS: "stands", Ruling.UNCERTAIN: "undecided"}[r.ruling]
        said.append(f"{r.by}: {words}. {cell(r.missing or r.reason, 500)}")
    if said:
        rows.append(listed(said))
    if weighed.refutation and weighed.refutation.evidence:
        rows.append(fenced(weighed.refutation.evidence))
    return "\n\n".join(rows)


def render_final(about: About, result: Result, attendance: Attendance, prose: str) -> str:
    """final.md. The verdict and the lists come from the result; the lead's words stand between them."""
    parts = [
        f"# Final review: {cell(about.pins.branch)}, round {about.round}",
        f"**Verdict**: {result.verdict.value}",
        f"{result.why} Reviewed: {cell(about.pins.label)}, {about.commits}, {about.change.size}.",
    ]
    if about.change.unshown:
        parts.append(f"{unshown_words(about.change)}: see Not looked at.")
    if about.quick:
        parts.append(QUICK)
    if prose.strip():
        parts.append("## Summary\n\n" + quoted(prose))
    for title, categories in (
        ("Blockers", (Category.BLOCKER,)),
        ("Should Fix", (Category.SHOULD_FIX,)),
        ("Suggestions", (Category.SUGGESTION, Category.STYLE)),
    ):
        found = result.of(*categories)
        shown = "\n\n".join(_found(n, entry) for n, entry in enumerate(found, 1))
        parts.append(f"## {title}\n\n{shown or 'None.'}")
    if about.change.unshown:
        parts.append("## Not looked at\n\n" + _unshown(about.change))
    parts += _rest(result, attendance, about.notes)
    return "\n\n".join(parts) + "\n"


def unshown_words(change: Change) -> str:
    """How many files no reviewer was shown."""
    number = len(change.unshown)
    return f"{counted(number, 'changed file')} {'were' if number != 1 else 'was'} shown to no reviewer"


def _unshown(change: Change) -> str:
    words = (
        "Shown to no reviewer, each with the reason; of analysers, secrets and patterns read what is text."
    )
    rows = [inline(f"{file.path}: {file.kind.value}, {file.status}", 500) for file in change.unshown]
    return f"{words}\n\n{listed(rows, UNSHOWN_MAX)}"


def _found(number: int, entry: Entry) -> str:
    finding, item = entry.finding, entry.item
    facts = [
        f"**Severity**: {finding.severity.value}",
        f"**Raised by**: {', '.join(item.supporters) or 'an earlier round'}",
        f"**Weight**: {entry.weight}",
        f"`{item.id}`",
    ]
    if finding.category is Category.STYLE:
        facts.append("style")
    if not finding.verified and not entry.carried_from:
        facts.append("unverified: its quotation is not in the change")
    if entry.state is FindingState.REOPENED:
        facts.append("reopened")
    if entry.carried_from:
        facts.append(f"carried from {entry.carried_from}: {cell(entry.reason, 200)}")
    where = [f"**Location**: `{place_of(finding)}`"] if finding.file else []
    rows = [f"### {number}. {inline(finding.title)}", *where, " · ".join(facts)]
    if finding.problem and finding.problem != finding.title:
        rows.append(quoted(finding.problem))
    if finding.evidence:
        rows.append(fenced(finding.evidence))
    if finding.suggestion:
        rows.append("**Suggested fix**:\n\n" + quoted(finding.suggestion))
    return "\n\n".join(rows)


def _rest(result: Result, attendance: Attendance, notes: Sequence[str]) -> list[str]:
    parts = []
    if result.settled:
        rows = [
            f"| {s.carried.id} | {cell(s.carried.finding.title)} | {s.answer.value.replace('_', ' ')} "
            f"| {cell(s.by, 40)}: {cell(s.reason, 200)} |"
            for s in result.settled
        ]
        parts.append(
            "## Findings of earlier rounds\n\n| id | finding | now | why |\n|---|---|---|---|\n"
            + "\n".join(rows)
        )
    gone = [e for e in result.entries if e.weighed and e.weighed.standing is not Standing.SUPPORTED]
    if gone:
        rows = [
            f"{e.item.id} {cell(e.finding.title)} ({place_of(e.finding)}): "
            f"{e.weighed.standing.value if e.weighed else ''}, {cell(e.reason, 300)}"
            for e in gone
        ]
        parts.append("## Not upheld\n\n" + listed(rows))
    if result.questions:
        parts.append("## Questions\n\n" + listed([_by(q) for q in result.questions]))
    if result.praise:
        parts.append("## What works well\n\n" + listed([_by(q) for q in result.praise], 30))
    return parts + _reviewers(attendance, notes)


def _by(question: Question) -> str:
    return f"{inline(question.text, 500)} ({question.reviewer})"


def _reviewers(attendance: Attendance, notes: Sequence[str]) -> list[str]:
    answered = attendance.answered
    rows = [f"{name}{' (checks)' * (name in attendance.mechanical)}" for name in answered]
    parts = [
        f"## Reviewers\n\n{len(answered)} of {len(attendance.team)} answered: {', '.join(rows) or 'none'}."
    ]
    if attendance.missing:
        missing = [
            f"**{name}** is missing: {cell(why_not, 300)}" for name, why_not in attendance.missing.items()
        ]
        parts.append("## Missing reviewers\n\n" + listed(missing))
    if notes:
        parts.append("## Notes\n\n" + listed(list(notes)))
    return parts


def prose_by_code(result: Result, attendance: Attendance, findings: Mapping[str, Sequence[Finding]]) -> str:
    """The words around the lists where no model leads: counts, and where the findings are."""
    counts = result.counts
    places: dict[str, int] = {}
    for entry in result.open:
        if entry.finding.file:
            places[entry.finding.file] = places.get(entry.finding.file, 0) + 1
    most = sorted(places, key=lambda p: (-places[p], p))[:5]
    total = sum(len(f) for f in findings.values())
    open_ = (
        f"{counted(counts['blockers'], 'blocker')}, {counts['should_fix']} to fix, "
        f"{counted(counts['suggestions'], 'suggestion')}"
    )
    lines = [f"Findings of {counted(len(attendance.answered), 'reviewer')}: {total}. Open: {open_}."]
    if most:
        lines.append("Most are in " + ", ".join(f"`{p}` ({places[p]})" for p in most) + ".")
    fixed = sum(e.state is FindingState.FIXED for e in result.entries)
    if fixed:
        lines.append(f"{counted(fixed, 'finding')} of earlier rounds {'are' if fixed != 1 else 'is'} fixed.")
    return " ".join(lines)


def guidance_by_code(change: Change) -> str:
    """What to look at where no model leads: the files with the most changed lines."""
    largest = sorted(change.files, key=lambda f: (-(f.added + f.removed), f.path))[:10]
    if not largest:
        return "The change touches no file that can be shown."
    return "No model leads this review. The largest changes:\n\n" + listed([f.line() for f in largest])


# -- progress of a round ---------------------------------------------------------------------


_MARKS = {"done": "x", "due": ">", "open": " "}


@dataclass(frozen=True)
class Progress:
    """Where the last round is. `seconds` is the time of this round, until now or until it was complete."""

    session: str
    round: int
    complete: bool
    phase: Phase
    phases: tuple[tuple[Phase, str], ...]  # done, due, open
    reviewers: tuple[tuple[str, str], ...]  # answered, missing, asked
    seconds: float | None
    verdict: str | None

    def lines(self) -> tuple[str, ...]:
        """For a person: the round and its time, the phases, the reviewers."""
        taken = "" if self.seconds is None else f", {self.seconds:.0f} s"
        phases = (f"[{_MARKS[state]}] {phase.number} {phase.value}" for phase, state in self.phases)
        reviewers = (f"    {name}: {state}" for name, state in self.reviewers)
        verdict = (f"verdict: {self.verdict}",) if self.verdict else ()
        return (f"round {self.round}{taken}", *phases, *reviewers, *verdict)

    def document(self) -> Document:
        """As JSON."""
        phases: list[Json] = [{"number": p.number, "name": p.value, "state": s} for p, s in self.phases]
        reviewers: list[Json] = [{"name": n, "state": s} for n, s in self.reviewers]
        return {
            "session": self.session,
            "round": self.round,
            "complete": self.complete,
            "phase": self.phase.value,
            "phase_number": self.phase.number,
            "phases": phases,
            "reviewers": reviewers,
            "seconds": self.seconds,
            "verdict": self.verdict,
        }


def progress_of(state: ReviewState, now: datetime) -> Progress:
    """The view of the last round, from its files alone."""
    due = phase_due(state)
    phases = tuple((p, _state(p, due)) for p in Phase)
    reviewers = tuple((name, _answer(state, name)) for name in state.attendance.team)
    if state.is_complete:
        reviewers = tuple((n, s) for n, s in reviewers if s != "asked")
    verdict = state.meta.get("verdict")
    if state.is_complete and not state.meta:  # another tool's round: what its final.md says
        verdict = parse_review(state.files.text(state.at.final) or "").verdict
    return Progress(
        state.ref.name,
        state.at.number,
        state.is_complete,
        due,
        phases,
        reviewers,
        _seconds(state, now),
        verdict if isinstance(verdict, str) else None,
    )


def _state(phase: Phase, due: Phase) -> str:
    if phase.number < due.number or due is Phase.COMPLETE:
        return "done"
    return "due" if phase is due else "open"


def _answer(state: ReviewState, name: str) -> str:
    if name in state.reviewed:
        return "answered"
    return "missing" if name in state.missing else "asked"


def _seconds(state: ReviewState, now: datetime) -> float | None:
    """From the round's opening, not the session's."""
    meta = state.meta
    begun = parse_time(meta.get("started_at")) or parse_time(state.request.opened_at)
    if begun is None and len(state.rounds) <= 1:
        begun = parse_time((state.document or {}).get("started_at"))
    ended = parse_time(meta.get("completed_at")) if state.is_complete else now
    return None if begun is None or ended is None else max(0.0, (ended - begun).total_seconds())


# -- what a round came to --------------------------------------------------------------------


NAMED_MAX = 20


def conclusion(state: ReviewState) -> Conclusion:
    """The final review of the round, once it is complete; an approval only where Rondel made it."""
    if state.is_flat:
        final = state.files.text("final.md") or ""
        return Conclusion(approved=False, document=final, notes=("final.md is not made by Rondel",))
    if not state.is_complete:
        return Conclusion(fields=_fields(state))
    here = state.made is Made.HERE
    words = f"{state.at.final} is {state.made}; it counts as the round's end and is no approval"
    return Conclusion(
        approved=here and state.meta.get("verdict") == "APPROVE",
        document=state.files.text(state.at.final) or "",
        notes=(*(() if here else (words,)), *_unshown_note(state)),
        fields=_fields(state),
    )


def _fields(state: ReviewState) -> dict[str, object]:
    complete = state.is_complete
    meta = state.meta if complete else {}
    return {
        "round": state.at.number,
        "complete": complete,
        "verdict": meta.get("verdict"),
        "counts": meta.get("synthesis_counts"),
        "not_looked_at": meta.get("not_looked_at") or [],
        "final": f"{state.ref.folder}/{state.at.final}" if complete else None,
        "made_by_rondel": state.made is Made.HERE if complete else None,
    }


def _unshown_note(state: ReviewState) -> tuple[str, ...]:
    """Which files nobody was shown, in one line."""
    found = state.change.unshown
    if not found:
        return ()
    names = first_of([f"{file.path} ({file.kind.value})" for file in found], NAMED_MAX)
    return (" ".join(f"{unshown_words(state.change)}: {names}".splitlines()),)
