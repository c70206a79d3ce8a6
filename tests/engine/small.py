"""A small workflow: parallel actions, a loop, a decision. It proves the engine, not itself.

.small/<id>/round-N/notes/<k>.md   asked for, all of a round at once
.small/<id>/round-N/sum.json       derived from them
.small/<id>/state.json             a document that others may have fields in
.small/<id>/final.md               the commit, after a person approved a round
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rondel.model.actions import Access, Action, Ask, Decide, Derive, Probe, Workspace
from rondel.model.changes import Append, Change, Document, Edit, text
from rondel.model.outcomes import Outcome
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, Status, Summary
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef, Step, Workflow

HOME = ".small"


@dataclass(frozen=True)
class Small:
    """What the files show."""

    id: str
    width: int
    rounds_max: int
    auto: bool
    edits: bool
    branch: str | None
    base: str | None
    number: int
    notes: frozenset[str]
    summed: bool
    answer: str | None
    looked: bool
    finished: bool
    problems: tuple[Problem, ...] = ()


class SmallWorkflow(Workflow[Small]):
    name = "small"

    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        return [
            SessionRef("small", n[:-1], f"{HOME}/{n[:-1]}")
            for n in sorted(repo.names(HOME))
            if n.endswith("/")
        ]

    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> Small:
        request = files.json(".rondel/request-1.json")
        asked = request if isinstance(request, dict) else {}
        problems = () if asked else (Problem("no-request", ".rondel/request-1.json", "it is not there"),)
        numbers = [int(n[6:-1]) for n in files.names() if n.startswith("round-") and n[6:-1].isdigit()]
        number = max(numbers, default=1)
        decision = files.json(f".rondel/decisions/round-{number}.json")
        answer = str(decision.get("answer")) if isinstance(decision, dict) else None
        if answer == "reject" and number < asked.get("rounds_max", 2):
            number, answer = number + 1, None
        return Small(
            id=ref.id,
            width=asked.get("width", 0),
            rounds_max=asked.get("rounds_max", 2),
            auto=asked.get("auto", False),
            edits=asked.get("edits", False),
            branch=asked.get("branch"),
            base=asked.get("base"),
            number=number,
            notes=files.names(f"round-{number}/notes"),
            summed=files.exists(f"round-{number}/sum.json"),
            answer=answer,
            looked=files.exists("look.json"),
            finished=files.exists("final.md"),
            problems=problems,
        )

    def steps(self, state: Small) -> Iterable[Step[Small]]:
        return map(self._step, self.plan(state))

    def _step(self, action: Action) -> Step[Small]:
        """What an action means is a method for each, so that tests can change one of them."""
        return Step(
            action,
            write=lambda state, outcome: self.apply(state, action, outcome),
            prompt=lambda state: f"{action.role}: write {action.path} of round {state.number}",
            check=lambda _state, text: None if text[:1].isalpha() else "it does not begin with a letter",
            look=lambda look: {"branch": look.git("symbolic-ref", "--short", "HEAD", check=False).strip()},
            begin=lambda state, at: self.begin(state, action, at),
        )

    def plan(self, state: Small) -> Iterable[Action]:
        if state.finished or not state.width:
            return
        if not state.looked:
            yield Probe("look.json", "look")
            return
        folder = f"round-{state.number}"
        if not state.summed:
            missing = False
            for k in range(1, state.width + 1):
                if f"{k}.md" not in state.notes:
                    missing = True
                    yield Ask(
                        f"{folder}/notes/{k}.md",
                        "small.writer",
                        inputs=("topic.md",),
                        workspace=_space(state),
                    )
            if not missing:
                yield Derive(f"{folder}/sum.json", inputs=_inputs(state))
        elif state.answer is None and not state.auto:
            yield Decide(f".rondel/decisions/{folder}.json", f"Is round {state.number} good?")
        else:
            yield Ask("final.md", "small.closer", inputs=(f"{folder}/sum.json",))

    def begin(self, state: Small, action: Action, at: datetime) -> Sequence[Change]:
        return [Edit("state.json", _set("phase", action.path.partition("/")[0]))]

    def apply(self, state: Small, action: Action, outcome: Outcome) -> Sequence[Change]:
        if not outcome.ok:
            return ()
        match action:
            case Probe():
                return [text(action.path, json.dumps(outcome.data))]
            case Derive():
                total = {"notes": sorted(state.notes)}
                return [
                    Append("log.txt", f"round {state.number} is summed"),
                    text(action.path, json.dumps(total)),
                ]
            case Ask(path="final.md"):
                return [Edit("state.json", _set("done", "yes")), text("final.md", outcome.text)]
            case _:
                return [text(action.path, outcome.text)]

    def documents(self, state: Small) -> Iterable[str]:
        return ("state.json",)

    def frozen(self, state: Small) -> Iterable[str]:
        return [f"round-{n}" for n in range(1, state.number)]

    def artifact(self, state: Small, number: int | None) -> str | None:
        return "final.md" if state.finished else None

    def summary(self, state: Small) -> Summary:
        status = Status.COMPLETED if state.finished else Status.DAMAGED if state.problems else Status.ACTIVE
        return Summary(
            state.id, status, f"round-{state.number}", len(state.notes), state.width, problems=state.problems
        )


def _space(state: Small) -> Workspace:
    return Workspace(Access.WRITE, state.base, state.branch) if state.edits else Workspace()


def _inputs(state: Small) -> tuple[str, ...]:
    return tuple(f"round-{state.number}/notes/{n}" for n in sorted(state.notes))


def _set(key: str, value: object):
    def change(document: Document) -> Document:
        return {**document, key: value}

    return change
