"""OpenCode: `opencode run --format json`, the prompt by standard input.

The person's own configuration and login are used; the project's own settings and MCP servers
are not. Plugins of a checkout would run whatever the flags: it is then refused. What a
session may do is one set of permissions; a tool that is denied is not offered to the model.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from typing_extensions import override

from rondel import paths
from rondel.agents.base import AgentSettings, Request
from rondel.agents.vendors import stream
from rondel.agents.vendors.base import CliAgent
from rondel.agents.vendors.starts import Start, checkout
from rondel.agents.vendors.stream import Event, Raw, Transcript, at, count, money, word
from rondel.agents.vendors.watched import DATA, Watched
from rondel.model.actions import Access
from rondel.model.outcomes import Usage
from rondel.sandbox.hosts import PROVIDERS

CONFIG_MAX = 1_000_000
_OWN = (
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_CONTENT",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_AUTH_CONTENT",
    "OPENCODE_API_KEY",
    "XDG_*_HOME",
)
_BEHAVES = (
    "opencode.json",
    "opencode.jsonc",
    "config.json",
    "config",
    "AGENTS.md",
    "agent",
    "agents",
    "command",
    "commands",
    "plugin",
    "plugins",
    "tool",
    "tools",
    "skill",
    "skills",
    "mode",
    "modes",
)
_LOCKS = ("package.json", "package-lock.json", "bun.lock", "bun.lockb")
_KEYS = {  # of the provider that the model names, and of no other
    "anthropic": ("ANTHROPIC_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
_READ = {"read": "allow", "grep": "allow", "glob": "allow", "list": "allow"}
_RULE = re.compile(
    r"rule which prevents|rejected permission|permission.{0,40}(?:denied|rejected)", re.IGNORECASE
)

_MODEL = re.compile(r'"model"\s*:\s*"([\w-]+)/')
_RETRY = re.compile(r'message="stream error".* error\.error="?([^"]+)')


class OpencodeAgent(CliAgent):
    """The `opencode` command."""

    kind = "opencode"
    stays_in_folder = True
    litters = True
    unknown_session = r"Session not found"

    def __init__(self, settings: AgentSettings) -> None:
        super().__init__(settings)
        provider = settings.model.partition("/")[0]
        self.credentials = (*_OWN, *_KEYS.get(provider, ()))

    @override
    def arguments(self, request: Request, start: Start) -> list[str]:
        """A title of ours saves the call that would make one up."""
        words = ["run", "--format", "json", "--title", f"{request.session} {request.action}"]
        words += ["--print-logs", "--log-level", "ERROR"]
        if not self.trusts:
            words.append("--pure")
        if self.model:
            words += ["-m", self.model]
        if start.resumes and start.session:
            words += ["-s", start.session]
        return words

    @override
    def environment(self, request: Request) -> dict[str, str]:
        closed = {} if self.trusts else {"OPENCODE_DISABLE_PROJECT_CONFIG": "1"}
        return {
            **closed,
            "OPENCODE_PERMISSION": json.dumps(self._permissions(request.access)),
            "OPENCODE_DISABLE_CLAUDE_CODE": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_SHARE": "1",
        }

    @override
    def state(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        places = {"DATA": ".local/share", "CONFIG": ".config", "STATE": ".local/state", "CACHE": ".cache"}
        return [Path(env.get(f"XDG_{n}_HOME") or home / p) / "opencode" for n, p in places.items()]

    @override
    def watched(self, env: Mapping[str, str], home: Path) -> Watched:
        data, folder, _, cache = places = tuple(self.state(env, home))
        return Watched(
            tuple(folder / name for name in _BEHAVES),
            logins={data / "auth.json": "type"},
            installs={
                folder / "node_modules": tuple(folder / name for name in _LOCKS),
                data / "bin": (),
                **{cache / name: (cache / "version",) for name in ("bin", "node_modules", "packages")},
            },
            state=places,
            data=tuple(data / name for name in DATA[self.kind]),
            home=home,
        )

    @override
    def vendor_hosts(self, settings: Sequence[str]) -> Sequence[str]:
        """The first word of the model says whom it asks."""
        named = [found[1] for text in settings if (found := _MODEL.search(text))]
        first = [self.model.partition("/")[0]] if self.model else named
        return [host for provider in first for host in PROVIDERS.get(provider, ())]

    @override
    def refusal(self, request: Request) -> str | None:
        """No flag keeps a checkout's own plugins from being run."""
        for folder in checkout(request.cwd):
            plugins = [*folder.glob(".opencode/plugin*/*.[jt]s"), *_with_plugins(folder)]
            if plugins:
                return (
                    f"opencode would run code of the repository: {plugins[0]}. Use another agent here, "
                    f"or allow it with agents.{self.name}.options.trust = true"
                )
        return None

    @override
    def parse_error(self, line: str) -> Iterator[Event]:
        """Its retries are in the log only."""
        found = _RETRY.search(line)
        if found:
            yield stream.Retrying(found[1])

    def _permissions(self, access: Access) -> dict[str, object]:
        """What is not named is denied; of several rules that fit, the last one counts."""
        if access is not Access.WRITE:
            return {"*": "deny", **_READ}
        allowed: dict[str, object] = {"*": "deny", **_READ, "edit": "allow", "todowrite": "allow"}
        if self.shell:
            allowed["bash"] = {"*": "deny", **dict.fromkeys(self.shell, "allow")}
        return allowed

    @override
    def parse(self, line: Raw) -> Iterator[Event]:
        part = line.get("part")
        if session := word(line.get("sessionID")):
            yield stream.Named(session)
        match line.get("type"):
            case "step_start":
                yield stream.Turn(word(at(part, "messageID")))
            case "text":
                yield stream.Said(word(at(part, "text")), more=True)
            case "tool_use":
                yield from _tool(part)
            case "step_finish":
                yield from _step(part)
            case "error":
                yield _error(line.get("error"))

    @override
    def bill(self, transcript: Transcript, counted: Raw) -> tuple[Usage, Raw]:
        """Each step has its own account; they are added up."""
        usage = Usage()
        for step in transcript.spent:
            tokens = step.get("tokens")
            usage += Usage(
                count(at(tokens, "input")) + count(at(tokens, "cache", "write")),
                count(at(tokens, "output")) + count(at(tokens, "reasoning")),
                count(at(tokens, "cache", "read")),
                money(step.get("cost")),
            )
        return usage, {"steps": list(transcript.spent)}


