"""What a change brings to the files by which it is judged: they are read at its base.

A file that the change does not touch is read where it is: the person's own, in their own checkout. A link is
followed in the tree that is read, and each link on the way is as much a part of the file as its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rondel.errors import GitError
from rondel.model.refs import END
from rondel.model.workflow import RepoReader

SIZE_MAX = 1_000_000
LINK_MAX = 4096  # bytes
LINKS_MAX = 40

Link = Callable[[str], str | None]  # where a path of a tree leads; None where it is no link


@dataclass(frozen=True)
class Way:
    """How a name is read in a tree: every link on the way, and where that ends."""

    links: tuple[str, ...]
    end: str | None  # None outside of the repository, and in a circle


def at_base(change: tuple[str, str], names: Iterable[str], look: RepoReader) -> Mapping[str, bytes]:
    """Those of these files that a change touches, as they are at its base; empty where it has none."""
    base, head = change
    _require_here(change, look)
    root = Path(look.root)
    found = {}
    for name in names:
        before, now = (
            follow(name, lambda path: _link_at(base, path, look), root),
            follow(name, _on_disk(root), root),
        )
        spots = {name, *before.links, *now.links, *filter(None, (before.end, now.end))}
        specs = (f":(top,literal){spot}" for spot in sorted(spots))
        if look.git("diff", "--name-only", "--no-renames", "-z", END, base, head, "--", *specs):
            found[name] = _content(base, before.end, look) if before.end else b""
    return found


def _require_here(change: tuple[str, str], look: RepoReader) -> None:
    """GitError where a commit that is judged is not in this repository: no other one is judged instead."""
    for commit in change:
        if not look.git("rev-parse", "--verify", "--quiet", END, f"{commit}^{{commit}}", check=False).strip():
            raise GitError(
                f"the commit {commit} that is to be judged is not here (uncommitted work is in its author's "
                "repository alone); fetch it, or begin anew with a change that is here: A..B --restart"
            )


def touches(change: tuple[str, str], name: str, tree: Path, look: RepoReader) -> bool:
    """Whether a change touches a path as a tree has it: itself, what is below it, a link on the way."""
    way = follow(name, _on_disk(tree), tree)
    specs = (f":(top,literal){spot}" for spot in sorted({name, *way.links, *filter(None, (way.end,))}))
    return bool(look.git("diff", "--name-only", "--no-renames", "-z", END, *change, "--", *specs))


def follow(name: str, link: Link, root: Path) -> Way:
    """The way of a name, step by step; whatever lies outside of the repository is not looked at."""
    here, rest, links = list[str](), name.split("/"), list[str]()
    while rest:
        part = rest.pop(0)
        if part == ".." and not here:
            return Way(tuple(links), None)
        if part in ("", ".", ".."):
            del here[len(here) - (part == "..") :]
            continue
        here.append(part)
        spot = "/".join(here)
        to = link(spot)
        if to is None:
            continue
        links.append(spot)
        here.pop()
        if to.startswith("/"):
            if not Path(to).is_relative_to(root):
                return Way(tuple(links), None)
            here, to = [], Path(to).relative_to(root).as_posix()
        if len(links) > LINKS_MAX:
            return Way(tuple(links), None)
        rest = [*to.split("/"), *rest]
    return Way(tuple(links), "/".join(here) or None)


def _on_disk(root: Path) -> Link:
    def link(path: str) -> str | None:
        try:
            return str((root / path).readlink())
        except (OSError, ValueError):
            return None

    return link


def _link_at(commit: str, path: str, look: RepoReader) -> str | None:
    mode, blob = _entry(commit, path, look)
    return _blob(blob, LINK_MAX, look) if mode == "120000" else None


def _content(commit: str, path: str, look: RepoReader) -> bytes:
    mode, blob = _entry(commit, path, look)
    return (_blob(blob, SIZE_MAX, look) or "").encode() if mode.startswith("100") else b""


def _entry(commit: str, path: str, look: RepoReader) -> tuple[str, str]:
    row = look.git("ls-tree", "-z", END, commit, "--", f":(top,literal){path}", check=False)
    mode, _, blob = row.partition("\t")[0].split() if row else ("", "", "")
    return mode, blob


def _blob(blob: str, size_max: int, look: RepoReader) -> str | None:
    size = look.git("cat-file", "-s", END, blob, check=False).strip()
    return look.git("cat-file", "blob", END, blob) if size.isdigit() and int(size) <= size_max else None
