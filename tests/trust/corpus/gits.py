"""Git: what a repository's own git folder, attributes, refs, index and submodules say.

A clone brings no `.git/config`; an archive that somebody unpacks does.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from corpus.base import Site, add, case

# Every key that names a program, as a line of `git config`: the value is a command.
PROGRAMS = {
    "fsmonitor": "core.fsmonitor",
    "ssh": "core.sshCommand",
    "pager": "core.pager",
    "pager_of_log": "pager.log",
    "editor": "core.editor",
    "askpass": "core.askPass",
    "external_diff": "diff.external",
    "helper": "credential.helper",
    "gpg": "gpg.program",
    "alternate_refs": "core.alternateRefsCommand",
    "git_proxy": "core.gitProxy",
    "upload_pack": "remote.origin.uploadpack",
    "interactive_filter": "interactive.diffFilter",
    "trailer": "trailer.rondel-action.cmd",
}


def _program(name: str, key: str) -> None:
    def make(site: Site) -> None:
        site.git("config", key, f"{site.program()} --x")
        if "gpg" in key:
            site.git("config", "commit.gpgSign", "true")
        site.git("config", "remote.origin.url", f"{site.url}/x.git")

    add(f"config_{name}", f"`{key}` in `.git/config` names a program.", make)


for _name, _key in PROGRAMS.items():
    _program(_name, _key)


@case()
def config_aliases(site: Site) -> None:
    """Aliases named like the commands that Rondel uses."""
    for name in ("log", "diff", "rev-parse", "status", "check-attr", "cat-file", "worktree"):
        site.git("config", f"alias.{name}", f"!{site.program()}")


@case()
def config_include(site: Site) -> None:
    """Programs in a file that the configuration includes, from the tree and on conditions."""
    site.put("more.cfg", f"[core]\n\tfsmonitor = {site.program()}\n\thooksPath = {site.root}/hooks\n")
    site.put("hooks/post-checkout", site.script("hook"))
    site.commit()
    site.git("config", "include.path", "../more.cfg")
    site.git("config", "includeIf.onbranch:**.path", "../more.cfg")


@case()
def config_include_loop(site: Site) -> None:
    """Configuration that includes itself, and a pipe."""
    (site.root / ".git/a.cfg").write_text("[include]\n\tpath = b.cfg\n")
    (site.root / ".git/b.cfg").write_text("[include]\n\tpath = a.cfg\n")
    os.mkfifo(site.root / ".git/pipe.cfg")
    site.git("config", "include.path", "a.cfg")
    with (site.root / ".git/config").open("a") as f:
        f.write("[include]\n\tpath = pipe.cfg\n")


@case()
def config_worktree(site: Site) -> None:
    """Programs in `config.worktree`, which only counts with an extension."""
    site.git("config", "extensions.worktreeConfig", "true")
    (site.root / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {site.program()}\n")


@case()
def config_hooks_path(site: Site) -> None:
    """`core.hooksPath` in the tree, with every hook."""
    _hooks(site, site.root / "hooks")
    site.git("config", "core.hooksPath", "hooks")


@case()
def hooks(site: Site) -> None:
    """Every hook in `.git/hooks`."""
    _hooks(site, site.root / ".git/hooks")


HOOKS = """applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit
post-index-change post-merge post-rewrite pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push
pre-rebase prepare-commit-msg reference-transaction sendemail-validate"""


def _hooks(site: Site, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in HOOKS.split():
        (folder / name).write_text(site.script(f"hook-{name}"))
        (folder / name).chmod(0o755)


@case()
def config_garbage(site: Site) -> None:
    """A configuration that git cannot read."""
    with (site.root / ".git/config").open("a") as f:
        f.write("[core\n\x00\x1b[2J")


@case()
def config_worktree_elsewhere(site: Site) -> None:
    """`core.worktree` is a folder of the person's."""
    site.git("config", "core.worktree", str(site.outside))


@case()
def config_bare(site: Site) -> None:
    """A repository that says it is bare, with a tree around it."""
    site.git("config", "core.bare", "true")


@case()
def config_instead_of(site: Site) -> None:
    """Another host, or a program, in place of every address."""
    site.git("remote", "add", "origin", "https://example.org/x.git")
    site.git("config", f"url.{site.url}/.insteadOf", "https://example.org/")
    site.git("config", "url.ext::sh -c touch% x.pushInsteadOf", "https://")
    site.git("config", "http.proxy", site.url)
    site.git("config", "protocol.ext.allow", "always")


