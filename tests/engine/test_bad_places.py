"""Bad places: a full disk, a read-only one, a folder that leads out. Nothing is lost or half written."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from harness import REF, git, project, repository, start
from small import SmallWorkflow

from rondel.agents.base import Request
from rondel.engine.report import Stopped
from rondel.errors import MachineTrouble, UnsafePath
from rondel.project import Project
from rondel.testing.kills import content
from rondel.testing.scripted import Scripted, paid


@contextmanager
def mounted(folder: Path, options: str):
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"NOT RUN: a small file system cannot be mounted here: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_names_the_file_and_the_paid_answer_is_kept(tmp_path):
    with mounted(tmp_path / "disk", "size=2m") as disk:
        root = repository(disk / "repo")
        start(root, auto=True, width=2)
        filler = disk / "filler"

        def answer(request: Request) -> str:
            text = f"An answer to {request.action}. " * 200
            if request.action.endswith("/1.md"):
                fill(filler)
            return text + "\n"

        agent = Scripted(answer)
        report = project(root, agent).run(REF)
        assert report.stopped is Stopped.MACHINE
        assert report.exit_code == 6
        assert "space" in report.message
        assert str(root) in report.message, "the file is named"
        for path, data in content(root / REF.folder).items():
            if path.endswith(".json"):
                json.loads(data)
            assert "notes" not in path or data == f"An answer to {path}. ".encode() * 200 + b"\n"
        filler.unlink()
        assert project(root, Scripted()).run(REF).exit_code == 0
        assert set(paid(root / REF.folder).values()) == {1}, "no answer is paid for twice"


def fill(path: Path) -> None:
    """Write until nothing more fits."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    for size in (65536, 4096, 512, 1):
        with suppress(OSError):
            while True:
                os.write(fd, b"x" * size)
    os.close(fd)


def test_a_read_only_disk_changes_nothing_and_says_so(tmp_path):
    with mounted(tmp_path / "disk", "size=4m") as disk:
        root = repository(disk / "repo")
        start(root, auto=True)
        before = content(root / REF.folder)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        agent = Scripted()
        with pytest.raises(MachineTrouble) as e:
            project(root, agent).run(REF)
        assert "read-only" in str(e.value).lower()
        assert agent.seen == [], "nothing is asked when the answer could not be kept"
        assert content(root / REF.folder) == before


def test_a_session_folder_that_leads_out_of_the_repository_is_refused(tmp_path):
    root = repository(tmp_path / "repo")
    outside = tmp_path / "outside"
    start(tmp_path / "other", auto=True)
    (tmp_path / "other" / REF.folder).rename(outside)
    (root / ".small").mkdir()
    (root / REF.folder).symlink_to(outside)
    before = sorted(p.name for p in outside.iterdir())
    with pytest.raises(UnsafePath, match="one"):
        project(root).run(REF)
    assert sorted(p.name for p in outside.iterdir()) == before


@pytest.mark.parametrize("name", [".rondel", ".rondel/manual"])
def test_nothing_of_ours_is_written_through_a_link_out_of_the_session(tmp_path, name):
    root = repository(tmp_path / "repo")
    (root / "rondel.toml").write_text('[roles]\ndefault = "manual"\n')
    start(root, auto=True)
    place, outside = root / REF.folder / name, tmp_path / "outside"
    if place.exists():
        place.rename(outside)
    else:
        outside.mkdir()
    place.symlink_to(outside)
    before = sorted(outside.rglob("*"))
    there = Project(root, workflows={"small": SmallWorkflow()})
    there.pause(REF)
    there.run(REF)
    assert sorted(outside.rglob("*")) == before
    (aside,) = (root / REF.folder / ".rondel/aside").iterdir()
    assert aside.readlink() == outside


def test_links_are_no_files_wherever_they_lead(tmp_path):
    root = repository(tmp_path / "repo")
    start(root, auto=True)
    folder = root / REF.folder
    for name, other in (("a", "b"), ("b", "a")):
        (folder / name).mkdir()
        (folder / name / "x.md").write_text("x\n")
        (folder / name / "link").symlink_to(f"../{other}")
    (folder / "y.md").symlink_to("a/x.md")
    assert project(root).artifacts(REF) == [".rondel/request-1.json", "a/x.md", "b/x.md"]


def test_a_repository_without_commits_is_told_so_when_an_agent_would_edit_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    start(root, auto=True, width=1, edits=True, branch="main")
    report = project(root).run(REF)
    assert report.exit_code == 1
    assert "commit" in report.message


def test_a_detached_head_is_no_trouble(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = repository(tmp_path / "repo")
    git(root, "checkout", "-q", "--detach")
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")
    assert project(root).run(REF).exit_code == 0


@pytest.mark.parametrize(
    "name", ["with space", "quo'te\"s", "new\nline", "日本語", "ünïcödé", "-dash", "a$b`c"]
)
def test_any_folder_name_will_do_for_a_repository(tmp_path, name, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = repository(tmp_path / name)
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")

    def write(request: Request) -> str:
        if "notes" in request.action:
            (request.cwd / f"{name}.txt").write_text("x\n")
        return "Done.\n"

    assert project(root, Scripted(write)).run(REF).exit_code == 0
    assert len(git(root, "log", "--format=%h", "work").split()) == 2
