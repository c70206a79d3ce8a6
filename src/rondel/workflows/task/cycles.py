"""Cycles: tasks that wait for each other, named in full."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from rondel.workflows.task import ids
from rondel.workflows.task.graph import Graph
from rondel.workflows.task.schema import Task


def cycles(tasks: Mapping[str, Task], graph: Graph) -> list[tuple[str, ...]]:
    """Every knot of tasks that wait for each other, as shortest cycles that together name all of it."""
    direct = _direct(tasks, graph)
    edges = _edges(direct, graph)
    found: list[tuple[str, ...]] = []
    named: set[str] = set()
    for start in sorted(edges, key=ids.order):
        if start in named:
            continue
        cycle = _shortest(start, edges)
        if cycle:
            found.append(_from_the_first(_in_full(cycle, direct, graph)))
            named.update(cycle)
    return found


def _direct(tasks: Mapping[str, Task], graph: Graph) -> dict[str, list[str]]:
    """What each task itself depends on."""
    by_numbers = ids.index(graph.order)
    return {
        t: [r for d in tasks[t].depends_on if (r := ids.resolve(d, tasks, by_numbers)) is not None]
        for t in graph.order
    }


def _edges(direct: Mapping[str, list[str]], graph: Graph) -> dict[str, list[str]]:
    """What each task waits for: its dependencies, a parent's subtasks, what its parent waits for."""
    edges = {}
    for task_id, own in direct.items():
        above = direct.get(graph.parent.get(task_id, ""), [])
        edges[task_id] = list(dict.fromkeys([*own, *above, *graph.children.get(task_id, ())]))
    return edges


def _in_full(cycle: tuple[str, ...], direct: Mapping[str, list[str]], graph: Graph) -> tuple[str, ...]:
    """The cycle with the parents for whose sake their subtasks wait."""
    found: list[str] = []
    for at, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
        own = after in direct[at] or after in graph.children.get(at, ())
        found += [at] if own else [at, graph.parent[at]]
    return tuple(found)


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
