"""The doors of features, through the real command, the real engine and a scripted agent."""

from __future__ import annotations

import json
import subprocess

import pytest
from scratch import APPROVED, RULES, environment, git, listing, meta, repository, rondel, script

from rondel.workflows.feature.lint import lint_meta

BLOCKED = (
    '```json\n{"approved": false, "issues": [{"severity": "blocker", "description": "no error case"}]}\n```'
)


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path)


def feature(root, *args, **env):
    return rondel(root, "feature", *args, **env)


def test_a_whole_feature_from_start_to_finish(root):
    assert feature(root, "start", "Add").stdout == "docs/features/001-add\n"
    ran = feature(root, "run", "--auto")
    assert ran.returncode == 0, ran.stderr
    assert "verify: Phase complete (1 iterations)" in ran.stdout
    folder = root / "docs/features/001-add"
    documents = ["brainstorm", "spec", "design", "plan", "tasks", "verification"]
    assert {f"{n}.md" for n in documents} | {".review-history.md"} <= listing(folder)
    assert git(root, "show", "feature/001-add:calc.py") == "def add(a, b):\n    return a + b\n"
    assert (root / "calc.py").read_text() == "", "the person's own tree is not touched"
    log = git(root, "log", "--format=%s", "main..feature/001-add").splitlines()
    assert log == ["task 2: Say so", "task 1: Add the function"]

    waits = feature(root, "finish")
    assert waits.returncode == 3
    done = feature(root, "finish", "--merge")
    assert done.returncode == 0, done.stderr
    assert "add(a, b)" in (root / "calc.py").read_text()
    ended = meta(root)
    assert (ended["status"], ended["currentPhase"]) == ("completed", "finish")
    assert lint_meta(ended) == ()
    assert not (folder / ".review-history.md").exists()
    assert "### Iteration 1" in feature(root, "history", "001").stdout
    assert feature(root, "finish", "001").returncode == 5
    blocked = feature(root, "design", "001")
    assert blocked.returncode == 1
    assert "completed" in blocked.stderr


def test_a_phase_that_is_skipped_is_a_warning_and_goes_on_without_a_terminal(root):
    feature(root, "start", "Add")
    done = feature(root, "specify")
    assert done.returncode == 0
    assert "skips brainstorm" in done.stderr
    assert "feature:001-add: this run is done" in done.stderr, "a phase that is complete is not idle"
    assert "idle" not in done.stderr
    assert done.stdout == "specify: Phase complete (1 iterations)\n"


def test_check_says_proceed_warning_or_blocked(root):
    feature(root, "start", "Add")
    assert feature(root, "check", "brainstorm").stdout == "proceed\n"
    assert feature(root, "check", "design").stdout.startswith("warning: design skips brainstorm, specify")
    blocked = feature(root, "check", "implement", "--json")
    assert blocked.returncode == 1
    body = json.loads(blocked.stdout)
    assert (body["allowed"], body["type"]) == (False, "blocked")
    assert feature(root, "implement").returncode == 1
    unknown = feature(root, "check", "deploy")
    assert unknown.returncode == 1
    assert unknown.stdout.startswith("blocked: no phase 'deploy'; there are: brainstorm, specify")


def test_a_partial_phase_without_a_terminal_waits_with_the_question_and_takes_the_answer(root):
    feature(root, "start", "Add")
    script(root, [{"role": "feature.*-reviewer", "fail": "down"}, *RULES])
    assert feature(root, "specify").returncode == 1
    script(root, RULES)
    waits = feature(root, "specify")
    assert waits.returncode == 3
    for words in ("continue", "fresh", "review"):
        assert words in waits.stderr
    assert json.loads(rondel(root, "status", "--json").stdout)["sessions"][0]["status"] == "waiting"
    done = feature(root, "specify", "--continue")
    assert done.returncode == 0, done.stderr
    assert meta(root)["phases"]["specify"]["iterations"] == 1


def test_the_question_of_a_partial_phase_can_be_answered_by_approve_too(root):
    feature(root, "start", "Add")
    script(root, [{"role": "feature.*-reviewer", "fail": "down"}, *RULES])
    feature(root, "specify")
    script(root, RULES)
    feature(root, "specify")
    done = rondel(root, "approve", "feature:001-add", "--option", "fresh")
    assert done.returncode == 0, done.stderr
    assert (root / "docs/features/001-add/.rondel/parts/specify/pass-2/iteration-1/draft.md").exists()


def test_repeating_a_phase_without_a_terminal_waits_unless_it_was_agreed_to(root):
    feature(root, "start", "Add")
    feature(root, "brainstorm")
    feature(root, "specify")
    waits = feature(root, "brainstorm")
    assert waits.returncode == 3
    assert "spec.md" in waits.stderr
    assert feature(root, "brainstorm", "--yes").returncode == 0


