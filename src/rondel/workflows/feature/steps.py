"""What is due in a feature: first that a phase is taken up, then its iterations, then that it is closed.

What a phase under way needs is in `drafting` where it leaves a document, in `coding` where it leaves code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from rondel.model.actions import Decide, Derive
from rondel.model.changes import Aside, Change, Document, Edit, json_file
from rondel.model.times import stamp
from rondel.model.workflow import Step
from rondel.workflows.feature import layout
from rondel.workflows.feature.closing import derived
from rondel.workflows.feature.coding import coding
from rondel.workflows.feature.drafting import drafting
from rondel.workflows.feature.meta import notes, records, word
from rondel.workflows.feature.phases import IMPLEMENT, PHASES, REVIEWED
from rondel.workflows.feature.read import State
from rondel.workflows.feature.stamps import phase_opened
from rondel.workflows.feature.work import Attempt, Work, read_work


def steps(state: State) -> Iterator[Step[State]]:
    """Everything that is due now. A feature's phases, and its iterations, come one after the other."""
    if gate := _concerns_gate(state):
        yield Step(gate)
        return
    work = state.work
    if work is None or state.request is None:
        return
    if work.take is None or not _is_taken(state, work):
        yield from _taking(state, work)
    elif not state.files.exists(opened := layout.opened(work.phase, work.take.number)):
        yield derived(Derive(opened, title=f"{work.phase}: under way"), partial(_opened, work.take))
    elif work.phase not in state.completed:
        yield from coding(state, work) if work.phase == IMPLEMENT else drafting(state, work)


def _concerns_gate(state: State) -> Decide | None:
    """A reviewer's concerns stop a run of all phases until a person saw them."""
    request, phase = state.request, state.current
    if request is None or request.phase or request.auto or phase not in REVIEWED or state.work is None:
        return None
    concerns = notes(records(state.meta).get(phase, {}))
    work = read_work(state.files, phase)
    if not concerns or work.take is None or work.take.request != request.number:
        return None
    path = layout.decision(f"{phase}-concerns", work.take.number)
    if state.answer(path) == "approve":
        return None
    question = f"{phase} is complete with the reviewer's concerns: {'; '.join(concerns)}. Go on all the same?"
    return Decide(path, question, title=f"{phase}: concerns")


def _is_taken(state: State, work: Work) -> bool:
    """Whether the pass on disk is the one that the request asks for."""
    if work.take is None or state.request is None:
        return False
    if work.take.request == state.request.number:
        return True
    return not state.request.phase and work.phase in state.partial


def _taking(state: State, work: Work) -> Iterator[Step[State]]:
    phase = work.phase
    number = state.request.number if state.request else 0
    found = state.transition(phase)
    if not found.allowed:
        path = layout.decision(f"{phase}-blocked", number)
        yield Step(Decide(path, f"{found.message}; then go on", title=f"{phase} is blocked"))
    elif question := _open_question(state, work):
        if not state.answer(question.path):
            yield Step(question)
    else:
        next_take = work.take.number + 1 if work.take else 1
        path = layout.take(phase, next_take)
        yield derived(Derive(path, title=f"{phase}: take it up"), partial(_taken, path, next_take))


def _open_question(state: State, work: Work) -> Decide | None:
    """What a person must say before the phase is taken up; None when they have, or need not.

    Refused (answered `reject`) the question stays, and with it the phase as it is.
    """
    phase, request = work.phase, state.request
    if request is None or not request.phase:
        return None
    if phase in state.partial:
        path = layout.decision(f"{phase}-partial", request.number)
        if request.how or state.answer(path):
            return None
        question = f"{phase} was started and not completed: continue, start fresh, or review what is there?"
        return Decide(path, question, ("continue", "fresh", "review"), title=f"{phase} is under way")
    goes_back = state.current is not None and PHASES.index(phase) <= PHASES.index(state.current)
    path = layout.decision(f"{phase}-proceed", request.number)
    if not goes_back or request.proceed or state.answer(path) == "approve":
        return None
    return Decide(path, f"{state.transition(phase).message}. Go on?", title=f"{phase} again")


def _how_taken(state: State, work: Work) -> str:
    """How the phase is taken up: what was asked for, where that makes sense."""
    request, phase = state.request, work.phase
    wanted = request.how if request else ""
    if phase in state.partial:
        number = request.number if request else 0
        return wanted or state.answer(layout.decision(f"{phase}-partial", number)) or "continue"
    if wanted in ("fresh", "review"):
        return wanted
    return "again" if phase in state.completed else "new"


def _taken(path: str, number: int, state: State, work: Work, at: datetime) -> Sequence[Change]:
    """The phase is under way: how, for whom, and from what.

    A document that somebody else wrote is nothing to begin from: it is the first draft.
    """
    phase, how = work.phase, _how_taken(state, work)
    goes_on = how in ("continue", "review") and work.take is not None and phase in state.partial
    take = Attempt(
        number,
        state.request.number if state.request else 0,
        how,
        work.take.pass_number if goes_on and work.take else number,
        work.take.base if goes_on and work.take else None if work.is_foreign else work.digest_now,
    )
    asides: list[Change] = []
    if how == "review":
        take = replace(take, adopt=work.number if goes_on else 1)
    if how == "fresh" and work.artifact and work.digest_now:
        asides.append(Aside(work.artifact, layout.before(phase, number)))
        take = replace(take, base=None)
    body = {
        "request": take.request,
        "how": take.how,
        "pass": take.pass_number,
        "base": take.base,
        "adopt": take.adopt,
        "branch": f"{state.branch}-{number}" if how == "fresh" and phase == IMPLEMENT else state.branch,
        "at": stamp(at),
        "before": records(state.meta).get(phase),
    }
    return (*asides, json_file(path, body))


def _opened(take: Attempt, state: State, work: Work, at: datetime) -> Sequence[Change]:
    """The document says that the phase is under way, and to which branch its code goes."""
    found = state.files.json(layout.take(work.phase, take.number))
    branch = word(found, "branch") if isinstance(found, Mapping) and work.phase == IMPLEMENT else ""

    def change(meta: Document) -> Document:
        after = phase_opened(meta, work.phase, at)
        return {**after, "branch": branch} if branch else after

    return (Edit(layout.META, change), json_file(layout.opened(work.phase, take.number), {"at": stamp(at)}))
