"""No program runs a value: with any of its options, in any place of its line, behind any other program."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from attacks import ATTACKS, FILES, Attack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.workflows.task.programs import PROGRAMS
from rondel.workflows.task.variables import Variables, prepare

SWEEP = bool(os.environ.get("RONDEL_SWEEP"))
OPTIONS = {
    name: options.split()
    for line in Path(__file__).with_name("program_options.txt").read_text().replace("\n  ", " ").splitlines()
    for name, _, options in [line.partition(": ")]
}
# Each is code, or names code, for one kind of program or another.
VALUES = [
    *("touch PWNED", "./evil", "evil", "evil.py", "./evil.js", "evil.sed", "evil.awk", "evil.mk", "tarlist"),
    *(
        "|touch PWNED",
        "!touch PWNED",
        "exec=touch PWNED",
        "1e touch PWNED",
        'BEGIN{system("touch PWNED")}',
        "pack",
    ),
    *(
        "alias.x=!touch PWNED",
        "core.pager=touch PWNED",
        "x;touch PWNED",
        "?exec sh evil ;",
        "ext::sh -c touch% PWNED",
    ),
]
PREFIXES = [
    *("", "", "", "env ", "timeout 5 ", "nice ", "nohup ", "command ", "/usr/bin/env ", "timeout 5 env X=1 "),
    *("time ", "exec ", "setsid -w ", "stdbuf -oL ", "env -i PATH=/usr/bin:/bin "),
]
LINES = [
    *(
        "{program} {option} [v] f",
        "{program} {option}=[v] f",
        "{program} {option}[v] f",
        "{program} f {option} [v]",
    ),
    *(
        "{program} {option} f [v]",
        "{program} [v] {option} f",
        "{program} f [v] {option}=x",
        "{program} {other} {option} [v]",
    ),
    *(
        "{program} {option} x {other} [v] f",
        "x=[v]; {program} {option} $x f",
        'x="[v]"; {program} {other} "$x" f',
    ),
    *(
        "echo [v] | {program} {option} f",
        "echo [v] | xargs {program} {option}",
        "{program} {option} run.sh f <<< [v]",
    ),
    *("echo [v] | {program} {option} run.sh; bash run.sh", "{program} {option} run.sh [v]; bash run.sh"),
    *(
        "{program} [v] {option} run.sh; sh ./run.sh",
        "echo [v] > notes.txt; {program} {option} run.sh notes.txt; bash run.sh",
    ),
    *("export y=[v]; {program} {option}='eval \"$y\"' f", "find f -exec {program} {option} [v] \\;"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which there is code for every kind of program."""
    root = tmp_path_factory.mktemp("programs") / "template"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a"]):
        subprocess.run(
            [*git, *words], cwd=root, check=True, capture_output=True, env={"PATH": os.environ["PATH"]}
        )
    return root


def leaves_a_mark(attack: Attack, template: Path) -> bool | None:
    """Whether a command ran its value; None where it is refused."""
    prepared = prepare((attack.command,), Variables({"title": attack.value}, {"v": attack.value}))
    if prepared.problem:
        return None
    work = template.with_name("work")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(template, work)
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(work),
        "title": attack.value,
        "GIT_CEILING_DIRECTORIES": str(work.parent),
    }
    env |= {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    argv = ["/bin/bash", "-c", prepared.command]
    with subprocess.Popen(argv, cwd=work, env=env, start_new_session=True, **pipes) as shell:
        try:
            shell.communicate(prepared.stdin.encode(), timeout=10)
        except subprocess.TimeoutExpired:
            pass  # it waits for something, and was not harmed by it
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    return any(work.rglob("PWNED"))


def test_there_are_four_hundred_attacks_and_each_stands_once():
    assert len(ATTACKS) >= 400
    assert [a for a, times in Counter(ATTACKS).items() if times > 1] == []


def test_a_command_that_would_run_a_value_is_refused_before_it_runs():
    found = {a: prepare((a.command,), Variables({"title": a.value}, {"v": a.value})).problem for a in ATTACKS}
    assert [attack for attack, problem in found.items() if not problem] == []
    assert [problem for problem in found.values() if "[v]" not in problem and "[title]" not in problem] == []


def test_a_refusal_names_the_option():
    for command, option in [("sed p f --file=[v]", "--file"), ("tar cf x --to-command [v]", "--to-command")]:
        assert option in prepare((command,), Variables({}, {"v": "x"})).problem


commands = st.builds(
    lambda program, line, prefix, pick, other: (
        prefix
        + line.format(
            program=program,
            option=OPTIONS[program][pick % len(OPTIONS[program])],
            other=OPTIONS[program][other % len(OPTIONS[program])],
        )
    ),
    st.sampled_from(sorted(OPTIONS)),
    st.sampled_from(LINES),
    st.sampled_from(PREFIXES),
    st.integers(0, 400),
    st.integers(0, 400),
)


@settings(
    max_examples=5000 if SWEEP else 150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(command=commands, value=st.sampled_from(VALUES))
def test_no_option_of_any_program_makes_it_run_a_value(command, value, folder):
    assert not leaves_a_mark(Attack(command, value), folder)


def test_every_option_of_the_table_is_one_that_the_program_has():
    known = [name for name in ("sort", "split", "tar", "sed", "cp", "install", "env") if name in OPTIONS]
    listed = [
        (name, option) for name in known for option in PROGRAMS[name].options if option.startswith("--")
    ]
    assert [(name, option) for name, option in listed if option not in OPTIONS[name]] == []
