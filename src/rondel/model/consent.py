"""Consent: what a repository brings that can run or says in its settings, and whose word makes it count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rondel.errors import NeedsConsent, UnsafePath
from rondel.model.names import inside
from rondel.model.summary import command_line


@dataclass(frozen=True)
class Brought:
    """Something of the repository, besides its settings, that a workflow would run.

    The person consents to its text and to the content of `files`, whose paths count from the
    repository's folder; a folder stands for every file in it that is no Markdown.
    """

    name: str  # `profile wide`, `tests`
    text: str
    files: tuple[str, ...] = ()


Admits = Callable[[Brought], bool]


def admits_nothing(_: Brought) -> bool:
    """Whoever does not say who consented to what has consented to nothing."""
    return False


def require(brought: Brought, admits: Admits) -> None:
    """NeedsConsent where the person did not consent to something that was found while a run goes on."""
    if not admits(brought):
        raise NeedsConsent(
            f"{brought.name} were found that you have not consented to: {brought.text.splitlines()[0]}; "
            f"`{command_line('trust')}` shows them, `{command_line('trust', '--yes')}` says yes"
        )


class Everything:
    """A set that has every command in it: that of a person who said yes to all of them."""

    def __contains__(self, _: object) -> bool:
        """Whatever it is."""
        return True


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
    consent where it would replace what the person said. Settings `together` are bound by the strictest
    that the person said of any of them. One that `inherits` is, where nobody says anything of it, as
    its table's own setting of that name.
    """

    mark: Mark
    looser: Looser | None = None
    safe: Callable[[Any], bool] = lambda _: False
    yields: bool = False  # to something else that the person said, unless they consent
    default: object = None  # where the settings have none to compare with
    order: Sequence[object] = ()  # the values, the strictest first
    together: tuple[str, ...] = ()  # names in the same table; each a setting, or a table of such
    inherits: bool = False


def is_looser(found: Rule, value: object, bound: object) -> bool:
    """Whether a value allows more than a bound; one of another kind than expected does."""
    if found.looser is None:
        return False
    try:
        return found.looser(value, bound)
    except TypeError:
        return True


def more(a: float | None, b: float | None) -> bool:
    """A bound that is not there allows everything."""
    return b is not None and (a is None or a > b)


def more_or_none(a: int, b: int) -> bool:
    """The same where 0 is no bound."""
    return more(a or None, b or None)


def less(a: float | None, b: float | None) -> bool:
    """Where what is there is what keeps something safe."""
    return (a or 0) < (b or 0)


def others(a: Sequence[str], b: Sequence[str]) -> bool:
    """Where each that is named is allowed."""
    return not set(a) <= set(b)


def ordered(order: Sequence[object], default: object = None, together: tuple[str, ...] = ()) -> Rule:
    """The strictest is the first; what is not in it at all is the loosest."""

    def place(value: object) -> int:
        return order.index(value) if value in order else len(order)

    def looser(a: object, b: object) -> bool:
        return place(a) > place(b)

    return Rule(Mark.STRICTER, looser, default=default, order=order, together=together)


def _is_inside(value: object) -> bool:
    try:
        return bool(value == "" or inside(str(value)))
    except UnsafePath:
        return False


LOWER = Rule(Mark.STRICTER, more)
ON = ordered((True, False))
OFF = ordered((False, True))
HARMLESS = Rule(Mark.HARMLESS)
CONSENT = Rule(Mark.CONSENT)
PERSON = Rule(Mark.PERSON)
PATH = Rule(Mark.CONSENT, safe=_is_inside)  # below the workspace it is harmless
