"""Gemini CLI: a JSON stream, approval modes and policies.

`--skip-trust` is decided after the settings are read, so that the repository's own
`.gemini/settings.json` (hooks, MCP servers, discovery commands) stays out. Its `.env` files
would be read all the same: what they name is set to nothing beforehand.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from rondel import paths
from rondel.agents.base import Request
from rondel.agents.vendors import stream
from rondel.agents.vendors.base import CliAgent
from rondel.agents.vendors.starts import Start, checkout
from rondel.agents.vendors.stream import Event, Raw, Transcript, at, count, tool_line, word
from rondel.agents.vendors.watched import Watched
from rondel.errors import RondelError
from rondel.model.actions import Access
from rondel.model.outcomes import NO_USAGE, Usage

ENV_MAX = 10_000_000
_ENV_LINE = re.compile(r"^[^\S\n]*(?:export\s+)?([\w.-]+)\s*[=:]", re.MULTILINE)
_REFUSED = ("policy_violation", "tool_execution_denied")
_BEHAVES = (
    "settings.json",
    ".env",
    "GEMINI.md",
    "extensions",
    "commands",
    "policies",
    "hooks",
    "skills",
    "agents",
    "memory.md",
    "trustedFolders.json",
    "trusted_hooks.json",
    "mcp-server-enablement.json",
    "antigravity/mcp_config.json",
)
POLICY = "policy.toml"
_SHOWN = ("file_path", "command", "pattern", "dir_path", "query")  # of what a tool is given
_EDIT_OR_RUN = ("write_file", "replace", "run_shell_command")


class GeminiAgent(CliAgent):
    """The `gemini` command."""

    kind = "gemini"
    credentials = ("GEMINI_API_KEY", "GOOGLE_*", "GEMINI_CLI_HOME", "GEMINI_CLI_USE_COMPUTE_ADC")
    names_sessions = True
    stays_in_folder = True
    unsafe: ClassVar[Mapping[str, bool]] = {"--yolo": False, "-y": False, "--approval-mode": True}
    unknown_session = r"Error resuming session"
    taken_session = r"Session ID .* already exists"

    @override
    def arguments(self, request: Request, start: Start) -> list[str]:
        words = ["-o", "stream-json", "--skip-trust"]
        if start.session:
            words += ["--resume" if start.resumes else "--session-id", start.session]
        if self.model:
            words += ["-m", self.model]
        return words + self._permissions(request)

    def _permissions(self, request: Request) -> list[str]:
        policy = request.spool / POLICY
        if request.access is not Access.WRITE:
            rules = "".join(_rule(tool, "deny", 900) for tool in _EDIT_OR_RUN)
            paths.write(policy, rules.encode())
            return ["--approval-mode", "default", "--admin-policy", str(policy)]
        if self.said(*self.unsafe):
            return []
        if "*" in self.shell:
            return ["--approval-mode", "yolo"]
        if not self.shell:
            return ["--approval-mode", "auto_edit"]
        rules = "".join(_rule("run_shell_command", "allow", 100, p) for p in self.shell)
        paths.write(policy, rules.encode())
        return ["--approval-mode", "auto_edit", "--policy", str(policy)]

    @override
    def handed(self, request: Request) -> tuple[str, ...]:
        policy = request.spool / POLICY
        return (str(policy),) if paths.is_file(policy) else ()

    @override
    def environment(self, request: Request) -> dict[str, str]:
        trust = {"GEMINI_CLI_TRUST_WORKSPACE": "true"} if self.trusts else {}
        return {"GEMINI_CLI_NO_RELAUNCH": "true", **trust}

    @override
    def state(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        return [Path(env.get("GEMINI_CLI_HOME") or home) / ".gemini"]

    @override
    def watched(self, env: Mapping[str, str], home: Path) -> Watched:
        folder = Path(env.get("GEMINI_CLI_HOME") or home) / ".gemini"
        return replace(Watched.of(self.kind, folder, _BEHAVES, home), installs={folder / "tmp/bin": ()})

    @override
    def emptied(self, request: Request) -> Iterator[str]:
        """What the checkout's own `.env` files would set."""
        yield "GEMINI_CLI_TRUST_WORKSPACE"
        for place in (folder / name for folder in checkout(request.cwd) for name in (".gemini/.env", ".env")):
            try:
                text = paths.read_elsewhere(place, ENV_MAX).decode(errors="replace")
            except OSError as e:
                if e.errno == errno.EOVERFLOW:  # it is read by the CLI all the same
                    raise RondelError(f"cannot read {str(place)!r}: {e.strerror}") from e
                continue
            yield from _ENV_LINE.findall(text)

    @override
    def parse(self, line: Raw) -> Iterator[Event]:
        match line.get("type"):
            case "init":
                yield stream.Named(word(line.get("session_id")), word(line.get("model")))
            case "message" if line.get("role") == "assistant":
                yield stream.Said(word(line.get("content")), more=line.get("delta") is True)
            case "tool_use":
                yield stream.Turn(word(line.get("tool_id")))
                yield stream.Did(tool_line(word(line.get("tool_name")), line.get("parameters"), _SHOWN))
            case "tool_result" if at(line, "error", "type") in _REFUSED:
                yield stream.Denied(word(line.get("tool_id")).partition("__")[0] or "a tool")
            case "error" if line.get("severity") == "error":
                yield stream.Failed(word(line.get("message")))
            case "result":
                yield from _result(line)

    @override
    def bill(self, transcript: Transcript, counted: Raw) -> tuple[Usage, Raw]:
        """The account is of this run; there is no price."""
        if not transcript.spent:
            return NO_USAGE, counted
        raw = transcript.spent[-1]
        cached = count(at(raw, "stats", "cached"))
        tokens_in = count(at(raw, "stats", "input_tokens"))
        return Usage(max(0, tokens_in - cached), count(at(raw, "stats", "output_tokens")), cached), raw


def _result(line: Raw) -> Iterator[Event]:
    yield stream.Spent({"stats": line.get("stats")})
    if line.get("status") == "success":
        yield stream.Finished()
    else:
        yield stream.Failed(word(at(line, "error", "message")))


def _rule(tool: str, decision: str, priority: int, pattern: str = "") -> str:
    """One rule of a policy file. JSON strings are TOML ones."""
    prefix = pattern.removesuffix("*").strip()
    only = f"commandPrefix = {json.dumps(prefix)}\n" if prefix else ""
    return f'[[rule]]\ntoolName = "{tool}"\n{only}decision = "{decision}"\npriority = {priority}\n\n'
