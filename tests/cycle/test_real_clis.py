"""A whole cycle with the vendors' real CLIs against the scripted model server."""

from __future__ import annotations

import json

import pytest
from cycle_repo import Repo

from modelserver import Asked, FakeModel, toml_tables, vendor_config
from rondel.workflows.cycle import CycleState
from vendors.install import binary, selected

pytestmark = pytest.mark.agents

CODE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a {} b\n"
PLAN = {"tasks": [{"id": "TASK-001", "description": "subtract", "effort": "small", "files": ["calc.py"]}]}


def end(phase: str, **fields: str) -> str:
    lines = {"status": "success", "summary": f"{phase} is done", "issues": "[]", **fields}
    return f"\n\nPHASE_RESULT:\n- phase: {phase}\n" + "".join(f"- {k}: {v}\n" for k, v in lines.items())


def four_agents(asked: Asked) -> object:
    """The model: it answers as the one it is asked to be; its first code is wrong."""
    said = asked.user
    if "You are the requirements analyst" in said:
        extra = "- REQ-002: it multiplies\n" if "--- ITERATION 3 ---" in said else ""
        return "# Requirements\n\n- REQ-001: it subtracts\n" + extra + "\n## Edge cases\n\n- zero" + end("ra")
    if "(EP): explore" in said:
        return "# Exploration\n\n## Architecture\n\nOne module." + end("ep")
    if "(EP): plan" in said:
        return f"One task.\n\n```json\n{json.dumps(PLAN)}\n```" + end("ep")
    if "You are the validation archivist" in said:
        return "# Validation\n\nREQ-001 is met." + end("vas")
    if asked.step:
        return "It subtracts." + end("cd", files_written="[calc.py]")
    sign = "-" if "test failed" in said or "REQ-002" in said else "+"
    return {"tools": [{"write": {"path": "calc.py", "content": CODE.format(sign)}}]}


@pytest.fixture(params=["claude", "codex", "gemini", "opencode"])
def rig(request, tmp_path):
    kind = request.param
    if kind not in selected():
        pytest.skip(f"vendor not run: {kind}: not selected (make test-agents runs all four)")
    program = binary(kind)
    if program is None:
        pytest.skip(f"vendor not run: {kind}: NOT INSTALLED (python tests/vendors/install.py {kind})")
    with FakeModel() as model:
        repo = Repo(tmp_path)
        url = model.script("four", {"decide": four_agents, "max_main": 200})
        table = vendor_config(kind, url, tmp_path / "vendor-home", [str(program)])
        work = json.dumps(str(tmp_path / "work"))
        (repo.root / "rondel.toml").write_text(
            toml_tables({kind: table}) + f'[roles]\ndefault = "{kind}"\n\n[workspaces]\nroot = {work}\n'
        )
        yield repo, model


def test_two_iterations_and_an_extension_with_a_real_cli(rig):
    repo, model = rig
    repo.rondel("cycle", "start", "Add subtraction")
    state = CycleState.model_validate(repo.state)
    assert (state.status, state.current_iteration) == ("completed", 2)
    assert "test_sub" in state.iterations[0].issues_found[0]
    assert state.test_results is not None
    assert (state.test_results.pass_rate, state.test_results.total_tests) == (100, 2)
    assert "return a - b" in repo.built("calc.py")
    repo.rondel("cycle", "extend", repo.id, "Also multiply")
    state = CycleState.model_validate(repo.state)
    assert (state.status, state.current_iteration) == ("completed", 3)
    assert "REQ-002" in (repo.progress / "ra/requirements.md").read_text()
    asked = [a for a in model.requests("four") if "You are the" in a.user]
    assert any("test failed" in a.user for a in asked if "code developer (CD)" in a.user), (
        "the feedback reached CD"
    )
