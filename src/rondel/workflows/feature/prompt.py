"""What agents are asked, made from the Markdown files in `prompts/`: the one source of every prompt."""

from __future__ import annotations

from rondel.model import templates
from rondel.model.templates import prompt_text

NOTHING = "(none)"


def source(name: str) -> str:
    """One file of `prompts/`, as it is."""
    return prompt_text("rondel.workflows.feature", name).strip()


def fill(template: str, **slots: str) -> str:
    """A file of `prompts/` with its slots filled."""
    return templates.fill(source(template), slots)


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
