"""OpenAI Chat Completions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from modelserver.asked import Answer, Tool, text_of


def reads(path: str) -> bool:
    return path.endswith("/chat/completions")


def read(body: Mapping[str, Any], path: str) -> dict[str, Any]:
    system, user, step, texts, results = [], "", 0, [], []
    last = ""
    for message in body.get("messages", ()):
        role, text = message.get("role", ""), text_of(message.get("content"))
        texts.append(text)
        if role in ("system", "developer"):
            system.append(text)
        elif role == "user":
            user, step, results = text, 0, []
        elif role == "tool":
            step += last != "tool"
            results.append(text)
        last = role
    offered = [t["function"] for t in body.get("tools", ()) if "function" in t]
    return {
        "model": body.get("model", ""),
        "system": "\n".join(filter(None, system)),
        "user": user,
        "history": "\n".join(filter(None, texts)),
        "results": tuple(results),
        "step": step,
        "tools": tuple(Tool(t["name"], t.get("parameters", {})) for t in offered),
        "stream": bool(body.get("stream")),
    }


def other(path: str) -> Mapping[str, Any] | None:
    return None


def whole(answer: Answer, model: str) -> Mapping[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = _calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer)}
    return _head(model, "chat.completion") | {"choices": [choice], "usage": _usage(answer)}


def events(answer: Answer, model: str) -> Iterator[bytes]:
    head = _head(model, "chat.completion.chunk")
    if answer.text:
        yield _chunk(head, {"role": "assistant", "content": answer.text})
    if answer.calls:
        yield _chunk(head, {"role": "assistant", "tool_calls": _calls(answer)})
    yield _chunk(head, {}, _reason(answer))
    yield _data(head | {"choices": [], "usage": _usage(answer)})
    yield b"data: [DONE]\n\n"


def error(status: int, message: str) -> Mapping[str, Any]:
    return {"error": {"message": message, "type": f"status_{status}", "code": str(status)}}


def _calls(answer: Answer) -> list[Mapping[str, Any]]:
    return [
        {
            "index": number,
            "id": f"call_{call.id}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.input)},
        }
        for number, call in enumerate(answer.calls)
    ]


def _head(model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex[:20]}", "object": kind, "created": 0, "model": model}


def _usage(answer: Answer) -> Mapping[str, int]:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def _reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _chunk(head: Mapping[str, Any], delta: Mapping[str, Any], reason: str | None = None) -> bytes:
    return _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def _data(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()
