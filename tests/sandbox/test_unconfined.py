"""Where this machine has no sandbox: it is said, and nothing runs where one is required."""

from __future__ import annotations

from pathlib import Path

import pytest

from rondel.sandbox import box, landlock
from support.world import World

NONE = "sandbox: none: this machine has no Landlock"


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A repository to review on a machine without Landlock."""
    monkeypatch.setattr(landlock, "version", lambda: 0)
    return World(tmp_path, "review", more_env={"RONDEL_SANDBOX": "auto"})


def test_it_is_said_once_per_repository_that_nothing_is_confined(world):
    code, said = world.typed("review")
    assert code == 0, said
    assert said.count(NONE) == 1
    code, said = world.typed("review", "--again")
    assert code == 0, said
    assert NONE not in said


def test_it_is_said_each_time_where_a_folder_has_no_id_to_note_it_under(world):
    (world.root / ".git").rename(world.folder / "elsewhere")
    (world.root / ".git").write_text(f"gitdir: {world.folder / 'elsewhere'}\n")
    for words in (("review",), ("review", "--again")):
        code, said = world.typed(*words)
        assert code == 0, said
        assert said.count(NONE) == 1


@pytest.mark.parametrize("how", ["settings", "environment"])
@pytest.mark.parametrize("command", [("review",), ("task", "run")], ids=" ".join)
def test_where_one_is_required_and_not_there_nothing_runs(world, how, command):
    ran = world.folder / "ran"
    touch = f"touch {ran}"
    more = f'[agents.program]\nkind = "command"\ncommand = ["sh", "-c", "{touch}; echo Fine"]\n'
    settings = f'[project]\nsetup = "{touch}"\n[roles]\ndefault = "program"\n[review]\nteam = "quality:1"\n'
    world.configure(more, settings)
    if how == "settings":
        own = world.folder / "home/.config/rondel"
        own.mkdir(parents=True)
        (own / "config.toml").write_text('[sandbox]\nmode = "required"\n')
        world.more_env = {"RONDEL_SANDBOX": ""}
    else:
        world.more_env = {"RONDEL_SANDBOX": "required"}
    for words in (("task", "start", "Add it"), ("task", "add", "Add it")):
        assert world.typed(*words)[0] == 0
    code, said = world.typed(*command)
    assert code == 1, said
    assert "a sandbox is required and this machine has none" in said
    assert not ran.exists()
    world.more_env = {"RONDEL_SANDBOX": "none"}
    world.typed(*command)
    assert ran.exists(), "with none it would have run"


def test_what_an_older_kernel_does_not_hold_is_said_and_written_down(monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: landlock.NEEDED)
    assert "files (not signals and abstract sockets: Linux 6.12)" in box.held("auto")
    monkeypatch.setattr(landlock, "version", lambda: landlock.SCOPES)
    assert "files, signals and abstract sockets;" in box.held("auto")
    top = Path(__file__).parents[2]
    for page, section in (("docs/sandbox.md", "## What it does not stop"), ("SECURITY.md", "## What is not")):
        said = (top / page).read_text().partition(f"{section}\n")[2].partition("\n## ")[0]
        assert "before Linux 6.12" in said, page
        assert "signals" in said.lower(), page
        assert "abstract sockets" in said.lower(), page
