"""Characters for whoever reads: signs that a terminal can show, and none that it obeys.

Standard output and standard error show texts of repositories and agents, from many places. So
they are made plain where they leave the process, and not in each of these places. Only the
console, whose texts are plain before they are coloured, writes past it (see `screen`).
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TextIO

from rondel.model.texts import visible

HANDLER = "rondel.plain"
PLAIN = {"…": "...", "✓": "+", "✗": "x", "→": "->", "─": "-", "│": "|", "·": "-"}


@contextmanager
def plain_streams() -> Iterator[None]:
    """Nothing that is printed can fail for want of a character, or give the terminal orders.

    A stream that knows only ASCII is one that nobody configured: it gets UTF-8, as Python and
    click do it. One with a charset of its own keeps it.
    """
    codecs.register_error(HANDLER, _plain)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_made_plain, before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, PlainStream):
                stream.give_back()
        sys.stdout, sys.stderr = before


def _made_plain(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, PlainStream):
        return stream
    known = "utf-8" if codecs.lookup(stream.encoding).name == "ascii" else stream.encoding
    stream.flush()
    return PlainStream(stream.buffer, known, HANDLER, line_buffering=True, write_through=True)


class PlainStream(io.TextIOWrapper):
    """A stream that gives a terminal no orders."""

    def write(self, text: str, /) -> int:
        """What is no letter is written out."""
        super().write(visible(text))
        return len(text)

    def give_back(self) -> None:
        """Leave the file below open: whoever is asked to forget a stream closes it otherwise."""
        with suppress(OSError, ValueError):  # the reader is gone; that was said where it was written
            self.detach()

    def write_as_is(self, text: str) -> int:
        """For the console's colours, and for a file that goes to a file."""
        return super().write(text)


def write_as_is(stream: IO[str], text: str) -> int:
    """Past the stream's own care."""
    return stream.write_as_is(text) if isinstance(stream, PlainStream) else stream.write(text)


def is_unicode() -> bool:
    """Whether standard output takes every character."""
    return codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign, "?") for sign in lost), error.end
