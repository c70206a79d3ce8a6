"""How a project is set up and tested, from its own files. One answer for every workflow.

What a person's settings say comes before all of this. What is found here are the repository's own words,
so nothing of it runs before the person consented to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from rondel.model.consent import Brought
from rondel.model.jsons import mapping, parse_json
from rondel.model.refs import END
from rondel.model.workflow import RepoReader

PYTEST = "python3 -m pytest -q"
_VENV = "python3 -m venv .venv && .venv/bin/pip install"
_PYTHON = {  # which file says how a Python project is set up
    "uv.lock": "uv sync",
    "poetry.lock": "poetry install",
    "pyproject.toml": f"{_VENV} -e .",
    "setup.py": f"{_VENV} -e .",
    "setup.cfg": f"{_VENV} -e .",
    "requirements.txt": f"{_VENV} -r requirements.txt",
    "pytest.ini": "",
    "tox.ini": "",
    "noxfile.py": "",
}
_NODE = {  # the lock file, how it is installed, and how a script is run
    "pnpm-lock.yaml": ("pnpm install --frozen-lockfile", "pnpm test"),
    "yarn.lock": ("yarn install --frozen-lockfile", "yarn test"),
    "bun.lock": ("bun install --frozen-lockfile", "bun run test"),
    "bun.lockb": ("bun install --frozen-lockfile", "bun run test"),
    "package-lock.json": ("npm ci", "npm test --silent"),
    "package.json": ("npm install", "npm test --silent"),
}
_TEST_FILE = re.compile(r"(^|/)(test_[^/]+|[^/]+_test)\.py$")
_TARGET = re.compile(r"(?m)^test\s*:.*\n((?:\t.*\n?|[ \t]*\n)*)")


@dataclass(frozen=True)
class Toolchain:
    """The commands of a project; empty where nothing is plain to see."""

    name: str = ""  # python, node, go, …
    setup: str = ""
    test: str = ""
    meant: tuple[str, ...] = ()  # what the test command stands for, in the repository's words
    files: tuple[str, ...] = ()  # programs of the repository that it runs

    @property
    def tests(self) -> list[Brought]:
        """The tests, as the person consents to them."""
        text = "\n".join((self.test, *self.meant))
        return [Brought("tests", text, self.files)] if self.test else []


def toolchain(names: Collection[str], text: Callable[[str], str]) -> Toolchain:
    """The commands of a project whose files have these names; `text` gives what one of them holds."""
    return next(_found(frozenset(names), text), Toolchain())


def _found(names: frozenset[str], text: Callable[[str], str]) -> Iterator[Toolchain]:
    """Every answer, the best first: a manifest of a language, then tests that are there, then `make`."""
    setup = next((command for name, command in _PYTHON.items() if name in names), None)
    has_tests = any(map(_TEST_FILE.search, names))
    if setup is not None:
        test = PYTEST if has_tests or "pytest.ini" in names else ""
        test = test or ("tox -q" if "tox.ini" in names else "nox" if "noxfile.py" in names else "")
        if test:
            yield Toolchain("python", setup, test)
    scripts = _scripts(text("package.json")) if "package.json" in names else {}
    if "test" in scripts and "no test specified" not in scripts["test"]:
        install, test = next(commands for lock, commands in _NODE.items() if lock in names)
        meant = tuple(f"{n}: {scripts[n]}" for n in ("pretest", "test", "posttest") if n in scripts)
        yield Toolchain("node", install, test, meant)
    if "go.mod" in names:
        yield Toolchain("go", "go mod download", "go test ./...")
    if "Cargo.toml" in names:
        yield Toolchain("cargo", "cargo fetch", "cargo test --quiet")
    if "pom.xml" in names:
        yield _wrapped("maven", "mvnw", "mvn", "-q -B test", names)
    if names & {"build.gradle", "build.gradle.kts"}:
        yield _wrapped("gradle", "gradlew", "gradle", "-q test", names)
    if has_tests:
        yield Toolchain("python", "", PYTEST)
    recipe = _TARGET.search(f"{text('Makefile')}\n") if "Makefile" in names else None
    if recipe:
        meant = tuple(line.strip() for line in recipe[0].splitlines() if line.strip())
        yield Toolchain("make", "", "make test", meant)


def _wrapped(name: str, wrapper: str, program: str, words: str, names: frozenset[str]) -> Toolchain:
    """A tool that a project may bring as a program of its own."""
    own = (wrapper,) if wrapper in names else ()
    return Toolchain(name, "", f"{f'./{wrapper}' if own else program} {words}", files=own)


def _scripts(package: str) -> dict[str, str]:
    scripts = mapping(mapping(parse_json(package)).get("scripts"))
    return {name: script for name, script in scripts.items() if isinstance(script, str)}


# -- in a repository ------------------------------------------------------------------------------


def toolchain_at(look: RepoReader, commit: str) -> Toolchain:
    """The commands of a project as it is in a commit."""
    return toolchain(names_at(look, commit), lambda name: look.git("show", END, f"{commit}:{name}"))


def names_at(look: RepoReader, commit: str) -> list[str]:
    """The names of all files of a commit."""
    return look.git("ls-tree", "-r", "--name-only", "-z", END, commit).split("\0")


def commit_at(look: RepoReader, name: str) -> str:
    """The commit that a name of git stands for; empty when there is none."""
    return look.git("rev-parse", "--verify", "--quiet", END, f"{name}^{{commit}}", check=False).strip()


def brought_tests(look: RepoReader, branch: str = "") -> list[Brought]:
    """The tests that are found in the repository as it is, and on a session's branch."""
    commits = (commit_at(look, name) for name in ("HEAD", f"refs/heads/{branch}" if branch else "") if name)
    return [
        found for commit in dict.fromkeys(commits) if commit for found in toolchain_at(look, commit).tests
    ]
