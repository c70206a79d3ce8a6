"""A value is data: whatever quotes surround its reference, and whatever it holds."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from itertools import cycle, islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shell_contexts import ARRIVES, EVALUATED, HONEST, NEVER_AN_OPTION, TAKEN_FOR_OPTION, WORDS_OF_TOOL
from shell_grammar import scripts

from rondel.workflows.task.analysing import git_environment
from rondel.workflows.task.variables import Variables, compile_command, prepare

SWEEP = bool(os.environ.get("RONDEL_SWEEP"))

# Each would leave the file PWNED behind if a shell ever took it for code.
BASE = [
    "$(touch PWNED)",
    "`touch PWNED`",
    "; touch PWNED;",
    "& touch PWNED &",
    "| touch PWNED",
    "|| touch PWNED",
    "&& touch PWNED",
    "\n touch PWNED \n",
    "'; touch PWNED; '",
    '"; touch PWNED; "',
    "'$(touch PWNED)'",
    '"$(touch PWNED)"',
    "\\'; touch PWNED; \\'",
    "$'\\n'; touch PWNED",
    "}; touch PWNED; {",
    ") ; touch PWNED ; (",
    "END\ntouch PWNED\nEND",
    "\nEND\ntouch PWNED\n",
    "\nRONDEL_VAR_END\ntouch PWNED\n",
    "<(touch PWNED)",
    ">(touch PWNED)",
    "${x:-$(touch PWNED)}",
    "$((a[$(touch PWNED)]))",
    "a[$(touch PWNED)]",
    "x[$(touch PWNED)]=1",
    "*",
    "?",
    "~",
    "[a-z]*",
    "{a,b}",
    "$HOME",
    "${RONDEL_VAR_0}",
    "$RONDEL_VAR_0",
    "[v]",
    "[id]",
    "\\",
    "\\\\",
    "'",
    '"',
    "`",
    "$",
    "$(",
    "${",
    "$((",
    "#",
    "# touch PWNED",
    "!",
    "!!",
    "-n",
    "-e",
    "--",
    "-v x",
    "%s%s%n",
    "%d",
    "",
    " ",
    "\t",
    "\n",
    "\n\n\n",
    " leading",
    "trailing ",
    "trailing\n\n",
    "\r\n",
    "a\rb",
    "\x01\x02\x7f",
    "\x1b[31m",
    "ünïcödé",
    "日本語",
    "🦊",
    "\u202e",
    "\ufeff",
    "a" * 5000,
    "x=1; touch PWNED",
    "() { :;}; touch PWNED",
    "() { :; }; touch PWNED",
    "eval touch PWNED",
    "exec touch PWNED",
    "touch PWNED",
    "./PWNED",
    "/bin/touch PWNED",
    "|touch PWNED",
    ">PWNED",
    ">>PWNED",
    "<PWNED",
    "2>PWNED",
    "&>PWNED",
    "\\\ntouch PWNED",
    "'\"'\"'; touch PWNED; '",
    "\\$(touch PWNED)",
    "\\\\$(touch PWNED)",
    "\\`touch PWNED\\`",
    "$\\(touch PWNED)",
    "`echo \\`touch PWNED\\``",
    "EOF\n$(touch PWNED)",
    "*/; touch PWNED",
    "&#36;(touch PWNED)",
    "$[$(touch PWNED)]",
    "$@",
    "$*",
    "$0",
    "$!",
    "$$",
    "esac; touch PWNED;",
    "fi; touch PWNED;",
    "done; touch PWNED;",
    ";; *) touch PWNED ;;",
    "]]; touch PWNED; [[",
    "] ; touch PWNED ; [",
    "' -o -exec touch PWNED ';' '",
]


HOSTILE = list(
    dict.fromkeys(BASE + [f"{before}{value}" for before in ("'", '"', "\\", "x\n") for value in BASE[:24]])
)


def test_there_are_two_hundred_hostile_values():
    assert len(HOSTILE) >= 200


def run(command: str, value: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    prepared = prepare((command,), Variables({"id": "IMPL-1"}, {"v": value}))
    assert not prepared.problem
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    argv = ["bash", "-c", prepared.command]
    return subprocess.run(
        argv, input=prepared.stdin.encode(), cwd=folder, env=env, capture_output=True, timeout=20, check=False
    )


@pytest.mark.parametrize("command", ARRIVES)
def test_a_hostile_value_arrives_intact_and_nothing_of_it_is_executed(command, tmp_path):
    script = compile_command(command, {"v"})
    assert script.problems == ()
    assert set(script.names) == {"v"}
    # One shell for all values: each is read, and the command gets it as its step would.
    head = "export RONDEL_VAR_0\nwhile IFS= read -r -d '' RONDEL_VAR_0 <&3; do\n"
    loop = f"{head}{script.text}\nprintf '\\0'\ndone"
    given_ = "".join(f"{v}\0" for v in HOSTILE).encode()
    (tmp_path / "values").write_bytes(given_)
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    with (tmp_path / "values").open("rb") as values:
        argv = ["bash", "-c", f"exec 3<&{values.fileno()}\n{loop}"]
        done = subprocess.run(
            argv,
            cwd=tmp_path,
            env=env,
            capture_output=True,
            pass_fds=[values.fileno()],
            timeout=60,
            check=False,
        )
    assert {p.name for p in tmp_path.iterdir()} == {"values"}
    got = done.stdout.decode().split("\0")[:-1]
    wrong = [(v, g) for v, g in zip(HOSTILE, got, strict=False) if v != g]
    assert wrong == [], done.stderr.decode()[:500]
    assert len(got) == len(HOSTILE)


PIECES = [
    "'",
    '"',
    "`",
    "$",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "\\",
    "\n",
    ";",
    "&",
    "|",
    "<",
    ">",
    "#",
    " ",
    "!",
    "=",
]
WORDS = [
    "touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "END",
    "eval",
    "v",
    "id",
    "RONDEL_VAR_0",
    "a[0]",
    "é",
]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.lists(st.sampled_from(PIECES + WORDS), max_size=12).map("".join)
    | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=40),
    command=st.sampled_from(ARRIVES),
)
def test_whatever_the_value_holds_the_shell_sees_one_piece_of_text(value, command, tmp_path):
    done = run(command, value, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert done.stdout.decode() == value


FRAGMENTS = [
    "'",
    '"',
    "`",
    "$(",
    ")",
    "${x",
    "}",
    "$((",
    "))",
    "[[ ",
    " ]]",
    "<<E\n",
    "\nE\n",
    "\\",
    "#",
    ";",
    "|",
    "\n",
    " ",
    "[v]",
    "[v]",
    "[v]",
    "case x in ",
    "esac",
    "a=(",
    "$'",
    "echo ",
    "printf %s ",
    "((",
    "[ ",
]


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=14).map("".join))
def test_even_in_a_command_that_is_no_bash_a_value_is_not_executed(command, tmp_path):
    prepared = prepare(
        (command,), Variables({}, {"v": "$(>PWNED)`>PWNED`;>PWNED\n>PWNED\n'>PWNED'\">PWNED\""})
    )
    if prepared.problem:
        return
    subprocess.run(
        ["/bin/bash", "-c", prepared.command],
        input=prepared.stdin.encode(),
        cwd=tmp_path,
        env={"PATH": "/nowhere"},
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert not (tmp_path / "PWNED").exists(), prepared.command


@pytest.mark.parametrize("command", [c for c in ARRIVES[:20] if "sh -c" not in c])
def test_a_value_of_300_kilobytes_arrives_whole(command, tmp_path):
    value = ("0123456789 $(touch PWNED) '\"\\\n" * 12_000)[: 300 * 1024] + "\n\n"
    done = run(command, value, tmp_path)
    assert done.stdout.decode() == value
    assert list(tmp_path.iterdir()) == []


def test_there_are_many_contexts():
    assert len({*ARRIVES, *EVALUATED, *WORDS_OF_TOOL}) >= 1000


def test_where_a_value_would_be_evaluated_again_it_is_refused():
    found = {command: compile_command(command, {"v"}).problems for command in EVALUATED}
    assert [command for command, problems in found.items() if not problems] == []
    assert [p for problems in found.values() for p in problems if "[v]" not in p or ";" not in p] == []


# Each leaves PWNED behind where it is run, evaluated, or taken for a program of make, awk or Python.
CODE = [
    *("touch PWNED", "a[$(>PWNED)]", "$(>PWNED)", ";>PWNED;", "x[$(>PWNED)]\n>PWNED", "5 touch PWNED"),
    *("q[`>PWNED`]", "a -o -v a[$(>PWNED)]", 'BEGIN{system(">PWNED")}', "x:;>PWNED", "-v a[$(>PWNED)]"),
    *("import os; os.mkdir('PWNED')", "touch PWNED|", "eval >PWNED", "1e touch PWNED", "esyscmd(>PWNED)"),
]
# Each has a word in it that is an option for `tool` once it is split, unescaped, cut or translated.
OPTION = [
    *("-PWN", "z-PWN", " -PWN", "a -PWN", "a\n-PWN", "\\-PWN", "'-PWN'", '"-PWN"', "a,-PWN", "a:-PWN"),
    *("\\055PWN", "\\x2dPWN", "_PWN", "NWP-", "a/-PWN", "z z-PWN", "az-PWN", "a\t-PWN", "-PWN a"),
]
TOOL = """#!/bin/bash
for word in "$@"; do
  [ "$word" = -- ] && break
  case $word in -PWN*) > "$0.PWNED" ;; esac
