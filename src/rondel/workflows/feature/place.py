"""Where a feature's worktree is, and whether somebody is in it. Paths only; light enough for a hook."""

from __future__ import annotations

import os

from rondel import paths
from rondel.model import jsons

META_MAX = 1_000_000
FEATURES = "docs/features"
ELSEWHERE = "the worktree of {feature} is {worktree}; this is {cwd}"


def resolve(root: str, stored: str) -> str:
    """The absolute path of a worktree; it is stored relative to the repository, in old files absolute."""
    return os.path.normpath(os.path.join(root, stored))


def relative(root: str, path: str) -> str:
    """A worktree's path as it is stored."""
    return os.path.relpath(path, root).replace(os.sep, "/")


def is_inside(cwd: str, folder: str) -> bool:
    """Whether `cwd` is the folder or below it, whatever links lead there. Nobody is in what is no path."""
    try:
        here, there = os.path.realpath(cwd), os.path.realpath(folder)
    except (OSError, ValueError):
        return False
    return here == there or here.startswith(there.rstrip(os.sep) + os.sep)


def elsewhere(root: str, feature: str, stored: object, cwd: str) -> str | None:
    """The warning for somebody who is not in the feature's worktree; None where there is nothing to say."""
    if not isinstance(stored, str) or not stored.strip():
        return None
    worktree = resolve(root, stored)
    if is_inside(cwd, worktree):
        return None
    return ELSEWHERE.format(feature=feature, worktree=worktree, cwd=cwd)


def repository(cwd: str) -> str | None:
    """The checkout that a folder is in."""
    at = os.path.realpath(cwd)
    while not os.path.exists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above
    return at


def home_of_features(root: str) -> str:
    """The checkout whose features somebody in `root` looks for.

    That is the one whose worktree `root` is, or the main one where `root` has no features at all.
    """
    main = main_checkout(root)
    if _has_features(main) and not _has_features(root):
        return main
    return owner(root) or root


def owner(root: str) -> str | None:
    """The main checkout, where a feature of it names `root` as its worktree; else None."""
    main = main_checkout(root)
    names = paths.names(os.path.join(main, FEATURES)) if main != root and _has_features(main) else []
    for name in names:
        try:
            data = paths.read(os.path.join(main, FEATURES, name, ".meta.json"), META_MAX)
            stored = jsons.load(data).get("worktree")
        except (OSError, ValueError, RecursionError, AttributeError):
            continue
        if isinstance(stored, str) and stored and is_inside(root, resolve(main, stored)):
            return main
    return None


def _has_features(root: str) -> bool:
    return paths.is_folder(os.path.join(root, FEATURES))


def main_checkout(root: str) -> str:
    """The checkout that a linked worktree belongs to: where features are kept. Else `root` itself."""
    git = os.path.join(root, ".git")
    if not os.path.isfile(git):
        return root
    try:
        with open(git, encoding="utf-8", errors="replace") as file:
            line = file.read(4096)
    except OSError:
        return root
    own = os.path.join(root, line.removeprefix("gitdir:").strip())
    if os.path.basename(os.path.dirname(own)) != "worktrees":
        return root
    common = os.path.dirname(os.path.dirname(own))
    return os.path.dirname(os.path.realpath(common)) if os.path.basename(common) == ".git" else root
