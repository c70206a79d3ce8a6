"""The server: one thread per request, loopback only, nothing shared but the scripts."""

from __future__ import annotations

import gzip
import json
import select
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any, Self
from urllib.parse import urlsplit

from modelserver import anthropic, chat, gemini, responses
from modelserver.asked import Answer, Asked
from modelserver.scenarios import Scenario, Script, answer

DIALECTS: Mapping[str, ModuleType] = {
    "responses": responses,
    "anthropic": anthropic,
    "chat": chat,
    "gemini": gemini,
}


class FakeModel:
    """A model that says what a script tells it to."""

    def __init__(self) -> None:
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._scenarios: dict[str, Scenario] = {}
        self._asked: list[Asked] = []
        self._strays: list[str] = []
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.model = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    def script(self, name: str, script: Script) -> str:
        """Set what the scenario says from now on; gives its base URL."""
        with self._lock:
            self._scenarios[name] = Scenario.of(script)
        return self.url(name)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/s/{name}"

    def requests(self, name: str) -> list[Asked]:
        """The requests that are part of the script, in the order they came."""
        return [asked for asked in self.all_requests(name) if not asked.side]

    def all_requests(self, name: str) -> list[Asked]:
        with self._lock:
            return [asked for asked in self._asked if asked.scenario == name]

    @property
    def strays(self) -> list[str]:
        """Requests nobody scripted: `METHOD path`."""
        with self._lock:
            return list(self._strays)

    def stray(self, line: str) -> None:
        with self._lock:
            self._strays.append(line)

    def reply(self, asked: Asked) -> tuple[Answer | None, Mapping[str, Any] | None]:
        """What to say, and what goes wrong instead or meanwhile."""
        with self._lock:
            self._asked.append(asked)
            scenario = self._scenarios.get(asked.scenario)
            if scenario is None:
                return None, {"status": 404, "message": f"no scenario {asked.scenario!r}"}
            if asked.side:
                return Answer(scenario.side_text, (), *scenario.usage), None
            scenario.main += 1
            if scenario.main > scenario.max_main:
                return None, {"status": 400, "message": f"runaway: over {scenario.max_main} requests"}
            fault = scenario.next_fault()
        step = scenario.step(asked)
        return answer(step, asked, scenario.usage), fault or step.get("fault")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    model: FakeModel

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is the normal end of a hang."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Silent: the requests are recorded."""

    def do_GET(self) -> None:
        self._stray({"data": [], "models": []}, 200 if self.path.split("?")[0].endswith("/models") else 404)

    def do_HEAD(self) -> None:
        self._stray({}, 200)

    def do_POST(self) -> None:
        raw = self._read_body()
        path = urlsplit(self.path).path
        _, _, rest = path.partition("/s/")
        scenario = rest.partition("/")[0]
        name = next((name for name, dialect in DIALECTS.items() if dialect.reads(path)), None)
        if name is None or not scenario:
            self._stray({"error": {"message": "not scripted"}}, 404)
            return
        dialect = DIALECTS[name]
        other = dialect.other(path)
        if other is not None:
            self._send(200, other)
            return
        body = json.loads(raw or b"{}")
        asked = Asked(scenario, name, path, dict(self.headers.items()), body, **dialect.read(body, path))
        said, fault = self.server.model.reply(asked)
        if fault is None and said is not None:
            self._say(dialect, said, asked)
        else:
            self._go_wrong(dialect, said, asked, fault or {})

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw

    def _stray(self, body: Mapping[str, Any], status: int) -> None:
        self.server.model.stray(f"{self.command} {self.path}")
        self._send(status, body)

    def _say(self, dialect: ModuleType, said: Answer, asked: Asked) -> None:
        if asked.stream:
            self._send_bytes(200, b"".join(dialect.events(said, asked.model)), "text/event-stream")
        else:
            self._send(200, dialect.whole(said, asked.model))

    def _go_wrong(
        self, dialect: ModuleType, said: Answer | None, asked: Asked, fault: Mapping[str, Any]
    ) -> None:
        if "status" in fault:
            headers = dict(fault.get("headers", {}))
            if "retry_after" in fault:
                headers["Retry-After"] = str(fault["retry_after"])
            body = fault.get("error") or dialect.error(
                fault["status"], fault.get("message", f"scripted {fault['status']}")
            )
            self._send(fault["status"], body, headers)
        elif fault.get("drop"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif "hang" in fault:
            self._hang(dialect, said or Answer("…"), asked, mid=fault["hang"] == "mid")
        else:
            self._send_bad(dialect, said or Answer("…"), asked, fault.get("bad", "html"))

    def _hang(self, dialect: ModuleType, said: Answer, asked: Asked, *, mid: bool) -> None:
        if mid:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"".join(list(dialect.events(said, asked.model))[:2]))
            self.wfile.flush()
        self.close_connection = True
        while not self.server.model.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.1)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return

    def _send_bad(self, dialect: ModuleType, said: Answer, asked: Asked, bad: str) -> None:
        whole = b"".join(dialect.events(said, asked.model))
        wrong = {
            "json": b'data: {"broken": \n\n' + whole,
            "html": b"<html><body>gateway</body></html>",
            "empty": b"",
            "truncate": whole[: len(whole) // 2],
        }
        self._send_bytes(200, wrong[bad], "text/html" if bad == "html" else "text/event-stream")

    def _send(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        self._send_bytes(status, json.dumps(body).encode(), "application/json", headers)

    def _send_bytes(
        self, status: int, data: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
