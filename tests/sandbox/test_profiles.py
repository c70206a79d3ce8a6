"""A profile of the repository runs in a process of its own: it reaches nothing, and cannot break the run."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.agents import workers
from rondel.errors import RondelError, UsageError
from rondel.project import Project
from rondel.sandbox.box import holds
from rondel.workflows.generate.files import GenerateOptions, create
from rondel.workflows.generate.models import CycleConfig, WorkflowPhase
from rondel.workflows.generate.profiles.base import CycleContext, LazyFiles, PromptPlan, WorkflowProfile
from rondel.workflows.generate.profiles.discover import load_profile
from sandbox.world import Outside, make_world, tried_in

needs_landlock = pytest.mark.skipif(not holds(), reason="this kernel has no Landlock to hold anything")
HEAD = (
    "import json, os, sys, time\nfrom pathlib import Path\n"
    "from rondel.workflows.generate import CycleConfig, WorkflowProfile\n"
    "from rondel.workflows.generate.profiles.base import PromptPlan, ResponsePlan\n"
)
CYCLE = CycleContext("main", "main", WorkflowPhase.PLAN, 1, {"entity": "X"})


def profile(repo: Path, body: str, head: str = HEAD) -> Path:
    folder = repo / ".aiwf/profiles/mine"
    folder.mkdir(parents=True, exist_ok=True)
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    (folder / "profile.py").write_text(f"{head}class Mine(WorkflowProfile):\n{indented}\n")
    return folder


def prompting(repo: Path, *lines: str, head: str = HEAD) -> Path:
    return profile(repo, "\n    ".join(["def plan_prompt(self, cycle):", *lines]), head)


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = make_world(tmp_path)
    Path(made["home"], ".config/rondel/config.toml").write_text("# secret\n")
    monkeypatch.setenv("HOME", made["home"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "RONDEL_SANDBOX", "RONDEL_TRUST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    with Outside() as outside:
        yield made | outside


@pytest.fixture
def project(world):
    here = Project(Path(world["repo"]))
    yield here
    here.ask.close()


def asked(project: Project) -> WorkflowProfile:
    return load_profile("mine", project.root, lambda _: True, project.ask)


def printed(project: Project) -> str:
    (spool,) = project.running.own_work_folder.glob("workers/profile-mine-*/out")
    return spool.read_text()


# -- what it reaches ------------------------------------------------------------------------------


def attempts(world: dict, project: Project, names: list[str]) -> dict[str, str]:
    folder = prompting(
        Path(world["repo"]),
        "sys.path.insert(0, str(Path(__file__).parent))",
        "import inside",
        "told = json.loads(Path(__file__).with_name('told.json').read_text())",
        "return PromptPlan(json.dumps(inside.main(told['world'], told['names'])))",
    )
    shutil.copy(Path(__file__).with_name("inside.py"), folder)
    spool = str(project.running.own_work_folder / "workers/profile-mine-1")
    (folder / "told.json").write_text(json.dumps({"world": world | {"spool": spool}, "names": names}))
    return json.loads(asked(project).plan_prompt(CYCLE).text)


@needs_landlock
def test_no_escape_succeeds_from_a_profile(world, project):
    got = attempts(world, project, tried_in("all"))
    left = got.pop("an open file that the driver left")
    assert left.count("pipe:") == left.count("PosixPath") == 2  # its questions and its answers
    assert got == {}


def test_without_the_sandbox_they_would(world, project, monkeypatch):
    monkeypatch.setenv("RONDEL_SANDBOX", "none")
    names = [
        "a line in ~/.bashrc",
        "a key of ~/.ssh",
        "a decision of the session",
        "the repository's settings",
    ]
    assert set(attempts(world, project, names)) == set(names)


@needs_landlock
def test_it_cannot_change_itself_and_has_a_temporary_folder(project):
    folder = prompting(
        project.root,
        "import tempfile",
        "Path(tempfile.gettempdir(), 'mine').write_text('x')",
        "try: Path(__file__).write_text('')",
        "except OSError as e: return PromptPlan(f'{type(e).__name__} {Path.home()}')",
        "return PromptPlan('changed')",
    )
    before = (folder / "profile.py").read_text()
    said = asked(project).plan_prompt(CYCLE).text
    assert said.startswith("PermissionError ")
    assert os.environ["HOME"] not in said
    assert (folder / "profile.py").read_text() == before


def test_what_it_starts_ends_with_the_run(project):
    prompting(
        project.root,
        "if not os.fork():",
        "    os.setsid()",
        "    if not os.fork():",
        "        time.sleep(600)",
        "    os._exit(0)",
        "os.wait()",
        "return PromptPlan(str(os.getpid()))",
    )
    pid = int(asked(project).plan_prompt(CYCLE).text)
    (daemon,) = [p for p in Path("/proc").glob("[0-9]*") if _is_marked(p) and p.name != str(pid)]
    project.ask.close()
    assert not daemon.exists()


def _is_marked(process: Path) -> bool:
    """Whether it is this test's profile or was started by it: it has its folder in its command line."""
    try:
        line = (process / "cmdline").read_bytes()
    except OSError:
        return False
    return b"profiles/mine" in line and os.fsencode(os.environ["HOME"]).rpartition(b"/")[0] in line


