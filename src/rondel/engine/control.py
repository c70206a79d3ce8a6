"""Control: pause or stop, left by another terminal, read before each action."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from rondel.model.trouble import machine
from rondel.store import files

CONTROL = ".rondel/control"


class Word(StrEnum):
    """What a person said from another terminal."""

    PAUSE = "pause"  # start nothing new; let what is under way finish
    STOP = "stop"  # start nothing new; end what is under way


def read(folder: Path) -> Word | None:
    """The word that is there now. Anything unreadable means pause: the safe reading."""
    try:
        with machine("read", folder / CONTROL):
            text = (folder / CONTROL).read_text(encoding="utf-8", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Word.PAUSE
    return Word.STOP if text == Word.STOP else Word.PAUSE


def leave(folder: Path, word: Word) -> None:
    """Leave a word for the driver, now or later."""
    path = files.safe_join(folder, CONTROL)
    files.ignore_runtime(path.parent)
    files.write(path, f"{word}\n".encode())


def clear(folder: Path) -> None:
    """Take the word away: the session may go on."""
    (folder / CONTROL).unlink(missing_ok=True)
