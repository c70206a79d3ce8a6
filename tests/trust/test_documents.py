"""Documents of a stranger's repository that never end, or are no files: looking ends at once, and says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rondel.cli import hook
from rondel.project import Project

STATES = (
    "docs/features/001-x/.meta.json",
    "docs/features/001-x/spec.md",
    ".ocr/sessions/2026-01-01-x/rounds/round-1/round-meta.json",
    ".workflow/.cycle/cycle-v1-x.json",
    ".workflow/.cycle/cycle-v1-x.progress/.rondel/request-1.json",
    ".workflow/active/WFS-x/workflow-session.json",
    ".workflow/WFS-x/workflow-session.json",
    ".workflow/WFS-x/.rondel/session.json",
    ".aiwf/sessions/x/session.json",
)
KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "sparse": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40),
    "deep": lambda path: path.write_bytes(b'{"a":' * 200_000 + b"1" + b"}" * 200_000),
    "wide": lambda path: path.write_bytes(b"[" + b"[]," * 7_000_000 + b"[]]"),
}


@pytest.fixture
def _in_time():
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.mark.usefixtures("_in_time")
@pytest.mark.parametrize("kind", KINDS)
def test_looking_at_documents_that_never_end_takes_little_time_and_memory(repo, kind):
    for name in STATES:
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        KINDS[kind](repo / name)
    code = f"""
import resource
from pathlib import Path
from rondel.project import Project
from rondel.cli import hook
project = Project(Path({str(repo)!r}))
project.survey()
pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + 300_000_000, pages + 300_000_000))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
for ref in project.sessions():
    project.status(ref)
    project.artifacts(ref)
project.doctor()
hook.session_start({str(repo)!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.usefixtures("_in_time")
def test_a_hook_in_a_worktree_does_not_wait_for_a_pipe_of_the_main_checkout(repo, tmp_path, env):
    place = repo / "docs/features/001-x"
    place.mkdir(parents=True)
    subprocess.run(["git", "worktree", "add", "-q", tmp_path / "tree"], cwd=repo, env=env, check=True)
    (tmp_path / "tree/docs/features").mkdir(parents=True)
    os.mkfifo(place / ".meta.json")
    assert hook.session_start(str(tmp_path / "tree")) == ""


def test_a_repository_that_is_reached_through_a_link_is_as_any_other(repo, tmp_path, monkeypatch):
    place = repo / "docs/features/001-x"
    place.mkdir(parents=True)
    (place / ".meta.json").write_text('{"id": "001", "slug": "x", "status": "active", "phases": {}}')
    (tmp_path / "link").symlink_to(repo)
    monkeypatch.chdir(tmp_path / "link")
    for project in (Project(tmp_path / "link"), Project.find(tmp_path / "link"), Project.find(Path.cwd())):
        assert [ref.name for ref in project.sessions()] == ["feature:001-x"]
        assert project.root == repo
    assert "001-x" in hook.session_start(str(tmp_path / "link"))


def test_a_folder_of_sessions_that_is_a_link_holds_no_session(repo, tmp_path):
    place = tmp_path / "elsewhere/001-x"
    place.mkdir(parents=True)
    (place / ".meta.json").write_text('{"id": "001", "slug": "x", "status": "active", "phases": {}}')
    (repo / "docs").mkdir()
    (repo / "docs/features").symlink_to(place.parent)
    assert Project(repo).sessions() == []
    assert hook.session_start(str(repo)) == ""
