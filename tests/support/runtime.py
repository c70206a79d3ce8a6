"""Where a session's runtime is: in the state folder of the person whose session it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rondel.trust.consents import checkout, repository_id


def state_of(session: Path) -> Path:
    """The state folder that belongs to a session: of the home beside its repository, or of this process."""
    own = next((p / "home" for p in session.parents if (p / "home").is_dir()), None)
    if own is not None and (own / ".local/state/rondel").is_dir():
        return own / ".local/state"
    return Path(os.environ["XDG_STATE_HOME"])


def run_of(session: Path, state: Path | None = None) -> Path:
    """The runtime of the session in this folder; a path where nothing is while it has none."""
    root = next((p for p in session.parents if (p / ".git").exists()), session)
    home = (state or state_of(session)) / "rondel/repos"
    for record in home.glob(f"{repository_id(root) or '-'}/sessions/*/{checkout(root)}/session.json"):
        if root / json.loads(record.read_text())["folder"] == session:
            return record.parent / ".rondel"
    return home / "no such session/.rondel"
