"""Opening a review: the one module of this workflow that touches files and the clock."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rondel import paths
from rondel.errors import NothingToDo, UsageError
from rondel.model.changes import Change, Document, Edit, Write
from rondel.model.codec import encode, request_file, requests_in
from rondel.model.names import digest
from rondel.model.refs import END
from rondel.model.snapshot import FrozenSnapshot
from rondel.model.times import stamp
from rondel.model.trouble import machine
from rondel.model.workflow import RepoReader, SessionRef, Started
from rondel.store import documents, files, ours
from rondel.store.changes import apply_in
from rondel.store.lease import Lease
from rondel.store.locks import locked
from rondel.store.snapshot import DiskSnapshot
from rondel.workflows.review import layout
from rondel.workflows.review.change import parse_diff
from rondel.workflows.review.layout import Phase, Resolution, RoundFiles, round_files, session_name
from rondel.workflows.review.probes import files_at, is_empty, is_same, look_moved
from rondel.workflows.review.read import ReviewState, carried_into, noted, phase_due
from rondel.workflows.review.request import (
    Request,
    ResolvedOptions,
    ReviewOptions,
    own_personas,
    request_for,
    request_from,
    team_of,
)
from rondel.workflows.review.steps import is_noted
from rondel.workflows.review.target import (
    Kind,
    Pins,
    Target,
    nothing,
    parse_target,
    pin,
    pins_of,
    shipped,
    without_filter,
)
from rondel.workflows.review.workflow import Review

if TYPE_CHECKING:
    from rondel.project import Project

AGAIN_MAX = 50
KEPT_MAX = 1000  # texts that were replaced in one round
SET_ASIDE = "set-aside"  # of a round that was begun anew
REQUIREMENTS_MAX = 1_000_000
GIVEN_MAX = 50_000_000


@dataclass(frozen=True)
class Opened:
    """A session that is ready to run, and the lease under which that was written."""

    ref: SessionRef
    round: int
    resumed: bool
    notes: tuple[str, ...] = ()
    lease: Lease | None = None


def place(
    root: Path, branch: str, day: date, taken: Container[str] = (), owner: Project | None = None
) -> SessionRef:
    """The session of a branch on a day, whether it is there yet or not.

    Two branches that would share a folder get different ones: the branch is recorded in
    `state.json`; where it is not, the folder is ours. Folders that are `taken` are nobody's.
    """
    for again in range(1, AGAIN_MAX):
        name = session_name(day, branch, again)
        ref = SessionRef(Review.name, name, f"{layout.SESSIONS}/{name}")
        state = state_of(root, ref, owner)
        if ref.folder not in taken and state.branch in (None, branch) and not state.is_flat:
            return ref
    raise UsageError(
        f"there are more than {AGAIN_MAX} sessions of {day} for {branch!r}; close or delete some"
    )


def state_of(root: Path, ref: SessionRef, owner: Project | None = None) -> ReviewState:
    """What the files of a session show; to its owner, as far as they count."""
    return ReviewState(ref, owner.files(ref) if owner else DiskSnapshot(root / ref.folder))


def resolve(
    root: Path, look: RepoReader, branch: str, owner: Project | None = None
) -> tuple[SessionRef, Resolution]:
    """What the next run would do. Writes nothing."""
    state = state_of(root, place(root, branch, _today(look), owner=owner), owner)
    if not state.rounds and (earlier := _unfinished(root, branch, owner)):
        state = _about(earlier, pin(Target(), look, dry=True), look) or state
    return state.ref, state.resolution


def sessions_of(root: Path, branch: str, owner: Project | None = None) -> list[ReviewState]:
    """The sessions of a branch, newest first."""
    found = [state_of(root, ref, owner) for ref in Review().sessions(DiskSnapshot(root))]
    ours = [s for s in found if s.branch == branch or (s.branch is None and _named_for(s.ref.id, branch))]
    return sorted(ours, key=lambda s: (layout.day_of(s.ref.id) or "", s.ref.id), reverse=True)


def _named_for(session: str, branch: str) -> bool:
    try:
        day = date.fromisoformat(layout.day_of(session) or "")
    except ValueError:
        return False
    return session == session_name(day, branch)


def _today(look: RepoReader) -> date:
    return look.at.astimezone().date()


@dataclass(frozen=True)
class _Opening:
    """What a session is opened with: what was asked for, the change it means now, and who asks."""

    root: Path
    look: RepoReader
    options: ResolvedOptions
    pins: Pins
    owner: Project | None

    def state(self, ref: SessionRef) -> ReviewState:
        return state_of(self.root, ref, self.owner)

    def write(self, ref: SessionRef, changes: Sequence[Change]) -> None:
        apply = self.owner.change if self.owner else partial(apply_in, self.root)
        apply(ref, changes)

    def place(self, taken: Container[str]) -> ReviewState:
        ref = place(self.root, self.pins.branch, _today(self.look), taken, self.owner)
        return self.state(ref)


def start(project: Project, options: ReviewOptions) -> Started:
    """Take up the review that is asked for; its lease is held until it runs."""
    target = parse_target(options.target, options.pr, lambda name: Path(name).is_file())
    wanted = options.requirements
    resolved = ResolvedOptions(
        target=target,
        given=read_diff(Path(target.file), project.root) if target.kind is Kind.DIFF else "",
        team=options.team,
        one_offs=options.reviewers,
        requirements=read_requirements(Path(wanted), project.root) if wanted else None,
        quick=options.quick,
        again=options.again,
        restart=options.restart,
        settings=project.settings(Review.name),
        kind_of=lambda role: project.config.agent_for(role).kind,
    )
    opened = open_round(project.root, project.look, resolved, project)
    with ExitStack() as stack:
        if opened.lease is not None:
            stack.enter_context(opened.lease)
        is_new = state_of(project.root, opened.ref, project).last_complete() is None
        project.begin(opened.ref, opened.lease, new=is_new)
        stack.pop_all()
    return Started(opened.ref, opened.notes, opened.lease)


def open_round(
    root: Path, look: RepoReader, options: ResolvedOptions, owner: Project | None = None
) -> Opened:
    """Resume the unfinished round of this change's branch, or open the next. NothingToDo writes nothing.

    A session is changed only with its lease. One that the `owner` took is given back with it.
    """
    pins = pin(options.target, look, given=options.given)
    if owner:
        change = None if pins.given else (pins.base, pins.head)
        options = replace(options, settings=owner.settings_for(Review.name, change))
    options = replace(options, personas=personas_of(root, pins, look))
    team_of(options)  # a team that cannot be is refused before anything is written
    opening = _Opening(root, look, options, pins, owner)
    taken = _brought(pins, look, owner)
    state = opening.place(taken)
    under_way = bool(state.rounds) and not state.is_complete and not options.restart
    if not under_way and _is_nothing(pins, look):
        raise nothing(options.target, pins.left_out)
    files.make_folder(root / layout.SESSIONS)
    with locked(root / layout.SESSIONS):
        state = opening.place(taken)
        if not state.rounds and not options.restart:
            earlier = [s for s in _unfinished(root, pins.branch, owner) if s.ref.folder not in taken]
            state = _about(earlier, pins, look) or state
        if not paths.is_folder(root / state.ref.folder):  # nobody can drive it before we leave the lock
            with files.whole_or_gone(root / state.ref.folder):
                opened = _open(opening, state)
            return replace(opened, lease=owner.hold(opened.ref) if owner else None)
        if owner is None:
            return _resume_or_open(opening, opening.state(state.ref))
        with ExitStack() as stack:
            lease = stack.enter_context(owner.hold(state.ref))
            opened = _resume_or_open(opening, opening.state(state.ref))
            stack.pop_all()
            return replace(opened, lease=lease)


def _brought(pins: Pins, look: RepoReader, owner: Project | None) -> frozenset[str]:
    """The sessions that come with the change and are not the owner's: reviewed, and counting for nothing.

    Also where the owner's word for this process would adopt any other one.
    """
    if owner is None:
        return frozenset()
    folders = shipped(pins, look)
    return frozenset(
        f for f in folders if not owner.is_recorded(SessionRef(Review.name, f.rpartition("/")[2], f))
    )


def _resume_or_open(opening: _Opening, state: ReviewState) -> Opened:
    if state.rounds and not state.is_complete:
        if not opening.options.restart:
            return _go_on(opening, state)
        _set_round_aside(opening.root, state)
        state = opening.state(state.ref)
    return _open(opening, state)


def _is_nothing(pins: Pins, look: RepoReader) -> bool:
    """Whether there is no change to a file: an empty diff, or a text that is none, is not a passed review."""
    return not parse_diff(pins.given) if pins.given else is_empty(pins.base, pins.head, look)


def _unfinished(root: Path, branch: str, owner: Project | None) -> list[ReviewState]:
    """The sessions of a branch whose last round can be gone on with, newest first."""
    return [
        s
        for s in sessions_of(root, branch, owner)
        if s.rounds and s.pins and not s.is_complete and not s.is_closed and not s.is_flat
    ]


def _about(sessions: Iterable[ReviewState], pins: Pins, look: RepoReader) -> ReviewState | None:
    """The first session whose last round is about exactly this change."""
    return next((s for s in sessions if _is_about(s, s.at, pins, look)), None)


def _is_about(state: ReviewState, at: RoundFiles, pins: Pins, look: RepoReader) -> bool:
    """Whether a round is about exactly this change: the same commits, and the same diff if one was given."""
    before = pins_of(state.files.json(at.part("target.json")))
    given = state.files.digest(at.part("given.diff"))
    same_diff = given == (digest(_bytes(pins.given)) if pins.given else None)
    return before is not None and same_diff and is_same(before, pins, look)


# -- going on --------------------------------------------------------------------------------


def _go_on(opening: _Opening, state: ReviewState) -> Opened:
    """Resume a round as it was asked for; a new team is a new request for the same round."""
    options, pins = opening.options, opening.pins
    number, pinned = state.at.number, state.pins
    if pinned is None or not requests_in(state.files):
        _write_request(opening, state, _request(opening, state), pins, number)
    elif options.changes_the_team or options.requirements is not None:
        old, new = request_for(state.files, number), _request(opening, state)
        opened_at = old.opened_at or new.opened_at
        kept = replace(new, target=old.target, carried=old.carried, since=old.since, opened_at=opened_at)
        _write_request(opening, state, kept, None, number)
        if options.requirements is not None:
            _write_requirements(opening, state, options.requirements)
    if state.is_closed:
        _note(opening, state, (phase_due(state), number))
    notes = []
    if pinned is not None and not _is_about(state, state.at, pins, opening.look):
        moved = look_moved(options.target, pinned.base, pinned.head, opening.look)
        words = moved.get("words") or pinned.label
        notes.append(
            f"round {number} is unfinished and keeps to what it pinned ({words}); "
            "the next round takes the rest, or --restart begins it anew"
        )
    return Opened(state.ref, number, resumed=True, notes=tuple(notes))


def _set_round_aside(root: Path, state: ReviewState) -> None:
    """Put an unfinished round out of the way, under a name that says so."""
    folder = root / state.ref.folder
    at = state.at
    if paths.is_there(folder / at.folder):
        ours.put_aside(folder, folder / at.folder, at.folder, SET_ASIDE)
    _set_parts_aside(folder, at.number)


def _set_parts_aside(folder: Path, number: int) -> None:
    """Parts of a round that is gone belong to nobody: they are kept under another name.

    What only an opening that was cut short left there is written again, and no more.
    """
    parts = f"{layout.PARTS}/round-{number}"
    if DiskSnapshot(folder / parts).names() - {"target.json", "given.diff"}:
        ours.put_aside(folder, folder / parts, parts, SET_ASIDE)


# -- opening ---------------------------------------------------------------------------------


def _open(opening: _Opening, state: ReviewState) -> Opened:
    """Open the next round. Its folder is made last: until then it does not exist."""
    root, look, options, pins = opening.root, opening.look, opening.options, opening.pins
    folder, number = root / state.ref.folder, state.resolution.current_round
    last = state.last_complete()
    if last and not options.again and _is_about(state, last.files, pins, look):
        done = last.number
        if not is_noted(state, Phase.COMPLETE):
            _note(opening, state, (Phase.COMPLETE, done))
        raise NothingToDo(
            f"nothing changed since round {done} of {state.ref.name}; "
            "`rondel review show` shows it, `rondel review --again` reviews the same change once more"
        )
    limit = options.settings.get("rounds_max")
    if isinstance(limit, int) and 0 < limit < number:
        raise UsageError(
            f"round {number} would be more than review.rounds_max = {limit}; "
            f"raise it, or close the session: rondel review close"
        )
    request = _request(opening, state)
    if opening.owner and not folder.is_dir():
        opening.owner.claim(state.ref)
    ours.own(folder / layout.RONDEL, is_folder=True)
    _set_parts_aside(folder, number)
    _keep_accepted(opening, state)
    if options.requirements is not None:
        _write_requirements(opening, state, options.requirements)
    _write_request(opening, state, request, pins, number)
    name = f"refs/rondel/review/{state.ref.id}/round-{number}"
    look.git("update-ref", END, name, pins.head, check=False)
    files.make_folder(folder / round_files(number).reviews)
    _note(opening, state, (Phase.CONTEXT, number))
    return Opened(state.ref, number, resumed=False, notes=tuple(_notes(opening, request)))


def _notes(opening: _Opening, request: Request) -> Iterator[str]:
    """What a person should know of the round that was opened."""
    if request.carried:
        yield f"{len(request.carried)} open findings are carried into this round"
    if opening.options.personas != own_personas(DiskSnapshot(opening.root)):
        yield f"{layout.PERSONAS} is changed by what is reviewed: reviewers are those of its base"
    if (opening.root / layout.PERSONAS).is_symlink():
        yield f"{layout.PERSONAS} is behind a symbolic link: the reviewers in it are not read"
    if opening.pins.left_out:
        yield without_filter(opening.pins.left_out)


def _counting(opening: _Opening, branch: str) -> Iterator[ReviewState]:
    """The sessions of a branch that are the owner's, as far as they count, newest first."""
    for state in sessions_of(opening.root, branch, opening.owner):
        if opening.owner is None or opening.owner.is_recorded(state.ref):
            yield state


