"""Consents: what a person said yes to in a repository, kept in their own state folder.

A repository is known by a random id in its git folder, which no clone brings and a moved
folder keeps. Consents only accumulate, so that a state once known never asks again;
`revoke` takes all of them back.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

import platformdirs

from rondel import paths
from rondel.errors import RondelError, UnsafePath, UsageError
from rondel.model.changes import Document
from rondel.model.consent import Everything
from rondel.model.names import digest
from rondel.model.times import stamp
from rondel.repo.git import Git
from rondel.store import documents, files
from rondel.store.locks import locked
from rondel.trust.named import ALL, PROGRAM, Found, Wanted
from rondel.trust.parts import Part

VARIABLE = (
    "RONDEL_TRUST"  # the person's word for one process: `yes` to settings, `all` to commands of tasks too
)
SAID = ("yes", "all")
FILE_MAX = 50_000_000
TEXT_MAX = 200_000  # bytes of a file that is read for what it names
BELOW_MAX = 50_000  # files of a folder
LINE_MAX = 10_000  # bytes of one of git's files that name a folder
CONFIG_MAX = 1_000_000
_WORKTREE = re.compile(r"(?im)^[ \t]*+worktree[ \t]*+=[ \t]*+(.*)$")
_ID = re.compile(r"[0-9a-f]{32}")
COMMAND = "task command"

Without = Callable[[str], bool]  # whether a path is left out


@dataclass(frozen=True)
class Consents:
    """What the person said yes to here: to parts of the settings, and to commands of tasks."""

    parts: Container[str] = frozenset()
    commands: Container[str] = frozenset()
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # how each part was shown last


def read(root: Path, said: str | None) -> Consents:
    """What counts in a repository; `said` is what the person's environment says of this process."""
    if said and said not in (*SAID, "no"):
        raise UsageError(f"{VARIABLE}={said} is not known; allowed: {', '.join((*SAID, 'no'))}")
    entries = _entries(root)
    commands = frozenset(d for d, e in entries.items() if e["what"] == COMMAND)
    before = {str(e["what"]): _lines(e) for e in entries.values()}  # the newest is the last
    parts: Container[str] = frozenset(entries) - commands
    if said in SAID:
        return Consents(Everything(), Everything() if said == "all" else commands, before)
    return Consents(parts, commands, before)


def give(root: Path, parts: Iterable[Part], at: datetime) -> int:
    """Record that the person said yes to these; how many are new."""
    return _add(root, {p.digest: {"what": p.name, "shown": list(p.shown)} for p in parts}, at)


def allow(root: Path, commands: Mapping[str, str], at: datetime) -> int:
    """Record that the person allowed commands of tasks, each by its digest; how many are new."""
    return _add(root, {d: {"what": COMMAND, "shown": [text]} for d, text in commands.items()}, at)


def revoke(root: Path) -> int:
    """Take back everything that was said in this repository; how much it was."""
    count = len(_entries(root))
    if count:
        documents.edit(_place(root, make=False), lambda body: {**body, "consents": {}})
    return count


def state_folder(root: Path, *, make: bool = False) -> Path | None:
    """Where the person keeps what concerns this repository; None while it has no id."""
    found = repository_id(root, make=make)
    return Path(platformdirs.user_state_dir("rondel")).resolve() / "repos" / found if found else None


def repository_id(root: Path, *, make: bool = False) -> str | None:
    """The random id of a repository, the same in all its worktrees; None while it has none."""
    folders = git_folders(root)
    if folders is None:
        return None
    common = folders[1].resolve()
    found = _read_id(common)
    if found is None and make:
        _refuse_links(common / "rondel", common / "rondel/id")
        files.make_folder(common / "rondel")
        with locked(common / "rondel"):
            found = _read_id(common)
            if found is None:
                found = secrets.token_hex(16)
                files.write(common / "rondel/id", f"{found}\n".encode())
    return found


def checkout(root: Path) -> str:
    """Which checkout of a repository this is: it keeps the name when its folder is moved.

    The id is the same in each worktree, and in a copy of the whole folder; the inode of the git folder
    is not, within one file system. A file system is known by its own id, not by the number of its
    device, which a restart may change for some (btrfs, device mapper). Where the id is made from that
    number (XFS), such a restart means that what was under way is paid for again.
    """
    folders = git_folders(root)
    return _key(folders[0] if folders else root)


def _key(folder: Path) -> str:
    return f"{os.statvfs(folder).f_fsid:x}-{folder.stat().st_ino:x}"


def checkouts(root: Path) -> dict[str, Path | None]:
    """The checkouts that git has on its list, wherever they are now, each with where it should be."""
    folders = git_folders(root)
    if folders is None:
        return {checkout(root): root}
    common = folders[1]
    found: dict[str, Path | None] = {_key(common): common.parent}
    for own in (common / "worktrees" / name for name in paths.names(common / "worktrees")):
        try:
            found[_key(own)] = None
            found[_key(own)] = (own / paths.read_elsewhere(own / "gitdir", LINE_MAX).decode().strip()).parent
        except (OSError, ValueError, RondelError):  # removed in this moment, or damaged
            continue
    return {**found, checkout(root): root}


