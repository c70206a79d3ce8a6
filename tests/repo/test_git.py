"""One git: whatever a repository's configuration says, no program of its runs in a call of ours."""

import ast
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import rondel
from rondel.engine.look import DiskReader
from rondel.errors import GitError
from rondel.model.refs import END
from rondel.repo.config import REMOTE, TEXT_MERGE, ask_about, is_fixed_program, overrides
from rondel.repo.git import Calls, Git, GitStopped, calls, command, to_the_end
from rondel.repo.workspaces import Commit, Unusable, Workspaces
from rondel.workflows.review.target import Target, pin

NAMES = ("x", "a=b", 'q"uote', "Cas.E", "with space")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GIT_ALLOW_PROTOCOL"):
        monkeypatch.delenv(name, raising=False)
    plain(tmp_path, "config", "--global", "user.name", "t")
    plain(tmp_path, "config", "--global", "user.email", "t@localhost")
    return home


def plain(folder: Path, *args: str) -> str:
    """Git as a person has it."""
    done = subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path):
    """Two branches that conflict in `a.x`, and every file has every attribute."""
    repo = tmp_path / "repo"
    repo.mkdir()
    plain(repo, "init", "-q", "-b", "main")
    (repo / ".gitattributes").write_text("*.x filter=x diff=x merge=x\n")
    (repo / "a.x").write_text("one\n")
    (repo / "b.txt").write_text("b\n")
    plain(repo, "add", "-A")
    plain(repo, "commit", "-qm", "one")
    plain(repo, "checkout", "-q", "-b", "other")
    (repo / "a.x").write_text("two\n")
    plain(repo, "commit", "-qam", "two")
    plain(repo, "checkout", "-q", "main")
    (repo / "a.x").write_text("three\n")
    plain(repo, "commit", "-qam", "three")
    plain(repo, "init", "-q", "--bare", str(tmp_path / "origin.git"))
    plain(repo, "push", "-q", str(tmp_path / "origin.git"), "main", "other")
    plain(repo, "remote", "add", "origin", str(tmp_path / "origin.git"))
    return repo


@pytest.fixture
def marker(tmp_path):
    """A program that notes who started it, and passes its input on."""
    program = tmp_path / "evil.sh"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/ran\nexec cat\n')
    program.chmod(0o755)
    return program


def ran(tmp_path: Path) -> str:
    file = tmp_path / "ran"
    return file.read_text() if file.exists() else ""


def calls_of_every_kind(repo: Path, tmp_path: Path) -> None:
    """Every command that the source gives to git, in the person's tree and in worktrees."""
    git = Git(repo)
    (repo / "a.x").write_text("changed\n")
    os.utime(repo / "b.txt")
    main, other = git("rev-parse", "--verify", END, "main"), git("rev-parse", "--verify", END, "other")
    for words in (
        ("status", "--porcelain"),
        ("diff",),
        ("diff", END, main, other),
        ("diff-files", "-p"),
        ("diff-index", "-p", END, main),
        ("diff-tree", "-p", END, main, other),
        ("log", "-p", "--format=%h %G?", END, "other"),
        ("show", END, main),
        ("show", END, f"{main}:a.x"),
        ("grep", "--no-textconv", "changed"),
        ("ls-files", "-z"),
        ("ls-tree", "-r", END, main),
        ("check-attr", "-a", "--", "a.x"),
        ("cat-file", "--filters", END, f"{main}:a.x"),
        ("update-index", "-q", "--refresh"),
        ("add", "--all"),
        ("fetch", "--quiet", END, "origin", "refs/heads/other"),
        ("push", "--quiet", END, "origin", "main"),
        ("fetch", "--quiet", END, "ext", "refs/heads/other"),
        ("branch", "--no-track", END, "made", main),
        ("update-ref", END, "refs/heads/moved", other),
        ("for-each-ref", "--format=%(refname) %(worktreepath)"),
        ("worktree", "add", "--quiet", "--detach", END, str(tmp_path / "w"), main),
        ("commit", "--quiet", "-m", "c"),
        ("config", "user.email"),
    ):
        git.run(*words)
    tree = Git(tmp_path / "w")
    for words in (
        ("cherry-pick", "--allow-empty", END, other),
        ("cherry-pick", "--quit"),
        ("checkout", "--quiet", "--force", "--detach", END, main),
        ("merge", "--no-ff", "--no-edit", "-m", "m", END, "other"),
        ("reset", "--quiet", "--hard"),
        ("clean", "--quiet", "-d", "--force"),
        ("read-tree", "--reset", "-u", END, other),
        ("checkout-index", "--force", "--all"),
        ("commit-tree", "-p", main, "-m", "x", END, f"{main}^{{tree}}"),
    ):
        tree.run(*words)
    look = DiskReader(repo, lambda: datetime.now(UTC))
    look.git("status", check=False)
    look.run(["sh", "-c", "git status; git add -A; git diff; git log -p; git commit -m y; git --version"])


