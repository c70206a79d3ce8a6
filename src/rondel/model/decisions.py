"""Decisions: what a person or a gate answered, in a file each, and the seal by which it is believed.

Whoever can write a session's folder can write such a file. So it counts only with a seal: a
keyed digest over the session's id and folder, the question's path, the answer and the digests of what was
decided. The key is the person's, and lies where no repository and no agent can put one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence

from rondel.errors import UsageError
from rondel.model.actions import Decide
from rondel.model.changes import Document, Json
from rondel.model.summary import command_line

DECISIONS = ".rondel/decisions"
SEAL = "seal"
SEALS = "seals"  # of others who adopted it, or whom it was adopted from: each believes their own
ADOPTED = "adopted_at"
SEALS_MAX = 20
DECIDED = "decided"  # the digest of each file that the answer is about, as it was then
REFUSALS = ("reject",)  # they stay true of what they were about: what is new is asked about anew


_BESIDE = (SEAL, SEALS, ADOPTED)


def is_decision(path: str) -> bool:
    """Whether a path of a session is the file of a decision."""
    return path.startswith(f"{DECISIONS}/")


def seal_of(key: bytes, session: str, path: str, body: Mapping[str, object]) -> str:
    """The seal of a decision."""
    said = {name: value for name, value in body.items() if name not in _BESIDE}
    return hmac.new(
        key, json.dumps([session, path, said], sort_keys=True).encode(), hashlib.sha256
    ).hexdigest()


def sealed(key: bytes, session: str, path: str, body: Document) -> Document:
    """A decision with its seal, beside those of others."""
    own = seal_of(key, session, path, body)
    others: list[Json] = [*[seal for seal in _seals(body) if seal != own][-SEALS_MAX:]]
    return {**body, **({SEALS: others} if others else {}), SEAL: own}


def _seals(body: Mapping[str, object]) -> list[str]:
    """Every seal of a decision."""
    more = body.get(SEALS)
    found = [*(more if isinstance(more, list) else []), body.get(SEAL)]
    return [seal for seal in found if isinstance(seal, str)][: 2 * SEALS_MAX]


def doubt(key: bytes | None, session: str, path: str, body: object) -> str:
    """Why a decision is nobody's; empty where it is the person's."""
    if not isinstance(body, dict):
        return "it is no decision"
    seals = _seals(body)
    if not seals:
        return "it has no seal: no command of yours wrote it"
    expected = seal_of(key, session, path, body).encode() if key else b""
    if not key or not any(hmac.compare_digest(seal.encode("utf-8", "replace"), expected) for seal in seals):
        return "its seal is not yours, or is of another session, question or answer"
    return ""


def outdated(body: object, digest_of: Callable[[str], str | None]) -> str:
    """Which file is not what was decided any more; empty where a decision still holds."""
    said = body if isinstance(body, dict) else {}
    decided = said.get(DECIDED)
    if said.get("answer") in REFUSALS or not isinstance(decided, dict):
        return ""
    return next((str(name) for name, before in decided.items() if digest_of(str(name)) != before), "")


def answered(session: str, questions: Sequence[Decide], answer: str, path: str | None) -> Decide:
    """The question, of those that a session waits for, which this answers; UsageError when none is."""
    due = [d for d in questions if path is None or d.path == path]
    if not due:
        raise UsageError(f"{session} waits for no decision now; see `{command_line('status', session)}`")
    if len(due) > 1:
        there = ", ".join(d.path for d in due)
        raise UsageError(f"{session} waits for several decisions; name one with --on: {there}")
    question = due[0]
    if answer not in question.options:
        raise UsageError(
            f"{answer!r} is no answer to {question.path}; allowed: {', '.join(question.options)}"
        )
    return question
