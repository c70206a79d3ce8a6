"""Characters for whoever reads: a terminal that cannot show a sign gets one that it can."""

from __future__ import annotations

import codecs
import io
import sys

HANDLER = "rondel.plain"
PLAIN = {"…": "...", "✓": "+", "✗": "x", "→": "->", "─": "-", "│": "|", "·": "-"}


def prepare() -> None:
    """Nothing that is printed can fail for want of a character.

    A stream that knows only ASCII is one that nobody configured: it gets UTF-8, as Python and
    click do it. One with a charset of its own keeps it.
    """
    codecs.register_error(HANDLER, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            known = "utf-8" if codecs.lookup(stream.encoding).name == "ascii" else stream.encoding
            stream.reconfigure(encoding=known, errors=HANDLER)


def is_unicode() -> bool:
    """Whether standard output takes every character."""
    return codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign, "?") for sign in lost), error.end
