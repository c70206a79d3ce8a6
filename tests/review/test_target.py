import json
import os
import sys
import time
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from review_support import CHANGED, commit, feature_branch, git, look, repository

from rondel.engine.session import new_identity
from rondel.errors import RondelError, UsageError
from rondel.model.codec import decode
from rondel.workflows.review.probes import is_empty
from rondel.workflows.review.target import Kind, Target, branch_of, parse_target, pin, pins_of


def parse(text, pr=None, files=()):
    return parse_target(text, pr, lambda name: name in files)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, Target()),
        ("staged", Target(Kind.STAGED)),
        ("HEAD~3..HEAD", Target(Kind.RANGE, "HEAD~3", "HEAD")),
        ("main...feature", Target(Kind.RANGE, "main", "feature", since_fork=True)),
        ("main..", Target(Kind.RANGE, "main", "HEAD")),
        ("v1.2.3..v1.3.0", Target(Kind.RANGE, "v1.2.3", "v1.3.0")),
        ("main", Target(Kind.WORK, "main")),
    ],
)
def test_a_target_is_read_as_git_people_write_it(text, expected):
    assert parse(text) == expected


def test_a_diff_file_is_a_target():
    assert parse("path/to.diff", files=["path/to.diff"]) == Target(Kind.DIFF, file="path/to.diff")
    with pytest.raises(UsageError, match=r"no file 'gone\.diff'"):
        parse("gone.diff")


def test_a_pull_request_is_a_target_and_excludes_another():
    assert parse(None, pr=12) == Target(Kind.PR, number=12)
    with pytest.raises(UsageError, match="--pr 12"):
        parse("main", pr=12)


@pytest.mark.parametrize("text", ["--upload-pack=x", "-x..HEAD", "a b", "HEAD\n", "..-x"])
def test_what_cannot_be_a_revision_is_refused(text):
    with pytest.raises(UsageError):
        parse(text)


@given(st.text(max_size=40))
def test_parsing_a_target_gives_one_or_says_why_not(text):
    try:
        found = parse(text)
    except UsageError:
        return
    assert decode(Target, asdict(found)) == found
    assert not found.base.startswith("-")
    assert not found.head.startswith("-")


def test_by_default_the_change_is_the_branch_since_it_left_main(feature):
    main = git(feature, "rev-parse", "main")
    pins = pin(Target(), look(feature))
    assert (pins.base, pins.head, pins.branch) == (main, git(feature, "rev-parse", "HEAD"), "feature")


def test_uncommitted_work_is_part_of_the_change_and_untracked_files_are_not(feature):
    (feature / "app.py").write_text("staged = 1\n")
    git(feature, "add", "app.py")
    (feature / "README.md").write_text("unstaged\n")
    (feature / "new.py").write_text("untracked = 1\n")
    before = git(feature, "status", "--porcelain")
    pins = pin(Target(), look(feature))
    assert git(feature, "show", f"{pins.head}:app.py") == "staged = 1"
    assert git(feature, "show", f"{pins.head}:README.md") == "unstaged"
    assert "new.py" not in git(feature, "ls-tree", "-r", "--name-only", pins.head)
    assert git(feature, "status", "--porcelain") == before


def test_a_change_that_came_in_the_second_of_the_commit_and_left_the_size_is_seen(repo):
    time.sleep(1 - time.time() % 1)  # all of it within one second: only the index's own time tells it then
    commit(repo, {"a.py": "A = 1\n"}, "one")
    (repo / "a.py").write_text("A = 2\n")
    time.sleep(1.1)
    dry, pins = pin(Target(), look(repo), dry=True), pin(Target(), look(repo))
    assert dry == pins
    assert not is_empty(pins.base, pins.head, look(repo))
    assert git(repo, "show", f"{pins.head}:a.py") == "A = 2"
    assert git(repo, "status", "--porcelain") == "M a.py"


def test_the_same_files_give_the_same_commit(feature):
    (feature / "app.py").write_text("work = 1\n")
    assert pin(Target(), look(feature)) == pin(Target(), look(feature))