def _keep_accepted(opening: _Opening, state: ReviewState) -> None:
    """What a person accepted on this branch on another day stays so: a new session gets the decisions."""
    if state.rounds:
        return
    folder, owner = opening.root / state.ref.folder, opening.owner
    for earlier in _counting(opening, opening.pins.branch):
        for name in sorted(n for n in earlier.files.names(layout.DECISIONS) if n.startswith("accept-")):
            path = f"{layout.DECISIONS}/{name}"
            data = earlier.files.data(path)
            if data is not None and not paths.is_file(folder / path):
                ours.write(folder, path, owner.seal(state.ref, path, data) if owner else data)


def _bytes(text: str) -> bytes:
    return (text if text.endswith("\n") else text + "\n").encode("utf-8", "replace")


def _request(opening: _Opening, state: ReviewState) -> Request:
    """Everything that running and resuming the round needs."""
    earlier = _counting(opening, state.branch or opening.pins.branch)
    carried, since = carried_into(state, earlier)
    return request_from(
        opening.options, state.resolution.current_round, carried, since, stamp(opening.look.at)
    )


def personas_of(root: Path, pins: Pins, look: RepoReader) -> dict[str, str]:
    """The repository's own reviewers: at the base of a change that touches them, else where they are."""
    spec = f":(top,literal){layout.PERSONAS}"
    names = look.git("diff", "--name-only", "--no-renames", "-z", END, pins.base, pins.head, "--", spec)
    if pins.given or not names:
        return own_personas(DiskSnapshot(root))
    there = files_at(pins.base, look)
    found = {name: there.content(name) for name in there.names if name.startswith(f"{layout.PERSONAS}/")}
    return own_personas(FrozenSnapshot({name: data for name, data in found.items() if data is not None}))


