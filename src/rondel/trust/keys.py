"""Every setting with its mark: harmless, needs consent, the person's only. The one table of them.

Reading settings, `rondel trust` and docs/settings.md follow it. A key that is not in it needs
consent, so that a setting somebody adds is safe before anybody has thought about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rondel.agents.roster import VENDORS
from rondel.errors import UnsafePath
from rondel.model.names import inside

Key = tuple[str, ...]  # a setting's path: ("limits", "usd_max")

BUILT_IN_KINDS = (*VENDORS, "manual", "checks")  # what they run is the person's own, or ours
GATES = ("manual", "agent", "skip")  # the strictest first
SANDBOXES = ("bwrap", "")
FREE_MB = 100  # what is kept free where nobody says how much


class Mark(StrEnum):
    """What a repository may do with a setting."""

    HARMLESS = "harmless"
    STRICTER = "harmless when stricter"  # looser needs consent, and never goes over the person's own
    CONSENT = "needs consent"
    PERSON = "the person's only"


Looser = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Rule:
    """What a repository may do with one setting.

    `looser(a, b)` says whether `a` allows more than `b`; a setting that has none has no order.
    `safe` says which values are harmless although the setting needs consent. One that `yields` needs
    consent where it would replace what the person said.
    """

    mark: Mark
    looser: Looser | None = None
    safe: Callable[[Any], bool] = lambda _: False
    yields: bool = False  # to something else that the person said, unless they consent
    default: object = None  # where the settings have none to compare with


def _more(a: float | None, b: float | None) -> bool:
    """A bound that is not there allows everything."""
    return b is not None and (a is None or a > b)


def _more_or_none(a: int, b: int) -> bool:
    """The same where 0 is no bound."""
    return _more(a or None, b or None)


def _less(a: float | None, b: float | None) -> bool:
    return (a or 0) < (b or 0)


def _later_in(order: Sequence[object]) -> Looser:
    """The strictest is the first; what is not in it at all is the loosest."""

    def looser(a: object, b: object) -> bool:
        return _place(order, a) > _place(order, b)

    return looser


def _place(order: Sequence[object], value: object) -> int:
    return order.index(value) if value in order else len(order)


def _others(a: Sequence[str], b: Sequence[str]) -> bool:
    return not set(a) <= set(b)


def _is_inside(value: object) -> bool:
    try:
        return bool(value == "" or inside(str(value)))
    except UnsafePath:
        return False


LOWER = Rule(Mark.STRICTER, _more)
ON = Rule(Mark.STRICTER, _later_in((True, False)))
OFF = Rule(Mark.STRICTER, _later_in((False, True)))
GATE = Rule(Mark.STRICTER, _later_in(GATES), default="manual")
HARMLESS = Rule(Mark.HARMLESS)
CONSENT = Rule(Mark.CONSENT)
PERSON = Rule(Mark.PERSON)
PATH = Rule(Mark.CONSENT, safe=_is_inside)  # below the workspace it is harmless

# `*` stands for any name. The first that fits counts.
KEYS: Mapping[str, Rule] = {
    "agents.*.kind": Rule(Mark.CONSENT, safe=lambda kind: kind in BUILT_IN_KINDS),
    "agents.*.command": CONSENT,
    "agents.*.model": CONSENT,  # with some CLIs it chooses the company that is asked
    "agents.*.timeout_s": LOWER,
    "agents.*.idle_s": LOWER,
    "agents.*.turns_max": LOWER,
    "agents.*.env": CONSENT,
    "agents.*.pass_env": Rule(Mark.CONSENT, _others),
    "agents.*.script": CONSENT,
    "agents.*.options": CONSENT,
    "agents.*.options.shell": Rule(Mark.CONSENT, _others),
    "agents.*.options.trust": Rule(Mark.STRICTER, OFF.looser, default=False),
    "roles.*": Rule(Mark.CONSENT, safe=lambda name: name in BUILT_IN_KINDS, yields=True),
    "limits.agents_max": LOWER,
    "limits.attempts_max": LOWER,
    "limits.cutoffs_max": LOWER,
    "limits.usd_max": LOWER,
    "limits.tokens_max": LOWER,
    "limits.seconds_max": LOWER,
    "limits.free_mb_min": Rule(Mark.STRICTER, _less, default=FREE_MB),
    "project.setup": CONSENT,
    "project.test": CONSENT,
    "project.checks": CONSENT,
    "workspaces.root": CONSENT,
    "workspaces.sandbox": Rule(Mark.STRICTER, _later_in(SANDBOXES)),
    "sandbox.mode": PERSON,
    "sandbox.network": PERSON,
    "sandbox.hosts": PERSON,
    "sandbox.read": PERSON,
    "sandbox.write": PERSON,
    "review.team": Rule(Mark.HARMLESS, yields=True),
    "review.context": HARMLESS,
    "review.prompt_max": LOWER,
    "review.refuters_max": LOWER,
    "review.rounds_max": Rule(Mark.STRICTER, _more_or_none),
    "feature.mode": HARMLESS,
    "cycle.max_iterations": LOWER,
    "cycle.auto": OFF,
    "cycle.branch": CONSENT,
    "cycle.utc_offset_h": HARMLESS,
    "cycle.tests_required": ON,
    "cycle.test_timeout_s": LOWER,
    "cycle.junit": PATH,
    "cycle.coverage": PATH,
    "task.trust_commands": PERSON,
    "task.sandbox": ON,
    "task.step_timeout_s": LOWER,
    "generate.gate": GATE,
    "generate.gates": GATE,  # each of its entries
    "generate.gates.*": GATE,
    "generate.iterations_max": LOWER,
    "generate.context_chars_max": LOWER,
    "generate.cycles": LOWER,  # each of its entries
    "generate.cycles.*.iterations_max": LOWER,
    "generate.cycles.*.context_chars_max": LOWER,
}


_PATTERNS = {tuple(pattern.split(".")): found for pattern, found in KEYS.items()}


def rule(key: Key) -> Rule:
    """The rule of a setting."""
    return next((found for words, found in _PATTERNS.items() if _fits(key, words)), CONSENT)


def has_inner(key: Key) -> bool:
    """Whether the table has rules for what is below this key, if that is a table too."""
    return any(len(words) > len(key) and _fits(key, words[: len(key)]) for words in _PATTERNS)


def _fits(key: Key, words: Key) -> bool:
    return len(words) == len(key) and all(w in ("*", k) for k, w in zip(key, words, strict=True))


def is_looser(found: Rule, value: object, bound: object) -> bool:
    """Whether a value allows more than a bound; one of another kind than expected does."""
    if found.looser is None:
        return False
    try:
        return found.looser(value, bound)
    except TypeError:
        return True
