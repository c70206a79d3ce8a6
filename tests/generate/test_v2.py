"""Sessions of the v2 tool open, show, go on to their end, and stay what they are."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from generate_scene import FAIL, PASS, project, repo

from rondel.engine.driver import Stopped
from rondel.model.names import digest
from rondel.model.summary import Status
from rondel.model.workflow import SessionRef
from rondel.testing.scripted import Scripted
from rondel.workflows.generate.commands import command
from rondel.workflows.generate.documents import V2_STATUSES
from rondel.workflows.generate.models import WorkflowStatus

ID = "0f3c2a"
REF = SessionRef("generate", ID, f".aiwf/sessions/{ID}")
PLAN = "# The plan\n\nOne class, Item.\n"
STANDARDS = "# Standards of old\n"
CODE = "<<<FILE: Item.java>>>\nclass Item {}\n\n<<<FILE: ItemStore.java>>>\ninterface ItemStore {}\n"
REVIEW = f"Item has no id.\n\n{FAIL}"


def document(phase: str, stage: str | None, **fields: object) -> dict:
    """A session document with the fields and the spelling of v2."""
    return {
        "session_id": ID,
        "profile": "jpa-mt",
        "context": {"entity": "Item", "table": "app.items", "bounded_context": "stock", "scope": "domain"},
        "phase": phase,
        "stage": stage,
        "status": "in_progress",
        "current_iteration": 1,
        "standards_hash": digest(STANDARDS),
        "plan_approved": False,
        "plan_hash": None,
        "prompt_hashes": {},
        "review_approved": False,
        "review_hash": None,
        "ai_providers": {"planner": "manual", "reviser": "manual"},
        "standards_provider": "rules",
        "metadata": {},
        "artifacts": [],
        "pending_action": None,
        "pending_approval": True,
        "last_error": None,
        "approval_feedback": None,
        "suggested_content": None,
        "retry_count": 0,
        "created_at": "2026-11-14T08:00:00.000001Z",
        "updated_at": "2026-11-14T08:00:00.000002Z",
        "phase_history": [{"phase": "init", "status": "in_progress"}],
        **fields,
    }


PLANNED = {"plan_approved": True, "plan_hash": digest(PLAN)}
FIRST = {"standards-bundle.md": STANDARDS, "iteration-1/planning-prompt.md": "Plan.\n"}
SECOND = {
    **FIRST,
    "plan.md": PLAN,
    "iteration-1/planning-response.md": PLAN,
    "iteration-1/generation-prompt.md": "Generate.\n",
}
THIRD = {
    **SECOND,
    "iteration-1/generation-response.md": CODE,
    "iteration-1/review-prompt.md": "Review.\n",
    "iteration-1/review-response.md": REVIEW,
}
STATES = {
    "at the plan's prompt": (document("plan", "prompt"), FIRST),
    "at the generation's prompt": (document("generate", "prompt", **PLANNED), SECOND),
    "after a review that failed": (
        document("review", "response", **PLANNED, review_approved=True, review_hash=digest("another")),
        THIRD,
    ),
    "after a review that failed and was approved": (
        document("review", "response", **PLANNED, review_approved=True, review_hash=digest(REVIEW)),
        THIRD,
    ),
    "before anything": (document("init", None, standards_hash=None), {}),
}
COMPLETE = (
    document("complete", None, **PLANNED, status="success", current_iteration=2, pending_approval=False),
    {**THIRD, "iteration-2/code/Item.java": "class Item { Long id; }"},
)


def put(root, state) -> None:
    body, files = state
    for name, text in {**files, "session.json": json.dumps(body, indent=2)}.items():
        path = root / REF.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def answer(request) -> str:
    if "planning" in request.action:
        return PLAN
    if "review" in request.action:
        return PASS if "iteration-2" in request.action else REVIEW
    return "```java\n// Item.java\nclass Item { Long id; }\n```\n"


def kept(root) -> dict:
    return json.loads((root / REF.folder / "session.json").read_text())


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
def test_every_state_opens_shows_and_can_be_driven_to_its_end(state, tmp_path):
    root = repo(tmp_path / "repo")
    put(root, state)
    before = kept(root)
    here = project(root, Scripted(answer))
    assert [r.id for r in here.sessions("generate")] == [ID]
    found = here.summary(REF)
    assert found.state == before
    assert found.problems == ()
    for _ in range(20):
        report = here.run(REF)
        if report.exit_code != 3:
            break
        here.decide(REF, "approve")
    assert report.stopped is Stopped.COMPLETED
    after = kept(root)
    assert list(after) == list(before)
    assert (after["phase"], after["stage"], after["status"]) == ("complete", None, "success")
    assert (after["current_iteration"], after["pending_approval"]) == (2, False)
    assert after["plan_hash"] == digest((root / REF.folder / "plan.md").read_text())
    assert after["artifacts"][-1]["path"] == "iteration-2/code/Item.java"
    assert set(after["artifacts"][-1]) == {"path", "phase", "iteration", "sha256", "created_at"}
    assert after["updated_at"].endswith("Z")
    tops = {p.name for p in (root / REF.folder).iterdir()} - {".rondel"}
    assert tops == {"session.json", "plan.md", "standards-bundle.md", "iteration-1", "iteration-2"}
    flat = {p.name for p in (root / REF.folder / "iteration-2").iterdir()}
    assert flat == {
        "revision-prompt.md",
        "revision-response.md",
        "review-prompt.md",
        "review-response.md",
        "code",
    }
    for name, text in state[1].items():
        assert (root / REF.folder / name).read_text() == text, f"{name} was rewritten"


def test_a_complete_session_stays_to_the_byte(tmp_path):
    root = repo(tmp_path / "repo")
    put(root, COMPLETE)
    before = (root / REF.folder / "session.json").read_bytes()
    here = project(root, Scripted(answer))
    assert here.run(REF).stopped is Stopped.COMPLETED
    assert (root / REF.folder / "session.json").read_bytes() == before


def test_a_review_approved_in_v2_is_not_asked_about_again(tmp_path):
    root = repo(tmp_path / "repo")
    put(root, STATES["after a review that failed and was approved"])
    here = project(root, Scripted(answer))
    here.run(REF)
    assert (kept(root)["phase"], kept(root)["stage"], kept(root)["current_iteration"]) == (
        "revise",
        "prompt",
        2,
    )
    prompt = (root / REF.folder / "iteration-2/revision-prompt.md").read_text()
    assert "Item has no id." in prompt
    assert "interface ItemStore {}" in prompt  # v2 kept no code of it; its response has it


def test_status_json_shows_the_document_as_it_is(tmp_path, monkeypatch):
    root = repo(tmp_path / "repo")
    put(root, STATES["at the generation's prompt"])
    monkeypatch.chdir(root)
    shown = CliRunner().invoke(command, ["status", "--json"])
    entry = json.loads(shown.output)["sessions"][0]
    assert entry["state"] == kept(root)
    assert (entry["state"]["phase"], entry["state"]["stage"]) == ("generate", "prompt")
    text = CliRunner().invoke(command, ["status"]).output
    assert text.startswith(
        f"Session: {ID}\nCycle: 1/1 (domain)\nPhase: GENERATE[PROMPT]\nStatus: IN_PROGRESS\n"
    )


def test_its_last_iteration_s_code_is_a_source_for_a_new_session(tmp_path, monkeypatch):
    root = repo(tmp_path / "repo")
    put(root, COMPLETE)
    monkeypatch.chdir(root)
    made = CliRunner().invoke(command, ["init", "jpa-mt", "-c", "scope=tests", "--source-session", ID])
    assert made.exit_code == 0, made.output
    name = made.output.splitlines()[0]
    prompt = root / f".aiwf/sessions/{name}/tests/iteration-1/prompts/planning-prompt.md"
    assert "class Item { Long id; }" in prompt.read_text()
    assert "Entity: Item" in prompt.read_text()


def test_cancelling_keeps_the_format(tmp_path, monkeypatch):
    root = repo(tmp_path / "repo")
    put(root, STATES["at the plan's prompt"])
    monkeypatch.chdir(root)
    assert CliRunner().invoke(command, ["cancel", ID]).exit_code == 0
    assert kept(root)["status"] == V2_STATUSES[WorkflowStatus.CANCELLED]
    assert "cycles" not in kept(root)


def test_unreviewed_code_is_not_taken_over(tmp_path, monkeypatch):
    root = repo(tmp_path / "repo")
    put(root, (document("review", "response"), {"iteration-1/code/Item.java": "class Item {}\n"}))
    monkeypatch.chdir(root)
    refused = CliRunner().invoke(command, ["apply", ID, "--yes"])
    assert "has no completed cycle with code yet" in str(refused.exception)
    assert not (root / "Item.java").exists()


DEEP: list = []
for _ in range(300):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "wrong",
    [{"artifacts": [{"nothing": 1}]}, {"current_iteration": 10**9}, {"retry_count": 10**9}, {"deep": DEEP}],
    ids=["an artifact", "iterations without end", "retries without end", "nested too deeply"],
)
@pytest.mark.timeout(20)
def test_an_unusable_document_is_a_problem_not_an_error(tmp_path, wrong):
    root = repo(tmp_path / "repo")
    put(root, (document("plan", "prompt", **wrong), {}))
    assert project(root, Scripted(answer)).summary(REF).status is Status.DAMAGED


def test_a_status_of_the_v2_tool_counts_and_is_shown_as_not_made_by_rondel(tmp_path):
    root = repo(tmp_path / "repo")
    put(root, COMPLETE)
    found = project(root, Scripted(answer)).summary(REF)
    assert (found.status, found.foreign) == (Status.COMPLETED, ("domain",))
    assert found.next == "rondel generate apply 0f3c2a"
    assert not (root / REF.folder / ".rondel").exists(), "who only looks leaves nothing"


def test_a_completed_session_without_code_names_nothing_to_take_over(tmp_path):
    root = repo(tmp_path / "repo")
    put(root, (COMPLETE[0], {}))
    found = project(root, Scripted(answer)).summary(REF)
    assert (found.status, found.next) == (Status.COMPLETED, "")


def test_what_rondel_completed_of_a_v2_session_is_its_own(tmp_path):
    root = repo(tmp_path / "repo")
    put(root, STATES["at the plan's prompt"])
    here = project(root, Scripted(answer))
    for _ in range(20):
        if here.run(REF).exit_code != 3:
            break
        here.decide(REF, "approve")
    assert (here.summary(REF).status, here.summary(REF).foreign) == (Status.COMPLETED, ())


def test_a_status_that_an_agent_wrote_into_a_v2_session_under_way_is_not_rondels(tmp_path):
    root = repo(tmp_path / "repo")
    put(root, STATES["at the plan's prompt"])
    here = project(root, Scripted(answer))
    assert here.run(REF).exit_code == 3
    here.decide(REF, "approve")
    assert here.run(REF).exit_code == 3
    path = root / REF.folder / "session.json"
    path.write_text(json.dumps({**kept(root), "status": "success", "phase": "complete"}))
    assert (here.summary(REF).status, here.summary(REF).foreign) == (Status.COMPLETED, ("domain",))
