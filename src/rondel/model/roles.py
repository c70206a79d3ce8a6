"""Roles: who does what. The longest dotted match wins."""

from __future__ import annotations

import re
from collections.abc import Mapping

DEFAULT = "default"


def match_role(table: Mapping[str, str], role: str) -> str | None:
    """The agent that `[roles]` gives to `role`; None when nothing fits and there is no default.

    `review` fits every role below it, word by word: `review.reviewer` but not `reviewed`.
    The last word also fits with a number behind it, so `review.reviewer.security` fits
    `review.reviewer.security-1`, and `review.reviewer.security-1` itself comes first.
    """
    words = role.split(".")
    best = max((fit, key) for key in (*table, "") if (fit := _fit(words, key)) is not None)
    return table.get(best[1] or DEFAULT)


def _fit(words: list[str], key: str) -> tuple[int, bool] | None:
    """How many words of the role the key fits and whether exactly; None when it does not."""
    if not key:
        return 0, False
    wanted = key.split(".")
    if wanted == words[: len(wanted)]:
        return len(wanted), True
    numbered = (
        len(wanted) == len(words)
        and wanted[:-1] == words[:-1]
        and re.fullmatch(re.escape(wanted[-1]) + r"-\d+", words[-1])
    )
    return (len(wanted), False) if numbered else None
