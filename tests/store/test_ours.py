"""Every file of ours has its place: what stands there instead is put aside, never followed or deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from rondel.store import ours
from rondel.store.lease import Lease
from support.in_the_way import KINDS, is_found, is_untouched, put


def test_a_person_s_ignore_rules_stay_as_they_are(tmp_path: Path):
    home = tmp_path / ".rondel"
    ours.keep_out_of_git(home, renew=True)
    assert (home / ".gitignore").read_bytes() == ours.IGNORED
    (home / ".gitignore").write_text("mine\n")
    ours.keep_out_of_git(home, renew=True)
    assert (home / ".gitignore").read_text() == "mine\n"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "file"])
def test_what_stands_where_the_ignore_rules_belong_is_put_aside_and_said(tmp_path: Path, kind: str):
    session, outside, rules = tmp_path / "one", tmp_path / "outside", ".rondel/.gitignore"
    put(session / rules, kind, outside)
    Lease.take(tmp_path / "state/.rondel", "review:one", folder=session).release()
    assert (session / rules).read_bytes() == ours.IGNORED
    assert is_found(session, rules, kind, outside)
    assert is_untouched(outside)
    said = ours.restored_in((session / ours.RECORD).read_bytes())
    assert [(one.path, one.aside) for one in said] == [(rules, ".rondel/aside/.rondel__.gitignore.damaged-1")]
