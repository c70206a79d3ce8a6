"""Where implementation and verification begin: the commit, the branch, the project's tests."""

from __future__ import annotations

import re

from rondel.errors import RondelError
from rondel.model import jsons
from rondel.model.consent import Brought, require
from rondel.model.identity import home
from rondel.model.refs import END
from rondel.model.workflow import RepoReader

_COMMIT = ("rev-parse", "--verify", "--quiet")


def look_for_base(look: RepoReader, branch: str, make: str, configured: str, *begun: str) -> dict[str, str]:
    """The tip of the feature's branch, or where the feature was begun while there is none yet.

    With `make`, a branch that is not there is made: code has to go somewhere. Where no tests are
    `configured`, those that are found need the person's consent.
    """
    commit = _tip(look, branch) or home(look, *begun)
    if not commit:
        raise RondelError("the repository has no commit yet; commit something first")
    for found in () if configured else tests_at(look, commit):
        require(found, look.admits)
    if make and not _tip(look, branch):
        look.git("branch", "--no-track", END, branch, commit)
    return {"commit": commit, "branch": branch, "checks": find_checks(look, commit)}


def _tip(look: RepoReader, branch: str) -> str:
    return look.git(*_COMMIT, END, f"refs/heads/{branch}^{{commit}}", check=False).strip()


def find_checks(look: RepoReader, commit: str) -> str:
    """The command that runs the tests of a commit; empty when none is plain to see."""
    names = frozenset(look.git("ls-tree", "-r", "--name-only", "-z", END, commit).split("\0"))

    def content(name: str) -> str:
        return look.git("show", END, f"{commit}:{name}") if name in names else ""

    if re.search(r"(?m)^test\s*:", content("Makefile")):
        return "make test"
    if _has_test_script(content("package.json")):
        return "npm test --silent"
    if "Cargo.toml" in names:
        return "cargo test --quiet"
    if "go.mod" in names:
        return "go test ./..."
    if any(re.search(r"(^|/)(test_[^/]+|[^/]+_test)\.py$", name) for name in names):
        return "python3 -m pytest -q"
    return ""


def brought_tests(look: RepoReader, branch: str = "") -> list[Brought]:
    """The tests that are found in the repository as it is, and on a feature's branch."""
    head = look.git(*_COMMIT, "HEAD^{commit}", check=False).strip()
    tip = _tip(look, branch) if branch else ""
    return [found for commit in dict.fromkeys((head, tip)) if commit for found in tests_at(look, commit)]


def tests_at(look: RepoReader, head: str) -> list[Brought]:
    """The tests that are found in a commit, and what they stand for."""
    command = find_checks(look, head)
    if command.startswith("npm"):
        scripts = _scripts(look.git("show", END, f"{head}:package.json"))
        meant = [f"{n}: {scripts[n]}" for n in ("pretest", "test", "posttest") if n in scripts]
    elif command.startswith("make"):
        meant = _recipe(look.git("show", END, f"{head}:Makefile"))
    else:
        meant = []
    return [Brought("tests", "\n".join((command, *meant)))] if command else []


def _recipe(makefile: str) -> list[str]:
    """The lines of the target `test`."""
    found = re.search(r"(?m)^test\s*:.*\n((?:\t.*\n?|[ \t]*\n)*)", f"{makefile}\n")
    return [line.strip() for line in found[0].splitlines() if line.strip()] if found else []


def _has_test_script(text: str) -> bool:
    script = _scripts(text).get("test")
    return script is not None and "no test specified" not in script


def _scripts(text: str) -> dict[str, str]:
    try:
        package = jsons.load(text or "{}")
    except ValueError:
        return {}
    scripts = package.get("scripts") if isinstance(package, dict) else None
    return {k: v for k, v in scripts.items() if isinstance(v, str)} if isinstance(scripts, dict) else {}
