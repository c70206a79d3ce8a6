"""Where everything of a cycle lies. Paths are relative to `.workflow/.cycle/{cycle_id}.progress/`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rondel.model.decisions import DECISIONS as DECISIONS
from rondel.model.identity import was_cut_off
from rondel.model.names import is_safe_name
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import SessionRef

HOME = ".workflow/.cycle"
PROGRESS = ".progress"

REQUIREMENTS = "ra/requirements.md"
EXPLORATION = "ep/exploration.md"
PLAN = "ep/plan.json"
CHANGES = "cd/changes.log"
IMPLEMENTATION = "cd/implementation.md"
TEST_RESULTS = "vas/test-results.json"
VALIDATION = "vas/validation.md"
SUMMARY = "vas/summary.md"
TIMELINE = "coordination/timeline.md"
LOG = "coordination/state.ndjson"
DAMAGED = "coordination"  # a damaged state file is kept here, under its name

PARTS = ".rondel/parts"
FIRST = "1.0.0"  # the version of what an iteration leaves; the next one is a minor step up

_TASK_FILE = re.compile(r"^(?P<task>.+?)(?:\.try-(?P<number>[1-9]\d{0,3}))?\.json$")


def state_file(cycle_id: str) -> str:
    """The state document, beside the session folder."""
    return f"../{cycle_id}.json"


def ref(cycle_id: str) -> SessionRef:
    """A cycle as a session."""
    return SessionRef("cycle", cycle_id, f"{HOME}/{cycle_id}{PROGRESS}", frozenset({f"{cycle_id}.json"}))


def sessions(repo: Snapshot) -> Iterable[SessionRef]:
    """The cycles of a repository, by their progress folders and state files."""
    found, names = set(), repo.names(HOME)
    for name in names:
        stem = name.removesuffix(f"{PROGRESS}/") if name.endswith("/") else name.removesuffix(".json")
        if stem == name or not is_safe_name(f"{stem}{PROGRESS}"):
            continue
        if f"{stem}.json" in names or not _was_cut_off(repo, f"{HOME}/{name.rstrip('/')}"):
            found.add(stem)
    return [ref(cycle_id) for cycle_id in sorted(found)]


def _was_cut_off(repo: Snapshot, folder: str) -> bool:
    """Whether a cycle without a state file was never there: its start was killed, and no agent was asked."""
    return repo.names(folder) <= {".rondel/", "coordination/"} and was_cut_off(repo, folder)


def part(iteration: int, name: str) -> str:
    """An answer of one iteration that has no file of its own in the document."""
    return f"{PARTS}/iteration-{iteration}/{name}"


def begun(iteration: int) -> str:
    """What an iteration began with: the commit, the versions, what was taken over."""
    return part(iteration, "begin.json")


def seen(iteration: int, agent: str, asked: str = "") -> str:
    """How much of the feedback log an agent had before it when it was `asked` for a part.

    Without a part, the folder of all of them.
    """
    folder = part(iteration, f"seen/{agent}")
    return f"{folder}/{asked.rpartition('/')[2]}.json" if asked else folder


def reply(iteration: int, document: str) -> str:
    """The reply that an agent's document came from; of the plan, the plan as it was accepted."""
    return part(iteration, document)


def task(iteration: int, task_id: str, number: int = 1) -> str:
    """The code developer's report on one plan task; `number` counts its tries after a conflict."""
    return part(iteration, f"cd/{_try(task_id, number)}.md")


def task_result(iteration: int, task_id: str, number: int = 1) -> str:
    """What came of that try: commit, files, times."""
    return part(iteration, f"cd/{_try(task_id, number)}.json")


def task_changes(iteration: int, task_id: str, number: int = 1) -> str:
    """What that try's commit did to each file."""
    return part(iteration, f"cd/changes/{_try(task_id, number)}.json")


def _try(task_id: str, number: int) -> str:
    return task_id if number == 1 else f"{task_id}.try-{number}"


def task_of(name: str) -> tuple[str, int] | None:
    """The task and try that a result file is of."""
    found = _TASK_FILE.match(name)
    return (found["task"], int(found["number"] or 1)) if found else None


def built(iteration: int) -> str:
    """The code developer's work is done: the commit that holds it all, and how it is tested."""
    return part(iteration, "tip.json")  # not in `cd/`, whose names are the plan's


def tests(iteration: int) -> str:
    """What the project's own tests said."""
    return part(iteration, "vas/tests.json")


def aggregate(iteration: int) -> str:
    """How the iteration ended: issues, where they went, resolved or not. It closes the iteration."""
    return part(iteration, "aggregate.json")


def answer(kind: str, name: str) -> str:
    """A person's answer to a decision or a blocker."""
    return f"{DECISIONS}/{kind}-{name}.json"


def answered(kind: str, name: str) -> str:
    """That an answer has reached the state document."""
    return f"{PARTS}/answers/{kind}-{name}.json"


def lines(files: Snapshot, path: str) -> list[str]:
    """The complete lines of a log. A torn last one is none: whoever adds the next line puts it aside."""
    return (files.text(path) or "").split("\n")[:-1]


def iterations(files: Snapshot) -> list[int]:
    """The iterations that have parts, in order."""
    return numbers(files, PARTS, r"iteration-([1-9]\d{0,5})/")


def numbers(files: Snapshot, folder: str, pattern: str) -> list[int]:
    """The numbers in those names of a folder that have a form, in order."""
    found = (re.fullmatch(pattern, name) for name in files.names(folder))
    return sorted(int(match[1]) for match in found if match)


def bump(version: str | None) -> str:
    """The next minor version; the first one when there is none that can be read."""
    found = re.fullmatch(r"v?(\d{1,9})\.(\d{1,9})(?:\.\d{1,9})?", version or "")
    return f"{found[1]}.{int(found[2]) + 1}.0" if found else FIRST


def of_iteration(number: int) -> str | None:
    """The version of what every iteration leaves anew; None before the first."""
    return f"1.{number - 1}.0" if number > 0 else None


def archived(path: str, version: str) -> str:
    """Where the former version of a file is kept: `ra/history/requirements-v1.0.0.md`."""
    folder, _, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    label = re.sub(r"[^0-9A-Za-z.-]+", "-", version)[:40] or "unknown"
    return f"{folder}/history/{stem}-v{label}{dot}{ending}"
