"""Sandbox: a command without a network, that can write in its workspace and nowhere else."""

from __future__ import annotations

PROGRAM = "bwrap"
_BOX = """\
here=$PWD
common=$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null || true)
exec bwrap --die-with-parent --unshare-net --unshare-pid --unshare-ipc --new-session \\
  --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --tmpfs /var/tmp \\
  ${common:+--ro-bind "$common" "$common"} --ro-bind "$RONDEL_SESSION_DIR" "$RONDEL_SESSION_DIR" \\
  --bind "$here" "$here" --chdir "$here" bash -c "$1"
"""


def boxed(script: str) -> tuple[str, ...]:
    """A script for bash as an argument list that runs it inside bubblewrap."""
    return ("bash", "-c", _BOX, "bash", script)
