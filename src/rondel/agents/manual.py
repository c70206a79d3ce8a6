"""The `manual` agent: nobody runs. The prompt is a file, and a person writes the reply file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from typing_extensions import override

from rondel import paths
from rondel.agents.base import Agent, AgentSettings, Beat, Reply, Request
from rondel.errors import RondelError
from rondel.model.actions import Access
from rondel.model.outcomes import Ended

REPLY_MAX = 20_000_000


class ManualAgent(Agent):
    """An agent that is a person with an editor, or a chat window."""

    kind = "manual"
    in_process = True
    model = ""

    def __init__(self, settings: AgentSettings) -> None:
        self.name = settings.name
        self._root = settings.root

    @override
    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        """Never waits: without a reply file it says which files it is waiting for."""
        prompt_file = request.prompt_file or request.spool / "prompt.md"
        reply_file = request.reply_file or request.spool / "response.md"
        try:
            _leave(prompt_file, request.prompt)
            paths.make_folders(reply_file.parent)  # so that the answer only has to be saved
            text = _read(reply_file)
        except OSError as e:
            raise RondelError(f"{e.filename}: {e.strerror}") from e
        if not text.strip() or text.strip() == request.prompt.strip():
            prompt, reply = self._short(prompt_file), self._short(reply_file)
            work = f"change the files in {request.cwd}, " if request.access is Access.WRITE else ""
            return Reply(Ended.WAITING, error=f"{work}write the answer to {prompt} into {reply}, then go on")
        return Reply(Ended.DONE, text=text)

    @override
    def recover(self, request: Request) -> Reply | None:
        """Nothing runs, so there is nothing to find again: asking again costs nothing."""
        return None

    @override
    def version(self) -> str | None:
        return "a person"

    def _short(self, path: Path) -> str:
        root = self._root
        return str(path.relative_to(root)) if root is not None and path.is_relative_to(root) else str(path)


def _leave(path: Path, prompt: str) -> None:
    """The prompt in its file, whole; one that is there already stays untouched."""
    data = prompt.encode(errors="replace")
    if paths.is_file(path) and paths.beginning(path, len(data) + 1) == data:
        return
    paths.make_folders(path.parent)
    paths.replace(path, data)


def _read(path: Path) -> str:
    try:
        return paths.beginning(path, REPLY_MAX).decode("utf-8-sig", errors="replace")
    except FileNotFoundError:
        return ""
