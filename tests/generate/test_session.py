"""Whole sessions on the real engine: cycles, phases, stages, gates, retries."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shutil import which

import pytest
from generate_java import STUBS
from generate_scene import AT, FAIL, FULL, PASS, Scene, blocks, engineer, place

from rondel.agents.base import Reply
from rondel.engine.driver import Stopped
from rondel.errors import UsageError
from rondel.model.outcomes import Ended
from rondel.model.summary import Status
from rondel.workflows.generate import WorkflowPhase, transitions
from rondel.workflows.generate.workflow import status_text

DOMAIN = {**FULL, "scope": "domain"}


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Four cycles with one revision, run to the end."""
    scene = Scene(tmp_path_factory.mktemp("full") / "repo")
    scene.report = scene.drive()
    return scene


class TestFourCycles:
    def test_all_are_completed_in_order_with_one_revision(self, full):
        assert full.report.stopped is Stopped.COMPLETED
        assert [(c["type"], c["status"], c["current_iteration"]) for c in full.document["cycles"]] == [
            ("domain", "completed", 1),
            ("service", "completed", 2),
            ("api", "completed", 1),
            ("tests", "completed", 1),
        ]
        phases = [place(r) for r in full.agent.seen]
        assert phases == [
            ("domain", 1, "planning"),
            ("domain", 1, "generation"),
            ("domain", 1, "review"),
            ("service", 1, "planning"),
            ("service", 1, "generation"),
            ("service", 1, "review"),
            ("service", 2, "revision"),
            ("service", 2, "review"),
            ("api", 1, "planning"),
            ("api", 1, "generation"),
            ("api", 1, "review"),
            ("tests", 1, "planning"),
            ("tests", 1, "generation"),
            ("tests", 1, "review"),
        ]

    def test_the_folders_are_the_document_s(self, full):
        found = {str(p.relative_to(full.folder)) for p in full.folder.rglob("*") if p.is_file()}
        shown = {p for p in found if not p.startswith(".rondel")}
        for kind in ("domain", "service", "api", "tests"):
            assert f"{kind}/iteration-1/prompts/planning-prompt.md" in shown
            assert f"{kind}/iteration-1/responses/review-response.md" in shown
            assert f"{kind}/plan.md" in shown
            assert f"{kind}/standards-bundle.md" in shown
            assert any(p.startswith(f"{kind}/iteration-1/code/") for p in shown)
        assert "service/iteration-2/prompts/revision-prompt.md" in shown
        assert not (full.folder / "domain/iteration-2").exists()
        tops = {p.split("/")[0] for p in shown}
        assert tops == {"domain", "service", "api", "tests", "session.json"}

    def test_a_cycle_gets_the_code_of_what_it_depends_on_and_of_nothing_else(self, full):
        service = full.prompt_of("service/iteration-1/responses/planning-response.md")
        api = full.prompt_of("api/iteration-1/responses/planning-response.md")
        assert "public class Product {" in service
        assert "public class ProductService {" in api
        assert "public class Product {" not in api

    def test_each_prompt_holds_the_standards_of_its_own_cycle_only(self, full):
        domain = full.prompt_of("domain/iteration-1/responses/generation-response.md")
        api = full.prompt_of("api/iteration-1/responses/generation-response.md")
        assert "ENT-1" in domain
        assert "API-1" not in domain
        assert "API-1" in api
        assert "ENT-1" not in api

    def test_the_schema_and_the_context_are_in_the_prompt(self, full):
        prompt = full.prompt_of("domain/iteration-1/responses/planning-response.md")
        assert "create table app.products" in prompt
        assert "Bounded context: catalog" in prompt
        assert "{{" not in prompt

    def test_plan_standards_hashes_and_approvals_belong_to_the_cycle(self, full):
        for cycle in full.document["cycles"]:
            assert cycle["plan_approved"]
            assert cycle["review_approved"]
            assert len({cycle["plan_hash"], cycle["standards_hash"], cycle["review_hash"]}) == 3
            assert cycle["approvals"][0]["phase"] == "plan"
            assert cycle["approvals"][0]["sha256"] == cycle["prompt_hashes"]["iteration-1/plan"]
            assert cycle["artifacts"]
            assert cycle["last_error"] is None

    @pytest.mark.skipif(which("javac") is None, reason="there is no JDK here")
    def test_the_java_compiles(self, full, tmp_path):
        sources = {**{f"stubs/{p}": t for p, t in STUBS.items()}}
        for cycle in full.document["cycles"]:
            for artifact in cycle["artifacts"]:
                name = artifact["path"].partition("/code/")[2]
                sources[name] = full.text(artifact["path"])
        for name, text in sources.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        names = [str(tmp_path / n) for n in sources]
        done = subprocess.run(
            ["javac", "-d", str(tmp_path / "out"), *names], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "out/com/example/catalog/ProductController.class").exists()


