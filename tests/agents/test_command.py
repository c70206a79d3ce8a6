"""The public contract of a command agent."""

import json
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rondel.agents.base import AgentSettings, Beat, Clocks
from rondel.agents.command import CommandAgent, _Said
from rondel.agents.words import pinned
from rondel.errors import ConfigError
from rondel.model.actions import Access
from rondel.model.outcomes import Ended, Usage
from rondel.sandbox.box import Box, Kind
from rondel.testing.conformance import ask, request
from support.children import TAG, alive, fake


def agent(*command: str, tag: str = "", **changes) -> CommandAgent:
    env = {TAG: tag, **changes.pop("env", {})}
    return CommandAgent(AgentSettings("fake", "command", command=command, env=env, **changes))


def python(script: str, **changes) -> CommandAgent:
    return agent(sys.executable, "-c", script, **changes)


def test_it_finds_prompt_workspace_and_its_names(tmp_path):
    script = """
import json, os, sys
names = {k: v for k, v in os.environ.items() if k.startswith("RONDEL_") and k != "RONDEL_CHILD"}
names.pop("RONDEL_TEST_TAG")
print(json.dumps({"prompt": sys.stdin.read(), "cwd": os.getcwd(), "names": names}))
"""
    reply = ask(python(script), request(tmp_path, "the prompt\n", attempt=2))
    assert json.loads(reply.text) == {
        "prompt": "the prompt\n",
        "cwd": str(tmp_path / "work"),
        "names": {
            "RONDEL_ROLE": "review.reviewer.principal-1",
            "RONDEL_SESSION": "review:2026-11-15-main",
            "RONDEL_ACTION": "rounds/round-1/reviews/principal-1.md",
            "RONDEL_ATTEMPT": "2",
        },
    }


def test_its_environment_is_clean_but_for_what_was_configured(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "passed")
    monkeypatch.setenv("OTHER_TOKEN", "kept back")
    monkeypatch.setenv("CLAUDECODE", "1")
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    reply = ask(python(script, env={"NAME": "value"}, pass_env=("GITHUB_TOKEN",)), request(tmp_path))
    env = json.loads(reply.text)
    assert (env["NAME"], env["GITHUB_TOKEN"]) == ("value", "passed")
    assert not {"OTHER_TOKEN", "CLAUDECODE"} & set(env)


def test_the_reply_is_standard_output_to_the_letter(tmp_path):
    reply = ask(python("print('  one\\n\\ntwo  ')"), request(tmp_path))
    assert reply.text == "  one\n\ntwo  \n"


def test_a_status_other_than_0_is_a_failure_with_the_last_words(tmp_path):
    reply = ask(agent(*fake("fails")), request(tmp_path))
    assert (reply.ended, reply.exit_code, reply.text) == (Ended.FAILED, 3, "")
    assert reply.error == "it exited with status 3: one\ntwo\nthe model is on fire"


def test_only_the_end_of_a_long_complaint_is_kept(tmp_path):
    script = "import sys\nfor n in range(9999): print('line', n, file=sys.stderr)\nsys.exit(1)"
    error = ask(python(script), request(tmp_path)).error
    assert error.endswith("line 9998")
    assert len(error) < 3000


def test_saying_nothing_is_a_failure(tmp_path):
    reply = ask(agent(*fake("exits_0_with_nothing")), request(tmp_path))
    assert reply.ended is Ended.FAILED
    assert "said nothing" in reply.error


def test_blank_lines_are_nothing(tmp_path):
    assert ask(python("print('  \\n ')"), request(tmp_path)).ended is Ended.FAILED


def test_bytes_that_are_not_utf8_are_replaced(tmp_path):
    reply = ask(agent(*fake("invalid_utf8")), request(tmp_path))
    assert (reply.ended, reply.text) == (Ended.DONE, "caf\ufffd \ufffd\ufffd ok\n")


def test_truncated_json_is_handed_on_as_it_is(tmp_path):
    reply = ask(agent(*fake("truncated_json")), request(tmp_path))
    assert (reply.ended, reply.text) == (Ended.DONE, '{"type":"result","text":"hal')


def test_death_by_a_signal_is_named(tmp_path):
    reply = ask(agent(*fake("dies_by_a_signal")), request(tmp_path))
    assert reply.ended is Ended.FAILED
    assert "SIGSEGV" in reply.error


def test_a_usage_limit_parks_until_its_time(tmp_path):
    reply = ask(agent(*fake("reports_a_usage_limit")), request(tmp_path))
    assert (reply.ended, reply.exit_code) == (Ended.PARKED, 75)
    assert reply.until is not None
    assert timedelta(minutes=30) < reply.until - datetime.now(UTC) < timedelta(hours=1)
    assert reply.error == "limit reached"


