"""Twelve tasks with a vendor's real CLI against the scripted model: green, one linear history."""

from __future__ import annotations

import subprocess
import sys

import pytest
from task_support import git, repository, session, statuses, task
from test_run import CHECKS, LEVELS, assert_linear_and_green, assert_nothing_left, history, module

from modelserver import FakeModel, toml_tables, vendor_config
from vendors.install import ALL, binary, selected

pytestmark = pytest.mark.agents

WAIT_S = 280


def implement(asked):
    """The model: it writes the module of the task it is asked for and a test, then reports."""
    name = asked.user.partition("# IMPL-")[2].partition(":")[0]
    if asked.step or not name:
        return "## What was done\nThe module.\n\n## Decisions\nNone.\n\n## Notes for future tasks\nNone.\n"
    own = module(f"IMPL-{name}")
    needs = [module(n) for n in LEVELS[f"IMPL-{name}"]]
    body = (
        "".join(f"from lib.{n} import value as {n}\n" for n in needs)
        + f"value = 1 + {' + '.join(needs) or '0'}\n"
    )
    test = (
        f"import sys, unittest\nsys.path.insert(0, '.')\nfrom lib.{own} import value\n\n"
        "class Test(unittest.TestCase):\n    def test(self):\n        self.assertGreaterEqual(value, 1)\n"
    )
    return {
        "tools": [
            {"write": {"path": f"lib/{own}.py", "content": body}},
            {"write": {"path": f"tests/test_{own}.py", "content": test}},
        ]
    }


@pytest.mark.parametrize("kind", ALL)
def test_twelve_tasks_with_a_real_cli_end_green_with_one_linear_history(kind, tmp_path):
    if kind not in selected() or binary(kind) is None:
        pytest.skip(
            f"vendor not run: {kind}: not installed or not selected (python tests/vendors/install.py {kind})"
        )
    root = repository(tmp_path / "repo")
    with FakeModel() as model:
        model.script("developer", {"decide": implement, "max_main": 500})
        table = vendor_config(kind, model.url("developer"), tmp_path / "vendor-home", [str(binary(kind))])
        settings = toml_tables({kind: table}) + f'[roles]\ntask = "{kind}"\n[project]\nchecks = "{CHECKS}"\n'
        (root / "rondel.toml").write_text(settings)
        ref = session(
            root, [task(t, depends_on=d, focus_paths=[f"lib/{module(t)}.py"]) for t, d in LEVELS.items()]
        )
        done = subprocess.run(
            [sys.executable, "-m", "rondel", "task", "run", "--jobs", "4"],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert set(statuses(root, ref).values()) == {"completed"}
    assert sorted(history(root)) == sorted(LEVELS)
    assert_linear_and_green(root)
    assert_nothing_left(root)
    assert git(root, "rev-parse", "--abbrev-ref", "HEAD") == "main"
