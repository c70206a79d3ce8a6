"""What a person configured for one agent: a table `[agents.NAME]` of `rondel.toml`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rondel.agents.base import Clocks


@dataclass(frozen=True)
class AgentSettings:
    """One agent's settings. `options` holds what only its own kind understands."""

    name: str
    kind: str
    command: tuple[str, ...] = ()
    timeout_s: float = Clocks.wall_s
    idle_s: float = Clocks.idle_s
    turns_max: int = Clocks.turns_max
    model: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    script: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    root: Path | None = None  # the repository's folder; a relative `script` counts from it
    beside: Path | None = None  # the folder of the file that says `command`: a file there is meant first

    @property
    def clocks(self) -> Clocks:
        """The clocks of every request to this agent."""
        return Clocks(self.timeout_s, self.idle_s, self.turns_max)
