"""The engine's loop in twenty lines: read, answer, write. No agent, no process, no clock.

For decisions that need many runs; what needs the real engine uses the real engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rondel.model.actions import Ask, Decide, Derive, Probe, Run
from rondel.model.outcomes import Ended, Outcome
from rondel.model.workflow import Given, SessionRef, Step
from rondel.store.changes import apply_changes
from rondel.store.snapshot import DiskSnapshot
from rondel.workflows.feature import start_feature
from rondel.workflows.feature.read import State
from rondel.workflows.feature.workflow import Feature

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
FLOW = Feature()
DOCUMENT = "# A document\n\nWith a text.\n"
STEPS_MAX = 300


def verdict(*issues: tuple[str, str], approved: bool | None = None) -> str:
    """What a reviewer answers."""
    body = {
        "approved": not any(s == "blocker" for s, _ in issues) if approved is None else approved,
        "issues": [{"severity": s, "description": d, "location": None} for s, d in issues],
        "summary": "Read it.",
    }
    return f"Here it is.\n\n```json\n{json.dumps(body)}\n```\n"


APPROVED = verdict()
BLOCKED = verdict(("blocker", "the error case is missing"))


def good(ask: Ask) -> str:
    """An agent that does what it is asked, and a reviewer that is content."""
    if ask.path.endswith("review.json"):
        return APPROVED
    if ask.path.endswith("draft.md"):
        return f"# {ask.title}\n\nText.\n\n=== CHANGES ===\nWrote {ask.title}.\n"
    return "Done, the tests pass."


def asked(t: Turning, ask: Ask) -> str:
    """What an agent is asked now."""
    step = FLOW.step(t.state, ask.path)
    assert step is not None
    return step.prompt(t.state)


class Turning:
    """One feature in a folder of its own."""

    def __init__(self, root: Path, mode: str = "standard", **start: str) -> None:
        self.ref: SessionRef = start_feature(root, "OAuth login", mode=mode, at=NOON, **start)
        self.folder = root / self.ref.folder
        self.now = NOON
        self.asked: list[str] = []
        self.commits = 0
        self.given = Given()

    @property
    def state(self) -> State:
        return FLOW.read(DiskSnapshot(self.folder), self.ref, self.given)

    @property
    def meta(self) -> dict[str, object]:
        found = json.loads((self.folder / ".meta.json").read_text())
        assert isinstance(found, dict)
        return found

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def request(self, **body: object) -> None:
        number = len(list((self.folder / ".rondel").glob("request-*.json"))) + 1
        self.write(f".rondel/request-{number}.json", json.dumps(body))

    def phase(
        self, phase: str, answer: Callable[[Ask], str | Outcome] = good, **body: object
    ) -> list[Decide]:
        """Ask for a phase, and turn until nothing more can be done; gives what waits for a person."""
        self.request(command="phase", phase=phase, **body)
        return self.turn(answer)

    def step(self, until: str) -> State:
        """Turn until this is what is due; what the files showed then."""
        while True:
            state = self.state
            [step] = FLOW.steps(state)
            if step.action.path == until:
                return state
            apply_changes(self.folder, step.write(state, self._outcome(state, step, good)))

    def turn(self, answer: Callable[[Ask], str | Outcome] = good) -> list[Decide]:
        for _ in range(STEPS_MAX):
            state = self.state
            due = list(FLOW.steps(state))
            work = [s for s in due if not isinstance(s.action, Decide)]
            if not work:
                return [s.action for s in due if isinstance(s.action, Decide)]
            outcome = self._outcome(state, work[0], answer)
            changes = work[0].write(state, outcome)
            if not changes:
                raise AssertionError(f"stuck at {work[0].action.path}: {outcome.error}")
            apply_changes(self.folder, changes)
        raise AssertionError("it never ends")

    def _outcome(self, state: State, step: Step[State], answer: Callable[[Ask], str | Outcome]) -> Outcome:
        started, self.now = self.now, self.now + timedelta(seconds=7)
        times: Mapping[str, datetime] = {"started_at": started, "finished_at": self.now}
        match step.action:
            case Derive():
                return Outcome(Ended.DONE, **times)
            case Probe():
                base = {"commit": "0" * 40, "branch": step.action.args[0], "checks": ""}
                return Outcome(Ended.DONE, data=base, **times)
            case Run():
                return Outcome(Ended.DONE, text="3 passed", exit_code=0, **times)
            case Ask():
                return self._ask(state, step, step.action, answer, times)
        raise AssertionError(step)

    def _ask(
        self,
        state: State,
        step: Step[State],
        ask: Ask,
        answer: Callable[[Ask], str | Outcome],
        times: Mapping[str, datetime],
    ) -> Outcome:
        assert step.prompt(state)
        self.asked.append(ask.path)
        said = answer(ask)
        if isinstance(said, Outcome):
            return said
        wrong = step.check(state, said)
        if wrong:
            self.asked.append(ask.path)
            said = str(answer(ask))
            wrong = step.check(state, said)
        if wrong:
            return Outcome(Ended.REJECTED, text=said, error=wrong, **times)
        commit: dict[str, object] = {}
        if ask.workspace.target:
            self.commits += 1
            commit = {"commit": f"{self.commits:040d}", "changed": (f"src/file{self.commits}.py",)}
        return Outcome(Ended.DONE, text=said, agent="fake", **times, **commit)

    def answer(self, question: Decide, word: str) -> None:
        self.write(question.path, json.dumps({"answer": word, "by": "person"}))
