"""What every case is made of: a place with a repository, a HOME and an outside, and the registry."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

WHEN = "2026-01-01T00:00:00+00:00"
MINE = "this is the person's own\n"
SECRETS = {  # what no program of a repository, and no vendor but its own, may see
    "AWS_SECRET_ACCESS_KEY": "corpus-secret-aws",
    "AWS_SESSION_TOKEN": "corpus-secret-token",
    "GITHUB_TOKEN": "corpus-secret-github",
    "OPENAI_API_KEY": "corpus-secret-openai",
    "ANTHROPIC_API_KEY": "corpus-secret-anthropic",
}
HOME_FILES = {
    ".bashrc": "# the person's shell\n",
    ".profile": "# the person's profile\n",
    ".gitconfig": "[user]\nname = t\nemail = t@localhost\n",
    ".ssh/id_ed25519": "corpus-secret-ssh\n",
    ".netrc": "machine example.org password corpus-secret-netrc\n",
    ".aws/credentials": "aws_secret_access_key = corpus-secret-file\n",
}


@dataclass(frozen=True)
class Site:
    """A folder with the repository, the person's HOME, and a place that nothing of it may reach."""

    folder: Path
    url: str = "http://127.0.0.1:9"  # a server that records who calls it

    @property
    def root(self) -> Path:
        return self.folder / "repo"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    @property
    def env(self) -> dict[str, str]:
        """That of whoever made the repository."""
        who = {
            f"GIT_{w}_{k}": v
            for w in ("AUTHOR", "COMMITTER")
            for k, v in (("NAME", "s"), ("EMAIL", "s@s"), ("DATE", WHEN))
        }
        fixed = {"PATH": "/usr/bin:/bin", "HOME": str(self.outside), "GIT_CONFIG_NOSYSTEM": "1"}
        return {**fixed, "GIT_CONFIG_GLOBAL": "/dev/null", **who}

    # -- making a repository --------------------------------------------------------------

    def git(self, *words: str, stdin: str = "", cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=cwd or self.root,
            env=self.env,
            input=stdin.encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"git {words}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="replace").strip()

    def put(self, path: str, text: str | bytes = "", mode: int | None = None) -> Path:
        """A file of the repository; a script is a program."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data := text.encode() if isinstance(text, str) else text)
        place.chmod(mode if mode is not None else 0o755 if data.startswith(b"#!") else 0o644)
        return place

    def link(self, path: str, target: Path | str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def fifo(self, path: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(place)

    def commit(self, message: str = "more") -> None:
        """Everything, also what is ignored; without a filter, a hook or a driver of the case itself."""
        self.git("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "add", "-A", "-f")
        self.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", message)

    # -- what it would do -----------------------------------------------------------------

    def mark(self, name: str = "ran") -> str:
        """A path outside, where nothing is and nothing may come to be."""
        return str(self.outside / name)

    def touch(self, name: str = "ran") -> str:
        """A command line that leaves a mark outside, with the environment in it."""
        return f"env > {shlex.quote(self.mark(name))}"

    def script(self, name: str = "ran") -> str:
        return f"#!/bin/sh\n{self.touch(name)}\ncat\n"

    def spring(self, name: str = "ran") -> str:
        """Python that leaves a mark outside when it is imported."""
        return f"import os\nopen({self.mark(name)!r}, 'a').write(str(dict(os.environ)))\n"

    def program(self, name: str = "ran") -> str:
        """The path of an executable that is no part of the tree."""
        place = self.root / ".git/rondel-corpus-program"
        place.write_text(self.script(name))
        place.chmod(0o755)
        return str(place)

    @property
    def victim(self) -> Path:
        """A file of the person's outside that must stay as it is."""
        return self.outside / "victim"

    @property
    def today(self) -> str:
        return datetime.now(UTC).date().isoformat()


Make = Callable[[Site], None]


@dataclass(frozen=True)
class Case:
    """One hostile repository."""

    name: str
    why: str  # what it tries, in a line
    make: Make
    asks: bool  # whether it brings something that `rondel trust` must name


CASES: dict[str, Case] = {}


def case(*, asks: bool = False) -> Callable[[Make], Make]:
    """Register a case under its function's name; its docstring says what it tries."""

    def register(make: Make) -> Make:
        add(make.__name__.removeprefix("_"), (make.__doc__ or "").strip(), make, asks=asks)
        return make

    return register


def add(name: str, why: str, make: Make, *, asks: bool = False) -> None:
    """Register a case that is one of a family."""
    if name in CASES or not why:
        raise ValueError(f"{name} is there already, or says not what it tries")
    CASES[name] = Case(name, why, make, asks)


def build(one: Case, folder: Path, url: str = "http://127.0.0.1:9") -> Site:
    """The case's repository with a change to review on the branch `change`, and what is around it."""
    site = Site(folder, url)
    for place in (site.root, site.home, site.outside, folder / "tmp"):
        place.mkdir(parents=True)
    site.victim.write_text(MINE)
    for name, text in HOME_FILES.items():
        (site.home / name).parent.mkdir(parents=True, exist_ok=True)
        (site.home / name).write_text(text.replace("$HOME", str(site.home)))
    site.put("app.py", "def add(a, b):\n    return a + b\n")
    site.git("init", "-q", "-b", "main")
    site.commit("start")
    site.git("switch", "-qc", "change")
    site.put("app.py", "def add(a, b):\n    return a - b\n")
    site.commit("change")
    one.make(site)
    return site
