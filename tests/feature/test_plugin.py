"""The plugin: one source, rendered for each host, never over what a person wrote."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from rondel.errors import UsageError
from rondel.model.names import digest
from rondel.plugin import install_plugin
from rondel.plugin.__main__ import rendered
from rondel.plugin.claude import plugin_files
from rondel.plugin.commands import commands
from rondel.plugin.hosts import BEGIN, END, agents_section
from rondel.workflows.feature.phases import EXPECTATIONS, REVIEWED
from rondel.workflows.feature.prompt import source

TOP = Path(__file__).parent.parent.parent
HOSTS = ("claude", "codex", "gemini", "opencode")


def everything(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def front(text: str) -> dict[str, str]:
    head = text.split("---\n")[1]
    return {k: json.loads(v) for k, _, v in (line.partition(": ") for line in head.strip().splitlines())}


def test_the_files_in_the_repository_are_what_is_rendered():
    there = {
        str(p.relative_to(TOP)): p.read_text()
        for p in [*(TOP / "plugin").rglob("*"), TOP / ".claude-plugin/marketplace.json"]
        if p.is_file()
    }
    assert there == rendered(), "run `python -m rondel.plugin`"


def test_the_licence_is_the_one_of_the_project_everywhere():
    """`pyproject.toml` is the one source; the text in LICENSE and the plugin's manifest agree with it."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    name = project["license"]["text"]
    assert (TOP / "LICENSE").read_text().startswith(f"{name} License\n")
    assert json.loads(plugin_files()[".claude-plugin/plugin.json"])["license"] == name
    assert json.loads((TOP / "plugin/.claude-plugin/plugin.json").read_text())["license"] == name
    assert f"{name} licence." in (TOP / "README.md").read_text()


def test_the_prompts_of_the_reviewers_have_one_source():
    made = plugin_files()
    for name in ("chain-reviewer", "final-reviewer"):
        assert source(name) in made[f"agents/{name}.md"]
        assert source("verdict") in made[f"agents/{name}.md"]


def test_the_reviewers_can_only_read():
    for name in ("chain-reviewer", "final-reviewer"):
        head = front(plugin_files()[f"agents/{name}.md"])
        assert head["name"] == name
        assert set(head["tools"].split(", ")) == {"Read", "Grep", "Glob"}


def test_there_is_a_command_for_every_phase_and_for_review_status_and_finish():
    made = plugin_files()
    for name in (*REVIEWED, "review", "status", "finish"):
        text = made[f"commands/{name}.md"]
        assert front(text)["allowed-tools"] == "Bash(rondel:*)"
        assert f"rondel {'review' if name == 'review' else f'feature {name}'}" in text
        assert "$ARGUMENTS" in text
        assert "{{" not in text


def test_the_skill_has_the_tables_of_the_workflow():
    skill = plugin_files()["skills/workflow-state/SKILL.md"]
    assert front(skill)["name"] == "workflow-state"
    for needs in EXPECTATIONS.values():
        assert needs in skill
    for words in ("hotfix 1", "quick 2", "standard 3", "full 5", "`proceed`", "`warning`", "`blocked`"):
        assert words in skill


def test_the_hook_is_declared_for_the_start_of_a_session():
    hooks = json.loads(plugin_files()["hooks/hooks.json"])["hooks"]
    [entry] = hooks["SessionStart"]
    assert entry["matcher"] == "startup|resume|clear|compact"
    assert "${CLAUDE_PLUGIN_ROOT}/hooks/session-start.sh" in entry["hooks"][0]["command"]


def test_without_the_command_on_the_path_the_hook_says_so_and_does_not_fail(tmp_path):
    path = tmp_path / "session-start.sh"
    path.write_text(plugin_files()["hooks/session-start.sh"])
    done = subprocess.run(
        ["/bin/sh", str(path)], env={"PATH": "/nowhere"}, capture_output=True, text=True, check=True
    )
    assert "not on the PATH" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]


def test_everything_is_installed_where_each_host_reads_it(tmp_path):
    lines = install_plugin(tmp_path, HOSTS)
    there = everything(tmp_path)
    assert b"chain-reviewer" in there[".claude/skills/rondel/agents/chain-reviewer.md"]
    assert json.loads(there[".claude/skills/rondel/.claude-plugin/plugin.json"])["name"] == "rondel"
    gemini = tomllib.loads(there[".gemini/commands/rondel/design.toml"].decode())
    assert "rondel feature design {{args}}" in gemini["prompt"]
    assert b"rondel feature design $ARGUMENTS" in there[".opencode/commands/rondel/design.md"]
    assert there["AGENTS.md"].decode() == agents_section()
    for command in commands():
        assert command.about in there["AGENTS.md"].decode()
    assert {line.partition(":")[0] for line in lines} == set(HOSTS)


