"""Signing: whether a round's final review is what Rondel made, or somebody else's.

A `final.md` makes a round complete, whoever wrote it: so the document says. An approval is only
what Rondel made: `round-meta.json` names the digest of the final review and carries the mark of
the session, so that neither can be written, or changed, by the way.
"""

from __future__ import annotations

import json
from enum import StrEnum

from rondel.model.changes import Document
from rondel.model.digests import digest
from rondel.model.marks import signature, unsigned
from rondel.model.snapshot import Snapshot
from rondel.workflows.review.layout import RoundFiles

FINAL, MARK = "final_sha256", "mark"


class Made(StrEnum):
    """Who made a final review."""

    HERE = "made by Rondel"
    CHANGED = "changed since Rondel made it"
    ELSEWHERE = "not made by Rondel"


def signed(files: Snapshot, at: RoundFiles, meta: Document, final: bytes) -> Document:
    """The account of a round with the digest of its final review, and the session's mark for both."""
    whole: Document = {**meta, FINAL: digest(final)}
    mark = _mark(files, at, whole)
    return {**whole, MARK: mark} if mark is not None else whole


def made(files: Snapshot, at: RoundFiles) -> Made:
    """Who made the final review of a round."""
    meta = files.json(at.meta)
    if isinstance(meta, dict) and MARK in meta:
        rest = {k: v for k, v in meta.items() if k != MARK}
        if meta[MARK] == _mark(files, at, rest):
            return Made.HERE if files.digest(at.final) == meta.get(FINAL) else Made.CHANGED
    ended = meta.get("completed_at") if isinstance(meta, dict) else None
    older = unsigned(files, ended) and files.exists(at.part("aggregation.json"))  # of the version before
    return Made.HERE if older else Made.ELSEWHERE


def _mark(files: Snapshot, at: RoundFiles, meta: Document) -> str | None:
    whole = json.dumps(meta, sort_keys=True, ensure_ascii=True)
    return signature(files, "review", str(at.number), digest(whole))
