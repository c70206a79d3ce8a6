"""Tables for people: columns where they fit, one value below the other where they do not."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

FOLDED_MIN = 24  # the widest column may be folded down to this; a narrower terminal gets a list
GAP = 2


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