def _with_plugins(folder: Path) -> Iterator[Path]:
    """Configuration files of a folder that name plugins; comments and all, so the word is enough."""
    for name in ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"):
        try:
            has_word = b"plugin" in paths.read_elsewhere(folder / name, CONFIG_MAX)
        except OSError as e:
            has_word = e.errno == errno.EOVERFLOW  # nobody knows what is in it
        if has_word:
            yield folder / name


def _tool(part: object) -> Iterator[Event]:
    name, state = word(at(part, "tool")), at(part, "state")
    title = word(at(state, "title"))
    yield stream.Did(f"{name} {title}".strip())
    if at(state, "status") == "error" and _RULE.search(word(at(state, "error"))):
        yield stream.Denied(name)


def _step(part: object) -> Iterator[Event]:
    tokens = at(part, "tokens")
    yield stream.Turn(word(at(part, "messageID")), count(at(tokens, "input")), count(at(tokens, "output")))
    yield stream.Spent({"tokens": tokens, "cost": at(part, "cost")})
    if at(part, "reason") == "stop":
        yield stream.Finished()


def _error(error: object) -> Event:
    message = word(at(error, "data", "message")) or word(at(error, "name")) or "it ended with an error"
    return stream.Failed(message, count(at(error, "data", "statusCode")) or None)
