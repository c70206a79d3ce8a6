"""Decisions: only what the person's own command decided counts, for what was there when they did."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from harness import REF
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import Small, SmallWorkflow
from test_runtime import git
from test_sessions import begun, home, project
from test_strangers import person, put

from rondel.agents.base import Request
from rondel.errors import NeedsConsent, RondelError
from rondel.model.actions import Action, Decide
from rondel.model.decisions import doubt, sealed
from rondel.model.summary import Status
from rondel.project import Project
from rondel.testing.faults import die_anywhere_at, in_child
from rondel.testing.scripted import Scripted, plain, run_of
from rondel.trust import sessions as trust_sessions
from support.cli import rondel

QUESTION = ".rondel/decisions/round-1.json"
FORGED = {"answer": "approve", "by": "person", "at": "2026-11-16T00:00:00Z", "comment": ""}
__all__ = ["home"]


def forge(repo: Path, body: object) -> None:
    place = repo / REF.folder / QUESTION
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(body))


def test_an_agent_that_writes_decision_files_passes_no_gate(repo, home):
    def forging(request: Request) -> str:
        forge(repo, FORGED)
        return plain(request)

    agent = Scripted(forging)
    here = begun(repo, agent, auto=False)
    assert here.run(REF).exit_code == 3
    assert "final.md" not in agent.actions
    (problem,) = here.summary(REF).problems
    assert (problem.rule, problem.file) == ("decision-unsealed", QUESTION)
    here.decide(REF, "approve")
    assert here.summary(REF).problems == ()
    assert here.run(REF).exit_code == 0
    assert here.summary(REF).status is Status.COMPLETED


@pytest.mark.parametrize("how", ["answer", "comment", "other question", "other session", "other key"])
def test_a_seal_holds_for_one_answer_to_one_question_of_one_session(repo, home, tmp_path, monkeypatch, how):
    here = begun(repo, auto=False)
    here.run(REF)
    here.decide(REF, "reject", comment="no")
    place = repo / REF.folder / QUESTION
    body = json.loads(place.read_text())
    if how == "other key":
        (key,) = (tmp_path / "state/rondel/repos").glob("*/key")
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert len(key.read_bytes()) == 32
        key.write_bytes(b"x" * 32)
    elif how == "other session":
        (record,) = (tmp_path / "state/rondel/repos").glob("*/sessions/*/*/session.json")
        before = json.loads(record.read_text())["identity"]["id"]
        for path in (record, repo / REF.folder / ".rondel/session.json"):
            path.write_text(path.read_text().replace(before, "small-0123456789abcdef"))
    elif how == "other question":
        place.rename(place.with_name("round-2.json"))
    else:
        place.write_text(json.dumps({**body, how: "approve"}))
    moved = ["decision-removed"] if how == "other question" else []
    assert [p.rule for p in project(repo).summary(REF).problems] == ["decision-unsealed", *moved]
    assert project(repo).state(REF).answer is None


class Looking(SmallWorkflow):
    """Its question is about a file."""

    def plan(self, state: Small) -> Iterable[Action]:
        about = (f"round-{state.number}/sum.json",)
        yield from (replace(a, inputs=about) if isinstance(a, Decide) else a for a in super().plan(state))


def test_an_answer_that_is_older_than_what_it_decides_is_none(repo, home):
    begun(repo, auto=False)
    agent = Scripted()
    here = Project(repo, workflows={"small": Looking()}, build=lambda _: agent)
    assert here.run(REF).exit_code == 3
    here.decide(REF, "approve")
    assert here.state(REF).answer == "approve"
    (repo / REF.folder / "round-1/sum.json").write_text('{"notes": ["another"]}')
    assert here.state(REF).answer is None
    assert [p.rule for p in here.summary(REF).problems] == ["decision-outdated"]
    assert here.run(REF).exit_code == 3
    assert "final.md" not in agent.actions
    here.decide(REF, "approve")
    assert here.run(REF).exit_code == 0


def test_what_a_run_started_decides_nothing(repo, home, monkeypatch):
    here = begun(repo, auto=False)
    here.run(REF)
    monkeypatch.setenv("RONDEL_CHILD", "a-token")
    with pytest.raises(NeedsConsent):
        here.decide(REF, "approve")
    assert not (repo / REF.folder / QUESTION).exists()


def test_adopted_decisions_count_with_their_givers(repo, home, tmp_path, monkeypatch):
    here = begun(repo, auto=False)
    here.run(REF)
    here.decide(REF, "approve", by="Ada")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    other = project(repo, agent := Scripted())
    assert any("approve by Ada" in line for line in other.claims(REF))
    other.adopt(REF)
    assert other.summary(REF).problems == ()
    assert other.run(REF).exit_code == 0
    assert agent.actions == ["final.md"]
    assert json.loads((repo / REF.folder / QUESTION).read_text())["by"] == "Ada"


def test_what_a_colleague_adopts_stays_the_giver_s_own_and_theirs_can_be_taken_over(
    repo, home, tmp_path, monkeypatch
):
    here = begun(repo, auto=False)
    here.run(REF)
    here.decide(REF, "approve", by="Ada")
    mine = os.environ["XDG_STATE_HOME"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    other = project(repo, Scripted())
    other.adopt(REF)
    monkeypatch.setenv("XDG_STATE_HOME", mine)
    assert project(repo, Scripted()).summary(REF).problems == ()
    place = repo / REF.folder / QUESTION
    place.unlink()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    project(repo, Scripted()).decide(REF, "approve", by="Bea")
    monkeypatch.setenv("XDG_STATE_HOME", mine)
    again = project(repo, agent := Scripted())
    assert [p.rule for p in again.summary(REF).problems] == ["decision-unsealed"]
    run = run_of(repo / REF.folder) / "journal.jsonl"
    before = run.read_bytes()
    again.adopt(REF)
    assert run.read_bytes() == before, "its own runtime stays"
    assert again.summary(REF).problems == ()
    assert again.run(REF).exit_code == 0
    assert agent.actions == ["final.md"]


def test_a_death_while_a_session_is_adopted_loses_no_decision(repo, home, tmp_path, monkeypatch):
    here = begun(repo, auto=False)
    here.run(REF)
    here.decide(REF, "approve")
    saved = tmp_path / "saved"
    shutil.copytree(repo / ".small", saved)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    for point in range(1, 200, 3):
        shutil.rmtree(repo / ".small")
        shutil.copytree(saved, repo / ".small")
        shutil.rmtree(tmp_path / "another", ignore_errors=True)

        def doomed(point: int = point) -> None:
            die_anywhere_at(point)
            project(repo).adopt(REF)

        died = in_child(doomed) != 0
        if not project(repo).is_known(REF):
            project(repo).adopt(REF)
        assert project(repo).summary(REF).problems == (), point
        assert project(repo).state(REF).answer == "approve", point
        if not died:
            break
    assert not died


def test_an_accepted_finding_counts_only_with_the_command(repo, env):
    put(repo, env, {"b.py": "import os\n\nPASSWORD = 'AKIAIOSFODNN7EXAMPLE'\n\n\ndef f(x):\n    eval(x)\n"})
    person(env, '[roles]\ndefault = "checks"\n')
    rondel(repo, env, "review")
    (folder,) = (repo / ".ocr/sessions").iterdir()
    shown = json.loads(rondel(repo, env, "review", "show", "--json").stdout)
    assert shown["verdict"] != "APPROVE"
    meta = json.loads((folder / "rounds/round-1/round-meta.json").read_text())
    prints = [f["fingerprint"] for f in _findings(meta) if "fingerprint" in f]
    assert prints
    (folder / ".rondel/decisions").mkdir(parents=True, exist_ok=True)
    for one in prints:
        (folder / f".rondel/decisions/accept-{one}.json").write_text('{"answer": "accept", "by": "person"}')
    again = rondel(repo, env, "review", "--again", "--json", "--fail-on-changes")
    assert again.returncode == 4, again.stdout


def _findings(value: object) -> list[dict[str, object]]:
    found = []
    if isinstance(value, dict):
        found = [value, *(f for v in value.values() for f in _findings(v))]
    elif isinstance(value, list):
        found = [f for v in value for f in _findings(v)]
    return found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
BODIES = st.dictionaries(st.sampled_from(["answer", "by", "at", "comment", "x"]), JSON, max_size=4)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=BODIES, other=BODIES, key=st.binary(min_size=32, max_size=32), seal=st.text(max_size=70))
def test_no_other_decision_is_believed_whatever_is_written(body, other, key, seal):
    good = sealed(key, "s", "p", body)
    assert doubt(key, "s", "p", good) == ""
    forgeries = [
        ({**other, "seal": good["seal"]}, "s", "p", key),
        ({**body, "seal": seal}, "s", "p", key),
        (body, "s", "p", key),
        (good, "t", "p", key),
        (good, "s", "q", key),
        (good, "s", "p", bytes(b ^ 1 for b in key)),
        (good, "s", "p", None),
    ]
    for forged, session, path, with_key in forgeries:
        if forged != good or (session, path, with_key) != ("s", "p", key):
            assert doubt(with_key, session, path, forged)


def test_an_earlier_answer_that_is_put_back_counts_for_nothing(repo, home):
    here = begun(repo, auto=False)
    here.run(REF)
    place = repo / REF.folder / QUESTION
    here.decide(REF, "approve")
    earlier = place.read_bytes()
    place.unlink()
    here.decide(REF, "reject", comment="no")
    assert project(repo).summary(REF).problems == ()
    place.write_bytes(earlier)
    assert [p.rule for p in project(repo).summary(REF).problems] == ["decision-unsealed"]
    assert project(repo).state(REF).answer is None
    project(repo).adopt(REF)
    assert project(repo).summary(REF).problems == (), "the person took it over"
    assert project(repo).state(REF).answer == "approve"


def test_an_answer_that_was_removed_is_named_until_the_person_goes_on_without_it(repo, home):
    here = begun(repo, auto=False)
    here.run(REF)
    here.decide(REF, "approve")
    (repo / REF.folder / QUESTION).unlink()
    assert [p.rule for p in project(repo).summary(REF).problems] == ["decision-removed"]
    assert project(repo).waiting(REF), "and it is asked again"
    project(repo).adopt(REF)
    assert project(repo).summary(REF).problems == ()


def test_a_driver_that_is_at_work_sees_the_newer_answer(repo, home):
    here = begun(repo, auto=False)
    here.run(REF)
    session = here.session(REF)
    here.decide(REF, "approve")
    session.refresh()
    assert session.state.answer == "approve"
    (repo / REF.folder / QUESTION).unlink()
    project(repo).decide(REF, "reject")
    session.refresh()
    assert session.state.answer == "reject"


def answered(repo: Path) -> Project:
    """A session with an answer of the person's, committed, as a branch brings it elsewhere."""
    here = begun(repo, auto=False)
    here.run(REF)
    here.decide(REF, "approve")
    git(repo, "add", "-f", REF.folder)
    git(repo, "commit", "-qm", "session")
    return here


