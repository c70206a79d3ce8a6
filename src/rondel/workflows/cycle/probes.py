"""Looking at the repository: where an iteration starts, what an edit did, how what was built is tested."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rondel.errors import RondelError
from rondel.model.actions import Probe
from rondel.model.consent import Brought, require
from rondel.model.identity import home
from rondel.model.refs import END
from rondel.model.workflow import Look
from rondel.workflows.cycle.measure import DATA, FRESH

_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_ACTIONS = {"A": "create", "D": "delete", "C": "create"}


@dataclass(frozen=True)
class Tip:
    """The commit that holds an iteration's work, and the command that tests it; empty when there is none."""

    commit: str
    command: str = ""
    env: dict[str, str] = field(default_factory=dict)


def probe(probe: Probe, look: Look) -> object:
    """What a probe of a cycle found."""
    match probe.name, probe.args:
        case "begin", (target, last, branch, base):
            return {"commit": _start(look, target, last, (branch, base)), "branch": target}
        case "changes", (commit,):
            return _changes(look, commit)
        case "tip", (target, base, test):
            commit = _commit(look, f"refs/heads/{target}") or base
            return asdict(_tip(look, commit, test))
    raise RondelError(f"a cycle has no probe {probe.name!r}")


def _start(look: Look, target: str, last: str, begun: tuple[str, str]) -> str:
    """The commit an iteration starts from.

    The branch is made where there is none: at what it last held, else where the cycle was begun.
    """
    there = _commit(look, f"refs/heads/{target}")
    if there:
        return there
    head = (_commit(look, last) if last else "") or home(look, *begun)
    if not head:
        raise RondelError("the repository has no commit yet; commit something, then `rondel resume`")
    look.git("branch", "--no-track", END, target, head)
    return head


def _commit(look: Look, name: str) -> str:
    return look.git("rev-parse", "--verify", "--quiet", END, f"{name}^{{commit}}", check=False).strip()


def _changes(look: Look, commit: str) -> dict[str, object]:
    """What a commit did to each file, and how many commits lead to it."""
    if not commit:
        return {"commit": "", "height": 0, "files": []}
    listing = look.git(
        "diff-tree", "-r", "--no-commit-id", "--name-status", "--no-renames", "-z", "--root", END, commit
    )
    words = listing.split("\0")
    files = [
        {"file": name, "action": _ACTIONS.get(letter[:1], "modify")}
        for letter, name in zip(words[::2], words[1::2], strict=False)
        if name
    ]
    return {"commit": commit, "height": int(look.git("rev-list", "--count", END, commit)), "files": files}


_TESTS = Brought("tests", "python3 -m pytest -q")


def _tip(look: Look, commit: str, test: str) -> Tip:
    """How what was built is tested: the configured command, else the pytest suite that is there."""
    if test.strip():
        return Tip(commit, FRESH + test)
    names = look.git("ls-tree", "-r", "--name-only", "-z", END, commit).split("\0")
    if not any(_TEST_FILE.search(name) for name in names):
        return Tip(commit)
    require(_TESTS, look.admits)
    env = {"PYTHONPATH": "src:.", "PYTHONDONTWRITEBYTECODE": "1"}
    return Tip(commit, FRESH + _pytest(*_python(look), _source(look, commit, names)), env)


def _source(look: Look, commit: str, names: list[str]) -> list[str]:
    """What coverage is measured of: the whole project, code nobody imports too; or what its settings say."""
    settings = [n for n in (".coveragerc", "setup.cfg", "tox.ini", "pyproject.toml") if n in names]
    said = "".join(look.git("show", END, f"{commit}:{name}", check=False) for name in settings)
    if ".coveragerc" in names or re.search(r"^\[(tool\.)?coverage[.:]", said, re.MULTILINE):
        return []
    return [".", "src"] if any(n.startswith("src/") for n in names) else ["."]


def _pytest(python: str, coverage: str, source: list[str]) -> str:
    """The test command for a pytest suite, measured where something can measure."""
    name = shlex.quote(python)
    base = "-m pytest -q"
    if coverage == "pytest_cov":
        measure = " ".join(f"--cov={s}" for s in source) or "--cov"
        return f'{name} {base} {measure} --cov-report="json:$RONDEL_COVERAGE"'
    if coverage == "coverage":
        of = f"--source={','.join(source)} " if source else ""
        run = f"{name} -m coverage run --data-file={DATA} {of}{base}"
        report = f'{name} -m coverage json -q --data-file={DATA} -o "$RONDEL_COVERAGE"'
        return f"{run}\nstatus=$?\n{report} >/dev/null 2>&1\nexit $status"
    return f"{name} {base}"


def brought(look: Look, branch: str = "") -> Iterable[Brought]:
    """What of the repository would run to test it, on a session's branch too, where no settings say how."""
    for name in ("HEAD", f"refs/heads/{branch}" if branch else ""):
        commit = _commit(look, name) if name else ""
        names = look.git("ls-tree", "-r", "--name-only", "-z", END, commit).split("\0") if commit else ()
        if any(map(_TEST_FILE.search, names)):
            yield _TESTS
    yield from _environments(look)


def _environments(look: Look) -> Iterable[Brought]:
    """The virtual environments in the repository's folder: an interpreter is a program like any other."""
    for name in (".venv", "venv"):
        path = f"{name}/bin/python"
        if Path(look.root, path).is_file():
            yield Brought(f"virtual environment {name}", path, (path, f"{name}/pyvenv.cfg"))


def _python(look: Look) -> tuple[str, str]:
    """The interpreter that has pytest, the project's own first, and what it can measure coverage with."""
    script = (
        "import sys\n"
        "sys.path[:] = filter(None, sys.path)\n"  # not the repository's folder: what is there is no module
        "import importlib.util as u, pytest\n"
        "print(next((n for n in ('pytest_cov', 'coverage') if u.find_spec(n)), ''))"
    )
    own = [f"{look.root}/{one.text}" for one in _environments(look) if look.admits(one)]
    for name in (*own, "python", "python3", sys.executable):
        try:
            code, out, _ = look.run([name, "-c", script])
        except RondelError:
            continue
        if code == 0:
            return name, out.strip()
    return "python3", ""
