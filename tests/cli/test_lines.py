"""The plain lines of a run: one for what a person should see, none for the rest."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rondel.cli.screen import Lines, event_line

CASES = [
    ("started", {"agent": "fake"}, "… a.md (fake)"),
    ("recovered", {}, "= a.md: the answer was already there"),
    ("cutoff", {}, "! a.md: was cut off; it goes on"),
    ("outdated", {}, "! a.md: what it was asked about changed; it is asked again"),
    ("kept", {"file": "a.md", "why": "kept", "aside": "b/a.md.1"}, "! a.md: kept: b/a.md.1"),
    ("finished", {"ended": "done", "seconds": 125}, "✓ a.md 2:05"),
    ("finished", {"ended": "waiting"}, "? a.md: waits for a person"),
    (
        "finished",
        {"ended": "parked", "until": "2026-11-15T12:00:00Z"},
        "! a.md: parked until 2026-11-15T12:00:00Z",
    ),
    ("finished", {"ended": "failed", "error": "no\nmore"}, "✗ a.md: failed: no"),
    (
        "finished",
        {"ended": "failed", "error": "status 1: ======\nFAIL: test_a"},
        "✗ a.md: failed: status 1: FAIL: test_a",
    ),
    ("driver", {}, ""),
]


@pytest.mark.parametrize(("kind", "fields", "line"), CASES)
def test_each_event_is_one_line_or_none(kind, fields, line):
    assert event_line(kind, {"action": "a.md", **fields}) == line


def test_an_action_is_called_by_its_title_which_gives_a_terminal_no_orders():
    console = Console(file=io.StringIO(), width=80)
    view = Lines(console)
    view.event("started", {"action": ".rondel/parts/1.md", "title": "plan\x1b]0;mine\x07 of\nthe lead"})
    view.event("finished", {"action": ".rondel/parts/1.md", "ended": "done", "seconds": 1})
    view.event("finished", {"action": "derived.json", "ended": "done"})
    assert console.file.getvalue() == "… plan of the lead\n✓ plan of the lead 1 s\n"
