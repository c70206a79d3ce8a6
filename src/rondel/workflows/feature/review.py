"""The reviewer's verdict on one artifact: read fail-closed, so that nothing is approved by accident.

Approved means that there is no blocker, whatever the reviewer claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Literal, cast, get_args

from rondel.model.markdown import fenced_json
from rondel.workflows.feature.prompt import chain_review

Severity = Literal["blocker", "warning", "note"]
SEVERITIES: tuple[str, ...] = get_args(Severity)
ISSUES_MAX = 200
TEXT_MAX = 4000


class _Named(Mapping[str, object]):
    """Fields that can also be taken by name, as from the JSON object they are on disk."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __getitem__(self, name: str) -> object:
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.__dataclass_fields__)


@dataclass(frozen=True)
class Issue(_Named):
    """Something the reviewer holds against the artifact."""

    severity: Severity
    description: str
    location: str | None = None  # a line or a section

    def __str__(self) -> str:
        place = f" ({self.location})" if self.location else ""
        return f"[{self.severity}] {self.description}{place}"


@dataclass(frozen=True)
class Review(_Named):
    """What came of one review."""

    approved: bool
    issues: tuple[Issue, ...] = ()
    summary: str = ""

    def to_json(self) -> dict[str, object]:
        """As it lies on disk."""
        return {
            "approved": self.approved,
            "issues": [dict(issue) for issue in self.issues],
            "summary": self.summary,
        }


@dataclass(frozen=True)
class Parsed:
    """A verdict, or what is wrong with the answer in words its author can act on."""

    review: Review | None = None
    error: str = ""


def review_artifact(
    previous: str | None,
    current: str,
    expectations: str,
    *,
    previous_required: bool = False,
    reply: str | None = None,
    ask: Callable[[str], str] | None = None,
) -> Review:
    """Whether `current` holds everything that `expectations` say the next phase needs.

    The reviewer is `ask`, called with the prompt and, once, with what was wrong with its
    first answer; or it has spoken already and `reply` is what it said. Nobody is asked
    about an empty artifact, or about one whose required predecessor is missing.
    """
    hopeless = without_asking(previous, current, previous_required=previous_required)
    if hopeless:
        return hopeless
    if reply is not None:
        return verdict_in(reply)
    if ask is None:
        return refusal("nobody reviewed it: there is neither a reply nor a reviewer to ask")
    prompt = chain_review(previous, current, expectations)
    answer = ask(prompt)
    if wrong := parse_review(answer).error:
        answer = ask(f"{prompt}\n\nYour last answer could not be used: {wrong}.")
    return verdict_in(answer)


def without_asking(previous: str | None, current: str | None, *, previous_required: bool) -> Review | None:
    """The verdict on what no reviewer need look at; None when one must."""
    if current is None or not current.strip():
        return refusal("the artifact is empty")
    if previous_required and (previous is None or not previous.strip()):
        return refusal("the artifact of the previous phase is missing")
    return None


def refusal(why: str) -> Review:
    """Not approved, for one reason."""
    return Review(approved=False, issues=(Issue("blocker", why),), summary=why)


def verdict_in(reply: str, error: str = "") -> Review:
    """A reviewer's verdict. One that cannot be read, even after one repair, is no approval."""
    parsed = parse_review(reply)
    why = f"the reviewer's answer could not be read, which is no approval: {parsed.error or error}"
    return parsed.review or refusal(why)


def parse_review(text: str) -> Parsed:
    """The verdict in a reviewer's answer."""
    found = fenced_json(text)
    if found.error:
        return Parsed(error=found.error)
    return review_of(found.value)


def review_of(value: object) -> Parsed:
    """The verdict in a JSON value."""
    if not isinstance(value, Mapping):
        return Parsed(error="the JSON is not an object with approved, issues and summary")
    claimed, items, summary = value.get("approved"), value.get("issues"), value.get("summary", "")
    wrong = ""
    if not isinstance(claimed, bool):
        wrong = f"`approved` must be true or false, not {_short(claimed)}"
    elif not isinstance(items, list):
        wrong = f"`issues` must be a list, not {_short(items)}"
    elif len(items) > ISSUES_MAX:
        wrong = f"`issues` has {len(items)} entries; at most {ISSUES_MAX} are read"
    elif not isinstance(summary, str):
        wrong = f"`summary` must be a text, not {_short(summary)}"
    elif not claimed and not items:
        wrong = "`approved` is false and `issues` is empty: name what is missing"
    return Parsed(error=wrong) if wrong else _with_issues(cast("list[object]", items), str(summary))


def _with_issues(items: list[object], summary: str) -> Parsed:
    issues = []
    for number, item in enumerate(items, 1):
        issue = _issue(item)
        if isinstance(issue, str):
            return Parsed(error=f"issue {number}: {issue}")
        issues.append(issue)
    blocked = any(issue.severity == "blocker" for issue in issues)
    return Parsed(Review(not blocked, tuple(issues), summary.strip()[:TEXT_MAX]))


def _issue(item: object) -> Issue | str:
    if not isinstance(item, Mapping):
        return f"must be an object, not {_short(item)}"
    severity, description, location = item.get("severity"), item.get("description"), item.get("location")
    if severity not in SEVERITIES:
        return f"`severity` must be one of {', '.join(SEVERITIES)}, not {_short(severity)}"
    if not isinstance(description, str) or not description.strip():
        return "`description` must be a text"
    if location is not None and not isinstance(location, (str, int)):
        return f"`location` must be a text or null, not {_short(location)}"
    place = str(location).strip()[:TEXT_MAX] if location is not None else None
    return Issue(cast("Severity", severity), description.strip()[:TEXT_MAX], place or None)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"  # noqa: PLR2004  # a glance is enough
