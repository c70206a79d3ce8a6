import re
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rondel.model.codec import decode
from rondel.model.identity import identity_of
from rondel.model.refs import branch_or_none, commit_or_none, is_branch, is_commit, is_operand
from rondel.workflows.review.target import Target, pins_of

SHA = "0123456789" * 4
HOSTILE = (
    "--output=/tmp/x",
    "-D",
    "--upload-pack=x",
    "",
    "HEAD",
    "a b",
    "main\nupdate refs/heads/x",
    "..",
    "@{-1}",
)
PARTS = st.sampled_from(
    ["a", "b/", "/", ".", "..", "@", "@{", "{", "-", ".lock", "~", "^", ":", "?", "*", "[", "\\"]
)
ODD = st.sampled_from(
    [" ", "\x7f", "\t", "\n", "ä", "中", "HEAD", "refs/heads/", "x.lock/y", "%", "'", '"', "=", "]"]
)


@given(st.lists(PARTS | ODD, min_size=1, max_size=5).map("".join))
@example("@")
@example("HEAD")
@example("a/HEAD")
@example("a.lock")
@example("a/.b")
@settings(max_examples=150, deadline=None)
def test_a_branch_is_what_git_says_it_is(name):
    said = subprocess.run(
        ["git", "check-ref-format", "--branch", name], cwd="/", capture_output=True, check=False
    )
    assert is_branch(name) == (said.returncode == 0 and said.stdout.decode().rstrip("\n") == name)


@given(st.text(max_size=60))
def test_a_branch_or_a_commit_is_never_an_option_nor_two_words(text):
    for good in (is_branch(text), is_commit(text)):
        if good:
            assert is_operand(text)
            assert not text.startswith("-")
            assert not re.search(r"[\x00-\x20\x7f]", text)


@pytest.mark.parametrize("text", [SHA, SHA + "abcdef" * 4])
def test_a_pin_is_a_whole_commit(text):
    assert commit_or_none(text) == text


@pytest.mark.parametrize(
    "text", [*HOSTILE, SHA[:39], SHA + "0", SHA.upper() + "A", f"{SHA}\n", f"-{SHA[1:]}", None, 1]
)
def test_nothing_else_is_a_pin(text):
    assert commit_or_none(text) is None
    assert pins_of({"base": text, "head": SHA}) is None
    assert pins_of({"base": SHA, "head": text}) is None


@pytest.mark.parametrize("text", HOSTILE)
def test_what_documents_name_is_no_option(text):
    assert branch_or_none(text) is None
    found = identity_of({"id": "review-12345678", "branch": text, "base": text, "onto": text})
    assert found is not None
    assert (found.branch, found.base, found.onto) == (None, None, None)
    target = decode(Target, {"kind": "range", "base": text, "head": text})
    assert target is not None
    assert not target.base.startswith("-")
    assert not target.head.startswith("-")
