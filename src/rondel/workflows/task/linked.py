"""The working copy of a command: its session's folder is at the usual path."""

from __future__ import annotations

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


def with_session(script: str, session_folder: str) -> tuple[str, ...]:
    """A script for bash as an argument list that runs it with its session's folder in place."""
    return ("bash", "-c", _LINKED, "bash", session_folder, script)
