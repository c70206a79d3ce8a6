"""Budgets: what is reserved before an ask starts, whoever is asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rondel.config import Limits
from rondel.engine.ledger import Ledger
from rondel.engine.limits import UnderWay, hold, uncounted
from rondel.engine.report import Stopped

COSTS = st.dictionaries(st.sampled_from("abc"), st.integers(1, 100), min_size=1)


def answered(ledger: Ledger, agent: str, tokens: int, usd: float | None = None) -> None:
    ledger.note({"kind": "started", "action": "x", "agent": agent})
    usage = {"input_tokens": tokens, "output_tokens": 0, "usd": usd}
    ledger.note({"kind": "finished", "action": "x", "ended": "done", "usage": usage})


@given(COSTS, st.integers(1, 1000), st.integers(1, 8), st.data())
def test_agents_together_never_pass_a_budget_but_by_the_first_ask_of_each(costs, most, at_once, data):
    limits, ledger, under_way = Limits(tokens_max=most), Ledger(), list[str]()
    for _ in range(60):
        agent = data.draw(st.sampled_from(sorted(costs)))
        asks = [UnderWay(name, 0) for name in under_way]
        if len(under_way) < at_once and hold(limits, ledger, agent, asks) is None:
            under_way.append(agent)
        elif under_way:
            ended = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
            answered(ledger, ended, costs[ended])
    for agent in under_way:
        answered(ledger, agent, costs[agent])
    assert ledger.usage.tokens <= most + sum(costs.values())
    if len(costs) == 1:
        assert ledger.usage.tokens <= max(most, *costs.values())


def test_an_agent_of_which_nothing_is_known_is_asked_once_before_it_is_asked_at_once():
    ledger, busy = Ledger(), [UnderWay("a", 0)]
    assert hold(Limits(usd_max=1.0), ledger, "a", busy) == (Stopped.IDLE, "")
    assert hold(Limits(usd_max=1.0), ledger, "b", busy) is None
    assert hold(Limits(), ledger, "a", busy) is None, "without a budget nobody waits"
    answered(ledger, "a", 10, 0.25)
    assert hold(Limits(usd_max=1.0), ledger, "a", busy) is None


def test_what_is_known_of_an_ask_under_way_counts_where_it_is_more_than_the_average():
    ledger = Ledger()
    answered(ledger, "a", 10)
    limits = Limits(tokens_max=100)
    assert hold(limits, ledger, "a", [UnderWay("a", 5)]) is None
    held = hold(limits, ledger, "a", [UnderWay("a", 85)])
    assert held is not None
    assert held[0] is Stopped.LIMIT


def test_a_budget_of_money_that_does_not_count_an_agent_is_told():
    ledger = Ledger()
    answered(ledger, "priced", 10, 0.5)
    answered(ledger, "unpriced", 10)
    (words,) = uncounted(Limits(usd_max=1.0), ledger)
    assert words.startswith("unpriced names no price")
    assert uncounted(Limits(tokens_max=5), ledger) == []
