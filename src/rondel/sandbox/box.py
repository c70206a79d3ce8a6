"""The box of one child: which paths it may read and write, and the environment that goes with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import platformdirs

from rondel.errors import RondelError, UsageError
from rondel.sandbox import enter, landlock, namespaces, places, proxy
from rondel.sandbox.hosts import Target
from rondel.sandbox.landlock import DEVICE, NAMES, READ, WRITE, Rule

VARIABLE = "RONDEL_SANDBOX"
OURS = "rondel: "  # how a line of ours begins among a program's errors
MODES = ("auto", "required", "none")

_REFUSED = re.compile(r"permission denied|EACCES|operation not permitted", re.IGNORECASE)
_UNREACHED = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ENETUNREACH|name resolution|could ?n[o']t resolve|network is unreachable|"
    r"no such host|getaddrinfo|the sandbox refused",
    re.IGNORECASE,
)
PROGRAMS_MAX = 50
_PROGRAM = re.compile(
    r"(?<![\w./~-])~?/[^\s'\"`;|&<>()${}*?\[\]\\]+"
)  # that a shell command names by its path
CACHES = {  # of programs that fail where they cannot write theirs
    "GOCACHE": "go-build",
    "GOMODCACHE": "go-mod",
    "npm_config_cache": "npm",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "YARN_CACHE_FOLDER": "yarn",
}


@dataclass(frozen=True)
class Box:
    """What everything that runs for one repository may reach; `None` in place of one confines nothing."""

    read: tuple[str, ...] = ()  # the person's own words
    write: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()  # of the repository: the clones that agents work in share them
    hidden: tuple[str, ...] = ()  # the person's tree, what is Rondel's own
    cache: str = ""  # a folder for caches of programs, of this repository's runs alone: one for each `Kind`
    network: str = "all"  # "vendor": what is named below and what a program's vendor has; "none": nothing
    hosts: tuple[Target, ...] = ()


class Kind(StrEnum):
    """Who a child is. What one leaves in its caches is run by its like alone."""

    READER = "reader"  # an agent that only reads
    EDITOR = "editor"  # an agent that edits
    COMMAND = "command"  # set-up, checks, tests, steps
    WORKER = "worker"  # what answers questions: profiles, analysers


@dataclass(frozen=True)
class Confined:
    """A child's box, with what it alone may reach."""

    box: Box
    writes: bool = False  # in its working folder
    own: tuple[str, ...] = ()  # state of its own that it reads and writes in place
    shown: tuple[str, ...] = ()  # besides, only to read
    scripts: tuple[str, ...] = ()  # files that it runs, in a folder that is not shown
    private_home: bool = False  # its home folder is its temporary one
    hosts: tuple[Target, ...] = ()  # its vendor's
    kind: Kind = Kind.COMMAND

    @property
    def cache(self) -> str:
        """The folder of its caches; empty where it has none."""
        return f"{self.box.cache}/{self.kind}" if self.box.cache else ""

    @property
    def reaches(self) -> tuple[Target, ...]:
        """Everything that it may reach through the proxy."""
        return tuple(dict.fromkeys((*self.hosts, *self.box.hosts))) if self.box.network == "vendor" else ()


