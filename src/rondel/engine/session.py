"""An open session: its folder, what the files show, its journal and its lease."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Generic, TypeVar

from rondel import paths
from rondel.engine import kept
from rondel.engine.ledger import Ledger
from rondel.engine.lost import identity_in_commits
from rondel.errors import LostLease, NeedsConsent, NewerFile, RondelError
from rondel.model.changes import Aside, Change, Edit, Write, touched_by
from rondel.model.decisions import ADOPTED, is_decision
from rondel.model.identity import IDENTITY, Identity, identity_of
from rondel.model.jsons import parse_json
from rondel.model.marks import WRITTEN
from rondel.model.names import digest
from rondel.model.refs import branch_in
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, Status
from rondel.model.times import stamp
from rondel.model.versions import VERSION, newer
from rondel.model.workflow import NOTHING_GIVEN, Given, Mark, RepoReader, SessionRef, Workflow
from rondel.processes import reaper
from rondel.store import documents, files, journal, ours
from rondel.store.changes import Applied, Kept, Written, apply_changes, write_ours
from rondel.store.documents import Committed
from rondel.store.journal import Journal, KnownLog
from rondel.store.lease import Lease
from rondel.store.ours import ASIDE, HOME, RECORD, RESTORED, Restored
from rondel.store.snapshot import DiskSnapshot
from rondel.trust.doubts import Doubts
from rondel.trust.seals import Believed, Seals, decisions_in
from rondel.trust.sessions import ADOPTING, BEGUN, KnownSession, Record, Sessions

S = TypeVar("S")

HEAL_MAX = 5  # how often a document is put back for one change before that is given up


class Session(Generic[S]):
    """One session folder and the state it shows, read again only after something changed."""

    def __init__(
        self,
        root: Path,
        ref: SessionRef,
        workflow: Workflow[S],
        given: Given = NOTHING_GIVEN,
        known: KnownSession | None = None,
    ) -> None:
        """`known` is where the session is on record as one of this person's, and where its runtime is."""
        self.root = root
        self.known = known or Sessions(root).of(ref)
        if known is None:
            self.known.sessions.home(make=True)
        self.ref = ref
        self.workflow = workflow
        self._given = given
        self.folder = files.safe_join(root, ref.folder)
        if not paths.is_folder(self.folder):
            if not any(paths.is_file(self.folder.parent / name) for name in ref.beside):
                raise RondelError(f"session {ref.name} has no folder {ref.folder}; see `rondel status`")
            files.make_folder(self.folder)
        self.files = DiskSnapshot(self.folder, ref.beside)
        self.seals = Seals(self.known)
        self.run = self.known.runtime
        self._written = Written(self.folder)
        self.doubts = Doubts(self.run, ref.name, self._written.ours)
        self.shown = Believed(self.files, self.seals, self.doubts)  # what the workflow sees
        self.journal = Journal(self.run / journal.NAME)
        self._records = (KnownLog(self.folder / RECORD), KnownLog(self.run / RESTORED))
        self._identity: Identity | None = None
        self._committed: Committed | None = None  # what a driver knows to be good
        self._say: Callable[[str, dict[str, object]], None] = self.note
        self._damaged = False  # before anything was remembered: that is not ours to put back
        self._fixed: frozenset[str] = frozenset()  # whose it is and what it is for: the driver keeps to that
        self._state: S | None = None
        self._changed: set[str] = set()  # what we wrote, or saw changed, since the state was read
        self._looked = False  # at the disk, since the state was read

    @cached_property
    def ledger(self) -> Ledger:
        """What the journal says. First read when it is needed: a driver reads it with the lease in hand."""
        return Ledger(self.journal.news())

    @property
    def identity(self) -> Identity:
        """Whose work this is, as it was when the driver began, whatever is written into the file since."""
        if self._identity is None:
            raise RondelError(
                f"session {self.ref.name} was never begun; `rondel resume {self.ref.name}` does it"
            )
        return self._identity

    def begin(self, look: RepoReader, lease: Lease | None = None, *, new: bool = False) -> Identity:
        """Give the session an identity of its own, where it is begun; one that has one keeps it.

        One that is not `new` is adopted: what it says is done was said before anybody signed it.

        A file that is gone or cannot be read is written again as it is on record here; where nobody
        knows, what is kept aside of it is all there is, and the session begins anew.
        """
        self.files.forget(IDENTITY)
        self._identity = identity_of(self.files.json(IDENTITY))
        on_record = self.known.read(self.files)
        if lease is None and new:
            self.known.refuse_driven()
        if self._identity is None:
            self._begin(look, lease, on_record, new=new)
        elif on_record is not None and on_record.identity.id == self._identity.id:
            # Where it goes and what it may lack is what the person said, whatever a commit says.
            self._identity = on_record.identity
            if on_record.open or not self.known.is_recorded_here:
                self.known.record(self._identity, on_record.how, look.at)
        return self.identity

    def _begin(self, look: RepoReader, lease: Lease | None, on_record: Record | None, *, new: bool) -> None:
        """Give a session an identity that shows none: the one it had, or a new one."""
        is_recorded = on_record is not None and (
            on_record.open or (not new and bool(self._written.ours(IDENTITY)))
        )
        if on_record is not None and on_record.identity.id in self._taken():  # it was copied from another one
            is_recorded = False
        if on_record is not None and is_recorded:
            self.identify(on_record.identity, look, lease)
            if not on_record.open:
                ours.note(self.folder, [Restored(IDENTITY, "it is gone or cannot be read", "")])
        elif not new:
            self._take_back(look, lease)
        if self._identity is None:
            is_lost = not new and (bool(self._marks) or self._written.went_on(IDENTITY))
            fresh = new_identity(self.ref.workflow, look)
            self.identify(replace(fresh, lost=is_lost, adopted=not new), look, lease, new=new)
            if is_lost:
                ours.note(self.folder, [Restored(IDENTITY, "its id is lost; the session has a new one", "")])

    @property
    def _marks(self) -> list[Mark]:
        return list(self.workflow.marks(self.state))

    def _take_back(self, look: RepoReader, lease: Lease | None) -> None:
        """The id that the session's commits show, where its own file and the journal are gone."""
        found = identity_in_commits(look, self.ref.workflow, self._marks, self._taken())
        if found is not None:
            self.identify(found, look, lease)
            ours.note(self.folder, [Restored(IDENTITY, "it is gone; the session's commits show its id", "")])

    def _taken(self) -> frozenset[str]:
        """The ids of the sessions beside this one."""
        beside = [
            p
            for n in paths.names(self.folder.parent)
            if paths.is_file(p := self.folder.parent / n / IDENTITY)
        ]
        known = (identity_of(parse_json(files.read(path) or b"")) for path in beside)
        return frozenset(identity.id for identity in known if identity is not None)

    def identify(
        self, identity: Identity, look: RepoReader, lease: Lease | None = None, *, new: bool = False
    ) -> None:
        """Write an identity; a file that was there and is not ours is kept aside.

        It is on record before it is in the folder: whoever dies in between has left no foreign session.
        """
        on_record = self.known.read(self.files)
        how = on_record.how if on_record else BEGUN if new else ADOPTING
        self.known.record(identity, how, look.at, is_open=not self.files.exists(IDENTITY))
        self.__dict__.pop("ledger", None)  # the runtime of another session is gone
        self.journal = Journal(self.run / journal.NAME)
        self.doubts.read()
        self.apply_changes([Write(IDENTITY, documents.dump(identity.document()))], {}, lease)
        self._identity = identity

    @property
    def state(self) -> S:
        """What the files show now; for a driver, after what was damaged has been put back."""
        if self._state is not None and not self._changed and not self._looked:
            return self._state
        theirs = self._put_back()
        state = self._read()
        if theirs and self._is_damaged(state):
            for path, before in theirs.items():
                self._restore(path, "nothing can be read from it", before)
            state = self._read()
        self._remember(state)
        return state

    def _read(self) -> S:
        """The state again, after what is known to have changed."""
        if self._state is None:
            self._state = self.workflow.read(self.shown, self.ref, self._given)
        elif self._changed or self._looked:
            changed = frozenset(self._changed)
            self._state = self.workflow.reread(self._state, self.shown, self.ref, changed, self._given)
        self._changed.clear()
        self._looked = False
        return self._state

    def check_version(self) -> None:
        """NewerFile when a newer Rondel works on this session: then it is not ours to write to."""
        for problem in newer_documents(self.files, self.workflow, self.state):
            raise NewerFile(f"{self.ref.name}: {problem.file} {problem.message}: {problem.repair}")

    # -- documents that somebody damages ------------------------------------------------

    def guard(self, say: Callable[[str, dict[str, object]], None]) -> None:
        """From now on documents that are damaged are put back, and `say` is told. For a driver."""
        self._committed = Committed(self.folder, self.ref.beside)
        self._say = say
        for record in self._records:
            record.keep = True
        self.journal.keep()
        self._written.keep()
        state = self.state
        self._damaged = self.workflow.summary(state).status is Status.DAMAGED
        self._remember(state)
        self._fixed = frozenset(_ours(self.files))

    def let_go(self) -> None:
        """The driver is at its end: hold no file open, and leave what the documents are."""
        if self._committed is not None and not self._damaged:
            kept.leave(self.run, self._committed)
        self.journal.close()
        self._written.close()

    def _is_damaged(self, state: S) -> bool:
        """Whether a change made the session one that nobody can go on with."""
        return not self._damaged and self.workflow.summary(state).status is Status.DAMAGED

    def _remember(self, state: S) -> None:
        """Take the documents that are new as they are; those that are no documents now are left alone."""
        if self._committed is None:
            return
        for path in (*self.workflow.documents(state), *_ours(self.files)):
            if path not in self._committed:
                data = self.files.data(path)
                if data is not None and self._committed.fault(path, data) is None:
                    self._committed.remember(path, data)

    def _refuse_requests(self) -> None:
        """Put aside what asks for something else: a request is written under the lease, and we have it."""
        for path in [p for p in _ours(self.files) if p not in self._fixed] if self._fixed else ():
            self._say("refused", {"file": path, "aside": self._set_aside(path, "refused")})

    def set_aside(self, paths: Iterable[str], word: str) -> None:
        """Move files of the session to `aside/`: none of them counts any more."""
        for path in paths:
            self._set_aside(path, word)

    def _set_aside(self, path: str, word: str) -> str:
        spot = ours.put_aside(self.folder, self.folder / path, path, word)
        for touched in (path, spot):
            self.files.forget(touched)
            self._changed.add(touched)
        return spot

    def _put_back(self) -> dict[str, bytes]:
        """Put back the changed documents that are damaged; of the others, what they were before."""
        theirs: dict[str, bytes] = {}
        if self._committed is None:
            return theirs
        self._refuse_requests()
        for path in self._committed.among(frozenset(self._changed)):
            data = self.files.data(path)
            why = self._committed.fault(path, data)
            if why is None and path in self._fixed and data != self._committed.last(path):
                why = "only Rondel writes it, and not while a run goes on"
            if why is not None:
                self._restore(path, why)
            elif data is not None and data != (before := self._committed.last(path)):
                theirs[path] = before
                self._committed.remember(path, data)
        return theirs

    def _restore(self, path: str, why: str, data: bytes | None = None) -> None:
        """Put one document back, and say so."""
        if self._committed is None:
            return
        if data is not None:
            self._committed.remember(path, data)
        done = self._committed.restore(path, why)
        for touched in filter(None, (path, done.aside)):
            self.files.forget(touched)
            self._changed.add(touched)
        self.say_restored()

    def say_restored(self) -> None:
        """Say what was put aside or put back since, by whomever."""
        for one in ours.restored_in(b"".join(line for record in self._records for line in record.news())):
            where = f"; what was there is in {one.aside}" if one.aside else ""
            self._say("restored", {"file": one.path, "why": one.why, "aside": where})

    def _heal(self, changes: Sequence[Change], refused: str = "") -> bool:
        """Read the documents that are to be changed; whether one had to be put back.

        Where a change was `refused`, what somebody else made of a document since is damage, too.
        """
        found = False
        for path in touched_by(changes):
            if self._committed is None or path not in self._committed:
                continue
            self.files.forget(path)
            data = self.files.data(path)
            why = self._committed.fault(path, data)
            if why is None and refused and data != self._committed.last(path):
                why = f"Rondel cannot go on from what somebody else wrote into it: {refused}"
            if why is not None:
                self._restore(path, why)
                found = True
        return found

    def refresh(self) -> None:
        """See what others changed on the disk."""
        self._changed |= self.files.refresh()
        self._looked = True

    def look_again(self, paths: Iterable[str]) -> None:
        """See what others made of these files, also where there was no time yet to look everywhere."""
        self._changed |= {path for path in paths if self.files.look_again(path)}

    def hear(self) -> bool:
        """See what others said since, in the journal or beside the folder; whether they did.

        Asked before each action, so it costs a few stats. Whoever changes a session through the
        project notes it in the journal; files beside the folder are changed by hand, and by other tools.
        """
        self.say_restored()
        return self.hear_notes()

    def hear_notes(self) -> bool:
        """The same without what was put back: nothing is, while nothing but starts."""
        news = self.journal.news()
        for event in news:
            self.ledger.note(event)
        if news:
            self.doubts.read()
            self._changed |= self.doubts.noticed  # what was seen before it was said to be ours
            self.refresh()
        return self._look_beside() or bool(news)

    def _look_beside(self) -> bool:
        if not self.ref.beside:
            return False
        before = [self.files.digest(f"../{name}") for name in self.ref.beside]
        self.files.refresh("..")
        if before == [self.files.digest(f"../{name}") for name in self.ref.beside]:
            return False
        self._changed |= {f"../{name}" for name in self.ref.beside}
        self._state = None
        return True

    # -- what is written while a program is at work that nothing confines ----------------

    def watch(self) -> None:
        """From now on only texts of ours count, and those that are there; before such a program starts."""
        if not self.doubts.is_watching:
            self.refresh()
            raw = self.workflow.read(self.files, self.ref, self._given)
            self.doubts.begin(self.files, self.paths(), self.workflow.documents(raw))

    def watch_no_more(self) -> None:
        """No such program is at work: what is doubted now waits for the person, the rest counts."""
        if self.doubts.is_watching:
            self.refresh()
            self.doubts.end(self.files, self.paths())

    def doubted(self) -> tuple[Problem, ...]:
        """The texts that wait for the person."""
        return () if self.doubts.is_idle else tuple(self.doubts.problems(self.files))

    def is_doubted(self, path: str) -> bool:
        """Whether the text at a path, as it is now, is one of them."""
        if self.doubts.is_idle:
            return False
        self.doubts.read()  # another terminal may have adopted it
        self.files.forget(path)
        return self.doubts.hides(path, self.files)

    def adopt_texts(self) -> list[str]:
        """The doubted texts count from now on; returns which they are."""
        found = self.doubts.adopt(self.files, self.paths())
        if found:
            self._state = None
            self.note("adopted", {"files": found})
        return found

    def paths(self) -> list[str]:
        """Every file of the session."""
        return [*paths.files_below(self.folder), *(f"../{name}" for name in self.ref.beside)]

    def note(self, kind: str, fields: dict[str, object], *, waits: bool = False) -> None:
        """One event into the journal and the ledger; see `Journal.add`."""
        self.ledger.note(self.journal.add(kind, waits=waits, **fields))

    def expect(self, changes: Sequence[Change]) -> bool:
        """Show the one new file of an action as if it were there; whether it is such a one.

        So what ended together is applied one after the other, and its files are written together.
        """
        if not self.doubts.is_idle or len(changes) != 1 or type(change := changes[0]) is not Write:
            return False
        documents = self._committed or ()
        if is_decision(change.path) or change.path in documents or change.path.startswith("../"):
            return False
        if not self.files.expect(change.path, change.data):
            return False
        self._changed.add(change.path)
        return True

    def apply_changes(
        self,
        changes: Sequence[Change],
        seen: Mapping[str, str | None],
        lease: Lease | None,
        *,
        together: bool = False,
    ) -> tuple[dict[str, str], Sequence[Kept]]:
        """Leave the files; returns what was written by digest, and what of somebody else's was kept.

        `seen` holds the digests that declared files had when the action began. With `together` these
        are the files of several actions, each of which was expected.
        """
        if lease is None and changes:
            self.check_version()
        changes = [self._sealed(change, lease) for change in changes]
        try:
            applied = self._apply(changes, seen, lease, together=together)
            if lease is None:  # a driver may have begun to watch meanwhile
                self.doubts.read()
                self.doubts.spare(_unrecorded(changes))
        finally:
            for path in (*touched_by(changes), WRITTEN, ASIDE):
                self.files.forget(path)
            self._changed.update(touched_by(changes))
        if any(isinstance(change, Aside) and is_decision(change.path) for change in changes):
            self.seals.take_as_they_are(self.files)
        wrote = {c.path: digest(c.data) for c in applied.changes if isinstance(c, Write)}
        return {p: d for p, d in wrote.items() if not p.startswith(ASIDE)}, applied.kept

    def seal_anew(self, at: datetime) -> None:
        """Seal every decision that is there: the person adopts them, each as its giver wrote it."""
        for path in decisions_in(self.files):
            body = self.files.json(path)
            if isinstance(body, dict):
                data = documents.dump({**body, ADOPTED: stamp(at)})
                write_ours(self.folder, {path: self.seals.sealed(path, data, self.files).decode()})
                self.files.forget(path)
                self._changed.add(path)
        self.seals.take_as_they_are(self.files)

    def _sealed(self, change: Change, lease: Lease | None) -> Change:
        """A decision gets the person's seal when it is written, by their command or by their driver."""
        if not isinstance(change, Write) or not is_decision(change.path):
            return change
        if lease is None and os.environ.get(reaper.MARK):
            raise NeedsConsent(
                "this was typed by something that Rondel started; only you decide, at a terminal"
            )
        return replace(change, data=self.seals.sealed(change.path, change.data, self.files))

    def _apply(
        self,
        changes: Sequence[Change],
        seen: Mapping[str, str | None],
        lease: Lease | None,
        *,
        together: bool = False,
    ) -> Applied:
        """Carry out changes; where a document is damaged, again after it has been put back."""
        self.doubts.spare(_unrecorded(changes))
        good = self._committed
        moved = {change.path for change in changes if isinstance(change, Aside)}
        known = frozenset(
            p for p in touched_by(changes) if good is not None and good.holds_something(p) and p not in moved
        )
        if good is not None and not all(map(good.looks_whole, known)):
            self._heal(changes)
        for left in reversed(range(HEAL_MAX)):
            try:
                return apply_changes(
                    self.folder,
                    changes,
                    written=self._written,
                    seen=seen,
                    beside=self.ref.beside,
                    guard=lease.check if lease else None,
                    after=partial(self._was_written, changes),
                    known=known,
                    version=self.workflow.schema_version,
                    together=together,
                )
            except (LostLease, NewerFile):
                raise
            except RondelError as error:
                if not left or not (self._heal(changes) or self._heal(changes, str(error))):
                    raise
        raise AssertionError("the last try returns or raises")

    def _was_written(self, changes: Sequence[Change], path: str, data: bytes | None) -> None:
        """Remember what we left, and that what we moved away is not missing."""
        if self._committed is None:
            return
        if any(isinstance(change, Aside) and change.path == path for change in changes) and data is None:
            self._committed.forget(path)
        elif data and (
            path in self._committed or any(isinstance(c, Edit) and c.path == path for c in changes)
        ):
            self._committed.remember(path, data)


