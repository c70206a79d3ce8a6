"""Gemini: generateContent and streamGenerateContent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from modelserver.asked import Answer, Tool, text_of


def reads(path: str) -> bool:
    return re.search(r":(generateContent|streamGenerateContent|countTokens)$", path) is not None


def read(body: Mapping[str, Any], path: str) -> dict[str, Any]:
    user, step, texts, results = "", 0, [], []
    for content in body.get("contents", ()):
        parts = content.get("parts", ())
        given = [part["functionResponse"] for part in parts if "functionResponse" in part]
        text = text_of([part for part in parts if not part.get("thought")])
        texts += [text, *(json.dumps(response.get("response")) for response in given)]
        if content.get("role") != "user":
            continue
        if given:
            step += 1
            results += [json.dumps(response.get("response")) for response in given]
        else:
            user, step, results = text, 0, []
    declared = [d for tool in body.get("tools", ()) for d in tool.get("functionDeclarations", ())]
    return {
        "model": re.sub(r".*/models/([^:]+):.*", r"\1", path),
        "system": text_of(body.get("systemInstruction", {}).get("parts", "")),
        "user": user,
        "history": "\n".join(filter(None, texts)),
        "results": tuple(results),
        "step": step,
        "tools": tuple(
            Tool(d["name"], d.get("parametersJsonSchema") or d.get("parameters") or {}) for d in declared
        ),
        "stream": ":stream" in path,
    }


def other(path: str) -> Mapping[str, Any] | None:
    return {"totalTokens": 1000} if path.endswith(":countTokens") else None


def whole(answer: Answer, model: str) -> Mapping[str, Any]:
    parts: list[Mapping[str, Any]] = [{"text": answer.text}] if answer.text else []
    parts += [{"functionCall": {"id": c.id, "name": c.name, "args": c.input}} for c in answer.calls]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": answer.input_tokens,
            "candidatesTokenCount": answer.output_tokens,
            "totalTokenCount": answer.input_tokens + answer.output_tokens,
        },
        "modelVersion": model,
    }


def events(answer: Answer, model: str) -> Iterator[bytes]:
    if answer.text:
        content = {"role": "model", "parts": [{"text": answer.text[:1]}]}
        yield _data({"candidates": [{"content": content, "index": 0}], "modelVersion": model})
    rest = Answer(answer.text[1:], answer.calls, answer.input_tokens, answer.output_tokens)
    yield _data(whole(rest, model))


def error(status: int, message: str) -> Mapping[str, Any]:
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
    return {"error": {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}}


def _data(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()