def test_a_dry_look_leaves_no_object(feature):
    (feature / "app.py").write_text("work = 2\n")
    before = git(feature, "count-objects")
    dry = pin(Target(), look(feature), dry=True)
    assert git(feature, "count-objects") == before
    assert dry == pin(Target(), look(feature))


def test_files_that_are_only_intended_to_be_added_do_not_stop_it(feature):
    (feature / "new.py").write_text("new = 1\n")
    git(feature, "add", "-N", "new.py")
    pins = pin(Target(), look(feature))
    assert git(feature, "show", f"{pins.head}:new.py") == "new = 1"


def test_a_conflict_in_the_working_tree_does_not_stop_it(feature):
    git(feature, "checkout", "-q", "main")
    commit(feature, {"app.py": "other = 1\n"})
    git(feature, "checkout", "-q", "feature")
    with pytest.raises(Exception, match="merge"):
        git(feature, "merge", "main")
    pins = pin(Target(), look(feature))
    assert "<<<<<<<" in git(feature, "show", f"{pins.head}:app.py")


def test_staged_is_the_index_alone(feature):
    (feature / "app.py").write_text("staged = 1\n")
    git(feature, "add", "app.py")
    (feature / "app.py").write_text("unstaged = 1\n")
    pins = pin(Target(Kind.STAGED), look(feature))
    assert git(feature, "show", f"{pins.head}:app.py") == "staged = 1"
    assert pins.base == git(feature, "rev-parse", "HEAD")


def test_a_range_names_its_own_branch(feature):
    git(feature, "checkout", "-q", "main")
    pins = pin(Target(Kind.RANGE, "main", "feature", since_fork=True), look(feature))
    assert pins.branch == "feature"
    assert pins.head == git(feature, "rev-parse", "feature")


def test_an_unknown_revision_is_named(feature):
    with pytest.raises(UsageError, match="'nowhere'"):
        pin(Target(Kind.RANGE, "nowhere", "HEAD"), look(feature))


def test_a_repository_without_commits_is_told_so(tmp_path):
    git(tmp_path, "init", "-q")
    with pytest.raises(UsageError, match="no commit yet"):
        pin(Target(), look(tmp_path))


def test_a_detached_head_has_a_name(feature):
    git(feature, "checkout", "-q", "--detach")
    assert branch_of(look(feature)).startswith("detached-")


def test_origin_head_comes_before_main(tmp_path, feature):
    git(tmp_path, "clone", "-q", str(feature), "clone")
    clone = tmp_path / "clone"
    assert pin(Target(), look(clone)).base == git(clone, "rev-parse", "origin/HEAD")


@pytest.mark.parametrize("kind", ["tag", "branch"])
@pytest.mark.parametrize("name", ["origin/HEAD", "main", "master", "heads/main", "remotes/origin/HEAD"])
def test_no_ref_of_a_stranger_is_taken_for_the_base(tmp_path, feature, name, kind):
    """A remote brings its tags along, and a branch of any name can be checked out of it."""
    git(feature, "checkout", "-q", "main")
    git(tmp_path, "clone", "-q", str(feature), "clone")
    clone = tmp_path / "clone"
    git(clone, "checkout", "-q", "feature")
    base = git(clone, "rev-parse", "refs/remotes/origin/HEAD")
    git(clone, "update-ref", f"refs/{'tags' if kind == 'tag' else 'heads'}/{name}", "HEAD")
    assert pin(Target(), look(clone)).base == base
    git(clone, "remote", "remove", "origin")
    if (kind, name) not in (("branch", "main"), ("branch", "master")):  # which are the person's own by then
        git(clone, "update-ref", "refs/heads/main", base)
        assert pin(Target(), look(clone)).base == base


def test_a_tag_does_not_change_a_branch_s_name(feature):
    git(feature, "tag", "feature")
    assert branch_of(look(feature)) == "feature"
    assert new_identity("task", look(feature)).branch == "feature"


def test_a_branch_without_a_common_commit_has_no_base_by_default(feature):
    """Its own commit would be one: then the change says by which settings it is judged."""
    git(feature, "checkout", "-q", "--orphan", "other")
    here = commit(feature, {"app.py": CHANGED}, "another beginning")
    (feature / "app.py").write_text("work = 3\n")
    with pytest.raises(UsageError, match="'main' and this branch have no common commit"):
        pin(Target(), look(feature))
    assert pin(Target(Kind.WORK, "HEAD"), look(feature)).base == here


