"""A scratch repository, the small workflow and a scripted agent: what engine tests need."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from small import SmallWorkflow

from rondel.agents.base import Beat, Reply, Request
from rondel.agents.settings import AgentSettings
from rondel.api import Hall
from rondel.model.outcomes import Ended, Usage
from rondel.model.workflow import SessionRef
from rondel.store import disk

REF = SessionRef("small", "one", ".small/one")
GIT_ENV = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@localhost",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@localhost",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


def git(folder: Path, *args: str) -> str:
    env = {**os.environ, **GIT_ENV}
    return subprocess.run(
        ["git", *args], cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout


def repository(folder: Path) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "README.md").write_text("scratch\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


Answer = Callable[[Request], Reply | str]


def plain(request: Request) -> str:
    return f"An answer to {request.action}.\n"


@dataclass
class ScriptedAgent:
    """Answers by a function; notes each call in a file that no crash of ours can lose."""

    answer: Answer = plain
    calls: Path | None = None
    seconds: float = 0.0
    name: str = "fake"
    kind: str = "fake"
    model: str = ""
    seen: list[Request] = field(default_factory=list)

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        disk.point("agent", request.action)
        self.seen.append(request)
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.calls:
            with self.calls.open("a") as f:
                f.write(request.action + "\n")
        answer = self.answer(request)
        reply = (
            answer if isinstance(answer, Reply) else Reply(Ended.DONE, answer, usage=Usage(100, 10, 0, 0.01))
        )
        request.spool.mkdir(parents=True, exist_ok=True)
        if reply.ended is Ended.DONE:
            (request.spool / "out").write_text(reply.text)
        disk.point("answered", request.action)
        return reply

    def recover(self, request: Request) -> Reply | None:
        out = request.spool / "out"
        if not out.exists():
            return None
        return Reply(Ended.DONE, out.read_text(), usage=Usage(100, 10, 0, 0.01))

    def version(self) -> str | None:
        return "1"


def hall(root: Path, agent: ScriptedAgent | None = None) -> Hall:
    chosen = agent or ScriptedAgent()

    def build(_: AgentSettings) -> ScriptedAgent:
        return chosen

    return Hall(root, workflows={"small": SmallWorkflow()}, build=build)


def start(root: Path, **request: object) -> None:
    """A session of the small workflow, with what a person asked for."""
    folder = root / REF.folder / ".rondel"
    folder.mkdir(parents=True)
    body = {"width": 3, "rounds_max": 2, "auto": False, **request}
    (folder / "request-1.json").write_text(json.dumps(body))


def content(root: Path) -> dict[str, bytes]:
    """Every file of the session that is state: what a crash must not change."""
    folder = root / REF.folder
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and ".rondel/run" not in str(p) and ".torn-" not in p.name
    }


def in_child(work: Callable[[], int]) -> int:
    """Run in a real child process; its wait status as the shell would say it."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = work()
        except BaseException:  # noqa: BLE001 - the child shows whatever it was and ends
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def die_at(number: int) -> Callable[[str, str], None]:
    """A hook that ends this process, really, at the fault point of that number."""
    count = 0

    def point(_operation: str, _path: str) -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return point
