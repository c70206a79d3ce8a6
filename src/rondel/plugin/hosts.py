"""The same commands for the other hosts, in the form each of them reads."""

from __future__ import annotations

import json

from rondel.plugin.commands import commands, fill
from rondel.workflows.feature.phases import PHASES

BEGIN = "<!-- rondel:begin; this section is written by `rondel init` -->"
END = "<!-- rondel:end -->"
MADE = "made by `rondel init`; it is written again by the next one"


def agents_section() -> str:
    """The section of `AGENTS.md`, which Codex, OpenCode and others read."""
    lines = []
    for command in commands():
        what = "review" if command.name == "review" else f"feature {command.name}"
        lines.append(f"- `rondel {what} {command.hint}`: {command.about}")
    body = fill("section", commands="\n".join(lines), phases=", ".join(PHASES))
    return f"{BEGIN}\n{body}{END}\n"


def gemini_files() -> dict[str, str]:
    """Gemini's command files: `/rondel:specify` is `.gemini/commands/rondel/specify.toml`."""
    made = {}
    for command in commands():
        about = json.dumps(command.about, ensure_ascii=False)
        prompt = json.dumps(command.body("{{args}}"), ensure_ascii=False)
        made[f".gemini/commands/rondel/{command.name}.toml"] = (
            f"# {MADE}\ndescription = {about}\nprompt = {prompt}\n"
        )
    return made


def opencode_files() -> dict[str, str]:
    """OpenCode's command files: `/rondel/specify` is `.opencode/commands/rondel/specify.md`."""
    made = {}
    for command in commands():
        about = json.dumps(command.about, ensure_ascii=False)
        made[f".opencode/commands/rondel/{command.name}.md"] = (
            f"---\ndescription: {about}\n---\n<!-- {MADE} -->\n\n{command.body('$ARGUMENTS')}"
        )
    return made
