"""`.meta.json`: rules of writing, unknown fields kept, nothing lost, ids without a race."""

from __future__ import annotations

import copy
import json
import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.errors import UsageError
from rondel.workflows.feature import LIMITS, PHASES, start_feature, update_phase_state
from rondel.workflows.feature.meta import current_phase, due_phase, iterations, notes, records, stamped
from rondel.workflows.feature.stamps import merge_phase, phase_closed, phase_opened

T1, T2, T3 = "2026-11-15T10:00:00+00:00", "2026-11-15T11:00:00+00:00", "2026-11-15T12:00:00+00:00"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / start_feature(tmp_path, "OAuth login").folder


def meta_of(folder: Path) -> dict:
    return json.loads((folder / ".meta.json").read_text())


def test_a_feature_has_the_documents_fields(folder):
    meta = meta_of(folder)
    assert list(meta) == [
        "id",
        "name",
        "slug",
        "mode",
        "status",
        "created",
        "completed",
        "worktree",
        "branch",
        "currentPhase",
        "phases",
    ]
    assert folder.name == "001-oauth-login"
    assert (meta["id"], meta["name"], meta["mode"], meta["status"]) == (
        "001",
        "OAuth login",
        "standard",
        "active",
    )


def test_updates_are_merged_and_a_completion_moves_the_current_phase(folder):
    assert update_phase_state(folder, "specify", {"started": T1})
    assert meta_of(folder)["currentPhase"] is None
    assert update_phase_state(
        folder, "specify", {"completed": T2, "verified": True, "iterations": 2, "reviewerNotes": ["n"]}
    )
    meta = meta_of(folder)
    assert meta["currentPhase"] == "specify"
    assert meta["phases"]["specify"] == {
        "started": T1,
        "completed": T2,
        "verified": True,
        "iterations": 2,
        "reviewerNotes": ["n"],
    }


def test_a_time_may_be_given_as_a_datetime(folder):
    assert update_phase_state(str(folder), "design", {"started": datetime(2026, 11, 15, tzinfo=UTC)})
    assert meta_of(folder)["phases"]["design"]["started"] == "2026-11-15T00:00:00+00:00"


@pytest.mark.parametrize(
    ("phase", "updates"),
    [
        ("specify", {"completed": T2}),  # not started
        ("specify", {"started": T2, "completed": T1}),  # time runs backwards
        ("specify", {"started": T1, "iterations": 4}),  # past the limit of standard
        ("specify", {"iterations": -1}),
        ("specify", {"iterations": True}),
        ("specify", {"started": "yesterday"}),
        ("specify", {"started": datetime(2026, 11, 15)}),  # noqa: DTZ001 - what is wrong with it
        ("specify", {"verified": "yes"}),
        ("specify", {"reviewerNotes": "one"}),
        ("specify", {"approved": True}),  # no such field
        ("designing", {"started": T1}),  # no such phase
    ],
)
def test_what_would_break_a_rule_changes_nothing_and_says_why(folder, phase, updates, caplog):
    before = (folder / ".meta.json").read_bytes()
    assert update_phase_state(folder, phase, updates) is False
    assert (folder / ".meta.json").read_bytes() == before
    assert caplog.text


def test_a_stamp_never_moves_back(folder):
    assert update_phase_state(folder, "specify", {"started": T2})
    assert not update_phase_state(folder, "specify", {"started": T1})
    assert update_phase_state(folder, "specify", {"completed": T3})
    assert not update_phase_state(folder, "specify", {"completed": T2})
    assert not update_phase_state(folder, "specify", {"started": "2026-11-15T13:00:00+00:00"})


def test_times_without_an_offset_are_not_compared(folder):
    assert update_phase_state(folder, "specify", {"started": "2026-11-15T12:00:00", "completed": T1})


@pytest.mark.parametrize(("mode", "most"), LIMITS.items())
def test_the_limits_per_mode_hold_in_the_document(tmp_path, mode, most):
    folder = tmp_path / start_feature(tmp_path, "x", mode=mode).folder
    assert update_phase_state(folder, "design", {"iterations": most})
    assert not update_phase_state(folder, "design", {"iterations": most + 1})


def test_the_limits_are_the_documents():
    assert LIMITS == {"hotfix": 1, "quick": 2, "standard": 3, "full": 5}


