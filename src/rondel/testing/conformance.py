"""What every kind of agent keeps. Subclass `Conformance`, say how to build yours, run it with pytest.

`answering` is required: an agent that answers any prompt with a text that holds the
prompt's last word. The others may return None where a kind cannot do such a thing. Each process that
your agent starts carries `TAG=tag` in its environment, so that one that is left behind is found.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rondel.agents.base import Agent, Beat, Clocks, Reply, Request
from rondel.model.outcomes import Ended

TAG = "RONDEL_TEST_TAG"


def alive(tag: str) -> list[int]:
    """The processes that carry the tag in their environment, this one excepted."""
    word = f"{TAG}={tag}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            threads = list(entry.glob("task/*"))  # the first one of a living process may have ended
            if any(word in _environ(thread).split(b"\0") for thread in threads):
                found.append(int(entry.name))
    return found


def _environ(thread: Path) -> bytes:
    try:
        return (thread / "environ").read_bytes()
    except OSError:
        return b""


def request(tmp_path: Path, prompt: str = "say pong", **changes: Any) -> Request:
    """A request in a folder of its own."""
    for name in ("work", "home"):
        (tmp_path / name).mkdir(exist_ok=True)
    made = Request(
        prompt=prompt,
        role="review.reviewer.principal-1",
        session="review:2026-11-15-main",
        action="rounds/round-1/reviews/principal-1.md",
        attempt=1,
        cwd=tmp_path / "work",
        spool=tmp_path / "spool",
        home=tmp_path / "home",
        clocks=Clocks(wall_s=150, idle_s=150, turns_max=20),
        prompt_file=tmp_path / "manual" / "prompt.md",
        reply_file=tmp_path / "manual" / "response.md",
    )
    return replace(made, **changes)


def ask(agent: Agent, asked: Request, beats: list[Beat] | None = None) -> Reply:
    """What an agent replies."""
    return asyncio.run(agent.run(asked, (beats if beats is not None else []).append))


class Conformance:
    """The promises of `rondel.agents.base.Agent`."""

    recovers = True  # a complete answer is found again in its spool
    tries = 1  # how often a CLI may need to be asked

    @pytest.fixture
    def tag(self) -> Iterator[str]:
        """A mark for the environment of children; whoever carries it at the end was left behind."""
        mark = uuid.uuid4().hex
        yield mark
        assert alive(mark) == []

    def answering(self, tmp_path: Path, tag: str) -> Agent:
        """An agent that answers."""
        raise NotImplementedError

    def failing(self, tmp_path: Path, tag: str) -> Agent | None:
        """An agent whose other side fails."""
        return None

    def hanging(self, tmp_path: Path, tag: str) -> Agent | None:
        """An agent whose other side never answers."""
        return None

    def needed(self, agent: Agent | None) -> Agent:
        """The agent, where this kind can have such a case."""
        if agent is None:
            pytest.skip("this kind has no such case")
        return agent

    def test_it_has_a_name_a_kind_and_a_model(self, tmp_path: Path, tag: str) -> None:
        agent = self.answering(tmp_path, tag)
        assert agent.name
        assert agent.kind
        assert isinstance(agent.model, str)

    def test_an_answer_is_done_with_its_text(self, tmp_path: Path, tag: str) -> None:
        reply = ask(self.answering(tmp_path, tag), request(tmp_path))
        assert (reply.ended, reply.error) == (Ended.DONE, "")
        assert "pong" in reply.text

    def test_any_letters_go_in_and_come_out(self, tmp_path: Path, tag: str) -> None:
        prompt = "\u2028 'quotes' \"double\" $HOME `x` \\ Straße 你好🙂"
        assert "你好🙂" in ask(self.answering(tmp_path, tag), request(tmp_path, prompt)).text

    def test_a_long_prompt_arrives(self, tmp_path: Path, tag: str) -> None:
        replies: list[Reply] = []
        while len(replies) < self.tries and (not replies or replies[-1].ended is Ended.FAILED):
            place = tmp_path / str(len(replies))
            place.mkdir()
            replies.append(ask(self.answering(place, tag), request(place, "word " * 200_000 + "pong")))
        assert "pong" in replies[-1].text, replies

    def test_usage_is_never_negative(self, tmp_path: Path, tag: str) -> None:
        usage = ask(self.answering(tmp_path, tag), request(tmp_path)).usage
        assert min(usage.input_tokens, usage.output_tokens, usage.cached_tokens) >= 0
        assert usage.usd is None or usage.usd >= 0

    def test_a_complete_answer_is_found_again_by_another_driver(self, tmp_path: Path, tag: str) -> None:
        asked = request(tmp_path)
        reply = ask(self.answering(tmp_path, tag), asked)
        found = self.answering(tmp_path, tag).recover(asked)
        assert found == (reply if self.recovers else None)

    def test_nothing_is_found_where_nothing_was(self, tmp_path: Path, tag: str) -> None:
        assert self.answering(tmp_path, tag).recover(request(tmp_path)) is None

    def test_a_damaged_spool_is_no_answer(self, tmp_path: Path, tag: str) -> None:
        asked = request(tmp_path)
        agent = self.answering(tmp_path, tag)
        ask(agent, asked)
        for file in asked.spool.rglob("*.json") if asked.spool.is_dir() else ():
            file.write_bytes(b'{"code": 0, "rea')
        assert agent.recover(asked) is None

    def test_a_failure_is_a_reply_with_a_reason(self, tmp_path: Path, tag: str) -> None:
        reply = ask(self.needed(self.failing(tmp_path, tag)), request(tmp_path))
        assert reply.ended is Ended.FAILED
        assert reply.error
        assert "Traceback" not in reply.error

    def test_the_clocks_end_it(self, tmp_path: Path, tag: str) -> None:
        agent = self.needed(self.hanging(tmp_path, tag))
        began = time.monotonic()
        reply = ask(agent, request(tmp_path, clocks=Clocks(wall_s=0.6, idle_s=60)))
        assert reply.ended is Ended.TIMED_OUT
        assert reply.error
        assert time.monotonic() - began < 60
        assert alive(tag) == []

    def test_being_cancelled_ends_every_process(self, tmp_path: Path, tag: str) -> None:
        agent = self.needed(self.hanging(tmp_path, tag))

        async def cancel_soon() -> None:
            task = asyncio.create_task(agent.run(request(tmp_path), lambda _: None))
            await asyncio.sleep(0.5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel_soon())
        assert alive(tag) == []

    def test_its_version_is_known_or_it_is_not_installed(self, tmp_path: Path, tag: str) -> None:
        version = self.answering(tmp_path, tag).version()
        assert version is None or version
