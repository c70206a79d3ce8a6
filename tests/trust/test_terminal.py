"""At a real terminal: the first run shows what would run, asks once, and keeps to the answer."""

from __future__ import annotations

import pexpect
import pytest
from test_strangers import agent, based

from support.cli import RONDEL


@pytest.mark.parametrize("answer", ["y", "n"])
def test_the_first_run_shows_what_would_run_and_asks(repo, env, marker, answer):
    based(repo, env, agent(marker))
    child = pexpect.spawn(
        RONDEL[0],
        [*RONDEL[1:], "review", "--quick"],
        cwd=repo,
        env={**env, "TERM": "dumb"},
        encoding="utf-8",
        timeout=60,
    )
    child.expect("say yes to all of it")
    assert "agents.mine" in child.before
    assert "evil.py" in child.before
    assert not marker.exists()
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert marker.exists() is (answer == "y"), child.before
    if answer == "n":
        assert "left out, for want of your consent: agents.mine, roles.default" in child.before
