"""What a coding agent is told when it starts: valid, bounded, fast, and never a failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scratch import environment, git

from rondel.cli import hook
from rondel.workflows.feature import start_feature, update_phase_state

T1, T2 = "2026-11-15T10:00:00+00:00", "2026-11-15T11:00:00+00:00"
HEAVY = (
    "click",
    "pydantic",
    "rich",
    "platformdirs",
    "asyncio",
    "typing_extensions",
    "pathlib",
    "dataclasses",
)


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    return root


def change(root: Path, folder: str, **fields: object) -> None:
    path = root / folder / ".meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def run_hook(cwd: Path, stdin: str = "", event: str = "session-start") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rondel", "hook", event],
        cwd=cwd,
        env=environment(cwd.parent),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def context(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0
    body = json.loads(done.stdout)
    own = body.get("hookSpecificOutput")
    if own is None:
        assert body == {}
        return ""
    assert own == {"hookEventName": "SessionStart", "additionalContext": body["additionalContext"]}
    return body["additionalContext"]


def test_it_shows_each_active_feature_its_phase_and_the_next_command(root):
    ref = start_feature(root, "OAuth login", brainstorm="# B\n")
    said = context(run_hook(root))
    assert "001-oauth-login" in said
    assert "OAuth login" in said
    assert "specify is next" in said
    assert "/rondel:specify" in said
    assert update_phase_state(root / ref.folder, "specify", {"started": T2})
    assert "specify is under way" in context(run_hook(root))


def test_only_active_features_are_shown(root):
    for title in ("One", "Two", "Three"):
        start_feature(root, title)
    change(root, "docs/features/001-one", status="completed")
    change(root, "docs/features/002-two", status="abandoned")
    said = context(run_hook(root))
    assert "003-three" in said
    assert "001-one" not in said
    assert "002-two" not in said


def test_somebody_in_another_place_is_told_where_the_worktree_is(root):
    ref = start_feature(root, "Add")
    change(root, ref.folder, worktree="../repo-001-add")
    said = context(run_hook(root))
    assert said.count("WARNING") == 1
    assert str(root.parent / "repo-001-add") in said


def test_inside_the_worktree_there_is_no_warning_and_the_feature_is_found(root):
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    git(root, "worktree", "add", "-q", "../repo-001-add")
    ref = start_feature(root, "Add")
    change(root, ref.folder, worktree="../repo-001-add")
    deep = root.parent / "repo-001-add/src"
    deep.mkdir()
    said = context(run_hook(deep))
    assert "001-add" in said
    assert "WARNING" not in said


def test_a_worktree_with_features_of_its_own_shows_those_unless_it_is_a_features(root):
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    git(root, "worktree", "add", "-q", "../other")
    other = root.parent / "other"
    ref = start_feature(root, "Main")
    start_feature(other, "Own")
    assert "001-own" in context(run_hook(other))
    change(root, ref.folder, worktree="../other")
    said = context(run_hook(other))
    assert "001-main" in said
    assert "001-own" not in said


def test_the_host_says_where_it_is_on_standard_input(root, tmp_path):
    start_feature(root, "Add")
    assert context(run_hook(tmp_path)) == ""
    assert "001-add" in context(run_hook(tmp_path, json.dumps({"cwd": str(root)})))
    assert context(run_hook(tmp_path, '{"cwd": "/no/such/folder"}')) == ""
    assert "001-add" in context(run_hook(root, "{broken"))


def test_an_open_standard_input_that_says_nothing_does_not_hold_it_up(root):
    start_feature(root, "Add")
    with subprocess.Popen(
        [sys.executable, "-m", "rondel", "hook", "session-start"],
        cwd=root,
        env=environment(root.parent),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert b"001-add" in child.stdout.read()
        assert child.wait(10) == 0


def test_nothing_to_say_is_an_empty_object(root, tmp_path):
    assert context(run_hook(root)) == ""
    assert context(run_hook(tmp_path)) == ""


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"status": "active"}}', "\x00", ""])
def test_a_broken_document_is_a_message_and_the_others_are_shown(root, text):
    start_feature(root, "Good")
    start_feature(root, "Bad")
    (root / "docs/features/002-bad/.meta.json").write_text(text)
    said = context(run_hook(root))
    assert "001-good" in said
    assert "002-bad/.meta.json" in said
    assert "rondel doctor" in said


def test_a_broken_project_is_a_message_not_an_error(root):
    (root / "docs").mkdir()
    (root / "docs/features").write_text("a file where a folder should be")
    assert context(run_hook(root)) == ""
    (root / "docs/features").unlink()
    start_feature(root, "Add")
    (root / "docs/features/001-add/.meta.json").unlink()
    (root / "docs/features/001-add/.meta.json").mkdir()
    assert "001-add" in context(run_hook(root))
    (root / "docs/features/001-add/.meta.json").rmdir()
    os.mkfifo(root / "docs/features/001-add/.meta.json")
    assert "001-add" in context(run_hook(root))


def test_trouble_nobody_thought_of_is_a_message_too(root, monkeypatch, capsys):
    def trouble(_cwd: str) -> str:
        raise ZeroDivisionError('oh "dear"\n')

    monkeypatch.setattr(hook, "session_start", trouble)
    assert hook.main(["hook", "session-start"]) == 0
    assert "oh 'dear'" in json.loads(capsys.readouterr().out)["additionalContext"]


def test_an_unknown_event_does_not_fail_the_host(root):
    done = run_hook(root, event="no-such-event")
    assert done.returncode == 0
    assert done.stdout == ""
    assert "session-start" in done.stderr


@settings(max_examples=60, deadline=None)
@example(name="x", worktree="\x00", phase="", notes="")
@given(
    name=st.text(max_size=300),
    worktree=st.none() | st.text(max_size=50),
    phase=st.text(max_size=20),
    notes=st.text(max_size=50),
)
def test_its_output_is_valid_json_for_every_title_note_and_path(
    tmp_path_factory, name, worktree, phase, notes
):
    root = tmp_path_factory.mktemp("r")
    (root / ".git").mkdir()
    folder = root / "docs/features/001-x"
    folder.mkdir(parents=True)
    meta = {
        "name": name,
        "status": "active",
        "worktree": worktree,
        "currentPhase": phase,
        "phases": {phase: {"started": notes, "reviewerNotes": notes}},
    }
    (folder / ".meta.json").write_text(json.dumps(meta))
    said = hook.session_start(str(root))
    line = hook.answer("SessionStart", said)
    assert json.loads(line)["additionalContext"] == said
    line.encode("ascii")
    assert "\n" not in line
    shown = [part for part in said.splitlines() if part.startswith("- feature")]
    assert len(shown) == 1, "no title makes a second line"
    assert shown[0].count('"') == 2, "no title ends its quotation"


def test_many_features_give_a_bounded_message(root):
    for number in range(1, 31):
        folder = root / f"docs/features/{number:03d}-x"
        folder.mkdir(parents=True)
        (folder / ".meta.json").write_text(json.dumps({"status": "active", "name": "y" * 5000, "phases": {}}))
    said = context(run_hook(root))
    assert len(said) < 10_000
    assert "and 20 more" in said
    assert "030-x" in said


def test_it_imports_nothing_heavy():
    code = "import sys; from rondel.cli import hook; hook.session_start('/'); print(' '.join(sys.modules))"
    bare = "import sys; print(' '.join(sys.modules))"
    loaded, before = (
        set(
            subprocess.run(
                [sys.executable, "-c", c], capture_output=True, text=True, check=True
            ).stdout.split()
        )
        for c in (code, bare)
    )
    assert not (loaded - before) & set(HEAVY)
    ours = {name for name in loaded if name.startswith("rondel.")}
    assert ours == {
        "rondel.cli",
        "rondel.cli.hook",
        "rondel.errors",
        "rondel.model",
        "rondel.model.texts",
        "rondel.model.jsons",
        "rondel.model.times",
        "rondel.paths",
        "rondel.workflows",
        "rondel.workflows.feature",
        "rondel.workflows.feature.hook",
        "rondel.workflows.feature.meta",
        "rondel.workflows.feature.phases",
        "rondel.workflows.feature.place",
    }
