"""The `[agents.x]` table that makes a vendor's real CLI talk to the scripted model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

KEY = "sk-test"
MODELS = {
    "claude": "claude-opus-5-5",
    "codex": "gpt-5.5",
    "gemini": "gemini-2.5-flash",
    "opencode": "fake/fake-model",
}

GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "maxAttempts": 3},
}


def vendor_config(kind: str, url: str, home: Path, command: Sequence[str] = ()) -> dict[str, Any]:
    """The table: the CLI (`command`, else `kind` on the PATH), the scripted model, a HOME of its own."""
    home.mkdir(parents=True, exist_ok=True)
    program = list(command) or [kind]
    (home / "tmp").mkdir(exist_ok=True)
    env = {"HOME": str(home), "TMPDIR": str(home / "tmp")}  # codex wants no home in the temporary folder
    if kind == "claude":
        env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}
    elif kind == "codex":
        provider = f'{{name="fake",base_url="{url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}}'
        program += ["-c", 'model_provider="fake"', "-c", f"model_providers.fake={provider}"]
        env |= {"CODEX_HOME": str(home / ".codex"), "OPENAI_API_KEY": KEY}
        (home / ".codex").mkdir(exist_ok=True)
    elif kind == "gemini":
        env |= {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY}
        (home / ".gemini").mkdir(exist_ok=True)
        (home / ".gemini/settings.json").write_text(json.dumps(GEMINI_SETTINGS))
    elif kind == "opencode":
        env["OPENCODE_CONFIG_CONTENT"] = json.dumps(_opencode(url))
    return {"kind": kind, "command": program, "model": MODELS[kind], "env": env}


def _opencode(url: str) -> Mapping[str, Any]:
    model = {
        "name": "Fake",
        "limit": {"context": 100000, "output": 8000},
        "cost": {"input": 3, "output": 15},
    }
    provider = {
        "npm": "@ai-sdk/anthropic",
        "name": "Fake",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"fake-model": model},
    }
    return {"share": "disabled", "provider": {"fake": provider}}


def toml_tables(agents: Mapping[str, Mapping[str, Any]]) -> str:
    """The tables as a piece of rondel.toml. JSON strings and lists are TOML ones."""
    lines = []
    for name, table in agents.items():
        lines.append(f"[agents.{name}]")
        for key, value in table.items():
            if isinstance(value, Mapping):
                pairs = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items())
                lines.append(f"{key} = {{ {pairs} }}")
            else:
                lines.append(f"{key} = {json.dumps(value)}")
        lines.append("")
    return "\n".join(lines)
