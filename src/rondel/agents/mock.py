"""The `mock` agent: a scripted agent through the same contract; it needs no tokens.

Its script is a JSON or TOML file with `rules`. The first rule that fits a request answers it:

    role, action      patterns like review.reviewer.*
    prompt            a regular expression found in the prompt; its groups can be used in the reply
    attempt           a number
    times             how often the rule applies, in this process
    reply             the text; {role}, {action}, {session}, {attempt}, {1} and {name} are filled in
    reply_file        the text is in this file, beside the script
    files             what to write in the workspace: a path and its text, or false to delete it
    seconds           how long to think
    fail              an error instead of a reply
    park_s            a usage limit instead of a reply, that ends in so many seconds
    usage             {"input_tokens": 10, "output_tokens": 20, "usd": 0.01}

Tests may give a callable instead of a file.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from typing_extensions import override

from rondel import paths
from rondel.agents.base import Agent, AgentSettings, Beat, Reply, Request, reply_json, reply_of
from rondel.errors import ConfigError, UnsafePath
from rondel.model import jsons
from rondel.model.names import inside
from rondel.model.outcomes import NO_USAGE, Ended, Usage

Script = Callable[[Request], Reply | str | Awaitable[Reply | str]]
KEPT = "mock.json"


@dataclass
class Rule:
    """One rule of a script."""

    role: str = "*"
    action: str = "*"
    prompt: re.Pattern[str] | None = None
    attempt: int | None = None
    times: int | None = None
    reply: str = ""
    reply_file: Path | None = None
    files: Mapping[str, str | None] = field(default_factory=dict)
    seconds: float = 0.0
    fail: str | None = None
    park_s: float | None = None
    usage: Usage = NO_USAGE
    applied: int = 0

    def groups(self, request: Request) -> dict[str, str] | None:
        """What the reply may use, when the rule fits; else None."""
        if self.times is not None and self.applied >= self.times:
            return None
        if self.attempt not in (None, request.attempt):
            return None
        if not (fnmatchcase(request.role, self.role) and fnmatchcase(request.action, self.action)):
            return None
        words = {"role": request.role, "action": request.action, "session": request.session}
        words["attempt"] = str(request.attempt)
        if self.prompt is None:
            return words
        found = self.prompt.search(request.prompt)
        if found is None:
            return None
        numbered = {str(n): group or "" for n, group in enumerate((found[0], *found.groups()))}
        return words | numbered | {name: group or "" for name, group in found.groupdict().items()}


class MockAgent(Agent):
    """An agent that says what its script says."""

    kind = "mock"
    in_process = True

    def __init__(self, settings: AgentSettings, script: Script | None = None) -> None:
        self.name = settings.name
        self.model = settings.model or "mock"
        self._script = script
        self._rules: list[Rule] | None = None
        if script is None and settings.script:
            self._rules = load_rules((settings.root or Path()) / settings.script, settings.name)

    @override
    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        beat(Beat(text=f"mock: {request.action}"))
        if self._script is not None:
            answer = self._script(request)
            said = await answer if inspect.isawaitable(answer) else answer
            reply = Reply(Ended.DONE, text=said, model=self.model) if isinstance(said, str) else said
        else:
            reply = await self._follow(request)
        if reply.ended is not Ended.WAITING:
            _keep(request.spool, reply)
        return reply

    async def _follow(self, request: Request) -> Reply:
        if self._rules is None:
            text = f"A mock answer of {request.role} for {request.action}."
            return Reply(Ended.DONE, text=text, model=self.model)
        for rule in self._rules:
            words = rule.groups(request)
            if words is not None:
                rule.applied += 1
                return await self._apply(rule, words, request)
        where = f"role {request.role}, action {request.action}, attempt {request.attempt}"
        return Reply(Ended.FAILED, error=f"no rule of the script fits: {where}", model=self.model)

    async def _apply(self, rule: Rule, words: Mapping[str, str], request: Request) -> Reply:
        limit_s = min(request.clocks.wall_s, request.clocks.idle_s)
        await asyncio.sleep(min(rule.seconds, limit_s))
        if rule.seconds > limit_s:
            return Reply(Ended.TIMED_OUT, error=f"no output for {limit_s:g} s; ended", model=self.model)
        raw = {"input_tokens": rule.usage.input_tokens, "output_tokens": rule.usage.output_tokens}
        if rule.park_s is not None:
            until = datetime.now(UTC) + timedelta(seconds=rule.park_s)
            return Reply(Ended.PARKED, error="usage limit", until=until, usage=rule.usage, model=self.model)
        if rule.fail is not None:
            return Reply(Ended.FAILED, error=_fill(rule.fail, words), usage=rule.usage, model=self.model)
        for path, content in rule.files.items():
            _edit(request.cwd, _fill(path, words), None if content is None else _fill(content, words))
        text = rule.reply
        if rule.reply_file is not None:
            text = await asyncio.to_thread(rule.reply_file.read_text, encoding="utf-8")
        return Reply(
            Ended.DONE,
            text=_fill(text, words),
            usage=rule.usage,
            raw_usage=raw,
            model=self.model,
            exit_code=0,
        )

    @override
    def recover(self, request: Request) -> Reply | None:
        return _kept(request.spool)

    @override
    def version(self) -> str | None:
        return "scripted"


def _fill(text: str, words: Mapping[str, str]) -> str:
    """The text with its known words filled in; every other brace stays, as in JSON."""
    return re.sub(r"\{(\w+)\}", lambda m: words.get(m[1], m[0]), text)


def _edit(folder: Path, name: str, content: str | None) -> None:
    path = folder / inside(name, "a file of the mock script")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UnsafePath(f"a file of the mock script, {name!r}, leads out of the workspace")
    if content is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def _keep(spool: Path, reply: Reply) -> None:
    """Leave the reply whole in the spool, or not at all."""
    paths.make_folders(spool)
    paths.replace(spool / KEPT, json.dumps(reply_json(reply)).encode())


def _kept(spool: Path) -> Reply | None:
    try:
        return reply_of(jsons.load(paths.read(spool / KEPT)))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def load_rules(path: Path, agent: str) -> list[Rule]:
    """The rules of a script; ConfigError names the file, the rule and what is wrong with it."""
    where = f"agents.{agent}.script {str(path)!r}"
    try:
        text = path.read_text(encoding="utf-8")
        script = tomllib.loads(text) if path.suffix == ".toml" else jsons.load(text)
    except OSError as e:
        raise ConfigError(f"{where} cannot be read: {e.strerror}") from e
    except ValueError as e:
        raise ConfigError(f"{where} does not parse: {e}") from e
    rules = script.get("rules") if isinstance(script, dict) else script
    if not isinstance(rules, list):
        raise ConfigError(f"{where} has no list 'rules'")
    return [_rule(given, path.parent, f"{where}, rule {n}") for n, given in enumerate(rules, 1)]


_KEYS: Mapping[str, tuple[type, ...]] = {
    "role": (str,),
    "action": (str,),
    "prompt": (str,),
    "attempt": (int,),
    "times": (int,),
    "reply": (str,),
    "reply_file": (str,),
    "files": (dict,),
    "seconds": (int, float),
    "fail": (str,),
    "park_s": (int, float),
    "usage": (dict,),
}


def _rule(given: object, folder: Path, where: str) -> Rule:
    if not isinstance(given, dict):
        raise ConfigError(f"{where} is not a table")
    for key, value in given.items():
        if key not in _KEYS:
            raise ConfigError(f"{where}: {key} is not a setting; allowed here: {', '.join(sorted(_KEYS))}")
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):
            raise ConfigError(f"{where}: {key} = {value!r} must be {_KEYS[key][-1].__name__}")
    made = dict(given)
    try:
        if "prompt" in made:
            made["prompt"] = re.compile(made["prompt"], re.MULTILINE)
        if "usage" in made:
            made["usage"] = Usage(**made["usage"])
    except (re.error, TypeError) as e:
        raise ConfigError(f"{where}: {e}") from e
    if "reply_file" in made:
        made["reply_file"] = folder / made["reply_file"]
    if "files" in made:
        made["files"] = {str(name): _content(text, where) for name, text in made["files"].items()}
    return Rule(**made)


def _content(text: object, where: str) -> str | None:
    if text is None or text is False:
        return None
    if not isinstance(text, str):
        raise ConfigError(f"{where}: files holds {text!r}; a text writes a file, false deletes it")
    return text
