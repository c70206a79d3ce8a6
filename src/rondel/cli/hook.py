"""`rondel hook EVENT`: what a coding agent is told when it starts.

It runs at every start of a host, so it imports next to nothing; and it never fails one:
whatever is wrong becomes a message, and the exit code is 0. A workflow that has something to
say names a function in the group `rondel.session_start`: from a folder to a text.
"""

from __future__ import annotations

import json
import os
import select
import sys
from importlib import import_module

from rondel import paths
from rondel.model import jsons
from rondel.model.texts import one_line

EVENTS = {"session-start": "SessionStart"}
GROUP = "rondel.session_start"
SIZE_MAX = 1_000_000
SAID_MAX = 10_000  # characters of one workflow
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
        context = f"Rondel could not look at this project: {_error(e)}"
    sys.stdout.write(answer(event, context) + "\n")
    return 0


def answer(event: str, context: str) -> str:
    """The context in both forms that hosts read; an empty object where there is nothing to say."""
    if not context:
        return "{}"
    own = {"hookEventName": event, "additionalContext": context}
    return json.dumps({"additionalContext": context, "hookSpecificOutput": own})


def session_start(cwd: str) -> str:
    """What every workflow says of this folder."""
    said = []
    for name, place in sorted(entries(GROUP).items()):
        module, _, function = place.partition(":")
        try:
            said.append(str(getattr(import_module(module), function)(cwd))[:SAID_MAX])
        except Exception as e:  # noqa: BLE001 - the others are heard all the same
            said.append(f"Rondel could not ask the workflow {name} what is under way here: {_error(e)}")
    return "\n".join(filter(None, said))


def entries(group: str) -> dict[str, str]:
    """The entry points of a group by name, as the packages on the path have them.

    `importlib.metadata` says the same, and importing it takes longer than everything else here.
    """
    found: dict[str, str] = {}
    for place in filter(os.path.isabs, sys.path):
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                for one, value in _entries_in(os.path.join(place, name, "entry_points.txt"), group):
                    found.setdefault(one, value)
    return found


def _entries_in(file: str, group: str) -> list[tuple[str, str]]:
    try:
        text = paths.read_elsewhere(file, SIZE_MAX).decode()
    except (OSError, ValueError):
        return []
    lines = text.partition(f"[{group}]\n")[2].partition("\n[")[0].splitlines()
    pairs = (line.partition("=") for line in lines)
    return [(name.strip(), value.strip()) for name, sign, value in pairs if sign]


def _error(error: Exception) -> str:
    return one_line(str(error) or type(error).__name__)


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
