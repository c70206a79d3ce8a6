"""Wording: what a finding's text is made of, for comparing findings and for weighing them.

Nothing here knows a programming language or a project. Lists hold ordinary English and the
vocabulary of code reviews in general.
"""

from __future__ import annotations

import re
from collections import Counter

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