done
"""


def executed(command: str, value: str, folder: Path) -> bool | None:
    """Whether a value was executed, or taken for an option; None where the command is refused."""
    prepared = prepare((command,), Variables({}, {"v": value}))
    if prepared.problem:
        return None
    tools, work = folder / "tools", folder / "work"
    for each in (tools, work):
        each.mkdir(exist_ok=True)
    for place in (tools, work):
        (place / "tool").write_text(TOOL)
        (place / "tool").chmod(0o755)
    for name in ("x", "x.sh", "x.py"):
        (work / name).write_text("\n")
    env = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(work), "SHELL": "/bin/bash", "FUNCNEST": "20"}
    argv = ["/bin/bash", "-c", prepared.command]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(argv, cwd=work, env=env, start_new_session=True, **pipes) as shell:
        try:
            shell.communicate(prepared.stdin.encode(), timeout=10)
        except subprocess.TimeoutExpired:
            pass  # it waits for something, and was not harmed by it
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    left = [path for path in folder.rglob("*") if path.name.endswith("PWNED")]
    for path in left:
        path.rmdir() if path.is_dir() else path.unlink()
    return bool(left)


def test_no_piece_of_a_value_becomes_an_option(tmp_path):
    # Otherwise each command gets two values, so that all values are seen with many commands.
    chosen = [(c, v) for n, c in enumerate(WORDS_OF_TOOL) for v in (OPTION if SWEEP else _some(OPTION, n))]
    wrong = [(c, v) for c, v in chosen if executed(c, v, tmp_path)]
    assert wrong == []


def _some(values: list[str], number: int) -> list[str]:
    return [*islice(cycle(values), number * 2, number * 2 + 2)]


@settings(
    max_examples=3000 if SWEEP else 60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(script=scripts, value=st.sampled_from(CODE))
def test_a_script_of_any_pieces_that_is_accepted_executes_nothing(script, value, tmp_path):
    assert not executed(script, value, tmp_path)


def test_every_variable_of_bash_is_refused_to_a_value():
    listed = subprocess.run(["bash", "-c", "compgen -v"], env={}, capture_output=True, text=True, check=True)
    names = [n for n in listed.stdout.split() if n not in ("_", "PWD")]
    assert [n for n in names if not compile_command(f"{n}=[v]; true", {"v"}).problems] == []
    assert [n for n in names if not compile_command(f"read {n} <<< [v]", {"v"}).problems] == []


@pytest.mark.parametrize(
    "command",
    [
        *(
            'eval "$title"',
            'bash -c "$title"',
            "echo $((title))",
            "$title",
            "x=$title; eval $x",
            'echo "$title" | sh',
        ),
        "for d in $depends_on; do eval $d; done",
    ],
)
def test_a_property_in_the_environment_is_not_evaluated_either(command):
    assert "[" in prepare((command,), Variables({"title": "$(touch PWNED)"}, {})).problem


@pytest.mark.parametrize("command", HONEST)
def test_what_people_write_is_left_to_them(command):
    assert prepare((command,), Variables({"title": "t"}, {"v": "one two"})).problem == ""


@pytest.mark.parametrize("command", TAKEN_FOR_OPTION)
@pytest.mark.parametrize("value", ["-", "-rf", "--output=x", "-o ProxyCommand=x"])
def test_a_value_that_begins_with_a_dash_is_no_option(command, value):
    found = prepare((command,), Variables({}, {"v": value, "w": ""})).problem
    assert '[v] begins with "-"' in found
    assert "--" in found


@pytest.mark.parametrize("command", TAKEN_FOR_OPTION)
def test_any_other_value_may_stand_there(command):
    assert prepare((command,), Variables({}, {"v": "a-b", "w": ""})).problem == ""


@pytest.mark.parametrize("command", NEVER_AN_OPTION)
def test_where_nothing_takes_options_a_dash_is_a_value(command):
    assert prepare((command,), Variables({}, {"v": "-rf"})).problem == ""


def test_words_of_a_value_are_options_only_where_the_shell_splits_it():
    value = Variables({}, {"v": "a -rf"})
    assert prepare(("./tool [v]",), value).problem == ""
    assert prepare(('x=[v]; ./tool "$x"',), value).problem == ""
    assert "begins with" in prepare(("x=[v]; ./tool $x",), value).problem
    assert "begins with" in prepare(("echo [v] | xargs ./tool",), value).problem


@settings(max_examples=300, deadline=None)
@given(
    pieces=st.lists(st.sampled_from([*EVALUATED, *ARRIVES, *HONEST]), min_size=2, max_size=3),
    between=st.sampled_from(["\n", "\n\n", "\n# it's\n", " # `\n", "\n:;", "\n{\n:\n}\n", "\n\t"]),
    around=st.sampled_from(["%s", "if true; then\n%s\nfi", "f() {\n%s\n}; f", "(\n%s\n)", "x=$(\n%s\n)"]),
)
def test_a_hazard_is_found_wherever_it_stands(pieces, between, around):
    whole = around % between.join(pieces)
    hazards = [p for p in pieces if p in EVALUATED]
    assert bool(compile_command(whole, {"v"}).problems) >= bool(hazards)


def test_an_endless_command_is_refused_at_once():
    for command in ("echo " + "$(echo " * 3000 + "[v]" + ")" * 3000, "echo " + "'x' " * 200_000 + "[v]"):
        assert "cannot be read as bash" in compile_command(command, {"v"}).problems[0]


def test_what_is_copied_again_holds_it_too():
    found = compile_command("cp [v] a.json && cp a.json run.sh && sh run.sh", {"v"})
    assert found.problems


@pytest.mark.parametrize("command", ["git -C vendor/x status", "cd vendor/x && git status --short"])
def test_a_repository_that_a_value_names_runs_no_program_of_its_own(command, tmp_path):
    inner = tmp_path / "vendor/x"
    for folder in ("objects", "refs/heads"):
        (inner / folder).mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    monitor = f'fsmonitor = "touch {tmp_path}/PWNED; false"'
    (inner / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\t{monitor}\n"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, check=False, capture_output=True)
    assert (tmp_path / "PWNED").exists()
    (tmp_path / "PWNED").unlink()
    safe = {**env, **git_environment()}
    subprocess.run(["bash", "-c", command], cwd=tmp_path, env=safe, check=False, capture_output=True)
    assert not (tmp_path / "PWNED").exists()