def worktree(repo: Path, name: str) -> Path:
    place = repo.with_name(name)
    git(repo, "worktree", "add", "-q", "--detach", str(place))
    return place


@pytest.mark.parametrize("known_before", [False, True])
def test_an_answer_that_was_removed_is_named_in_every_worktree(repo, home, known_before):
    answered(repo)
    other = worktree(repo, "other")
    if known_before:
        project(other).begin(REF)
    assert project(other).summary(REF).problems == ()
    assert project(other).state(REF).answer == "approve"
    kept = (other / REF.folder / QUESTION).read_bytes()
    (other / REF.folder / QUESTION).unlink()
    assert [p.rule for p in project(other).summary(REF).problems] == ["decision-removed"]
    project(other).adopt(REF)
    assert project(other).summary(REF).problems == (), "the person goes on without it, there"
    assert project(repo).summary(REF).problems == ()
    (repo / REF.folder / QUESTION).unlink()
    assert [p.rule for p in project(repo).summary(REF).problems] == ["decision-removed"]
    (other / REF.folder / QUESTION).write_bytes(kept)
    assert project(other).state(REF).answer == "approve"


def test_an_earlier_answer_counts_in_no_worktree_and_each_has_its_own_last(repo, home):
    here = answered(repo)
    other = worktree(repo, "other")
    place = other / REF.folder / QUESTION
    (repo / REF.folder / QUESTION).unlink()
    here.decide(REF, "reject", comment="no")
    assert [p.rule for p in project(other).summary(REF).problems] == ["decision-unsealed"]
    assert project(other).state(REF).answer is None
    place.unlink()
    project(other).decide(REF, "approve")
    assert project(other).state(REF).answer == "approve"
    assert project(other).summary(REF).problems == ()
    assert project(repo).state(REF).answer == "reject", "what is answered elsewhere changes nothing here"
    assert project(repo).summary(REF).problems == ()


