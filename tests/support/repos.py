"""Scratch repositories: git without anybody's settings, and a first commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

GIT_ENV = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@localhost",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@localhost",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


def printed_by_git(folder: Path, *args: str, **more_env: str) -> str:
    # Git replaces the file that it writes: as root, `config --global` would put one in place of /dev/null.
    assert not {"--global", "--system"} & {*args}, "write the file that GIT_CONFIG_GLOBAL names instead"
    env = {**os.environ, **GIT_ENV, **more_env}
    done = subprocess.run(["git", *args], cwd=folder, env=env, check=True, capture_output=True, text=True)
    return done.stdout


def git(folder: Path, *args: str, **more_env: str) -> str:
    return printed_by_git(folder, *args, **more_env).strip()


def commit(folder: Path, files: Mapping[str, str | bytes | None], message: str = "change") -> str:
    """Commit everything after writing these files; None removes one. The commit's id."""
    for name, data in files.items():
        path = folder / name
        if data is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path, files: Mapping[str, str | bytes | None] | None = None) -> Path:
    """A repository with one commit on main."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, {"README.md": "scratch\n", **(files or {})}, "start")
    return folder
