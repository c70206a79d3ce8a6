"""The commands of the workflow `generate`."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from rondel.cli.common import (
    WAITS,
    agents_option,
    answer,
    ask_consent,
    emit,
    find_project,
    json_option,
    no_run_option,
    on_option,
    run_session,
    say,
    say_foreign,
    session_names,
    states_json,
    wait_option,
)
from rondel.cli.groups import Commands
from rondel.errors import Held, NeedsConsent, NothingToDo, UsageError
from rondel.model.decisions import answered
from rondel.model.summary import Status, command_line
from rondel.model.workflow import SessionRef
from rondel.paths import is_bytecode
from rondel.project import Project
from rondel.workflows.generate import transitions
from rondel.workflows.generate.files import (
    Copy,
    copies,
    copy_code,
    new_profile,
    questions_to_come,
    work_out,
)
from rondel.workflows.generate.layout import PROFILES
from rondel.workflows.generate.models import WorkflowPhase
from rondel.workflows.generate.profiles.discover import (
    brought_profile,
    is_brought,
    load_profile,
    profile_names,
)
from rondel.workflows.generate.read import State, check_settings
from rondel.workflows.generate.workflow import status_text

session_argument = click.argument("session", required=False, shell_complete=session_names("generate"))


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
    pairs: tuple[str, ...], skip: tuple[str, ...], skip_tests: bool, as_json: bool, **asked: Any
) -> None:
    """Begin a session: its cycles, its first prompt. Prints its name."""
    project = find_project()
    ask_consent(project, "generate")
    skipped = (*skip, *(("tests",) if skip_tests else ()))
    ref = project.start("generate", context=context_of(pairs), skip=skipped, **asked).ref
    body = {"session": ref.name, "id": ref.id, "path": ref.folder, "state": project.summary(ref).state}
    answer(body, [ref.id], as_json=as_json)
    if not as_json:
        _say_next(project, ref)


# -- looking ------------------------------------------------------------------------------------


@command.command()
@session_argument
@json_option
def status(session: str | None, as_json: bool) -> None:
    """Show where a session stands, cycle by cycle."""
    project = find_project()
    ref = _one(project, session)
    found = project.summary(ref)
    if as_json:
        emit(states_json(project, [ref]))
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


@command.command()
@session_argument
@json_option
@agents_option
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
    project = find_project()
    ref = project.ref(session, "generate")
    project.require_known(ref)
    state: State = project.state(ref)
    if project.summary(ref).status.is_over:
        raise NothingToDo(f"{ref.name} is at its end; see `{command_line('generate', 'status', ref.id)}`")
    check_settings(project.config.source, project.settings("generate"))
    before = {"auto": state.request.auto, "parallel": state.request.parallel}
    said = {"auto": auto, "parallel": parallel}
    asked = {**before, **{key: value for key, value in said.items() if value is not None}}
    with project.hold(ref) as lease:
        if asked != before:
            project.ask_for(ref, asked, lease)
        run_session(project, ref, as_json=as_json, agents_max=agents_max, wait=wait, lease=lease)


@command.command()
@session_argument
@on_option
@click.option("--comment", default="", help="Why.")
@no_run_option
@json_option
def approve(session: str | None, path: str | None, comment: str, no_run: bool, as_json: bool) -> None:
    """Let the prompt or response that waits pass, as it is now, and go on."""
    _answer(session, "approve", comment, path, no_run=no_run, as_json=as_json)


@command.command()
@session_argument
@click.option("--feedback", default="", help="What must be different; without it the cycle halts.")
@on_option
@no_run_option
@json_option
def reject(session: str | None, feedback: str, path: str | None, no_run: bool, as_json: bool) -> None:
    """Refuse the prompt or response that waits: with feedback it is made anew, without it the cycle halts."""
    _answer(session, "reject", feedback, path, no_run=no_run, as_json=as_json)


def _answer(
    session: str | None, said: str, comment: str, path: str | None, *, no_run: bool, as_json: bool
) -> None:
    project = find_project()
    ref = project.ref(session, "generate")
    answered(ref.name, questions_to_come(project, ref), said, path)  # one that is refused writes nothing
    with suppress(Held), project.hold(ref):
        work_out(project, ref)
    question = project.decide(ref, said, path=path, comment=comment)
    say(f"{ref.name}: {said}: {question.question}")
    if project.goes_on(ref):
        return
    with project.hold(ref) as lease:
        work_out(project, ref)
        if not no_run and (said != "reject" or comment.strip()):
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
    project = find_project()
    ref = project.ref(session, "generate")
    chosen = WorkflowPhase(phase) if phase else None
    with project.hold(ref) as lease:
        project.change(ref, transitions.retry(project.state(ref), name, chosen, feedback, project.look.at))
        if not no_run:
            run_session(project, ref, as_json=as_json, lease=lease)
    _leave(project, ref, as_json=as_json)


@command.command()
@click.argument("words", nargs=-1, required=True, metavar="TYPE [SESSION]")
def skip(words: tuple[str, ...]) -> None:
    """Leave a cycle out."""
    if len(words) > 2:  # noqa: PLR2004
        raise UsageError("give the TYPE of the cycle and, where there are several, the SESSION")
    project = find_project()
    ref = project.ref(words[1] if len(words) > 1 else None, "generate")
    project.change(ref, transitions.skip(project.state(ref), words[0], project.look.at))
    say(f"{ref.name}: {words[0]} is skipped")


@command.command()
@session_argument
def cancel(session: str | None) -> None:
    """Give a session up: what is complete stays, nothing more is done."""
    project = find_project()
    ref = project.ref(session, "generate")
    project.change(ref, transitions.cancel(project.state(ref), project.look.at))
    if project.summary(ref).status is Status.RUNNING:
        project.stop(ref)
    say(f"{ref.name}: cancelled; `{command_line('generate', 'retry', ref.id)}` takes it up again")


# -- taking the code over -----------------------------------------------------------------------


@command.command()
@session_argument
@click.option("--into", default="", metavar="FOLDER", help="Where to, in the repository; its top by default.")
@click.option("--yes", "-y", is_flag=True, help="Do it without asking.")
@click.option(
    "--overwrite", multiple=True, metavar="FILE", help="A file that was changed and may be replaced."
)
@click.option(
    "--edited", multiple=True, metavar="FILE", help="A file that was edited after its review; it is taken so."
)
@click.option("--dry-run", is_flag=True, help="Only show the diff.")
def apply(
    session: str | None,
    into: str,
    yes: bool,
    overwrite: tuple[str, ...],
    edited: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Copy finished code into the project, as a diff you have seen; never over changed files unasked."""
    project = find_project()
    ref = _one(project, session)
    if not dry_run:
        project.require_known(ref)
    say_foreign(project, ref)
    found = copies(project.root, project.state(ref), into)
    if not found:
        raise NothingToDo(f"{ref.name} has no completed cycle with code yet")
    _require_among(found, overwrite=overwrite, edited=edited)
    click.echo("".join(copy.diff for copy in found), nl=False)
    _refuse_changed([c for c in found if c.changed and c.path not in overwrite])
    todo = [c for c in found if c.needed]
    if not todo:
        copy_code(project.root, ref, () if dry_run else found, project.change)
        raise NothingToDo(f"every file of {ref.name} is there already")
    unseen = [c for c in todo if c.edited and c.path not in edited]
    if unseen:
        say(f"edited after their review, which was about other code: {', '.join(c.path for c in unseen)}")
    if dry_run:
        return
    asks = sys.stdin.isatty() and not yes
    if unseen and not asks:
        flags = (("--into", into), *(("--overwrite", path) for path in overwrite))
        taken = (("--edited", path) for path in (*edited, *(c.path for c in unseen)))
        _refuse_edited(ref, unseen[0], [word for flag in (*flags, *taken) if flag[1] for word in flag])
    if not yes:
        _require_yes(len(todo), asks=asks)
    for path in copy_code(project.root, ref, found, project.change):
        say(f"wrote {path}")


