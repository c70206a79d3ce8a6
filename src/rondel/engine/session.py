"""An open session: its folder, what the files show, its journal and its lease."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from rondel.engine.ledger import Ledger
from rondel.errors import RondelError
from rondel.model.changes import Aside, Change, Edit, Write
from rondel.model.digests import digest
from rondel.model.identity import IDENTITY, Identity, identity_of
from rondel.model.times import stamp
from rondel.model.workflow import NOTHING_GIVEN, Given, Look, SessionRef, Workflow
from rondel.model.written import WRITTEN
from rondel.store import documents, files
from rondel.store.journal import Journal
from rondel.store.lease import Lease
from rondel.store.snapshot import DiskSnapshot
from rondel.store.written import ASIDE, Kept, Written, apply_changes

S = TypeVar("S")

RUN = ".rondel/run"


class Session(Generic[S]):
    """One session folder and the state it shows, read again only after something changed."""

    def __init__(
        self, root: Path, ref: SessionRef, workflow: Workflow[S], given: Given = NOTHING_GIVEN
    ) -> None:
        self.root = root
        self.ref = ref
        self.workflow = workflow
        self._given = given
        self.folder = files.safe_join(root, ref.folder)
        if not self.folder.is_dir():
            if not any((self.folder.parent / name).is_file() for name in ref.beside):
                raise RondelError(f"session {ref.name} has no folder {ref.folder}; see `rondel status`")
            files.make_folder(self.folder)
        self.files = DiskSnapshot(self.folder, ref.beside)
        self.run = files.safe_join(self.folder, RUN)
        self.journal = Journal(self.run / "journal.jsonl")
        self._identity: Identity | None = None
        self._written = Written(self.folder)
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

    def begin(self, look: Look, lease: Lease | None = None) -> Identity:
        """Give the session an identity of its own, where it is begun; one that has one keeps it.

        A file that cannot be read is put aside: an id that is lost only means that edits which
        were not noted yet are asked for again.
        """
        self.files.forget(IDENTITY)
        self._identity = identity_of(self.files.json(IDENTITY))
        if self._identity is None:
            branch = look.git("symbolic-ref", "--quiet", "--short", "HEAD", check=False).strip()
            base = look.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).strip()
            name = f"{self.ref.workflow}-{secrets.token_hex(8)}"
            self.identify(Identity(name, branch or None, base or None, stamp(look.at)), lease)
        return self.identity

    def identify(self, identity: Identity, lease: Lease | None = None) -> None:
        """Write an identity; a file that was there and is not ours is kept aside."""
        self.carry_out([Write(IDENTITY, documents.dump(identity.document()))], {}, lease)
        self._identity = identity

    @property
    def state(self) -> S:
        """What the files show now."""
        if self._state is None:
            self._state = self.workflow.read(self.files, self.ref, self._given)
        elif self._changed or self._looked:
            changed = frozenset(self._changed)
            self._state = self.workflow.reread(self._state, self.files, self.ref, changed, self._given)
        self._changed.clear()
        self._looked = False
        return self._state

    def refresh(self) -> None:
        """See what others changed on the disk."""
        self._changed |= self.files.refresh()
        self._looked = True

    def hear(self) -> bool:
        """See what others said since, in the journal or beside the folder; whether they did.

        Asked before each action, so it costs a few stats. Whoever changes a session through the
        hall notes it in the journal; files beside the folder are changed by hand, and by other tools.
        """
        news = self.journal.news()
        for event in news:
            self.ledger.note(event)
        if news:
            self.refresh()
        return self._look_beside() or bool(news)

    def _look_beside(self) -> bool:
        if not self.ref.beside:
            return False
        before = [self.files.digest(f"../{name}") for name in self.ref.beside]
        self.files.refresh("..")
        if before == [self.files.digest(f"../{name}") for name in self.ref.beside]:
            return False
        self._state = None
        return True

    def note(self, kind: str, fields: dict[str, object]) -> None:
        """One event into the journal and the ledger."""
        self.ledger.note(self.journal.add(kind, **fields))

    def carry_out(
        self, changes: Sequence[Change], seen: Mapping[str, str | None], lease: Lease | None
    ) -> tuple[dict[str, str], Sequence[Kept]]:
        """Leave the files; gives what was written by digest, and what of somebody else's was kept.

        `seen` holds the digests that declared files had when the action began.
        """
        try:
            applied = apply_changes(
                self.folder,
                changes,
                written=self._written,
                seen=seen,
                beside=self.ref.beside,
                guard=lease.check if lease else None,
            )
        finally:
            for path in (*_paths(changes), WRITTEN, ASIDE):
                self.files.forget(path)
            self._changed.update(_paths(changes))
        wrote = {c.path: digest(c.data) for c in applied.changes if isinstance(c, Write)}
        return {p: d for p, d in wrote.items() if not p.startswith(ASIDE)}, applied.kept


def _paths(changes: Sequence[Change]) -> Iterator[str]:
    """Every file that changes touch."""
    for change in changes:
        yield change.path
        if isinstance(change, Aside):
            yield change.to
        if isinstance(change, Edit) and change.log:
            yield change.log
