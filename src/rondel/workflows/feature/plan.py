"""What is due in a feature."""

from __future__ import annotations

from collections.abc import Iterator

from rondel.model.actions import Access, Action, Ask, Decide, Derive, Probe, Run, Workspace
from rondel.workflows.feature import layout
from rondel.workflows.feature.meta import notes, records
from rondel.workflows.feature.phases import IMPLEMENT, PHASES, PREVIOUS, REVIEWED, SPECIFY, VERIFY
from rondel.workflows.feature.read import State
from rondel.workflows.feature.review import without_asking
from rondel.workflows.feature.work import Round, Work, read_work

CHECKS_S = 1800


def plan(state: State) -> Iterator[Action]:
    """Everything that is due now. A feature's phases, and its iterations, come one after the other."""
    gate = concerns_gate(state)
    if gate:
        yield gate
        return
    work = state.work
    if work is None or state.request is None:
        return
    if work.take is None or not is_taken(state, work):
        yield from _taking(state, work)
    elif not state.files.exists(opened := layout.opened(work.phase, work.take.number)):
        yield Derive(opened, title=f"{work.phase}: under way")
    elif work.phase not in state.completed:
        if work.phase == IMPLEMENT:
            yield from _code(state, work)
        else:
            yield from _document(state, work)


def is_taken(state: State, work: Work) -> bool:
    """Whether the pass on disk is the one that the request asks for."""
    if work.take is None or state.request is None:
        return False
    if work.take.request == state.request.number:
        return True
    return not state.request.phase and work.phase in state.partial


# -- taking a phase up ----------------------------------------------------------------------


def _taking(state: State, work: Work) -> Iterator[Action]:
    phase = work.phase
    number = state.request.number if state.request else 0
    found = state.transition(phase)
    if not found.allowed:
        path = layout.decision(f"{phase}-blocked", number)
        yield Decide(path, f"{found.message}; then go on", title=f"{phase} is blocked")
        return
    question = open_question(state, work)
    if question:
        if not state.answer(question.path):
            yield question
        return
    yield Derive(layout.take(phase, _next(work)), title=f"{phase}: take it up")


def open_question(state: State, work: Work) -> Decide | None:
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


def how_taken(state: State, work: Work) -> str:
    """How the phase is taken up: what was asked for, where that makes sense."""
    request, phase = state.request, work.phase
    wanted = request.how if request else ""
    if phase in state.partial:
        number = request.number if request else 0
        return wanted or state.answer(layout.decision(f"{phase}-partial", number)) or "continue"
    if wanted in ("fresh", "review"):
        return wanted
    return "again" if phase in state.completed else "new"


def _next(work: Work) -> int:
    return work.take.number + 1 if work.take else 1


def concerns_gate(state: State) -> Decide | None:
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


# -- a phase that leaves a document ---------------------------------------------------------


def _document(state: State, work: Work) -> Iterator[Action]:
    if work.phase == VERIFY and (due := _evidence(state, work)):
        yield due
        return
    settled = work.settled
    if settled and (due := _closing(state, work, settled)):
        yield due
        return
    number = work.number
    path = layout.draft(work.folder, number)
    drafted = state.files.digest(path)
    artifact = work.artifact or ""
    if drafted is None and not is_theirs(work):
        yield Ask(
            path,
            f"feature.{work.phase}",
            inputs=inputs(state, work),
            outputs=(layout.changes(work.folder, number),),
            workspace=_reading(work),
            title=f"{work.phase}: draft {number}",
        )
    elif drafted is not None and work.published == drafted:
        yield _review(state, work, number)
    elif is_theirs(work):
        yield Derive(path, inputs=(artifact,), title=f"{work.phase}: take over what a person wrote")
    else:
        yield Derive(artifact, inputs=(path,), title=f"{work.phase}: publish draft {number}")


def is_theirs(work: Work) -> bool:
    """Whether the artifact is neither what this iteration began with nor what it came to."""
    if work.published is None or work.take is None:
        return False
    number = work.number
    drafted = work.files.digest(layout.draft(work.folder, number))
    if work.take.adopt == number and drafted is None:
        return True
    settled = work.settled
    began = settled.verdict.of if settled and settled.verdict else work.take.base
    return work.published not in (began, drafted)


