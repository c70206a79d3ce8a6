"""What an agent answers when asked for a document: the document, and what it changed."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

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
