"""The way out of a child's own network: a proxy that lets through what is on a list, and nothing else.

The child, before it is its program, listens on the loopback of its own network and hands these
sockets to the driver, which accepts on them and opens connections in the machine's network. So nothing
of ours runs inside, and names are resolved outside. A port of the machine's loopback that is on the
list is the same port inside; all else goes by `CONNECT`, or by a plain request for a target without TLS.
Of TLS, only the name is looked at: one address may serve many.
"""

from __future__ import annotations

import asyncio
import base64
import re
import socket
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from rondel.sandbox.hosts import Target, is_host, of_url, plain_host

PORT = 61_080  # inside: beyond the ports that programs are given by chance
HEAD_MAX = 64 * 1024
HELLO_MAX = 64 * 1024
HEAD_S = 60.0  # within this a connection says where it wants to go
CONNECT_S = 60.0
CONNECTIONS_MAX = 50  # at once; others wait, so that the driver has open files left
REFUSED_MAX = 20
_CHUNK = 1 << 16
_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_NO_PROXY = "localhost,127.0.0.1,::1"
_CONNECT = re.compile(rb"CONNECT (\S{1,300}):(\d{1,5}) HTTP/1\.[01]\r\n")
_PLAIN = re.compile(rb"([A-Z]{1,20}) (http://\S{1,60000}) HTTP/1\.[01]\r\n", re.IGNORECASE)
_HOP = re.compile(rb"^(?:proxy-[\w-]+|connection|keep-alive|host):.*\r\n", re.IGNORECASE | re.MULTILINE)

_NAMES, _ENCRYPTED = 0x0000, 0xFE0D  # extensions of a greeting: server_name, encrypted_client_hello
_HOST_NAME = b"\0"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def environment(env: Mapping[str, str], targets: Sequence[Target]) -> dict[str, str]:
    """A child's variables, with the proxy that it has inside, or none, in place of those outside."""
    theirs = {name for name in env if name.upper() in (*_VARIABLES, "NO_PROXY")}
    kept = {name: value for name, value in env.items() if name not in theirs}
    if not targets:
        return kept
    ours = dict.fromkeys(_VARIABLES, f"http://127.0.0.1:{proxy_port(targets)}") | {"NO_PROXY": _NO_PROXY}
    return {
        **kept,
        **ours,
        **{name.lower(): value for name, value in ours.items()},
        "NODE_USE_ENV_PROXY": "1",
    }


def proxy_port(targets: Sequence[Target]) -> int:
    """Where inside the proxy listens: not where the machine's own loopback is to be found."""
    taken = {one.port for one in targets if one.is_loopback}
    return next(port for port in range(PORT, 65_536) if port not in taken)


def ports(targets: Sequence[Target]) -> list[int]:
    """Every port of the child's loopback that is ours; none where nothing may be reached."""
    loopback = {one.port for one in targets if one.is_loopback}
    return [proxy_port(targets), *sorted(loopback)] if targets else []


class Ambiguous(ValueError):
    """A greeting whose name another reader may take for another one."""


@dataclass(frozen=True)
class _Asked:
    """What a client asks the proxy for; `first` is what goes to the other side before all else."""

    host: str
    port: int
    tunnel: bool
    first: bytes = b""


def asked(head: bytes) -> _Asked | None:
    """What the head of a request asks for; None for what the proxy does not know."""
    if found := _CONNECT.match(head):
        name = plain_host(found[1].decode("latin-1"))
        return _Asked(name, int(found[2]), tunnel=True) if is_host(name) else None
    if (found := _PLAIN.match(head)) and (place := of_url(url := found[2].decode("latin-1"))):
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        line = found[1] + b" " + path.encode("latin-1") + b" HTTP/1.1\r\n"
        host = f"Host: {_bracketed(place.host)}:{place.port}\r\nConnection: close\r\n".encode()
        return _Asked(
            place.host, place.port, tunnel=False, first=line + host + _HOP.sub(b"", head[found.end() :])
        )
    return None


