"""The contract of a profile: what it declares, and hooks that say what to write and never write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from rondel.workflows.generate.context import CycleContext as CycleContext
from rondel.workflows.generate.extract import CodeFile as CodeFile
from rondel.workflows.generate.extract import extract
from rondel.workflows.generate.models import CycleConfig as CycleConfig
from rondel.workflows.generate.models import WorkflowPhase as WorkflowPhase
from rondel.workflows.generate.verdict import parse_verdict


@dataclass(frozen=True)
class PromptPlan:
    """The prompt to leave for a phase."""

    text: str


@dataclass(frozen=True)
class ResponsePlan:
    """The code to leave for a response; with an error the response is not used."""

    files: tuple[CodeFile, ...] = ()
    error: str = ""


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
        if cycle.phase is WorkflowPhase.REVIEW:
            return ResponsePlan(error=parse_verdict(cycle.response).error)
        if cycle.phase is WorkflowPhase.PLAN:
            return ResponsePlan()
        found = extract(cycle.response)
        return ResponsePlan(found.files, found.error)
