"""Steps: in order, in the task's working copy, with their outputs, criteria and ways to fail."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile

import pytest
from task_support import (
    Scripted,
    allow_all,
    git,
    project,
    repository,
    run,
    session,
    statuses,
    step,
    task,
    write_file,
)

from rondel.errors import UnsafePath
from rondel.sandbox.box import holds, unclosable
from rondel.workflows.task.preanalysis import unmet
from rondel.workflows.task.working import reopened


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path / "repo")


def with_steps(root, *steps, **changes):
    ref = session(root, [task("IMPL-1", steps=list(steps), **changes)])
    allow_all(root, ref)
    return ref


def output(root, ref, number: int, name: str = "look") -> str:
    return (root / ref.folder / f".chat/analysis-IMPL-1-{number}-{name}.md").read_text()


def error(root, ref, task_id: str = "IMPL-1") -> str:
    return json.loads((root / ref.folder / f".task/{task_id}.json").read_text())["meta"]["error"]


def test_steps_run_in_order_and_later_ones_know_the_outputs_of_earlier_ones(root):
    ref = with_steps(
        root,
        step("bash(printf 'a b\\n\\n')", "one", output_to="first"),
        step("bash(echo \"<[first]>\" '[id]' [focus_paths])", "two", output_to="second"),
        focus_paths=["src", "lib"],
    )
    agent = Scripted()
    assert run(project(root, agent), ref).exit_code == 0
    assert output(root, ref, 1, "one") == "a b\n\n"
    assert output(root, ref, 2, "two") == "<a b> IMPL-1 src lib\n"
    assert "> <a b> IMPL-1 src lib" in agent.seen[0].prompt


def test_the_texts_of_the_approach_are_filled_in_for_the_agent(root):
    body = task("IMPL-1", steps=[step("bash(echo found it)", output_to="analysis")])
    body["flow_control"]["implementation_approach"] = {
        "task_description": "Use [analysis] in [id], not [this]"
    }
    ref = session(root, [body])
    allow_all(root, ref)
    agent = Scripted()
    assert run(project(root, agent), ref).exit_code == 0
    assert "Use found it in IMPL-1, not [this]" in agent.seen[0].prompt


def test_the_agent_gets_the_execution_context(root):
    ref = with_steps(root)
    agent = Scripted()
    run(project(root, agent), ref)
    context = json.loads(agent.seen[0].prompt.split("```json\n")[1].split("```")[0])
    assert context["workflow"] == {"session": ref.id, "phase": "IMPLEMENT"}
    assert context["task"]["id"] == "IMPL-1"
    assert agent.seen[0].role == "task.code-developer"


def test_a_step_and_the_agent_share_one_working_copy_and_one_commit(root):
    ref = with_steps(root, step("bash(echo generated > made.txt)"))

    def answer(request):
        assert (request.cwd / "made.txt").read_text() == "generated\n"
        write_file(request, "own.txt", "x\n")
        return "Done."

    assert run(project(root, Scripted(answer)), ref).exit_code == 0
    assert git(root, "show", "--name-only", "--format=").split() == ["made.txt", "own.txt"]


def with_session_in_git(root, ref, committed: bool) -> None:
    """The session as a person may have committed it, and a file that came later."""
    if committed:
        git(root, "add", "--all")
        git(root, "commit", "-qm", "the session")
    (root / ref.folder / "late.md").write_text("late\n")


@pytest.mark.parametrize("committed", [False, True])
def test_a_step_sees_its_session_at_the_usual_path_and_nothing_of_it_is_committed(root, committed):
    ref = with_steps(
        root,
        step("bash(cat .workflow/WFS-the-topic/late.md && ls -a > /dev/null)", "a"),
        step('bash(test -f "$RONDEL_SESSION_DIR/TODO_LIST.md" && echo "$depends_on$id")', "b"),
    )
    with_session_in_git(root, ref, committed)

    def answer(request):
        write_file(request, "own.txt", "x\n")
        assert (request.cwd / ref.folder / "workflow-session.json").exists() is committed
        write_file(request, f"{ref.folder}/workflow-session.json", "{}")
        return "Done."

    assert run(project(root, Scripted(answer)), ref).exit_code == 0
    assert output(root, ref, 1, "a") == "late\n"
    assert output(root, ref, 2, "b") == "IMPL-1\n"
    assert git(root, "show", "--name-only", "--format=").split() == ["own.txt"]


@pytest.mark.parametrize("committed", [False, True])
def test_a_step_that_is_killed_leaves_no_link_in_the_commit(root, committed):
    ref = with_steps(root, step("bash(kill -9 $PPID)", on_error="skip_optional"))
    with_session_in_git(root, ref, committed)

    def answer(request):
        write_file(request, "own.txt", "x\n")
        return "Done."

    assert run(project(root, Scripted(answer)), ref).exit_code == 0
    assert git(root, "show", "--name-only", "--format=").split() == ["own.txt"]


def test_a_session_behind_a_committed_link_is_no_session(root, tmp_path):
    ref = with_steps(root, step("bash(cat .workflow/WFS-the-topic/late.md)", "a"))
    (root / ".workflow").rename(root / "elsewhere")
    (root / ".workflow").symlink_to("elsewhere")
    with_session_in_git(root, ref, committed=True)
    before = git(root, "status", "--porcelain")
    assert project(root).sessions() == []
    with pytest.raises(UnsafePath, match="symbolic link"):
        run(project(root), ref)
    assert git(root, "status", "--porcelain") == before


def test_skip_optional_goes_on_with_an_empty_result(root):
    ref = with_steps(
        root,
        step("bash(echo half; false)", "one", output_to="first", on_error="skip_optional"),
        step('bash(echo "<[first]>")', "two"),
    )
    assert run(project(root), ref).exit_code == 0
    assert output(root, ref, 2, "two") == "<>\n"


def test_fail_blocks_the_task_and_says_why(root):
    ref = with_steps(
        root, step("bash(echo broken >&2; exit 3)", on_error="fail"), step("bash(touch never)", "b")
    )
    agent = Scripted()
    assert run(project(root, agent), ref).exit_code == 1
    assert statuses(root, ref) == {"IMPL-1": "blocked"}
    assert "exit code 3" in error(root, ref)
    assert "broken" in error(root, ref)
    assert agent.seen == []


COUNTING = "bash(echo x >> {log}; test $(wc -l < {log}) -ge {wanted})"


@pytest.mark.parametrize(
    ("wanted", "tries", "status"), [(1, 1, "completed"), (2, 2, "completed"), (3, 2, "blocked")]
)
def test_retry_once_really_retries_once(root, tmp_path, wanted, tries, status):
    log = tmp_path / "log"
    ref = with_steps(root, step(COUNTING.format(log=log, wanted=wanted), on_error="retry_once"))
    run(project(root), ref)
    assert len(log.read_text().split()) == tries
    assert statuses(root, ref) == {"IMPL-1": status}


@pytest.mark.parametrize(
    ("answer", "status", "tries"),
    [("continue", "completed", 2), ("skip", "completed", 1), ("fail", "blocked", 1)],
)
def test_manual_intervention_waits_until_a_person_says_go_on_skip_or_fail(
    root, tmp_path, answer, status, tries
):
    log = tmp_path / "log"
    ref = with_steps(root, step(COUNTING.format(log=log, wanted=2), on_error="manual_intervention"))
    here = project(root)
    assert run(here, ref).exit_code == 3
    assert here.run(ref).exit_code == 3
    assert len(log.read_text().split()) == 1
    here.decide(ref, answer)
    assert here.run(ref).exit_code == (1 if answer == "fail" else 0)
    assert statuses(root, ref) == {"IMPL-1": status}
    assert len(log.read_text().split()) == tries


def test_a_task_that_waits_for_a_person_does_not_hold_up_the_others(root):
    waits = task("IMPL-1", steps=[step("bash(false)", on_error="manual_intervention")], focus_paths=["a"])
    ref = session(root, [waits, task("IMPL-2", focus_paths=["a"])])
    allow_all(root, ref)
    assert run(project(root), ref).exit_code == 3
    assert statuses(root, ref) == {"IMPL-1": "active", "IMPL-2": "completed"}


@pytest.mark.parametrize(
    ("criteria", "script", "ok"),
    [
        ("exit_code:0", "true", True),
        ("exit_code:0", "false", False),
        ("exit_code:1", "false", True),
        ("exit_code:0,1", "exit 2", False),
        ("output_contains:yes", "echo oh yes", True),
        ("output_contains:yes", "echo no", False),
        ("output_not_empty", "true", False),
        ("file_exists:made.txt", "touch made.txt", True),
        ("file_exists:made.txt", "true", False),
        ("exit_code:0; output_contains:a", "echo a; false", False),
    ],
)
def test_success_criteria_decide_whether_a_step_succeeded(root, criteria, script, ok):
    ref = with_steps(root, step(f"bash({script})", success_criteria=criteria, on_error="fail"))
    run(project(root), ref)
    assert statuses(root, ref) == {"IMPL-1": "completed" if ok else "blocked"}


def test_criteria_without_an_exit_code_still_want_zero():
    assert unmet("output_contains:x", 1, "x", {}) == "exit code 1, not 0"


def test_a_step_is_ended_by_its_clock(root):
    ref = with_steps(root, step("bash(sleep 60)", on_error="fail"))
    assert run(project(root), ref, step_timeout_s=0.3).exit_code == 1
    assert "not done after 0.3 s" in error(root, ref)


def test_a_command_that_calls_an_agent_runs_like_any_other(root, tmp_path):
    bin_ = tmp_path / "codex"
    bin_.write_text('#!/bin/sh\nprintf "agent got: %s" "$3"\n')
    bin_.chmod(0o755)
    ref = with_steps(
        root,
        step("bash(echo '$(touch PWNED)')", "a", output_to="found"),
        step(f"bash({bin_} --full-auto exec 'Implement: [found]')", "b"),
    )
    assert run(project(root), ref).exit_code == 0
    assert output(root, ref, 2, "b") == "agent got: Implement: $(touch PWNED)"
    assert not (root / "PWNED").exists()


def test_a_blocked_task_that_is_tried_again_starts_from_its_first_step(root, tmp_path):
    log = tmp_path / "log"
    ref = with_steps(root, step(COUNTING.format(log=log, wanted=2), on_error="fail"))
    here = project(root)
    assert run(here, ref).exit_code == 1
    here.change(ref, reopened(here.state(ref), "IMPL-1", here.look.at, "again"))
    assert run(here, ref).exit_code == 0
    assert statuses(root, ref) == {"IMPL-1": "completed"}


def test_unallowed_commands_never_run_and_the_run_says_which_waits(root, tmp_path):
    mark = tmp_path / "ran"
    ref = session(root, [task("IMPL-1", steps=[step(f"bash(touch {mark})")]), task("IMPL-2")])
    here = project(root)
    report = run(here, ref)
    assert report.exit_code == 3
    assert f"touch {mark}" in " ".join(report.details)
    assert statuses(root, ref) == {"IMPL-1": "pending", "IMPL-2": "completed"}
    assert not mark.exists()
    allow_all(root, ref)
    assert here.run(ref).exit_code == 0
    assert mark.exists()


def test_a_changed_command_asks_again(root, tmp_path):
    ref = with_steps(root, step("bash(true)"))
    path = root / ref.folder / ".task/IMPL-1.json"
    path.write_text(path.read_text().replace("bash(true)", f"bash(true; touch {tmp_path}/ran)"))
    assert run(project(root), ref).exit_code == 3
    assert not (tmp_path / "ran").exists()


def test_a_repository_cannot_bring_its_own_permissions(root, tmp_path):
    """Neither what lies in the session's folder nor another repository's permission counts."""
    other = repository(tmp_path / "other")
    command = f"bash(touch {tmp_path}/ran)"
    allow_all(other, session(other, [task("IMPL-1", steps=[step(command)])]))
    ref = session(root, [task("IMPL-1", steps=[step(command)])])
    decisions = root / ref.folder / ".rondel/decisions"
    decisions.mkdir(parents=True)
    (decisions / "allow.json").write_text('{"answer": "allow"}')
    report = run(project(root), ref, trust_commands=True, allowed=[command], trusted=True)
    assert report.exit_code == 3
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(bool(unclosable()), reason=f"no network can be closed here: {unclosable()}")
def test_in_the_sandbox_a_step_writes_only_in_its_working_copy_and_has_no_network(
    root, tmp_path, monkeypatch
):
    """What `[task] sandbox` asks for: the sandbox that every step has, and no network."""
    home = tmp_path / "person"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("secret\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    connect = f"(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo connected || echo refused"
    ref = with_steps(
        root,
        step("bash(echo in > made.txt)", "a", on_error="fail"),
        step(f"bash(touch {tmp_path}/out; touch ~/out || echo refused)", "b", on_error="fail"),
        step('bash(touch "$RONDEL_SESSION_DIR/x" .workflow/*/x || echo refused)', "c", on_error="fail"),
        step(f"bash({connect})", "d", on_error="fail"),
        step("bash(cat ~/.ssh/id || echo refused)", "e", on_error="fail"),
    )
    assert run(project(root), ref, sandbox="bwrap").exit_code == 0
    assert not (tmp_path / "out").exists()
    for number, name in ((2, "b"), (3, "c"), (4, "d"), (5, "e")):
        assert output(root, ref, number, name) == "refused\n"
    assert git(root, "show", "--name-only", "--format=").split() == ["made.txt"]
    subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"], check=True)
    server.close()


def test_a_step_that_is_to_have_no_network_does_not_run_where_nothing_is_confined(root, monkeypatch):
    monkeypatch.setenv("RONDEL_SANDBOX", "none")
    ref = with_steps(root, step(f"bash(touch {root}/ran)", "a", on_error="fail"))
    report = run(project(root), ref, sandbox="bwrap")
    assert report.exit_code != 0
    assert not (root / "ran").exists()


@pytest.mark.skipif(not holds(), reason="this kernel has no Landlock to hold anything")
def test_every_step_is_held_to_its_working_copy(root, tmp_path, monkeypatch):
    """Nothing is written outside, no secret is read, the session is a copy without what is Rondel's own."""
    home = tmp_path / "person"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("secret\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    ref = with_steps(
        root,
        step("bash(echo in > made.txt)", "a", on_error="fail"),
        step(f"bash(touch {tmp_path}/out || echo refused)", "b", on_error="fail"),
        step("bash(cat ~/.ssh/id || echo refused)", "c", on_error="fail"),
        step(f"bash(touch {root}/x || echo refused)", "d", on_error="fail"),
        step('bash(touch "$RONDEL_SESSION_DIR/x" .workflow/*/x || echo refused)', "e", on_error="fail"),
        step('bash((cd "$RONDEL_SESSION_DIR" && ls -A) && ls -A .workflow/*/)', "f", on_error="fail"),
        step('bash(echo x > "$TMPDIR/x" && cat "$TMPDIR/x")', "g", on_error="fail"),
        step("bash(git log --oneline -1 | wc -l)", "h", on_error="fail"),
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert run(project(root), ref).exit_code == 0
    for number, name in ((2, "b"), (3, "c"), (4, "d"), (5, "e")):
        assert output(root, ref, number, name) == "refused\n"
    shown = output(root, ref, 6, "f")
    assert shown.count("workflow-session.json") == 2
    assert ".rondel" not in shown
    assert output(root, ref, 7, "g") == "x\n"
    assert output(root, ref, 8, "h").strip() == "1"
    assert git(root, "show", "--name-only", "--format=").split() == ["made.txt"]
    assert list(temporary.iterdir()) == []
