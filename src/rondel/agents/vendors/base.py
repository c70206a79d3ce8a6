"""What the vendors' CLIs share: one process per request, its stream, and what makes a success.

An adapter says the command line and environment, what a line means (`parse`) and how the
vendor's account becomes usage (`bill`). Success is a terminal success event, no error, no
denial, a status of 0 and a text: an exit status alone is no verdict.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import platformdirs
from typing_extensions import override

from rondel import paths
from rondel.agents.base import Agent, AgentSettings, Beat, Reply, Request, cut_short, with_refused
from rondel.agents.vendors.starts import (
    Place,
    Start,
    is_billed,
    keep_place,
    keep_start,
    mark_billed,
    place_of,
    start_of,
)
from rondel.agents.vendors.state import Guard
from rondel.agents.vendors.stream import Event, Failed, Finished, Raw, Transcript, decode, parked_until
from rondel.agents.vendors.watched import Watched
from rondel.agents.words import by_no_link, pinned_words
from rondel.errors import ConfigError
from rondel.model.actions import Access
from rondel.model.outcomes import NO_USAGE, Ended, Usage
from rondel.processes.runner import (
    Exit,
    LineSignal,
    Reason,
    answered,
    clean_env,
    output,
    printable,
    run,
    tail,
)
from rondel.sandbox import hosts
from rondel.sandbox.hosts import Target

_OURS = uuid.UUID("6f1d9a52-6c1e-5b0e-9d4b-3f0f6c2a7e11")  # the name space of our session ids
_TMP = "tmp"
_BEAT_MAX = 200
_ERROR_MAX = 1500
_VERSION_S = 20
_SETTINGS = (".json", ".jsonc", ".toml")
SETTINGS_MAX = 1_000_000
TAMPERED = "what decides how your CLI behaves was changed"
TAMPERED_NEXT = "nothing of its work was taken; look at what was written; going on with the session takes it"
_VERSION = re.compile(r"(?<!\d)\d+\.\d+[\w.+-]*")


class CliAgent(Agent):
    """An agent that is a vendor's command-line program."""

    credentials: tuple[str, ...]  # variables of ours that this vendor's CLI may see
    names_sessions: ClassVar[bool] = False  # whether we choose the session's id
    stays_in_folder: ClassVar[bool] = False  # whether a session only goes on in the folder it began in
    unsafe: ClassVar[Mapping[str, bool]] = {}  # flags that let it write; whether a value follows
    litters: ClassVar[bool] = False  # whether it leaves files in the temporary folder: it gets its own
    unknown_session: ClassVar[str]  # its words for a session that is not there
    taken_session: ClassVar[str] = r"(?!)"  # and for one that is

    def __init__(self, settings: AgentSettings) -> None:
        self.name = settings.name
        self.model = settings.model
        self.settings = settings
        self.shell, self.trusts = _options(settings)

    # -- what an adapter says -------------------------------------------------------------

    @abstractmethod
    def arguments(self, request: Request, start: Start) -> list[str]:
        """The command line after the program's own words."""

    @abstractmethod
    def environment(self, request: Request) -> dict[str, str]:
        """Variables of this CLI; what a person configured goes over them."""

    @abstractmethod
    def state(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Where this CLI keeps its login, settings and sessions, which it reads and writes in place."""

    @abstractmethod
    def watched(self, env: Mapping[str, str], home: Path) -> Watched:
        """What of that decides how the CLI behaves: no run may change it."""

    def watches(self) -> Watched:
        """The same, for the variables of this agent."""
        return self.watched(*self._at())

    def _at(self) -> tuple[Mapping[str, str], Path]:
        """The variables and the home folder that say where this CLI's state is."""
        env = clean_env((*self.credentials, *self.settings.pass_env), self.settings.env)
        return env, Path(env.get("HOME") or Path.home())

    def handed(self, request: Request) -> tuple[str, ...]:
        """Files of the spool that the program is to read by their path."""
        return ()

    def _shown(self, request: Request) -> tuple[str, ...]:
        """What it reads by its path: what is handed to it, and a program beside the settings."""
        _, program = pinned_words(self.settings.command[:1], self.settings.beside)
        return (*self.handed(request), *by_no_link(program, self.settings.beside))

    def own_places(self) -> tuple[str, ...]:
        """Where its state is, made where it is missing: from inside nobody could."""
        found = list(self.state(*self._at()))
        for place in found:
            if place.suffix != ".json":
                paths.make_folders(os.path.realpath(place), 0o700)
        return tuple(map(str, found))

    def hosts(self) -> tuple[Target, ...]:
        """Whom it asks: its vendor, and the base URLs of the person's own settings."""
        env, home = self._at()
        texts = [*hosts.lines(env), *self.settings.command]
        for place in self.watched(env, home).paths:
            if place.suffix in _SETTINGS or place.name == ".env":
                with suppress(OSError):
                    texts.append(paths.read_elsewhere(place, SETTINGS_MAX).decode(errors="replace"))
        return (*hosts.named(self.vendor_hosts(texts)), *hosts.configured(texts))

    def vendor_hosts(self, settings: Sequence[str]) -> Sequence[str]:
        """The hosts of its vendor; `settings` are the texts of the person's own."""
        return hosts.VENDORS[self.kind]

    def refusal(self, request: Request) -> str | None:
        """Why this CLI cannot be run here at all."""
        return None

    def emptied(self, request: Request) -> Iterable[str]:
        """Variables that are set to nothing, so that a file of the checkout cannot set them."""
        return ()

    @abstractmethod
    def parse(self, line: Raw) -> Iterable[Event]:
        """What one object of the stream means."""

    @abstractmethod
    def bill(self, transcript: Transcript, counted: Raw) -> tuple[Usage, Raw]:
        """What this run cost, and the account to count from next time."""

    def with_carried(self, transcript: Transcript, usage: Usage, carried: Usage) -> Usage:
        """What this run cost together with those that were cut off before it."""
        return usage + carried

    def parse_error(self, line: str) -> Iterable[Event]:
        """What one line of standard error means."""
        return ()

    def refused(self, words: str) -> Sequence[str]:
        """The tools that were refused according to standard error."""
        return ()

    # -- the contract of an agent -----------------------------------------------------------

    @override
    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        """A session that cannot go on is begun anew; nothing was asked yet then."""
        if self._where() is None:
            return Reply(Ended.FAILED, error=self._missing(), model=self.model)
        refusal = None if self.trusts else self.refusal(request)
        if refusal is not None:
            return Reply(Ended.FAILED, error=refusal, model=self.model)
        start = self._start(request)
        reply = await self._once(request, start, beat)
        if reply.ended is Ended.FAILED and not reply.usage.tokens:
            if start.resumes and re.search(self.unknown_session, reply.error):
                fresh = replace(self._fresh(request), carried=start.carried)
                return await self._once(request, fresh, beat)
            if not start.resumes and re.search(self.taken_session, reply.error):
                fresh = replace(start, session=str(uuid.uuid4()))
                return await self._once(request, fresh, beat)
        return reply

    @override
    def recover(self, request: Request) -> Reply | None:
        """A stream that ends with its result is complete, whoever ended the process."""
        note = start_of(request.spool)
        if note is None:
            return None
        transcript = self.read(output(request.spool).encode().split(b"\n"))
        ended = answered(request.spool)
        if ended is None:
            if not isinstance(transcript.result, Finished):
                return None
            ended = Exit(0, None, Reason.EXITED)
        reply = self.finish(request, note, ended, transcript)
        return reply if reply.ended in (Ended.DONE, Ended.FAILED, Ended.TIMED_OUT) else None

    @override
    def version(self) -> str | None:
        program = self._where()
        if program is None:
            return None
        root = self.settings.root
        real = Path(program).resolve()
        theirs = [Path(os.path.realpath(place)) for place in self.state(*self._at())]
        if any(real.is_relative_to(place) for place in (*theirs, *([root.resolve()] if root else []))):
            return program  # asking for a version runs it, and what is the repository's is not run to look at
        try:
            done = subprocess.run(
                [program, *self._program()[1:], "--version"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_VERSION_S,
                cwd="/",
                env=clean_env((), self.settings.env),
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = _VERSION.search(done.stdout.decode(errors="replace"))
        return found[0] if found and done.returncode == 0 else None

    # -- one process ------------------------------------------------------------------------

    async def _once(self, request: Request, start: Start, beat: Callable[[Beat], None]) -> Reply:
        keep_start(request.spool, start)
        if start.session:
            beat(Beat(vendor_session=start.session))
            keep_place(request.home, self.kind, start.session, Place(start.cwd, request.spool))
        argv = (*self._words(request), *self.arguments(request, start))
        places = (self.own_places(), self._shown(request), self.hosts()) if request.box else ()
        child = request.child(argv, self._env(request), request.confined(*places))
        child = replace(child, cwd=start.cwd, err_counts=False)
        ear = _StreamFollower(self, request, start, beat)
        guard = Guard(Path(platformdirs.user_state_dir("rondel")) / "vendors", self.watches())
        left = await asyncio.to_thread(guard.begin)
        try:
            ended = await run(child, on_line=ear.line, on_err=ear.error_line)
        finally:
            paths.remove_folder(request.spool / _TMP)
            changed = guard.end(request.spool / "changed")
        reply = self.finish(request, start, ended, ear.transcript)
        mark_billed(request.spool)
        if changed or left:
            before = f"{left}, since a run that was cut off; " if left else ""
            words = f"{TAMPERED} while {request.action} was at work: {before}{changed}. {TAMPERED_NEXT}"
            return replace(reply, tampered=words)
        return reply

    def read(self, lines: Iterable[bytes]) -> Transcript:
        """What a whole stream adds up to."""
        transcript = Transcript()
        for line in lines:
            said = decode(line)
            for event in () if said is None else self.parse(said):
                transcript.add(event)
        return transcript

    def finish(self, request: Request, start: Start, ended: Exit, transcript: Transcript) -> Reply:
        """The reply: what the stream said, judged by how the process ended."""
        words = printable(tail(request.spool, "err"))
        usage, raw = self.bill(transcript, start.counted)
        reply = self._judge(request, ended, transcript, words)
        if reply.ended is Ended.DONE and not usage.tokens:
            usage = replace(usage, uncounted=1)
        return replace(
            reply,
            error=with_refused(reply.error, ended),
            refused=ended.refused,
            usage=self.with_carried(transcript, usage, start.carried),
            raw_usage=raw,
            vendor_session=transcript.session or start.session,
            model=transcript.model or self.model,
            exit_code=ended.code,
        )

    def _judge(self, request: Request, ended: Exit, transcript: Transcript, words: str) -> Reply:
        now = datetime.now(UTC)
        cut = cut_short(ended, request.clocks, request.spool)
        if cut is not None:
            return self._waits(cut, transcript, now) or _with_reason(cut, transcript)
        result = transcript.result
        if isinstance(result, Failed) or ended.code != 0:
            error, status = (result.error, result.status) if isinstance(result, Failed) else ("", None)
            error = _short(error or words or f"it exited with status {ended.code}")
            until = transcript.until or parked_until(error, status, now)
            return Reply(Ended.PARKED if until else Ended.FAILED, error=error, until=until)
        denied = [*transcript.denied, *self.refused(words)]
        if denied:
            return Reply(Ended.FAILED, text=transcript.answer, error=self._denial(denied))
        if result is None:
            return Reply(Ended.FAILED, error=_short(words) or "it ended without a result, with status 0")
        if not transcript.answer.strip():
            return Reply(Ended.FAILED, error="it said nothing: its answer is empty")
        return Reply(Ended.DONE, text=transcript.answer)

    def _waits(self, cut: Reply, transcript: Transcript, now: datetime) -> Reply | None:
        """One that our clock ended while it waited for its limit to pass is parked."""
        if cut.ended is not Ended.TIMED_OUT or not transcript.retrying:
            return None
        until = transcript.until or parked_until(transcript.retrying, None, now)
        return Reply(Ended.PARKED, error=_short(transcript.retrying), until=until) if until else None

    def _denial(self, denied: Sequence[str]) -> str:
        tools = ", ".join(dict.fromkeys(denied))
        return (
            f"{self.kind} was refused: {tools}. Allow it with agents.{self.name}.options.shell, "
            "or ask for what needs no such tool"
        )

    # -- how it is started ------------------------------------------------------------------

    def _start(self, request: Request) -> Start:
        if request.resume is None:
            return self._fresh(request)
        known = place_of(request.home, self.kind, request.resume)
        carried = self._left_unbilled(known.spool) if known else NO_USAGE
        place = known.cwd if known and self.stays_in_folder else request.cwd
        if place != request.cwd and (request.access is not Access.NONE or not place.is_dir()):
            return replace(self._fresh(request), carried=carried)
        return Start(place, request.resume, resumes=True, counted=request.counted, carried=carried)

    def _fresh(self, request: Request) -> Start:
        if not self.names_sessions:
            return Start(request.cwd)
        seed = f"{request.home.absolute()}\n{request.session}/{request.action}/{request.attempt}"
        return Start(request.cwd, str(uuid.uuid5(_OURS, seed)))

    def _left_unbilled(self, spool: Path) -> Usage:
        """What a run that was cut off had used, as far as its stream says."""
        start = start_of(spool)
        if start is None or is_billed(spool):
            return NO_USAGE
        usage, _ = self.bill(self.read(output(spool).encode().split(b"\n")), start.counted)
        return start.carried + usage

    def _program(self) -> tuple[str, ...]:
        """The CLI's own words: `command` of the settings, a file beside them by its full path.

        Without a `command` it is the program of that name on the PATH, never a file of the repository.
        """
        words = self.settings.command
        return (*pinned_words(words[:1], self.settings.beside)[0], *words[1:]) if words else (self.kind,)

    def _words(self, request: Request) -> tuple[str, ...]:
        """The CLI's own words for this request: what lets it write is not for one that only reads."""
        program, *flags = self._program()
        if request.access is Access.WRITE:
            return (program, *flags)
        kept, drop_next = [program], False
        for flag in flags:
            if not drop_next and flag.partition("=")[0] not in self.unsafe:
                kept.append(flag)
            drop_next = self.unsafe.get(flag, False) and not drop_next
        return tuple(kept)

    def _where(self) -> str | None:
        """The program's full path; None when it is not there."""
        return shutil.which(self._program()[0], path=clean_env((), self.settings.env)["PATH"])

    def said(self, *flags: str) -> bool:
        """Whether the person's own `command` has one of these flags: then it is theirs to decide."""
        return any(word.partition("=")[0] in flags for word in self.settings.command)

    def _env(self, request: Request) -> dict[str, str]:
        given = {**self.environment(request), **self.settings.env, **request.variables}
        if self.litters and not request.box:  # inside the sandbox everybody has a folder of their own
            paths.make_folders(request.spool / _TMP, 0o700)
            given["TMPDIR"] = str((request.spool / _TMP).absolute())
        env = clean_env((*self.credentials, *self.settings.pass_env), given)
        return env if self.trusts else {**dict.fromkeys(self.emptied(request), ""), **env}

    def _missing(self) -> str:
        return (
            f"no program {self._program()[0]!r}: install {self.kind}, "
            f"or say in agents.{self.name}.command where it is"
        )


class _StreamFollower:
    """Follows one process: what it says goes to the transcript, to the live view and to the clocks."""

    def __init__(self, agent: CliAgent, request: Request, start: Start, beat: Callable[[Beat], None]) -> None:
        self.transcript = Transcript(session=start.session or "")
        self._agent = agent
        self._request = request
        self._start = start
        self._beat = beat

    def line(self, line: bytes) -> LineSignal | None:
        """One line of standard output, and what it means for the clocks."""
        said = decode(line)
        if said is not None:
            self._take(self._agent.parse(said))
        if self.transcript.retrying:
            return LineSignal.RETRYING
        if len(self.transcript.turns) > self._request.clocks.turns_max:
            return LineSignal.TURNS
        return LineSignal.RESULT if isinstance(self.transcript.result, Finished) else None

    def error_line(self, line: bytes) -> None:
        """One line of standard error."""
        self._take(self._agent.parse_error(line.decode(errors="replace")))

    def _take(self, events: Iterable[Event]) -> None:
        known, heard = self.transcript.session, list(events)
        for event in heard:
            self.transcript.add(event)
        if self.transcript.session != known:
            place = Place(self._start.cwd, self._request.spool)
            keep_place(self._request.home, self._agent.kind, self.transcript.session, place)
        if heard:
            self._beat(_beat(self.transcript))


def _options(settings: AgentSettings) -> tuple[tuple[str, ...], bool]:
    """`shell`: the commands an editing agent may run, as patterns. `trust`: the repository's own may run."""
    where, options = f"agents.{settings.name}.options", settings.options
    unknown = sorted(set(options) - {"shell", "trust"})
    if unknown:
        raise ConfigError(f"{where}.{unknown[0]}: no such option; there are: shell, trust")
    shell, trust = options.get("shell", ()), options.get("trust", False)
    if not isinstance(shell, list | tuple) or not all(isinstance(p, str) and p.strip() for p in shell):
        raise ConfigError(f'{where}.shell: {shell!r} is no list of commands, such as ["git *", "pytest *"]')
    if not isinstance(trust, bool):
        raise ConfigError(f"{where}.trust: {trust!r} is neither true nor false")
    return tuple(shell), trust


def _beat(transcript: Transcript) -> Beat:
    lines = printable(transcript.last).strip().splitlines()
    return Beat(
        tokens=transcript.tokens,
        text=lines[-1][:_BEAT_MAX] if lines else "",
        vendor_session=transcript.session or None,
        retrying=bool(transcript.retrying),
    )


def _with_reason(cut: Reply, transcript: Transcript) -> Reply:
    """What it was waiting for belongs to the error."""
    if not transcript.retrying:
        return cut
    return replace(cut, error=f"{cut.error}; it was trying again: {_short(transcript.retrying)}")


def _short(text: str) -> str:
    text = printable(text[: 2 * _ERROR_MAX]).strip()
    return text if len(text) <= _ERROR_MAX else f"{text[:_ERROR_MAX]} …"