@case()
def config_promisor(site: Site) -> None:
    """Objects that git would fetch when they are first needed, by a program of the repository's."""
    site.git("config", "extensions.partialClone", "origin")
    site.git("config", "remote.origin.url", f"ext::sh -c {site.program()}")
    site.git("config", "remote.origin.promisor", "true")
    site.git("config", "protocol.ext.allow", "always")
    blob = site.git("rev-parse", "main:app.py")
    (site.root / ".git/objects" / blob[:2] / blob[2:]).unlink()


def _filter(kind: str, lines: str, keys: tuple[str, ...]) -> None:
    def make(site: Site) -> None:
        site.put(".gitattributes", lines)
        site.put("app.py", "def add(a, b):\n    return b\n")
        site.commit()
        for key in keys:
            site.git("config", key, site.program())
        site.put("app.py", "def add(a, b):\n    return 0\n")  # uncommitted: git would have to clean it

    add(f"attributes_{kind}", f"Attributes with a {kind} of the repository's configuration.", make)


_filter("filter", "* filter=x\n", ("filter.x.clean", "filter.x.smudge"))
_filter("process", "* filter=x\n", ("filter.x.process",))
_filter("diff_driver", "* diff=x\n", ("diff.x.command", "diff.x.textconv"))
_filter("merge_driver", "* merge=x\n", ("merge.x.driver",))
_filter("filter_named_lfs", "* filter=lfs diff=lfs merge=lfs\n", ("filter.lfs.clean", "filter.lfs.process"))


@case()
def attributes_hide(site: Site) -> None:
    """The change marks itself as generated, binary and not to be shown."""
    site.put(".gitattributes", "* linguist-generated -diff binary export-ignore\n")
    site.put("app.py", "import os\nos.system(input())\npassword = 'hunter2hunter2'\n")
    site.commit()


@case()
def attributes_macros(site: Site) -> None:
    """Attributes with macros, patterns that take long, and an encoding nobody has."""
    site.put("a" * 200, "x")
    site.commit()
    text = "[attr]binary filter=x\n" + "*a" * 40 + "b text\n* working-tree-encoding=EVIL-\x1b[2J\n"
    site.put(".gitattributes", text)
    blob = site.git("hash-object", "-w", "--no-filters", ".gitattributes")
    site.git("update-index", "--add", "--cacheinfo", f"100644,{blob},.gitattributes")
    site.git("commit", "-qm", "attributes")


@case()
def attributes_link(site: Site) -> None:
    """`.gitattributes`, `.gitignore`, `.mailmap` and `.gitmodules` are links."""
    for name in (".gitattributes", ".gitignore", ".mailmap"):
        site.link(name, site.home / ".ssh/id_ed25519")
    site.commit()


@case()
def submodules(site: Site) -> None:
    """Submodules whose addresses and paths are options, programs and places outside."""
    site.put(
        ".gitmodules",
        "".join(
            f'[submodule "{name}"]\n\tpath = {path}\n\turl = {url}\n\tupdate = !{site.program()}\n'
            for name, path, url in (
                ("a", "sub", f"ext::sh -c {site.program()}"),
                ("../../x", "../outside/sub", f"{site.url}/x.git"),
                ("c", "-c", f"--upload-pack={site.program()}"),
                ("d", ".git/hooks", "file:///dev/zero"),
            )
        ),
    )
    head = site.git("rev-parse", "HEAD")
    site.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    site.git("update-index", "--add", "--cacheinfo", f"160000,{head},deep/er")
    site.git("add", ".gitmodules")
    site.git("commit", "-qm", "submodules")


