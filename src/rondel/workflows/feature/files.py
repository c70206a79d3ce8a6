"""The functions of a feature that touch files or the clock."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from rondel import paths
from rondel.errors import RondelError, UsageError
from rondel.model.changes import Document
from rondel.model.names import slug
from rondel.model.summary import Problem
from rondel.model.times import stamp
from rondel.model.workflow import Claim, Repairs, SessionRef, unclaimed
from rondel.store import documents, files, ours
from rondel.store.changes import write_ours
from rondel.workflows.feature import layout
from rondel.workflows.feature.lint import Anomaly, lint, without_stray_brace
from rondel.workflows.feature.phases import ACTIVE, BRAINSTORM, LIMITS, SPECIFY
from rondel.workflows.feature.phases import ARTIFACTS as ARTIFACT_OF
from rondel.workflows.feature.stamps import merge_phase

log = logging.getLogger("rondel.feature")
_ID = re.compile(r"(\d{1,9})(?:-|$)")


def update_phase_state(feature_path: str | Path, phase: str, updates: Mapping[str, object]) -> bool:
    """Put `updates` into the record of a phase; whether that was done.

    `updates` may have `started`, `completed`, `verified`, `iterations`, `reviewerNotes`.
    The change is atomic and loses no other. What would break a rule, or a file that cannot
    be read, is refused: nothing changes, the reason is logged, the answer is False.
    """

    def change(meta: Document) -> Document:
        if not meta:
            raise UsageError(f"{feature_path} has no {layout.META}")
        return merge_phase(meta, phase, updates)

    path = Path(feature_path).resolve() / layout.META
    try:
        if not paths.is_file(path):
            raise UsageError(f"{feature_path} has no {layout.META}; is it a feature's folder?")
        documents.edit(path, change)
    except RondelError as e:
        log.warning("%s", e)
        return False
    return True


def start_feature(
    root: Path,
    title: str,
    *,
    mode: str = "standard",
    description: str = "",
    brainstorm: str | None = None,
    at: datetime | None = None,
    claim: Claim = unclaimed,
) -> SessionRef:
    """A new feature: its folder, its id, its `.meta.json`, which is written last.

    No two features get the same id, however many are started at once. A hotfix gets a short
    specification, so that it can be implemented at once.
    """
    name = " ".join(title.split())
    if not name:
        raise UsageError("a feature needs a title")
    if mode.lower() not in LIMITS:
        raise UsageError(f"no mode {mode!r}; there are: {', '.join(LIMITS)}")
    parent = root / layout.FEATURES
    files.make_folder(parent)
    with documents.locked(parent):
        number = f"{_highest(parent) + 1:03d}"
        short = slug(name, fallback="feature")
        folder = files.claim_folder(parent, [f"{number}-{short}"])
    ref = SessionRef("feature", folder.name, f"{layout.FEATURES}/{folder.name}")
    with files.whole_or_gone(folder):
        claim(ref)
        now = stamp(at or datetime.now(UTC))
        meta = _new_meta(number, name, short, mode.lower(), now)
        request: Document = {"command": "start", "title": name, "description": description.strip(), "at": now}
        files.make_folder(folder / ".rondel")
        ours.keep_out_of_git(folder / ".rondel")
        files.write(folder / layout.request(1), documents.dump(request))
        if brainstorm is not None:
            files.write(folder / ARTIFACT_OF[BRAINSTORM], brainstorm.encode())
            done: Document = {"started": now, "completed": now, "iterations": 0}
            meta |= {"phases": {BRAINSTORM: done}, "currentPhase": BRAINSTORM}
        if meta["mode"] == "hotfix":
            write_ours(folder, {ARTIFACT_OF[SPECIFY]: _short_spec(name, description)})
        files.write(folder / layout.META, documents.dump(meta))
    return ref


def _new_meta(number: str, name: str, short: str, mode: str, now: str) -> Document:
    return {
        "id": number,
        "name": name,
        "slug": short,
        "mode": mode,
        "status": ACTIVE,
        "created": now,
        "completed": None,
        "worktree": None,
        "branch": f"feature/{number}-{short}",
        "currentPhase": None,
        "phases": {},
    }


def _highest(parent: Path) -> int:
    """The highest id in use; a folder counts whatever is in it."""
    numbers = [int(m.group(1)) for name in paths.names(parent) if (m := _ID.match(name))]
    return max(numbers, default=0)


def _short_spec(title: str, description: str) -> str:
    what = description.strip() or title
    return (
        f"# {title}\n\n## Requirements\n\n- R1: {what}\n\n"
        "## Acceptance criteria\n\n- R1 holds, shown by a test or by running it, and the tests pass.\n\n"
        "## Scope\n\nOnly this. A hotfix: written from its description at the start.\n"
    )


def lint_file(path: str | Path) -> tuple[Anomaly, ...]:
    """Every rule a `.meta.json` breaks, wherever it lies. Never fails: what cannot be read is no JSON."""
    try:
        data = files.read(Path(path).absolute().parent.resolve() / Path(path).name)
    except RondelError as e:
        return (Anomaly("invalid-json", None, str(e)),)
    if data is None:
        return (Anomaly("invalid-json", None, "there is no such file"),)
    return lint(data)


def mend(root: Path, repair: Repairs) -> Iterator[tuple[str, Problem]]:
    """Repair what can be repaired in a repository's features; each with what was wrong and is kept."""
    parent = root / layout.FEATURES
    for name in paths.names(parent):
        folder = parent / name
        is_feature = _ID.match(name) and paths.is_file(folder / layout.META)
        data = ours.view(folder / layout.META) if is_feature else None
        if data is None or without_stray_brace(data) is None or not repair(f"feature:{name}"):
            continue
        if kept := repair_meta(folder):
            message = f"one brace was too many; the original is {kept}"
            yield f"feature:{name}", Problem("invalid-json", layout.META, message, repaired=True)


def lost(root: Path) -> Iterator[tuple[str, Problem]]:
    """Features that were worked on and have lost their document: no other command sees them any more."""
    for name in paths.names(root / layout.FEATURES):
        folder = root / layout.FEATURES / name
        begun = _ID.match(name) and paths.is_there(folder / ".rondel/request-1.json")
        if begun and not paths.is_there(folder / layout.META):
            repair = f"`git log -- {layout.FEATURES}/{folder.name}` may have it, or put one there by hand"
            yield (
                f"feature:{folder.name}",
                Problem("meta-missing", layout.META, "there is none, and without it no feature", repair),
            )


def repair_meta(folder: Path) -> str | None:
    """Mend a `.meta.json` that has one brace too many; the original is kept under the name given back."""
    path = folder / layout.META
    with documents.locked(folder):
        data = files.read(path)
        mended = without_stray_brace(data) if data is not None else None
        if data is None or mended is None:
            return None
        number = 1
        while paths.is_there(kept := folder / f".meta.invalid-{number}.json"):
            number += 1
        files.write(kept, data)
        files.write(path, mended)
        return kept.name
