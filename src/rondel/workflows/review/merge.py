"""Merging: the same finding of several reviewers becomes one, with its supporters.

Two findings are compared by their words and by their runs of characters, each weighted by how
rare it is among the findings at hand; what every finding of a change mentions tells none of
them apart. Groups are made by average linking. No word list of a project, no model, no state:
the groups follow from the findings alone, and their order does not matter.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from rondel.workflows.review.wording import TEXT_MAX, grams, material, words

SIMILAR_MIN = 0.13  # for a single finding; what is rare is rarer among many, so strangers are less alike
SIMILAR_LESS = 0.01  # for each time the findings are e times as many
SAME_REVIEWER = 0.15  # a reviewer seldom says one thing twice
OTHER_FILE = 0.20
FAR_AWAY = 0.10
FAR_LINES = 25
NEAR_BONUS = 0.05
NEAR_LINES = 5
PRIOR_FINDINGS = 3.0  # imagined findings, so that rarity means something among very few
PRIOR_SHARE = 0.05
REPEAT_SHARE = 0.9  # how much of that is enough for a repeated finding
# How concrete a text must be to be kept, by who stands behind it.
CONCRETE_ALONE = 1.0
CONCRETE_QUIET = 0.6
CONCRETE_PAIR = 0.4  # two who agree on something vague do not make it matter
QUIET = 2  # findings: who says no more than that is heard sooner
FEW = 2  # reviewers: among so few hardly anything can be said twice
_NEVER = -1e6


class Group(TypedDict):
    """Findings that are one. `kept` says that the group belongs into a short final review."""

    members: list[int]
    score: float
    kept: bool


@dataclass(frozen=True)
class _Item:
    index: int
    reviewer: str
    text: str
    file: str | None
    line: int | None
    rule: str = ""

    @property
    def key(self) -> tuple[str, str, str, int, str, int]:
        """A canonical order, so that the order of the findings does not matter."""
        return (self.text, self.reviewer, self.file or "", self.line or 0, self.rule, self.index)

    @property
    def said(self) -> tuple[str, str, str | None, int | None, str]:
        """What makes two findings of one reviewer the same words at the same place."""
        return (self.reviewer, self.text, self.file, self.line, self.rule)


def merge_findings(findings: Sequence[Mapping[str, object]]) -> list[Group]:
    """The findings as groups, the best supported first. Each is in exactly one group.

    A finding is `{"reviewer", "text", "file", "line"}`; file and line may be null, and `rule`
    may name the rule an analyser found broken: two rules are two findings. The more
    reviewers stand behind a group, the less concrete it must be to be kept: three always do;
    one alone must say what goes wrong, in which code, without hedging. The bar is lower for a
    reviewer who says little, and among few reviewers.
    """
    items = sorted(
        (_item(index, finding) for index, finding in enumerate(findings)), key=lambda item: item.key
    )
    groups = _with_repeats(items)
    said = Counter(item.reviewer for item in items)
    return sorted((_group(group, said) for group in groups), key=lambda g: (-g["score"], g["members"]))


def _item(index: int, finding: Mapping[str, object]) -> _Item:
    file, line, text = finding.get("file"), finding.get("line"), finding.get("text")
    return _Item(
        index=index,
        reviewer=str(finding.get("reviewer") or ""),
        text=" ".join(text[:TEXT_MAX].split()) if isinstance(text, str) else "",
        file=file if isinstance(file, str) and file else None,
        line=line if isinstance(line, int) and not isinstance(line, bool) else None,
        rule=str(finding.get("rule") or ""),
    )


def _group(items: Sequence[_Item], said: Mapping[str, int]) -> Group:
    support = len({item.reviewer for item in items})
    weight = max(material(item.text) for item in items)
    quiet = len(said) <= FEW or min(said[item.reviewer] for item in items) <= QUIET
    bars = {1: CONCRETE_QUIET if quiet else CONCRETE_ALONE, 2: CONCRETE_PAIR}
    return {
        "members": sorted(item.index for item in items),
        "score": round(support - 1 + weight, 4),
        "kept": weight >= bars.get(support, 0.0),
    }


def _with_repeats(items: Sequence[_Item]) -> list[list[_Item]]:
    """Groups, where words that a reviewer repeats to the letter are shared out.

    Who says the same thing twice, without a place, means two defects: the copies go to
    different groups, the first to the one with most findings. A copy that finds no other
    group stays with its twin.
    """
    repeats: dict[object, list[_Item]] = defaultdict(list)
    for item in items:
        repeats[item.said].append(item)
    alike = Similarity(items)
    groups = _linked([copies[0] for copies in repeats.values() if len(copies) == 1], alike)
    clear = [tuple(group) for group in groups]
    layers: list[list[_Item]] = []
    for copies in (copies for copies in repeats.values() if len(copies) > 1):
        near = [(alike.mean(copies[0], group), -n) for n, group in enumerate(clear)]
        best = sorted((pair for pair in near if pair[0] >= alike.enough * REPEAT_SHARE), reverse=True)[
            : len(copies)
        ]
        homes = sorted((-n for _, n in best), key=lambda n: (-len(clear[n]), n))
        for copy, home in zip(copies, homes, strict=False):
            groups[home].append(copy)
        for depth, copy in enumerate(copies[len(homes) :]):
            layers += [[]] if depth == len(layers) else []
            layers[depth].append(copy)
    for layer in layers:
        for group in _linked(layer, alike):
            _place(group, groups)
    return groups


def _place(group: list[_Item], groups: list[list[_Item]]) -> None:
    """A group of copies stands for itself, unless it is one reviewer's and a twin is placed already."""
    twins = [other for other in groups if any(item.said == group[0].said for item in other)]
    if twins and len({item.reviewer for item in group}) == 1:
        twins[0].extend(group)
    else:
        groups.append(group)


