"""A scratch repository and a session of the small workflow: what engine tests need."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from small import SmallWorkflow

from rondel.api import Hall
from rondel.model.workflow import SessionRef
from support.scripted import Scripted

REF = SessionRef("small", "one", ".small/one")
GIT_ENV = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@localhost",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@localhost",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


def git(folder: Path, *args: str) -> str:
    env = {**os.environ, **GIT_ENV}
    return subprocess.run(
        ["git", *args], cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout


def repository(folder: Path, more: Mapping[str, str] | None = None) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in {"README.md": "scratch\n", **(more or {})}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def hall(root: Path, agent: Scripted | None = None) -> Hall:
    chosen = agent or Scripted()
    return Hall(root, workflows={"small": SmallWorkflow()}, build=lambda _: chosen)


def start(root: Path, **request: object) -> None:
    """A session of the small workflow, with what a person asked for."""
    folder = root / REF.folder / ".rondel"
    folder.mkdir(parents=True)
    body = {"width": 3, "rounds_max": 2, "auto": False, **request}
    (folder / "request-1.json").write_text(json.dumps(body))
