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
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path

import click

from rondel.cli import demo_generate, demo_review
from rondel.project import Project
from rondel.repo.git import Git

TEST = """import unittest


class Shop(unittest.TestCase):
    def test_is_open(self):
        self.assertTrue("open")
"""
GIT_NAME = "Rondel demo"
PART_S = 300


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
            for what, value in (("NAME", GIT_NAME), ("EMAIL", "demo@localhost"))
        }
        self.git("init", "-q", "-b", "main")
        self.write({"README.md": "# A shop\n", "test_shop.py": TEST}, "start")

    def git(self, *args: str) -> None:
        """Git in the scratch repository."""
        Git(self.root)("-c", f"user.name={GIT_NAME}", "-c", "user.email=demo@localhost", *args)

    def write(self, files: Mapping[str, str], message: str) -> None:
        """Leave files and commit them."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def rondel(self, *args: str, expect: int = 0) -> None:
        """A command as a person would type it; its output goes to the screen."""
        click.secho(f"\n$ rondel {shlex.join(args)}", bold=True)
        argv = [sys.executable, "-m", "rondel", *args]
        done = subprocess.run(
            argv, cwd=self.root, env=self._env, stdin=subprocess.DEVNULL, timeout=PART_S, check=False
        )
        if done.returncode != expect:
            words = f"`rondel {shlex.join(args)}` ended with {done.returncode}, not {expect}"
            raise click.ClickException(words)


def review(_scene: Scene) -> None:
    """Two rounds by analysers: planted defects, a fix, and what it fixed."""
    demo_review.demo(Project.find, click.echo)


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


def generate(_scene: Scene) -> None:
    """A Python package in cycles, whose own generated tests are run."""
    demo_generate.demo(click.echo)


PARTS: Mapping[str, Callable[[Scene], None]] = {
    "review": review,
    "feature": feature,
    "cycle": cycle,
    "task": task,
    "generate": generate,
}


def _script(scene: Scene, name: str) -> None:
    """Let a scripted agent answer for every role from now on."""
    script = (resources.files("rondel.cli") / "stories" / f"{name}.json").read_text(encoding="utf-8")
    settings = (
        '[agents.script]\nkind = "mock"\nscript = "script.json"\n[roles]\ndefault = "script"\n'
        f"[project]\ntest = {json.dumps(f'{shlex.quote(sys.executable)} -m unittest -q')}\n"
    )
    scene.write({"script.json": script, "rondel.toml": settings}, f"settings for the {name}")


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
