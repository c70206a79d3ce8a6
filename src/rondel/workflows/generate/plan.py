"""What is due: of each cycle that may go on, the one step that follows from its files."""

from __future__ import annotations

from collections.abc import Iterator

from rondel.model.actions import Action, Ask, Decide, Derive
from rondel.workflows.generate.models import WorkflowPhase, WorkflowStage
from rondel.workflows.generate.read import State, Track

GATE_MAX = 3  # how many versions of a file an agent may look at; then a person decides


def plan(state: State) -> Iterator[Action]:
    """Everything that is due now."""
    for track in state.due:
        yield _step(state, track)


def _step(state: State, track: Track) -> Action:
    cycle = track.cycle
    name = f"{cycle.type}: {cycle.phase.name}[{cycle.stage.name}]"
    if not cycle.iterations:
        return Derive(track.paths.standards, title=f"{cycle.type}: standards")
    said = track.answer
    rejected = said is not None and not said.approved
    if track.content is None and not rejected:
        if cycle.stage is WorkflowStage.PROMPT:
            return Derive(track.file, title=name)
        if track.gives_plan:
            return Derive(track.file, inputs=(track.paths.plan,), title=f"{name}: as somebody else wrote it")
        return Ask(
            track.file,
            f"generate.{cycle.type}.{cycle.phase}",
            inputs=(track.prompt,),
            prompt_file=track.prompt,
            reply_file=track.file,
            title=name,
        )
    if track.complaint and not rejected:
        return Decide(
            track.decision,
            f"{_place(state, track)} cannot be used: {track.complaint.splitlines()[0]}; edit or reject it",
            options=("reject",),
            inputs=(track.file,),
        )
    if said is not None:
        looked_at = (track.file, *(track.code if cycle.phase is WorkflowPhase.REVIEW else ()))
        return Derive(track.settled, inputs=looked_at, outputs=(track.prompt,), title=name)
    if track.gate == "agent" and not track.gate_answered and track.attempt <= GATE_MAX:
        return Ask(track.gate_part, "generate.gate", inputs=(track.file,), title=f"{name}: gate")
    return Decide(track.decision, f"{name}: approve {_place(state, track)}?", inputs=(track.file,))


def _place(state: State, track: Track) -> str:
    return f"{state.ref.folder}/{track.file}"
