"""A branch that is checked out moves with its files, or nothing has happened, whatever kills git."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_workspaces import SESSION, add, committed, edit, git, make_repo

from rondel.errors import GitError
from rondel.repo.checkout import Checkout, Move
from rondel.repo.workspaces import Commit, Workspaces
from rondel.testing.faults import in_child

FILES = 8


@pytest.fixture(autouse=True)
def _own_git_settings(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    settings = tmp_path / "gitconfig"  # a filter counts that is the person's own
    settings.write_text('[filter "cut"]\n\trequired = false\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))


@pytest.fixture
def repo(tmp_path):
    old = {f"old/{n:02}.txt": f"{n}\n" for n in range(FILES)}
    kept = {f"kept/{n:02}.txt": f"{n}\n" for n in range(FILES)}
    return make_repo(tmp_path / "repo", {**old, **kept, ".gitattributes": "*.txt filter=cut\n"})


KILL = """\
if [ -e {folder}/armed ] && [ "$(pwd -P)" = {root} ]; then
  echo x >> {folder}/armed
  if [ "$(wc -l < {folder}/armed)" -gt {number} ]; then
    p=$PPID
    while read -r name < /proc/$p/comm && [ "$name" != git ]; do
      read -r _ _ _ p _ < /proc/$p/stat
    done
    read -r _ _ _ script _ < /proc/$p/stat
    read -r _ _ _ driver _ < /proc/$script/stat
    rm {folder}/armed
    kill -9 {also}$p
  fi
fi
exec cat
"""


def cut(repo: Path, number: int, also: str = "") -> None:
    """The next git that writes files in the person's own tree is killed at that file."""
    folder = repo.parent
    text = KILL.format(folder=folder, root=shlex.quote(str(repo.resolve())), number=number, also=also)
    (folder / "cut.sh").write_text(text)
    (folder / "armed").write_text("")
    git(repo, "config", "--global", "filter.cut.smudge", f"sh {folder}/cut.sh")


def large_edit(spaces: Workspaces) -> tuple[Path, Commit]:
    """Changes files, adds some and removes some."""
    path, _ = committed(spaces, "none", {"x": "x"})
    shutil.rmtree(path / "old")
    files = {f"kept/{n:02}.txt": f"new {n}\n" for n in range(FILES)}
    files |= {f"added/{n:02}.txt": f"{n}\n" for n in range(FILES)}
    for name, text in files.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text)
    commit = spaces.commit(path, SESSION, "large", "large")
    assert isinstance(commit, Commit)
    return path, commit


def assert_whole(repo: Path, commit: str) -> None:
    """The tree, the index and the branch are at a commit, and nothing of ours is left."""
    assert git(repo, "rev-parse", "main") == commit
    assert git(repo, "status", "--porcelain", "-uall") == ""
    assert [p.name for p in (repo / ".git").iterdir() if "rondel-m" in p.name and p.suffix != ".lock"] == []
    assert not (repo / ".git/index.lock").exists()
    assert [
        p for p in repo.rglob("*") if p.is_dir() and not list(p.iterdir()) and ".git" not in p.parts
    ] == []


@pytest.mark.parametrize("number", [0, 3, FILES + 5])
def test_a_git_that_is_killed_in_the_persons_tree_leaves_it_as_it_was(number, repo, tmp_path):
    spaces = Workspaces(repo, tmp_path / "spaces")
    before = git(repo, "rev-parse", "main")
    path, commit = large_edit(spaces)
    cut(repo, number)
    with pytest.raises(GitError):
        spaces.integrate(path, "main")
    assert not (tmp_path / "armed").exists(), "git was killed inside"
    assert_whole(repo, before)
    assert spaces.integrate(path, "main") == Commit(commit.id, commit.changed, "main")
    assert_whole(repo, commit.id)


def cut_with_driver(repo: Path, spaces: Workspaces, path: Path, number: int) -> None:
    """Git and the driver that started it die together: nobody is left to put anything right."""
    cut(repo, number, also="$driver $script ")
    assert in_child(lambda: spaces.integrate(path, "main")) == -signal.SIGKILL
    assert (repo / ".git/index.lock").exists()
    assert git(repo, "status", "--porcelain") != ""


