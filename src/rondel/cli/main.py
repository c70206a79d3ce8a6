"""The command `rondel`: which command is where, and which exit code an error has."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from rondel import __version__, installed
from rondel.cli import encoding
from rondel.cli.groups import Commands
from rondel.errors import MachineTrouble, RondelError

# Each command that is no workflow's, the module it is in and its name there. Nothing is imported before it
# is called; the commands of workflows come from their entry points.
COMMANDS = {
    "status": ("rondel.cli.sessions", "status"),
    "watch": ("rondel.cli.sessions", "watch"),
    "run": ("rondel.cli.sessions", "run"),
    "resume": ("rondel.cli.sessions", "resume"),
    "pause": ("rondel.cli.sessions", "pause"),
    "stop": ("rondel.cli.sessions", "stop"),
    "approve": ("rondel.cli.sessions", "approve"),
    "reject": ("rondel.cli.sessions", "reject"),
    "show": ("rondel.cli.sessions", "show"),
    "init": ("rondel.cli.setup", "init"),
    "trust": ("rondel.cli.setup", "trust"),
    "adopt": ("rondel.cli.setup", "adopt"),
    "doctor": ("rondel.cli.setup", "doctor"),
    "agents": ("rondel.cli.setup", "agents"),
    "completion": ("rondel.cli.setup", "completion"),
    "demo": ("rondel.cli.demo", "command"),
}
INTERRUPTED = 130


class Rondel(Commands):
    """A group that imports a command when it is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order a person would meet them."""
        names = [name for name in installed.workflows() if name not in COMMANDS]
        # A shell sorts what it completes itself.
        return [*(names if ctx.resilient_parsing else installed.in_order(names)), *COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return _workflow_command(cmd_name) if cmd_name in installed.workflows() else None
        module, attribute = COMMANDS[cmd_name]
        found = getattr(import_module(module), attribute)
        return found if isinstance(found, click.Command) else None


def _workflow_command(name: str) -> click.Command | None:
    """The command of a workflow; of one that cannot be loaded, what says why."""
    try:
        return installed.workflow(name).commands()
    except RondelError as e:
        failed = e  # the name `e` ends here
    except ImportError as e:
        failed = RondelError(f"the command of the workflow {name!r} cannot be loaded: {e}")

    def fail() -> None:
        raise failed

    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": list[str]()}
    return click.Command(name, context_settings=anything, callback=fail, help="Cannot be loaded.")


@click.command(cls=Rondel, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rondel", message="%(prog)s %(version)s")
def root() -> None:
    """Drive AI coding agents through rounds of work and review that survive anything.

    Exit codes: 0 done, 1 error, 2 usage, 3 waits for a person, 4 the verdict is not an
    approval, 5 nothing to do, 6 stopped by a limit, by the machine or parked, 130 interrupted.
    """


def main(argv: list[str]) -> int:
    """Run a command line; what it gives is the exit code."""
    with encoding.plain_streams():
        return _main(argv)


def _main(argv: list[str]) -> int:
    try:
        given = root.main(args=argv, prog_name="rondel", standalone_mode=False)
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as e:
        e.show()
        return e.exit_code
    except (RondelError, MachineTrouble) as e:
        click.echo(f"rondel: {e}", err=True)
        if isinstance(e, RondelError) and e.then:
            click.echo(f"  next: {e.then}", err=True)
        return e.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 1
    except OSError as e:
        _drop_output()
        where = f"{e.filename}: " if e.filename else ""
        click.echo(f"rondel: {where}{e.strerror or e}", err=True)
        return 1
    return given if isinstance(given, int) else 0


def _drop_output() -> None:
    """Nothing more goes to standard output: what could not be written would fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
