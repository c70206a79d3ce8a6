"""Anthropic Messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from modelserver.asked import Answer, Tool, text_of


def reads(path: str) -> bool:
    return path.endswith(("/messages", "/messages/count_tokens"))


def read(body: Mapping[str, Any], path: str) -> dict[str, Any]:
    user, step, texts, results = "", 0, [], []
    for message in body.get("messages", ()):
        content = message.get("content")
        texts.append(text_of(content))
        if message.get("role") != "user":
            continue
        given = [p for p in content if p.get("type") == "tool_result"] if isinstance(content, list) else []
        if given:
            step += 1
            results += [text_of(part.get("content")) for part in given]
        spoken = text_of(_spoken(content) if given else content)
        if spoken:
            user, step, results = spoken, 0, []
    tools = [Tool(t["name"], t.get("input_schema", {})) for t in body.get("tools", ()) if "name" in t]
    return {
        "model": body.get("model", ""),
        "system": text_of(body.get("system", "")),
        "user": user,
        "history": "\n".join(texts),
        "results": tuple(results),
        "step": step,
        "tools": tuple(tools),
        "stream": bool(body.get("stream")),
    }


def _spoken(content: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What a user said after tool results, in the same message; what a CLI put there is no word of theirs."""
    last = max(n for n, part in enumerate(content) if part.get("type") == "tool_result")
    said = [part for part in content[last + 1 :] if part.get("type") == "text"]
    return [part for part in said if not part["text"].lstrip().startswith("<system-reminder>")]


def other(path: str) -> Mapping[str, Any] | None:
    """Answers that are no model call."""
    return {"input_tokens": 1000} if path.endswith("/count_tokens") else None


def whole(answer: Answer, model: str) -> Mapping[str, Any]:
    content: list[Mapping[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{c.id}", "name": c.name, "input": c.input} for c in answer.calls
    ]
    return _message(model) | {
        "content": content,
        "stop_reason": _reason(answer),
        "usage": {
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def events(answer: Answer, model: str) -> Iterator[bytes]:
    start = _message(model) | {"usage": {"input_tokens": answer.input_tokens, "output_tokens": 1}}
    yield _event("message_start", {"message": start})
    index = 0
    if answer.text:
        yield _event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
        delta = {"type": "text_delta", "text": answer.text}
        yield _event("content_block_delta", {"index": 0, "delta": delta})
        yield _event("content_block_stop", {"index": 0})
        index = 1
    for number, call in enumerate(answer.calls, index):
        block = {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": {}}
        yield _event("content_block_start", {"index": number, "content_block": block})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.input)}
        yield _event("content_block_delta", {"index": number, "delta": delta})
        yield _event("content_block_stop", {"index": number})
    end = {
        "delta": {"stop_reason": _reason(answer), "stop_sequence": None},
        "usage": {"output_tokens": answer.output_tokens},
    }
    yield _event("message_delta", end)
    yield _event("message_stop", {})


def error(status: int, message: str) -> Mapping[str, Any]:
    kinds = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}


def _message(model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid.uuid4().hex[:20]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _reason(answer: Answer) -> str:
    return "tool_use" if answer.calls else "end_turn"


def _event(name: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name} | data)}\n\n".encode()
