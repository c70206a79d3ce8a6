"""Claude Code: `claude -p` with a JSON stream.

The person's own settings and login are used; the repository's hooks, settings, commands
and MCP servers are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from rondel.agents.base import Request
from rondel.agents.vendors import stream
from rondel.agents.vendors.base import CliAgent
from rondel.agents.vendors.starts import Start
from rondel.agents.vendors.stream import (
    Event,
    Raw,
    Transcript,
    at,
    count,
    from_epoch,
    items,
    money,
    table,
    tool_line,
    word,
)
from rondel.agents.vendors.watched import Watched
from rondel.model.actions import Access
from rondel.model.outcomes import Usage

_READ = ("Read", "Grep", "Glob")
_EDIT = (*_READ, "Edit", "Write", "NotebookEdit", "TodoWrite")
_RETRIES = 4
_BEHAVES = (
    "settings.json",
    "settings.local.json",
    "remote-settings.json",
    "CLAUDE.md",
    "commands",
    "agents",
    "hooks",
    "plugins/config.json",
    "plugins/installed_plugins.json",
    "plugins/known_marketplaces.json",
    "plugins/marketplaces",
    "plugins/cache",
    "skills",
    "rules",
    "output-styles",
    "workflows",
    "scripts",
    "local",
    "jobs",
    "daemon",
    "daemon.json",
    "loop.md",
)
_LISTS = (
    *("env", "hooks", "permissions", "apiKeyHelper", "primaryApiKey", "customApiKeyResponses", "statusLine"),
    *("mcpServers", "*McpServers", "*McpjsonServers", "enableAll*", "allowedTools", "*Accepted", "*Approved"),
    *("remoteControlAtStartup",),
    *("projects.*.env", "projects.*.hooks", "projects.*.permissions", "projects.*.allowedTools"),
    *(
        "projects.*.mcpServers",
        "projects.*.*McpServers",
        "projects.*.*McpjsonServers",
        "projects.*.enableAll*",
    ),
    *("projects.*.*Accepted", "projects.*.*Approved", "projects.*.mcpContextUris"),
)
_PER_MODEL = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


class ClaudeAgent(CliAgent):
    """The `claude` command."""

    kind = "claude"
    credentials = (
        "ANTHROPIC_*",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
        "CLAUDE_CONFIG_DIR",
    )
    names_sessions = True
    unsafe: ClassVar[Mapping[str, bool]] = {
        "--dangerously-skip-permissions": False,
        "--permission-mode": True,
        "--tools": True,
    }
    unknown_session = r"No conversation found"
    taken_session = r"Session ID .* is already in use"

    @override
    def arguments(self, request: Request, start: Start) -> list[str]:
        words = ["-p", "--output-format", "stream-json", "--verbose"]
        if not self.trusts:
            words += ["--setting-sources", "user", "--strict-mcp-config"]
        if start.session:
            words += ["--resume" if start.resumes else "--session-id", start.session]
        if self.model:
            words += ["--model", self.model]
        return words + self._permissions(request.access)

    def _permissions(self, access: Access) -> list[str]:
        """Only tools that need no question: one that is refused fails the whole answer."""
        if access is not Access.WRITE:
            return ["--tools", ",".join(_READ)]
        if self.said("--dangerously-skip-permissions", "--permission-mode"):
            return []
        if self.said("--allowedTools", "--allowed-tools", "--tools"):
            return ["--permission-mode", "acceptEdits"]
        words = ["--permission-mode", "acceptEdits", "--tools", ",".join(_EDIT)]
        if self.shell:
            rules = ["Bash" if "*" in self.shell else "", *(f"Bash({p})" for p in self.shell if p != "*")]
            words[-1] += ",Bash"
            words += ["--allowedTools", ",".join(filter(None, rules))]
        return words

    @override
    def environment(self, request: Request) -> dict[str, str]:
        """The CLI gives up before our clock does, so that its own words arrive."""
        patience_ms = int(request.clocks.idle_s * 1000 * 0.8)
        return {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(_RETRIES),
            "API_TIMEOUT_MS": str(max(1000, patience_ms)),
        }

    @override
    def state(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        if given := env.get("CLAUDE_CONFIG_DIR"):
            return [Path(given)]
        return [home / ".claude", home / ".claude.json"]

    @override
    def watched(self, env: Mapping[str, str], home: Path) -> Watched:
        given = env.get("CLAUDE_CONFIG_DIR")
        folder = Path(given) if given else home / ".claude"
        document = (folder if given else home) / ".claude.json"
        return replace(
            Watched.of(self.kind, folder, _BEHAVES, home),
            keys={document: _LISTS},
            # Scripts that are run before each command of the session that they name.
            installs={folder / "session-env": ()},
            live=(folder / "shell-snapshots",),
        )

    @override
    def parse(self, line: Raw) -> Iterator[Event]:
        match line.get("type"):
            case "system":
                yield from _system(line)
            case "assistant":
                yield from _assistant(line)
            case "rate_limit_event":
                resets = money(at(line, "rate_limit_info", "resetsAt"))
                until = from_epoch(resets) if resets else None
                if at(line, "rate_limit_info", "status") == "rejected" and until:
                    yield stream.Limited(until)
            case "result":
                yield from _result(line)

    @override
    def bill(self, transcript: Transcript, counted: Raw) -> tuple[Usage, Raw]:
        """`modelUsage` and the cost count over the whole session."""
        if not transcript.spent:
            known = transcript.turns.values()
            return Usage(
                sum(turn.input_tokens for turn in known),
                sum(turn.output_tokens for turn in known),
                sum(turn.cached_tokens for turn in known),
            ), counted
        raw = transcript.spent[-1]
        now, before = _total(raw), _total(counted)
        tokens_in, tokens_out, cached, created = (max(0, a - b) for a, b in zip(now, before, strict=True))
        usd = money(raw.get("total_cost_usd"))
        if usd is not None:
            usd = max(0.0, usd - (money(counted.get("total_cost_usd")) or 0.0))
        return Usage(tokens_in + created, tokens_out, cached, usd), raw

    @override
    def with_carried(self, transcript: Transcript, usage: Usage, carried: Usage) -> Usage:
        """A run that was ended gently is in the account already, a killed one is not."""
        if not carried.tokens or not transcript.spent:
            return usage + carried
        own = transcript.spent[-1].get("usage")
        tokens_in = count(at(own, "input_tokens")) + count(at(own, "cache_creation_input_tokens"))
        return Usage(
            max(usage.input_tokens, tokens_in + carried.input_tokens),
            max(usage.output_tokens, count(at(own, "output_tokens")) + carried.output_tokens),
            max(usage.cached_tokens, count(at(own, "cache_read_input_tokens")) + carried.cached_tokens),
            usage.usd,
        )


def _total(raw: Raw) -> tuple[int, ...]:
    models = [table(model) for model in table(raw.get("modelUsage")).values()]
    return tuple(sum(count(model.get(name)) for model in models) for name in _PER_MODEL)


def _system(line: Raw) -> Iterator[Event]:
    if line.get("subtype") == "init":
        yield stream.Named(word(line.get("session_id")), word(line.get("model")))
    elif line.get("subtype") == "api_retry":
        status = line.get("error_status")
        yield stream.Retrying(f"{word(line.get('error')) or 'no answer'} ({status or 'no status'})")


def _assistant(line: Raw) -> Iterator[Event]:
    message = line.get("message")
    usage = at(message, "usage")
    yield stream.Turn(
        word(at(message, "id")),
        count(at(usage, "input_tokens")) + count(at(usage, "cache_creation_input_tokens")),
        count(at(usage, "output_tokens")),
        count(at(usage, "cache_read_input_tokens")),
    )
    for part in items(at(message, "content")):
        if at(part, "type") == "text":
            yield stream.Said(word(at(part, "text")))
        elif at(part, "type") == "tool_use":
            yield stream.Did(_tool(word(at(part, "name")), at(part, "input")))


def _tool(name: str, given: object) -> str:
    return tool_line(name, given, ("file_path", "path", "pattern", "command", "description"))


def _result(line: Raw) -> Iterator[Event]:
    yield stream.Named(word(line.get("session_id")))
    yield stream.Spent({key: line[key] for key in ("modelUsage", "total_cost_usd", "usage") if key in line})
    for denial in items(line.get("permission_denials")):
        yield stream.Denied(_tool(word(at(denial, "tool_name")) or "a tool", at(denial, "tool_input")))
    errors = "; ".join(filter(None, map(word, items(line.get("errors")))))
    subtype = word(line.get("subtype"))
    if line.get("is_error") is not False or subtype != "success":
        status = count(line.get("api_error_status")) or None
        yield stream.Failed(word(line.get("result")) or errors or subtype or "it ended with an error", status)
    else:
        yield stream.Finished(word(line.get("result")))
