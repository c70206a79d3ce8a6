"""The functions of a feature that touch files or the clock."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rondel import paths
from rondel.errors import GitError, RondelError, UsageError
from rondel.model.changes import Document, Edit
from rondel.model.codec import request_file
from rondel.model.identity import was_cut_off
from rondel.model.names import slug
from rondel.model.summary import Problem, command_line
from rondel.model.times import stamp
from rondel.model.workflow import Claim, Repairs, SessionRef, Started, unclaimed
from rondel.store import documents, files, ours
from rondel.store.changes import remove_cut_off, write_ours
from rondel.store.snapshot import DiskSnapshot
from rondel.workflows.feature import layout, place, worktrees
from rondel.workflows.feature.lint import Anomaly, lint, without_stray_brace
from rondel.workflows.feature.phases import ACTIVE, BRAINSTORM, LIMITS, SPECIFY
from rondel.workflows.feature.phases import ARTIFACTS as ARTIFACT_OF
from rondel.workflows.feature.stamps import merge_phase

if TYPE_CHECKING:
    from rondel.project import Project

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


@dataclass(frozen=True)
class FeatureOptions:
    """What a person or a program may say of a new feature."""

    title: str
    mode: str | None = None  # hotfix, quick, standard or full; else as the settings say
    description: str = ""  # what is wanted, in a few sentences
    brainstorm: str | None = None  # one that is written already
    worktree: bool = False  # make a worktree beside the repository, with the branch


def start(project: Project, options: FeatureOptions) -> Started:
    """A new feature, with a branch name of its own and, where it is asked for, a worktree."""
    if options.worktree:
        worktrees.require_commit(project.look)
    ref = start_feature(
        project.root,
        options.title,
        mode=options.mode or str(project.settings("feature")["mode"]),
        description=options.description,
        brainstorm=options.brainstorm,
        at=project.look.at,
        claim=project.claim,
        is_begun=project.is_recorded,
    )
    project.begin(ref, new=True)
    notes, branch = list[str](), project.state(ref).branch
    if (own := project.running.own_branch(ref)) is not None:
        notes.append(f"the branch {branch} is there and holds other work; this feature's code goes to {own}")
        project.change(ref, [Edit(layout.META, lambda meta: {**meta, "branch": own})])
        branch = own
    if options.worktree:
        try:
            path = worktrees.add(project.look, ref.id, branch)
        except GitError as e:
            gives_up = command_line("feature", "finish", ref.id, "--abandon")
            raise RondelError(
                f"{ref.name} is there, but without a worktree: {e}; go on without one, or give it up "
                f"(`{gives_up}`) and start again"
            ) from e
        project.change(ref, [Edit(layout.META, lambda meta: {**meta, "worktree": path})])
        notes.append(f"worktree: {place.resolve(str(project.root), path)}")
    return Started(ref, tuple(notes))


def start_feature(
    root: Path,
    title: str,
    *,
    mode: str = "standard",
    description: str = "",
    brainstorm: str | None = None,
    at: datetime | None = None,
    claim: Claim = unclaimed,
    is_begun: Callable[[SessionRef], bool] = lambda _: False,
) -> SessionRef:
    """A new feature: its folder, its id, its `.meta.json`, which is written last.

    No two features get the same id, however many are started at once. A hotfix gets a short
    specification, so that it can be implemented at once. What is left of one that `is_begun`
    here, and was killed before it was there, goes.
    """
    name = " ".join(title.split())
    if not name:
        raise UsageError("a feature needs a title")
    if mode.lower() not in LIMITS:
        raise UsageError(f"no mode {mode!r}; there are: {', '.join(LIMITS)}")
    parent = root / layout.FEATURES
    files.make_folder(parent)
    now, short = stamp(at or datetime.now(UTC)), slug(name, fallback="feature")
    with documents.locked(parent):
        for left in paths.names(parent):
            is_there = paths.is_there(parent / left / layout.META)
            if _ID.match(left) and not is_there and is_begun(_ref(left)):
                remove_cut_off(parent / left)
        number = f"{_highest(parent) + 1:03d}"
        ref = _ref(f"{number}-{short}")
        claim(ref)  # before there is a folder: one that a kill leaves is known by it
        folder = files.claim_folder(parent, [ref.id])
        with files.whole_or_gone(folder):
            meta = _new_meta(number, name, short, mode.lower(), now)
            _fill(folder, meta, description, brainstorm)
    return ref


def _ref(name: str) -> SessionRef:
    return SessionRef("feature", name, f"{layout.FEATURES}/{name}")


def _fill(folder: Path, meta: Document, description: str, brainstorm: str | None) -> None:
    """The files of a new feature; the one that it is known by is written last."""
    name, now = str(meta["name"]), str(meta["created"])
    request: Document = {"command": "start", "title": name, "description": description.strip(), "at": now}
    files.make_folder(folder / ".rondel")
    ours.keep_out_of_git(folder / ".rondel")
    files.write(folder / request_file(1), documents.dump(request))
    if brainstorm is not None:
        files.write(folder / ARTIFACT_OF[BRAINSTORM], brainstorm.encode())
        done: Document = {"started": now, "completed": now, "iterations": 0}
        meta = {**meta, "phases": {BRAINSTORM: done}, "currentPhase": BRAINSTORM}
    if meta["mode"] == "hotfix":
        write_ours(folder, {ARTIFACT_OF[SPECIFY]: _short_spec(name, description)})
    files.write(folder / layout.META, documents.dump(meta))


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
        if data is None or without_stray_brace(data) is None:
            continue
        if repair(f"feature:{name}", spot := _free_spot(folder)) and (kept := repair_meta(folder, spot)):
            message = f"one brace was too many; the original is {kept}"
            yield f"feature:{name}", Problem("invalid-json", layout.META, message, repaired=True)


def lost(root: Path) -> Iterator[tuple[str, Problem]]:
    """Features that were worked on and have lost their document: no other command sees them any more."""
    for name in paths.names(root / layout.FEATURES):
        folder = root / layout.FEATURES / name
        begun = _ID.match(name) and paths.is_there(folder / ".rondel/request-1.json")
        if begun and not paths.is_there(folder / layout.META) and not was_cut_off(DiskSnapshot(folder)):
            repair = f"`git log -- {layout.FEATURES}/{folder.name}` may have it, or put one there by hand"
            yield (
                f"feature:{folder.name}",
                Problem("meta-missing", layout.META, "there is none, and without it no feature", repair),
            )


def repair_meta(folder: Path, spot: str | None = None) -> str | None:
    """Mend a `.meta.json` that has one brace too many; the original is kept under the name given back.

    That is `spot`, where nothing is there yet, or else the next free name.
    """
    path = folder / layout.META
    with documents.locked(folder):
        data = files.read(path)
        mended = without_stray_brace(data) if data is not None else None
        if data is None or mended is None:
            return None
        kept = spot if spot and not paths.is_there(folder / spot) else _free_spot(folder)
        files.write(folder / kept, data)
        files.write(path, mended)
        return kept


def _free_spot(folder: Path) -> str:
    names = (f".meta.invalid-{number}.json" for number in itertools.count(1))
    return next(name for name in names if not paths.is_there(folder / name))
