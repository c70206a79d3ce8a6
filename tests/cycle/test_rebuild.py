"""After any damage to the state file the state is the one last committed."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest
from cycle_loop import JUNIT_FAIL, Loop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.model import doclog
from rondel.model.changes import Edit
from rondel.workflows.cycle import CycleState, rebuild_state
from rondel.workflows.cycle.files import added, load

OTHER = (
    b"",
    b"[]",
    b"null",
    b'"x"',
    b"7",
    b"{}",
    b'{"a": 1}',
    b'{"cycle_id": "another", "status": "running"}',
)


def copied(loop: Loop, to):
    """The cycle as it is now, elsewhere."""
    target = to / ".workflow/.cycle"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(loop.folder.parent, target)
    return target / f"{loop.ref.id}.json"


def damages(data: bytes, cycle_id: str) -> list[bytes | None]:
    cuts = [data[:n] for n in (1, len(data) // 3, len(data) - 3)]
    fragment = json.dumps({"cycle_id": cycle_id, "status": "running"}).encode()
    changed = json.loads(data)
    changed["status"] = "banana"
    return [None, *OTHER, *cuts, fragment, json.dumps(changed).encode(), b"\xff\xfe" + data]


def damage(path, data: bytes | None) -> None:
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)


def test_at_every_commit_point_of_two_iterations_and_an_extension_any_damage_is_undone(tmp_path):
    root, elsewhere = tmp_path / "root", tmp_path / "copy"
    elsewhere.mkdir()
    root.mkdir()
    points = 0

    def after(change) -> None:
        nonlocal points
        if not isinstance(change, Edit) or not change.path.startswith("../"):
            return
        committed = loop.state_path.read_bytes()
        wanted = CycleState.model_validate_json(committed).document()
        points += 1
        options = damages(committed, loop.ref.id)
        for data in options if points % 9 == 1 else [options[points % len(options)]]:
            path = copied(loop, elsewhere)
            damage(path, data)
            assert load(loop.ref.id, elsewhere).document == json.loads(committed), "reading alone shows it"
            assert rebuild_state(loop.ref.id, elsewhere).document() == wanted
            assert json.loads(path.read_bytes()) == json.loads(committed)

    loop = Loop(root, {"iteration-1/vas/tests.json": JUNIT_FAIL}, after_change=after)
    loop.run()
    loop.carry([added("And more", loop.tick())])
    loop.run()
    assert loop.document["current_iteration"] == 3
    assert loop.document["status"] == "completed"
    assert points > 40


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=25)
@given(steps=st.integers(0, 25), cut=st.floats(0, 1), junk=st.binary(max_size=30), seed=st.integers(0, 2))
def test_wherever_a_run_is_and_however_the_file_is_damaged_it_comes_back(
    tmp_path_factory, steps, cut, junk, seed
):
    loop = Loop(tmp_path_factory.mktemp("r"), {"iteration-1/vas/tests.json": JUNIT_FAIL})
    for _ in range(steps):
        loop.step()
    committed = loop.state_path.read_bytes()
    half = committed[: int(cut * (len(committed) - 3))]
    loop.state_path.write_bytes((half, half + junk, junk)[seed])
    assert rebuild_state(loop.ref.id, loop.root).document() == json.loads(committed)


def test_the_damaged_file_is_kept_and_the_warning_names_it(tmp_path):
    loop = Loop(tmp_path)
    loop.run()
    for number, data in enumerate((b"{half", b"[1]"), 1):
        loop.state_path.write_bytes(data)
        problems = {p.rule: p for p in loop.state.problems}
        assert "state-damaged" in problems
        assert "rebuild" in problems["state-damaged"].repair
        rebuild_state(loop.ref.id, tmp_path)
        kept = loop.folder / f"coordination/{loop.ref.id}.json.damaged-{number}"
        assert kept.read_bytes() == data
        assert f"coordination/{kept.name}" in {p.file for p in loop.state.problems}


def test_a_run_goes_on_after_damage_as_if_there_had_been_none(tmp_path):
    loop = Loop(tmp_path)
    for _ in range(5):
        loop.step()
    before = loop.document
    loop.state_path.write_bytes(b"{")
    assert loop.workflow.summary(loop.state).problems
    loop.step()
    assert loop.document == before
    loop.run()
    assert loop.document["status"] == "completed"
    assert len(loop.done) == len(set(loop.done)), "nothing was done twice"


def test_damage_while_an_agent_works_is_undone_when_it_is_done(tmp_path):
    loop = Loop(tmp_path)
    loop.step()
    ask = loop.due()[0]
    started = loop.tick()
    step = loop.planned(ask)
    loop.carry(step.begin(loop.state, started))
    loop.state_path.unlink()
    loop.carry(step.write(loop.state, loop.outcome(ask, started)))
    assert loop.document["requirements"]["version"] == "1.0.0"
    loop.run()
    assert loop.document["status"] == "completed"


@pytest.mark.parametrize("status", ["paused", "failed"])
def test_a_status_set_by_hand_is_taken_over_as_a_change(tmp_path, status):
    loop = Loop(tmp_path)
    for _ in range(3):
        loop.step()
    by_hand = loop.document | {"status": status}
    loop.state_path.write_text(json.dumps(by_hand))
    loop.run()
    assert loop.done[-1].startswith(".rondel/parts/taken/")
    assert loop.document["status"] == status
    loop.state_path.unlink()
    assert rebuild_state(loop.ref.id, tmp_path).status == status
    loop.state_path.write_text(json.dumps(loop.document | {"status": "running"}))
    loop.run()
    assert loop.document["status"] == "completed"


def test_a_crash_between_log_and_file_leaves_the_state_that_was_committed(tmp_path):
    loop = Loop(tmp_path)
    for _ in range(4):
        loop.step()
    log = loop.folder / "coordination/state.ndjson"
    before = loop.document
    line = doclog.line(log.read_text().splitlines()[-1], before, before | {"title": "uncommitted"})
    log.write_text(f"{log.read_text()}{line}\n")
    assert loop.state.document == before
    loop.run()
    assert loop.document["status"] == "completed"
    assert loop.document["title"] == before["title"]


def test_without_the_log_the_state_is_put_together_from_what_the_agents_left(tmp_path):
    loop = Loop(tmp_path, {"iteration-1/vas/tests.json": JUNIT_FAIL})
    loop.run()
    wanted = CycleState.model_validate(loop.document)
    loop.state_path.unlink()
    (loop.folder / "coordination/state.ndjson").write_bytes(b"\x00\x01junk\n")
    found = rebuild_state(loop.ref.id, tmp_path)
    assert found.requirements is not None
    assert wanted.requirements is not None
    assert found.requirements.specification == wanted.requirements.specification
    assert found.requirements.version == wanted.requirements.version
    assert found.requirements.edge_cases == wanted.requirements.edge_cases
    assert found.plan == wanted.plan
    assert found.changes == wanted.changes
    assert found.test_results == wanted.test_results
    assert found.coordination.feedback_log == wanted.coordination.feedback_log
    assert (found.status, found.current_iteration, found.description, found.task_history) == (
        wanted.status,
        wanted.current_iteration,
        wanted.description,
        wanted.task_history,
    )
    assert [(i.number, i.issues_found, i.resolved) for i in found.iterations] == [
        (i.number, i.issues_found, i.resolved) for i in wanted.iterations
    ]
    assert not loop.due()


def test_a_cycle_of_another_tool_without_a_log_opens_as_it_is(tmp_path):
    folder = tmp_path / ".workflow/.cycle"
    folder.mkdir(parents=True)
    loop = Loop(tmp_path / "mine")
    document = loop.document | {"cycle_id": "theirs"}
    (folder / "theirs.json").write_text(json.dumps(document))
    assert rebuild_state("theirs", tmp_path).cycle_id == "theirs"
    assert json.loads((folder / "theirs.json").read_text()) == document


def test_the_log_stays_in_proportion_to_what_changed(tmp_path):
    spec = "# Requirements\n\n" + "\n".join(f"- REQ-{i:03d}: {'x' * 80}" for i in range(1, 500))
    reply = spec + "\n\nPHASE_RESULT:\n- phase: ra\n- status: success\n"
    issue = "PHASE_RESULT:\n- phase: vas\n- status: partial\n- issues: [cd: again]\n"
    loop = Loop(
        tmp_path, {"requirements.md": reply, "validation.md": f"# V\n\n{issue}"}, {"max_iterations": 8}
    )
    sizes = []
    while loop.step():
        if loop.done[-1].endswith("aggregate.json"):
            sizes.append((loop.folder / "coordination/state.ndjson").stat().st_size)
    growth = [b - a for a, b in itertools.pairwise(sizes)]
    assert len(sizes) == 8
    assert sizes[-1] < 8 * 4 * len(spec), (
        "whole documents would be more than fifteen times a specification each"
    )
    assert max(growth[4:]) < 3 * max(growth[:3]) + 2 * len(spec)


def test_a_section_that_cannot_be_read_is_left_out_the_file_is_kept_and_the_cycle_goes_on(tmp_path):
    loop = Loop(tmp_path)
    document = loop.document | {"test_results": {"version": "1.0.0", "coverage": "n/a"}, "changes": "none"}
    loop.state_path.write_text(json.dumps(document))
    (loop.folder / "coordination/state.ndjson").unlink()  # as another tool left it
    (problem,) = loop.state.problems
    assert problem.rule == "state-damaged"
    assert "test_results.coverage" in problem.message
    loop.run()
    assert loop.document["status"] == "completed"
    kept = loop.folder / f"coordination/{loop.ref.id}.json.damaged-1"
    assert json.loads(kept.read_text()) == document


def test_parts_of_other_types_never_stop_a_rebuild_without_the_log(tmp_path):
    loop = Loop(tmp_path)
    loop.run()
    parts = loop.folder / ".rondel/parts/iteration-1"
    (parts / "begin.json").write_text(json.dumps({"texts": None, "at": None}))
    (parts / "aggregate.json").write_text(json.dumps({"issues": 5, "feedback": "x"}))
    loop.state_path.unlink()
    (loop.folder / "coordination/state.ndjson").unlink()
    assert rebuild_state(loop.ref.id, tmp_path).current_iteration == 1
