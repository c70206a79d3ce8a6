"""The validation archivist's phase: the project's own tests, for real, then a validation and a summary."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from rondel.model.actions import Access, Ask, Derive, Run, Workspace
from rondel.model.changes import Change, json_file, text
from rondel.model.jsons import mapping, mappings
from rondel.model.outcomes import Outcome
from rondel.model.workflow import Step
from rondel.workflows.cycle import asking, layout, transitions
from rondel.workflows.cycle.layout import bump, of_iteration
from rondel.workflows.cycle.measure import COVERAGE, JUNIT, TestRun, measured, run_of
from rondel.workflows.cycle.questions import raised
from rondel.workflows.cycle.results import parse_phase_result, status_of, without_phase_result
from rondel.workflows.cycle.state import Iteration, State

OUTPUT_MAX = 8000


def testing(state: State, iteration: Iteration) -> Step[State]:
    """The project's own tests; without a command there is nothing to run."""
    number, command = iteration.number, state.test_command
    path, inputs = layout.tests(number), (layout.built(number),)
    write = asking.during(iteration, _tested)
    if not command:
        return Step(Derive(path, inputs=inputs, outputs=(layout.TEST_RESULTS,)), write)
    junit, coverage = state.request.junit or JUNIT, state.request.coverage or COVERAGE
    found = mapping((iteration.tip or {}).get("env"))
    run = Run(
        path,
        command,
        inputs=inputs,
        workspace=Workspace(Access.WRITE, base=iteration.built),
        outputs=(layout.TEST_RESULTS,),
        env={
            "RONDEL_JUNIT": junit,
            "RONDEL_COVERAGE": coverage,
            "PYTEST_ADDOPTS": f"--junitxml={shlex.quote(junit)}",  # any command that runs pytest reports
            **{str(k): v for k, v in found.items() if isinstance(v, str)},
        },
        timeout_s=state.request.test_timeout_s,
        collect=(junit, coverage),
        setting="[project] test",
        title="tests",
    )
    return Step(run, write, begin=_testing_begins)


def _testing_begins(state: State, at: datetime) -> Sequence[Change]:
    if state.iteration is None:
        return ()
    return [state.edit(at, transitions.start_agent("vas", "vas", state.time(at)))]


def _tested(state: State, iteration: Iteration, outcome: Outcome) -> Sequence[Change]:
    """The tests ran, or there are none: the numbers are those of the run itself."""
    tip = iteration.tip or {}
    request = state.request
    run = measured(outcome, request.junit, request.coverage) if state.test_command else TestRun()
    if not state.test_command or run.problem == "there are no tests":
        words = "the project has no tests; write some, or name the command with `[project] test`"
        run = TestRun(problem=words if request.tests_required else "")
    former = iteration.version("test_results")
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
        # Without a version there is nothing to keep.
        *(asking.publish(state, file, former) if former else [file]),
        state.edit(
            outcome.finished_at,
            transitions.start_agent("vas", "vas", state.time(outcome.started_at)),
            transitions.section("test_results", results),
        ),
        json_file(layout.tests(iteration.number), details),
    ]


def coverage_words(state: State, stated: float) -> str:
    """The coverage of the last test run; the document has a number also where nothing was measured."""
    for number in sorted(layout.iterations(state.files), reverse=True):
        found = state.files.json(layout.tests(number))
        if isinstance(found, dict):
            share = found.get("coverage")
            return f"coverage {share:g} %" if isinstance(share, int | float) else "coverage not measured"
    return f"coverage {stated:g} %"


def tests_section(state: State) -> dict[str, str]:
    """The latest test run, measured, for a prompt."""
    found = state.cycle.test_results if state.cycle else None
    if found is None:
        return {"tests": ""}
    coverage = coverage_words(state, found.coverage)
    lines = [f"{found.total_tests} tests, {found.pass_rate:g} % passed, {coverage}."]
    run = state.iteration.tests if state.iteration else None
    if run is None:
        lines += [f"- failed: {name}" for name in found.failed_tests[: asking.ENTRIES_MAX]]
        return {"tests": asking.section("The last test run, of the iteration before", *lines)}
    failures = mappings(run, "failures")[: asking.ENTRIES_MAX]
    lines += [f"- failed: {f.get('name')}: {f.get('message')}" for f in failures]
    if run.get("problem"):
        lines.append(f"- {run['problem']}")
    output = str(run.get("output", ""))[-4000:].replace("````", "'''")
    return {"tests": asking.section("The test run", *lines, "", "````", output, "````")}


def validating(iteration: Iteration) -> Step[State]:
    """The archivist judges what was built and tested."""
    ask = Ask(
        layout.reply(iteration.number, layout.VALIDATION),
        "cycle.vas",
        inputs=(layout.REQUIREMENTS, layout.tests(iteration.number)),
        workspace=Workspace(Access.READ, base=iteration.built),
        outputs=(layout.VALIDATION, layout.SUMMARY),
        title="validation",
    )
    return asking.step(
        iteration, "vas", ask, "validate", material=_material, wrong=asking.no_text, write=_validated
    )


def _material(state: State, iteration: Iteration) -> Mapping[str, str]:
    changes = (f"- {f.get('action')} {f.get('file')} ({v.task.id})" for v in iteration.tasks for f in v.files)
    return {
        **asking.file_section(state, "requirements", layout.REQUIREMENTS),
        **tests_section(state),
        **asking.plan_section(iteration),
        "changes": asking.section("What was changed in this iteration", *changes),
    }


def _validated(state: State, iteration: Iteration, outcome: Outcome) -> Sequence[Change]:
    """The archivist has judged; the summary beside it holds only what was measured."""
    result = parse_phase_result(outcome.text)
    if not outcome.ok or result is None or status_of(result) is None:
        return asking.agent_failed(state, iteration, "vas", outcome)
    former = of_iteration(iteration.number - 1)
    words = str(result.get("summary", ""))
    at = state.time(outcome.finished_at)
    return [
        *asking.publish(state, text(layout.VALIDATION, without_phase_result(outcome.text)), former),
        *asking.publish(state, text(layout.SUMMARY, _summary(state, iteration, words), view=True), former),
        state.edit(
            outcome.finished_at,
            transitions.finish_agent(
                "vas",
                iteration.number,
                at,
                outputs=[layout.TEST_RESULTS, layout.VALIDATION, layout.SUMMARY],
                message=words,
            ),
            *raised(result, "vas", iteration.number),
        ),
        text(layout.reply(iteration.number, layout.VALIDATION), outcome.text),
    ]


def _summary(state: State, iteration: Iteration, words: str) -> str:
    """`vas/summary.md`: the iteration in numbers."""
    run = run_of(iteration.tests or {})
    coverage = "not measured" if run.coverage is None else f"{run.coverage:g} %"
    lines = [
        f"# Summary, iteration {iteration.number}",
        "",
        words or "(no summary)",
        "",
        f"- Plan: {iteration.done} of {len(iteration.tasks)} tasks completed",
        f"- Tests: {run.total} found, {run.skipped} skipped, {run.failed} failed",
        f"- Pass rate: {run.pass_rate:g} %",
        f"- Coverage: {coverage}",
        f"- Branch: {state.target}, commit {(iteration.tip or {}).get('commit', '')}",
        f"- Files changed: {len(iteration.changed)}",
        *(f"  - {name}" for name in iteration.changed),
    ]
    if run.problem:
        lines.insert(6, f"- Test run: {run.problem}")
    lines += [f"- Failed: {f.name}" for f in run.failures]
    return "\n".join(lines)
