"""The commands for setting up: init, doctor, agents, completion."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from rondel.agents import roster
from rondel.agents.base import AgentSettings
from rondel.cli.common import console, emit, here, json_option, say
from rondel.cli.sessions import problem_json
from rondel.cli.tables import table as columns
from rondel.config import BUILT_IN
from rondel.errors import ConfigError, NeedsConsent, RondelError, UsageError
from rondel.model.actions import match_role
from rondel.model.summary import EDITS_LOST, FOREIGN_SESSION, Problem, command_line
from rondel.plugin import install_plugin
from rondel.project import Project
from rondel.sandbox.box import held
from rondel.store import files
from rondel.trust.admit import Admitted
from rondel.trust.parts import key_name

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
    project = here()
    path = project.root / "rondel.toml"
    if path.exists():
        say("rondel.toml is there already; it stays as it is")
    else:
        is_said = "default" in project.config.roles  # by the person: it would only stand in its way
        first = None if is_said else next(iter(project.config.detected), None)
        roles = f'default = "{first}"' if first else '# default = "claude"'
        files.write(path, TEMPLATE.format(roles=roles).encode())
        say("wrote rondel.toml")
    if plugin:
        for line in install_plugin(project.root):
            say(line)


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended; what is replaced is kept aside.")
@json_option
def doctor(repair: bool, as_json: bool) -> None:
    """Say what is wrong in the folders, in which file, and the fix."""
    project = here()
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
            _say_left_out(project.config.admitted)
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
        mode = project.sandbox_mode
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
    return "; ".join((held(mode, project.config.sandbox.network), *more))


def _machine(project: Project) -> dict[str, str]:
    """What Rondel and its workflows need from the machine."""
    needed = {"git": "nothing works without it"}
    for name in project.workflow_names():
        needed |= project.workflow(name).programs
    return {
        **{name: shutil.which(name) or f"not installed: {why}" for name, why in needed.items()},
        "agents": ", ".join(roster.detect()) or "no vendor's CLI on the PATH",
    }


@click.command()
@json_option
def agents(as_json: bool) -> None:
    """Show which agents are installed, their versions, and who has which role.

    Of an agent that the repository's settings describe, only where its program is: nothing of
    the repository is run to show something.
    """
    project = here()
    config = project.read_config(all_installed=False)
    configured = dict(config.agents)
    for kind in (*roster.VENDORS, *BUILT_IN):
        configured.setdefault(kind, AgentSettings(name=kind, kind=kind, root=project.root))
    brought = {part.name for part in config.admitted.parts}
    rows: list[dict[str, Any]] = []
    for name, table in configured.items():
        version = _program(table) if key_name(("agents", name)) in brought else roster.build(table).version()
        has = sorted(r for r, agent in config.roles.items() if agent == name)
        unset = [
            w
            for w in project.workflow_names()
            if match_role(config.roles, w) is None and config.agent_for(w).name == name
        ]
        rows.append(
            {
                "name": name,
                "kind": table.kind,
                "version": version,
                "model": table.model,
                "roles": has,
                "default_for": unset,
            }
        )
    if as_json:
        emit({"agents": rows})
        return
    screen = console()
    shown = [
        (r["name"], r["kind"], r["version"] or "no", r["model"], ", ".join((*r["roles"], *r["default_for"])))
        for r in rows
    ]
    screen.print(columns(screen, ("agent", "kind", "installed", "model", "roles"), shown))
    for row in rows:
        if row["kind"] in roster.VENDORS and row["roles"] and not row["version"]:
            roles = ", ".join(row["roles"])
            say(f"{row['name']} has roles ({roles}) and is not installed: install it, or change [roles]")
    _say_left_out(config.admitted)


def _say_left_out(admitted: Admitted) -> None:
    """Name what of the repository's settings does not count, for want of consent."""
    if admitted.left_out:
        names = ", ".join(part.name for part in admitted.left_out)
        say(f"left out: {names}; `{command_line('trust')}` shows them")


def _program(table: AgentSettings) -> str | None:
    """Where the program of an agent is, without running it."""
    if not table.command:
        return "configured"
    first = table.command[0]
    beside = table.beside / first if table.beside else Path(first)
    return str(beside) if beside.is_file() else shutil.which(first)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell: eval "$(rondel completion bash)"."""
    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"no completion for {shell}; there are: bash, zsh, fish")
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "rondel", "_RONDEL_COMPLETE").source())
