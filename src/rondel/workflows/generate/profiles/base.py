"""The contract of a profile: what it declares, and hooks that say what to write and never write.

What hooks get is a `CycleContext`: the cycle, the person's context, other cycles' code when it is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rondel.workflows.generate.models import CycleConfig as CycleConfig
from rondel.workflows.generate.models import WorkflowPhase as WorkflowPhase
from rondel.workflows.generate.responses import CodeFile as CodeFile
from rondel.workflows.generate.responses import ResponsePlan as ResponsePlan
from rondel.workflows.generate.responses import extract, unusable

LEFT_OUT = "(left out: with it the outputs of other cycles would be larger than {limit} characters)"


class LazyFiles(Mapping[str, str]):
    """Files by name; each is read once, when it is asked for, and all together only up to a limit."""

    def __init__(self, read: Callable[[str], str | None], places: Mapping[str, str], chars_max: int) -> None:
        self._read = read
        self._places = dict(places)
        self._chars_max = chars_max
        self._loaded: dict[str, str] = {}
        self._chars = 0

    def __getitem__(self, name: str) -> str:
        if name not in self._loaded:
            text = self._read(self._places[name]) or ""
            if self._chars + len(text) > self._chars_max:
                text = LEFT_OUT.format(limit=self._chars_max)
            self._chars += len(text)
            self._loaded[name] = text
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@dataclass(frozen=True)
class CycleContext:
    """One phase of one cycle, as a profile sees it."""

    type: str
    scope: str
    phase: WorkflowPhase
    iteration: int
    context: dict[str, Any]  # the person's, with this cycle's `scope` and its `cycle_outputs`
    standards: str = ""
    plan: str = ""
    review: str = ""
    feedback: tuple[str, ...] = ()
    code: Mapping[str, str] = field(default_factory=dict)  # the cycle's own, newest versions
    inputs: Mapping[str, str] = field(default_factory=dict)  # files named in the context, by its key
    sources: Mapping[str, str] = field(default_factory=dict)  # of another session, or of the project
    response: str = ""  # for the response hook

    @property
    def outputs(self) -> Mapping[str, Mapping[str, Any]]:
        """`cycle_outputs` of the context: of the cycles this one depends on, and of no others."""
        found = self.context.get("cycle_outputs")
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True)
class PromptPlan:
    """The prompt to leave for a phase."""

    text: str


class WorkflowProfile(ABC):
    """One kind of code to generate. Instances have no state of their own."""

    name: str = ""
    description: str = ""

    def get_cycles(self, context: dict[str, Any]) -> list[CycleConfig]:
        """Return the ordered cycles of a session; called once, when it is initialised.

        Without a method of its own a profile has one cycle, named like its scope, and with
        `with_tests` one for tests after it.
        """
        scope = str(context.get("scope") or "main")
        cycles = [CycleConfig(type=scope, scope=scope)]
        if context.get("with_tests") and scope != "tests":
            cycles.append(CycleConfig(type="tests", scope="tests", depends_on=[scope]))
        return cycles

    def check_context(self, context: dict[str, Any]) -> str:
        """What is wrong with what a person gave, in words they can act on; empty when it will do."""
        return ""

    def standards(self, scope: str, context: dict[str, Any]) -> str:
        """The standards for the cycle of this scope: only what that cycle needs."""
        return ""

    @abstractmethod
    def plan_prompt(self, cycle: CycleContext) -> PromptPlan:
        """The prompt of `cycle.phase`."""

    def plan_response(self, cycle: CycleContext) -> ResponsePlan:
        """The files that follow from `cycle.response`, or what is wrong with it."""
        if cycle.phase in (WorkflowPhase.PLAN, WorkflowPhase.REVIEW):
            return ResponsePlan(error=unusable(cycle.phase, cycle.response))
        return extract(cycle.response)
