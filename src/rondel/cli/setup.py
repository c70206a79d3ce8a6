"""The commands for setting up and consenting: init, doctor, agents, trust, adopt, completion."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict

import click
from click.shell_completion import get_completion_class

from rondel.cli.common import WAITS, console, emit, find_project, is_terminal, json_option, problem_json, say
from rondel.cli.screen import table
from rondel.cli.sessions import session_argument
from rondel.errors import ConfigError, NeedsConsent, NothingToDo, RondelError, UsageError
from rondel.model.summary import EDITS_LOST, FOREIGN_SESSION, Problem, command_line
from rondel.model.workflow import SessionRef
from rondel.plugin import install_plugin
from rondel.project import NOT_YET, Part, Project

WRONG = "wrong"  # of settings that cannot be read

TEMPLATE = """\
# Rondel's settings for this repository. `rondel agents` shows what is installed.

# [agents.claude]
# kind = "claude"            # claude | codex | gemini | opencode | command | manual | mock | checks
# model = ""
# timeout_s = 1800           # wall clock
# idle_s = 600               # no output

[roles]                      # who does what; the longest dotted match wins
{roles}

[limits]
agents_max = 4
attempts_max = 2
# usd_max = 10.0
# tokens_max = 2000000

[project]
# setup = "python3 -m venv .venv && .venv/bin/pip install -e ."  # run once in each new workspace
# test = "pytest -q"
"""


@click.command()
@click.option("--plugin/--no-plugin", default=True, help="Install the coding-agent plugin too.")
def init(plugin: bool) -> None:
    """Write a rondel.toml, and install the coding-agent plugin."""
    project = find_project()
    if (project.root / "rondel.toml").exists():
        say("rondel.toml is there already; it stays as it is")
    else:
        is_said = "default" in project.config.roles  # by the person: it would only stand in its way
        first = None if is_said else next(iter(project.config.detected), None)
        roles = f'default = "{first}"' if first else '# default = "claude"'
        project.write_settings(TEMPLATE.format(roles=roles))
        say("wrote rondel.toml")
    if plugin:
        for line in install_plugin(project.root):
            say(line)


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended; what is replaced is kept aside.")
@json_option
def doctor(repair: bool, as_json: bool) -> None:
    """Say what is wrong in the folders, in which file, and the fix."""
    project = find_project()
    settings, wrong = _settings(project)
    problems = [*wrong, *project.doctor(repair=repair)]
    machine = _machine(project) | {"settings": settings, "sandbox": _sandbox(project)}
    if as_json:
        rows = [problem_json(p) | {"session": s, "repaired": p.repaired} for s, p in problems]
        emit({"machine": machine, "problems": rows})
    else:
        for name, words in machine.items():
            click.echo(f"{name}: {words}")
        for session, p in problems:
            state = "repaired" if p.repaired else p.rule
            click.echo(f"{session or p.file}: {state}: {p.file}: {p.message}")
            if p.repair and not p.repaired:
                click.echo(f"    {p.repair}")
        if not problems:
            click.echo("nothing wrong was found")
        if settings != WRONG:
            _say_left_out(project)
        if command := _follows(project, problems, tried=repair):
            say(f"next: {command}")
    if repair and _refused(problems):
        sys.exit(NeedsConsent.exit_code)
    sys.exit(1 if any(not p.repaired for _, p in problems) else 0)


def _follows(project: Project, problems: Sequence[tuple[str, Problem]], *, tried: bool) -> str:
    """The command that leads on: it mends the rest, or goes on with what was mended."""
    if tried and (refused := _refused(problems)):
        return command_line("adopt", refused)
    if not tried and any("doctor --repair" in p.repair for _, p in problems):
        return command_line("doctor", "--repair")
    mended = {session for session, p in problems if p.repaired or p.rule == EDITS_LOST}
    found = (project.summary(ref).next for ref in project.sessions() if ref.name in mended)
    return next((command for command in found if command), "")


def _refused(problems: Sequence[tuple[str, Problem]]) -> str:
    """A foreign session in which something can be repaired once it is adopted; empty for none."""
    foreign = {session for session, p in problems if p.rule == FOREIGN_SESSION}
    open_ = (s for s, p in problems if not p.repaired and s in foreign and "doctor --repair" in p.repair)
    return next(open_, "")


def _settings(project: Project) -> tuple[str, list[tuple[str, Problem]]]:
    """Where the settings come from, and what is wrong with them: the folders do not depend on it."""
    try:
        source = project.config.source
    except ConfigError as e:
        return WRONG, [("", Problem("settings", "rondel.toml", str(e), "correct it; nothing runs before"))]
    return source if (project.root / source).exists() else "defaults", []


def _sandbox(project: Project) -> str:
    """What holds the programs that Rondel starts here."""
    try:
        mode = project.running.sandbox_mode
    except RondelError as e:
        return str(e)
    if mode == "none":
        return "none, as you asked for; programs that Rondel starts can do what you can"
    more = [
        f"{what} {place}{'' if os.path.lexists(os.path.expanduser(place)) else ' (not there)'}"  # noqa: PTH111
        for what, places in (("read", project.config.sandbox.read), ("write", project.config.sandbox.write))
        for place in places
    ]
    more += [f"reach {host}" for host in project.config.sandbox.hosts]
    return "; ".join((project.running.held(), *more))


def _machine(project: Project) -> dict[str, str]:
    """What Rondel and its workflows need from the machine."""
    needed = {"git": "nothing works without it"}
    for name in project.workflow_names():
        needed |= project.workflow(name).programs
    return {
        **{name: shutil.which(name) or f"not installed: {why}" for name, why in needed.items()},
        "agents": ", ".join(project.running.detected()) or "no vendor's CLI on the PATH",
    }


@click.command()
@json_option
def agents(as_json: bool) -> None:
    """Show which agents are installed, their versions, and who has which role.

    Of an agent that the repository's settings describe, only where its program is: nothing of
    the repository is run to show something.
    """
    project = find_project()
    rows = project.running.agents()
    if as_json:
        emit({"agents": [{k: v for k, v in asdict(row).items() if k != "is_vendor"} for row in rows]})
        return
    screen = console()
    shown = [
        (r.name, r.kind, r.version or "no", r.model, ", ".join((*r.roles, *r.default_for))) for r in rows
    ]
    screen.print(table(screen, ("agent", "kind", "installed", "model", "roles"), shown))
    for row in rows:
        if row.is_vendor and row.roles and not row.version:
            roles = ", ".join(row.roles)
            say(f"{row.name} has roles ({roles}) and is not installed: install it, or change [roles]")
    _say_left_out(project)


def _say_left_out(project: Project) -> None:
    """Name what of the repository's settings does not count, for want of consent."""
    if names := project.trust.left_out():
        say(f"left out: {', '.join(names)}; `{command_line('trust')}` shows them")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell: eval "$(rondel completion bash)"."""
    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"no completion for {shell}; there are: bash, zsh, fish")
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "rondel", "_RONDEL_COMPLETE").source())


@click.command()
@click.option("--yes", "-y", is_flag=True, help="Say yes to everything that is shown, as it is now.")
@click.option(
    "--revoke", is_flag=True, help="Take back every yes in this repository, to commands of tasks too."
)
@json_option
def trust(yes: bool, revoke: bool, as_json: bool) -> None:
    """Show what this repository brings that can run, redirect or loosen; say yes to it, or take that back.

    A yes is to exactly what is shown, with the content of the files that it names, and is kept
    in your own state folder. What changes later is asked about again. RONDEL_TRUST=yes in the
    environment says yes for one process, RONDEL_TRUST=all also to the commands of tasks.
    """
    if yes and revoke:
        raise UsageError("--yes and --revoke are two answers; give one of them")
    project = find_project()
    if revoke:
        say(f"taken back: {project.trust.revoke()}")
        return
    parts = project.trust.brought()
    missing = [part for part in parts if not project.trust.is_given(part)]
    if not as_json:
        _print_parts(project, parts, missing)
    added = project.trust.give(missing) if yes and missing else 0
    if as_json:
        _emit_parts(project, parts)
    elif not parts:
        say("nothing here needs your consent")
    elif yes:
        say(f"you said yes to {added} more" if missing else "you had said yes to all of it")
    elif missing:
        say(f"next: {command_line('trust', '--yes')}")


def _print_parts(project: Project, parts: Sequence[Part], missing: Sequence[Part]) -> None:
    for part in parts:
        if part not in missing:
            click.echo(f"{part.name}: you said yes")
    for line in project.trust.shown(missing):
        click.echo(line)
    for key in project.config.admitted.refused:
        click.echo(f"{key}: does not count; only your own settings say it, or yours are stricter")


def _emit_parts(project: Project, parts: Sequence[Part]) -> None:
    given = project.trust.is_given
    rows = [
        {"name": p.name, "digest": p.digest, "consented": given(p), "shown": list(p.shown)} for p in parts
    ]
    emit({"parts": rows, "refused": list(project.config.admitted.refused)})


@click.command()
@session_argument
@click.option("--yes", "-y", is_flag=True, help="Adopt it as it is listed, without asking.")
@json_option
def adopt(session: str | None, yes: bool, as_json: bool) -> None:
    """Make a session that was not begun here yours: what it says is done and decided counts from then on.

    Lists its rounds, completed work and decisions with who gave them first. A session of a
    colleague, of another tool or of an older version then goes on where it stopped. What was
    under way elsewhere is asked for again.
    """
    project = find_project()
    ref = named_or_only_foreign(project, session)
    lines = project.claims(ref)
    if project.is_recorded(ref):
        lines += [f"does not count yet: {p.file}" for p in project.summary(ref).problems if p.rule in NOT_YET]
    if not as_json:
        for line in lines:
            click.echo(line)
    if not yes and not (is_terminal() and click.confirm(f"adopt {ref.name}?", err=True)):
        if as_json:
            emit({"session": ref.name, "adopted": False, "claims": lines})
        say(f"{ref.name} is not adopted\n  next: {command_line('adopt', ref.name, '--yes')}")
        sys.exit(WAITS)
    project.adopt(ref)
    if as_json:
        emit({"session": ref.name, "adopted": True, "claims": lines})
        return
    say(f"{ref.name} is yours")
    if follows := project.summary(ref).next:
        say(f"  next: {follows}")


def named_or_only_foreign(project: Project, name: str | None) -> SessionRef:
    """The session that is meant; without a name, the only one that is foreign or waits for adoption."""
    if name:
        ref = project.ref(name)
        if not _waits(project, ref):
            raise NothingToDo(f"{ref.name} is yours already")
        return ref
    refs = [ref for ref in project.sessions() if _waits(project, ref)]
    if not refs:
        raise NothingToDo("no session here is foreign, and none of yours waits for adoption")
    if len(refs) > 1:
        raise UsageError(f"several sessions can be adopted; name one of: {', '.join(r.name for r in refs)}")
    return refs[0]


def _waits(project: Project, ref: SessionRef) -> bool:
    """Whether a session, or something in it, counts only after adoption."""
    return not project.is_recorded(ref) or any(p.rule in NOT_YET for p in project.summary(ref).problems)
