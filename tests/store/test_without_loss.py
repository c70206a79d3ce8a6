"""Writing without loss: what somebody else wrote under the name of one of our files is never destroyed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rondel.errors import RondelError
from rondel.model.changes import Change, Edit, Write, text
from rondel.model.marks import WRITTEN, is_theirs
from rondel.model.names import digest
from rondel.store import disk, files
from rondel.store.changes import Written, apply_changes, write_ours
from rondel.store.snapshot import DiskSnapshot
from rondel.testing.faults import killed_at

MINE = "Mine.\n"
ASIDE = ".rondel/aside"


def there(folder: Path) -> dict[str, str]:
    """Every file but the record, its torn lines, and what keeps runtime out of git."""
    found = (p for p in sorted(folder.rglob("*")) if p.is_file())
    names = {str(p.relative_to(folder)): p.read_text() for p in found}
    return {n: t for n, t in names.items() if not n.startswith(WRITTEN) and n != ".rondel/.gitignore"}


def test_a_text_of_ours_is_replaced_and_nothing_is_put_aside(tmp_path):
    for words in ("One.", "Two.", "One."):
        assert not apply_changes(tmp_path, [text("a/spec.md", words)]).kept
    assert there(tmp_path) == {"a/spec.md": "One.\n"}


def test_a_text_that_was_there_before_is_kept_under_a_name_that_says_so(tmp_path):
    (tmp_path / "spec.md").write_text(MINE)
    [kept] = apply_changes(tmp_path, [text("spec.md", "Ours.")], seen={"spec.md": digest(MINE)}).kept
    assert (kept.file, kept.aside) == ("spec.md", f"{ASIDE}/spec.md.replaced-1")
    assert there(tmp_path) == {"spec.md": "Ours.\n", f"{ASIDE}/spec.md.replaced-1": MINE}


def test_a_text_that_came_while_the_action_ran_stays_and_ours_is_put_aside(tmp_path):
    (tmp_path / "spec.md").write_text(MINE)
    [kept] = apply_changes(tmp_path, [text("spec.md", "Ours.")], seen={"spec.md": None}).kept
    assert there(tmp_path) == {"spec.md": MINE, f"{ASIDE}/spec.md.unused-1": "Ours.\n"}
    assert kept.aside == f"{ASIDE}/spec.md.unused-1"


def test_a_view_is_right_again_whenever_somebody_wrote_there(tmp_path):
    (tmp_path / "TODO.md").write_text(MINE)
    apply_changes(tmp_path, [text("TODO.md", "Ours.", view=True)], seen={"TODO.md": None})
    assert there(tmp_path) == {"TODO.md": "Ours.\n", f"{ASIDE}/TODO.md.replaced-1": MINE}


@pytest.mark.parametrize("words", ["Mine.\n\nAnd ours.\n", "Mine.\nAnd ours.\n", "Mine.\n"])
def test_a_text_that_ours_begins_with_is_not_lost_and_not_put_aside(tmp_path, words):
    (tmp_path / "history.md").write_text(MINE)
    assert not apply_changes(tmp_path, [text("history.md", words)]).kept
    assert there(tmp_path) == {"history.md": words}


def test_a_text_that_is_only_the_beginning_of_a_word_of_ours_is_put_aside(tmp_path):
    (tmp_path / "a.md").write_text("Min")
    assert apply_changes(tmp_path, [text("a.md", MINE)]).kept


def test_a_text_that_is_archived_among_the_same_changes_is_not_put_aside_as_well(tmp_path):
    (tmp_path / "plan.json").write_text(MINE)
    changes = [Write("history/plan.json", MINE.encode()), text("plan.json", "Ours.")]
    assert not apply_changes(tmp_path, changes).kept
    assert there(tmp_path) == {"plan.json": "Ours.\n", "history/plan.json": MINE}


def test_every_text_that_is_replaced_has_a_name_of_its_own(tmp_path):
    for n in range(3):
        (tmp_path / "spec.md").write_text(f"Mine {n}.\n")
        apply_changes(tmp_path, [text("spec.md", f"Ours {n}.")])
    kept = [there(tmp_path)[f"{ASIDE}/spec.md.replaced-{n}"] for n in (1, 2, 3)]
    assert kept == ["Mine 0.\n", "Mine 1.\n", "Mine 2.\n"]


def test_a_very_long_name_is_kept_aside_too(tmp_path):
    path = "/".join(["a" * 60] * 6) + "/code.py"
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(MINE)
    [kept] = apply_changes(tmp_path, [text(path, "Ours.")]).kept
    assert (tmp_path / kept.aside).read_text() == MINE


def test_what_somebody_wrote_in_place_of_an_older_text_of_ours_is_theirs(tmp_path):
    """Ours from long ago, put back by hand: a person chose it."""
    for words in ("One.", "Two.", "Three."):
        apply_changes(tmp_path, [text("spec.md", words)])
    (tmp_path / "spec.md").write_text("One.\n")
    assert is_theirs(DiskSnapshot(tmp_path), "spec.md")
    assert apply_changes(tmp_path, [text("spec.md", "Four.")]).kept


def test_the_record_says_what_is_theirs_and_without_it_everything_is(tmp_path):
    write_ours(tmp_path, {"spec.md": "Ours.\n"})
    (tmp_path / "design.md").write_text(MINE)
    (tmp_path / "empty.md").write_text(" \n")
    shown = DiskSnapshot(tmp_path)
    names = ("spec.md", "design.md", "empty.md", "none.md")
    assert [is_theirs(shown, n) for n in names] == [False, True, False, False]
    (tmp_path / WRITTEN).unlink()
    assert is_theirs(DiskSnapshot(tmp_path), "spec.md")
    assert Written(tmp_path).ours("spec.md") == frozenset()


@pytest.mark.parametrize("junk", ["", "{", "[1]\n", '{"spec.md": 7}\n', "\0\n", '{"spec.md": [null]}\n'])
def test_a_damaged_record_is_no_reason_to_stop_and_makes_nothing_ours(tmp_path, junk):
    (tmp_path / ".rondel").mkdir()
    (tmp_path / WRITTEN).write_text(junk)
    (tmp_path / "spec.md").write_text(MINE)
    assert is_theirs(DiskSnapshot(tmp_path), "spec.md")
    apply_changes(tmp_path, [text("spec.md", "Ours.")])
    assert there(tmp_path)[f"{ASIDE}/spec.md.replaced-1"] == MINE
    assert not is_theirs(DiskSnapshot(tmp_path), "spec.md")


def test_two_processes_know_of_each_other_s_texts(tmp_path):
    one, other = Written(tmp_path), Written(tmp_path)
    apply_changes(tmp_path, [text("spec.md", "One.")], written=one)
    apply_changes(tmp_path, [text("spec.md", "Two.")], written=other)
    assert not apply_changes(tmp_path, [text("spec.md", "Three.")], written=one).kept
    assert there(tmp_path) == {"spec.md": "Three.\n"}


def test_somebody_who_never_stops_writing_is_told_so(tmp_path, monkeypatch):
    path = tmp_path / "spec.md"
    path.write_text(MINE)
    count = iter(range(10_000))

    def hook(operation: str, _: str) -> None:
        if operation == "sync":
            path.write_text(f"Mine {next(count)}.\n")

    monkeypatch.setattr(disk, "point", hook)
    with pytest.raises(RondelError, match=r"spec\.md cannot be written: somebody else keeps writing it"):
        apply_changes(tmp_path, [text("spec.md", "Ours.")])


# -- at any moment ------------------------------------------------------------------------------

OURS: list[Change] = [
    text("spec.md", "Ours, the second."),
    Edit("state.json", lambda body: {**body, "n": 1}),
    text("TODO.md", "Ours, the second.", view=True),
]


def begun(folder: Path, *, theirs: bool) -> Path:
    """A session with an older version of both files; where `theirs`, somebody has replaced it."""
    folder.mkdir(parents=True)
    apply_changes(folder, [text("spec.md", "Ours, the first."), text("TODO.md", "Ours, the first.")])
    if theirs:
        (folder / "spec.md").write_text("Mine, of spec.\n")
        (folder / "TODO.md").write_text("Mine, of todo.\n")
    return folder


@pytest.mark.parametrize("theirs", [False, True])
def test_a_death_at_any_point_loses_nothing_and_leaves_nothing_twice(tmp_path, theirs):
    calm = begun(tmp_path / "calm", theirs=theirs)
    apply_changes(calm, OURS)
    assert len(there(calm)) == (5 if theirs else 3)
    for point in range(1, 200):
        folder = begun(tmp_path / str(point), theirs=theirs)
        died = killed_at(point, lambda f=folder: apply_changes(f, OURS))
        files._swept.clear()  # the one who goes on has looked nowhere yet
        apply_changes(folder, OURS)
        assert there(folder) == there(calm), f"after a death at point {point}"
        shutil.rmtree(folder)
        if not died:
            assert point > 20
            return
    pytest.fail("it never came to its end")


@settings(deadline=None, max_examples=60)
@given(
    point=st.integers(1, 40),
    name=st.sampled_from(["spec.md", "TODO.md"]),
    declared=st.booleans(),
    theirs=st.booleans(),
    in_place=st.booleans(),
)
def test_a_save_at_any_point_is_found_again(tmp_path_factory, point, name, declared, theirs, in_place):
    folder = begun(tmp_path_factory.mktemp("saved") / "s", theirs=theirs)
    target = folder / name
    passed, saved = 0, False

    def hook(operation: str, path: str) -> None:
        nonlocal passed, saved
        passed += 1
        if passed >= point and not saved and not (operation == "rename" and path == os.fspath(target)):
            saved = True
            spot = target if in_place else target.with_name("beside")
            spot.write_text("Mine, at that moment.\n")
            if not in_place:
                spot.replace(target)

    seen = {n: digest((folder / n).read_bytes()) for n in ("spec.md", "TODO.md")} if declared else {}
    disk.point = hook
    try:
        apply_changes(folder, OURS, seen=seen)
    finally:
        disk.point = disk._nothing
    texts = list(there(folder).values())
    assert not saved or "Mine, at that moment.\n" in texts
    if theirs and not (saved and in_place):  # an editor that writes over a file has replaced it itself
        assert {"Mine, of spec.\n", "Mine, of todo.\n"} - {f"Mine, of {name[:4].lower()}.\n"} <= {*texts}
    files.sweep(os.fspath(folder))
    assert not list(folder.rglob(".rondel-tmp-*"))
