"""A scratch repository, a session of tasks and a scripted agent: what the tests of tasks need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from rondel.agents.base import Request
from rondel.engine.driver import Report
from rondel.model.snapshot import FrozenSnapshot
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.testing import scripted
from rondel.workflows.task import files, read
from rondel.workflows.task.analysing import waiting_in
from rondel.workflows.task.schema import new_task
from rondel.workflows.task.state import State
from rondel.workflows.task.workflow import TaskWorkflow
from support import follow
from support.person import opens
from support.repos import GIT_ENV
from support.repos import git as git
from support.repos import repository as repository

REPORT = "## What was done\nIt.\n\n## Decisions\nOne.\n\n## Notes for future tasks\nMind the gap.\n"


def settle_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's own folders, empty, and a git that knows nobody's settings."""
    folders = {"HOME": "", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config"}
    for name, part in folders.items():
        monkeypatch.setenv(name, str(home / part))
    for name, value in GIT_ENV.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RONDEL_SANDBOX", raising=False)
    opens(home / "config", follow.base)


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


@dataclass
class Scripted(scripted.Scripted):
    """Reports as it should, unless a test says otherwise."""

    answer: scripted.Answer = lambda _: REPORT


def project(root: Path, agent: Scripted | None = None) -> Project:
    chosen = agent or Scripted()
    return Project(root, workflows={"task": TaskWorkflow()}, build=lambda _: chosen)


def session(root: Path, tasks: list[dict], topic: str = "The topic") -> SessionRef:
    """A session on disk with these tasks."""
    ref = files.create(root, topic)
    for one in tasks:
        (root / ref.folder / ".task" / f"{one['id']}.json").write_text(json.dumps(one, indent=2))
    return ref


def put_identity(root: Path, ref: SessionRef, name: str = "0123456789abcdef") -> None:
    """The session was begun here."""
    path = root / ref.folder / ".rondel/session.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"schema_version": 1, "id": name, "branch": "main", "base": None}))


def run(
    here: Project,
    ref: SessionRef,
    *,
    jobs: int = 4,
    checks: str = "",
    only: tuple[str, ...] = (),
    **more: object,
) -> Report:
    here.ask_for(ref, {"kind": "run", "target": "main", "checks": checks, "tasks": list(only), **more})
    return here.run(ref, agents_max=jobs)


def allow_all(root: Path, ref: SessionRef) -> None:
    found = waiting_in(files.state_of(root, ref).tasks.values(), frozenset())
    Project(root).trust.allow({one.digest: one.command for one in found})


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
