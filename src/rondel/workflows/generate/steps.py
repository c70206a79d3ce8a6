"""What is due: of each cycle that may go on, the one step that follows from its files.

A stage's file is made, its gate says whether it may pass, and `transitions` carries the answer out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rondel.errors import RondelError
from rondel.model.actions import Ask, Decide, Derive
from rondel.model.changes import Aside, Change, Write, json_file, text
from rondel.model.markdown import fenced_json
from rondel.model.marks import is_theirs
from rondel.model.names import free_name
from rondel.model.outcomes import Outcome
from rondel.model.snapshot import Snapshot
from rondel.model.templates import fill, prompt_text
from rondel.model.times import stamp
from rondel.model.workflow import Step
from rondel.workflows.generate import layout, transitions
from rondel.workflows.generate.models import WorkflowPhase, WorkflowStage, needed, newest
from rondel.workflows.generate.profiles.base import (
    CycleContext,
    LazyFiles,
    PromptPlan,
    ResponsePlan,
    WorkflowProfile,
)
from rondel.workflows.generate.profiles.discover import load_profile
from rondel.workflows.generate.read import Answer, CycleView, State, parse_answer
from rondel.workflows.generate.responses import checked, extract, unusable

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
GATE_MAX = 3  # how many versions of a file an agent may look at; then a person decides
OWN_CHARS_MAX = 2_000_000
FILES_MAX = 2_000


def steps(state: State) -> Iterator[Step[State]]:
    """Everything that is due now: one step of each cycle that may go on."""
    for view in state.due:
        yield _step(state, view)


def _step(state: State, view: CycleView) -> Step[State]:
    cycle = view.cycle
    name = f"{cycle.type}: {cycle.stage_name}"
    if not cycle.iterations:
        return _derived(view, Derive(view.paths.standards, title=f"{cycle.type}: standards"), _open)
    said = view.answer
    rejected = said is not None and not said.approved
    if view.content is None and not rejected:
        if cycle.stage is WorkflowStage.PROMPT:
            return _derived(view, Derive(view.file, title=name), _leave_prompt)
        if view.gives_plan:
            action = Derive(view.file, inputs=(view.paths.plan,), title=f"{name}: as somebody else wrote it")
            return _derived(view, action, _take_plan)
        return _response(view, name)
    place = f"{state.ref.folder}/{view.file}"
    if view.complaint and not rejected:
        question = f"{place} cannot be used: {view.complaint.splitlines()[0]}; edit or reject it"
        return Step(Decide(view.decision, question, options=("reject",), inputs=(view.file,)))
    if said is not None:
        looked_at = (view.file, *(view.code if cycle.phase is WorkflowPhase.REVIEW else ()))
        path = layout.settled(view.version(view.attempt))
        action = Derive(path, inputs=looked_at, outputs=(view.prompt,), title=name)
        return _derived(view, action, _apply_answer)
    if view.gate == "agent" and not state.files.exists(view.gate_part) and view.attempt <= GATE_MAX:
        return _gate(view, name)
    return Step(Decide(view.decision, f"{name}: approve {place}?", inputs=(view.file,)))


def _now(state: State, planned: CycleView) -> CycleView | None:
    """The same stage of the same cycle as it is now; None when the cycle has moved on meanwhile."""
    for view in state.due:
        if view.index == planned.index and view.cycle.position == planned.cycle.position:
            return view
    return None


def _derived(
    planned: CycleView, action: Derive, write: Callable[[State, CycleView, datetime], Sequence[Change]]
) -> Step[State]:
    """A step that asks nobody. Where the profile fails, the cycle ends with its error."""

    def leave(state: State, outcome: Outcome) -> Sequence[Change]:
        view, at = _now(state, planned), outcome.finished_at or NEVER
        # What was said of one version of a file is not about the next one.
        if view is None or view.attempt != planned.attempt:
            return ()
        try:
            return write(state, view, at)
        except RondelError as e:
            return [transitions.failed(view, str(e), at)]

    return Step(action, leave)


# -- making the stage's file --------------------------------------------------------------------


def _open(state: State, view: CycleView, at: datetime) -> list[Change]:
    """Begin a cycle. Standards that somebody else has put there are the ones that count."""
    path = view.paths.standards
    if is_theirs(state.files, path):
        return [transitions.opened(view, state.files.data(path) or b"", at)]
    bundle = text(path, _profile(state, view).standards(view.cycle.scope, dict(view.session.context)))
    return [bundle, transitions.opened(view, bundle.data, at)]


def _leave_prompt(state: State, view: CycleView, _at: datetime) -> list[Change]:
    """The prompt of the phase; of a review, also which code is in it."""
    asked = text(view.prompt, _prompt(state, view))
    if view.cycle.phase is not WorkflowPhase.REVIEW:
        return [asked]
    return [json_file(view.paths.shown(view.cycle.current_iteration), view.code), asked]


def _take_plan(_state: State, view: CycleView, _at: datetime) -> list[Change]:
    """The plan that somebody else wrote is the response."""
    return [Write(view.file, view.files.data(view.paths.plan) or b"")]


def _response(planned: CycleView, name: str) -> Step[State]:
    """An agent answers the prompt. Its answer is paid for: it counts for whichever version is due by then."""
    cycle = planned.cycle

    def prompt(state: State) -> str:
        return state.files.text(planned.prompt) or ""

    def check(state: State, said: str) -> str | None:
        view = _now(state, planned)
        if view is None:
            return None
        return unusable(cycle.phase, said) or _receive(state, view, said).error or None

    def write(state: State, outcome: Outcome) -> Sequence[Change]:
        view = _now(state, planned)
        if view is None:
            return ()
        if outcome.ok:
            return [text(view.file, outcome.text)]
        words = f"{cycle.phase.name}: {outcome.error or outcome.ended}"
        ended = transitions.failed(view, words, outcome.finished_at or NEVER)
        if not outcome.text.strip():
            return [ended]
        return [text(layout.rejected(view.file, view.attempt), outcome.text), ended]

    action = Ask(
        planned.file,
        f"generate.{cycle.type}.{cycle.phase}",
        inputs=(planned.prompt,),
        prompt_file=planned.prompt,
        reply_file=planned.file,
        title=name,
    )
    return Step(action, write, prompt, check)


# -- what is said of it -------------------------------------------------------------------------


def _gate(planned: CycleView, name: str) -> Step[State]:
    """An agent looks at the file. Whatever is not clearly an answer leaves it to a person."""

    def check(_state: State, said: str) -> str | None:
        return None if _gate_answer(said) else 'give {"answer": "approve"} or {"answer": "reject"} as JSON'

    def write(state: State, outcome: Outcome) -> Sequence[Change]:
        view = _now(state, planned)
        if view is None or view.attempt != planned.attempt:
            return ()
        said = _gate_answer(outcome.text) if outcome.ok else None
        if said is None or (not said.approved and not said.comment.strip()):
            word, comment = "none", outcome.error or "no usable answer"
        else:
            word, comment = "approve" if said.approved else "reject", said.comment
        by, at = f"gate: {outcome.agent or 'agent'}", stamp(outcome.finished_at or NEVER)
        return [json_file(planned.gate_part, {"answer": word, "comment": comment, "by": by, "at": at})]

    action = Ask(planned.gate_part, "generate.gate", inputs=(planned.file,), title=f"{name}: gate")
    return Step(action, write, lambda state: _gate_prompt(_now(state, planned) or planned), check)


def _gate_answer(said: str) -> Answer | None:
    return parse_answer(fenced_json(said).value)


def _gate_prompt(view: CycleView) -> str:
    content = view.content or ""
    longest = max((len(run) for run in re.findall(r"~+", content)), default=0)
    slots = {
        "what": view.cycle.stage.value,
        "phase": view.cycle.phase.name,
        "type": view.cycle.type,
        "iteration": str(view.cycle.current_iteration),
        "fence": "~" * max(4, longest + 1),
        "text": content,
    }
    return fill(prompt_text("rondel.workflows.generate", "gate"), slots)


def _apply_answer(state: State, view: CycleView, at: datetime) -> Sequence[Change]:
    """What follows from what was said of the file."""
    said = view.answer
    if said is not None and not said.approved:
        return transitions.rejected(view, said, at)
    if said is None or view.content is None:
        return []
    if view.is_outdated:
        return _review_again(state, view, at)
    if view.cycle.stage is WorkflowStage.PROMPT:
        return transitions.prompt_approved(view, said, at)
    if view.cycle.phase is WorkflowPhase.PLAN:
        return transitions.plan_approved(view, said, at)
    if view.cycle.phase is WorkflowPhase.REVIEW:
        return transitions.review_approved(view, said, at)
    made = _receive(state, view, view.content)
    code = checked(made.files)
    if wrong := made.error or code.error:
        return [transitions.failed(view, f"{view.file}: {wrong}", at)]
    return transitions.code_approved(view, said, code.files, at)


def _review_again(state: State, view: CycleView, at: datetime) -> list[Change]:
    """A verdict on other code than what is there is none: the reviewer is asked again, about this code.

    Which code that is comes last: a death in between leaves a review that is still outdated.
    """
    names = (layout.rejected(view.file, number) for number in itertools.count(view.attempt))
    aside = Aside(view.file, free_name(names, state.files.exists))
    return [aside, transitions.given_up(view, at), *reversed(_leave_prompt(state, view, at))]


# -- the profile: what it is given, and what it returns -----------------------------------------


def _profile(state: State, view: CycleView) -> WorkflowProfile:
    """The profile of the session. RondelError when it is not installed, or is broken."""
    return load_profile(view.session.profile_name, state.root, state.admits, state.ask)


def _prompt(state: State, view: CycleView) -> str:
    """What to ask in a phase, by the profile."""
    profile, context = _profile(state, view), _context(view)
    with _named(f"plan_prompt of profile {profile.name}"):
        made = profile.plan_prompt(context)
        if not isinstance(made, PromptPlan) or not made.text.strip():
            raise TypeError("it gave no PromptPlan with a text")
    return made.text


def _receive(state: State, view: CycleView, response: str) -> ResponsePlan:
    """What a response leads to, by the profile."""
    profile, context = _profile(state, view), _context(view, response)
    with _named(f"plan_response of profile {profile.name}"):
        made = profile.plan_response(context)
        if not isinstance(made, ResponsePlan):
            raise TypeError("it gave no ResponsePlan")
    return made


@contextmanager
def _named(hook: str) -> Iterator[None]:
    """RondelError for whatever a hook raises: it says which one."""
    try:
        yield
    except RondelError:
        raise
    except Exception as e:
        raise RondelError(f"{hook}: {type(e).__name__}: {e}") from e


def _context(view: CycleView, response: str = "") -> CycleContext:
    """One phase of one cycle, as its profile sees it."""
    cycle, files = view.cycle, view.files
    inputs = {
        name.partition("/")[0]: files.text(path) or "" for name, path in _below(files, layout.INPUTS).items()
    }
    return CycleContext(
        type=cycle.type,
        scope=cycle.scope,
        phase=cycle.phase,
        iteration=cycle.current_iteration,
        context={**view.session.context, "scope": cycle.scope, "cycle_outputs": _outputs(view)},
        standards=files.text(view.paths.standards) or "",
        plan=files.text(view.paths.plan) or "",
        review=_last_review(view),
        feedback=view.feedback,
        code=_code(view),
        inputs=inputs,
        sources=LazyFiles(files.text, _below(files, layout.SOURCES), view.request.context_chars_max),
        response=response,
    )


def _code(view: CycleView) -> Mapping[str, str]:
    """The cycle's own code; where a v2 session kept none, what its last response holds."""
    places = {n: a.path for n, a in newest(view.cycle.artifacts).items()}
    if places or not view.paths.flat:
        return LazyFiles(view.files.text, places, OWN_CHARS_MAX)
    for number in range(view.cycle.current_iteration, 0, -1):
        for phase in (WorkflowPhase.REVISE, WorkflowPhase.GENERATE):
            found = extract(view.files.text(view.paths.response(number, phase)) or "")
            if found.files:
                return {file.path: file.text for file in found.files}
    return {}


def _outputs(view: CycleView) -> dict[str, Any]:
    """The outputs of the cycles this one depends on; their text is read only when a hook asks for it."""
    request = view.request
    limit = request.limit_of(view.cycle.type, "context_chars_max", request.context_chars_max)
    found: dict[str, Any] = {}
    for cycle in needed(view.session, view.cycle):
        places = {n: a.path for n, a in newest(cycle.artifacts).items()}
        found[cycle.type] = {"files": list(places), "artifacts": LazyFiles(view.files.text, places, limit)}
    return found


def _last_review(view: CycleView) -> str:
    """The newest review before this iteration."""
    before = range(view.cycle.current_iteration - 1, 0, -1)
    found = (view.files.text(view.paths.response(number, WorkflowPhase.REVIEW)) for number in before)
    return next(filter(None, found), "")


def _below(files: Snapshot, folder: str) -> dict[str, str]:
    """Every file below a folder: its path in it, and its path in the session."""
    found = {path.removeprefix(f"{folder}/"): path for path in layout.below(files, folder)}
    return dict(sorted(found.items())[:FILES_MAX])
