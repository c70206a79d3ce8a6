"""The transitions of a cycle's state: new, next iteration, agents at work, the end.

Each one changes the document in place, and carried out again it changes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec

from rondel.model.changes import Document
from rondel.model.jsons import mappings, strings
from rondel.workflows.cycle.documents import Doc, Transition
from rondel.workflows.cycle.models import AGENTS, TITLE_MAX

P = ParamSpec("P")


def transition(change: Callable[Concatenate[Doc, P], None]) -> Callable[P, Transition]:
    """A change of the document that is said now and carried out later, when the document is there.

    `complete(at)` is a `Transition`: whoever has the document and its lock calls it with the document.
    """

    def said(*args: P.args, **kwargs: P.kwargs) -> Transition:
        return lambda doc: change(doc, *args, **kwargs)

    return said


def initial(cycle_id: str, description: str, title: str | None, max_iterations: int, at: str) -> Document:
    """The state of a new cycle."""
    return {
        "cycle_id": cycle_id,
        "title": (title or description)[:TITLE_MAX],
        "description": description,
        "task_history": [title or description],
        "status": "created",
        "created_at": at,
        "updated_at": at,
        "max_iterations": max_iterations,
        "current_iteration": 0,
        "agents": {
            name: {"status": "idle", "output_files": [], "iterations_completed": 0} for name in AGENTS
        },
        "current_phase": "init",
        "completed_phases": [],
        "phase_errors": [],
        "iterations": [],
        "coordination": {"feedback_log": [], "pending_decisions": [], "blockers": []},
    }


# -- iterations -----------------------------------------------------------------------------


@transition
def open_iteration(doc: Doc, number: int, at: str, extensions: Sequence[str] = ()) -> None:
    """Iteration `number` begins, with what the user added to the task.

    An extension raises the limit where there is no iteration left for it.
    """
    if doc["current_iteration"] >= number:
        return
    for record in doc["iterations"]:
        record.setdefault("completed_at", at)
    doc["status"] = "running"
    doc["current_iteration"] = number
    doc["max_iterations"] = max(doc["max_iterations"], number)
    doc["current_phase"] = "ra"
    doc["completed_phases"] = []
    for key in ("completed_at", "failure_reason"):
        doc.pop(key, None)
    for name in AGENTS:
        doc["agents"][name]["status"] = "idle"
        for key in ("started_at", "completed_at", "error", "last_message"):
            doc["agents"][name].pop(key, None)
    doc["agents"]["ra"] |= {"status": "running", "started_at": at}
    for text in extensions:
        doc["task_history"].append(text)
        doc["description"] = f"{doc['description']}\n\n--- ITERATION {number} ---\n{text}"
        entry = feedback("user", "ra", text, "requirement_update", at)
        doc["coordination"]["feedback_log"].append(entry)
    extension = {"extension": "\n\n".join(extensions)} if extensions else {}
    results: Doc = {"agent_results": {}, "issues_found": [], "resolved": False}
    doc["iterations"].append({"number": number, **extension, "started_at": at, **results})


@transition
def close_iteration(doc: Doc, number: int, at: str, issues: Sequence[str], *, resolved: bool) -> None:
    """All four agents have had their turn."""
    record = record_of(doc, number)
    if record is not None:
        record |= {"completed_at": at, "issues_found": list(issues), "resolved": resolved}
    doc["current_phase"] = "aggregation"


def closed(note: Mapping[str, Any]) -> list[Transition]:
    """What the note that an iteration is closed with means for the state."""
    at = str(note.get("at", ""))
    changes = [
        close_iteration(
            note["iteration"], at, strings(note, "issues"), resolved=note.get("resolved") is True
        ),
        add_feedback(mappings(note, "feedback")),
    ]
    if note.get("status") == "completed":
        changes.append(complete(at))
    elif note.get("status") == "failed":
        changes.append(fail(str(note.get("failure_reason", ""))))
    return changes


@transition
def raise_limit(doc: Doc, max_iterations: int) -> None:
    """More iterations are allowed; never fewer."""
    doc["max_iterations"] = max(doc["max_iterations"], max_iterations)


@transition
def complete(doc: Doc, at: str) -> None:
    """The task is done."""
    doc |= {"status": "completed", "current_phase": "complete", "completed_at": at}
    doc.pop("failure_reason", None)


@transition
def fail(doc: Doc, reason: str) -> None:
    """The cycle cannot go on by itself."""
    doc |= {"status": "failed", "failure_reason": reason}


def record_of(doc: Mapping[str, Any], number: int) -> Doc | None:
    """The record of an iteration; the latest one where a number came twice."""
    found = [r for r in doc.get("iterations", []) if isinstance(r, dict) and r.get("number") == number]
    return found[-1] if found else None


# -- agents ---------------------------------------------------------------------------------


@transition
def start_agent(doc: Doc, name: str, phase: str, at: str) -> None:
    """An agent is at work."""
    agent = doc["agents"][name]
    if agent["status"] != "running" or "started_at" not in agent:
        agent |= {"status": "running", "started_at": at}
    agent.pop("error", None)
    doc["current_phase"] = phase


@transition
def rest_agent(doc: Doc, name: str, message: str) -> None:
    """An agent has done a part and waits for the others."""
    doc["agents"][name] |= {"status": "waiting", "last_message": message}


@transition
def finish_agent(
    doc: Doc,
    name: str,
    iteration: int,
    at: str,
    *,
    outputs: Sequence[str],
    message: str,
    status: str = "completed",
    files: int | None = None,
) -> None:
    """An agent is done in an iteration; where nothing is said, it changed the files it left."""
    agent = doc["agents"][name]
    known = agent["output_files"]
    agent |= {
        "status": "completed",
        "completed_at": at,
        "output_files": known + [path for path in outputs if path not in known],
        "last_message": message,
        "iterations_completed": max(agent["iterations_completed"], iteration),
    }
    agent.pop("error", None)
    if name not in doc["completed_phases"]:
        doc["completed_phases"].append(name)
    _note_result(doc, iteration, name, status, len(outputs) if files is None else files)


@transition
def fail_agent(doc: Doc, name: str, iteration: int, at: str, error: str) -> None:
    """An agent gave no usable answer."""
    doc["agents"][name] |= {"status": "failed", "completed_at": at, "error": error}
    note_error(name, error, at)(doc)
    _note_result(doc, iteration, name, "failed", 0)


def _note_result(doc: Doc, iteration: int, name: str, status: str, files: int) -> None:
    record = record_of(doc, iteration)
    if record is not None:
        record.setdefault("agent_results", {})[name] = {"status": status, "files_modified": files}


@transition
def note_error(doc: Doc, phase: str, error: str, at: str) -> None:
    """Something went wrong in a phase."""
    entry = {"phase": phase, "error": error, "timestamp": at}
    if entry not in doc["phase_errors"]:
        doc["phase_errors"].append(entry)


# -- what the agents found --------------------------------------------------------------------


@transition
def section(doc: Doc, key: str, value: Mapping[str, Any]) -> None:
    """One of the shared parts of the document; fields nobody here knows stay."""
    doc[key] = {**(doc.get(key) or {}), **value}


@transition
def set_task(doc: Doc, /, task_id: str, **fields: Any) -> None:
    """Where a plan task stands."""
    plan = doc.get("plan", doc)  # the state document, or the plan's own file
    for task in plan.get("tasks", []):
        if isinstance(task, dict) and task.get("id") == task_id:
            task.update(fields)


@transition
def add_changes(doc: Doc, entries: Iterable[Doc]) -> None:
    """Changes of files, each once."""
    changes = doc.setdefault("changes", {"total_files": 0, "changes": [], "iteration_markers": {}})
    known = {_key(e) for e in changes["changes"]}
    for entry in entries:
        if _key(entry) not in known:
            changes["changes"].append(entry)
        changes["iteration_markers"].setdefault(str(entry["iteration"]), entry["timestamp"])
    changes["total_files"] = len({e.get("file") for e in changes["changes"]})


def _key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry.get(k) for k in ("timestamp", "file", "action", "iteration", "description"))


# -- coordination -----------------------------------------------------------------------------


def feedback(source: str, target: str, content: str, kind: str, at: str) -> Doc:
    """An entry of the feedback log."""
    return {"timestamp": at, "source": source, "target": target, "content": content, "type": kind}


@transition
def add_feedback(doc: Doc, entries: Iterable[Doc]) -> None:
    """Messages between agents, each once."""
    log = doc["coordination"]["feedback_log"]
    log += [entry for entry in entries if entry not in log]


@transition
def say(doc: Doc, entry: Doc) -> None:
    """A message of the user: logged as often as it is sent."""
    doc["coordination"]["feedback_log"].append(entry)


@transition
def add_decision(doc: Doc, decision_id: str, description: str, options: Sequence[str]) -> None:
    """A question for a person."""
    entry = {"id": decision_id, "description": description, "options": list(options), "status": "pending"}
    _add_once(doc["coordination"]["pending_decisions"], entry)


@transition
def make_decision(doc: Doc, decision_id: str, option: str, by: str) -> None:
    """A decision is made, and stays as it was made."""
    for decision in doc["coordination"]["pending_decisions"]:
        if decision["id"] == decision_id and decision["status"] == "pending":
            decision.update({"made_by": by, "chosen_option": option, "status": "made"})


@transition
def implement_decisions(doc: Doc) -> None:
    """What was decided is in the code."""
    for decision in doc["coordination"]["pending_decisions"]:
        if decision["status"] == "made":
            decision["status"] = "implemented"


@transition
def add_blocker(doc: Doc, blocker_id: str, description: str, reported_by: str) -> None:
    """Something keeps the cycle from going on."""
    entry = {"id": blocker_id, "description": description, "reported_by": reported_by, "status": "open"}
    _add_once(doc["coordination"]["blockers"], entry)


def _add_once(entries: list[Doc], entry: Doc) -> None:
    if all(known["id"] != entry["id"] for known in entries):
        entries.append(entry)


def next_blocker(doc: Mapping[str, Any]) -> str:
    """A free id for a blocker that a person reports."""
    taken = {b.get("id") for b in doc["coordination"]["blockers"]}
    return next(name for n in range(1, len(taken) + 2) if (name := f"B-{n}") not in taken)


@transition
def settle_blocker(doc: Doc, blocker_id: str, status: str, resolution: str) -> None:
    """A blocker is out of the way."""
    for blocker in doc["coordination"]["blockers"]:
        if blocker["id"] == blocker_id and blocker["status"] == "open":
            blocker.update({"status": status, "resolution": resolution})


# -- control ----------------------------------------------------------------------------------


@transition
def pause(doc: Doc, message: str) -> None:
    """The cycle rests; who was at work says why."""
    if doc["status"] in ("completed", "failed"):
        return
    doc["status"] = "paused"
    agents = doc["agents"]
    working = [name for name in AGENTS if agents[name]["status"] == "running"]
    current = [name for name in AGENTS if name == doc["current_phase"]]
    for name in working or current or ["ra"]:
        agents[name]["last_message"] = message
        if agents[name]["status"] == "running":
            agents[name]["status"] = "waiting"


@transition
def resume(doc: Doc, *, retry: bool) -> None:
    """The cycle goes on. With `retry` also one that failed because an agent gave no answer."""
    if doc["status"] == "paused" or (retry and doc["status"] == "failed"):
        doc["status"] = "running" if doc["current_iteration"] else "created"
        doc.pop("failure_reason", None)
