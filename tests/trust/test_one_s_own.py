"""In one's own repository nothing is asked; who looks runs nothing, also after a yes; what is on the PATH."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pexpect
import pytest
from test_strangers import agent, based, put

from support.cli import RONDEL, rondel

ASKED = ("consent", "trust", "say yes", "left out")
PLUGIN = [  # what the plugin's commands have a coding agent type
    ("hook", "session-start"),
    ("status",),
    ("feature", "start", "Login"),
    ("feature", "status"),
    ("review", "--quick"),
    ("review", "show"),
]
SHOWING = [
    ("status",),
    ("status", "--json", "--explain"),
    ("agents",),
    ("agents", "--json"),
    ("doctor",),
    ("show",),
    ("watch", "--once"),
    ("review", "show"),
    ("generate", "profile", "show", "evil"),
]


def typed(repo: Path, env: dict[str, str], *words: str) -> tuple[int, str]:
    """A command at a terminal, to its end; whoever waits for an answer gets none, and fails the test."""
    child = pexpect.spawn(
        RONDEL[0], [*RONDEL[1:], *words], cwd=repo, env={**env, "TERM": "dumb"}, encoding="utf-8", timeout=60
    )
    child.expect(pexpect.EOF)
    said = str(child.before)
    child.close()
    return child.exitstatus or 0, said


def piped(repo: Path, env: dict[str, str], *words: str) -> tuple[int, str]:
    done = rondel(repo, env, *words)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("run", [typed, piped])
@pytest.mark.parametrize("settings", [True, False])
def test_init_and_the_plugins_commands_ask_nothing_in_one_s_own_repository(repo, env, run, settings):
    assert "RONDEL_TRUST" not in env
    if settings:
        code, said = run(repo, env, "init")
        assert code == 0, said
        assert not any(word in said for word in ASKED), said
    for words in PLUGIN:
        code, said = run(repo, env, *words)
        assert code in (0, 3, 5), said  # a person's answer is waited for where no agent is installed
        assert not any(word in said for word in ASKED), said
    assert "nothing here needs your consent" in run(repo, env, "trust")[1]


@pytest.mark.parametrize("run", [typed, piped])
def test_who_only_looks_runs_nothing_of_the_repository_also_after_a_yes(repo, env, marker, run):
    spring = f"open({str(marker)!r}, 'a').close()\n"
    files = agent(marker) | {".aiwf/profiles/evil/profile.py": spring, "sitecustomize.py": spring}
    based(repo, env, files)
    assert rondel(repo, env, "trust", "--yes").returncode == 0
    assert rondel(repo, env, "review", "--quick").returncode in (0, 1, 3)
    assert marker.exists(), "after the yes it runs where it is asked for"
    marker.unlink()
    for words in SHOWING:
        code, said = run(repo, env, *words)
        assert code in (0, 1, 2, 5), said
        assert said.strip()
        assert not marker.exists(), words


# -- a place on the PATH that lies in the repository -------------------------------------------------


NAMES = ("git", "claude", "codex", "gemini", "opencode", "sh", "bash", "gh", "ruff", "shellcheck", "python3")


@pytest.fixture
def programs(repo, env, marker):
    """Programs of the repository under the names of those that Rondel uses."""
    put(repo, env, {f"bin/{name}": f"#!/bin/sh\necho {name} >> {marker}\nexit 1\n" for name in NAMES})
    return repo / "bin"


@pytest.mark.parametrize(
    "words", [("review", "--quick"), ("cycle", "start", "Do it"), *SHOWING[:7]], ids=" ".join
)
@pytest.mark.parametrize("way", ["itself", "a link to it", "below the current folder"])
def test_a_place_on_the_path_that_the_repository_brings_is_not_looked_into(
    repo, env, marker, programs, tmp_path, words, way
):
    place, cwd = programs, repo
    if way == "a link to it":
        place = tmp_path / "link"
        place.symlink_to(programs)
    elif way == "below the current folder":
        cwd = repo / "inner"
        cwd.mkdir()
    code, said = piped(cwd, env | {"PATH": f"{place}:{env['PATH']}"}, *words)
    assert not marker.exists(), marker.read_text()
    assert code in (0, 1, 2, 3, 5), said
    assert said.strip()


def test_a_place_on_the_path_in_a_submodule_is_not_looked_into(repo, env, marker, programs, tmp_path):
    subprocess.run(["git", "clone", "-q", str(repo), str(tmp_path / "other")], env=env, check=True)
    add = [
        "git",
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(tmp_path / "other"),
        "sub",
    ]
    subprocess.run(add, cwd=repo, env=env, check=True)
    subprocess.run(["git", "commit", "-qam", "submodule"], cwd=repo, env=env, check=True)
    piped(repo, env | {"PATH": f"{repo}/sub/bin:{env['PATH']}"}, "review", "--quick")
    assert not marker.exists(), marker.read_text()


def test_a_place_on_the_path_that_the_person_made_in_the_repository_counts(repo, env):
    """A virtual environment of their own, say, which no clone brings."""
    place = repo / ".venv/bin"
    place.mkdir(parents=True)
    (place / "claude").write_text("#!/bin/sh\n")
    (place / "claude").chmod(0o755)
    done = rondel(repo, env | {"PATH": f"{place}:{env['PATH']}"}, "agents", "--json")
    assert str(place / "claude") in done.stdout
