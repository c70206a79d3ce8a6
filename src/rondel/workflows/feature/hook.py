"""What a coding agent is told of features when it starts. It imports next to nothing, as the hook does."""

from __future__ import annotations

import os

from rondel import paths
from rondel.model import jsons
from rondel.model.texts import one_line
from rondel.workflows.feature import place
from rondel.workflows.feature.meta import FILE, due_phase, partial_phases, title
from rondel.workflows.feature.phases import ACTIVE, FINISH
from rondel.workflows.feature.place import FEATURES

SHOWN_MAX = 10
SIZE_MAX = 1_000_000
WARNING_MAX = 400


def session_start(cwd: str) -> str:
    """The active features, where each stands, what to do next, and a warning where one is elsewhere."""
    here = place.repository(cwd)
    if here is None:
        return ""
    root = place.home_of_features(here)
    lines: list[str] = []
    troubles: list[str] = []
    for name in _folders(os.path.join(root, FEATURES)):
        meta, trouble = _read(os.path.join(root, FEATURES, name, FILE))
        if trouble:
            troubles.append(f"- {FEATURES}/{one_line(name)}/{FILE}: {trouble}; `rondel doctor` says more")
        elif meta is not None and meta.get("status") == ACTIVE:
            lines.append(_feature(root, cwd, name, meta))
    return _message(lines, troubles)


def _folders(parent: str) -> list[str]:
    """The features' folders, the newest first."""
    try:
        names = paths.names(parent)
    except OSError:
        return []
    return sorted((n for n in names if n[:1].isdigit()), reverse=True)


def _read(path: str) -> tuple[dict[str, object] | None, str]:
    """A feature's document, or what is wrong with it; neither where there is none."""
    try:
        meta = jsons.load(paths.read(path, SIZE_MAX))
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except (OSError, ValueError) as e:
        return None, one_line(str(e))
    return (meta, "") if isinstance(meta, dict) else (None, "it is not a JSON object")


def _feature(root: str, cwd: str, name: str, meta: dict[str, object]) -> str:
    due = due_phase(meta) or FINISH
    state = "is under way" if due in partial_phases(meta) else "is next"
    line = (
        f'- feature {one_line(name)} "{one_line(title(meta, name))}": {due} {state}; '
        f"/rondel:{due}, or `rondel feature {due} {one_line(name)}`"
    )
    warning = place.elsewhere(root, one_line(name), meta.get("worktree"), cwd)
    return f"{line}\n  WARNING: {one_line(warning, WARNING_MAX)}" if warning else line


def _message(lines: list[str], troubles: list[str]) -> str:
    parts = []
    if lines:
        parts += ["Active features in this repository (Rondel):", *lines[:SHOWN_MAX]]
    if len(lines) > SHOWN_MAX:
        parts.append(f"- and {len(lines) - SHOWN_MAX} more; `rondel feature status` lists them")
    if troubles:
        parts += ["Features that Rondel cannot read:", *troubles[:SHOWN_MAX]]
    return "\n".join(parts)
