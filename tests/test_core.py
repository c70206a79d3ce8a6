"""The core knows no workflow by name: whatever it needs to know of one, the workflow says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rondel
from rondel import installed
from rondel.project import Project

SOURCE = Path(rondel.__file__).parent
CORE = ("agents", "cli", "engine", "model", "processes", "project", "repo", "sandbox", "store", "trust")
TEXTS = {"cli/demo.py"}  # the demo shows the shipped ones
NAMED = re.compile(
    rf"\b({'|'.join(installed.workflows())})(s|\b)|round-|iteration-|{re.escape('.ocr')}|{re.escape('.aiwf')}"
    rf"|{re.escape('.workflow/')}|docs/features"
)
CLOSED = (
    '" ([sandbox] of your own settings, or [task] sandbox): what is not listed in [sandbox] hosts, '
    'with network = "vendor", cannot be reached'
)
# What looks like a workflow's name and is something else, or is a sentence for a person.
ALLOWED = {
    ("processes/leftovers.py", "task/*"): "of /proc",
    ("processes/reaper.py", "/proc/self/task/"): "of /proc",
    ("agents/vendors/watched.py", "tasks"): "a folder of a vendor's",
    ("model/deciding.py", "task"): "a program that runs what its file says",
    ("model/deciding.py", "go-task"): "the same program",
    ("model/deciding.py", "tasks.py"): "such a file",
    ("model/deciding.py", "tasks"): "such a folder",
    ("trust/consents.py", "task command"): "in the files of people's consents, under this name",
    ("project/running.py", "the change under review brings its own "): "a sentence",
    ("cli/setup.py", "Take back every yes in this repository, to commands of tasks too."): "a sentence",
    ("sandbox/box.py", CLOSED): "a sentence",
}


def strings(file: Path) -> list[ast.Constant]:
    """Every text of a module but its docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = [n.body[0] for n in ast.walk(tree) if isinstance(n, documented) and n.body]
    said = {id(d.value) for d in docs if isinstance(d, ast.Expr)}
    constants = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in said)
    return [n for n in constants if isinstance(n.value, str)]


def core() -> list[Path]:
    files = [*SOURCE.glob("*.py"), *(p for room in CORE for p in (SOURCE / room).rglob("*.py"))]
    return [p for p in sorted(files) if p.relative_to(SOURCE).as_posix() not in TEXTS]


def test_no_text_of_the_core_names_a_workflow_or_what_is_its_own():
    found = {
        (file.relative_to(SOURCE).as_posix(), text.value, text.lineno)
        for file in core()
        for text in strings(file)
        if NAMED.search(text.value)
    }
    assert sorted(f for f in found if f[:2] not in ALLOWED) == []
    assert set(ALLOWED) <= {f[:2] for f in found}, "a text on the list that needs to be there no more"


def test_the_shipped_workflows_come_in_by_their_entry_points_alone(tmp_path):
    assert Project(tmp_path).workflow_names() == ["review", "feature", "cycle", "task", "generate"]
    assert {e.value.partition(".workflow:")[0] for e in installed.workflows().values()} == {
        f"rondel.workflows.{name}" for name in installed.workflows()
    }
    for name in installed.workflows():
        assert installed.workflow(name).commands() is not None


@pytest.mark.parametrize(
    ("words", "imported"),
    [
        (["--version"], set()),
        (["hook", "session-start"], {"feature"}),  # the one that has a line there, and little of it
        (["review", "--help"], {"review"}),
        (["task", "--help"], {"task"}),
        (["approve", "--help"], set()),
    ],
)
def test_a_command_imports_the_workflow_that_it_is_of(words, imported, tmp_path):
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('\\n' + ' '.join(sys.modules), file=sys.stderr))\n"
        f"sys.argv = ['rondel', *{words!r}]\nfrom rondel.cli import main\nmain()"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(
        argv, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    modules = done.stderr.splitlines()[-1].split()
    assert {m.split(".")[2] for m in modules if re.match(r"rondel\.workflows\.\w+$", m)} == imported
    if words[0] in ("--version", "hook"):
        heavy = {
            "click",
            "pydantic",
            "rondel.project",
            "importlib.metadata",
            "rondel.workflows.feature.workflow",
        }
        assert not heavy & set(modules)


BROKEN = """
import sys
from importlib import metadata
from rondel import installed
found = metadata.EntryPoint("broken", "no_such_package:Thing", "rondel.workflows")
plain = installed.workflows()
installed.workflows = lambda: {**plain, "broken": found}
from rondel.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_workflow_that_cannot_be_loaded_is_named_and_the_help_is_there(tmp_path):
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-c", BROKEN, *words]
        return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "broken      Cannot be loaded." in run("--help").stdout
    done = run("broken", "--any", "thing")
    assert done.returncode == 1
    assert "the workflow 'broken'" in done.stderr
    assert "No module named 'no_such_package'" in done.stderr
