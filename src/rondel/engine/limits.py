"""Limits: whether one more action may start. An action reserves before it starts."""

from __future__ import annotations

from rondel.config import Limits
from rondel.engine.ledger import Ledger


def spent(limits: Limits, ledger: Ledger, asks_in_flight: int) -> str | None:
    """The limit that another ask would pass, in words; None when it may start.

    What is under way counts as much as an ask has cost on average so far, so that many
    agents at once cannot all start below a limit and pass it together.
    """
    share = 1 + asks_in_flight
    average_tokens = ledger.usage.tokens / ledger.asks if ledger.asks else 0
    average_usd = (ledger.usage.usd or 0.0) / ledger.asks if ledger.asks else 0.0
    if limits.tokens_max is not None and (
        ledger.usage.tokens >= limits.tokens_max
        or ledger.usage.tokens + average_tokens * share > limits.tokens_max
    ):
        return f"limits.tokens_max = {limits.tokens_max} ({ledger.usage.tokens} used)"
    usd = ledger.usage.usd or 0.0
    if limits.usd_max is not None and (usd >= limits.usd_max or usd + average_usd * share > limits.usd_max):
        return f"limits.usd_max = {limits.usd_max} ({usd:.2f} spent)"
    if limits.seconds_max is not None and ledger.seconds >= limits.seconds_max:
        return f"limits.seconds_max = {limits.seconds_max} ({ledger.seconds:.0f} s used)"
    return None