class Similarity:
    """How alike two findings of one set are: about 0 for strangers, 1 for the same text."""

    def __init__(self, items: Sequence[_Item]) -> None:
        self.enough = SIMILAR_MIN - SIMILAR_LESS * math.log(max(1, len(items)))
        self._row = {item.index: row for row, item in enumerate(items)}
        self._of = [[0.0] * row for row in range(len(items))]  # the half below the diagonal
        for features in (words, grams):
            self._add([features(item.text) for item in items])
        for row, one in enumerate(items):
            for column, other in enumerate(items[:row]):
                self._of[row][column] += _by_place(one, other)

    def _add(self, counts: Sequence[Counter[str]]) -> None:
        shared: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for row, vector in enumerate(_vectors(counts)):
            line = self._of[row]
            for feature, weight in vector.items():
                half = weight / 2
                holders = shared[feature]
                for other, other_weight in holders:
                    line[other] += half * other_weight
                holders.append((row, weight))

    def pair(self, a: _Item, b: _Item) -> float:
        """How alike two are; far below zero when they cannot be one."""
        row, column = self._row[a.index], self._row[b.index]
        return self._of[row][column] if row > column else self._of[column][row]

    def mean(self, item: _Item, group: Sequence[_Item]) -> float:
        """How alike a finding and a group are."""
        return sum(self.pair(item, other) for other in group) / len(group)


def _vectors(counts: Sequence[Counter[str]]) -> list[dict[str, float]]:
    """Each count as a vector of length one, weighted by how rare a feature is in this set."""
    holders = Counter(feature for count in counts for feature in count)
    total = len(counts) + PRIOR_FINDINGS
    rarity = {f: max(0.0, math.log(total / (n + PRIOR_FINDINGS * PRIOR_SHARE))) for f, n in holders.items()}
    vectors = []
    for count in counts:
        vector = {f: (1 + math.log(n)) * rarity[f] for f, n in count.items()}
        length = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
        vectors.append({f: weight / length for f, weight in vector.items() if weight})
    return vectors


def _by_place(a: _Item, b: _Item) -> float:
    """What reviewer, rule and place add: a reviewer's two places, or two rules, are two findings."""
    if a.rule and b.rule and a.rule != b.rule:
        return _NEVER
    same_reviewer = a.reviewer == b.reviewer
    if a.file is None or b.file is None:
        return -SAME_REVIEWER if same_reviewer else 0.0
    lines = abs(a.line - b.line) if a.file == b.file and a.line is not None and b.line is not None else None
    if same_reviewer:
        return _NEVER if a.file != b.file or lines else -SAME_REVIEWER
    if a.file != b.file:
        return -OTHER_FILE
    if lines is None or NEAR_LINES < lines <= FAR_LINES:
        return 0.0
    return NEAR_BONUS if lines <= NEAR_LINES else -FAR_AWAY


def _linked(items: Sequence[_Item], alike: Similarity) -> list[list[_Item]]:
    """Groups by average linking: the two most alike become one, while they are alike enough."""
    groups: dict[int, list[_Item]] = {n: [item] for n, item in enumerate(items)}
    near = {n: {m: alike.pair(items[n], items[m]) for m in groups if m != n} for n in groups}
    best = {n: _nearest(near[n]) for n in groups}
    while best:
        n = max(best, key=lambda k: (best[k][0], -k))
        value, m = best[n]
        if value < alike.enough:
            break
        _join(n, m, groups, near)
        del best[m]
        for k, (_, nearest) in list(best.items()):
            if k == n or nearest in (n, m):
                best[k] = _nearest(near[k])
            else:
                best[k] = max(best[k], (near[k][n], n), key=lambda pair: (pair[0], -pair[1]))
    return list(groups.values())


def _join(n: int, m: int, groups: dict[int, list[_Item]], near: dict[int, dict[int, float]]) -> None:
    """Group `m` becomes part of group `n`; the distances of `n` are the means over both."""
    size_n, size_m = len(groups[n]), len(groups[m])
    gone = near.pop(m)
    for k, row in near.items():
        if k != n:
            mean = (size_n * near[n][k] + size_m * gone[k]) / (size_n + size_m)
            near[n][k] = row[n] = mean
        row.pop(m, None)
    groups[n] += groups.pop(m)


def _nearest(row: Mapping[int, float]) -> tuple[float, int]:
    return max(
        ((value, k) for k, value in row.items()), key=lambda pair: (pair[0], -pair[1]), default=(_NEVER, -1)
    )
