"""Commands typed without starting an interpreter for each: one that has loaded all of Rondel forks for it.

A command line costs most of a second of a processor, nearly all of it for loading; the corpus types
twenty thousand. What a real start would do otherwise (an interpreter that looks around where it is
started) is seen by the commands that are typed for real beside these.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from rondel.cli import main  # the function: nothing has loaded the module of that name yet
from rondel.cli.main import root

POLL_S = 0.01


class Forked:
    """An interpreter that has loaded Rondel, and a fork of it for each command."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
        )

    def type(
        self, words: tuple[str, ...], cwd: Path, env: Mapping[str, str], bound_s: float
    ) -> tuple[int | None, bytes, bytes]:
        """How a command ended, None where it did not within its bound, and what it printed."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            fds = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
            asked = {"words": words, "cwd": str(cwd), "env": dict(env), "fds": fds, "bound_s": bound_s}
            print(json.dumps(asked), file=self._server.stdin, flush=True)
            code = json.loads(self._server.stdout.readline())
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def close(self) -> None:
        """End it."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()


def _serve() -> None:
    """Fork for each line that is read, and say how the fork ended."""
    list(leaves(root))  # loads all
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            _become(asked["words"], asked["cwd"], asked["env"], asked["fds"])
        print(json.dumps(_ended(child, asked["bound_s"])), flush=True)


def leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command below a group, by the words that a person types."""
    if not isinstance(command, click.Group):
        yield words
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, (*words, name))


def _become(words: list[str], cwd: str, env: dict[str, str], fds: list[str]) -> None:
    """Be what `rondel WORDS` would be, and end."""
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for number, name in enumerate((os.devnull, *fds)):
        opened = os.open(name, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    tempfile.tempdir = None
    sys.argv = ["rondel", *words]
    try:
        main()
        code: object = 0
    except SystemExit as e:
        code = e.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _ended(child: int, bound_s: float) -> int | None:
    end = time.monotonic() + bound_s
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(POLL_S)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


if __name__ == "__main__":
    _serve()
