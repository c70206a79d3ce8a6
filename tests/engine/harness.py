"""A scratch repository and a session of the small workflow: what engine tests need."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from small import SmallWorkflow

from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.testing.kills import Trial
from rondel.testing.scripted import Scripted
from support.repos import printed_by_git
from support.repos import repository as repository

REF = SessionRef("small", "one", ".small/one")
git = printed_by_git


def project(root: Path, agent: Scripted | None = None) -> Project:
    chosen = agent or Scripted()
    return Project(root, workflows={"small": SmallWorkflow()}, build=lambda _: chosen)


def start(root: Path, **request: object) -> None:
    """A session of the small workflow, with what a person asked for."""
    folder = root / REF.folder / ".rondel"
    folder.mkdir(parents=True)
    body = {"width": 3, "rounds_max": 2, "auto": False, **request}
    (folder / "request-1.json").write_text(json.dumps(body))


class Rounds(Trial):
    """A person rejects the first round and approves the second."""

    def __init__(self, folder: Path) -> None:
        self.root = repository(folder / "repo")
        self.session = self.root / REF.folder
        start(self.root)

    def drive(self) -> int:
        here = project(self.root)
        while (code := here.run(REF).exit_code) == 3:
            for question in here.waiting(REF):
                here.decide(REF, "reject" if "round-1" in question.path else "approve", path=question.path)
        return code


def when(true: Callable[[], bool], do: Callable[[], object]) -> None:
    """Do something in a thread as soon as something is true."""

    def watch() -> None:
        while not true():
            time.sleep(0.02)
        do()

    threading.Thread(target=watch, daemon=True).start()
