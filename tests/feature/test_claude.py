"""The real Claude Code CLI against the scripted model: a whole feature, the plugin, the hook, a command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scratch import APPROVED, TASKS, TEST, environment, git, meta, repository, rondel

from modelserver import FakeModel, toml_tables, vendor_config
from rondel.workflows.feature import start_feature
from vendors.install import binary, selected

pytestmark = pytest.mark.agents

BLOCKED = (
    '```json\n{"approved": false, "issues": [{"severity": "blocker", "description": "R2 is missing", '
    '"location": "Requirements"}], "summary": "Not yet."}\n```'
)
ROOT = Path(__file__).parent.parent.parent
WAIT_S = 90


@pytest.fixture
def claude():
    if "claude" not in selected() or binary("claude") is None:
        pytest.skip("vendor not run: claude: not installed (python tests/vendors/install.py claude)")
    return binary("claude")


@pytest.fixture
def model():
    with FakeModel() as scripted:
        yield scripted


def author(asked):
    """The model: it drafts, reviews (specify only at the second attempt), and edits files."""
    said = asked.user
    if "You review one document" in said:
        return BLOCKED if "# spec.md, draft 1" in said else APPROVED
    if "You compare an implementation" in said:
        return APPROVED
    if "Carry out one task" in said:
        return _edit(asked)
    if "You write the document `tasks.md`" in said:
        return TASKS
    name = said.partition("You write the document `")[2].partition("`")[0]
    draft = 2 if "What the reviewer said" in said else 1
    return f"# {name}, draft {draft}\n\nText.\n\n=== CHANGES ===\nDraft {draft}.\n"


def _edit(asked):
    if asked.step:
        return "Done; the test passes."
    if "Add the function" in asked.user.partition("# How you work")[0]:
        code = {"path": "calc.py", "content": "def add(a, b):\n    return a + b\n"}
        return {"tools": [{"write": code}, {"write": {"path": "test_add.py", "content": TEST}}]}
    return {"tools": [{"write": {"path": "README.md", "content": "It adds.\n"}}]}


def settings(root: Path, model: FakeModel, claude: Path) -> None:
    table = vendor_config("claude", model.url("author"), root.parent / "claude-home", [str(claude)])
    (root / "rondel.toml").write_text(
        toml_tables({"claude": table})
        + f'[roles]\ndefault = "claude"\n\n[project]\ntest = "{sys.executable} -m pytest -q"\n'
    )


def test_a_whole_feature_with_the_real_cli(tmp_path, model, claude):
    root = repository(tmp_path)
    model.script("author", {"decide": author, "max_main": 200})
    settings(root, model, claude)
    assert rondel(root, "feature", "start", "Add").returncode == 0
    ran = rondel(root, "feature", "run", "--auto", wait_s=300)
    assert ran.returncode == 0, ran.stderr
    phases = meta(root)["phases"]
    assert {name: record["iterations"] for name, record in phases.items()} == {
        "brainstorm": 1,
        "specify": 2,
        "design": 1,
        "create-plan": 1,
        "create-tasks": 1,
        "implement": 1,
        "verify": 1,
    }
    history = (root / "docs/features/001-add/.review-history.md").read_text()
    assert "- [blocker] R2 is missing (Requirements)" in history
    assert git(root, "show", "feature/001-add:calc.py") == "def add(a, b):\n    return a + b\n"
    reviews = [a for a in model.requests("author") if "You review" in a.user or "You compare" in a.user]
    assert reviews
    for asked in reviews:
        names = {tool.name for tool in asked.tools}
        assert not names & {"Write", "Edit", "Bash", "NotebookEdit"}, "a reviewer can only read"
    assert rondel(root, "feature", "finish", "--merge").returncode == 0
    assert "a + b" in (root / "calc.py").read_text()


def ask_claude(claude: Path, root: Path, url: str, prompt: str, *args: str) -> list[dict]:
    """Claude Code as a person would start it in a folder they trust."""
    env = environment(root.parent)
    home = Path(env["HOME"])
    own = home / ".claude.json"
    trust = {"projects": {str(root): {"hasTrustDialogAccepted": True}}}
    own.write_text(json.dumps((json.loads(own.read_text()) if own.exists() else {}) | trust))
    env |= {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }
    done = subprocess.run(
        [str(claude), "-p", prompt, "--output-format", "stream-json", "--verbose", *args],
        cwd=root,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def plugin_command(claude: Path, top: Path, *args: str) -> None:
    done = subprocess.run(
        [str(claude), "plugin", *args],
        env=environment(top) | {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def installed_by_init(root: Path, _claude: Path) -> tuple[str, ...]:
    assert rondel(root, "init").returncode == 0
    return ()


def from_the_folder(_root: Path, _claude: Path) -> tuple[str, ...]:
    return ("--plugin-dir", str(ROOT / "plugin"))


def from_the_repository(root: Path, claude: Path) -> tuple[str, ...]:
    plugin_command(claude, root.parent, "marketplace", "add", str(ROOT))
    plugin_command(claude, root.parent, "install", "rondel@rondel")
    return ()


@pytest.mark.parametrize("install", [installed_by_init, from_the_folder, from_the_repository])
def test_the_plugin_loads_its_hook_reaches_the_model_and_a_command_runs_rondel(
    tmp_path, model, claude, install
):
    root = repository(tmp_path)
    start_feature(root, 'OAuth "login"\n🎉')
    model.script("host", [{"tools": [{"shell": {"command": "rondel feature status"}}]}, "There you are."])
    events = ask_claude(claude, root, model.url("host"), "/rondel:status", *install(root, claude))

    [init] = [e for e in events if e.get("subtype") == "init"]
    assert "rondel" in {plugin["name"] for plugin in init["plugins"]}
    for name in ("brainstorm", "specify", "design", "create-plan", "create-tasks", "implement", "verify"):
        assert f"rondel:{name}" in init["slash_commands"]
    assert {"rondel:chain-reviewer", "rondel:final-reviewer"} <= set(init["agents"])
    assert "rondel:workflow-state" in init["skills"]

    first, second = [a for a in model.requests("host") if not a.side][:2]
    assert "001-oauth-login" in first.history + first.system
    assert "brainstorm is next" in first.history + first.system
    assert "rondel feature status" in first.user, "the command's body is what the model was asked"
    assert any("feature:001-oauth-login" in result for result in second.results), "rondel really ran"


def test_a_broken_project_does_not_fail_the_start_of_the_host(tmp_path, model, claude):
    root = repository(tmp_path)
    folder = root / "docs/features/001-broken"
    folder.mkdir(parents=True)
    (folder / ".meta.json").write_text('{"status": "active"}}')
    model.script("host", "Hello.")
    events = ask_claude(claude, root, model.url("host"), "hi", *from_the_folder(root, claude))
    assert events[-1]["result"] == "Hello."
    first = model.requests("host")[0]
    assert "001-broken/.meta.json" in first.history + first.system


def test_the_plugin_passes_the_vendors_own_validation(claude, tmp_path):
    for folder in (ROOT / "plugin", ROOT):
        plugin_command(claude, tmp_path, "validate", str(folder))