def new_identity(workflow: str, look: RepoReader) -> Identity:
    """The identity of a session that begins now, on the branch that is checked out."""
    branch = branch_in(look.git("symbolic-ref", "--quiet", "HEAD", check=False))
    base = look.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).strip()
    return Identity(f"{workflow}-{secrets.token_hex(8)}", branch or None, base or None, stamp(look.at))


def newer_documents(files: Snapshot, workflow: Workflow[S], state: S) -> tuple[Problem, ...]:
    """The documents of a session that a newer Rondel wrote."""
    versions = [
        *((path, workflow.schema_version) for path in workflow.documents(state) if path.endswith(".json")),
        *((path, VERSION) for path in _ours(files)),
    ]
    return tuple(
        Problem(
            "newer-version",
            path,
            f"is of a newer version (schema_version {found}; this Rondel knows {known}) and is left as it is",
            "upgrade Rondel",
        )
        for path, known in versions
        if (found := newer(files.json(path), known)) is not None
    )


def _ours(files: Snapshot) -> Iterator[str]:
    """The documents that every session has: its own id, and what a person asked for."""
    for name in files.names(HOME):
        if name == "session.json" or (name.startswith("request-") and name.endswith(".json")):
            yield f"{HOME}/{name}"


def restored(*records: bytes | None) -> tuple[Problem, ...]:
    """What had to be put aside or put back in a session since it was last taken, as its records say."""
    return tuple(
        Problem(
            "document-restored",
            one.path,
            f"it was damaged ({one.why}), and was put back as it was last known"
            + (f"; what was there is in {one.aside}" if one.aside else ""),
            "nothing to do; find out who damaged it",
        )
        for record in records
        for one in ours.restored_in(record)
    )


def _unrecorded(changes: Sequence[Change]) -> Iterator[str]:
    """The files that hold something else after these changes without a text on record."""
    return touched_by([change for change in changes if not isinstance(change, Write)])