@pytest.mark.parametrize(
    ("said", "status", "ended"),
    [
        ("RONDEL_PARK 2030-01-01T12:00:00Z", 1, Ended.FAILED),
        ("RONDEL_PARK 2030-01-01T12:00:00Z", 0, Ended.DONE),
        ("no such line", 75, Ended.FAILED),
        ("RONDEL_PARK tomorrow", 75, Ended.FAILED),
        ("RONDEL_PARK 2030-01-01T12:00:00+02:00", 75, Ended.PARKED),
    ],
)
def test_parking_takes_both_the_line_and_the_status(tmp_path, said, status, ended):
    script = f"import sys; print('x'); print({said!r}, file=sys.stderr); sys.exit({status})"
    assert ask(python(script), request(tmp_path)).ended is ended


def test_usage_comes_from_the_last_line_of_standard_error(tmp_path):
    script = """
import sys
print("hello")
print('RONDEL_USAGE {"input_tokens": 9, "output_tokens": 9, "usd": 9}', file=sys.stderr)
print('RONDEL_USAGE {"input_tokens": 10, "output_tokens": 20, "usd": 0.25}', file=sys.stderr)
"""
    reply = ask(python(script), request(tmp_path))
    assert reply.usage == Usage(10, 20, 0, 0.25)
    assert reply.raw_usage == {"input_tokens": 10, "output_tokens": 20, "usd": 0.25}


def test_its_words_give_no_orders_to_a_terminal(tmp_path):
    script = r"""import sys; print("\x1b]0;owned\x07\x1b[2Jhi", file=sys.stderr, flush=True); sys.exit(3)"""
    beats: list[Beat] = []
    reply = ask(python(script), request(tmp_path), beats)
    assert reply.error == "it exited with status 3: hi"
    assert [beat.text for beat in beats] == ["hi"]


def test_usage_counts_also_for_a_failure(tmp_path):
    script = "import sys; print('RONDEL_USAGE {\"input_tokens\": 7}', file=sys.stderr); sys.exit(1)"
    assert ask(python(script), request(tmp_path)).usage == Usage(7, 0, 0, None)


def test_usage_that_is_not_the_last_line_is_not_usage():
    assert _Said('RONDEL_USAGE {"input_tokens": 7}\nbye').usage is None


@pytest.mark.parametrize(
    ("script", "uncounted"), [("print('x')", 1), ("import sys; print('x'); sys.exit(1)", 0)]
)
def test_an_answer_of_which_nobody_says_what_it_used_is_one_that_is_not_counted(tmp_path, script, uncounted):
    assert ask(python(script), request(tmp_path)).usage == Usage(uncounted=uncounted)


@given(st.text(max_size=200))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_usage_line_ever_breaks_it(text):
    said = _Said(f"RONDEL_USAGE {text}\nRONDEL_PARK {text}")
    assert said.usage is None or said.usage.tokens >= 0


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
@example(10**400)
@example(1e300)
def test_no_usage_value_ever_breaks_it(value):
    line = json.dumps({"input_tokens": value, "output_tokens": value, "usd": value})
    usage = _Said(f"RONDEL_USAGE {line}").usage
    assert 0 <= usage.tokens < 1e16
    assert usage.usd is None or usage.usd >= 0


def test_both_clocks_name_themselves(tmp_path, tag):
    hang = agent(*fake("hangs_silently"), tag=tag)
    idle = ask(hang, request(tmp_path, clocks=Clocks(wall_s=30, idle_s=0.4)))
    wall = ask(hang, request(tmp_path, clocks=Clocks(wall_s=0.4, idle_s=30)))
    assert (idle.ended, wall.ended) == (Ended.TIMED_OUT, Ended.TIMED_OUT)
    assert "no output for 0.4 s (idle_s)" in idle.error
    assert "not done after 0.4 s (timeout_s)" in wall.error


@pytest.mark.slow
def test_200_mb_of_answer_is_a_failure_within_bounds(tmp_path, tag):
    reply = ask(agent(*fake("prints_200_mb"), tag=tag), request(tmp_path))
    assert reply.ended is Ended.FAILED
    assert "printed more than may be kept" in reply.error
    assert (tmp_path / "spool" / "out").stat().st_size == 50_000_000


def test_grandchildren_do_not_outlive_the_answer(tmp_path, tag):
    reply = ask(agent(*fake("leaves_grandchildren"), tag=tag), request(tmp_path))
    assert reply.ended is Ended.DONE
    assert "the answer\n" in reply.text
    assert alive(tag) == []


