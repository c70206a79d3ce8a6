"""Settings: every wrong one is named, with its file, its value and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rondel import config, installed
from rondel.errors import ConfigError
from rondel.model.consent import Everything
from rondel.project import Project

WORKFLOWS = frozenset({"review", "task"})
KINDS = frozenset({"claude", "codex", "command", "manual", "mock", "checks"})


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/.config"))


def load(folder: Path, text: str = "", detected: tuple[str, ...] = ()) -> config.Config:
    (folder / "rondel.toml").write_text(text)
    return config.load(
        folder,
        workflows=WORKFLOWS,
        kinds=KINDS,
        detected=detected,
        workflow=installed.workflow,
        consents=Everything(),
    )


CONTRACT = """
[agents.fake]
kind = "command"
command = ["python3", "agent.py"]
timeout_s = 60
idle_s = 30
model = "m"
env = { NAME = "value" }
pass_env = ["GITHUB_TOKEN"]

[roles]
default = "fake"
"review.reviewer" = "fake"
"review.reviewer.security" = "checks"

[limits]
agents_max = 4
attempts_max = 2
usd_max = 10.0
tokens_max = 2000000
"""


def test_the_public_contract_is_read_as_it_is_written(tmp_path):
    found = load(tmp_path, CONTRACT)
    agent = found.agent_for("review.reviewer.principal-1")
    assert (agent.name, agent.kind, agent.command) == ("fake", "command", ("python3", "agent.py"))
    assert (agent.timeout_s, agent.idle_s, agent.model) == (60, 30, "m")
    assert (dict(agent.env), agent.pass_env) == ({"NAME": "value"}, ("GITHUB_TOKEN",))
    assert found.agent_for("review.reviewer.security-1").kind == "checks"
    assert found.agent_for("task.code-developer").name == "fake"
    limits = found.limits
    assert (limits.agents_max, limits.attempts_max, limits.usd_max, limits.tokens_max) == (
        4,
        2,
        10.0,
        2000000,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limts]\n", ["limts", "limits"]),
        ("[limits]\nagents = 4\n", ["limits.agents", "agents_max"]),
        ("[limits]\nagents_max = 0\n", ["limits.agents_max", "0", "1"]),
        ('[limits]\nagents_max = "4"\n', ["limits.agents_max", "'4'"]),
        ("[limits]\nagents_max = true\n", ["limits.agents_max", "True"]),
        ("[limits]\nusd_max = -1\n", ["limits.usd_max", "-1"]),
        ('[agents.x]\nkind = "cloude"\n', ["agents.x.kind", "cloude", "claude"]),
        ('[agents.x]\ncommand = ["a"]\n', ["agents.x.kind", "missing"]),
        ('[agents.x]\nkind = "command"\n', ["agents.x.command"]),
        ('[agents.x]\nkind = "claude"\ntimeout = 3\n', ["agents.x.timeout", "timeout_s"]),
        ('[agents.x]\nkind = "claude"\ntimeout_s = 0\n', ["agents.x.timeout_s", "0"]),
        ('[agents.x]\nkind = "claude"\ntimeout_s = inf\n', ["agents.x.timeout_s", "inf"]),
        ('[agents.x]\nkind = "claude"\nenv = { A = 1 }\n', ["agents.x.env.A", "1"]),
        ('agents = "claude"\n', ["agents", "claude"]),
        ('[roles]\ndefault = "nobody"\n', ["roles.default", "nobody", "checks"]),
        ("[roles]\ndefault = 3\n", ["roles.default", "3"]),
        ('[roles]\ndefault = "codex"\n', ["roles.default", "codex", "not installed"]),
        ('[roles]\n"revew.lead" = "manual"\n', ["roles.revew.lead", "one of: default", "review"]),
        ("review = 3\n", ["review", "3"]),
        ('[roles]\ndefault = "codex"\n', ["roles.default", "codex", "not installed", "checks"]),
        ("this is not toml\n", ["rondel.toml", "line 1"]),
        pytest.param(f"a = {'[' * 5000}{']' * 5000}\n", ["nested too deeply"], id="deep"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value_and_what_is_allowed(tmp_path, text, words):
    with pytest.raises(ConfigError) as e:
        load(tmp_path, text)
    for word in [*words, "rondel.toml"]:
        assert word in str(e.value)
    assert e.value.exit_code == 2
    assert str(e.value).count("rondel.toml") == 1, "one line for one mistake"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ('"~/bin/agent"', ["{home}/bin/agent"]),
        (
            '["~/bin/agent", "--with", "~/x", "a~/b", "~"]',
            ["{home}/bin/agent", "--with", "{home}/x", "a~/b", "~"],
        ),
        ('"~/bin/agent --quick"', ["~/bin/agent --quick"]),  # a shell reads it
    ],
)
def test_a_command_in_the_home_folder_is_found_there(tmp_path, command, expected):
    found = load(tmp_path, f'[agents.a]\nkind = "command"\ncommand = {command}\n').agents["a"].command
    assert list(found) == [word.format(home=tmp_path / "home") for word in expected]


def test_a_file_that_is_not_utf_8_is_named(tmp_path):
    (tmp_path / "rondel.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"rondel\.toml.*UTF-8"):
        config.load(tmp_path, workflows=WORKFLOWS, kinds=KINDS)


def test_the_repository_goes_over_pyproject_and_that_over_the_persons_own(tmp_path):
    own = tmp_path / "home/.config/rondel"
    own.mkdir(parents=True)
    (own / "config.toml").write_text('[project]\nsetup = "a"\ntest = "a"\nchecks = "a"\n')
    (tmp_path / "pyproject.toml").write_text('[tool.rondel.project]\ntest = "b"\nchecks = "b"\n')
    found = load(tmp_path, '[project]\nchecks = "c"\n')
    assert (found.project.setup, found.project.test, found.project.checks) == ("a", "b", "c")


def test_a_limit_of_the_persons_own_is_only_ever_lowered(tmp_path):
    own = tmp_path / "home/.config/rondel"
    own.mkdir(parents=True)
    (own / "config.toml").write_text("[limits]\nagents_max = 2\nattempts_max = 7\nusd_max = 3.0\n")
    (tmp_path / "pyproject.toml").write_text("[tool.rondel.limits]\nagents_max = 1\nattempts_max = 8\n")
    found = load(tmp_path, "[limits]\nagents_max = 3\n")
    assert (found.limits.agents_max, found.limits.attempts_max, found.limits.usd_max) == (2, 7, 3.0)


def test_an_error_names_the_file_it_is_in(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.rondel.limits]\nagents_max = 'x'\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml: limits\.agents_max"):
        load(tmp_path)


def test_a_table_of_ours_in_pyproject_is_a_table(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool]\nrondel = 3\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml: rondel = 3 must be a table"):
        load(tmp_path)


def test_every_workflow_s_table_is_checked_whichever_command_is_called(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.rondel.review]\nratio = 'x'\n")
    (tmp_path / "rondel.toml").write_text("[review]\nratio = 1\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml: review\.ratio"):
        config.load(tmp_path, workflows=WORKFLOWS, kinds=KINDS, workflow=lambda _: WithSettings())
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "rondel.toml").write_text("[review]\ntypo = 1\n")
    with pytest.raises(ConfigError, match=r"rondel\.toml: review\.typo is not a setting"):
        _ = Project(tmp_path).config


def test_without_settings_the_first_cli_on_the_path_works(tmp_path):
    found = load(tmp_path, detected=("codex", "gemini"))
    assert found.agent_for("review.lead").kind == "codex"


def test_without_any_agent_reviews_run_on_checks_and_the_rest_on_a_person(tmp_path):
    found = load(tmp_path)
    assert found.agent_for("review.lead").kind == "checks"
    assert found.agent_for("cycle.ra").kind == "manual"


class WithSettings(type(installed.workflow("review"))):
    def settings(self):
        return DEFAULTS


DEFAULTS = {"prompt_max": 1000, "team": "principal:2", "ratio": 0.5, "quick": False, "skip": ["a"]}


def test_a_workflows_own_settings_are_checked_by_their_defaults():
    found = config.check_table("f", "review", {"ratio": 1, "quick": True}, DEFAULTS)
    assert found == {**DEFAULTS, "ratio": 1, "quick": True}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"promt_max": 1}, ["review.promt_max", "prompt_max"]),
        ({"prompt_max": "1"}, ["review.prompt_max", "a whole number"]),
        ({"prompt_max": True}, ["review.prompt_max", "a whole number"]),
        ({"quick": 1}, ["review.quick", "true or false"]),
        ({"skip": "a"}, ["review.skip", "a list"]),
    ],
)
def test_a_wrong_setting_of_a_workflow_is_named_too(given, words):
    with pytest.raises(ConfigError) as e:
        config.check_table("rondel.toml", "review", given, DEFAULTS)
    for word in words:
        assert word in str(e.value)
