"""Codex: `codex exec --json`, in its own sandbox.

The person's own configuration and login are used. The project is marked as not trusted, so
that its `.codex` folder (settings, hooks, MCP servers) is left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from rondel import paths
from rondel.agents.base import Request
from rondel.agents.vendors import stream
from rondel.agents.vendors.base import CliAgent
from rondel.agents.vendors.starts import Start, checkout
from rondel.agents.vendors.stream import Event, Raw, Transcript, at, count, items, word
from rondel.agents.vendors.watched import Watched
from rondel.model.actions import Access
from rondel.model.outcomes import NO_USAGE, Usage

_QUIET = (
    ("-c", "analytics.enabled=false"),
    ("-c", "check_for_update_on_startup=false"),
    ("-c", "shell_environment_policy.ignore_default_excludes=false"),  # keys do not reach its commands
    ("--disable", "plugins"),
    ("--disable", "apps"),
)
_RETRIES = 3
_BEHAVES = (
    "config.toml",
    "*.config.toml",
    ".env",
    "hooks.json",
    "hooks",
    "AGENTS.md",
    "AGENTS.override.md",
    "prompts",
    "rules",
    "skills",
    "agents",
    "plugins",
    "packages/standalone",
)
_OWN_SKILLS = "skills/.system"  # which it installs anew where the mark is not the one that it knows
_MARK = ".codex-system-skills.marker"
GIT_FILE_MAX = 10_000
_PATCH_REFUSED = re.compile(r"patch rejected: ([^;\n]+)")


class CodexAgent(CliAgent):
    """The `codex` command."""

    kind = "codex"
    credentials = ("OPENAI_*", "CODEX_HOME", "CODEX_API_KEY", "AZURE_OPENAI_*")
    unknown_session = r"no rollout found"
    unsafe: ClassVar[Mapping[str, bool]] = {
        "--dangerously-bypass-approvals-and-sandbox": False,
        "-s": True,
        "--sandbox": True,
    }

    @override
    def arguments(self, request: Request, start: Start) -> list[str]:
        """Overrides stand before `exec`: after it they would displace a person's own."""
        words = [part for pair in _QUIET for part in pair]
        if not self.trusts:
            words += ["-c", f"projects={_untrusted(start.cwd)}"]
        for key, value in self._patience(request):
            words += ["-c", f"{key}={value}"]
        words += ["exec", "--json", "--skip-git-repo-check", "--color", "never"]
        if request.box:  # its own cannot be made inside ours, which lets it read less
            words += ["-s", "danger-full-access"]
        elif request.access is not Access.WRITE:
            words += ["-s", "read-only"]
        elif not self.said(*self.unsafe):
            words += ["-s", "workspace-write"]
        if self.model:
            words += ["-m", self.model]
        if start.resumes and start.session:
            words += ["resume", start.session]
        return [*words, "-"]

    def _patience(self, request: Request) -> Iterator[tuple[str, str]]:
        """Clocks of the CLI below ours; only a provider of the person's own can be told them."""
        named = [re.fullmatch(r"model_provider=\W*([\w-]+)\W*", word) for word in self.settings.command]
        for provider in (found[1] for found in named if found):
            where = f"model_providers.{provider}"
            yield f"{where}.request_max_retries", str(_RETRIES)
            yield f"{where}.stream_max_retries", str(_RETRIES)
            idle_ms = int(request.clocks.idle_s * 1000 * 0.8)
            yield f"{where}.stream_idle_timeout_ms", str(max(1000, idle_ms))

    @override
    def environment(self, request: Request) -> dict[str, str]:
        return {}

    @override
    def state(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        return [Path(env.get("CODEX_HOME") or home / ".codex")]

    @override
    def watched(self, env: Mapping[str, str], home: Path) -> Watched:
        folder = Path(env.get("CODEX_HOME") or home / ".codex")
        skills = folder / _OWN_SKILLS
        return replace(
            Watched.of(self.kind, folder, _BEHAVES, home),
            installs={skills: (skills / _MARK,)},
            live=(folder / "tmp/arg0*", folder / "shell_snapshots"),
        )

    @override
    def refused(self, words: str) -> Sequence[str]:
        """A refused patch is in no event."""
        return [f"apply_patch ({why.strip()})" for why in _PATCH_REFUSED.findall(words)]

    @override
    def parse(self, line: Raw) -> Iterator[Event]:
        match line.get("type"):
            case "thread.started":
                yield stream.Named(word(line.get("thread_id")))
            case "item.started" | "item.completed":
                yield from _item(line.get("item"), done=line["type"] == "item.completed")
            case "error":
                yield stream.Retrying(word(line.get("message")))
            case "turn.failed":
                yield stream.Failed(word(at(line, "error", "message")) or "the turn failed")
            case "turn.completed":
                yield stream.Spent({"usage": line.get("usage")})
                yield stream.Finished()

    @override
    def bill(self, transcript: Transcript, counted: Raw) -> tuple[Usage, Raw]:
        """The account is of the whole thread; there is no price."""
        if not transcript.spent:
            return NO_USAGE, counted
        raw = transcript.spent[-1]
        now, before = _total(raw), _total(counted)
        tokens_in, tokens_out, cached = (max(0, a - b) for a, b in zip(now, before, strict=True))
        return Usage(max(0, tokens_in - cached), tokens_out, cached), raw


def _total(raw: Raw) -> tuple[int, ...]:
    return tuple(
        count(at(raw, "usage", name)) for name in ("input_tokens", "output_tokens", "cached_input_tokens")
    )


def _item(item: object, *, done: bool) -> Iterator[Event]:
    kind = word(at(item, "type"))
    if kind == "agent_message":
        if done:
            yield stream.Said(word(at(item, "text")))
    elif kind == "command_execution":
        yield stream.Did(word(at(item, "command")))
    elif kind == "file_change":
        paths = [word(at(change, "path")) for change in items(at(item, "changes"))]
        yield stream.Did(f"edit {', '.join(paths)}")
    elif kind in ("mcp_tool_call", "web_search", "todo_list", "collab_tool_call"):
        yield stream.Did(f"{kind} {word(at(item, 'tool')) or word(at(item, 'query'))}".strip())
    if done and kind not in ("error", "reasoning"):
        yield stream.Turn(word(at(item, "id")))


def _untrusted(cwd: Path) -> str:
    """The folder, its checkout and the repository that is a worktree of, as projects nobody trusts."""
    root = checkout(cwd.absolute())[-1]
    places = {str(place) for folder in (cwd, root) for place in (folder.absolute(), folder.resolve())}
    try:
        link = re.match(
            r"gitdir: (.+)/\.git/worktrees/", paths.read_elsewhere(root / ".git", GIT_FILE_MAX).decode()
        )
    except (OSError, ValueError):
        link = None
    if link:
        places.add(link[1])
    tables = ",".join(f'{json.dumps(place)}={{trust_level="untrusted"}}' for place in sorted(places))
    return f"{{{tables}}}"
