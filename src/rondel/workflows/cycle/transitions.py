"""The transitions of a cycle's state: new, next iteration, agents at work, the end.

Each is a step on the document, and carried out again it changes nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rondel.model.changes import Document
from rondel.workflows.cycle.documents import Doc, Step
from rondel.workflows.cycle.models import AGENTS, TITLE_MAX

PHASE_ORDER = ("ra", "ep", "cd", "vas")


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


def open_iteration(number: int, at: str, extensions: Sequence[str] = ()) -> Step:
    """Iteration `number` begins, with what the user added to the task.

    An extension raises the limit where there is no iteration left for it.
    """

    def step(doc: Doc) -> None:
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
            _reset_agent(doc["agents"][name])
        doc["agents"]["ra"] |= {"status": "running", "started_at": at}
        for text in extensions:
            doc["task_history"].append(text)
            doc["description"] = f"{doc['description']}\n\n--- ITERATION {number} ---\n{text}"
            entry = feedback("user", "ra", text, "requirement_update", at)
            doc["coordination"]["feedback_log"].append(entry)
        doc["iterations"].append(_record(number, at, extensions))

    return step


def _record(number: int, at: str, extensions: Sequence[str]) -> Doc:
    extension = {"extension": "\n\n".join(extensions)} if extensions else {}
    return {
        "number": number,
        **extension,
        "started_at": at,
        "agent_results": {},
        "issues_found": [],
        "resolved": False,
    }


def _reset_agent(agent: Doc) -> None:
    agent["status"] = "idle"
    for key in ("started_at", "completed_at", "error", "last_message"):
        agent.pop(key, None)


def close_iteration(number: int, at: str, issues: Sequence[str], *, resolved: bool) -> Step:
    """All four agents have had their turn."""

    def step(doc: Doc) -> None:
        record = record_of(doc, number)
        if record is not None:
            record |= {"completed_at": at, "issues_found": list(issues), "resolved": resolved}
        doc["current_phase"] = "aggregation"

    return step


def raise_limit(max_iterations: int) -> Step:
    """More iterations are allowed; never fewer."""

    def step(doc: Doc) -> None:
        doc["max_iterations"] = max(doc["max_iterations"], max_iterations)

    return step


def complete(at: str) -> Step:
    """The task is done."""

    def step(doc: Doc) -> None:
        doc |= {"status": "completed", "current_phase": "complete", "completed_at": at}
        doc.pop("failure_reason", None)

    return step


def fail(reason: str) -> Step:
    """The cycle cannot go on by itself."""

    def step(doc: Doc) -> None:
        doc |= {"status": "failed", "failure_reason": reason}

    return step


def record_of(doc: Mapping[str, Any], number: int) -> Doc | None:
    """The record of an iteration; the latest one where a number came twice."""
    found = [r for r in doc.get("iterations", []) if isinstance(r, dict) and r.get("number") == number]
    return found[-1] if found else None


# -- agents ---------------------------------------------------------------------------------


def start_agent(name: str, phase: str, at: str) -> Step:
    """An agent is at work."""

    def step(doc: Doc) -> None:
        agent = doc["agents"][name]
        if agent["status"] != "running" or "started_at" not in agent:
            agent |= {"status": "running", "started_at": at}
        agent.pop("error", None)
        doc["current_phase"] = phase

    return step


def rest_agent(name: str, message: str) -> Step:
    """An agent has done a part and waits for the others."""

    def step(doc: Doc) -> None:
        doc["agents"][name] |= {"status": "waiting", "last_message": message}

    return step


def finish_agent(
    name: str, iteration: int, at: str, *, outputs: Iterable[str], message: str, status: str, files: int
) -> Step:
    """An agent's turn in an iteration is over."""

    def step(doc: Doc) -> None:
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
        record = record_of(doc, iteration)
        if record is not None:
            record.setdefault("agent_results", {})[name] = {"status": status, "files_modified": files}

    return step


def fail_agent(name: str, iteration: int, at: str, error: str) -> Step:
    """An agent gave no usable answer."""

    def step(doc: Doc) -> None:
        doc["agents"][name] |= {"status": "failed", "completed_at": at, "error": error}
        _add_phase_error(doc, name, error, at)
        record = record_of(doc, iteration)
        if record is not None:
            record.setdefault("agent_results", {})[name] = {"status": "failed", "files_modified": 0}

    return step


def note_error(phase: str, error: str, at: str) -> Step:
    """Something went wrong in a phase that goes on."""

    def step(doc: Doc) -> None:
        _add_phase_error(doc, phase, error, at)

    return step


