"""The person behind the tests: they have said yes to the settings that they write themselves."""

from __future__ import annotations

import json
from pathlib import Path

# In the environment of every command. The tests of trust take the first away. Those of the sandbox, of real
# CLIs and of tasks take the second: agents of the others leave notes outside of what they may write.
YES = {"RONDEL_TRUST": "yes", "RONDEL_SANDBOX": "none"}


def opens(config: Path, *folders: Path) -> None:
    """Let what runs inside the sandbox write in folders of the test's: agents and steps leave notes."""
    (config / "rondel").mkdir(parents=True, exist_ok=True)
    (config / "rondel/config.toml").write_text(
        f"[sandbox]\nwrite = {json.dumps([str(folder) for folder in folders])}\n"
    )
