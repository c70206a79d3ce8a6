"""What a profile's hooks get: the cycle, the person's context, and other cycles' code when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rondel.model.snapshot import Snapshot
from rondel.workflows.generate.models import WorkflowPhase

LEFT_OUT = "(left out: with it the outputs of other cycles would be larger than {limit} characters)"


class LazyFiles(Mapping[str, str]):
    """Files by name; each is read when it is asked for, and all together only up to a limit."""

    def __init__(self, files: Snapshot, places: Mapping[str, str], chars_max: int) -> None:
        self._files = files
        self._places = dict(places)
        self._chars_max = chars_max
        self._loaded: dict[str, str] = {}
        self._chars = 0

    def __getitem__(self, name: str) -> str:
        if name not in self._loaded:
            text = self._files.text(self._places[name]) or ""
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