def _write_request(
    opening: _Opening, state: ReviewState, request: Request, pins: Pins | None, number: int
) -> None:
    """The pins, then the request: it is what makes a session one that can be resumed."""
    at, changes = round_files(number), list[Change]()
    if pins is not None:
        if pins.given:
            changes.append(Write(at.part("given.diff"), _bytes(pins.given)))
        changes.append(Write(at.part("target.json"), documents.dump(pins.document())))
    body = {**encode(request), "round": number}
    path = request_file(max(requests_in(DiskSnapshot(opening.root / state.ref.folder)), default=0) + 1)
    opening.write(state.ref, [*changes, Write(path, documents.dump(body))])


def _write_requirements(opening: _Opening, state: ReviewState, text: str) -> None:
    """`requirements.md`; an old one is kept among the parts of its round."""
    old, new = state.files.data(layout.REQUIREMENTS), _bytes(text)
    changes = list[Change]()
    if old is not None and old != new:
        kept = round_files(max(1, state.at.number)).part(layout.REQUIREMENTS)
        spots = [kept, *(f"{kept}.{n}" for n in range(2, KEPT_MAX))]
        spot = next(s for s in spots if state.files.data(s) in (None, old))
        changes.append(Write(spot, old))
    opening.write(state.ref, [*changes, Write(layout.REQUIREMENTS, new)])


