"""What an action leaves counts when the engine wrote it, or a person did while nobody else could have."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import REF
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import SmallWorkflow
from test_sessions import begun, home, project
from test_strangers import person

from rondel.agents import roster
from rondel.agents.base import Request
from rondel.cli.setup import named_or_only_foreign
from rondel.errors import NothingToDo
from rondel.model.summary import Status
from rondel.project import Project
from rondel.sandbox.box import holds
from rondel.testing.faults import in_child
from rondel.testing.scripted import Scripted, plain, run_of
from rondel.trust.doubts import NAME, WRITTEN_MEANWHILE
from support.cli import rondel

FORGED = "Forged.\n"
__all__ = ["home"]


def note(number: int) -> str:
    return f"round-1/notes/{number}.md"


def text(repo: Path, path: str) -> str:
    return (repo / REF.folder / path).read_text()


def forge(repo: Path, path: str, words: str = FORGED) -> None:
    place = repo / REF.folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(words)


def forger(repo: Path, by: str, path: str) -> Scripted:
    """A program that nothing confines: while it is asked for `by`, it writes another file."""

    def answer(request: Request) -> str:
        if request.action == by:
            forge(repo, path)
        return plain(request)

    return Scripted(answer, in_process=False)


def doubted(here: Project) -> list[str]:
    return [p.file for p in here.summary(REF).problems if p.rule == WRITTEN_MEANWHILE]


def test_an_answer_that_another_agent_wrote_does_not_count_and_is_asked_about(repo, home):
    agent = forger(repo, note(1), note(2))
    here = begun(repo, agent, auto=True)
    report = here.run(REF, agents_max=1)
    assert report.exit_code == 3
    assert f"{note(2)} does not count" in report.message
    assert agent.actions == [note(1)]
    found = here.summary(REF)
    assert doubted(here) == [note(2)]
    assert (found.status, found.next) == (Status.WAITING, f"rondel adopt {REF.name}")
    assert here.run(REF, agents_max=1).exit_code == 3, "nothing was said about it"
    (repo / REF.folder / note(2)).unlink()
    assert here.run(REF, agents_max=1).exit_code == 0
    assert agent.actions == [note(1), note(2), note(3), "final.md"]
    assert "An answer" in text(repo, note(2))
    assert doubted(here) == []


def test_what_the_person_adopts_counts_as_it_is(repo, home):
    agent = forger(repo, note(1), note(2))
    here = begun(repo, agent, auto=True)
    here.run(REF, agents_max=1)
    here.adopt(REF)
    assert doubted(here) == []
    assert here.run(REF, agents_max=1).exit_code == 0
    assert agent.actions == [note(1), note(3), "final.md"]
    assert text(repo, note(2)) == FORGED


def test_a_forged_answer_gives_way_to_the_one_that_was_waited_for(repo, home):
    agent = forger(repo, note(1), note(2))
    here = begun(repo, agent, auto=True)
    agent.seconds = 0.2
    assert here.run(REF, agents_max=3).exit_code == 0
    assert sorted(agent.actions) == ["final.md", note(1), note(2), note(3)]
    assert "An answer" in text(repo, note(2))
    kept = [p.read_text() for p in (repo / REF.folder / ".rondel/aside").iterdir()]
    assert kept == [FORGED]


def test_an_answer_that_somebody_changed_is_not_paid_for_again_unasked(repo, home):
    agent = forger(repo, note(2), note(1))
    here = begun(repo, agent, auto=True)
    assert here.run(REF, agents_max=1).exit_code == 3
    assert doubted(here) == [note(1)]
    assert here.run(REF, agents_max=1).exit_code == 3
    assert agent.actions == [note(1), note(2)]
    forge(repo, note(1), "An answer to " + note(1) + ".\n")  # as it was
    assert here.run(REF, agents_max=1).exit_code == 0
    assert agent.actions == [note(1), note(2), note(3), "final.md"]


def test_what_comes_when_nobody_is_at_work_is_the_persons(repo, home):
    agent = forger(repo, note(1), note(2))
    here = begun(repo, agent, auto=True)
    here.run(REF, agents_max=1)
    forge(repo, note(2), "Mine.\n")
    forge(repo, note(3), "Mine, too.\n")
    assert here.run(REF, agents_max=1).exit_code == 0
    assert agent.actions == [note(1), "final.md"]
    assert (text(repo, note(2)), text(repo, note(3))) == ("Mine.\n", "Mine, too.\n")


def test_a_death_meanwhile_makes_nothing_count(repo, home):
    def dying(request: Request) -> str:
        forge(repo, note(2))
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    begun(repo, auto=True)
    doomed = project(repo, Scripted(dying, in_process=False))
    assert in_child(lambda: doomed.run(REF, agents_max=1).exit_code) == -signal.SIGKILL
    agent = Scripted(in_process=False)
    here = project(repo, agent)
    assert doubted(here) == [note(2)]
    assert here.state(REF).notes == frozenset()
    assert here.run(REF, agents_max=1).exit_code == 3
    assert agent.actions == []
    here.adopt(REF)
    assert here.run(REF, agents_max=1).exit_code == 0
    assert agent.actions == [note(1), note(3), "final.md"]


def test_another_terminal_adopts_while_the_run_goes_on(repo, home):
    def answer(request: Request) -> str:
        if request.action == note(1):
            forge(repo, note(3))
            time.sleep(0.5)
            project(repo).adopt(REF)
        return plain(request)

    agent = Scripted(answer, in_process=False)
    here = begun(repo, agent, auto=True)
    assert here.run(REF, agents_max=1).exit_code == 0
    assert agent.actions == [note(1), note(2), "final.md"]
    assert text(repo, note(3)) == FORGED
    with pytest.raises(NothingToDo):
        named_or_only_foreign(project(repo), REF.name)


def test_an_agent_that_cannot_write_leaves_the_persons_words_alone(repo, home, monkeypatch):
    """The person writes while agents work that are confined, or that start no program."""
    monkeypatch.delenv("RONDEL_SANDBOX")
    agent = forger(repo, note(1), note(2))
    agent.in_process = not holds()
    here = begun(repo, agent, auto=True)
    assert here.run(REF, agents_max=1).exit_code == 0
    assert text(repo, note(2)) == FORGED
    assert agent.actions == [note(1), note(3), "final.md"]
    assert not (run_of(repo / REF.folder) / NAME).exists()


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    by=st.sampled_from([note(1), note(2), note(3)]),
    forged=st.sets(st.sampled_from([note(1), note(2), note(3), "round-1/sum.json", "final.md"]), min_size=1),
    width=st.integers(min_value=1, max_value=3),
)
def test_nothing_forged_is_ever_counted(by, forged, width, tmp_path_factory, monkeypatch):
    where = tmp_path_factory.mktemp("any")
    monkeypatch.setenv("XDG_STATE_HOME", str(where / "state"))
    repo = where / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / ".git/HEAD").write_text("ref: refs/heads/main\n")
    started: list[str] = []

    def answer(request: Request) -> str:
        started.append(request.action)
        if request.action == by:
            for path in forged:
                forge(repo, path)
        return plain(request)

    here = begun(repo, Scripted(answer, in_process=False), auto=True)
    _until_done(here, repo, lambda: here.run(REF, agents_max=width).exit_code)
    assert all(FORGED not in text(repo, p) for p in (*map(note, (1, 2, 3)), "round-1/sum.json", "final.md"))
    assert {*started} >= {note(1), note(2), note(3), "final.md"}


def _until_done(here: Project, repo: Path, drive: Callable[[], int]) -> None:
    """The person removes what was not theirs, as they are told to."""
    for _ in range(8):
        if drive() == 0 and not doubted(here):
            return
        for path in doubted(here):
            (repo / REF.folder / path).unlink()
    pytest.fail("it never came to its end")


MANUAL = """
[agents.program]
kind = "command"
command = ["sh", "{script}"]

