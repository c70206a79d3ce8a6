"""The escapes, each as what a program inside would try. Run as a program: `inside.py WORLD.json`.

An escape that succeeds says what it got; one that is blocked raises. `layer` names what blocks it;
`control` says whether it may be tried without a sandbox, to see that it would succeed there.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = "Landlock: files"
SCOPES = "Landlock: signals and abstract sockets"
TRACING = "Landlock: tracing"
MOUNTS = "Landlock: mounts"
PRIVILEGES = "no capabilities"
START = "how it is started"
NETWORK = "a network of its own"
COVERED = "mounts of its own"
SHARED = "memory of its own"
FAMILIES = "a filter of sockets"
CALLS = "a filter of system calls"
PROXY = "the proxy"

ALWAYS = ("all", "vendor", "none")  # the networks in which an escape is tried
CLOSED = ("vendor", "none")
THROUGH = ("vendor",)

World = dict[str, Any]
LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {  # of the calls that differ
    "x86_64": (234, 175, 169, 248, 250),
    "aarch64": (131, 105, 142, 217, 219),
}
TGKILL, INIT_MODULE, REBOOT, ADD_KEY, KEYCTL = NUMBERS.get(os.uname().machine, (-1,) * 5)


@dataclass(frozen=True)
class Escape:
    name: str
    layer: str
    attempt: Callable[[World], object]
    control: bool
    networks: tuple[str, ...] = ALWAYS


ESCAPES: dict[str, Escape] = {}


def escape(name: str, layer: str = FILES, *, control: bool = True, networks: tuple[str, ...] = ALWAYS):
    def register(attempt: Callable[[World], object]):
        assert name not in ESCAPES
        ESCAPES[name] = Escape(name, layer, attempt, control, networks)
        return attempt

    return register


def writes(name: str, key: str, path: str, layer: str = FILES, *, control: bool = True) -> None:
    """Add a line to a file, or make it."""

    def attempt(world: World) -> object:
        place = Path(world[key], path) if key else Path(path)
        with place.open("a") as f:
            f.write("escaped\n")
        return place

    escape(name, layer, control=control)(attempt)


def reads(name: str, key: str, path: str, *, control: bool = True) -> None:
    """Read a file that is there."""
    escape(name, FILES, control=control)(
        lambda world: (Path(world[key], path) if key else Path(path)).read_bytes()
    )


def ok(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


# -- writing ------------------------------------------------------------------------------

writes("a new file in HOME", "home", "new.txt")
writes("a line in ~/.bashrc", "home", ".bashrc")
writes("a line in ~/.profile", "home", ".profile")
writes("a key in ~/.ssh/authorized_keys", "home", ".ssh/authorized_keys")
writes("a user's service of systemd", "home", ".config/systemd/user/x.service")
writes("a program in ~/.local/bin", "home", ".local/bin/git")
writes("the person's cache of pip", "home", ".cache/pip/x")
writes("the person's ~/.gitconfig", "home", ".gitconfig")
writes("the person's own settings of Rondel", "home", ".config/rondel/config.toml")
writes("the consents", "home", ".local/state/rondel/repos/0/consents")
writes("a file of the person's tree", "repo", "README.md")
writes("the repository's settings", "repo", "rondel.toml")
writes("the repository's git config", "repo", ".git/config")
writes("a hook of the repository", "repo", ".git/hooks/pre-commit")
writes("a branch of the repository", "repo", ".git/refs/heads/main")
writes("the repository's objects", "repo", ".git/objects/info/alternates")
writes("the repository's index", "repo", ".git/index")
writes("a document of the session", "repo", ".workflow/s/IMPL-1.json")
writes("a decision of the session", "repo", ".workflow/s/.rondel/decisions/gate.json")
writes("the session's journal", "home", ".local/state/rondel/repos/0/sessions/1/2/.rondel/journal.jsonl")
writes("the session's lease", "home", ".local/state/rondel/repos/0/sessions/1/2/.rondel/lease")
writes("how this very child ended", "spool", "exit.json")
writes("what this very child printed", "spool", "out")
writes("a file of another working copy", "other", "x.py")
writes("the shared temporary folder", "", "/tmp/rondel-escape", control=False)
writes("the temporary folder that outlives the machine", "", "/var/tmp/rondel-escape", control=False)
writes("the system's settings", "", "/etc/rondel-escape", control=False)
writes("the system's programs", "", "/usr/local/bin/rondel-escape", control=False)
writes("the system's timed jobs", "", "/var/spool/cron/rondel-escape", control=False)
writes("what the kernel runs after a crash", "", "/proc/sys/kernel/core_pattern", control=False)
writes("the kernel's emergency orders", "", "/proc/sysrq-trigger", control=False)


@escape("a file of HOME cut to nothing by truncate")
def _truncate(world: World) -> object:
    return os.truncate(Path(world["home"], "cut.txt"), 0)


@escape("a file of HOME removed")
def _unlink(world: World) -> object:
    return Path(world["home"], "gone.txt").unlink()


@escape("a folder made in HOME")
def _mkdir(world: World) -> object:
    return Path(world["home"], "folder").mkdir()


@escape("a folder of HOME removed")
def _rmdir(world: World) -> object:
    return Path(world["home"], "empty").rmdir()


@escape("a pipe made in HOME")
def _mkfifo(world: World) -> object:
    return os.mkfifo(Path(world["home"], "pipe"))


@escape("a link made in HOME")
def _symlink(world: World) -> object:
    return Path(world["home"], "link").symlink_to("/")


@escape("a file of HOME moved into the working copy")
def _steal(world: World) -> object:
    Path(world["home"], "stolen.txt").rename("stolen.txt")
    return Path("stolen.txt").read_text()


@escape("a file of the working copy moved into HOME")
def _plant(world: World) -> object:
    Path("planted").write_text("x")
    return Path("planted").rename(Path(world["home"], "planted"))


@escape("a second name in the working copy for a secret")
def _hard_link(world: World) -> object:
    Path("hard").hardlink_to(Path(world["home"], ".ssh/id_ed25519"))
    return Path("hard").read_text()


@escape("a link in the working copy, written through")
def _link_out(world: World) -> object:
    Path("out").symlink_to(Path(world["home"], ".bashrc"))
    with Path("out").open("a") as f:
        f.write("escaped\n")
    return "written"


@escape("a folder link in the working copy, written through")
def _folder_link_out(world: World) -> object:
    Path("folder-out").symlink_to(world["home"])
    return Path("folder-out/through").write_text("escaped\n")


@escape("the device of a disk made in the working copy", PRIVILEGES)
def _mknod(_: World) -> object:
    return os.mknod("disk", 0o600 | 0o060000, os.makedev(7, 0))


@escape("the memory of the machine as a device", control=False)
def _mem(_: World) -> object:
    return Path("/dev/mem").open("rb").read(1)


@escape("a disk as a device", control=False)
def _disk(_: World) -> object:
    for name in ("vda", "sda", "nvme0n1", "xvda", "loop0"):
        if Path("/dev", name).exists():
            return Path("/dev", name).open("rb").read(1)
    raise OSError("there is no disk here")


# -- reading ------------------------------------------------------------------------------

reads("a key of ~/.ssh", "home", ".ssh/id_ed25519")
reads("~/.aws/credentials", "home", ".aws/credentials")
reads("~/.netrc", "home", ".netrc")
reads("the token of gh", "home", ".config/gh/hosts.yml")
reads("~/.docker/config.json", "home", ".docker/config.json")
reads("~/.kube/config", "home", ".kube/config")
reads("a key of ~/.gnupg", "home", ".gnupg/private.key")
reads("a keyring", "home", ".local/share/keyrings/login.keyring")
reads("the history of the shell", "home", ".bash_history")
reads("a profile of a browser", "home", ".mozilla/firefox/cookies.sqlite")
reads("the login of another vendor", "home", ".codex/auth.json")
reads("the token of npm", "home", ".npmrc")
reads("the passwords that git stored", "home", ".git-credentials")
reads("the person's key for decisions", "home", ".local/state/rondel/repos/0/key")
reads("the person's settings of Rondel", "home", ".config/rondel/config.toml")
reads("a document in HOME", "home", "Documents/letter.txt")
reads("an untracked file of the person's tree", "repo", ".env")
reads("the repository's git config, to read", "repo", ".git/config")
reads("a prompt of another agent", "home", ".local/state/rondel/repos/0/sessions/1/2/.rondel/journal.jsonl")
reads("a file of another working copy, to read", "other", "x.py")
reads("the passwords of the system", "", "/etc/shadow", control=False)


@escape("the names in ~/.ssh")
def _list_ssh(world: World) -> object:
    return list(Path(world["home"], ".ssh").iterdir())


@escape("the names in HOME")
def _list_home(world: World) -> object:
    return list(Path(world["home"]).iterdir())


@escape("a secret through a link in the working copy")
def _read_link(world: World) -> object:
    Path("in").symlink_to(Path(world["home"], ".ssh/id_ed25519"))
    return Path("in").read_text()


@escape("a secret by a path with ..")
def _dots(world: World) -> object:
    return Path(os.path.relpath(Path(world["home"], ".ssh/id_ed25519"))).read_text()


@escape("a secret by changing into its folder")
def _chdir(world: World) -> object:
    before = Path.cwd()
    try:
        os.chdir(Path(world["home"], ".ssh"))
        return Path("id_ed25519").read_text()
    finally:
        os.chdir(before)


@escape("a program of HOME that is not on the PATH, run")
def _run_hidden(world: World) -> object:
    return subprocess.run([str(Path(world["home"], "tool.sh"))], check=True)


@escape("a secret by a handle in place of a path", PRIVILEGES, control=False)
def _handle(_: World) -> object:
    return ok(LIBC.open_by_handle_at(-100, ctypes.create_string_buffer(struct.pack("Ii", 0, 0)), 0))


@escape("a secret of the environment", START, control=False)
def _environment(_: World) -> object:
    names = [n for n in os.environ if n.startswith("AWS_") or n in ("RONDEL_TRUST", "SSH_AUTH_SOCK")]
    if not names:
        raise OSError("there are none")
    return names


@escape("an open file that the driver left", START, control=False)
def _open_files(_: World) -> object:
    left = {int(p.name) for p in Path("/proc/self/fd").iterdir()} - {0, 1, 2}
    usable = {n for n in left if _is_open(n)}
    if not usable:
        raise OSError("there are none")
    return {n: Path(f"/proc/self/fd/{n}").readlink() for n in usable}


def _is_open(fd: int) -> bool:
    try:
        fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError:
        return False
    return True


# -- other processes ----------------------------------------------------------------------


@escape("a signal to the driver", SCOPES)
def _signal_driver(world: World) -> object:
    return os.kill(world["driver"], 0)


@escape("a signal to the reaper", SCOPES, control=False)
def _signal_parent(_: World) -> object:
    return os.kill(os.getppid(), signal.SIGKILL)


@escape("a signal to the group of the driver", SCOPES)
def _signal_group(world: World) -> object:
    return os.killpg(os.getpgid(world["driver"]), 0)


@escape("a signal to one thread of the driver", SCOPES)
def _signal_thread(world: World) -> object:
    return ok(LIBC.syscall(TGKILL, world["driver"], world["driver"], 0))


@escape("a signal by a handle of the driver", SCOPES)
def _signal_handle(world: World) -> object:
    return signal.pidfd_send_signal(os.pidfd_open(world["driver"]), 0)


@escape("a limit for the driver", CALLS)
def _limit_driver(world: World) -> object:
    now = resource.prlimit(world["driver"], resource.RLIMIT_CORE)
    return resource.prlimit(world["driver"], resource.RLIMIT_CORE, now) or "set"


@escape("the end of the reaper by a limit", CALLS, control=False)
def _limit_reaper(_: World) -> object:
    return resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0)) or "set"


@escape("the keys of the person's session in the kernel", CALLS)
def _keys(_: World) -> object:
    return ok(LIBC.syscall(KEYCTL, 0, -3, 0))


@escape("a key for the person's session in the kernel", CALLS, control=False)
def _add_key(_: World) -> object:
    return ok(LIBC.syscall(ADD_KEY, b"user", b"planted", b"x", 1, -3))


@escape("tracing the driver", TRACING, control=False)
def _ptrace(world: World) -> object:
    return ok(LIBC.ptrace(0x4206, world["driver"], 0, 0))  # PTRACE_SEIZE stops nobody


@escape("reading the memory of the driver", TRACING)
def _vm_read(world: World) -> object:
    buffer = ctypes.create_string_buffer(8)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    there = (ctypes.c_void_p * 2)(world["address"], 8)
    return ok(LIBC.process_vm_readv(world["driver"], here, 1, there, 1, 0))


@escape("the environment of the driver", TRACING)
def _driver_environ(world: World) -> object:
    return Path(f"/proc/{world['driver']}/environ").read_bytes()


@escape("the memory of the driver as a file", TRACING)
def _driver_mem(world: World) -> object:
    with Path(f"/proc/{world['driver']}/mem").open("rb") as f:
        f.seek(world["address"])
        return f.read(8)


@escape("an open file of the driver", TRACING)
def _driver_fd(world: World) -> object:
    return Path(f"/proc/{world['driver']}/fd/{world['fd']}").read_bytes()


@escape("a copy of an open file of the driver", TRACING)
def _driver_getfd(world: World) -> object:
    return ok(LIBC.syscall(438, os.pidfd_open(world["driver"]), world["fd"], 0))


@escape("the driver's root as a way around", TRACING)
def _driver_root(world: World) -> object:
    return Path(f"/proc/{world['driver']}/root{world['home']}/.ssh/id_ed25519").read_text()


@escape("the driver's working folder as a way around", TRACING)
def _driver_cwd(world: World) -> object:
    return Path(f"/proc/{world['driver']}/cwd/by-cwd").write_text("escaped\n")


@escape("an abstract socket of somebody outside", SCOPES)
def _abstract(world: World) -> object:
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        return s.connect(f"\0{world['abstract']}")


@escape("a datagram to an abstract socket outside", SCOPES)
def _abstract_datagram(world: World) -> object:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        return s.sendto(b"x", f"\0{world['abstract']}-datagram")


@escape("keys typed into a terminal", START, control=False)
def _tiocsti(_: World) -> object:
    with Path("/dev/tty").open("wb", buffering=0) as tty:
        return fcntl.ioctl(tty, 0x5412, b"x")


@escape("a terminal of the person's")
def _terminal(world: World) -> object:
    return os.open(world["terminal"], os.O_RDWR | os.O_NOCTTY)


# -- privileges ---------------------------------------------------------------------------


@escape("a folder mounted over another", MOUNTS, control=False)
def _mount(world: World) -> object:
    Path("m").mkdir(exist_ok=True)
    return ok(LIBC.mount(world["home"].encode(), b"m", None, 4096, None))


@escape("a mount in a user namespace of its own", MOUNTS, control=False)
def _namespace(world: World) -> object:
    script = f"mkdir -p n && mount --bind {world['home']} n && cat n/.ssh/id_ed25519"
    return subprocess.run(["unshare", "-rm", "sh", "-c", script], check=True, capture_output=True).stdout


@escape("another root folder", PRIVILEGES, control=False)
def _chroot(_: World) -> object:
    return os.chroot(".")


@escape("another user", PRIVILEGES, control=False)
def _setuid(_: World) -> object:
    return os.setuid(0 if os.getuid() else 65534)


@escape("the rights of a program with the set-user-id bit", PRIVILEGES, control=False)
def _suid(_: World) -> object:
    status = Path("/proc/self/status").read_text()
    held = [line for line in status.splitlines() if line.startswith(("CapEff", "CapPrm", "CapBnd"))]
    root = os.getuid() == 0
    if "NoNewPrivs:\t1" in status and all(int(x.split()[1], 16) == 0 for x in (held if root else held[:2])):
        raise OSError("there are no new privileges")
    return held


@escape("a module of the kernel", PRIVILEGES, control=False)
def _module(_: World) -> object:
    return ok(LIBC.syscall(INIT_MODULE, 0, 0, b""))


@escape("an end of the machine", PRIVILEGES, control=False)
def _reboot(_: World) -> object:
    return ok(LIBC.syscall(REBOOT, 0, 0, 0, 0))  # wrong on purpose: who may is told so, who may not is not


@escape("the name of the machine", PRIVILEGES, control=False)
def _hostname(_: World) -> object:
    return socket.sethostname(socket.gethostname())


@escape("packets below the protocols", PRIVILEGES, control=False)
def _raw_socket(_: World) -> object:
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW)


@escape("swap", PRIVILEGES, control=False)
def _swap(_: World) -> object:
    return ok(LIBC.swapon(b"/nonexistent", 0))


@escape("a looser list over the one that holds")
def _relist(world: World) -> object:
    made = ok(LIBC.syscall(444, ctypes.byref(ctypes.c_uint64(4)), 8, 0))
    root = os.open("/", os.O_PATH)
    rule = ctypes.create_string_buffer(struct.pack("=Qi", 4, root))
    ok(LIBC.syscall(445, made, 1, rule, 0))
    script = f"cat {world['home']}/.ssh/id_ed25519"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _RESTRICT, str(made), script],
        pass_fds=(made,),
        check=True,
        capture_output=True,
    )
    return done.stdout


_RESTRICT = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.syscall(446, int(sys.argv[1]), 0) == 0
os.execvp("sh", ["sh", "-c", sys.argv[2]])
"""


