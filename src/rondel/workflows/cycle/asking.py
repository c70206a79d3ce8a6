"""What the steps of the four agents share: what an agent is told, what it must answer, what that leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from rondel.model.actions import Ask
from rondel.model.changes import Change, Edit, Write, json_file
from rondel.model.jsons import mapping
from rondel.model.outcomes import Outcome
from rondel.model.snapshot import Snapshot
from rondel.model.templates import fill, prompt_text, without_gaps
from rondel.model.workflow import Step
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.documents import Doc, Transition
from rondel.workflows.cycle.models import AGENTS, FeedbackEntry
from rondel.workflows.cycle.results import ResultStatus, parse_phase_result, status_of, without_phase_result
from rondel.workflows.cycle.state import Iteration, State

SECTION_MAX = 60_000
ENTRIES_MAX = 200
ERROR_MAX = 1000
EVERYONE = "all"

Writing = Callable[[State, Iteration, Outcome], Sequence[Change]]


def during(iteration: Iteration, write: Writing) -> Callable[[State, Outcome], Sequence[Change]]:
    """What a step of an iteration leaves; nothing when another iteration is under way by now."""

    def write_now(state: State, outcome: Outcome) -> Sequence[Change]:
        now = state.iteration
        return write(state, now, outcome) if now and now.number == iteration.number else ()

    return write_now


def step(
    iteration: Iteration,
    agent: str,
    action: Ask,
    template: str,
    *,
    material: Callable[[State, Iteration], Mapping[str, str]],
    write: Writing,
    wrong: Callable[[str], str] = lambda _answer: "",
    started: Sequence[Transition] = (),
) -> Step[State]:
    """A step that asks an agent: `template` is filled with what it is told and with its `material`.

    `wrong` says what its answer lacks besides the block at its end; `started` is what the plan and
    the state show from the moment it is asked.
    """

    def prompt(state: State) -> str:
        now = state.iteration
        current = now if now and now.number == iteration.number else iteration
        slots = {**_told(state, current, agent), **material(state, current)}
        return without_gaps(fill(prompt_text("rondel.workflows.cycle", template), slots))

    return Step(
        action,
        during(iteration, write),
        prompt,
        lambda _state, answer: _check(agent, answer, wrong),
        begin=partial(_begin, iteration.number, agent, action.path, started),
    )


def _begin(
    number: int, agent: str, path: str, started: Sequence[Transition], state: State, at: datetime
) -> Sequence[Change]:
    """The files that say who is at work; and how much of the feedback they have before them."""
    if state.cycle is None or state.iteration is None:
        return ()
    changes: list[Change] = []
    seen = layout.seen(number, agent, path)
    if not state.files.exists(seen):
        changes.append(json_file(seen, {"feedback": len(state.cycle.coordination.feedback_log)}))
    if started:
        changes += edit_plan(state, *started)
    # While the analyst and the planner's exploration run together, the phase is the analyst's.
    phase = "ra" if agent == "ep" and "ra" not in state.cycle.completed_phases else agent
    return [*changes, state.edit(at, transitions.start_agent(agent, phase, state.time(at)), *started)]


def _check(agent: str, answer: str, wrong: Callable[[str], str]) -> str | None:
    """What is wrong with an answer, in words its author can act on."""
    result = parse_phase_result(answer)
    if result is None:
        return (
            "it has no PHASE_RESULT block with a phase and a status; end it with the block you were given, "
            f"beginning with the line `PHASE_RESULT:`, then `- phase: {agent}` and `- status: …`"
        )
    if str(result["phase"]).casefold() != agent:
        return f"its PHASE_RESULT says phase {result['phase']!r}; yours is {agent!r}"
    status = status_of(result)
    if status is None:
        words = ", ".join(ResultStatus)
        return f"its PHASE_RESULT says status {result['status']!r}; choose one of: {words}"
    return None if status is ResultStatus.FAILED else wrong(answer) or None


def no_text(answer: str) -> str:
    """What is wrong with an answer of which nothing is left for its file."""
    if without_phase_result(answer).strip():
        return ""
    return "it has nothing but the PHASE_RESULT block; the text before it becomes the file"


# -- what an agent is told --------------------------------------------------------------------


def _told(state: State, iteration: Iteration, agent: str) -> dict[str, str]:
    """What every agent is told."""
    cycle = state.cycle
    if cycle is None:
        raise ValueError(f"the state of {state.id} was lost while an agent was to be asked")
    made = [d for d in cycle.coordination.pending_decisions if d.chosen_option]
    return {
        "iteration": str(iteration.number),
        "max_iterations": str(cycle.max_iterations),
        "description": bounded(cycle.description),
        "decisions": section(
            "What was decided", *(f"- {indented(d.description)} → {d.chosen_option}" for d in made)
        ),
        "feedback": feedback_section("What was said to you", due_for(state, iteration, agent)),
    }


def feedback_section(title: str, entries: Sequence[FeedbackEntry]) -> str:
    """The latest entries of the feedback log."""
    latest = entries[-ENTRIES_MAX:]
    return section(title, *(f"- {e.type.value}, from {e.source}: {indented(e.content)}" for e in latest))


def file_section(state: State, name: str, path: str) -> dict[str, str]:
    """A document as it stands."""
    return {name: section(f"{name.capitalize()} (`{path}`)", state.files.text(path) or "")}


def plan_section(iteration: Iteration) -> dict[str, str]:
    """The plan, and where each of its tasks stands."""
    lines = [
        f"- {v.task.id} ({v.stage.value}"
        + (f", after {', '.join(v.task.depends_on)}" if v.task.depends_on else "")
        + f"): {indented(v.task.description)}"
        for v in iteration.tasks
    ]
    return {"plan": section("The whole plan", *lines)}


def section(title: str, *lines: str) -> str:
    """A part of a prompt, under its title; nothing where there is nothing to say."""
    text = "\n".join(lines).strip()
    return f"## {title}\n\n{bounded(text)}" if text else ""


def bounded(text: str) -> str:
    """A text as far as a prompt has room for it."""
    if len(text) <= SECTION_MAX:
        return text
    return f"{text[:SECTION_MAX]}\n\n(… {len(text) - SECTION_MAX} more characters are left out here.)"


def indented(text: str) -> str:
    """A text as the item of a list."""
    return text.strip().replace("\n", "\n  ")


# -- feedback: who has seen which entry of the log. It only grows, so a count says it all --------


def due_for(state: State, iteration: Iteration, agent: str) -> list[FeedbackEntry]:
    """What an agent is told when it is asked: everything since it was asked in the iteration before."""
    log = state.cycle.coordination.feedback_log if state.cycle else []
    number = iteration.number
    known = min(_seen(state.files, number - 1, agent), default=0) if number > 1 else 0
    return [entry for entry in log[known:] if entry.target in (agent, EVERYONE)]


def unread(state: State, iteration: Iteration) -> list[FeedbackEntry]:
    """What the user said to an agent after it was last asked: nobody has acted on it yet."""
    log = state.cycle.coordination.feedback_log if state.cycle else []
    last = {name: max(_seen(state.files, iteration.number, name), default=len(log)) for name in AGENTS}
    return [
        entry
        for i, entry in enumerate(log)
        if entry.source == "user"
        and i >= last.get(entry.target, len(log) if entry.target != EVERYONE else min(last.values()))
    ]


def _seen(files: Snapshot, iteration: int, agent: str) -> list[int]:
    folder = layout.seen(iteration, agent)
    counts = (mapping(files.json(f"{folder}/{name}")).get("feedback") for name in files.names(folder))
    return [count for count in counts if isinstance(count, int)]


# -- what an answer leaves --------------------------------------------------------------------


def publish(state: State, new: Write, former: str | None) -> list[Change]:
    """A new version of an agent's file; the former one, as it stands, goes into `history/` first."""
    old = state.files.data(new.path)
    if old is None or (old == new.data and former is None):
        return [new]
    spot = layout.archived(new.path, former or "before")
    return [Write(spot, old), new] if state.files.data(spot) in (None, old) else [new]