def git_folders(root: Path) -> tuple[Path, Path] | None:
    """The git folder of a worktree, and the one that all of a repository share. Git is not asked.

    None where there is none, and where one is named that does not know this folder: a file `.git` comes
    with an archive, and would make another repository's consents this one's.
    """
    try:
        found = _named_folders(root)
        return found if found is not None and _leads_back(root, *found) else None
    except (OSError, ValueError, RondelError):
        return None


def _named_folders(root: Path) -> tuple[Path, Path] | None:
    own = root / ".git"
    if own.is_file():
        word, _, path = paths.read_elsewhere(own, LINE_MAX).decode().partition(": ")
        if word != "gitdir":
            return None
        own = root / path.rstrip("\r\n")  # and nothing else, as git does: a blank is part of a name
    if not (own / "HEAD").is_file():
        return None
    shared = own / "commondir"
    if not shared.is_file():
        return own, own
    return own, (own / paths.read_elsewhere(shared, LINE_MAX).decode().rstrip("\r\n")).resolve()


def _leads_back(root: Path, own: Path, common: Path) -> bool:
    """Whether a git folder is this folder's: in it, one of its repository's worktrees, or a submodule's."""
    if common != own:
        back = own / paths.read_elsewhere(own / "gitdir", LINE_MAX).decode().rstrip("\r\n")
        return own.resolve().parent == common / "worktrees" and _is_same(back, root / ".git")
    if own == root / ".git" and not own.is_symlink():
        return True
    said = [
        found
        for name in ("config", "config.worktree")
        if (own / name).is_file()
        for found in _WORKTREE.findall(paths.read_elsewhere(own / name, CONFIG_MAX).decode())
    ]
    if said:
        return _is_same(own / said[-1].strip().strip('"'), root)
    return any(own.resolve().is_relative_to((above / ".git/modules").resolve()) for above in root.parents)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths name one place; the last word of a path is not followed."""
    one, other = Path(os.path.normpath(one)), Path(os.path.normpath(other))
    return one.name == other.name and one.parent.resolve() == other.parent.resolve()


def once(root: Path, word: str) -> bool:
    """Whether something is said in this repository for the first time; from then on it was.

    Where a folder has no id that could not be noted: there each time is the first.
    """
    folder = state_folder(root, make=True)
    if folder is None:
        return True
    if (folder / word).exists():
        return False
    files.make_folder(folder)
    files.write(folder / word, b"said\n")
    return True


def make_private(folder: Path) -> None:
    """A folder of the person's state, for them alone; before anything is in it."""
    try:
        files.make_folder(folder)
        paths.chmod(folder, 0o700)
    except (OSError, RondelError) as e:
        raise RondelError(
            f"nothing can be kept in {platformdirs.user_state_dir('rondel')}: {e}; make it writable, or set "
            "XDG_STATE_HOME to a folder of yours"
        ) from e


def lookup(root: Path, path: str, without: Without = lambda _: False) -> Found | None:
    """What is at a path of the repository; a file that cannot be read has another digest each time.

    None for a path that leads out of it, however it is written, and for one that is left out.
    """
    if path == ALL:
        return _folder(root, "", without)
    if path.startswith("~/") and not os.path.lexists(root / path):
        path = os.path.expanduser(path)  # noqa: PTH111 - as written, in a text
    place = Path(os.path.normpath(root / path))
    if not place.is_relative_to(os.path.normpath(root)) or place == root:
        return None
    try:
        mode = place.stat().st_mode
    except (OSError, ValueError):
        return None
    if without(place.relative_to(os.path.normpath(root)).as_posix()):
        return None
    if stat.S_ISDIR(mode):
        return _folder(root, path, without)
    try:
        real = place.resolve()
        if not real.is_relative_to(root.resolve()):
            return Found(
                digest(f"a link to {real}")
            )  # not the repository's: a system's own changes by itself
        data = files.read(real, FILE_MAX)
    except (OSError, RondelError):
        return Found(secrets.token_hex(32))
    if data is None:
        return None
    is_cut = len(data) > TEXT_MAX
    text = "" if is_cut else data.decode(errors="replace")
    return Found(digest(data) + (PROGRAM if mode & 0o111 else ""), text=text, is_cut=is_cut)


def _folder(root: Path, path: str, without: Without) -> Found:
    return Found(
        is_folder=True,
        inner=lambda wanted: _below(root, path, wanted, without),
        names=lambda: sorted(paths.names(root / path)),
    )


