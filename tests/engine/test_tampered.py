"""A reply that says that its agent changed what is the person's: nothing of it is taken before they know."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from harness import REF, git, project, repository, start

from rondel.agents.base import Reply, Request
from rondel.engine.perform import Performer
from rondel.model.actions import Access
from rondel.model.outcomes import Ended
from rondel.testing.faults import in_child
from rondel.testing.scripted import USAGE, Scripted

NOTE = "round-1/notes/1.md"
SAID = "settings.json of your CLI was changed"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = repository(tmp_path / "repo")
    git(root, "branch", "work")
    return root


def tampering(request: Request) -> Reply:
    if request.access is Access.WRITE:
        (request.cwd / "made.txt").write_text("made\n")
    return Reply(Ended.DONE, "An answer.\n", usage=USAGE, tampered=SAID)


def has_note(root: Path) -> bool:
    return (root / REF.folder / NOTE).exists()


@pytest.mark.parametrize("edits", [False, True])
@pytest.mark.parametrize("in_process", [False, True])
def test_nothing_of_it_is_taken_and_going_on_takes_it_up_again(root, edits, in_process):
    base = git(root, "rev-parse", "work")
    start(root, auto=True, width=1, edits=edits, branch="work")
    agent = Scripted(tampering, in_process=in_process)
    report = project(root, agent).run(REF)
    assert report.exit_code != 0
    assert SAID in report.message
    assert agent.actions == [NOTE]
    assert not has_note(root)
    assert git(root, "rev-parse", "work") == base
    again = Scripted(in_process=in_process)
    assert project(root, again).run(REF).exit_code == 0
    assert again.actions == ["final.md"], "its answer is paid for"
    assert has_note(root)
    assert (git(root, "rev-parse", "work") != base) is edits


def test_a_death_before_it_was_said_takes_nothing_of_it(root):
    start(root, auto=True, width=1)

    def doomed() -> int:
        async def die(*_: object) -> str:
            os.kill(os.getpid(), signal.SIGKILL)
            return ""

        Performer._changed_state = die
        return project(root, Scripted(tampering)).run(REF).exit_code

    assert in_child(doomed) == -signal.SIGKILL
    agent = Scripted()
    report = project(root, agent).run(REF)
    assert report.exit_code != 0
    assert SAID in report.message
    assert (agent.actions, has_note(root)) == ([], False)
    assert project(root, agent).run(REF).exit_code == 0
    assert agent.actions == ["final.md"]


def test_an_answer_that_is_sent_back_takes_its_word_along(root):
    start(root, auto=True, width=1)

    def answer(request: Request) -> Reply | str:
        if "cannot be used" in request.prompt:
            return "Right.\n"
        return Reply(Ended.DONE, "1 is no letter.\n", usage=USAGE, tampered=SAID)

    agent = Scripted(answer)
    report = project(root, agent).run(REF)
    assert report.exit_code != 0
    assert SAID in report.message
    assert agent.actions == [NOTE, NOTE]
    assert not has_note(root)