@escape("a process in a session of its own, not confined")
def _daemon(world: World) -> object:
    script = f"cat {world['home']}/.ssh/id_ed25519 > stolen-later; test -s stolen-later"
    return subprocess.run(["setsid", "--fork", "--wait", "sh", "-c", script], check=True, capture_output=True)


# -- git and Rondel's own commands --------------------------------------------------------


def _git(world: World, *words: str) -> object:
    return subprocess.run(["git", "-C", world["by_git"], *words], check=True, capture_output=True).stdout


@escape("a setting of the person's repository by git")
def _git_config(world: World) -> object:
    return _git(world, "config", "core.fsmonitor", "touch /dev/null")


@escape("a branch of the person's repository by git")
def _git_ref(world: World) -> object:
    return _git(world, "update-ref", "refs/heads/escaped", "HEAD")


@escape("a commit in the person's repository by git")
def _git_commit(world: World) -> object:
    who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    return _git(world, *who, "commit", "--allow-empty", "-q", "-m", "escaped")


@escape("a push into the person's repository")
def _git_push(world: World) -> object:
    subprocess.run(["git", "init", "-q", "pushing"], check=True, capture_output=True)
    who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    here = ["git", "-C", "pushing", *who]
    subprocess.run([*here, "commit", "-q", "--allow-empty", "-m", "x"], check=True, capture_output=True)
    return subprocess.run(
        [*here, "push", "-q", world["by_git"], "HEAD:refs/heads/pushed"], check=True, capture_output=True
    )


