"""Control: pause or stop, left by another terminal, read before each action."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

from rondel.store import files, ours

CONTROL = ".rondel/control"


class Word(StrEnum):
    """What a person said from another terminal."""

    PAUSE = "pause"  # start nothing new; let what is under way finish
    STOP = "stop"  # start nothing new; end what is under way


def read(folder: Path) -> Word | None:
    """The word that is there now. One that nobody can read means pause, the safe reading."""
    place = folder / CONTROL
    if not os.path.lexists(place):
        return None
    if ours.is_locked_out(place):
        return Word.PAUSE
    data = ours.read(ours.own(place))
    if data is None:  # something else was there, and is aside now
        return None
    return Word.STOP if data.strip() == Word.STOP.encode() else Word.PAUSE


def leave(folder: Path, word: Word) -> None:
    """Leave a word for the driver, now or later."""
    path = ours.own(folder / CONTROL)
    ours.ignore_runtime(path.parent)
    files.write(path, f"{word}\n".encode())


def clear(folder: Path) -> None:
    """Take the word away: the session may go on."""
    ours.remove(folder / CONTROL)