def test_the_status_of_the_document_byte_for_byte(tmp_path):
    def halts(request):
        kind, _, phase = place(request)
        return (
            Reply(Ended.WAITING, error="wait")
            if (kind, phase) == ("service", "generation")
            else engineer(request)
        )

    scene = Scene(tmp_path / "repo", halts)
    scene.drive()
    session = scene.state.session.model_copy(update={"session_id": "abc123"})
    assert status_text(session) == (
        "Session: abc123\n"
        "Cycle: 2/4 (service)\n"
        "Phase: GENERATE[RESPONSE]\n"
        "Status: IN_PROGRESS\n"
        "\n"
        "Cycles:\n"
        "  [✓] domain (completed)\n"
        "  [→] service (in progress)\n"
        "  [ ] api (pending)\n"
        "  [ ] tests (pending)\n"
    )


class TestGates:
    def test_a_manual_gate_waits_at_every_prompt_and_response(self, tmp_path):
        scene = Scene(tmp_path / "repo", context=DOMAIN, with_tests=False, request={})
        stops = []
        while (code := scene.drive().exit_code) == 3:
            cycle = scene.cycle("domain")
            stops.append(f"{cycle['phase']}[{cycle['stage']}]")
            scene.project.decide(scene.ref, "approve")
        assert code == 0
        assert stops == [f"{p}[{s}]" for p in ("plan", "generate", "review") for s in ("prompt", "response")]

    def test_a_person_s_edit_of_a_prompt_is_what_is_asked_and_its_digest_is_taken(self, tmp_path):
        scene = Scene(tmp_path / "repo", context=DOMAIN, with_tests=False, request={})
        scene.drive()
        prompt = scene.folder / "domain/iteration-1/prompts/planning-prompt.md"
        prompt.write_text("Plan it my way.\n")
        assert scene.decide("approve") == 3
        assert scene.prompt_of("domain/iteration-1/responses/planning-response.md") == "Plan it my way.\n"
        digest = scene.state.files.digest("domain/iteration-1/prompts/planning-prompt.md")
        assert scene.cycle("domain")["prompt_hashes"] == {"iteration-1/plan": digest}

    def test_a_person_s_edit_of_a_response_is_what_goes_on(self, tmp_path):
        gates = {"plan.response": "manual"}
        scene = Scene(
            tmp_path / "repo", context=DOMAIN, with_tests=False, request={"gate": "skip", "gates": gates}
        )
        assert scene.drive().exit_code == 3
        (scene.folder / "domain/iteration-1/responses/planning-response.md").write_text("# My plan\n")
        assert scene.decide("approve") == 0
        assert scene.text("domain/plan.md") == "# My plan\n"
        assert "# My plan" in scene.prompt_of("domain/iteration-1/responses/generation-response.md")

    def test_a_rejected_prompt_is_put_aside_and_made_anew_with_the_feedback(self, tmp_path):
        scene = Scene(tmp_path / "repo", context=DOMAIN, with_tests=False, request={})
        scene.drive()
        before = scene.text("domain/iteration-1/prompts/planning-prompt.md")
        assert scene.decide("reject", "name the index") == 3
        assert scene.text("domain/iteration-1/prompts/planning-prompt.rejected-1.md") == before
        assert "name the index" in scene.text("domain/iteration-1/prompts/planning-prompt.md")
        assert scene.asked == []

    def test_a_rejected_response_is_asked_for_again_with_the_feedback(self, tmp_path):
        scene = Scene(
            tmp_path / "repo",
            context=DOMAIN,
            with_tests=False,
            request={"gate": "skip", "gates": {"response": "manual"}},
        )
        scene.drive()
        assert scene.decide("reject", "say which index") == 3
        assert len(scene.asked) == 2
        assert "say which index" in scene.agent.seen[-1].prompt
        assert (scene.folder / "domain/iteration-1/responses/planning-response.rejected-1.md").exists()
        assert scene.cycle("domain")["phase"] == "plan"
        assert scene.decide("reject", "shorter") == 3
        last = scene.agent.seen[-1].prompt
        assert last.index("say which index") < last.index("shorter")

    def test_a_rejection_without_feedback_halts_the_cycle_and_a_retry_goes_on(self, tmp_path):
        scene = Scene(
            tmp_path / "repo", request={"gate": "skip", "gates": {"service.plan.response": "manual"}}
        )
        assert scene.drive().exit_code == 3
        assert scene.decide("reject") == 1
        assert scene.cycle("service")["status"] == "error"
        assert scene.cycle("domain")["status"] == "completed"
        assert scene.project.summary(scene.ref).status is Status.FAILED
        scene.change(transitions.retry(scene.state, None, None, "", AT))
        assert scene.drive().exit_code == 3
        assert scene.decide("approve") == 0

    def test_an_agent_s_gate_approves_rejects_or_leaves_it_to_a_person(self, tmp_path):
        said = iter(
            [
                '```json\n{"answer": "reject", "comment": "name the tenant"}\n```',
                '```json\n{"answer": "approve"}\n```',
                "It looks fine to me!",
                "Really, it does.",
            ]
        )

        def answer(request):
            return next(said) if request.role == "generate.gate" else engineer(request)

        gates = {"plan.prompt": "agent", "plan.response": "agent"}
        scene = Scene(
            tmp_path / "repo",
            answer,
            context=DOMAIN,
            with_tests=False,
            request={"gate": "skip", "gates": gates},
        )
        assert scene.drive().exit_code == 3
        assert "name the tenant" in scene.prompt_of("domain/iteration-1/responses/planning-response.md")
        cycle = scene.cycle("domain")
        assert (cycle["phase"], cycle["stage"]) == ("plan", "response")
        assert cycle["approvals"][0]["by"] == "gate: manual"  # the agent that has the role, here by default
        assert scene.decide("approve") == 0

    def test_an_agent_s_gate_cannot_reject_for_ever(self, tmp_path):
        def answer(request):
            if request.role == "generate.gate":
                return '{"answer": "reject", "comment": "again"}'
            return engineer(request)

        scene = Scene(
            tmp_path / "repo",
            answer,
            context=DOMAIN,
            with_tests=False,
            request={"gate": "skip", "gates": {"plan.response": "agent"}},
        )
        assert scene.drive().exit_code == 3
        assert sum(r.role == "generate.gate" for r in scene.agent.seen) == 3


