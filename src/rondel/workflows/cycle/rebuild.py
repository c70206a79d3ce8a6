"""Finding the state of a cycle: in its file, else at the end of its log, else in what the agents left.

The file is the commit and counts as long as it can be read as the state of this cycle,
also where a person changed it by hand. The log is written before the file, so it gives
back the state last committed whatever happened to the file.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from rondel.model import doclog, jsons
from rondel.model.changes import Aside, Change, Document, Edit
from rondel.model.jsons import mapping, strings
from rondel.model.marks import FOREIGN, begun_here, mark
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, command_line
from rondel.model.times import stamp
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.documents import Doc, fault_of, first_fault
from rondel.workflows.cycle.models import SECTIONS, ChangeLog, CycleState, Plan, TestResults
from rondel.workflows.cycle.requests import Request
from rondel.workflows.cycle.results import exploration_section, first_paragraph, requirements_section
from rondel.workflows.cycle.state import Found, State
from rondel.workflows.cycle.transitions import record_of


class Located(NamedTuple):
    """The state document, where it was found, and what is wrong with the places before."""

    document: Document | None
    found: Found
    logged: bool
    problems: tuple[Problem, ...] = ()


def locate(files: Snapshot, cycle_id: str, request: Request) -> Located:
    """The state of a cycle, whatever is damaged.

    Of one that was begun here a state that claims an end which the engine did not write
    changes nothing: what was committed last counts.
    """
    found = _locate(files, cycle_id, request)
    begun = begun_here(files)
    if begun is None or found.document is None or not claims_more(files, found.document, begun):
        return found
    last = doclog.read(files.data(layout.LOG)).document
    whole = last is not None and not fault_of(last, cycle_id) and not claims_more(files, last, begun)
    document = last if whole and last is not None else without_claims(files, found.document)
    return Located(document, Found.REFUSED, logged=False, problems=(*found.problems, _refused(cycle_id)))


def _locate(files: Snapshot, cycle_id: str, request: Request) -> Located:
    path = layout.state_file(cycle_id)
    given = files.json(path)
    log = files.data(layout.LOG)
    ends_with = doclog.last_sha(log)
    ours = given if isinstance(given, dict) and given.get("cycle_id") == cycle_id else None
    if ours is not None and ends_with and doclog.sha(ours) == ends_with:
        return Located(ours, Found.FILE, logged=True)  # it was checked when it was logged
    logged = doclog.read(log)
    problems = _log_problems(logged)
    fault = fault_of(given, cycle_id, logged.document)
    if not fault and isinstance(given, dict):
        return Located(given, Found.FILE, logged=False, problems=problems)
    if logged.document is not None and not fault_of(logged.document, cycle_id):
        return Located(logged.document, Found.LOG, not logged.broken, (*problems, _damaged(cycle_id, fault)))
    if ours is not None and (left := _rest(ours)) is not None:
        rest, faults = left
        return Located(rest, Found.REST, logged=False, problems=(*problems, _damaged(cycle_id, faults)))
    there = files.exists(path) or log is not None
    rebuilt = _from_files(files, cycle_id, request)
    if rebuilt is None:
        return Located(None, Found.NOWHERE, logged=False, problems=(*problems, _lost(cycle_id, fault)))
    if not there and not layout.iterations(files):
        return Located(rebuilt, Found.REQUEST, logged=False)
    return Located(rebuilt, Found.FILES, logged=False, problems=(*problems, _damaged(cycle_id, fault)))


def usable(document: Document) -> CycleState | None:
    """The document as a model; None when it is not one."""
    try:
        return CycleState.model_validate(document)
    except ValidationError:
        return None


def _rest(document: Document) -> tuple[Document, str] | None:
    """The document without the shared sections that cannot be read, and what was wrong with them."""
    rest = dict(document)
    faults: list[str] = []
    for _ in range(len(SECTIONS) + 1):
        try:
            CycleState.model_validate(rest)
        except ValidationError as e:
            section = e.errors()[0]["loc"][:1]
            if not section or section[0] not in SECTIONS:
                return None
            rest.pop(str(section[0]), None)
            faults.append(first_fault(e))
        else:
            return rest, "; ".join(faults)
    return None


def _damaged(cycle_id: str, fault: str) -> Problem:
    return Problem(
        "state-damaged",
        layout.state_file(cycle_id),
        f"the state file cannot be used: {fault}; the state shown is rebuilt",
        f"`{command_line('cycle', 'rebuild', cycle_id)}` writes it again and keeps the damaged file",
    )


def _refused(cycle_id: str) -> Problem:
    return Problem(
        FOREIGN,
        layout.state_file(cycle_id),
        "it says that the cycle is over, and Rondel did not end it; the state last committed counts",
        f"nothing to do: `rondel cycle resume {cycle_id}` goes on and keeps the file in {layout.DAMAGED}/",
        loud=True,
    )


def _lost(cycle_id: str, fault: str) -> Problem:
    return Problem(
        "state-lost",
        layout.state_file(cycle_id),
        f"the state file cannot be used: {fault}; nothing is left to rebuild it from",
        "bring the file back from a copy, or start a new cycle",
    )


def _log_problems(logged: doclog.Logged) -> tuple[Problem, ...]:
    if not logged.broken:
        return ()
    words = "a line of the log is damaged; what came after it is not used"
    return (Problem("log-damaged", layout.LOG, words, "nothing to do: the next change is logged whole"),)


def restore(state: State) -> list[Change]:
    """The state file as it must be, and the log with it; what was damaged is kept aside.

    Nothing where the file shows the state and the log ends with it.
    """
    if state.cycle is None or (state.found is Found.FILE and state.logged):
        return []
    path = layout.state_file(state.id)
    changes: list[Change] = []
    if state.found is not Found.FILE and state.files.mtime(path) is not None:
        taken = state.files.names(layout.DAMAGED)
        name = f"{state.id}.json.{'refused' if state.found is Found.REFUSED else 'damaged'}"
        number = next(n for n in range(1, len(taken) + 2) if f"{name}-{n}" not in taken)
        changes.append(Aside(path, f"{layout.DAMAGED}/{name}-{number}"))
    document = state.document
    changes.append(Edit(path, lambda there: there or document, log=layout.LOG))
    return changes


def _from_files(files: Snapshot, cycle_id: str, request: Request) -> Document | None:
    """The state put together from the progress files; None when there are none."""
    numbers = layout.iterations(files)
    sections = dict(_sections(files, request, len(numbers)))
    changes = _changes(files)
    if not (request.there or sections or changes or numbers):
        return None
    specification = str(sections.get("requirements", {}).get("specification", ""))
    said = request.description or first_paragraph(specification) or cycle_id
    at = request.created_at or _time(files, ".rondel/request-1.json", request)
    doc: Doc = transitions.initial(cycle_id, said, request.title, max(1, request.max_iterations), at)
    for number in numbers:
        _replay(files, doc, number, request)
    doc |= sections
    if changes:
        transitions.add_changes(changes)(doc)
    return doc


def _sections(files: Snapshot, request: Request, iterations: int) -> Iterator[tuple[str, Doc]]:
    version = layout.of_iteration(iterations) or layout.FIRST
    for key, path, section in (
        ("requirements", layout.REQUIREMENTS, requirements_section),
        ("exploration", layout.EXPLORATION, exploration_section),
    ):
        text = files.text(path)
        if text is not None:
            yield key, section(text, version, _time(files, path, request))
    for key, path, model in (("plan", layout.PLAN, Plan), ("test_results", layout.TEST_RESULTS, TestResults)):
        try:
            yield key, model.model_validate(files.json(path)).document()
        except ValidationError:
            continue


def _changes(files: Snapshot) -> list[Doc]:
    """The lines of `cd/changes.log` that are changes."""
    found = []
    for line in layout.lines(files, layout.CHANGES):
        try:
            found.append(ChangeLog.model_validate(jsons.load(line)).document())
        except ValueError:
            continue
    return found


def _replay(files: Snapshot, doc: Doc, number: int, request: Request) -> None:
    """What one iteration's parts show."""
    begin = mapping(files.json(layout.begun(number)))
    transitions.open_iteration(number, str(begin.get("at", "")), strings(begin, "texts"))(doc)
    for name, path, left in (
        ("ra", layout.reply(number, layout.REQUIREMENTS), layout.REQUIREMENTS),
        ("ep", layout.reply(number, layout.PLAN), layout.PLAN),
        ("cd", layout.built(number), layout.CHANGES),
        ("vas", layout.reply(number, layout.VALIDATION), layout.VALIDATION),
    ):
        if files.exists(path):
            at = _time(files, path, request)
            transitions.finish_agent(name, number, at, outputs=[left], message="")(doc)
            doc["current_phase"] = name
    end = mapping(files.json(layout.aggregate(number)))
    for transition in transitions.closed({**end, "iteration": number}) if end else ():
        transition(doc)