@pytest.mark.parametrize(("env", "code"), [({}, 0), ({"CI": "1"}, 4)])
def test_concerns_at_the_limit_are_told_and_fail_under_ci(root, env, code):
    script(root, [{"role": "feature.*-reviewer", "reply": BLOCKED}, *RULES])
    feature(root, "start", "Add", "--mode", "quick")
    done = feature(root, "brainstorm", **env)
    assert done.returncode == code
    assert done.stdout == "brainstorm: Phase complete. Reviewer concerns: [blocker] no error case\n"
    assert meta(root)["phases"]["brainstorm"]["iterations"] == 2


def test_a_run_waits_at_concerns_and_goes_on_after_approval(root):
    script(root, [{"role": "feature.*-reviewer", "action": "*brainstorm*", "reply": BLOCKED}, *RULES])
    feature(root, "start", "Add", "--mode", "hotfix")
    waits = feature(root, "run", "--until", "specify")
    assert waits.returncode == 3
    assert "no error case" in waits.stderr
    done = rondel(root, "approve", "feature:001-add")
    assert done.returncode == 0, done.stderr
    assert list(meta(root)["phases"]) == ["brainstorm", "specify"]


def test_nothing_left_to_run_is_not_a_success(root):
    feature(root, "start", "Add")
    feature(root, "brainstorm")
    assert feature(root, "run", "--until", "brainstorm").returncode == 5


def test_the_reviewers_workspace_cannot_be_written(root):
    """What a reviewer writes goes nowhere, and the next one finds its checkout as it was."""
    naughty = {"role": "feature.*-reviewer", "files": {"calc.py": "HACKED"}, "reply": APPROVED}
    script(root, [naughty, *RULES])
    feature(root, "start", "Add")
    feature(root, "brainstorm")
    assert git(root, "status", "--porcelain") == ""
    assert (root / "calc.py").read_text() == ""


def test_a_task_whose_tests_fail_is_not_taken_over(root):
    wrong = {"calc.py": "def add(a, b):\n    return a - b\n", "test_add.py": RULES[2]["files"]["test_add.py"]}
    script(root, [RULES[0], {"role": "feature.implement", "files": wrong, "reply": "Done."}, *RULES[1:]])
    feature(root, "start", "Add", "--mode", "hotfix", "--description", "add(a, b)")
    done = feature(root, "implement")
    assert done.returncode == 1
    assert "the checks failed" in done.stderr
    assert git(root, "show", "feature/001-add:calc.py") == ""
    script(root, [RULES[0], {"role": "feature.implement", "files": RULES[2]["files"], "reply": "Mended."}])
    done = rondel(root, "resume", "feature:001-add", "--retry")
    assert done.returncode == 0, done.stderr
    assert meta(root)["phases"]["implement"]["completed"]


def test_verify_runs_the_tests_where_the_project_is_set_up_and_may_build(root):
    (root / "rondel.toml").write_text(
        (root / "rondel.toml").read_text().partition("[project]")[0]
        + '[project]\nsetup = "echo ready > deps"\ntest = "grep -q ready deps && echo built > out"\n'
    )
    feature(root, "start", "Add", "--mode", "hotfix")
    assert feature(root, "verify").returncode == 0
    checks = json.loads((root / "docs/features/001-add/.rondel/parts/verify/checks.json").read_text())
    assert checks["passed"] is True
    assert git(root, "status", "--porcelain") == ""


def test_a_worktree_is_made_on_request_stored_relative_and_warned_about_from_elsewhere(root):
    done = feature(root, "start", "Add", "--worktree")
    assert done.returncode == 0, done.stderr
    assert meta(root)["worktree"] == "../repo-001-add"
    tree = root.parent / "repo-001-add"
    assert git(tree, "branch", "--show-current") == "feature/001-add\n"

    elsewhere = feature(root, "check", "brainstorm")
    assert elsewhere.stderr.count("warning:") == 1
    assert str(tree) in elsewhere.stderr
    inside = feature(tree, "check", "brainstorm")
    assert inside.returncode == 0
    assert inside.stderr == ""
    assert feature(root, "check", "brainstorm", CLAUDECODE="1").stderr == "", "there the hook has said it"


def test_a_worktree_that_cannot_be_made_leaves_a_feature_without_one_and_says_so(root):
    git(root, "branch", "feature/001-add")
    refused = feature(root, "start", "Add", "--worktree")
    assert refused.returncode == 1
    assert "feature:001-add is there, but without a worktree" in refused.stderr
    assert meta(root)["worktree"] is None