@pytest.mark.parametrize("number", [0, FILES + 5])
def test_killed_together_with_its_driver_the_next_one_goes_on_as_if_nothing_had_happened(
    number, repo, tmp_path
):
    spaces = Workspaces(repo, tmp_path / "spaces")
    path, commit = large_edit(spaces)
    cut_with_driver(repo, spaces, path, number)
    assert spaces.integrate(path, "main") == Commit(commit.id, commit.changed, "main")
    assert_whole(repo, commit.id)


def test_a_run_that_moves_nothing_puts_the_tree_right_too(repo, tmp_path):
    spaces = Workspaces(repo, tmp_path / "spaces")
    before = git(repo, "rev-parse", "main")
    path, _ = large_edit(spaces)
    cut_with_driver(repo, spaces, path, FILES)
    [done] = spaces.restore()
    assert str(repo) in done.words
    assert_whole(repo, before)
    assert spaces.restore() == []


def test_what_a_person_wrote_after_the_kill_stays(repo, tmp_path):
    spaces = Workspaces(repo, tmp_path / "spaces")
    path, commit = large_edit(spaces)
    cut_with_driver(repo, spaces, path, FILES + 5)
    theirs = {"kept/03.txt": "mine\n", "added/07.txt": "mine too\n", "old/01.txt": "and mine\n"}
    for name, text in theirs.items():
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text(text)
    (repo / "old/mine").mkdir()
    (repo / "old/mine/x.txt").write_text("in the folder\n")
    [done] = spaces.restore()
    assert done.kept == tuple(sorted(theirs))
    changed = git(repo, "status", "--porcelain", "-uall").split()
    assert sorted(changed[1::2]) == sorted([*theirs, "old/mine/x.txt"])
    with pytest.raises(GitError, match=r"(?s)kept/03\.txt.*old/01\.txt.*added/07\.txt") as refused:
        spaces.integrate(path, "main")
    assert {name: (repo / name).read_text() for name in theirs} == theirs
    subprocess.run(str(refused.value).rpartition("go on: ")[2], shell=True, check=True)
    assert spaces.integrate(path, "main") == Commit(commit.id, commit.changed, "main")
    assert (repo / "old/mine/x.txt").read_text() == "in the folder\n"
    stashed = git(repo, "show", "stash@{0}:kept/03.txt") + git(repo, "show", "stash@{0}^3:added/07.txt")
    assert stashed == "minemine too"


def test_a_person_who_puts_the_tree_right_themselves_is_left_alone(repo, tmp_path):
    """They removed the lock, as git says, threw everything away, and went to another branch."""
    spaces = Workspaces(repo, tmp_path / "spaces")
    path, commit = large_edit(spaces)
    cut_with_driver(repo, spaces, path, FILES + 5)
    (repo / ".git/index.lock").unlink()
    git(repo, "reset", "--quiet", "--hard")
    git(repo, "switch", "--quiet", "-c", "elsewhere")
    other = add(repo, {"kept/01.txt": "elsewhere\n"}, "on another branch")
    (repo / "kept/02.txt").write_text("not committed\n")
    spaces.restore()
    assert git(repo, "rev-parse", "HEAD") == other
    assert git(repo, "status", "--porcelain", "-uall") == "M kept/02.txt"
    git(repo, "stash", "--quiet")
    git(repo, "switch", "--quiet", "main")
    assert spaces.integrate(path, "main") == Commit(commit.id, commit.changed, "main")
    assert_whole(repo, commit.id)


