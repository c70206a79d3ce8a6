"""Weights and the verdict. Computed from what was said and checked; no model decides here.

A finding weighs one for each reviewer who made it and one for each further reviewer who
agreed. Challenged and not defended, it loses one. Refuted by code that is really there, it
is refuted. A blocker that weighs anything means REQUEST CHANGES.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rondel.workflows.review.aggregate import Item
from rondel.workflows.review.findings import Category
from rondel.workflows.review.responses import Refutation, Response, Ruling, Verb


class Verdict(StrEnum):
    """What the review says about the change."""

    APPROVE = "APPROVE"
    REQUEST_CHANGES = "REQUEST CHANGES"
    NEEDS_DISCUSSION = "NEEDS DISCUSSION"


class Standing(StrEnum):
    """What is left of a finding after the discourse."""

    SUPPORTED = "supported"
    DISPUTED = "disputed"  # challenged, nobody defended it, nothing left of its weight
    REFUTED = "refuted"  # by a quotation that is really there


@dataclass(frozen=True)
class Weighed:
    """A finding with its weight and how it came about."""

    item: Item
    weight: int
    standing: Standing
    agreed: tuple[str, ...] = ()
    challenged: tuple[str, ...] = ()
    defended: bool = False
    refutation: Refutation | None = None

    @property
    def blocks(self) -> bool:
        """Whether the change must not go in with it."""
        return self.standing is Standing.SUPPORTED and self.item.finding.category is Category.BLOCKER


def weigh(
    items: Iterable[Item],
    responses: Sequence[Response],
    refutations: Mapping[str, Refutation],
    true_quotes: frozenset[str],
) -> tuple[Weighed, ...]:
    """Each finding with its weight. `true_quotes` are the quotations that were found in the code."""
    return tuple(_weigh(item, responses, refutations.get(item.id), true_quotes) for item in items)


def _weigh(
    item: Item, responses: Sequence[Response], refutation: Refutation | None, true_quotes: frozenset[str]
) -> Weighed:
    about = [r for r in responses if r.finding == item.id]
    agreed = {r.reviewer for r in about if r.verb is Verb.AGREE}
    challenged = {r.reviewer for r in about if r.verb is Verb.CHALLENGE} - set(item.supporters)
    upheld = refutation is not None and refutation.ruling is Ruling.STANDS
    refuted = (
        refutation is not None
        and refutation.ruling is Ruling.REFUTED
        and refutation.evidence in true_quotes
        and not agreed - set(item.supporters)
    )
    defended = bool(agreed) or upheld
    weight = len(item.supporters) + len(agreed - set(item.supporters)) - bool(challenged and not defended)
    if refuted:
        weight = max(0, weight - 1)
    standing = Standing.SUPPORTED
    if weight <= 0:
        standing = Standing.REFUTED if refuted else Standing.DISPUTED
    return Weighed(
        item, weight, standing, tuple(sorted(agreed)), tuple(sorted(challenged)), defended, refutation
    )


def verdict(blockers: int, questions: int) -> Verdict:
    """The verdict: supported or carried blockers first, then questions that must be answered."""
    if blockers:
        return Verdict.REQUEST_CHANGES
    return Verdict.NEEDS_DISCUSSION if questions else Verdict.APPROVE


def enough(answered: int, team: int) -> bool:
    """Whether as many reviewers answered as a verdict needs: at least half, and at least one."""
    return answered > 0 and 2 * answered >= team
