"""A phase that leaves a document: drafted, published, reviewed, until it will do."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from rondel.model.actions import Ask, Derive
from rondel.model.changes import Aside, Change, Write, text
from rondel.model.outcomes import Outcome
from rondel.model.workflow import Step
from rondel.workflows.feature import layout
from rondel.workflows.feature.closing import (
    check_verdict,
    closing,
    current,
    derived,
    feedback,
    published,
    reviewed,
    verdict_file,
)
from rondel.workflows.feature.coding import evidence, reading, shown_tests
from rondel.workflows.feature.meta import title
from rondel.workflows.feature.phases import (
    ARTIFACTS,
    EXPECTATIONS,
    PREDECESSOR,
    PREVIOUS,
    VERIFY,
)
from rondel.workflows.feature.prompt import NOTHING, chain_review, document, fill, source
from rondel.workflows.feature.read import State
from rondel.workflows.feature.review import Issue, Review, without_asking
from rondel.workflows.feature.work import Work


def drafting(state: State, work: Work) -> Iterator[Step[State]]:
    """What a document needs next."""
    if work.phase == VERIFY and (due := evidence(state, work)):
        yield due
        return
    settled = work.settled
    if settled and (due := closing(state, work, settled)):
        yield due
        return
    number, artifact = work.number, work.artifact or ""
    path = layout.draft(work.folder, number)
    drafted = state.files.digest(path)
    if drafted is None and not _is_theirs(work):
        yield _draft(state, work, path)
    elif drafted is not None and work.published == drafted:
        yield _review(state, work)
    elif _is_theirs(work):
        action = Derive(path, inputs=(artifact,), title=f"{work.phase}: take over what a person wrote")
        yield derived(action, partial(_adopted, number))
    else:
        action = Derive(artifact, inputs=(path,), title=f"{work.phase}: publish draft {number}")
        yield derived(action, partial(published, number))


def _is_theirs(work: Work) -> bool:
    """Whether the artifact is neither what this iteration began with nor what it came to."""
    if work.published is None or work.take is None:
        return False
    number = work.number
    drafted = work.files.digest(layout.draft(work.folder, number))
    if work.take.adopt == number and drafted is None:
        return True
    settled = work.settled
    began = settled.verdict.of if settled and settled.verdict else work.take.base
    return work.published not in (began, drafted)


# -- the draft ------------------------------------------------------------------------------


def _draft(state: State, work: Work, path: str) -> Step[State]:
    action = Ask(
        path,
        f"feature.{work.phase}",
        inputs=_made_from(state, work),
        outputs=(layout.changes(work.folder, work.number),),
        workspace=reading(work),
        title=f"{work.phase}: draft {work.number}",
    )

    def prompt(state: State) -> str:
        return _ask_for_draft(state, current(state, work))

    def write(state: State, outcome: Outcome) -> Sequence[Change]:
        return _drafted(current(state, work), work.number, outcome)

    return Step(action, write, prompt, lambda _state, answer: complaint(answer))


def _made_from(state: State, work: Work) -> tuple[str, ...]:
    """The documents a draft is made from."""
    names = dict.fromkeys([PREVIOUS.get(work.phase), layout.SPEC])
    return tuple(n for n in names if n and n != work.artifact and state.files.exists(n))


def _ask_for_draft(state: State, work: Work) -> str:
    artifact = ARTIFACTS[work.phase]
    material = [document(name, state.files.text(name)) for name in _made_from(state, work)]
    if work.phase == VERIFY:
        material.append(_test_results(work))
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
        revision=feedback("revision", state, work),
    )


def _drafted(work: Work, number: int, outcome: Outcome) -> Sequence[Change]:
    """A draft: what its author says of it, then the document itself."""
    if not outcome.ok:
        return ()
    draft = parse_draft(outcome.text)
    before = work.draft(number - 1)
    if before is None and work.artifact:
        before = work.files.text(work.artifact)
    return (
        text(layout.changes(work.folder, number), changes_made(before, draft)),
        text(layout.draft(work.folder, number), draft.document),
    )


def _adopted(number: int, _state: State, work: Work, _at: datetime) -> Sequence[Change]:
    """What a person wrote is this iteration's draft; an agent's draft of it is kept."""
    theirs = work.files.data(work.artifact or "")
    path = layout.draft(work.folder, number)
    if theirs is None:
        return ()
    words = changes_made(work.draft(number - 1), Draft(theirs.decode(errors="replace")))
    return (
        Aside(path, layout.superseded(work.folder, number)),
        text(layout.changes(work.folder, number), f"By a person. {words}"),
        Write(path, theirs),
    )


# -- its review -----------------------------------------------------------------------------


def _review(state: State, work: Work) -> Step[State]:
    number, previous = work.number, PREVIOUS.get(work.phase)
    path, draft = layout.review(work.folder, number), layout.draft(work.folder, number)
    if _hopeless(state, work):
        action = Derive(path, title=f"{work.phase}: nothing to review")
        return derived(action, partial(_refused, number))
    ask = Ask(
        path,
        "feature.chain-reviewer",
        inputs=tuple(p for p in (previous, draft) if p),
        workspace=reading(work),
        title=f"{work.phase}: review {number}",
    )

    def prompt(state: State) -> str:
        return _ask_for_review(state, current(state, work))

    def write(state: State, outcome: Outcome) -> Sequence[Change]:
        return _reviewed(current(state, work), number, outcome)

    return Step(ask, write, prompt, check_verdict)


def _hopeless(state: State, work: Work) -> Review | None:
    """The verdict on what no reviewer need look at; None when one must."""
    previous = PREVIOUS.get(work.phase)
    before = state.files.text(previous) if previous else None
    # Where the phase before was completed, its document was there.
    required = PREDECESSOR.get(work.phase) in state.completed
    return without_asking(before, work.draft(work.number), previous_required=required)


def _refused(number: int, state: State, work: Work, at: datetime) -> Sequence[Change]:
    review = _hopeless(state, work)
    return () if review is None else (verdict_file(work, number, review, at, agent=""),)


def _ask_for_review(state: State, work: Work) -> str:
    previous = PREVIOUS.get(work.phase)
    names = (previous or "previous", ARTIFACTS[work.phase])
    expectations = EXPECTATIONS[work.phase]
    if work.phase == VERIFY:
        expectations += f"\n\n{_test_results(work)}"
    before, current = state.files.text(previous) if previous else None, work.draft(work.number) or ""
    return chain_review(before, current, expectations, names=names)


def _reviewed(work: Work, number: int, outcome: Outcome) -> Sequence[Change]:
    """A verdict. One about a text that was rewritten meanwhile is none: another one is asked for."""
    draft = layout.draft(work.folder, number)
    review = reviewed(outcome)
    if review is None or outcome.finished_at is None:
        return ()
    if outcome.inputs.get(draft) not in (None, work.files.digest(draft)):
        return ()
    if work.phase == VERIFY and _tests_failed(work):
        failing = Issue("blocker", "the project's tests fail", None)
        review = Review(approved=False, issues=(*review.issues, failing), summary=review.summary)
    return (verdict_file(work, number, review, outcome.finished_at, agent=outcome.agent),)


# -- what verification stands on ------------------------------------------------------------


def _tests_failed(work: Work) -> bool:
    """Whether the project's tests were run before verification and did not pass."""
    value = work.files.json(layout.checks(work.folder))
    return isinstance(value, Mapping) and value.get("passed") is not True


