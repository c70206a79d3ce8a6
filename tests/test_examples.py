"""A workflow of somebody else's package has all that ours have: `examples/loop`, as it is installed."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from support.person import YES
from support.repos import GIT_ENV, commit, git, repository

TOP = Path(__file__).parent.parent
SCRIPT = {
    "rules": [
        {"role": "loop.worker", "reply": "Rain falls, {action}"},
        {"role": "loop.judge", "action": "round-1/*", "reply": "no: it is too short"},
        {"role": "loop.judge", "reply": "yes"},
    ]
}
SETTINGS = """
[agents.script]
kind = "mock"
script = "script.json"

[roles]
loop = "script"
review = "checks"

[loop]
rounds_max = 2
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a fresh environment with the example; it sees what is installed here, too."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False)
    own = folder / "venv/bin/python"
    place = sysconfig.get_path("purelib", vars={"base": str(folder / "venv")})
    here = dict.fromkeys([sysconfig.get_path("purelib"), *site.getsitepackages()])
    Path(place, "here.pth").write_text("".join(f"import site; site.addsitedir({p!r})\n" for p in here))
    shutil.copytree(TOP / "examples/loop", folder / "loop", ignore=shutil.ignore_patterns("build", "*info"))
    words = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    run([own, "-m", "pip", "install", "-q", *words, str(folder / "loop")], folder)
    return own


def run(argv: list[object], cwd: Path, *, expect: int = 0, **more_env: str) -> str:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd.parent / "home"),
        "LANG": "C.UTF-8",
        **GIT_ENV,
        **YES,
    } | more_env
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == expect, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def rondel(python, tmp_path_factory):
    """The command in a repository where a loop has run to its end."""
    root = repository(tmp_path_factory.mktemp("used") / "repo", {"app.py": "print('rain')\n"})
    commit(root, {"rondel.toml": SETTINGS, "script.json": json.dumps(SCRIPT)})
    git(root, "checkout", "-qb", "rain")

    def call(*words: str, expect: int = 0) -> str:
        return run([python, "-m", "rondel", *words], root, expect=expect)

    call.root = root
    call.said = call("loop", "start", "rain", "A poem on rain")
    return call


def test_its_command_runs_and_leaves_documents_that_can_be_read(rondel):
    assert "loop:rain: completed" in rondel.said
    assert "Rain falls, round-2/work.md" in rondel.said
    made = {p.relative_to(rondel.root).as_posix() for p in (rondel.root / "loops").rglob("*.md")}
    assert made == {
        "loops/rain/goal.md",
        *(f"loops/rain/round-{n}/{what}.md" for n in (1, 2) for what in ("work", "judgement")),
    }
    assert "round-1/work.md" in rondel("show", "loop:rain", "work.md", "--round", "1")


def test_its_command_is_listed_after_ours_and_explained(rondel):
    names = [line.split()[0] for line in rondel("--help").partition("Commands:")[2].splitlines() if line]
    assert names[:6] == ["review", "feature", "cycle", "task", "generate", "loop"]
    assert "Begin a loop" in rondel("loop", "--help")


def test_its_sessions_are_shown_with_the_others(rondel):
    (found,) = json.loads(rondel("status", "--json"))["sessions"]
    assert (found["session"], found["status"]) == ("loop:rain", "completed")
    assert found["progress"] == {"done": 2, "total": 2}
    assert "loop:rain" in rondel("status")
    assert "loop:rain: completed" in rondel("resume", "loop:rain")
    assert "loop:rain is yours already" in rondel("adopt", "loop:rain", expect=5)


def test_its_settings_are_read_and_checked_like_ours(rondel):
    settings = rondel.root / "rondel.toml"
    before = settings.read_text()
    settings.write_text(before.replace("rounds_max = 2", "rounds_max = 1"))
    try:
        (found,) = json.loads(rondel("status", "--json"))["sessions"]
        assert found["progress"]["total"] == 1
        settings.write_text(before.replace("rounds_max", "rounds"))
        assert "loop.rounds is not a setting; allowed here: rounds_max" in rondel("agents", expect=2)
    finally:
        settings.write_text(before)


def test_one_that_was_not_begun_here_is_foreign_until_it_is_adopted(python, rondel, tmp_path):
    root = repository(tmp_path / "repo")
    shutil.copytree(rondel.root / "loops", root / "loops")

    def call(*words: str, expect: int = 0) -> str:
        return run([python, "-m", "rondel", *words], root, expect=expect, RONDEL_TRUST="")

    assert "is foreign" in call("status", "loop:rain")
    call("resume", "loop:rain", expect=3)
    assert "loop:rain is yours" in call("adopt", "loop:rain", "--yes")
    assert "is foreign" not in call("status", "loop:rain")


def test_its_line_is_in_the_hook(rondel):
    said = json.loads(rondel("hook", "session-start"))["additionalContext"]
    assert "loop rain" in said


def test_a_review_leaves_its_folder_out(rondel):
    git(rondel.root, "add", "-A", "loops")
    git(rondel.root, "commit", "-qm", "the loop's own record")
    assert "nothing to review" in rondel("review", "--quick", expect=5)
    commit(rondel.root, {"app.py": "import os\nprint('rain')\n"})
    rondel("review", "--quick", "--no-fail-on-changes")
    (diff,) = (rondel.root / ".ocr/sessions").rglob("change.diff")
    assert "app.py" in diff.read_text()
    assert "loops/" not in diff.read_text()


def test_its_own_tests_kill_it_and_it_goes_on(python):
    folder = python.parents[2] / "loop"
    said = run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], folder)
    assert " passed" in said or "[100%]" in said
    assert "killed" in (folder / "tests/test_loop.py").read_text()


def test_the_interpreter_is_another_one(python):
    code = "import rondel_loop, sys; print(rondel_loop.__file__, sys.prefix)"
    where, prefix = run([python, "-c", code], python.parents[2]).split()
    assert where.startswith(prefix)
    assert prefix != sys.prefix