def rules(
    confined: Confined, argv: Sequence[str], cwd: str, env: Mapping[str, str], tmp: str
) -> Iterator[Rule]:
    """Everything that a child may reach."""
    box, home = confined.box, os.path.realpath(Path.home())
    granted = (tmp, *confined.own, *box.write, *([confined.cache] if confined.cache else []))
    for path in (*granted, *([cwd] if confined.writes else [])):
        yield Rule(os.path.realpath(path), WRITE)
    for path in (cwd, *box.read, *box.objects, *confined.shown):
        yield Rule(os.path.realpath(path), READ)
    for folder in {os.path.dirname(os.path.realpath(path)) for path in confined.scripts}:  # noqa: PTH120
        yield Rule(folder, NAMES)  # who imports from there lists it first
    for path in confined.scripts:
        yield Rule(os.path.realpath(path), READ)
    for path in places.DEVICES:
        yield Rule(path, DEVICE)
    hidden = frozenset(os.path.realpath(path) for path in box.hidden)
    theirs = [os.path.realpath(path) for path in (*granted, cwd)]
    own = os.environ.get("PATH", "").split(os.pathsep)
    folders = [
        folder
        for folder in env.get("PATH", "").split(os.pathsep)
        if not _is_in(folder, theirs) and (folder in own or not _is_in(folder, hidden))
    ]
    tools = places.on_path(os.pathsep.join(folders), home) | set(places.base_pythons(cwd, home))
    said = _said(argv, cwd)
    led = frozenset(
        place for path, alone in said.items() for place in places.leads_to(path, home, alone=alone)
    )
    named = places.alone_below(hidden, frozenset(said), led)
    for path in readable(home, hidden, (*tools, *named)):
        yield Rule(path, READ)


def _is_in(path: str, folders: Iterable[str]) -> bool:
    real = os.path.realpath(path)
    return any(places.is_below(real, place) for place in folders)


def missing(confined: Confined) -> list[str]:
    """Folders that a child may write and that are not there yet: from inside nobody could make them."""
    wanted = (*([confined.cache] if confined.cache else []), *confined.box.write)
    return [real for path in wanted if not os.path.lexists(real := os.path.realpath(path))]


def readable(home: str, hidden: frozenset[str], tools: Iterable[str]) -> Iterator[str]:
    """Of the machine: the system, what of the home folder is no secret, what programs need of their own."""
    secrets = frozenset(places.secrets(home))
    system = frozenset(place for place in places.SYSTEM_SECRETS if os.access(place, os.R_OK))
    out_of_system, out_of_home = system | hidden | {home, *places.HOMES}, secrets | hidden
    for path in places.SYSTEM:
        if not os.path.islink(path):  # noqa: PTH114 - it leads to one that is in the list
            yield from places.without(path, out_of_system, places.names_in)
    yield from places.of_home(home, out_of_home)
    closed = secrets | system
    for path in tools:
        real = os.path.realpath(path)
        is_hidden_file = os.path.dirname(real) == home and os.path.basename(real).startswith(".")  # noqa: PTH119, PTH120
        if not is_hidden_file and not places.is_below_any(real, closed):
            yield from places.without(real, out_of_home, places.names_in)


def _said(argv: Sequence[str], cwd: str) -> dict[str, bool]:
    """The files that the command line names, and whether each is a program in a text, which says less.

    Not those that the child itself can write: it would choose what the next one may read.
    """
    found: dict[str, bool] = {}
    for word in argv:
        for program in _PROGRAM.findall(word)[:PROGRAMS_MAX]:
            path = os.path.expanduser(program)  # noqa: PTH111
            if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
                found[path] = True
        if os.path.isabs(word) and not places.is_below(word, cwd) and os.path.isfile(word):  # noqa: PTH113, PTH117
            found[word] = False
    return found


def environment(confined: Confined, tmp: str, env: Mapping[str, str]) -> dict[str, str]:
    """A child's environment, with a temporary folder and caches that it can write."""
    box, home = confined.box, {"HOME": tmp} if confined.private_home else {}
    cache = confined.cache
    caches = {name: f"{cache}/{folder}" for name, folder in CACHES.items()} if cache else {}
    given = env if box.network == "all" else proxy.environment(env, confined.reaches)
    return {**caches, **given, **home, "TMPDIR": tmp}


