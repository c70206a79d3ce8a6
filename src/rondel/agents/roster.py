"""The roster: from a kind's name to an agent. Built-ins and others come in the same way.

A package adds a kind by an entry point in the group `rondel.agents`: a callable that takes
AgentSettings and returns an Agent, or raises ConfigError.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from rondel.agents.base import Agent, AgentSettings
from rondel.errors import ConfigError
from rondel.model.plugins import plugins

GROUP = "rondel.agents"
VENDORS = ("claude", "codex", "gemini", "opencode")  # in the order of preference


def kinds() -> list[str]:
    """Every kind there is."""
    return sorted(plugins(GROUP))


def build(settings: AgentSettings, root: Path | None = None) -> Agent:
    """The agent of these settings; ConfigError when its kind or its settings are not usable.

    `root` is the folder of `rondel.toml`, from which relative paths in the settings count.
    """
    there = plugins(GROUP)
    if settings.kind not in there:
        where = f"agents.{settings.name}.kind"
        raise ConfigError(f"{where}: no agent kind {settings.kind!r}; there are: {', '.join(sorted(there))}")
    try:
        make = there[settings.kind].load()
    except (ImportError, AttributeError) as e:
        raise ConfigError(f"agents.{settings.name}: the kind {settings.kind!r} cannot be loaded: {e}") from e
    agent: Agent = make(replace(settings, root=root or settings.root))
    return agent


def detect(path: str | None = None) -> list[str]:
    """The vendors' CLIs that are on the PATH, the preferred one first."""
    return [name for name in VENDORS if shutil.which(name, path=path)]
