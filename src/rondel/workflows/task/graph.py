"""Which task waits for which, how far each is from the end, and which wait for each other.

A dependency on a parent means all of its subtasks; a subtask waits for what its parent
waits for. Only leaves are run.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rondel.workflows.task import ids
from rondel.workflows.task.schema import Task, TaskStatus

Entry = tuple[int, int, str]  # longest chain behind it (negative), place in the order, id
FOLLOWED_MAX = 5_000_000  # dependencies that are followed in search of the cycles of one knot


@dataclass(frozen=True)
class Graph:
    """The structure of a session's tasks: what does not change with their status."""

    order: Mapping[str, int]  # every task in the order of its id
    children: Mapping[str, tuple[str, ...]]  # of each task that has some
    parent: Mapping[str, str]
    leaves: tuple[str, ...]
    direct: Mapping[str, tuple[str, ...]]  # what each task itself depends on, of those that are there
    needs: Mapping[str, frozenset[str]]  # leaves that must be completed before a leaf
    needed_by: Mapping[str, tuple[str, ...]]
    behind: Mapping[str, int]  # how many leaves the longest chain behind a leaf has
    missing: Mapping[str, tuple[str, ...]]  # per task, dependencies that no task has

    def leaves_of(self, task_id: str) -> tuple[str, ...]:
        """The leaves that a task stands for: its subtasks, or itself."""
        return tuple(t for t in self.children.get(task_id, (task_id,)) if t in self.needs)

    def entry(self, leaf: str) -> Entry:
        """Sorts leaves: the longest chain first, then by id."""
        return (-self.behind[leaf], self.order[leaf], leaf)


def build(tasks: Mapping[str, Task]) -> Graph:
    """The graph of a session's tasks."""
    ordered = sorted(tasks, key=ids.order)
    find = ids.finder(ordered)
    parent = {t: p for t in ordered if (p := _parent(tasks[t], find)) is not None}
    children: dict[str, list[str]] = {}
    for task_id in ordered:
        if task_id in parent:
            children.setdefault(parent[task_id], []).append(task_id)
    under = {p: tuple(c) for p, c in children.items()}
    leaves = [t for t in ordered if t not in under and tasks[t].status is not TaskStatus.CONTAINER]
    direct: dict[str, tuple[str, ...]] = {}
    missing: dict[str, tuple[str, ...]] = {}
    for task_id in ordered:
        found = [(d, find(d)) for d in tasks[task_id].depends_on]
        direct[task_id] = tuple(r for _, r in found if r is not None)
        lost = tuple(d for d, r in found if r is None)
        if lost:
            missing[task_id] = lost
    is_leaf = frozenset(leaves)
    needs = {t: _needs(t, direct, parent, under, is_leaf) for t in leaves}
    needed_by: dict[str, list[str]] = {t: [] for t in leaves}
    for leaf, before in needs.items():
        for other in before:
            needed_by[other].append(leaf)
    return Graph(
        order={t: n for n, t in enumerate(ordered)},
        children=under,
        parent=parent,
        leaves=tuple(leaves),
        direct=direct,
        needs=needs,
        needed_by={t: tuple(n) for t, n in needed_by.items()},
        behind=_behind(leaves, needs, needed_by),
        missing=missing,
    )


def _parent(task: Task, find: ids.Find) -> str | None:
    """The parent of a task that exists: the one it names, else the one its id names."""
    for name in (task.parent, ids.parent_of(task.id)):
        found = find(name) if name else None
        if found is not None and found != task.id:
            return found
    return None


def _needs(
    leaf: str,
    direct: Mapping[str, tuple[str, ...]],
    parent: Mapping[str, str],
    children: Mapping[str, tuple[str, ...]],
    leaves: frozenset[str],
) -> frozenset[str]:
    """The leaves that must be completed before this one."""
    wanted = list(direct[leaf])
    above = parent.get(leaf)
    if above is not None:
        wanted += direct[above]
    found: set[str] = set()
    for other in wanted:
        found.update(t for t in children.get(other, (other,)) if t in leaves)
    return frozenset(found)


def _behind(
    leaves: Iterable[str], needs: Mapping[str, frozenset[str]], needed_by: Mapping[str, Iterable[str]]
) -> dict[str, int]:
    """The longest chain behind each leaf; leaves on a cycle, which never run, have none."""
    left = {t: len(tuple(needed_by[t])) for t in leaves}
    behind = dict.fromkeys(left, 0)
    free = [t for t, n in left.items() if n == 0]
    while free:
        leaf = free.pop()
        for before in needs[leaf]:
            behind[before] = max(behind[before], behind[leaf] + 1)
            left[before] -= 1
            if left[before] == 0:
                free.append(before)
    return behind


@dataclass(frozen=True)
class Frontier:
    """Where the work is: which leaves could run now, which do, and how many are done.

    Moving one leaf costs what depends on it, not the size of the session.
    """

    open_needs: Mapping[str, int]
    ready: tuple[Entry, ...]  # pending, everything before them completed
    active: tuple[Entry, ...]
    completed: int

    def moved(self, graph: Graph, leaf: str, old: TaskStatus, tasks: Mapping[str, Task]) -> Frontier:
        """The frontier after one leaf's status changed from `old`; `tasks` are as they are now."""
        new = tasks[leaf].status
        if old is new or leaf not in graph.needs:
            return self
        ready, active = list(self.ready), list(self.active)
        open_needs = dict(self.open_needs)
        lists = {TaskStatus.ACTIVE: active}
        if not open_needs[leaf]:
            lists[TaskStatus.PENDING] = ready
        if old in lists:
            _take(lists[old], graph.entry(leaf))
        if new in lists:
            insort(lists[new], graph.entry(leaf))
        if TaskStatus.COMPLETED in (old, new):
            for other in graph.needed_by[leaf]:
                pending = tasks[other].status is TaskStatus.PENDING
                before = open_needs[other]
                open_needs[other] += -1 if new is TaskStatus.COMPLETED else 1
                if pending and open_needs[other] == 0:
                    insort(ready, graph.entry(other))
                elif pending and before == 0:
                    _take(ready, graph.entry(other))
        return Frontier(
            open_needs=open_needs,
            ready=tuple(ready),
            active=tuple(active),
            completed=self.completed + (new is TaskStatus.COMPLETED) - (old is TaskStatus.COMPLETED),
        )


