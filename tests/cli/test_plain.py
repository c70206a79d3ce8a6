"""Nothing that a repository or an agent wrote gives a terminal orders, or calls anybody on a forge."""

from __future__ import annotations

import html
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.markdown import Markdown
from rich.table import Table

from rondel.cli.screen import PlainConsole
from rondel.model.texts import for_forge, visible

ORDERS = {
    "clear": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "link": "\x1b]8;;http://127.0.0.1/\x07here\x1b]8;;\x07",
    "C1": "\x9b2J",
    "backspace": "approved\b\b\b\b\b\b\b\brejected",
    "carriage return": "REJECTED\rAPPROVED",
    "bidi": "\u202edevorppa\u202c",
    "isolate": "\u2066a\u2069",
    "zero width": "ap\u200bprove",
    "tag": "\U000e0041\U000e0042",
    "line separator": "a\u2028b",
    "answer back": "\x05\x1b[c",
    "filler": "a\u3164b\u115fc\uffa0d\u2800e",
    "joiner": "a\u034fb",
    "variation": "a\ufe01b\U000e0100c",
}
ORDER = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"
    "\u034f\u115f\u1160\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)


@given(st.text())
def test_whatever_a_text_holds_what_is_shown_gives_no_orders(text):
    shown = visible(text)
    assert not ORDER.search(shown)
    assert visible(shown) == shown


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs", "M"]), max_size=8))
def test_letters_of_every_language_stay_as_they_are(text):
    assert visible(text) == text


def test_marks_that_would_be_drawn_over_other_lines_are_written_out():
    assert visible("a" + "\u0301" * 10) == "a" + "\u0301" * 8 + "\\u0301" * 2


@given(st.text())
def test_json_stays_the_same_json(text):
    assert json.loads(visible(json.dumps({"a": text}, ensure_ascii=False).replace("\r\n", ""))) == {"a": text}


@pytest.mark.parametrize("order", ORDERS.values(), ids=list(ORDERS))
def test_the_console_shows_no_orders_but_its_own(order, capsys):
    console = PlainConsole()
    table = Table()
    table.add_column(order)
    table.add_row(order)
    for shown in (order, Markdown(f"# {order}\n\n`{order}` [text]({order})"), table):
        console.print(shown)
    assert not ORDER.search(re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out))


def on_a_terminal(*words: str, cwd: Path) -> str:
    """What a real terminal gets from `rondel`."""
    program = Path(sys.executable).with_name("rondel")
    main, side = pty.openpty()
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    run = subprocess.Popen([program, *words], cwd=cwd, env=env, stdin=side, stdout=side, stderr=side)
    os.close(side)
    got = b""
    try:
        while chunk := os.read(main, 65536):
            got += chunk
    except OSError:  # the terminal's other end is closed
        pass
    run.wait(60)
    os.close(main)
    return got.decode(errors="replace")


@pytest.fixture
def hostile(tmp_path) -> Path:
    """A repository in which every text gives orders."""
    everything = "".join(ORDERS.values())
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    folder = tmp_path / ".workflow/WFS-a"
    (folder / ".task").mkdir(parents=True)
    task = {"id": "IMPL-1", "title": everything, "status": everything, "meta": {"type": everything}}
    session = {"session_id": "WFS-a", "project": everything, "status": "active"}
    (folder / "workflow-session.json").write_text(json.dumps(session))
    (folder / ".task/IMPL-1.json").write_text(json.dumps(task))
    (folder / "IMPL_PLAN.md").write_text(f"# {everything}\n\n[a]({everything}) {everything}\n")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        *(["status"], ["status", "task:WFS-a"], ["task", "status"], ["task", "validate"], ["doctor"]),
        *(["show", "task:WFS-a", "IMPL_PLAN.md"], ["show", "task:WFS-a", "IMPL_PLAN.md", "--raw"]),
        *(["watch", "--once"], ["show", "x\x1b[2J"], ["task", "allow"]),
    ],
    ids=" ".join,
)
def test_a_real_terminal_gets_letters_and_colours(hostile, words):
    got = on_a_terminal(*words, cwd=hostile)
    assert got
    left = re.sub(r"\x1b\[[\d;]*m|\x1b\[\?25[lh]|\r\n", "", got)
    assert not ORDER.search(left), repr(left)


def test_a_file_that_goes_to_a_file_is_as_it_is_where_that_was_asked_for(hostile):
    program = Path(sys.executable).with_name("rondel")
    words = [program, "show", "task:WFS-a", "IMPL_PLAN.md"]
    done = subprocess.run([*words, "--raw"], cwd=hostile, capture_output=True, check=True)
    assert done.stdout == (hostile / ".workflow/WFS-a/IMPL_PLAN.md").read_bytes()
    done = subprocess.run(words, cwd=hostile, capture_output=True, check=True)
    assert not ORDER.search(done.stdout.decode()), "whoever does not say so may look at it through a pager"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "@someone please",
            "cc @org/team",
            "Fixes #12",
            "closes: org/repo#3",
            "resolves https://x.test/o/r/issues/1",
        ),
        *(
            "GH-12",
            "![pixel](http://127.0.0.1/p.png)",
            "<img src=http://127.0.0.1/p.png>",
            "<!-- rondel:review:a/round-1 -->",
        ),
        *(
            "<details><summary>x</summary>",
            "</sub>",
            "```\n@someone <b>\n```",
            "`@someone`",
            "<!doctype html>",
            "\u202e@a",
        ),
    ],
)
def test_on_a_forge_a_text_calls_nobody_closes_nothing_loads_nothing(text):
    shown = for_forge(text)
    assert not re.search(
        r"@[\w-]|#\d|<[A-Za-z/!?]|!\[|GH-\d|\b(?:close|fix|resolve)[sd]?:?\s+(?:http|[\w.-]+/)", shown
    )
    assert shown.replace("\u200b", "") == text.replace("\u202e", "")


@pytest.mark.parametrize(
    "text", ["&commat;octocat", "&#x40;torvalds", "&#64;a", "&num;12", "`&commat;a`", "&#X40;a"]
)
def test_on_a_forge_an_entity_stands_for_nothing(text):
    shown = for_forge(text)
    assert html.unescape(shown) == shown
    assert shown.replace("\u200b", "") == text


def test_on_a_forge_what_is_escaped_already_stays_so():
    assert for_forge("a &lt; b &amp; c") == "a &lt; b &amp; c"


@pytest.mark.parametrize("fence", ["```", "~~~~", "> ```", "- ``` "])
def test_on_a_forge_nothing_is_offered_to_be_applied(fence):
    for word in ("suggestion", "Suggestion", "suggestion:-0+1", "sugg\u00adestion"):
        shown = for_forge(f"{fence}{word}\nevil()\n```")
        assert "suggestion" not in shown.lower()
        assert "evil()" in shown


def test_marks_of_any_script_are_written_out_where_they_are_too_many():
    shown = visible("\u0e01" + "\u0e49" * 200)
    assert shown.count("\u0e49") <= 8
    assert visible("\u26a0\ufe0f") == "\u26a0\ufe0f"  # a sign that is drawn as a picture stays one


@pytest.mark.parametrize("order", ["/approve", "/lgtm", "  /merge now", "> /close", "bors r+", "LGTM", "r+"])
def test_on_a_forge_no_line_is_an_order_to_a_bot(order):
    assert order not in for_forge(f"Fine.\n{order}\nYes.")
    assert "src/a.py and/or b" in for_forge("src/a.py and/or b")
