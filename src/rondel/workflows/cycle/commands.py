"""The commands of the cycle: start, extend, steer and look at one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

import click

from rondel.cli.common import (
    agents_option,
    answer,
    ask_consent,
    emit,
    find_project,
    json_option,
    no_run_option,
    problem_json,
    run_session,
    say,
    say_foreign,
    states_json,
    wait_option,
)
from rondel.cli.groups import Commands
from rondel.cli.sessions import leave_word
from rondel.errors import Held, UsageError
from rondel.model.summary import Status, Summary, command_line
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.workflows.cycle import files as cycle_files
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.documents import Transition
from rondel.workflows.cycle.models import AGENTS, CycleState, FeedbackType
from rondel.workflows.cycle.models import schema as state_schema
from rondel.workflows.cycle.rebuild import restore
from rondel.workflows.cycle.state import State
from rondel.workflows.cycle.validating import coverage_words

KIND = {"ra": "requirement_update", "ep": "clarification", "cd": "issue_fix", "vas": "clarification"}

cycle_argument = click.argument("cycle", required=False)
named_cycle = click.argument("cycle")
limit_option = click.option(
    "--max-iterations", type=click.IntRange(min=1), help="How many iterations at most."
)


@click.group(cls=Commands)
def command() -> None:
    """Four agents (RA, EP, CD, VAS) iterating on one task."""


@command.command()
@click.argument("description")
@click.option("--title", help="A short name; the first 100 characters of DESCRIPTION when not given.")
@limit_option
@click.option(
    "--auto", is_flag=True, help="Ask nobody: questions get their first option, blockers become issues."
)
@click.option("--branch", help="Where the work lands; a branch of its own when not given.")
@agents_option
@wait_option
@no_run_option
@json_option
def start(wait: bool, no_run: bool, as_json: bool, **asked: Any) -> None:
    """Start a cycle on DESCRIPTION and run it."""
    project = find_project()
    ask_consent(project, "cycle")
    if not no_run:
        project.trust.require("cycle")
    ref = project.start("cycle", **asked).ref
    if not as_json:
        click.echo(ref.id)
    if not no_run:
        _run(project, ref, as_json=as_json, agents_max=asked["agents_max"], wait=wait)
    answer({"session": ref.name, "path": ref.folder}, (), as_json=as_json)


@command.command()
@named_cycle
@click.argument("text")
@limit_option
@agents_option
@no_run_option
@json_option
def extend(
    cycle: str, text: str, max_iterations: int | None, agents_max: int | None, no_run: bool, as_json: bool
) -> None:
    """Add TEXT to a cycle's task: the next iteration takes it up, whatever state the cycle is in."""
    project, ref = _named(cycle)
    project.change(ref, [cycle_files.added(text, project.look.at, max_iterations)])
    _go_on(project, ref, no_run=no_run, agents_max=agents_max, as_json=as_json, retry=True)


@command.command()
@cycle_argument
@click.option(
    "--now", "at_once", is_flag=True, help="End the agents that are under way instead of letting them finish."
)
def pause(cycle: str | None, at_once: bool) -> None:
    """Let a cycle rest before its next action; everything is kept."""
    project, ref = _named(cycle)
    leave_word(project, ref, at_once=at_once)


@command.command()
@cycle_argument
@click.option(
    "--finish", is_flag=True, help="Let the agents that are under way finish instead of ending them."
)
def stop(cycle: str | None, finish: bool) -> None:
    """Stop a cycle: end the agents that are under way; everything is kept, and `resume` goes on."""
    project, ref = _named(cycle)
    leave_word(project, ref, at_once=not finish)


@command.command()
@cycle_argument
@agents_option
@wait_option
@json_option
def resume(cycle: str | None, agents_max: int | None, wait: bool, as_json: bool) -> None:
    """Go on with a cycle; what failed for want of an answer is tried again."""
    project, ref = _named(cycle)
    _run(project, ref, as_json=as_json, agents_max=agents_max, wait=wait)


@command.command()
@named_cycle
@click.argument("text")
@click.option(
    "--to", "target", type=click.Choice([*AGENTS, "all"]), required=True, help="Who is to see to it."
)
@click.option("--type", "kind", type=click.Choice([t.value for t in FeedbackType]), help="What it is.")
def feedback(cycle: str, text: str, target: str, kind: str | None) -> None:
    """Tell an agent something; it is told when it is next asked. Works while the cycle runs."""
    project, ref = _named(cycle)
    if not text.strip():
        raise UsageError("the text is empty; say what is to be done")
    at = project.state(ref).time(project.look.at)
    entry = transitions.feedback("user", target, text.strip(), kind or KIND.get(target, "clarification"), at)
    _change(project, ref, transitions.say(entry))
    done = project.summary(ref).status is Status.COMPLETED
    say(f"{ref.name}: noted for {target}" + ("; it is told when the cycle is extended" if done else ""))


