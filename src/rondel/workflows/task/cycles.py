"""Cycles: tasks that wait for each other, named in full."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from rondel.workflows.task import ids
from rondel.workflows.task.graph import Graph
from rondel.workflows.task.schema import Task

STEPS_MAX = 5_000_000  # dependencies that are followed in search of the cycles of one knot


def cycles(tasks: Mapping[str, Task], graph: Graph) -> list[tuple[str, ...]]:
    """Every knot of tasks that wait for each other, as shortest cycles that together name all of it.

    Searched for only inside knots, so that tasks and dependencies without one are looked at twice and no
    more. Of knots that are very large not every task is named.
    """
    direct = _direct(tasks, graph)
    edges = _edges(direct, graph)
    found = [one for knot in _knots(edges) for one in _in_knot(knot, edges)]
    return [
        _from_the_first(_in_full(cycle, direct, graph))
        for _, cycle in sorted(found, key=lambda f: ids.order(f[0]))
    ]


def _in_knot(knot: Iterable[str], edges: Mapping[str, list[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Shortest cycles that together name the tasks of a knot, each with the task it was searched from."""
    tasks = frozenset(knot)
    inside = {at: [other for other in edges[at] if other in tasks] for at in tasks}
    size, steps = sum(map(len, inside.values())), 0
    named: set[str] = set()
    for start in sorted(tasks, key=ids.order):
        if start not in named and steps < STEPS_MAX and (cycle := _shortest(start, inside)):
            yield start, cycle
            named.update(cycle)
            steps += size


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


def _knots(edges: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """The strongly connected components, by Kosaraju's algorithm: each edge is followed twice."""
    back: dict[str, list[str]] = {at: [] for at in edges}
    for at, others in edges.items():
        for other in others:
            back[other].append(at)
    seen: set[str] = set()
    left = [task for root in edges for task in _walk(root, edges, seen)]
    seen.clear()
    for root in reversed(left):
        if root not in seen:
            yield list(_walk(root, back, seen))


def _walk(root: str, edges: Mapping[str, list[str]], seen: set[str]) -> Iterator[str]:
    """What can be reached from a task and was not seen before, each after all that it leads to."""
    if root in seen:
        return
    seen.add(root)
    way = [(root, iter(edges[root]))]
    while way:
        at, others = way[-1]
        new = next((other for other in others if other not in seen), None)
        if new is None:
            way.pop()
            yield at
        else:
            seen.add(new)
            way.append((new, iter(edges[new])))


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
