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

from rondel.agents.base import AgentSettings
from rondel.agents.roster import build
from rondel.agents.vendors.state import Guard
from rondel.agents.vendors.watched import Watched, named_in


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


STATES = {"claude": ".claude", "codex": ".codex", "gemini": ".gemini", "opencode": ".config/opencode"}
SETTINGS = {
    "claude": """local/claude local/node_modules/.bin/claude scripts/hook.sh workflows/x.js
        remote-settings.json settings.json settings.local.json skills/x/SKILL.md
        jobs/x.json daemon/x daemon.json loop.md""",
    "codex": """.env agents/x.toml plugins/x/plugin.json skills/x/SKILL.md work.config.toml
        packages/standalone/current/codex config.toml""",
    "gemini": """agents/x.md trusted_hooks.json memory.md mcp-server-enablement.json settings.json
        antigravity/mcp_config.json""",
    "opencode": "mode/x.md modes/x.md config opencode.json",
}
INSTALLED = {
    "claude": ".claude/session-env/5c1d/sessionstart-hook-0.sh",
    "codex": ".codex/skills/.system/x/SKILL.md",
    "gemini": ".gemini/tmp/bin/rg",
    "opencode": """.local/share/opencode/bin/rg .cache/opencode/bin/rg .cache/opencode/node_modules/x/index.js
        .cache/opencode/packages/x/index.js .config/opencode/node_modules/@opencode-ai/plugin/index.js""",
}
WORKS = {
    "claude": """.claude/projects/-x/a.jsonl .claude/.credentials.json
        .claude/plugins/store/x.json .claude/backups/x .claude/history.jsonl""",
    "codex": """.codex/auth.json .codex/sessions/2026/x.jsonl .codex/state_5.sqlite .codex/.sandbox_migration
        .codex/installation_id .codex/version.json .codex/models_cache.json""",
    "gemini": ".gemini/tmp/x/chats/a.jsonl .gemini/history/x/.project_root .gemini/oauth_creds.json",
    "opencode": """.local/share/opencode/opencode.db .local/share/opencode/snapshot/a/hooks/x.sample
        .config/opencode/.gitignore .local/state/opencode/locks/x .cache/opencode/models.json""",
}


def each(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(kind, name) for kind, names in table.items() for name in names.split()]


