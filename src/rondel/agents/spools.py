"""Spools: how the files of one try are written. A link that stands at a name of theirs is never followed."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    """A new file with these bytes, instead of the file or link of that name. Power loss may take it."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def replace(path: Path, data: bytes) -> None:
    """The same in one step: whoever looks sees the old file or the new one."""
    temporary = path.with_name(f".{path.name}.tmp")
    write(temporary, data)
    temporary.replace(path)
