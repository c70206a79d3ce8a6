"""A scratch repository, a session of `generate`, and an agent that answers like a good engineer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from generate_java import FILES
from harness import git, repository

from rondel.agents.base import Reply, Request
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.testing.scripted import Scripted
from rondel.workflows.generate.files import GenerateOptions, create
from rondel.workflows.generate.read import State
from rondel.workflows.generate.workflow import Generate

PASS = "@@@REVIEW_META\nverdict: PASS\nissues_total: 0\nissues_critical: 0\nmissing_inputs: 0\n@@@\n"
FAIL = "@@@REVIEW_META\nverdict: FAIL\nissues_total: 1\nissues_critical: 0\nmissing_inputs: 0\n@@@\n"
FULL = {
    "entity": "Product",
    "table": "app.products",
    "bounded_context": "catalog",
    "scope": "full",
    "schema_file": "schema.sql",
}
SCHEMA = "create table app.products (id bigint primary key, tenant_id bigint not null, name text not null);\n"
AT = datetime(2026, 11, 15, 10, tzinfo=UTC)


def blocks(files: Mapping[str, str]) -> str:
    return "\n\n".join(f"```java\n// {path}\n{text}```" for path, text in files.items()) + "\n"


def place(request: Request) -> tuple[str, int, str]:
    """The cycle, the iteration and the phase of a request, from the file it leaves."""
    found = re.fullmatch(r"(\w+)/iteration-(\d+)/responses/(\w+)-response\.md", request.action)
    assert found, request.action
    return found[1], int(found[2]), found[3]


def engineer(request: Request) -> str | Reply:
    """Plans, writes the catalogue, fails the first review of the service and passes all others."""
    kind, iteration, phase = place(request)
    if phase == "planning":
        return f"# Plan of {kind}\n\nWrite {', '.join(FILES[kind])}.\n"
    if phase == "review":
        fails = kind == "service" and iteration == 1
        return (
            f"# Review of {kind}\n\n{'SVC-1 is broken.' if fails else 'Good.'}\n\n{FAIL if fails else PASS}"
        )
    return f"# Code of {kind}, iteration {iteration}\n\n{blocks(FILES[kind])}"


def project(root: Path, agent: Scripted) -> Project:
    return Project(root, workflows={"generate": Generate()}, build=lambda _: agent)


def repo(folder: Path) -> Path:
    root = repository(folder)
    (root / "schema.sql").write_text(SCHEMA)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "schema")
    return root


def begin(
    root: Path, *, profile: str = "jpa-mt", context: Mapping[str, object] = FULL, **wish: object
) -> SessionRef:
    """A session; without other words every gate is open."""
    given = {"with_tests": True, "request": {"auto": True}, **wish}
    request = given.pop("request")
    here = Project(root, workflows={"generate": Generate()})
    return create(
        root,
        GenerateOptions(profile, context, **given),
        at=AT,
        admits=lambda _: True,
        ask=here.ask,
        request=request,
    )


class Scene:
    """One repository, one session, one agent."""

    def __init__(
        self,
        folder: Path,
        answer: Callable[[Request], Reply | str] = engineer,
        *,
        context: Mapping[str, object] = FULL,
        **wish: object,
    ) -> None:
        self.root = repo(folder)
        self.agent = Scripted(answer)
        self.project = project(self.root, self.agent)
        self.ref = begin(self.root, context=context, **wish)
        self.folder = self.root / self.ref.folder

    def drive(self, **options: object):
        return self.project.run(self.ref, **options)

    def change(self, changes) -> None:
        self.project.change(self.ref, changes)

    def decide(self, answer: str, comment: str = "") -> int:
        """Answer the one question there is, and go on."""
        self.project.decide(self.ref, answer, comment=comment)
        return self.drive().exit_code

    @property
    def state(self) -> State:
        return self.project.state(self.ref)

    @property
    def document(self) -> dict:
        return json.loads((self.folder / "session.json").read_text())

    def cycle(self, name: str) -> dict:
        return next(c for c in self.document["cycles"] if c["type"] == name)

    def text(self, path: str) -> str:
        return (self.folder / path).read_text()

    @property
    def asked(self) -> list[str]:
        return self.agent.actions

    def prompt_of(self, path: str) -> str:
        return next(r.prompt for r in self.agent.seen if r.action == path)
