"""What [name] means, where brackets are bash, and what is an error before anything runs."""

from __future__ import annotations

import subprocess

import pytest
from task_support import state, step, task

from rondel.model.actions import Run
from rondel.workflows.task.schema import task_from
from rondel.workflows.task.variables import Variables, compile_command, prepare
from rondel.workflows.task.workflow import TaskWorkflow

KNOWN = {"v", "id", "parent", "ctx.deep"}


def values(**changes: object) -> Variables:
    return Variables(
        task_from(".task/IMPL-1.json", task("IMPL-1", **changes)).properties, {"found": "an output"}
    )


@pytest.mark.parametrize(
    "command",
    [
        "[ -f x ] && echo yes",
        "[[ -n $x && $x == [ab]* ]]",
        "echo ${a[0]} ${a[i]} ${#a[@]} ${a[id]}",
        "ls *.[ch] src/[abc]*.py [a-z]* [!x]* [^x]",
        "a[0]=1; a[id]=2; unset a[1]",
        "declare -A m=([id]=x [v]=y)",
        "test -e [[:alpha:]]*",
        "echo $((a[id] + 1)) $[1+2]",
        "case $x in [abc]) echo;; [0-9]*) echo;; esac",
        "grep '[0-9a-f]' x | grep -E '[^a]' | grep '[s]shd'",
        "awk '{n[key]++}' file",
        "echo '[text](link.md)'",
        "echo \\[v] '\\[id]' \"\\[v]\"",
        "# [v] is a comment",
        "echo ${x/[v]/}",
        "grep -E '^[abc]+$' x",
    ],
)
def test_brackets_that_are_bash_stay_bash(command):
    script = compile_command(command, KNOWN - {"v"} if "${x/" in command else KNOWN)
    assert (script.text, script.names, script.problems) == (command, (), ())


@pytest.mark.parametrize(
    "command",
    [
        "echo [nobody]",
        "echo '[nobody]'",
        'echo "[nobody]"',
        "cat <<E\n[nobody]\nE",
        "cat <<'E'\n[nobody]\nE",
        "echo $(echo [nobody])",
        "echo `echo [nobody]`",
        "cat .summaries/[parnt]-summary.md",
        "x=[nobody]",
        "echo [ctx.other]",
    ],
)
def test_an_unknown_variable_is_an_error(command):
    script = compile_command(command, KNOWN)
    assert len(script.problems) == 1
    assert "there is no variable" in script.problems[0]


def test_the_output_of_a_later_step_is_unknown():
    steps = [step("bash(echo [later])", "a"), step("bash(true)", "b", output_to="later")]
    assert "there is no variable [later]" in state([task("IMPL-1", steps=steps)]).unusable["IMPL-1"]


def test_a_task_with_an_unknown_variable_does_not_begin_even_with_its_first_step():
    steps = [step("bash(echo one)", "a"), step("bash(echo [nobody])", "b")]
    assert [
        a for a in TaskWorkflow().plan(state([task("IMPL-1", steps=steps)], run=True)) if isinstance(a, Run)
    ] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "IMPL-1"),
        ("title", "Task IMPL-1"),
        ("depends_on", "IMPL-2 IMPL-3"),
        ("focus_paths", "src a.ts"),
        ("inherited.context", "one two"),
        ("inherited.from", "IMPL-9"),
        ("shared_context.strategy", "JWT"),
        ("shared_context", '{"strategy": "JWT"}'),
        ("parent", ""),
        ("type", "feature"),
        ("agent", "code-developer"),
        ("context.focus_paths.0", "src"),
        ("meta.type", "feature"),
        ("found", "an output"),
    ],
)
def test_a_name_is_an_output_or_a_property_by_its_path(name, value):
    known = values(
        depends_on=["IMPL-2", "IMPL-3"],
        focus_paths=["src", "a.ts"],
        inherited={"from": "IMPL-9", "context": ["one", "two"]},
        shared_context={"strategy": "JWT"},
    )
    assert known.value(name) == value


def test_an_output_comes_before_a_property_of_the_same_name():
    assert Variables({"context": "a property"}, {"context": "an output"}).value("context") == "an output"


def test_texts_are_filled_in_and_what_is_unknown_stays():
    known = values(focus_paths=["src", "lib"])
    assert (
        known.fill("In [focus_paths] by [found], not [nobody] or [ x ]")
        == "In src, lib by an output, not [nobody] or [ x ]"
    )


def test_properties_are_environment_variables_with_lists_separated_by_spaces():
    known = values(depends_on=["IMPL-2", "IMPL-3"])
    script = prepare(('for d in ${depends_on}; do echo "<$d>"; done',), known)
    done = subprocess.run(
        ["bash", "-c", script.command], env=known.environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "<IMPL-2>\n<IMPL-3>\n"


def test_no_property_can_replace_a_variable_that_programs_rely_on():
    assert {"PATH", "HOME", "IFS", "BASH_ENV", "LD_PRELOAD"}.isdisjoint(values().environment())


def test_several_commands_of_one_step_share_no_input_and_stop_at_the_first_failure():
    known = Variables({}, {"v": "the value"})
    script = prepare(("cat; echo first", "false", "echo '[v]'"), known)
    done = subprocess.run(
        ["bash", "-c", script.command], input=script.stdin, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("first\n", 1)


def test_a_value_never_stands_in_the_script_itself():
    script = prepare(("echo [v] '[v]'",), Variables({}, {"v": "s3cret-value"}))
    assert "s3cret" not in script.command
    assert script.stdin == "s3cret-value\0"
