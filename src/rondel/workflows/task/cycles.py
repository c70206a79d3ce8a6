"""Cycles: tasks that wait for each other, named in full."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from rondel.workflows.task import ids
from rondel.workflows.task.graph import Graph
from rondel.workflows.task.schema import Task


def cycles(tasks: Mapping[str, Task], graph: Graph) -> list[tuple[str, ...]]:
    """Every knot of tasks that wait for each other, as shortest cycles that together name all of it."""
    edges = _edges(tasks, graph)
    found: list[tuple[str, ...]] = []
    named: set[str] = set()
    for start in sorted(edges, key=ids.order):
        if start in named:
            continue
        cycle = _shortest(start, edges)
        if cycle:
            found.append(_from_the_first(cycle))
            named.update(cycle)
    return found


def _edges(tasks: Mapping[str, Task], graph: Graph) -> dict[str, list[str]]:
    """What each task waits for: its dependencies, a parent's subtasks, what its parent waits for."""
    by_numbers = ids.index(graph.order)
    edges: dict[str, list[str]] = {}
    for task_id in graph.order:
        wanted = [
            r for d in tasks[task_id].depends_on if (r := ids.resolve(d, tasks, by_numbers)) is not None
        ]
        edges[task_id] = wanted
    for task_id, above in graph.parent.items():
        edges[task_id] = list(dict.fromkeys([*edges[task_id], *edges[above]]))
    for task_id, under in graph.children.items():
        edges[task_id] = list(dict.fromkeys([*edges[task_id], *under]))
    return edges


def _shortest(start: str, edges: Mapping[str, list[str]]) -> tuple[str, ...]:
    """The shortest way from a task back to itself; nothing when there is none."""
    came: dict[str, str] = {}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for other in edges[at]:
            if other == start:
                way = [at]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return tuple(reversed(way))
            if other not in came:
                came[other] = at
                queue.append(other)
    return ()


def _from_the_first(cycle: tuple[str, ...]) -> tuple[str, ...]:
    at = cycle.index(min(cycle, key=ids.order))
    return cycle[at:] + cycle[:at]
