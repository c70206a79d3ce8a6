"""Every rule of the documents names a test that holds it, and the test exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PAGES = sorted((TOP / "docs" / "conformance").glob("*.md"))
NAMED = re.compile(r"tests/[\w/.-]+\.py(?:::[\w:]+)?")


def names_of_tests(path: Path) -> set[str]:
    """Every test function of a file, with its class in front where it has one."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_rule_names_a_test_that_exists(page):
    missing = []
    for name in NAMED.findall(page.read_text()):
        path, _, function = name.partition("::")
        there = (TOP / path).is_file() and (not function or function in names_of_tests(TOP / path))
        if not there:
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_row_of_a_table_of_rules_has_a_test(page):
    rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
    bare = [
        r
        for r in rows
        if not NAMED.search(r) and not re.match(r"^\|[\s:|-]+$", r) and "| test" not in r.lower()
    ]
    assert bare == []
