"""What a CLI asked, whatever its dialect, and what it is answered."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tool:
    """A tool the CLI offers to the model."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    freeform: bool = False  # takes one text, not JSON
    namespace: str | None = None

    @property
    def properties(self) -> Mapping[str, Any]:
        found = self.schema.get("properties")
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True)
class Asked:
    """One request to the model."""

    scenario: str
    dialect: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    model: str = ""
    system: str = ""
    user: str = ""  # the last message of the user
    history: str = ""  # every text of the conversation so far, tool results included
    results: tuple[str, ...] = ()  # what the tools gave after the last user message
    step: int = 0  # rounds of tool results after the last user message
    tools: tuple[Tool, ...] = ()
    stream: bool = False

    @property
    def side(self) -> bool:
        """A call without tools: a title, a router. It is no part of the script."""
        return not self.tools

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def mentions(self, pattern: str) -> bool:
        return re.search(pattern, self.system + "\n" + self.history) is not None


@dataclass(frozen=True)
class Call:
    """A tool call in an answer."""

    name: str
    input: Mapping[str, Any] | str  # a text for a freeform tool
    namespace: str | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:20])


@dataclass(frozen=True)
class Answer:
    """What the model says: a text, tool calls, and what it is billed at."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    input_tokens: int = 1000
    output_tokens: int = 50


def text_of(content: object) -> str:
    """The readable part of a message's content, in any dialect."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return text_of(content.get("text") or content.get("content") or content.get("output") or "")
    if isinstance(content, list):
        return "\n".join(filter(None, (text_of(part) for part in content)))
    return ""