def test_a_folder_without_a_document_is_refused(tmp_path):
    assert not update_phase_state(tmp_path, "specify", {"started": T1})
    assert not update_phase_state(tmp_path / "nowhere", "specify", {"started": T1})
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_document_is_never_overwritten(folder):
    (folder / ".meta.json").write_text('{"id": "001"}}')
    assert not update_phase_state(folder, "specify", {"started": T1})
    assert (folder / ".meta.json").read_text() == '{"id": "001"}}'


documents = st.fixed_dictionaries(
    {"mode": st.sampled_from([*LIMITS, "Standard"])},
    optional={
        "lastCompletedPhase": st.none() | st.sampled_from(PHASES),
        "module": st.text(max_size=5),
        "phases": st.dictionaries(
            st.sampled_from([*PHASES, "retro"]),
            st.fixed_dictionaries(
                {},
                optional={
                    "startedAt": st.just(T1),
                    "started": st.just(T1),
                    "status": st.just("in_progress"),
                    "stages": st.just({"research": {"skipped": False}}),
                    "taskReview": st.just({"iterations": 7, "concerns": []}),
                },
            ),
            max_size=4,
        ),
    },
)


@given(meta=documents, phase=st.sampled_from(PHASES))
def test_what_is_written_back_keeps_every_field_it_does_not_know(meta, phase):
    before = copy.deepcopy(meta)
    after = merge_phase(meta, phase, {"started": T2, "completed": T3})
    assert meta == before, "the document given is not changed itself"
    for name, value in before.items():
        if name not in ("phases", "lastCompletedPhase"):
            assert after[name] == value
    for name, record in before.get("phases", {}).items():
        for field, value in record.items():
            if name != phase or field in ("stages", "taskReview"):
                assert after["phases"][name][field] == value


def test_another_spelling_of_a_field_is_kept_in_step():
    meta = {
        "mode": "full",
        "lastCompletedPhase": "specify",
        "phases": {"design": {"startedAt": T1, "status": "in_progress"}},
    }
    after = merge_phase(meta, "design", {"completed": T2})
    assert after["lastCompletedPhase"] == after["currentPhase"] == "design"
    assert after["phases"]["design"]["status"] == "completed"
    assert merge_phase(after, "design", {"started": T2})["phases"]["design"]["startedAt"] == T2


def test_the_current_phase_is_the_one_completed_latest_by_the_clock():
    meta = {"mode": "full", "phases": {"design": {"started": T1, "completed": T3}}}
    after = merge_phase(meta, "specify", {"started": T1, "completed": T2})
    assert after["currentPhase"] == "design"


def test_a_phase_that_is_opened_again_loses_what_the_last_pass_said_and_nothing_else():
    record = {"started": T1, "completed": T2, "iterations": 3, "reviewerNotes": ["x"], "stages": {}}
    meta = {
        "mode": "full",
        "currentPhase": "design",
        "phases": {"specify": {"started": T1, "completed": T1}, "design": record},
    }
    after = phase_opened(meta, "design", datetime(2026, 11, 15, 12, tzinfo=UTC))
    assert after["phases"]["design"] == {"started": T3, "stages": {}}
    assert after["currentPhase"] == "specify"


@given(minutes=st.integers(-500, 500))
def test_a_clock_that_was_set_back_ends_no_phase_before_its_beginning(minutes):
    start = datetime(2026, 11, 15, 10, tzinfo=UTC)
    meta = phase_opened({"mode": "full", "phases": {}}, "design", start)
    after = phase_closed(meta, "design", start + timedelta(minutes=minutes), rounds=1, verified=True)
    record = after["phases"]["design"]
    assert record["started"] <= record["completed"]


def test_a_closing_past_the_limit_is_refused():
    with pytest.raises(UsageError, match="allows 1"):
        phase_closed(
            {"mode": "hotfix"}, "design", datetime(2026, 11, 15, tzinfo=UTC), rounds=2, verified=True
        )


# -- reading every shape ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["a", "b"], ("a", "b")),
        ("a note", ("a note",)),
        ({"security": "fine"}, ("security: fine",)),
        ('[{"reviewer": "spec", "summary": "ok"}]', ("[spec] ok",)),
        ([{"severity": "note", "description": "d"}], ("[note] d",)),
        ("[not json", ("[not json",)),
        (None, ()),
        ("", ()),
        (3, ("3",)),
    ],
)
def test_reviewer_notes_are_read_in_every_shape(value, expected):
    assert notes({"reviewerNotes": value}) == expected