def test_half_a_character_in_a_document_stops_no_command(root):
    feature(root, "start", "Add")
    path = root / "docs/features/001-add/.meta.json"
    path.write_text(path.read_text().replace('"Add"', '"\\ud800 Add"'))
    assert "? Add" in feature(root, "status").stdout
    shown = feature(root, "status", "--json")
    assert json.loads(shown.stdout)["sessions"][0]["title"] == "? Add"


def test_without_a_commit_there_is_no_worktree_and_no_feature_either(root):
    empty = root.parent / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    refused = feature(empty, "start", "Add", "--worktree")
    assert refused.returncode == 1
    assert "commit" in refused.stderr
    assert not (empty / "docs").exists()


def test_a_feature_begun_in_a_worktree_of_a_persons_own_stays_there(root):
    feature(root, "start", "Main")
    git(root, "worktree", "add", "-q", "../own")
    own = root.parent / "own"
    assert feature(own, "start", "Own").returncode == 0
    assert (own / "docs/features/001-own/.meta.json").exists()
    feature(root, "start", "Tree", "--worktree")
    feature(root.parent / "repo-002-tree", "start", "Next")
    assert (root / "docs/features/003-next/.meta.json").exists()


def test_code_goes_into_the_features_worktree_and_finish_removes_it(root):
    feature(root, "start", "Add", "--worktree")
    tree = root.parent / "repo-001-add"
    assert feature(tree, "run", "--auto").returncode == 0
    assert "a + b" in (tree / "calc.py").read_text()
    (tree / "notes.txt").write_text("mine\n")
    refused = feature(root, "finish", "--merge")
    assert refused.returncode == 1
    assert "notes.txt" in refused.stderr
    assert meta(root)["status"] == "active"
    [put_aside] = [
        line.rpartition("put it aside: ")[2] for line in refused.stderr.splitlines() if "aside" in line
    ]
    subprocess.run(put_aside, shell=True, check=True, env=environment(root.parent))
    done = feature(root, "finish", "--merge")
    assert done.returncode == 0, done.stderr
    assert not tree.exists()
    assert meta(root)["worktree"] is None
    assert "a + b" in (root / "calc.py").read_text()


def test_finish_refuses_with_unfinished_tasks(root):
    feature(root, "start", "Add")
    (root / "docs/features/001-add/tasks.md").write_text("### Task 1: First\n\n### Task 2: Second\n")
    refused = feature(root, "finish", "--keep")
    assert refused.returncode == 1
    assert "2 unfinished tasks: 1: First, 2: Second" in refused.stderr
    assert feature(root, "finish", "--keep", "--force").returncode == 0


def test_finish_refuses_with_uncommitted_work_here(root):
    feature(root, "start", "Add")
    git(root, "branch", "feature/001-add")
    (root / "calc.py").write_text("mine\n")
    refused = feature(root, "finish", "--merge")
    assert refused.returncode == 1
    assert "calc.py" in refused.stderr


def test_a_conflict_merges_nothing(root):
    feature(root, "start", "Add")
    feature(root, "run", "--auto")
    (root / "calc.py").write_text("def add(): ...\n")
    git(root, "commit", "-qam", "other")
    refused = feature(root, "finish", "--merge")
    assert refused.returncode == 1
    assert "conflicts in calc.py" in refused.stderr
    assert "next: git merge " in refused.stderr
    assert git(root, "status", "--porcelain") == ""
    assert meta(root)["status"] == "active"


def test_keep_leaves_branch_and_worktree(root):
    feature(root, "start", "Add", "--worktree")
    assert feature(root, "finish", "--keep").returncode == 0
    assert (root.parent / "repo-001-add").is_dir()
    assert meta(root)["status"] == "completed"


def test_abandon_keeps_the_branch_and_says_why(root):
    feature(root, "start", "Add", "--worktree")
    assert feature(root, "finish", "--abandon", "--reason", "superseded").returncode == 0
    assert meta(root)["status"] == "abandoned"
    assert meta(root)["abandoned_reason"] == "superseded"
    (shown,) = json.loads(feature(root, "status", "--json").stdout)["sessions"]
    assert (shown["status"], shown["phase"]) == ("cancelled", "abandoned")
    assert not (root.parent / "repo-001-add").exists()
    assert "feature/001-add" in git(root, "branch")


def test_a_pull_request_needs_a_remote_and_says_so(root):
    feature(root, "start", "Add")
    git(root, "branch", "feature/001-add")
    refused = feature(root, "finish", "--pr")
    assert refused.returncode == 1
    assert "origin" in refused.stderr