class TestReview:
    def test_a_verdict_that_cannot_be_read_is_asked_for_again_once_and_then_stops(self, tmp_path):
        def answer(request):
            return "All good, PASS!" if place(request)[2] == "review" else engineer(request)

        scene = Scene(tmp_path / "repo", answer, context=DOMAIN, with_tests=False)
        assert scene.drive().exit_code == 1
        assert scene.asked.count("domain/iteration-1/responses/review-response.md") == 2
        assert scene.cycle("domain")["status"] == "error"
        assert "PASS!" in scene.text("domain/iteration-1/responses/review-response.rejected-1.md")

    def test_the_limit_on_iterations_ends_the_cycle_and_a_retry_opens_more(self, tmp_path):
        fails = 3

        def answer(request):
            _, iteration, phase = place(request)
            return FAIL if phase == "review" and iteration <= fails else engineer(request)

        scene = Scene(
            tmp_path / "repo",
            answer,
            context=DOMAIN,
            with_tests=False,
            request={"auto": True, "iterations_max": 2},
        )
        assert scene.drive().exit_code == 1
        assert scene.cycle("domain")["current_iteration"] == 2
        assert "no PASS after 2 iterations" in scene.cycle("domain")["last_error"]
        scene.change(transitions.retry(scene.state, None, None, "", AT))
        assert scene.drive().exit_code == 0
        assert scene.cycle("domain")["current_iteration"] == 4

    def test_a_cycle_may_have_a_limit_of_its_own(self, tmp_path):
        def answer(request):
            return FAIL if place(request)[2] == "review" else engineer(request)

        request = {"auto": True, "iterations_max": 5, "cycles": {"domain": {"iterations_max": 1}}}
        scene = Scene(tmp_path / "repo", answer, context=DOMAIN, with_tests=False, request=request)
        assert scene.drive().exit_code == 1
        assert scene.cycle("domain")["current_iteration"] == 1

    def test_a_revision_sees_the_review_and_keeps_the_files_it_does_not_give(self, tmp_path):
        def answer(request):
            _, iteration, phase = place(request)
            if phase == "review":
                return f"Name it better.\n{FAIL}" if iteration == 1 else PASS
            if phase == "revision":
                return blocks(
                    {"src/main/java/com/example/catalog/Product.java": "class Product { int better; }\n"}
                )
            return engineer(request)

        scene = Scene(tmp_path / "repo", answer, context=DOMAIN, with_tests=False)
        assert scene.drive().exit_code == 0
        assert "Name it better." in scene.prompt_of("domain/iteration-2/responses/revision-response.md")
        again = scene.prompt_of("domain/iteration-2/responses/review-response.md")
        assert "int better" in again
        assert "interface ProductRepository" in again


