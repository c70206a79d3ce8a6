"""Seconds per step of LangGraph with SQLite: `chain N` or `fan N` a line, one number a line back."""

from __future__ import annotations

import operator
import sys
import tempfile
import time
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """The answers so far."""

    answers: Annotated[list[str], operator.add]


def node(_state: State) -> dict[str, list[str]]:
    """A step that answers at once."""
    return {"answers": ["An answer to the step.\n"]}


def measured(shape: str, steps: int) -> float:
    """Seconds per step of one run, from the first step to the last durable checkpoint."""
    graph: Any = StateGraph(State)
    names = [f"step-{k}" for k in range(steps)]
    for k, name in enumerate(names):
        graph.add_node(name, node)
        graph.add_edge(START if shape == "fan" or k == 0 else names[k - 1], name)
    for name in names if shape == "fan" else names[-1:]:
        graph.add_edge(name, END)
    settings = {"configurable": {"thread_id": "1"}, "recursion_limit": steps + 10}
    with tempfile.TemporaryDirectory() as folder, SqliteSaver.from_conn_string(f"{folder}/db") as saver:
        saver.setup()
        run = graph.compile(checkpointer=saver)
        begin = time.perf_counter()
        done = run.invoke({"answers": []}, settings, durability="sync")
        seconds = time.perf_counter() - begin
    if len(done["answers"]) != steps:
        raise SystemExit("not every step was done")
    return seconds / steps


for line in sys.stdin:
    word, number = line.split()
    print(measured(word, int(number)), flush=True)
