"""What is due in a cycle: its state on disk, answers, the next iteration, the phases of the one under way.

What a phase needs is in `analysis`, `coding` and `validating`; how an iteration is closed in `aggregate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import takewhile

from rondel.errors import RondelError
from rondel.model.actions import Derive, Probe
from rondel.model.changes import Change, json_file
from rondel.model.identity import home
from rondel.model.jsons import mapping
from rondel.model.names import digest
from rondel.model.outcomes import Outcome
from rondel.model.refs import END, commit_or_none
from rondel.model.toolchain import commit_at
from rondel.model.workflow import RepoReader, Step
from rondel.workflows.cycle import layout, plans, transitions
from rondel.workflows.cycle.aggregate import closing
from rondel.workflows.cycle.analysis import analysing, plan_again, planning
from rondel.workflows.cycle.coding import coding
from rondel.workflows.cycle.models import SECTIONS, CycleState
from rondel.workflows.cycle.questions import answers, held
from rondel.workflows.cycle.rebuild import restore
from rondel.workflows.cycle.state import Iteration, State
from rondel.workflows.cycle.validating import testing, validating


def steps(state: State) -> Iterable[Step[State]]:
    """Everything that is due now. Nothing is while the cycle rests."""
    return map(_restoring, _due(state, state.cycle)) if state.cycle else ()


def _restoring(step: Step[State]) -> Step[State]:
    """The step, with a damaged state file restored before it writes anything else."""

    def write(state: State, outcome: Outcome) -> Sequence[Change]:
        return (*restore(state), *step.write(state, outcome))

    def begin(state: State, at: datetime) -> Sequence[Change]:
        changes = step.begin(state, at)
        return (*restore(state), *changes) if changes else ()

    return replace(step, write=write, begin=begin)


def _due(state: State, cycle: CycleState) -> Iterator[Step[State]]:
    if restore(state):
        path = f"{layout.PARTS}/taken/{digest(repr(state.document))[:16]}"
        yield Step(Derive(path, title="write the state down"))
    if cycle.status == "paused":
        return
    yield from answers(state)
    if state.iteration is not None:
        if cycle.status == "running":
            yield from _phase(state, state.iteration)
    elif state.extensions:
        yield _begin(state, cycle.current_iteration + 1)
    elif cycle.status in ("created", "running") and cycle.current_iteration < cycle.max_iterations:
        yield from held(state, "") or [_begin(state, cycle.current_iteration + 1)]


def _phase(state: State, iteration: Iteration) -> Iterable[Step[State]]:
    """What is due in the iteration under way.

    What an earlier agent or the user asked comes before whatever is built on it.
    """
    if not iteration.begin:
        return [_begin(state, iteration.number)]
    if not (iteration.has_requirements and iteration.has_exploration):
        return held(state, "ra") or analysing(state, iteration)
    if iteration.plan is None:
        return held(state, "ep") or [planning(state, iteration)]
    if not isinstance(state.files.json(layout.PLAN), dict):
        return [plan_again(iteration)]
    if iteration.tip is None:
        return coding(state, iteration)
    if iteration.tests is None:
        due = testing(state, iteration)
    elif not iteration.has_validation:
        due = validating(iteration)
    else:
        due = closing(iteration)
    return held(state, "vas") or [due]


def _begin(state: State, number: int) -> Step[State]:
    branch, base = (state.identity.branch, state.identity.base) if state.identity else (None, None)
    last = mapping(state.files.json(layout.built(number - 1))).get("commit")  # of the iteration before
    args = (state.target, commit_or_none(last) or "", branch or "", base or "")
    probe = Probe(layout.begun(number), "begin", args, title=f"iteration {number}")
    return Step(probe, partial(_begun, number), look=lambda look: _look_for_start(look, *args))


def _look_for_start(look: RepoReader, target: str, last: str, *begun: str) -> dict[str, str]:
    """The commit an iteration starts from, on its branch.

    The branch is made where there is none: at what it last held, else where the cycle was begun.
    """
    there = commit_at(look, f"refs/heads/{target}")
    if there:
        return {"commit": there, "branch": target}
    head = (commit_at(look, last) if last else "") or home(look, *begun)
    if not head:
        raise RondelError("the repository has no commit yet; commit something, then `rondel resume`")
    look.git("branch", "--no-track", END, target, head)
    return {"commit": head, "branch": target}


def _begun(number: int, state: State, outcome: Outcome) -> Sequence[Change]:
    """An iteration opens. What is noted here stays as it is while the iteration runs."""
    cycle = state.cycle
    if not outcome.ok or cycle is None or cycle.current_iteration not in (number - 1, number):
        return ()
    at = state.time(outcome.finished_at)
    record = transitions.record_of(state.document, number)
    extensions = state.extensions
    if cycle.current_iteration >= number:  # opened by a driver that died, or by another tool
        said = str((record or {}).get("extension", ""))
        extensions = tuple(e for e in extensions if e.text in said)
    limits = [e.max_iterations for e in extensions if e.max_iterations]
    note = {
        **mapping(outcome.data),
        "iteration": number,
        "at": str((record or {}).get("started_at") or at),
        "versions": {s: getattr(getattr(cycle, s), "version", None) for s in SECTIONS if s != "changes"},
        "adopted": _adopted(state, number),
        "taken": [e.name for e in extensions],
        "texts": [e.text for e in extensions],
    }
    changes = [transitions.open_iteration(number, at, [e.text for e in extensions])]
    if limits:
        changes.insert(0, transitions.raise_limit(max(limits)))
    return [state.edit(outcome.finished_at, *changes), json_file(layout.begun(number), note)]


def _adopted(state: State, number: int) -> list[str]:
    """The phases another tool had completed in the iteration it left under way."""
    cycle = state.cycle
    if cycle is None or cycle.current_iteration != number:
        return []
    usable = {
        "ra": state.files.exists(layout.REQUIREMENTS),
        "ep": not plans.check(state.files.json(layout.PLAN)).error,
        "cd": state.files.exists(layout.CHANGES),
    }
    return list(takewhile(usable.__getitem__, (phase for phase in usable if phase in cycle.completed_phases)))