def test_what_it_says_is_shown_as_it_comes(tmp_path):
    beats: list[Beat] = []
    ask(python("import sys; print('out'); print('err', file=sys.stderr)"), request(tmp_path), beats)
    assert {beat.text for beat in beats} == {"out", "err"}


def test_a_program_beside_the_settings_is_found_from_any_workspace(tmp_path):
    (tmp_path / "agent.py").write_text("print('mine')")
    request(tmp_path)
    (tmp_path / "work" / "agent.py").write_text("print('brought by a checkout')")
    reply = ask(agent(sys.executable, "agent.py", beside=tmp_path), request(tmp_path))
    assert reply.text == "mine\n"


def test_a_script_that_a_line_runs_is_the_one_beside_the_settings(tmp_path):
    for folder, says in {tmp_path: "mine", tmp_path / "work": "brought by a checkout"}.items():
        (folder / "tools").mkdir(parents=True, exist_ok=True)
        (folder / "tools/agent.sh").write_text(f"echo {says}; cat README.md")
    (tmp_path / "work/README.md").write_text("of the checkout")
    reply = ask(agent("bash tools/agent.sh", beside=tmp_path), request(tmp_path))
    assert reply.text == "mine\nof the checkout"


def test_no_module_comes_from_the_working_copy(tmp_path):
    own, work = tmp_path / "own", tmp_path / "work"
    own.mkdir()
    work.mkdir()
    (work / "myrev.py").write_text("print('brought by a checkout')")
    words = (sys.executable, "-m", "myrev")
    reply = ask(agent(*words), request(tmp_path))
    assert reply.ended is Ended.FAILED
    assert "No module is taken from the working copy" in reply.error
    (own / "myrev.py").write_text("print('mine')")
    assert ask(agent(*words, env={"PYTHONPATH": str(own)}), request(tmp_path)).text == "mine\n"


@pytest.mark.parametrize("named", ["agent.py", "~/.config/rondel/agent.py", "{home}/.config/rondel/agent.py"])
@pytest.mark.parametrize("line", [False, True])
def test_a_script_beside_the_settings_is_shown_however_it_is_named(tmp_path, monkeypatch, named, line):
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = tmp_path / ".config/rondel"
    settings.mkdir(parents=True)
    (settings / "agent.py").write_text("print('here')\n")
    (tmp_path / "other.py").write_text("print('here')\n")
    for name, place in ((named, settings / "agent.py"), ("~/other.py", None), ("~root/agent.py", None)):
        words = ("python3", name.format(home=tmp_path))
        command, scripts = pinned((" ".join(words),) if line else words, settings)
        assert scripts == ((place,) if place else ())
        if place:
            assert " ".join(command) == f"python3 {place}"


def test_a_script_finds_the_modules_beside_it(tmp_path):
    (tmp_path / "agent.py").write_text("import helper")
    (tmp_path / "helper.py").write_text("print('mine')")
    reply = ask(agent(sys.executable, "agent.py", beside=tmp_path), request(tmp_path))
    assert reply.text == "mine\n"


def test_one_string_is_a_shell_command(tmp_path):
    assert ask(agent("cat | tr a-z A-Z"), request(tmp_path)).text == "SAY PONG"


def test_a_program_that_is_missing_is_named(tmp_path):
    missing = agent("no-such-agent")
    assert missing.version() is None
    reply = ask(missing, request(tmp_path))
    assert reply.ended is Ended.FAILED
    assert "cannot start 'no-such-agent'" in reply.error


def test_without_a_command_it_cannot_be_configured():
    with pytest.raises(ConfigError, match=r"agents\.fake\.command is missing"):
        agent()


def test_an_answer_cut_off_by_the_driver_s_death_is_not_recovered(tmp_path):
    asked = request(tmp_path)
    made = python("print('half')")
    ask(made, asked)
    record = json.loads((asked.spool / "exit.json").read_text())
    (asked.spool / "exit.json").write_text(json.dumps({**record, "reason": "lost"}))
    assert made.recover(asked) is None


@pytest.mark.parametrize(
    ("access", "kind"), [(Access.NONE, Kind.READER), (Access.READ, Kind.READER), (Access.WRITE, Kind.EDITOR)]
)
def test_who_edits_has_other_caches_than_who_reads(tmp_path, access, kind):
    confined = request(tmp_path, access=access, box=Box(cache="/c")).confined()
    assert (confined.kind, confined.cache) == (kind, f"/c/{kind}")
