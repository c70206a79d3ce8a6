"""A scratch repository, and scripted reviewers: what the tests of the review need."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rondel.agents.base import Reply, Request
from rondel.engine.look import DiskReader
from rondel.engine.report import Report
from rondel.project import Project
from rondel.project.repository import now
from rondel.testing import kills
from rondel.testing.scripted import Answer, Scripted
from rondel.workflows.review import files
from rondel.workflows.review.read import ReviewState
from rondel.workflows.review.request import ResolvedOptions
from rondel.workflows.review.workflow import Review
from support import repos
from support.repos import commit as commit
from support.repos import git as git

APP = "def add(a, b):\n    return a + b\n"
CHANGED = "def add(a, b):\n    return a - b\n\n\ndef half(n):\n    return n / 0\n"


def repository(folder: Path) -> Path:
    return repos.repository(folder, {"app.py": APP})


def feature_branch(folder: Path) -> Path:
    """A repository with a change on the branch `feature`."""
    repository(folder)
    git(folder, "checkout", "-qb", "feature")
    commit(folder, {"app.py": CHANGED}, "subtract")
    return folder


def look(root: Path) -> DiskReader:
    return DiskReader(root, now, own_paths=Project(root)._repository.own_paths)


def finding(title: str, **fields: object) -> dict[str, object]:
    return {
        "title": title,
        "category": "should_fix",
        "severity": "medium",
        "file": "app.py",
        "line": 2,
        "problem": f"{title}, because of how it is written",
        "suggestion": "write it otherwise",
        "evidence": "return a - b",
        **fields,
    }


def review(*findings: dict[str, object], questions: str = "None.", **more: object) -> str:
    """A reviewer's answer."""
    body = json.dumps({"findings": list(findings), **more})
    return (
        "## Summary\n\nRead.\n\n## Findings\n\nSee below.\n\n## What works well\n\n- It is short.\n\n"
        f"## Questions\n\n{questions}\n\n```json\n{body}\n```\n"
    )


def panel(reviews: Answer, **others: Answer) -> Scripted:
    """A whole panel: what each reviewer answers, and everybody else something sensible."""

    def answer(request: Request) -> Reply | str:
        if "/reviews/" in request.action:
            return reviews(request)
        for part in ("discourse", "refute", "guidance", "synthesis"):
            if f"/{part}" in request.action:
                return others.get(part, STANDARD[part])(request)
        raise AssertionError(request.action)

    return Scripted(answer)


STANDARD: dict[str, Answer] = {
    "discourse": lambda _: '```json\n{"responses": []}\n```\n',
    "refute": lambda _: (
        '```json\n{"verdict": "stands", "reason": "tried", "evidence": "return a - b"}\n```\n'
    ),
    "guidance": lambda _: "Look at the sign.\n",
    "synthesis": lambda _: "A short change.\n",
}


def fake(_role: str) -> str:
    """The kind of every agent, where a test says nothing else."""
    return "fake"


def project_of(root: Path, agent: Scripted, kind_of: Callable[[str], str] = fake) -> Project:
    """A repository in which one agent has every role; for the workflow it is of these kinds."""
    project = Project(root, workflows={"review": Review()}, build=lambda _: agent)
    given = project._repository.given
    project._repository.given = lambda workflow: replace(given(workflow), kind_of=kind_of)
    return project


def open_review(root: Path, **options: object) -> files.Opened:
    return files.open_round(root, look(root), ResolvedOptions(**{"kind_of": fake, **options}))


def run_review(root: Path, agent: Scripted, **options: object) -> tuple[Report, ReviewState]:
    """Open a round, or resume one, and drive it to its end."""
    opened = open_review(root, **options)
    report = project_of(root, agent, options.get("kind_of", fake)).run(opened.ref, retry=opened.resumed)
    return report, files.state_of(root, opened.ref)


def content(root: Path) -> dict[str, bytes]:
    """Every file of every session that is state."""
    return kills.content(root / ".ocr/sessions")
