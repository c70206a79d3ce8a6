import re
from datetime import date

from hypothesis import example, given
from hypothesis import strategies as st

from rondel.model.names import is_safe_name
from rondel.model.snapshot import FrozenSnapshot
from rondel.workflows.review.layout import (
    Phase,
    Round,
    day_of,
    folders_in,
    folders_of,
    is_reviewer,
    junk_in,
    resolve,
    round_files,
    round_in,
    session_name,
)

NAMES = st.one_of(
    st.integers(1, 15).map(lambda n: f"round-{n}"),
    st.tuples(st.integers(1, 15), st.integers(2, 4)).map(lambda t: f"round-{t[0]:0{t[1]}}"),
    st.sampled_from(
        ["round-", "round-x", "Round-3", "round-3.bak", "round--4", " round-5", "rounds", "round-1 "]
    ),
    st.text(max_size=8),
)


def oracle(complete_by_name: dict[str, bool]) -> tuple[int, bool, list[int]]:
    there = [
        (int(m[1]), done) for n, done in complete_by_name.items() if (m := re.fullmatch("round-([0-9]+)", n))
    ]
    last = max((n for n, _ in there if n), default=0)
    finished = sorted({n for n, done in there if n and done})
    is_new = last == 0 or last in finished
    return (last + 1 if is_new else last), is_new, finished


@given(st.dictionaries(NAMES, st.booleans(), max_size=14))
@example({f"round-{n}": True for n in range(1, 13)})
@example({"round-1": True, "round-08": False, "round-3": True})
@example({"round-9": True, "round-10": False})
@example({"round-2": True, "round-02": False})
def test_round_resolution_agrees_with_a_five_line_oracle(there):
    folders = folders_of(there, lambda name: there[name])
    found = resolve(tuple(Round(round_files(n, name), there[name]) for n, name in folders.items()))
    assert (found.current_round, found.new_round, list(found.complete_rounds)) == oracle(there)


def session(*rounds: str, **files: str) -> FrozenSnapshot:
    return FrozenSnapshot({f"rounds/{r}": "x" for r in rounds} | files)


def rounds_in(files: FrozenSnapshot) -> tuple[Round, ...]:
    return tuple(round_in(files, *found) for found in folders_in(files).items())


def test_no_rounds_folder_means_round_one():
    assert resolve(rounds_in(FrozenSnapshot({}))).current_round == 1
    assert resolve(rounds_in(FrozenSnapshot({}))).new_round


def test_an_unfinished_round_is_resumed():
    found = resolve(rounds_in(session("round-1/final.md", "round-2/reviews/principal-1.md")))
    assert (found.current_round, found.new_round) == (2, False)


def test_after_a_complete_round_comes_the_next():
    found = resolve(rounds_in(session("round-1/final.md")))
    assert (found.current_round, found.new_round, found.complete_rounds) == (2, True, (1,))


def test_round_ten_comes_after_round_nine():
    found = resolve(rounds_in(session("round-9/final.md", "round-10/final.md")))
    assert found.current_round == 11


def test_a_gap_does_not_matter():
    found = resolve(rounds_in(session("round-1/final.md", "round-5/final.md")))
    assert (found.current_round, found.complete_rounds) == (6, (1, 5))


def test_a_padded_round_is_a_round_and_keeps_its_folder():
    last = rounds_in(session("round-08/final.md"))[-1]
    assert (last.number, last.files.final, last.complete) == (8, "rounds/round-08/final.md", True)


def test_a_file_named_like_a_round_is_none():
    assert rounds_in(session("round-3")) == ()


def test_junk_is_named_and_not_counted():
    files = session(
        "round-1/final.md", "round-x/final.md", "round-01/a.md", "round-2.set-aside-1/a.md", "notes"
    )
    assert junk_in(files, folders_in(files).values()) == ("round-01", "round-x")
    assert resolve(rounds_in(files)).current_round == 2


def test_new_rounds_are_unpadded():
    assert round_files(8).folder == "rounds/round-8"


def test_the_phases_have_their_numbers():
    assert [(p.number, p.value) for p in Phase] == [
        (1, "context"),
        (2, "change-context"),
        (3, "analysis"),
        (4, "reviews"),
        (5, "aggregation"),
        (6, "discourse"),
        (7, "synthesis"),
        (8, "complete"),
    ]


def test_a_slash_in_a_branch_becomes_a_hyphen():
    assert session_name(date(2026, 11, 15), "fix/a") == "2026-11-15-fix-a"
    assert session_name(date(2026, 11, 15), "fix/a", 2) == "2026-11-15-fix-a-2"


@given(st.text(max_size=300), st.integers(1, 99))
def test_a_session_is_always_a_safe_folder_of_its_day(branch, again):
    name = session_name(date(2026, 1, 2), branch, again)
    assert is_safe_name(name)
    assert day_of(name) == "2026-01-02"


def test_long_branches_that_differ_only_at_their_end_differ():
    first, second = ("x" * 200 + end for end in "ab")
    assert session_name(date(2026, 1, 2), first) != session_name(date(2026, 1, 2), second)


def test_a_reviewer_is_a_type_and_a_number():
    assert is_reviewer("principal-1")
    assert not any(
        is_reviewer(n) for n in ("principal", "principal-0", "../x-1", "a/b-1", "principal-1.json.tried-1")
    )
