"""At a real terminal a person is asked."""

from __future__ import annotations

import sys

import pexpect
import pytest
from scratch import RULES, environment, meta, repository, rondel, script

WAIT_S = 60


@pytest.fixture
def root(tmp_path):
    root = repository(tmp_path)
    rondel(root, "feature", "start", "Add")
    return root


def terminal(root, *args: str) -> pexpect.spawn:
    env = environment(root.parent) | {"TERM": "xterm", "COLUMNS": "200"}
    words = ["-m", "rondel", "feature", *args]
    return pexpect.spawn(sys.executable, words, cwd=str(root), env=env, timeout=WAIT_S, encoding="utf-8")


def ends(child: pexpect.spawn) -> int:
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def test_a_warning_is_shown_and_asked_about(root):
    child = terminal(root, "specify")
    child.expect("skips brainstorm")
    child.expect("go on")
    child.sendline("n")
    assert ends(child) == 3
    assert meta(root)["phases"] == {}
    child = terminal(root, "specify")
    child.expect("go on")
    child.sendline("y")
    child.expect("Phase complete")
    assert ends(child) == 0


def test_a_phase_under_way_asks_continue_fresh_or_review(root):
    script(root, [{"role": "feature.*-reviewer", "fail": "down"}, *RULES])
    rondel(root, "feature", "brainstorm")
    script(root, RULES)
    child = terminal(root, "brainstorm")
    child.expect("started and not completed.*continue, fresh, review")
    child.sendline("fresh")
    child.expect("Phase complete")
    assert ends(child) == 0
    parts = root / "docs/features/001-add/.rondel/parts/brainstorm"
    assert (parts / "pass-2/iteration-1/draft.md").exists()


def test_the_way_a_feature_ends_is_asked_for(root):
    child = terminal(root, "finish")
    child.expect("merge, pr, keep, abandon")
    child.sendline("abandon")
    child.expect("abandoned")
    assert ends(child) == 0
    assert meta(root)["status"] == "abandoned"