def server_name(hello: bytes) -> str | None:
    """The name that the beginning of TLS asks for; None where there is none. EOFError: more is to come.

    ValueError for what is no such beginning; Ambiguous for one that servers may take for another name's.
    """
    data, at = b"", 0
    while True:
        if len(hello) < at + 5:
            raise EOFError if hello[at : at + 1] in (b"", b"\x16") else ValueError
        if hello[at] != 0x16:  # noqa: PLR2004 - a handshake
            raise ValueError("no TLS")
        size = int.from_bytes(hello[at + 3 : at + 5])
        data += hello[at + 5 : at + 5 + size]
        at += 5 + size
        if len(hello) < at:
            raise EOFError
        if data[:1] != b"\x01":
            raise ValueError("no greeting of a client")
        if len(data) >= 4 + int.from_bytes(data[1:4]):
            return _name_in(data[4:])


def _name_in(greeting: bytes) -> str | None:
    read = _Bytes(greeting)
    read.take(34)  # version, random
    for size in (1, 2, 1):  # session, ciphers, compressions
        read.sized(size)
    extensions = _Bytes(read.sized(2))
    found: dict[int, bytes] = {}
    while extensions.left:
        kind = int.from_bytes(extensions.take(2))
        if kind in found:
            raise Ambiguous("an extension twice")
        found[kind] = extensions.sized(2)
    if _ENCRYPTED in found:
        raise Ambiguous("an encrypted name")
    return _only_name(found[_NAMES]) if _NAMES in found else None


def _only_name(value: bytes) -> str:
    """The one host that a list of names holds."""
    outer = _Bytes(value)
    names = _Bytes(outer.sized(2))
    if names.take(1) != _HOST_NAME:
        raise Ambiguous("a name that is no host's")
    name = names.sized(2)
    if names.left or outer.left:
        raise Ambiguous("more than one name")
    return plain_host(name.decode("ascii"))


