"""The phase that leaves code: its tasks one after the other, each an edit, then a review of all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from rondel.errors import RondelError
from rondel.model.actions import Access, Ask, Probe, Run, Workspace
from rondel.model.changes import Change, json_file, text
from rondel.model.consent import require
from rondel.model.identity import home
from rondel.model.outcomes import Ended, Outcome
from rondel.model.refs import END
from rondel.model.times import stamp
from rondel.model.toolchain import commit_at, toolchain_at
from rondel.model.workflow import RepoReader, Step
from rondel.workflows.feature import layout
from rondel.workflows.feature.closing import check_verdict, closing, current, feedback, reviewed, verdict_file
from rondel.workflows.feature.meta import title
from rondel.workflows.feature.phases import ARTIFACTS, EXPECTATIONS, IMPLEMENT
from rondel.workflows.feature.prompt import NOTHING, document, fill, source
from rondel.workflows.feature.read import State
from rondel.workflows.feature.tasks import Task
from rondel.workflows.feature.work import Work

CHECKS_S = 1800
OUTPUT_MAX = 20_000


def coding(state: State, work: Work) -> Iterator[Step[State]]:
    """What the implementation needs next."""
    if work.base is None:
        yield _base(state, work)
        return
    settled = work.settled
    if settled and (due := closing(state, work, settled)):
        yield due
        return
    number = work.number
    as_it_stands = work.take is not None and work.take.adopt == number
    if number == 1 and work.open_tasks and not as_it_stands:
        yield _task(state, work, work.open_tasks[0])
    elif number > 1 and not as_it_stands and not state.files.exists(layout.fix(work.folder, number)):
        yield _fix(state, work)
    else:
        yield _final_review(state, work)


# -- where it begins, and what its tests say ------------------------------------------------


def _base(state: State, work: Work) -> Step[State]:
    make = "make" if work.phase == IMPLEMENT else ""
    begun = (state.identity.branch or "", state.identity.base or "") if state.identity else ("", "")
    args = (state.branch, make, work.configured, *begun)
    path = layout.base(work.folder)

    def write(_state: State, outcome: Outcome) -> Sequence[Change]:
        return (json_file(path, outcome.data),) if outcome.ok else ()

    action = Probe(path, "base", args, title=f"{work.phase}: where to begin")
    return Step(action, write, look=lambda look: look_for_base(look, *args))


def look_for_base(look: RepoReader, branch: str, make: str, configured: str, *begun: str) -> dict[str, str]:
    """The tip of the feature's branch, or where the feature was begun while there is none yet.

    With `make`, a branch that is not there is made: code has to go somewhere. Where no tests are
    `configured`, those that are found need the person's consent.
    """
    tip = commit_at(look, f"refs/heads/{branch}")
    commit = tip or home(look, *begun)
    if not commit:
        raise RondelError("the repository has no commit yet; commit something first")
    tool = toolchain_at(look, commit)
    for found in () if configured else tool.tests:
        require(found, look.admits)
    if make and not tip:
        look.git("branch", "--no-track", END, branch, commit)
    return {"commit": commit, "branch": branch, "checks": tool.test}


def evidence(state: State, work: Work) -> Step[State] | None:
    """What is found out before verification: where the code is, and what its tests say."""
    if work.base is None:
        return _base(state, work)
    path = layout.checks(work.folder)
    if not work.checks or state.files.exists(path):
        return None
    run = Run(
        path,
        work.checks,
        workspace=Workspace(Access.WRITE, base=work.base.commit),  # set up, and tests may build there
        timeout_s=CHECKS_S,
        setting="[project] test",
        title="verify: the project's tests",
    )
    return Step(run, partial(_tested, run))


def _tested(run: Run, _state: State, outcome: Outcome) -> Sequence[Change]:
    """What the project's tests said; that they fail is a result, not a reason to stop."""
    if outcome.ended not in (Ended.DONE, Ended.FAILED, Ended.TIMED_OUT):
        return ()
    body = {
        "command": run.command,
        "passed": outcome.ok,
        "exit_code": outcome.exit_code,
        "output": (outcome.text + (f"\n{outcome.error}" if outcome.error else ""))[-OUTPUT_MAX:],
    }
    return (json_file(run.path, body),)


def reading(work: Work) -> Workspace:
    """The code at its base, to be read."""
    return Workspace(Access.READ, base=work.base.commit if work.base else None)