def test_a_shallow_clone_that_cannot_know_the_change_says_so(tmp_path, feature):
    git(feature, "checkout", "-q", "main")
    git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", f"file://{feature}", "shallow")
    git(tmp_path / "shallow", "checkout", "-q", "feature")
    with pytest.raises(UsageError, match="git fetch --unshallow"):
        pin(Target(), look(tmp_path / "shallow"))
    git(tmp_path / "shallow", "fetch", "-q", "--unshallow")
    assert pin(Target(), look(tmp_path / "shallow"))


def test_on_main_with_nothing_new_the_change_is_empty(repo):
    pins = pin(Target(), look(repo))
    assert is_empty(pins.base, pins.head, look(repo))


def test_rondels_own_folders_do_not_count(repo):
    before = git(repo, "rev-parse", "HEAD")
    own = [
        ".ocr/sessions/2026-01-01-main/state.json",
        ".workflow/a.json",
        "docs/features/1-a/.rondel/request-1.json",
    ]
    head = commit(repo, dict.fromkeys(own, "{}"))
    assert is_empty(before, head, look(repo))
    assert not is_empty(before, commit(repo, {"app.py": CHANGED}), look(repo))


def test_a_pull_request_without_gh_says_what_to_do(feature, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(RondelError, match="gh"):
        pin(Target(Kind.PR, number=12), look(feature))


def moved_on(tmp_path, monkeypatch):
    """A checkout of a pull request whose base moved on since, and a `gh` that knows both."""
    upstream = feature_branch(tmp_path / "upstream")
    git(upstream, "update-ref", "refs/pull/5/head", "feature")
    git(upstream, "checkout", "-q", "main")
    git(tmp_path, "clone", "-q", str(upstream), "mine")
    git(tmp_path / "mine", "checkout", "-q", "feature")
    shown = {
        "headRefName": "feature",
        "headRefOid": git(upstream, "rev-parse", "feature"),
        "baseRefName": "main",
        "baseRefOid": commit(upstream, {"more.txt": "more\n"}),
    }
    gh = tmp_path / "bin/gh"
    gh.parent.mkdir()
    diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"
    gh.write_text(
        f"#!{sys.executable}\nimport sys\nprint({json.dumps(shown)!r} if 'view' in sys.argv else {diff!r})\n"
    )
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{gh.parent}:{os.environ['PATH']}")
    return tmp_path / "mine", shown


def test_the_base_of_a_pull_request_is_fetched(tmp_path, monkeypatch):
    mine, shown = moved_on(tmp_path, monkeypatch)
    pins = pin(Target(Kind.PR, number=5), look(mine))
    assert (pins.base, pins.head) == (git(mine, "rev-parse", "main"), shown["headRefOid"])
    assert not pins.given


@pytest.mark.parametrize("remote", ["nowhere", "none", "a folder"])
def test_a_pull_request_whose_base_is_not_to_be_had_is_refused(tmp_path, monkeypatch, remote):
    """Judged without it, it would be judged by what is checked out, which is its own."""
    mine, _ = moved_on(tmp_path, monkeypatch)
    git(mine, "remote", "set-url", "origin", str(tmp_path / "nowhere"))
    if remote != "nowhere":
        git(mine, "remote", "remove", "origin")
    if remote == "a folder":  # which git would take for a remote
        git(mine, "clone", "-q", "--bare", str(tmp_path / "upstream"), "origin")
    with pytest.raises(UsageError, match="git fetch REMOTE main refs/pull/5/head"):
        pin(Target(Kind.PR, number=5), look(mine))


def test_pins_that_cannot_be_read_are_none():
    assert pins_of(None) is None
    assert pins_of({"base": 1, "head": "x"}) is None


def test_a_repository_in_a_path_with_odd_characters(tmp_path):
    root = repository(tmp_path / "a b'c\"d é")
    (root / "app.py").write_text("work = 3\n")
    pins = pin(Target(), look(root))
    assert not is_empty(pins.base, pins.head, look(root))