def test_installing_again_changes_nothing(tmp_path):
    install_plugin(tmp_path, HOSTS)
    before = everything(tmp_path)
    install_plugin(tmp_path, HOSTS)
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "mine", ["# Rules\n\nBe kind.\n", "no newline at the end", "\r\nwindows\r\n", "\n\n\n"]
)
def test_what_stands_in_agents_md_stays_to_the_byte(tmp_path, mine):
    (tmp_path / "AGENTS.md").write_bytes(mine.encode())
    install_plugin(tmp_path, ["codex"])
    after = (tmp_path / "AGENTS.md").read_bytes().decode()
    assert after.startswith(mine)
    assert after.count(BEGIN) == after.count(END) == 1
    (tmp_path / "AGENTS.md").write_bytes((after + "\nMore of mine.\n").encode())
    install_plugin(tmp_path, ["codex"])
    assert (tmp_path / "AGENTS.md").read_bytes().decode() == after + "\nMore of mine.\n"


def test_an_older_section_of_ours_is_brought_up_to_date(tmp_path):
    install_plugin(tmp_path, ["codex"])
    path = tmp_path / "AGENTS.md"
    noted = tmp_path / ".rondel/plugin.json"
    old = f"{BEGIN}\nold\n{END}\n"
    path.write_text("mine\n\n" + old + "after\n")
    notes = json.loads(noted.read_text())
    notes["written"]["AGENTS.md#rondel"] = digest(old)
    noted.write_text(json.dumps(notes))
    install_plugin(tmp_path, ["codex"])
    assert path.read_text() == "mine\n\n" + agents_section() + "after\n"


def test_an_edited_section_and_edited_files_are_a_persons_and_stay(tmp_path):
    install_plugin(tmp_path, HOSTS)
    section = (tmp_path / "AGENTS.md").read_text().replace("## Rondel", "## Rondel, as we use it")
    (tmp_path / "AGENTS.md").write_text(section)
    command = tmp_path / ".gemini/commands/rondel/design.toml"
    command.write_text('prompt = "mine"\n')
    lines = install_plugin(tmp_path, HOSTS)
    assert (tmp_path / "AGENTS.md").read_text() == section
    assert command.read_text() == 'prompt = "mine"\n'
    assert any("AGENTS.md" in line and "edited" in line for line in lines)
    assert any("design.toml" in line and line.startswith("kept") for line in lines)


@pytest.mark.parametrize("text", [f"{BEGIN}\nno end\n", f"{END}\n", f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n"])
def test_marks_that_are_no_pair_are_left_alone(tmp_path, text):
    (tmp_path / "AGENTS.md").write_text(text)
    [line] = install_plugin(tmp_path, ["codex"])
    if text != f"{END}\n":
        assert line.startswith("kept")
        assert (tmp_path / "AGENTS.md").read_text() == text
    else:
        assert (tmp_path / "AGENTS.md").read_text().startswith(text)


def test_a_file_that_a_person_put_there_first_is_theirs(tmp_path):
    mine = tmp_path / ".opencode/commands/rondel/status.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")
    install_plugin(tmp_path, ["opencode"])
    assert mine.read_text() == "mine\n"


def test_a_link_stays_a_link_and_none_leads_out(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    (root / "CLAUDE.md").write_text("rules\n")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    install_plugin(root, ["codex"])
    assert (root / "AGENTS.md").is_symlink()
    assert BEGIN in (root / "CLAUDE.md").read_text()
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / ".gemini").symlink_to(outside)
    with pytest.raises(Exception, match="leads out"):
        install_plugin(root, ["gemini"])
    assert list(outside.iterdir()) == []


def test_hosts_are_those_that_are_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    install_plugin(tmp_path)
    assert not (tmp_path / "AGENTS.md").exists()
    (tmp_path / ".gemini").mkdir()
    install_plugin(tmp_path)
    assert (tmp_path / ".gemini/commands/rondel/start.toml").exists()
    assert not (tmp_path / ".opencode").exists()


def test_an_unknown_host_is_named_with_those_there_are(tmp_path):
    with pytest.raises(UsageError, match="claude, codex, gemini, opencode"):
        install_plugin(tmp_path, ["emacs"])


def test_no_rendered_file_has_an_open_slot():
    for path, text in rendered().items():
        assert not re.search(r"\{\{\w+\}\}", text), path