def edit_plan(state: State, *changes: Transition) -> list[Change]:
    """The plan's own file, in step with the state. What a person broke there stays for them to correct."""
    if not isinstance(state.files.json(layout.PLAN), dict):
        return []

    def change(document: Doc) -> Doc:
        for transition in changes:
            transition(document)
        return document

    return [Edit(layout.PLAN, change)]


def refused(outcome: Outcome) -> bool:
    """Whether there is no answer to go on with: none came, or its author says it failed."""
    result = parse_phase_result(outcome.text)
    return not outcome.ok or result is None or status_of(result) in (None, ResultStatus.FAILED)


def agent_failed(state: State, iteration: Iteration, agent: str, outcome: Outcome) -> Sequence[Change]:
    """Without this agent's answer the cycle cannot go on: it fails, and a resume asks again."""
    result = parse_phase_result(outcome.text) or {}
    words = outcome.error or str(result.get("summary", "")) or "it gave no usable answer"
    return failed(state, iteration, agent, outcome, " ".join(words.split())[:ERROR_MAX])


def failed(state: State, iteration: Iteration, agent: str, outcome: Outcome, error: str) -> Sequence[Change]:
    """The cycle fails because an agent did."""
    at = state.time(outcome.finished_at)
    return [
        state.edit(
            outcome.finished_at,
            transitions.fail_agent(agent, iteration.number, at, error),
            transitions.fail(f"{agent} failed in iteration {iteration.number}: {error}"),
        )
    ]
