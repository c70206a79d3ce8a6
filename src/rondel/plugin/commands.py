"""The commands that every host gets: one table, rendered in the form each of them reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from rondel.model import templates
from rondel.workflows.feature.phases import ARTIFACTS, EXPECTATIONS, LIMITS, REVIEWED

PURPOSES = {
    "brainstorm": "capture the problem, the intent and the options.",
    "specify": "say what will be true when it is done.",
    "design": "say how the specification is met.",
    "create-plan": "turn the design into an order of work.",
    "create-tasks": "break the plan into small tasks.",
    "implement": "carry out the tasks in a branch, with tests, and compare the result with the spec.",
    "verify": "confirm with evidence that it is ready to merge.",
}


@dataclass(frozen=True)
class Command:
    """One command: its name, one line about it, what may follow it, and the template it is made from."""

    name: str
    about: str
    hint: str
    template: str
    purpose: str = ""

    def body(self, arguments: str) -> str:
        """What the host's agent is told; `arguments` is how this host writes the user's words."""
        return fill(self.template, phase=self.name, purpose=self.purpose, arguments=arguments)


def commands() -> tuple[Command, ...]:
    """Every command, in the order a person would meet them."""
    phases = [
        Command(
            name,
            f"Phase {name}: {PURPOSES[name].rstrip('.')}, under a reviewer",
            "[feature] [--continue | --fresh | --review]",
            "phase",
            PURPOSES[name],
        )
        for name in REVIEWED
    ]
    return (
        Command("start", "Begin a feature", "title", "start"),
        *phases,
        Command(
            "run", "Do every phase of a feature that is left", "[feature] [--until phase] [--auto]", "run"
        ),
        Command("finish", "End a feature: merge, pull request, keep or abandon", "[feature]", "finish"),
        Command("status", "Show the features and where each stands", "[feature]", "status"),
        Command("review", "Review the current change with several reviewers", "[target]", "review"),
    )


@cache
def template(name: str) -> str:
    """One file of `templates/`, as it is."""
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8").strip() + "\n"


def fill(name: str, **slots: str) -> str:
    """A template with its slots filled."""
    return templates.fill(template(f"{name}.md"), slots)


def phase_list() -> str:
    """The phases and the document each leaves, as a list."""
    rows = [f"{n}. `{p}`: {ARTIFACTS.get(p, 'code')}" for n, p in enumerate(REVIEWED, 1)]
    return "\n".join([*rows, f"{len(rows) + 1}. `finish`"])


def limit_list() -> str:
    """The limits, as a sentence."""
    words = ", ".join(f"{mode} {most}" for mode, most in LIMITS.items())
    return f"The mode sets how many iterations a phase may have: {words}."


def expectation_list() -> str:
    """What each document must hold for the phase after it, as a list."""
    return "\n".join(f"- `{phase}`: {needs}" for phase, needs in EXPECTATIONS.items())
