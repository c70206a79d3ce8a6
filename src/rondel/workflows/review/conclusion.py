"""What a round of a review came to: its final review, and whether that is an approval."""

from __future__ import annotations

from rondel.model.conclusion import Conclusion
from rondel.workflows.review.read import ReviewState
from rondel.workflows.review.report import unshown_words
from rondel.workflows.review.signing import Made

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
        notes=(*(() if here else (words,)), *_unshown(state)),
        fields=_fields(state),
    )


def _unshown(state: ReviewState) -> tuple[str, ...]:
    """Which files nobody was shown, in one line."""
    found = state.change.unshown
    if not found:
        return ()
    more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    names = ", ".join(f"{file.path} ({file.kind.value})" for file in found[:NAMED_MAX])
    return (" ".join(f"{unshown_words(state.change)}: {names}{more}".splitlines()),)


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
