"""A sweep in chains dies at every step that an undisturbed run takes, and finds what one death breaks."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from rondel.store import files
from rondel.testing.chains import Route, name_of, route, sweep_in_chains
from rondel.testing.kills import Trial, undisturbed

FILES = 6


class Writing(Trial):
    """Writes some files, each once; a random name is among its steps."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.session = self.root / "sessions/one"
        self.session.mkdir(parents=True)

    def drive(self) -> int:
        for number in range(FILES):
            if not (self.session / f"{number}.md").exists():
                self.write(number)
        return 0

    def write(self, number: int) -> None:
        files.write(self.session / f"{number}.md", b"whole")

    def repository(self) -> dict[str, object]:
        return {}


class Careless(Writing):
    """The fourth file is broken where it was begun before."""

    def write(self, number: int) -> None:
        if number == 3 and (self.session / "seen").exists():
            (self.session / "3.md").write_bytes(b"broken")
            return
        if number == 3:
            (self.session / "seen").write_bytes(b"")
            (self.session / "seen").rename(self.session / "seen.tmp").rename(self.session / "seen")
        super().write(number)


def steps_died_at(out: str) -> Counter[int]:
    return Counter(int(line.split()[3][:-1]) for line in out.splitlines() if line.startswith("dies at step"))


@pytest.mark.parametrize("apart", [4, 11])
def test_every_step_is_died_at_once(apart, tmp_path, capfd):
    calm = undisturbed(Writing(tmp_path / "undisturbed"))
    sweep_in_chains(Writing, tmp_path, calm, least=20, apart=apart)
    steps = len(route(Writing(tmp_path / "again")).names)
    assert steps_died_at(capfd.readouterr().out) == dict.fromkeys(range(1, steps + 1), 1)


def test_the_parts_of_a_sweep_are_all_of_it(tmp_path):
    parts = [route(Writing(tmp_path / str(part)), part, 3).left for part in range(3)]
    assert sorted(chain(*parts)) == list(range(len(route(Writing(tmp_path / "all")).names)))


def test_a_part_is_the_same_wherever_the_state_folder_is():
    names = [f"rename {{}}/rondel/{n}.json" for n in range(20)]
    left = [Route([name.format(place) for name in names], 1, 2).left for place in ("/tmp/a/state", "/x")]
    assert left[0] == left[1] != []


def test_what_one_death_breaks_is_found(tmp_path):
    calm = undisturbed(Careless(tmp_path / "undisturbed"))
    with pytest.raises(AssertionError, match="broken"):
        sweep_in_chains(Careless, tmp_path, calm, least=20, apart=9)


def test_a_step_has_the_same_name_in_each_trial(tmp_path):
    first, second = Writing(tmp_path / "a"), Writing(tmp_path / "b")
    names = [route(trial).names for trial in (first, second)]
    assert names[0] == names[1]
    temp = f"{first.session}/.rondel-tmp-0123456789ab"
    assert name_of(first, "sync", temp) == "sync repo/sessions/ID/.rondel-tmp-#"
