"""Words of somebody else under the name of a task session's document, at any moment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from task_support import REPORT, Scripted, allow_all, project, repository, session, step, task

from rondel.agents.base import Request
from rondel.model.names import digest
from rondel.testing.scripted import run_of
from rondel.workflows.task import layout
from support.words import SWEPT, Moment, Story, tell, told

pytestmark = pytest.mark.sweep


def answer(request: Request) -> str:
    if request.role == "task.planner":
        return f"```json\n{json.dumps({'title': 'Better', 'requirements': ['better']})}\n```\n"
    return REPORT


class Planned(Story):
    """Two tasks, the first with a step; then the first is planned anew and all is done again."""

    names = (
        layout.TODO,
        layout.PLAN,
        layout.summary_file("IMPL-1"),
        layout.summary_file("IMPL-2"),
        layout.output_file("IMPL-1", 1, "look"),
        layout.task_file("IMPL-1"),
        layout.task_file("IMPL-2"),
    )

    def __init__(self, folder: Path) -> None:
        self.root = repository(folder / "repo")
        tasks = [task("IMPL-1", steps=[step("echo seen")]), task("IMPL-2", depends_on=["IMPL-1"])]
        self.ref = session(self.root, tasks)
        allow_all(self.root, self.ref)
        self.session = self.root / self.ref.folder
        self.agent = Scripted(answer)
        self.project = project(self.root, self.agent)

    def ask(self, number: int, **request: object) -> None:
        path = self.session / f".rondel/request-{number}.json"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"target": "main", **request}))
        damaged = [name for name in self.names if name.startswith(layout.TASKS) and not self.is_json(name)]
        assert self.project.run(self.ref).exit_code in ((0, 1) if damaged else (0,)), damaged

    def is_json(self, name: str) -> bool:
        """Whether a task can be read; one that cannot runs no more, nor does what depends on it."""
        return (self.session / name).read_text().startswith("{")

    def drive(self) -> None:
        self.ask(1, kind="run")

    def more(self) -> None:
        self.ask(2, kind="replan", task_id="IMPL-1", text="better")
        self.ask(3, kind="run")


@pytest.mark.parametrize("name", Planned.names)
@pytest.mark.parametrize("point", [0, 10**6])
def test_words_in_each_place_are_found_again(name, point, tmp_path):
    told(Planned(tmp_path), Moment(point, Planned.names.index(name)))


@SWEPT
def test_words_of_somebody_else_are_found_again(tmp_path_factory):
    tell(Planned, tmp_path_factory.mktemp, examples=6)


def test_a_task_file_that_is_planned_anew_is_kept_to_the_byte_with_an_edit_of_that_moment(tmp_path):
    story = Planned(tmp_path)
    story.drive()
    path = story.session / layout.task_file("IMPL-1")

    def edit(request: Request) -> str:
        body = json.loads(path.read_text()) | {"note": "mine, while you plan"}
        path.write_text(json.dumps(body))  # on one line, as nobody else writes it
        return answer(request)

    story.agent.answer = edit
    story.ask(2, kind="replan", task_id="IMPL-1", text="better")
    assert json.loads(path.read_text())["title"] == "Better"
    kept = [p.read_text() for p in (story.session / ".rondel/aside").iterdir()]
    assert [json.loads(k)["note"] for k in kept if k.count("\n") == 0] == ["mine, while you plan"]


def test_without_its_runtime_a_session_still_knows_which_documents_are_its_own(tmp_path):
    story = Planned(tmp_path)
    story.drive()
    drawn = digest((story.session / layout.TODO).read_bytes())
    assert drawn in (story.session / ".rondel/written.jsonl").read_text()
    for path in sorted((run_of(story.session)).rglob("*"), reverse=True):
        path.unlink() if not path.is_dir() else path.rmdir()
    story.more()
    kept = [p.name for p in (story.session / ".rondel/aside").iterdir()]
    assert kept == [".task__IMPL-1.json.replaced-1"], "only what was planned anew"