class TestUnusable:
    def test_a_response_without_code_does_not_advance(self, tmp_path):
        def answer(request):
            return "I would write a class." if place(request)[2] == "generation" else engineer(request)

        scene = Scene(tmp_path / "repo", answer, context=DOMAIN, with_tests=False)
        assert scene.drive().exit_code == 1
        cycle = scene.cycle("domain")
        assert (cycle["phase"], cycle["stage"], cycle["status"]) == ("generate", "response", "error")
        assert "no code with a file name" in cycle["last_error"]
        assert not (scene.folder / "domain/iteration-1/code").exists()

    def test_it_is_sent_back_once_and_the_second_answer_will_do(self, tmp_path):
        tried = []

        def answer(request):
            if place(request)[2] == "generation" and not tried:
                tried.append(1)
                return blocks({"../../evil.java": "class Evil {}\n"})
            return engineer(request)

        scene = Scene(tmp_path / "repo", answer, context=DOMAIN, with_tests=False)
        assert scene.drive().exit_code == 0
        assert any("'../../evil.java' does not stay in its folder" in r.prompt for r in scene.agent.seen)
        assert not list(scene.root.rglob("evil.java"))

    def test_a_symbolic_link_in_code_is_not_followed(self, tmp_path):
        scene = Scene(tmp_path / "repo", context=DOMAIN, with_tests=False)
        outside = tmp_path / "outside"
        outside.mkdir()
        code = scene.folder / "domain/iteration-1/code"
        code.mkdir(parents=True)
        (code / "src").symlink_to(outside)
        assert scene.drive().exit_code == 0
        assert list(outside.iterdir()) == []
        assert not (code / "src").is_symlink()
        assert list((code / "src").rglob("*.java"))

    def test_an_agent_that_fails_leaves_finished_cycles_intact_and_a_retry_goes_on(self, tmp_path):
        broken = [True]

        def answer(request):
            if place(request)[:1] == ("api",) and broken[0]:
                return Reply(Ended.FAILED, error="overloaded")
            return engineer(request)

        scene = Scene(tmp_path / "repo", answer)
        assert scene.drive().exit_code == 1
        before = {p: p.read_bytes() for p in (scene.folder / "domain").rglob("*.md")}
        assert scene.cycle("api")["last_error"] == "PLAN: overloaded"
        broken[0] = False
        assert scene.drive(retry=True).exit_code == 0
        assert before == {p: p.read_bytes() for p in (scene.folder / "domain").rglob("*.md")}