def spaces(confined: Confined, cwd: str, tmp: str) -> dict[str, object] | None:
    """The namespaces that a child enters, for `enter`; None where the machine has none to give.

    Shared memory is its own, unless something that it needs, or that the person named, is in the machine's.
    """
    own_network = confined.box.network != "all"
    if not own_network and namespaces.missing():
        return None
    opened = [os.path.realpath(path) for path in confined.box.write]
    box = confined.box
    needed = (cwd, tmp, box.cache, *box.read, *box.objects, *confined.own, *confined.shown, *box.write)
    machine_s = os.path.realpath(enter.SHM)
    shm = os.path.isdir(machine_s) and not any(  # noqa: PTH112
        path and places.is_below(os.path.realpath(path), machine_s) for path in needed
    )
    return {
        "network": own_network,
        "shm": landlock.allowed(WRITE) if shm else 0,
        "terminals": landlock.allowed(DEVICE),
        "ports": proxy.ports(confined.reaches),
        "sockets": opened,
    }


def mode(configured: str, said: str | None) -> str:
    """Whether to confine: as the settings say, or as the environment says for this process."""
    if said and said not in MODES:
        raise UsageError(f"{VARIABLE}={said} is not known; allowed: {', '.join(MODES)}")
    return said or configured


def holds(*, required: bool = False, network: str = "all") -> bool:
    """Whether this machine can hold a child to a list; RondelError where that is required and it cannot.

    A network that is not open is never done without.
    """
    if network != "all" and (why := unclosable()):
        raise RondelError(
            f'[sandbox] network = "{network}" needs Landlock and a user namespace, and this machine refuses '
            f'that: {why}. Allow it, or say network = "all" in your own settings'
        )
    if landlock.version() >= landlock.NEEDED:
        return True
    if required:
        raise RondelError(
            "a sandbox is required and this machine has none: Landlock of Linux 6.2 or later is needed; "
            'with [sandbox] mode = "auto" in your own settings Rondel goes on without'
        )
    return False


def unclosable() -> str:
    """Why no network can be closed here; empty where it can."""
    if landlock.version() < landlock.NEEDED:
        return "no Landlock (Linux 6.2 or later)"
    return namespaces.missing()


def hint(said: str, network: str = "all") -> str:
    """What a person needs to know where a confined program says that it was refused something."""
    if network != "all" and _UNREACHED.search(said):
        return (
            f'It ran in the sandbox with network = "{network}" ([sandbox] of your own settings, or [task] '
            'sandbox): what is not listed in [sandbox] hosts, with network = "vendor", cannot be reached'
        )
    if not _REFUSED.search(said):
        return ""
    return (
        "It ran in the sandbox: it can write its working copy and $TMPDIR. Make what it needs there (an "
        "environment for Python, say), or name the place in your own settings: [sandbox] write, or read"
    )


def refusals(reached: Iterable[str]) -> str:
    """What is said where a program asked for hosts that it may not reach; empty where it asked for none."""
    found = ", ".join(reached)
    return f"the sandbox refused {found}; name it in [sandbox] hosts to allow it" if found else ""


def held(mode: str, network: str = "all") -> str:
    """What holds here, in words."""
    version = landlock.version()
    if version < landlock.NEEDED:
        found = f"Landlock {version}" if version else "no Landlock"
        words = f"none: this machine has {found}, and version {landlock.NEEDED} is needed (Linux 6.2)"
        return f"{words}; nothing is run" if mode == "required" else f"{words}; agents can do what you can"
    more = "signals and abstract sockets"
    scopes = f", {more}" if version >= landlock.SCOPES else f" (not {more}: Linux 6.12)"
    why = namespaces.missing()
    own = f"no namespaces ({why}), so shared memory is not there" if why else "shared memory of its own"
    reach = {
        "all": "the network is open",
        "none": "no network",
        "vendor": "of the network, the vendor's hosts",
    }
    stops = "; nothing is run" if why and network != "all" else ""
    return f"Landlock {version}: files{scopes}; {own}; {reach[network]}{stops}"


def own_places() -> tuple[str, ...]:
    """Where Rondel itself keeps what it knows: out of reach of whatever it starts."""
    return (
        platformdirs.user_state_dir("rondel"),
        platformdirs.user_config_dir("rondel"),
        platformdirs.user_cache_dir("rondel"),
    )