class _Bytes:
    """Bytes that are taken from the front; ValueError where there are too few."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def take(self, size: int) -> bytes:
        taken, self.left = self.left[:size], self.left[size:]
        if len(taken) < size:
            raise ValueError("cut short")
        return taken

    def sized(self, width: int) -> bytes:
        return self.take(int.from_bytes(self.take(width)))


class Proxy:
    """The way out of one child's network. `channel` is what the child sends its sockets through."""

    def __init__(self, targets: Sequence[Target], env: Mapping[str, str]) -> None:
        self._targets = targets
        self._env = env
        self._ours, self.channel = socket.socketpair()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[socket.socket] = []
        self._refused: dict[str, None] = {}
        self._room = asyncio.Semaphore(CONNECTIONS_MAX)

    @property
    def refused(self) -> tuple[str, ...]:
        """What was asked for and is not on the list."""
        return tuple(self._refused)

    def serve(self) -> None:
        """From now on; the child may come when it will."""
        self.channel.close()
        self._ours.setblocking(False)  # noqa: FBT003 - it takes no names
        self._task(self._accept_all())

    async def close(self) -> None:
        """Nothing is let through any more."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in (self._ours, self.channel, *self._servers):
            one.close()

    def _task(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept_all(self) -> None:
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._ours, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._ours)
        fds: list[int] = []
        with suppress(OSError):  # the child is gone: nobody will come
            _, fds, _, _ = socket.recv_fds(
                self._ours, 16, 4 * len(self._targets) + 4, socket.MSG_CMSG_CLOEXEC
            )
        for fd in fds:
            server = socket.socket(fileno=fd)
            server.setblocking(False)  # noqa: FBT003 - it takes no names
            self._servers.append(server)
            self._task(self._accept(server, server.getsockname()[1]))

    async def _accept(self, server: socket.socket, port: int) -> None:
        forwarded = next((one for one in self._targets if one.is_loopback and one.port == port), None)
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(server)
            except OSError:
                await asyncio.sleep(0.1)  # no open file is left for it; others may end
                continue
            await self._room.acquire()
            self._task(self._serve(client, forwarded))

    async def _serve(self, client: socket.socket, forwarded: Target | None) -> None:
        """One connection of the child's, from its first byte to its last."""
        reader, writer = await asyncio.open_connection(sock=client, limit=HEAD_MAX)
        try:
            with suppress(OSError, ValueError, EOFError, TimeoutError, asyncio.LimitOverrunError):
                if forwarded is not None:
                    await _join((reader, writer), await self._direct(forwarded.host, forwarded.port))
                else:
                    await self._proxy(reader, writer)
        finally:
            writer.close()
            self._room.release()

    async def _proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        wanted = asked(head)
        if wanted is None:
            await _answer(writer, "400 Bad Request", "CONNECT, or a request for an http:// URL")
            return
        found = next((one for one in self._targets if one.admits(wanted.host, wanted.port)), None)
        if found is None or (found.tls and not wanted.tunnel):
            await self._refuse(writer, f"{_bracketed(wanted.host)}:{wanted.port}")
            return
        try:
            other = await self._open(wanted.host, wanted.port, tls=found.tls)
        except OSError as e:
            await _answer(writer, "502 Bad Gateway", f"cannot reach {wanted.host}: {e.strerror or e}")
            return
        try:
            first = wanted.first
            if wanted.tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                first = await self._greeting(reader, wanted.host) if found.tls else b""
            other[1].write(first)
            await _join((reader, writer), other)
        finally:
            other[1].close()

    async def _greeting(self, reader: asyncio.StreamReader, host: str) -> bytes:
        """The beginning of TLS for this host and no other; ValueError for anything else."""
        hello, name = b"", None
        async with asyncio.timeout(HEAD_S):
            while True:
                data = await reader.read(_CHUNK)
                hello += data
                try:
                    name = server_name(hello)
                    break
                except Ambiguous as e:
                    self._note(f"{e} by way of {host}")
                    raise
                except EOFError:
                    if not data or len(hello) > HELLO_MAX:
                        raise ValueError("no greeting") from None
        if name != host:
            self._note(f"{name or 'no name'} by way of {host}")
            raise ValueError("another host's name")
        return hello

    async def _refuse(self, writer: asyncio.StreamWriter, place: str) -> None:
        self._note(place)
        await _answer(writer, "403 Forbidden", f"the sandbox does not let {place} be reached")

    def _note(self, place: str) -> None:
        if len(self._refused) < REFUSED_MAX:
            self._refused[place] = None

    async def _open(self, host: str, port: int, *, tls: bool) -> Streams:
        """A connection to a host, through the person's own proxy where they have one."""
        outer = self._outer(host, tls=tls)
        if outer is None:
            return await self._direct(host, port)
        if outer.scheme != "http" or not outer.hostname:
            raise OSError(f"your own proxy is {outer.scheme}://, and only http:// ones are known")
        reader, writer = await self._direct(outer.hostname, outer.port or 80)
        place, login = f"{_bracketed(host)}:{port}", ""
        if outer.username:
            words = f"{unquote(outer.username)}:{unquote(outer.password or '')}".encode()
            login = f"Proxy-Authorization: Basic {base64.b64encode(words).decode()}\r\n"
        writer.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n".encode())
        try:
            async with asyncio.timeout(CONNECT_S):
                head = await reader.readuntil(b"\r\n\r\n")
        except (EOFError, asyncio.LimitOverrunError, TimeoutError) as e:
            writer.close()
            raise OSError("your own proxy gave no answer") from e
        if not re.match(rb"HTTP/1\.[01] 2\d\d", head):
            writer.close()
            raise OSError(f"your own proxy said {head.splitlines()[0][:100].decode('latin-1')}")
        return reader, writer

    def _outer(self, host: str, *, tls: bool) -> SplitResult | None:
        """The person's own proxy for a host."""
        name = "https_proxy" if tls else "http_proxy"
        given = self._env.get(name) or self._env.get(name.upper())
        without = (self._env.get("no_proxy") or self._env.get("NO_PROXY") or "").split(",")
        names = [name.strip().lower().lstrip(".") for name in without]
        if not given or any(n and (n in ("*", host) or host.endswith(f".{n}")) for n in names):
            return None
        return urlsplit(given if "://" in given else f"http://{given}")

    async def _direct(self, host: str, port: int) -> Streams:
        async with asyncio.timeout(CONNECT_S):
            return await asyncio.open_connection(host, port, limit=HEAD_MAX)


async def _join(one: Streams, other: Streams) -> None:
    """Both ways at once, until both have ended."""
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_copy(one[0], other[1]))
            both.create_task(_copy(other[0], one[1]))
    except* OSError:
        pass
    finally:
        other[1].close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _answer(writer: asyncio.StreamWriter, status: str, words: str) -> None:
    body = f"Rondel: {words}\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body.encode())}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n{body}".encode())
    await writer.drain()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
