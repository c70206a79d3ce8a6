"""Questions for a person: decisions and blockers that agents raise, what they hold up, their answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rondel.model.actions import Decide, Derive
from rondel.model.changes import Change, json_file
from rondel.model.jsons import mapping
from rondel.model.names import folder_name
from rondel.model.outcomes import Outcome
from rondel.model.workflow import Step
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.documents import Transition
from rondel.workflows.cycle.results import Value, texts
from rondel.workflows.cycle.state import State

USER = "user"
QUESTIONS_MAX = 20
TEXT_MAX = 1000
YES_OR_NO = ("yes", "no")
_OPTIONS = re.compile(r"^(.*?)\(([^()|/]*+[|/][^()]*+)\)\s*+$", re.DOTALL)


def raised(result: Mapping[str, Value], agent: str, iteration: int, prefix: str = "") -> list[Transition]:
    """The decisions and blockers of one answer. The same answer raises the same ones again."""
    found: list[Transition] = []
    name = f"{iteration}-{agent}-{prefix}{'.' if prefix else ''}"
    for i, words in enumerate(texts(result, "blockers")[:QUESTIONS_MAX], 1):
        found.append(transitions.add_blocker(f"B-{name}{i}", words[:TEXT_MAX], agent))
    for i, words in enumerate(_listed(result.get("decisions"))[:QUESTIONS_MAX], 1):
        question, options = split_options(words[:TEXT_MAX])
        found.append(transitions.add_decision(f"D-{name}{i}", question, options))
    return found


def split_options(words: str) -> tuple[str, tuple[str, ...]]:
    """`Which first? (google | github)` as question and options; without any: yes or no."""
    found = _OPTIONS.match(words) if len(words) <= TEXT_MAX else None
    if not found:
        return words.strip(), YES_OR_NO
    mark = "|" if "|" in found[2] else "/"
    options = [o.strip() for o in found[2].split(mark) if o.strip()]
    return found[1].strip(), tuple(dict.fromkeys(options)) or YES_OR_NO


def _listed(value: Value | None) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    return value if isinstance(value, list) else []


def held(state: State, phase: str) -> list[Step[State]]:
    """What must be answered before a phase goes on."""
    decisions = [d for d in state.pending_decisions if _holds(state, phase, raised_by(d.id))]
    blockers = [b for b in state.open_blockers if _holds(state, phase, b.reported_by)]
    return [
        *(_question("decision", d.id, d.description, tuple(d.options) or YES_OR_NO) for d in decisions),
        *(_question("blocker", b.id, b.description, ("resolved", "workaround")) for b in blockers),
    ]


def _holds(state: State, phase: str, raised: str) -> bool:
    """The user's blockers hold everything; an agent's what comes after it, unless nobody is to be asked."""
    if raised == USER:
        return True
    return not state.request.auto and raised != phase


def raised_by(decision_id: str) -> str:
    """The agent that asked, from an id of ours; the user where it is not one."""
    parts = decision_id.split("-")
    return parts[2] if len(parts) == 4 and parts[0] == "D" else USER  # noqa: PLR2004 - D-<iteration>-<agent>-<n>


def _question(kind: str, name: str, description: str, options: tuple[str, ...]) -> Step[State]:
    path = layout.answer(kind, folder_name(name))
    return Step(Decide(path, f"{name}: {description}", options, title=f"{kind} {name}"))


def answers(state: State) -> Iterator[Step[State]]:
    """Answers that have come, and with `auto` those nobody is asked for."""
    waiting = [
        *(("decision", d.id, _decided) for d in state.pending_decisions),
        *(("blocker", b.id, _unblocked) for b in state.open_blockers),
    ]
    for kind, name, write in waiting:
        given, path = layout.answer(kind, folder_name(name)), layout.answered(kind, folder_name(name))
        if state.files.exists(given):
            yield Step(Derive(path, inputs=(given,), title=f"{kind} {name}"), partial(write, name))
        elif kind == "decision" and state.request.auto:
            yield Step(Derive(path, title=f"decide {name}"), partial(write, name))


def _decided(name: str, state: State, outcome: Outcome) -> Sequence[Change]:
    """The person's option; the first one where nobody is asked."""
    decision = next((d for d in state.pending_decisions if d.id == name), None)
    if decision is None:
        return ()
    body = mapping(state.files.json(layout.answer("decision", folder_name(name))))
    option = str(body.get("answer") or (decision.options or YES_OR_NO)[0])
    by = str(body.get("by") or "auto")
    note = {"answer": option, "by": by, "at": state.time(outcome.finished_at)}
    return [
        json_file(layout.answered("decision", folder_name(name)), note),
        state.edit(outcome.finished_at, transitions.make_decision(name, option, by)),
    ]


def _unblocked(name: str, state: State, outcome: Outcome) -> Sequence[Change]:
    if all(b.id != name for b in state.open_blockers):
        return ()
    body = mapping(state.files.json(layout.answer("blocker", folder_name(name))))
    word = "workaround" if body.get("answer") == "workaround" else "resolved"
    by = str(body.get("by") or "person")
    words = str(body.get("comment") or "") or f"{word} by {by}"
    note = {"answer": word, "by": by, "at": state.time(outcome.finished_at)}
    return [
        json_file(layout.answered("blocker", folder_name(name)), note),
        state.edit(outcome.finished_at, transitions.settle_blocker(name, word, words)),
    ]
