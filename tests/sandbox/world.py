"""A person's home folder and repository, somebody outside, and a child inside that tries to reach them."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from rondel.processes.runner import Child, clean_env, output, run
from rondel.sandbox import namespaces
from rondel.sandbox.box import Box, Confined, own_places
from rondel.sandbox.hosts import Target
from sandbox.inside import ESCAPES, LIBC, SHARED

INSIDE = Path(__file__).with_name("inside.py")
SECRETS = (
    ".ssh/id_ed25519 .ssh/authorized_keys .aws/credentials .netrc .config/gh/hosts.yml .docker/config.json "
    ".kube/config .gnupg/private.key .local/share/keyrings/login.keyring .bash_history .npmrc .gitconfig "
    ".mozilla/firefox/cookies.sqlite .codex/auth.json .git-credentials .local/state/rondel/repos/0/key "
    ".local/state/rondel/repos/0/consents .config/rondel/config.toml Documents/letter.txt .bashrc .profile "
    ".config/systemd/user/there .local/bin/there .cache/pip/there cut.txt gone.txt stolen.txt"
)
RUNTIME = ".local/state/rondel/repos/0/sessions/1/2/.rondel"


def make_repository(place: Path) -> None:
    place.mkdir()
    git = ["git", "-C", str(place), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    (place / "README.md").write_text("x\n")
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)


def make_world(folder: Path) -> dict:
    home, repo = folder / "home", folder / "repo"
    for name in SECRETS.split():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret\n")
    (home / ".gitconfig").write_text("[user]\nname = x\n")
    (home / "empty").mkdir()
    (home / "tool.sh").write_text("#!/bin/sh\necho ran\n")
    (home / "tool.sh").chmod(0o755)
    for place in (repo, folder / "by-git"):
        make_repository(place)
    (repo / ".env").write_text("KEY=secret\n")
    for place in (repo / ".workflow/s/.rondel/decisions/there", home / RUNTIME / "journal.jsonl"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("{}\n")
    for name in ("mine", "other"):
        (folder / "work" / name).mkdir(parents=True)
        (folder / "work" / name / "x.py").write_text("x\n")
    rondel = [sys.executable, "-m", "rondel"]
    return {
        "home": str(home),
        "repo": str(repo),
        "by_git": str(folder / "by-git"),
        "cwd": str(folder / "work/mine"),
        "other": str(folder / "work/other"),
        "spool": str(home / RUNTIME / "spool"),
        "rondel": rondel,
    }


class _Greets(socketserver.BaseRequestHandler):
    """Somebody outside, who says so to whoever gets there."""

    def handle(self) -> None:
        if isinstance(self.request, tuple):
            self.request[1].sendto(b"outside", self.client_address)
        else:
            self.request.sendall(b"outside")


class _Echoes(socketserver.StreamRequestHandler):
    """A server that is allowed: it answers one request, with the names of hosts that were in it."""

    def handle(self) -> None:
        lines = iter(self.rfile.readline, b"\r\n")
        names = [line for line in lines if line.lower().startswith(b"host:")]
        body = b"allowed " + b"".join(names).replace(b"\r\n", b" ")
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


class _GreetsAfterAll(socketserver.BaseRequestHandler):
    """A server for TLS that is allowed: whatever comes is answered."""

    def handle(self) -> None:
        if self.request.recv(1000):
            self.request.sendall(b"outside")


class _Local(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class _Tcp(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 200


class Network:
    """Servers of the machine's own loopback and by path, for those inside to find."""

    def __enter__(self) -> dict:
        self._folder = Path(tempfile.mkdtemp(prefix="rondel-outside-"))
        self._folder.chmod(0o755)
        path = str(self._folder / "socket")
        here = ("127.0.0.1", 0)
        self._servers = [
            _Tcp(("0.0.0.0", 0), _Greets),
            _Tcp(here, _Echoes),
            _Tcp(here, _GreetsAfterAll),
            socketserver.ThreadingUDPServer(here, _Greets),
            _Local(path, _Greets),
            socketserver.UnixDatagramServer(f"{path}-datagram", _Greets),
        ]
        for one in self._servers:
            threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        tcp, allowed, secure, udp = (one.server_address[1] for one in self._servers[:4])
        return {"tcp": tcp, "allowed": allowed, "secure": secure, "udp": udp, "by_path": path}

    def __exit__(self, *_: object) -> None:
        for one in self._servers:
            one.shutdown()
            one.server_close()
        shutil.rmtree(self._folder)