@command.command()
@named_cycle
@click.argument("decision")
@click.option("--option", required=True, help="The number of an option, or its text.")
@click.option("--by", default="user", show_default=True, help="Who decides.")
@agents_option
@no_run_option
@json_option
def decide(
    cycle: str, decision: str, option: str, by: str, agents_max: int | None, no_run: bool, as_json: bool
) -> None:
    """Make a DECISION an agent asked for, and go on."""
    project, ref = _named(cycle)
    chosen = _chosen(project.state(ref), decision, option)
    _change(project, ref, transitions.make_decision(decision, chosen, by))
    say(f"{ref.name}: {decision}: {chosen}")
    _go_on(project, ref, no_run=no_run or _rests(project, ref), agents_max=agents_max, as_json=as_json)


def _chosen(state: State, name: str, option: str) -> str:
    """The option a person means; UsageError names what there is."""
    found = next((d for d in state.pending_decisions if d.id == name), None)
    if found is None:
        there = ", ".join(d.id for d in state.pending_decisions) or "none"
        raise UsageError(f"cycle {state.id} has no pending decision {name!r}; there are: {there}")
    options = found.options or ["yes", "no"]
    if option in options:
        return option
    if option.isdecimal() and 1 <= int(option) <= len(options):
        return options[int(option) - 1]
    there = ", ".join(f"{i} ({o})" for i, o in enumerate(options, 1))
    raise UsageError(f"{option!r} is no option of {name}; there are: {there}")


@command.command()
@named_cycle
@click.argument("description")
@click.option("--by", default="user", show_default=True, help="Who reports it.")
def block(cycle: str, description: str, by: str) -> None:
    """Report a blocker: nothing new starts until it is out of the way."""
    project, ref = _named(cycle)
    if not description.strip():
        raise UsageError("the description is empty; say what blocks the cycle")
    names: list[str] = []

    def step(doc: dict[str, object]) -> None:
        names.append(transitions.next_blocker(doc))
        transitions.add_blocker(names[-1], description.strip(), by)(doc)

    _change(project, ref, step)
    click.echo(names[-1])


@command.command()
@named_cycle
@click.argument("blocker")
@click.option("--resolution", default="", help="How it was resolved; the agent concerned is told.")
@click.option("--workaround", is_flag=True, help="It is not resolved; the cycle goes on without.")
@agents_option
@no_run_option
@json_option
def unblock(
    cycle: str,
    blocker: str,
    resolution: str,
    workaround: bool,
    agents_max: int | None,
    no_run: bool,
    as_json: bool,
) -> None:
    """Say that a BLOCKER is out of the way, and go on."""
    project, ref = _named(cycle)
    there = [b.id for b in project.state(ref).open_blockers]
    if blocker not in there:
        raise UsageError(
            f"cycle {ref.id} has no open blocker {blocker!r}; there are: {', '.join(there) or 'none'}"
        )
    status = "workaround" if workaround else "resolved"
    _change(project, ref, transitions.settle_blocker(blocker, status, resolution or f"{status} by the user"))
    say(f"{ref.name}: {blocker} {status}")
    _go_on(project, ref, no_run=no_run or _rests(project, ref), agents_max=agents_max, as_json=as_json)


@command.command()
@cycle_argument
@json_option
def status(cycle: str | None, as_json: bool) -> None:
    """Show where a cycle stands. A damaged state file is rebuilt, with a warning."""
    project, ref = _looked_at(cycle)
    _restored(project, ref)
    found = project.summary(ref)
    if as_json:
        emit(states_json(project, [ref]))
        return
    state: State = project.state(ref)
    if state.cycle is None:
        raise UsageError("; ".join(p.message for p in found.problems))
    click.echo(f"{ref.name}: {state.cycle.title}")
    for line in _status_lines(state, state.cycle, found):
        click.echo(f"  {line}")


def _status_lines(state: State, cycle: CycleState, found: Summary) -> Iterator[str]:
    """A cycle for a person: where it stands, who did what, what it waits for."""
    count = f"iteration {cycle.current_iteration} of at most {cycle.max_iterations}"
    yield f"{found.status.value}, phase {found.phase}, {count}, branch {state.target}"
    for name in AGENTS:
        agent = getattr(cycle.agents, name)
        words = f": {agent.last_message}" if agent.last_message else ""
        yield f"{name:<4}{agent.status.value:<10} {agent.iterations_completed} done{words}"
    for view in state.iteration.tasks if state.iteration else ():
        yield f"{view.task.id}  {view.stage.value}  {view.task.description.splitlines()[0]}"
    if cycle.test_results:
        tests = cycle.test_results
        coverage = coverage_words(state, tests.coverage)
        yield f"tests {tests.total_tests}, {tests.pass_rate:g} % passed, {coverage}"
    for decision in state.pending_decisions:
        options = ", ".join(f"{i} {o}" for i, o in enumerate(decision.options, 1))
        yield f"decision {decision.id}: {decision.description} [{options}]"
    yield from (f"blocker {b.id}: {b.description}" for b in state.open_blockers)
    if cycle.failure_reason:
        yield f"failed: {cycle.failure_reason}"
    yield from (f"{p.rule}: {p.file}: {p.message}" for p in found.problems)
    if found.next:
        yield f"next: {found.next}"


