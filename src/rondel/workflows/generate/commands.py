"""The commands of the workflow `generate`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, TypeVar

import click

from rondel.cli.common import (
    agents_option,
    ask_consent,
    emit,
    here,
    json_option,
    no_run_option,
    run_session,
    say,
    say_foreign,
    wait_option,
)
from rondel.cli.groups import Commands
from rondel.cli.sessions import summary_json
from rondel.errors import ConfigError, Held, NothingToDo, UsageError
from rondel.model.actions import Decide, Derive
from rondel.model.changes import foresee
from rondel.model.commands import command_line
from rondel.model.outcomes import Ended, Outcome
from rondel.model.snapshot import FrozenSnapshot
from rondel.model.summary import Status
from rondel.model.workflow import SessionRef, Step
from rondel.paths import is_bytecode
from rondel.project import Project, answered
from rondel.workflows.generate import transitions
from rondel.workflows.generate.files import Copy, GenerateOptions, copies, copy_code, new_profile, start
from rondel.workflows.generate.layout import PROFILES
from rondel.workflows.generate.models import WorkflowPhase
from rondel.workflows.generate.profiles.discover import (
    brought_profile,
    is_brought,
    load_profile,
    profile_names,
)
from rondel.workflows.generate.read import GATES, State
from rondel.workflows.generate.workflow import status_text

F = TypeVar("F", bound=Callable[..., object])
WAITS = 3
STEPS_MAX = 100  # of what code works out by itself, before an agent or a person is needed


def _name_of(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The sessions of this folder, for shell completion."""
    return [ref.id for ref in here().sessions("generate") if incomplete in ref.id]


session_argument = click.argument("session", required=False, shell_complete=_name_of)


@click.group(cls=Commands)
def command() -> None:
    """Generate code cycle by cycle from a profile, with approvals."""


# -- starting -----------------------------------------------------------------------------------


@command.command()
@click.argument("profile")
@click.option(
    "-c", "--context", "pairs", multiple=True, metavar="KEY=VALUE", help="What the profile is to know."
)
@click.option("--with-tests", is_flag=True, help="Generate tests too, in a cycle after the code.")
@click.option("--skip", multiple=True, metavar="TYPE", help="Leave a cycle out.")
@click.option("--skip-tests", is_flag=True, help="The same as --skip tests.")
@click.option("--source-session", metavar="SESSION", help="Build on the finished code of another session.")
@click.option("--source-files", multiple=True, metavar="GLOB", help="Build on files of this repository.")
@click.option("--dev", default="", help="Who it is for; kept with the session.")
@click.option("--task-id", default="", help="The task it belongs to; kept with the session.")
@click.option("--auto", is_flag=True, help="Let every prompt and response pass without asking.")
@click.option("--parallel", is_flag=True, help="Run independent cycles at once.")
@json_option
def init(
    profile: str,
    pairs: tuple[str, ...],
    with_tests: bool,
    skip: tuple[str, ...],
    skip_tests: bool,
    source_session: str | None,
    source_files: tuple[str, ...],
    dev: str,
    task_id: str,
    auto: bool,
    parallel: bool,
    as_json: bool,
) -> None:
    """Begin a session: its cycles, its first prompt. Prints its name."""
    project = here()
    metadata = {k: v for k, v in (("dev", dev), ("task_id", task_id)) if v}
    wish = GenerateOptions(
        profile=profile,
        context=context_of(pairs),
        with_tests=with_tests,
        skip=(*skip, *(("tests",) if skip_tests else ())),
        source_session=source_session,
        source_files=source_files,
        metadata=metadata,
        request={"auto": auto, "parallel": parallel},
    )
    ask_consent(project, "generate")
    _check_settings(project)
    ref = start(
        project.root,
        wish,
        base=Path.cwd(),
        admits=project.admits,
        ask=project.ask,
        claim=project.claim,
        files_of=project.files,
    )
    project.begin(ref, new=True)
    _work_out(project, ref)
    if as_json:
        emit({"session": ref.name, "id": ref.id, "path": ref.folder, "state": project.summary(ref).state})
        return
    click.echo(ref.id)
    _say_next(project, ref)


def _check_settings(project: Project) -> None:
    """Check `[generate]` of the settings; an error names the key and what is allowed."""
    found = dict(project.settings("generate"))
    source = project.config.source
    gates = found["gates"]
    rows = {
        "gate": found["gate"],
        **({f"gates.{k}": v for k, v in gates.items()} if isinstance(gates, dict) else {}),
    }
    for key, value in rows.items():
        if value not in GATES:
            raise ConfigError(
                f"{source}: generate.{key} = {value!r} is not allowed: one of {', '.join(GATES)}"
            )
    _check_limits(source, "generate", found)
    cycles = found["cycles"]
    for name, table in cycles.items() if isinstance(cycles, dict) else ():
        if not isinstance(table, Mapping):
            raise ConfigError(f"{source}: generate.cycles.{name} must be a table")
        _check_limits(source, f"generate.cycles.{name}", table, only=True)


