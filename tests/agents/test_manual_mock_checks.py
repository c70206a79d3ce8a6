"""A person, a script and analysers as agents."""

import asyncio
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rondel.agents.base import AgentSettings, Clocks
from rondel.agents.checks import ChecksAgent
from rondel.agents.checks import build as build_checks
from rondel.agents.manual import ManualAgent
from rondel.agents.mock import MockAgent
from rondel.agents.roster import build, detect, kinds
from rondel.errors import ConfigError, UnsafePath
from rondel.model.actions import Access
from rondel.model.outcomes import Ended, Usage
from rondel.testing.conformance import ask, request


def manual(tmp_path) -> ManualAgent:
    return ManualAgent(AgentSettings("me", "manual", root=tmp_path))


def test_a_person_is_told_both_files(tmp_path):
    reply = ask(manual(tmp_path), request(tmp_path, "Please review."))
    assert reply.ended is Ended.WAITING
    assert "manual/prompt.md" in reply.error
    assert "manual/response.md" in reply.error
    assert (tmp_path / "manual" / "prompt.md").read_text() == "Please review."


def test_a_person_who_edits_is_told_the_working_copy(tmp_path):
    asked = request(tmp_path, "Please change it.")
    assert str(asked.cwd) not in ask(manual(tmp_path), asked).error
    edits = replace(asked, access=Access.WRITE)
    assert f"change the files in {asked.cwd}" in ask(manual(tmp_path), edits).error


@pytest.mark.parametrize("text", ["", "  \n", "Please review.", "\ufeffPlease review.\n"])
def test_an_empty_file_or_a_copy_of_the_prompt_is_no_answer(tmp_path, text):
    asked = request(tmp_path, "Please review.")
    ask(manual(tmp_path), asked)
    asked.reply_file.write_text(text)
    assert ask(manual(tmp_path), asked).ended is Ended.WAITING


def test_the_answer_is_the_file(tmp_path):
    asked = request(tmp_path, "Please review.")
    ask(manual(tmp_path), asked)
    asked.reply_file.write_bytes(b"fine \xff\n")
    reply = ask(manual(tmp_path), asked)
    assert (reply.ended, reply.text) == (Ended.DONE, "fine \ufffd\n")


def test_an_unchanged_prompt_file_is_left_untouched(tmp_path):
    asked = request(tmp_path, "Please review.")
    ask(manual(tmp_path), asked)
    before = asked.prompt_file.stat().st_mtime_ns
    ask(manual(tmp_path), asked)
    assert asked.prompt_file.stat().st_mtime_ns == before


def mock(tmp_path, *rules, name="script.json") -> MockAgent:
    (tmp_path / name).write_text(json.dumps({"rules": rules}))
    return MockAgent(AgentSettings("m", "mock", script=name, root=tmp_path))


def test_the_first_rule_that_fits_answers(tmp_path):
    agent = mock(
        tmp_path,
        {"role": "cycle.*", "reply": "a cycle"},
        {"action": "*/final.md", "reply": "final"},
        {"prompt": "^fix (?P<what>\\w+)", "reply": '{"fixed": "{what}", "by": "{role}", "{x}": {}}'},
        {"attempt": 2, "reply": "second"},
        {"reply": "otherwise"},
    )
    role = "review.lead"
    assert ask(agent, request(tmp_path, role="cycle.ra")).text == "a cycle"
    assert ask(agent, request(tmp_path, action="round-1/final.md")).text == "final"
    fixed = ask(agent, request(tmp_path, "intro\nfix it", role=role)).text
    assert fixed == '{"fixed": "it", "by": "review.lead", "{x}": {}}'
    assert ask(agent, request(tmp_path, attempt=2)).text == "second"
    assert ask(agent, request(tmp_path)).text == "otherwise"


def test_a_rule_applies_as_often_as_it_says(tmp_path):
    agent = mock(tmp_path, {"times": 2, "fail": "not yet {attempt}"}, {"reply": "now"})
    replies = [ask(agent, request(tmp_path)) for _ in range(3)]
    assert [reply.ended for reply in replies] == [Ended.FAILED, Ended.FAILED, Ended.DONE]
    assert replies[0].error == "not yet 1"


def test_it_edits_in_its_workspace(tmp_path):
    agent = mock(tmp_path, {"files": {"src/{role}.txt": "by {role}", "old.txt": False}, "reply": "done"})
    asked = request(tmp_path, role="cycle.cd")
    (asked.cwd / "old.txt").write_text("old")
    assert ask(agent, asked).ended is Ended.DONE
    assert (asked.cwd / "src" / "cycle.cd.txt").read_text() == "by cycle.cd"
    assert not (asked.cwd / "old.txt").exists()


@pytest.mark.parametrize("name", ["../out.txt", "/etc/x", "link/out.txt"])
def test_it_never_edits_outside_of_it(tmp_path, name):
    asked = request(tmp_path)
    (asked.cwd / "link").symlink_to(tmp_path)
    with pytest.raises(UnsafePath):
        ask(mock(tmp_path, {"files": {name: "x"}, "reply": "done"}), asked)
    assert not (tmp_path / "out.txt").exists()


