"""The docs are true: commands and map follow the code, links lead somewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("docs_tool", TOP / "tools" / "docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_reference_is_what_the_commands_say(tool):
    """In a process of its own: a command keeps the help option of whoever asked first."""
    script = [sys.executable, str(TOP / "tools" / "docs.py"), "--commands"]
    env = os.environ | {"COLUMNS": str(tool.WIDTH)}
    printed = subprocess.run(script, env=env, capture_output=True, text=True, check=True).stdout
    assert tool.COMMANDS.read_text() == printed, "run `make docs`"


def test_the_map_of_the_architecture_is_the_tree(tool):
    page = tool.MAP.read_text()
    assert page == tool.with_map(page), "run `make docs`"


def test_every_module_says_what_it_is(tool):
    silent = [p for p in (TOP / "src").rglob("*.py") if not tool._first_line(p)]
    assert silent == []


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in [*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")]:
        targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        broken += [f"{page.relative_to(TOP)}: {t}" for t in targets if not (page.parent / t).exists()]
    assert broken == []
