"""The verdict of a review: the block `@@@REVIEW_META` … `@@@`, read so that nothing passes by accident."""

from __future__ import annotations

import re
from dataclasses import dataclass

OPEN = "@@@REVIEW_META"
FORM = f"{OPEN}\nverdict: PASS\nissues_total: 0\nissues_critical: 0\nmissing_inputs: 0\n@@@"
COUNTS = ("issues_total", "issues_critical", "missing_inputs")
TEXT_MAX = 2_000_000
BLOCKS_MAX = 20
_BLOCK = re.compile(r"^[ \t>]*@@@REVIEW_META[ \t]*\n(.*?)^[ \t>]*@@@[ \t]*$", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"[ \t>]*+[*`-]*+[ \t]*+(\w++)[*`]*+[ \t]*+:(.*)")


@dataclass(frozen=True)
class Verdict:
    """PASS or FAIL; or what is wrong with the block, in words its author can act on."""

    passed: bool = False
    counts: tuple[tuple[str, int], ...] = ()
    error: str = ""


def parse_verdict(text: str) -> Verdict:
    """The verdict of a review. Whatever is not clearly one is an error, never a PASS."""
    if len(text) > TEXT_MAX:
        return Verdict(error=f"the review has {len(text)} characters; at most {TEXT_MAX} are read")
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    opened = plain.count(OPEN)
    blocks = _BLOCK.findall(plain) if opened <= BLOCKS_MAX else []
    if not blocks or opened != len(blocks):
        return Verdict(error=f"there is no complete block at its end; end with\n{FORM}")
    found = [_one(body) for body in blocks]
    wrong = next((v for v in found if v.error), None)
    if wrong is not None:
        return wrong
    if len({v.passed for v in found}) > 1:
        return Verdict(error="its verdicts contradict each other; give one block, at the end")
    return found[-1]


def _one(body: str) -> Verdict:
    fields: dict[str, str] = {}
    for line in filter(str.strip, body.split("\n")):
        match = _LINE.fullmatch(line)
        if match is None:
            return Verdict(error=f"the line {line.strip()!r} of its block is not `name: value`")
        key, value = match[1].lower(), match[2].strip(" \t")
        if fields.setdefault(key, value) != value:
            return Verdict(error=f"its block says {key} twice")
    word = fields.get("verdict", "").strip("*`\"' ").upper()
    if word not in ("PASS", "FAIL"):
        return Verdict(error=f"its verdict is {fields.get('verdict')!r}; it must be PASS or FAIL")
    counts: list[tuple[str, int]] = []
    for key in COUNTS:
        value = fields.get(key, "0")
        if not re.fullmatch(r"\d{1,6}", value):
            return Verdict(error=f"{key} is {value!r}; it must be a whole number")
        counts.append((key, int(value)))
    open_ = [f"{k}: {n}" for k, n in counts if k != "issues_total" and n]
    if word == "PASS" and open_:
        return Verdict(error=f"it says PASS and {', '.join(open_)}; that is a FAIL, or the number is 0")
    return Verdict(word == "PASS", tuple(counts))
