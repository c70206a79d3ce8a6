"""A whole review with the vendors' real CLIs against the scripted model server, reviewers in parallel."""

from __future__ import annotations

import json
import re

import pytest
from review_support import finding, git, review

from modelserver import Asked, FakeModel, toml_tables, vendor_config
from rondel.project import Project
from rondel.testing.scripted import run_of
from rondel.workflows.review import files
from rondel.workflows.review.request import ResolvedOptions
from vendors.install import binary, selected

pytestmark = pytest.mark.agents

WRONG = finding("The sum is a difference", category="blocker")
ZERO = finding("Every call divides by zero", line=6, evidence="return n / 0")


def panel(asked: Asked) -> object:
    """The model: it answers as the one it is asked to be."""
    said = asked.user
    if "You lead a code review that is done" in said:
        return "A short change with a wrong sign."
    if "You lead a code review" in said:
        return "Look at the sign."
    if "You are one of several reviewers" in said:
        return json.dumps({"responses": [{"finding": "F1", "verb": "AGREE", "reason": "it subtracts"}]})
    if "Try to refute it" in said:
        return json.dumps({"verdict": "stands", "reason": "tried", "evidence": "return n / 0"})
    return review(WRONG, ZERO) if "# Security engineer" in said else review(WRONG)


@pytest.fixture(params=["claude", "codex", "gemini", "opencode"])
def rig(request, feature, tmp_path):
    kind = request.param
    if kind not in selected():
        pytest.skip(f"vendor not run: {kind}: not selected (make test-agents runs all four)")
    program = binary(kind)
    if program is None:
        pytest.skip(f"vendor not run: {kind}: NOT INSTALLED (python tests/vendors/install.py {kind})")
    with FakeModel() as model:
        url = model.script("panel", {"decide": panel, "max_main": 200})
        table = vendor_config(kind, url, tmp_path / "vendor-home", [str(program)])
        work = json.dumps(str(tmp_path / "work"))
        (feature / "rondel.toml").write_text(
            toml_tables({kind: table}) + f'[roles]\ndefault = "{kind}"\n\n[workspaces]\nroot = {work}\n'
        )
        yield Project.find(feature), model


def test_a_review_with_a_real_cli(rig):
    project, model = rig
    options = ResolvedOptions(
        team="principal:2,security:1", kind_of=lambda role: project.config.agent_for(role).kind
    )
    opened = files.open_round(project.root, project.look, options)
    report = project.run(opened.ref)
    state = files.state_of(project.root, opened.ref)
    assert report.exit_code == 0, report
    assert state.reviewed == ("principal-1", "principal-2", "security-1")
    assert state.meta["verdict"] == "REQUEST CHANGES"
    assert state.meta["synthesis_counts"] == {"blockers": 1, "should_fix": 1, "suggestions": 0}
    assert "A short change with a wrong sign." in state.files.text(state.at.final)
    journal = (run_of(project.root / opened.ref.folder) / "journal.jsonl").read_text()
    begun = [json.loads(line) for line in journal.splitlines() if re.search(r'"started".*/reviews/', line)]
    ended = [json.loads(line) for line in journal.splitlines() if re.search(r'"finished".*/reviews/', line)]
    assert max(e["at"] for e in begun) <= min(e["at"] for e in ended), "the reviewers did not run in parallel"
    assert any("Look at the sign." in a.user for a in model.requests("panel"))
    assert git(project.root, "status", "--porcelain", "--untracked-files=no") == ""