@escape("a copy of the person's tree by git")
def _git_clone(world: World) -> object:
    return subprocess.run(["git", "clone", "-q", world["by_git"], "copied"], check=True, capture_output=True)


@escape("a yes of the person's, typed without the mark of a child", control=False)
def _says_yes(world: World) -> object:
    env = {k: v for k, v in os.environ.items() if k != "RONDEL_CHILD"} | {"HOME": world["home"]}
    words = [*world["rondel"], "trust", "--yes"]
    return subprocess.run(words, cwd=world["repo"], env=env, check=True, capture_output=True).stdout


@escape("a copy of HOME by cp")
def _copy(world: World) -> object:
    shutil.copytree(Path(world["home"], ".ssh"), "copy-of-ssh")
    return list(Path("copy-of-ssh").iterdir())


# -- memory that is shared ----------------------------------------------------------------


@escape("shared memory of somebody outside", SHARED)
def _shared_memory(world: World) -> object:
    return Path("/dev/shm", world["shared"]).read_bytes()


@escape("a name in shared memory for somebody outside", SHARED)
def _plant_shared(world: World) -> object:
    name = f"/dev/shm/{world['shared']}"
    with Path(name).open("r+b") as f:
        return f.write(b"escaped")


@escape("System V memory of somebody outside", SHARED)
def _system_v(world: World) -> object:
    return ok(LIBC.shmget(world["system_v"], 1, 0))