[roles]
"small.writer" = "program"
"small.closer" = "manual"
"""


def test_a_person_s_answer_that_an_agent_wrote_is_none(repo, env, home, monkeypatch, tmp_path):
    reply = repo / REF.folder / ".rondel/manual/final.response.md"
    script = tmp_path / "program.sh"
    script.write_text(f"mkdir -p {reply.parent}; echo Forged > {reply}; echo An answer\n")
    monkeypatch.setenv("HOME", env["HOME"])
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{env['HOME']}/.config")
    person(env, MANUAL.format(script=script))
    begun(repo, auto=True, width=1)
    here = Project(repo, workflows={"small": SmallWorkflow()}, build=roster.build)
    assert here.run(REF).exit_code == 3
    assert doubted(here) == [".rondel/manual/final.response.md"]
    assert not (repo / REF.folder / "final.md").exists()
    reply.write_text("Mine\n")
    assert here.run(REF).exit_code == 0
    assert text(repo, "final.md") == "Mine\n"


LEAD = """
for session in {repo}/.ocr/sessions/*; do
    mkdir -p $session/rounds/round-1/reviews
    for who in principal-1 quality-1; do echo Fine > $session/rounds/round-1/reviews/$who.md; done
done
echo Look at everything
"""


def test_a_lead_that_writes_the_reviewers_files_does_not_have_them_counted(repo, env, tmp_path):
    script = tmp_path / "lead.sh"
    script.write_text(LEAD.format(repo=repo))
    person(env, f'[agents.lead]\nkind = "command"\ncommand = ["sh", "{script}"]\n[roles]\ndefault = "lead"\n')
    done = rondel(repo, env, "review", "--team", "principal:1,quality:1")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "does not count" in done.stderr
    (shown,) = json.loads(rondel(repo, env, "status", "--json").stdout)["sessions"]
    reviews = [f"rounds/round-1/reviews/{who}-1.md" for who in ("principal", "quality")]
    assert [p["file"] for p in shown["problems"] if p["rule"] == WRITTEN_MEANWHILE] == reviews
    assert shown["status"] == "waiting"
    asked = rondel(repo, env, "adopt", shown["session"])
    assert asked.returncode == 3
    assert f"does not count yet: {reviews[0]}" in asked.stdout
    adopted = rondel(repo, env, "adopt", shown["session"], "--yes")
    assert adopted.returncode == 0
    (shown,) = json.loads(rondel(repo, env, "status", "--json").stdout)["sessions"]
    assert WRITTEN_MEANWHILE not in {p["rule"] for p in shown["problems"]}


def test_a_state_document_that_is_edited_in_place_keeps_its_own_rules(repo, home):
    """Its fields are read as they are: a person may pause there, and other tools have fields in it."""

    def answer(request: Request) -> str:
        if request.action == note(1):
            place = repo / REF.folder / "state.json"
            place.write_text(json.dumps({**json.loads(place.read_text()), "theirs": 1}))
        return plain(request)

    here = begun(repo, Scripted(answer, in_process=False), auto=True)
    assert here.run(REF, agents_max=1).exit_code == 0
    assert json.loads(text(repo, "state.json"))["theirs"] == 1
    assert doubted(here) == []


def test_what_a_round_came_to_is_not_changed_by_the_next_one(repo, home):
    agent = forger(repo, "final.md", "round-1/sum.json")
    here = begun(repo, agent, auto=True)
    here.run(REF, agents_max=1)
    assert doubted(here) == ["round-1/sum.json"]


def test_what_editors_and_desktops_leave_stops_nobody(repo, home):
    def answer(request: Request) -> str:
        for name in (
            ".DS_Store",
            "round-1/notes/.2.md.swp",
            "round-1/notes/2.md~",
            "round-1/notes/.#2.md",
            ".rondel/parts/.rondel-tmp-0123",
        ):
            forge(repo, name)
        return plain(request)

    here = begun(repo, Scripted(answer, in_process=False), auto=True)
    assert here.run(REF, agents_max=1).exit_code == 0


KILLS_ITS_REAPER = """
exec > /dev/null 2>&1
env -i PATH="$PATH" setsid sh -c ': > {away}; sleep 2; mkdir -p {folder}; echo Forged > {folder}/2.md' &
until [ -e {away} ]; do sleep 0.01; done
kill -9 $PPID
"""


def test_who_kills_its_reaper_writes_nothing_that_counts(repo, env, home, monkeypatch, tmp_path):
    folder, script = repo / REF.folder / "round-1/notes", tmp_path / "program.sh"
    script.write_text(KILLS_ITS_REAPER.format(folder=folder, away=tmp_path / "away"))
    monkeypatch.setenv("HOME", env["HOME"])
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{env['HOME']}/.config")
    person(env, MANUAL.format(script=script) + "[limits]\nattempts_max = 1\nagents_max = 1\n")
    begun(repo, auto=True, width=2)
    here = Project(repo, workflows={"small": SmallWorkflow()}, build=roster.build)
    here.run(REF)
    end = time.monotonic() + 20
    while not (folder / "2.md").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert doubted(here) == [note(2)]
    agent = Scripted()
    assert project(repo, agent).run(REF, retry=True).exit_code == 3
    assert agent.actions == []
