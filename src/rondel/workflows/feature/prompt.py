"""What agents are asked, made from the Markdown files in `prompts/`: the one source of every prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_SLOT = re.compile(r"\{\{(\w+)\}\}")
NOTHING = "(none)"


@cache
def source(name: str) -> str:
    """One file of `prompts/`, as it is."""
    return files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def fill(template: str, **slots: str) -> str:
    """A file of `prompts/` with its slots filled."""
    return filled(source(template), slots)


def filled(text: str, slots: Mapping[str, str]) -> str:
    """A text with its `{{slots}}` filled in one pass: what is put in is never looked at again."""
    return _SLOT.sub(lambda slot: slots[slot.group(1)], text)


def document(name: str, text: str | None) -> str:
    """A document inside a prompt, with its name and a clear beginning and end."""
    if text is None or not text.strip():
        return NOTHING
    return f'<document name="{name}">\n{text.strip()}\n</document>'


def chain_review(
    previous: str | None, current: str, expectations: str, *, names: tuple[str, str] = ("previous", "current")
) -> str:
    """What the chain reviewer is asked."""
    return fill(
        "chain-review",
        persona=source("chain-reviewer"),
        expectations=expectations,
        previous=document(names[0], previous),
        current=document(names[1], current),
        verdict=source("verdict"),
    )
