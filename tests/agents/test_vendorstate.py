"""What decides how the person's CLI behaves stays as it was, whatever runs; and they are told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.agents.vendorstate import Guard, Watched


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    (home / "hooks").mkdir(parents=True)
    (home / "settings.json").write_text('{"hooks": {}}\n')
    (home / "hooks/first.sh").write_text("echo\n")
    (home / "state.json").write_text(json.dumps({"mcpServers": {"a": {}}, "count": 1, "projects": {}}))
    return home


def watched(home) -> Watched:
    keys = ("mcpServers", "projects.*.allowedTools")
    return Watched((home / "settings.json", home / "hooks"), {home / "state.json": keys})


def guard(home, tmp_path) -> Guard:
    one = Guard(tmp_path / "notes", watched(home))
    one.begin()
    return one


def tree(home) -> dict[str, str]:
    return {str(p.relative_to(home)): p.read_text() for p in sorted(home.rglob("*")) if p.is_file()}


def test_what_is_not_changed_is_not_spoken_of(home, tmp_path):
    one = guard(home, tmp_path)
    (home / "history.jsonl").write_text("what the CLI writes by itself\n")
    document = json.loads((home / "state.json").read_text())
    (home / "state.json").write_text(
        json.dumps(document | {"count": 2, "projects": {"/x": {"allowedTools": [], "seen": True}}})
    )
    (home / "settings.json").write_text('{"hooks": {}}\n')  # written anew, and the same
    assert one.end(tmp_path / "aside") == ""
    assert not (tmp_path / "aside").exists()


def test_a_change_is_undone_kept_aside_and_named(home, tmp_path):
    before = tree(home)
    one = guard(home, tmp_path)
    (home / "settings.json").write_text('{"hooks": {"Stop": "touch owned"}}\n')
    (home / "hooks/second.sh").write_text("owned\n")
    (home / "hooks/first.sh").unlink()
    words = one.end(tmp_path / "aside")
    assert tree(home) == before
    for name in ("settings.json was changed", "second.sh was added", "first.sh was removed"):
        assert name in words
    kept = "".join(p.read_text() for p in (tmp_path / "aside").iterdir())
    assert "touch owned" in kept
    assert "owned\n" in kept


def test_of_a_document_that_the_cli_writes_itself_only_the_lists_are_put_back(home, tmp_path):
    one = guard(home, tmp_path)
    document = json.loads((home / "state.json").read_text())
    document |= {"mcpServers": {"evil": {"command": "x"}}, "count": 7}
    document["projects"] = {"/x": {"allowedTools": ["Bash(*)"], "seen": True}}
    (home / "state.json").write_text(json.dumps(document))
    words = one.end(tmp_path / "aside")
    assert "mcpServers of" in words
    assert "projects./x.allowedTools of" in words
    assert json.loads((home / "state.json").read_text()) == {
        "mcpServers": {"a": {}},
        "count": 7,
        "projects": {"/x": {"seen": True}},
    }


def test_a_file_that_became_a_link_is_a_file_again_and_the_link_is_not_followed(home, tmp_path):
    (tmp_path / "elsewhere").write_text("not ours\n")
    one = guard(home, tmp_path)
    (home / "settings.json").unlink()
    (home / "settings.json").symlink_to(tmp_path / "elsewhere")
    assert "settings.json was changed" in one.end(tmp_path / "aside")
    assert not (home / "settings.json").is_symlink()
    assert (home / "settings.json").read_text() == '{"hooks": {}}\n'
    assert (tmp_path / "elsewhere").read_text() == "not ours\n"


def test_one_that_begins_after_a_change_does_not_take_it_for_good(home, tmp_path):
    before = tree(home)
    first = guard(home, tmp_path)
    (home / "settings.json").write_text("owned\n")
    second = guard(home, tmp_path)
    assert first.end(tmp_path / "aside") != ""
    assert tree(home) == before
    assert second.end(tmp_path / "aside") == ""
    assert tree(home) == before


def test_what_the_person_changes_while_nothing_runs_counts(home, tmp_path):
    guard(home, tmp_path).end(tmp_path / "aside")
    (home / "settings.json").write_text("mine\n")
    assert guard(home, tmp_path).end(tmp_path / "aside") == ""
    assert (home / "settings.json").read_text() == "mine\n"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["settings.json", "hooks/first.sh", "hooks/x", "hooks/deep/y"]),
            st.none() | st.text(max_size=5),
        ),
        max_size=6,
    )
)
def test_whatever_is_written_everything_is_as_it_was(tmp_path_factory, writes):
    tmp_path = tmp_path_factory.mktemp("state")
    home = tmp_path / "home"
    (home / "hooks").mkdir(parents=True)
    (home / "settings.json").write_text("{}\n")
    (home / "hooks/first.sh").write_text("echo\n")
    before = tree(home)
    one = guard(home, tmp_path)
    for name, text in writes:
        if text is None:
            (home / name).unlink(missing_ok=True)
        else:
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).write_text(text)
    differs = tree(home) != before
    assert bool(one.end(tmp_path / "aside")) == differs
    assert tree(home) == before


def test_many_at_once_undo_it_once(home, tmp_path):
    before = tree(home)
    guards = [guard(home, tmp_path) for _ in range(4)]
    (home / "settings.json").write_text("owned\n")
    said: list[str] = []
    threads = [threading.Thread(target=lambda g=g: said.append(g.end(tmp_path / "aside"))) for g in guards]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([words for words in said if words]) == 1
    assert tree(home) == before


def test_a_name_that_looks_like_a_key_is_a_file(home, tmp_path):
    one = guard(home, tmp_path)
    (home / 'hooks/first.sh#["x"]').touch()
    (home / "hooks/a#b").touch()
    assert "could NOT" not in one.end(tmp_path / "aside")
    assert tree(home / "hooks") == {"first.sh": "echo\n"}


def test_a_name_that_is_no_text_blinds_nobody(home, tmp_path):
    one = guard(home, tmp_path)
    (home / "settings.json").write_text("owned\n")
    with open(os.path.join(os.fsencode(home), b"hooks/\xff"), "wb"):  # noqa: PTH118, PTH123
        pass
    words = one.end(tmp_path / "aside")
    assert "settings.json was changed (undone" in words
    assert (home / "settings.json").read_text() == '{"hooks": {}}\n'
    assert len(list((home / "hooks").iterdir())) == 1


def test_nothing_outside_is_touched_through_a_link_that_was_put_there(home, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "first.sh").write_text("not ours\n")
    one = guard(home, tmp_path)
    shutil.rmtree(home / "hooks")
    (home / "hooks").symlink_to(outside)
    assert "hooks was added" in one.end(tmp_path / "aside")
    assert tree(outside) == {"first.sh": "not ours\n"}
    assert tree(home / "hooks") == {"first.sh": "echo\n"}
    assert not (home / "hooks").is_symlink()


@pytest.mark.parametrize("name", [".state.json.tmp", ".state.json.rondel", "..state.json.rondel"])
def test_nothing_is_written_through_a_link_that_waits_for_it(home, tmp_path, name):
    (tmp_path / "bashrc").write_text("mine\n")
    one = guard(home, tmp_path)
    (home / name).symlink_to(tmp_path / "bashrc")
    document = json.loads((home / "state.json").read_text())
    (home / "state.json").write_text(json.dumps(document | {"mcpServers": {"evil": {}}}))
    assert "mcpServers of" in one.end(tmp_path / "aside")
    assert (tmp_path / "bashrc").read_text() == "mine\n"
    assert json.loads((home / "state.json").read_text())["mcpServers"] == {"a": {}}


@pytest.mark.parametrize("kind", ["pipe", "link", "nothing readable"])
def test_a_document_that_is_none_any_more_is_said_and_waited_for_by_nobody(home, tmp_path, kind):
    (tmp_path / "secret").write_text('{"auths": "secret"}')
    one = guard(home, tmp_path)
    (home / "state.json").unlink()
    if kind == "pipe":
        os.mkfifo(home / "state.json")
    elif kind == "link":
        (home / "state.json").symlink_to(tmp_path / "secret")
    else:
        (home / "state.json").write_text("[" * 100_000)
    assert "could NOT be undone" in one.end(tmp_path / "aside")
    assert "secret" not in "".join(tree(tmp_path / "aside").values())


def test_folders_without_end_hide_nothing(home, tmp_path):
    one = guard(home, tmp_path)
    (home / "settings.json").write_text("owned\n")
    here = os.open(home / "hooks", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert "settings.json was changed (undone" in one.end(tmp_path / "aside")
    subprocess.run(["rm", "-rf", str(home / "hooks")], check=True)


def test_what_a_run_left_whose_driver_died_is_said_by_the_next(home, tmp_path):
    first = Guard(tmp_path / "notes", watched(home))
    assert first.begin() == ""
    (home / "settings.json").write_text("owned\n")
    os.close(first._in_use)  # as if its driver had died
    second = Guard(tmp_path / "notes", watched(home))
    assert "settings.json is not as it was" in second.begin()
    assert second.end(tmp_path / "aside") == ""
    third = Guard(tmp_path / "notes", watched(home))
    assert third.begin() == ""
    third.end(tmp_path / "aside")
