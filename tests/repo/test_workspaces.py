"""Workspaces in real repositories."""

import os
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from rondel.errors import GitError, RondelError
from rondel.processes.shell import Ran
from rondel.repo.edits import branch_of
from rondel.repo.workspaces import ChecksFailed, Commit, Conflict, Unusable, Workspaces
from support.children import wait_until

SESSION = "cycle:v1-2026"


@pytest.fixture(autouse=True)
def _own_git_settings(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


def git(folder: Path, *args: str) -> str:
    who = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
    done = subprocess.run(["git", *who, *args], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repo(path: Path, files: dict[str, str] | None = None) -> Path:
    path.mkdir(parents=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    add(path, files or {"a.txt": "one\n", ".gitignore": "*.log\nbuild/\n"}, "start")
    return path


def add(folder: Path, files: dict[str, str], message: str) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "repo")


@pytest.fixture
def spaces(repo, tmp_path):
    return Workspaces(repo, tmp_path / "spaces")


def edit(spaces: Workspaces, action: str, files: dict[str, str], base: str = "main") -> Path:
    path = spaces.write(SESSION, action, base)
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def committed(
    spaces: Workspaces, action: str, files: dict[str, str], base: str = "main"
) -> tuple[Path, Commit]:
    path = edit(spaces, action, files, base)
    commit = spaces.commit(path, SESSION, action, f"Edit for {action}")
    assert commit is not None
    return path, commit


# -- reading ----------------------------------------------------------------------------


def test_readers_of_one_commit_share_a_read_only_checkout(repo, spaces):
    path = spaces.read("main")
    assert spaces.read(git(repo, "rev-parse", "HEAD")) == path
    assert (path / "a.txt").read_text() == "one\n"
    assert (path / "a.txt").stat().st_mode & 0o222 == 0
    assert path.stat().st_mode & 0o222 == 0
    assert git(path, "log", "--format=%s") == "start"


def test_a_checkout_stays_at_its_commit_when_the_branch_moves(repo, spaces):
    path = spaces.read("main")
    add(repo, {"a.txt": "two\n"}, "next")
    assert (path / "a.txt").read_text() == "one\n"
    assert spaces.read("main") != path


def test_a_checkout_that_somebody_dirtied_is_put_right(repo, spaces):
    path = spaces.read("main")
    path.chmod(0o755)
    (path / "a.txt").chmod(0o644)
    (path / "a.txt").write_text("dirt")
    (path / "new.txt").write_text("dirt")
    git(path, "commit", "--quiet", "--all", "-m", "oops")
    assert spaces.read("main~0") == path
    assert (path / "a.txt").read_text() == "one\n"
    assert not (path / "new.txt").exists()
    assert (path / "a.txt").stat().st_mode & 0o222 == 0


def test_a_link_out_of_a_checkout_does_not_change_what_it_leads_to(repo, spaces, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("x")
    outside.chmod(0o644)
    (repo / "link").symlink_to(outside)
    add(repo, {}, "a link")
    spaces.read("main")
    assert outside.stat().st_mode & 0o777 == 0o644


# -- writing ----------------------------------------------------------------------------


def test_each_action_has_a_worktree_of_its_own_at_its_base(repo, spaces):
    base = git(repo, "rev-parse", "HEAD")
    add(repo, {"a.txt": "two\n"}, "next")
    one, two = spaces.write(SESSION, "a.md", base), spaces.write(SESSION, "b.md", "main")
    assert one != two
    assert (one / "a.txt").read_text() == "one\n"
    assert (two / "a.txt").read_text() == "two\n"


def test_the_person_s_tree_and_branches_are_untouched(repo, spaces):
    (repo / "a.txt").write_text("mine, not committed")
    before = (git(repo, "status", "--porcelain"), git(repo, "branch", "--list"))
    committed(spaces, "x.md", {"b.txt": "b"})
    assert git(repo, "status", "--porcelain") == before[0]
    assert git(repo, "branch", "--list", "main") == before[1]


def test_the_set_up_runs_once_and_leaves_nothing_in_the_edit(repo, spaces):
    setup = "mkdir -p 'deps [1]' && echo x >'deps [1]/lib' && echo $$ >>built.log && echo changed >a.txt"
    path = spaces.write(SESSION, "x.md", "main", setup=setup)
    assert (path / "deps [1]" / "lib").exists()
    assert (path / "a.txt").read_text() == "one\n"
    assert spaces.write(SESSION, "x.md", "main", setup=setup) == path
    assert len((path / "built.log").read_text().splitlines()) == 1
    assert spaces.commit(path, SESSION, "x.md", "nothing") is None
    (path / "new.txt").write_text("new")
    commit = spaces.commit(path, SESSION, "x.md", "something")
    assert commit is not None
    assert commit.changed == ("new.txt",)


def test_a_set_up_that_fails_is_told_and_tried_again(repo, spaces, tmp_path):
    with pytest.raises(RondelError, match=r"(?s)set-up command .* failed .*no such luck"):
        spaces.write(SESSION, "x.md", "main", setup="echo no such luck >&2; exit 3")
    path = spaces.write(SESSION, "x.md", "main", setup="echo ok >ok.log")
    assert (path / "ok.log").exists()


def test_a_dirty_worktree_starts_again_and_what_it_held_is_kept(repo, spaces):
    path = edit(spaces, "x.md", {"half.txt": "half", "a.txt": "half"})
    assert spaces.write(SESSION, "x.md", "main") == path
    assert not (path / "half.txt").exists()
    assert (path / "a.txt").read_text() == "one\n"
    kept = git(repo, "for-each-ref", "--format=%(refname)", "refs/rondel/kept")
    assert git(repo, "show", f"{kept}:half.txt") == "half"


def test_a_cut_off_try_goes_on_where_it_was(repo, spaces):
    path = edit(spaces, "x.md", {"half.txt": "half"})
    assert spaces.write(SESSION, "x.md", "main", keep=True) == path
    assert (path / "half.txt").read_text() == "half"


def test_a_worktree_for_another_base_starts_again(repo, spaces):
    spaces.write(SESSION, "x.md", "main")
    add(repo, {"a.txt": "two\n"}, "next")
    assert (spaces.write(SESSION, "x.md", "main") / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize(
    "damage",
    [
        "rm -rf .git",
        "rm -rf $GIT",
        "rm -rf .git; echo x >.git",
        "rm -rf .git; ln -s / .git",
        "rm -rf ../*",
        "touch $GIT/index.lock",
        "touch .git/index.lock",
        "rm -rf .git/info; ln -s / .git/info",
    ],
)
def test_a_damaged_worktree_starts_again(repo, spaces, damage):
    path = edit(spaces, "x.md", {"half.txt": "half"})
    private = str(repo / ".git/worktrees" / path.name)
    assert Path(private, "HEAD").is_file()
    subprocess.run(["bash", "-c", damage], cwd=path, env={**os.environ, "GIT": private}, check=True)
    again = spaces.write(SESSION, "x.md", "main")
    assert (again / "a.txt").read_text() == "one\n"
    assert not (again / "half.txt").exists()
    assert git(repo, "status", "--porcelain") == ""
    (again / "b.txt").write_text("b")
    assert spaces.commit(again, SESSION, "x.md", "m") is not None


def test_a_mark_that_a_killed_driver_left_half_written_goes_with_its_worktree(spaces):
    path = edit(spaces, "x.md", {"a.txt": "two\n"})
    path.with_name(f"{path.name}.tmp").write_text('{"session": "cy')
    spaces.remove(path)
    assert list(path.parent.iterdir()) == []


def test_a_worktree_without_its_git_file_never_makes_git_work_on_the_repository_around_it(repo):
    inside = Workspaces(repo, repo / "build" / "spaces")
    path = edit(inside, "x.md", {"b.txt": "b"})
    shutil.rmtree(path / ".git")
    before = git(repo, "rev-parse", "HEAD")
    commit = inside.commit(path, SESSION, "x.md", "m")
    assert commit is not None
    assert commit.changed == ("b.txt",)
    assert (git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain")) == (before, "")


# -- committing -------------------------------------------------------------------------


def test_an_edit_becomes_one_commit_with_its_trailer(repo, spaces):
    _, commit = committed(spaces, "round-1/x.md", {"b.txt": "b", "sub/c.txt": "c", "noise.log": "n"})
    assert commit.changed == ("b.txt", "sub/c.txt")
    shown = git(repo, "show", "--no-patch", "--format=%P|%B", commit.id)
    base = git(repo, "rev-parse", "main")
    assert shown == f"{base}|Edit for round-1/x.md\n\nRondel-Action: {SESSION}/round-1/x.md"
    assert git(repo, "rev-parse", commit.branch) == commit.id
    assert commit.branch == branch_of(SESSION, "round-1/x.md")


def test_committing_again_gives_the_same_commit(spaces):
    path, commit = committed(spaces, "x.md", {"b.txt": "b"})
    assert spaces.commit(path, SESSION, "x.md", "Edit for x.md") == commit


def test_changes_after_a_commit_are_part_of_the_next(repo, spaces):
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    (path / "c.txt").write_text("c")
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert commit is not None
    assert commit.changed == ("b.txt", "c.txt")
    assert git(repo, "rev-list", "--count", f"main..{commit.id}") == "1"


def test_no_change_is_no_commit(spaces):
    path = spaces.write(SESSION, "x.md", "main")
    assert spaces.commit(path, SESSION, "x.md", "m") is None


def test_an_agent_s_own_commits_and_branches_become_one_commit(repo, spaces):
    path = edit(spaces, "x.md", {"b.txt": "b"})
    git(path, "checkout", "--quiet", "-b", "agents-own")
    add(path, {"c.txt": "c"}, "by the agent")
    (path / "a.txt").unlink()
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert commit is not None
    assert commit.changed == ("a.txt", "b.txt", "c.txt")
    assert git(repo, "branch", "--list", "agents-own") == ""
    assert git(repo, "rev-parse", f"{commit.id}^") == git(repo, "rev-parse", "main")


def test_a_repository_inside_the_edit_is_refused_by_name(repo, spaces):
    path = spaces.write(SESSION, "x.md", "main")
    make_repo(path / "made" / "here")
    refused = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(refused, Unusable)
    assert "'made/here' is a git repository of its own" in refused.problem
    subprocess.run(refused.problem.partition("part of the edit: ")[2], shell=True, check=True)
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == ("made/here/.gitignore", "made/here/a.txt")


def test_a_repository_without_a_commit_inside_the_edit_is_refused_by_name(spaces):
    path = edit(spaces, "x.md", {"new/deep/b.txt": "b"})
    git(path / "new/deep", "init", "--quiet")
    refused = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(refused, Unusable)
    assert "'new/deep' is a git repository of its own" in refused.problem


def test_a_file_that_git_cannot_add_is_refused_with_its_words(spaces, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    path = edit(spaces, "x.md", {".gitattributes": "*.bin filter=broken\n", "a.bin": "a"})
    for key, value in {"clean": "false", "required": "true"}.items():
        git(path, "config", "--global", f"filter.broken.{key}", value)
    refused = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(refused, Unusable)
    assert "a.bin" in refused.problem
    assert str(path) in refused.problem


def test_an_index_that_cannot_be_written_now_says_nothing_about_the_edit(spaces, repo):
    path = edit(spaces, "x.md", {"b.txt": "b"})
    objects = repo / ".git/objects"
    objects.rename(aside := repo / ".git/objects-aside")
    try:
        with pytest.raises(GitError):
            spaces.commit(path, SESSION, "x.md", "m")
    finally:
        aside.rename(objects)
    assert isinstance(spaces.commit(path, SESSION, "x.md", "m"), Commit)


def test_changes_inside_a_submodule_that_are_not_committed_there_are_refused_not_lost(repo, spaces, tmp_path):
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(repo, *local, "add", str(make_repo(tmp_path / "other")), "sub")
    add(repo, {}, "a submodule")
    path = spaces.write(SESSION, "x.md", "main")
    git(path, *local, "update", "--init")
    (path / "sub/a.txt").write_text("by the agent\n")
    refused = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(refused, Unusable)
    assert "'sub'" in refused.problem


def test_a_worktree_that_git_cannot_hold_is_moved_aside_before_another_gets_its_place(repo, spaces):
    path = spaces.write(SESSION, "x.md", "main")
    make_repo(path / "made")
    assert spaces.write(SESSION, "x.md", "main") == path
    assert not (path / "made").exists()
    (aside,) = path.parent.glob(f"{path.name}.kept-*")
    assert (aside / "made/a.txt").read_text() == "one\n"
    spaces.sweep()
    assert aside.exists()


def test_a_shared_worktree_that_git_cannot_hold_stays_when_it_is_over(repo, spaces):
    path = spaces.write(SESSION, "x", "main", shared=True)
    make_repo(path / "made")
    spaces.sweep(lambda _session, _key: True)
    assert (path / "made/a.txt").exists()


@pytest.mark.parametrize("init", [False, True])
def test_files_in_a_submodule_stay_in_their_worktree_when_it_is_over(repo, spaces, tmp_path, init):
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(repo, *local, "add", str(make_repo(tmp_path / "other")), "sub")
    add(repo, {}, "a submodule")
    path = spaces.write(SESSION, "x", "main", shared=True)
    if init:
        git(path, *local, "update", "--init")
    (path / "sub/new.txt").write_text("by the agent\n")
    os.utime(path.with_name(f"{path.name}.json"), (0, 0))  # nobody used it for long
    spaces.sweep()
    spaces.sweep(lambda _session, _key: True)
    assert (path / "sub/new.txt").read_text() == "by the agent\n"
    assert spaces.write(SESSION, "x", "main", shared=True) == path
    assert not (path / "sub/new.txt").exists(), "another try does not begin with it"
    (aside,) = path.parent.glob(f"{path.name}.kept-*")
    assert (aside / "sub/new.txt").read_text() == "by the agent\n"


def test_a_submodule_is_left_alone(repo, spaces, tmp_path):
    other = make_repo(tmp_path / "other")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    add(repo, {}, "a submodule")
    path, commit = committed(spaces, "x.md", {"b.txt": "b"})
    assert commit.changed == ("b.txt",)
    assert isinstance(spaces.integrate(path, "main"), Commit)
    assert (repo / "sub" / "a.txt").exists()


def test_a_submodule_that_is_moved_to_another_commit_is_an_edit(repo, spaces, tmp_path):
    other = make_repo(tmp_path / "other")
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(repo, *local, "add", str(other), "sub")
    add(repo, {}, "a submodule")
    path = spaces.write(SESSION, "x.md", "main")
    git(path, *local, "update", "--init")
    assert spaces.commit(path, SESSION, "x.md", "m") is None
    made = add(path / "sub", {"c.txt": "c"}, "in the submodule")
    refused = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(refused, Unusable), "nothing but the worktree has its commit"
    subprocess.run(refused.problem.partition("into your own: ")[2], shell=True, check=True)
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == ("sub",)
    assert isinstance(spaces.integrate(path, "main"), Commit)
    spaces.remove(path)
    git(repo, "submodule", "--quiet", "update")
    assert git(repo / "sub", "rev-parse", "HEAD") == made


def test_a_submodule_that_is_moved_to_a_commit_of_its_remote_is_an_edit(repo, spaces, tmp_path):
    other = make_repo(tmp_path / "other")
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(repo, *local, "add", str(other), "sub")
    add(repo, {}, "a submodule")
    add(other, {"c.txt": "c"}, "news")
    path = spaces.write(SESSION, "x.md", "main")
    git(path, *local, "update", "--init", "--remote")
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == ("sub",)


@pytest.mark.parametrize("init", [False, True])
@pytest.mark.parametrize("also", [{}, {"b.txt": "b"}])
def test_files_that_are_new_in_a_submodule_are_refused_not_lost(repo, spaces, tmp_path, init, also):
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(repo, *local, "add", str(make_repo(tmp_path / "other")), "sub")
    add(repo, {}, "a submodule")
    path = edit(spaces, "x.md", also)
    if init:
        git(path, *local, "update", "--init")
    (path / "sub/new.txt").write_text("by the agent\n")
    refused = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(refused, Unusable)
    assert "'sub'" in refused.problem
    (path / "sub/new.txt").rename(path / "new.txt")
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == (*also, "new.txt")


def test_what_is_only_staged_is_put_back_and_is_no_edit(spaces):
    path = edit(spaces, "x.md", {"a.txt": "staged"})
    before = git(path, "show", "HEAD:a.txt")
    git(path, "add", "a.txt")
    (path / "a.txt").write_text(f"{before}\n")
    assert spaces.commit(path, SESSION, "x.md", "m") is None


def test_names_of_any_kind_are_committed_and_reported(spaces):
    names = [
        "with space.txt",
        "quo'te\".txt",
        "new\nline.txt",
        "тест/файл.txt",
        "-dash",
        ":(top)magic",
        "*.txt",
    ]
    _, commit = committed(spaces, "x.md", dict.fromkeys(names, "x"))
    assert set(commit.changed) == set(names)


def test_a_message_cannot_bring_a_trailer_of_ours(repo, spaces):
    path = edit(spaces, "x.md", {"b.txt": "b"})
    commit = spaces.commit(path, SESSION, "x.md", "# Title\n\nrondel-action: other\nRondel-Action: a/b")
    assert commit is not None
    assert git(repo, "log", "-1", "--format=%B", commit.id) == f"# Title\n\nRondel-Action: {SESSION}/x.md"


def test_without_an_identity_it_commits_as_rondel_and_with_one_as_the_person(repo, spaces):
    _, one = committed(spaces, "x.md", {"b.txt": "b"})
    assert git(repo, "show", "--no-patch", "--format=%an <%ce>", one.id) == "Rondel <rondel@localhost>"
    git(repo, "config", "user.name", "Me")
    git(repo, "config", "user.email", "me@example.org")
    git(repo, "config", "commit.gpgsign", "true")
    git(repo, "config", "gpg.program", "false")
    path, two = committed(spaces, "y.md", {"b.txt": "b"})
    assert isinstance(spaces.integrate(path, "main"), Commit)
    assert git(repo, "show", "--no-patch", "--format=%an <%ce>", two.id) == "Me <me@example.org>"


# -- finding ----------------------------------------------------------------------------


def test_an_edit_is_found_by_its_trailer_where_it_is(repo, spaces):
    path, commit = committed(spaces, "x.md", {"b.txt": "b"})
    assert spaces.find(SESSION, "x.md") == commit
    assert spaces.find(SESSION, "x.md", "main") is None
    assert spaces.find(SESSION, "x.m", "main") is None
    done = spaces.integrate(path, "main")
    assert isinstance(done, Commit)
    for base in (None, "main~1", "main~5"):
        assert spaces.find(SESSION, "x.md", "main", base) == done
    assert spaces.find(SESSION, "x", "main") is None
    assert spaces.find(SESSION, "x.md", "no-such-branch") is None


def test_a_message_that_only_mentions_an_action_is_not_its_edit(repo, spaces):
    add(repo, {}, f"about\n\nRondel-Action: {SESSION}/x.md was here\n\nmore words")
    assert spaces.find(SESSION, "x.md", "main") is None


# -- integrating ------------------------------------------------------------------------


@pytest.fixture
def away(repo):
    """The person is on another branch, so main is checked out nowhere."""
    git(repo, "checkout", "--quiet", "-b", "elsewhere")
    return repo


def test_an_edit_moves_its_target_forward(away, spaces):
    path, commit = committed(spaces, "x.md", {"b.txt": "b"})
    assert spaces.integrate(path, "main") == Commit(commit.id, ("b.txt",), "main")
    assert git(away, "rev-parse", "main") == commit.id


def test_an_edit_goes_on_top_of_a_target_that_moved(away, spaces):
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    git(away, "checkout", "--quiet", "main")
    tip = add(away, {"c.txt": "c"}, "by the person")
    git(away, "checkout", "--quiet", "elsewhere")
    done = spaces.integrate(path, "main")
    assert isinstance(done, Commit)
    assert git(away, "rev-parse", "main", "main^") == f"{done.id}\n{tip}"
    assert git(away, "show", "main:b.txt") == "b"
    assert (
        git(away, "log", "-1", "--format=%(trailers:key=Rondel-Action,valueonly)", "main")
        == f"{SESSION}/x.md"
    )


def test_a_conflict_names_its_files_and_changes_nothing(away, spaces):
    path, commit = committed(spaces, "x.md", {"a.txt": "agent\n", "b.txt": "b"})
    git(away, "checkout", "--quiet", "main")
    tip = add(away, {"a.txt": "person\n"}, "by the person")
    git(away, "checkout", "--quiet", "elsewhere")
    assert spaces.integrate(path, "main") == Conflict(("a.txt",))
    assert git(away, "rev-parse", "main") == tip
    assert git(path, "rev-parse", "HEAD") == commit.id
    assert git(path, "status", "--porcelain") == ""
    assert not (Path(git(path, "rev-parse", "--absolute-git-dir")) / "CHERRY_PICK_HEAD").exists()
    assert spaces.integrate(path, "main") == Conflict(("a.txt",))


def test_checks_run_on_top_of_the_target_and_must_pass(away, spaces):
    path, commit = committed(spaces, "x.md", {"b.txt": "b"})
    git(away, "checkout", "--quiet", "main")
    add(away, {"c.txt": "c"}, "by the person")
    git(away, "checkout", "--quiet", "elsewhere")
    failed = spaces.integrate(
        path, "main", r"echo junk >junk.txt; printf '\033[31mbroken\033[0m\n'; test ! -e c.txt"
    )
    assert failed == ChecksFailed("broken")
    assert git(path, "rev-parse", "HEAD") == commit.id
    assert not (path / "junk.txt").exists()
    assert spaces.find(SESSION, "x.md", "main") is None
    assert isinstance(spaces.integrate(path, "main", "test -e c.txt -a -e b.txt"), Commit)


def test_a_target_that_moves_during_the_checks_is_tried_again(away, spaces):
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    once = f"test -e {away}/once || {{ touch {away}/once; git -C {away} branch -f main elsewhere; }}"
    add(away, {"c.txt": "c"}, "by the person")
    done = spaces.integrate(path, "main", once)
    assert isinstance(done, Commit)
    assert git(away, "rev-parse", "main^") == git(away, "rev-parse", "elsewhere")


def test_a_target_that_never_rests_is_given_up(away, tmp_path):
    def move(command: str, cwd: Path) -> Ran:
        git(away, "branch", "-f", "main", add(away, {}, "again"))
        return Ran(ok=True, output="")

    spaces = Workspaces(away, tmp_path / "spaces", shell=move)
    path, commit = committed(spaces, "x.md", {"b.txt": "b"})
    with pytest.raises(GitError, match="'main' moved again and again"):
        spaces.integrate(path, "main", "x")
    assert git(path, "rev-parse", "HEAD") == commit.id


def test_an_edit_that_the_target_has_already_is_still_recorded(away, spaces):
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    git(away, "checkout", "--quiet", "main")
    add(away, {"b.txt": "b"}, "the same, by the person")
    git(away, "checkout", "--quiet", "elsewhere")
    done = spaces.integrate(path, "main")
    assert isinstance(done, Commit)
    assert done.changed == ()
    assert spaces.find(SESSION, "x.md", "main") == done


def test_integrating_twice_is_integrating_once(away, spaces):
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    assert spaces.integrate(path, "main") == spaces.integrate(path, "main")
    assert git(away, "rev-list", "--count", "main") == "2"


def test_a_target_in_the_person_s_own_tree_moves_with_its_files(repo, spaces):
    (repo / "a.txt").write_text("mine, not committed\n")
    (repo / "notes.txt").write_text("mine, untracked\n")
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    assert isinstance(spaces.integrate(path, "main"), Commit)
    assert (repo / "b.txt").read_text() == "b"
    assert (repo / "a.txt").read_text() == "mine, not committed\n"
    assert git(repo, "status", "--porcelain").splitlines() == ["M a.txt", "?? notes.txt"]


@pytest.mark.parametrize("name", ["a.txt", "new.txt"])
def test_uncommitted_work_in_the_way_stays_and_is_named(repo, spaces, name):
    path, commit = committed(spaces, "x.md", {name: "agent\n"})
    (repo / name).write_text("mine, not committed\n")
    tip = git(repo, "rev-parse", "main")
    with pytest.raises(GitError, match=rf"(?s)'main' is checked out in .*{name}.*git -C .* stash push"):
        spaces.integrate(path, "main")
    assert (repo / name).read_text() == "mine, not committed\n"
    assert git(repo, "rev-parse", "main") == tip
    assert git(path, "rev-parse", "HEAD") == commit.id
    (repo / name).unlink()
    git(repo, "checkout", "--quiet", "--", ".")
    assert isinstance(spaces.integrate(path, "main"), Commit)


def test_with_a_detached_head_branches_move_and_the_tree_does_not(repo, spaces):
    git(repo, "checkout", "--quiet", "--detach")
    path, _ = committed(spaces, "x.md", {"b.txt": "b"}, base="HEAD")
    assert isinstance(spaces.integrate(path, "main"), Commit)
    assert not (repo / "b.txt").exists()
    assert git(repo, "show", "main:b.txt") == "b"


def test_many_edits_at_once_all_arrive_one_after_the_other(away, spaces):
    made = [committed(spaces, f"{n}.md", {f"{n}.txt": str(n)})[0] for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda path: spaces.integrate(path, "main", "sleep 0.05"), made))
    assert all(isinstance(one, Commit) for one in done)
    assert git(away, "rev-list", "--count", "--min-parents=2", "main") == "0"
    names = git(away, "ls-tree", "--name-only", "main").splitlines()
    assert {f"{n}.txt" for n in range(6)} <= set(names)


def test_no_hook_of_the_repository_runs(repo, spaces, tmp_path):
    for name in (
        "post-checkout",
        "pre-commit",
        "post-merge",
        "reference-transaction",
        "post-rewrite",
        "commit-msg",
    ):
        hook = repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >>'{tmp_path}/ran'\n")
        hook.chmod(0o755)
    path = edit(spaces, "x.md", {"b.txt": "b"})
    spaces.read("main")
    spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(spaces.integrate(path, "main"), Commit)
    spaces.remove(path)
    assert not (tmp_path / "ran").exists()


def test_variables_of_a_git_around_us_do_not_lead_git_astray(repo, spaces, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    assert isinstance(spaces.integrate(path, "main"), Commit)


# -- clearing away ----------------------------------------------------------------------


def test_a_worktree_of_the_person_s_own_is_never_forgotten(repo, spaces, tmp_path):
    git(repo, "worktree", "add", "--quiet", "-b", "mine", str(tmp_path / "mine"))
    (tmp_path / "mine").rename(tmp_path / "unmounted")
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    spaces.remove(path)
    spaces.write(SESSION, "x.md", "main")
    (tmp_path / "unmounted").rename(tmp_path / "mine")
    assert git(tmp_path / "mine", "status", "--porcelain") == ""


def test_settings_of_the_person_s_own_git_do_not_change_what_happens(repo, spaces):
    for name, value in {
        "status.showUntrackedFiles": "no",
        "merge.ff": "false",
        "merge.autoStash": "true",
        "core.safecrlf": "true",
        "core.autocrlf": "true",
        "commit.cleanup": "strip",
        "trailer.separators": "#",
        "branch.main.mergeOptions": "--no-ff",
        "user.useConfigOnly": "true",
        "push.default": "nothing",
        "core.hooksPath": "hooks",
    }.items():
        git(repo, "config", name, value)
    path = edit(spaces, "x.md", {"b.txt": "b"})
    assert spaces.write(SESSION, "x.md", "main") == path
    assert not (path / "b.txt").exists(), "an untracked file is dirt"
    (path / "b.txt").write_text("b")
    assert spaces.commit(path, SESSION, "x.md", "# Title") is not None
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "by the person")
    (repo / "a.txt").write_text("mine")
    done = spaces.integrate(path, "main")
    assert isinstance(done, Commit)
    assert spaces.find(SESSION, "x.md", "main") == done
    assert git(repo, "log", "-1", "--format=%s", "main") == "# Title"
    assert (repo / "a.txt").read_text() == "mine"
    assert git(repo, "stash", "list") == ""


def test_a_merged_workspace_leaves_nothing(away, spaces):
    path, commit = committed(spaces, "x.md", {"b.txt": "b"})
    spaces.integrate(path, "main")
    spaces.remove(path)
    assert not path.exists()
    assert git(away, "branch", "--list", commit.branch) == ""
    assert len(git(away, "worktree", "list").splitlines()) == 1
    spaces.remove(path)


def test_an_unmerged_branch_outlives_its_worktree(repo, spaces):
    path, commit = committed(spaces, "x.md", {"b.txt": "b"})
    spaces.remove(path)
    assert git(repo, "rev-parse", commit.branch) == commit.id


def test_only_our_own_workspaces_are_removed(repo, spaces, tmp_path):
    for path in (repo, tmp_path, tmp_path / "spaces", tmp_path / "spaces" / "write"):
        with pytest.raises(GitError, match="not a workspace of ours"):
            spaces.remove(path)
    assert (repo / "a.txt").exists()


def test_a_sweep_removes_what_is_merged_and_keeps_what_failed(away, spaces):
    merged, _ = committed(spaces, "merged.md", {"b.txt": "b"})
    failed, _ = committed(spaces, "failed.md", {"c.txt": "c"})
    dirty = edit(spaces, "dirty.md", {"d.txt": "d"})
    read = spaces.read("main")
    spaces.integrate(merged, "main")
    assert isinstance(spaces.integrate(failed, "main", "false"), ChecksFailed)
    assert spaces.sweep() == 1
    assert [path.exists() for path in (merged, failed, dirty, read)] == [False, True, True, True]
    os.utime(read.with_name(f"{read.name}.json"), (0, 0))
    assert spaces.sweep() == 1
    assert not read.exists()


def test_a_sweep_removes_an_old_worktree_only_if_nothing_was_done_in_it(repo, spaces):
    unused, dirty = spaces.write(SESSION, "unused.md", "main"), edit(spaces, "dirty.md", {"d.txt": "d"})
    assert spaces.sweep() == 0
    for path in (unused, dirty):
        os.utime(path.with_name(f"{path.name}.json"), (0, 0))
    assert spaces.sweep() == 1
    assert (dirty / "d.txt").exists()
    assert not unused.exists()


def test_a_sweep_waits_for_nobody(away, spaces, tmp_path):
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    other = Workspaces(away, tmp_path / "spaces")
    with ThreadPoolExecutor(1) as pool:
        checks = f"touch {tmp_path}/on; until test -e {tmp_path}/go; do sleep 0.05; done"
        done = pool.submit(spaces.integrate, path, "main", checks)
        assert wait_until((tmp_path / "on").exists)
        assert other.sweep() == 0
        assert not done.done()
        (tmp_path / "go").touch()
    assert other.sweep() == 1


def test_closing_ends_what_runs(away, spaces):
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    threading.Timer(0.7, spaces.close).start()
    with pytest.raises(RondelError, match="stopped while 'sleep 60' ran"):
        spaces.integrate(path, "main", "sleep 60")
    assert spaces.find(SESSION, "x.md", "main") is None


# -- repositories that are not as they should be --------------------------------------------


def test_a_repository_without_commits_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    spaces = Workspaces(tmp_path / "empty", tmp_path / "spaces")
    for call in (spaces.read, lambda base: spaces.write(SESSION, "x.md", base)):
        with pytest.raises(GitError, match="has no commit yet"):
            call("HEAD")


def test_a_folder_without_a_repository_is_named(tmp_path):
    (tmp_path / "plain").mkdir()
    with pytest.raises(GitError, match=r"(?s)plain.*not a git repository"):
        Workspaces(tmp_path / "plain", tmp_path / "spaces").read("HEAD")
    with pytest.raises(GitError, match="cannot run in"):
        Workspaces(tmp_path / "missing", tmp_path / "spaces").read("HEAD")


@pytest.mark.parametrize("base", ["nosuch", "feature/../../x", "--all", "", "a b", "main:a.txt"])
def test_a_base_that_is_no_commit_is_named(spaces, base):
    with pytest.raises(GitError, match="there is no commit"):
        spaces.read(base)


def test_a_target_that_was_deleted_is_made_again_where_the_edit_began(spaces, repo):
    path, _ = committed(spaces, "x.md", {"b.txt": "b"})
    assert isinstance(spaces.integrate(path, "gone"), Commit)
    assert git(repo, "rev-parse", "gone^") == git(repo, "rev-parse", "main")


def test_a_target_that_cannot_be_a_branch_is_named(spaces):
    path, commit = committed(spaces, "x.md", {"b.txt": "b"})
    for target in ("feature/../../x", "HEAD"):
        with pytest.raises(GitError, match="there is no branch"):
            spaces.integrate(path, target)
    assert spaces.integrate(path, "main") == replace(commit, branch="main")


@pytest.mark.parametrize("name", ["with space", "quo'te\"s", "new\nline", "папка", "-dash", "glob*[x]"])
def test_folders_of_any_name_work(tmp_path, name):
    repo = make_repo(tmp_path / name / "repo")
    spaces = Workspaces(repo, tmp_path / name / "spaces")
    assert (spaces.read("main") / "a.txt").exists()
    path, _ = committed(spaces, f"{name}.md", {"b.txt": "b"})
    assert isinstance(spaces.integrate(path, "main", "test -e b.txt"), Commit)
    assert (repo / "b.txt").exists()
    spaces.remove(path)


# -- attributes ---------------------------------------------------------------------------


def based_on(repo: Path, attributes: str, files: dict[str, bytes]) -> None:
    """A base with attributes and files, committed as they are."""
    (repo / ".gitattributes").write_text(attributes)
    for name, data in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_bytes(data)
    add(repo, {}, "base")


def blob(repo: Path, commit: str, name: str) -> bytes:
    return subprocess.run(
        ["git", "cat-file", "blob", f"{commit}:{name}"], cwd=repo, check=True, capture_output=True
    ).stdout


def test_an_edit_is_committed_as_the_attributes_of_its_base_say(repo, spaces):
    based_on(
        repo,
        "*.txt -text\n*.lf text\n*.u16 working-tree-encoding=UTF-16LE\n",
        {"old.txt": b"a\n", "kept.txt": b"k\r\n", "a.lf": b"a\n", "sub/x.txt": b"x\n"},
    )
    path = spaces.write(SESSION, "x.md", "main")
    (path / ".gitattributes").write_text("*.txt text eol=lf\n*.lf -text\n*.png text\n")
    (path / "sub/.gitattributes").write_text("*.txt text\n")
    edited = {
        "old.txt": b"a\r\n",
        "new.txt": b"1\r\n2\r\n",
        "a b\n\xff.txt": b"odd\r\n",
        "sub/x.txt": b"x\r\n",
        "b.lf": b"b\r\n",
        "c.u16": "ä\n".encode("utf-16-le"),
        "p.png": b"\r\n\0",
    }
    for name, data in edited.items():
        (path / os.fsdecode(name.encode("latin-1"))).write_bytes(data)
    (path / "kept.txt").touch()
    (path / "run.txt").write_bytes(b"#!/bin/sh\r\n")
    (path / "run.txt").chmod(0o755)
    commit = spaces.commit(path, SESSION, "x.md", "Edit")
    assert isinstance(commit, Commit)
    odd = os.fsdecode("a b\n\xff.txt".encode("latin-1"))
    wanted = {
        "old.txt": b"a\r\n",
        "new.txt": b"1\r\n2\r\n",
        odd: b"odd\r\n",
        "sub/x.txt": b"x\r\n",
        "b.lf": b"b\n",
        "c.u16": "ä\n".encode(),
        "p.png": b"\r\n\0",
        "kept.txt": b"k\r\n",
        "run.txt": b"#!/bin/sh\r\n",
    }
    assert {name: blob(repo, commit.id, name) for name in wanted} == wanted
    assert git(repo, "ls-tree", commit.id, "run.txt").startswith("100755 ")
    assert blob(repo, commit.id, ".gitattributes") == b"*.txt text eol=lf\n*.lf -text\n*.png text\n"
    assert "kept.txt" not in commit.changed
    assert spaces.commit(path, SESSION, "x.md", "Edit") == commit, "the same files are the same commit"
    assert isinstance(spaces.integrate(path, "main"), Commit)
    assert {name: blob(repo, "main", name) for name in wanted} == wanted
    assert (repo / "new.txt").read_bytes() == wanted["new.txt"]


def test_an_edit_that_takes_the_attributes_away_is_committed_as_its_base_says(repo, spaces):
    based_on(repo, "*.txt text\n", {"folder/.gitattributes": b"*.txt -text\n", "folder/a.txt": b"a\n"})
    path = spaces.write(SESSION, "x.md", "main")
    (path / ".gitattributes").unlink()
    shutil.rmtree(path / "folder")
    (path / "folder").write_bytes(b"a file\r\n")  # has no attribute, then or now
    (path / "b.txt").write_bytes(b"b\r\n")
    commit = spaces.commit(path, SESSION, "x.md", "Edit")
    assert isinstance(commit, Commit)
    assert blob(repo, commit.id, "b.txt") == b"b\n"
    assert blob(repo, commit.id, "folder") == b"a file\r\n"


def test_an_edit_that_its_base_cannot_convert_is_named(repo, spaces):
    based_on(repo, "*.u16 working-tree-encoding=UTF-16LE\n", {})
    path = spaces.write(SESSION, "x.md", "main")
    (path / ".gitattributes").write_text("")
    (path / "a.u16").write_bytes(b"odd")
    found = spaces.commit(path, SESSION, "x.md", "Edit")
    assert isinstance(found, Unusable)
    assert "as the attributes of its base say" in found.problem