def _test_results(work: Work) -> str:
    """What the project's tests said."""
    value = work.files.json(layout.checks(work.folder))
    if not isinstance(value, Mapping):
        return f"The project's tests were not run: {shown_tests(work)}"
    said = "passed" if value.get("passed") is True else "failed"
    shown = json.dumps(value.get("command"), ensure_ascii=False)
    output = str(value.get("output") or "").strip()[-4000:]
    status = value.get("exit_code")
    return f"The project's tests {said} (status {status}): {shown}\n\n{document('output', output)}"


# -- what an agent answers --------------------------------------------------------------------


MARK = "=== CHANGES ==="
_WRAPPED = re.compile(
    r"\A\s*+(`{3,}+|~{3,}+)[ \t]*+(?:(?:markdown|md)[ \t]*+)?\n(.*)\n[ \t]*+\1[ \t]*+\Z", re.DOTALL
)
DOCUMENT_MAX = 400_000


@dataclass(frozen=True)
class Draft:
    """A document, and its author's words on what was changed."""

    document: str
    changes: str = ""


def parse_draft(text: str) -> Draft:
    """The document of an answer: without a fence around the whole, and without the changes after it."""
    body = text.replace("\r\n", "\n")
    changes = ""
    at = re.search(rf"(?m)^[ \t]*{re.escape(MARK)}[ \t]*$", body)
    if at:
        body, changes = body[: at.start()], body[at.end() :]
    wrapped = _WRAPPED.match(body)
    if wrapped and not re.search(rf"(?m)^[ \t]*{re.escape(wrapped.group(1))}[ \t]*$", wrapped.group(2)):
        body = wrapped.group(2)
    return Draft(body.strip() + "\n" if body.strip() else "", changes.strip())


def complaint(text: str) -> str | None:
    """What is wrong with an answer that should be a document; None when it will do."""
    document = parse_draft(text).document
    if not document:
        return "the answer is empty; answer with the whole document in Markdown"
    if len(document) > DOCUMENT_MAX:
        return f"the document has {len(document)} characters; at most {DOCUMENT_MAX} are kept"
    if not re.search(r"(?m)^#{1,6}[ \t]+\S", document):
        return (
            "there is no Markdown heading in the answer; answer with the whole document, not with a "
            "remark about it"
        )
    return None


def changes_made(before: str | None, draft: Draft) -> str:
    """What a draft changed: in its author's words, and otherwise counted."""
    if draft.changes:
        return draft.changes
    if before is None or not before.strip():
        return "First draft."
    old, new = before.splitlines(), draft.document.splitlines()
    plus = minus = 0
    for line in difflib.unified_diff(old, new, lineterm="", n=0):
        plus += line.startswith("+") and not line.startswith("+++")
        minus += line.startswith("-") and not line.startswith("---")
    return f"{plus} lines added, {minus} removed." if plus or minus else "Nothing."
