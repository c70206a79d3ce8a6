"""A change under review is not its own reviewer: no program of an agent comes from its checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_strangers import person, put

from rondel.sandbox import box
from support.cli import rondel

ANSWER = 'cat <<"X"\n{}\n\n```json\n{{"findings": []}}\n```\nX\n'
OWN, THEIRS = ANSWER.format("I am the agent"), ANSWER.format("I am the change")
ROLES = '[roles]\ndefault = "mine"\n'


def settings(command: object) -> str:
    return f'[agents.mine]\nkind = "command"\ncommand = {json.dumps(command)}\n{ROLES}'


def git(repo: Path, env: dict[str, str], *words: str) -> None:
    subprocess.run(["git", *words], cwd=repo, env=env, check=True)


def brings(repo: Path, env: dict[str, str], files: dict[str, str]) -> None:
    """A change on a branch of its own; the person stays where they are."""
    git(repo, env, "checkout", "-qb", "pr")
    put(repo, env, {**files, "a.py": "A = 3\n"})
    git(repo, env, "checkout", "-q", "change")


def review(repo: Path, env: dict[str, str]) -> tuple[int, str]:
    """How the review of that change ended, and all that was said."""
    done = rondel(repo, env, "review", "change...pr", "--quick", "--team", "principal:1")
    written = [p.read_text(errors="replace") for p in (repo / ".ocr").rglob("reviews/*.md")]
    return done.returncode, "\n".join([*written, done.stdout, done.stderr])


@pytest.fixture
def env(env):
    return env | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("command", ["bash tools/review.sh", ["bash", "tools/review.sh"]], ids=str)
def test_the_script_that_was_consented_to_reviews_a_change_of_itself(repo, env, command):
    put(repo, env, {"rondel.toml": settings(command), "tools/review.sh": OWN})
    rondel(repo, env, "trust", "--yes")
    brings(repo, env, {"tools/review.sh": THEIRS})
    status, said = review(repo, env)
    assert (status, "I am the agent" in said, "I am the change" in said) == (0, True, False), said


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        (["bash", "-c", "cd tools && bash review.sh"], {"tools/review.sh": OWN}, {"tools/review.sh": THEIRS}),
        ("bash tools/x.sh", {"tools/x.sh": "bash tools/y.sh", "tools/y.sh": OWN}, {"tools/y.sh": THEIRS}),
        (["make", "-s", "review"], {"Makefile": "review:\n\t@echo\n"}, {"Makefile": "review:\n\t@false\n"}),
        (
            ["make", "-s", "review"],
            {"Makefile": "review:\n\t@echo\n"},
            {"GNUmakefile": "review:\n\t@false\n"},
        ),
        (["python3", "-m", "tools.r"], {"tools/r.py": "print(1)"}, {"tools/r.py": "print(2)"}),
    ],
    ids=str,
)
def test_an_agent_waits_whose_program_the_change_would_bring(repo, env, command, before, after):
    put(repo, env, {"rondel.toml": settings(command), **before})
    rondel(repo, env, "trust", "--yes")
    brings(repo, env, after)
    status, said = review(repo, env)
    assert status == 3
    assert "agents.mine is not asked: in the working copy" in said
    assert next(iter(after)) in said
    assert "I am the" not in said


@pytest.mark.parametrize(
    ("command", "after"),
    [
        (["make", "-s", "review"], {"Makefile": "review:\n\t@echo I am the change\n"}),
        ("bash review.sh", {"review.sh": THEIRS}),
        (["npx", "reviewer"], {"package.json": '{"bin": {"reviewer": "x.js"}}', "x.js": ""}),
    ],
    ids=str,
)
def test_a_person_s_own_agent_does_not_run_what_a_change_brings(repo, env, command, after):
    person(env, settings(command))
    brings(repo, env, after)
    status, said = review(repo, env)
    assert status == 3
    assert f"brings its own {next(iter(after))}" in said
    assert "I am the change" not in said


def test_a_person_s_own_module_is_not_that_of_a_change(repo, env):
    own = Path(env["HOME"]) / "lib"
    own.mkdir()
    answer = "print('I am {}\\n\\n```json\\n{{\"findings\": []}}\\n```')"
    (own / "myrev.py").write_text(answer.format("the agent"))
    words = f'{settings([sys.executable, "-m", "myrev"])}[agents.mine.env]\nPYTHONPATH = "{own}"\n'
    person(env, words)
    brings(repo, env, {"myrev.py": answer.format("the change")})
    status, said = review(repo, env)
    assert (status, "I am the agent" in said, "I am the change" in said) == (0, True, False), said


@pytest.mark.skipif(not box.holds(), reason="this kernel has no Landlock to hold anything")
@pytest.mark.parametrize("command", ["bash tools/x.sh", ["bash", "tools/x.sh"], "make -s review"], ids=str)
def test_an_agent_of_the_repository_reviews_what_does_not_touch_it(repo, env, command):
    script = 'bash tools/y.sh > /dev/null && . "$(dirname "$0")/y.sh"\n'
    put(
        repo,
        env,
        {
            "rondel.toml": settings(command),
            "tools/x.sh": script,
            "tools/y.sh": OWN,
            "Makefile": "review:\n\t@bash tools/x.sh\n",
        },
    )
    env |= {"RONDEL_SANDBOX": "required"}
    rondel(repo, env, "trust", "--yes")
    brings(repo, env, {"b.py": "B = 1\n"})
    status, said = review(repo, env)
    assert (status, "I am the agent" in said) == (0, True), said


@pytest.mark.skipif(not box.holds(), reason="this kernel has no Landlock to hold anything")
@pytest.mark.parametrize("place", [".config/rondel/agent.sh", "agents/agent.sh"])
def test_a_script_of_the_person_s_own_works_wherever_it_is(repo, env, place):
    own = Path(env["HOME"]) / place
    own.parent.mkdir(parents=True)
    own.write_text(OWN)
    person(env, settings(["bash", own.name if "rondel" in place else str(own)]))
    brings(repo, env, {"agent.sh": THEIRS})
    status, said = review(repo, env | {"RONDEL_SANDBOX": "required"})
    assert (status, "I am the agent" in said) == (0, True), said


@pytest.mark.skipif(not box.holds(), reason="this kernel has no Landlock to hold anything")
def test_a_script_of_the_repository_imports_what_lies_beside_it_and_reads_no_secret(repo, env):
    """What git tracks there is in every working copy, too."""
    script = (
        "import pathlib, words\nfrom contextlib import suppress\nsecret = 'nothing'\n"
        "with suppress(OSError):\n    secret = (pathlib.Path(__file__).parent / '.env').read_text()\n"
        "print(words.SAID, secret, '\\n\\n```json\\n{\"findings\": []}\\n```')\n"
    )
    files = {"tools/agent.py": script, "tools/words.py": "SAID = 'I am the agent'\n", ".gitignore": ".env\n"}
    put(repo, env, {"rondel.toml": settings([sys.executable, "tools/agent.py"]), **files})
    (repo / "tools/.env").write_text("a secret")
    rondel(repo, env, "trust", "--yes")
    brings(repo, env, {})
    del env["RONDEL_SANDBOX"]
    status, said = review(repo, env)
    assert (status, "I am the agent nothing" in said) == (0, True), said