def many_answers(repo: Path, count: int) -> None:
    """What this many answers leave: each in its file, with its seal, and a note of it."""
    session = project(repo).session(REF)
    key, names = session.seals._make_key(), [f".rondel/decisions/complete-{n}.json" for n in range(count)]
    who = session.seals._subject(session.files)
    answers = {name: sealed(key, who, name, {"answer": "complete"}) for name in names}
    session.seals._note(
        session.files, lambda last: {**last.own, **{name: str(a["seal"]) for name, a in answers.items()}}
    )
    (repo / REF.folder / ".rondel/decisions").mkdir(parents=True, exist_ok=True)
    for path, answer in answers.items():
        (repo / REF.folder / path).write_text(json.dumps(answer))


def test_thousands_of_answers_are_remembered(repo, home):
    here = begun(repo, auto=False)
    here.run(REF)
    here.decide(REF, "approve")
    many_answers(repo, 5_000)
    (repo / REF.folder / QUESTION).unlink()
    began = time.monotonic()
    assert [p.rule for p in project(repo).summary(REF).problems] == ["decision-removed"]
    assert time.monotonic() - began < 20, "the notes are not read for each answer"


def test_what_could_not_be_read_again_is_not_written_and_nothing_is_forgotten(repo, home, monkeypatch):
    here = begun(repo, auto=False)
    here.run(REF)
    (record,) = (Path(os.environ["XDG_STATE_HOME"]) / "rondel/repos").glob("*/sessions/*/*/session.json")
    monkeypatch.setattr(trust_sessions, "SIZE_MAX", record.stat().st_size + 100)
    many_answers(repo, 2)
    with pytest.raises(RondelError, match="more than"):
        many_answers(repo, 10)
    (repo / REF.folder / ".rondel/decisions/complete-1.json").unlink()
    assert [p.rule for p in project(repo).summary(REF).problems] == ["decision-removed"]
    (notes,) = record.parent.glob("decisions-*.json")
    notes.write_bytes(notes.read_bytes() + b" " * 1_000)
    with pytest.raises(RondelError, match=notes.name):
        project(repo).summary(REF)


