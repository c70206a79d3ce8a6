"""A phase's stamp that somebody else left counts, is shown as such, and is no approval."""

from __future__ import annotations

import json
import sys

import pytest
from scratch import APPROVED, git, meta, repository, rondel

from rondel.agents.base import Request
from rondel.engine import driver
from rondel.project import Project
from rondel.testing.scripted import Scripted, run_of
from rondel.workflows.feature import start_feature

AT = "2026-11-15T12:00:00+00:00"
STAMPING = """
import json, pathlib, sys
sys.stdin.read()
path = pathlib.Path({root!r}) / "docs/features/001-add/.meta.json"
meta = json.loads(path.read_text())
meta["phases"]["brainstorm"] |= {{"completed": "2099-01-01T00:00:00+00:00", "verified": True}}
meta["currentPhase"] = "brainstorm"
path.write_text(json.dumps(meta))
with (pathlib.Path({run!r}) / "journal.jsonl").open("a") as journal:
    journal.write('{{"kind": "changed"}}\\n')  # as who changes it through Rondel does: the driver looks
print("# Idea\\n\\nText.")
"""


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path)


def feature(root, *args, **env):
    return rondel(root, "feature", *args, **env)


def stamp(root, *phases: str, **more: object) -> None:
    body = meta(root)
    for phase in phases:
        body["phases"][phase] = {"started": AT, "completed": AT, "verified": True, "iterations": 1}
    path = root / "docs/features/001-add/.meta.json"
    path.write_text(json.dumps({**body, "currentPhase": phases[-1], **more}))


def shown(root) -> dict:
    (entry,) = json.loads(rondel(root, "status", "feature:001-add", "--json").stdout)["sessions"]
    return entry


def test_what_rondel_completed_is_its_own_and_may_be_merged(root):
    feature(root, "start", "Add")
    assert feature(root, "run", "--auto").returncode == 0
    assert shown(root)["not_made_by_rondel"] == []
    assert "not made by Rondel" not in feature(root, "status", "001").stdout
    assert feature(root, "finish", "--merge").returncode == 0
    assert (shown(root)["status"], shown(root)["not_made_by_rondel"]) == ("completed", [])


def test_a_stamp_that_was_written_into_the_document_counts_is_named_and_lets_nothing_be_merged(root):
    feature(root, "start", "Add")
    assert feature(root, "run", "--auto", "--until", "implement").returncode == 0
    stamp(root, "verify")
    assert shown(root)["not_made_by_rondel"] == ["verify"]
    assert shown(root)["state"]["notMadeByRondel"] == ["verify"]
    assert shown(root)["state"]["currentPhase"] == "verify", "it counts, as the document says"
    assert f"verify: completed {AT}, not made by Rondel" in feature(root, "status", "001").stdout
    assert "not made by Rondel: verify" in rondel(root, "status", "feature:001-add").stdout
    before = git(root, "rev-parse", "main")
    for way in ("--merge", "--pr"):
        refused = feature(root, "finish", way)
        assert refused.returncode == 1
        assert "not made by Rondel, and so no approval: verify" in refused.stderr
    assert git(root, "rev-parse", "main") == before
    assert feature(root, "verify", "001-add", "--yes").returncode == 0
    assert shown(root)["not_made_by_rondel"] == []
    assert feature(root, "finish", "--merge").returncode == 0


def test_a_person_may_take_such_a_stamp_upon_themselves(root):
    feature(root, "start", "Add")
    assert feature(root, "run", "--auto", "--until", "implement").returncode == 0
    stamp(root, "verify")
    assert feature(root, "finish", "--merge", "--force").returncode == 0


def test_a_feature_of_another_tool_is_shown_as_such_and_its_files_stay(root):
    folder = root / "docs/features/001-add"
    folder.mkdir(parents=True)
    body = {"id": "001", "name": "Add", "mode": "standard", "status": "completed", "phases": {}}
    (folder / ".meta.json").write_text(json.dumps(body))
    stamp(root, "specify", "implement", "verify", "finish")
    assert shown(root)["status"] == "completed"
    assert shown(root)["not_made_by_rondel"] == ["specify", "implement", "verify", "finish"]
    assert "completed (not made by Rondel)" in rondel(root, "status").stdout


def test_an_end_that_an_agent_wrote_is_not_the_end_for_the_person(root):
    feature(root, "start", "Add")
    assert feature(root, "run", "--auto").returncode == 0
    path = root / "docs/features/001-add/.meta.json"
    path.write_text(json.dumps({**meta(root), "status": "completed"}))
    assert shown(root)["not_made_by_rondel"] == ["finish"]
    assert feature(root, "finish", "001", "--merge").returncode == 0
    assert shown(root)["not_made_by_rondel"] == []


def test_a_stamp_that_the_driver_has_not_seen_yet_is_put_aside_and_the_phase_is_rondels_own(
    root, monkeypatch
):
    monkeypatch.setattr(driver, "TICK_S", 1000)
    ref = start_feature(root, "Add", brainstorm="# Ideas\n")
    (root / ref.folder / ".rondel/request-2.json").write_text('{"command": "run", "until": "specify"}')

    def answer(request: Request) -> str:
        if not request.action.endswith("review.json"):
            return "# Spec\n\nText.\n"
        stamp(root, "specify", mode="hotfix")
        body = meta(root)
        body["phases"]["specify"]["completed"] = "2099-01-01T00:00:00+00:00"
        (root / ref.folder / ".meta.json").write_text(json.dumps(body))
        return APPROVED

    here = Project(root, build=lambda _: Scripted(answer))
    here.begin(ref, new=True)
    assert here.run(ref).exit_code == 0
    (aside,) = (root / ref.folder / ".rondel/aside").glob(".meta.json.damaged-*")
    assert json.loads(aside.read_text())["phases"]["specify"]["completed"].startswith("2099")
    record = meta(root)["phases"]["specify"]
    assert record["verified"] is True
    assert not record["completed"].startswith("2099")
    assert "specify" not in shown(root)["not_made_by_rondel"]
    assert any("cannot go back" in problem["message"] for problem in shown(root)["problems"])


@pytest.mark.parametrize(("env", "code"), [({}, 0), ({"CI": "1"}, 4)])
def test_a_phase_that_its_own_agent_stamped_is_no_approval_under_ci(root, env, code):
    command = json.dumps([sys.executable, str(root / "agent.py")])
    toml = f'[agents.a]\nkind = "command"\ncommand = {command}\n[roles]\ndefault = "a"\n'
    (root / "rondel.toml").write_text(toml)
    feature(root, "start", "Add")
    run = str(run_of(root / "docs/features/001-add"))
    (root / "agent.py").write_text(STAMPING.format(root=str(root), run=run))
    done = feature(root, "brainstorm", "--json", **env)
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["not_made_by_rondel"] == ["brainstorm"]
