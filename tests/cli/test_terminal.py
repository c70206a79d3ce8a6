"""On a real terminal: the live view, watching from another one, stopping with Ctrl-C."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

from support.cli import RONDEL, rondel
from support.person import YES

AGENT = """
import sys, time
sys.stdin.read()
print("thinking about it", flush=True)
time.sleep(float(sys.argv[1]))
print("# Spec\\n\\nEverything.")
"""


@pytest.fixture
def scene(tmp_path):
    """A repository with a feature whose agent takes its time."""
    home = tmp_path / "home"
    home.mkdir()
    root = tmp_path / "repo"
    root.mkdir()
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        **YES,
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@localhost",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@localhost",
    }
    for args in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run(["git", *args], cwd=root, env=env, check=True)
    (tmp_path / "agent.py").write_text(AGENT)
    command = json.dumps([sys.executable, str(tmp_path / "agent.py"), "30"])
    (root / "rondel.toml").write_text(
        f'[agents.slow]\nkind = "command"\ncommand = {command}\n[roles]\ndefault = "slow"\n'
    )
    subprocess.run([*RONDEL, "feature", "start", "Login"], cwd=root, env=env, check=True, capture_output=True)
    return root, env


def spawn(scene: tuple[Path, dict[str, str]], *args: str) -> pexpect.spawn:
    root, env = scene
    return pexpect.spawn(
        RONDEL[0],
        [*RONDEL[1:], *args],
        cwd=str(root),
        env=env,
        encoding="utf-8",
        dimensions=(30, 120),
        timeout=30,
    )


def specify(scene: tuple[Path, dict[str, str]]) -> pexpect.spawn:
    """A phase under way; on a terminal a skipped phase is asked about first."""
    run = spawn(scene, "feature", "specify")
    run.expect(r"go on\?")
    run.sendline("y")
    return run


def test_the_live_view_shows_who_works_since_when_and_what_they_said(scene):
    run = specify(scene)
    run.expect("slow")
    run.expect("thinking about it")
    run.expect(r"[2-9] s")
    run.sendintr()
    run.expect("interrupted")
    run.expect(pexpect.EOF)
    run.close()
    assert run.exitstatus == 130


def test_another_terminal_can_watch_and_stop_it(scene):
    run = specify(scene)
    run.expect("thinking about it")
    time.sleep(1.5)
    watch = spawn(scene, "watch")
    watch.expect("running")
    watch.expect("slow")
    stop = spawn(scene, "stop")
    stop.expect("what is under way is ended")
    stop.expect(pexpect.EOF)
    run.expect("paused")
    run.expect(pexpect.EOF)
    run.close()
    assert run.exitstatus == 3
    watch.expect(pexpect.EOF)


def test_without_a_terminal_there_are_plain_lines(scene):
    root, env = scene
    toml = root / "rondel.toml"
    toml.write_text(toml.read_text().replace('"30"', '"0"'))
    done = rondel(root, env, "feature", "specify")
    assert "\x1b" not in done.stderr
    assert "(slow)" in done.stderr