def test_the_answers_of_a_session_that_took_the_place_of_another_count_once_it_is_adopted(
    repo, home, tmp_path, monkeypatch
):
    mine = os.environ["XDG_STATE_HOME"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    theirs = begun(repo, auto=False)
    theirs.run(REF)
    theirs.decide(REF, "approve", by="Ada")
    (repo / REF.folder).rename(tmp_path / "theirs")
    monkeypatch.setenv("XDG_STATE_HOME", mine)
    begun(repo, auto=False)
    shutil.rmtree(repo / REF.folder)
    (tmp_path / "theirs").rename(repo / REF.folder)
    here = project(repo)
    assert here.claims(REF)
    here.adopt(REF)
    for one in (here, project(repo)):
        assert one.summary(REF).problems == ()
        assert one.state(REF).answer == "approve"


def test_an_answer_in_a_copy_with_the_same_id_is_none_in_the_session_it_was_copied_from(
    repo, home, monkeypatch
):
    monkeypatch.delenv("RONDEL_TRUST", raising=False)
    here = begun(repo, auto=False)
    here.run(REF)
    copy = replace(REF, id="harmless", folder=f"{REF.folder.rpartition('/')[0]}/harmless")
    shutil.copytree(repo / REF.folder, repo / copy.folder)
    project(repo).adopt(copy)
    project(repo).decide(copy, "approve")
    assert project(repo).state(copy).answer == "approve"
    assert project(repo).summary(REF).problems == (), "nobody misses it here"
    forge(repo, json.loads((repo / copy.folder / QUESTION).read_text()))
    assert [p.rule for p in project(repo).summary(REF).problems] == ["decision-unsealed"]
    assert project(repo).state(REF).answer is None


def test_the_answers_of_a_renamed_session_count_once_it_is_adopted(repo, home, monkeypatch):
    monkeypatch.delenv("RONDEL_TRUST", raising=False)
    here = begun(repo, auto=False)
    here.run(REF)
    here.decide(REF, "approve")
    renamed = replace(REF, id="two", folder=f"{REF.folder.rpartition('/')[0]}/two")
    (repo / REF.folder).rename(repo / renamed.folder)
    project(repo).adopt(renamed)
    assert project(repo).summary(renamed).problems == ()
    assert project(repo).state(renamed).answer == "approve"
