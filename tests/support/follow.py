"""Every `next:` that a test's command prints is typed, as it is printed, and must lead on.

The helpers through which tests call `rondel` hand over what was printed. The command is then
typed in a shell, in the same place and environment, on a copy of everything the test has: its
folders are put aside meanwhile and come back untouched. One of each kind of ending is typed;
with RONDEL_SWEEP=1 every single one.

To lead on is to end well, to try what failed again, or to answer something else. A usage error
never does, and the same answer without a new try does not, also where it only waits: unless it
says what the person does by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rondel.cli.main import root as rondel_command

TYPED_MAX = 3  # how many commands in a row are typed after one ending
TYPED_S = 90
WAITS_S = 3.0  # for a command that says it waits
SHELL = 'rondel() { "$RONDEL_PYTHON" -m rondel "$@"; }; '
WAITS = (3, 4, 5)  # for a person, no approval, nothing to do: said once more, it must say what to do by hand
BY_HAND = ("then go on",)  # such as a file that the person writes
USAGE = 2
_NEXT = re.compile(r"next: ((?:rondel|git) .+)$", re.MULTILINE)
_STOPPED = re.compile(r"^\S+: ([a-z]+)$", re.MULTILINE)
_HOMES = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")

base: Path | None = None  # the folder below which every test has its own; set by the test session


@dataclass(frozen=True)
class Printed:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def commands(self) -> list[str]:
        """Every command it says to type next."""
        found = [*_NEXT.findall(self.err), *_NEXT.findall(self.out)]
        with suppress(ValueError):
            found += _in_json(json.loads(self.out))
        return list(dict.fromkeys(found))

    @property
    def answer(self) -> str:
        """What it says, without numbers and times."""
        return re.sub(r"\d+", "0", self.out + self.err)


def follow(cwd: Path, env: Mapping[str, str], code: int, out: str, err: str) -> None:
    """Type what a command says comes next, where nobody has yet after an ending of this kind."""
    printed = Printed(code, out or "", err or "")
    for command in printed.commands:
        if _is_new(command, printed):
            _follow(command, printed, cwd, env)


def _in_json(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _in_json(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key == "next" and isinstance(each, str) and each.startswith(("rondel ", "git ")):
                yield each
            else:
                yield from _in_json(each)


# -- which are typed ---------------------------------------------------------------------------


def _is_new(command: str, printed: Printed) -> bool:
    """Whether this is the first ending of its kind in this run of the tests, in whichever process."""
    if base is None:
        return False
    if os.environ.get("RONDEL_SWEEP"):
        return True
    kind = f"{template(command)} {printed.code} {_STOPPED.findall(printed.err)}"
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    folder = (base.parent if worker else base) / "followed"
    folder.mkdir(exist_ok=True)
    try:
        (folder / hashlib.sha256(kind.encode()).hexdigest()).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def template(command: str) -> str:
    """A command without the names in it."""
    words, found, group = shlex.split(command), [], rondel_command
    for word in words:
        below = getattr(group, "commands", {}) if group is not rondel_command else None
        if word in ("rondel", "git") or word.startswith("-"):
            found.append(word)
        elif (below is None and (named := rondel_command.get_command(None, word))) or (
            named := (below or {}).get(word)
        ):
            found.append(word)
            group = named
        else:
            found.append("…")
    return " ".join(found)


# -- typing ------------------------------------------------------------------------------------


def _follow(command: str, printed: Printed, cwd: Path, env: Mapping[str, str]) -> None:
    folders = _folders(cwd, env)
    if not folders or _somebody_works_in(folders):
        return
    with _copied_in_place(folders):
        for _ in range(TYPED_MAX):
            before = _tries(folders)
            said = typed(command, cwd, env)
            tried = _tries(folders) - before
            told = (
                f"it said {printed.code}\n{printed.out}{printed.err}\n"
                f"{command!r} said {said.code}\n{said.out}{said.err}"
            )
            assert said.code != USAGE, f"a usage error after a printed command:\n{told}"
            assert "Traceback" not in said.err, told
            assert said.code == 0 or tried or said.answer != printed.answer or _is_by_hand(said), (
                f"a dead end:\n{told}"
            )
            if said.code == 0 or not said.commands or _is_by_hand(said):
                return
            command, printed = said.commands[0], said


def _is_by_hand(said: Printed) -> bool:
    """Whether it waits for something that a person does besides typing: each time it says so again."""
    return said.code in WAITS and any(word in said.out + said.err for word in BY_HAND)


def typed(command: str, cwd: Path, env: Mapping[str, str]) -> Printed:
    """What a command says that is typed in a shell."""
    waits = "--wait" in shlex.split(command)
    child = subprocess.Popen(
        ["bash", "-c", SHELL + command],
        cwd=cwd,
        env={**env, "RONDEL_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=WAITS_S if waits else TYPED_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGTERM)
        out, err = child.communicate(timeout=TYPED_S)
        return Printed(0 if waits else child.returncode, out, err)
    return Printed(child.returncode, out, err)


def _tries(folders: Iterable[Path]) -> int:
    """How often anything was tried, as the journals say."""
    journals = [path for folder in folders for path in folder.rglob("journal.jsonl")]
    return sum(
        path.read_bytes().count(b'"kind":"%s"' % kind)
        for path in journals
        for kind in (b"started", b"finished")
    )


# -- a copy in the same place ------------------------------------------------------------------


def _folders(cwd: Path, env: Mapping[str, str]) -> list[Path]:
    """The folders of this test: what is below `base`, by its top, for each place a command may use."""
    assert base is not None
    places = [cwd, *(Path(env[name]) for name in _HOMES if env.get(name))]
    tops = {base / place.relative_to(base).parts[0] for place in places if base in place.parents}
    return sorted(top for top in tops if top.is_dir()) if base in cwd.parents else []


def _somebody_works_in(folders: Iterable[Path]) -> bool:
    """Whether a process other than this one has its place there: its files are not to be moved."""
    tops = [str(folder) for folder in folders]
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if os.readlink(entry / "cwd").startswith(tuple(tops)):
                    return True
    return False


@contextmanager
def _copied_in_place(folders: Iterable[Path]) -> Iterator[None]:
    """A copy stands where the folders are, so that every absolute path in them holds."""
    aside: list[tuple[Path, Path]] = []
    try:
        for folder in folders:
            kept = folder.with_name(f"{folder.name}.aside")
            folder.rename(kept)
            aside.append((folder, kept))
            subprocess.run(["cp", "-a", kept, folder], check=True)
        yield
    finally:
        for folder, kept in aside:
            subprocess.run(["chmod", "-R", "u+rwX", folder], check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(folder, ignore_errors=True)
            kept.rename(folder)
