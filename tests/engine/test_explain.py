"""Why a file is reused, when it is stale, and what refreshing redoes."""

from __future__ import annotations

import pytest
from harness import REF, project, repository, start

from rondel.testing.scripted import Scripted


@pytest.fixture
def root(tmp_path):
    root = repository(tmp_path / "repo")
    start(root, width=2)
    (root / REF.folder / "topic.md").write_text("birds\n")
    project(root).run(REF)
    return root


def reasons(root) -> dict[str, tuple[str, ...]]:
    return {o.file: o.reasons for o in project(root).views.explain(REF)}


def test_what_is_unchanged_is_reused_and_says_so(root):
    origins = project(root).views.explain(REF)
    assert {o.file for o in origins} >= {"round-1/notes/1.md", "round-1/notes/2.md", "round-1/sum.json"}
    assert all(o.words.startswith("reused") for o in origins)
    assert not any(o.stale for o in origins)


def test_a_changed_input_makes_stale_and_is_named(root):
    (root / REF.folder / "topic.md").write_text("fish\n")
    assert reasons(root)["round-1/notes/1.md"] == ("input topic.md is changed",)
    assert reasons(root)["round-1/sum.json"] == ()


def test_an_input_that_went_away_is_named(root):
    (root / REF.folder / "topic.md").unlink()
    assert reasons(root)["round-1/notes/2.md"] == ("input topic.md is gone",)


def test_another_agent_for_the_role_is_named(root):
    (root / "rondel.toml").write_text(
        '[agents.other]\nkind = "mock"\nscript = "x.json"\n[roles]\ndefault = "other"\n'
    )
    assert "small.writer is now other, was manual" in reasons(root)["round-1/notes/1.md"]


def test_another_model_for_the_role_is_named_also_when_it_is_the_default_again(root):
    mock = '[agents.m]\nkind = "mock"\nscript = "x.json"\nmodel = "large"\n[roles]\ndefault = "m"\n'
    (root / "rondel.toml").write_text(mock)
    project(root).run(REF, redo=True)
    assert reasons(root)["round-1/notes/1.md"] == ()
    (root / "rondel.toml").write_text(mock.replace('"large"', '"small"'))
    assert reasons(root)["round-1/notes/1.md"] == ("the model of m is now small, was large",)
    (root / "rondel.toml").write_text(mock.replace('model = "large"\n', ""))
    assert reasons(root)["round-1/notes/1.md"] == ("the model of m is now its default, was large",)


def test_resuming_alone_redoes_nothing_stale(root):
    (root / REF.folder / "topic.md").write_text("fish\n")
    agent = Scripted()
    project(root, agent).run(REF)
    assert agent.seen == []


def test_refreshing_redoes_the_stale_and_what_depends_on_them(root):
    (root / REF.folder / "topic.md").write_text("fish\n")
    agent = Scripted(lambda r: f"New {r.action}.\n")
    project(root, agent).run(REF, redo=True)
    assert sorted(r.action for r in agent.seen) == ["round-1/notes/1.md", "round-1/notes/2.md"]
    assert not any(o.stale for o in project(root).views.explain(REF))
    aside = {p.name for p in (root / REF.folder / ".rondel/aside").iterdir()}
    assert {"round-1__notes__1.md.stale-1", "round-1__sum.json.stale-1"} <= aside, "nothing is deleted"


def test_an_edited_file_is_kept_and_what_depends_on_it_is_redone(root):
    note = root / REF.folder / "round-1/notes/1.md"
    note.write_text("Mine.\n")
    (root / REF.folder / "topic.md").write_text("fish\n")
    said: list[str] = []
    agent = Scripted()
    project(root, agent).run(REF, redo=True, say=said.append)
    assert note.read_text() == "Mine.\n"
    assert [r.action for r in agent.seen] == ["round-1/notes/2.md"]
    assert any("round-1/notes/1.md" in line and "edited" in line for line in said)
    assert not project(root).views.explain(REF)[-1].stale


def test_a_finished_round_is_never_touched(root):
    here = project(root)
    here.decide(REF, "reject")
    here.run(REF)
    before = {p: p.read_bytes() for p in (root / REF.folder / "round-1").rglob("*") if p.is_file()}
    (root / REF.folder / "topic.md").write_text("fish\n")
    agent = Scripted()
    project(root, agent).run(REF, redo=True)
    assert {r.action.partition("/")[0] for r in agent.seen} == {"round-2"}
    assert {p: p.read_bytes() for p in before} == before