def _check_limits(source: str, where: str, table: Mapping[str, object], *, only: bool = False) -> None:
    limits = ("iterations_max", "context_chars_max")
    for key, value in table.items():
        if key in limits and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ConfigError(f"{source}: {where}.{key} = {value!r} is not allowed: a whole number from 1")
        if only and key not in limits:
            raise ConfigError(f"{source}: {where}.{key} is not a setting; allowed here: {', '.join(limits)}")


# -- looking ------------------------------------------------------------------------------------


@command.command()
@session_argument
@json_option
def status(session: str | None, as_json: bool) -> None:
    """Show where a session stands, cycle by cycle."""
    project = here()
    ref = _one(project, session)
    found = project.summary(ref)
    if as_json:
        emit({"sessions": [summary_json(project, ref, found) | {"state": found.state}]})
        return
    state: State = project.state(ref)
    if state.session is None:
        raise UsageError("; ".join(f"{p.file}: {p.message}" for p in found.problems))
    click.echo(status_text(state.session), nl=False)
    for problem in found.problems:
        say(f"{problem.rule}: {problem.file}: {problem.message}")
    if found.foreign:
        say(f"not made by Rondel: {', '.join(found.foreign)}")
    _say_next(project, ref)


def _one(project: Project, name: str | None) -> SessionRef:
    """The session a person looks at: the one they name, the one that is active, else the only one."""
    refs = project.sessions("generate")
    return refs[0] if name is None and len(refs) == 1 else project.ref(name, "generate")


def _say_next(project: Project, ref: SessionRef) -> None:
    found = project.summary(ref)
    if found.waiting_for:
        say(f"waits for: {found.waiting_for}")
    if found.next and found.status is not Status.RUNNING:
        say(f"next: {found.next}")


# -- going on -----------------------------------------------------------------------------------


def _going(command_: F) -> F:
    """The options of going on with a session."""
    for option in (
        agents_option,
        json_option,
        session_argument,
    ):
        command_ = option(command_)
    return command_


@command.command()
@_going
@click.option("--auto/--no-auto", default=None, help="Let every prompt and response pass without asking.")
@click.option("--parallel/--no-parallel", default=None, help="Run independent cycles at once.")
@wait_option
def run(
    session: str | None,
    as_json: bool,
    agents_max: int | None,
    auto: bool | None,
    parallel: bool | None,
    wait: bool,
) -> None:
    """Go on with a session, with the settings as they are now."""
    project = here()
    ref = project.ref(session, "generate")
    project.require_known(ref)
    state: State = project.state(ref)
    if project.summary(ref).status.is_over:
        raise NothingToDo(f"{ref.name} is at its end; see `{command_line('generate', 'status', ref.id)}`")
    _check_settings(project)
    before = {"auto": state.request.auto, "parallel": state.request.parallel}
    said = {"auto": auto, "parallel": parallel}
    asked = {**before, **{key: value for key, value in said.items() if value is not None}}
    with project.hold(ref) as lease:
        if asked != before:
            project.ask_for(ref, asked, lease)
        run_session(project, ref, as_json=as_json, agents_max=agents_max, wait=wait, lease=lease)


@command.command()
@session_argument
@click.option("--on", "path", help="Which question, when several wait.")
@click.option("--comment", default="", help="Why.")
@no_run_option
@json_option
def approve(session: str | None, path: str | None, comment: str, no_run: bool, as_json: bool) -> None:
    """Let the prompt or response that waits pass, as it is now, and go on."""
    _answer(session, "approve", comment, path, no_run=no_run, as_json=as_json)


@command.command()
@session_argument
@click.option("--feedback", default="", help="What must be different; without it the cycle halts.")
@click.option("--on", "path", help="Which question, when several wait.")
@no_run_option
@json_option
def reject(session: str | None, feedback: str, path: str | None, no_run: bool, as_json: bool) -> None:
    """Refuse the prompt or response that waits: with feedback it is made anew, without it the cycle halts."""
    _answer(session, "reject", feedback, path, no_run=no_run, as_json=as_json)


