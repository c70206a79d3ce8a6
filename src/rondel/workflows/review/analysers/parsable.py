"""Files that must parse and do not: JSON, TOML, XML, YAML. Nothing in them is carried out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from xml.parsers import expat

import yaml

from rondel.workflows.review.analysers import base
from rondel.workflows.review.findings import Category, Severity

YAML_MAX = 200_000  # the parser is slow
_COMMENTED_JSON = re.compile(r"(^|/)(tsconfig|jsconfig|devcontainer|\.eslintrc)[^/]*\.json$|(^|/)\.vscode/")
_TEMPLATE = re.compile(rb"\{\{|\{%|<%|\$\{\{")

_Wrong = tuple[int, str]


def _json(data: bytes) -> _Wrong | None:
    try:
        json.loads(data)
    except json.JSONDecodeError as e:
        return e.lineno, e.msg
    except (ValueError, RecursionError) as e:
        return 1, str(e) or "it is nested too deeply"
    return None


def _toml(data: bytes) -> _Wrong | None:
    try:
        tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as e:
        at = re.search(r"at line (\d+)", str(e))
        return int(at[1]) if at else 1, str(e)
    return None


def _xml(data: bytes) -> _Wrong | None:
    if b"<!ENTITY" in data:
        return None  # what they stand for is not looked up
    parser = expat.ParserCreate()
    try:
        parser.Parse(data, True)  # noqa: FBT003 - the name of this argument is not part of its interface
    except expat.ExpatError as e:
        return e.lineno, expat.ErrorString(e.code)
    return None


def _yaml(data: bytes) -> _Wrong | None:
    try:
        for _ in yaml.parse(data.decode(), Loader=yaml.SafeLoader):
            pass
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        return (mark.line + 1 if mark else 1), str(getattr(e, "problem", None) or "it does not parse")
    except (UnicodeDecodeError, RecursionError) as e:
        return 1, str(e)
    return None


_PARSERS: Mapping[str, tuple[str, Callable[[bytes], _Wrong | None]]] = {
    ".json": ("JSON", _json),
    ".toml": ("TOML", _toml),
    ".xml": ("XML", _xml),
    ".svg": ("XML", _xml),
    ".yaml": ("YAML", _yaml),
    ".yml": ("YAML", _yaml),
}


def _wants(file: base.ChangedFile) -> bool:
    if file.suffix not in _PARSERS or _TEMPLATE.search(file.data):
        return False
    if file.suffix in (".yaml", ".yml"):
        return len(file.data) <= YAML_MAX
    return not (file.suffix == ".json" and (_COMMENTED_JSON.search(file.path) or not file.data.strip()))


def find(files: Sequence[base.ChangedFile]) -> Iterator[base.Hit]:
    """What does not parse; called in a process of its own."""
    for file in files:
        name, parse = _PARSERS[file.suffix]
        wrong = parse(file.data)
        if wrong:
            yield base.Hit(
                rule=f"unparsable-{name.lower()}",
                message=f"The file is no longer {name}: line {wrong[0]}: {wrong[1]}.",
                path=file.path,
                line=file.nearest(wrong[0]),
                category=Category.BLOCKER,
                severity=Severity.HIGH,
                kinds=frozenset({base.RELIABILITY}),
            )


PARSABLE = base.Analyser("parsers", frozenset({base.RELIABILITY}), _wants, base.in_child(__name__))
