"""Versions: `1.0.0 → 1.1.0 → …`, one step for each iteration, the former one kept in `history/`."""

from __future__ import annotations

import re

FIRST = "1.0.0"


def bump(version: str | None) -> str:
    """The next minor version; the first one when there is none that can be read."""
    found = re.fullmatch(r"v?(\d{1,9})\.(\d{1,9})(?:\.\d{1,9})?", version or "")
    return f"{found[1]}.{int(found[2]) + 1}.0" if found else FIRST


def of_iteration(number: int) -> str | None:
    """The version of what every iteration leaves anew; None before the first."""
    return f"1.{number - 1}.0" if number > 0 else None


def archived(path: str, version: str) -> str:
    """Where the former version of a file is kept: `ra/history/requirements-v1.0.0.md`."""
    folder, _, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    label = re.sub(r"[^0-9A-Za-z.-]+", "-", version)[:40] or "unknown"
    return f"{folder}/history/{stem}-v{label}{dot}{ending}"