def written(path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def vendor_guard(kind: str, tmp_path) -> Guard:
    env = {"HOME": str(tmp_path)}
    one = Guard(tmp_path / "notes", build(AgentSettings("a", kind)).watched(env, tmp_path))
    assert one.begin() == ""
    return one


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize(("kind", "name"), each(SETTINGS))
def test_what_decides_how_a_vendor_s_cli_behaves_is_as_it_was(tmp_path, kind, name, was_there):
    place = tmp_path / STATES[kind] / name
    if was_there:
        written(place, "mine")
    one = vendor_guard(kind, tmp_path)
    written(place, "owned")
    assert f"{place} was {'changed' if was_there else 'added'} (undone" in one.end(tmp_path / "aside")
    assert (place.read_text() if place.exists() else None) == ("mine" if was_there else None)
    assert "owned" in "".join(tree(tmp_path / "aside").values())


@pytest.mark.parametrize(("kind", "name"), each(INSTALLED))
def test_what_a_cli_installed_before_is_as_it_was(tmp_path, kind, name):
    place = tmp_path / name
    written(place, "mine")
    one = vendor_guard(kind, tmp_path)
    written(place, "owned")
    assert f"{place} was changed (undone" in one.end(tmp_path / "aside")
    assert place.read_text() == "mine"


@pytest.mark.parametrize(("kind", "name"), each(INSTALLED))
def test_what_a_cli_may_have_installed_goes_when_the_last_run_has_ended(tmp_path, kind, name):
    place = tmp_path / name
    first, second = vendor_guard(kind, tmp_path), vendor_guard(kind, tmp_path)
    written(place, "installed, or owned", 0o755)
    assert first.end(tmp_path / "aside") == ""
    assert place.exists()
    assert second.end(tmp_path / "aside") == ""
    assert not place.exists()


@pytest.mark.parametrize(
    ("kind", "folder", "mark"),
    [
        ("codex", ".codex/skills/.system", ".codex/skills/.system/.codex-system-skills.marker"),
        ("opencode", ".config/opencode/node_modules", ".config/opencode/package.json"),
        ("opencode", ".config/opencode/node_modules", ".config/opencode/bun.lock"),
        ("opencode", ".cache/opencode/node_modules", ".cache/opencode/version"),
    ],
)
def test_what_a_newer_cli_installed_in_place_of_the_old_is_installed_anew(tmp_path, kind, folder, mark):
    written(tmp_path / folder / "x/part.js", "old")
    written(tmp_path / mark, "1")
    one = vendor_guard(kind, tmp_path)
    written(tmp_path / folder / "x/part.js", "new, or owned")
    written(tmp_path / mark, "2")
    assert one.end(tmp_path / "aside") == ""
    assert not (tmp_path / folder).exists()
    assert not (tmp_path / mark).exists() or (tmp_path / mark).read_text() == "1"


def test_a_link_in_place_of_what_a_cli_installs_is_undone(tmp_path):
    written(tmp_path / "elsewhere/rg", "not ours")
    written(tmp_path / ".gemini/tmp/bin/rg", "mine")
    one = vendor_guard("gemini", tmp_path)
    shutil.rmtree(tmp_path / ".gemini/tmp/bin")
    (tmp_path / ".gemini/tmp/bin").symlink_to(tmp_path / "elsewhere")
    assert "bin was added (undone" in one.end(tmp_path / "aside")
    assert (tmp_path / ".gemini/tmp/bin/rg").read_text() == "mine"
    assert (tmp_path / "elsewhere/rg").read_text() == "not ours"


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize("kind", WORKS)
def test_what_a_vendor_s_cli_writes_at_every_run_is_not_spoken_of(tmp_path, kind, was_there):
    def mode(place) -> int:  # on some file systems every file can be run
        return 0o755 if place.suffix in (".sh", ".sample", ".json", ".jsonl", ".sqlite", ".db") else 0o644

    places = [tmp_path / name for name in WORKS[kind].split()]
    if was_there:
        for place in places:
            written(place, "{}", mode(place))
    one = vendor_guard(kind, tmp_path)
    for place in places:
        written(place, '{"a": {}}', mode(place))
    assert one.end(tmp_path / "aside") == ""
    assert all(place.read_text() == '{"a": {}}' for place in places)


LIVE = {  # of a CLI of the person's that is open
    "claude": ".claude/shell-snapshots/snapshot-bash-1-a.sh",
    "codex": ".codex/shell_snapshots/a.sh .codex/tmp/arg0-linux/codex-arg0a/apply_patch",
}


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize(("kind", "name"), each(LIVE))
def test_what_an_open_cli_made_for_itself_may_come_and_go(tmp_path, kind, name, was_there):
    place = tmp_path / name
    if was_there:
        written(place, "mine")
    one = vendor_guard(kind, tmp_path)
    place.unlink(missing_ok=True)
    other = place.with_name("b.sh")
    written(other, "of a CLI that began later")
    assert one.end(tmp_path / "aside") == ""
    assert other.exists()


@pytest.mark.parametrize("how", ["written to", "replaced", "a link", "a link to its folder"])
@pytest.mark.parametrize(("kind", "name"), each(LIVE))
def test_what_an_open_cli_runs_is_taken_away_where_it_was_changed(tmp_path, kind, name, how):
    place = tmp_path / name
    written(place, "mine")
    written(tmp_path / "elsewhere" / place.name, "owned")
    one = vendor_guard(kind, tmp_path)
    if how == "a link to its folder":
        shutil.rmtree(place.parent)
        place.parent.symlink_to(tmp_path / "elsewhere")
    elif how == "written to":
        place.write_text("owned")
    else:
        place.unlink()
        place.symlink_to(tmp_path / "elsewhere" / place.name) if how == "a link" else written(place, "owned")
    said = one.end(tmp_path / "aside")
    assert f"{place} was changed (undone" in said
    assert not place.exists()
    assert (tmp_path / "elsewhere" / place.name).read_text() == "owned"
    assert how.startswith("a link") or "owned" in "".join(tree(tmp_path / "aside").values())


@pytest.mark.parametrize(
    "setting",
    [
        {"env": {"NODE_OPTIONS": "--require /x"}},
        {"bypassPermissionsModeAccepted": True},
        {"mcpServers": {"a": {"command": "x"}}},
        {"customApiKeyResponses": {"approved": ["x"]}},
        {"projects": {"/r": {"hasClaudeMdExternalIncludesApproved": True}}},
        {"projects": {"/r": {"hasTrustDialogAccepted": True}}},
        {"projects": {"/r": {"enabledMcpServers": ["x"]}}},
        {"projects": {"/r": {"disabledMcpjsonServers": ["x"]}}},
        {"projects": {"/r": {"enableAllProjectMcpServers": True}}},
    ],
)
def test_a_setting_among_claude_s_counts_is_undone_and_the_counts_stay(tmp_path, setting):
    written(tmp_path / ".claude.json", '{"numStartups": 1}')
    one = vendor_guard("claude", tmp_path)
    written(tmp_path / ".claude.json", json.dumps({"numStartups": 2, "installMethod": "native", **setting}))
    assert "was added (undone" in one.end(tmp_path / "aside")
    left = json.loads((tmp_path / ".claude.json").read_text())
    assert (left.pop("numStartups"), left.pop("installMethod")) == (2, "native")
    assert left in ({}, {"projects": {"/r": {}}})


def test_a_login_is_renewed_and_none_is_added(tmp_path):
    place = tmp_path / ".local/share/opencode/auth.json"
    mine = {"anthropic": {"type": "oauth", "refresh": "1"}, "openai": {"type": "api", "key": "k"}}
    written(place, json.dumps(mine))
    one = vendor_guard("opencode", tmp_path)
    mine["anthropic"]["refresh"] = "2"
    added = {"https://evil.test": {"type": "wellknown", "key": "X", "token": "owned"}}
    written(place, json.dumps(mine | added), 0o600)
    assert "https://evil.test of" in one.end(tmp_path / "aside")
    assert json.loads(place.read_text()) == mine
    assert "owned" in "".join(tree(tmp_path / "aside").values())
    one = vendor_guard("opencode", tmp_path)
    written(place, json.dumps(mine | {"openai": {"type": "wellknown", "key": "X", "token": "y"}}), 0o600)
    assert "openai of" in one.end(tmp_path / "aside")
    assert json.loads(place.read_text()) == {"anthropic": mine["anthropic"]}


@pytest.mark.parametrize(
    "command",
    [
        "~/.claude/own/x.sh",
        "bash ~/.claude/own/x.sh --flag",
        "bash -c 'cd /tmp && node \"${HOME}/.claude/own/x.sh\"'",
        '"$HOME"/.claude/own/x.sh 2>/dev/null | head -1',
        "$CLAUDE_CONFIG_DIR/own/x.sh",
        "FOO=1 BAR={home}/.claude/own/x.sh run",
        "./own/x.sh",
        "{home}/.claude/other/../own/x.sh",
    ],
)
@pytest.mark.parametrize("was_there", [False, True])
def test_a_file_that_settings_name_is_as_it_was(tmp_path, command, was_there):
    settings = {"statusLine": {"type": "command", "command": command.replace("{home}", str(tmp_path))}}
    written(tmp_path / ".claude/settings.json", json.dumps(settings))
    place = tmp_path / ".claude/own/x.sh"
    if was_there:
        written(place, "mine")
    one = vendor_guard("claude", tmp_path)
    written(place, "owned")
    assert f"{place} was {'changed' if was_there else 'added'} (undone" in one.end(tmp_path / "aside")
    assert (place.read_text() if place.exists() else None) == ("mine" if was_there else None)


def test_a_program_that_settings_name_through_a_link_is_as_it_was(tmp_path):
    written(tmp_path / ".codex/config.toml", '[mcp_servers.a]\ncommand = "~/.codex/now"\nargs = ["x"]\n')
    written(tmp_path / ".codex/versions/1", "mine")
    (tmp_path / ".codex/now").symlink_to("versions/1")
    one = vendor_guard("codex", tmp_path)
    written(tmp_path / ".codex/versions/1", "owned")
    assert "versions/1 was changed (undone" in one.end(tmp_path / "aside")
    one = vendor_guard("codex", tmp_path)
    written(tmp_path / ".codex/versions/2", "owned")
    (tmp_path / ".codex/now").unlink()
    (tmp_path / ".codex/now").symlink_to("versions/2")
    assert ".codex/now was changed (undone" in one.end(tmp_path / "aside")
    assert (tmp_path / ".codex/now").read_text() == "mine"


def test_what_a_hook_writes_is_no_file_that_decides(tmp_path):
    hook = "jq -r .x >> ~/.claude/seen.txt; date | tee -a ~/.claude/when.txt; x ~/.claude/a.log ~/.claude/k"
    settings = {"hooks": {"Stop": [hook]}, "permissions": {"allow": ["Edit(~/.claude/notes.md)"]}}
    written(tmp_path / ".claude/settings.json", json.dumps(settings))
    one = vendor_guard("claude", tmp_path)
    for name in ("seen.txt", "when.txt", "a.log", "k/x", "notes.md"):
        written(tmp_path / ".claude" / name, "by the hook")
    assert one.end(tmp_path / "aside") == ""


@pytest.mark.parametrize(("kind", "folder"), STATES.items())
def test_a_program_that_was_there_is_as_it_was(tmp_path, kind, folder):
    program = tmp_path / folder / "own/deep/tool"
    written(program, "mine", 0o755)
    written(tmp_path / folder / "own/deep/text", "mine")
    one = vendor_guard(kind, tmp_path)
    written(program, "owned", 0o755)
    written(tmp_path / folder / "own/deep/text", "new")
    assert f"{program} was changed (undone" in one.end(tmp_path / "aside")
    assert (program.read_text(), program.stat().st_mode & 0o777) == ("mine", 0o755)
    one = vendor_guard(kind, tmp_path)
    program.unlink()
    assert f"{program} was removed (undone" in one.end(tmp_path / "aside")


def test_many_files_deep_down_hide_no_program_above_them(tmp_path, monkeypatch):
    monkeypatch.setattr("rondel.agents.vendors.watched.ENTRIES_MAX", 50)
    written(tmp_path / ".claude/own/tool", "mine", 0o755)
    for number in range(100):
        written(tmp_path / f".claude/a/b/{number}", "x", 0o755)
    one = vendor_guard("claude", tmp_path)
    written(tmp_path / ".claude/own/tool", "owned", 0o755)
    assert "own/tool was changed (undone" in one.end(tmp_path / "aside")


@given(st.text(max_size=200))
def test_any_text_names_whole_paths_or_none(text):
    assert all(os.path.isabs(path) for path in named_in(text, "/state", "/home/me"))  # noqa: PTH117
