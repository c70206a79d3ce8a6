"""What packages bring: agents, analysers, profiles, workflows, each by an entry point of its group."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points


def plugins(group: str) -> dict[str, EntryPoint]:
    """What is installed in a group, by name. None of it is imported before it is used."""
    return {point.name: point for point in entry_points(group=group)}
