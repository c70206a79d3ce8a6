"""A session's runtime is the person's own: in their state folder, for one session in one checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from harness import REF
from test_sessions import begun, home, project, small_session_files

from rondel.agents.base import Reply, Request
from rondel.cli.common import summary_json
from rondel.errors import Held, NeedsConsent, RondelError
from rondel.model.outcomes import Ended
from rondel.project import Heartbeat
from rondel.sandbox import namespaces
from rondel.sandbox.box import Box, Confined, own_places, rules
from rondel.sandbox.places import is_below
from rondel.store.lease import Lease
from rondel.testing.scripted import Scripted, plain

__all__ = ["home"]
LAST = "round-1/notes/3.md"


@pytest.fixture(autouse=True)
def _person(monkeypatch):
    monkeypatch.delenv("RONDEL_TRUST", raising=False)


def fails_at(last: str = LAST) -> Scripted:
    """An agent that has answered everything but one."""

    def answer(request: Request) -> Reply | str:
        return Reply(Ended.FAILED, error="no") if request.action == last else plain(request)

    return Scripted(answer)


def kinds(run: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (run / "journal.jsonl").read_text().splitlines()]


def git(repo: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", *who, *words], cwd=repo, check=True, capture_output=True)


def test_the_runtime_is_in_the_state_folder_and_status_names_it(repo, home, tmp_path):
    here = begun(repo)
    assert here.run(REF).exit_code == 0
    run = here.runtime(REF)
    (place,) = (tmp_path / "state/rondel/repos").glob("*/sessions/*/*")
    assert run == place / ".rondel"
    assert {"lease", "journal.jsonl", "spool", "heartbeat.json", "report.json"} <= {
        p.name for p in run.iterdir()
    }
    there = {p.name for p in (repo / REF.folder / ".rondel").iterdir()}
    assert there == {".gitignore", "lock", "request-1.json", "session.json", "written.jsonl"}
    assert summary_json(here, REF, here.summary(REF))["runtime"] == str(run)


def test_a_moved_repository_keeps_it(repo, home, tmp_path):
    here = begun(repo, fails_at())
    assert here.run(REF).exit_code == 1
    before, moved = kinds(here.runtime(REF)), repo.rename(tmp_path / "moved")
    there = project(moved, second := Scripted())
    assert kinds(there.runtime(REF)) == before
    assert there.run(REF, retry=True).exit_code == 0
    assert second.actions == [LAST, "final.md"]


def test_a_copy_of_the_repository_has_its_own(repo, home, tmp_path):
    here = begun(repo, fails_at())
    assert here.run(REF).exit_code == 1
    copy = shutil.copytree(repo, tmp_path / "copy")
    there = project(copy, second := Scripted())
    assert there.is_recorded(REF), "its id is the same"
    assert there.runtime(REF) != here.runtime(REF)
    assert there.run(REF).exit_code == 0, "nobody's attempts but its own count"
    assert second.actions == [LAST, "final.md"]
    assert "finished" in kinds(there.runtime(REF))
    assert here.summary(REF).status.value == "failed", "the other one is as it was"


def test_two_worktrees_share_what_is_known_and_no_runtime(repo, home, tmp_path):
    other = tmp_path / "other"
    git(repo, "worktree", "add", "-q", str(other))
    here, there = begun(repo, fails_at()), begun(other, fails_at())
    assert here.runtime(REF) != there.runtime(REF)
    assert here.is_recorded(REF)
    assert there.is_recorded(REF), "another session of the same name"
    with here.hold(REF), there.hold(REF):
        pass
    git(other, "add", "-f", REF.folder)
    git(other, "commit", "-qm", "session")
    third = tmp_path / "third"
    git(other, "worktree", "add", "-q", "--detach", str(third))
    assert project(third).is_recorded(REF), "a branch brought it"
    assert project(third, second := Scripted()).run(REF).exit_code == 0
    assert LAST in second.actions
    moved = tmp_path / "moved"
    git(repo, "worktree", "move", str(other), str(moved))
    assert project(moved).runtime(REF) == there.runtime(REF)


def test_a_session_that_is_begun_anew_under_the_same_name_finds_nothing_of_the_last(repo, home):
    assert begun(repo).run(REF).exit_code == 0
    shutil.rmtree(repo / REF.folder)
    again = begun(repo, second := Scripted())
    assert not (again.runtime(REF) / "journal.jsonl").exists()
    assert not (again.runtime(REF) / "spool").exists()
    assert again.run(REF).exit_code == 0
    assert len(second.actions) == 4


def test_without_a_claim_it_is_the_same(repo, home):
    assert begun(repo).run(REF).exit_code == 0
    shutil.rmtree(repo / REF.folder)
    here = project(repo, second := Scripted())
    small_session_files(repo)
    here.begin(REF, new=True)
    assert here.run(REF).exit_code == 0
    assert len(second.actions) == 4


def test_what_is_driven_is_not_begun_anew(repo, home):
    here = begun(repo)
    with here.hold(REF):
        shutil.rmtree(repo / REF.folder)
        with pytest.raises(Held):
            project(repo).claim(REF)
        small_session_files(repo)
        with pytest.raises(Held):
            project(repo).begin(REF, new=True)


def test_a_copied_session_has_its_own(repo, home):
    here = begun(repo, fails_at())
    assert here.run(REF).exit_code == 1
    other = replace(REF, id="two", folder=f"{REF.folder.rpartition('/')[0]}/two")
    shutil.copytree(repo / REF.folder, repo / other.folder)
    assert here.runtime(other) != here.runtime(REF)
    assert not here.is_recorded(other)
    assert here.summary(other).is_foreign
    assert here.heartbeat(other) == Heartbeat()


def test_a_renamed_session_is_adopted_and_pays_only_for_what_was_under_way(repo, home):
    assert begun(repo, fails_at()).run(REF).exit_code == 1
    other = replace(REF, id="two", folder=f"{REF.folder.rpartition('/')[0]}/two")
    (repo / REF.folder).rename(repo / other.folder)
    here = project(repo, second := Scripted())
    with pytest.raises(NeedsConsent):
        here.run(other)
    here.adopt(other)
    assert here.run(other).exit_code == 0
    assert second.actions == [LAST, "final.md"]


def test_where_the_state_folder_is_gone_only_what_was_under_way_is_paid_for_again(repo, home, tmp_path):
    assert begun(repo, fails_at()).run(REF).exit_code == 1
    shutil.rmtree(tmp_path / "state")
    here = project(repo, second := Scripted())
    with pytest.raises(NeedsConsent):
        here.run(REF)
    here.adopt(REF)
    assert here.run(REF).exit_code == 0
    assert second.actions == [LAST, "final.md"]


def test_what_version_0_1_left_in_the_folder_is_neither_read_nor_removed(repo, home, tmp_path):
    begun(repo).run(REF)
    old = shutil.copytree(project(repo).runtime(REF), repo / REF.folder / ".rondel/run")
    shutil.rmtree(tmp_path / "state")
    left = {p: p.read_bytes() for p in old.rglob("*") if p.is_file()}
    (repo / REF.folder / "final.md").unlink()
    here = project(repo, second := Scripted())
    assert any(line.endswith(".rondel/run") for line in here.claims(REF))
    here.adopt(REF)
    assert here.run(REF).exit_code == 0
    assert second.actions == ["final.md"]
    assert {p: p.read_bytes() for p in old.rglob("*") if p.is_file()} == left


def test_a_folder_without_git_has_one_too(repo, home):
    shutil.rmtree(repo / ".git")
    here = begun(repo)
    assert here.runtime(REF).parents[3].name.startswith("path-")
    with here.hold(REF):
        assert (here.runtime(REF) / "lease").is_file()


def test_a_state_folder_that_cannot_be_written_is_named(repo, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(RondelError, match="XDG_STATE_HOME"):
        begun(repo)


def test_the_sandbox_opens_nothing_of_it(repo, home, tmp_path):
    here = begun(repo)
    here.run(REF)
    run, cwd = here.runtime(REF), tmp_path / "work"
    cwd.mkdir()
    box = Box(hidden=(str(repo), *own_places()))
    argv = ("sh", "-c", f"cat {run}/journal.jsonl")
    for rule in rules(Confined(box, writes=True), argv, str(cwd), dict(os.environ), str(cwd)):
        assert not is_below(str(run), rule.path), rule


def test_the_doctor_removes_runtimes_of_sessions_that_are_gone(repo, home):
    here = begun(repo)
    here.run(REF)
    run = here.runtime(REF)
    kept = repo / REF.folder
    assert here.doctor() == []
    for one in run.iterdir():
        os.utime(one, (0, 0))
    assert here.doctor() == [], "its folder is there"
    gone = kept.rename(repo / "elsewhere")
    with Lease.take(run, "small:one"):
        assert here.doctor() == [], "somebody drives it"
    os.utime(run / "lease", (0, 0))
    for one in run.iterdir():
        os.utime(one, (0, 0))
    ((_, problem),) = here.doctor()
    assert (problem.rule, problem.repaired) == ("runtime-left", False)
    assert (run / "journal.jsonl").is_file(), "who only looks removes nothing"
    ((_, problem),) = here.doctor(repair=True)
    assert problem.repaired
    assert not (run / "journal.jsonl").exists()
    assert here.doctor() == []
    gone.rename(kept)
    assert here.is_recorded(REF), "what is known of it stays"


def test_what_somebody_else_drives_is_shown_as_running_and_not_adopted(repo, home, tmp_path, monkeypatch):
    with begun(repo).hold(REF):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
        here = project(repo)
        assert here.summary(REF).is_foreign
        assert here.summary(REF).status.value == "running"
        with pytest.raises(Held, match=f"process {os.getpid()}"):
            here.adopt(REF)
    assert here.summary(REF).status.value != "running"
    here.adopt(REF)
    assert here.run(REF).exit_code == 0


def age(run: Path) -> None:
    for one in (*run.iterdir(), run):
        os.utime(one, (0, 0))


@pytest.mark.parametrize("how", ["git", "by hand"])
def test_the_doctor_keeps_the_runtime_of_a_worktree_that_was_moved(repo, home, tmp_path, how):
    other, moved = tmp_path / "other", tmp_path / "moved"
    git(repo, "worktree", "add", "-q", str(other))
    begun(other, fails_at()).run(REF)
    run = project(other).runtime(REF)
    if how == "git":
        git(repo, "worktree", "move", str(other), str(moved))
    else:
        other.rename(moved)  # git says where it was
    age(run)
    assert project(repo).doctor(repair=True) == []
    assert (run / "journal.jsonl").is_file()
    shutil.rmtree(moved / REF.folder)
    if how == "git":
        git(repo, "worktree", "remove", "--force", str(moved))
        ((_, problem),) = project(repo).doctor(repair=True)
        assert (problem.rule, problem.repaired) == ("runtime-left", True)


@pytest.mark.parametrize("bare", [False, True])
def test_the_doctor_keeps_the_runtime_of_a_main_checkout_that_was_moved(repo, home, tmp_path, bare):
    begun(repo, fails_at()).run(REF)
    run, other = project(repo).runtime(REF), tmp_path / "other"
    git(repo, "worktree", "add", "-q", str(other))
    moved = repo.rename(tmp_path / "moved")
    if bare:  # its git folder is not in it
        shutil.move(moved / ".git", tmp_path / "apart")
        (moved / ".git").write_text(f"gitdir: {tmp_path / 'apart'}\n")
    git(moved, "worktree", "repair", str(other))
    age(run)
    assert project(other).doctor(repair=True) == []
    assert (run / "journal.jsonl").is_file()
    if not bare:
        shutil.rmtree(moved / REF.folder)
        assert [p.rule for _, p in project(other).doctor()] == ["runtime-left"]


@pytest.mark.parametrize("value", ["state", "./state", "../state", "~/state", ""])
def test_a_state_folder_that_is_no_absolute_path_is_ignored(repo, tmp_path, monkeypatch, value):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", value)
    monkeypatch.chdir(repo)
    here = begun(repo)
    assert here.run(REF).exit_code == 0
    assert (tmp_path / "home") in here.runtime(REF).parents
    assert not {repo / "state", repo.parent / "state", repo / "~"} & {*repo.iterdir(), *repo.parent.iterdir()}


TWO_FILE_SYSTEMS = """
mount -t tmpfs one "$1" && mount -t tmpfs two "$2" && git init -q "$1/repo" && git init -q "$2/repo" &&
exec "$3" -c "
import sys
from pathlib import Path
from rondel.trust.consents import checkout
one, two = (Path(place, 'repo') for place in sys.argv[1:])
print((one / '.git').stat().st_ino == (two / '.git').stat().st_ino, checkout(one) == checkout(two))
" "$1" "$2"
"""


@pytest.mark.skipif(bool(namespaces.missing()), reason=f"no namespaces here: {namespaces.missing()}")
def test_a_copy_with_the_same_inode_on_another_file_system_is_another_checkout(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    words = ["unshare", "-Urm", "sh", "-c", TWO_FILE_SYSTEMS, "sh", tmp_path / "one", tmp_path / "two"]
    done = subprocess.run([*words, sys.executable], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"
