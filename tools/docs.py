"""Docs that follow from the code: the command reference, and the map of modules.

`make docs` writes them; a test says whether they are in step.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import Any

import click

from rondel.cli.main import root

TOP = Path(__file__).parent.parent
COMMANDS = TOP / "docs" / "commands.md"
MAP = TOP / "ARCHITECTURE.md"
BEGIN, END = "<!-- map: written by `make docs` -->", "<!-- end of the map -->"
WIDTH = 100
SHOWN: dict[str, Any] = {
    "max_content_width": WIDTH,
    "terminal_width": WIDTH,
    "help_option_names": ["-h", "--help"],
}


def commands_page() -> str:
    """Every command with its help, as the terminal shows it."""
    parts = ["# Commands\n\nWritten by `make docs` from the help texts.\n"]
    context = click.Context(root, info_name="rondel", **SHOWN)
    parts += _help(root, context)
    return "\n".join(parts)


def _help(command: click.Command, context: click.Context) -> list[str]:
    level = "#" * min(2 + context.command_path.count(" "), 4)
    parts = [f"{level} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                inner = click.Context(below, info_name=name, parent=context, **SHOWN)
                parts += _help(below, inner)
    return parts


def module_map() -> str:
    """Every module with the first line of its docstring, room by room."""
    lines = ["", "```text"]
    source = TOP / "src"
    for folder in sorted({p.parent for p in source.rglob("*.py")}):
        paths = sorted(folder.glob("*.py"), key=lambda p: (p.name != "__init__.py", p.name))
        lines.append(f"{folder.relative_to(source)}/  {_first_line(paths[0])}".rstrip())
        lines += [f"    {p.name:<18} {_first_line(p)}" for p in paths if p.name != "__init__.py"]
    return "\n".join([*lines, "```", ""])


def _first_line(path: Path) -> str:
    found = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return found.partition("\n")[0]


def with_map(page: str) -> str:
    """The architecture page with its map as the code has it now."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{module_map()}\n{END}{tail}"


def main() -> int:
    """Write the pages, or print the command reference."""
    os.environ["COLUMNS"] = str(WIDTH)
    if sys.argv[1:] == ["--commands"]:
        sys.stdout.write(commands_page())
        return 0
    COMMANDS.write_text(commands_page(), encoding="utf-8")
    MAP.write_text(with_map(MAP.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
