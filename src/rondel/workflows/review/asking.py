"""The prompts of a review, from its state; and what is wrong with an answer."""

from __future__ import annotations

from rondel.model.actions import Ask
from rondel.model.written import is_theirs
from rondel.workflows.review import layout, prompting
from rondel.workflows.review.aggregate import Item
from rondel.workflows.review.findings import parse_reviewer_json
from rondel.workflows.review.markdown import cut, fenced
from rondel.workflows.review.prompting import marked
from rondel.workflows.review.read import ReviewState
from rondel.workflows.review.report import render_discourse
from rondel.workflows.review.responses import parse_refutation, parse_responses
from rondel.workflows.review.settle import about, result, weighed
from rondel.workflows.review.team import Reviewer, persona_of


def what_is(state: ReviewState, path: str) -> tuple[str, str]:
    """Which of its questions a path is, and about whom or what: ("discourse", "principal-1")."""
    at = state.at
    if path.startswith(f"{at.reviews}/"):
        return "review", path.removeprefix(f"{at.reviews}/").removesuffix(".md")
    part = path.removeprefix(at.part(""))
    folder, _, name = part.rpartition("/")
    return folder or name.partition(".")[0], name.partition(".")[0]


def prompt(state: ReviewState, ask: Ask) -> str:
    """What to ask."""
    kind, name = what_is(state, ask.path)
    match kind:
        case "review":
            return _reviewer(state, name)
        case "discourse":
            slots = {
                "persona": persona_of(_seat(state, name)),
                "findings": prompting.findings_block(state.items, name),
            }
            return prompting.prompt("discourse", slots, state.change, state.request.prompt_max)
        case "refute":
            item = next((i for i in state.items if i.id == name), None)
            return _refuter(state, item)
        case "synthesis":
            return _synthesis(state)
        case _:
            return prompting.prompt("guidance", _common(state), state.change, state.request.prompt_max)


def _seat(state: ReviewState, name: str) -> Reviewer:
    return next((r for r in state.request.team if r.name == name), Reviewer(name, name.rpartition("-")[0]))


def _common(state: ReviewState) -> dict[str, str]:
    label = state.pins.label if state.pins else "the change"
    return {
        "change": prompting.change_block(state.change, label),
        "requirements": marked("requirements", state.files.text(layout.REQUIREMENTS) or ""),
        "context": marked("context", _given_context(state)),
        "standards": marked("standards", state.files.text(layout.STANDARDS) or ""),
        "carried": prompting.carried_block(state.carried),
    }


def _given_context(state: ReviewState) -> str:
    """`context.md` where a person wrote it: ours repeats what the other parts of a prompt say."""
    theirs = is_theirs(state.files, layout.CONTEXT)
    return state.files.text(layout.CONTEXT) or "" if theirs else ""


def _reviewer(state: ReviewState, name: str) -> str:
    if state.is_mechanical(name):
        # Analysers read the whole change; what is too long for a model is not too long for them.
        change = state.change
        return prompting.fill(
            "checks",
            {"change": fenced(change.diff, "diff"), "unshown": prompting.unshown_block(change.unshown)},
        )
    slots = _common(state) | {
        "persona": persona_of(_seat(state, name)),
        "guidance": marked("guidance", state.part_text("guidance.md") or ""),
        "carried_form": prompting.carried_form(state.carried),
        "since": marked("since", fenced(state.since.diff, "diff") if state.since.diff else ""),
    }
    return prompting.prompt("reviewer", slots, state.change, state.request.prompt_max)


def _refuter(state: ReviewState, item: Item | None) -> str:
    slots = {"finding": prompting.findings_block([item] if item else [])}
    only = [item.finding.file] if item and state.change.file(item.finding.file) and item.finding.file else []
    return prompting.prompt("refuter", slots, state.change, state.request.prompt_max, only)


def _synthesis(state: ReviewState) -> str:
    found = result(state)
    rows = [f"Verdict: {found.verdict.value}"]
    rows += [
        f"- {e.item.id} [{e.finding.category.value}, weight {e.weight}] {e.finding.text}" for e in found.open
    ]
    rows += [f"- {s.carried.id} of an earlier round is {s.answer.value}: {s.reason}" for s in found.settled]
    room = state.request.prompt_max
    said = render_discourse(about(state), weighed(state), state.responses, ())
    slots = {
        "result": cut(marked("result", "\n".join(rows)), room // 2, "the result"),
        "discourse": cut(marked("discourse", said), room // 5, "the discourse"),
        "guidance": cut(marked("guidance", state.part_text("guidance.md") or ""), room // 8, "it"),
    }
    return prompting.fill("synthesis", slots)


def check(state: ReviewState, ask: Ask, text: str) -> str | None:
    """What is wrong with an answer, in words its author can act on."""
    kind, name = what_is(state, ask.path)
    match kind:
        case "review":
            return parse_reviewer_json(text, name)[1]
        case "discourse":
            return parse_responses(text, name, (item.id for item in state.items))[1]
        case "refute":
            return parse_refutation(text)[1]
        case _:
            return None if text.strip() else "the answer is empty"
