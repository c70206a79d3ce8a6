"""How well findings of several reviewers are merged, on findings whose true defects are known.

The data is a JSON list of changes: {"change", "golden": [{"id"}], "findings": [{"reviewer",
"text", "matches": id or null}]}. Its path is the argument or RONDEL_PANEL; without data there
is nothing to measure, which is no failure.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rondel.workflows.review import merge, merge_findings

PANEL = 4
GRID = tuple(round(0.08 + 0.01 * n, 2) for n in range(11))
Finding = dict[str, Any]
Links = tuple[int, int, int, int]  # the same defect, of them linked; different ones, of them linked


def merged(findings: Sequence[Finding]) -> list[merge.Group]:
    """The groups, from what a reviewer says and nothing else."""
    return merge_findings([{"reviewer": f["reviewer"], "text": f["text"]} for f in findings])


def links(findings: Sequence[Finding]) -> Links:
    """How many pairs of findings of two reviewers are the same defect or not, and how many are linked."""
    group = {i: n for n, g in enumerate(merged(findings)) for i in g["members"]}
    counted: Counter[tuple[bool, bool]] = Counter()
    for (i, a), (j, b) in itertools.combinations(enumerate(findings), 2):
        if a["reviewer"] != b["reviewer"] and a["matches"] and b["matches"]:
            counted[a["matches"] == b["matches"], group[i] == group[j]] += 1
    same, other = counted[True, True], counted[False, True]
    return same + counted[True, False], same, other + counted[False, False], other


def rates(found: Iterable[Links]) -> tuple[float, float]:
    """The share of true links that were made, and of false ones."""
    same, linked, other, false = (sum(column) for column in zip(*found, strict=True))
    return linked / max(same, 1), false / max(other, 1)


def final(findings: Sequence[Finding]) -> tuple[int, int]:
    """How many groups a short review keeps, and how many of them are another true defect."""
    hit: set[str] = set()
    kept = right = 0
    for group in (g for g in merged(findings) if g["kept"]):
        kept += 1
        new = {findings[i]["matches"] for i in group["members"]} - {None} - hit
        if new:
            right += 1
            hit.add(min(new))
    return kept, right


def panels(changes: Sequence[dict[str, Any]], reviewers: Sequence[str]) -> tuple[float, float, float, float]:
    """Precision, recall, F1 and findings per change, the mean over all panels of four reviewers."""
    golden = sum(len(change["golden"]) for change in changes)
    rows = []
    for panel in itertools.combinations(reviewers, PANEL):
        found = [final([f for f in change["findings"] if f["reviewer"] in panel]) for change in changes]
        kept, right = sum(k for k, _ in found), sum(r for _, r in found)
        precision, recall = right / max(kept, 1), right / max(golden, 1)
        f1 = 2 * precision * recall / max(precision + recall, 1e-9)
        rows.append((precision, recall, f1, kept / len(changes)))
    return tuple(statistics.fmean(column) for column in zip(*rows, strict=True))  # type: ignore[return-value]


def held_out(changes: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """The rates when the threshold for each change is chosen on all the others."""
    kept, table = merge.SIMILAR_MIN, {}
    for threshold in GRID:
        merge.SIMILAR_MIN = threshold
        table[threshold] = [links(change["findings"]) for change in changes]
    merge.SIMILAR_MIN = kept
    chosen = []
    for left_out in range(len(changes)):

        def worth(threshold: float, without: int = left_out) -> float:
            recall, false = rates(row for n, row in enumerate(table[threshold]) if n != without)
            return recall - 5 * max(0.0, false - 0.05)

        chosen.append(table[max(GRID, key=worth)][left_out])
    return rates(chosen)


def once(change: dict[str, Any]) -> list[Finding]:
    """The findings that no reviewer lists twice to the letter."""
    times = Counter((f["reviewer"], f["text"]) for f in change["findings"])
    return [f for f in change["findings"] if times[f["reviewer"], f["text"]] == 1]


def main() -> int:
    """Print the figures."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("RONDEL_PANEL", ""))
    if not path.is_file():
        print("  no panel data: name it as the argument or in RONDEL_PANEL")
        return 0
    changes = json.loads(path.read_text(encoding="utf-8"))
    reviewers = sorted({f["reviewer"] for change in changes for f in change["findings"]})
    total = sum(len(change["findings"]) for change in changes)
    print(f"  {total} findings of {len(reviewers)} reviewers on {len(changes)} changes")
    start = time.perf_counter()
    recall, false = rates(links(change["findings"]) for change in changes)
    print(f"  links: {recall:.1%} of the same defect, {false:.1%} of different ones")
    recall, false = rates(links(once(change)) for change in changes)
    print(f"  without findings that one reviewer lists twice: {recall:.1%} and {false:.1%}")
    recall, false = held_out(changes)
    print(f"  threshold chosen without the change it is used on: {recall:.1%} and {false:.1%}")
    precision, recall, f1, size = panels(changes, reviewers)
    print(
        f"  panels of four: precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}, {size:.1f} a change"
    )
    print(f"  in {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
