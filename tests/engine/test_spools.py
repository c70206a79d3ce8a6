"""What agents said stays within a bound, and what may still be needed stays."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from harness import REF, project, repository, start
from hypothesis import given
from hypothesis import strategies as st

from rondel.agents.base import Reply, Request
from rondel.engine import spools
from rondel.engine.spools import prune
from rondel.model.outcomes import Ended
from rondel.testing.scripted import Scripted, run_of


def spool(folder: Path, slot: str, number: int, size: int, age_s: float) -> Path:
    made = folder / slot / str(number)
    (made / "scratch").mkdir(parents=True)
    (made / "out").write_bytes(b"x" * (size // 2))
    (made / "scratch/file").write_bytes(b"x" * (size - size // 2))
    os.utime(made, (1e9 - age_s, 1e9 - age_s))
    return made


def test_the_oldest_tries_go_first_and_those_that_are_needed_stay(tmp_path):
    kept = spool(tmp_path, "needed", 1, 500, 400)
    old = spool(tmp_path, "a", 1, 300, 300)
    newer = [spool(tmp_path, "a", 2, 300, 200), spool(tmp_path, "b", 1, 300, 100)]
    assert prune(tmp_path, frozenset({"needed"}), 1100) == 1
    assert not old.exists()
    assert all(path.exists() for path in (kept, *newer))
    assert prune(tmp_path, frozenset({"needed"}), 1100) == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), max_size=12), st.integers(0, 300))
def test_no_more_is_left_than_allowed_and_no_more_goes_than_must(tmp_path_factory, tries, most):
    folder = tmp_path_factory.mktemp("spools")
    for number, (slot, size) in enumerate(tries):
        spool(folder, slot, number, size, 100 - number)
    prune(folder, frozenset(), most)
    left = sorted(int(p.name) for p in folder.glob("*/*"))
    assert left == list(range(len(tries) - len(left), len(tries))), "the newest are left"
    assert sum(tries[n][1] for n in left) <= most
    if len(left) < len(tries):
        assert sum(size for _, size in tries[-len(left) - 1 :]) > most


def test_a_run_leaves_no_more_than_the_bound_but_for_what_it_will_go_on_with(tmp_path, monkeypatch):
    monkeypatch.setattr(spools, "SPOOLS_MAX", 0)
    root = repository(tmp_path / "repo")
    start(root, auto=True, width=3)
    until = datetime.now(UTC) + timedelta(hours=1)

    def answer(request: Request) -> Reply | str:
        if request.action.endswith("/2.md"):
            return Reply(Ended.PARKED, error="limit", until=until, vendor_session="s")
        return "Yes.\n"

    project(root, Scripted(answer)).run(REF)
    left = [p.parent.name for p in (run_of(root / REF.folder) / "spool").glob("*/*")]
    assert len(left) == 1
    assert "2.md" in left[0]
    assert project(root).run(REF, unpark=True).exit_code == 0


def test_a_folder_that_is_not_there_holds_nothing(tmp_path):
    assert prune(tmp_path / "nowhere", frozenset(), 0) == 0


@pytest.mark.parametrize("place", ["outside", "outside/file"])
def test_nothing_is_removed_through_a_link(tmp_path, place):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("mine")
    made = spool(tmp_path / "spools", "a", 1, 10, 0)
    (made / "link").symlink_to(tmp_path / place)
    (tmp_path / "spools/b").symlink_to(tmp_path / "outside")
    assert prune(tmp_path / "spools", frozenset(), 0) == 1
    assert (tmp_path / "outside/file").read_text() == "mine"
