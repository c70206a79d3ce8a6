"""Every regular expression of the package, and texts that are bad for it, made from its own parts."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"
METHODS = ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn")
SAMPLES = "aA0_ -.:/\n\t,;|*#`\"'(){}[]<>=+~@$%&!?\\^\u2014é"
PUMPS_MAX = 8  # ways to repeat one part
COUNT_MAX = 20  # more repetitions than that are many
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


@dataclass(frozen=True)
class Used:
    """A pattern and how the package uses it."""

    where: str
    pattern: re.Pattern[str]
    method: str


def used_patterns() -> Iterator[Used]:
    """The patterns that are compiled, or given to a function of `re`, anywhere in the package."""
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if name.endswith("__main__"):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _is_re(n.func)]
        if calls:
            names = vars(importlib.import_module(name))
            for call in calls:
                yield from _used(call, name, names, tree)


def _is_re(func: ast.expr) -> bool:
    return (
        isinstance(func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.value.id == "re"
        and func.attr in ("compile", *METHODS)
    )


def _used(call: ast.Call, module: str, names: dict[str, Any], tree: ast.AST) -> Iterator[Used]:
    where = f"{module}:{call.lineno}"
    try:
        text = eval(ast.unparse(call.args[0]), names)
        words = [k.value for k in call.keywords if k.arg == "flags"]
        words += [a for a in call.args[1:] if "re." in ast.unparse(a)]
        flags = eval(ast.unparse(words[0]), names) if words else 0
        pattern = re.compile(text, flags)
    except NameError:  # made of what a function was given: small parts of it are escaped or our own
        return
    if not isinstance(pattern.pattern, str):
        return
    method = call.func.attr  # type: ignore[attr-defined]
    methods = {method} if method != "compile" else (_methods(call, tree) or {"search"})
    for one in sorted({{"subn": "sub", "finditer": "findall"}.get(m, m) for m in methods}):
        yield Used(where, pattern, one)


def _methods(call: ast.Call, tree: ast.AST) -> set[str]:
    """How a compiled pattern is used in the package, by the name that it, or a table of it, is given."""
    given = {name for name, calls in _facts(tree).given.items() if call in calls}
    within = [tree] if all(name.startswith("_") for name in given) else _trees()
    return {method for one in within for method in _facts(one).called(given)}


@dataclass(frozen=True)
class Facts:
    """What a module says of patterns."""

    given: dict[str, list[ast.AST]]  # what is in the value of each name
    uses: list[tuple[str, str]]  # a name, and a method of it that is called
    loops: list[tuple[set[str], set[str]]]  # what a loop goes through, and its variables

    def called(self, names: set[str]) -> set[str]:
        inner = {variable for over, variables in self.loops if over & names for variable in variables}
        return {method for name, method in self.uses if name and name in names | inner}


@cache
def _facts(tree: ast.AST) -> Facts:
    found = Facts({}, [], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found.given[_named(target)] = [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
        elif isinstance(node, ast.Attribute) and node.attr in METHODS:
            found.uses.append((_named(node.value), node.attr))
        elif isinstance(node, ast.For | ast.comprehension):
            over, variables = ({_named(n) for n in ast.walk(part)} for part in (node.iter, node.target))
            found.loops.append((over - {""}, variables - {""}))
    return found


def _named(node: ast.AST) -> str:
    if isinstance(node, ast.Subscript):
        return _named(node.value)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


@cache
def _trees() -> list[ast.AST]:
    return [ast.parse(file.read_text(encoding="utf-8")) for file in SOURCE.rglob("*.py")]


# -- texts ----------------------------------------------------------------------------------------


def bad_texts(pattern: re.Pattern[str], length: int) -> Iterator[str]:
    """Texts that begin as a match does, go on with what may be repeated in it, and do not end as one."""
    seen = set[str]()
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    for prefix, pump in itertools.islice(_pumps(list(tree), ""), 60):
        if not pump:
            continue
        unit = prefix + pump
        for whole in (
            f"{prefix}{pump * (length // len(pump))}\x00",
            f"{prefix}{pump * (length // len(pump))}\n\x00",
            f"{unit * (length // len(unit))}\x00",
        ):
            if whole not in seen:
                seen.add(whole)
                yield whole


def _pumps(nodes: list[Any], before: str) -> Iterator[tuple[str, str]]:
    """What comes before each part that repeats, and what one repetition may be."""
    prefix = before
    for at, (op, value) in enumerate(nodes):
        if op in REPEATS:
            _, most, inner = value
            if most > COUNT_MAX:
                after = _sample(nodes[at + 1 :])
                for pump in itertools.islice(_alternatives(list(inner)), PUMPS_MAX):
                    yield prefix, pump
                    yield prefix, pump + after  # the end again and again
                for common in _shared(list(inner), nodes[at + 1 :]):
                    yield prefix, common
        for inside in _inside(op, value):
            yield from _pumps(list(inside), prefix)
        prefix += _sample([(op, value)])


def _inside(op: Any, value: Any) -> list[Any]:
    """The parts of a part."""
    if op in REPEATS:
        return [value[2]]
    if op is codes.SUBPATTERN:
        return [value[3]]
    if op is codes.BRANCH:
        return list(value[1])
    if op in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    return [value] if op is codes.ATOMIC_GROUP else []


def _shared(inner: list[Any], after: list[Any]) -> Iterator[str]:
    """Characters that what repeats and what follows both take."""
    for char in SAMPLES:
        if _takes(inner, char) and _takes(after[:1], char):
            yield char


def _takes(nodes: list[Any], char: str) -> bool:
    if len(nodes) != 1:
        return False
    op, value = nodes[0]
    if op in REPEATS:
        return _takes(list(value[2]), char)
    if op is codes.SUBPATTERN:
        return _takes(list(value[3])[:1], char)
    return op in (codes.IN, codes.ANY, codes.LITERAL, codes.NOT_LITERAL) and _one(op, value, char)


def _one(op: Any, value: Any, char: str) -> bool:
    code = ord(char)
    if op is codes.LITERAL:
        return bool(code == value)
    if op is codes.NOT_LITERAL:
        return bool(code != value)
    if op is codes.ANY:
        return char != "\n"
    wanted = not any(o is codes.NEGATE for o, _ in value)
    return any(_in(o, v, char) for o, v in value if o is not codes.NEGATE) is wanted


def _in(op: Any, value: Any, char: str) -> bool:
    if op is codes.LITERAL:
        return bool(ord(char) == value)
    if op is codes.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    word = char.isalnum() or char == "_"
    known = {
        codes.CATEGORY_DIGIT: char.isdigit(),
        codes.CATEGORY_SPACE: char.isspace(),
        codes.CATEGORY_WORD: word,
        codes.CATEGORY_NOT_DIGIT: not char.isdigit(),
        codes.CATEGORY_NOT_SPACE: not char.isspace(),
        codes.CATEGORY_NOT_WORD: not word,
    }
    return bool(known.get(value, False))


def _alternatives(nodes: list[Any]) -> Iterator[str]:
    """Some texts that match."""
    if len(nodes) == 1 and nodes[0][0] is codes.BRANCH:
        for branch in nodes[0][1][1]:
            yield from _alternatives(list(branch))
    elif len(nodes) == 1 and nodes[0][0] is codes.SUBPATTERN:
        yield from _alternatives(list(nodes[0][1][3]))
    elif len(nodes) == 1 and nodes[0][0] in (codes.IN, codes.ANY, codes.NOT_LITERAL):
        yield from (char for char in SAMPLES if _one(*nodes[0], char))
    else:
        yield _sample(nodes)


def _sample(nodes: Any) -> str:
    """One short text that matches."""
    return "".join(_sampled(op, value) for op, value in nodes)


def _sampled(op: Any, value: Any) -> str:
    if op is codes.LITERAL:
        return chr(value)
    if op in (codes.IN, codes.ANY, codes.NOT_LITERAL):
        known = next((char for char in SAMPLES if _one(op, value, char)), "")
        return known or next(
            (chr(v if o is codes.LITERAL else v[0]) for o, v in value if o in (codes.LITERAL, codes.RANGE)),
            "",
        )
    if op in REPEATS:
        least, most, inner = value
        return _sample(inner) * min(max(least, 1 if most > COUNT_MAX else 0), 50)
    if op is codes.SUBPATTERN:
        return _sample(value[3])
    if op is codes.ATOMIC_GROUP:
        return _sample(value)
    if op is codes.BRANCH:
        return _sample(value[1][0])
    return ""


def _named_one(value: Any) -> str:
    named = (v if o is codes.LITERAL else v[0] for o, v in value if o in (codes.LITERAL, codes.RANGE))
    return next(map(chr, named), "")


# -- time -----------------------------------------------------------------------------------------


def slowest(used: Used, length: int, enough_s: float) -> tuple[float, str]:
    """The most time that a bad text of this length takes, and that text; stops where it is enough."""
    worst, which = 0.0, ""
    apply = getattr(used.pattern, used.method)
    for text in bad_texts(used.pattern, length):
        began = time.process_time()
        apply("", text) if used.method == "sub" else apply(text)
        took = time.process_time() - began
        if took > worst:
            worst, which = took, text
        if worst > enough_s:
            break
    return worst, which
