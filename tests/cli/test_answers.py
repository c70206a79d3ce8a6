"""Going on and answering through the commands: what is done, and which exit code says so."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime, timedelta

import pytest
from harness import REF, project, repository, start

from rondel.agents.base import Reply, Request
from rondel.cli.main import main
from rondel.model.outcomes import Ended, Usage
from rondel.testing.scripted import Scripted


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path / "repo")


@pytest.fixture
def rondel(root, monkeypatch):
    """The command in a repository where the agent answers by a function; gives the exit code."""

    def run(*args: str, agent: Scripted | None = None) -> object:
        monkeypatch.setattr("rondel.cli.sessions.find_project", lambda: project(root, agent))
        try:
            return main(list(args))
        except SystemExit as e:
            return e.code

    return run


def test_an_approval_goes_on_to_the_end(root, rondel):
    start(root)
    assert rondel("run", "one") == 3
    assert rondel("approve", "small:one", "--comment", "well done") == 0
    assert (root / REF.folder / "final.md").exists()
    answer = json.loads((root / REF.folder / ".rondel/decisions/round-1.json").read_text())
    assert (answer["answer"], answer["by"], answer["comment"]) == ("approve", "person", "well done")
    assert answer["at"]


def test_an_answer_can_be_noted_without_going_on(root, rondel, capsys):
    start(root)
    rondel("run")
    capsys.readouterr()
    assert rondel("approve", "--no-run", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["session"], said["answer"]) == (REF.name, "approve")
    assert not (root / REF.folder / "final.md").exists()
    assert rondel("resume") == 0


def test_a_rejection_opens_the_next_round(root, rondel):
    start(root)
    rondel("run")
    assert rondel("reject", "--feedback", "again") == 3
    assert (root / REF.folder / "round-2/sum.json").exists()


@pytest.mark.parametrize("args", [("--option", "maybe"), ("--on", "elsewhere")])
def test_an_answer_that_is_none_changes_nothing(root, rondel, args):
    start(root)
    rondel("run")
    assert rondel("approve", "one", *args) == 2
    assert not (root / REF.folder / ".rondel/decisions").exists()


def test_what_waits_for_nobody_takes_no_answer(root, rondel):
    start(root, auto=True)
    rondel("run")
    assert rondel("approve", "one") == 2


def interrupt(_: Request) -> str:
    os.kill(os.getpid(), signal.SIGINT)
    return "Fine.\n"


def parked(_: Request) -> Reply:
    return Reply(Ended.PARKED, error="limit", until=datetime.now(UTC) + timedelta(hours=1))


@pytest.mark.parametrize(
    ("answer", "code", "stopped"),
    [
        (lambda _: "Fine.\n", 0, "completed"),
        (lambda _: Reply(Ended.FAILED, error="no"), 1, "failed"),
        (lambda _: Reply(Ended.WAITING, error="write x.md"), 3, "waiting"),
        (parked, 6, "parked"),
        (lambda _: Reply(Ended.DONE, "Costly.\n", usage=Usage(usd=9.0)), 6, "limit"),
        (interrupt, 130, "interrupted"),
    ],
)
def test_each_end_has_its_exit_code(root, rondel, capsys, answer, code, stopped):
    start(root, auto=True, width=2)
    (root / "rondel.toml").write_text("[limits]\nagents_max = 1\nusd_max = 5\n")
    assert rondel("run", "one", "--json", agent=Scripted(answer)) == code
    body = json.loads(capsys.readouterr().out)
    assert (body["schema_version"], body["session"]) == (1, "small:one")
    assert (body["stopped"], body["exit_code"]) == (stopped, code)


def test_several_active_sessions_are_listed_and_none_is_chosen(root, rondel, capsys):
    start(root)
    other = root / ".small/two/.rondel"
    other.mkdir(parents=True)
    (other / "request-1.json").write_text('{"width": 1}')
    assert rondel("resume") == 2
    said = capsys.readouterr().err
    assert "small:one" in said
    assert "small:two" in said


def test_status_says_what_a_session_waits_for_and_what_it_cost(root, rondel, capsys):
    start(root)
    rondel("run")
    capsys.readouterr()
    rondel("status")
    assert "small:one waits for: Is round 1 good?\n" in capsys.readouterr().out
    rondel("status", "one")
    said = capsys.readouterr().out
    assert "  waits for: Is round 1 good?\n" in said
    assert "  cost so far: 330 tokens, $0.03\n" in said


def unpriced_first(request: Request) -> Reply:
    """The first answer comes from somebody who names no price."""
    usd = None if request.action.endswith("notes/1.md") else 0.02
    return Reply(Ended.DONE, "Text.\n", usage=Usage(100, 10, 0, usd))


def silent_first(request: Request) -> Reply:
    """The first answer comes from somebody who does not say what it used."""
    first = request.action.endswith("notes/1.md")
    return Reply(Ended.DONE, "Text.\n", usage=Usage(uncounted=1) if first else Usage(100, 10, 0, 0.02))


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (silent_first, "at least 220 tokens, at least $0.04"),
        (unpriced_first, "330 tokens, at least $0.04"),
        (lambda _: Reply(Ended.DONE, "x\n", usage=Usage(100, 10)), "330 tokens, at least $0.00"),
    ],
)
def test_what_an_agent_without_a_price_used_makes_the_cost_a_lower_bound_everywhere(
    root, rondel, capsys, usage, said
):
    start(root)
    assert rondel("run", "--json", agent=Scripted(usage)) == 3
    assert json.loads(capsys.readouterr().out)["usage"]["at_least"] is True
    rondel("status", "one")
    assert f"cost so far: {said}\n" in capsys.readouterr().out
    rondel("watch", "one", "--once")
    assert said in capsys.readouterr().out
    rondel("status", "one", "--json")
    assert json.loads(capsys.readouterr().out)["sessions"][0]["usage"]["at_least"] is True


def test_a_cost_that_everybody_named_is_exact(root, rondel, capsys):
    start(root)
    assert rondel("run", "--json") == 3
    found = json.loads(capsys.readouterr().out)["usage"]
    assert (found["at_least"], round(found["usd"], 6), found["input_tokens"]) == (False, 0.03, 300)


def test_the_exact_path_of_a_file_shows_that_file(root, rondel, capsys):
    start(root)
    rondel("run")
    folder = root / REF.folder
    for path, words in {
        "notes.md": "at the top\n",
        ".rondel/parts/notes.md": "a part\n",
        "round-1/notes.md": "of a round\n",
        "deep/er/only.md": "only\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(words)
    shown = {
        "notes.md": "at the top\n",
        "./notes.md": "at the top\n",
        f"{REF.folder}/notes.md": "at the top\n",
        ".rondel/parts/notes.md": "a part\n",
        "round-1/notes.md": "of a round\n",
        "only.md": "only\n",
    }
    for name, words in shown.items():
        capsys.readouterr()
        assert rondel("show", "one", name, "--raw") == 0
        assert capsys.readouterr().out == words
    capsys.readouterr()
    assert rondel("show", "one", "otes.md") == 2
    said = capsys.readouterr().err
    assert "notes.md, " in said
    assert ".rondel/parts/notes.md" in said
    assert rondel("show", "one", "journal.jsonl") == 2


def test_status_explains_every_session_or_one(root, rondel, capsys):
    start(root)
    (root / REF.folder / "topic.md").write_text("birds\n")
    rondel("run")
    (root / REF.folder / "topic.md").write_text("fish\n")
    for args in ((), ("one",)):
        capsys.readouterr()
        assert rondel("status", *args, "--explain") == 0
        said = capsys.readouterr().out
        assert "round-1/notes/1.md  stale: made by manual; input topic.md is changed" in said
        assert "round-1/sum.json  reused: derived" in said
        assert rondel("status", *args, "--explain", "--json") == 0
        (entry,) = json.loads(capsys.readouterr().out)["sessions"]
        note = next(f for f in entry["files"] if f["file"] == "round-1/notes/1.md")
        assert note == {
            "file": "round-1/notes/1.md",
            "stale": True,
            "edited": False,
            "reasons": ["input topic.md is changed"],
        }


@pytest.mark.parametrize("word", ["pause", "stop"])
def test_a_word_without_a_driver_holds_until_it_is_resumed(root, rondel, capsys, word):
    start(root, auto=True)
    assert rondel(word, "one") == 0
    assert "no driver" in capsys.readouterr().err
    assert project(root).summary(REF).status == "paused"
    assert rondel("resume", "one") == 0
