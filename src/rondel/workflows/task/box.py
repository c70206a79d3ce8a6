"""The box of a command: its session's folder at the usual path, and a sandbox where one is asked for."""

from __future__ import annotations

SANDBOX = "bwrap"

# $1 is the session's folder in the repository, $2 the command. A working copy has no untracked
# files, and committed ones as they were: the session is linked into it for as long as the command
# runs, unless its path leads out of the working copy.
_LINKED = """\
mkdir -p "${1%/*}"
if [ "$(cd -P "${1%/*}" && pwd)" = "$(pwd -P)/${1%/*}" ]; then
  rm -rf "$1" && ln -sn "$RONDEL_SESSION_DIR" "$1" && made=1
fi
bash -c "$2"
status=$?
if [ -n "${made-}" ]; then
  rm -f "$1"
  git --literal-pathspecs ls-files -z -- "$1" | git checkout-index --force -z --stdin
  rmdir "${1%/*}" 2>/dev/null
fi
exit "$status"
"""

# No network, and writing only in the working copy.
_BOXED = """\
common=$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null || true)
exec bwrap --die-with-parent --unshare-net --unshare-pid --unshare-ipc --new-session \\
  --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --tmpfs /var/tmp \\
  ${common:+--ro-bind "$common" "$common"} --ro-bind "$RONDEL_SESSION_DIR" "$RONDEL_SESSION_DIR" \\
  --bind "$PWD" "$PWD" --chdir "$PWD" bash -c "$3" bash "$1" "$2"
"""


def boxed(script: str, session_folder: str, *, sandboxed: bool) -> tuple[str, ...]:
    """A script for bash as an argument list that runs it in its box."""
    if sandboxed:
        return ("bash", "-c", _BOXED, "bash", session_folder, script, _LINKED)
    return ("bash", "-c", _LINKED, "bash", session_folder, script)
