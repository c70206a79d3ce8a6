"""What a program can do with `rondel.Project`: what a person can do with a command."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import threading
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

import rondel
from rondel.errors import Held, NeedsConsent, RondelError, UsageError
from rondel.model.summary import Status
from rondel.project import Project, Stopped
from support.repos import printed_by_git as git
from support.repos import repository

TOP = Path(__file__).parent.parent.parent
SOURCE = Path(rondel.__file__).parent
STARTS: dict[str, dict[str, object]] = {
    "review": {"team": "quality:1", "quick": True},
    "feature": {"title": "Discount codes", "mode": "quick", "description": "Codes"},
    "cycle": {"description": "Give discounts", "auto": True, "max_iterations": 2},
    "task": {"topic": "Receipts", "complexity": "medium"},
    "generate": {
        "profile": "python-service",
        "context": {"package": "shelf", "entity": "Book", "scope": "full"},
    },
}


@pytest.fixture
def root(tmp_path):
    repo = repository(tmp_path / "repo")
    (repo / "rondel.toml").write_text('[roles]\ndefault = "checks"\n')
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "settings")
    git(repo, "checkout", "-qb", "topic")
    (repo / "price.py").write_text("def price(a):\n    return eval(a)\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "price")
    return repo


def test_the_project_of_a_folder_is_that_of_the_repository_around_it(root, tmp_path, monkeypatch):
    (root / "a/b").mkdir(parents=True)
    assert Project.find(root / "a/b").root == root
    monkeypatch.chdir(root / "a")
    assert Project.find().root == root
    with pytest.raises(RondelError, match="not in a git repository"):
        Project.find(tmp_path)


@pytest.mark.parametrize("workflow", STARTS)
def test_a_program_starts_every_workflow_without_a_command_line(workflow, root):
    project = Project(root)
    started = project.start(workflow, **STARTS[workflow])
    started.release()
    assert project.sessions(workflow) == [started.ref]
    assert project.ref(started.ref.id) == started.ref
    assert project.is_recorded(started.ref), "it is this person's own"
    assert project.summary(started.ref).status in (Status.ACTIVE, Status.WAITING)
    assert project.doctor() == []


def test_the_options_say_what_the_session_is(root):
    project = Project(root)
    feature = project.start("feature", **STARTS["feature"]).ref
    assert project.state(feature).meta["mode"] == "quick"
    cycle = project.state(project.start("cycle", **STARTS["cycle"]).ref)
    assert (cycle.cycle.max_iterations, cycle.request.auto) == (2, True)
    task = project.state(project.start("task", **STARTS["task"]).ref)
    assert task.session.complexity == "medium"


@pytest.mark.parametrize(
    ("workflow", "options", "words"),
    [
        ("reviw", {}, "no workflow 'reviw'; there are: review, feature, cycle, task, generate"),
        ("review", {"taget": "x"}, "review has no option 'taget'; there are: target, pr, team"),
        ("feature", {}, "feature needs the option 'title'; there are: title, mode"),
        ("review", {"pr": "many"}, r"review: the option pr = 'many': .*integer"),
        ("task", {"topic": "x", "complexity": "huge"}, r"task: the option complexity = 'huge': .*'simple'"),
        ("cycle", {"description": "x", "branch": "a..b"}, "no name that git allows"),
    ],
)
def test_a_wrong_start_is_refused_with_what_there_is_and_changes_nothing(workflow, options, words, root):
    before = git(root, "status", "--porcelain", "--ignored")
    with pytest.raises(UsageError, match=words):
        Project(root).start(workflow, **options)
    assert git(root, "status", "--porcelain", "--ignored") == before


def test_values_may_be_as_json_has_them(root):
    project = Project(root)
    started = project.start("review", reviewers=["someone who counts cents"], team="quality:1")
    names = {reviewer.name for reviewer in project.state(started.ref).request.team}
    started.release()
    assert names == {"quality-1", "ephemeral-1"}


def test_a_review_from_its_start_to_its_verdict(root):
    project = Project(root)
    report = project.run(project.start("review", target="main...topic", team="quality:1"))
    assert report.stopped is Stopped.COMPLETED
    (ref,) = project.sessions("review")
    assert project.summary(ref).status is Status.COMPLETED
    assert "Final review" in (project.files(ref).text("rounds/round-1/final.md") or "")


def test_a_started_review_is_held_until_it_runs_or_is_released(root):
    project = Project(root)
    started = project.start("review", team="quality:1")
    with pytest.raises(Held):
        Project(root).start("review", team="security:1")
    with pytest.raises(Held):
        Project(root).run(started.ref)
    started.release()
    assert Project(root).run(started.ref).exit_code == 0


def test_consent_is_needed_as_for_a_command(root, monkeypatch):
    (root / "rondel.toml").write_text(
        '[agents.mine]\nkind = "command"\ncommand = ["./mine"]\n[roles]\ncycle = "mine"\n'
    )
    monkeypatch.setenv("RONDEL_TRUST", "")
    project = Project(root)
    started = project.start("cycle", description="Give discounts")
    with pytest.raises(NeedsConsent, match=r"you have not consented to it: roles\.cycle"):
        project.run(started)


def test_a_foreign_session_is_shown_and_not_run(root, monkeypatch, tmp_path):
    ref = Project(root).start("task", topic="Receipts").ref
    monkeypatch.setenv("RONDEL_TRUST", "")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another person"))
    project = Project(root)
    assert project.summary(ref).is_foreign
    for act in (project.run, project.hold, project.pause, project.stop):
        with pytest.raises(NeedsConsent):
            act(ref)
    project.adopt(ref)
    assert project.run(ref).exit_code == 0


def test_a_feature_is_started_where_features_are_kept(root):
    project = Project(root)
    started = project.start("feature", title="Codes", worktree=True)
    (note,) = started.notes
    inside = Project(Path(note.removeprefix("worktree: ")))
    assert inside.home("feature").root == root
    with pytest.raises(UsageError, match=re.escape(str(root))):
        inside.start("feature", title="Others")
    assert inside.home("feature", new=True).start("feature", title="Others").ref in project.sessions(
        "feature"
    )


def test_a_run_works_in_any_thread(root):
    project, reports = Project(root), []
    started = project.start("review", team="quality:1")
    thread = threading.Thread(target=lambda: reports.append(project.run(started)))
    thread.start()
    thread.join(60)
    assert [report.stopped for report in reports] == [Stopped.COMPLETED]


def test_the_page_names_every_option_of_every_workflow():
    page = (TOP / "docs/python.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*\|.*) \|$", page, re.MULTILINE))
    project = Project(TOP)
    for name in project.workflow_names():
        needed, others = (re.findall(r"`(\w+)`", cell) for cell in rows[name].split("|"))
        known = fields(project.workflow(name).options)
        is_needed = [f.name for f in known if f.default is MISSING and f.default_factory is MISSING]
        assert (needed, needed + others) == (is_needed, [f.name for f in known])


# -- who may know what ---------------------------------------------------------------------------

OPEN = ("rondel.project", "rondel.model", "rondel.errors", "rondel.cli")
MORE = {  # what is not behind the project, and why
    ("cli/__init__.py", "rondel.__version__"): "the version",
    ("cli/main.py", "rondel.__version__"): "the version",
    ("cli/main.py", "rondel.installed"): "which workflows have a command; none is imported for that",
    ("cli/hook.py", "rondel.paths"): "it has no time for a project",
    ("cli/setup.py", "rondel.plugin"): "`rondel init` installs the plugin",
    ("workflows/task/commands.py", "rondel.paths"): "files that the person names, read with a bound",
    ("workflows/generate/commands.py", "rondel.paths.is_bytecode"): "what is no part of a profile",
}


def imports(file: Path) -> set[str]:
    """What a module imports of Rondel, by dotted names."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = node.module in {"rondel", "rondel.paths"}
            found |= {f"{node.module}.{a.name}" for a in node.names} if whole else {node.module}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
    return {name for name in found if name.split(".")[0] == "rondel"}


def test_commands_reach_the_core_through_the_project_alone():
    files = [*(SOURCE / "cli").glob("*.py"), *SOURCE.glob("workflows/*/commands.py")]
    assert len(files) > 12
    found = set()
    for file in files:
        place = file.relative_to(SOURCE).as_posix()
        own = f"rondel.{place.rpartition('/')[0].replace('/', '.')}"  # a workflow's own modules
        open_ = (*OPEN, own)
        found |= {(place, n) for n in imports(file) if not any(f"{n}.".startswith(f"{o}.") for o in open_)}
    assert found == set(MORE)


def test_the_api_is_imported_when_it_is_asked_for():
    code = "import sys, rondel; before = 'rondel.project' in sys.modules; rondel.Project; print(before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    with pytest.raises(AttributeError, match="no attribute 'Projekt'"):
        _ = rondel.Projekt
