"""The environment of a child: what is on the list, what the person named, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

_PASSED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "[Hh][Tt][Tt][Pp]_[Pp][Rr][Oo][Xx][Yy]",
    "[Hh][Tt][Tt][Pp][Ss]_[Pp][Rr][Oo][Xx][Yy]",
    "[Nn][Oo]_[Pp][Rr][Oo][Xx][Yy]",
)
_FIXED = {  # nobody sits at a terminal: no colours, no pager, no question
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
_PATH = "/usr/local/bin:/usr/bin:/bin"


def clean_env(pass_env: Iterable[str] = (), env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a child: a short list from ours, `pass_env` by name or pattern, then `env`.

    Keys, tokens and the marks of a coding agent that Rondel itself was started from
    (`CLAUDECODE` and its like) are not on the list.
    """
    patterns = (*_PASSED, *pass_env)
    passed = {
        name: value for name, value in os.environ.items() if any(fnmatchcase(name, p) for p in patterns)
    }
    named = {name: os.environ[name] for name in pass_env if name in os.environ}
    return {"PATH": _PATH, **passed, **_FIXED, **named, **(env or {})}
