"""Merging: the same finding of several reviewers becomes one, with its supporters.

Two findings are compared by their words and by their runs of characters, each weighted by how
rare it is among the findings at hand; what every finding of a change mentions tells none of
them apart. Groups are made by average linking. No word list of a project, no model, no state:
the groups follow from the findings alone, and their order does not matter. The lists below hold
ordinary English and the vocabulary of code reviews in general.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

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


# -- wording ---------------------------------------------------------------------------------

TEXT_MAX = 2_000


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ORDINARY = _set(
    """
    a about above across actually after against all also although always am among an and another any are
    aren as at be because been before being below between both but by can cannot could couldn currently
    did didn directly do does doesn doing don done during each either else etc even every few for from
    had has have having he hence her here his how however i if in instead into is isn it its just least
    less likely ll many may me might mine more most much must my neither never no none nor not of on
    only onto or other otherwise our over own per possible possibly potential potentially probably
    properly rather re really same shall she should shouldn simply since so some still such than that
    the their theirs them then there therefore these they this those though through thus to too under
    unless until upon us ve very via vs was wasn we were weren what when where whether which while who
    whom whose why will with within without won would wouldn yet you your
    """
)

_SUFFIXES = (
    *(("ications", "icat"), ("ication", "icat"), ("izations", "iz"), ("ization", "iz"), ("ations", "at")),
    *(
        ("ation", "at"),
        ("ities", "ity"),
        ("ingly", ""),
        ("edly", ""),
        ("ions", ""),
        ("ion", ""),
        ("ies", "y"),
    ),
    *(("ings", ""), ("ing", ""), ("ments", ""), ("ment", ""), ("ers", "er"), ("able", ""), ("ible", "")),
    *(("ness", ""), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""), ("e", "")),
)
_STEM_MIN = 3
_TOKEN = re.compile(r"[^\W\d]\w*|\d+(?:\.\d+)?")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_GRAMS = (3, 4, 5)


def words(text: str) -> Counter[str]:
    """The words a text uses, as stems; a name in code counts as the words it is made of."""
    found: Counter[str] = Counter()
    for token in _TOKEN.findall(text[:TEXT_MAX]):
        parts = [token] if token[0].isdigit() else _PART.findall(token)
        for part in parts:
            low = part.lower()
            if low not in _ORDINARY and (len(low) > 1 or low.isdigit()):
                found[stem(low)] += 1
    return found


def grams(text: str) -> Counter[str]:
    """The runs of three to five characters within words: they see through inflection and misspelling."""
    found: Counter[str] = Counter()
    for word in re.findall(r"[^\W_]+", text[:TEXT_MAX].lower()):
        if word not in _ORDINARY:
            padded = f" {word[:40]} "
            found.update(padded[i : i + n] for n in _GRAMS for i in range(len(padded) - n + 1))
    return found


def stem(word: str) -> str:
    """A word without its ending, so that `validated` and `validation` meet. Rough on purpose."""
    for suffix, replacement in _SUFFIXES:
        if (
            word.endswith(suffix)
            and len(word) - len(suffix) >= _STEM_MIN
            and not (suffix == "s" and word[-2] == "s")
        ):
            word = word[: -len(suffix)] + replacement
            break
    if len(word) > _STEM_MIN and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return word


_NAMES_CODE = re.compile(
    r"`[^`\n]+`|\w\(\)|(?<!\w)(?=\w*?[A-Za-z_])\w++(?:\.|::|->|#)[A-Za-z_]|[A-Za-z]_\w"
    r"|[a-z][0-9]*+[A-Z]|[A-Z][a-z0-9]++[A-Z]"
)
_CONSEQUENCE = re.compile(
    r"\b(?:caus\w*|result(?:s|ing)? in|lead(?:s|ing)? to|which means|therefore|making|breaking|so that"
    r"|will (?:fail|raise|throw|crash|return|not|never|always))\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:may|might|could|potential\w*|possib\w*|perhaps|likely|seems?|appears?|unclear|verify|confirm"
    r"|intentional|consider\w*|ensure|make sure|double[- ]check)\b",
    re.IGNORECASE,
)
_TASTE = re.compile(
    r"\b(?:style|format\w*|naming|readab\w*|clean\w*|maintain\w*|clarity|clearer|confus\w*|convention\w*|idiom\w*"
    r"|consisten\w*|inconsisten\w*|refactor\w*|simplif\w*|duplication|redundan\w*|unused|dead code|magic"
    r"|hard-?coded"
    r"|comment\w*|document\w*|docstring|lint\w*|whitespace|indent\w*|trailing|annotation|extract|helper|prefer\w*"
    r"|best practice|anti-pattern|unnecessar\w*|verbose|nit\w*"
    r"|future|later|maintenance|over time|hard to|harder|difficult|risk\w*|brittle|fragile|robust\w*)\b",
    re.IGNORECASE,
)
_EXPLAINED_WORDS = 26


def material(text: str) -> float:
    """How concretely a text says what goes wrong, from 0 to 1.

    It names code, states a consequence and explains itself; it does not hedge, and it is not
    about taste or the far future.
    """
    points = (
        bool(_NAMES_CODE.search(text)),
        bool(_CONSEQUENCE.search(text)),
        len(text.split()) >= _EXPLAINED_WORDS,
        not _HEDGE.search(text),
        not _TASTE.search(text),
    )
    return sum(points) / len(points)
