"""Admitting settings: of what a repository says, what counts now. Pure.

The person's own settings count. A repository's count where they are harmless, or where the
person said yes to exactly them. Nothing a repository says is looser than what the person said.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rondel.model.actions import match_role
from rondel.model.consent import Mark, Rule, is_looser
from rondel.trust.keys import BUILT_IN_KINDS, OF_THE_CORE, Key, Rules
from rondel.trust.named import Lookup
from rondel.trust.parts import Part, key_name, part

Settings = dict[str, Any]
Default = Callable[[Key], object]  # what a setting is where nobody says anything; KeyError when unknown


@dataclass(frozen=True)
class Admitted:
    """The settings that count, and what of the repository's does not."""

    settings: Settings
    parts: tuple[Part, ...] = ()  # everything that needs consent
    left_out: tuple[Part, ...] = ()  # what of that has none
    refused: tuple[str, ...] = ()  # what a repository cannot say: the person's only, or looser than theirs


def admit(
    person: Settings,
    repository: Settings,
    known: Container[str],
    default: Default,
    look: Lookup,
    look_in_copy: Lookup | None = None,
    rules: Rules = OF_THE_CORE,
) -> Admitted:
    """What counts. `known` are the digests that the person consented to.

    `look_in_copy` finds what a working copy has, in which the commands of `[project]` run.
    """
    settings = _copy(person)
    parts, left_out, refused = list[Part](), list[Part](), list[str]()
    for name, leaves in _groups(repository, rules).items():
        is_spare = any(
            rules.of(key).yields and _is_said_otherwise(key, value, person) for key, value in leaves
        )
        is_asked = any(_needs_consent(rules.of(key), key, value, person, default) for key, value in leaves)
        if is_asked or is_spare:
            there = look_in_copy if look_in_copy and name[0] == "project" else look
            depth = 2 if name[0] == "agents" else len(name) - 1
            one = part(key_name(name), {key_name(k[depth:]): v for k, v in leaves}, there)
            one = replace(one, is_spare=not is_asked)
            parts.append(one)
            if one.digest not in known:
                left_out.append(one)
                continue
        for key, value in leaves:
            found = rules.of(key)
            bound = _bound(found, key, person)
            if found.mark is Mark.PERSON or (bound is not None and is_looser(found, value, bound[0])):
                refused.append(key_name(key))
                if found.mark is not Mark.PERSON and bound is not None:
                    _put(settings, key, bound[0])
            else:
                _put(settings, key, value)
    return Admitted(settings, tuple(parts), tuple(left_out), tuple(refused))


def _groups(settings: Settings, rules: Rules) -> dict[Key, list[tuple[Key, object]]]:
    """What is consented to together: all of an agent, else each setting."""
    found: dict[Key, list[tuple[Key, object]]] = {}
    for key, value in _leaves(settings, rules):
        found.setdefault(key[:2] if key[0] == "agents" else key, []).append((key, value))
    return found


def _leaves(settings: Mapping[str, object], rules: Rules, above: Key = ()) -> Iterator[tuple[Key, object]]:
    for name, value in settings.items():
        key = (*above, name)
        if isinstance(value, Mapping) and (not above or rules.has_inner(key)):
            yield from _leaves(value, rules, key)
        else:
            yield key, value


def _needs_consent(found: Rule, key: Key, value: object, person: Settings, default: Default) -> bool:
    if found.mark is Mark.CONSENT:
        return not found.safe(value) or _is_another_kind(key, value, person)
    if found.mark is not Mark.STRICTER or _bound(found, key, person) is not None:
        return False
    try:
        return is_looser(found, value, _default(found, key, default))
    except KeyError:
        return True


def _default(found: Rule, key: Key, default: Default) -> object:
    if found.default is not None:
        return found.default
    return default(_above(key) if found.inherits else key)


def _above(key: Key) -> Key:
    """The table's own setting of that name."""
    return (key[0], key[-1])


def _is_another_kind(key: Key, value: object, person: Settings) -> bool:
    """Whether an agent of the person's, or a built-in one, would become another."""
    if key[0] != "agents" or key[2:] != ("kind",):
        return False
    there, own = _get(person, key)
    return own != value if there else key[1] in BUILT_IN_KINDS and key[1] != value


def _is_said_otherwise(key: Key, value: object, person: Settings) -> bool:
    """Whether the person said something else of this: of a role also by one above it, or the default."""
    there, own = _get(person, key)
    if key[0] == "roles":
        _, roles = _get(person, ("roles",))
        own = match_role(roles, ".".join(key[1:])) if isinstance(roles, Mapping) else None
        there = own is not None
    return there and own != value


def _bound(found: Rule, key: Key, person: Settings) -> tuple[object] | None:
    """What the person said themselves of a setting, or of all that it is one of; None where nothing."""
    if found.together:
        return _strictest(found, key[0], person)
    there, value = _get(person, key)
    if not there and found.inherits:
        there, value = _get(person, _above(key))
    return (value,) if there else None


def _strictest(found: Rule, table: str, person: Settings) -> tuple[object] | None:
    """The strictest that the person said: a more exact key of a repository's must not get past it."""
    said = list[object]()
    for name in found.together:
        there, value = _get(person, (table, name))
        said += value.values() if isinstance(value, Mapping) else [value] if there else []
    return (next((v for v in found.order if v in said), found.order[0]),) if said else None


def _get(settings: Mapping[str, object], key: Key) -> tuple[bool, object]:
    at: object = settings
    for name in key:
        if not isinstance(at, Mapping) or name not in at:
            return False, None
        at = at[name]
    return True, at


def _put(settings: Settings, key: Key, value: object) -> None:
    at = settings
    for name in key[:-1]:
        inner = at.get(name)
        at[name] = at = inner if isinstance(inner, dict) else {}
    at[key[-1]] = value


def _copy(settings: Settings) -> Settings:
    return {k: _copy(v) if isinstance(v, dict) else v for k, v in settings.items()}
