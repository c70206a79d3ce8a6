"""The built-in agents that need no vendor keep the contract of an agent."""

import json
import sys

from rondel.agents.base import AgentSettings, Request
from rondel.agents.checks import ChecksAgent, Run
from rondel.agents.command import CommandAgent
from rondel.agents.manual import ManualAgent
from rondel.agents.mock import MockAgent
from rondel.errors import RondelError
from rondel.testing.conformance import Conformance
from support.children import TAG, fake

ECHO = "import sys; print('you said', sys.stdin.read().split()[-1])"


class TestCommand(Conformance):
    def agent(self, tag, *command):
        return CommandAgent(AgentSettings("c", "command", command=command, env={TAG: tag}))

    def answering(self, tmp_path, tag):
        return self.agent(tag, sys.executable, "-c", ECHO)

    def failing(self, tmp_path, tag):
        return self.agent(tag, *fake("fails"))

    def hanging(self, tmp_path, tag):
        return self.agent(tag, *fake("hangs_silently"))


class TestMockScript(Conformance):
    def agent(self, tmp_path, **rule):
        (tmp_path / "script.json").write_text(json.dumps({"rules": [rule]}))
        return MockAgent(AgentSettings("m", "mock", script="script.json", root=tmp_path))

    def answering(self, tmp_path, tag):
        usage = {"input_tokens": 3, "output_tokens": 4, "usd": 0.5}
        return self.agent(tmp_path, prompt=r"(\S+)\s*\Z", reply="you said {1}", usage=usage)

    def failing(self, tmp_path, tag):
        return self.agent(tmp_path, fail="on purpose")

    def hanging(self, tmp_path, tag):
        return self.agent(tmp_path, seconds=600)


class TestMockCallable(Conformance):
    def answering(self, tmp_path, tag):
        return MockAgent(AgentSettings("m", "mock"), lambda asked: f"you said {asked.prompt.split()[-1]}")


class TestManual(Conformance):
    recovers = False

    def answering(self, tmp_path, tag):
        agent = ManualAgent(AgentSettings("me", "manual"))
        asked_before = agent.run

        async def with_a_person(asked: Request, beat):
            await asked_before(asked, beat)
            asked.reply_file.write_text(f"you said {asked.prompt.split()[-1]}", encoding="utf-8")
            return await asked_before(asked, beat)

        agent.run = with_a_person
        return agent


class TestChecks(Conformance):
    recovers = False

    def answering(self, tmp_path, tag):
        return ChecksAgent(
            "checks", lambda asked, run: run(["echo", "you said", asked.prompt.split()[-1]])[1]
        )

    def failing(self, tmp_path, tag):
        def fail(asked: Request, run: Run) -> str:
            raise RondelError("ruff is not installed")

        return ChecksAgent("checks", fail)

    def hanging(self, tmp_path, tag):
        def hang(asked: Request, run: Run) -> str:
            return run(["sleep", "600"], timeout_s=600)[1]

        return ChecksAgent("checks", hang)
