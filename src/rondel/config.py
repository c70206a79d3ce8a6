"""Settings: `rondel.toml`, read at the edge and passed on as values.

Three files, each over the one before: the person's own, `[tool.rondel]` of the
repository's `pyproject.toml`, the repository's `rondel.toml`. Every key is checked; an
error names the file, the key, the value and what is allowed. Of what a repository says,
that counts which is harmless or which the person consented to (`rondel.trust`).
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, Self

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from rondel import paths
from rondel.agents.base import AgentSettings
from rondel.agents.roster import VENDORS
from rondel.errors import ConfigError
from rondel.installed import AnyWorkflow
from rondel.model.actions import match_role
from rondel.model.trouble import machine
from rondel.sandbox.hosts import named
from rondel.trust.admit import Admitted, admit
from rondel.trust.consents import Ignored, lookup
from rondel.trust.keys import BUILT_IN_KINDS, Key, Rules
from rondel.trust.parts import key_name

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]

NOTHING_ADMITTED = Admitted({})
SETTINGS_MAX = 1_000_000  # bytes of a file: `pyproject.toml` holds more than ours
# A key of this many parts; a parser takes the square of their number.
_LONG_KEY = re.compile(r"""(?:^|[\n{,\[])[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){200}""")
MANUAL = "manual"
BUILT_IN = (MANUAL, "checks")  # agents that need no table


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AgentTable(_Table):
    """`[agents.<name>]`."""

    kind: str
    command: list[str] | str | None = None
    timeout_s: Positive = 1800
    idle_s: Positive = 600
    turns_max: Count = 200
    model: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    pass_env: list[str] = Field(default_factory=list)
    script: str = ""
    options: dict[str, str | int | float | bool | list[str]] = Field(default_factory=dict)


class Limits(_Table):
    """`[limits]`: bounds of one session, over all its runs."""

    agents_max: Count = 4
    attempts_max: Count = 2
    cutoffs_max: Count = 5  # how often an action may be cut off by its driver's death
    usd_max: float | None = Field(default=None, ge=0)
    tokens_max: int | None = Field(default=None, ge=0)
    seconds_max: float | None = Field(default=None, gt=0)
    edit_mb_max: float = Field(default=100, gt=0, le=1_000_000)  # of the new and changed files of one edit
    edit_files_max: Count = 50_000
    free_mb_min: float | None = Field(default=None, ge=0)  # of each disk; 100, or 5 % of a small one


class ProjectTable(_Table):
    """`[project]`: how this repository is set up and checked."""

    setup: str = ""  # a shell command, run once in each new workspace
    test: str = ""  # runs the test suite
    checks: str = ""  # must pass before an edit is taken over; the tests, when not given


class Workspaces(_Table):
    """`[workspaces]`: where agents' working copies are."""

    root: str = ""  # the person's cache folder, when not given
    sandbox: Literal["", "bwrap"] = ""


class Sandbox(_Table):
    """`[sandbox]`: what everything that runs may reach. The person's own alone."""

    mode: Literal["auto", "required", "none"] = "auto"
    network: Literal["all", "vendor", "none"] = "all"
    hosts: list[str] = Field(default_factory=list)  # besides the vendor's, where the network is "vendor"
    read: list[str] = Field(default_factory=list)  # besides the system and what is no secret
    write: list[str] = Field(default_factory=list)  # besides the working copy and a temporary folder

    @field_validator("read", "write")
    @classmethod
    def _from_the_top(cls, places: list[str]) -> list[str]:
        for place in places:
            if not place.startswith(("/", "~/")) and place != "~":
                raise ValueError(f"{place!r} must begin with / or ~/; variables are not expanded")
        return places

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, words: list[str]) -> list[str]:
        named(words)
        return words

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.network != "all" and self.mode == "none":
            raise ValueError(f'network = "{self.network}" needs a sandbox, and mode = "none" asks for none')
        if self.hosts and self.network != "vendor":
            raise ValueError('hosts count with network = "vendor" only')
        return self


class _File(_Table):
    """A whole settings file, less the tables of the workflows."""

    agents: dict[str, AgentTable] = Field(default_factory=dict)
    roles: dict[str, str] = Field(default_factory=dict)
    limits: Limits = Limits()
    project: ProjectTable = ProjectTable()
    workspaces: Workspaces = Workspaces()
    sandbox: Sandbox = Sandbox()


@dataclass(frozen=True)
class Config:
    """All settings, checked."""

    agents: Mapping[str, AgentSettings]
    roles: Mapping[str, str]
    limits: Limits
    project: ProjectTable
    workspaces: Workspaces
    sandbox: Sandbox
    tables: Mapping[str, Mapping[str, object]]  # the workflows' own
    detected: tuple[str, ...] = ()  # vendors' CLIs on the PATH, for when nothing is configured
    root: Path | None = None
    source: str = ""  # the repository's file, for messages
    admitted: Admitted = NOTHING_ADMITTED  # what of the repository's counts, and what does not
    fallback: Callable[[str], str] = lambda _workflow: MANUAL  # who serves where no agent is installed

    def agent_for(self, role: str) -> AgentSettings:
        """The agent that has a role: the longest dotted match, else what there is."""
        name = match_role(self.roles, role)
        if name is None:
            name = self.detected[0] if self.detected else self.fallback(role.partition(".")[0])
        return self.agents.get(name) or AgentSettings(name=name, kind=name, root=self.root)


def load(
    root: Path,
    *,
    workflows: frozenset[str],
    kinds: frozenset[str],
    detected: tuple[str, ...] = (),
    workflow: Callable[[str], AnyWorkflow] | None = None,
    consents: Container[str] = frozenset(),
    all_installed: bool = True,
    instead: Mapping[str, bytes] = MappingProxyType({}),
) -> Config:
    """The settings for a repository. ConfigError names what is wrong and where.

    `workflow` gives one by name; with it their own tables are checked too. `consents`
    are the digests of what the person consented to. With `all_installed` a role of a vendor that
    is not installed is wrong, too. `instead` has texts that count in place of the repository's
    files of these names.
    """
    workflows -= set(_File.model_fields)  # no workflow takes a table of the core
    own = _own_file()
    persons: dict[str, object] = {}
    brought: dict[str, object] = {}  # by the repository
    source = "rondel.toml"
    for path, table in _files(root):
        found = _parse(path, instead.get(path.name) if path != own else None)
        for key in table:
            found = _sub(found, key, path)
        if found:
            _check(found, str(path), workflows, kinds)
            if workflow is not None:
                for name in sorted(workflows & set(found)):
                    check_table(str(path), name, _sub(found, name, path), workflow(name).settings())
            if path == own:
                persons = found
            else:
                brought = _merge(brought, found)
            source = str(path)
    _check(_merge(persons, brought), source, workflows, kinds)
    ignored = Ignored(root)
    admitted = admit(
        persons,
        brought,
        consents,
        lambda key: _default(key, workflow),
        lambda path: lookup(root, path),
        lambda path: lookup(root, path, ignored),
        rules_of(sorted(workflows & set(brought)), workflow),
    )
    merged = admitted.settings
    file = _check(merged, source, workflows, kinds)
    theirs = _sub(brought, "agents", root / source)
    counting = {
        name for name in theirs if key_name(("agents", name)) not in {p.name for p in admitted.left_out}
    }
    by_repository = {n for n in counting if isinstance(t := theirs[n], dict) and "command" in t}
    agents = {
        name: _settings(name, table, root, root if name in by_repository else own.parent)
        for name, table in file.agents.items()
    }
    # A role of an agent that is left out is left out with it.
    roles = {r: n for r, n in file.roles.items() if n in agents or n in BUILT_IN_KINDS or n not in theirs}
    _check_roles(roles, source, workflows, {*agents, *BUILT_IN, *(detected if all_installed else VENDORS)})
    tables = {w: t for w in workflows if isinstance(t := merged.get(w), dict)}
    return Config(
        agents,
        roles,
        file.limits,
        file.project,
        file.workspaces,
        file.sandbox,
        tables,
        detected,
        root,
        source,
        admitted,
        lambda name: workflow(name).fallback if workflow and name in workflows else MANUAL,
    )


def rules_of(names: Iterable[str], workflow: Callable[[str], AnyWorkflow] | None) -> Rules:
    """The rules of the core, and of these workflows' tables."""
    if workflow is None:
        return Rules()
    return Rules({f"{name}.{key}": rule for name in names for key, rule in workflow(name).rules().items()})


def _check_roles(
    roles: Mapping[str, str], source: str, workflows: frozenset[str], there: Collection[str]
) -> None:
    """ConfigError for a role that nobody has, or that is given to nobody."""
    for role, name in roles.items():
        if name not in there:
            names = ", ".join(sorted(there))
            why = "is not installed (no such program on the PATH)" if name in VENDORS else "names no agent"
            raise ConfigError(f"{source}: roles.{role} = {name!r} {why}; there are: {names}")
        if role.partition(".")[0] not in {"default", *workflows}:
            first = ", ".join(("default", *sorted(workflows)))
            raise ConfigError(f"{source}: roles.{role} is no role; the first word must be one of: {first}")


def _default(key: Key, workflow: Callable[[str], AnyWorkflow] | None) -> object:
    """What a setting is where nobody says anything; KeyError when nobody knows."""
    models: dict[str, type[BaseModel]] = {
        "agents": AgentTable,
        "limits": Limits,
        "project": ProjectTable,
        "workspaces": Workspaces,
        "sandbox": Sandbox,
    }
    if key[0] in models:
        return models[key[0]].model_fields[key[-1]].default
    if workflow is None:
        raise KeyError(key)
    return workflow(key[0]).settings()[key[-1]]


def _own_file() -> Path:
    return Path(platformdirs.user_config_dir("rondel")) / "config.toml"


REPOSITORY_FILES = ("pyproject.toml", "rondel.toml")


def _files(root: Path) -> list[tuple[Path, tuple[str, ...]]]:
    return [
        (_own_file(), ()),
        (root / REPOSITORY_FILES[0], ("tool", "rondel")),
        (root / REPOSITORY_FILES[1], ()),
    ]


def settings_of(file: Path, instead: bytes | None = None) -> object:
    """What a repository's file says, or a text in its place; None where it cannot be read."""
    keys = next((keys for path, keys in _files(Path("/")) if path.name == file.name), ())
    try:
        found: object = _parse(file, instead)
    except ConfigError:
        return None
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found or {}


def _parse(path: Path, instead: bytes | None = None) -> dict[str, object]:
    try:
        with machine("read", path):
            text = (paths.read_elsewhere(path, SETTINGS_MAX) if instead is None else instead).decode()
        if _LONG_KEY.search(text):
            raise ConfigError(f"{path} has a key of too many parts")
        return tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except UnicodeDecodeError as e:
        raise ConfigError(f"{path} is not UTF-8 ({e.reason} at byte {e.start}); save it as UTF-8") from e
    except tomllib.TOMLDecodeError as e:
        raise ConfigError(f"{path} is not TOML: {e}") from e
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply") from None
    except ValueError as e:  # a number of too many digits
        raise ConfigError(f"{path} holds what cannot be read: {e}") from e
    except OSError as e:
        raise ConfigError(f"{path} cannot be read: {e.strerror}") from e


def _sub(table: dict[str, object], key: str, path: Path) -> dict[str, object]:
    inner = table.get(key, {})
    if not isinstance(inner, dict):
        raise ConfigError(f"{path}: {key} = {inner!r} must be a table")
    return inner


def _merge(under: dict[str, object], over: dict[str, object]) -> dict[str, object]:
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        out[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return out


def _check(table: dict[str, object], source: str, workflows: frozenset[str], kinds: frozenset[str]) -> _File:
    own = {k: v for k, v in table.items() if k not in workflows}
    for key in workflows & set(table):
        if not isinstance(table[key], dict):
            raise ConfigError(f"{source}: {key} = {table[key]!r} must be a table [{key}]")
    try:
        file = _File.model_validate(own)
    except ValidationError as e:
        raise ConfigError("\n".join(_message(source, dict(err), workflows) for err in e.errors())) from e
    for name, agent in file.agents.items():
        if agent.kind not in kinds:
            allowed = ", ".join(sorted(kinds))
            raise ConfigError(
                f"{source}: agents.{name}.kind = {agent.kind!r} is not known; allowed: {allowed}"
            )
        if agent.kind == "command" and not agent.command:
            raise ConfigError(f"{source}: agents.{name}.command is missing; a command agent needs one")
    return file


def _message(source: str, error: Mapping[str, object], workflows: frozenset[str]) -> str:
    """One line for one wrong setting: the file, the key, the value, what is allowed."""
    loc = error["loc"]
    parts = [str(p) for p in loc] if isinstance(loc, tuple) else []
    key = ".".join(p for p in parts if not (p.startswith("constrained") or p in _UNION_TAGS))
    if error["type"] == "extra_forbidden":
        allowed = ", ".join(_keys(parts[:-1], workflows))
        return f"{source}: {key} is not a setting; allowed here: {allowed}"
    if error["type"] == "missing":
        return f"{source}: {key} is missing"
    words = str(error["msg"])
    return f"{source}: {key} = {error['input']!r} is not allowed: {words[0].lower()}{words[1:]}"


_UNION_TAGS = {"float", "int", "str", "list[str]", "bool"}


def _keys(parents: list[str], workflows: frozenset[str]) -> list[str]:
    """The keys a table may have, for the message that names a wrong one."""
    if not parents:
        return sorted({*_File.model_fields, *workflows})
    tables: dict[str, type[BaseModel]] = {
        "agents": AgentTable,
        "limits": Limits,
        "project": ProjectTable,
        "workspaces": Workspaces,
        "sandbox": Sandbox,
    }
    model = tables.get(parents[0])
    return sorted(model.model_fields) if model else []


def _settings(name: str, table: AgentTable, root: Path, beside: Path) -> AgentSettings:
    command = table.command
    return AgentSettings(
        name=name,
        kind=table.kind,
        command=tuple(map(_expanded, [command] if isinstance(command, str) else command or ())),
        timeout_s=float(table.timeout_s),
        idle_s=float(table.idle_s),
        turns_max=table.turns_max,
        model=table.model,
        env=dict(table.env),
        pass_env=tuple(table.pass_env),
        script=table.script,
        root=root,
        beside=beside,
        options=dict(table.options),
    )


def _expanded(word: str) -> str:
    """A word of a command, with `~/` as a shell would read it; a whole line is for the shell to read."""
    is_path = word.startswith("~/") and len(word.split()) == 1
    return os.path.expanduser(word) if is_path else word  # noqa: PTH111 - a word, not a path yet


def check_table(
    source: str, workflow: str, given: Mapping[str, object], defaults: Mapping[str, object]
) -> dict[str, object]:
    """A workflow's own table over its defaults, whose values give the types."""
    out = dict(defaults)
    for key, value in given.items():
        if key not in defaults:
            allowed = ", ".join(sorted(defaults)) or "nothing"
            raise ConfigError(f"{source}: {workflow}.{key} is not a setting; allowed here: {allowed}")
        default = defaults[key]
        good = isinstance(value, type(default)) or (isinstance(default, float) and isinstance(value, int))
        if isinstance(value, bool) and not isinstance(default, bool):
            good = False
        if default is not None and not good:
            word = {
                bool: "true or false",
                int: "a whole number",
                float: "a number",
                str: "a text",
                list: "a list",
                dict: "a table",
            }
            raise ConfigError(
                f"{source}: {workflow}.{key} = {value!r} is not allowed: it must be {word[type(default)]}"
            )
        out[key] = value
    return out
