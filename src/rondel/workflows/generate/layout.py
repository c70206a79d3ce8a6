"""Which file is where in a session of `generate`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rondel.model.decisions import DECISIONS
from rondel.model.snapshot import Snapshot
from rondel.workflows.generate.models import WorkflowPhase, WorkflowStage

SESSIONS = ".aiwf/sessions"
PROFILES = ".aiwf/profiles"
SESSION = "session.json"
INPUTS = ".rondel/parts/inputs"  # files named in the context: the schema
SOURCES = ".rondel/parts/sources"  # code of another session or of the project
APPLIED = ".rondel/parts/applied.json"  # what was copied into the project, by digest

WORDS = {
    WorkflowPhase.PLAN: "planning",
    WorkflowPhase.GENERATE: "generation",
    WorkflowPhase.REVIEW: "review",
    WorkflowPhase.REVISE: "revision",
}
LEVELS_MAX = 40  # of folders in folders


@dataclass(frozen=True)
class Paths:
    """The files of one cycle. A v2 session is one cycle whose files lie flat at its top."""

    folder: str  # "domain/", or "" for v2
    flat: bool = False

    def iteration(self, number: int) -> str:
        """The folder of an iteration."""
        return f"{self.folder}iteration-{number}"

    def prompt(self, number: int, phase: WorkflowPhase) -> str:
        """What is asked."""
        return f"{self.iteration(number)}/{'' if self.flat else 'prompts/'}{WORDS[phase]}-prompt.md"

    def response(self, number: int, phase: WorkflowPhase) -> str:
        """What was answered."""
        return f"{self.iteration(number)}/{'' if self.flat else 'responses/'}{WORDS[phase]}-response.md"

    def code(self, number: int) -> str:
        """The folder for generated files, and for nothing else."""
        return f"{self.iteration(number)}/code"

    @property
    def plan(self) -> str:
        """The approved plan."""
        return f"{self.folder}plan.md"

    @property
    def standards(self) -> str:
        """The standards chosen for the cycle."""
        return f"{self.folder}standards-bundle.md"

    def version(self, number: int, phase: WorkflowPhase, stage: WorkflowStage, attempt: int) -> str:
        """What one version of a stage's file is called in `.rondel/`."""
        return f"{self.iteration(number)}/{WORDS[phase]}-{stage}-{attempt}"

    def shown(self, number: int) -> str:
        """Which code the reviewer of this iteration was shown, by digest."""
        return f".rondel/parts/{self.iteration(number)}/review-shown.json"

    def signed(self, number: int) -> str:
        """That Rondel completed the cycle in this iteration, with its mark."""
        return f".rondel/parts/{self.iteration(number)}/complete.json"


def decision(version: str) -> str:
    """What a person said of a version of a stage's file."""
    return f"{DECISIONS}/{version}.json"


def gate(version: str) -> str:
    """What an agent said of it."""
    return f".rondel/parts/{version}.gate.json"


def settled(version: str) -> str:
    """The name of the step that carries an answer out; it leaves no file but the state's."""
    return f".rondel/parts/{version}.settled"


def below(files: Snapshot, folder: str, levels: int = LEVELS_MAX) -> Iterator[str]:
    """Every file below a folder, by its path in the session."""
    for name in sorted(files.names(folder)) if levels else ():
        if name.endswith("/"):
            yield from below(files, f"{folder}/{name[:-1]}", levels - 1)
        else:
            yield f"{folder}/{name}"


def rejected(path: str, attempt: int) -> str:
    """Where a rejected prompt or response goes."""
    return f"{path.removesuffix('.md')}.rejected-{attempt}.md"