@escape("System V memory of somebody outside, by its number", SHARED)
def _system_v_attach(world: World) -> object:
    LIBC.shmat.restype = ctypes.c_ssize_t
    return ok(LIBC.shmat(world["system_v_id"], None, 0o10000))


# -- the network, where it is closed ------------------------------------------------------


def _greeted(s: socket.socket) -> bytes:
    """What somebody outside says; OSError where nobody does."""
    s.settimeout(5)
    data = b""
    while b"outside" not in data:
        more = s.recv(1000)
        if not more:
            raise OSError(f"only {data!r}")
        data += more
    return data


def reaches(name: str, host: str, family: int = socket.AF_INET) -> None:
    """A connection to the machine's loopback, by one of its names."""

    def attempt(world: World) -> object:
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(5)
            s.connect((host, world["tcp"]))
            return _greeted(s)

    escape(name, NETWORK, networks=CLOSED)(attempt)


reaches("the machine's loopback", "127.0.0.1")
reaches("the machine's loopback by another address", "127.1.2.3")
reaches("the machine's loopback as no address", "0.0.0.0")
reaches("the machine's loopback by its name", "localhost")


@escape("the machine's loopback by IPv6", NETWORK, networks=CLOSED, control=False)
def _loopback6(world: World) -> object:
    with socket.socket(socket.AF_INET6) as s:
        s.settimeout(5)
        s.connect(("::ffff:127.0.0.1", world["tcp"]))
        return _greeted(s)


