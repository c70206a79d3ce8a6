"""A driver may die between any two files; the same answer is then applied again, and nothing shows it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from cycle_loop import JUNIT_FAIL, Loop, block, plan_reply
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.model.actions import Action, Decide
from rondel.model.changes import Append, Change
from rondel.model.outcomes import Ended, Outcome
from rondel.store.changes import Written, note_ours, write_changes
from rondel.workflows.cycle.files import added

LOGS = ("cd/changes.log", "coordination/timeline.md")
TASKS = plan_reply({"id": "A", "description": "one"}, {"id": "B", "description": "two"})


class Dying(Loop):
    """Dies after some of an action's changes; what was answered is there when it comes back."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.deaths: list[int | None] = []
        self.kept: dict[str, tuple[datetime, Outcome]] = {}
        self.script["iteration-1/cd/B.md"] = self.conflict

    def conflict(self, *_: object) -> Outcome:
        at = self.tick()
        text = "Done.\n\n" + block("cd")
        return Outcome(
            Ended.CONFLICT, text=text, conflicts=("a.py",), commit="d" * 40, started_at=at, finished_at=at
        )

    def do(self, action: Action) -> None:
        if action.path not in self.kept:
            started = self.tick()
            self.kept[action.path] = (started, self.outcome(action, started))
        started, outcome = self.kept[action.path]
        step = self.planned(action)
        if self.survives(step.begin(self.state, started)) and self.survives(step.write(self.state, outcome)):
            self.done.append(action.path)

    def survives(self, changes: list[Change]) -> bool:
        """Carry out all changes, or die after some of them."""
        death = self.deaths.pop(0) if self.deaths else None
        if death is None:
            self.carry(changes)
            return True
        note_ours(self.folder, changes, Written(self.folder), self.ref.beside)
        for change in list(changes)[: death % (len(changes) + 1)]:
            write_changes(self.folder, [change], beside=self.ref.beside)
        return False


def ran(root: Path, deaths: list[int | None]) -> Dying:
    """Two iterations, a conflict, and an extension."""
    loop = Dying(root, {"iteration-1/vas/tests.json": JUNIT_FAIL, "ep/plan.json": TASKS}, {"auto": True})
    loop.deaths = deaths
    loop.run()
    loop.carry([added("And more", loop.now)])
    loop.run()
    return loop


def content(loop: Loop) -> dict[str, str]:
    """Every file but the logs, without the cycle's own id and birth and the extension's name."""
    files = {
        str(path.relative_to(loop.folder)): path.read_text()
        for path in sorted(loop.folder.rglob("*"))
        if path.is_file()
        and path.name not in ("state.ndjson", "written.jsonl")
        and "extensions/" not in str(path)
    }
    begin = json.loads(files.pop(".rondel/parts/iteration-3/begin.json"))
    assert len(begin.pop("taken")) == 1
    files |= {"begin": json.dumps(begin), "state": loop.state_path.read_text()}
    born = loop.document["created_at"]
    return {p: t.replace(loop.ref.id, "ID").replace(born, "BORN") for p, t in files.items()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return content(ran(tmp_path_factory.mktemp("calm"), []))


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=12)
@given(deaths=st.lists(st.none() | st.integers(0, 8), min_size=5, max_size=90))
def test_deaths_between_any_two_files_change_nothing(tmp_path_factory, undisturbed, deaths):
    found = content(ran(tmp_path_factory.mktemp("dying"), list(deaths)))
    for name in LOGS:
        assert found[name] == undisturbed[name], "no line is lost, none is there twice"
    assert [p for p in {*found, *undisturbed} if found.get(p) != undisturbed.get(p)] == []


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("cut", [1, 30])
def test_a_line_that_was_torn_by_a_death_is_written_again_whole(tmp_path, undisturbed, name, cut):
    loop = Dying(tmp_path, {"iteration-1/vas/tests.json": JUNIT_FAIL, "ep/plan.json": TASKS}, {"auto": True})
    log = loop.folder / name
    torn = []

    def tear(change: Change) -> None:
        if isinstance(change, Append) and change.path == name and len(log.read_bytes()) > 60 and not torn:
            log.write_bytes(log.read_bytes()[:-cut])
            torn.append(change.line)
            raise KeyboardInterrupt

    loop.after_change = tear
    with pytest.raises(KeyboardInterrupt):
        loop.run()
    loop.run()
    assert log.read_text().splitlines() == undisturbed[name].splitlines()[: len(log.read_text().splitlines())]
    assert torn[0] in log.read_text().splitlines()


def test_every_line_of_the_append_only_logs_stays_where_it_is(tmp_path):
    loop = Dying(tmp_path, {"iteration-1/vas/tests.json": JUNIT_FAIL, "ep/plan.json": TASKS}, {"auto": True})
    seen: dict[str, bytes] = {}
    appended = 0

    def after(change: Change) -> None:
        nonlocal appended
        appended += isinstance(change, Append)
        for name in (*LOGS, "coordination/state.ndjson"):
            path = loop.folder / name
            data = path.read_bytes() if path.exists() else b""
            assert data.startswith(seen.get(name, b"")), f"{name} lost a line"
            seen[name] = data

    loop.after_change = after
    loop.run()
    assert appended > 5
    assert not [a for a in loop.due() if not isinstance(a, Decide)]
    for line in seen["cd/changes.log"].decode().splitlines():
        json.loads(line)