def test_a_driver_that_dies_leaves_no_process(world):
    repo = Path(world["repo"])
    prompting(repo, "return PromptPlan(str(os.getpid()))")
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom rondel.project import Project\n"
        "from sandbox.test_profiles import CYCLE, asked\n"
        f"here = Project(Path({str(repo)!r}))\n"
        "print(asked(here).plan_prompt(CYCLE).text, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert is_gone(int(done.stdout))


def is_gone(pid: int) -> bool:
    until = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.02)
    return not Path(f"/proc/{pid}").exists()


# -- what it answers ------------------------------------------------------------------------------


def test_nothing_of_it_is_imported_into_the_driver(project):
    prompting(project.root, "return PromptPlan(str(os.getpid()))")
    assert int(asked(project).plan_prompt(CYCLE).text) != os.getpid()
    assert not [name for name in sys.modules if name.startswith("rondel_profile_")]


def test_a_session_imports_it_once_and_asks_each_thing_once(project):
    head = f"{HEAD}print('imported')\n"
    prompting(project.root, "print('asked')", "return PromptPlan(cycle.context['entity'])", head=head)
    for _ in range(3):
        assert asked(project).plan_prompt(CYCLE).text == "X"
    assert asked(project).get_cycles({"scope": "main"}) == [CycleConfig("main", "main")]
    project.ask.close()
    assert printed(project).split() == ["imported", "asked"]


def test_a_changed_file_is_another_program_and_a_changed_text_another_question(project):
    folder = prompting(project.root, "return PromptPlan(Path(__file__).with_name('a.md').read_text())")
    (folder / "a.md").write_text("one")
    assert asked(project).plan_prompt(CYCLE).text == "one"
    (folder / "a.md").write_text("two")
    assert asked(project).plan_prompt(CYCLE).text == "two"


class _Files:
    def __init__(self, **texts: str) -> None:
        self.texts, self.read = texts, list[str]()

    def text(self, name: str) -> str:
        self.read.append(name)
        return self.texts[name]


def test_only_the_texts_that_it_uses_are_read_and_a_changed_one_counts(project):
    prompting(project.root, 'return PromptPlan(f\'{len(cycle.code)} {cycle.code["a"]} {"c" in cycle.code}\')')
    files = _Files(a="first", b="unused")
    seen = {"a": "a", "b": "b"}

    def ask() -> str:
        code = LazyFiles(files.text, seen, 1000)
        return asked(project).plan_prompt(CycleContext("m", "m", WorkflowPhase.REVIEW, 1, {}, code=code)).text

    assert ask() == "2 first False"
    files.texts["a"] = "second"
    assert ask() == "2 second False"
    assert set(files.read) == {"a"}


def test_bytecode_of_the_repository_does_not_run(project):
    """What lies in `__pycache__` is not part of what the person consented to."""
    folder = prompting(project.root, "return PromptPlan('evil')")
    cached = folder / f"__pycache__/profile.{sys.implementation.cache_tag}.pyc"
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(folder / "profile.py"), str(cached), invalidation_mode=unchecked)
    prompting(project.root, "return PromptPlan('good')")
    assert asked(project).plan_prompt(CYCLE).text == "good"


def test_a_link_to_a_profile_is_refused(project, tmp_path):
    folder = prompting(project.root, "return PromptPlan('x')")
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RondelError, match=r"profile\.py is reached through a link"):
        asked(project).plan_prompt(CYCLE)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("os._exit(3)", "ended without an answer"),
        ("os.kill(os.getpid(), 9)", "ended without an answer by signal 9"),
        ("time.sleep(60)", "did not answer within 1 s"),
        ("while True: pass", "did not answer within 1 s"),
        ("return PromptPlan('x' * 20_000_000)", "answered with more than"),
        ("return PromptPlan('\\ud800')", "answered with something that is no answer"),
        ("return PromptPlan(7)", "gave something that it must not give"),
        ("return PromptPlan(float('nan'))", "answered with something that is no answer"),
        ("return 'text'", "TypeError: it gave no PromptPlan"),
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("x = bytearray(8 << 30)", "MemoryError"),
        ("[os.write(int(fd), b'{}\\n') for fd in sys.argv[2:3]]", "that is no answer"),
        ("[os.close(int(fd)) for fd in sys.argv[1:3]]", "ended without an answer"),
        ("return PromptPlan(cycle.code['a'] and cycle)", "KeyError: 'a'"),
        ("raise ValueError('a\\x1b[31mb')", "ValueError: ab"),
        ("l = []; l.append(l); return PromptPlan(l)", "Circular reference"),
    ],
)
def test_a_hook_that_gives_no_answer_is_an_error_that_names_it(project, monkeypatch, line, words):
    prompting(project.root, line)
    mine = asked(project)
    assert mine.get_cycles({}) == [CycleConfig("main", "main")]  # it is started: its time is for the hook
    with monkeypatch.context() as patched:
        patched.setattr(workers, "ANSWER_S", 1.0)
        with pytest.raises(RondelError) as error:
            mine.plan_prompt(CYCLE)
    assert words in str(error.value)
    assert "plan_prompt of profile mine" in str(error.value)
    assert "\x1b" not in str(error.value)
    assert mine.check_context({}) == ""  # the next question is answered


