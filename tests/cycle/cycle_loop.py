"""A cycle driven without the engine: one action at a time, on real files, with outcomes a test makes up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rondel.model.actions import Action, Ask, Decide, Derive, Probe, Run
from rondel.model.changes import Change
from rondel.model.names import digest
from rondel.model.outcomes import Ended, Outcome
from rondel.model.workflow import Given, Step
from rondel.store.changes import Written, note_ours, write_changes
from rondel.store.snapshot import DiskSnapshot
from rondel.workflows.cycle import files as cycle_files
from rondel.workflows.cycle import layout
from rondel.workflows.cycle.state import State
from rondel.workflows.cycle.workflow import Cycle

JUNIT_PASS = (
    b'<testsuites><testsuite><testcase classname="tests.test_a" name="test_one"/></testsuite></testsuites>'
)
JUNIT_FAIL = (
    b'<testsuites><testsuite><testcase classname="tests.test_a" name="test_one"/>'
    b'<testcase classname="tests.test_a" name="test_two"><failure message="assert 1 == 2"/></testcase>'
    b"</testsuite></testsuites>"
)


def block(phase: str, status: str = "success", **fields: str) -> str:
    lines = [f"- {k}: {v}" for k, v in {"summary": "done", "issues": "[]", **fields}.items()]
    return "\n".join(["PHASE_RESULT:", f"- phase: {phase}", f"- status: {status}", *lines]) + "\n"


def plan_reply(*tasks: dict[str, object], **fields: str) -> str:
    given = tasks or ({"id": "TASK-001", "description": "write it", "effort": "small", "files": ["a.py"]},)
    return f"The plan.\n\n```json\n{json.dumps({'tasks': list(given)})}\n```\n\n{block('ep', **fields)}"


RA = (
    "# Requirements\n\n- REQ-001: it adds\n- it subtracts\n\n## Edge cases\n\n- zero\n- negative numbers\n\n"
    + block("ra")
)
EP = (
    "# Exploration\n\n## Architecture\n\nOne module.\n\n"
    "## Integration points\n\n- a.py\n\n## Risks\n\n- none known\n\n" + block("ep")
)
VAS = "# Validation\n\nAll met.\n\n" + block("vas")

Script = Callable[[Action, State], "Outcome | str | None"]


@dataclass
class Loop:
    """One cycle in a temporary folder."""

    root: Path
    script: dict[str, object] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    after_change: Callable[[Change], None] = lambda _: None
    done: list[str] = field(default_factory=list)
    begun: str = "0123456789abcdef"  # its id; empty for a cycle of another tool
    now: datetime = datetime(2026, 1, 22, 2, 0, 0, tzinfo=UTC)

    def __post_init__(self) -> None:
        self.workflow = Cycle()
        self.ref = cycle_files.create(self.root, "Add it", title=None, settings=self.settings)
        self.folder = self.root / self.ref.folder
        self.state_path = self.folder.parent / f"{self.ref.id}.json"
        if self.begun:
            identity = {"schema_version": 1, "id": self.begun, "branch": "main", "base": None}
            (self.folder / ".rondel/session.json").write_text(json.dumps(identity))

    @property
    def state(self) -> State:
        files = DiskSnapshot(self.folder, self.ref.beside)
        return self.workflow.read(
            files, self.ref, Given(self.settings, test=str(self.settings.get("test", "")))
        )

    @property
    def document(self) -> dict:
        return json.loads(self.state_path.read_text())

    def due(self) -> list[Action]:
        return list(self.workflow.plan(self.state))

    def planned(self, action: Action) -> Step[State]:
        """The step of an action that is due."""
        step = self.workflow.step(self.state, action.path)
        assert step is not None, action.path
        return step

    def begin(self, action: Action) -> None:
        self.carry(self.planned(action).begin(self.state, self.tick()))

    def prompt(self, action: Action | None = None) -> str:
        """What is asked: by this action, or by the first that is due."""
        return self.planned(action or self.due()[0]).prompt(self.state)

    def carry(self, changes) -> None:
        note_ours(self.folder, changes, Written(self.folder), self.ref.beside)
        for change in changes:
            write_changes(self.folder, [change], beside=self.ref.beside)
            self.after_change(change)

    def tick(self) -> datetime:
        self.now += timedelta(seconds=10)
        return self.now

    def step(self) -> bool:
        """Carry out the first action that is due; False when there is none."""
        action = next((a for a in self.due() if not isinstance(a, Decide)), None)
        if action is None:
            return False
        self.do(action)
        return True

    def do(self, action: Action) -> None:
        step, started = self.planned(action), self.tick()
        self.carry(step.begin(self.state, started))
        outcome = self.outcome(action, started)
        self.carry(step.write(self.state, outcome))
        self.done.append(action.path)

    def run(self, steps: int = 200) -> None:
        for _ in range(steps):
            if not self.step():
                return
        raise AssertionError(f"still not at rest: {[a.path for a in self.due()]}")

    def outcome(self, action: Action, started: datetime) -> Outcome:
        said = self._said(action)
        if isinstance(said, Outcome):
            return said
        finished = self.tick()
        base = Outcome(Ended.DONE, started_at=started, finished_at=finished, agent="mock")
        match action:
            case Ask():
                text = said or self._reply(action)
                if action.role == "cycle.cd":
                    commit = digest(action.path)[:40]
                    return _with(base, text=text, commit=commit, changed=("a.py",))
                return _with(base, text=text)
            case Run():
                junit = said if isinstance(said, bytes) else JUNIT_PASS
                failed = b"<failure" in junit
                ended = Ended.FAILED if failed else Ended.DONE
                return _with(base, ended=ended, exit_code=int(failed), files={".rondel-junit.xml": junit})
            case Probe(name="begin"):
                return _with(base, data={"commit": "b" * 40, "branch": action.args[0]})
            case Probe(name="changes"):
                files = [{"file": "a.py", "action": "modify"}, {"file": "b.py", "action": "create"}]
                return _with(
                    base, data={"commit": action.args[0], "height": int(self.now.timestamp()), "files": files}
                )
            case Probe():
                return _with(base, data={"commit": "c" * 40, "command": "pytest", "env": {}})
            case Derive():
                return base
        raise AssertionError(action)

    def _said(self, action: Action) -> object:
        for pattern, said in self.script.items():
            if action.path.endswith(pattern) or pattern in action.path:
                return said(action, self.state) if callable(said) else said
        return None

    def _reply(self, ask: Ask) -> str:
        name = ask.path.rpartition("/")[2]
        if ask.role == "cycle.cd":
            return "Done.\n\n" + block("cd", files_written="[a.py]", summary="wrote a.py")
        return {"requirements.md": RA, "exploration.md": EP, "plan.json": plan_reply(), "validation.md": VAS}[
            name
        ]


def _with(outcome: Outcome, **fields: object) -> Outcome:
    return Outcome(**{**outcome.__dict__, **fields})


__all__ = ["EP", "JUNIT_FAIL", "JUNIT_PASS", "RA", "VAS", "Loop", "block", "layout", "plan_reply"]
