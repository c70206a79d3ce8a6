"""Pseudo-terminals of a child's own: what needs one works inside, and nobody else's is there."""

from __future__ import annotations

import json
import os
import sys

import pytest

from rondel.processes.runner import clean_env
from rondel.sandbox import box, namespaces

pytestmark = pytest.mark.skipif(
    not box.holds() or bool(namespaces.missing()), reason="this machine has no Landlock, or no namespaces"
)

TALK = """
import fcntl, json, os, pty, struct, sys, termios
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
again = os.open(os.ttyname(theirs), os.O_RDWR | os.O_NOCTTY)
child, fd = pty.fork()
if not child:
    os.execvp("sh", ["sh", "-c", "tty >/dev/null && stty size; echo at a terminal"])
said = b""
while True:
    try:
        said += os.read(fd, 1000)
    except OSError:
        break
print(json.dumps([os.get_terminal_size(again).columns, said.decode(), sorted(os.listdir("/dev/pts"))]))
"""


@pytest.mark.parametrize("network", ["all", "none"])
def test_a_program_that_needs_a_terminal_makes_one(tmp_path, network):
    from sandbox.world import ran  # noqa: PLC0415 - imports what only Linux has

    (tmp_path / "cwd").mkdir()
    outside = os.openpty()
    try:
        words = [sys.executable, "-c", TALK]
        said = ran(words, tmp_path / "cwd", clean_env(), box.Confined(box.Box(network=network)))
    finally:
        for fd in outside:
            os.close(fd)
    columns, heard, there = json.loads(said)
    assert columns == 100
    assert "at a terminal" in heard
    assert there == ["0", "1", "ptmx"]