def _time(files: Snapshot, path: str, request: Request) -> str:
    at = files.mtime(path)
    return "" if at is None else stamp(datetime.fromtimestamp(at, UTC).astimezone(request.zone))


# -- whether the engine closed what a state says is over ----------------------------------------------
#
# The engine leaves how an iteration ended in `aggregate.json`, with its mark, before the state
# says so. In a cycle that was begun here a state that claims more was written by somebody else.


def closing_parts(iteration: int, status: str) -> tuple[str, str, str]:
    """What the mark of a closed iteration is made from: its number, and what became of the cycle."""
    return "cycle", str(iteration), status


def claims_more(files: Snapshot, document: Mapping[str, Any], begun: str) -> bool:
    """Whether a document says that the cycle, or its iteration, is over where the engine did not."""
    number = _number(document)
    done = document.get("status") == "completed"
    if not done and not (record_of(document, number) or {}).get("completed_at"):
        return False
    end = mapping(files.json(layout.aggregate(number)))
    status = str(end.get("status"))
    closed = end.get("mark") == mark(begun, *closing_parts(number, status)) and number >= _latest(files)
    return not closed or (done and status != "completed")


def without_claims(files: Snapshot, document: Document) -> Document:
    """The document with the cycle going on where its parts show it to be; the rest is as it was."""
    after: Doc = copy.deepcopy(document)
    number = after["current_iteration"] = max(_number(document), _latest(files))
    if after.get("status") == "completed":
        after["status"] = "running" if number else "created"
    if after.get("current_phase") == "complete":
        after["current_phase"] = "ra" if number else "init"
    after.pop("completed_at", None)
    record = record_of(after, number)
    if record is not None:
        record.pop("completed_at", None)
        record["resolved"] = False
    return after


def _number(document: Mapping[str, Any]) -> int:
    number = document.get("current_iteration")
    return number if isinstance(number, int) else 0


def _latest(files: Snapshot) -> int:
    """The last iteration that the engine began."""
    return max(layout.iterations(files), default=0)
