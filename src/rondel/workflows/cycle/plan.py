"""Planning: everything that is due now in a cycle."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rondel.model.actions import Access, Action, Ask, Decide, Derive, Probe, Run, Workspace
from rondel.model.digests import digest
from rondel.model.names import folder_name
from rondel.model.refs import commit_or_none
from rondel.workflows.cycle import layout
from rondel.workflows.cycle.adopting import is_given
from rondel.workflows.cycle.measure import COVERAGE, JUNIT
from rondel.workflows.cycle.models import Blocker, Decision
from rondel.workflows.cycle.state import Found, Stage, State, TaskView, Turn

USER = "user"


def plan(state: State) -> Iterator[Action]:
    """What is due. Nothing is while the cycle rests; first of all the state is on disk and in its log."""
    if state.cycle is None:
        return
    if not in_order(state):
        yield Derive(
            f"{layout.PARTS}/taken/{digest(repr(state.document))[:16]}", title="write the state down"
        )
    if state.cycle.status == "paused":
        return
    yield from _answers(state)
    turn = state.turn
    if turn is not None:
        if state.cycle.status == "running":
            yield from _iteration(state, turn)
    elif _next_is_due(state):
        if state.extensions or not (waits := _questions(state, "")):
            yield _begin(state, state.cycle.current_iteration + 1)
        else:
            yield from waits


def in_order(state: State) -> bool:
    """Whether the state file shows the state and the log ends with it."""
    return state.found is Found.FILE and state.logged


def _next_is_due(state: State) -> bool:
    """Whether another iteration begins: the first, one with an extension, or one after open issues."""
    cycle = state.cycle
    if cycle is None:
        return False
    if state.extensions:
        return True
    return cycle.status in ("created", "running") and cycle.current_iteration < cycle.max_iterations


def _begin(state: State, number: int) -> Probe:
    branch, base = (state.identity.branch, state.identity.base) if state.identity else (None, None)
    args = (state.target, _last_commit(state, number), branch or "", base or "")
    return Probe(layout.begun(number), "begin", args, title=f"iteration {number}")


def _last_commit(state: State, number: int) -> str:
    """The commit the iteration before ended with; empty when there is none."""
    tip = state.files.json(layout.built(number - 1))
    return (commit_or_none(tip.get("commit")) or "") if isinstance(tip, dict) else ""


def _iteration(state: State, turn: Turn) -> Iterator[Action]:
    """What is due in the iteration under way."""
    if not turn.begin:
        yield _begin(state, turn.number)
    elif not (turn.has_requirements and turn.has_exploration):
        yield from _ahead(state, "ra", _analysis(state, turn))
    elif turn.plan is None:
        yield from _ahead(state, "ep", [_planning(state, turn)])
    elif not isinstance(state.files.json(layout.PLAN), dict):
        yield Derive(layout.PLAN, inputs=(layout.plan(turn.number),), title="the plan as it was accepted")
    elif turn.tip is None:
        yield from _coding(state, turn)
    elif turn.tests is None:
        yield from _ahead(state, "vas", [_testing(state, turn)])
    elif not turn.has_validation:
        yield from _ahead(state, "vas", [_validating(turn)])
    else:
        inputs = (layout.tests(turn.number), layout.validation(turn.number))
        close = Derive(layout.aggregate(turn.number), inputs=inputs, title=f"close iteration {turn.number}")
        yield from _ahead(state, "vas", [close])


def _ahead(state: State, phase: str, actions: list[Action]) -> Iterator[Action]:
    """The actions, unless something an earlier agent or the user said must be settled first."""
    yield from _questions(state, phase) or actions


def _given(state: State, turn: Turn, part: str, path: str, title: str) -> Derive | None:
    """A document that somebody else wrote, taken over; None where its agent has to be asked."""
    if not is_given(state, turn, path):
        return None
    return Derive(part, inputs=(path,), title=f"{title}: as somebody else wrote it")


def _analysis(state: State, turn: Turn) -> list[Action]:
    """Requirements and exploration start together."""
    read = Workspace(Access.READ, base=turn.base)
    due: list[Action] = []
    if not turn.has_requirements:
        part = layout.requirements(turn.number)
        due.append(
            _given(state, turn, part, layout.REQUIREMENTS, "requirements")
            or Ask(
                part,
                "cycle.ra",
                inputs=(layout.begun(turn.number),),
                workspace=read,
                outputs=(layout.REQUIREMENTS,),
                title="requirements",
            )
        )
    if not turn.has_exploration:
        part = layout.exploration(turn.number)
        due.append(
            _given(state, turn, part, layout.EXPLORATION, "exploration")
            or Ask(
                part,
                "cycle.ep",
                inputs=(layout.begun(turn.number),),
                workspace=read,
                outputs=(layout.EXPLORATION,),
                title="exploration",
            )
        )
    return due


def _planning(state: State, turn: Turn) -> Action:
    part = layout.plan(turn.number)
    return _given(state, turn, part, layout.PLAN, "plan") or Ask(
        part,
        "cycle.ep",
        inputs=(layout.REQUIREMENTS, layout.EXPLORATION),
        workspace=Workspace(Access.READ, base=turn.base),
        outputs=(layout.PLAN,),
        title="plan",
    )


def _coding(state: State, turn: Turn) -> Iterator[Action]:
    """Plan tasks whose dependencies are done, all at once; then the commit that holds them."""
    for view in turn.tasks:
        if view.stage is Stage.UNCOUNTED:
            commit = commit_or_none(view.result.get("commit")) or ""
            path = layout.task_changes(turn.number, view.task.id, view.number)
            yield Probe(path, "changes", (commit,), title=f"changes of {view.task.id}")
    if not all(view.stage.settled for view in turn.tasks):
        held = _questions(state, "cd")
        yield from held or (_task(state, turn, view) for view in turn.tasks if view.stage is Stage.DUE)
        return
    args = (state.target, turn.base or "", state.request.test)
    tip = Probe(
        layout.built(turn.number), "tip", args, title="what was built", outputs=(layout.IMPLEMENTATION,)
    )
    yield from _ahead(state, "vas", [tip])


def _task(state: State, turn: Turn, view: TaskView) -> Ask:
    words = view.task.description.strip().split("\n")[0][:100]
    return Ask(
        layout.task(turn.number, view.task.id, view.number),
        "cycle.cd",
        inputs=(layout.plan(turn.number),),
        workspace=Workspace(Access.WRITE, base=view.base, target=state.target),
        title=f"{view.task.id}: {words}",
    )


def _testing(state: State, turn: Turn) -> Action:
    """The project's own tests, for real; without a command there is nothing to run."""
    tip = turn.tip or {}
    command = state.test_command
    if not command:
        return Derive(
            layout.tests(turn.number), inputs=(layout.built(turn.number),), outputs=(layout.TEST_RESULTS,)
        )
    junit, coverage = state.request.junit or JUNIT, state.request.coverage or COVERAGE
    return Run(
        layout.tests(turn.number),
        command,
        inputs=(layout.built(turn.number),),
        workspace=Workspace(Access.WRITE, base=turn.built),
        outputs=(layout.TEST_RESULTS,),
        env={
            "RONDEL_JUNIT": junit,
            "RONDEL_COVERAGE": coverage,
            "PYTEST_ADDOPTS": f"--junitxml={shlex.quote(junit)}",  # any command that runs pytest reports
            **_env(tip.get("env")),
        },
        timeout_s=state.request.test_timeout_s,
        collect=(junit, coverage),
        setting="[project] test",
        title="tests",
    )