def _note(opening: _Opening, state: ReviewState, due: tuple[Phase, int]) -> None:
    """`state.json` says the phase and the round that are due; one that is damaged is put aside."""
    folder, now = opening.root / state.ref.folder, stamp(opening.look.at)
    path = ours.document(folder, layout.STATE)
    if state.document is None and paths.is_file(path):
        ours.put_aside(folder, path, layout.STATE)

    def change(document: Document) -> Document:
        branch = opening.pins.branch
        return {**noted(document, state.ref.id, due, now), "status": "active", "branch": branch}

    opening.write(state.ref, [Edit(layout.STATE, change)])


def refuse_flat(state: ReviewState) -> None:
    """An old session without rounds is left alone."""
    if state.is_flat:
        name = state.ref.name
        raise UsageError(f"{name} is an old session without rounds: it is never open, and left alone")


def close(root: Path, ref: SessionRef, now: str, owner: Project | None = None) -> None:
    """`status` becomes closed; everything else stays."""

    def change(document: Document) -> Document:
        return {**document, "status": "closed", "updated_at": now}

    apply = owner.change if owner else partial(apply_in, root)
    apply(ref, [Edit(layout.STATE, change)])


def dump(document: Document) -> str:
    """A document as it is written."""
    return documents.dump(document).decode()


