"""The scripted model keeps its script in every dialect, whoever asks."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

WRITE = [{"tools": [{"write": {"path": "a.txt", "content": "hi\n"}}]}, "Done."]
SCHEMA = {"type": "object", "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}}}
PATHS = {
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/m:generateContent",
}


def body(dialect: str, *, asked: str = "go", answered: bool = False, tools: bool = True) -> dict[str, object]:
    """A conversation of one question, or of one question and one tool result."""
    if dialect == "anthropic":
        messages = [{"role": "user", "content": asked}]
        result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
        use = {"type": "tool_use", "id": "t", "name": "put", "input": {}}
        more = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        offered = [{"name": "put", "input_schema": SCHEMA}]
        return {
            "model": "m",
            "system": "be good",
            "messages": messages + more * answered,
            "tools": offered * tools,
        }
    if dialect == "responses":
        items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": asked}]}]
        more = [{"type": "function_call", "name": "put"}, {"type": "function_call_output", "output": "ok"}]
        offered = [{"type": "function", "name": "put", "parameters": SCHEMA}]
        return {
            "model": "m",
            "instructions": "be good",
            "input": items + more * answered,
            "tools": offered * tools,
        }
    if dialect == "chat":
        messages = [{"role": "system", "content": "be good"}, {"role": "user", "content": asked}]
        more = [{"role": "assistant", "content": None}, {"role": "tool", "content": "ok"}]
        offered = [{"type": "function", "function": {"name": "put", "parameters": SCHEMA}}]
        return {"model": "m", "messages": messages + more * answered, "tools": offered * tools}
    contents = [{"role": "user", "parts": [{"text": asked}]}]
    response = {"functionResponse": {"name": "put", "response": {"output": "ok"}}}
    more = [{"role": "model", "parts": []}, {"role": "user", "parts": [response]}]
    offered = [{"functionDeclarations": [{"name": "put", "parameters": SCHEMA}]}]
    system = {"parts": [{"text": "be good"}]}
    return {"contents": contents + more * answered, "systemInstruction": system, "tools": offered * tools}


def post(url: str, data: object) -> tuple[int, str, dict[str, str]]:
    sent = urllib.request.Request(url, json.dumps(data).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(sent, timeout=5) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode(), dict(e.headers)


@pytest.mark.parametrize("dialect", PATHS)
def test_the_step_is_the_number_of_tool_results(model_server, dialect):
    url = model_server.script("s", WRITE) + PATHS[dialect]
    first, second = (post(url, body(dialect, answered=answered))[1] for answered in (False, True))
    assert '"put"' in first
    assert "a.txt" in first
    assert "Done." in second
    assert post(url, body(dialect))[1].count("a.txt") == first.count("a.txt")  # a retry is no step
    one, two, _ = model_server.requests("s")
    assert (one.step, two.step, two.results) == (0, 1, ("ok",)) or dialect == "gemini"
    assert (one.user, one.system, one.tools[0].name) == ("go", "be good", "put")


@pytest.mark.parametrize("dialect", PATHS)
def test_a_stream_says_the_same_as_an_answer(model_server, dialect):
    url = model_server.script("s", ["Hello there."])
    if dialect == "gemini":
        path, extra = "/v1beta/models/m:streamGenerateContent?alt=sse", {}
    else:
        path, extra = PATHS[dialect], {"stream": True}
    status, text, headers = post(url + path, body(dialect) | extra)
    assert (status, headers["Content-Type"]) == (200, "text/event-stream")
    assert "ello there." in text
    assert all(json.loads(x[6:]) for x in text.splitlines() if x.startswith("data: {"))


@pytest.mark.parametrize("dialect", PATHS)
def test_a_call_without_tools_is_no_part_of_the_script(model_server, dialect):
    url = model_server.script("s", {"steps": ["Main."], "side_text": "Side.", "faults": [{"status": 500}]})
    assert "Side." in post(url + PATHS[dialect], body(dialect, tools=False))[1]
    assert model_server.requests("s") == []
    assert len(model_server.all_requests("s")) == 1


def test_faults_come_as_often_as_they_are_scripted(model_server):
    faults = [{"status": 429, "times": 2, "retry_after": 7}]
    url = model_server.script("s", {"steps": ["ok"], "faults": faults}) + PATHS["anthropic"]
    got = [post(url, body("anthropic")) for _ in range(3)]
    assert [status for status, _, _ in got] == [429, 429, 200]
    assert got[0][2]["Retry-After"] == "7"


def test_a_branch_answers_whom_it_is_for(model_server):
    branches = [{"user": "security", "steps": ["Locked."]}, {"system": "be good", "steps": ["Good."]}]
    url = model_server.script("s", {"steps": ["Other."], "branches": branches}) + PATHS["chat"]
    assert "Locked." in post(url, body("chat", asked="review security"))[1]
    assert "Good." in post(url, body("chat", asked="review style"))[1]


def test_a_function_may_answer(model_server):
    url = model_server.script("s", lambda asked: f"You said {asked.user}.") + PATHS["responses"]
    assert "You said hi." in post(url, body("responses", asked="hi"))[1]


def test_a_runaway_is_stopped(model_server):
    url = model_server.script("s", {"steps": ["more"], "max_main": 2}) + PATHS["chat"]
    assert [post(url, body("chat"))[0] for _ in range(3)] == [200, 200, 400]


def test_what_nobody_scripted_is_noted(model_server):
    model_server.script("s", "ok")
    assert post(model_server.url("s") + "/v1/telemetry", {})[0] == 404
    assert model_server.strays == ["POST /s/s/v1/telemetry"]
