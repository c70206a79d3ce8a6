"""The demo of `generate`: a Python package in four cycles, with one revision, whose own tests really run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.resources import files as resources
from pathlib import Path

from rondel.errors import RondelError
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.repo.git import Git
from rondel.workflows.generate.files import GenerateOptions, copies, copy_code, start
from rondel.workflows.generate.read import State
from rondel.workflows.generate.workflow import status_text

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
TIMEOUT_S = 120


def demo(echo: Callable[[str], None]) -> None:
    """Generate a small package on a scratch repository with the mock agent, and run its own tests."""
    with tempfile.TemporaryDirectory(prefix="rondel-demo-") as folder:
        root = Path(folder)
        _repository(root)
        project = Project(root, trust="yes")  # to settings that the demo writes itself
        wish = GenerateOptions("python-service", CONTEXT, with_tests=True, request={"auto": True})
        ref = start(root, wish, claim=project.claim)
        echo(
            f"$ rondel generate init python-service -c package=shelf -c entity=Book … --with-tests\n{ref.id}"
        )
        report = project.drive(ref)
        if report.exit_code:
            raise RondelError(f"the demo of generate ended with {report.stopped}: {report.message}")
        state: State = project.state(ref)
        if state.session is not None:
            echo(f"$ rondel generate status\n{status_text(state.session)}")
        _take_over(root, ref, state, echo)
        _run_tests(root, echo)


def _repository(root: Path) -> None:
    answers = _answers()
    (root / "answers.json").write_text(json.dumps({"rules": answers}), encoding="utf-8")
    (root / "rondel.toml").write_text(
        '[agents.script]\nkind = "mock"\nscript = "answers.json"\n\n[roles]\ndefault = "script"\n',
        encoding="utf-8",
    )
    Git(root)("init", "-q", "-b", "main")


def _answers() -> list[dict[str, object]]:
    """What the scripted agent says: a plan, the code, and one review that fails."""
    rules: list[dict[str, object]] = []
    passed = f"# Review\n\nNothing to mend.\n\n{VERDICT.format(word='PASS', issues=0)}\n"
    for layer in LAYERS:
        rules.append({"role": f"generate.{layer}.plan", "reply": f"# Plan: {layer} of shelf\n"})
        rules.append({"role": f"generate.{layer}.generate", "reply": _text(layer)})
        if layer == "service":
            failed = f"# Review\n\n{FINDING}\n\n{VERDICT.format(word='FAIL', issues=1)}\n"
            rules.append({"action": "service/iteration-1/responses/review-response.md", "reply": failed})
            rules.append({"role": "generate.service.revise", "reply": _text("service-revised")})
        rules.append({"role": f"generate.{layer}.review", "reply": passed})
    return rules


def _text(name: str) -> str:
    return resources("rondel.cli").joinpath(f"demo_answers/{name}.md").read_text(encoding="utf-8")


def _take_over(root: Path, ref: SessionRef, state: State, echo: Callable[[str], None]) -> None:
    done = copy_code(root, ref, copies(root, state))
    echo(f"$ rondel generate apply --yes\n{chr(10).join(f'wrote {path}' for path in done)}\n")


def _run_tests(root: Path, echo: Callable[[str], None]) -> None:
    """The generated tests of the generated package, in a process of their own."""
    command = ["-m", "unittest", "discover", "-s", "tests", "-t", "."]
    done = subprocess.run(
        [sys.executable, "-B", *command],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    echo(f"$ python {' '.join(command)}\n{done.stderr.strip()}")
    if done.returncode or "Ran 0 tests" in done.stderr:
        raise RondelError("the generated package's own tests did not pass")