def write_text(path: Path, content: str) -> None:
    """A file a person asked for, wherever that is."""
    folder = path.absolute().parent.resolve()
    files.make_folder(folder)
    files.write(folder / path.name, content.encode())


def read_requirements(path: Path, root: Path) -> str:
    """The requirements of a file; UsageError when it cannot be read as text."""
    return _read(path, REQUIREMENTS_MAX, "requirements", root)


def read_diff(path: Path, root: Path) -> str:
    """A diff from a file; UsageError when it cannot be read."""
    return _read(path, GIVEN_MAX, "a diff", root)


def read_review(path: Path) -> str:
    """A review from a file; UsageError when it cannot be read."""
    return _read(path, GIVEN_MAX, "a review")


def _read(path: Path, size_max: int, what: str, root: Path | None = None) -> str:
    """A person may name a file anywhere; a link in the repository that leads out of it is refused."""
    if root is not None and _leads_out(path, root):
        words = "is behind a link that leads out of the repository; name the file itself"
        raise UsageError(f"{str(path)!r} {words}")
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder; name a file to take {what} from")
    try:
        with machine("read", path):
            data = paths.read_elsewhere(path, size_max)
    except FileNotFoundError:
        raise UsageError(f"there is no file {str(path)!r} to take {what} from") from None
    except OSError as e:
        raise UsageError(f"cannot read {str(path)!r}: {e.strerror}") from e
    return data.decode(errors="replace")


def _leads_out(path: Path, root: Path) -> bool:
    """Whether a link inside the repository is on the path and points to somewhere outside."""
    top = root.resolve()
    try:
        links = [p for p in (path.absolute(), *path.absolute().parents) if p.is_symlink()]
        return any(
            p.parent.resolve().is_relative_to(top) and not p.resolve().is_relative_to(top) for p in links
        )
    except (OSError, RuntimeError):  # a link that leads to itself
        return True
