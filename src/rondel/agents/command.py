"""The `command` agent: any program that reads a prompt and prints an answer.

The prompt is its standard input, its standard output is the reply, a status other than 0
is a failure. As a last line on standard error it may say what it used,
`RONDEL_USAGE {"input_tokens": 10, "output_tokens": 20, "usd": 0.01}`; with the status 75 and a
line `RONDEL_PARK 2026-11-15T12:00:00Z` there it asks to be tried again at that time.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace

from typing_extensions import override

from rondel.agents.base import (
    Agent,
    AgentSettings,
    Beat,
    Reply,
    Request,
    cut_short,
    failed_status,
    with_refused,
)
from rondel.agents.vendors.stream import count, decode, money
from rondel.agents.words import by_no_link, is_line, loads_modules, pinned
from rondel.errors import ConfigError
from rondel.model.outcomes import Ended, Usage
from rondel.model.times import parse_time
from rondel.processes.runner import Exit, answered, clean_env, output, printable, run, tail
from rondel.sandbox.box import OURS, hint
from rondel.sandbox.hosts import configured, lines

PARKED = 75
SAFE_PATH = "PYTHONSAFEPATH"  # from Python 3.11 on: no module comes from the working folder
NO_MODULE = (
    "No module is taken from the working copy, which may be somebody else's: name a script beside the "
    "settings, or the module's folder by its whole path (env: PYTHONPATH)"
)
_USAGE = "RONDEL_USAGE "
_PARK = "RONDEL_PARK "
_TAIL = 20_000
_BEAT_MAX = 200


class CommandAgent(Agent):
    """An agent that is a command line."""

    kind = "command"

    def __init__(self, settings: AgentSettings) -> None:
        if not settings.command or not settings.command[0]:
            raise ConfigError(f"agents.{settings.name}.command is missing; a command agent needs one")
        self.name = settings.name
        self.model = settings.model
        self._settings = settings

    @override
    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        def show(line: bytes) -> None:
            if text := printable(line[-_BEAT_MAX:].decode(errors="replace")).strip():
                beat(Beat(text=text))

        _, scripts = pinned(self._settings.command, self._settings.beside)
        confined = request.confined(
            shown=by_no_link(scripts, self._settings.beside), hosts=configured(lines(self._settings.env))
        )
        child = request.child(self._argv(), self._env(request), confined)
        return self._reply(request, await run(child, on_line=show, on_err=show))

    @override
    def recover(self, request: Request) -> Reply | None:
        ended = answered(request.spool)
        return self._reply(request, ended) if ended else None

    @override
    def version(self) -> str | None:
        """Where the program is: what it answers to `--version` is its own business."""
        return shutil.which(self._argv()[0])

    def _argv(self) -> tuple[str, ...]:
        """The command, with the scripts beside its settings: a checkout does not bring the program."""
        words, _ = pinned(self._settings.command, self._settings.beside)
        return ("bash", "-c", words[0]) if is_line(self._settings.command) else words

    def _env(self, request: Request) -> dict[str, str]:
        safe = {SAFE_PATH: "1"} if loads_modules(self._settings.command) else {}
        return clean_env(self._settings.pass_env, {**safe, **self._settings.env, **request.variables})

    def _reply(self, request: Request, ended: Exit) -> Reply:
        said = _Said(tail(request.spool, "err", _TAIL))
        reply = cut_short(ended, request.clocks, request.spool) or self._exited(
            request, ended.code or 0, said
        )
        return replace(
            reply,
            error=with_refused(reply.error, ended),
            refused=ended.refused,
            usage=said.usage or Usage(uncounted=int(reply.ended is Ended.DONE)),
            raw_usage=said.raw_usage,
            model=self.model,
        )

    def _exited(self, request: Request, code: int, said: _Said) -> Reply:
        if code == PARKED and said.park is not None:
            until = parse_time(said.park)
            if until is not None:
                return Reply(Ended.PARKED, error=said.words, until=until, exit_code=code)
            error = (
                f"it asked to be parked until {said.park!r}, which is not a time like 2026-11-15T12:00:00Z"
            )
            return Reply(Ended.FAILED, error=error, exit_code=code)
        if code != 0:
            error = failed_status(code, request.spool)
            refused = hint(error, request.box.network) if request.box else ""
            if "No module named" in error and loads_modules(self._settings.command):
                refused = NO_MODULE
            return Reply(Ended.FAILED, error=f"{error}. {refused}" if refused else error, exit_code=code)
        text = output(request.spool)
        if not text.strip():
            return Reply(
                Ended.FAILED, error="it said nothing: no output, though its status is 0", exit_code=0
            )
        return Reply(Ended.DONE, text=text, exit_code=0)


class _Said:
    """What the end of standard error tells us."""

    def __init__(self, text: str) -> None:
        lines = [line for line in map(str.strip, printable(text).split("\n")) if line]
        parks = [line[len(_PARK) :].strip() for line in lines if line.startswith(_PARK)]
        rest = [line for line in lines if not line.startswith((_PARK, OURS))]
        self.park = parks[-1] if parks else None
        self.usage, self.raw_usage = _usage(rest[-1]) if rest else (None, {})
        self.words = "\n".join(line for line in rest[-5:] if not line.startswith(_USAGE))


def _usage(line: str) -> tuple[Usage | None, Mapping[str, object]]:
    """What a usage line says; what it says wrongly is not said."""
    if not line.startswith(_USAGE):
        return None, {}
    raw = decode(line[len(_USAGE) :].encode(errors="replace"))
    if raw is None:
        return None, {}
    tokens_in, tokens_out, cached = (
        count(raw.get(f"{word}_tokens")) for word in ("input", "output", "cached")
    )
    return Usage(tokens_in, tokens_out, cached, money(raw.get("usd"))), raw
