"""The screen: a console whose texts are plain before they are coloured."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import IO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rondel.cli.encoding import write_as_is
from rondel.model.texts import visible


class _AsIs:
    """A stream for the console, which moves the cursor and colours what it made plain."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str, /) -> int:
        """What is plain already."""
        return write_as_is(self._stream, text)

    def flush(self) -> None:
        """As the stream does."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether a person reads."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The file below."""
        return self._stream.fileno()


class PlainConsole(Console):
    """A console that adds colour and movement, and shows nothing else that is no letter."""

    def __init__(self, *, err: bool = False, soft_wrap: bool = False) -> None:
        stream = cast("IO[str]", _AsIs(sys.stderr if err else sys.stdout))
        super().__init__(file=stream, highlight=False, soft_wrap=soft_wrap, emoji=False, markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As the console does, each text plain and without a link that its words do not show."""
        return self._plain(super().render(renderable, options))

    @staticmethod
    def _plain(segments: Iterable[Segment]) -> Iterator[Segment]:
        for text, style, control in segments:
            if control:
                yield Segment(text, style, control)
            else:
                yield Segment(visible(text), style.update_link(None) if style and style.link else style)