def _require_among(found: list[Copy], **options: tuple[str, ...]) -> None:
    """UsageError for a file that was named in an option and is none of these."""
    for option, given in options.items():
        if unknown := sorted(set(given) - {c.path for c in found}):
            raise UsageError(f"--{option} {unknown[0]}: it is none of {', '.join(c.path for c in found)}")


def _require_yes(count: int, *, asks: bool) -> None:
    if not asks:
        say(f"{count} files wait; give --yes to write them")
    if not asks or not click.confirm(f"write {count} files?", err=True):
        sys.exit(WAITS)


def _refuse_edited(ref: SessionRef, copy: Copy, flags: list[str]) -> NoReturn:
    again = command_line("generate", "retry", ref.id, "--cycle", copy.edited, "--from", "review")
    raise NeedsConsent(
        f"nothing was written: nobody reviewed {copy.path} as it is now. Take it as it is, or have it "
        f"reviewed again: `{again}`",
        then=command_line("generate", "apply", ref.id, "--yes", *flags),
    )


def _refuse_changed(changed: list[Copy]) -> None:
    if changed:
        names = ", ".join(c.path for c in changed)
        flags = " ".join(f"--overwrite {c.path}" for c in changed)
        raise UsageError(f"changed by somebody else, nothing was written: {names}; to replace them: {flags}")


@command.command()
@json_option
def profiles(as_json: bool) -> None:
    """List the profiles: installed ones, and those in .aiwf/profiles/."""
    found = profile_names(find_project().root)
    rows = [{"name": name, "from": place} for name, place in found.items()]
    answer({"profiles": rows}, (f"{name}  {place}" for name, place in found.items()), as_json=as_json)


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
    root = find_project().root
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
    project = find_project()
    folder = new_profile(project.root, name).relative_to(project.root)
    project.trust.give([brought_profile(name)])  # it is ours, as long as nobody changes it
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
