"""What agents say about findings: discourse, refutations, answers to old findings. Untrusted, bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from rondel.model.changes import Document, Json
from rondel.model.jsons import items
from rondel.model.markdown import fenced_json
from rondel.workflows.review.findings import clean, one_line, place

TEXT_MAX = 2_000
RESPONSES_MAX = 200
ANSWERS_MAX = 200


class Verb(StrEnum):
    """What one reviewer does with another's finding."""

    AGREE = "AGREE"
    CHALLENGE = "CHALLENGE"
    CONNECT = "CONNECT"
    SURFACE = "SURFACE"


class Ruling(StrEnum):
    """What a refuter found."""

    REFUTED = "refuted"
    STANDS = "stands"
    UNCERTAIN = "uncertain"


class Answer(StrEnum):
    """What became of an open finding of an earlier round."""

    FIXED = "fixed"
    STILL_OPEN = "still_open"
    REFUTED = "refuted"
    ACCEPTED = "accepted"


@dataclass(frozen=True)
class Response:
    """One reviewer's word on one finding."""

    finding: str  # F3
    verb: Verb
    reason: str = ""
    evidence: str = ""
    file: str | None = None
    reviewer: str = ""

    def document(self) -> Document:
        """As in the part, whose name says who responded."""
        return {name: value for name, value in asdict(self).items() if name != "reviewer"}


@dataclass(frozen=True)
class Refutation:
    """A refuter's verdict on one finding."""

    ruling: Ruling
    reason: str = ""
    evidence: str = ""
    file: str | None = None
    by: str = "refuter"
    missing: str = ""

    def document(self) -> Document:
        """As in the part."""
        rest = asdict(self)
        verdict = rest.pop("ruling")
        return {"verdict": verdict, **{k: v for k, v in rest.items() if k != "missing" or v}}


@dataclass(frozen=True)
class CarriedAnswer:
    """What one reviewer says became of an old finding."""

    finding: str  # C1
    answer: Answer
    reason: str = ""
    evidence: str = ""
    reviewer: str = ""


def parse_responses(
    text: str, reviewer: str, known: Iterable[str]
) -> tuple[tuple[Response, ...], str | None]:
    """The responses of a discourse answer, and what is wrong with it, if anything."""
    read = fenced_json(text)
    if read.error:
        return (), f'{read.error}; answer with {{"responses": [{{"finding", "verb", "reason", "evidence"}}]}}'
    items = read.value.get("responses") if isinstance(read.value, dict) else read.value
    if not isinstance(items, list):
        return (), 'the json block needs "responses": a list'
    names = set(known)
    found: list[Response] = []
    wrong: list[str] = []
    for number, item in enumerate(items[:RESPONSES_MAX], 1):
        response, problem = _response(item, reviewer, names)
        if response is not None:
            found.append(response)
        else:
            wrong.append(f"response {number}: {problem}")
    if wrong and not found:
        return (), "; ".join(wrong[:5])
    return tuple(found), None


def _response(item: object, reviewer: str, known: set[str]) -> tuple[Response | None, str]:
    if not isinstance(item, dict):
        return None, "it is not an object"
    finding = one_line(item.get("finding"), 20).upper()
    verb = one_line(item.get("verb"), 20).upper()
    if verb not in set(Verb):
        return None, f"verb {verb!r} is not one of {', '.join(Verb)}"
    if finding not in known and verb != Verb.SURFACE:
        return None, f"there is no finding {finding!r}"
    return Response(
        finding if finding in known else "",
        Verb(verb),
        clean(item.get("reason"), TEXT_MAX),
        clean(item.get("evidence"), TEXT_MAX),
        place(item.get("file"), None, None)[0],
        reviewer,
    ), ""


def responses_of(document: object, reviewer: str, known: Iterable[str]) -> tuple[Response, ...]:
    """The responses in a part."""
    names = set(known)
    read = (_response(item, reviewer, names)[0] for item in items(document, "responses"))
    return tuple(r for r in read if r is not None)


def responses_document(responses: Iterable[Response], missing: str = "") -> Document:
    """A reviewer's responses as their part; `missing` says why there are none."""
    listed: list[Json] = [r.document() for r in responses]
    document: Document = {"responses": listed}
    return document | {"missing": missing} if missing else document


_RULINGS: Mapping[str, Ruling] = {
    **dict.fromkeys(("refuted", "refute", "false", "invalid", "wrong", "false_positive"), Ruling.REFUTED),
    **dict.fromkeys(("stands", "stand", "upheld", "confirmed", "valid", "true", "holds"), Ruling.STANDS),
    **dict.fromkeys(("uncertain", "undecided", "unclear", "unknown"), Ruling.UNCERTAIN),
}


def parse_refutation(text: str) -> tuple[Refutation | None, str | None]:
    """A refuter's answer, or what is wrong with it. To refute without quoting code is not to refute."""
    read = fenced_json(text)
    if read.error:
        return None, f'{read.error}; answer with {{"verdict", "reason", "file", "evidence"}}'
    found = refutation_of(read.value)
    if found is None:
        return None, '"verdict" must be one of refuted, stands, uncertain'
    if found.ruling is Ruling.REFUTED and not found.evidence:
        return None, '"evidence" must quote the code that refutes the finding'
    return found, None


def refutation_of(document: object) -> Refutation | None:
    """A refutation from a part or an answer."""
    if not isinstance(document, dict):
        return None
    word = re.sub(r"[^a-z]+", "_", one_line(document.get("verdict"), 40).lower()).strip("_")
    ruling = _RULINGS.get(word)
    if ruling is None:
        return None
    return Refutation(
        ruling,
        clean(document.get("reason"), TEXT_MAX),
        clean(document.get("evidence"), TEXT_MAX),
        place(document.get("file"), None, None)[0],
        one_line(document.get("by"), 60) or "refuter",
        one_line(document.get("missing"), 300),
    )


def parse_answers(text: str, reviewer: str, known: Iterable[str]) -> tuple[CarriedAnswer, ...]:
    """What a reviewer's answer says about the findings of earlier rounds. Silence is no answer."""
    names = set(known)
    found: dict[str, CarriedAnswer] = {}
    for item in items(fenced_json(text).value, "carried")[:ANSWERS_MAX]:
        if not isinstance(item, dict):
            continue
        finding = one_line(item.get("finding"), 20).upper()
        word = re.sub(r"[^a-z]+", "_", one_line(item.get("answer"), 30).lower()).strip("_")
        word = "still_open" if word in ("open", "persisting", "not_fixed", "unresolved") else word
        if finding in names and word in set(Answer):
            reason, evidence = (clean(item.get(k), TEXT_MAX) for k in ("reason", "evidence"))
            found[finding] = CarriedAnswer(finding, Answer(word), reason, evidence, reviewer)
    return tuple(found.values())