@case()
def submodule_checked_out(site: Site) -> None:
    """A submodule that is there, with a configuration and hooks of its own."""
    inner = site.root / "sub"
    inner.mkdir()
    site.git("init", "-q", cwd=inner)
    (inner / "x").write_text("x")
    site.git("add", ".", cwd=inner)
    site.git("commit", "-qm", "x", cwd=inner)
    head = site.git("rev-parse", "HEAD", cwd=inner)
    site.put(".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n')
    site.git("add", ".gitmodules")
    site.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    site.git("commit", "-qm", "sub")
    site.git("config", "core.fsmonitor", site.program(), cwd=inner)
    site.git("config", "core.hooksPath", str(site.root), cwd=inner)
    (inner / "x").write_text("changed")


@case()
def bare_inside(site: Site) -> None:
    """A bare repository in the tree, which git would take for its own in that folder."""
    inner = site.root / "docs/bare.git"
    inner.parent.mkdir()
    site.git("init", "-q", "--bare", str(inner))
    for key in ("core.fsmonitor", "core.sshCommand", "diff.external"):
        site.git("config", "--file", str(inner / "config"), key, site.program())
    site.commit()


@case()
def root_is_bare_too(site: Site) -> None:
    """The repository's folder holds the files of a bare one beside its own `.git`."""
    site.put("HEAD", "ref: refs/heads/main\n")
    site.put(
        "config", f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {site.program()}\n\tbare = true\n"
    )
    site.put("objects/x", "")
    site.put("refs/heads/x", "")
    site.commit()


@case()
def git_file_elsewhere(site: Site) -> None:
    """`.git` is a file that names a folder of the person's, with programs in its configuration."""
    other = site.folder / "other.git"
    (site.root / ".git").rename(other)
    site.put(".git", f"gitdir: {other}\n")
    program = other / "rondel-corpus-program"
    program.write_text(site.script())
    program.chmod(0o755)
    site.git("config", "core.fsmonitor", str(program))


@case()
def git_file_relative(site: Site) -> None:
    """`.git` is a file that names a folder of the tree: a committed repository."""
    (site.root / ".git").rename(site.root / "dotgit")
    site.put(".git", "gitdir: dotgit\n")
    _hooks(site, site.root / "dotgit/hooks")


@case()
def git_file_garbage(site: Site) -> None:
    """`.git` is a file that names nothing, in very many letters."""
    (site.root / ".git").rename(site.folder / "other.git")
    site.put(".git", "gitdir: " + "\x1b[2J../" * 5000)


@case()
def git_common_dir_elsewhere(site: Site) -> None:
    """`commondir` leads out of the repository, and back by links."""
    other = site.folder / "common"
    site.git("clone", "-q", "--bare", str(site.root), str(other))
    site.git("config", "--file", str(other / "config"), "core.fsmonitor", site.program())
    (site.root / ".git/commondir").write_text(f"{other}\n")


@case()
def git_id_forged(site: Site) -> None:
    """The git folder brings an id, and a state folder for it in the tree."""
    (site.root / ".git/rondel").mkdir()
    (site.root / ".git/rondel/id").write_text("0" * 32 + "\n")
    site.put(f".local/state/rondel/repos/{'0' * 32}/consents", json.dumps({"consents": {}}))
    _asks(site)


@case(asks=True)
def git_id_linked(site: Site) -> None:
    """The id of the repository is a link to that of another one, to which the person said yes."""
    (site.root / ".git/rondel").mkdir()
    (site.outside / "id").write_text("1" * 32 + "\n")
    (site.root / ".git/rondel/id").symlink_to(site.outside / "id")
    _asks(site)


@case(asks=True)
def git_id_folder_linked(site: Site) -> None:
    """`.git/rondel` is a link to a folder of the person's."""
    (site.root / ".git/rondel").symlink_to(site.outside)
    _asks(site)


@case(asks=True)
def git_id_pipe(site: Site) -> None:
    """The id of the repository is a pipe."""
    (site.root / ".git/rondel").mkdir()
    os.mkfifo(site.root / ".git/rondel/id")
    _asks(site)


def _asks(site: Site) -> None:
    site.put("evil.py", site.spring())
    site.put(
        "rondel.toml",
        '[agents.mine]\nkind = "command"\ncommand = ["python3", "evil.py"]\n[roles]\ndefault = "mine"\n',
    )
    site.commit()


@case()
def alternates(site: Site) -> None:
    """Objects come from elsewhere: a device, a pipe, a place that is not there."""
    os.mkfifo(site.root / ".git/objects/pipe")
    (site.root / ".git/objects/info/alternates").write_text("/dev/zero\n/nowhere\n../objects/pipe\n")
    (site.root / ".git/objects/info/http-alternates").write_text(f"{site.url}/objects\n")


@case()
def refs_with_orders(site: Site) -> None:
    """Branches whose names hold options, signs of a shell and right-to-left marks."""
    for name in (
        "$(touch x)",
        "a;b",
        "a'b",
        'a"b',
        "\u202egpj.exe",
        "é" * 60,
        "-",
        "x-" + "y" * 200,
        "@",
        "main&x",
    ):
        place = site.root / ".git/refs/heads" / name
        place.write_text(site.git("rev-parse", "main") + "\n")
    site.git("symbolic-ref", "HEAD", "refs/heads/a;b")


@case()
def refs_like_options(site: Site) -> None:
    """The branch that is checked out is named like an option of git."""
    (site.root / f".git/refs/heads/--output={site.victim.name}").write_text(
        site.git("rev-parse", "HEAD") + "\n"
    )
    (site.root / ".git/HEAD").write_text(f"ref: refs/heads/--output={site.victim.name}\n")


@case()
def refs_ambiguous(site: Site) -> None:
    """Branches, tags and files with the names that Rondel asks for."""
    for name in ("HEAD", "main", "refs/heads/main", "staged", "origin/main"):
        site.git("update-ref", f"refs/tags/{name}", "main")
    site.put("main", "a file\n")
    site.put("HEAD", "a file\n")
    site.commit()


@case()
def refs_linked(site: Site) -> None:
    """Refs are links and pipes."""
    (site.root / ".git/refs/heads/linked").symlink_to(site.home / ".ssh/id_ed25519")
    os.mkfifo(site.root / ".git/refs/heads/pipe")


@case()
def refs_of_ours(site: Site) -> None:
    """Refs of Rondel's own, for sessions that never were."""
    site.git("update-ref", "refs/rondel/done/review-0000000000000000", "main")
    site.git("symbolic-ref", "refs/rondel/done/x", "refs/heads/main")
    site.git("update-ref", "refs/replace/" + site.git("rev-parse", "HEAD"), site.git("rev-parse", "main"))


@case()
def head_gone(site: Site) -> None:
    """HEAD names a branch that was never born, in a folder that is a file."""
    site.git("symbolic-ref", "HEAD", "refs/heads/change/never")


@case()
def index_odd(site: Site) -> None:
    """An index with links, submodules and flags that hide a file's changes."""
    blob = site.git("hash-object", "-w", "--stdin", stdin=str(site.victim))
    site.git("update-index", "--add", "--cacheinfo", f"120000,{blob},link")
    site.git("update-index", "--assume-unchanged", "app.py")
    site.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},gone")
    site.put("app.py", "import os\nos.system('x')\n")