def _answer(
    session: str | None, answer: str, comment: str, path: str | None, *, no_run: bool, as_json: bool
) -> None:
    project = here()
    ref = project.ref(session, "generate")
    answered(ref, _questions_to_come(project, ref), answer, path)  # one that is refused writes nothing
    with suppress(Held), project.hold(ref):
        _work_out(project, ref)
    question = project.decide(ref, answer, path=path, comment=comment)
    say(f"{ref.name}: {answer}: {question.question}")
    if project.goes_on(ref):
        return
    with project.hold(ref) as lease:
        _work_out(project, ref)
        if not no_run and (answer != "reject" or comment.strip()):
            run_session(project, ref, as_json=as_json, retry=False, lease=lease)
    _leave(project, ref, as_json=as_json)


def _leave(project: Project, ref: SessionRef, *, as_json: bool) -> NoReturn:
    if as_json:
        emit({"session": ref.name, "state": project.summary(ref).state})
    else:
        _say_next(project, ref)
    sys.exit(0)


@command.command()
@session_argument
@click.option("--cycle", "name", metavar="TYPE", help="Which cycle; the one that stopped by default.")
@click.option(
    "--from",
    "phase",
    type=click.Choice([p.value for p in WorkflowPhase]),
    help="From which phase, in a new iteration.",
)
@click.option("--feedback", default="", help="What must be different this time.")
@no_run_option
@json_option
def retry(
    session: str | None, name: str | None, phase: str | None, feedback: str, no_run: bool, as_json: bool
) -> None:
    """Go on with a cycle that stopped, or redo a cycle or one phase of it."""
    project = here()
    ref = project.ref(session, "generate")
    chosen = WorkflowPhase(phase) if phase else None
    with project.hold(ref) as lease:
        project.change(ref, transitions.retry(project.state(ref), name, chosen, feedback, _now()))
        if not no_run:
            run_session(project, ref, as_json=as_json, lease=lease)
    _leave(project, ref, as_json=as_json)


@command.command()
@click.argument("words", nargs=-1, required=True, metavar="TYPE [SESSION]")
def skip(words: tuple[str, ...]) -> None:
    """Leave a cycle out."""
    if len(words) > 2:  # noqa: PLR2004
        raise UsageError("give the TYPE of the cycle and, where there are several, the SESSION")
    project = here()
    ref = project.ref(words[1] if len(words) > 1 else None, "generate")
    project.change(ref, transitions.skip(project.state(ref), words[0], _now()))
    say(f"{ref.name}: {words[0]} is skipped")


@command.command()
@session_argument
def cancel(session: str | None) -> None:
    """Give a session up: what is complete stays, nothing more is done."""
    project = here()
    ref = project.ref(session, "generate")
    project.change(ref, transitions.cancel(project.state(ref), _now()))
    if project.summary(ref).status is Status.RUNNING:
        project.control(ref, "stop")
    say(f"{ref.name}: cancelled; `{command_line('generate', 'retry', ref.id)}` takes it up again")


def _now() -> datetime:
    return datetime.now(UTC)


def _work_out(project: Project, ref: SessionRef) -> None:
    """Do what needs neither an agent nor a person: prompts, and what follows from an answer."""
    flow = project.workflow("generate")
    for _ in range(STEPS_MAX):
        state = project.state(ref)
        found = ((s, s.action) for s in flow.steps(state) if isinstance(s.action, Derive))
        step, action = next(found, (None, None))
        if step is None or action is None:
            return
        seen = {path: state.files.digest(path) for path in (action.path, *action.outputs)}
        project.change(ref, step.write(state, Outcome(Ended.DONE, finished_at=_now())), seen)


def _questions_to_come(project: Project, ref: SessionRef) -> list[Decide]:
    """What a person has to say once everything that code works out by itself is there; writes nothing."""
    flow, before = project.workflow("generate"), project.files(ref)
    found = {path: before.data(path) or b"" for path in project.artifacts(ref)}
    due: list[Step[State]] = []
    for _ in range(STEPS_MAX):
        files = FrozenSnapshot(found)
        files.place = before.place
        state = flow.read(files, ref, project.given("generate"))
        due = list(flow.steps(state))
        step = next((s for s in due if isinstance(s.action, Derive)), None)
        if step is None:
            break
        foresee(found, step.write(state, Outcome(Ended.DONE, finished_at=_now())))
    return [s.action for s in due if isinstance(s.action, Decide)]


# -- taking the code over -----------------------------------------------------------------------


