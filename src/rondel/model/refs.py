"""The forms of what is given to git: commits, branches, and any word that must not be an option.

Whatever is read from a file, or typed by a person, is checked here before git sees it. The rules are those of
`git check-ref-format`, and hold without git.
"""

from __future__ import annotations

import re

END = "--end-of-options"  # every word after it is a value, whatever it looks like
BRANCHES = "refs/heads/"
OPERAND_MAX = 4096
BRANCH_MAX = 240  # bytes of one part of its name: each is a file name below `refs/heads/`
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NOT_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def is_commit(text: object) -> bool:
    """Whether this is the whole name of a commit, as pins are kept: 40 or 64 hexadecimal digits."""
    return isinstance(text, str) and _COMMIT.fullmatch(text) is not None


def is_branch(text: object) -> bool:
    """Whether a branch can have this name, as `git check-ref-format --branch` says; `HEAD` is none."""
    if not isinstance(text, str) or text.startswith("-") or text == "HEAD":
        return False
    return _is_ref_path(text)


def _is_text(text: str) -> bool:
    """Whether a text can be given to a program at all: half of a character cannot."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _is_ref_path(text: str) -> bool:
    parts = text.split("/")
    return (
        bool(text)
        and _NOT_IN_REF.search(text) is None
        and not text.endswith(".")
        and all(part and not part.startswith(".") and not part.endswith(".lock") for part in parts)
        and _is_text(text)
        and all(len(part.encode("utf-8", "surrogateescape")) <= BRANCH_MAX for part in parts)
    )


def commit_or_none(value: object) -> str | None:
    """A commit that a document names; None for anything else."""
    return value if isinstance(value, str) and is_commit(value) else None


def branch_or_none(value: object) -> str | None:
    """A branch that a document names; None for anything else."""
    return value if isinstance(value, str) and is_branch(value) else None


def branch_in(ref: str) -> str:
    """The branch that a full ref names, as `git symbolic-ref HEAD` gives it; empty for anything else.

    Git's own short names depend on other refs: beside a tag of its name, `main` is `heads/main`.
    """
    name = ref.removesuffix("\n").removeprefix(BRANCHES)
    return name if ref.startswith(BRANCHES) else ""


def is_operand(word: str) -> bool:
    """Whether a word may be given to git as a value: it is one, and cannot be an option."""
    return 0 < len(word) <= OPERAND_MAX and word[0] != "-" and "\0" not in word
