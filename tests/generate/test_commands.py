"""The commands: a person with an editor goes through four cycles; profiles; taking code over; settings."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner
from generate_java import FILES
from generate_scene import FAIL, FULL, PASS, Scene, blocks, engineer, place, repo
from harness import git

from rondel.agents.base import Reply, Request
from rondel.cli.main import main
from rondel.errors import NeedsConsent
from rondel.model.names import digest
from rondel.project import Project
from rondel.workflows.generate.commands import command
from support.follow import follow

INIT = [
    "init",
    "jpa-mt",
    *("-c", "entity=Product"),
    *("-c", "table=app.products"),
    *("-c", "bounded-context=catalog"),
    *("-c", "scope=full"),
    *("-c", "schema-file=schema.sql"),
]


class Person:
    """Somebody at a terminal in the repository."""

    def __init__(self, root, capsys) -> None:
        self.root = root
        self.capsys = capsys

    def rondel(self, *words: str) -> tuple[int, str, str]:
        self.capsys.readouterr()
        try:
            code = main(["generate", *words])
        except SystemExit as e:
            code = int(e.code or 0)
        out, err = self.capsys.readouterr()
        follow(self.root, os.environ, code, out, err)
        return code, out, err

    def state(self, name: str) -> dict:
        return json.loads((self.root / f".aiwf/sessions/{name}/session.json").read_text())


@pytest.fixture
def person(tmp_path, capsys, monkeypatch):
    root = repo(tmp_path / "repo")
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return Person(root, capsys)


def answer_by_hand(kind: str, iteration: int, phase: str) -> str:
    if phase == "planning":
        return f"# Plan of {kind}\n"
    if phase == "review":
        return FAIL if (kind, iteration) == ("service", 1) else PASS
    return blocks(FILES[kind])


def test_a_person_pastes_four_cycles_with_one_revision(person):
    code, out, err = person.rondel(*INIT, "--with-tests", "--dev", "ann", "--task-id", "T-7")
    assert code == 0
    name = out.strip()
    assert f"rondel generate approve {name}" in err
    assert person.state(name)["metadata"] == {"dev": "ann", "task_id": "T-7"}
    assert person.state(name)["context"]["bounded_context"] == "catalog"
    words = {"plan": "planning", "generate": "generation", "review": "review", "revise": "revision"}
    steps = 0
    while steps < 60:
        state = person.state(name)
        cycle = state["cycles"][state["current_cycle_index"]]
        if cycle["status"] == "completed":
            break
        phase = words[cycle["phase"]]
        if cycle["stage"] == "response":
            folder = (
                person.root / f".aiwf/sessions/{name}/{cycle['type']}/iteration-{cycle['current_iteration']}"
            )
            prompt = folder / f"prompts/{phase}-prompt.md"
            assert prompt.read_text().strip()
            place = folder / f"responses/{phase}-response.md"
            place.parent.mkdir(exist_ok=True)
            place.write_text(answer_by_hand(cycle["type"], cycle["current_iteration"], phase))
        code, _, err = person.rondel("approve", name)
        assert code in (0, 3), err
        steps += 1
    assert steps == 28
    code, out, _ = person.rondel("status", name)
    assert out.endswith(
        "Status: COMPLETED\n\nCycles:\n  [✓] domain (completed)\n  [✓] service (completed)\n"
        "  [✓] api (completed)\n  [✓] tests (completed)\n"
    )
    assert [c["current_iteration"] for c in person.state(name)["cycles"]] == [1, 2, 1, 1]
    (shown,) = json.loads(person.rondel("status", name, "--json")[1])["sessions"]
    assert shown["not_made_by_rondel"] == []
    assert person.rondel("run", name)[0] == 5


def test_a_response_pasted_without_code_does_not_advance_and_says_why(person):
    name = person.rondel(*INIT, "--auto")[1].strip()
    folder = person.root / f".aiwf/sessions/{name}/domain/iteration-1/responses"
    folder.mkdir()
    (folder / "planning-response.md").write_text("# Plan\n")
    (folder / "generation-response.md").write_text("Here you are: nothing.\n")
    code, _, err = person.rondel("run", name)
    assert code == 3
    assert "generation-response.md cannot be used: there is no code with a file name" in err
    code, _, err = person.rondel("approve", name)
    assert code == 2
    assert "'approve' is no answer" in err
    (folder / "generation-response.md").write_text(blocks(FILES["domain"]))
    assert person.rondel("run", name)[0] == 3
    assert person.state(name)["cycles"][0]["phase"] == "review"


def test_an_approval_that_does_not_run_takes_the_digest_at_once(person):
    name = person.rondel(*INIT)[1].strip()
    prompt = person.root / f".aiwf/sessions/{name}/domain/iteration-1/prompts/planning-prompt.md"
    prompt.write_text("My own words.\n")
    assert person.rondel("approve", name, "--no-run")[0] == 0
    cycle = person.state(name)["cycles"][0]
    assert cycle["prompt_hashes"] == {"iteration-1/plan": digest("My own words.\n")}
    assert cycle["stage"] == "response"


def test_feedback_is_added_to_a_prompt_that_a_person_wrote(person):
    name = person.rondel(*INIT)[1].strip()
    folder = person.root / f".aiwf/sessions/{name}/domain/iteration-1"
    prompt = folder / "prompts/planning-prompt.md"
    prompt.write_text("My own words.\n")
    person.rondel("approve", name)
    (folder / "responses").mkdir(exist_ok=True)
    (folder / "responses/planning-response.md").write_text("# A plan\n")
    assert person.rondel("reject", name, "--feedback", "name the index")[0] == 3
    assert prompt.read_text().startswith("My own words.\n\n## Feedback on answer 1\n")
    assert "name the index" in prompt.read_text()
    assert (folder / "responses/planning-response.rejected-1.md").read_text() == "# A plan\n"


def test_reject_retry_skip_and_cancel(person):
    name = person.rondel(*INIT, "--with-tests", "--skip", "api")[1].strip()
    assert person.rondel("reject", name, "--feedback", "name the index")[0] == 3
    prompt = person.root / f".aiwf/sessions/{name}/domain/iteration-1/prompts/planning-prompt.md"
    assert "name the index" in prompt.read_text()
    assert person.rondel("reject", name)[0] == 0
    _, out, err = person.rondel("status", name)
    assert "Status: ERROR" in out
    assert "  [✗] domain (error)\n" in out
    assert f"rondel generate retry {name}" in err
    assert person.rondel("retry", name)[0] == 3
    assert person.rondel("skip", "tests", name)[0] == 0
    assert "  [-] tests (skipped)\n" in person.rondel("status", name)[1]
    assert person.rondel("retry", name, "--cycle", "domain", "--from", "review")[0] == 2
    assert person.rondel("cancel", name)[0] == 0
    assert "  [-] domain (cancelled)\n" in person.rondel("status", name)[1]


def test_a_cycle_that_somebody_else_completed_is_named(person):
    name = person.rondel(*INIT)[1].strip()
    body = person.state(name)
    body["cycles"][0]["status"] = "completed"
    (person.root / f".aiwf/sessions/{name}/session.json").write_text(json.dumps(body))
    (shown,) = json.loads(person.rondel("status", name, "--json")[1])["sessions"]
    assert shown["not_made_by_rondel"] == ["domain"]
    assert "not made by Rondel: domain" in person.rondel("status", name)[2]


def test_what_was_given_up_is_not_completed(person):
    name = person.rondel(*INIT)[1].strip()
    assert person.rondel("cancel", name)[0] == 0
    assert person.rondel("run", name)[0] == 5
    assert "Status: CANCELLED" in person.rondel("status", name)[1]
    (shown,) = json.loads(person.rondel("status", name, "--json")[1])["sessions"]
    assert (shown["status"], shown["state"]["status"]) == ("cancelled", "cancelled")


def test_a_session_whose_cycles_are_all_skipped_is_not_completed(person):
    name = person.rondel(*INIT)[1].strip()
    kinds = [
        c["type"]
        for c in json.loads(person.rondel("status", name, "--json")[1])["sessions"][0]["state"]["cycles"]
    ]
    for kind in kinds:
        assert person.rondel("skip", kind, name)[0] == 0
    assert "Status: SKIPPED" in person.rondel("status", name)[1]
    (shown,) = json.loads(person.rondel("status", name, "--json")[1])["sessions"]
    assert (shown["status"], shown["state"]["status"]) == ("cancelled", "skipped")
    assert person.rondel("run", name)[0] == 5
    assert person.rondel("apply", name, "--yes")[0] == 5


def test_what_is_missing_or_wrong_at_the_start_is_named_and_nothing_is_made(person):
    cases = {
        ("init", "nix"): "no profile 'nix'; there are: jpa-mt, python-service",
        ("init", "jpa-mt", "-c", "scope=full"): "jpa-mt needs -c entity=…",
        ("init", "python-service"): "-c scope=models|service|api|full|tests",
        (*INIT[:-2], "-c", "schema-file=nix.sql"): "names no file in this repository",
        (*INIT[:-2], "-c", "schema-file=/etc/passwd"): "names no file in this repository",
        ("init", "jpa-mt", "-c", "scope=tests"): "needs code to test",
        (*INIT[:2], *INIT[2:8], "-c", "scope=all"): "Unknown scope: all; there are: domain",
        ("init", "jpa-mt", "-c", "scope"): "is not KEY=VALUE",
        (*INIT, "--skip", "nix"): "no such cycle; there are: domain, service, api",
        ("init", "jpa-mt", "-c", "scope=tests", "--source-session", "nix"): "is not here",
        ("init", "jpa-mt", "-c", "scope=tests", "--source-files", "../*"): "without '..'",
        ("init", "jpa-mt", "-c", "scope=tests", "--source-files", "nix/**"): "matches no file",
    }
    for words, message in cases.items():
        code, _, err = person.rondel(*words)
        assert code == 2, words
        assert message in err
    assert not list((person.root / ".aiwf").glob("sessions/*")) if (person.root / ".aiwf").exists() else True


def test_tests_for_files_of_the_project(person):
    place = person.root / "src/Old.java"
    place.parent.mkdir()
    place.write_text("class Old {}\n")
    code, out, err = person.rondel("init", "jpa-mt", "-c", "scope=tests", "--source-files", "src/**/*.java")
    assert code == 0, err
    prompt = person.root / f".aiwf/sessions/{out.strip()}/tests/iteration-1/prompts/planning-prompt.md"
    assert "class Old {}" in prompt.read_text()
    assert "src/Old.java" in prompt.read_text()


def test_tests_for_the_code_of_another_session(tmp_path, monkeypatch, capsys):
    scene = Scene(tmp_path / "repo", context={**FULL, "scope": "domain"}, with_tests=False)
    scene.drive()
    monkeypatch.chdir(scene.root)
    person = Person(scene.root, capsys)
    code, out, err = person.rondel("init", "jpa-mt", "-c", "scope=tests", "--source-session", scene.ref.id)
    assert code == 0, err
    prompt = scene.root / f".aiwf/sessions/{out.strip()}/tests/iteration-1/prompts/planning-prompt.md"
    assert "public class Product {" in prompt.read_text()
    assert [c["type"] for c in person.state(out.strip())["cycles"]] == ["tests"]


class TestSettings:
    def test_gates_limits_and_agents_of_a_cycle_come_from_the_settings(self, person):
        (person.root / "answer.py").write_text(
            "print('# A plan by', __import__('os').environ['RONDEL_ROLE'])\n"
        )
        (person.root / "rondel.toml").write_text(
            '[generate]\ngate = "skip"\niterations_max = 2\n'
            '[generate.gates]\n"service.plan.prompt" = "manual"\n'
            "[generate.cycles.tests]\niterations_max = 5\n"
            f'[agents.planner]\nkind = "command"\ncommand = ["{sys.executable}", "answer.py"]\n'
            '[roles]\n"generate" = "manual"\n"generate.domain.plan" = "planner"\n'
        )
        name = person.rondel(*INIT)[1].strip()
        assert person.rondel("run", name)[0] == 3
        plan = person.root / f".aiwf/sessions/{name}/domain/plan.md"
        assert plan.read_text() == "# A plan by generate.domain.plan\n"
        here = Project(person.root)
        request = here.state(here.ref(name)).request
        assert request.iterations_max == 2
        assert request.limit_of("tests", "iterations_max", 0) == 5

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('gate = "open"', "generate.gate = 'open' is not allowed: one of skip, manual, agent"),
            ('gates = { plan = "no" }', "generate.gates.plan = 'no'"),
            ("iterations_max = 0", "generate.iterations_max = 0"),
            ("cycles = { tests = { colour = 1 } }", "generate.cycles.tests.colour is not a setting"),
            ("nothing = 1", "generate.nothing is not a setting"),
        ],
    )
    def test_a_wrong_setting_is_named(self, person, text, words):
        (person.root / "rondel.toml").write_text(f"[generate]\n{text}\n")
        code, _, err = person.rondel(*INIT)
        assert code == 2
        assert words in err


class TestApply:
    @pytest.fixture
    def scene(self, tmp_path, monkeypatch):
        scene = Scene(tmp_path / "repo", context={**FULL, "scope": "domain"}, with_tests=False)
        scene.drive()
        monkeypatch.chdir(scene.root)
        return scene

    def run(self, *words: str):
        return CliRunner().invoke(command, ["apply", *words])

    def test_it_shows_a_diff_and_waits_for_a_yes(self, scene):
        shown = self.run()
        assert shown.exit_code == 3
        assert "+++ b/src/main/java/com/example/catalog/Product.java" in shown.output
        assert "--- /dev/null" in shown.output
        assert not (scene.root / "src").exists()

    def test_with_a_yes_the_code_is_there_and_the_second_time_nothing_is_to_do(self, scene):
        assert self.run("--yes", "--into", "app").exit_code == 0
        for path, text in FILES["domain"].items():
            assert (scene.root / "app" / path).read_text() == text
        again = self.run("--yes", "--into", "app")
        assert "is there already" in str(again.exception)

    def test_a_changed_file_is_never_replaced_unasked(self, scene):
        assert self.run("--yes").exit_code == 0
        path = "src/main/java/com/example/catalog/Product.java"
        (scene.root / path).write_text("class Mine {}\n")
        refused = self.run("--yes")
        assert "changed by somebody else" in str(refused.exception)
        assert (scene.root / path).read_text() == "class Mine {}\n"
        assert self.run("--yes", "--overwrite", path).exit_code == 0
        assert (scene.root / path).read_text() == FILES["domain"][path]

    def test_a_file_that_was_there_before_is_somebody_else_s(self, scene):
        path = "src/main/java/com/example/catalog/Product.java"
        (scene.root / path).parent.mkdir(parents=True)
        (scene.root / path).write_text("class Old {}\n")
        assert "changed by somebody else" in str(self.run("--yes").exception)
        assert not (scene.root / path).with_name("ProductRepository.java").exists()

    def test_what_it_left_itself_may_be_updated(self, scene):
        assert self.run("--yes").exit_code == 0
        name = "src/main/java/com/example/catalog/Product.java"
        newer = scene.folder / f"domain/iteration-1/code/{name}"
        newer.write_text("class Newer {}\n")
        assert self.run("--yes", "--edited", name).exit_code == 0
        assert (scene.root / name).read_text() == "class Newer {}\n"

    @pytest.mark.parametrize("shown", [True, False])
    def test_code_that_was_edited_after_its_review_is_named_and_asked_about(self, scene, shown):
        name = "src/main/java/com/example/catalog/Product.java"
        code = scene.folder / f"domain/iteration-1/code/{name}"
        code.write_text("class Edited {}\n")
        if not shown:
            (scene.folder / ".rondel/parts/domain/iteration-1/review-shown.json").unlink()
        for words in ((), ("--yes",), ("--into", "app", "--yes")):
            refused = self.run(*words)
            assert isinstance(refused.exception, NeedsConsent)
            assert refused.exception.exit_code == 3
            path = f"app/{name}" if "app" in words else name
            assert f"edited after their review, which was about other code: {path}\n" in refused.output
            assert "ProductRepository" not in str(refused.exception)
        assert not (scene.root / "src").exists()
        assert not (scene.root / "app").exists()
        assert self.run("--dry-run").exit_code == 0
        on = shlex.split(refused.exception.then)
        assert on[:3] == ["rondel", "generate", "apply"]
        assert self.run(*on[3:]).exit_code == 0
        assert (scene.root / "app" / name).read_text() == "class Edited {}\n"

    def test_code_that_was_reviewed_as_a_person_edited_it_is_applied_without_a_word(
        self, tmp_path, monkeypatch
    ):
        name = "src/main/java/com/example/catalog/Product.java"

        def edits(request: Request) -> str | Reply:
            if place(request)[2] == "review" and "class Mine" not in request.prompt:
                (scene.folder / f"domain/iteration-1/code/{name}").write_text("class Mine {}\n")
            return engineer(request)

        context = {**FULL, "scope": "domain"}
        scene = Scene(tmp_path / "repo", edits, context=context, with_tests=False)
        scene.drive()
        monkeypatch.chdir(scene.root)
        done = self.run("--yes")
        assert done.exit_code == 0
        assert "edited after" not in done.output
        assert (scene.root / name).read_text() == "class Mine {}\n"

    def test_code_that_is_gone_is_named_and_nothing_empty_is_written(self, scene):
        name = "src/main/java/com/example/catalog/Product.java"
        (scene.folder / f"domain/iteration-1/code/{name}").unlink()
        assert f"{name} is gone" in str(self.run("--yes").exception)
        assert not (scene.root / "src").exists()

    def test_a_link_that_leads_out_of_the_repository_is_not_followed(self, scene, tmp_path):
        (tmp_path / "outside").mkdir()
        (scene.root / "src").symlink_to(tmp_path / "outside")
        assert "leads out of" in str(self.run("--yes").exception)
        assert not list((tmp_path / "outside").iterdir())

    @pytest.mark.parametrize("into", ["..", "/tmp", ".git/hooks", ".aiwf"])
    def test_it_never_writes_elsewhere(self, scene, into):
        before = git(scene.root, "status", "--porcelain", "--ignored")
        assert self.run("--yes", "--into", into).exit_code != 0
        assert git(scene.root, "status", "--porcelain", "--ignored") == before


class TestProfiles:
    def test_they_are_listed_and_shown(self, person):
        code, out, _ = person.rondel("profiles")
        assert code == 0
        assert [line.split()[0] for line in out.splitlines()] == ["jpa-mt", "python-service"]
        code, out, _ = person.rondel("profile", "show", "jpa-mt")
        assert "tests (scope tests) after api" in out
        assert "jpa-mt needs -c entity=…, -c table=…" in out

    def test_a_new_profile_works_and_its_tests_pass(self, person):
        code, out, _ = person.rondel("profile", "new", "my-profile")
        assert code == 0
        folder = person.root / out.strip()
        done = subprocess.run(
            [sys.executable, "-m", "unittest", "test_profile.py"],
            cwd=folder,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "my-profile  .aiwf/profiles/my-profile" in person.rondel("profiles")[1]
        code, out, err = person.rondel("init", "my-profile", "--with-tests")
        assert code == 0, err
        assert [c["type"] for c in person.state(out.strip())["cycles"]] == ["main", "tests"]
        assert person.rondel("profile", "new", "my-profile")[0] == 2
        assert person.rondel("profile", "new", "../x")[0] == 1

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("def broken(", "cannot be imported: SyntaxError"),
            ("x = 1", "must define one class that is a WorkflowProfile; it has 0"),
        ],
    )
    def test_a_broken_profile_is_named(self, person, source, words):
        folder = person.root / ".aiwf/profiles/bad"
        folder.mkdir(parents=True)
        (folder / "profile.py").write_text(source)
        code, _, err = person.rondel("init", "bad")
        assert code == 1
        assert words in err

    def test_a_hook_that_fails_stops_its_cycle_and_is_named(self, person):
        folder = person.root / ".aiwf/profiles/odd"
        folder.mkdir(parents=True)
        (folder / "profile.py").write_text(
            "from rondel.workflows.generate import WorkflowProfile\n"
            "class Odd(WorkflowProfile):\n"
            "    def plan_prompt(self, cycle):\n"
            "        return 1 / 0\n"
        )
        code, out, _ = person.rondel("init", "odd")
        assert code == 0
        assert "ZeroDivisionError" in person.state(out.strip())["cycles"][0]["last_error"]

    def test_looking_at_a_session_runs_no_profile(self, person):
        name = person.rondel(*INIT)[1].strip()
        path = person.root / f".aiwf/sessions/{name}/session.json"
        path.write_text(path.read_text().replace('"profile_name": "jpa-mt"', '"profile_name": "trap"'))
        folder = person.root / ".aiwf/profiles/trap"
        folder.mkdir(parents=True)
        (folder / "profile.py").write_text("open('sprung', 'w').close()\n")
        assert person.rondel("status", name)[0] == 0
        assert person.rondel("profiles")[0] == 0
        assert not (person.root / "sprung").exists()