def test_other_spellings_are_read():
    meta = {"lastCompletedPhase": "specify", "phases": {"specify": {"startedAt": T1, "completedAt": T2}}}
    assert stamped(records(meta)["specify"], "completed") == T2
    assert current_phase(meta) == "specify"
    assert due_phase(meta) == "design"


def test_a_phase_name_of_another_tool_is_no_phase():
    assert current_phase({"currentPhase": "designing"}) is None
    assert due_phase({"currentPhase": "designing"}) == "brainstorm"


def test_a_phase_left_open_long_ago_is_not_under_way():
    meta = {"phases": {"brainstorm": {"started": T1}, "specify": {"started": T1, "completed": T2}}}
    assert due_phase(meta) == "design"


def test_a_phase_taken_up_again_is_under_way():
    meta = {"phases": {"specify": {"started": T3}, "design": {"started": T1, "completed": T2}}}
    assert due_phase(meta) == "specify"


wild = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([T1, "x", "", "2026-01-01", *PHASES]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["phases", "started", "completed", "startedAt", "status", "mode", "iterations", *PHASES]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(meta=wild)
def test_every_document_can_be_read(meta):
    if isinstance(meta, dict):
        assert current_phase(meta) is None or current_phase(meta) in PHASES
        assert due_phase(meta) is None or due_phase(meta) in PHASES
        for record in records(meta).values():
            notes(record)
            iterations(record)


# -- at once ----------------------------------------------------------------------------------


def complete(folder: str, phase: str, barrier) -> None:
    barrier.wait()
    for number in range(20):
        assert update_phase_state(folder, phase, {"started": T1, "iterations": number % 3})
    assert update_phase_state(folder, phase, {"completed": T2})


def test_two_people_completing_different_phases_at_once_lose_nothing(folder):
    context = multiprocessing.get_context("fork")
    chosen = ["specify", "design", "create-plan", "create-tasks"]
    barrier = context.Barrier(len(chosen))
    people = [context.Process(target=complete, args=(str(folder), p, barrier)) for p in chosen]
    for person in people:
        person.start()
    for person in people:
        person.join(60)
        assert person.exitcode == 0
    assert {p: meta_of(folder)["phases"][p]["completed"] for p in chosen} == dict.fromkeys(chosen, T2)


def begin(root: str, barrier, found) -> None:
    barrier.wait()
    for number in range(5):
        found.put(start_feature(Path(root), f"Title {number}").id)


def test_ids_are_given_without_a_race(tmp_path):
    context = multiprocessing.get_context("fork")
    barrier, found = context.Barrier(4), context.Queue()
    people = [context.Process(target=begin, args=(str(tmp_path), barrier, found)) for _ in range(4)]
    for person in people:
        person.start()
    names = [found.get(timeout=60) for _ in range(20)]
    for person in people:
        person.join(60)
    assert sorted(n.partition("-")[0] for n in names) == [f"{n:03d}" for n in range(1, 21)]


@pytest.mark.parametrize(
    "title", ["Вход через OAuth", "登录", "🎉", "../../etc", "a/b\\c: d?", "x" * 500, "con"]
)
def test_any_title_gives_a_folder_that_stays_in_its_place(tmp_path, title):
    ref = start_feature(tmp_path, title)
    assert (tmp_path / "docs/features" / ref.id / ".meta.json").is_file()
    assert [p.name for p in (tmp_path / "docs/features").iterdir()] == [ref.id]


def test_an_id_goes_on_from_the_highest_there_is(tmp_path):
    for name in ("007-old", "1999-many", "notes", "08x"):
        (tmp_path / "docs/features" / name).mkdir(parents=True)
    assert start_feature(tmp_path, "new").id == "2000-new"


@pytest.mark.parametrize("title", ["", "  \n"])
def test_a_feature_needs_a_title(tmp_path, title):
    with pytest.raises(UsageError):
        start_feature(tmp_path, title)


def test_a_hotfix_gets_a_short_specification_so_that_it_can_be_implemented(tmp_path):
    ref = start_feature(tmp_path, "Fix crash", mode="hotfix", description="No crash on an empty name.")
    spec = (tmp_path / ref.folder / "spec.md").read_text()
    assert "Fix crash" in spec
    assert "No crash on an empty name." in spec


def test_a_brainstorm_that_is_written_already_completes_its_phase(tmp_path):
    ref = start_feature(tmp_path, "x", brainstorm="# Ideas\n")
    folder = tmp_path / ref.folder
    assert (folder / "brainstorm.md").read_text() == "# Ideas\n"
    assert current_phase(meta_of(folder)) == "brainstorm"