class TestRetrySkipCancel:
    def test_one_phase_of_one_cycle_is_redone_in_an_iteration_of_its_own(self, tmp_path):
        scene = Scene(tmp_path / "repo")
        scene.drive()
        before = {p: p.read_bytes() for p in (scene.folder / "service/iteration-1").rglob("*") if p.is_file()}
        scene.change(transitions.retry(scene.state, "service", WorkflowPhase.GENERATE, "use records", AT))
        asked = len(scene.asked)
        assert scene.drive().exit_code == 0
        assert scene.asked[asked:] == [
            "service/iteration-3/responses/generation-response.md",
            "service/iteration-3/responses/review-response.md",
        ]
        assert "use records" in scene.agent.seen[asked].prompt
        assert before == {
            p: p.read_bytes() for p in (scene.folder / "service/iteration-1").rglob("*") if p.is_file()
        }

    def test_a_revised_cycle_marks_its_dependants_stale_and_redoes_none(self, tmp_path):
        again = []

        def answer(request):
            kind, _, phase = place(request)
            if kind == "domain" and phase in ("generation", "revision") and again:
                return blocks(
                    {"src/main/java/com/example/catalog/Product.java": "class Product { int n; }\n"}
                )
            return engineer(request)

        scene = Scene(tmp_path / "repo", answer)
        scene.drive()
        again.append(1)
        scene.change(transitions.retry(scene.state, "domain", WorkflowPhase.GENERATE, "", AT))
        asked = len(scene.asked)
        assert scene.drive().exit_code == 0
        assert all(path.startswith("domain/") for path in scene.asked[asked:])
        assert [c["stale"] for c in scene.document["cycles"]] == [False, True, True, True]
        assert "  [✓] service (completed, stale)\n" in status_text(scene.state.session)
        scene.change(transitions.retry(scene.state, "service", None, "", AT))
        assert scene.drive().exit_code == 0
        assert not scene.cycle("service")["stale"]
        assert "int n;" in scene.prompt_of("service/iteration-3/responses/planning-response.md")

    def test_a_cycle_redone_with_the_same_code_makes_nothing_stale(self, tmp_path):
        scene = Scene(tmp_path / "repo")
        scene.drive()
        scene.change(transitions.retry(scene.state, "domain", WorkflowPhase.REVIEW, "", AT))
        assert scene.drive().exit_code == 0
        assert [c["stale"] for c in scene.document["cycles"]] == [False] * 4

    def test_a_skipped_cycle_is_left_out_and_what_it_rests_on_takes_its_place(self, tmp_path):
        scene = Scene(tmp_path / "repo", skip=("api",))
        assert scene.drive().exit_code == 0
        assert not any(path.startswith("api/") for path in scene.asked)
        assert "  [-] api (skipped)\n" in status_text(scene.state.session)
        assert "ProductService" in scene.prompt_of("tests/iteration-1/responses/planning-response.md")

    def test_a_cycle_can_be_skipped_later_but_not_when_it_is_complete(self, tmp_path):
        scene = Scene(tmp_path / "repo")
        scene.change(transitions.skip(scene.state, "tests", AT))
        assert scene.drive().exit_code == 0
        assert not any(path.startswith("tests/") for path in scene.asked)
        with pytest.raises(UsageError, match="is complete"):
            transitions.skip(scene.state, "domain", AT)

    def test_a_cancelled_session_does_nothing_more_until_a_retry(self, tmp_path):
        scene = Scene(tmp_path / "repo", request={"gate": "skip", "gates": {"service": "manual"}})
        scene.drive()
        scene.change(transitions.cancel(scene.state, AT))
        asked = len(scene.asked)
        assert scene.drive().exit_code == 5
        assert len(scene.asked) == asked
        assert [c["status"] for c in scene.document["cycles"]] == ["completed", *["cancelled"] * 3]
        assert "Status: CANCELLED\n" in status_text(scene.state.session)
        scene.change(transitions.retry(scene.state, None, None, "", AT))
        assert scene.drive().exit_code == 3

    def test_what_cannot_be_retried_is_said(self, tmp_path):
        scene = Scene(tmp_path / "repo")
        with pytest.raises(UsageError, match="has not begun"):
            transitions.retry(scene.state, "tests", None, "", AT)
        with pytest.raises(UsageError, match="no cycle 'nix'"):
            transitions.retry(scene.state, "nix", None, "", AT)
        scene.drive()
        with pytest.raises(UsageError, match="name the cycle"):
            transitions.retry(scene.state, None, None, "", AT)


