"""A host outside, on loopback: a proxy that leads every name to it, and TLS with a certificate of its own."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def certificate(folder: Path, name: str) -> Path:
    """The certificate of an authority; beside it, in `both.pem`, key and certificate that it gave a name."""
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for out, more in {
        "authority": ["-subj", "/CN=authority"],
        "leaf": [
            *("-subj", f"/CN={name}", "-CA", "authority.pem", "-CAkey", "authority.key"),
            *("-addext", f"subjectAltName=DNS:{name}", "-addext", "basicConstraints=critical,CA:FALSE"),
        ],
    }.items():
        words = [*new, "-days", "2", "-keyout", f"{out}.key", "-out", f"{out}.pem", *more]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    both = (folder / "leaf.key").read_text() + (folder / "leaf.pem").read_text()
    (folder / "both.pem").write_text(both)
    return folder / "authority.pem"


@contextmanager
def serving(answer) -> Iterator[int]:
    """A server on loopback, each connection in a thread of its own; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = server.accept()
                    threading.Thread(target=_quietly, args=(answer, client), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _quietly(answer, client: socket.socket) -> None:
    with suppress(OSError, ValueError), client:
        answer(client)


@contextmanager
def tls_before(port: int, certificates: Path) -> Iterator[int]:
    """TLS in front of a port of loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.with_name("both.pem"))

    def answer(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as inner:
            _join(inner, socket.create_connection(("127.0.0.1", port)))

    with serving(answer) as found:
        yield found


@contextmanager
def proxy_to(places: dict[str, int], asked: list[str]) -> Iterator[int]:
    """A proxy, as a person's company has one: it notes what it is asked for, and leads names to ports."""

    def answer(client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(1)
        place = head.split()[1].decode()
        asked.append(place)
        if place not in places:
            client.sendall(b"HTTP/1.1 404 Not Found\r\n\r\n")
            return
        other = socket.create_connection(("127.0.0.1", places[place]))
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        _join(client, other)

    with serving(answer) as found:
        yield found


def _join(one: socket.socket, other: socket.socket) -> None:
    with other:
        back = threading.Thread(target=_copy, args=(other, one), daemon=True)
        back.start()
        _copy(one, other)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError, ValueError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