def _env(value: object) -> dict[str, str]:
    given = value if isinstance(value, dict) else {}
    return {str(k): v for k, v in given.items() if isinstance(v, str)}


def _validating(turn: Turn) -> Ask:
    return Ask(
        layout.validation(turn.number),
        "cycle.vas",
        inputs=(layout.REQUIREMENTS, layout.tests(turn.number)),
        workspace=Workspace(Access.READ, base=turn.built),
        outputs=(layout.VALIDATION, layout.SUMMARY),
        title="validation",
    )


# -- questions to a person --------------------------------------------------------------------


def _answers(state: State) -> Iterator[Action]:
    """Answers that have come, and with `auto` those nobody is asked for."""
    for kind, name in _waiting(state):
        if state.files.exists(layout.answer(kind, folder_name(name))):
            path = layout.answered(kind, folder_name(name))
            yield Derive(path, inputs=(layout.answer(kind, folder_name(name)),), title=f"{kind} {name}")
        elif kind == "decision" and state.request.auto:
            yield Derive(layout.answered(kind, folder_name(name)), title=f"decide {name}")


def _waiting(state: State) -> list[tuple[str, str]]:
    return [
        *(("decision", d.id) for d in state.pending_decisions),
        *(("blocker", b.id) for b in state.open_blockers),
    ]


def _questions(state: State, phase: str) -> list[Action]:
    """What must be answered before a phase goes on."""
    return [
        *(_decide(d) for d in state.pending_decisions if _holds(state, phase, raised_by(d.id))),
        *(_unblock(b) for b in state.open_blockers if _holds(state, phase, b.reported_by)),
    ]


def _holds(state: State, phase: str, raised: str) -> bool:
    """The user's blockers hold everything; an agent's what comes after it, unless nobody is to be asked."""
    if raised == USER:
        return True
    return not state.request.auto and raised != phase


def raised_by(decision_id: str) -> str:
    """The agent that asked, from an id of ours; the user where it is not one."""
    parts = decision_id.split("-")
    return parts[2] if len(parts) == 4 and parts[0] == "D" else USER  # noqa: PLR2004 - D-<iteration>-<agent>-<n>


def _decide(decision: Decision) -> Decide:
    return Decide(
        layout.answer("decision", folder_name(decision.id)),
        f"{decision.id}: {decision.description}",
        tuple(decision.options) or ("yes", "no"),
        title=f"decision {decision.id}",
    )


def _unblock(blocker: Blocker) -> Decide:
    return Decide(
        layout.answer("blocker", folder_name(blocker.id)),
        f"{blocker.id}: {blocker.description}",
        ("resolved", "workaround"),
        title=f"blocker {blocker.id}",
    )
