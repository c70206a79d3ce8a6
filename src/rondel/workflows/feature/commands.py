"""The commands of the workflow `feature`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, Unpack

import click

from rondel.cli.common import (
    WAITS,
    How,
    answer,
    emit,
    emit_json,
    fail_option,
    find_project,
    json_list_option,
    json_option,
    options,
    run_session,
    say,
    say_foreign,
    states_json,
    wait_option,
)
from rondel.cli.groups import Commands
from rondel.errors import GitError, NothingToDo, RondelError, UsageError
from rondel.model.summary import command_line
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.workflows.feature import layout, place
from rondel.workflows.feature.closing import kept_history
from rondel.workflows.feature.files import lint_file
from rondel.workflows.feature.meta import notes, records, stamped, word
from rondel.workflows.feature.phases import ACTIVE, FINISH, IMPLEMENT, LIMITS, PHASES, REVIEWED
from rondel.workflows.feature.read import State
from rondel.workflows.feature.transitions import Transition
from rondel.workflows.feature.workflow import made_by
from rondel.workflows.feature.worktrees import Way, end_feature

feature_argument = click.argument("feature", required=False)


@click.group(cls=Commands)
def command() -> None:
    """Work on a feature phase by phase, each under a reviewer."""


def find(project: Project, feature: str | None) -> tuple[SessionRef, State]:
    """The feature a person means, and what its files show. Says once where its worktree is."""
    ref = project.ref(feature, "feature")
    state: State = project.state(ref)
    if state.damaged:
        raise RondelError(
            f"{ref.folder}/{layout.META} is {state.anomalies[0].message}; `rondel doctor --repair` mends one "
            "stray brace, anything else is mended by hand"
        )
    warning = place.elsewhere(str(project.root), ref.name, state.meta.get("worktree"), str(Path.cwd()))
    if warning and not state.ended and not os.environ.get("CLAUDECODE"):  # there the hook has said it
        say(f"warning: {warning}")
    return ref, state


@command.command()
@click.argument("title")
@click.option(
    "--mode",
    type=click.Choice(list(LIMITS), case_sensitive=False),
    help="How often a phase may be revised: hotfix 1, quick 2, standard 3, full 5.",
)
@click.option("--description", default="", help="What is wanted, in a few sentences.")
@click.option(
    "--from",
    "source",
    type=click.File(encoding="utf-8"),
    help="A brainstorm that is written already; it becomes brainstorm.md.",
)
@click.option("--worktree", is_flag=True, help="Make a worktree beside the repository, with the branch.")
@json_option
def start(source: Any, as_json: bool, **asked: Any) -> None:
    """Begin a feature: docs/features/{id}-{slug}/."""
    project = find_project().home("feature", new=True)
    started = project.start("feature", brainstorm=source.read() if source else None, **asked)
    ref, found = started.ref, project.summary(started.ref)
    answer({"session": ref.name, "path": ref.folder, "state": found.state}, [ref.folder], as_json=as_json)
    for note in started.notes:
        say(note)
    if not as_json:
        say(f"next: {found.next}")


# -- phases -----------------------------------------------------------------------------------


_run_options = options(fail_option, wait_option, json_option)
_phase_options = options(
    feature_argument,
    click.option("--continue", is_flag=True, help="Go on with a phase that is under way."),
    click.option("--fresh", is_flag=True, help="Begin it again; what is there is kept aside."),
    click.option("--review", is_flag=True, help="Only review the document as it stands."),
    click.option("--yes", "-y", is_flag=True, help="Go on past a warning."),
    _run_options,
)


def _add_phase(phase: str) -> None:
    @command.command(phase, help=f"Do the phase {phase}, with its reviewer.")
    @_phase_options
    def phase_command(
        feature: str | None, yes: bool, fail: bool | None, wait: bool, as_json: bool, **ways: bool
    ) -> None:
        _do_phase(phase, feature, _only_one(ways), yes=yes, fail=fail, wait=wait, as_json=as_json)


for _phase in REVIEWED:
    _add_phase(_phase)


def _only_one(flags: Mapping[str, bool]) -> str | None:
    """The one flag that was given; two of them say opposite things."""
    given = [name for name, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(f'--{n}' for n in given)} exclude each other; give one of them")
    return given[0] if given else None


def _do_phase(phase: str, feature: str | None, way: str | None, *, yes: bool, **how: Unpack[How]) -> NoReturn:
    project = find_project().home("feature")
    ref, state = find(project, feature)
    may = state.transition(phase)
    if not may.allowed:
        raise RondelError(may.message or f"{phase} is blocked")
    under_way = phase in state.partial
    at_once = phase == IMPLEMENT == state.suggested  # what `next:` named
    proceed = yes or under_way or at_once or _proceeds(may)
    if under_way and way is None and sys.stdin.isatty() and not how.get("as_json"):
        words = click.Choice(["continue", "fresh", "review"])
        way = click.prompt(f"{phase} was started and not completed", type=words, default="continue")
    request = {"command": "phase", "phase": phase, "how": way, "proceed": proceed}
    _ask_and_run(project, ref, request, **how)


def _ask_and_run(
    project: Project, ref: SessionRef, request: Mapping[str, object], **how: Unpack[How]
) -> NoReturn:
    with project.hold(ref) as lease:
        project.ask_for(ref, request, lease)
        # A person asks, so it is tried again.
        run_session(project, ref, lease=lease, **how)


def _proceeds(may: Transition) -> bool:
    """Show a warning and ask; where nobody can be asked, skipping goes on and going back waits."""
    if may.type != "warning":
        return True
    say(f"warning: {may.message}")
    if sys.stdin.isatty():
        if not click.confirm("go on?", err=True):
            sys.exit(WAITS)
        return True
    return " skips " in (may.message or "")


@command.command()
@feature_argument
@click.option("--until", type=click.Choice(list(REVIEWED)), help="The last phase to do.")
@click.option("--auto", is_flag=True, help="Do not stop for a reviewer's concerns.")
@_run_options
def run(feature: str | None, until: str | None, auto: bool, **how: Unpack[How]) -> None:
    """Do every phase that is left, stopping where a person is needed."""
    project = find_project().home("feature")
    ref, state = find(project, feature)
    if state.ended:
        raise RondelError(f"{ref.name} is {word(state.meta, 'status')}; start another feature")
    if state.due in REVIEWED and until and PHASES.index(state.due) > PHASES.index(until):
        follows = command_line("feature", state.due, ref.id)
        raise NothingToDo(f"{ref.name}: done up to {until}\n  next: {follows}")
    if state.due not in REVIEWED:
        raise NothingToDo(f"{ref.name}: every phase is done; `rondel feature finish` ends it")
    request = {"command": "run", "until": until, "auto": auto, "before": sorted(state.completed)}
    _ask_and_run(project, ref, request, **how)


@command.command()
@click.argument("phase")
@feature_argument
@json_option
def check(phase: str, feature: str | None, as_json: bool) -> None:
    """Say whether a phase may start: proceed, warning or blocked, and why."""
    project = find_project().home("feature")
    ref, state = find(project, feature)
    project.require_known(ref)
    may = state.transition(phase)
    line = f"{may.type}: {may.message}" if may.message else may.type
    answer({"allowed": may.allowed, "type": may.type, "message": may.message}, [line], as_json=as_json)
    sys.exit(0 if may.allowed else 1)


# -- looking ----------------------------------------------------------------------------------


@command.command()
@feature_argument
@json_option
def status(feature: str | None, as_json: bool) -> None:
    """Show the features, or one with its phases."""
    project = find_project().home("feature")
    refs = [project.ref(feature, "feature")] if feature else project.sessions("feature")
    if as_json:
        emit(states_json(project, refs))
        return
    if feature is None:
        refs = [r for r in refs if project.state(r).meta.get("status", ACTIVE) == ACTIVE] or refs
    if not refs:
        say('no features here yet; `rondel feature start "title"` begins one')
    for ref in refs:
        _show(project, ref)


def _show(project: Project, ref: SessionRef) -> None:
    found = project.summary(ref)
    state: State = project.state(ref)
    mode = word(state.meta, "mode") or "standard"
    click.echo(f"{ref.name}: {found.title} ({found.status.value}, {mode}, at most {state.limit} iterations)")
    kept = records(state.meta)
    for phase in PHASES:
        record = kept.get(phase)
        if record is not None:
            ended = stamped(record, "completed")
            words = (
                f"completed {ended}{made_by(state, phase)}"
                if ended
                else f"under way since {stamped(record, 'started')}"
            )
            click.echo(f"  {phase}: {words}")
            for note in notes(record):
                click.echo(f"    {note}")
    for problem in found.problems:
        click.echo(f"  {problem.rule}: {problem.message}")
    if found.waiting_for:
        click.echo(f"  waits for: {found.waiting_for}")
    if found.next:
        click.echo(f"  next: {found.next}")


@command.command()
@feature_argument
def history(feature: str | None) -> None:
    """Show every review so far."""
    project = find_project().home("feature")
    ref, state = find(project, feature)
    say_foreign(project, ref)
    text = kept_history(state)
    if text is None:
        raise NothingToDo(f"{ref.name} was not reviewed yet")
    click.echo(text, nl=not text.endswith("\n"))


@command.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@json_list_option
def lint(files: tuple[str, ...], as_json: bool) -> None:
    """Say what is wrong with .meta.json files, wherever they lie."""
    found = [(name, lint_file(name)) for name in files]
    if as_json:
        rows = [{"file": name, "problems": [a.to_json() for a in rules]} for name, rules in found]
        emit_json(rows)
        return
    for name, rules in found:
        for anomaly in rules:
            click.echo(f"{name}: {anomaly.rule}: {anomaly.message}")
    if not any(rules for _, rules in found):
        click.echo("nothing wrong was found")


# -- the end ----------------------------------------------------------------------------------


@command.command()
@feature_argument
@click.option("--merge", is_flag=True, help="Merge the branch into the one checked out here.")
@click.option("--pr", is_flag=True, help="Push the branch and open a pull request.")
@click.option("--keep", is_flag=True, help="Leave branch and worktree as they are.")
@click.option("--abandon", is_flag=True, help="Give it up; the branch stays.")
@click.option("--force", is_flag=True, help="Also with unfinished tasks, or phases that Rondel did not do.")
@click.option("--reason", default="", help="Why it is abandoned.")
def finish(feature: str | None, force: bool, reason: str, **ways: bool) -> None:
    """End a feature: merge it, hand it over, keep it, or give it up."""
    way = _only_one(ways)
    project = find_project().home("feature")
    ref, state = find(project, feature)
    if state.ended and FINISH not in state.foreign:
        raise NothingToDo(f"{ref.name} is {word(state.meta, 'status')} already")
    if way is None and sys.stdin.isatty():
        way = click.prompt("how", type=click.Choice([w.value for w in Way]), err=True)
    if way is None:
        say(f"{ref.name} waits for a decision: give --merge, --pr, --keep or --abandon")
        sys.exit(WAITS)
    with project.hold(ref):
        now: State = project.state(ref)  # another command may have gone on while this one asked
        if now.ended and FINISH not in now.foreign:
            raise NothingToDo(f"{ref.name} is {word(now.meta, 'status')} already")
        try:
            for line in end_feature(project, ref, now, Way(way), force=force, reason=reason):
                click.echo(line)
        except GitError as e:
            why = ("--reason", reason) if reason else ()
            again = command_line(
                "feature", FINISH, ref.id, f"--{way}", *(("--force",) if force else ()), *why
            )
            raise GitError(str(e), then=e.then or again) from e
