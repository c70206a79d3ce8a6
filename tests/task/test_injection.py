"""A value is data: whatever quotes surround its reference, and whatever it holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.workflows.task.quoting import compile_command
from rondel.workflows.task.variables import Variables, prepare

# Each writes the value, and nothing else, to its standard output.
CONTEXTS = {
    "bare": "printf %s [v]",
    "single": "printf %s '[v]'",
    "double": 'printf %s "[v]"',
    "ansi": "printf %s $'[v]'",
    "translated": 'printf %s $"[v]"',
    "mixed word": "printf %s ''[v]\"\"",
    "here-document": 'IFS= read -r -d "" x <<END\n[v]\nEND\nprintf %s "${x%?}"',
    "quoted here-document": "IFS= read -r -d '' x <<'END'\n[v]\nEND\nprintf %s \"${x%?}\"",
    "escaped here-document": "IFS= read -r -d '' x <<\\END\n[v]\nEND\nprintf %s \"${x%?}\"",
    "here-string": 'IFS= read -r -d "" x <<< [v]; printf %s "${x%?}"',
    "quoted here-string": "IFS= read -r -d '' x <<< '[v]'; printf %s \"${x%?}\"",
    "substitution": 'x=$(printf %s. [v]); printf %s "${x%.}"',
    "single in substitution": "x=$(printf %s. '[v]'); printf %s \"${x%.}\"",
    "substitution in double": 'x="$(printf %s. "[v]")"; printf %s "${x%.}"',
    "backticks": 'x=`printf %s. [v]`; printf %s "${x%.}"',
    "double in backticks": 'x="`printf %s. \\"[v]\\"`"; printf %s "${x%.}"',
    "backticks in backticks": 'x=`printf %s. "\\`printf %s. [v]\\`"`; printf %s "${x%..}"',
    "here-document in substitution": 'x=$(cat <<END\n[v].\nEND\n); printf %s "${x%.}"',
    "assignment": 'x=[v]; printf %s "$x"',
    "quoted assignment": "x='[v]'; printf %s \"$x\"",
    "environment": "x=[v] bash -c 'printf %s \"$x\"'",
    "array": 'a=(one [v] "two"); printf %s "${a[1]}"',
    "loop": 'for x in [v]; do printf %s "$x"; done',
    "case": "case [v] in *) printf %s [v] ;; esac",
    "case pattern": "case '[v]' in [v]) printf %s [v] ;; *) printf no ;; esac",
    "condition": "if [[ x != [v]x ]] && [ -n [v]x ]; then printf %s [v]; fi",
    "function": 'f() { printf %s "$1"; }; f [v]',
    "subshell": "( printf %s [v] )",
    "group": "{ printf %s [v]; }",
    "process substitution": "cat <(printf %s [v])",
    "pipe": "printf %s [v] | cat",
    "after a comment": "# it's [v] `\"\nprintf %s '[v]' # \"[v]",
    "other shell": "bash -c 'printf %s [v]'",
    "double in other shell": "bash -c 'printf %s \"[v]\"'",
    "other shell in double": 'bash -c "printf %s [v]"',
    "single in other shell in double": "bash -c \"printf %s '[v]'\"",
    "argument of other shell": "bash -c 'printf %s \"$1\"' bash [v]",
    "shell in shell": "sh -c 'bash -c \"printf %s [v]\"'",
    "after an odd quote": 'printf \'%s\' "[v]" && : "it\'s"',
}

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


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
def test_a_hostile_value_arrives_intact_and_nothing_of_it_is_executed(context, tmp_path):
    command = CONTEXTS[context]
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
    context=st.sampled_from(sorted(CONTEXTS)),
)
def test_whatever_the_value_holds_the_shell_sees_one_piece_of_text(value, context, tmp_path):
    done = run(CONTEXTS[context], value, tmp_path)
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


@pytest.mark.parametrize(
    "context", ["bare", "single", "double", "here-document", "quoted here-document", "backticks"]
)
def test_a_value_of_300_kilobytes_arrives_whole(context, tmp_path):
    value = ("0123456789 $(touch PWNED) '\"\\\n" * 12_000)[: 300 * 1024] + "\n\n"
    done = run(CONTEXTS[context], value, tmp_path)
    assert done.stdout.decode() == value
    assert list(tmp_path.iterdir()) == []


def test_a_value_too_large_for_another_shell_is_refused_before_anything_runs():
    prepared = prepare((CONTEXTS["other shell"],), Variables({}, {"v": "x" * 300_000}))
    assert prepared.command == ""
    assert "300000 bytes" in prepared.problem


@pytest.mark.parametrize(
    "command",
    [
        "[v] --version",
        "ls; [v]",
        "ls | [v]",
        "! [v]",
        "if [v]; then :; fi",
        "sudo [v]",
        "env A=1 [v]",
        "exec [v]",
        "./bin/[v]",
        "eval [v]",
        "eval 'echo [v]'",
        "bash -c [v]",
        "bash -c 'echo '[v]",
        'bash -c "echo $HOME [v]"',
        "bash <<END\necho [v]\nEND",
        "cat <<END | sh\n[v]\nEND",
        "bash <<< [v]",
        "echo [v] | bash",
        "echo '[v]' | sh -s",
        "echo [v] | xargs -I{} sh -c 'echo {}'",
        "echo $(( [v] + 1 ))",
        "(( [v] > 1 ))",
        "let [v]",
        "[[ [v] -gt 3 ]]",
        "[[ -v [v] ]]",
        "[ -v [v] ]",
        "unset [v]",
        "read [v]",
        "printf -v [v] x",
        "declare -i n=[v]",
        "export [v]",
        "declare -i n; n=[v]",
        "trap [v] EXIT",
        "python3 -c 'print(\"[v]\")'",
        "perl -ne '[v]'",
        "awk '/[v]/' file",
        "sed 's/a/[v]/' file",
        "ssh host 'ls [v]'",
        "echo ${x:-[v]}",
        'echo "$[v]"',
        "su -c [v]",
        "alias x=[v]",
    ],
)
def test_where_a_value_would_be_evaluated_again_it_is_refused(command):
    script = compile_command(command, {"v"})
    assert len(script.problems) >= 1
    assert all("[v]" in words for words in script.problems)
