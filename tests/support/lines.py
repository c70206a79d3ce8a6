"""The lines of a log, as a test sees them."""

from pathlib import Path


def read_lines(path: Path) -> list[str]:
    """The complete lines, without their ends; none when there is no log."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1].decode(errors="replace").split("\n")[:-1]
