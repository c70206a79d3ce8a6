"""What a coding agent is told of loops when it starts. It imports next to nothing, to be fast."""

from __future__ import annotations

import os

from rondel.model.texts import one_line


def session_start(cwd: str) -> str:
    """One line for each loop in the repository around a folder."""
    root = os.path.realpath(cwd)
    while not os.path.exists(os.path.join(root, ".git")):
        if root == os.path.dirname(root):
            return ""
        root = os.path.dirname(root)
    folder = os.path.join(root, "loops")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return "\n".join(
        f"- loop {one_line(name)}: `rondel status loop:{one_line(name)}` says where it stands"
        for name in names
        if os.path.isfile(os.path.join(folder, name, "goal.md"))
    )
