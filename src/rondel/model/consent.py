"""Consent: what a repository brings that can run, and who may say that it counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rondel.errors import NeedsConsent
from rondel.model.commands import command_line


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