@escape("a datagram to the machine's loopback", NETWORK, networks=CLOSED)
def _udp(world: World) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", world["udp"]))
        s.send(b"x")
        return _greeted(s)


@escape("a host outside by TCP", NETWORK, networks=CLOSED, control=False)
def _tcp_out(_: World) -> object:
    with socket.socket() as s:
        s.settimeout(2)
        return s.connect(("192.0.2.1", 443))  # an address for documents


@escape("a host outside by UDP", NETWORK, networks=CLOSED, control=False)
def _udp_out(_: World) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        return s.sendto(b"x", ("192.0.2.1", 443))


@escape("a host outside by IPv6", NETWORK, networks=CLOSED, control=False)
def _udp6_out(_: World) -> object:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        return s.sendto(b"x", ("2001:db8::1", 443))


@escape("everybody on the wire", NETWORK, networks=CLOSED, control=False)
def _broadcast(_: World) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        return s.sendto(b"x", ("255.255.255.255", 9))


@escape("a group on the wire", NETWORK, networks=CLOSED, control=False)
def _multicast(_: World) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        return s.sendto(b"x", ("224.0.0.251", 5353))


@escape("the name of a host outside", NETWORK, networks=CLOSED, control=False)
def _dns(_: World) -> object:
    return socket.getaddrinfo("example.com", 443)