KEYS = {
    **{f"filter.{n}.{w}": "{}" for n in NAMES for w in ("clean", "smudge", "process")},
    **{f"diff.{n}.{w}": "{}" for n in NAMES for w in ("command", "textconv")},
    **{f"merge.{n}.driver": "{} %A" for n in NAMES},
    "diff.external": "{}",
    "merge.default": "x",
    "core.fsmonitor": "{}",
    "core.pager": "{}",
    "core.editor": "{}",
    "core.sshCommand": "{}",
    "core.askPass": "{}",
    "core.gitProxy": "{}",
    "core.alternateRefsCommand": "{}",
    "gpg.program": "{}",
    "gpg.ssh.program": "{}",
    "gpg.ssh.defaultKeyCommand": "{}",
    "gpg.x509.program": "{}",
    "commit.gpgSign": "true",
    "tag.gpgSign": "true",
    "push.gpgSign": "true",
    "log.showSignature": "true",
    "credential.helper": "!{}",
    "credential.https://localhost.helper": "!{}",
    "uploadpack.packObjectsHook": "{}",
    "receive.procReceiveRefs": "refs",
    "remote.origin.uploadpack": "{}",
    "remote.origin.receivepack": "{}",
    "remote.ext.url": "ext::{}",
    "remote.origin.vcs": "",
    "remote.vcs.vcs": "{}",
    "protocol.ext.allow": "always",
    "protocol.allow": "always",
    "submodule.x.update": "!{}",
    "trailer.x.command": "{}",
    "trailer.x.cmd": "{}",
    "trailer.x.key": "X",
    "sequence.editor": "{}",
    "interactive.diffFilter": "{}",
    "pager.status": "{}",
    "pager.log": "{}",
    "pager.diff": "{}",
    "alias.status": "!{}",
    "alias.st": "!{}",
    "man.x.cmd": "{}",
    "browser.x.cmd": "{}",
    "tar.x.command": "{}",
    "difftool.x.cmd": "{}",
    "mergetool.x.cmd": "{}",
    "gc.auto": "1",
    "maintenance.auto": "true",
    "lfs.customtransfer.x.path": "{}",
    "lfs.extension.x.clean": "{}",
}
HOOKS = (
    *("pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "pre-merge-commit", "post-merge"),
    *(
        "post-checkout",
        "post-rewrite",
        "post-index-change",
        "reference-transaction",
        "pre-push",
        "pre-auto-gc",
    ),
)
LEFT_OUT = {"remote.origin.vcs"}


def write_config(file: Path, marker: Path, keys: dict[str, str]) -> None:
    for key, value in keys.items():
        if key not in LEFT_OUT:
            plain(file.parent, "config", "--file", str(file), key, value.format(marker))


def hooks_in(folder: Path, marker: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in HOOKS:
        (folder / name).symlink_to(marker)


@pytest.mark.parametrize("how", ["config", "include", "includeIf", "worktree", "hooksPath"])
def test_no_program_of_a_repositorys_configuration_runs(repo, tmp_path, marker, how):
    evil = tmp_path / "evil.cfg"
    hooks_in(repo / ".git/hooks", marker)
    match how:
        case "config":
            write_config(repo / ".git/config", marker, KEYS)
        case "include":
            write_config(evil, marker, KEYS)
            plain(repo, "config", "include.path", "../../evil.cfg")
        case "includeIf":  # the condition does not hold yet when the configuration is first read
            write_config(evil, marker, KEYS)
            plain(repo, "config", "includeIf.onbranch:later.path", str(evil))
            Git(repo)("rev-parse", "HEAD")
            (repo / ".git/refs/heads/later").write_text(plain(repo, "rev-parse", "main"))
            (repo / ".git/HEAD").write_text("ref: refs/heads/later\n")
        case "worktree":
            plain(repo, "config", "extensions.worktreeConfig", "true")
            write_config(repo / ".git/config.worktree", marker, KEYS)
        case "hooksPath":
            hooks_in(tmp_path / "hooks", marker)
            plain(repo, "config", "core.hooksPath", str(tmp_path / "hooks"))
    calls_of_every_kind(repo, tmp_path)
    assert ran(tmp_path) == ""
    assert (tmp_path / "w").is_dir()


def test_the_marker_would_be_seen(repo, tmp_path, marker):
    plain(repo, "config", "filter.x.clean", str(marker))
    (repo / "a.x").write_text("changed\n")
    plain(repo, "add", "-A")
    assert str(marker) in ran(tmp_path)


def test_a_configuration_that_changes_later_is_noticed_by_the_next_call(repo, tmp_path, marker):
    git = Git(repo)
    git("status")
    plain(repo, "config", "filter.x.clean", str(marker))
    (repo / "a.x").write_text("changed\n")
    git("add", "--all")
    assert ran(tmp_path) == ""


def test_a_repository_inside_the_tree_runs_nothing(repo, tmp_path, marker):
    """A nested repository that an agent registered: git would look into it with its own configuration."""
    inside = repo / "sub"
    inside.mkdir()
    plain(inside, "init", "-q", "-b", "main")
    (inside / ".gitattributes").write_text("* filter=x\n")
    (inside / "f").write_text("1\n")
    plain(inside, "add", "-A")
    plain(inside, "commit", "-qm", "in")
    (repo / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n')
    plain(repo, "add", "-A")
    plain(repo, "commit", "-qm", "sub")
    write_config(inside / ".git/config", marker, KEYS)
    (inside / "f").write_text("2\n")
    os.utime(inside / "f", (1, 1))  # git has to read it
    spaces = Workspaces(repo, tmp_path / "spaces")
    path = spaces.write("s", "k", "main")
    shutil.copytree(inside, path / "sub", dirs_exist_ok=True)
    refused = spaces.commit(path, "s", "k", "m")
    assert isinstance(refused, Unusable)
    assert "submodule 'sub'" in refused.problem
    pin(Target(), DiskReader(repo, lambda: datetime.now(UTC)))
    assert ran(tmp_path) == ""


def test_a_bare_repository_in_a_folder_is_not_taken(tmp_path, marker):
    bare = tmp_path / "unpacked" / "docs"
    bare.mkdir(parents=True)
    plain(bare, "init", "-q", "--bare", ".")
    write_config(bare / "config", marker, {"core.fsmonitor": "{}", "core.worktree": ".."})
    plain(bare, "config", "core.bare", "false")
    assert not Git(bare).run("status").ok
    assert ran(tmp_path) == ""


def test_nothing_of_the_callers_environment_reaches_git(repo, tmp_path, marker, monkeypatch):
    for name in ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_EDITOR", "GIT_ASKPASS"):
        monkeypatch.setenv(name, str(marker))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor={marker}'")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(marker))
    git = Git(repo)
    (repo / "a.x").write_text("changed\n")
    git("status")
    git("diff")
    assert ran(tmp_path) == ""


def test_a_configuration_that_is_no_file_ends_nothing_but_the_call(repo):
    os.mkfifo(repo / ".git/fifo")
    plain(repo, "config", "include.path", "fifo")
    with pytest.raises(GitError, match="no regular file"):
        Git(repo)("status")


# -- what counts ----------------------------------------------------------------------------------


def test_credential_helpers_of_the_person_count_and_those_of_the_repository_do_not(repo, tmp_path, marker):
    own = tmp_path / "own.sh"
    own.write_text("#!/bin/sh\necho username=me\necho password=mine\n")
    own.chmod(0o755)
    plain(repo, "config", "--global", "credential.helper", f"!{own}")
    write_config(repo / ".git/config", marker, {k: v for k, v in KEYS.items() if k.startswith("credential")})
    said = Git(repo)("credential", "fill", stdin="protocol=https\nhost=localhost\n\n")
    assert "password=mine" in said
    assert ran(tmp_path) == ""


def test_a_filter_of_the_persons_own_configuration_runs_whatever_the_repository_says(repo, tmp_path, marker):
    plain(repo, "config", "--global", "filter.x.clean", "tr a-z A-Z")
    plain(repo, "config", "--global", "filter.x.smudge", "tr A-Z a-z")
    plain(repo, "config", "filter.x.clean", str(marker))
    plain(repo, "config", "filter.x.required", "true")
    (repo / "a.x").write_text("changed\n")
    git = Git(repo)
    git("add", "--all")
    assert git("show", END, ":a.x") == "CHANGED"
    assert git.unfiltered(["a.x", "b.txt"]) == ()
    assert ran(tmp_path) == ""


def test_a_process_of_the_repository_keeps_the_persons_filter_from_counting(repo, tmp_path, marker):
    """Git cannot be told to forget it: rather no filter, which is said, than the repository's."""
    plain(repo, "config", "--global", "filter.x.clean", "tr a-z A-Z")
    plain(repo, "config", "filter.x.process", str(marker))
    (repo / "a.x").write_text("changed\n")
    assert Git(repo).unfiltered(["a.x"]) == ("a.x",)
    Git(repo)("add", "--all")
    assert ran(tmp_path) == ""


def test_a_filter_of_the_repository_runs_as_it_was_consented_to_and_not_otherwise(repo, tmp_path, marker):
    consented = {"clean": "tr a-z A-Z", "smudge": "tr A-Z a-z"}
    ask_about(repo / ".git", lambda name, keys: name == "git filter x" and keys == consented)
    for key, value in consented.items():
        plain(repo, "config", f"filter.x.{key}", value)
    (repo / "a.x").write_text("changed\n")
    git = Git(repo)
    git("add", "--all")
    assert git("show", END, ":a.x") == "CHANGED"
    assert git.unfiltered(["a.x", "b.txt"]) == ()
    assert git.brought() == {"git filter x": consented}
    plain(repo, "config", "filter.x.clean", str(marker))
    assert git.unfiltered(["a.x", "b.txt"]) == ("a.x",)
    (repo / "a.x").write_text("changed again\n")
    git("add", "--all")
    assert ran(tmp_path) == ""


def test_a_consent_that_is_taken_back_counts_at_once(repo, marker, tmp_path):
    said = {"yes": True}
    ask_about(repo / ".git", lambda *_: said["yes"])
    plain(repo, "config", "filter.x.clean", "tr a-z A-Z")
    assert Git(repo).unfiltered(["a.x"]) == ()
    said["yes"] = False
    assert Git(repo).unfiltered(["a.x"]) == ("a.x",)
    assert ran(tmp_path) == ""


def test_an_include_that_only_git_can_read_starts_no_git(repo, tmp_path, marker):
    (repo / ".git/more").write_text(f'[filter "x"]\n\tclean = {marker}\n')
    plain(repo, "config", "include.path", "%(prefix)/../proc/self/cwd/.git/more")
    (repo / "a.x").write_text("changed\n")
    with pytest.raises(GitError, match="only git can follow"):
        Git(repo)("add", "--all")
    assert ran(tmp_path) == ""


@pytest.mark.parametrize("how", ["gitdir", "commondir"])
def test_a_blank_at_the_end_of_a_name_of_gits_is_part_of_it(repo, tmp_path, marker, how):
    """What looks like a harmless repository to who strips it is another one to git."""
    (repo / ".git").rename(repo / "g ")
    shutil.copytree(repo / "g ", repo / "g")
    if how == "gitdir":
        (repo / ".git").write_text("gitdir: g \n")
    else:
        (repo / "g").rename(repo / ".git")
        (repo / ".git/commondir").write_text("../g \n")
    subprocess.run(["git", "config", "--file", repo / "g /config", "filter.x.clean", str(marker)], check=True)
    (repo / "a.x").write_text("changed\n")
    Git(repo)("add", "--all")
    assert ran(tmp_path) == ""


def test_a_repository_whose_files_are_elsewhere_starts_no_git(repo, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    plain(repo, "config", "core.worktree", str(tmp_path / "elsewhere"))
    with pytest.raises(GitError, match=r"core\.worktree"):
        Git(repo)("add", "--all")
    plain(repo, "config", "core.worktree", "..")
    Git(repo)("add", "--all")


def test_a_partial_clone_fetches_after_consent_to_where_from(repo, tmp_path):
    plain(repo, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    plain(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{repo}", str(clone))
    said = {"yes": False}
    ask_about(clone / ".git", lambda name, _: name == REMOTE and said["yes"])
    with pytest.raises(GitError, match="partial clone"):
        Git(clone)("cat-file", "blob", END, "HEAD:b.txt")
    ((name, keys),) = Git(clone).brought().items()
    assert (name, keys["remote.origin.url"]) == (REMOTE, f"file://{repo}")
    said["yes"] = True
    assert Git(clone)("cat-file", "blob", END, "HEAD:b.txt") == "b"


def test_no_command_but_fetch_and_push_has_a_network(repo, tmp_path):
    """Where git does not know how to do without what it lacks, it may use no protocol."""
    assert {Git(repo).env[name] for name in ("GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL")} == {"1", "none"}
    plain(tmp_path, "clone", "-q", "--bare", str(repo), "bare")
    plain(repo, "remote", "add", "hub", f"file://{tmp_path}/bare")
    Git(repo)("fetch", "--quiet", "hub", END, "main")
    Git(repo)("push", "--quiet", "hub", END, "other")


@pytest.mark.parametrize("filters", ["global", "local"])
def test_where_agents_wrote_no_filter_takes_its_orders_from_what_is_there(repo, tmp_path, filters):
    ask_about(repo / ".git", lambda *_: True)
    plain(repo, "config", f"--{filters}", "filter.x.clean", "python3 -m strip")
    (repo / "strip.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')\n")
    (repo / "a.x").write_text("changed\n")
    git = Git(repo, by_agents=True)
    git("add", "--all")
    assert not (tmp_path / "ran").exists()
    assert git.unfiltered(["a.x"]) == ("a.x",)
    plain(repo, "config", f"--{filters}", "filter.x.clean", "tr a-z A-Z")
    (repo / "a.x").write_text("changed again\n")
    git("add", "--all")
    assert git("show", END, ":a.x") == "CHANGED AGAIN"
    assert git.unfiltered(["a.x"]) == ()


@pytest.mark.parametrize(
    ("command", "independent"),
    [
        ("git-lfs clean -- %f", True),
        ("git-lfs filter-process", True),
        ("git lfs clean -- %f", True),
        ("nbstripout", True),
        ("/usr/bin/git-crypt clean", True),
        ('"git-crypt" smudge --key-name=x', True),
        ("", True),
        ("python3 -m nbstripout", False),
        ("/usr/bin/python3 -m nbstripout", False),
        ("tools/strip.sh", False),
        ("./strip", False),
        ("sh -c true", False),
        ("env X=1 tool", False),
        ("X=1 tool", False),
        ("tool | ./other", False),
        ("tool $(./x)", False),
        ("tool; ./x", False),
        ("'unclosed", False),
    ],
)
def test_a_filter_is_independent_of_its_folder_as_a_program_by_its_name(command, independent):
    assert is_fixed_program(command) is independent


def test_attributes_that_only_convert_count(repo):
    (repo / ".gitattributes").write_text(
        "*.crlf text eol=crlf\n*.u16 working-tree-encoding=UTF-16\n*.b binary\n"
    )
    (repo / "a.crlf").write_bytes(b"a\r\nb\r\n")
    (repo / "a.u16").write_bytes("ä\n".encode("utf-16"))
    (repo / "a.b").write_bytes(b"\r\n\0")
    git = Git(repo)
    git("add", "--all")
    assert git.raw("show", END, ":a.crlf") == b"a\nb\n"
    assert git.raw("show", END, ":a.u16") == "ä\n".encode()
    assert git.raw("show", END, ":a.b") == b"\r\n\0"
    assert git.unfiltered(["a.crlf", "a.u16", "a.b"]) == ()


def test_a_merge_driver_of_the_repository_is_a_merge_of_texts(repo, tmp_path, marker):
    plain(repo, "config", "merge.x.driver", f"{marker} %A")
    assert not Git(repo).run("merge", "--no-edit", END, "other").ok
    assert "<<<<<<< " in (repo / "a.x").read_text()
    assert "git merge-file" in TEXT_MERGE
    assert ran(tmp_path) == ""


@pytest.mark.parametrize("defined", [True, False])
def test_a_file_whose_filter_may_not_run_is_named_and_not_committed(repo, tmp_path, marker, defined):
    if defined:
        plain(repo, "config", "filter.x.clean", str(marker))
    spaces = Workspaces(repo, tmp_path / "spaces")
    path = spaces.write("s", "k", "main")
    (path / "a.x").write_text("mine\n")
    (path / "b.txt").write_text("mine\n")
    refused = spaces.commit(path, "s", "k", "m")
    assert isinstance(refused, Unusable)
    assert "'a.x'" in refused.problem
    assert "b.txt" not in refused.problem
    assert plain(repo, "branch", "--list", "rondel/*") == ""
    (path / "a.x").write_text("three\n")
    commit = spaces.commit(path, "s", "k", "m")
    assert isinstance(commit, Commit)
    assert commit.changed == ("b.txt",)
    assert ran(tmp_path) == ""


def test_a_persons_tree_gets_no_file_without_its_filter(repo, tmp_path, marker):
    """Their tree stays whole: a file that git would write as it is stored is refused by name."""
    plain(repo, "branch", "topic", "main")
    for key in ("clean", "smudge"):
        plain(repo, "config", f"filter.x.{key}", str(marker))
    tree = plain(repo, "rev-parse", "other:a.x")
    git = Git(repo, index=tmp_path / "index")
    git("read-tree", END, "main")
    git("update-index", "--cacheinfo", f"100644,{tree},a.x")
    new = git("commit-tree", "-p", "main", "-m", "new", END, git("write-tree"))
    plain(repo, "branch", "-f", "topic", new)
    spaces = Workspaces(repo, tmp_path / "spaces")
    with pytest.raises(GitError, match=r"a\.x"):
        spaces.merge("topic", "main", "m")
    assert (repo / "a.x").read_text() == "three\n"
    assert plain(repo, "status", "--porcelain") == ""
    assert not plain(repo, "log", "--format=%s", "-1").startswith("new")


# -- how it is called -----------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["--output=/tmp/x", "-x", "", "a\0b", "-"])
@pytest.mark.parametrize("call", [("log",), ("checkout", "--detach"), ("show", "-s")])
def test_no_value_is_an_option(repo, call, word):
    with pytest.raises(GitError, match="is not given"):
        command((*call, END, word))


def test_a_call_starts_no_second_process(repo, monkeypatch):
    git = Git(repo)
    git("status")
    started = []
    real = subprocess.Popen.__init__
    monkeypatch.setattr(
        subprocess.Popen, "__init__", lambda s, a, **k: (started.append(a), real(s, a, **k))[1]
    )
    git("status")
    Git(repo)("rev-parse", "HEAD")
    assert [a[:3] for a in started] == [["git", "--no-pager", "status"], ["git", "--no-pager", "rev-parse"]]
    assert overrides(repo, None, git.env).entries == ()


SOURCE = Path(rondel.__file__).parent
STARTERS = {"repo/git.py", "repo/config.py", "testing/kills.py"}  # the last as a person would


def test_git_is_started_in_one_place():
    """No other module makes a command line that begins with git."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            first = node.elts[0] if isinstance(node, ast.List | ast.Tuple) and node.elts else None
            if isinstance(node, ast.List) and isinstance(first, ast.Constant) and first.value == "git":
                assert str(file.relative_to(SOURCE)) in STARTERS, f"{file}:{node.lineno}"


CALLS = ("git", "git_in", "run", "raw", "names", "typed", "differing", "_git")  # how git is called


def test_every_value_stands_after_the_end_of_the_options():
    """A word that is not written in the source could be an option; git must know that it is none."""
    wrong = []
    for file in SOURCE.rglob("*.py"):
        tree = ast.parse(file.read_text())
        constant = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id.upper() == target.id
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and is_git(node):
                values = before_end(node, constant)
                wrong += [f"{file.relative_to(SOURCE)}:{v.lineno} {ast.unparse(v)}" for v in values]
    assert wrong == []


def is_git(call: ast.Call) -> bool:
    """Whether a call is one of git: its words say so, for a `run` of anything else is given a list."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    words = [a for a in call.args if isinstance(a, ast.Constant | ast.Starred)]
    return name in CALLS and bool(words) and not isinstance(call.args[0], ast.List)


IN = ("git_in", "_git", "differing")  # whose first argument says where
TAKING = ("-p", "-m", "-b", "-F", "-c")  # options: the next word is theirs, whatever it is
WORDS = (
    "args",
    "command",
    "words",
    "words[0]",
    "words[1:]",
    "log",
    "look",
    "refs",
    "patterns",
    "excludes",
    "who",
)
WORDS_OF = ("self.excludes(mark)", "trees.excludes(mark)")


def before_end(call: ast.Call, constant: set[str]) -> list[ast.expr]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    found: list[ast.expr] = []
    previous: object = None
    for arg in call.args[1:] if name in IN else call.args:
        value = arg.value if isinstance(arg, ast.Constant) else None
        if value in ("--", END) or (isinstance(arg, ast.Name) and arg.id == "END"):
            break
        if previous not in TAKING and not is_literal(arg, constant):
            found.append(arg)
        previous = value
    return found


def is_literal(arg: ast.expr, constant: set[str]) -> bool:
    match arg:
        case ast.Constant():
            return True
        case ast.JoinedStr(values=[ast.Constant(value=str(first)), *_]):
            return (first.startswith("-") and "=" in first) or first.startswith("refs/")
    text = ast.unparse(arg).removeprefix("*")
    return text in constant or text in WORDS or text in WORDS_OF


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".gitignore", ("status", "--porcelain")),
        ("deep/er/.gitignore", ("status", "--porcelain")),
        (".mailmap", ("log", "-1")),
        (".git/refs/heads/pipe", ("for-each-ref",)),
        (".git/packed-refs", ("for-each-ref",)),
        (".git/objects/info/alternates", ("log", "-1")),
        (".git/index", ("status", "--porcelain")),
    ],
)
def test_a_git_that_waits_for_a_pipe_is_not_waited_for(repo, monkeypatch, name, words):
    monkeypatch.setattr("rondel.repo.git.PATIENCE_S", 0.3)
    place = repo / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    started = time.monotonic()
    with pytest.raises(GitError, match="no regular file") as refused:
        Git(repo).run(*words)
    assert str(place) in str(refused.value)
    assert time.monotonic() - started < 20


def test_a_slow_git_is_waited_for(repo, monkeypatch):
    """Also where other pipes are about, which git does not read."""
    monkeypatch.setattr("rondel.repo.git.PATIENCE_S", 0.0)
    os.mkfifo(repo / "pipe")
    assert Git(repo).run("cat-file", "-e", END, "HEAD").ok
    assert Git(repo).run("hash-object", "--stdin", stdin="x" * 1_000_000).ok


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_git_ends_when_its_run_is_told_to(repo, tmp_path, stubborn):
    """Also with a filter that does not: whatever a git waits for."""
    ours, ignored = Calls(), "trap '' TERM; " if stubborn else ""
    program = tmp_path / "slow"
    program.write_text(f"#!/bin/sh\n{ignored}echo $$ > {tmp_path}/pid\nsleep 60\n")
    program.chmod(0o755)
    plain(repo, "config", "--global", "filter.x.clean", str(program))
    (repo / "a.x").write_text("mine\n")

    def add() -> None:
        token = calls.set(ours)
        with pytest.raises(GitStopped):
            Git(repo).run("add", "a.x")
        with pytest.raises(GitStopped):
            Git(repo).run("status")
        with to_the_end():
            assert Git(repo).run("rev-parse", "HEAD").ok
        calls.reset(token)

    with ThreadPoolExecutor(1) as threads:
        work = threads.submit(add)
        while not (tmp_path / "pid").exists():
            time.sleep(0.02)
        began = time.monotonic()
        ours.end()
        work.result(20)
    assert time.monotonic() - began < 10
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists() or "zombie" in Path(f"/proc/{pid}/status").read_text()
    assert not (repo / ".git/index.lock").exists() or stubborn


def test_nothing_stands_in_for_a_commit(tmp_path):
    """Neither a replacement nor a graft says what a commit is, or what it came after."""
    git = Git(tmp_path)
    git("init", "-q")
    for subject in ("first", "second"):
        git("commit", "-q", "--allow-empty", "-m", subject)
    second, first = git("rev-list", "HEAD").split()
    git("replace", first, second)
    assert git("show", "--no-patch", "--format=%s", END, first) == "first"
    (tmp_path / ".git/info").mkdir(exist_ok=True)
    (tmp_path / ".git/info/grafts").write_text(f"{second}\n")
    assert git("rev-list", END, second).split() == [second, first]
    (tmp_path / ".git/info/grafts").unlink()
    os.mkfifo(tmp_path / ".git/info/grafts")  # nobody reads it: there is nothing to wait for
    assert git("rev-list", END, second).split() == [second, first]
