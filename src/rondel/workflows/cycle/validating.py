"""What the validation archivist leaves: measured test results, a validation, a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from rondel.model.changes import Change, text
from rondel.model.outcomes import Outcome
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.leave import agent_failed, json_file, publish
from rondel.workflows.cycle.measure import Failure, TestRun, measured
from rondel.workflows.cycle.questions import raised
from rondel.workflows.cycle.results import parse_phase_result, status_of, without_phase_result
from rondel.workflows.cycle.state import State, Turn
from rondel.workflows.cycle.values import mappings
from rondel.workflows.cycle.versions import bump, of_iteration

OUTPUT_MAX = 8000


def tested(state: State, turn: Turn, outcome: Outcome) -> Sequence[Change]:
    """The tests ran, or there are none: the numbers are those of the run itself."""
    tip = turn.tip or {}
    request = state.request
    run = measured(outcome, request.junit, request.coverage) if state.test_command else TestRun()
    if not state.test_command or run.problem == "there are no tests":
        words = "the project has no tests; write some, or name the command with `[project] test`"
        run = TestRun(problem=words if request.tests_required else "")
    former = turn.version("test_results")
    at = state.time(outcome.finished_at)
    results = {
        "version": bump(former),
        "pass_rate": run.pass_rate,
        "coverage": run.coverage or 0,
        "failed_tests": [f.name for f in run.failures],
        "total_tests": run.total,
        "last_run": at,
    }
    details = {
        **asdict(run),
        "passed": run.passed,
        "exit_code": outcome.exit_code,
        "command": state.test_command,
        "commit": tip.get("commit", ""),
        "output": (outcome.text + ("\n" + outcome.error if outcome.error else ""))[-OUTPUT_MAX:],
    }
    file = replace(json_file(layout.TEST_RESULTS, results), view=True)
    return [
        *(publish(state, file, former) if former else [file]),  # without a version there is nothing to keep
        state.edit(
            outcome.finished_at,
            transitions.start_agent("vas", "vas", state.time(outcome.started_at)),
            transitions.section("test_results", results),
        ),
        json_file(layout.tests(turn.number), details),
    ]


def run_of(turn: Turn) -> TestRun:
    """The test run of an iteration, from its part."""
    found = turn.tests or {}
    failures = tuple(
        Failure(str(f.get("name", "")), str(f.get("message", ""))) for f in mappings(found, "failures")
    )
    total, skipped, failed = found.get("total"), found.get("skipped"), found.get("failed")
    coverage = found.get("coverage")
    return TestRun(
        total if isinstance(total, int) else 0,
        skipped if isinstance(skipped, int) else 0,
        failed if isinstance(failed, int) else len(failures),
        failures,
        coverage if isinstance(coverage, int | float) else None,
        str(found.get("problem", "")),
    )


def coverage_words(state: State, stated: float) -> str:
    """The coverage of the last test run; the document has a number also where nothing was measured."""
    for number in sorted(layout.iterations(state.files), reverse=True):
        found = state.files.json(layout.tests(number))
        if isinstance(found, dict):
            share = found.get("coverage")
            return f"coverage {share:g} %" if isinstance(share, int | float) else "coverage not measured"
    return f"coverage {stated:g} %"


def validated(state: State, turn: Turn, outcome: Outcome) -> Sequence[Change]:
    """The archivist has judged; the summary beside it holds only what was measured."""
    result = parse_phase_result(outcome.text)
    if not outcome.ok or result is None or status_of(result) is None:
        return agent_failed(state, turn, "vas", outcome)
    former = of_iteration(turn.number - 1)
    at = state.time(outcome.finished_at)
    return [
        *publish(state, text(layout.VALIDATION, without_phase_result(outcome.text)), former),
        *publish(
            state,
            text(layout.SUMMARY, _summary(state, turn, str(result.get("summary", ""))), view=True),
            former,
        ),
        state.edit(
            outcome.finished_at,
            transitions.finish_agent(
                "vas",
                turn.number,
                at,
                outputs=[layout.TEST_RESULTS, layout.VALIDATION, layout.SUMMARY],
                message=str(result.get("summary", "")),
                status="completed",
                files=3,
            ),
            *raised(result, "vas", turn.number),
        ),
        text(layout.validation(turn.number), outcome.text),
    ]


def _summary(state: State, turn: Turn, words: str) -> str:
    """`vas/summary.md`: the iteration in numbers."""
    run = run_of(turn)
    coverage = "not measured" if run.coverage is None else f"{run.coverage:g} %"
    lines = [
        f"# Summary, iteration {turn.number}",
        "",
        words or "(no summary)",
        "",
        f"- Plan: {turn.done} of {len(turn.tasks)} tasks completed",
        f"- Tests: {run.total} found, {run.skipped} skipped, {run.failed} failed",
        f"- Pass rate: {run.pass_rate:g} %",
        f"- Coverage: {coverage}",
        f"- Branch: {state.target}, commit {(turn.tip or {}).get('commit', '')}",
        f"- Files changed: {len(turn.changed)}",
        *(f"  - {name}" for name in turn.changed),
    ]
    if run.problem:
        lines.insert(6, f"- Test run: {run.problem}")
    lines += [f"- Failed: {f.name}" for f in run.failures]
    return "\n".join(lines)