@escape("a question to the name server", NETWORK, networks=CLOSED, control=False)
def _dns_by_hand(_: World) -> object:
    servers = re.findall(r"^nameserver\s+([\d.]+)", Path("/etc/resolv.conf").read_text(), re.MULTILINE)
    question = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\x07example\x03com\0\0\1\0\1"
    for server in servers or ["127.0.0.53"]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(2)
            s.connect((server, 53))
            s.send(question)
            return s.recv(500)
    raise OSError("there is none")


@escape("packets of IP, raw", PRIVILEGES, networks=CLOSED, control=False)
def _raw_ip(_: World) -> object:
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


def family(name: str, number: int, kind: int = socket.SOCK_STREAM) -> None:
    escape(name, FAMILIES, networks=CLOSED, control=False)(lambda _: socket.socket(number, kind))


family("the hypervisor below the machine", 40)
family("a device by Bluetooth", 31, socket.SOCK_RAW)
family("another node of a cluster", 30, socket.SOCK_SEQPACKET)
family("packets past the kernel", 44, socket.SOCK_RAW)


@escape("a socket by way of io_uring", FAMILIES, networks=CLOSED, control=False)
def _io_uring(_: World) -> object:
    return ok(LIBC.syscall(425, 1, ctypes.create_string_buffer(120)))


@escape("a socket of somebody outside by its path", COVERED, networks=CLOSED)
def _by_path(world: World) -> object:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(world["by_path"])
        return _greeted(s)


@escape("a datagram to a socket outside by its path", COVERED, networks=CLOSED)
def _datagram_by_path(world: World) -> object:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        return s.sendto(b"x", world["by_path"] + "-datagram")


@escape("a socket outside by the root of another process", TRACING, networks=CLOSED)
def _by_root(world: World) -> object:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(f"/proc/{world['driver']}/root{world['by_path']}")
        return _greeted(s)


@escape("what covers a socket, taken away", MOUNTS, networks=CLOSED, control=False)
def _uncover(world: World) -> object:
    return ok(LIBC.umount2(world["by_path"].encode(), 2))


@escape(
    "what covers a socket, taken away in a user namespace of its own", MOUNTS, networks=CLOSED, control=False
)
def _uncover_inside(world: World) -> object:
    words = ["unshare", "-rm", "umount", "-l", world["by_path"]]
    return subprocess.run(words, check=True, capture_output=True)


@escape("the network of the driver", TRACING, networks=CLOSED, control=False)
def _setns(world: World) -> object:
    fd = os.open(f"/proc/{world['driver']}/ns/net", os.O_RDONLY)
    return ok(LIBC.setns(fd, 0x40000000))


@escape("the network of the driver by a handle", PRIVILEGES, networks=CLOSED, control=False)
def _setns_handle(world: World) -> object:
    return ok(LIBC.setns(os.pidfd_open(world["driver"]), 0x40000000))