def shown_tests(work: Work) -> str:
    """The command that runs the tests, as a prompt names it."""
    return f"`{work.checks}`" if work.checks else "(no test command is configured or was found)"


# -- edits ----------------------------------------------------------------------------------


def _task(state: State, work: Work, task: Task) -> Step[State]:
    ask = _edit(state, work, layout.task(work.folder, task.key), f"task {task.key}: {task.title}")

    def prompt(state: State) -> str:
        return _ask_for_edit(state, current(state, work), task.text, "")

    return Step(ask, partial(_edited, ask), prompt)


def _fix(state: State, work: Work) -> Step[State]:
    number = work.number
    what = f"resolve the findings of review {number - 1}"
    ask = _edit(state, work, layout.fix(work.folder, number), what)

    def prompt(state: State) -> str:
        now = current(state, work)
        findings = feedback("fix", state, now)
        return _ask_for_edit(state, now, "Resolve what the final reviewer found.", findings)

    return Step(ask, partial(_edited, ask), prompt)


def _edit(state: State, work: Work, path: str, title: str) -> Ask:
    base = work.base
    return Ask(
        path,
        "feature.implement",
        inputs=_inputs(state),
        workspace=Workspace(
            Access.WRITE,
            base=work.tip,
            target=base.branch if base else None,
            checks=work.checks or None,
        ),
        title=title,
    )


def _inputs(state: State) -> tuple[str, ...]:
    return tuple(p for p in (layout.SPEC, layout.TASKS) if state.files.exists(p))


def _ask_for_edit(state: State, work: Work, task: str, revision: str) -> str:
    material = [document(n, state.files.text(n)) for n in (ARTIFACTS["design"],) if state.files.exists(n)]
    return fill(
        "implement",
        title=title(state.meta, state.ref.id),
        task=task,
        revision=revision,
        checks=shown_tests(work),
        spec=document(layout.SPEC, state.files.text(layout.SPEC)),
        material="\n\n".join(material),
    )


def _edited(ask: Ask, _state: State, outcome: Outcome) -> Sequence[Change]:
    """An edit: its commit, what it touched, and what its author says of it."""
    if not outcome.ok:
        return ()
    body = {
        "commit": outcome.commit,
        "changed": list(outcome.changed),
        "title": ask.title,
        "summary": outcome.text.strip()[:OUTPUT_MAX],
        "agent": outcome.agent,
        "at": stamp(outcome.finished_at) if outcome.finished_at else None,
    }
    return (json_file(ask.path, body),)


# -- the review of all of it ----------------------------------------------------------------


def _final_review(state: State, work: Work) -> Step[State]:
    number = work.number
    ask = Ask(
        layout.review(work.folder, number),
        "feature.final-reviewer",
        inputs=_inputs(state),
        workspace=Workspace(Access.READ, base=work.tip),
        title=f"implement: final review {number}",
    )

    def prompt(state: State) -> str:
        return _ask_for_final_review(state, current(state, work))

    def write(state: State, outcome: Outcome) -> Sequence[Change]:
        now, review = current(state, work), reviewed(outcome)
        if review is None or outcome.finished_at is None:
            return ()
        return (
            text(layout.changes(now.folder, number), _carried_out(now)),
            verdict_file(now, number, review, outcome.finished_at, agent=outcome.agent),
        )

    return Step(ask, write, prompt, check_verdict)


def _ask_for_final_review(state: State, work: Work) -> str:
    return fill(
        "final-review",
        persona=source("final-reviewer"),
        expectations=EXPECTATIONS[IMPLEMENT],
        spec=document(layout.SPEC, state.files.text(layout.SPEC)),
        tasks="\n".join(f"- {task.key}: {task.title}" for task in work.tasks),
        base=work.base.commit if work.base else "HEAD",
        tip=work.tip or "HEAD",
        changed="\n".join(f"- {name}" for name in work.changed) or NOTHING,
        checks=f"They passed on every commit: {shown_tests(work)}" if work.checks else shown_tests(work),
        verdict=source("verdict"),
    )


def _carried_out(work: Work) -> str:
    """What the edits of an iteration were, for the history."""
    edits = work.edits[: len(work.tasks)] if work.number == 1 else work.edits[-1:]
    lines = []
    for edit in edits:
        said = str(edit.get("summary") or "").strip().splitlines()
        commit = str(edit.get("commit") or "no change")[:12]
        lines.append(f"- {edit.get('title')} ({commit}){': ' + said[0] if said else ''}")
    return "\n".join(lines) or "Nothing."
