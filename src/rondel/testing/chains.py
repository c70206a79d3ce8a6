"""Every step of a session is died at, many of them in one session: a step costs a start, not a whole run.

`kills.sweep` gives each death a session of its own. Here one session dies, goes on, dies again some
steps later, and so on to its end; the next one begins a step later. What that leaves out, a death
alone shows: something that the next start puts right, and only that one. So take some deaths alone, too.

A step of a run that goes on has another number than in a run that nobody disturbed. It is known by
its name, and by how far the session has come: how many of the steps that a run takes only once.
"""

from __future__ import annotations

import json
import mmap
import re
import shutil
import tempfile
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from rondel.model import jsons
from rondel.testing.faults import die_during, in_child, listen
from rondel.testing.kills import Trial, Undisturbed, killed_and_resumed

NEAR = 6  # steps that are taken once: what runs at once does not come in the same order each time
RANDOM = re.compile(r"\b(?=[a-f]{0,64}\d)[0-9a-f]{7,64}\b(-[0-9a-f]+\b)?|(?<=tmp-)\w+")
ELSEWHERE = re.compile(r"(?<!\S)/\S*/")  # each process that takes a part may have folders of its own


class Route:
    """The steps of an undisturbed run by name, and which of them somebody has yet to die at."""

    def __init__(self, names: Sequence[str], part: int = 0, parts: int = 1) -> None:
        self.names = names
        times = Counter(names)
        self._once = {name for name in times if times[name] == 1}
        self._stages = [0, *accumulate(name in self._once for name in names)]  # how far it was before each
        self._where: dict[str, list[int]] = {}
        for index, name in enumerate(names):
            self._where.setdefault(name, []).append(index)
        # Both are shared with the children, who do not live to tell what they did.
        self._left = mmap.mmap(-1, len(names))
        self._passed = mmap.mmap(-1, len(names))
        for name, places in self._where.items():
            for time, index in enumerate(places):
                self._left[index] = zlib.crc32(f"{time} {ELSEWHERE.sub('', name)}".encode()) % parts == part

    @property
    def left(self) -> list[int]:
        """The steps that nobody has died at, by their index."""
        return [index for index, flag in enumerate(bytes(self._left)) if flag]

    def deaths(self, apart: int) -> Iterator[int]:
        """For one session: from which step on it may die next, until a run has come to its end."""
        self._passed[:] = bytes(len(self.names))
        least = 0
        while True:
            before = self.left
            yield least
            (died, *_) = sorted({*before} - {*self.left}) or (None,)
            if died is None:
                return
            least = died + apart

    def die_from(self, trial: Trial) -> Callable[[int], None]:
        """What makes this process die at the next step that is left, from a given one on."""

        def die(least: int) -> None:
            doomed = False
            where = _Position(self._once, self._where, self._stages, self._passed)

            def step(operation: str, path: str) -> None:
                nonlocal doomed
                index = where.of(name_of(trial, operation, path))
                if doomed or index is None or index < least or not self._left[index]:
                    return
                doomed = True
                self._left[index] = 0
                print(f"dies at step {index + 1}:", operation, path, flush=True)
                die_during(operation, index)

            listen(step)

        return die


class _Position:
    """Where a run is on the route, from the names of the steps it takes."""

    def __init__(
        self, once: set[str], where: dict[str, list[int]], stages: list[int], passed: mmap.mmap
    ) -> None:
        self._once, self._where, self._stages, self._passed = once, where, stages, passed
        self._stage = bytes(passed).count(1)
        self._since: Counter[str] = Counter()  # how often each name came in this stage

    def of(self, name: str) -> int | None:
        """The step of this name that is meant; None for one that only a disturbed run takes."""
        places = self._where.get(name)
        if not places:
            return None
        stage, time = self._stage, self._since[name]
        self._since[name] += 1
        if name in self._once and not self._passed[places[0]]:
            self._passed[places[0]] = 1
            self._stage += 1
            self._since.clear()
        return self._nearest(places, stage, time)

    def _nearest(self, places: list[int], stage: int, time: int) -> int | None:
        at = [self._stages[index] for index in places]
        nearest = min(at, key=lambda other: abs(other - stage))
        if abs(nearest - stage) > NEAR:
            return None
        first = bisect_left(at, nearest)
        return places[min(first + time, first + at.count(nearest) - 1)]


def name_of(trial: Trial, operation: str, path: str) -> str:
    """A step without what differs from trial to trial: its folder, its id, whatever is random."""
    plain = path.replace(f"{trial.root.parent}/", "").replace(trial.id, "ID")
    return f"{operation} {RANDOM.sub('#', plain)}"


def route(trial: Trial, part: int = 0, parts: int = 1) -> Route:
    """The steps that a session takes to its end when nobody disturbs it, or one part of them to die at."""
    with tempfile.TemporaryFile() as file:

        def recorded() -> int:
            with open(file.fileno(), "a", buffering=1, closefd=False) as lines:
                listen(lambda *step: print(json.dumps(name_of(trial, *step)), file=lines))
                return trial.drive()

        assert in_child(recorded) == 0
        file.seek(0)
        return Route([jsons.load(line) for line in file], part, parts)


def sweep_in_chains(
    make: Callable[[Path], Trial],
    folder: Path,
    calm: Undisturbed,
    *,
    least: int,
    apart: int,
    part: int = 0,
    parts: int = 1,
) -> None:
    """Die at each step of an undisturbed run, or of a part of them; in one session at steps that far apart.

    The engine gives up an action that was cut off five times. Either no action takes five times as many
    steps as that, or the person's settings, in the environment, say more (`limits.cutoffs_max`). A step
    that no session came to under its name any more is died at alone, by its number.
    """
    steps = route(make(folder / "route"), part, parts)
    assert len(steps.names) > least, "there are more points to die at than that"
    wanted, chains = len(steps.left), 0
    is_dying = True
    while steps.left and is_dying:
        chains += 1
        own = folder / f"chain-{chains}"
        trial = make(own)
        is_dying = killed_and_resumed(trial, steps.deaths(apart), calm, steps.die_from(trial))
        shutil.rmtree(own)
    alone = steps.left
    named = f"{wanted} of {len(steps.names)} steps"
    print(f"{named}: {wanted - len(alone)} in {chains} chains, {len(alone)} alone")
    for index in alone:
        own = folder / f"alone-{index + 1}"
        killed_and_resumed(make(own), [index + 1], calm)
        shutil.rmtree(own)
