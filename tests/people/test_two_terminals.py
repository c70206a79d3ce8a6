"""Two terminals: a command that is refused leaves everything as if it had not been typed."""

from __future__ import annotations

import os
import signal
from random import Random

import pytest

from rondel.testing.kills import assert_same
from support.kills import commit_number
from support.stories import WORKFLOWS, Story, stopped_at_work

pytestmark = pytest.mark.sweep

EXAMPLES = 12 if os.environ.get("RONDEL_SWEEP") else 1
SEED = os.environ.get("RONDEL_SEED") or commit_number()
THINKING_S = 0.25
LOOKING = (("status",), ("doctor",), ("watch", "--once"), ("agents",), ("show",))
DRIVING = {  # each wants to change what the session is for, or to drive it
    "any": (
        ("run",),
        ("resume",),
        ("resume", "--retry"),
        ("resume", "--refresh"),
        ("run", "--onto", "other"),
        ("approve",),
        ("reject", "--feedback", "no"),
    ),
    "review": (
        ("review",),
        ("review", "--restart"),
        ("review", "--team", "testing:1"),
        ("review", "--again"),
        ("review", "--requirements", "README.md"),
    ),
    "feature": (
        ("feature", "run"),
        ("feature", "brainstorm", "--fresh"),
        ("feature", "specify", "--fresh"),
        ("feature", "specify", "--review", "--yes"),
        ("feature", "implement", "--yes"),
        ("feature", "finish", "--abandon"),
        ("feature", "finish", "--keep", "--force"),
    ),
    "cycle": (("cycle", "resume"), ("cycle", "rebuild")),
    "task": (
        ("task", "run"),
        ("task", "run", "IMPL-2"),
        ("task", "run", "IMPL-9"),
        ("task", "run", "--jobs", "1"),
        ("task", "plan", "something else"),
        ("task", "breakdown", "IMPL-2"),
        ("task", "replan", "IMPL-3", "differently"),
        ("task", "resume"),
        ("task", "complete"),
        ("task", "start", "Something else"),
    ),
    "generate": (
        ("generate", "run"),
        ("generate", "run", "--no-auto"),
        ("generate", "run", "--parallel"),
        ("generate", "retry"),
        ("generate", "retry", "--cycle", "models", "--no-run"),
        ("generate", "retry", "--cycle", "models", "--from", "plan"),
        ("generate", "approve"),
    ),
}

FIRST = {  # what took a run over, when a request was written before the lease was tried for
    "review": ("review", "--team", "testing:1"),
    "feature": ("feature", "brainstorm", "--fresh"),
    "cycle": ("cycle", "rebuild"),
    "task": ("task", "run", "IMPL-2"),
    "generate": ("generate", "retry", "--cycle", "models"),
}


SAYING = {  # each says something to the session, or does something beside it; some are refused
    "any": (("doctor", "--repair"), ("adopt", "--yes"), ("trust",), ("init", "--no-plugin")),
    "review": (
        ("review", "accept", "F-1", "--reason", "known"),
        ("review", "history"),
        ("review", "progress"),
    ),
    "feature": (("feature", "start", "Something else"), ("feature", "verify"), ("feature", "create-plan")),
    "cycle": (
        ("cycle", "start", "Something else", "--no-run"),
        ("cycle", "extend", "cycle", "and round it down"),
        ("cycle", "feedback", "cycle", "say why", "--to", "cd"),
        ("cycle", "unblock", "cycle", "B-1"),
    ),
    "task": (
        ("task", "add", "One more thing"),
        ("task", "reopen", "IMPL-1"),
        ("task", "allow"),
        ("task", "todo"),
        ("task", "validate"),
    ),
    "generate": (("generate", "status"), ("generate", "reject", "--feedback", "no"), ("generate", "apply")),
}


def begun(folder, workflow: str) -> Story:
    story = Story(folder, workflow, THINKING_S)
    story.git("branch", "other")
    return story


@pytest.mark.parametrize("number", range(EXAMPLES))
@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_refused_command_leaves_no_trace_and_the_run_at_work_keeps_to_its_own(workflow, number, tmp_path):
    seed = f"{SEED}/{workflow}/{number}"
    print("seed", seed)
    random = Random(seed)
    typed = [FIRST[workflow], *random.choices((*LOOKING, *DRIVING["any"], *DRIVING[workflow]), k=5)]
    story = begun(tmp_path / "disturbed", workflow)
    calm = begun(tmp_path / "calm", workflow)
    process, undisturbed = story.drive(), calm.drive()
    at_work = stopped_at_work(process, story, random.uniform(0, 0.5))
    try:
        for words in typed if at_work else ():
            check(story, words)
    finally:
        if at_work:
            process.send_signal(signal.SIGCONT)
        process.communicate(timeout=120)
    undisturbed.communicate(timeout=120)
    assert process.returncode == undisturbed.returncode
    assert_same(story.shown(), calm.shown())


def check(story: Story, words: tuple[str, ...]) -> None:
    before = story.shown()
    code, said = story.typed(*words)
    assert words in LOOKING or code in (1, 2, 5), f"{words} was not refused: {said}"
    assert_same(story.shown(), before)


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_whatever_is_said_beside_a_run_it_ends_well_and_what_is_refused_leaves_no_trace(workflow, tmp_path):
    random = Random(f"{SEED}/{workflow}/said")
    there = [*SAYING["any"], *SAYING[workflow]]
    typed = there if os.environ.get("RONDEL_SWEEP") else random.sample(there, k=4)
    story = begun(tmp_path / "said", workflow)
    process = story.drive()
    at_work = stopped_at_work(process, story, random.uniform(0, 0.5))
    try:
        assert at_work, "the run had ended before anything was typed beside it"
        for words in typed:
            before = story.of_it()
            code, said = story.typed(*words)
            assert code in (0, 1, 2, 3, 5), f"{words}: {code} {said}"
            assert "Traceback" not in said, f"{words}: {said}"
            if code not in (0, 3):
                assert_same(story.of_it(), before)
    finally:
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, f"after {typed}:\n{out}"
    assert "Traceback" not in out