def _closing(state: State, work: Work, settled: Round) -> Action | None:
    """What is left to do once an iteration was reviewed; None when another one is due."""
    if not settled.entered:
        return Derive(
            layout.entry(work.folder, settled.number),
            inputs=(layout.review(work.folder, settled.number),),
            outputs=(layout.HISTORY,),
            title=f"{work.phase}: history",
        )
    verdict = settled.verdict
    as_reviewed = verdict is not None and (
        work.artifact is None or work.published is None or work.published == verdict.of
    )
    approved = verdict is not None and verdict.review.approved and as_reviewed
    if not approved and settled.number < state.limit:
        return None
    if work.artifact and work.published is None:
        return Derive(work.artifact, title=f"{work.phase}: publish draft {settled.number}")
    return Derive(layout.complete(work.folder), title=f"{work.phase}: complete")


def _review(state: State, work: Work, number: int) -> Action:
    path = layout.review(work.folder, number)
    current = state.files.text(layout.draft(work.folder, number))
    previous = PREVIOUS.get(work.phase)
    before = state.files.text(previous) if previous else None
    if without_asking(before, current, previous_required=previous_required(state, work.phase)):
        return Derive(path, title=f"{work.phase}: nothing to review")
    return Ask(
        path,
        "feature.chain-reviewer",
        inputs=tuple(p for p in (previous, layout.draft(work.folder, number)) if p),
        workspace=_reading(work),
        title=f"{work.phase}: review {number}",
    )


def previous_required(state: State, phase: str) -> bool:
    """Whether the document before this phase has to be there: its phase was completed, so it was."""
    made_by = {SPECIFY: "brainstorm", VERIFY: SPECIFY}.get(phase, PHASES[PHASES.index(phase) - 1])
    return phase in PREVIOUS and made_by in state.completed


def inputs(state: State, work: Work) -> tuple[str, ...]:
    """The documents a draft is made from."""
    names = dict.fromkeys([PREVIOUS.get(work.phase), layout.SPEC])
    return tuple(n for n in names if n and n != work.artifact and state.files.exists(n))


def _reading(work: Work) -> Workspace:
    return Workspace(Access.READ, base=work.base.commit if work.base else None)


def _evidence(state: State, work: Work) -> Action | None:
    """What is found out before verification: where the code is, and what its tests say."""
    if work.base is None:
        return _base(state, work)
    path = layout.checks(work.folder)
    if work.checks and not state.files.exists(path):
        return Run(
            path,
            work.checks,
            workspace=Workspace(Access.WRITE, base=work.base.commit),  # set up, and tests may build there
            timeout_s=CHECKS_S,
            setting="[project] test",
            title="verify: the project's tests",
        )
    return None


# -- the phase that leaves code -------------------------------------------------------------


def _code(state: State, work: Work) -> Iterator[Action]:
    if work.base is None:
        yield _base(state, work)
        return
    settled = work.settled
    if settled and (due := _closing(state, work, settled)):
        yield due
        return
    number = work.number
    as_it_stands = work.take is not None and work.take.adopt == number
    if number == 1 and work.open_tasks and not as_it_stands:
        task = work.open_tasks[0]
        yield _edit(state, work, layout.task(work.folder, task.key), f"task {task.key}: {task.title}")
    elif number > 1 and not as_it_stands and not state.files.exists(layout.fix(work.folder, number)):
        yield _edit(
            state, work, layout.fix(work.folder, number), f"resolve the findings of review {number - 1}"
        )
    else:
        yield Ask(
            layout.review(work.folder, number),
            "feature.final-reviewer",
            inputs=tuple(p for p in (layout.SPEC, layout.TASKS) if state.files.exists(p)),
            workspace=Workspace(Access.READ, base=work.tip),
            title=f"implement: final review {number}",
        )


def _edit(state: State, work: Work, path: str, title: str) -> Ask:
    base = work.base
    return Ask(
        path,
        "feature.implement",
        inputs=tuple(p for p in (layout.SPEC, layout.TASKS) if state.files.exists(p)),
        workspace=Workspace(
            Access.WRITE,
            base=work.tip,
            target=base.branch if base else None,
            checks=work.checks or None,
        ),
        title=title,
    )


def _base(state: State, work: Work) -> Probe:
    make = "make" if work.phase == IMPLEMENT else ""
    begun = (state.identity.branch or "", state.identity.base or "") if state.identity else ("", "")
    return Probe(
        layout.base(work.folder),
        "base",
        (state.branch, make, work.configured, *begun),
        title=f"{work.phase}: where to begin",
    )
