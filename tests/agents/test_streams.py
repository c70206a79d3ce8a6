"""What the vendors' streams mean: written by hand, in each vendor's own words."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rondel.agents.base import AgentSettings, Clocks, Request
from rondel.agents.roster import build
from rondel.agents.vendors.base import CliAgent
from rondel.agents.vendors.starts import Place, Start, keep_place, keep_start, mark_billed, start_of
from rondel.agents.vendors.stream import LAST_MAX, Said, Transcript
from rondel.errors import ConfigError
from rondel.model.actions import Access
from rondel.model.outcomes import Ended, Usage
from rondel.processes.runner import Exit, Reason

KINDS = ("claude", "codex", "gemini", "opencode")
CLEAN = Exit(0, None, Reason.EXITED)


def agent(kind: str, **options: object) -> CliAgent:
    return build(AgentSettings(name="it", kind=kind, **options))


def request(tmp_path: Path, **changes: object) -> Request:
    given = {
        "prompt": "?",
        "role": "review.lead",
        "session": "review:x",
        "action": "final.md",
        "attempt": 1,
        "cwd": tmp_path,
        "spool": tmp_path / "spool",
        "home": tmp_path / "home",
        "clocks": Clocks(60, 30, 10),
    }
    (tmp_path / "spool").mkdir(exist_ok=True)
    return Request(**{**given, **changes})


def reply(
    tmp_path: Path, kind: str, lines: list[object], ended: Exit = CLEAN, *, counted=None, err: str = ""
):
    it, asked = agent(kind), request(tmp_path)
    (asked.spool / "err").write_text(err)
    stream = [line.encode() if isinstance(line, str) else json.dumps(line).encode() for line in lines]
    start = Start(tmp_path, counted=counted or {})
    return it.finish(asked, start, ended, it.read(stream))


# -- the streams of one answer ---------------------------------------------------------------

ID = "5b0c1f9e-0000-4000-8000-000000000001"


def claude_result(**changes: object) -> dict[str, object]:
    model = {"inputTokens": 30, "outputTokens": 7, "cacheReadInputTokens": 5, "cacheCreationInputTokens": 2}
    given = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "The answer.",
        "session_id": ID,
        "permission_denials": [],
        "total_cost_usd": 0.5,
        "modelUsage": {"m": model},
    }
    return {**given, **changes}


def claude_stream(**changes: object) -> list[object]:
    said = {"id": "m1", "content": [{"type": "text", "text": "Let me see."}], "usage": {"input_tokens": 9}}
    return [
        {"type": "system", "subtype": "init", "session_id": ID, "model": "m"},
        {"type": "assistant", "message": said},
        claude_result(**changes),
    ]


CODEX_USAGE = {"input_tokens": 30, "cached_input_tokens": 10, "output_tokens": 7}
CODEX = [
    {"type": "thread.started", "thread_id": ID},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "i0", "type": "agent_message", "text": "Let me see."}},
    {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "ls"}},
    {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "The answer."}},
    {"type": "turn.completed", "usage": CODEX_USAGE},
]
GEMINI_STATS = {"input_tokens": 30, "cached": 10, "output_tokens": 7}
GEMINI = [
    {"type": "init", "session_id": ID, "model": "m"},
    {"type": "message", "role": "user", "content": "?"},
    {"type": "message", "role": "assistant", "content": "Let me", "delta": True},
    {"type": "message", "role": "assistant", "content": " see.", "delta": True},
    {
        "type": "tool_use",
        "tool_name": "read_file",
        "tool_id": "read_file__1",
        "parameters": {"file_path": "a"},
    },
    {"type": "tool_result", "tool_id": "read_file__1", "status": "success"},
    {"type": "message", "role": "assistant", "content": "The ans", "delta": True},
    {"type": "message", "role": "assistant", "content": "wer.", "delta": True},
    {"type": "result", "status": "success", "stats": GEMINI_STATS},
]


def step(reason: str, message: str) -> dict[str, object]:
    tokens = {"input": 10, "output": 3, "reasoning": 1, "cache": {"read": 5, "write": 2}}
    part = {"reason": reason, "messageID": message, "tokens": tokens, "cost": 0.25}
    return {"type": "step_finish", "sessionID": ID, "part": part}


OPENCODE = [
    {"type": "step_start", "sessionID": ID, "part": {"messageID": "m1"}},
    {"type": "text", "sessionID": ID, "part": {"text": "Let me see."}},
    {
        "type": "tool_use",
        "sessionID": ID,
        "part": {"tool": "read", "state": {"status": "completed", "title": "a"}},
    },
    step("tool-calls", "m1"),
    {"type": "step_start", "sessionID": ID, "part": {"messageID": "m2"}},
    {"type": "text", "sessionID": ID, "part": {"text": "The answer."}},
    step("stop", "m2"),
]
STREAMS = {"claude": claude_stream(), "codex": CODEX, "gemini": GEMINI, "opencode": OPENCODE}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_ends_well_is_an_answer(tmp_path, kind):
    got = reply(tmp_path, kind, STREAMS[kind])
    assert (got.ended, got.text, got.vendor_session, got.error) == (Ended.DONE, "The answer.", ID, "")


@pytest.mark.parametrize("kind", KINDS)
def test_banners_blanks_and_half_lines_do_no_harm(tmp_path, kind):
    junk = ["", "Update available!", "{", '{"type": "unheard-of"}', "[1, 2]", "null", '{"type": 7}']
    assert reply(tmp_path, kind, [*junk, *STREAMS[kind], *junk]).text == "The answer."


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_cut_before_its_result_is_no_answer_though_the_status_is_0(tmp_path, kind):
    got = reply(tmp_path, kind, STREAMS[kind][:-1])
    assert got.ended is Ended.FAILED
    assert got.error


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_stream_with_another_status_is_a_failure(tmp_path, kind):
    got = reply(tmp_path, kind, STREAMS[kind], Exit(3, None, Reason.EXITED), err="it broke\n")
    assert (got.ended, got.error) == (Ended.FAILED, "it broke")


@pytest.mark.parametrize("kind", KINDS)
def test_our_clock_beats_a_result(tmp_path, kind):
    got = reply(tmp_path, kind, STREAMS[kind][:-1], Exit(None, 15, Reason.IDLE))
    assert got.ended is Ended.TIMED_OUT
    assert "idle_s" in got.error


@pytest.mark.parametrize("kind", KINDS)
def test_the_colours_of_an_error_are_not_kept(tmp_path, kind):
    got = reply(tmp_path, kind, [], Exit(1, None, Reason.EXITED), err="\x1b[91m\x1b[1mError: \x1b[0mno\n")
    assert got.error == "Error: no"


# -- what each account means -----------------------------------------------------------------


def test_claude_counts_over_the_session_and_we_per_run(tmp_path):
    one = reply(tmp_path, "claude", claude_stream())
    assert (one.usage.input_tokens, one.usage.output_tokens, one.usage.cached_tokens) == (32, 7, 5)
    assert one.usage.usd == 0.5
    more = {"inputTokens": 40, "outputTokens": 9, "cacheReadInputTokens": 5, "cacheCreationInputTokens": 2}
    stream = claude_stream(total_cost_usd=0.75, modelUsage={"m": more, "small": {"inputTokens": 1}})
    two = reply(tmp_path, "claude", stream, counted=one.raw_usage)
    assert (two.usage.input_tokens, two.usage.output_tokens, two.usage.cached_tokens) == (11, 2, 0)
    assert two.usage.usd == 0.25


def test_codex_counts_over_the_thread_and_we_per_run(tmp_path):
    one = reply(tmp_path, "codex", CODEX)
    assert (one.usage.input_tokens, one.usage.output_tokens, one.usage.cached_tokens) == (20, 7, 10)
    assert one.usage.usd is None
    again = {
        "type": "turn.completed",
        "usage": {"input_tokens": 50, "cached_input_tokens": 15, "output_tokens": 9},
    }
    two = reply(tmp_path, "codex", [*CODEX[:-1], again], counted=one.raw_usage)
    assert (two.usage.input_tokens, two.usage.output_tokens, two.usage.cached_tokens) == (15, 2, 5)


def test_gemini_counts_per_run(tmp_path):
    one = reply(tmp_path, "gemini", GEMINI)
    two = reply(tmp_path, "gemini", GEMINI, counted=one.raw_usage)
    assert one.usage == two.usage
    assert (one.usage.input_tokens, one.usage.output_tokens, one.usage.cached_tokens) == (20, 7, 10)


def test_opencode_counts_per_step_and_the_steps_add_up(tmp_path):
    usage = reply(tmp_path, "opencode", OPENCODE).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.usd) == (24, 8, 10, 0.5)


def test_what_claude_used_before_our_clock_ended_it_is_counted(tmp_path):
    got = reply(tmp_path, "claude", claude_stream()[:-1], Exit(None, 15, Reason.WALL))
    assert (got.usage.input_tokens, got.usage.usd) == (9, None)


def test_what_a_cut_off_run_had_used_is_billed_with_the_one_that_goes_on(tmp_path):
    it, cut_off = agent("opencode"), tmp_path / "cut-off"
    keep_start(cut_off, Start(tmp_path))
    (cut_off / "out").write_text("\n".join(json.dumps(line) for line in OPENCODE[:4]) + "\n")
    keep_place(tmp_path / "home", "opencode", ID, Place(tmp_path, cut_off))
    start = it._start(request(tmp_path, resume=ID))
    assert (start.resumes, start.carried.input_tokens, start.carried.usd) == (True, 12, 0.25)
    keep_start(tmp_path / "spool", start)
    assert it.finish(request(tmp_path), start, CLEAN, it.read([])).usage == start.carried
    assert start_of(tmp_path / "spool") == start
    mark_billed(cut_off)
    assert it._start(request(tmp_path, resume=ID)).carried.tokens == 0


@pytest.mark.parametrize("gently", [True, False])
def test_a_cut_off_run_of_claude_is_counted_once_however_it_ended(tmp_path, gently):
    it = agent("claude")
    total = {"inputTokens": 20 if gently else 10, "outputTokens": 7}
    line = claude_result(modelUsage={"m": total}, usage={"input_tokens": 10, "output_tokens": 3})
    start = Start(tmp_path, ID, resumes=True, carried=Usage(10, 1))
    usage = it.finish(request(tmp_path), start, CLEAN, it.read([json.dumps(line).encode()])).usage
    assert (usage.input_tokens, usage.output_tokens) == (20, 7)


# -- what is no success ------------------------------------------------------------------------


def test_claude_s_error_flag_beats_its_success_word_and_its_status(tmp_path):
    got = reply(
        tmp_path, "claude", claude_stream(is_error=True, result="API Error: 500", api_error_status=500)
    )
    assert (got.ended, got.error, got.text) == (Ended.FAILED, "API Error: 500", "")


def test_of_several_results_the_last_counts(tmp_path):
    first, last = claude_result(result="Not yet."), claude_result(result="Now.")
    assert reply(tmp_path, "claude", [first, last]).text == "Now."
    assert reply(tmp_path, "claude", [first, claude_result(is_error=True, result="")]).ended is Ended.FAILED


def test_a_claude_limit_of_turns_is_a_failure(tmp_path):
    got = reply(tmp_path, "claude", claude_stream(subtype="error_max_turns", result=None))
    assert (got.ended, got.error) == (Ended.FAILED, "error_max_turns")


def test_a_denial_fails_the_answer_and_names_the_tool(tmp_path):
    denials = [{"tool_name": "Bash", "tool_input": {"command": "rm -r x"}}]
    got = reply(tmp_path, "claude", claude_stream(permission_denials=denials))
    assert got.ended is Ended.FAILED
    assert "Bash rm -r x" in got.error
    assert "agents.it.options.shell" in got.error


def test_a_patch_that_codex_refused_fails_the_answer(tmp_path):
    err = "ERROR: error=patch rejected: writing outside of the project; rejected by user approval settings\n"
    got = reply(tmp_path, "codex", CODEX, err=err)
    assert got.ended is Ended.FAILED
    assert "apply_patch (writing outside of the project)" in got.error


def test_gemini_s_error_with_status_0_is_a_failure_in_its_own_words(tmp_path):
    lost = {"type": "error", "severity": "error", "message": "The stream ended."}
    got = reply(tmp_path, "gemini", [lost, {"type": "result", "status": "error", "stats": {}}])
    assert (got.ended, got.error) == (Ended.FAILED, "The stream ended.")


def test_a_tool_that_gemini_s_policy_denied_fails_the_answer(tmp_path):
    denied = {"type": "tool_result", "tool_id": "run_shell_command__7", "error": {"type": "policy_violation"}}
    got = reply(tmp_path, "gemini", [*GEMINI[:-1], denied, GEMINI[-1]])
    assert got.ended is Ended.FAILED
    assert "run_shell_command" in got.error


def test_an_opencode_run_that_ends_at_a_rejected_tool_is_a_failure(tmp_path):
    rejected = {"status": "error", "error": "The user rejected permission to use this tool call."}
    tool = {"type": "tool_use", "sessionID": ID, "part": {"tool": "bash", "state": rejected}}
    got = reply(tmp_path, "opencode", [OPENCODE[0], tool, step("tool-calls", "m1")])
    assert got.ended is Ended.FAILED
    assert "bash" in got.error


def test_an_opencode_error_carries_its_status(tmp_path):
    error = {"name": "APIError", "data": {"message": "Slow down", "statusCode": 429}}
    got = reply(
        tmp_path,
        "opencode",
        [{"type": "error", "sessionID": ID, "error": error}],
        Exit(1, None, Reason.EXITED),
    )
    assert got.ended is Ended.PARKED


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_answer_is_a_failure(tmp_path, kind):
    empty = json.loads(
        json.dumps(STREAMS[kind]).replace("The answer.", " ").replace("The ans", "").replace("wer.", "")
    )
    got = reply(tmp_path, kind, empty)
    assert got.ended is Ended.FAILED
    assert "empty" in got.error


# -- waiting -----------------------------------------------------------------------------------


def test_a_usage_limit_of_claude_parks_until_the_time_it_names(tmp_path):
    resets = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
    event = {
        "type": "rate_limit_event",
        "rate_limit_info": {"status": "rejected", "resetsAt": resets.timestamp()},
    }
    stream = [
        event,
        claude_result(is_error=True, result="You've hit your session limit", api_error_status=429),
    ]
    got = reply(tmp_path, "claude", stream, Exit(1, None, Reason.EXITED))
    assert (got.ended, got.until) == (Ended.PARKED, resets)


def test_a_warning_about_the_limit_parks_nothing(tmp_path):
    info = {"status": "allowed_warning", "resetsAt": datetime.now(UTC).timestamp() + 60}
    got = reply(tmp_path, "claude", [{"type": "rate_limit_event", "rate_limit_info": info}, *claude_stream()])
    assert (got.ended, got.until) == (Ended.DONE, None)


def test_a_usage_limit_of_codex_parks(tmp_path):
    words = "You\u2019ve hit your usage limit. Upgrade or try again in 2 hours."
    stream = [{"type": "error", "message": words}, {"type": "turn.failed", "error": {"message": words}}]
    got = reply(tmp_path, "codex", stream, Exit(1, None, Reason.EXITED))
    assert got.ended is Ended.PARKED
    assert timedelta(minutes=119) < got.until - datetime.now(UTC) < timedelta(minutes=121)


def test_retries_are_signs_of_life_and_no_progress():
    retry = {"type": "system", "subtype": "api_retry", "error_status": 529, "error": "overloaded"}
    assert agent("claude").read([json.dumps(retry).encode()]).retrying
    again = {"type": "error", "message": "Reconnecting... 2/5"}
    assert agent("codex").read([json.dumps(again).encode()]).retrying == "Reconnecting... 2/5"
    assert not agent("codex").read([json.dumps(x).encode() for x in (again, CODEX[2])]).retrying


def test_a_wait_for_a_limit_that_our_clock_ended_is_parked(tmp_path):
    waiting = {"type": "error", "message": "Reconnecting... 1/5 (last status: 429 Too Many Requests)"}
    got = reply(tmp_path, "codex", [CODEX[0], waiting], Exit(None, 15, Reason.IDLE))
    assert got.ended is Ended.PARKED


def test_a_wait_for_a_broken_server_that_our_clock_ended_is_timed_out(tmp_path):
    waiting = {"type": "error", "message": "Reconnecting... 1/5 (high demand)"}
    got = reply(tmp_path, "codex", [CODEX[0], waiting], Exit(None, 15, Reason.IDLE))
    assert got.ended is Ended.TIMED_OUT
    assert "high demand" in got.error


# -- how they are started ------------------------------------------------------------------------


def words(
    tmp_path: Path, kind: str, access: Access = Access.WRITE, *, start: Start | None = None, **options
) -> list[str]:
    it = agent(kind, **options)
    asked = request(tmp_path, access=access)
    return it.arguments(asked, start or it._fresh(asked))


def test_a_session_has_the_same_id_in_every_driver_and_another_in_another_folder(tmp_path):
    one, same = (agent("claude")._fresh(request(tmp_path)).session for _ in range(2))
    assert one == same
    assert agent("claude")._fresh(request(tmp_path, attempt=2)).session != one
    assert agent("claude")._fresh(request(tmp_path, home=tmp_path / "other")).session != one


@pytest.mark.parametrize("kind", ["claude", "gemini"])
def test_a_session_is_named_once_and_then_resumed(tmp_path, kind):
    assert "--session-id" in words(tmp_path, kind)
    again = words(tmp_path, kind, start=Start(tmp_path, ID, resumes=True))
    assert "--session-id" not in again
    assert again[again.index("--resume") + 1] == ID


def test_a_session_that_stays_in_its_folder_is_not_resumed_in_another(tmp_path):
    it = agent("opencode")
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    keep_place(tmp_path / "home", "opencode", ID, Place(here, tmp_path / "spool"))
    assert it._start(request(tmp_path, resume=ID, cwd=here)).resumes
    assert not it._start(request(tmp_path, resume=ID, cwd=there, access=Access.WRITE)).resumes
    scratch = it._start(request(tmp_path, resume=ID, cwd=there, access=Access.NONE))
    assert (scratch.resumes, scratch.cwd) == (True, here)


@pytest.mark.parametrize("access", [Access.NONE, Access.READ])
def test_who_may_only_read_gets_no_tool_to_write_whatever_is_configured(tmp_path, access):
    shell = {"shell": ["*"]}
    claude = words(tmp_path, "claude", access, options=shell)
    assert claude[claude.index("--tools") + 1] == "Read,Grep,Glob"
    codex = words(tmp_path, "codex", access, options=shell)
    assert codex[codex.index("-s") + 1] == "read-only"
    gemini = words(tmp_path, "gemini", access, options=shell)
    assert gemini[gemini.index("--approval-mode") + 1] == "default"
    opencode = agent("opencode", options=shell)._permissions(access)
    assert opencode["*"] == "deny"
    assert not {"edit", "bash"} & opencode.keys()


def test_a_shell_that_is_not_a_list_of_commands_is_refused():
    with pytest.raises(ConfigError, match=r"agents\.it\.options\.shell"):
        agent("claude", options={"shell": "git *"})


@pytest.mark.parametrize(
    "options", [{"shell": ["*"], "shel": []}, {"trust": "yes"}, {"shell": [""]}, {"shell": {"git": 1}}]
)
def test_an_option_that_is_not_usable_is_named(options):
    with pytest.raises(ConfigError, match=r"agents\.it\.options\.(shell?|trust): "):
        agent("gemini", options=options)


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("claude", ("--dangerously-skip-permissions", "--permission-mode", "bypassPermissions")),
        ("codex", ("--dangerously-bypass-approvals-and-sandbox",)),
        ("codex", ("-s", "danger-full-access")),
        ("gemini", ("--yolo",)),
        ("gemini", ("--approval-mode=yolo",)),
        ("gemini", ("--approval-mode", "yolo")),
    ],
)
def test_a_person_s_own_permissions_are_for_those_who_edit_only(tmp_path, kind, flags):
    it = agent(kind, command=(kind, *flags, "--keep", "this"))
    assert it._words(request(tmp_path, access=Access.WRITE)) == (kind, *flags, "--keep", "this")
    assert it._words(request(tmp_path, access=Access.READ)) == (kind, "--keep", "this")
    ours = it.arguments(request(tmp_path, access=Access.WRITE), Start(tmp_path))
    assert not {"acceptEdits", "workspace-write", "auto_edit"} & set(ours)


# -- whatever comes --------------------------------------------------------------------------------

KEYS = st.sampled_from(
    [
        *("type", "subtype", "message", "content", "part", "item", "error", "result", "is_error", "usage"),
        *("id", "text", "session_id", "sessionID", "state", "tokens", "cost", "stats", "status", "cache"),
        *("modelUsage", "errors", "permission_denials", "rate_limit_info", "resetsAt", "reason", "changes"),
    ]
)
TYPES = st.sampled_from(
    [
        *("system", "init", "api_retry", "assistant", "result", "rate_limit_event", "rejected"),
        *("thread.started", "item.completed", "error", "turn.failed", "turn.completed", "agent_message"),
        *("file_change", "message", "tool_use", "tool_result", "step_start", "text", "step_finish", "stop"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(lines=st.lists(st.dictionaries(KEYS, VALUES, max_size=6) | st.binary(max_size=40), max_size=6))
def test_no_stream_breaks_an_adapter_and_none_is_billed_backwards(tmp_path_factory, kind, lines):
    it = agent(kind)
    stream = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    transcript = it.read(stream)
    usage, raw = it.bill(transcript, {})
    assert usage.tokens >= 0
    again, _ = it.bill(transcript, raw)
    assert again.tokens >= 0
    assert (usage.usd or 0) >= 0


def inflated(value: object) -> object:
    """The same, with numbers that no float can hold."""
    if isinstance(value, dict):
        return {key: inflated(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [inflated(inner) for inner in value]
    return 10**400 if isinstance(value, int | float) and not isinstance(value, bool) else value


@pytest.mark.parametrize("kind", KINDS)
def test_an_account_with_numbers_of_no_real_size_is_no_account(tmp_path, kind):
    got = reply(tmp_path, kind, [inflated(line) for line in STREAMS[kind]])
    assert (got.ended, got.text, got.usage.tokens) == (Ended.DONE, "The answer.", 0)


def test_a_long_answer_in_many_pieces_is_kept_whole_and_shown_by_its_end():
    transcript = Transcript()
    for number in range(20_000):
        transcript.add(Said(f"{number} ", more=True))
        assert len(transcript.last) <= LAST_MAX
    assert transcript.answer == "".join(f"{number} " for number in range(20_000))
    assert transcript.last.endswith("19998 19999 ")


@pytest.mark.parametrize("reason", ["lost", "cancelled", "exited", None])
def test_an_answer_that_is_whole_in_the_stream_is_taken_whoever_ended_the_process(tmp_path, reason):
    asked = request(tmp_path)
    keep_start(asked.spool, Start(tmp_path))
    (asked.spool / "out").write_text(json.dumps(claude_result()) + "\n")
    if reason is not None:
        ended = {"code": 0 if reason == "exited" else None, "signal": None, "seconds": 1, "error": ""}
        (asked.spool / "exit.json").write_text(json.dumps({**ended, "reason": reason}))
    found = agent("claude").recover(asked)
    assert found is not None
    assert found.text == "The answer."


@pytest.mark.parametrize("reason", ["lost", "cancelled"])
def test_an_answer_that_was_cut_off_is_none(tmp_path, reason):
    asked = request(tmp_path)
    keep_start(asked.spool, Start(tmp_path))
    (asked.spool / "out").write_text(json.dumps(claude_result())[:-30] + "\n")
    ended = {"code": 0, "signal": None, "seconds": 1, "error": "", "reason": reason}
    (asked.spool / "exit.json").write_text(json.dumps(ended))
    assert agent("claude").recover(asked) is None
