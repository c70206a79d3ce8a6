"""What a probe may do in the repository: it looks, within bounds, and is told what went wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from rondel.engine import look as looking
from rondel.engine.look import DiskReader
from rondel.errors import RondelError


@pytest.fixture
def look(tmp_path: Path) -> DiskReader:
    (tmp_path / "a.py").write_text("x = 1\n")
    return DiskReader(tmp_path, lambda: datetime.now(UTC))


@pytest.mark.parametrize("path", ["a.py/b", "x" * 300, "../a.py", "", "nothing", "a\0b", "/etc/passwd"])
def test_a_path_that_names_no_file_of_the_tree_gives_nothing(look, path):
    assert look.file("a.py") == b"x = 1\n"
    assert look.file(path) is None


def test_a_link_out_of_the_tree_gives_nothing(look, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("s")
    Path(look.root, "link").symlink_to(outside)
    assert look.file("link/secret") is None


def test_a_program_that_is_missing_is_named(look):
    with pytest.raises(RondelError, match=r"no-such-program cannot run in .*: it is not installed"):
        look.run(["no-such-program"])


def test_what_is_too_long_is_an_error_and_never_cut(look, monkeypatch):
    monkeypatch.setattr(looking, "OUTPUT_MAX", 10)
    assert look.run(["printf", "0123456789"])[1] == "0123456789"
    with pytest.raises(RondelError, match="more than 10 bytes"):
        look.run(["printf", "0123456789+"])
