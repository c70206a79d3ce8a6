"""There are no dead ends: whatever failed, what is printed next leads on when it is typed.

Each ending is seen in every workflow with RONDEL_SWEEP=1, otherwise in one or two of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil

import pytest

from rondel.testing.scripted import run_of
from support import follow
from support.world import BEGIN, CODED, GOOD, SETTINGS, SUITE, World

pytestmark = pytest.mark.sweep

WORKFLOWS = ("review", "feature", "cycle", "task", "generate")
EDITING = ("feature", "cycle", "task")
BROKEN: list[dict[str, object]] = [{"role": "*", "fail": "the model is on fire"}]
EDITORS = {"feature": "feature.implement", "cycle": "cycle.cd", "task": "task.*"}
DOCUMENTS = {
    "review": "state.json",
    "feature": ".meta.json",
    "task": "workflow-session.json",
    "generate": "session.json",
}


def of(*names: str, every: tuple[str, ...] = WORKFLOWS) -> pytest.MarkDecorator:
    chosen = every if os.environ.get("RONDEL_SWEEP") else names
    return pytest.mark.parametrize("world", chosen, indirect=True)


@pytest.fixture
def world(tmp_path, request) -> World:
    return World(tmp_path, request.param)


def name_of(world: World) -> str:
    return f"{world.workflow}:{world.session.name.removesuffix('.progress')}"


def leads_on(world: World) -> None:
    """What was printed is typed until the session is at its end or waits for a person."""
    for _ in range(5):
        asked, command = world.asked, world.next
        said = world.type(command)
        assert said.code != 2, (command, said)
        if said.code in (0, 3):
            return
        assert world.asked > asked or world.next != command, (command, said)
    raise AssertionError(world.said)


@of("feature", every=("feature",))
def test_a_dead_end_is_found_by_typing_what_was_printed(world, monkeypatch):
    """What every helper that calls `rondel` does with what was printed: here it is seen to find something."""
    monkeypatch.setenv("RONDEL_SWEEP", "1")
    world.answer(BROKEN)
    world.begin()
    before = {p: (p.stat().st_ino, p.read_bytes()) for p in world.folder.rglob("*") if p.is_file()}

    def follow_(code: int, err: str) -> None:
        follow.follow(world.root, world.env, code, "", err)

    follow_(world.said.code, world.said.err)
    for wrong in ("rondel resume nobody", "rondel no-such-command", "rondel resume --no-such-option"):
        with pytest.raises(AssertionError, match="a usage error"):
            follow_(1, f"next: {wrong}")
    same = world.type("git rev-parse no-such-name")
    with pytest.raises(AssertionError, match="a dead end"):
        follow._follow("git rev-parse no-such-name", same, world.root, world.env)
    for waits in (3, 4, 5):
        with pytest.raises(AssertionError, match="a dead end"):
            follow._follow(f"exit {waits}", follow.Printed(waits, "", ""), world.root, world.env)
        by_hand = follow.Printed(waits, "", "write it into a.md, then go on\n")
        typed = f"echo '{by_hand.err.strip()}' >&2; exit {waits}"
        follow._follow(typed, by_hand, world.root, world.env)
    after = {p: (p.stat().st_ino, p.read_bytes()) for p in world.folder.rglob("*") if p.is_file()}
    assert after == before, "the test has everything as it was"


def test_names_do_not_make_another_kind_of_ending():
    one, two = "rondel task run IMPL-1", "rondel task run IMPL-7"
    assert follow.template(one) == follow.template(two) == "rondel task run …"
    assert follow.template("rondel resume 'a b' --wait") == "rondel resume … --wait"


@of(*WORKFLOWS)
def test_what_failed_is_named_with_its_place_and_the_next_command_tries_it_again(world):
    world.answer(BROKEN)
    said = world.begin()
    assert said.code == 1
    assert "the model is on fire" in said.err
    (place,) = set(re.findall(r"\(see ([^,)]+)", said.err.splitlines()[-2]))
    assert (world.root / place).is_dir(), said.err
    status = world.rondel("status", name_of(world))
    assert (status.commands, place in status.out) == (said.commands, True), "and so it is for who looks later"
    asked = world.asked
    world.type(world.next)
    assert world.asked > asked, "typed with the agent still broken, it is tried again"
    world.answer(GOOD)
    leads_on(world)


@of(*WORKFLOWS)
def test_what_was_cut_off_too_often_goes_on_with_the_next_command(world):
    world.configure("[limits]\ncutoffs_max = 1\n")
    world.answer([{"role": "*", "seconds": 600}])
    for words in BEGIN[world.workflow][:-1]:
        world.rondel(*words)
    world.begin_and_kill()
    for _ in range(2):
        world.begin_and_kill("resume", name_of(world))
    world.answer(GOOD)
    said = world.rondel("resume", name_of(world))
    assert said.code in (0, 3), said


@of("generate", every=("generate",))
def test_an_answer_to_a_question_does_not_pay_again_for_what_failed_beside_it(world):
    """The attempts of a run hold: only a command that goes on gives them back."""
    world.rondel("generate", "init", "python-service", *GATED)
    world.answer(BROKEN)
    world.rondel("generate", "approve")
    asked = world.asked
    assert asked == 2
    world.rondel("approve", name_of(world))
    assert world.asked == asked


GATED = ("-c", "package=shelf", "-c", "entity=Book", "-c", "scope=models")


@of("feature")
def test_an_agent_that_is_not_installed_is_named_and_the_next_command_goes_on_once_it_is(world):
    gone = SETTINGS.replace(
        'kind = "mock"\nscript = "script.json"', 'kind = "command"\ncommand = ["no-such"]'
    )
    world.configure(settings=gone)
    said = world.begin()
    assert said.code == 1
    assert "cannot start 'no-such'" in said.err
    assert world.type(world.next).code == 1
    world.configure()
    leads_on(world)


@of("cycle")
def test_an_agent_that_was_renamed_is_asked_under_its_new_name(world):
    world.answer(BROKEN)
    world.begin()
    command = world.next
    renamed = SETTINGS.replace("[agents.mock]", "[agents.new]")
    world.configure(settings=renamed)
    assert "roles.default = 'mock' names no agent; there are: checks, manual, new" in world.type(command).err
    world.configure(settings=renamed.replace('default = "mock"', 'default = "new"'))
    world.answer(GOOD)
    assert world.type(command).code in (0, 3), world.said


@of("review", "task")
def test_an_answer_that_a_person_owes_is_waited_for_and_taken(world):
    world.configure(settings=SETTINGS.replace('default = "mock"', 'default = "manual"'))
    said = world.begin()
    assert said.code == 3
    again = world.type(world.next)
    assert (again.code, again.commands) == (3, said.commands)
    place = re.findall(r"into (\S+), then go on", said.err)[0]
    (world.root / place).write_text(CODED)
    world.configure()
    leads_on(world)


@of("feature")
def test_what_is_parked_says_until_when_and_how_to_wait_and_stays_parked_until_then(world):
    world.answer([{"role": "*", "park_s": 3600}])
    said = world.begin()
    assert said.code == 6
    assert "is parked until" in said.err
    assert world.next == f"rondel resume {name_of(world)} --wait"
    world.answer(GOOD)
    asked = world.asked
    assert world.rondel("resume", name_of(world)).code == 6
    assert world.asked == asked
    assert world.rondel("resume", name_of(world), "--retry").code in (0, 3)


@of("review")
def test_a_limit_names_the_setting_and_goes_on_once_it_is_raised(world):
    usage = {"usage": {"input_tokens": 100, "output_tokens": 100}}
    world.answer([rule | usage for rule in GOOD])
    world.configure("[limits]\ntokens_max = 10\n")
    said = world.begin()
    assert said.code == 6
    assert "limits.tokens_max = 10" in said.err
    assert said.commands == [], "no command alone leads on"
    (command,) = re.findall("then `(rondel [^`]+)`", said.err)
    world.configure("[limits]\ntokens_max = 1000000\n")
    assert world.type(command).code in (0, 3), world.said


@of("generate")
def test_a_session_whose_run_time_files_were_deleted_goes_on(world):
    world.answer(BROKEN)
    world.begin()
    command = world.next
    shutil.rmtree(run_of(world.session))
    world.answer(GOOD)
    assert world.type(command).code in (0, 3), world.said


@of("cycle", "task", "feature", "generate")
def test_a_damaged_document_leads_to_the_doctor_and_from_there_on(world):
    world.answer(BROKEN)
    world.begin()
    name, text = name_of(world), "document"
    path = world.session / DOCUMENTS.get(world.workflow, f"../{name.partition(':')[2]}.json")
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    world.answer(GOOD)
    said = world.rondel("resume", name)
    for _ in range(4):
        if said.code in (0, 3) or not said.commands:
            break
        said = world.type(world.next)
    assert said.code in (0, 3), said


def begin_editing(world: World, rule: dict[str, object]) -> None:
    """Up to the action that edits, in which the agent follows a rule."""
    world.answer([{"role": EDITORS[world.workflow], **rule}, *GOOD])
    if world.workflow == "feature":
        world.begin()
        world.rondel("feature", "create-tasks", "001-add-it", "--yes")
        world.rondel("feature", "implement", "001-add-it", "--yes")
    else:
        world.begin()
    assert world.said.code == 1, world.said


@of("feature", "cycle", "task", every=EDITING)
def test_a_branch_that_was_deleted_under_a_session_is_made_again(world):
    if world.workflow == "task":
        world.git("switch", "-qc", "work")
    begin_editing(world, {"fail": "no"})
    world.git("switch", "-q", "main")
    for branch in set(world.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()) - {
        "main"
    }:
        world.git("branch", "-qD", branch)
    world.answer(GOOD)
    leads_on(world)
    assert "made.txt" not in world.git("ls-tree", "--name-only", "main").split()


@of("cycle", every=EDITING)
def test_working_copies_that_were_deleted_are_made_again(world):
    begin_editing(world, {"fail": "no"})
    shutil.rmtree(world.folder / "home/.cache/rondel/workspaces")
    world.answer(GOOD)
    leads_on(world)


@of("task", every=("task",))
def test_work_of_ones_own_that_is_in_the_way_is_named_and_nobody_is_asked_again(world):
    (world.root / "made.txt").write_text("mine\n")
    begin_editing(world, {"files": {"made.txt": "made\n"}, "reply": CODED})
    found = re.search(r"not in git: made.txt\.\n.*, then go on: (git .*)", world.said.err)
    assert found is not None, world.said
    asked = world.asked
    assert world.type(world.next).code == 1
    command = world.next
    world.type(found[1])
    assert world.type(command).code == 0
    assert world.asked == asked
    assert world.git("show", "stash@{0}^3:made.txt") == "mine"


@of("feature", every=("feature",))
def test_a_feature_whose_worktree_was_deleted_goes_on_to_its_end(world):
    world.rondel("feature", "start", "Add it", "--worktree")
    world.rondel("feature", "specify", "001-add-it")
    world.rondel("feature", "create-tasks", "001-add-it", "--yes")
    shutil.rmtree(world.folder / "repo-001-add-it")
    assert world.rondel("feature", "implement", "001-add-it", "--yes").code == 0
    assert world.type(world.next).code == 0
    assert world.rondel("feature", "finish", "001-add-it", "--merge").code == 0
    assert "made.txt" in world.git("ls-tree", "--name-only", "main").split()


@of("task", "cycle")
def test_what_was_paused_goes_on_with_what_is_printed(world):
    world.answer(BROKEN)
    world.begin()
    world.answer(GOOD)
    group = (world.workflow,) if world.workflow in ("task", "cycle") else ()
    world.rondel(*group, "pause", name_of(world))
    world.rondel("status", name_of(world))
    leads_on(world)


@of("task", every=("task",))
def test_a_task_session_that_is_paused_says_how_it_becomes_the_active_one(world):
    world.answer([{"role": "*", "park_s": 3600}])
    world.begin()
    world.rondel("task", "pause")
    world.answer(GOOD)
    said = world.rondel("resume", name_of(world), "--retry")
    assert (said.code, world.next) == (3, f"rondel task resume {world.session.name}")
    assert world.type(world.next).code == 0


@of("generate", every=("generate",))
def test_several_questions_are_answered_one_by_one_with_what_is_printed(world):
    scope = ("-c", "package=shelf", "-c", "entity=Book", "-c", "scope=full")
    world.rondel("generate", "init", "python-service", *scope, "--parallel", "--with-tests")
    world.rondel("generate", "run")
    for _ in range(12):
        said = world.type(world.next)
        assert said.code in (0, 3), said
        if said.code == 0:
            break


@of("generate", every=("generate",))
def test_a_response_that_cannot_be_used_is_refused_with_what_is_printed(world):
    world.configure(settings=SETTINGS.replace('default = "mock"', 'default = "manual"'))
    world.begin()
    (place,) = re.findall(r"into (\S+), then go on", world.said.err)
    (world.root / place).write_text("# Plan\n")
    world.type(world.next)
    (place,) = re.findall(r"into (\S+), then go on", world.said.err)
    (world.root / place).write_text("No code.\n")
    world.type(world.next)
    assert world.next == f'rondel generate reject {world.session.name} --feedback "…"'
    assert world.type(world.next).code == 3
    assert "then go on" in world.said.err, "it waits for another response"


@of("review", every=("review",))
def test_a_review_is_shown_by_what_is_printed_wherever_head_is(world):
    world.begin()
    world.git("switch", "-q", "main")
    assert world.type(world.next).code == 0


# -- tasks -------------------------------------------------------------------------------------


@of("task", every=("task",))
@pytest.mark.parametrize("way", ["run", "resume", "task resume", "task run"])
def test_a_task_that_failed_is_tried_again_by_every_command_that_goes_on(world, way):
    world.answer([{"role": "task.*", "fail": "no"}])
    world.begin()
    world.rondel("status", name_of(world))
    world.answer(GOOD)
    session = () if way == "task run" else (name_of(world),)
    said = world.rondel(*way.split(), *session)
    assert (said.code, world.next) == (0, "rondel task complete"), said


@of("task", every=("task",))
def test_a_task_that_a_person_blocked_runs_only_when_it_is_named(world):
    world.rondel(*BEGIN["task"][0])
    world.rondel("task", "add", "First")
    world.rondel("task", "add", "Second")
    path = world.session / ".task/IMPL-1.json"
    path.write_text(path.read_text().replace('"pending"', '"blocked"'))
    said = world.rondel("task", "run")
    assert (said.code, "IMPL-1 is blocked" in said.err) == (1, True), said
    assert world.rondel("resume", name_of(world)).code == 1
    assert world.type(world.next).code == 0, "it names the task"


@of("task", every=("task",))
@pytest.mark.parametrize("tasks", [0, 1, 2])
def test_a_plan_that_failed_is_asked_for_again_by_what_is_printed(world, tasks):
    """Without tasks, with one that is open, and with nothing but completed ones."""
    world.rondel(*BEGIN["task"][0])
    if tasks:
        world.rondel("task", "add", "First")
    if tasks > 1:
        world.rondel("task", "run")
    world.answer([{"role": "task.planner", "fail": "no"}])
    assert world.rondel("task", "plan", "More of it").code == 1
    asked = world.asked
    plan = json.dumps([{"title": "More"}])
    world.answer([{"role": "task.planner", "reply": f"```json\n{plan}\n```"}, *GOOD])
    assert world.type(world.next).code == 0, world.said
    assert world.asked == asked + 1
    assert world.next == "rondel task run"


@of("task", every=("task",))
def test_a_task_that_waits_for_another_says_for_which_and_what_to_type(world):
    world.rondel(*BEGIN["task"][0])
    for words in (("First",), ("Second", "--depends-on", "IMPL-1"), ("Third", "--depends-on", "IMPL-2")):
        world.rondel("task", "add", *words)
    said = world.rondel("task", "run", "IMPL-3")
    assert said.code == 3
    assert "IMPL-3 waits for IMPL-1, IMPL-2" in said.err
    assert world.next == "rondel task run IMPL-1 IMPL-2 IMPL-3"
    assert (world.asked, world.rondel("resume", name_of(world)).commands) == (0, said.commands)
    assert world.type(world.next).code == 0
    assert world.asked == 3


@of("task", every=("task",))
def test_a_task_that_waits_for_one_that_failed_names_it(world):
    world.rondel(*BEGIN["task"][0])
    world.rondel("task", "add", "First")
    world.rondel("task", "add", "Second", "--depends-on", "IMPL-1")
    world.answer([{"role": "task.*", "fail": "no"}])
    said = world.rondel("task", "run")
    assert (said.code, "IMPL-2 waits for IMPL-1" in said.err) == (1, True), said
    world.answer(GOOD)
    leads_on(world)


@of("task", every=("task",))
def test_a_task_file_that_cannot_be_read_holds_up_only_what_depends_on_it(world):
    world.rondel(*BEGIN["task"][0])
    for words in (("First",), ("Second", "--depends-on", "IMPL-1"), ("Third",)):
        world.rondel("task", "add", *words)
    path = world.session / ".task/IMPL-1.json"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    said = world.rondel("task", "run")
    assert said.code == 1
    assert "IMPL-2 cannot run (IMPL-2 depends on IMPL-1, and .task/IMPL-1.json cannot be read)" in said.err, (
        said
    )
    assert "there is no IMPL-1.json" not in said.err
    assert (world.asked, world.next) == (1, "rondel doctor"), "IMPL-3 was done"
    assert ".task/IMPL-1.json" in world.type(world.next).out + world.said.err
    path.write_text(whole)
    assert world.rondel("task", "run").code == 0
    assert world.asked == 3


@of("task", every=("task",))
def test_a_task_whose_file_was_lost_is_added_again_under_the_id_that_others_wait_for(world):
    world.rondel(*BEGIN["task"][0])
    for words in (("First",), ("Second", "--depends-on", "IMPL-1")):
        world.rondel("task", "add", *words)
    path = world.session / ".task/IMPL-1.json"
    path.write_text('{"a')
    said = world.rondel("doctor")
    again = re.search(r'`rondel task add "…" --id (IMPL-1)`', said.out + said.err)
    assert again is not None, said
    assert "remove it first" in world.rondel("task", "add", "First", "--id", "IMPL-1").err
    path.unlink()
    assert world.rondel("task", "add", "First", "--id", "IMPL-1").out.strip() == "IMPL-1"
    assert "already" in world.rondel("task", "add", "First", "--id", "IMPL-001").err
    assert world.rondel("task", "run").code == 0
    assert world.asked == 2


# -- settings ----------------------------------------------------------------------------------

WRONG_TEST = SETTINGS.replace(f"test = {json.dumps(SUITE)}", 'test = "no-such-tests --all"')


@of("cycle", "task", "feature", every=EDITING)
def test_a_test_command_that_is_not_there_is_the_settings_fault_and_costs_nothing(world):
    world.configure(settings=WRONG_TEST)
    world.begin()
    if world.workflow == "feature":
        world.rondel("feature", "create-tasks", "001-add-it", "--yes")
        world.rondel("feature", "implement", "001-add-it", "--yes")
    said, asked = world.said, world.asked
    assert said.code == 6
    assert "`no-such-tests --all` cannot be run here" in said.err, said
    assert re.search(r"\[project\] (test|checks \(or test\)) of the settings names it", said.err), said
    assert "status 127" not in said.err
    assert world.type(world.next).code == 6
    assert world.asked == asked, "typed before it is corrected, nobody is asked"
    world.configure()
    leads_on(world)
    assert world.asked - asked <= (1 if world.workflow == "cycle" else 2), "only who comes after is asked"


@of("feature", every=("feature",))
def test_verification_needs_a_test_command_that_is_there(world):
    world.begin()
    world.rondel("feature", "create-tasks", "001-add-it", "--yes")
    world.rondel("feature", "implement", "001-add-it", "--yes")
    asked = world.asked
    world.configure(settings=WRONG_TEST)
    said = world.rondel("feature", "verify", "001-add-it")
    assert (said.code, world.asked) == (6, asked), said
    assert "`no-such-tests --all` cannot be run here" in said.err
    assert "[project] test of the settings names it" in said.err
    world.configure()
    leads_on(world)


# -- words -------------------------------------------------------------------------------------


@of("feature", every=("feature",))
def test_a_hotfix_is_implemented_next(world):
    said = world.rondel("feature", "start", "Add it", "--mode", "hotfix", "--description", "It must add.")
    assert said.commands == ["rondel feature implement 001-add-it"]
    assert world.type(said.commands[0]).code == 0, world.said
    assert world.next == "rondel feature verify 001-add-it"
    assert world.type(world.next).code == 0
    assert world.next == "rondel feature finish 001-add-it"


@of("feature", every=("feature",))
def test_finish_names_the_first_phase_that_is_missing(world):
    world.begin()
    world.rondel("feature", "create-tasks", "001-add-it", "--yes")
    said = world.rondel("feature", "finish", "001-add-it", "--merge")
    assert (said.code, "`rondel feature implement 001-add-it` makes it" in said.err) == (1, True), said
    world.rondel("feature", "implement", "001-add-it", "--yes")
    path = world.session / ".meta.json"
    meta = json.loads(path.read_text())
    stamp = {"started": "2026-01-01T00:00:00Z", "completed": "2026-01-02T00:00:00Z"}
    path.write_text(json.dumps(meta | {"phases": meta["phases"] | {"implement": stamp, "verify": stamp}}))
    shutil.rmtree(world.session / ".rondel/parts/implement")
    (world.session / "tasks.md").write_text("# Tasks\n\n- [x] done\n")
    said = world.rondel("feature", "finish", "001-add-it", "--merge")
    assert "no approval: implement, verify; `rondel feature implement 001-add-it --yes`" in said.err, said


@of("task", "cycle", every=WORKFLOWS)
@pytest.mark.parametrize("word", ["pause", "stop"])
def test_pause_and_stop_say_what_they_do_and_what_is_typed_after(world, word):
    world.answer(BROKEN)
    world.begin()
    said = world.rondel(word, name_of(world))
    assert "no driver works on it; nothing starts until it is resumed" in said.err
    world.answer(GOOD)
    leads_on(world)


@of("cycle", every=("cycle",))
def test_coverage_that_was_not_measured_is_no_number(world):
    world.begin()
    said = world.rondel("cycle", "status")
    assert "tests 1, 100 % passed, coverage not measured" in said.out, said


@of("cycle", every=("cycle",))
def test_a_plan_that_was_cut_short_is_said_and_written_again(world):
    world.answer([{"role": "cycle.cd", "fail": "no"}, *GOOD])
    world.begin()
    path = world.session / "ep/plan.json"
    whole = path.read_text()
    path.write_text(f"mine {whole[: len(whole) // 2]}")
    assert "ep/plan.json: it cannot be read" in world.rondel("status", name_of(world)).out
    world.answer(GOOD)
    said = world.rondel("resume", name_of(world))
    assert (said.code, "ep/plan.json: it cannot be read" in said.err) == (0, True), said
    assert json.loads(path.read_text())["tasks"][0]["status"] == "completed"
    (kept,) = (world.session / ".rondel/aside").glob("*plan.json*")
    assert kept.read_text().startswith("mine ")


@of("cycle", every=("cycle",))
def test_a_plan_of_which_nothing_is_left_is_asked_for_again(world):
    world.answer([{"role": "cycle.cd", "fail": "no"}, *GOOD])
    world.begin()
    for path in (world.session / "ep/plan.json", *world.session.glob(".rondel/parts/**/plan*.json")):
        path.write_text("{")
    state = world.session.with_name(f"{world.session.name.removesuffix('.progress')}.json")
    body = json.loads(state.read_text())
    state.write_text(json.dumps({k: v for k, v in body.items() if k != "plan"}))
    world.answer(GOOD)
    leads_on(world)
    assert json.loads((world.session / "ep/plan.json").read_text())["tasks"]
