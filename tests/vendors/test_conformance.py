"""The vendors' agents keep the contract of an agent, with the real CLI behind them."""

from __future__ import annotations

import pytest

from modelserver import FakeModel, vendor_config
from rondel.agents.base import AgentSettings
from rondel.agents.roster import build
from rondel.testing.conformance import Conformance
from support.children import TAG
from vendors.rig import DEAD_PROXY, program_or_skip

pytestmark = pytest.mark.agents


class Vendor(Conformance):
    kind: str

    @pytest.fixture(autouse=True)
    def scripted(self, quarantined):
        self.program = program_or_skip(self.kind)
        self.proxies = {} if quarantined else DEAD_PROXY
        with FakeModel() as self.model:
            yield

    def agent(self, tmp_path, tag, script):
        table = vendor_config(
            self.kind, self.model.script("it", script), tmp_path / "vendor", [str(self.program)]
        )
        env = {**table["env"], **self.proxies, TAG: tag}
        settings = AgentSettings(
            "it", self.kind, command=tuple(table["command"]), model=table["model"], env=env
        )
        return build(settings)

    def answering(self, tmp_path, tag):
        return self.agent(tmp_path, tag, lambda asked: f"You said {asked.user.split()[-1]}")

    def failing(self, tmp_path, tag):
        return self.agent(tmp_path, tag, {"faults": [{"status": 400}]})

    def hanging(self, tmp_path, tag):
        return self.agent(tmp_path, tag, {"faults": [{"hang": "before"}]})


class TestClaude(Vendor):
    kind = "claude"


class TestCodex(Vendor):
    kind = "codex"


class TestGemini(Vendor):
    kind = "gemini"
    tries = 3  # it waits half a second for its prompt, and a busy machine may be slower


class TestOpencode(Vendor):
    kind = "opencode"