def _add_phase_error(doc: Doc, phase: str, error: str, at: str) -> None:
    entry = {"phase": phase, "error": error, "timestamp": at}
    if entry not in doc["phase_errors"]:
        doc["phase_errors"].append(entry)


# -- what the agents found --------------------------------------------------------------------


def section(key: str, value: Mapping[str, Any]) -> Step:
    """One of the shared parts of the document; fields nobody here knows stay."""

    def step(doc: Doc) -> None:
        doc[key] = {**(doc.get(key) or {}), **value}

    return step


def set_task(task_id: str, **fields: Any) -> Step:
    """Where a plan task stands."""

    def step(doc: Doc) -> None:
        plan = doc.get("plan", doc)  # the state document, or the plan's own file
        for task in plan.get("tasks", []):
            if isinstance(task, dict) and task.get("id") == task_id:
                task.update(fields)

    return step


def add_changes(entries: Sequence[Doc], iteration: int) -> Step:
    """Changes of files, each once."""

    def step(doc: Doc) -> None:
        changes = doc.setdefault("changes", {"total_files": 0, "changes": [], "iteration_markers": {}})
        known = {_key(e) for e in changes["changes"]}
        changes["changes"] += [e for e in entries if _key(e) not in known]
        changes["total_files"] = len({e.get("file") for e in changes["changes"]})
        if entries:
            changes["iteration_markers"].setdefault(str(iteration), entries[0]["timestamp"])

    return step


def _key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry.get(k) for k in ("timestamp", "file", "action", "iteration", "description"))


# -- coordination -----------------------------------------------------------------------------


def feedback(source: str, target: str, content: str, kind: str, at: str) -> Doc:
    """An entry of the feedback log."""
    return {"timestamp": at, "source": source, "target": target, "content": content, "type": kind}


def add_feedback(entries: Iterable[Doc]) -> Step:
    """Messages between agents, each once."""

    def step(doc: Doc) -> None:
        log = doc["coordination"]["feedback_log"]
        log += [entry for entry in entries if entry not in log]

    return step


def say(entry: Doc) -> Step:
    """A message of the user: logged as often as it is sent."""

    def step(doc: Doc) -> None:
        doc["coordination"]["feedback_log"].append(entry)

    return step


def add_decision(decision_id: str, description: str, options: Sequence[str]) -> Step:
    """A question for a person."""

    def step(doc: Doc) -> None:
        found = doc["coordination"]["pending_decisions"]
        if all(d["id"] != decision_id for d in found):
            entry = {
                "id": decision_id,
                "description": description,
                "options": list(options),
                "status": "pending",
            }
            found.append(entry)

    return step


def make_decision(decision_id: str, option: str, by: str) -> Step:
    """A decision is made, and stays as it was made."""

    def step(doc: Doc) -> None:
        for decision in doc["coordination"]["pending_decisions"]:
            if decision["id"] == decision_id and decision["status"] == "pending":
                decision.update({"made_by": by, "chosen_option": option, "status": "made"})

    return step


def implement_decisions(doc: Doc) -> None:
    """What was decided is in the code."""
    for decision in doc["coordination"]["pending_decisions"]:
        if decision["status"] == "made":
            decision["status"] = "implemented"


def add_blocker(blocker_id: str, description: str, reported_by: str) -> Step:
    """Something keeps the cycle from going on."""

    def step(doc: Doc) -> None:
        found = doc["coordination"]["blockers"]
        if all(b["id"] != blocker_id for b in found):
            found.append(
                {"id": blocker_id, "description": description, "reported_by": reported_by, "status": "open"}
            )

    return step


def next_blocker(doc: Mapping[str, Any]) -> str:
    """A free id for a blocker that a person reports."""
    taken = {b.get("id") for b in doc["coordination"]["blockers"]}
    return next(name for n in range(1, len(taken) + 2) if (name := f"B-{n}") not in taken)


def settle_blocker(blocker_id: str, status: str, resolution: str) -> Step:
    """A blocker is out of the way."""

    def step(doc: Doc) -> None:
        for blocker in doc["coordination"]["blockers"]:
            if blocker["id"] == blocker_id and blocker["status"] == "open":
                blocker.update({"status": status, "resolution": resolution})

    return step


# -- control ----------------------------------------------------------------------------------


def pause(message: str) -> Step:
    """The cycle rests; who was at work says why."""

    def step(doc: Doc) -> None:
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

    return step


def resume(*, retry: bool) -> Step:
    """The cycle goes on. With `retry` also one that failed because an agent gave no answer."""

    def step(doc: Doc) -> None:
        if doc["status"] == "paused" or (retry and doc["status"] == "failed"):
            doc["status"] = "running" if doc["current_iteration"] else "created"
            doc.pop("failure_reason", None)

    return step
