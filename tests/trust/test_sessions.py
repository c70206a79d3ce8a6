"""Sessions: those that this person began or adopted here go on; every other one is shown, and no more."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from pathlib import Path

import pexpect
import pytest
from harness import REF
from small import SmallWorkflow
from test_strangers import person

from rondel.agents.base import Reply
from rondel.errors import NeedsConsent
from rondel.model.outcomes import Ended
from rondel.project import Project
from rondel.store import files
from rondel.testing.faults import die_anywhere_at, in_child
from rondel.testing.scripted import Scripted, plain, run_of
from support.cli import RONDEL, rondel
from support.stories import Story

QUICK = ("review", "--quick")
CHECKS = '[roles]\ndefault = "checks"\n'


def session_of(repo: Path) -> Path:
    (found,) = (repo / ".ocr/sessions").iterdir()
    return found


def clone(repo: Path, env: dict[str, str], to: Path) -> Path:
    """Everything is committed, as a colleague does who hands a session over, and cloned by somebody else."""
    subprocess.run(["git", "add", "-A", "-f"], cwd=repo, env=env, check=True)
    subprocess.run(["git", "commit", "-qm", "session"], cwd=repo, env=env, check=True)
    subprocess.run(["git", "clone", "-q", str(repo), str(to)], env=env, check=True)
    return to


@pytest.fixture
def reviewed(repo, env):
    """A repository in which its owner finished a review."""
    person(env, CHECKS)
    done = rondel(repo, env, *QUICK)
    assert done.returncode == 0, done.stderr
    return repo


def other_home(env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "other"
    home.mkdir(exist_ok=True)
    found = {**env, "HOME": str(home)}
    person(found, CHECKS)
    return found


def test_one_s_own_session_goes_on_and_nothing_is_asked(reviewed, env):
    name = f"review:{session_of(reviewed).name}"
    (shown,) = json.loads(rondel(reviewed, env, "status", "--json").stdout)["sessions"]
    assert (shown["session"], shown["foreign"], shown["problems"]) == (name, False, [])
    (reviewed / "a.py").write_text("A = 3\n")
    again = rondel(reviewed, env, *QUICK)
    assert again.returncode == 0, again.stderr
    assert "foreign" not in again.stdout + again.stderr


LOOKING = [
    ("status",),
    ("status", "{}"),
    ("status", "{}", "--json"),
    ("watch", "{}", "--once"),
    ("show", "{}"),
    ("doctor",),
    ("review", "show", "--session", "{}"),
    ("review", "progress", "--session", "{}"),
    ("review", "history", "--all"),
    ("review", "resolve"),
    ("review", "post", "--dry-run", "--session", "{}"),
]
GOING_ON = [
    ("resume", "{}"),
    ("run", "{}"),
    ("pause", "{}"),
    ("stop", "{}"),
    ("approve", "{}"),
    ("review", "close", "--session", "{}"),
    ("review", "post", "--session", "{}"),
]


def test_of_a_foreign_session_nothing_counts_and_everything_is_shown(reviewed, env, tmp_path):
    theirs, env = clone(reviewed, env, tmp_path / "clone"), other_home(env, tmp_path)
    before = tree(theirs)
    name = f"review:{session_of(theirs).name}"
    for words in LOOKING:
        done = rondel(theirs, env, *(w.format(name) for w in words))
        assert done.returncode in (0, 1), (words, done.stderr)
        assert "foreign" in done.stdout + done.stderr, words
    for words in GOING_ON:
        done = rondel(theirs, env, *(w.format(name) for w in words))
        assert done.returncode == 3, (words, done.stdout, done.stderr)
        assert f"next: rondel adopt {name}" in done.stderr, words
    assert tree(theirs) == before


GOING_ON_IN = {
    "feature": (
        ("feature", "run"),
        ("feature", "specify"),
        ("feature", "implement", "--yes"),
        ("feature", "verify"),
        ("feature", "finish", "--keep"),
        ("feature", "finish", "--merge"),
    ),
    "cycle": (
        ("cycle", "resume"),
        ("cycle", "extend", "{}", "more of it"),
        ("cycle", "feedback", "{}", "better", "--to", "cd"),
        ("cycle", "block", "{}", "stuck"),
        ("cycle", "pause"),
        ("cycle", "stop"),
    ),
    "task": (
        ("task", "run"),
        ("task", "run", "IMPL-1"),
        ("task", "add", "More"),
        ("task", "plan", "all of it"),
        ("task", "replan", "IMPL-1", "otherwise"),
        ("task", "breakdown", "IMPL-1"),
        ("task", "reopen", "IMPL-1"),
        ("task", "complete"),
        ("task", "todo"),
        ("task", "pause"),
    ),
    "generate": (
        ("generate", "run"),
        ("generate", "approve"),
        ("generate", "reject", "--feedback", "no"),
        ("generate", "retry"),
        ("generate", "skip", "tests"),
        ("generate", "cancel"),
        ("generate", "apply"),
    ),
}


@pytest.mark.parametrize("workflow", GOING_ON_IN)
def test_nothing_goes_on_with_a_foreign_session_of_any_workflow(workflow, tmp_path):
    story = Story(tmp_path / "theirs", workflow)
    env = {k: v for k, v in story.env.items() if k != "RONDEL_TRUST"}
    mine = clone(story.root, env, tmp_path / "mine")
    env, name = other_home(env, tmp_path), story.ref.name
    assert rondel(mine, env, "trust", "--yes").returncode == 0  # to the settings, not to the session
    before = tree(mine)
    for words in (("resume", "{}"), ("run", "{}"), ("pause", "{}"), ("stop", "{}"), *GOING_ON_IN[workflow]):
        done = rondel(mine, env, *(w.format(name) for w in words))
        told = (words, done.returncode, done.stdout, done.stderr)
        if done.returncode not in (1, 2, 5):  # there is nothing to go on with: not specified, not completed
            assert done.returncode == 3, told
            assert f"next: rondel adopt {name}" in done.stderr, told
        assert tree(mine) == before, told


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(root)): p.read_bytes()
        for p in sorted(root.rglob("*"))
        if p.is_file() and ".git" not in p.relative_to(root).parts[:1]
    }


def test_adopt_lists_asks_and_makes_it_the_persons_own(reviewed, env, tmp_path):
    assert (run_of(session_of(reviewed)) / "journal.jsonl").is_file()
    theirs, env = clone(reviewed, env, tmp_path / "clone"), other_home(env, tmp_path)
    folder = session_of(theirs)
    name = f"review:{folder.name}"
    asked = rondel(theirs, env, "adopt")
    assert asked.returncode == 3
    assert "file: rounds/round-1/final.md" in asked.stdout
    assert f"next: rondel adopt {name} --yes" in asked.stderr
    assert not (folder / ".rondel/run").exists(), "no clone brings a runtime"
    done = rondel(theirs, env, "adopt", "--yes")
    assert done.returncode == 0, done.stderr
    (shown,) = json.loads(rondel(theirs, env, "status", "--json").stdout)["sessions"]
    assert shown["foreign"] is False
    assert rondel(theirs, env, "adopt", name).returncode == 5
    assert rondel(theirs, env, "adopt").returncode == 5


def test_adopt_lists_how_a_session_is_to_go_on(reviewed, env, tmp_path):
    """Whoever says yes takes over what somebody else asked for, and sees it before."""
    theirs, env = clone(reviewed, env, tmp_path / "clone"), other_home(env, tmp_path)
    home = session_of(theirs) / ".rondel"
    more = {"request-1.json": {"auto": True}, "session.json": {"onto": "elsewhere", "without": ["a.md"]}}
    for name, said in more.items():
        (home / name).write_text(json.dumps({**json.loads((home / name).read_text()), **said}))
    asked = rondel(theirs, env, "adopt")
    assert asked.returncode == 3, asked.stderr
    assert "asked for (.rondel/request-1.json): auto: true" in asked.stdout
    assert "its work goes to the branch elsewhere" in asked.stdout
    assert "goes on without: a.md" in asked.stdout


def test_what_a_run_started_adopts_nothing(reviewed, env, tmp_path):
    theirs, env = clone(reviewed, env, tmp_path / "clone"), other_home(env, tmp_path)
    for said in ({}, {"RONDEL_TRUST": "yes"}):
        child = {**env, **said, "RONDEL_CHILD": "a-token"}
        assert rondel(theirs, child, "adopt", "--yes").returncode == 3
        assert rondel(theirs, child, "resume", session_of(theirs).name).returncode == 3
    (shown,) = json.loads(rondel(theirs, env, "status", "--json").stdout)["sessions"]
    assert shown["foreign"] is True


def test_the_environment_adopts_for_ci(reviewed, env, tmp_path):
    theirs, env = clone(reviewed, env, tmp_path / "clone"), other_home(env, tmp_path)
    (theirs / "a.py").write_text("A = 3\n")
    done = rondel(theirs, {**env, "RONDEL_TRUST": "yes"}, "resume", session_of(theirs).name)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("answer", ["y", "n"])
def test_at_a_terminal_the_first_run_lists_and_asks(reviewed, env, tmp_path, answer):
    theirs, env = clone(reviewed, env, tmp_path / "clone"), other_home(env, tmp_path)
    child = pexpect.spawn(
        RONDEL[0],
        [*RONDEL[1:], "resume", session_of(theirs).name],
        cwd=theirs,
        env={**env, "TERM": "dumb"},
        encoding="utf-8",
        timeout=60,
    )
    child.expect(r"adopt review:\S+\?")
    assert "final.md" in child.before
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == (0 if answer == "y" else 3), child.before


@pytest.mark.parametrize("how", ["another folder", "another workflow", "another id", "no id", "damaged"])
def test_what_is_on_record_holds_for_one_session_only(reviewed, env, how):
    folder = session_of(reviewed)
    identity = folder / ".rondel/session.json"
    if how == "another folder":
        folder = folder.rename(folder.with_name("2026-01-01-other"))
    elif how == "another workflow":
        (reviewed / ".aiwf/sessions").mkdir(parents=True)
        folder = folder.rename(reviewed / ".aiwf/sessions" / folder.name)
        (folder / "session.json").write_text('{"session_id": "x"}')
    elif how == "another id":
        identity.write_text(json.dumps({**json.loads(identity.read_text()), "id": "review-" + "0" * 16}))
    elif how == "no id":
        identity.unlink()
    else:
        identity.write_text("{")
    shown = json.loads(rondel(reviewed, env, "status", "--json").stdout)["sessions"]
    assert [s["foreign"] for s in shown] == [True]


def test_a_record_that_others_could_have_written_counts_for_nothing(reviewed, env):
    (record,) = (Path(env["HOME"]) / ".local/state/rondel/repos").glob("*/sessions/*/*/session.json")
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    record.chmod(0o666)
    record.parent.chmod(0o777)
    (shown,) = json.loads(rondel(reviewed, env, "status", "--json").stdout)["sessions"]
    assert shown["foreign"] is True


def project(root: Path, agent: Scripted | None = None) -> Project:
    chosen = agent or Scripted()
    return Project(root, workflows={"small": SmallWorkflow()}, build=lambda _: chosen)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The person of tests that run in this process."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def begun(repo: Path, agent: Scripted | None = None, **request: object) -> Project:
    """A session of the small workflow that this person began."""
    here = project(repo, agent)
    here.claim(REF)
    small_session_files(repo, **request)
    here.begin(REF, new=True)
    return here


def test_a_death_while_a_session_begins_leaves_no_foreign_one(repo, home, tmp_path):
    (repo / REF.folder).mkdir(parents=True)

    def begin() -> int:
        here = project(repo)
        here.claim(REF)
        small_session_files(repo)
        here.begin(REF, new=True)
        return 0

    deaths = 0
    for point in range(1, 200):
        shutil.rmtree(repo / ".small")
        (repo / REF.folder).mkdir(parents=True)
        shutil.rmtree(tmp_path / "state", ignore_errors=True)

        def doomed(point: int = point) -> int:
            die_anywhere_at(point)
            return begin()

        died = in_child(doomed) != 0
        deaths += died
        there = [p for p in (repo / REF.folder).rglob("*.json") if p.is_file()]
        assert not there or project(repo).is_known(REF), point
        if not died:
            break
    assert deaths > 10


def small_session_files(repo: Path, **request: object) -> None:
    files.make_folder(repo / REF.folder / ".rondel")
    body = {"width": 3, "rounds_max": 1, "auto": True, **request}
    files.write(repo / REF.folder / ".rondel/request-1.json", json.dumps(body).encode())


def test_without_a_git_folder_of_its_own_a_folder_is_known_by_where_it_is(repo, home, tmp_path):
    shutil.rmtree(repo / ".git")
    (repo / REF.folder).mkdir(parents=True)
    here = project(repo)
    here.claim(REF)
    small_session_files(repo)
    assert here.is_known(REF)
    moved = repo.rename(tmp_path / "moved")
    assert not project(moved).is_known(REF)
    with pytest.raises(NeedsConsent):
        project(moved).require_known(REF)


def test_a_moved_repository_keeps_its_sessions(reviewed, env, tmp_path):
    moved = reviewed.rename(tmp_path / "moved")
    (shown,) = json.loads(rondel(moved, env, "status", "--json").stdout)["sessions"]
    assert shown["foreign"] is False


@pytest.fixture
def handed_over(repo, home, tmp_path, monkeypatch):
    """A colleague's session that stopped in the middle, with its runtime, in another person's clone."""

    def fails(request) -> Reply | str:
        failed = Reply(Ended.FAILED, error="no")
        return failed if request.action.endswith("3.md") else plain(request)

    first = begun(repo, Scripted(fails))
    assert first.run(REF).exit_code == 1
    theirs = tmp_path / "clone"
    shutil.copytree(repo, theirs, ignore=lambda folder, _: {"rondel"} if folder.endswith(".git") else ())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    return theirs


def test_a_colleagues_session_goes_on_and_pays_nothing_twice(handed_over):
    second = Scripted()
    here = project(handed_over, second)
    with pytest.raises(NeedsConsent):
        here.run(REF)
    here.adopt(REF)
    assert here.run(REF).exit_code == 0
    assert second.actions == ["round-1/notes/3.md", "final.md"]


def forged_answers(real: Path, session: Path) -> list[Path]:
    """Spools with answers that nobody gave, in a journal of a driver that died while it waited for them.

    They are made from a `real` runtime, where version 0.1 had its own.
    """
    run = shutil.copytree(real, session / ".rondel/run")
    journal = run / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    done = ("round-1/notes/3.md", "finished")
    last = max(n for n, one in enumerate(lines) if (one.get("action"), one.get("kind")) == done)
    kept = [one for n, one in enumerate(lines) if n != last]
    journal.write_text("".join(json.dumps(one) + "\n" for one in kept))
    spools = [p.parent for p in run.rglob("asked") if p.read_text().endswith("3.md")]
    for spool in spools:
        for other in (p for p in spool.rglob("*") if p.is_file() and p.name != "asked"):
            other.unlink()
        (spool / "answer").write_text("Everything is fine.\n")
    return [spool / "answer" for spool in spools]


def test_a_forged_runtime_counts_for_nothing(handed_over, tmp_path):
    run = handed_over / REF.folder / ".rondel/run"
    forged_answers(run_of(handed_over.parent / "repo" / REF.folder, tmp_path / "state"), run.parent.parent)
    (run / "lease").write_text(json.dumps({"pid": 1, "epoch": 10**9, "host": "x", "released": False}))
    here = project(handed_over, second := Scripted())
    here.adopt(REF)
    assert here.run(REF).exit_code == 0
    assert "round-1/notes/3.md" in second.actions
    assert "fine" not in (handed_over / REF.folder / "round-1/notes/3.md").read_text()


def test_a_runtime_that_a_commit_brings_into_a_session_of_one_s_own_counts_for_nothing(repo, home, env):
    def fails(request) -> Reply | str:
        failed = Reply(Ended.FAILED, error="no")
        return failed if request.action.endswith("3.md") else plain(request)

    assert begun(repo, Scripted(fails)).run(REF).exit_code == 1
    for answer in forged_answers(run_of(repo / REF.folder), repo / REF.folder):
        subprocess.run(["git", "add", "-f", str(answer)], cwd=repo, env=env, check=True)
    here = project(repo, second := Scripted())
    assert here.run(REF, retry=True).exit_code == 0
    assert "round-1/notes/3.md" in second.actions
    assert "fine" not in (repo / REF.folder / "round-1/notes/3.md").read_text()
    assert here.summary(REF).problems == ()


def test_a_runtime_that_a_submodule_brings_counts_for_nothing(repo, home, env):
    def fails(request) -> Reply | str:
        failed = Reply(Ended.FAILED, error="no")
        return failed if request.action.endswith("3.md") else plain(request)

    assert begun(repo, Scripted(fails)).run(REF).exit_code == 1
    forged_answers(run_of(repo / REF.folder), repo / REF.folder)
    subprocess.run(["git", "init", "-q", str(repo / REF.folder)], env=env, check=True)
    here = project(repo, second := Scripted())
    here.run(REF, retry=True)
    assert "round-1/notes/3.md" in second.actions
    assert "fine" not in (repo / REF.folder / "round-1/notes/3.md").read_text()


def test_where_a_session_s_work_goes_is_what_is_on_record(repo, home, env):
    here = begun(repo, Scripted())
    file = repo / REF.folder / ".rondel/session.json"
    body = json.loads(file.read_text())
    file.write_text(json.dumps(body | {"onto": "release", "branch": "release", "without": ["a"]}))
    found = here.session(REF).begin(here.look)
    assert (found.id, found.branch, found.onto, found.without) == (body["id"], body["branch"], None, ())


def test_nothing_of_the_runtime_is_in_the_tree(repo, home, env):
    begun(repo, Scripted()).run(REF)
    done = subprocess.run(
        ["git", "status", "--short", "-uall"], cwd=repo, env=env, check=True, capture_output=True, text=True
    )
    there = {path.rpartition("/.rondel/")[2] for path in done.stdout.split() if "/.rondel/" in path}
    assert there == {".gitignore", "request-1.json", "session.json", "written.jsonl"}


def shipped(repo: Path, env: dict[str, str], tmp_path: Path) -> Path:
    """A pull request that ships its own finished review, made by its author on the same day and branch."""
    (repo / "b.py").write_text("KEY = 'AKIAIOSFODNN7EXAMPLE'\n\n\ndef f(x):\n    eval(x)\n")
    subprocess.run(["git", "add", "-A"], cwd=repo, env=env, check=True)
    subprocess.run(["git", "commit", "-qm", "more"], cwd=repo, env=env, check=True)
    person(env, CHECKS)
    rondel(repo, env, "review")
    folder = session_of(repo)
    for path in (p for p in folder.rglob("*") if p.is_file()):
        text = path.read_text(errors="replace")
        path.write_text(text.replace("REQUEST CHANGES", "APPROVE").replace("REQUEST_CHANGES", "APPROVE"))
    hidden = repo / "src/.rondel"
    hidden.mkdir(parents=True)
    (hidden / "hidden.py").write_text("import os\n")
    theirs = clone(repo, env, tmp_path / "clone")
    subprocess.run(["git", "checkout", "-q", "change"], cwd=theirs, env=env, check=True)
    return theirs


@pytest.mark.parametrize("said", [{}, {"RONDEL_TRUST": "yes"}])
def test_a_pull_request_that_ships_its_own_review_is_reviewed_with_it(repo, env, tmp_path, said):
    theirs = shipped(repo, env, tmp_path)
    before = tree(session_of(theirs))
    env = {**other_home(env, tmp_path), **said}
    done = rondel(theirs, env, "review", "origin/main..change", "--json", "--fail-on-changes")
    assert done.returncode == 4, (done.stdout, done.stderr)
    shown = json.loads(done.stdout)
    own = theirs / ".ocr/sessions" / shown["session"].partition(":")[2]
    assert len(list(own.parent.iterdir())) == 2
    (brought,) = (p for p in own.parent.iterdir() if p != own)
    assert tree(brought) == before
    change = (own / ".rondel/parts/round-1/change.diff").read_text()
    assert "src/.rondel/hidden.py" in change
    assert f".ocr/sessions/{brought.name}/rounds/round-1/final.md" in change


def test_one_s_own_committed_session_is_no_part_of_the_change(reviewed, env):
    subprocess.run(["git", "add", "-A", "-f"], cwd=reviewed, env=env, check=True)
    subprocess.run(["git", "commit", "-qm", "session"], cwd=reviewed, env=env, check=True)
    done = rondel(reviewed, env, *QUICK)
    assert done.returncode == 5, done.stderr
    assert "nothing changed since round 1" in done.stderr


MANUAL = '[roles]\ndefault = "manual"\n'
TRUE, FORGED = "+A = 7", "+A = 8"


@pytest.fixture
def topic(repo, env):
    """A branch with a change, checked out, and the environment of its author."""

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=repo, env=env, check=True)

    person(env, MANUAL)
    git("add", "-A")
    git("commit", "-qm", "before", "--allow-empty")
    git("switch", "-qc", "topic", "main")
    (repo / "a.py").write_text(f"{TRUE[1:]}\n")
    git("commit", "-qam", "change")
    return repo, env


@pytest.fixture
def under_way(topic, tmp_path):
    """A clone with a review that somebody else began, with a forged change and forged answers."""
    repo, env = topic
    done = rondel(repo, env, "review", "main...topic", "--team", "principal:1")
    assert done.returncode == 3, done.stderr
    folder = session_of(repo)
    diff = folder / ".rondel/parts/round-1/change.diff"
    diff.write_text(diff.read_text().replace(TRUE, FORGED))
    manual = folder / ".rondel/manual"
    for prompt in manual.glob("*.prompt.md"):
        (manual / prompt.name.replace(".prompt.", ".response.")).write_text("All fine.\n")
    (manual / "rounds.round-1.reviews.principal-1.response.md").write_text("Fine.\n")
    subprocess.run(["git", "switch", "-q", "main"], cwd=repo, env=env, check=True)
    theirs = clone(repo, env, tmp_path / "clone")
    subprocess.run(["git", "branch", "topic", "origin/topic"], cwd=theirs, env=env, check=True)
    env = other_home(env, tmp_path)
    person(env, MANUAL)
    return session_of(theirs), env


def test_adopt_lists_parts_and_answers_that_wait(under_way):
    folder, env = under_way
    asked = rondel(folder, env, "adopt")
    assert asked.returncode == 3
    assert "looked up again in the repository: .rondel/parts/round-1/: " in asked.stdout
    assert "change.diff" in asked.stdout
    for name in ("principal-1.response.md", "guidance"):
        assert name in asked.stdout


def test_what_a_foreign_session_says_of_the_repository_is_looked_up_again(under_way):
    folder, env = under_way
    assert rondel(folder, env, "adopt", "--yes").returncode == 0
    aside = [p.name for p in (folder / ".rondel/aside").iterdir()]
    assert any("change.diff.foreign-1" in name for name in aside)
    done = rondel(folder, env, "resume", folder.name)
    assert done.returncode == 3, done.stdout + done.stderr
    parts = folder / ".rondel/parts/round-1"
    assert TRUE in (parts / "change.diff").read_text()
    assert FORGED not in (parts / "change.diff").read_text()
    assert not list((folder / ".rondel/manual").glob("*.response.md"))
    assert not (parts / "guidance.md").exists()


def taken_over(repo: Path, env: dict[str, str], tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """The session in a clone of somebody else, and their environment."""
    theirs = clone(repo, env, tmp_path / "clone")
    subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=theirs, env=env, check=True)  # as one from afar
    name = ["git", "symbolic-ref", "refs/remotes/origin/HEAD"]
    head = subprocess.run(name, cwd=theirs, env=env, check=True, capture_output=True, text=True)
    assert head.stdout == "refs/remotes/origin/topic\n", "the branch under review is the clone's default"
    env = other_home(env, tmp_path)
    person(env, MANUAL)
    return session_of(theirs), env


def test_what_a_session_pinned_is_what_is_reviewed_also_where_its_branch_is_the_default(topic, tmp_path):
    repo, env = topic
    assert rondel(repo, env, "review", "--team", "principal:1").returncode == 3
    pinned = (session_of(repo) / ".rondel/parts/round-1/target.json").read_bytes()
    folder, env = taken_over(repo, env, tmp_path)
    asked = rondel(folder, env, "adopt")
    base, head = (json.loads(pinned)[key][:12] for key in ("base", "head"))
    assert f"judges the change {base}..{head}" in asked.stdout
    assert rondel(folder, env, "adopt", "--yes").returncode == 0
    done = rondel(folder, env, "resume", folder.name)
    assert done.returncode == 3, done.stdout + done.stderr
    parts = folder / ".rondel/parts/round-1"
    assert (parts / "target.json").read_bytes() == pinned
    assert TRUE in (parts / "change.diff").read_text()


def test_what_a_session_pinned_and_is_not_here_is_named_and_nothing_else_is_reviewed(topic, tmp_path):
    """A colleague's uncommitted work is a commit that nobody else has."""
    repo, env = topic
    (repo / "a.py").write_text("A = 9\n")
    assert rondel(repo, env, "review", "--team", "principal:1").returncode == 3
    head = json.loads((session_of(repo) / ".rondel/parts/round-1/target.json").read_text())["head"]
    subprocess.run(["git", "checkout", "-q", "--", "a.py"], cwd=repo, env=env, check=True)
    folder, env = taken_over(repo, env, tmp_path)
    assert rondel(folder, env, "adopt", "--yes").returncode == 0
    done = rondel(folder, env, "resume", folder.name)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"the commit {head}" in done.stderr
    assert "begin anew with a change that is here: A..B --restart" in done.stderr
    assert not (folder / ".rondel/parts/round-1/change.diff").exists()
    anew = rondel(folder, env, "review", "HEAD~2..HEAD~1", "--restart", "--team", "principal:1")
    assert anew.returncode == 3, anew.stdout + anew.stderr
    assert TRUE in (folder / ".rondel/parts/round-1/change.diff").read_text()


def test_what_a_complete_round_saw_stays(reviewed, env, tmp_path):
    theirs, env = clone(reviewed, env, tmp_path / "clone"), other_home(env, tmp_path)
    folder = session_of(theirs)
    before = tree(folder)
    assert rondel(theirs, env, "adopt", "--yes").returncode == 0
    assert {p: d for p, d in tree(folder).items() if p in before and "/parts/" in p} == {
        p: d for p, d in before.items() if "/parts/" in p
    }


def test_adopt_without_a_name_finds_a_session_of_one_s_own_that_waits_for_it(reviewed, env):
    folder = session_of(reviewed)
    (folder / ".rondel/decisions").mkdir(exist_ok=True)
    (folder / ".rondel/decisions/round-1.json").write_text('{"answer": "approve", "by": "someone"}')
    asked = rondel(reviewed, env, "adopt")
    assert asked.returncode == 3, asked.stderr
    assert "does not count yet: .rondel/decisions/round-1.json" in asked.stdout
