"""Questions: what an agent's answer raises for a person, decisions and blockers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rondel.workflows.cycle import transitions
from rondel.workflows.cycle.documents import Step
from rondel.workflows.cycle.results import Value, texts

QUESTIONS_MAX = 20
TEXT_MAX = 1000
_OPTIONS = re.compile(r"^(.*?)\(([^()|/]*+[|/][^()]*+)\)\s*+$", re.DOTALL)


def raised(result: Mapping[str, Value], agent: str, iteration: int, prefix: str = "") -> list[Step]:
    """The decisions and blockers of one answer. The same answer raises the same ones again."""
    steps: list[Step] = []
    name = f"{iteration}-{agent}-{prefix}{'.' if prefix else ''}"
    for i, words in enumerate(texts(result, "blockers")[:QUESTIONS_MAX], 1):
        steps.append(transitions.add_blocker(f"B-{name}{i}", words[:TEXT_MAX], agent))
    for i, words in enumerate(_listed(result.get("decisions"))[:QUESTIONS_MAX], 1):
        question, options = split_options(words[:TEXT_MAX])
        steps.append(transitions.add_decision(f"D-{name}{i}", question, options))
    return steps


def split_options(words: str) -> tuple[str, tuple[str, ...]]:
    """`Which first? (google | github)` as question and options; without any: yes or no."""
    found = _OPTIONS.match(words) if len(words) <= TEXT_MAX else None
    if not found:
        return words.strip(), ("yes", "no")
    mark = "|" if "|" in found[2] else "/"
    options = [o.strip() for o in found[2].split(mark) if o.strip()]
    return found[1].strip(), tuple(dict.fromkeys(options)) or ("yes", "no")


def _listed(value: Value | None) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    return value if isinstance(value, list) else []