def test_it_parks_counts_and_thinks(tmp_path):
    usage = {"input_tokens": 1, "output_tokens": 2, "usd": 0.5}
    parked = ask(mock(tmp_path, {"park_s": 60}), request(tmp_path))
    assert parked.ended is Ended.PARKED
    assert 50 < (parked.until - datetime.now(UTC)).total_seconds() < 61
    began = time.monotonic()
    counted = ask(mock(tmp_path, {"reply": "x", "usage": usage, "seconds": 0.2}), request(tmp_path))
    assert counted.usage == Usage(1, 2, 0, 0.5)
    assert time.monotonic() - began >= 0.2
    slow = mock(tmp_path, {"reply": "x", "seconds": 60})
    assert ask(slow, request(tmp_path, clocks=Clocks(wall_s=0.1))).ended is Ended.TIMED_OUT


def test_a_script_may_be_toml_and_its_replies_files(tmp_path):
    (tmp_path / "answer.md").write_text("from a file for {action}")
    (tmp_path / "s.toml").write_text('[[rules]]\nreply_file = "answer.md"\n')
    agent = MockAgent(AgentSettings("m", "mock", script="s.toml", root=tmp_path))
    assert ask(agent, request(tmp_path, action="a.md")).text == "from a file for a.md"


def test_a_request_that_no_rule_fits_fails_and_is_named(tmp_path):
    reply = ask(mock(tmp_path, {"role": "nobody", "reply": "x"}), request(tmp_path))
    assert reply.ended is Ended.FAILED
    assert "review.reviewer.principal-1" in reply.error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "does not parse"),
        ("{}", "no list 'rules'"),
        ('{"rules": [3]}', "rule 1 is not a table"),
        ('{"rules": [{"replay": "x"}]}', "replay is not a setting"),
        ('{"rules": [{"reply": 3}]}', "reply = 3 must be str"),
        ('{"rules": [{"times": true}]}', "times = True must be int"),
        ('{"rules": [{"prompt": "("}]}', "rule 1"),
        ('{"rules": [{"usage": {"coins": 3}}]}', "coins"),
        ('{"rules": [{"files": {"a": 3}}]}', "files holds 3"),
    ],
)
def test_a_bad_script_is_named_with_its_rule(tmp_path, text, words):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(ConfigError, match=r"agents\.m\.script") as caught:
        MockAgent(AgentSettings("m", "mock", script="s.json", root=tmp_path))
    assert words in str(caught.value)


def test_a_missing_script_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.json' cannot be read"):
        MockAgent(AgentSettings("m", "mock", script="nowhere.json", root=tmp_path))


def test_checks_without_an_analyser_for_the_role_say_so(tmp_path):
    reply = ask(build_checks(AgentSettings("checks", "checks")), request(tmp_path, role="nothing.at.all"))
    assert reply.ended is Ended.FAILED
    assert "no analysers for 'nothing.at.all'" in reply.error


def test_more_analysers_at_once_than_there_are_threads_all_come_to_their_end(tmp_path):
    all_there = threading.Barrier(3, timeout=10)

    def analyse(asked, programs):
        all_there.wait()
        return programs(["echo", asked.action])[1]

    async def ask_all():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        asked = [request(tmp_path, action=n, spool=tmp_path / n, clocks=Clocks(10)) for n in "abc"]
        return await asyncio.gather(*(ChecksAgent("it", analyse).run(r, lambda _: None) for r in asked))

    assert [r.text for r in asyncio.run(ask_all())] == ["a\n", "b\n", "c\n"]


def test_every_kind_comes_through_the_same_door():
    assert {"checks", "claude", "codex", "command", "gemini", "manual", "mock", "opencode"} <= set(kinds())
    agent = build(AgentSettings("x", "command", command=("true",)))
    assert (agent.name, agent.kind) == ("x", "command")


def test_an_unknown_kind_is_named_with_those_there_are():
    with pytest.raises(
        ConfigError, match=r"agents\.x\.kind: no agent kind 'clod'; there are: .*claude, codex"
    ):
        build(AgentSettings("x", "clod"))


def test_the_vendors_clis_are_found_in_order_of_preference(tmp_path):
    for name in ("opencode", "claude", "gemini"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert detect(str(tmp_path)) == ["claude", "gemini", "opencode"]
    assert detect(str(tmp_path / "none")) == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("a = bytearray(3 << 30)", "status 1"),
        ("while True: pass", "was ended"),
    ],
    ids=["memory", "time"],
)
def test_a_program_of_an_analyser_has_limits_of_time_and_memory(tmp_path, code, words):
    def analyse(_asked, programs):
        return f"status {programs([sys.executable, '-S', '-c', code], timeout_s=2)[0]}"

    reply = ask(ChecksAgent("it", analyse), request(tmp_path))
    assert words in (reply.text or reply.error)
