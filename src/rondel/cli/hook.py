"""`rondel hook EVENT`: what a coding agent is told when it starts.

It runs at every start of a host, so it imports next to nothing; and it never fails one:
whatever is wrong becomes a message, and the exit code is 0.
"""

from __future__ import annotations

import json
import os
import select
import sys

from rondel import paths
from rondel.model import jsons
from rondel.workflows.feature import place
from rondel.workflows.feature.meta import FILE, due_phase, partial_phases, title
from rondel.workflows.feature.phases import ACTIVE, FINISH
from rondel.workflows.feature.place import FEATURES

EVENTS = {"session-start": "SessionStart"}
SHOWN_MAX = 10
SIZE_MAX = 1_000_000
WORDS_MAX = 200
STDIN_S = 0.05  # hosts say where they are on standard input, at once or not at all


def main(argv: list[str]) -> int:
    """Answer a hook: `argv` is `["hook", EVENT]`. Always 0."""
    event = EVENTS.get(argv[1]) if len(argv) > 1 else None
    if event is None:
        print(f"rondel: no hook {' '.join(argv[1:])!r}; there are: {', '.join(EVENTS)}", file=sys.stderr)  # noqa: T201
        return 0
    try:
        context = session_start(_cwd())
    except Exception as e:  # noqa: BLE001 - a host must start, whatever is wrong here
        context = f"Rondel could not read this project's features: {_plain(str(e) or type(e).__name__)}"
    sys.stdout.write(answer(event, context) + "\n")
    return 0


def answer(event: str, context: str) -> str:
    """The context in both forms that hosts read; an empty object where there is nothing to say."""
    if not context:
        return "{}"
    own = {"hookEventName": event, "additionalContext": context}
    return json.dumps({"additionalContext": context, "hookSpecificOutput": own})


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
            troubles.append(f"- {FEATURES}/{_plain(name)}/{FILE}: {trouble}; `rondel doctor` says more")
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
        return None, _plain(str(e))
    return (meta, "") if isinstance(meta, dict) else (None, "it is not a JSON object")


def _feature(root: str, cwd: str, name: str, meta: dict[str, object]) -> str:
    due = due_phase(meta) or FINISH
    state = "is under way" if due in partial_phases(meta) else "is next"
    line = (
        f'- feature {_plain(name)} "{_plain(title(meta, name))}": {due} {state}; '
        f"/rondel:{due}, or `rondel feature {due} {_plain(name)}`"
    )
    warning = place.elsewhere(root, _plain(name), meta.get("worktree"), cwd)
    return f"{line}\n  WARNING: {_plain(warning, 2 * WORDS_MAX)}" if warning else line


def _message(lines: list[str], troubles: list[str]) -> str:
    parts = []
    if lines:
        parts += ["Active features in this repository (Rondel):", *lines[:SHOWN_MAX]]
    if len(lines) > SHOWN_MAX:
        parts.append(f"- and {len(lines) - SHOWN_MAX} more; `rondel feature status` lists them")
    if troubles:
        parts += ["Features that Rondel cannot read:", *troubles[:SHOWN_MAX]]
    return "\n".join(parts)


def _plain(text: str, length_max: int = WORDS_MAX) -> str:
    """Text from a file as one line of bounded length that can end no quotation."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).replace('"', "'")
    return line if len(line) <= length_max else line[: length_max - 1] + "…"


def _cwd() -> str:
    """Where the host is: it says so on standard input, else it is where this process is."""
    try:
        if not sys.stdin.isatty() and select.select([0], [], [], STDIN_S)[0]:
            said = jsons.load(os.read(0, SIZE_MAX))
            if isinstance(said, dict) and isinstance(said.get("cwd"), str) and os.path.isdir(said["cwd"]):
                return str(said["cwd"])
    except (OSError, ValueError, RecursionError, AttributeError):
        pass  # no usable word from the host
    return os.getcwd()
