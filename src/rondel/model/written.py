"""Written: what Rondel wrote last under each name of a session, by digest. Any other text there is theirs.

`.rondel/written.jsonl` is state: runtime may be deleted, and a person's document is still known as
theirs and ours as ours. A line is noted before its files are written, so it names for each path
both texts that a death in between may leave there: ours from before, and ours from now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from rondel.model import jsons
from rondel.model.snapshot import Snapshot

WRITTEN = ".rondel/written.jsonl"


def line(marks: Mapping[str, Sequence[str]]) -> str:
    """The digests that files may have from now on, as a line of the log."""
    return json.dumps({path: list(digests) for path, digests in marks.items()}, ensure_ascii=False)


def marks_in(lines: Iterable[bytes | str]) -> dict[str, frozenset[str]]:
    """What the lines say of each path; the last one counts. A line that says nothing is skipped."""
    found: dict[str, frozenset[str]] = {}
    for one in lines:
        try:
            marks = jsons.load(one)
        except ValueError:
            continue
        for path, digests in marks.items() if isinstance(marks, dict) else ():
            if isinstance(digests, list):
                found[path] = frozenset(d for d in digests if isinstance(d, str))
    return found


def is_theirs(files: Snapshot, path: str) -> bool:
    """Whether a file is there, with a text in it that Rondel did not write."""
    if not (files.text(path) or "").strip():
        return False
    ours = marks_in((files.data(WRITTEN) or b"").split(b"\n")).get(path, frozenset())
    return files.digest(path) not in ours