def _below(root: Path, folder: str, wanted: Wanted, without: Without) -> Iterable[tuple[str, str]]:
    """The files below a folder that are wanted, behind links to folders of the repository too."""
    seen, count, todo = {(root / folder).resolve()}, 0, [folder]
    while todo:
        start = todo.pop()
        for here, folders, listed in paths.walk(root / start):
            above = Path(here).relative_to(root)
            folders[:] = sorted(n for n in folders if n != ".git" and not without((above / n).as_posix()))
            names = sorted(name for name in listed if not paths.is_bytecode(Path(here, name)))
            count += len(names)
            if count > BELOW_MAX:  # nobody knows the rest, so nobody has said yes to it
                yield f"more than {BELOW_MAX} files in {folder or '.'}", secrets.token_hex(32)
                return
            for name in names:
                path = Path(here, name).relative_to(root).as_posix()
                if (real := _linked_folder(root, root / path)) is not None:
                    if real in seen:
                        continue
                    seen.add(real)
                    todo.append(path)
                elif wanted(path, os.access(Path(here, name), os.X_OK)):
                    found = lookup(root, path, without)
                    if found is not None and not found.is_folder:
                        yield path, found.digest


class Ignored:
    """The files of an environment that git ignores and does not track: no working copy has them.

    Git is asked only where a path is in such a folder: settings are read by commands that look, too.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._git = Git(root)

    def __call__(self, path: str) -> bool:
        """Whether a path of the repository is one of them."""
        words = path.split("/")
        above = ["/".join(words[:count]) for count in range(1, len(words) + 1)]
        return any(map(self._is_environment, above)) and not self._paths.isdisjoint(above)

    def _is_environment(self, folder: str) -> bool:
        return folder.rpartition("/")[2] == "node_modules" or (self._root / folder / "pyvenv.cfg").is_file()

    @cached_property
    def _paths(self) -> frozenset[str]:
        try:
            found = self._git.names("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
            kept = self._git.names("diff", "--cached", "--name-only", "-z", "--diff-filter=D", "HEAD", "--")
        except RondelError:  # without a commit, or without git, nothing is left out
            return frozenset()
        return frozenset(
            name.rstrip("/")
            for name in found
            if not any(f"{k}/".startswith(f"{name.rstrip('/')}/") for k in kept)
        )


def _linked_folder(root: Path, place: Path) -> Path | None:
    """The folder of the repository that a link leads to."""
    try:
        if not place.is_symlink() or not place.is_dir():
            return None
        real = place.resolve()
    except OSError:
        return None
    return real if real.is_relative_to(root.resolve()) else None


def _read_id(common: Path) -> str | None:
    """The id that is a file there: a link would make one repository's consents another's."""
    try:
        _refuse_links(common / "rondel", common / "rondel/id")
        text = (files.read(common / "rondel/id", 100) or b"").decode(errors="replace").strip()
    except (OSError, RondelError):
        return None
    return text if _ID.fullmatch(text) else None


def _place(root: Path, *, make: bool) -> Path:
    folder = state_folder(root, make=make)
    if folder is None:
        if os.path.lexists(root / ".git"):
            raise RondelError(
                f"{root / '.git'} names a git folder that does not lead back to it: nobody knows whose "
                "consents would count here; `git worktree repair` mends a worktree that was moved, "
                "`git config core.worktree` says of any other git folder whose it is"
            )
        raise RondelError(
            f"{root} has no git folder of its own; consent is kept per repository: `git init` first"
        )
    _refuse_links(folder, folder / "consents")
    return folder / "consents"


def _refuse_links(*paths: Path) -> None:
    for path in paths:
        if path.is_symlink():
            raise UnsafePath(f"{path} is a link; what you say yes to is not kept through one: remove it")


def _entries(root: Path) -> dict[str, Document]:
    """What is on record; what cannot be read, is a link, or was writable for others says yes to nothing."""
    folder = state_folder(root)
    if folder is None:
        return {}
    try:
        found = paths.look(folder / "consents")
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            return {}
        body = documents.load(folder / "consents").get("consents")
    except (OSError, RondelError):
        return {}
    entries = body if isinstance(body, dict) else {}
    return {d: e for d, e in entries.items() if isinstance(e, dict) and isinstance(e.get("what"), str)}


def _lines(entry: Document) -> tuple[str, ...]:
    shown = entry.get("shown")
    return tuple(map(str, shown)) if isinstance(shown, list) else ()


def _add(root: Path, new: Mapping[str, Document], at: datetime) -> int:
    place, added = _place(root, make=True), 0

    def change(body: Document) -> Document:
        nonlocal added
        known = body.get("consents")
        here = dict(known) if isinstance(known, dict) else {}
        added = len(set(new) - set(here))
        for key, entry in new.items():
            here.pop(key, None)  # said again it is the newest
            here[key] = {**entry, "at": stamp(at)}
        return {"schema_version": 1, "repository": str(root), **body, "consents": here}

    make_private(place.parent)
    documents.edit(place, change)
    paths.chmod(place, 0o600)
    return added
