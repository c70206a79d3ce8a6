"""Where implementation and verification begin: the commit, the branch, the project's tests."""

from __future__ import annotations

import json
import re

from rondel.errors import RondelError
from rondel.model.workflow import Look


def look_for_base(look: Look, branch: str, checks: str) -> dict[str, str]:
    """The tip of the feature's branch, or HEAD where there is none yet."""
    commit = look.git(
        "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}", check=False
    ).strip()
    if not commit:
        commit = look.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).strip()
    if not commit:
        raise RondelError("the repository has no commit yet; commit something first")
    return {"commit": commit, "branch": branch, "checks": checks or find_checks(look, commit)}


def find_checks(look: Look, commit: str) -> str:
    """The command that runs the tests of a commit; empty when none is plain to see."""
    names = frozenset(look.git("ls-tree", "-r", "--name-only", "-z", commit).split("\0"))

    def content(name: str) -> str:
        return look.git("show", f"{commit}:{name}") if name in names else ""

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


def _has_test_script(text: str) -> bool:
    try:
        package = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return False
    scripts = package.get("scripts") if isinstance(package, dict) else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    return isinstance(script, str) and "no test specified" not in script
