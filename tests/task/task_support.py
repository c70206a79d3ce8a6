"""A scratch repository, a session of tasks and a scripted agent: what the tests of tasks need."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rondel.agents.base import Beat, Reply, Request
from rondel.agents.settings import AgentSettings
from rondel.api import Hall
from rondel.engine.driver import Report
from rondel.model.outcomes import Ended
from rondel.model.snapshot import FrozenSnapshot
from rondel.model.workflow import SessionRef
from rondel.workflows.task import files, read
from rondel.workflows.task.schema import new_task
from rondel.workflows.task.state import State
from rondel.workflows.task.workflow import TaskWorkflow

REPORT = "## What was done\nIt.\n\n## Decisions\nOne.\n\n## Notes for future tasks\nMind the gap.\n"


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "README.md").write_text("scratch\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def task(task_id: str, title: str = "", **changes: object) -> dict[str, object]:
    """A valid task; `depends_on`, `focus_paths`, `requirements`, `steps` and `status` may differ."""
    body: dict = new_task(task_id, title or f"Task {task_id}")
    for name in (
        "depends_on",
        "focus_paths",
        "requirements",
        "acceptance",
        "parent",
        "inherited",
        "shared_context",
    ):
        if name in changes:
            body["context"][name] = changes[name]
    if "steps" in changes:
        body["flow_control"]["pre_analysis"] = changes["steps"]
    if "status" in changes:
        body["status"] = changes["status"]
    return body


def step(command: str, name: str = "look", **fields: object) -> dict[str, object]:
    return {"step": name, "action": f"Do {name}", "command": command, **fields}


def snapshot(tasks: list[dict], extra: Mapping[str, str | bytes] | None = None) -> FrozenSnapshot:
    found: dict[str, str | bytes] = {f".task/{t['id']}.json": json.dumps(t) for t in tasks}
    found["workflow-session.json"] = json.dumps(files.template("WFS-x", "The topic"))
    return FrozenSnapshot({**found, **(extra or {})})


def state(tasks: list[dict], extra: Mapping[str, str | bytes] | None = None, *, run: bool = False) -> State:
    """What a session of these tasks shows, without a disk."""
    asked = {".rondel/request-1.json": json.dumps({"kind": "run", "target": "main"})} if run else {}
    return read.read(snapshot(tasks, {**asked, **(extra or {})}), read.ref_of("WFS-x"))


Answer = Callable[[Request], "Reply | str"]


@dataclass
class Scripted:
    """An agent by a function. It notes each call in a file that no death of ours can lose."""

    answer: Answer = lambda _: REPORT
    calls: Path | None = None
    seconds: float = 0.0
    name: str = "fake"
    kind: str = "fake"
    model: str = ""
    seen: list[Request] = field(default_factory=list)

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        self.seen.append(request)
        if self.calls:
            with self.calls.open("a") as f:
                f.write(f"{request.action}\n")
        if self.seconds:
            await asyncio.sleep(self.seconds)
        answer = self.answer(request)
        reply = answer if isinstance(answer, Reply) else Reply(Ended.DONE, answer)
        request.spool.mkdir(parents=True, exist_ok=True)
        if reply.ended is Ended.DONE:
            (request.spool / "out").write_text(reply.text)
        return reply

    def recover(self, request: Request) -> Reply | None:
        out = request.spool / "out"
        return Reply(Ended.DONE, out.read_text()) if out.exists() else None

    def version(self) -> str | None:
        return "1"


def hall(root: Path, agent: Scripted | None = None) -> Hall:
    chosen = agent or Scripted()

    def build(_: AgentSettings) -> Scripted:
        return chosen

    return Hall(root, workflows={"task": TaskWorkflow()}, build=build)


def session(root: Path, tasks: list[dict], topic: str = "The topic") -> SessionRef:
    """A session on disk with these tasks."""
    ref = files.start(root, topic)
    for one in tasks:
        (root / ref.folder / ".task" / f"{one['id']}.json").write_text(json.dumps(one, indent=2))
    return ref


def run(
    here: Hall,
    ref: SessionRef,
    *,
    jobs: int = 4,
    checks: str = "",
    only: tuple[str, ...] = (),
    **more: object,
) -> Report:
    here.ask_for(ref, {"kind": "run", "target": "main", "checks": checks, "tasks": list(only), **more})
    return here.drive(ref, agents_max=jobs)


def allow_all(root: Path, ref: SessionRef) -> None:
    from rondel.workflows.task import trust  # noqa: PLC0415 - only here

    files.allow(str(root), trust.waiting_in(files.state_of(root, ref).tasks.values(), frozenset()))


def statuses(root: Path, ref: SessionRef) -> dict[str, str]:
    folder = root / ref.folder / ".task"
    return {p.stem: json.loads(p.read_text())["status"] for p in sorted(folder.glob("*.json"))}


def write_file(request: Request, path: str, text: str) -> None:
    target = request.cwd / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def task_id(request: Request) -> str:
    """The task that a request is about."""
    return request.prompt.split(":", 1)[0].removeprefix("# ")