def _take(entries: list[Entry], entry: Entry) -> None:
    at = bisect_left(entries, entry)
    if at < len(entries) and entries[at] == entry:
        del entries[at]


def frontier(graph: Graph, tasks: Mapping[str, Task]) -> Frontier:
    """The frontier of a session, from the status of its tasks."""
    done = {t for t in graph.leaves if tasks[t].status is TaskStatus.COMPLETED}
    open_needs = {t: len(graph.needs[t] - done) + (_lost(graph, t) > 0) for t in graph.leaves}
    pending = [t for t in graph.leaves if tasks[t].status is TaskStatus.PENDING]
    return Frontier(
        open_needs=open_needs,
        ready=tuple(sorted(graph.entry(t) for t in pending if not open_needs[t])),
        active=tuple(sorted(graph.entry(t) for t in graph.leaves if tasks[t].status is TaskStatus.ACTIVE)),
        completed=len(done),
    )


def _lost(graph: Graph, leaf: str) -> int:
    """How many dependencies of a leaf, or of its parent, no task has: it can never run."""
    return len(graph.missing.get(leaf, ())) + len(graph.missing.get(graph.parent.get(leaf, ""), ()))


def derived_status(graph: Graph, tasks: Mapping[str, Task], task_id: str) -> TaskStatus:
    """The status of a task; a parent's comes from its subtasks."""
    under = graph.children.get(task_id)
    if not under:
        return tasks[task_id].status
    found = [tasks[t].status for t in under]
    if all(s is TaskStatus.COMPLETED for s in found):
        return TaskStatus.COMPLETED
    if TaskStatus.ACTIVE in found:
        return TaskStatus.ACTIVE
    if TaskStatus.BLOCKED in found and not any(can_still_run(graph, tasks, t) for t in under):
        return TaskStatus.BLOCKED
    return TaskStatus.PENDING


def can_still_run(graph: Graph, tasks: Mapping[str, Task], leaf: str) -> bool:
    """Whether a pending leaf will run without anybody's help: nothing before it stands still."""
    if tasks[leaf].status is not TaskStatus.PENDING or leaf not in graph.needs:
        return False
    open_needs: dict[str, int] = {}
    before = [leaf]
    while before:
        at = before.pop()
        if at in open_needs:
            continue
        if tasks[at].status is TaskStatus.BLOCKED or _lost(graph, at):
            return False
        needed = [t for t in graph.needs[at] if tasks[t].status is not TaskStatus.COMPLETED]
        open_needs[at] = len(needed)
        before += needed
    return _can_end(graph, open_needs)


def _can_end(graph: Graph, open_needs: dict[str, int]) -> bool:
    """Whether leaves with so many open needs among them can all be completed: none waits for itself."""
    free = [t for t, n in open_needs.items() if n == 0]
    ended = 0
    while free:
        ended += 1
        for other in graph.needed_by[free.pop()]:
            if other in open_needs:
                open_needs[other] -= 1
                if open_needs[other] == 0:
                    free.append(other)
    return ended == len(open_needs)


# -- cycles -----------------------------------------------------------------------------


def cycles(graph: Graph) -> list[tuple[str, ...]]:
    """Every knot of tasks that wait for each other, as shortest cycles that together name all of it.

    Searched for only inside knots, so that tasks and dependencies without one are looked at twice and no
    more. Of knots that are very large not every task is named.
    """
    edges = _edges(graph)
    found = [one for knot in _knots(edges) for one in _in_knot(knot, edges)]
    return [
        _from_the_first(_in_full(cycle, graph)) for _, cycle in sorted(found, key=lambda f: ids.order(f[0]))
    ]


def _in_knot(knot: Iterable[str], edges: Mapping[str, list[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Shortest cycles that together name the tasks of a knot, each with the task it was searched from."""
    tasks = frozenset(knot)
    inside = {at: [other for other in edges[at] if other in tasks] for at in tasks}
    size, steps = sum(map(len, inside.values())), 0
    named: set[str] = set()
    for start in sorted(tasks, key=ids.order):
        if start not in named and steps < FOLLOWED_MAX and (cycle := _shortest(start, inside)):
            yield start, cycle
            named.update(cycle)
            steps += size


def _edges(graph: Graph) -> dict[str, list[str]]:
    """What each task waits for: its dependencies, a parent's subtasks, what its parent waits for."""
    edges = {}
    for task_id, own in graph.direct.items():
        above = graph.direct.get(graph.parent.get(task_id, ""), ())
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


def _in_full(cycle: tuple[str, ...], graph: Graph) -> tuple[str, ...]:
    """The cycle with the parents for whose sake their subtasks wait."""
    found: list[str] = []
    for at, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
        own = after in graph.direct[at] or after in graph.children.get(at, ())
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
