"""Code out of responses: the forms models really use, and everything that is refused by name."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rondel.workflows.generate import responses as module
from rondel.workflows.generate.responses import FILE_MAX, extract


def found(text):
    result = extract(text)
    assert not result.error, result.error
    return {f.path: f.text for f in result.files}


BODY = "class A {}\n"
FORMS = {
    "a comment in the first line": "```java\n// src/A.java\nclass A {}\n```",
    "a labelled comment": "```java\n// File: src/A.java\nclass A {}\n```",
    "a block comment": "```java\n/* src/A.java */\nclass A {}\n```",
    "an html comment": "```html\n<!-- src/A.java -->\nclass A {}\n```",
    "a hash comment": "```python\n# src/A.java\nclass A {}\n```",
    "path= in the fence": "```java path=src/A.java\nclass A {}\n```",
    'title="" in the fence': '```java title="src/A.java"\nclass A {}\n```',
    "braces in the fence": "```java {file=src/A.java}\nclass A {}\n```",
    "a colon in the fence": "```java:src/A.java\nclass A {}\n```",
    "a bare path in the fence": "```java src/A.java\nclass A {}\n```",
    "only a path in the fence": "```src/A.java\nclass A {}\n```",
    "a heading": "### src/A.java\n\n```java\nclass A {}\n```",
    "a heading with code": "## 1. `src/A.java`\n```java\nclass A {}\n```",
    "bold": "**src/A.java**\n\n```java\nclass A {}\n```",
    "bold with a colon": "**src/A.java:**\n```java\nclass A {}\n```",
    "a label above": "File: `src/A.java`\n```java\nclass A {}\n```",
    "a list item": "- `src/A.java`:\n```java\nclass A {}\n```",
    "a sentence with one path": "Create `src/A.java` like this:\n```java\nclass A {}\n```",
    "tildes": "~~~java\n// src/A.java\nclass A {}\n~~~",
    "four backticks": "````java\n// src/A.java\nclass A {}\n````",
    "markers": "<<<FILE: src/A.java>>>\nclass A {}\n<<<END FILE>>>\n",
    "markers with a fence and words after it": "<<<FILE: src/A.java>>>\n```java\nclass A {}\n```\nDone.\n",
    "markers with a fence": "<<<FILE: src/A.java>>>\n```java\nclass A {}\n```\n<<<END FILE>>>\nBye.\n",
    "windows lines": "```java\r\n// src/A.java\r\nclass A {}\r\n```\r\n",
    "a path from the folder itself": "```java path=./src/A.java\nclass A {}\n```",
    "an empty line after the comment": "```java\n// src/A.java\n\nclass A {}\n```",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_a_named_block_is_a_file(text):
    assert found(f"Here it is.\n\n{text}\n\nThat is all.\n") == {"src/A.java": BODY}


def test_several_files_in_one_response():
    text = "```java\n// A.java\nclass A {}\n```\nand\n```java\n// b/B.java\nclass B {}\n```\n"
    assert found(text) == {"A.java": "class A {}\n", "b/B.java": "class B {}\n"}
    assert found("<<<FILE: A.java>>>\nclass A {}\n\n<<<FILE: B.java>>>\nclass B {}\n") == {
        "A.java": "class A {}\n",
        "B.java": "class B {}\n",
    }


def test_a_block_without_a_name_is_an_illustration():
    assert found("```sh\nmvn test\n```\n```java\n// A.java\nclass A {}\n```\n") == {"A.java": BODY}


def test_a_comment_that_only_mentions_a_file_stays_and_names_nothing():
    text = "### A.java\n```java\n// like B.java, but shorter\nclass A {}\n```"
    assert found(text) == {"A.java": "// like B.java, but shorter\nclass A {}\n"}


def test_a_fence_in_a_longer_fence_is_part_of_the_file():
    assert found("````md\n<!-- a.md -->\n```sh\nls\n```\n````\n") == {"a.md": "```sh\nls\n```\n"}


REFUSED = {
    "outside": ("../A.java", "does not stay in its folder"),
    "outside in the middle": ("a/../../A.java", "does not stay in its folder"),
    "absolute": ("/etc/A.java", "does not stay in its folder"),
    "home": ("~/A.java", "does not stay in its folder"),
    "a drive": ("C:/A.java", "does not stay in its folder"),
    "a backslash": ("a\\A.java", "does not stay in its folder"),
    "hidden": (".git/hooks.sh", "no safe name"),
    "a dot file": ("a/.bashrc.sh", "no safe name"),
    "a reserved name": ("con/A.java", "no safe name"),
}


@pytest.mark.parametrize(("path", "words"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("form", ["```java path={}\nclass A {{}}\n```", "<<<FILE: {}>>>\nclass A {{}}\n"])
def test_a_path_that_leads_elsewhere_is_refused_by_name(path, words, form):
    result = extract(form.format(path))
    assert result.files == ()
    assert words in result.error
    assert path.replace("\\", "\\\\") in result.error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("```java path=A.java\nx\n```\n```java path=A.java\ny\n```", "'A.java' is there twice"),
        ("```java path=A.java\nx\n```\n```java path=a.java\ny\n```", "'a.java' is there twice"),
        ("```java path=a.b\nx\n```\n```java path=a.b/C.java\ny\n```", "one is the other's folder"),
        ("```java path=A.java\n  \n```", "'A.java' is empty"),
        ("```java path=A.java\nclass A {", "'A.java' is empty"),
        (f"```java path=A.java\n{'x' * (FILE_MAX + 1)}\n```", "'A.java' is larger"),
        ("```java path=A.java\na\x00b\n```", "'A.java' is not text"),
        ("I would write a class A.", "no code with a file name"),
        ("```java\nclass A {}\n```", "no code with a file name"),
        ("", "no code with a file name"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(text, words):
    result = extract(text)
    assert result.files == ()
    assert words in result.error


def test_too_many_files_and_too_long_a_response_are_refused(monkeypatch):
    many = "\n".join(f"```java path=A{n}.java\nx\n```" for n in range(module.FILES_MAX + 1))
    assert "more than" in extract(many).error
    assert "characters" in extract("x" * (module.CODE_MAX + 1)).error


hostile = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(["..", ".", "", "a", "~", "C:", "/", "\\", "A.java", ".git", "con", "\u202e"]),
        max_size=6,
    ).map("/".join),
)
FRAMES = [
    "```java path={}\nx\n```",
    "```java {}\nx\n```",
    "```java:{}\nx\n```",
    "### {}\n```java\nx\n```",
    "```java\n// {}\nx\n```",
    "<<<FILE: {}>>>\nx\n",
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(FRAMES), hostile), min_size=1, max_size=4))
def test_hostile_paths_never_leave_the_folder(pieces):
    result = extract("\n\n".join(frame.replace("{}", path) for frame, path in pieces))
    assert bool(result.files) != bool(result.error)
    for file in result.files:
        parts = PurePosixPath(file.path).parts
        assert not PurePosixPath(file.path).is_absolute()
        assert all(p not in ("..", ".", "") and not p.startswith((".", "~", "-")) for p in parts)
        assert not set(file.path) & set('\\:<>"|?*\x00\n')


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("`~#/*<>FILE: .aA\n\\{}="), max_size=300))
def test_any_text_gives_files_or_an_error(text):
    result = extract(text)
    assert bool(result.files) != bool(result.error)


LONG = 300_000
ENDLESS = {
    "blanks in a fence": f"```a{' ' * LONG}x\na\n```\n",
    "blanks in a comment": f"```py\n// a{' ' * LONG}x\na\n```\n",
    "blanks in a block comment": f"```py\n/* a{' ' * LONG}x\na\n```\n",
    "blanks in a marker": f"<<<FILE: a{' ' * LONG}x\na\n",
    "a long word above": f"{'a' * LONG}\n```py\nx\n```\n",
    "a long word in a fence": f"```{'a' * LONG}\nx\n```\n",
    "fences that never close": "```py path=a.py\n" * (LONG // 16),
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS.keys())
@pytest.mark.timeout(20)
def test_a_degenerate_answer_takes_time_in_proportion_to_its_length(text):
    assert extract(text).error