class Outside:
    """Abstract sockets, pieces of memory, an open file of ours and servers, for those inside to find."""

    def __enter__(self) -> dict:
        name = f"rondel-escape-{os.getpid()}"
        self._open = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)]
        self._open[0].bind(f"\0{name}")
        self._open[0].listen(10)
        self._open[1].bind(f"\0{name}-datagram")
        self._memory = ctypes.create_string_buffer(b"a secret of ours")
        self._file = os.memfd_create("ours")
        os.write(self._file, b"secret")
        self._terminal = os.openpty()
        self._shared = Path("/dev/shm", name)
        self._shared.write_bytes(b"secret")
        self._system_v = LIBC.shmget(key := os.getpid(), 1, 0o1600)
        self._network = Network()
        return {
            **self._network.__enter__(),
            "shared": name,
            "system_v": key,
            "system_v_id": self._system_v,
            "abstract": name,
            "address": ctypes.addressof(self._memory),
            "fd": self._file,
            "terminal": os.ttyname(self._terminal[1]),
            "driver": os.getpid(),
        }

    def __exit__(self, *_: object) -> None:
        self._network.__exit__()
        LIBC.shmctl(self._system_v, 0, None)
        self._shared.unlink()
        for one in self._open:
            one.close()
        for fd in (self._file, *self._terminal):
            os.close(fd)


def confined(world: dict, network: str = "all") -> Confined:
    hidden = (world["repo"], str(Path(world["cwd"]).parent), *own_places())
    allowed = (Target("localhost", world["allowed"]), Target("localhost", world["secure"], tls=True))
    return Confined(
        Box(
            objects=(f"{world['repo']}/.git/objects",),
            hidden=hidden,
            network=network,
            hosts=allowed if network == "vendor" else (),
        ),
        writes=True,
    )


def tried_in(network: str) -> list[str]:
    """The escapes for a network; without namespaces shared memory is not there, and System V's is open."""
    without = {SHARED} if namespaces.missing() else set()
    return [name for name, one in ESCAPES.items() if network in one.networks and one.layer not in without]


def ran(argv: list[str], cwd: Path, env: dict[str, str], box: Confined | None) -> str:
    """What a confined program printed."""
    child = Child(tuple(argv), cwd, env, cwd.parent / "spool", wall_s=120, idle_s=120, confined=box)
    ended = asyncio.run(run(child))
    assert ended.ok, output(child.spool, "err")
    return output(child.spool)


def attempts(world: dict, names: list[str], box: Confined | None) -> dict[str, str]:
    """What the escapes got."""
    told = Path(world["cwd"]) / "told.json"
    told.write_text(json.dumps({"world": world, "names": names}))
    child = Child(
        (sys.executable, str(INSIDE), str(told)),
        Path(world["cwd"]),
        clean_env(),
        Path(world["spool"]),
        wall_s=120,
        idle_s=120,
        confined=box,
    )
    ended = asyncio.run(run(child))
    assert ended.ok, output(child.spool, "err")
    return json.loads(output(child.spool).splitlines()[-1])


if __name__ == "__main__":  # for another user: make a world, try everything, say who tried and what was got
    world = make_world(Path(sys.argv[1]))
    os.environ["HOME"] = world["home"]
    with Outside() as outside:
        world |= outside
        got = {n: attempts(world, tried_in(n), confined(world, n)) for n in sys.argv[2:]}
        print(json.dumps([os.getuid(), got]))
