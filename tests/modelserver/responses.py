"""OpenAI Responses: function calls, freeform (custom) calls, calls in a namespace."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from modelserver.asked import Answer, Call, Tool, text_of

OUTPUTS = ("function_call_output", "custom_tool_call_output")


def reads(path: str) -> bool:
    return path.endswith("/responses")


def read(body: Mapping[str, Any], path: str) -> dict[str, Any]:
    given = body.get("input", ())
    items = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    system, user, step, texts, results = [text_of(body.get("instructions", ""))], "", 0, [], []
    more = [tool for item in items if item.get("type") == "additional_tools" for tool in item["tools"]]
    last = ""
    for item in items:
        kind, role = item.get("type", "message"), item.get("role")
        text = text_of(item.get("output") if kind in OUTPUTS else item.get("content"))
        texts.append(text)
        if role in ("system", "developer"):
            system.append(text)
        elif role == "user":
            user, step, results = text, 0, []
        elif kind in OUTPUTS:
            step += last not in OUTPUTS
            results.append(text)
        last = kind
    return {
        "model": body.get("model", ""),
        "system": "\n".join(filter(None, system)),
        "user": user,
        "history": "\n".join(filter(None, texts)),
        "results": tuple(results),
        "step": step,
        "tools": tuple(_tools([*(body.get("tools") or ()), *more])),
        "stream": bool(body.get("stream")),
    }


def _tools(offered: Any) -> Iterator[Tool]:
    for tool in offered:
        if tool.get("type") == "namespace":
            for inner in tool.get("tools", ()):
                freeform = inner.get("type") == "custom"
                yield Tool(inner["name"], inner.get("parameters", {}), freeform, tool["name"])
        elif "name" in tool:
            yield Tool(tool["name"], tool.get("parameters", {}), freeform=tool.get("type") == "custom")


def other(path: str) -> Mapping[str, Any] | None:
    return None


def whole(answer: Answer, model: str) -> Mapping[str, Any]:
    return _response(answer, model, "completed", list(_items(answer)))


def events(answer: Answer, model: str) -> Iterator[bytes]:
    shell = _response(answer, model, "in_progress", [])
    yield _event("response.created", {"response": shell})
    items = list(_items(answer))
    for index, item in enumerate(items):
        yield _event("response.output_item.added", {"output_index": index, "item": item})
        if item["type"] == "message":
            delta = {"item_id": item["id"], "output_index": index, "content_index": 0, "delta": answer.text}
            yield _event("response.output_text.delta", delta)
        yield _event("response.output_item.done", {"output_index": index, "item": item})
    done = shell | {"status": "completed", "output": items, "usage": _usage(answer)}
    yield _event("response.completed", {"response": done})


def error(status: int, message: str) -> Mapping[str, Any]:
    kinds = {429: "rate_limit_exceeded", 401: "invalid_api_key", 400: "invalid_request_error"}
    kind = kinds.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "code": kind, "param": None}}


def _items(answer: Answer) -> Iterator[dict[str, Any]]:
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        yield {
            "type": "message",
            "id": f"msg_{uuid.uuid4().hex[:20]}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    for call in answer.calls:
        yield _call(call)


def _call(call: Call) -> dict[str, Any]:
    if isinstance(call.input, str):
        kind, given = "custom_tool_call", {"input": call.input}
    else:
        kind, given = "function_call", {"arguments": json.dumps(call.input)}
    item = {"type": kind, "id": f"fc_{call.id}", "call_id": f"call_{call.id}", "name": call.name, **given}
    return item if call.namespace is None else item | {"namespace": call.namespace}


def _response(answer: Answer, model: str, status: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"resp_{uuid.uuid4().hex[:20]}",
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": model,
        "output": items,
        "usage": _usage(answer) if status == "completed" else None,
    }


def _usage(answer: Answer) -> Mapping[str, Any]:
    return {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def _event(name: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name} | data)}\n\n".encode()
