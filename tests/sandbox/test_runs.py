"""What a person types runs confined: agents, set-up and tests; and where it does not, that is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rondel.errors import RondelError, UsageError
from rondel.repo.workspaces import Workspaces
from rondel.sandbox import box, landlock
from support.cli import rondel
from support.repos import GIT_ENV, repository

needs_landlock = pytest.mark.skipif(not box.holds(), reason="this kernel has no Landlock to hold anything")

AGENT = """
import os, pathlib, sys
def attempt(work):
    try:
        work()
    except OSError:
        return
    print("GOT OUT")
home, repo = pathlib.Path(os.environ["HOME"]), pathlib.Path(sys.argv[1])
attempt(lambda: print((home / ".ssh/id").read_text()))
attempt(lambda: print((repo / ".env").read_text()))
for place in (home / ".bashrc", repo / "rondel.toml", repo / ".git/config"):
    attempt(lambda: place.open("a").write("escaped"))
for place in repo.glob(".ocr/sessions/*/.rondel"):
    print("GOT OUT")
(pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "rondel-mine").write_text("works")
print("# Review\\n\\nI looked at README.md and at everything else, and found nothing.")
"""


@pytest.fixture
def person(tmp_path):
    """A repository with a change, and a person whose own settings name an agent."""
    repo = repository(tmp_path / "repo")
    home = tmp_path / "home"
    for name, text in {".ssh/id": "SECRET", ".bashrc": "", "agents/agent.py": AGENT}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (repo / ".env").write_text("SECRET")
    (repo / ".gitignore").write_text(".env\n")
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    env = {**GIT_ENV, "PATH": os.environ["PATH"], "HOME": str(home)}
    say(
        env,
        f'[agents.mine]\nkind = "command"\ncommand = [{json.dumps(sys.executable)}, "agents/agent.py", '
        f'{json.dumps(str(repo))}]\n[roles]\ndefault = "mine"\n',
    )
    (home / ".config/rondel/agents").symlink_to(home / "agents")
    return repo, env


def say(env: dict[str, str], settings: str) -> None:
    own = Path(env["HOME"]) / ".config/rondel/config.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text((own.read_text() if own.exists() else "") + settings)


def everything(folder: Path) -> str:
    return "".join(p.read_text(errors="replace") for p in folder.rglob("*") if p.is_file())


@needs_landlock
def test_an_agent_of_a_review_gets_nowhere(person):
    repo, env = person
    done = rondel(repo, env, "review", "--quick")
    said = everything(repo / ".ocr") + done.stdout + done.stderr
    assert "I looked at README.md" in said
    assert "GOT OUT" not in said
    assert "SECRET" not in said
    assert (Path(env["HOME"]) / ".bashrc").read_text() == ""
    assert not (repo / "rondel.toml").exists()


@needs_landlock
def test_with_no_sandbox_it_would(person):
    repo, env = person
    rondel(repo, env | {"RONDEL_SANDBOX": "none"}, "review", "--quick")
    assert "GOT OUT" in everything(repo / ".ocr")
    assert "SECRET" in everything(repo / ".ocr")


@needs_landlock
def test_what_the_person_names_can_be_reached(person):
    repo, env = person
    say(env, '[sandbox]\nread = ["~/.ssh/id"]\nwrite = ["~/.bashrc"]\n')
    rondel(repo, env, "review", "--quick")
    assert everything(repo / ".ocr").count("GOT OUT") > 0
    assert "escaped" in (Path(env["HOME"]) / ".bashrc").read_text()
    assert not (repo / "rondel.toml").exists()


@needs_landlock
def test_a_repository_cannot_loosen_it(person):
    repo, env = person
    (repo / "rondel.toml").write_text('[sandbox]\nmode = "none"\nread = ["~"]\nwrite = ["~"]\n')
    rondel(repo, env | {"RONDEL_TRUST": "yes"}, "review", "--quick")
    assert "GOT OUT" not in everything(repo / ".ocr")


def test_the_doctor_says_what_holds(person):
    repo, env = person
    machine = json.loads(rondel(repo, env, "doctor", "--json").stdout)["machine"]
    assert ("Landlock" in machine["sandbox"]) == box.holds()
    said = rondel(repo, env | {"RONDEL_SANDBOX": "none"}, "doctor").stdout
    assert "sandbox: none, as you asked for" in said


def test_a_word_that_is_not_known_is_refused(person):
    repo, env = person
    done = rondel(repo, env | {"RONDEL_SANDBOX": "off"}, "review", "--quick")
    assert done.returncode == 2
    assert "RONDEL_SANDBOX=off" in done.stderr
    with pytest.raises(UsageError):
        box.mode("auto", "off")


def test_where_it_is_required_and_not_there_nothing_runs(monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert not box.holds()
    with pytest.raises(RondelError, match="a sandbox is required"):
        box.holds(required=True)
    assert "no Landlock" in box.held("auto")
    assert "nothing is run" in box.held("required")


@needs_landlock
def test_a_set_up_that_writes_elsewhere_is_told_what_to_do(person):
    repo, env = person
    trees = Workspaces(repo, Path(env["HOME"]) / "trees", box=box.Box(hidden=(str(repo),)))
    with pytest.raises(RondelError, match="It ran in the sandbox"):
        trees.write("s", "a", "HEAD", setup=f"touch {env['HOME']}/elsewhere")
    assert not (Path(env["HOME"]) / "elsewhere").exists()
    assert (trees.write("s", "b", "HEAD", setup="touch here $TMPDIR/there") / "here").exists()


@pytest.mark.parametrize("place", ["data", "$HOME/data", "./x", ""])
def test_a_place_that_means_nothing_is_refused(person, place):
    repo, env = person
    say(env, f'[sandbox]\nread = ["{place}"]\n')
    done = rondel(repo, env, "review", "--quick")
    assert done.returncode == 2
    assert "must begin with / or ~/" in done.stderr


def test_the_doctor_names_what_is_opened(person):
    repo, env = person
    say(env, '[sandbox]\nread = ["~/.ssh/id", "~/nothing"]\n')
    said = rondel(repo, env, "doctor").stdout
    assert "read ~/.ssh/id;" in said
    assert "read ~/nothing (not there)" in said