@command.command()
@cycle_argument
@json_option
def timeline(cycle: str | None, as_json: bool) -> None:
    """Show a cycle's iterations, one line each."""
    project, ref = _looked_at(cycle)
    say_foreign(project, ref)
    _restored(project, ref)
    state: State = project.state(ref)
    if as_json:
        emit({"session": ref.name, "iterations": state.document.get("iterations", [])})
        return
    text = state.files.text(layout.TIMELINE)
    click.echo(text.rstrip("\n") if text else "no iteration is complete yet")


@command.command()
@cycle_argument
@json_option
def rebuild(cycle: str | None, as_json: bool) -> None:
    """Restore a cycle's state file from its progress files; a damaged one is kept aside."""
    project, ref = _looked_at(cycle)
    state: State = project.state(ref)
    problems = [p for p in state.problems if p.rule != "state-rebuilt"]
    if state.cycle is None:
        raise UsageError("; ".join(p.message for p in problems))
    changes = restore(state)
    with project.hold(ref):
        project.change(ref, changes)
    source = state.found.value
    if as_json:
        emit(
            {
                "session": ref.name,
                "rebuilt": bool(changes),
                "from": source,
                "problems": [problem_json(p) for p in problems],
                "state": state.document,
            }
        )
        return
    for problem in problems:
        say(f"  {problem.rule}: {problem.file}: {problem.message}")
    words = {
        "rest": "from what can be read of it",
        "log": "from its log",
        "files": "from what the agents left",
        "request": "from what was asked",
    }
    click.echo(f"{ref.name}: " + (f"rebuilt {words[source]}" if source in words else "nothing to rebuild"))


@command.command()
def schema() -> None:
    """Print the JSON schema of the state file."""
    click.echo(json.dumps(state_schema(), indent=2))


# -- what they share ----------------------------------------------------------------------------


def _named(name: str | None) -> tuple[Project, SessionRef]:
    """The cycle that is meant: by name, else the active one."""
    project = find_project()
    return project, project.ref(name, "cycle")


def _looked_at(name: str | None) -> tuple[Project, SessionRef]:
    """The cycle a person looks at: the one they name, the one that is active, else the newest."""
    project = find_project()
    refs = project.sessions("cycle")
    if not refs and not name:
        raise UsageError('there is no cycle here; `rondel cycle start "…"` begins one')
    if name or any(not project.summary(r).status.is_over for r in refs):
        return project, project.ref(name, "cycle")
    return project, refs[-1]


def _change(project: Project, ref: SessionRef, *transitions: Transition) -> None:
    """A change of the state, on the document as it is at that moment."""
    state: State = project.state(ref)
    if state.cycle is None:
        raise UsageError("; ".join(p.message for p in state.problems))
    project.change(ref, [*restore(state), state.edit(project.look.at, *transitions)])


def _go_on(
    project: Project,
    ref: SessionRef,
    *,
    no_run: bool,
    agents_max: int | None,
    as_json: bool,
    retry: bool = False,
) -> None:
    """Run the cycle, unless somebody does already or nobody wants it."""
    if not no_run and project.summary(ref).status is not Status.RUNNING:
        _run(project, ref, as_json=as_json, agents_max=agents_max, retry=retry)
    if as_json:
        emit({"session": ref.name, "state": project.summary(ref).state})


def _rests(project: Project, ref: SessionRef) -> bool:
    """Whether a person paused it: an answer alone does not make it go on."""
    rests = project.summary(ref).status is Status.PAUSED
    if rests:
        say(f"{ref.name}: it is paused; `{command_line('cycle', 'resume', ref.id)}` goes on")
    return rests


def _run(
    project: Project,
    ref: SessionRef,
    *,
    as_json: bool,
    agents_max: int | None,
    wait: bool = False,
    retry: bool = True,
) -> NoReturn:
    """Run a cycle with as many agents as it was started with, when nothing else is said."""
    state: State = project.state(ref)
    many = agents_max or state.request.agents_max
    run_session(project, ref, as_json=as_json, agents_max=many, wait=wait, retry=retry)


def _restored(project: Project, ref: SessionRef) -> None:
    """Write a damaged state file again, and say so."""
    state: State = project.state(ref)
    changes = restore(state)
    if state.cycle is None or not changes or not project.is_known(ref):
        return
    with suppress(Held), project.hold(ref):
        project.change(ref, changes)
        for problem in state.problems:
            say(f"warning: {problem.file}: {problem.message}")
