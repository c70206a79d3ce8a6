"""Templates: `{{name}}` is a slot. What is put in is never read as a template, and every slot has a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources

from rondel.errors import RondelError

_SLOT = re.compile(r"\{\{ {0,9}([\w-]+) {0,9}\}\}")


@cache
def prompt_text(package: str, name: str) -> str:
    """A text of the prompts that come with a package."""
    return (resources.files(package) / "prompts" / f"{name}.md").read_text(encoding="utf-8")


def _unknown(slot: str) -> str:
    return f"a template has the slot {slot!r}, which nobody fills"


def fill(
    template: str, slots: Mapping[str, str | Callable[[], str]], unknown: Callable[[str], str] = _unknown
) -> str:
    """A template with its slots filled in one pass; RondelError, as `unknown` says it, for any other slot."""

    def value(slot: re.Match[str]) -> str:
        name = slot[1].replace("-", "_")
        if name not in slots:
            raise RondelError(unknown(name))
        found = slots[name]
        return found if isinstance(found, str) else found()

    return _SLOT.sub(value, template)


def without_gaps(text: str) -> str:
    """A text without the empty lines that an empty slot leaves."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
