"""What a person asked for: how the cycle is to run, and what they added to its task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timezone
from types import MappingProxyType
from typing import Annotated, Any, cast

from pydantic import Field

from rondel.model.codec import decode, known, only, request_file, requests_in
from rondel.model.consent import Brought
from rondel.model.snapshot import Snapshot
from rondel.model.times import offset
from rondel.model.workflow import Given
from rondel.workflows.cycle.layout import PARTS
from rondel.workflows.cycle.measure import COVERAGE, JUNIT

EXTENSIONS = f"{PARTS}/extensions"

CURRENT = ("tests_required", "test_timeout_s", "junit", "coverage")  # as the settings are now, in every run


@dataclass(frozen=True)
class Extension:
    """What a person added to the task; `name` is its file."""

    text: Annotated[str, only(lambda text: bool(text.strip()))]
    max_iterations: Annotated[int, Field(gt=0)] | None = None
    name: str = ""


@dataclass(frozen=True)
class Request:
    """How a cycle is to run. Everything resuming needs; what nobody said has its default."""

    title: str | None = None
    description: str = ""
    created_at: str = ""
    test: str = ""
    agents_max: int | None = None
    there: Annotated[bool, only(lambda _: False)] = False  # not so for a cycle of another tool
    # What follows are settings of the workflow, too.
    max_iterations: int = 5
    auto: bool = False  # agents' questions get their first option, their blockers become issues
    branch: str = ""  # where the work lands; `rondel/cycle/<id>` when not given
    utc_offset_h: float = 8.0  # of the times in the state document
    tests_required: bool = True  # whether an iteration without a single test counts as unresolved
    test_timeout_s: float = 1800.0
    junit: str = JUNIT  # where in the workspace the test command leaves its JUnit XML
    coverage: str = COVERAGE  # where it leaves its coverage data (coverage.py JSON, Cobertura XML)

    @property
    def zone(self) -> timezone:
        """The zone of the times in the state document."""
        return offset(max(-23.0, min(23.0, self.utc_offset_h)))


_DEFAULTS = {field.name: field.default for field in fields(Request)}
_SESSION_ONLY = ("title", "description", "created_at", "test", "agents_max", "there")
SETTINGS: Mapping[str, object] = MappingProxyType(
    {key: default for key, default in _DEFAULTS.items() if key not in _SESSION_ONLY}
)


def read_request(files: Snapshot) -> Request:
    """The requests in order, each over the one before. A value of another type is as if not said."""
    merged: dict[str, Any] = {}
    for number in requests_in(files):
        merged |= known(Request, files.json(request_file(number)))
    return replace(decode(Request, merged) or Request(), there=bool(merged))


def with_settings(request: Request, given: Given) -> Request:
    """The request with the settings as they are now; sessions of the version before kept those of then.

    A command that only the session knows came with the repository, and needs consent.
    """
    old = request.test if request.test.strip() and given.admits(old_test(request.test)) else ""
    found = {k: v for k, v in known(Request, given.settings).items() if k in CURRENT}
    return replace(request, **cast("dict[str, Any]", found), test=given.test or old)


def old_test(command: str) -> Brought:
    """The tests that a session of the version before kept."""
    return Brought("tests that the session names", command)


def read_extensions(files: Snapshot) -> list[Extension]:
    """What was added to the task, in the order it was said."""
    found = []
    for name in sorted(files.names(EXTENSIONS)):
        one = decode(Extension, files.json(f"{EXTENSIONS}/{name}"))
        found += [replace(one, name=name)] if one else []
    return found