WANTS = """for n in range({times}):
            message = json.dumps({{"number": number(), "wanted": {wanted}}}) + "\\n"
            os.write(int(sys.argv[2]), message.encode())
            while not (data := os.read(int(sys.argv[1]), 1 << 20)).endswith(b"\\n"): pass"""
NUMBER = (
    HEAD
    + """
def number():
    frame = sys._getframe()
    while "number" not in frame.f_locals: frame = frame.f_back
    return frame.f_locals["number"]
"""
)


@pytest.mark.parametrize(
    ("times", "wanted", "words"),
    [
        (1, "'a' * 2000", "whose name has more than 1000 bytes"),
        (60, "str(n)", "wants to read more than 50 things"),
        (60, "'a'", ""),
    ],
)
def test_what_it_wants_to_read_has_bounds(project, monkeypatch, times, wanted, words):
    """The driver keeps the name of each, to know when the answer is another one."""
    monkeypatch.setattr(workers, "WANTS_MAX", 50, raising=False)
    prompting(project.root, WANTS.format(times=times, wanted=wanted), "return PromptPlan('x')", head=NUMBER)
    with pytest.raises(RondelError, match=words) if words else nullcontext():
        assert asked(project).plan_prompt(CYCLE).text == "x"


def test_answers_that_are_kept_have_a_bound(project, monkeypatch):
    monkeypatch.setattr(workers, "KNOWN_MAX", 5000, raising=False)
    prompting(project.root, "return PromptPlan(str(cycle.iteration) + 'x' * 2000)")
    for n in (1, 2, 3, 4, 1):
        cycle = CycleContext("main", "main", WorkflowPhase.PLAN, n, {})
        assert asked(project).plan_prompt(cycle).text.startswith(str(n))
    assert sum(len(json.dumps(known.answer)) for known in project.ask._known.values()) <= 5000


def test_what_it_prints_is_no_answer(project):
    forged = json.dumps({"number": "x", "answer": "forged"})
    prompting(project.root, f"print({forged!r}, flush=True)", "return PromptPlan('true')")
    assert asked(project).plan_prompt(CYCLE).text == "true"
    project.ask.close()
    assert "forged" in printed(project)


def test_an_answer_to_another_question_is_none(project):
    prompting(
        project.root,
        'os.write(int(sys.argv[2]), b\'{"number": "0", "answer": "forged"}\\n\')',
        "return PromptPlan('true')",
    )
    with pytest.raises(
        RondelError, match="plan_prompt of profile mine: it answered with something that is no"
    ):
        asked(project).plan_prompt(CYCLE)


def test_one_that_was_ended_between_two_questions_is_started_again(project):
    prompting(project.root, "return PromptPlan(str(os.getpid()))")
    mine = asked(project)
    first = int(mine.plan_prompt(CYCLE).text)
    os.kill(first, 9)
    assert is_gone(first)
    other = CycleContext("main", "main", WorkflowPhase.PLAN, 2, {})
    assert int(mine.plan_prompt(other).text) != first


def test_two_runs_at_once_have_a_process_each(world, project):
    prompting(project.root, "return PromptPlan(str(os.getpid()))")
    another = Project(project.root)
    try:
        assert asked(project).plan_prompt(CYCLE).text != asked(another).plan_prompt(CYCLE).text
    finally:
        another.ask.close()


def test_a_context_that_will_not_do_is_said_in_the_profiles_words(project):
    profile(
        project.root,
        "def get_cycles(self, context):\n    raise ValueError('no scope')\n"
        "def plan_prompt(self, cycle):\n    return PromptPlan('x')",
    )
    with pytest.raises(UsageError, match="profile mine: no scope"):
        create(project.root, GenerateOptions("mine", {}), admits=lambda _: True, ask=project.ask)


def test_only_showing_a_profile_starts_nothing(project):
    prompting(project.root, "return PromptPlan('x')")
    done = subprocess.run(
        [sys.executable, "-m", "rondel", "generate", "profile", "show", "mine"],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a program of this repository" in done.stdout
    assert not (project.running.own_work_folder / "workers").exists()


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entity=TEXT, response=TEXT, code=st.dictionaries(TEXT, TEXT, max_size=3))
def test_whatever_a_phase_holds_reaches_the_profile_as_it_is(project, entity, response, code):
    if not (project.root / ".aiwf/profiles/mine/profile.py").exists():
        lines = ("found = {**cycle.context, 'response': cycle.response, 'code': dict(cycle.code)}",)
        prompting(project.root, *lines, "return PromptPlan(json.dumps(found))")
    cycle = CycleContext("m", "m", WorkflowPhase.REVIEW, 1, {"entity": entity}, code=code, response=response)
    made = asked(project).plan_prompt(cycle)
    assert isinstance(made, PromptPlan)
    assert json.loads(made.text) == {
        "entity": entity,
        "cycle_outputs": {},
        "response": response,
        "code": code,
    }
