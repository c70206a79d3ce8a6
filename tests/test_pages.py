"""The pages for people: what they show works, what there is they name, and they are linked."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

from rondel import config
from rondel.agents import roster
from rondel.agents.base import AgentSettings
from rondel.cli.main import root
from rondel.engine.report import Stopped
from rondel.model.actions import Ask
from rondel.model.snapshot import FrozenSnapshot
from rondel.model.summary import Status
from rondel.project import Project
from rondel.trust.keys import KEYS
from support.repos import repository

TOP = Path(__file__).parent.parent
PAGES = [TOP / "README.md", TOP / "CHANGELOG.md", TOP / "plugin/README.md", *(TOP / "docs").glob("*.md")]
PAGES = [p for p in PAGES if p.name != "commands.md"]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def shown():
    """What the Python of the page on extending defines."""
    names: dict[str, object] = {}
    for code in blocks(TOP / "docs/extending.md", "python"):
        exec(code, names)
    return names


def test_the_workflow_and_the_agent_of_the_page_run_from_start_to_end(shown, tmp_path):
    for args in (
        ["init", "-q"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x", "--allow-empty"],
    ):
        subprocess.run(["git", *args], cwd=tmp_path, check=True)
    (tmp_path / "poems/rain").mkdir(parents=True)
    (tmp_path / "poems/rain/topic.md").write_text("Rain in November\n")
    flow, agent = shown["Poem"](), shown["Shouting"](AgentSettings(name="loud", kind="shouting"))
    project = Project(tmp_path, workflows={"poem": flow}, build=lambda _: agent)
    ref = project.ref("rain")
    assert project.run(ref).stopped is Stopped.WAITING
    assert "RAIN IN NOVEMBER" in (tmp_path / "poems/rain/poem.md").read_text()
    project.decide(ref, "approve")
    assert project.run(ref).stopped is Stopped.COMPLETED
    assert project.summary(ref).status is Status.COMPLETED


def test_a_workflow_is_tested_without_a_disk_as_the_page_says(shown):
    (due,) = shown["Poem"]().plan(FrozenSnapshot({"topic.md": "Rain"}))
    assert isinstance(due, Ask)
    assert due.role == "poem.poet"


def test_the_trial_of_the_page_dies_and_goes_on(shown, tmp_path):
    calm = shown["undisturbed"](shown["Rain"](tmp_path / "undisturbed"))
    assert shown["killed_and_resumed"](shown["Rain"](tmp_path / "killed"), [25], calm)
    assert shown["command"].commands["start"].help == "Begin a poem on TOPIC, and run it."


def test_the_python_of_the_page_runs_in_a_repository(tmp_path, monkeypatch, capsys):
    repo = repository(tmp_path / "repo")
    monkeypatch.chdir(repo)
    names: dict[str, object] = {}
    for code in blocks(TOP / "docs/python.md", "python"):
        exec(code, names)
    said = capsys.readouterr().out
    assert "idle" in said
    assert "task:WFS-receipts" in said
    assert said.splitlines()[-1] == "ended: active"


def test_the_page_of_settings_names_every_key():
    page = (TOP / "docs/settings.md").read_text()
    project = Project(TOP)
    keys = {key for name in project.workflow_names() for key in project.workflow(name).settings()}
    for table in (config.AgentTable, config.Limits, config.ProjectTable, config.Workspaces):
        keys |= set(table.model_fields)
    missing = [k for k in sorted(keys) if not re.search(rf"`(\[\w+\] )?{k}`", page)]
    assert missing == []


def test_the_page_of_settings_has_the_mark_of_every_key():
    """What a repository may say is the same on the page as in the table that settings are read by."""
    page = (TOP / "docs/settings.md").read_text()
    rows = re.findall(r"^\| `(?:\[(\w+)\] )?(\w+)` \| [^|]*\| ([^|]+?) \|", page, re.MULTILINE)
    shown = {(table, key): mark for table, key, mark in rows}
    project = Project(TOP)
    keys = {(name, key) for name in project.workflow_names() for key in project.workflow(name).settings()}
    keys |= {("project", key) for key in config.ProjectTable.model_fields}
    keys |= {("workspaces", key) for key in config.Workspaces.model_fields}
    rule = config.rules_of(project.workflow_names(), project.workflow).of
    expected = {key: rule(key).mark for key in keys}
    expected |= {("", key): rule(("limits", key)).mark for key in config.Limits.model_fields}
    expected |= {("", key): rule(("agents", "any", key)).mark for key in config.AgentTable.model_fields}
    assert {key: mark for key, mark in expected.items() if not shown.get(key, "").startswith(mark)} == {}
    marked = {".".join(("agents.*" if k[0] == "" else k[0], k[1])) for k in expected}
    marked |= {f"limits.{key}" for key in config.Limits.model_fields}
    known = {f"{name}.{key}" for name in project.workflow_names() for key in project.workflow(name).rules()}
    assert marked <= set(KEYS) | known | {f"agents.*.{key}" for key in config.Limits.model_fields}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_settings_file_that_a_page_shows_is_good(page, tmp_path):
    for text in blocks(page, "toml"):
        table = tomllib.loads(text)
        if table.keys() & {"rules", "project"} and "roles" not in table:
            continue  # answers of a mock, or a package's own pyproject.toml
        agents = {name for role, name in table.get("roles", {}).items()} - set(table.get("agents", {}))
        (tmp_path / "rondel.toml").write_text(text)
        project = Project(TOP)
        config.load(
            tmp_path,
            workflows=frozenset(project.workflow_names()),
            kinds=frozenset(roster.kinds()),
            detected=tuple(agents),
            workflow=project.workflow,
        )


def commands_in(page: Path) -> list[list[str]]:
    """Every `rondel …` that a page shows, in blocks and in sentences, as far as it can be told apart."""
    text = page.read_text()
    lines = [
        m.strip()
        for b in re.findall(r"^```.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        for m in b.splitlines()
    ]
    lines += re.findall(r"`(rondel [^`\n]+)`", text)
    found = []
    for line in lines:
        said = re.match(r"(?:\$ )?rondel ([a-z].*)", line)
        if said:
            plain = re.sub(r"\s{2,}.*|\s#.*|\[.*", "", said[1])
            found.append(re.split(r"\s", plain.replace("…", "x")))
    return found


def walk(words: list[str]) -> tuple[click.Command, list[str]]:
    command, rest = root, words
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        inner = command.get_command(click.Context(command), rest[0])
        if inner is None:
            break
        command, rest = inner, rest[1:]
    return command, rest


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_command_and_option_that_a_page_shows_is_there(page):
    for words in commands_in(page):
        if words[0] == "hook":
            continue
        command, rest = walk(words)
        assert command is not root, words
        if isinstance(command, click.Group) and "start" in command.commands and rest and rest[0][:2] == "--":
            command = command.commands["start"]  # `rondel review --quick`
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
        for word in rest:
            if word.startswith("--"):
                assert word.partition("=")[0].rstrip(".,;)") in known, (page.name, words)


PRIVATE = re.compile(r"/home/|/root/|localhost:\d|\b[Ii]ssue #?\d|\bFIXME\b")


@pytest.mark.parametrize(
    "page", [*PAGES, TOP / "docs/commands.md", TOP / "ARCHITECTURE.md"], ids=lambda p: p.name
)
def test_a_page_names_no_machine_and_no_ticket(page):
    assert PRIVATE.findall(page.read_text()) == []


def test_the_readme_leads_to_every_page():
    readme = (TOP / "README.md").read_text()
    linked = set(re.findall(r"\]\((docs/[\w-]+\.md)\)", readme))
    for page in (TOP / "docs").glob("*.md"):
        name = f"docs/{page.name}"
        others = "".join(p.read_text() for p in (TOP / "docs").glob("*.md") if f"docs/{p.name}" in linked)
        assert name in linked or f"]({page.name})" in others, f"{name} is linked from nowhere"
