"""The review's part of `rondel demo`: a change with real defects, two rounds by checks, what was fixed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from rondel.errors import RondelError
from rondel.project import Project
from rondel.repo.git import Git
from rondel.workflows.review import files
from rondel.workflows.review.commands import print_comparison
from rondel.workflows.review.judge import compare_rounds
from rondel.workflows.review.read import ReviewState
from rondel.workflows.review.request import ReviewOptions

START = {
    "report.py": 'def title(name):\n    """The title of a report."""\n    return f"Report of {name}"\n',
    "deploy.sh": "#!/bin/sh\nset -eu\necho deploy\n",
    "rondel.toml": '[roles]\ndefault = "checks"\n',
}
# Put together here, so that nobody takes the demo's own source for a leak.
KEY = "AKIA" + "IOSFODNN7" + "EXAMPLE"
CHANGE = {
    "report.py": f'''import subprocess

ACCESS_KEY = "{KEY}"


def title(name, parts=[]):
    """The title of a report."""
    parts.append(name)
    return "Report of " + ", ".join(parts)


def send(path):
    """Send a report to the archive."""
    try:
        subprocess.call("scp " + path + " archive:", shell=True)
    except:
        pass
''',
    "deploy.sh": "#!/bin/sh\nTARGET=$1\nrm -rf $TARGET/*\ncp -r build/* $TARGET\n",
}
FIX = {
    "report.py": '''import os
import subprocess

ACCESS_KEY = os.environ["ARCHIVE_KEY"]


def title(name, parts=()):
    """The title of a report."""
    return "Report of " + ", ".join([*parts, name])


def send(path):
    """Send a report to the archive."""
    try:
        subprocess.call("scp " + path + " archive:", shell=True)
    except OSError as error:
        raise RuntimeError(f"{path} was not sent") from error
''',
    "deploy.sh": """#!/bin/sh
set -eu
TARGET=${1:?where to}
rm -rf "${TARGET:?}"/*
cp -r build/* "$TARGET"
""",
}


def demo(find: Callable[[Path], Project], echo: Callable[[str], None]) -> None:
    """Two rounds on a scratch repository: the first finds, the second sees what was fixed."""
    with tempfile.TemporaryDirectory(prefix="rondel-demo-") as folder:
        root = Path(folder) / "shop"
        root.mkdir()
        _git(root, "init", "-q", "-b", "main")
        _commit(root, START, "start")
        _git(root, "checkout", "-q", "-b", "archive")
        _commit(root, CHANGE, "send reports to the archive")
        echo("$ rondel review                  # the branch `archive` against main; no model, no key\n")
        _round(find(root), echo)
        _commit(root, FIX, "keep the key out, quote the target")
        echo("\n$ git commit -m 'keep the key out, quote the target' && rondel review\n")
        state = _round(find(root), echo)
        echo("\n$ rondel review compare\n")
        print_comparison(state, compare_rounds(state, None, None))
        echo("\nWhat is left in the repository:\n")
        for path in sorted((root / state.ref.folder).rglob("*.md")):
            if ".rondel" not in path.parts:
                echo(f"  {path.relative_to(root)}")


def _round(project: Project, echo: Callable[[str], None]) -> ReviewState:
    options = ReviewOptions(
        settings=project.settings("review"), kind_of=lambda role: project.config.agent_for(role).kind
    )
    opened = files.start(project.root, project.look, options, project)
    report = project.drive(opened.ref, lease=opened.lease)
    state = files.state_of(project.root, opened.ref, project)
    if report.exit_code or not state.is_complete:
        raise RondelError(f"the demo's review did not come to its end: {report.message}")
    echo((state.files.text(state.at.final) or "").rstrip())
    return state


def _commit(root: Path, contents: dict[str, str], message: str) -> None:
    for name, text in contents.items():
        (root / name).write_text(text, encoding="utf-8")
    _git(root, "add", "--", *contents)
    _git(root, "commit", "-q", "-m", message)


def _git(root: Path, *args: str) -> None:
    Git(root)("-c", "user.name=demo", "-c", "user.email=demo@localhost", *args)