@pytest.mark.parametrize("what", ["ignored", "untracked", "folder", "changed", "staged"])
def test_what_is_in_the_way_is_named_with_a_command_that_puts_it_aside(what, tmp_path):
    repo = make_repo(tmp_path / "repo")
    spaces = Workspaces(repo, tmp_path / "spaces")
    files = {
        "ignored": {"build/out.log": "theirs\n"},
        "untracked": {"it's new.txt": "theirs\n"},
        "folder": {"place/inside.txt": "theirs\n"},
        "changed": {"a.txt": "theirs\n"},
        "staged": {"a.txt": "theirs\n", "b.txt": "theirs\n"},
    }[what]
    edit = {"place": "ours\n"} if what == "folder" else dict.fromkeys(files, "ours\n")
    path = spaces.write(SESSION, "act", "main")
    for name, text in edit.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    git(path, "add", "--all", "--force")
    git(path, "commit", "--quiet", "-m", "the agent's own")
    assert isinstance(spaces.commit(path, SESSION, "act", "act"), Commit)
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    (repo / "session.md").write_text("of no concern\n")
    if what == "staged":
        git(repo, "add", "a.txt", "b.txt")
    before = git(repo, "status", "--porcelain", "-uall")
    with pytest.raises(GitError, match=r"(?s)'main' is checked out in ") as refused:
        spaces.integrate(path, "main")
    assert {name: (repo / name).read_text() for name in files} == files
    assert git(repo, "status", "--porcelain", "-uall") == before
    subprocess.run(str(refused.value).rpartition("go on: ")[2], shell=True, check=True)
    assert isinstance(spaces.integrate(path, "main"), Commit)
    assert {name: (repo / name).read_text() for name in edit} == edit
    assert (repo / "session.md").read_text() == "of no concern\n"


def test_a_lock_of_the_persons_own_git_is_not_ours_to_remove(repo, tmp_path, monkeypatch):
    monkeypatch.setattr("rondel.repo.checkout.BUSY_S", 0.2)
    spaces = Workspaces(repo, tmp_path / "spaces")
    path, _ = large_edit(spaces)
    cut_with_driver(repo, spaces, path, FILES + 5)
    (repo / ".git/index.lock").unlink()
    (repo / ".git/index.lock").write_bytes(b"")  # they removed ours, and their own git is at work
    with pytest.raises(GitError, match=r"another git works in .*rm .*index\.lock"):
        spaces.restore()
    (repo / ".git/index.lock").unlink()
    assert len(spaces.restore()) == 1


BEFORE = {"kept": "old content\n", "removed": "was there\n"}
AFTER = {"kept": "new content\n", "added": "is new\n"}
STATES = st.fixed_dictionaries(
    dict.fromkeys(
        [f"{kind}/{n}" for kind in ("kept", "removed", "added") for n in range(2)],
        st.sampled_from(("before", "after", "missing", "cut", "theirs")),
    )
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=STATES, moved=st.booleans(), locked=st.booleans())
def test_whatever_a_death_leaves_each_path_is_what_head_says_or_what_a_person_wrote(
    states, moved, locked, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("restored")
    both = [{name: texts[name[:-2]] for name in states if name[:-2] in texts} for texts in (BEFORE, AFTER)]
    repo = make_repo(folder / "repo", {**both[0], "other.txt": "other\n"})
    before = git(repo, "rev-parse", "HEAD")
    spaces = Workspaces(repo, folder / "spaces")
    path = edit(spaces, "act", both[1])
    shutil.rmtree(path / "removed")
    commit = spaces.commit(path, SESSION, "act", "act")
    assert isinstance(commit, Commit)
    here = Checkout.at(repo)
    here.note(Move("refs/heads/main", before, commit.id))
    if moved:
        git(repo, "update-ref", "refs/heads/main", commit.id)
    if locked:
        here._lock()
    for name, state in states.items():
        whole = both[1].get(name, both[0].get(name, ""))
        text = {"before": both[0].get(name), "after": both[1].get(name), "cut": whole[:4], "theirs": "mine"}
        put(repo / name, text.get(state))
    [done] = spaces.restore()
    theirs = {name for name, state in states.items() if state == "theirs"}
    assert set(done.kept) == theirs
    for name in states:
        wanted = "mine" if name in theirs else both[moved].get(name)
        assert (repo / name).read_text() if wanted else not (repo / name).exists(), name
        assert not wanted or (repo / name).read_text() == wanted
    changed = git(repo, "status", "--porcelain", "-uall").split()
    assert set(changed[1::2]) == theirs
    assert not here.is_cut


def put(path: Path, text: str | None) -> None:
    path.unlink(missing_ok=True)
    if text is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
