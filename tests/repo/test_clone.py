"""The clone that an agent finds in its worktree: git works there, and what it does stays there."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from test_workspaces import SESSION, add, committed, edit, git, make_repo
from test_workspaces import _own_git_settings as own_git_settings  # noqa: F401 - a fixture

from rondel.errors import GitError
from rondel.repo import clone
from rondel.repo.edits import Commit
from rondel.repo.workspaces import ChecksFailed, Unusable, Workspaces
from rondel.repo.worktrees import read_only, writable


@pytest.fixture(params=["repo", 'it\'s "mine"\n#1'])
def repo(tmp_path, request):
    repo = make_repo(tmp_path / request.param)
    add(repo, {"c.txt": "c\n"}, "second")
    git(repo, "tag", "v1")
    git(repo, "update-ref", "refs/remotes/origin/main", "HEAD")
    return repo


@pytest.fixture
def spaces(repo, tmp_path):
    return Workspaces(repo, tmp_path / "spaces")


def state(repo: Path) -> dict[str, bytes]:
    """What of a repository nobody but the person changes: refs, settings, hooks."""
    files = [repo / ".git/config", *(repo / ".git/hooks").iterdir()]
    refs = git(repo, "for-each-ref", "--format=%(refname) %(objectname)").encode()
    return {"refs": refs} | {file.name: file.read_bytes() for file in files}


@pytest.mark.parametrize("kind", ["read", "write"])
def test_git_says_in_a_worktree_what_it_says_in_the_repository(repo, spaces, kind):
    path = spaces.read("main") if kind == "read" else spaces.write(SESSION, "x.md", "main")
    assert git(path, "status", "--porcelain") == ""
    for words in (["log", "--format=%H"], ["describe", "--tags"], ["rev-parse", "origin/main", "main"]):
        assert git(path, *words) == git(repo, *words)
    assert git(path, "rev-parse", "--show-toplevel") == str(path.resolve())
    git(path, "fsck", "--strict")


def test_git_sees_an_edit_that_came_in_the_second_of_the_checkout_and_left_the_size(repo, spaces):
    time.sleep(1 - time.time() % 1)  # all of it within one second: only the index's own time tells it then
    path = spaces.write(SESSION, "x.md", "main")
    (path / "c.txt").write_text("d\n")
    time.sleep(1.1)
    clone.follow(spaces._trees, path, spaces._trees.mark(path))
    assert git(path, "status", "--porcelain") == "M c.txt"


def test_whatever_an_agent_does_with_git_the_repository_is_as_it_was(repo, spaces):
    before = state(repo)
    path = edit(spaces, "x.md", {"b.txt": "b\n"})
    add(path, {"d.txt": "d\n"}, "by the agent")
    for words in (
        ["config", "core.hooksPath", "/tmp"],
        ["config", "filter.x.clean", "touch marker"],
        ["branch", "--force", "main", "HEAD"],
        ["branch", "their-own"],
        ["tag", "--delete", "v1"],
        ["update-ref", "-d", "refs/remotes/origin/main"],
        ["remote", "add", "origin", "."],
        ["stash", "push", "--include-untracked", "--message", "aside"],
        ["stash", "pop"],
        ["gc", "--quiet", "--prune=now"],
    ):
        subprocess.run(["git", *words], cwd=path, check=False, capture_output=True)
    (path / ".git/hooks").mkdir(exist_ok=True)
    (path / ".git/hooks/post-checkout").write_text("#!/bin/sh\ntouch marker\n")
    (path / ".git/hooks/post-checkout").chmod(0o755)
    assert state(repo) == before
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == ("b.txt", "d.txt")
    assert isinstance(spaces.integrate(path, "main"), Commit)
    git(repo, "fsck", "--strict")
    assert git(repo, "show", "main:d.txt") == "d"
    assert not list(path.parent.rglob("marker"))


def test_what_an_agent_added_although_it_is_ignored_is_part_of_the_edit(spaces):
    path = edit(spaces, "x.md", {"build/out.txt": "out\n", "build/not.txt": "not\n"})
    git(path, "add", "--force", "build/out.txt")
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == ("build/out.txt",)
    assert spaces.commit(path, SESSION, "x.md", "m") == commit


def test_what_an_agent_took_out_of_its_index_and_ignores_is_not_tracked_any_more(repo, spaces):
    path = edit(spaces, "x.md", {".gitignore": "c.txt\n"})
    git(path, "rm", "--quiet", "--cached", "c.txt")
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == (".gitignore", "c.txt")
    assert (path / "c.txt").exists()
    assert git(repo, "ls-tree", "--name-only", commit.id, "c.txt") == ""


def test_what_is_only_taken_out_of_the_index_is_still_part_of_the_edit(spaces):
    path = edit(spaces, "x.md", {"b.txt": "b\n", "d.log": "ignored\n"})
    git(path, "rm", "--quiet", "-r", "--cached", ".")
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == ("b.txt",)


@pytest.mark.parametrize("damage", ["index", "HEAD", ""])
def test_a_clone_that_an_agent_broke_costs_nothing_of_its_edit(spaces, damage):
    path = edit(spaces, "x.md", {"b.txt": "b\n"})
    if damage:
        (path / ".git" / damage).write_bytes(b"\0broken")
    else:
        shutil.rmtree(path / ".git")
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == ("b.txt",)
    assert isinstance(spaces.integrate(path, "main", "git status >/dev/null"), Commit)


def test_the_checks_find_the_edit_as_the_last_commit(repo, spaces):
    path, _ = committed(spaces, "x.md", {"b.txt": "b\n"})
    add(repo, {"d.txt": "d\n"}, "third")
    checks = (
        'test "$(git log -1 --format=%s)" = "Edit for x.md" && test -z "$(git status --porcelain)" && false'
    )
    assert isinstance(spaces.integrate(path, "main", checks), ChecksFailed)
    assert git(path, "diff", "--name-only", "HEAD~1") == "b.txt", "the agent goes on with its own edit"
    assert isinstance(spaces.integrate(path, "main", checks.removesuffix(" && false")), Commit)


def test_a_checkout_that_readers_share_has_no_hook_or_setting_of_one_of_them(spaces):
    path = spaces.read("main")
    subprocess.run(["chmod", "-R", "u+w", path], check=True)
    git(path, "config", "core.fsmonitor", "touch marker")
    (path / ".git/hooks").mkdir()
    os.symlink("/", path / ".git/there")  # noqa: PTH211 - a link to anywhere
    assert spaces.read("main") == path
    assert "fsmonitor" not in (path / ".git/config").read_text()
    assert not (path / ".git/hooks").exists()
    assert not (path / ".git/there").is_symlink()


def test_who_commits_and_how_files_are_converted_is_as_in_the_repository(repo, spaces):
    git(repo, "config", "user.name", 'A "B" \\ C')
    git(repo, "config", "core.autocrlf", "input")
    path = edit(spaces, "x.md", {"b.txt": "b\r\n"})
    assert git(path, "config", "--local", "user.name") == 'A "B" \\ C'
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert git(repo, "cat-file", "-s", f"{commit.id}:b.txt") == "2"


# -- what a process that an agent left does meanwhile -----------------------------------------


@contextmanager
def planted(target: Path, link: Path, when: str) -> Iterator[None]:
    """As soon as a name is removed or made, a link to another place is there instead of `link`."""
    links = list[Path]()

    def plant() -> None:
        if link.is_symlink() or not link.parent.is_dir():
            return
        if os.path.lexists(link):
            link.rename(link.with_name(f"{link.name}.was"))
        link.symlink_to(target)
        links.append(link)

    def then(real: Callable[..., None]) -> Callable[..., None]:
        def call(name: str | os.PathLike[str], *words: int, **more: int) -> None:
            try:
                real(name, *words, **more)
            finally:
                if Path(name).name == when:
                    plant()

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "unlink", then(os.unlink))
        patch.setattr(os, "mkdir", then(os.mkdir))
        yield
    assert links


@pytest.mark.parametrize("name", ["HEAD", "index", "info/exclude"])
def test_nothing_is_written_through_a_link_that_appears_while_a_clone_follows(spaces, tmp_path, name):
    profile = tmp_path / "profile"
    profile.write_text("mine\n")
    path = spaces.write(SESSION, "x.md", "main")
    mark = spaces._trees.mark(path)
    with planted(profile, path / ".git" / name, Path(name).name), suppress(GitError):
        clone.follow(spaces._trees, path, mark)
    assert profile.read_text() == "mine\n"
    clone.follow(spaces._trees, path, mark)
    assert not (path / ".git" / name).is_symlink()
    assert git(path, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("link", "when"),
    [
        ("info", "info"),
        ("objects", "objects"),
        ("objects/info", "info"),
        ("refs", "refs"),
        ("config", "info"),
    ],
)
def test_nothing_is_written_through_a_link_that_appears_while_a_clone_is_made(spaces, tmp_path, link, when):
    outside = tmp_path / "outside"
    for folder in ("info", "pack", "heads", "tags"):
        (outside / folder).mkdir(parents=True)
    path = spaces.write(SESSION, "x.md", "main")
    mark = spaces._trees.mark(path)
    target = outside / "profile" if link == "config" else outside
    with planted(target, path / ".git" / link, when), suppress(GitError):
        clone.make(spaces._trees, path, mark)
    assert [p.name for p in outside.rglob("*") if not p.is_dir()] == []
    clone.make(spaces._trees, path, mark)
    assert git(path, "status", "--porcelain") == ""


def test_a_folder_of_links_is_not_changed_behind_them(spaces, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("mine\n")
    path = spaces.write(SESSION, "x.md", "main")
    (path / "away").symlink_to(outside)
    (path / "file").symlink_to(outside / "f")
    before = outside.stat().st_mode, (outside / "f").stat().st_mode
    read_only(path)
    assert (path / "a.txt").stat().st_mode & 0o222 == 0
    assert (outside.stat().st_mode, (outside / "f").stat().st_mode) == before
    writable(path)
    assert (path / "a.txt").stat().st_mode & 0o200


def test_an_index_that_is_a_link_or_a_pipe_is_not_read(spaces):
    path = spaces.write(SESSION, "x.md", "main")
    mark = spaces._trees.mark(path)
    index = path / ".git/index"
    index.rename(path / ".git/other")
    index.symlink_to("other")
    assert clone.tracked(path, mark) == clone.Tracked()
    index.unlink()
    os.mkfifo(index)
    assert clone.tracked(path, mark) == clone.Tracked()


@pytest.mark.parametrize("name", ["a\nnew.txt", "a\n!x", "x\r", "b\n\nnew.txt\n"])
def test_a_name_with_line_ends_hides_only_its_own_file(repo, tmp_path, name):
    spaces = Workspaces(repo, tmp_path / "spaces")
    path = spaces.write(SESSION, "x.md", "main", setup=f"touch {shlex.quote(name)}")
    (path / "new.txt").write_text("new\n")
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == ("new.txt",)


# -- what a person's own git finds in a worktree ----------------------------------------------


def armed(folder: Path, marker: Path) -> None:
    """A git folder whose configuration and hooks run a program, by every way that a `git status` takes."""
    (folder / "more").write_text(f'[core]\n\tfsmonitor = "touch {marker}-included"\n')
    with (folder / "config").open("a") as file:
        file.write(
            f'[core]\n\tfsmonitor = "touch {marker}"\n[filter "evil"]\n\tclean = "touch {marker}; cat"\n'
        )
        file.write("[include]\n\tpath = more\n")
    (folder / "hooks").mkdir(exist_ok=True)
    (folder / "hooks/post-index-change").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (folder / "hooks/post-index-change").chmod(0o755)
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info/attributes").write_text("* filter=evil\n")


@pytest.mark.parametrize("kind", ["own", "module", "elsewhere", "link"])
def test_git_in_a_worktree_that_advice_names_runs_nothing_of_the_agents(tmp_path, kind):
    repo, other = make_repo(tmp_path / "repo"), make_repo(tmp_path / "other")
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(repo, *local, "add", str(other), "sub")
    add(repo, {}, "a submodule")
    spaces, marker = Workspaces(repo, tmp_path / "spaces"), tmp_path / "marker"
    path = spaces.write(SESSION, "x.md", "main")
    sub = path / "sub"
    if kind == "module":
        git(path, *local, "update", "--init")
        folder = path / ".git/modules/sub"
    else:
        sub.rmdir()
        make_repo(sub)
        folder = sub / ".git"
    if kind == "link":
        (path / ".git/modules").mkdir()
        folder = folder.rename(path / "evil")
        (path / ".git/modules/sub").symlink_to("../../evil")
        (sub / ".git").write_text("gitdir: ../.git/modules/sub\n")
    if kind == "elsewhere":
        folder = folder.rename(path / "evil")
        (sub / ".git").write_text("gitdir: ../evil\n")
    (sub / "a.txt").write_text("changed\n")
    armed(folder, marker)
    armed(path / ".git", marker)
    refused = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(refused, Unusable)
    assert "are put aside (" in refused.problem
    assert not marker.exists()
    for place in (sub, path):
        subprocess.run(["git", "status"], cwd=place, check=False, capture_output=True)
        subprocess.run(["git", "add", "--all"], cwd=place, check=False, capture_output=True)
    assert not [p.name for p in tmp_path.glob("marker*")]
    if kind in ("own", "module"):
        assert git(sub, "status", "--porcelain") == "M  a.txt"
    if kind == "module":
        assert git(sub, "remote", "get-url", "origin") == str(other)
        git(sub, "commit", "--quiet", "-m", "there")
