"""Whatever text comes in, what comes out stays in its folder."""

from __future__ import annotations

import os
import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rondel.errors import UnsafePath
from rondel.model.names import folder_name, inside, is_safe_name, safe_name, slug

NASTY = st.sampled_from(
    ["..", ".", "/", "\\", "~", "-", " ", "\n", "\x00", "con", "nul.txt", "C:", "\u200b", "\u202e"]
)
TEXTS = st.text() | st.lists(NASTY | st.text(max_size=5), max_size=8).map("".join)


@given(TEXTS)
@example("feature/../../x")
@example("")
@example("漢" * 500)
@example("\ud800")
@example("CON")
@example("lpt1.md")
def test_a_slug_is_always_a_safe_name(text: str):
    assert is_safe_name(slug(text))


@given(TEXTS)
@example("feature/../../x")
@example("a\u200b")
@example("\u00ad.hidden")
@example("~root")
@example("漢" * 500)
@example("\ud800")
@example("nul")
@example("-rf")
def test_a_folder_name_is_always_a_safe_name(text: str):
    assert is_safe_name(folder_name(text))


@given(TEXTS, st.integers(5, 80))
def test_a_slug_is_never_longer_than_asked_for(text: str, length_max: int):
    made = slug(text, length_max=length_max, fallback="s")
    assert len(made) <= max(length_max, len("s-123456"))


@given(TEXTS)
def test_a_safe_name_is_one_visible_segment_of_a_path(text: str):
    if is_safe_name(text):
        assert "/" not in text
        assert PurePosixPath(text).name == text
        assert text not in (".", "..")
        assert text.isprintable()
        assert inside(text) == text


@given(TEXTS | st.lists(TEXTS, max_size=4).map("/".join))
def test_a_path_that_is_inside_never_leaves_its_folder(text: str):
    try:
        plain = inside(text)
    except UnsafePath:
        return
    joined = os.path.normpath(f"/root/folder/{plain}")
    assert joined.startswith("/root/folder/")
    assert inside(plain) == plain


@given(
    st.lists(st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1), min_size=1, max_size=4)
)
def test_an_ordinary_path_is_inside_as_it_is(parts: list[str]):
    path = "/".join(parts)
    assert inside(path) == path


@pytest.mark.parametrize(
    "path",
    ["", "/a", "../a", "a/..", "a/../b", "~/a", "a\\b", "C:/a", "a\nb", "a\x00", "a//b", "./a", "x" * 1001],
)
def test_a_path_that_leaves_or_means_something_else_elsewhere_is_refused_by_name(path: str):
    with pytest.raises(UnsafePath, match="does not stay in its folder"):
        inside(path)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Add a login page!", "add-a-login-page"),
        ("Überprüfung der Façade", "uberprufung-der-facade"),
        ("添加登录页面", "添加登录页面"),
        ("Добавить вход", "добавить-вход"),
        ("  __x__  ", "x"),
        ("fix/a b", "fix-a-b"),
    ],
)
def test_a_title_in_any_script_gives_a_readable_slug(title: str, expected: str):
    assert slug(title) == unicodedata.normalize("NFC", expected)


def test_titles_without_a_letter_get_different_names():
    assert slug("!!!") != slug("???")
    assert slug("!!!").startswith("session-")


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        ("main", "main"),
        ("fix/a b", "fix-a-b"),
        ("feature/../../x", "feature-x"),
        ("v1.2", "v1.2"),
        ("..", None),
    ],
)
def test_a_branch_becomes_a_folder_a_person_recognises(branch: str, expected: str | None):
    made = folder_name(branch)
    assert made == expected or (expected is None and made.startswith("x-"))


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".git", "-x", "~", "a/b", "a\\b", "a:b", "con", "COM1.txt", "a.", "a "]
)
def test_a_name_that_cannot_be_a_file_everywhere_is_refused_with_what_it_was_for(name: str):
    assert not is_safe_name(name)
    with pytest.raises(UnsafePath, match="the cycle type"):
        safe_name(name, "the cycle type")


def test_a_good_name_is_given_back():
    assert safe_name("tests", "the cycle type") == "tests"
