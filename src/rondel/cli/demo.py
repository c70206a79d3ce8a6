"""`rondel demo`: the workflows on a scratch repository, with no key and no tokens.

The review is real work by real analysers. In the others a scripted agent stands in for
the model; everything else is what it always is.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path

import click

TEST = """import unittest


class Shop(unittest.TestCase):
    def test_is_open(self):
        self.assertTrue("open")
"""
PART_S = 300
NO_MODEL = '[roles]\ndefault = "checks"\n'
START = {
    "report.py": 'def title(name):\n    """The title of a report."""\n    return f"Report of {name}"\n',
    "deploy.sh": "#!/bin/sh\nset -eu\necho deploy\n",
    "rondel.toml": NO_MODEL,
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
CONTEXT = {
    "package": "shelf",
    "entity": "Book",
    "scope": "full",
    "description": "a shelf of books that people borrow and bring back",
}
VERDICT = (
    "@@@REVIEW_META\nverdict: {word}\nissues_total: {issues}\nissues_critical: 0\nmissing_inputs: 0\n@@@"
)
FINDING = (
    "SVC-3 (major), shelf/service.py, lend: lending a book that is lent out is not refused. Raise ValueError."
)
LAYERS = ("models", "service", "api", "tests")


class Scene:
    """A scratch repository, with a home of its own, and the real command in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "shop"
        home = folder / "home"
        for path in (self.root, home):
            path.mkdir(parents=True)
        self._env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "RONDEL_TRUST": "yes",  # to settings that the demo writes itself
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "PYTHONDONTWRITEBYTECODE": "1",
        } | {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Rondel demo"), ("EMAIL", "demo@localhost"))
        }
        self.git("init", "-q", "-b", "main")
        self.write({"README.md": "# A shop\n", "test_shop.py": TEST}, "start")

    def git(self, *args: str) -> None:
        """Git in the scratch repository."""
        self._run(("git", *args))

    def write(self, files: Mapping[str, str], message: str) -> None:
        """Leave files and commit them."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def rondel(self, *args: str) -> None:
        """A command as a person would type it; its output goes to the screen."""
        click.secho(f"\n$ rondel {shlex.join(args)}", bold=True)
        self._run((sys.executable, "-m", "rondel", *args))

    def python(self, *args: str) -> None:
        """The same of a program of the repository's."""
        click.secho(f"\n$ python {shlex.join(args)}", bold=True)
        self._run((sys.executable, "-B", *args), stderr=subprocess.STDOUT)

    def _run(self, argv: Sequence[str], stderr: int | None = None) -> None:
        done = subprocess.run(
            argv,
            cwd=self.root,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stderr=stderr,
            timeout=PART_S,
            check=False,
        )
        if done.returncode:
            raise click.ClickException(f"`{shlex.join(argv)}` ended with {done.returncode}")


def review(scene: Scene) -> None:
    """Two rounds by analysers: planted defects, a fix, and what it fixed."""
    scene.write(START, "reports")
    scene.git("checkout", "-q", "-b", "archive")
    scene.write(CHANGE, "send reports to the archive")
    scene.rondel("review")
    scene.write(FIX, "keep the key out, quote the target")
    scene.rondel("review")
    scene.rondel("review", "compare")


def feature(scene: Scene) -> None:
    """A feature from its start to its tasks, each phase under a reviewer."""
    _script(scene, "feature")
    scene.rondel("feature", "start", "Discount codes", "--mode", "quick")
    scene.rondel("feature", "run", "--until", "create-tasks", "--auto")
    scene.rondel("feature", "status")


def cycle(scene: Scene) -> None:
    """Four agents on one task: the first iteration fails a test, the second passes."""
    _script(scene, "cycle")
    scene.rondel("cycle", "start", "Give discounts", "--auto")


def task(scene: Scene) -> None:
    """Three tasks by dependency, each in a worktree of its own, one linear history."""
    _script(scene, "task")
    scene.rondel("task", "start", "Receipts")
    scene.rondel("task", "plan", "Print receipts")
    scene.rondel("task", "run", "--jobs", "2")
    scene.rondel("task", "todo")


def generate(scene: Scene) -> None:
    """A Python package in cycles, whose own generated tests are run."""
    _script(scene, "generate")
    context = [word for key, value in CONTEXT.items() for word in ("-c", f"{key}={value}")]
    scene.rondel("generate", "init", "python-service", *context, "--with-tests", "--auto")
    scene.rondel("generate", "run")
    scene.rondel("generate", "status")
    scene.rondel("generate", "apply", "--yes")
    scene.python("-m", "unittest", "discover", "-s", "tests", "-t", ".")


PARTS: Mapping[str, Callable[[Scene], None]] = {
    "review": review,
    "feature": feature,
    "cycle": cycle,
    "task": task,
    "generate": generate,
}


def _script(scene: Scene, name: str) -> None:
    """Let a scripted agent answer for every role from now on."""
    script = json.dumps({"rules": answers()}) if name == "generate" else _text(f"stories/{name}.json")
    settings = (
        '[agents.script]\nkind = "mock"\nscript = "script.json"\n[roles]\ndefault = "script"\n'
        f"[project]\ntest = {json.dumps(f'{shlex.quote(sys.executable)} -m unittest -q')}\n"
    )
    scene.write({"script.json": script, "rondel.toml": settings}, f"settings for the {name}")


def answers() -> list[dict[str, object]]:
    """What the scripted agent says: a plan, the code, and one review that fails."""
    rules: list[dict[str, object]] = []
    passed = f"# Review\n\nNothing to mend.\n\n{VERDICT.format(word='PASS', issues=0)}\n"
    for layer in LAYERS:
        rules.append({"role": f"generate.{layer}.plan", "reply": f"# Plan: {layer} of shelf\n"})
        rules.append({"role": f"generate.{layer}.generate", "reply": _text(f"demo_answers/{layer}.md")})
        if layer == "service":
            failed = f"# Review\n\n{FINDING}\n\n{VERDICT.format(word='FAIL', issues=1)}\n"
            rules.append({"action": "service/iteration-1/responses/review-response.md", "reply": failed})
            rules.append(
                {"role": "generate.service.revise", "reply": _text("demo_answers/service-revised.md")}
            )
        rules.append({"role": f"generate.{layer}.review", "reply": passed})
    return rules


def _text(name: str) -> str:
    return resources.files("rondel.cli").joinpath(name).read_text(encoding="utf-8")


@click.command()
@click.option("--only", type=click.Choice(list(PARTS)), multiple=True, help="Only these workflows.")
def command(only: tuple[str, ...]) -> None:
    """Show the workflows on a scratch repository, with no key and no tokens."""
    with tempfile.TemporaryDirectory(prefix="rondel-demo-") as folder:
        for name in only or PARTS:
            part = PARTS[name]
            click.secho(f"\n== {name}: {part.__doc__}", bold=True)
            PARTS[name](Scene(Path(folder) / name))
    click.secho("\nThat was all. Nothing left this machine, and no model was asked.", bold=True)
