"""Whatever the files of a session hold, it is read, planned, asked about and drawn."""

from __future__ import annotations

import copy
import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from task_support import state, step, task

from rondel.model.actions import Ask
from rondel.model.changes import Write
from rondel.workflows.task import files
from rondel.workflows.task.documents import draw
from rondel.workflows.task.workflow import TaskWorkflow

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        [
            "IMPL-" + "9" * 5000,
            "IMPL-1.1.1",
            "container",
            "[x]",
            "../x",
            "\0",
            "\ud800",
            "exit_code:" + "9" * 5000,
        ]
    ),
    st.lists(st.one_of(st.none(), st.integers(), st.just("IMPL-2"), st.just({})), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)
LOOK = step("bash(echo [title])", output_to="seen", on_error="retry_once", success_criteria="exit_code:0")
TASK = task("IMPL-1", depends_on=["IMPL-2"], focus_paths=["src"], parent="IMPL-2", steps=[LOOK])
REQUEST = {"kind": "run", "tasks": ["IMPL-1"], "target": "main", "checks": "true", "step_timeout_s": 5}
TRY = {"status": "failed", "error": "no", "changed": ["a"]}


def places(value: object, at: tuple = ()) -> list[tuple]:
    """The way to every value inside a value, its own included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(p for key, deeper in inner for p in places(deeper, (*at, key)))]


@st.composite
def spoilt(draw_one, original: object) -> bytes:
    """A file of which some values are something else."""
    value = copy.deepcopy(original)
    for _ in range(draw_one(st.integers(0, 2))):
        at = draw_one(st.sampled_from(places(value)))
        odd = draw_one(ODD)
        if not at:
            value = odd
            continue
        inside = value
        for key in at[:-1]:
            inside = inside[key]
        inside[at[-1]] = odd
    return json.dumps(value).encode()


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(
    spoilt(TASK),
    spoilt(task("IMPL-2")),
    spoilt(files.template("WFS-x", "The topic")),
    spoilt(REQUEST),
    spoilt(TRY),
)
def test_whatever_the_files_hold_nothing_raises_and_what_is_drawn_stays(
    first, second, session, request, tried
):
    extra = {
        ".task/IMPL-1.json": first,
        ".task/IMPL-2.json": second,
        "workflow-session.json": session,
        ".rondel/request-1.json": request,
        ".rondel/parts/steps/IMPL-1/1-1-1.json": tried,
    }
    found = state([], extra)
    workflow = TaskWorkflow()
    for due in workflow.steps(found):
        if isinstance(due.action, Ask):
            assert due.prompt(found).encode(errors="replace")
    workflow.summary(found)
    drawn = {c.path: c.data for c in draw(found) if isinstance(c, Write)}
    again = [c.path for c in draw(state([], extra | drawn)) if isinstance(c, Write)]
    assert again == [], "a document that was drawn is not drawn again"
