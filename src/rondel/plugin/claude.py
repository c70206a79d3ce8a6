"""The plugin for Claude Code, as files."""

from __future__ import annotations

import json
from importlib.metadata import metadata

from rondel import __version__
from rondel.model.jsons import pretty
from rondel.plugin.commands import (
    commands,
    expectation_list,
    fill,
    limit_list,
    phase_list,
    template,
)
from rondel.workflows.feature.prompt import source

ABOUT = "Drives features through phases under a reviewer, and reviews changes with several reviewers."
READS_ONLY = "Read, Grep, Glob"
REVIEWERS = {
    "chain-reviewer": "Reviews one document of a feature: can the next phase work from it alone? Reads only.",
    "final-reviewer": "Compares an implementation with its specification. Reads only.",
}
HOOK_S = 10


def plugin_files() -> dict[str, str]:
    """Every file of the plugin, by its path in the plugin's folder."""
    made = {
        ".claude-plugin/plugin.json": _json(_manifest()),
        "README.md": fill("readme", commands=_command_list()),
        "hooks/hooks.json": _json(_hooks()),
        "hooks/session-start.sh": template("session-start.sh"),
        "skills/workflow-state/SKILL.md": _skill(),
    }
    for name, about in REVIEWERS.items():
        made[f"agents/{name}.md"] = _reviewer(name, about)
    for command in commands():
        head = {
            "description": command.about,
            "argument-hint": command.hint,
            "allowed-tools": "Bash(rondel:*)",
        }
        made[f"commands/{command.name}.md"] = _front(head) + command.body("$ARGUMENTS")
    return made


def marketplace_file() -> str:
    """The list by which Claude Code finds the plugin in the repository: `.claude-plugin/marketplace.json`."""
    plugin = {"name": "rondel", "source": "./plugin", "description": ABOUT, "version": __version__}
    return _json({"name": "rondel", "owner": {"name": "Rondel"}, "plugins": [plugin]})


def _manifest() -> dict[str, object]:
    return {
        "name": "rondel",
        "version": __version__,
        "description": ABOUT,
        "author": {"name": "Rondel"},
        "license": metadata("rondel")["License"],
    }


def _command_list() -> str:
    return "\n".join(f"- `/rondel:{c.name}`: {c.about}" for c in commands())


def _hooks() -> dict[str, object]:
    run = {
        "type": "command",
        "command": 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/session-start.sh"',
        "timeout": HOOK_S,
    }
    start = {"matcher": "startup|resume|clear|compact", "hooks": [run]}
    return {"description": "Says which features are active.", "hooks": {"SessionStart": [start]}}


def _skill() -> str:
    about = "How features, their phases and their state work in Rondel. Use before changing anything there."
    body = fill(
        "skill",
        phases=phase_list(),
        limits=limit_list(),
        expectations=expectation_list(),
        commands=_command_list(),
    )
    return _front({"name": "workflow-state", "description": about}) + body


def _reviewer(name: str, about: str) -> str:
    head = {"name": name, "description": about, "tools": READS_ONLY, "model": "inherit"}
    return f"{_front(head)}{source(name)}\n\n{source('verdict')}\n"


def _front(fields: dict[str, str]) -> str:
    """The head of a Markdown file: YAML, every value quoted as JSON, which is YAML too."""
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def _json(value: object) -> str:
    return f"{pretty(value)}\n"