@command.command()
@session_argument
@click.option("--into", default="", metavar="FOLDER", help="Where to, in the repository; its top by default.")
@click.option("--yes", "-y", is_flag=True, help="Do it without asking.")
@click.option(
    "--overwrite", multiple=True, metavar="FILE", help="A file that was changed and may be replaced."
)
@click.option("--dry-run", is_flag=True, help="Only show the diff.")
def apply(session: str | None, into: str, yes: bool, overwrite: tuple[str, ...], dry_run: bool) -> None:
    """Copy finished code into the project, as a diff you have seen; never over changed files unasked."""
    project = here()
    ref = _one(project, session)
    if not dry_run:
        project.require_known(ref)
    say_foreign(project, ref)
    found = copies(project.root, project.state(ref), into)
    if not found:
        raise NothingToDo(f"{ref.name} has no completed cycle with code yet")
    unknown = sorted(set(overwrite) - {c.path for c in found})
    if unknown:
        raise UsageError(f"--overwrite {unknown[0]}: it is none of {', '.join(c.path for c in found)}")
    click.echo("".join(copy.diff for copy in found), nl=False)
    _refuse_changed([c for c in found if c.changed and c.path not in overwrite])
    todo = [c for c in found if c.needed]
    if not todo:
        copy_code(project.root, ref, () if dry_run else found, project.change)
        raise NothingToDo(f"every file of {ref.name} is there already")
    if dry_run:
        return
    if not yes:
        if not sys.stdin.isatty():
            say(f"{len(todo)} files wait; give --yes to write them")
            sys.exit(WAITS)
        if not click.confirm(f"write {len(todo)} files?", err=True):
            sys.exit(WAITS)
    for path in copy_code(project.root, ref, found, project.change):
        say(f"wrote {path}")


def _refuse_changed(changed: list[Copy]) -> None:
    if changed:
        names = ", ".join(c.path for c in changed)
        flags = " ".join(f"--overwrite {c.path}" for c in changed)
        raise UsageError(f"changed by somebody else, nothing was written: {names}; to replace them: {flags}")


@command.command()
@json_option
def profiles(as_json: bool) -> None:
    """List the profiles: installed ones, and those in .aiwf/profiles/."""
    found = profile_names(here().root)
    if as_json:
        emit({"profiles": [{"name": name, "from": place} for name, place in found.items()]})
        return
    for name, place in found.items():
        click.echo(f"{name}  {place}")


@command.group(cls=Commands)
def profile() -> None:
    """Look at a profile, or make one."""


@profile.command("show")
@click.argument("name")
@click.option(
    "-c", "--context", "pairs", multiple=True, metavar="KEY=VALUE", help="A context, to see its cycles."
)
def show(name: str, pairs: tuple[str, ...]) -> None:
    """Show what a profile is for, and its cycles for a context; of one of the repository, its files."""
    root = here().root
    if is_brought(name, root):
        _show_files(name, root)
        return
    found = load_profile(name, root)
    click.echo(f"{name}: {found.description or 'no description'}")
    click.echo(f"from {profile_names(root)[name]}")
    if wanted := found.check_context(context_of(pairs)):
        click.echo(wanted)
    context: dict[str, object] = {"scope": "full", "with_tests": True, **context_of(pairs)}
    try:
        cycles = found.get_cycles(context)
    except ValueError as e:
        raise UsageError(f"profile {name}: {e}; give one with -c scope=…") from e
    for cycle in cycles:
        after = f" after {', '.join(cycle.depends_on)}" if cycle.depends_on else ""
        size = len(found.standards(cycle.scope, context))
        click.echo(f"  {cycle.type} (scope {cycle.scope}){after}, standards of {size} characters")


def _show_files(name: str, root: Path) -> None:
    """What is known of a profile of the repository without running it: only looking runs nothing."""
    click.echo(f"{name}: a program of this repository")
    click.echo(f"from {profile_names(root)[name]}")
    folder = root / PROFILES / name
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not is_bytecode(p)):
        click.echo(f"  {path.relative_to(folder)}, {path.stat().st_size} bytes")
    click.echo("its cycles are known when a session is started with it")


@profile.command("new")
@click.argument("name")
def new(name: str) -> None:
    """Make a working profile in .aiwf/profiles/, with tests."""
    project = here()
    folder = new_profile(project.root, name).relative_to(project.root)
    project.consent([project.part_of(brought_profile(name))])  # it is ours, as long as nobody changes it
    click.echo(str(folder))
    test = f"cd {shlex.quote(str(folder))} && python -m unittest test_profile.py"
    say(f"edit its prompts and standards; test it with `{test}`")


def context_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """`-c bounded-context=x` as the key `bounded_context`."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        name = key.strip().replace("-", "_")
        if not sign or not name.isidentifier():
            raise UsageError(f"-c {pair!r} is not KEY=VALUE")
        if name in found:
            raise UsageError(f"-c {key} is given twice")
        found[name] = value
    return found
