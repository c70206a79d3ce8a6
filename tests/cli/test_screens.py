"""What a person sees on screens of every kind: narrow, of another charset, in another time zone."""

from __future__ import annotations

import json
import subprocess

import pexpect
import pytest
from rich.console import Console

from rondel.cli.screen import table
from support.cli import RONDEL, reviewed, rondel

NAMES = ("session", "status", "progress")
ROWS = [("review:2026-11-15-feature-login", "completed", "11/11"), ("feature:001-x", "active", "")]


def drawn(width: int) -> list[str]:
    screen = Console(width=width, force_terminal=False)
    with screen.capture() as captured:
        screen.print(table(screen, NAMES, ROWS))
    return captured.get().splitlines()


def test_a_table_has_a_line_for_each_row_where_it_fits():
    assert [line.split() for line in drawn(80)] == [list(NAMES), *([c for c in r if c] for r in ROWS)]


def test_a_narrow_screen_gets_a_list_and_no_word_is_cut():
    assert drawn(40) == [
        "review:2026-11-15-feature-login",
        "  status: completed",
        "  progress: 11/11",
        "feature:001-x",
        "  status: active",
    ]


def test_the_widest_column_alone_is_folded():
    lines = drawn(45)
    assert lines[1].split() == ["review:2026-11-15-featur", "completed", "11/11"]
    assert lines[2].strip() == "e-login"


@pytest.mark.parametrize("charset", ["latin-1", "ascii", "cp1252"])
def test_no_charset_makes_a_command_fail(repo, env, charset):
    env["PYTHONIOENCODING"] = charset
    assert rondel(repo, env, "feature", "start", "日本語 → x").returncode == 0
    for command in (["status"], ["feature", "status"], ["status", "--json"]):
        done = subprocess.run(
            [*RONDEL, *command], cwd=repo, env=env, capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        if "--json" in command:
            text = done.stdout.decode("utf-8" if charset == "ascii" else charset)
            assert json.loads(text)["sessions"][0]["title"] == "日本語 → x"


def test_all_sessions_are_shown_on_one_clock(repo, env):
    reviewed(repo)
    state = {"branch": "main", "updated_at": "2026-11-15T20:30:00+08:00"}
    (repo / ".ocr/sessions/2026-11-15-main/state.json").write_text(json.dumps(state))
    assert "2026-11-15 12:30" in rondel(repo, {**env, "TZ": "UTC"}, "status").stdout
    assert "2026-11-15 07:30" in rondel(repo, {**env, "TZ": "EST5"}, "status").stdout


def test_a_pipe_gets_no_control_characters_and_no_folded_lines(repo, env):
    name = reviewed(repo)
    done = rondel(repo, {**env, "TERM": "xterm-256color", "COLUMNS": "30"}, "status")
    assert "\x1b" not in done.stdout
    assert name in done.stdout


@pytest.mark.parametrize("more", [{"TERM": "dumb"}, {"TERM": "xterm-256color", "NO_COLOR": "1"}])
def test_no_colour_where_none_is_wanted(repo, env, more):
    name = reviewed(repo)
    run = pexpect.spawn(
        RONDEL[0],
        [*RONDEL[1:], "show", name],
        cwd=str(repo),
        env={**env, **more},
        encoding="utf-8",
        timeout=30,
    )
    run.expect(pexpect.EOF)
    assert "The final review" in run.before
    assert "\x1b[3" not in run.before  # foregrounds; bold and underlined are no colours
