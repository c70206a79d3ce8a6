"""The anomalies of real files, each by its rule."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.workflows.feature import lint_file, start_feature
from rondel.workflows.feature.files import repair_meta
from rondel.workflows.feature.lint import lint, lint_meta, without_stray_brace
from rondel.workflows.feature.stamps import merge_phase
from rondel.workflows.feature.workflow import Feature

T = [f"2026-11-15T{hour:02d}:00:00+00:00" for hour in range(10, 20)]
SAMPLES = sorted(Path(os.environ.get("RONDEL_META_SAMPLES", "/nonexistent")).glob("*.json"))


def done(at: int) -> dict[str, str]:
    return {"started": T[at], "completed": T[at + 1]}


def rules(meta: object) -> list[tuple[str, str | None]]:
    return [(a.rule, a.phase) for a in lint_meta(meta)]


def feature(**fields: object) -> dict[str, object]:
    return {"id": "001", "mode": "standard", "status": "active", "phases": {}, **fields}


def test_a_sound_file_has_no_problem():
    phases = {"brainstorm": done(0), "specify": done(1), "design": {"started": T[2]}}
    assert rules(feature(phases=phases, currentPhase="specify")) == []
    assert rules(feature(phases={})) == []


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"phases": {}}}', b"\xff\xfe", b"[" * 100_000, b"1" * 5000 + b"x"]
)
def test_invalid_json_is_the_only_problem_of_its_file(data):
    assert [a.rule for a in lint(data)] == ["invalid-json"]


@pytest.mark.parametrize(
    "meta", [{"status": "planned"}, {"status": "completed", "phases": None}, {"phases": []}, [], 3]
)
def test_a_file_without_phases_has_only_that_problem(meta):
    assert rules(meta) == [("no-phases", None)]


def test_completed_without_started_comes_once_per_phase():
    phases = {"specify": {"completed": T[1]}, "design": {"completedAt": T[2]}, "finish": {"completed": T[3]}}
    found = rules(feature(phases=phases))
    assert found == [
        ("completed-without-started", "specify"),
        ("completed-without-started", "design"),
        ("completed-without-started", "finish"),
        ("phase-gap", None),
    ]


def test_completed_before_started_needs_two_times_with_an_offset():
    def of(started: str, completed: str) -> list[tuple[str, str | None]]:
        return rules(feature(phases={"design": {"started": started, "completed": completed}}))

    assert of(T[1], T[0]) == [("completed-before-started", "design")]
    assert of("2026-11-15T12:00:00+08:00", "2026-11-15T05:00:00Z") == []
    assert of("2026-11-15T12:00:00", T[0]) == []
    assert of("2026-11-15", T[0]) == []


def test_several_partial_phases_are_one_problem():
    phases = {p: {"started": T[0]} for p in ("brainstorm", "specify", "design")}
    assert rules(feature(phases=phases)) == [("several-partial", None)]
    assert rules(feature(phases={"brainstorm": {"started": T[0]}})) == []


def test_a_gap_is_a_phase_missing_between_the_first_and_the_last_completed_one():
    assert rules(feature(phases={"specify": done(0), "create-plan": done(2)})) == [("phase-gap", None)]
    assert rules(
        feature(phases={"specify": done(0), "design": {"started": T[2]}, "create-plan": done(2)})
    ) == [("phase-gap", None)]
    assert rules(feature(phases={"design": done(0), "create-plan": done(2)})) == []


def test_verify_never_makes_a_gap():
    assert rules(feature(phases={"implement": done(0), "finish": done(2)})) == []
    assert rules(feature(phases={"implement": done(0), "verify": done(1), "finish": done(2)})) == []


@pytest.mark.parametrize(("mode", "most"), [("hotfix", 1), ("Quick", 2), ("STANDARD", 3), ("full", 5)])
def test_iterations_over_the_limit_of_the_mode_whatever_its_case(mode, most):
    def of(count: int) -> list[tuple[str, str | None]]:
        return rules(feature(mode=mode, phases={"design": {**done(0), "iterations": count}}))

    assert of(most) == []
    assert of(most + 1) == [("over-limit", "design")]


def test_an_unknown_mode_has_no_limit():
    assert rules(feature(mode="huge", phases={"design": {**done(0), "iterations": 99}})) == []


@pytest.mark.parametrize("field", ["currentPhase", "lastCompletedPhase"])
def test_the_phase_named_last_must_be_completed_and_the_latest(field):
    phases = {"specify": done(0), "design": done(2)}
    assert rules(feature(phases=phases, **{field: "design"})) == []
    assert rules(feature(phases=phases, **{field: "specify"})) == [("last-completed-mismatch", None)]
    assert rules(feature(phases=phases, **{field: "implement"})) == [("last-completed-mismatch", None)]
    assert rules(feature(phases=phases, **{field: None})) == []


def test_both_names_wrong_are_one_problem():
    found = rules(feature(phases={"specify": done(0)}, currentPhase="design", lastCompletedPhase="verify"))
    assert found == [("last-completed-mismatch", None)]


def test_a_status_outside_the_enumeration():
    assert rules(feature(status="planned")) == [("unknown-status", None)]
    for status in ("active", "abandoned"):
        assert rules(feature(status=status)) == []


def test_completed_without_the_time_of_it():
    assert rules(feature(status="completed")) == [("completed-without-time", None)]
    assert rules(feature(status="completed", completed=T[0])) == []


wild = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from([*T, "", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["phases", "started", "completed", "status", "mode", "iterations", "design", "specify"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
ONCE = {"several-partial", "phase-gap", "last-completed-mismatch", "unknown-status", "completed-without-time"}


@given(meta=wild | st.dictionaries(st.just("phases"), wild))
def test_no_file_makes_it_fail_and_no_rule_comes_too_often(meta):
    found = rules(meta)
    assert len(found) == len(set(found))
    for rule in ONCE:
        assert [r for r, _ in found].count(rule) <= 1
    if ("no-phases", None) in found:
        assert len(found) == 1


def test_a_file_that_is_not_there_or_is_no_file_gives_a_problem_not_an_error(tmp_path):
    assert [a.rule for a in lint_file(tmp_path / "none")] == ["invalid-json"]
    assert [a.rule for a in lint_file(tmp_path)] == ["invalid-json"]
    os.mkfifo(tmp_path / "pipe")
    assert [a.rule for a in lint_file(tmp_path / "pipe")] == ["invalid-json"]


# -- mending ----------------------------------------------------------------------------------

SOUND = json.dumps(feature(phases={"specify": done(0), "implement": done(1)}), indent=2)


def test_a_stray_brace_at_the_end_is_mended_and_the_original_kept(tmp_path):
    folder = tmp_path / start_feature(tmp_path, "x").folder
    (folder / ".meta.json").write_text(SOUND + "}")
    kept = repair_meta(folder)
    assert (folder / kept).read_text() == SOUND + "}"
    assert json.loads((folder / ".meta.json").read_text()) == json.loads(SOUND)
    assert repair_meta(folder) is None


def test_a_brace_that_closed_the_phases_too_early_is_found():
    at = SOUND.index('"implement"')
    comma = SOUND.rindex(",", 0, at)
    early = SOUND[:comma] + "}" + SOUND[comma:]
    with pytest.raises(ValueError, match="Extra data"):
        json.loads(early)
    assert json.loads(without_stray_brace(early.encode())) == json.loads(SOUND)


@pytest.mark.parametrize("data", [b"{", b'{"a": 1', b"}}", b"nonsense }", SOUND.encode()])
def test_what_one_brace_does_not_mend_is_left_alone(data):
    assert without_stray_brace(data) is None


def test_doctor_mends_on_request_only(tmp_path):
    ref = start_feature(tmp_path, "x")
    (tmp_path / ref.folder / ".meta.json").write_text(SOUND + "}")
    flow = Feature()
    assert list(flow.doctor(str(tmp_path), repair=lambda *_: False)) == []
    [(session, problem)] = flow.doctor(str(tmp_path), repair=lambda *_: True)
    assert (session, problem.rule, problem.repaired) == (ref.name, "invalid-json", True)
    assert list(flow.doctor(str(tmp_path), repair=lambda *_: True)) == []


# -- files of the wild, where they are at hand --------------------------------------------------


@pytest.mark.skipif(not SAMPLES, reason="RONDEL_META_SAMPLES names no folder of real files")
def test_every_sample_is_read_and_what_is_written_back_keeps_all_its_fields():
    for path in SAMPLES:
        data = path.read_bytes()
        found = lint(data)
        if any(a.rule == "invalid-json" for a in found):
            data = without_stray_brace(data)
        meta = json.loads(data)
        after = merge_phase(
            meta, "verify", {"started": "2027-01-01T00:00:00+00:00", "completed": "2027-01-01T01:00:00+00:00"}
        )
        for name, value in meta.items():
            if name not in ("phases", "currentPhase", "lastCompletedPhase"):
                assert after[name] == value, path
        for phase, record in meta.get("phases", {}).items():
            assert after["phases"][phase] == record, path
        assert after["currentPhase"] == "verify"
