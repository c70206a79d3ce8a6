"""What the agents of a feature are asked."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rondel.model.actions import Ask
from rondel.workflows.feature import layout
from rondel.workflows.feature.meta import title
from rondel.workflows.feature.phases import ARTIFACTS, EXPECTATIONS, IMPLEMENT, PREVIOUS, VERIFY
from rondel.workflows.feature.plan import inputs
from rondel.workflows.feature.prompt import NOTHING, chain_review, document, fill, source
from rondel.workflows.feature.read import State
from rondel.workflows.feature.work import Work


def prompt(state: State, ask: Ask) -> str:
    """The prompt of an ask that is due."""
    work = state.work
    if work is None:
        return ""
    if ask.path == layout.review(work.folder, work.number):
        return _final_review(state, work) if work.phase == IMPLEMENT else _chain_review(state, work)
    return _edit(state, work, ask) if work.phase == IMPLEMENT else _draft(state, work)


def _draft(state: State, work: Work) -> str:
    artifact = ARTIFACTS[work.phase]
    material = [document(name, state.files.text(name)) for name in inputs(state, work)]
    if work.phase == VERIFY:
        material.append(_evidence(work))
    there = state.files.text(artifact)
    if there and there.strip():
        material.append(f"The document as it stands:\n\n{document(artifact, there)}")
    return fill(
        "draft",
        artifact=artifact,
        phase=work.phase,
        title=title(state.meta, state.ref.id),
        description=state.description or "Nothing more was said about it.",
        instruction=source(work.phase),
        expectations=EXPECTATIONS[work.phase],
        material="\n\n".join(material) or NOTHING,
        revision=_feedback("revision", state, work),
    )


def _chain_review(state: State, work: Work) -> str:
    previous = PREVIOUS.get(work.phase)
    current = state.files.text(layout.draft(work.folder, work.number)) or ""
    names = (previous or "previous", ARTIFACTS[work.phase])
    expectations = EXPECTATIONS[work.phase]
    if work.phase == VERIFY:
        expectations += f"\n\n{_evidence(work)}"
    return chain_review(state.files.text(previous) if previous else None, current, expectations, names=names)


def _edit(state: State, work: Work, ask: Ask) -> str:
    task = next((t for t in work.tasks if layout.task(work.folder, t.key) == ask.path), None)
    fixing = task is None
    material = [document(n, state.files.text(n)) for n in (ARTIFACTS["design"],) if state.files.exists(n)]
    return fill(
        "implement",
        title=title(state.meta, state.ref.id),
        task=task.text if task else "Resolve what the final reviewer found.",
        revision=_feedback("fix", state, work) if fixing else "",
        checks=_checks(work),
        spec=document(layout.SPEC, state.files.text(layout.SPEC)),
        material="\n\n".join(material),
    )


def _final_review(state: State, work: Work) -> str:
    return fill(
        "final-review",
        persona=source("final-reviewer"),
        expectations=EXPECTATIONS[IMPLEMENT],
        spec=document(layout.SPEC, state.files.text(layout.SPEC)),
        tasks="\n".join(f"- {task.key}: {task.title}" for task in work.tasks),
        base=work.base.commit if work.base else "HEAD",
        tip=work.tip or "HEAD",
        changed="\n".join(f"- {name}" for name in work.changed) or NOTHING,
        checks=f"They passed on every commit: {_checks(work)}" if work.checks else _checks(work),
        verdict=source("verdict"),
    )


def _checks(work: Work) -> str:
    if work.checks:
        return f"`{work.checks}`"
    return "(no test command is configured or was found)"


def _feedback(template: str, state: State, work: Work) -> str:
    """What the last review said, for the one who revises; nothing before there is one."""
    settled = work.settled
    if settled is None or settled.verdict is None:
        return ""
    review = settled.verdict.review
    lines = [review.summary, *(f"- {issue}" for issue in review.issues)]
    feedback = "\n".join(line for line in lines if line) or "- nothing in particular"
    return fill(template, number=str(work.number), limit=str(state.limit), feedback=feedback) + "\n\n"


def _evidence(work: Work) -> str:
    """What the project's tests said."""
    value = work.files.json(layout.checks(work.folder))
    if not isinstance(value, Mapping):
        return f"The project's tests were not run: {_checks(work)}"
    said = "passed" if value.get("passed") is True else "failed"
    shown = json.dumps(value.get("command"), ensure_ascii=False)
    output = str(value.get("output") or "").strip()[-4000:]
    status = value.get("exit_code")
    return f"The project's tests {said} (status {status}): {shown}\n\n{document('output', output)}"