@escape("the network of the first process", TRACING, networks=CLOSED, control=False)
def _setns_init(_: World) -> object:
    return ok(LIBC.setns(os.open("/proc/1/ns/net", os.O_RDONLY), 0x40000000))


@escape("the user namespace of the driver", PRIVILEGES, networks=CLOSED, control=False)
def _setns_user(world: World) -> object:
    return ok(LIBC.setns(os.pidfd_open(world["driver"]), 0x10000000))


@escape("the network from a namespace within", NETWORK, networks=CLOSED, control=False)
def _nested(world: World) -> object:
    script = f"import socket; s = socket.create_connection(('127.0.0.1', {world['tcp']})); print(s.recv(9))"
    words = ["unshare", "-rn", sys.executable, "-I", "-S", "-c", script]
    return subprocess.run(words, check=True, capture_output=True).stdout


@escape("another address for the network's device", PRIVILEGES, networks=CLOSED, control=False)
def _configure(_: World) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        address = struct.pack("16sHH4s8x", b"lo", socket.AF_INET, 0, socket.inet_aton("10.0.0.1"))
        return fcntl.ioctl(s, 0x8916, address)


@escape("a device that leads out", PRIVILEGES, networks=CLOSED, control=False)
def _tun(_: World) -> object:
    return fcntl.ioctl(os.open("/dev/net/tun", os.O_RDWR), 0x400454CA, struct.pack("16sH22x", b"out", 1))


# -- the proxy ----------------------------------------------------------------------------