def test_a_pull_request_is_pushed_and_opened(root, tmp_path):
    bare = tmp_path / "origin.git"
    git(root, "init", "-q", "--bare", str(bare))
    git(root, "remote", "add", "origin", str(bare))
    programs = tmp_path / "bin"
    programs.mkdir()
    gh = programs / "gh"
    gh.write_text(
        f'#!/bin/sh\n[ "$2" = view ] && exit 1\necho "$@" > {tmp_path}/gh.args\n'
        f"cat > {tmp_path}/gh.body\necho https://example.com/1\n"
    )
    gh.chmod(0o755)
    feature(root, "start", "Add")
    git(root, "branch", "feature/001-add")
    git(root, "tag", "feature/001-add")  # of the same name, and no business of ours
    (root / "docs/features/001-add/spec.md").write_text("# The spec\n")
    done = feature(root, "finish", "--pr", PATH=f"{programs}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    assert "https://example.com/1" in done.stdout
    assert "--head feature/001-add" in (tmp_path / "gh.args").read_text()
    assert (tmp_path / "gh.body").read_text() == "# The spec\n"
    assert "feature/001-add" in git(bare, "branch")
    assert not git(bare, "tag")


def test_status_as_json_has_the_document_and_what_follows_from_it(root):
    feature(root, "start", "Add")
    feature(root, "brainstorm")
    body = json.loads(feature(root, "status", "--json").stdout)
    [session] = body["sessions"]
    assert session["session"] == "feature:001-add"
    assert session["progress"] == {"done": 1, "total": 7}
    state = session["state"]
    assert (state["currentPhase"], state["next"], state["limit"]) == ("brainstorm", "specify", 3)
    assert state["phases"]["brainstorm"]["iterations"] == 1
    assert "next: rondel feature specify" in feature(root, "status").stdout


def test_several_active_features_have_to_be_named(root):
    feature(root, "start", "Add")
    feature(root, "start", "Sub")
    several = feature(root, "check", "brainstorm")
    assert several.returncode == 2
    assert "feature:001-add" in several.stderr
    assert feature(root, "check", "brainstorm", "sub").returncode == 0


def test_lint_prints_a_list_for_any_file_and_never_fails(root, tmp_path):
    good = tmp_path / "good.json"
    good.write_text('{"status": "active", "mode": "full", "phases": {}}')
    bad = tmp_path / "bad.json"
    bad.write_text('{"status": "planned", "phases": {"design": {"completed": "2026-11-15"}}}')
    missing = tmp_path / "missing.json"
    done = feature(root, "lint", str(good), str(bad), str(missing), "--json")
    assert done.returncode == 0
    rows = json.loads(done.stdout)
    assert [row["file"] for row in rows] == [str(good), str(bad), str(missing)]
    assert rows[0]["problems"] == []
    assert [(p["rule"], p["phase"]) for p in rows[1]["problems"]] == [
        ("completed-without-started", "design"),
        ("unknown-status", None),
    ]
    assert set(rows[1]["problems"][0]) == {"rule", "phase", "message"}
    assert feature(tmp_path, "lint", str(bad)).returncode == 0, "it needs no repository"


def test_doctor_mends_a_stray_brace_on_request_and_keeps_the_original(root):
    feature(root, "start", "Add")
    path = root / "docs/features/001-add/.meta.json"
    sound = path.read_text()
    path.write_text(sound + "}\n")
    assert json.loads(rondel(root, "status", "--json").stdout)["sessions"][0]["status"] == "damaged"
    refused = feature(root, "brainstorm")
    assert refused.returncode == 1
    assert "doctor --repair" in refused.stderr
    assert "invalid-json" in rondel(root, "doctor").stdout
    assert path.read_text() == sound + "}\n"
    rondel(root, "doctor", "--repair")
    assert json.loads(path.read_text()) == json.loads(sound)
    assert (path.parent / ".meta.invalid-1.json").read_text() == sound + "}\n"


def test_a_run_up_to_a_phase_that_is_done_says_so_and_what_follows(root):
    feature(root, "start", "Add")
    assert feature(root, "run", "--until", "brainstorm", "--auto").returncode == 0
    done = feature(root, "run", "--until", "brainstorm")
    assert done.returncode == 5
    assert "done up to brainstorm" in done.stderr
    assert "next: rondel feature specify 001-add" in done.stderr
    assert "every phase" not in done.stderr


def test_a_hotfix_is_implemented_at_once_without_a_question(root):
    feature(root, "start", "Small", "--mode", "hotfix", "--description", "add adds")
    done = feature(root, "implement")
    assert "warning" not in done.stderr
    assert done.returncode == 0, done.stderr
