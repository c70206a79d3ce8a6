"""Control: pause or stop, left by another terminal, read before each action."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from rondel import paths
from rondel.errors import RondelError
from rondel.store import files, ours

CONTROL = ".rondel/control"
WORD_MAX = 1000  # bytes


class Word(StrEnum):
    """What a person said from another terminal."""

    PAUSE = "pause"  # start nothing new; let what is under way finish
    STOP = "stop"  # start nothing new; end what is under way


def read(folder: Path) -> Word | None:
    """The word that is there now. One that nobody can read means pause, the safe reading."""
    if not paths.is_there(f"{folder}/{CONTROL}"):
        return None
    place = folder / CONTROL
    if ours.is_locked_out(place):
        return Word.PAUSE
    try:
        data = ours.read(ours.own(place), WORD_MAX)
    except RondelError:
        return Word.PAUSE
    if data is None:  # something else was there, and is aside now
        return None
    return Word.STOP if data.strip() == Word.STOP.encode() else Word.PAUSE


def leave(folder: Path, word: Word) -> None:
    """Leave a word for the driver, now or later."""
    path = ours.own(folder / CONTROL)
    ours.keep_out_of_git(path.parent)
    files.write(path, f"{word}\n".encode())


def clear(folder: Path) -> None:
    """Take the word away: the session may go on."""
    ours.remove(folder / CONTROL)