def test_independent_cycles_run_at_once_when_asked_and_dependent_ones_never(tmp_path):
    def answer(request):
        kind, _, phase = place(request)
        return {"planning": "A plan.", "review": PASS}.get(phase) or blocks({f"{kind}.java": "class A {}\n"})

    orders = []
    for parallel in (True, False):
        root = tmp_path / str(parallel)
        (root / ".aiwf/profiles/wide").mkdir(parents=True)
        (root / ".aiwf/profiles/wide/profile.py").write_text(WIDE)
        request = {"auto": True, "parallel": parallel}
        scene = Scene(root, answer, profile="wide", context={}, request=request)
        assert scene.drive().exit_code == 0
        orders.append([place(r)[0] for r in scene.agent.seen])
    at_once, in_order = orders
    assert set(at_once[:2]) == {"left", "right"}
    assert in_order == ["left"] * 3 + ["right"] * 3 + ["both"] * 3
    assert at_once[6:] == ["both"] * 3
    assert "['left', 'right']" in scene.prompt_of("both/iteration-1/responses/planning-response.md")


WIDE = """
from rondel.workflows.generate import CycleConfig
from rondel.workflows.generate.profiles.base import PromptPlan, WorkflowProfile


class Wide(WorkflowProfile):
    name = "wide"

    def get_cycles(self, context):
        both = CycleConfig("both", "x", ["left", "right"])
        return [CycleConfig("left", "x"), CycleConfig("right", "x"), both]

    def plan_prompt(self, cycle):
        return PromptPlan(f"{cycle.phase} of {cycle.type}: {sorted(cycle.outputs)}")
"""


def test_files_of_a_session_that_is_damaged_are_reported_and_left_alone(tmp_path):
    scene = Scene(tmp_path / "repo")
    for body in (
        "{",
        "[]",
        '{"cycles": []}',
        '{"session_id": "x", "profile_name": "p", "cycles": [{"type": 1}]}',
    ):
        Path(scene.folder / "session.json").write_text(body)
        found = scene.project.summary(scene.ref)
        assert found.status is Status.DAMAGED
        assert found.problems[0].file == "session.json"
        assert list(scene.project.workflow("generate").plan(scene.state)) == []


def test_an_index_beyond_the_last_cycle_means_the_last_one(tmp_path):
    scene = Scene(tmp_path / "repo")
    path = scene.folder / "session.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"current_cycle_index": 99}))
    state = scene.project.state(scene.ref)
    assert "Cycle: 4/4 (tests)" in status_text(state.session)
    assert scene.project.workflow("generate").artifact(state, None).startswith("tests/")
    with pytest.raises(UsageError, match="tests has not begun"):
        transitions.retry(state, None, None, "", AT)


def test_a_cycle_type_in_the_document_that_leads_elsewhere_is_damage(tmp_path):
    scene = Scene(tmp_path / "repo")
    body = (scene.folder / "session.json").read_text().replace('"type": "domain"', '"type": "../../x"')
    (scene.folder / "session.json").write_text(body)
    assert scene.project.summary(scene.ref).status is Status.DAMAGED
