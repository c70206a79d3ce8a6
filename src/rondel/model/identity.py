"""Whose work a session is: the id in the trailers of its commits, and where it was begun.

A name can be used twice: the same topic in a fresh clone, a folder removed and made again. An
id cannot, so an edit that is found again by its trailer belongs to this session and no other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rondel.model.changes import Document
from rondel.model.refs import END, branch_or_none, commit_or_none
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import RepoReader

IDENTITY = ".rondel/session.json"
_STARTED = frozenset({".gitignore", "request-1.json", "written.jsonl"})  # in `.rondel` before there is an id
_ID = re.compile(r"[a-z0-9][a-z0-9-]{7,79}")


@dataclass(frozen=True)
class Identity:
    """What `session.json` says. Without a branch or a base where the repository had none."""

    id: str
    branch: str | None = None  # that was checked out when the session was begun
    base: str | None = None  # its commit then: only what came after it can be the session's work
    begun_at: str = ""
    onto: str | None = None  # the branch that a person chose for the work since
    lost: bool = False  # it had another id, which nobody knows any more
    without: tuple[str, ...] = ()  # actions whose edits the branch lacks, which a person accepted
    adopted: bool = False  # it was there before it had an id: begun by another tool, or by the version before

    def document(self) -> Document:
        """As JSON; `identity_of` reads it back."""
        return {
            "schema_version": 1,
            "id": self.id,
            "branch": self.branch,
            "base": self.base,
            "begun_at": self.begun_at,
            **({"onto": self.onto} if self.onto else {}),
            **({"without": list(self.without)} if self.without else {}),
            **({"adopted": True} if self.adopted else {}),
            **({"lost": True} if self.lost else {}),
        }


def identity_of(document: object) -> Identity | None:
    """The identity in a document; None when it has none that can be used."""
    if not isinstance(document, dict):
        return None
    found = document.get("id")
    if not isinstance(found, str) or not _ID.fullmatch(found):
        return None
    return Identity(
        found,
        branch_or_none(document.get("branch")),
        commit_or_none(document.get("base")),
        str(document.get("begun_at") or ""),
        branch_or_none(document.get("onto")),
        without=_words(document.get("without")),
        lost=document.get("lost") is True,
        adopted=document.get("adopted") is True,
    )


def was_cut_off(files: Snapshot, folder: str = "") -> bool:
    """Whether a session's folder is no more than what a start that was killed leaves: it never had an id.

    A session is there once its documents are; this says what a folder without them is.
    """
    there, below = files.names(folder), f"{folder}/.rondel" if folder else ".rondel"
    return not there or (".rondel/" in there and files.names(below) <= _STARTED)


def home(look: RepoReader, branch: str | None, base: str | None) -> str:
    """The commit that new work of a session starts from, wherever HEAD is now; empty without any commit.

    The branch it was begun on; where that is gone, the commit it was begun at.
    """
    for name in (f"refs/heads/{branch}" if branch else "", base or "", "HEAD"):
        found = look.git("rev-parse", "--verify", "--quiet", END, f"{name}^{{commit}}", check=False).strip()
        if name and found:
            return found
    return ""


def _words(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()
