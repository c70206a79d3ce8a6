"""Running: by dependency, in parallel, in working copies, one linear history, green at each commit."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from task_support import (
    REPORT,
    Scripted,
    git,
    project,
    repository,
    run,
    session,
    statuses,
    task,
    task_id,
    write_file,
)

from rondel.agents.base import Reply
from rondel.model.outcomes import Ended

CHECKS = f"{sys.executable} -B -m unittest discover -q -s tests"
LEVELS = {
    **{f"IMPL-{n}": [] for n in range(1, 5)},
    **{f"IMPL-{n}": [f"IMPL-{n - 4}", f"IMPL-{(n - 4) % 4 + 1}"] for n in range(5, 9)},
    **{f"IMPL-{n}": [f"IMPL-{n - 4}"] for n in range(9, 13)},
}


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path / "repo")


def twelve() -> list[dict]:
    return [task(t, depends_on=d, focus_paths=[f"lib/{module(t)}.py"]) for t, d in LEVELS.items()]


def module(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")


def implement(request) -> str:
    """Write a module that needs those of its dependencies, and a real test of it."""
    name = task_id(request)
    needs = LEVELS[name]
    body = "".join(f"from lib.{module(n)} import value as {module(n)}\n" for n in needs)
    body += f"value = 1 + {' + '.join(module(n) for n in needs) or '0'}\n"
    write_file(request, f"lib/{module(name)}.py", body)
    write_file(request, "lib/__init__.py", "")
    test = (
        "import sys, unittest\nsys.path.insert(0, '.')\n"
        f"from lib.{module(name)} import value\n\n"
        f"class Test(unittest.TestCase):\n    def test(self):\n        self.assertGreaterEqual(value, 1)\n"
    )
    write_file(request, f"tests/test_{module(name)}.py", test)
    return REPORT


def history(root) -> list[str]:
    """The tasks in the order of their commits, the oldest first."""
    subjects = git(root, "log", "--reverse", "--format=%s").splitlines()
    return [s.split(":")[0] for s in subjects if s.startswith("IMPL-")]


def assert_linear_and_green(root, *, each: bool = False) -> None:
    assert git(root, "rev-list", "--merges", "--count", "HEAD") == "0"
    commits = git(root, "rev-list", "HEAD").split() if each else ["HEAD"]
    for commit in commits[:-1] if each else commits:
        git(root, "checkout", "-q", commit if each else "main")
        subprocess.run(["bash", "-c", CHECKS], cwd=root, check=True, capture_output=True)
    git(root, "checkout", "-q", "main")


def assert_nothing_left(root) -> None:
    """No working copy, no branch and no operation of git is left behind."""
    assert len(git(root, "worktree", "list").splitlines()) == 1
    assert git(root, "branch", "--format=%(refname:short)").split() == ["main"]
    names = {p.name for p in (root / ".git").iterdir()}
    assert names.isdisjoint({"rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "MERGE_HEAD", "sequencer"})
    assert git(root, "status", "--porcelain", "--untracked-files=no") == ""


def test_a_task_with_half_characters_runs_to_its_end(root):
    ref = session(root, [task("IMPL-1", "A \ud800 title", requirements=["\udcff"])])
    assert run(project(root), ref).exit_code == 0
    assert "A ? title" in (root / ref.folder / "TODO_LIST.md").read_text()


def test_twelve_tasks_on_three_levels_end_green_with_one_linear_history(root):
    ref = session(root, twelve())
    agent = Scripted(implement)
    assert run(project(root, agent), ref, checks=CHECKS).exit_code == 0
    assert set(statuses(root, ref).values()) == {"completed"}
    order = history(root)
    assert sorted(order) == sorted(LEVELS)
    for name, needs in LEVELS.items():
        assert all(order.index(n) < order.index(name) for n in needs)
    assert_linear_and_green(root, each=True)
    assert_nothing_left(root)
    assert len(agent.seen) == 12
    trailers = git(root, "log", "--format=%(trailers:key=Rondel-Action,valueonly)").split()
    assert len(set(trailers)) == 12


def test_as_many_run_at_once_as_are_asked_for_and_never_more(root):
    now, most, lock = 0, 0, threading.Lock()

    def answer(request):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.4)
        with lock:
            now -= 1
        return REPORT

    class InThreads(Scripted):
        async def run(self, request, beat):
            return Reply(Ended.DONE, await asyncio.to_thread(answer, request))

    ref = session(root, [task(f"IMPL-{n}") for n in range(1, 10)])
    assert run(project(root, InThreads()), ref, jobs=3).exit_code == 0
    assert most == 3


def test_dependents_get_the_summaries_of_what_they_depend_on(root):
    ref = session(root, [task("IMPL-1"), task("IMPL-2", depends_on=["IMPL-1"]), task("IMPL-3")])
    agent = Scripted()
    assert run(project(root, agent), ref).exit_code == 0
    prompts = {task_id(r): r.prompt for r in agent.seen}
    assert "> Mind the gap." in prompts["IMPL-2"]
    assert "Mind the gap" not in prompts["IMPL-3"]


def test_a_task_starts_from_a_commit_that_holds_what_it_depends_on(root):
    def answer(request):
        name = task_id(request)
        if name == "IMPL-2":
            assert (request.cwd / "IMPL-1.txt").exists()
        write_file(request, f"{name}.txt", "x")
        return REPORT

    ref = session(root, [task("IMPL-1"), task("IMPL-2", depends_on=["IMPL-1"])])
    assert run(project(root, Scripted(answer)), ref).exit_code == 0


def test_only_the_tasks_that_are_named_run(root):
    ref = session(
        root, [task("IMPL-1"), task("IMPL-2", status="container"), task("IMPL-2.1"), task("IMPL-2.2")]
    )
    assert run(project(root), ref, only=("IMPL-2",)).exit_code == 0
    assert statuses(root, ref) == {
        "IMPL-1": "pending",
        "IMPL-2": "container",
        "IMPL-2.1": "completed",
        "IMPL-2.2": "completed",
    }


def test_a_task_that_leaves_a_repository_in_its_edit_is_blocked_and_says_where_it_is(root):
    def answer(request):
        if task_id(request) == "IMPL-1" and not (request.cwd / "made").exists():
            repository(request.cwd / "made")
        return REPORT

    ref = session(root, [task("IMPL-1"), task("IMPL-2")])
    report = run(project(root, Scripted(answer)), ref)
    assert report.exit_code == 1
    assert statuses(root, ref) == {"IMPL-1": "blocked", "IMPL-2": "completed"}
    error = json.loads((root / ref.folder / ".task/IMPL-1.json").read_text())["meta"]["error"]
    where = re.search(r"rm -rf (\S+)/made/.git", error)
    assert where is not None
    assert Path(where[1], "made/README.md").is_file()
    subprocess.run(where[0], shell=True, check=True)
    again = Scripted(lambda _: REPORT)
    assert project(root, again).run(ref, retry=True).exit_code == 0
    assert again.seen == [], "what the person fixed is taken, and nobody is asked again"
    assert statuses(root, ref) == {"IMPL-1": "completed", "IMPL-2": "completed"}
    assert "made/README.md" in git(root, "ls-tree", "-r", "--name-only", "HEAD").split()


def test_a_failed_task_is_blocked_and_the_others_go_on(root):
    def answer(request):
        if task_id(request) == "IMPL-1":
            return Reply(Ended.FAILED, error="out of ideas")
        return REPORT

    ref = session(root, [task("IMPL-1"), task("IMPL-2"), task("IMPL-3", depends_on=["IMPL-1"])])
    report = run(project(root, Scripted(answer)), ref)
    assert report.exit_code == 1
    assert "IMPL-1 is blocked (out of ideas)" in report.message
    assert statuses(root, ref) == {"IMPL-1": "blocked", "IMPL-2": "completed", "IMPL-3": "pending"}
    body = json.loads((root / ref.folder / ".task/IMPL-1.json").read_text())
    assert body["meta"]["error"] == "out of ideas"
    assert_nothing_left(root)


def test_a_semantic_conflict_that_the_checks_find_sends_the_task_back_and_not_the_session_down(root):
    """Both tasks are right alone; together the checks fail until one of them is mended."""
    (root / "check.sh").write_text("! { test -f a && test -f b && ! test -f mended; }\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "checks")

    def answer(request):
        if "the checks failed" in request.prompt:
            write_file(request, "mended", "x")
        write_file(request, "a" if task_id(request) == "IMPL-1" else "b", "x")
        return REPORT

    ref = session(root, [task("IMPL-1"), task("IMPL-2")])
    agent = Scripted(answer, seconds=0.2)
    assert run(project(root, agent), ref, checks="sh check.sh").exit_code == 0
    assert set(statuses(root, ref).values()) == {"completed"}
    assert len(agent.seen) == 3
    assert len(history(root)) == 2
    assert_nothing_left(root)


def test_tasks_that_wait_for_their_turn_at_the_branch_hold_no_other_up(root):
    """The checks of the first wait until the last has made its commit, while the others queue up."""
    names = [f"IMPL-{n}" for n in range(1, 13)]
    committed = f"git -C {root} for-each-ref refs/heads/rondel | grep -q impl-12"
    wait = f"for i in $(seq 300); do test -f IMPL-12.txt || {committed} && exit; sleep 0.1; done; exit 1"

    class LastIsSlow(Scripted):
        async def run(self, request, beat):
            await asyncio.sleep(1.5 if task_id(request) == "IMPL-12" else 0)
            write_file(request, f"{task_id(request)}.txt", "x")
            return await super().run(request, beat)

    ref = session(root, [task(t) for t in names])
    assert run(project(root, LastIsSlow()), ref, jobs=12, checks=wait).exit_code == 0
    assert set(statuses(root, ref).values()) == {"completed"}


def test_an_edit_that_does_not_merge_is_done_anew_on_what_the_other_left(root):
    def answer(request):
        name = task_id(request)
        path = request.cwd / "shared.txt"
        before = path.read_text() if path.exists() else ""
        write_file(request, "shared.txt", f"{before}{name}\n")
        return REPORT

    ref = session(root, [task("IMPL-1"), task("IMPL-2")])
    agent = Scripted(answer, seconds=0.2)
    assert run(project(root, agent), ref).exit_code == 0
    assert set(statuses(root, ref).values()) == {"completed"}
    assert sorted((root / "shared.txt").read_text().split()) == ["IMPL-1", "IMPL-2"]
    again = next(r for r in agent.seen if "The round before" in r.prompt)
    assert "shared.txt" in again.prompt
    assert len(history(root)) == 2
    assert_nothing_left(root)


def test_tasks_in_the_same_places_are_serialised_so_that_they_need_not_be_done_anew(root):
    def answer(request):
        path = request.cwd / "src/shared.txt"
        before = path.read_text() if path.exists() else ""
        write_file(request, "src/shared.txt", f"{before}{task_id(request)}\n")
        return REPORT

    ref = session(root, [task(f"IMPL-{n}", focus_paths=["src"]) for n in range(1, 5)])
    agent = Scripted(answer, seconds=0.1)
    assert run(project(root, agent), ref).exit_code == 0
    assert len(agent.seen) == 4


def test_a_task_whose_edit_never_merges_is_blocked_in_the_end(root):
    """Somebody else changes the same line each time, as often as it is tried."""
    count = 0

    def answer(request):
        nonlocal count
        count += 1
        write_file(request, "README.md", f"mine {count}\n")
        (root / "README.md").write_text(f"theirs {count}\n")
        git(root, "commit", "-qam", "theirs")
        return REPORT

    ref = session(root, [task("IMPL-1")])
    assert run(project(root, Scripted(answer)), ref).exit_code == 1
    assert count == 3
    body = json.loads((root / ref.folder / ".task/IMPL-1.json").read_text())
    assert body["status"] == "blocked"
    assert "README.md" in body["meta"]["error"]
    assert_nothing_left(root)
    kept = git(root, "for-each-ref", "--format=%(objectname)", "refs/rondel/kept").split()
    assert {git(root, "show", f"{commit}:README.md") for commit in kept} == {"mine 1", "mine 2", "mine 3"}


def test_a_task_that_changes_nothing_is_completed_without_a_commit(root):
    ref = session(root, [task("IMPL-1")])
    before = git(root, "rev-parse", "HEAD")
    assert run(project(root), ref).exit_code == 0
    assert git(root, "rev-parse", "HEAD") == before
    text = (root / ref.folder / ".summaries/IMPL-1-summary.md").read_text()
    assert "No file was changed." in text
    assert_nothing_left(root)


def test_a_person_may_add_a_task_while_others_run(root):
    from rondel.workflows.task import files  # noqa: PLC0415 - only here

    ref = session(root, [task("IMPL-1")])

    def answer(request):
        if task_id(request) == "IMPL-1":
            files.add(root, ref, "One more", depends_on=["IMPL-1"])
        return REPORT

    assert run(project(root, Scripted(answer, seconds=1.2)), ref).exit_code == 0
    assert statuses(root, ref) == {"IMPL-1": "completed", "IMPL-2": "completed"}


def test_the_persons_own_work_in_progress_is_not_touched(root):
    (root / "README.md").write_text("my unfinished thought\n")
    (root / "notes.txt").write_text("untracked\n")

    def answer(request):
        assert (request.cwd / "README.md").read_text() == "scratch\n"
        write_file(request, "new.txt", "x")
        return REPORT

    ref = session(root, [task("IMPL-1")])
    assert run(project(root, Scripted(answer)), ref).exit_code == 0
    assert (root / "README.md").read_text() == "my unfinished thought\n"
    assert (root / "notes.txt").read_text() == "untracked\n"
    assert (root / "new.txt").exists()


def test_progress_shows_what_is_under_way(root):
    ref = session(root, [task("IMPL-1"), task("IMPL-2", depends_on=["IMPL-1"])])
    seen: list[tuple[dict, dict]] = []

    def answer(request):
        body = json.loads((root / ref.folder / "workflow-session.json").read_text())
        seen.append((body["progress"], statuses(root, ref)))
        return REPORT

    assert run(project(root, Scripted(answer)), ref).exit_code == 0
    assert seen[0][0]["current_tasks"] == ["IMPL-1"]
    assert seen[0][1] == {"IMPL-1": "active", "IMPL-2": "pending"}
    assert seen[1][1] == {"IMPL-1": "completed", "IMPL-2": "active"}


def test_a_summary_link_in_the_list_names_a_file_that_is_there(root):
    ref = session(root, [task("IMPL-001"), task("IMPL-002")])
    assert run(project(root), ref).exit_code == 0
    folder = root / ref.folder
    links = re.findall(r"\]\((\./[^)]*)\)", (folder / "TODO_LIST.md").read_text())
    assert len(links) == 4
    assert all((folder / link).is_file() for link in links)
