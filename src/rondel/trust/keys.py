"""Every setting of the core with its rule: harmless, needs consent, the person's only. The one table of them.

Reading settings, `rondel trust` and docs/settings.md follow it; the rules of a workflow's table are the
workflow's. A key that has no rule needs consent, so that a setting somebody adds is safe before anybody
has thought about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rondel.agents.roster import VENDORS
from rondel.model.consent import CONSENT, LOWER, PERSON, Mark, Rule, less, ordered, others

Key = tuple[str, ...]  # a setting's path: ("limits", "usd_max")

BUILT_IN_KINDS = (*VENDORS, "manual", "checks")  # what they run is the person's own, or ours
FREE_MB = 100  # what is kept free where nobody says how much

# `*` stands for any name. The first that fits counts.
KEYS: Mapping[str, Rule] = {
    "agents.*.kind": Rule(Mark.CONSENT, safe=lambda kind: kind in BUILT_IN_KINDS),
    "agents.*.command": CONSENT,
    "agents.*.model": CONSENT,  # with some CLIs it chooses the company that is asked
    "agents.*.timeout_s": LOWER,
    "agents.*.idle_s": LOWER,
    "agents.*.turns_max": LOWER,
    "agents.*.env": CONSENT,
    "agents.*.pass_env": Rule(Mark.CONSENT, others),
    "agents.*.script": CONSENT,
    "agents.*.options": CONSENT,
    "agents.*.options.shell": Rule(Mark.CONSENT, others),
    "agents.*.options.trust": ordered((False, True), default=False),
    "roles.*": Rule(Mark.CONSENT, safe=lambda name: name in BUILT_IN_KINDS, yields=True),
    "limits.agents_max": LOWER,
    "limits.attempts_max": LOWER,
    "limits.cutoffs_max": LOWER,
    "limits.usd_max": LOWER,
    "limits.tokens_max": LOWER,
    "limits.seconds_max": LOWER,
    "limits.edit_mb_max": LOWER,
    "limits.edit_files_max": LOWER,
    "limits.free_mb_min": Rule(Mark.STRICTER, less, default=FREE_MB),
    "project.setup": CONSENT,
    "project.test": CONSENT,
    "project.checks": CONSENT,
    "workspaces.root": CONSENT,
    "workspaces.sandbox": ordered(("bwrap", "")),
    "sandbox.mode": PERSON,
    "sandbox.network": PERSON,
    "sandbox.hosts": PERSON,
    "sandbox.read": PERSON,
    "sandbox.write": PERSON,
}


class Rules:
    """The rules of the core, and those of workflows: none of theirs goes over one of the core's."""

    def __init__(self, of_workflows: Mapping[str, Rule] = MappingProxyType({})) -> None:
        """By key, with the workflow's name in front."""
        found = {**KEYS, **of_workflows, **KEYS}
        self._patterns = {tuple(pattern.split(".")): rule for pattern, rule in found.items()}

    def of(self, key: Key) -> Rule:
        """The rule of a setting."""
        return next((found for words, found in self._patterns.items() if _fits(key, words)), CONSENT)

    def has_inner(self, key: Key) -> bool:
        """Whether there are rules for what is below this key, if that is a table too."""
        return any(len(words) > len(key) and _fits(key, words[: len(key)]) for words in self._patterns)


OF_THE_CORE = Rules()


def _fits(key: Key, words: Key) -> bool:
    return len(words) == len(key) and all(w in ("*", k) for k, w in zip(key, words, strict=True))
