"""What a terminal shows: plain texts before they are coloured, tables that fit, and who works now.

On a terminal the view of a run redraws itself; elsewhere it is plain lines, one per event.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, cast

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from rondel.cli.encoding import write_as_is
from rondel.model.outcomes import Ended, Usage
from rondel.model.summary import Summary
from rondel.model.texts import visible
from rondel.project import Ledger, RunningAction, View, printable, usage_json

_RULE = re.compile(r"([=\-_*#~])\1{4,}")
QUIET_S = 2  # after this long without output the view says for how long
FOLDED_MIN = 24  # the widest column may be folded down to this; a narrower terminal gets a list
GAP = 2


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


def table(
    screen: Console, names: Sequence[str], rows: Sequence[Sequence[str]], title: str = ""
) -> RenderableType:
    """Rows under their names, in a form that the screen can hold."""
    widths = [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    widest = widths.index(max(widths))
    rest = sum(widths) - widths[widest] + GAP * (len(widths) - 1)
    if screen.width - rest < min(widths[widest], FOLDED_MIN):
        return _listed(names, rows, title)
    found = Table(title=title or None, title_justify="left", title_style="", box=None, pad_edge=False)
    for i, name in enumerate(names):
        found.add_column(name, overflow="fold", no_wrap=i != widest)
    for row in rows:
        found.add_row(*row)
    return found


def _listed(names: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> Text:
    lines = [title] if title else []
    for first, *others in rows:
        lines.append(first)
        lines += [f"  {name}: {cell}" for name, cell in zip(names[1:], others, strict=True) if cell]
    return Text("\n".join(lines))


class Silent:
    """Nobody watches."""

    def event(self, kind: str, fields: dict[str, object]) -> None:
        """See `View`."""

    def tick(self, flights: list[RunningAction[Any]], ledger: Ledger, summary: Summary) -> None:
        """See `View`."""


class Lines:
    """One plain line per start and end, for logs and pipes. What was only derived is not shown."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._names: dict[object, object] = {}  # of what was started, by its path

    def event(self, kind: str, fields: dict[str, object]) -> None:
        """See `View`."""
        action = fields.get("action")
        if kind in ("started", "recovered"):
            self._names[action] = _one_line(str(fields.get("title") or action))
        derived = kind == "finished" and action not in self._names
        shown = {**fields, "action": self._names.get(action, action)}
        line = "" if derived and fields.get("ended") == Ended.DONE else event_line(kind, shown)
        if line:
            self._console.print(line, soft_wrap=True)

    def tick(self, flights: list[RunningAction[Any]], ledger: Ledger, summary: Summary) -> None:
        """See `View`."""


class Screen(Lines):
    """Lines that stay, and below them the actions under way."""

    def __init__(self, console: Console, live: Live, title: str) -> None:
        super().__init__(console)
        self._live = live
        self._title = title

    def tick(self, flights: list[RunningAction[Any]], ledger: Ledger, summary: Summary) -> None:
        """See `View`."""
        table = Table.grid(padding=(0, 2))
        sign = "line" if self._console.options.ascii_only else "dots"
        now = time.monotonic()
        for flight in flights:
            job = flight.job
            quiet = now - flight.last_at
            said = flight.beat.text or (f"quiet for {quiet:.0f} s" if quiet > QUIET_S else "")
            table.add_row(
                Spinner(sign),
                _one_line(job.action.title or job.action.path),
                job.agent.name if job.agent else "",
                clock(now - flight.since),
                Text(said, overflow="ellipsis", no_wrap=True, style="dim"),
            )
        done = f"{summary.done}/{summary.total} " if summary.total else ""
        head = f"{self._title}  {summary.phase} {done} {clock(ledger.seconds)}  {cost(ledger.usage)}"
        self._live.update(Group(Text(head, style="bold"), table))


@contextmanager
def live_view(title: str, *, quiet: bool = False) -> Iterator[View]:
    """The right view for where standard error goes."""
    console = PlainConsole(err=True)
    if quiet:
        yield Silent()
    elif console.is_terminal and not console.is_dumb_terminal:
        with Live(console=console, refresh_per_second=8, transient=True) as live:
            yield Screen(console, live, title)
    else:
        yield Lines(console)


_LINES = {
    "recovered": "= {action}: the answer was already there",
    "cutoff": "! {action}: was cut off; it goes on",
    "dropped": "! {action}: had not come to its end; it goes on",
    "outdated": "! {action}: what it was asked about changed; it is asked again",
    "kept": "! {file}: {why}: {aside}",
    "refused": "! {file}: written while a run goes on, and not for it; put aside: {aside}",
    "restored": "! {file}: {why}; put back as it was last known{aside}",
    "unreached": "! {action}: {message}",
    "problem": "! {file}: {message}",
    "put-right": "! {message}",
}


def event_line(kind: str, fields: dict[str, object]) -> str:
    """An event in one line; nothing for those a person need not see."""
    action = fields.get("action", "")
    if kind == "started":
        who = fields.get("agent")
        return f"… {action}" + (f" ({who})" if who else "")
    if kind in _LINES:
        words = {"action": action, "file": "", "why": "", "aside": "", "message": ""}
        return _one_line(_LINES[kind].format(**{**words, **fields, "action": action}))
    if kind != "finished":
        return ""
    if fields.get("ended") == Ended.DONE:
        return f"✓ {action} {clock(number(fields.get('seconds')))}"
    first = _first_words(str(fields.get("error", "")))
    if fields.get("ended") == Ended.WAITING:
        return f"? {action}: waits for a person"
    if fields.get("ended") == Ended.PARKED:
        return f"! {action}: parked until {fields.get('until')}"
    return f"✗ {action}: {fields.get('ended')}: {first}"


def _one_line(title: str) -> str:
    """A title, which may be an agent's words, as a line that gives a terminal no orders."""
    return " ".join(printable(title).split())


def _first_words(error: str) -> str:
    """The first line that says something; rules drawn with signs do not."""
    lines = (_RULE.sub("", line).strip() for line in error.splitlines())
    said = [line for line in lines if line]
    return " ".join(said[: 2 if said[0].endswith(":") else 1]) if said else ""


def number(value: object) -> float:
    """A number that was noted; 0 where it is none."""
    return float(value) if isinstance(value, int | float) else 0.0


def clock(seconds: float) -> str:
    """`7 s`, `2:05`, `1:02:05`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}" if minutes else f"{rest} s"


def cost(usage: Usage) -> str:
    """Tokens and money; at least so much where an agent named no price, or not what it used."""
    if not usage.tokens:
        return ""
    more = "at least " if usage.uncounted else ""
    least = "at least " if usage.at_least else ""
    return f"{more}{usage.tokens:,} tokens, {least}${usage.usd or 0:.2f}"


def cost_json(usage: Usage) -> dict[str, object]:
    """The same for a program: with `at_least`, `usd` is not all of it."""
    return {**usage_json(usage), "usd": usage.usd, "at_least": usage.at_least}