def _ask(request: str | bytes, then: bytes = b"") -> bytes:
    """What comes back through the proxy from outside; OSError where nothing does."""
    port = int(os.environ["HTTPS_PROXY"].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.sendall(request if isinstance(request, bytes) else request.encode("latin-1"))
        if then:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (more := s.recv(1)):
                    raise OSError("no tunnel")
                head += more
            if b" 200 " not in head:
                raise OSError("no tunnel")
            s.sendall(then)
        return _greeted(s)


def connects(name: str, place: str) -> None:
    """The proxy, asked for a tunnel to what is not on the list."""

    def attempt(world: World) -> object:
        words = place.format(**world)
        return _ask(f"CONNECT {words} HTTP/1.1\r\nHost: {words}\r\n\r\n")

    escape(name, PROXY, networks=THROUGH, control=False)(attempt)


connects("a tunnel to another host", "example.com:443")
connects("a tunnel to an address", "192.0.2.1:443")
connects("a tunnel to the machine's loopback", "127.0.0.1:{tcp}")
connects("a tunnel to the machine's loopback by its name", "localhost:{tcp}")
connects("a tunnel to the machine's loopback by IPv6", "[::1]:{tcp}")
connects("a tunnel to the machine's loopback, written in IPv6", "[::ffff:127.0.0.1]:{tcp}")
connects("a tunnel to the machine's loopback as a number", "2130706433:{tcp}")
connects("a tunnel to the machine's loopback, cut short", "127.1:{tcp}")
connects("a tunnel to no address", "0.0.0.0:{tcp}")
connects("a tunnel to the metadata of a cloud", "169.254.169.254:80")
connects("a tunnel to a name below one that is allowed", "evil.localhost:{allowed}")
connects("a tunnel to a name that ends like one that is allowed", "evillocalhost:{allowed}")
connects("a tunnel to a name that begins like one that is allowed", "localhost.example.com:{allowed}")
connects("a tunnel with a user in the name", "localhost@127.0.0.1:{tcp}")
connects("a tunnel with two ports", "localhost:{allowed}:{tcp}")
connects("a tunnel with a sign of nothing in the name", "localhost\0.example.com:{tcp}")


@escape("a tunnel asked for in a header", PROXY, networks=THROUGH, control=False)
def _header_host(world: World) -> object:
    lines = f"Host: 127.0.0.1:{world['tcp']}\r\nX-Forwarded-Host: 127.0.0.1:{world['tcp']}\r\n"
    return _ask(f"CONNECT localhost:1 HTTP/1.1\r\n{lines}\r\n")


@escape("a request for a URL of another host", PROXY, networks=THROUGH, control=False)
def _absolute(world: World) -> object:
    return _ask(f"GET http://127.0.0.1:{world['tcp']}/ HTTP/1.1\r\nHost: localhost\r\n\r\n")


@escape("a request for a path, with the host in a header", PROXY, networks=THROUGH, control=False)
def _origin(world: World) -> object:
    return _ask(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{world['tcp']}\r\n\r\n")


@escape("another host's name in a request that is allowed", PROXY, networks=THROUGH, control=False)
def _smuggled_host(world: World) -> object:
    lines = "Host: outside\r\nhost: outside\r\n"
    return _ask(f"GET http://localhost:{world['allowed']}/ HTTP/1.1\r\n{lines}\r\n")


@escape("a second request on a connection that is allowed", PROXY, networks=THROUGH, control=False)
def _pipelined(world: World) -> object:
    first = f"GET http://localhost:{world['allowed']}/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    return _ask(f"{first}GET http://127.0.0.1:{world['tcp']}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")


@escape("a plain request where TLS is allowed", PROXY, networks=THROUGH, control=False)
def _plain_for_tls(world: World) -> object:
    return _ask(f"GET http://localhost:{world['secure']}/ HTTP/1.1\r\nHost: localhost\r\n\r\n")


def _tunnel(world: World, then: bytes) -> bytes:
    return _ask(f"CONNECT localhost:{world['secure']} HTTP/1.1\r\nHost: localhost\r\n\r\n", then)


def _hello(name: str | None) -> bytes:
    """The beginning of TLS for a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


@escape("TLS for another host in a tunnel that is allowed", PROXY, networks=THROUGH, control=False)
def _other_name(world: World) -> object:
    return _tunnel(world, _hello("example.com"))


@escape("TLS for no host in a tunnel that is allowed", PROXY, networks=THROUGH, control=False)
def _no_name(world: World) -> object:
    return _tunnel(world, _hello(None))


@escape("no TLS in a tunnel that is for it", PROXY, networks=THROUGH, control=False)
def _no_tls(world: World) -> object:
    return _tunnel(world, b"GET / HTTP/1.1\r\nHost: outside\r\n\r\n")


@escape("TLS for another host, in pieces", PROXY, networks=THROUGH, control=False)
def _split_hello(world: World) -> object:
    whole = _hello("example.com")[5:]
    pieces = [whole[at : at + 40] for at in range(0, len(whole), 40)]
    return _tunnel(world, b"".join(b"\x16\x03\x01" + struct.pack(">H", len(p)) + p for p in pieces))


def _extended(name: str | None, *extensions: tuple[int, bytes]) -> bytes:
    """The beginning of TLS for a name, with extensions after its own."""
    body = _hello(name)[9:]
    at = 34
    for width in (1, 2, 1):
        at += width + int.from_bytes(body[at : at + width], "big")
    more = b"".join(struct.pack(">HH", kind, len(value)) + value for kind, value in extensions)
    whole = body[at + 2 :] + more
    body = body[:at] + struct.pack(">H", len(whole)) + whole
    body = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack(">H", len(body)) + body


def _named(*names: tuple[int, bytes]) -> tuple[int, bytes]:
    """The extension of TLS that names hosts, each with its type."""
    listed = b"".join(bytes([kind]) + struct.pack(">H", len(name)) + name for kind, name in names)
    return 0, struct.pack(">H", len(listed)) + listed


@escape("TLS with a second list of names", PROXY, networks=THROUGH, control=False)
def _two_lists(world: World) -> object:
    return _tunnel(world, _extended("localhost", _named((0, b"example.com"))))


@escape("TLS with two names in one list", PROXY, networks=THROUGH, control=False)
def _two_names(world: World) -> object:
    both = _named((0, b"localhost"), (0, b"example.com"))
    return _tunnel(world, _extended(None, both))


@escape("TLS with a first name that is no host's", PROXY, networks=THROUGH, control=False)
def _odd_name(world: World) -> object:
    both = _named((7, b"localhost"), (0, b"example.com"))
    return _tunnel(world, _extended(None, both))


@escape("TLS with the true name encrypted", PROXY, networks=THROUGH, control=False)
def _encrypted_name(world: World) -> object:
    return _tunnel(world, _extended("localhost", (0xFE0D, bytes(300))))


def main(world: World, names: list[str]) -> dict[str, str]:
    """What each of these escapes got; those that were blocked are not in it."""
    got = {}
    for name in names:
        try:
            got[name] = repr(ESCAPES[name].attempt(world))[:200]
        except (OSError, ValueError, subprocess.SubprocessError, shutil.Error):
            continue
    return got


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps(main(given["world"], given["names"])))