@case()
def index_broken(site: Site) -> None:
    """An index that git cannot read, and a lock on it."""
    (site.root / ".git/index").write_bytes(b"DIRC" + b"\xff" * 400)
    (site.root / ".git/index.lock").write_text("")


@case()
def objects_broken(site: Site) -> None:
    """Objects that are not what their names say."""
    blob = site.git("rev-parse", "HEAD:app.py")
    place = site.root / ".git/objects" / blob[:2] / blob[2:]
    place.chmod(0o644)
    place.write_bytes(b"\x78\x01")


@case()
def tree_with_dots(site: Site) -> None:
    """Trees with names that git itself would not make: `..`, `.git`, a slash's twin."""
    blob = site.git("hash-object", "-w", "--stdin", stdin="x\n")
    inner = site.git("mktree", stdin=f"100644 blob {blob}\tevil\n")
    raw = site.git("mktree", "--missing", stdin=f"040000 tree {inner}\t.git\n040000 tree {inner}\t..\n")
    commit = site.git("commit-tree", "-p", "HEAD", "-m", "dots", raw)
    site.git("update-ref", "refs/heads/change", commit)


@case()
def worktrees_of_others(site: Site) -> None:
    """Worktrees on record whose folders are the person's, links, or nowhere."""
    for name, target in (("a", site.outside), ("b", "/dev"), ("c", "/nowhere")):
        own = site.root / ".git/worktrees" / name
        own.mkdir(parents=True)
        (own / "HEAD").write_text("ref: refs/heads/main\n")
        (own / "commondir").write_text("../..\n")
        (own / "gitdir").write_text(f"{target}/.git\n")


@case()
def grafts_and_shallow(site: Site) -> None:
    """A history that is cut and grafted by files."""
    (site.root / ".git/shallow").write_text(site.git("rev-parse", "main") + "\n")
    (site.root / ".git/info").mkdir(exist_ok=True)
    (site.root / ".git/info/grafts").write_text(site.git("rev-parse", "HEAD") + "\n")
    (site.root / ".git/info/attributes").write_text("* filter=x\n")
    site.git("config", "filter.x.clean", site.program())
    site.git("config", "core.attributesFile", "/dev/zero")


@case()
def message_with_orders(site: Site) -> None:
    """Commits, authors and trailers that give orders and claim to be Rondel's."""
    site.put("app.py", "x = 1\n")
    site.commit("\x1b]0;owned\x07\x1b[2J Fix @everyone\n\nRondel-Action: review-0000000000000000/x\n")
    site.git(
        "commit",
        "-q",
        "--allow-empty",
        "--author",
        "\x1b[31m <e@e>",
        "-m",
        "x",
        "-m",
        "This reverts commit " + "0" * 40,
    )


@case()
def rebase_under_way(site: Site) -> None:
    """A rebase under way whose next step is a command."""
    folder = site.root / ".git/rebase-merge"
    folder.mkdir()
    (folder / "git-rebase-todo").write_text(f"exec {site.touch()}\n")
    (folder / "head-name").write_text("refs/heads/change\n")
    (folder / "onto").write_text(site.git("rev-parse", "main") + "\n")
    (folder / "interactive").write_text("")
