"""Evidence: whether a quotation is in the change, and the name a finding keeps across rounds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rondel.model.digests import digest
from rondel.workflows.review.findings import Finding

QUOTE_MIN = 4
_GAP = "\0"


@dataclass(frozen=True)
class Quotable:
    """The text of a change, ready to look quotations up in.

    The lines before it, the lines after it, and both as the diff mixes them, all without
    white space; a quotation cannot reach from one hunk into another.
    """

    before: str
    after: str
    mixed: str

    def has(self, quotation: str) -> bool:
        """Whether the change holds the quotation, whatever its white space."""
        return any(quotation in side for side in (self.after, self.before, self.mixed))


def quotable(diff: str) -> Quotable:
    """What may be quoted from a unified diff: context, added and removed lines."""
    before: list[str] = []
    after: list[str] = []
    mixed: list[str] = []
    in_hunk = False
    for line in diff.split("\n"):  # a form feed or the like ends no line of a diff
        kind, text = line[:1], "".join(line[1:].split())
        if line.startswith(("@@", "diff --git ")):
            in_hunk = line.startswith("@@")
            for side in (before, after, mixed):
                side.append(_GAP)
            # The text after the second @@ is the enclosing function: it may be quoted too.
            mixed.append("".join(line.rpartition("@@")[2].split()) + _GAP if in_hunk else "")
        elif not in_hunk or kind == "\\":
            continue
        else:
            mixed.append(text)
            if kind != "-":
                after.append(text)
            if kind != "+":
                before.append(text)
    return Quotable("".join(before), "".join(after), "".join(mixed))


def verify(finding: Finding, diff: str | Quotable) -> bool:
    """Whether the finding quotes the change.

    White space does not count, nor do fences, diff marks and line numbers around the
    quotation; a `...` stands for what was left out, and every part must be there. A quotation
    that is almost nothing proves nothing.
    """
    change = quotable(diff) if isinstance(diff, str) else diff
    return any(_quoted(lines, change) for lines in _readings(finding.evidence))


def _readings(evidence: str) -> list[list[str]]:
    """The ways to read a quotation: as it is, without diff marks, without line numbers."""
    lines = [line for line in evidence.splitlines() if not re.match(r"\s*(```|~~~)", line)]
    joined = "\n".join(lines).strip().strip("`").strip("\"'") if len(lines) == 1 else "\n".join(lines)
    plain = joined.splitlines()
    return [
        plain,
        "\n".join(lines).splitlines(),
        [re.sub(r"^[+\- ]", "", line) for line in plain],
        [re.sub(r"^\s*+(?:[+\-]\s*+)?L?\d+\s*[:|]?\s?[+\-]?", "", line) for line in plain],
    ]


def _quoted(lines: list[str], change: Quotable) -> bool:
    parts = ["".join(part.split()) for part in re.split(r"\.\.\.|…", "\n".join(lines))]
    parts = [part for part in parts if part]
    solid = sum(len(part) for part in parts) >= QUOTE_MIN and any(re.search(r"\w", part) for part in parts)
    return solid and all(change.has(part) for part in parts)


def fingerprint(finding: Finding, context: str = "") -> str:
    """The name a finding keeps when lines move and its wording changes a little.

    Made of the file, the rule where there is one, and the code it is about: the most telling
    line of the quotation or else of `context` (the code at its place); without code, of the
    words of its title in any order.
    """
    anchor = _anchor(finding.evidence) or _anchor(context)
    if not anchor:
        words = re.findall(r"\w{3,}", (finding.title or finding.problem).casefold())
        anchor = " ".join(sorted(set(words)))
    return digest("\n".join((finding.file or "", finding.rule, anchor)))[:16]


def _anchor(code: str) -> str:
    """The line with the most letters, without white space, marks or numbers around it."""
    lines = [re.sub(r"^\s*(?:\d+\s*[:|]\s?)?[+\-]?", "", line) for line in code.splitlines()]
    lines = ["".join(line.strip().strip("`").split()) for line in lines]
    best = max(lines, key=lambda line: len(re.findall(r"\w", line)), default="")
    return best if len(re.findall(r"\w", best)) >= QUOTE_MIN else ""
