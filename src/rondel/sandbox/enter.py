"""What a forked child does to enter its sandbox, before it becomes its program.

The reaper imports this at every start: so it imports little, and nothing of Rondel, and makes nothing
that takes long (a pattern, a named tuple). Sockets are made by the C library, as everything here is:
Python's module for them takes longer to load than all of this.

The order is what matters: namespaces of its own come first, since making them needs privileges in them;
then the list of paths, from which on nothing can be mounted; then every privilege is given up. Run as a
program it says whether the namespaces can be had here: nothing, or what is refused.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Any

SHM = "/dev/shm"  # noqa: S108 - the place that programs know
_TERMINALS, _NEW_TERMINAL = "/dev/pts", "/dev/ptmx"
_SHM_MAX = 4 * 2**30
_SHM_FILES_MAX = 100_000  # an empty one takes memory of the kernel, too

_NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_NET = 0x00020000, 0x08000000, 0x10000000, 0x40000000
_NO_SUID, _NO_DEVICES, _NO_PROGRAMS, _BIND = 2, 4, 8, 4096
_LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 445, 446
_BENEATH = 1
_READ_FOLDER = 1 << 3
_SET_NO_NEW_PRIVS, _CAPBSET_DROP = 38, 24
_CAPABILITY_VERSION_3 = 0x20080522
_SET_SECCOMP, _REFUSE, _ALLOW = 22, 0x00050000, 0x7FFF0000
_LOAD, _EQUAL, _FROM_ON, _GIVE = 0x20, 0x15, 0x35, 0x06  # the steps of a filter
_X32 = 0x40000000  # from here on: the second set of numbers that x86 has
_IO_URING_SETUP = 425  # on all of them
_FAMILIES = (1, 2, 10, 16)  # local, IP, IPv6, and asking the kernel about them
_BACKLOG = 100
_IP, _IPV6 = 2, 10
_STREAM, _DATAGRAMS = 1, 2
_SOL_SOCKET, _SCM_RIGHTS = 1, 1
_SIOCSIFFLAGS, _UP_RUNNING = 0x8914, 0x41
_SOCKETS = "/proc/net/unix"
_FIELDS = 7  # that a line of it has before the path

_LIBC = ctypes.CDLL(None, use_errno=True)


class _Calls:
    """The numbers of system calls on a processor."""

    def __init__(
        self, processor: int, socket: int, limits: int, keys: tuple[int, ...], other: tuple[int, ...]
    ) -> None:
        self.processor = processor  # how the kernel calls it
        self.socket = socket
        self.limits = limits  # prlimit64
        self.keys = keys  # add_key, request_key, keyctl
        self.other = other  # the last two of the processor before it, whose programs it runs too


_PROCESSORS = {
    "x86_64": _Calls(0xC000003E, 41, 302, (248, 249, 250), (340, 286, 287, 288)),
    "aarch64": _Calls(0xC00000B7, 198, 261, (217, 218, 219), (369, 309, 310, 311)),
    "riscv64": _Calls(0xC00000F3, 198, 261, (217, 218, 219), ()),
}


def enter(rules: int, spaces: dict[str, Any] | None, channel: int) -> None:
    """Enter namespaces, if any, and a ruleset for good, with no privilege left or to be had.

    OSError when the kernel will not: nothing is run unconfined that was to be confined.
    """
    if spaces is not None:
        _isolate(rules, spaces, channel)
    _ok(_LIBC.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "take away privileges")
    _ok(_LIBC.syscall(_LANDLOCK_RESTRICT_SELF, rules, 0), "enter its list of paths")
    for capability in range(64):
        if _LIBC.prctl(_CAPBSET_DROP, capability, 0, 0, 0):  # there are no more, or we have none to give up
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _ok(_LIBC.capset(header, (ctypes.c_uint32 * 6)()), "take away capabilities")
    _nobody_else()
    if spaces is not None and spaces["network"]:
        _plain_sockets_only()


def _isolate(rules: int, spaces: dict[str, Any], channel: int) -> None:
    """Namespaces of our own: always for mounts and System V memory, and for the network where asked for."""
    network: bool = spaces["network"]
    covered = list(_to_cover(spaces["sockets"])) if network else []
    _own_namespaces(_NEW_NET if network else 0)
    if spaces["shm"]:
        _mount_shm()
        _allow(rules, SHM, spaces["shm"])
    if spaces["terminals"] and _mount_terminals():
        _allow(rules, _TERMINALS, spaces["terminals"])
        _allow(rules, _NEW_TERMINAL, spaces["terminals"] & ~_READ_FOLDER)
    for path in covered:
        try:
            _mount("/dev/null", path, "", _BIND, "")
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):  # where we get, our program gets
                raise
    if network:
        _loopback_up()
        _listen(spaces["ports"], channel)


def _own_namespaces(more: int) -> None:
    """Leave the user, mount and IPC namespaces; inside we are who we are, and nobody else is known."""
    user, group = os.geteuid(), os.getegid()
    _ok(_LIBC.unshare(_NEW_USER | _NEW_MOUNTS | _NEW_IPC | more), "make namespaces")
    for name, words in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        try:
            with open(f"/proc/self/{name}", "w", encoding="ascii") as f:  # noqa: PTH123 - starts faster
                f.write(words)
        except OSError as e:
            raise OSError(e.errno, f"write /proc/self/{name}: {e.strerror}") from e


def _to_cover(kept: Iterable[str]) -> Iterator[str]:
    """The paths of sockets that somebody outside listens on: no namespace of the network holds those.

    `kept` are the places that the person opened.
    """
    with open(_SOCKETS, encoding="utf-8", errors="surrogateescape") as f:  # noqa: PTH123 - starts faster
        lines = f.read().split("\n")
    for path in sorted({os.path.realpath(path) for line in lines if (path := _bound(line))}):
        if not any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in kept):
            yield path


def _bound(line: str) -> str:
    """The path that a line of the kernel's list says a socket is bound to; empty where there is none."""
    fields = line.split(maxsplit=_FIELDS)
    path = fields[_FIELDS] if len(fields) > _FIELDS else ""
    return path if path.startswith("/") and line.endswith(f"{fields[_FIELDS - 1]} {path}") else ""


def _loopback_up() -> None:
    handle = _LIBC.socket(_IP, _DATAGRAMS, 0)
    _ok(handle < 0, "make a socket")
    asked = ctypes.create_string_buffer(struct.pack("16sH22x", b"lo", _UP_RUNNING))
    _ok(_LIBC.ioctl(handle, ctypes.c_ulong(_SIOCSIFFLAGS), asked), "start its loopback")
    os.close(handle)


def _listen(ports: list[int], channel: int) -> None:
    """Listen on our own loopback, for the driver: whoever holds a socket may accept on it from anywhere."""
    listening = []
    for port in ports:
        at = port.to_bytes(2, "big")
        listening.append(_listener(_IP, struct.pack("=H2s4s8x", _IP, at, b"\x7f\0\0\1")))
        try:
            one = _listener(_IPV6, struct.pack("=H2s4x15xB4x", _IPV6, at, 1))
        except OSError:
            continue  # a machine without IPv6
        listening.append(one)
    if listening:
        _send(channel, listening)
        for handle in (*listening, channel):
            os.close(handle)


def _listener(family: int, address: bytes) -> int:
    handle: int = _LIBC.socket(family, _STREAM, 0)
    _ok(handle < 0, "make a socket")
    try:
        _ok(_LIBC.bind(handle, address, len(address)), "listen on its loopback")
        _ok(_LIBC.listen(handle, _BACKLOG), "listen on its loopback")
    except OSError:
        os.close(handle)
        raise
    return handle


def _send(channel: int, handles: list[int]) -> None:
    """Open files of ours to whoever holds the other end."""
    size = struct.calcsize("@Nii") + 4 * len(handles)
    rights = struct.pack(f"@Nii{len(handles)}i0N", size, _SOL_SOCKET, _SCM_RIGHTS, *handles)
    dot, control = ctypes.create_string_buffer(b"."), ctypes.create_string_buffer(rights, len(rights))
    part = ctypes.create_string_buffer(struct.pack("@PN", ctypes.addressof(dot), 1))
    words = (0, 0, ctypes.addressof(part), 1, ctypes.addressof(control), len(rights), 0)
    message = ctypes.create_string_buffer(struct.pack("@PIPNPNi0P", *words))
    _ok(_LIBC.sendmsg(channel, message, 0) < 0, "hand its loopback to the driver")


def _allow(rules: int, path: str, access: int) -> None:
    """Add a path to the list: what was mounted here was not there when the list was made."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = ctypes.create_string_buffer(struct.pack("=Qi", access, fd))
    _ok(_LIBC.syscall(_LANDLOCK_ADD_RULE, rules, _BENEATH, rule, 0), f"allow {path}")
    os.close(fd)


def _plain_sockets_only() -> None:
    """From now on no sockets but local ones and those of IP: others, to a hypervisor say, know no namespace.

    A filter of system calls: of `socket` by its family, of those of other processors and of `io_uring`,
    which makes sockets too, by their number.
    """
    calls = _PROCESSORS.get(os.uname().machine)
    if calls is None:
        raise OSError(errno.ENOSYS, f"the system calls of {os.uname().machine} are not known")
    _filter(
        (_LOAD, 0, 0, 4),  # 0: the processor
        (_EQUAL, 0, 11, calls.processor),
        (_LOAD, 0, 0, 0),  # 2: the call
        (_FROM_ON, 9, 0, _X32),
        (_EQUAL, 8, 0, _IO_URING_SETUP),
        (_EQUAL, 0, 6, calls.socket),
        (_LOAD, 0, 0, 16),  # 6: its first argument
        *((_EQUAL, 4 - n, 0, family) for n, family in enumerate(_FAMILIES)),
        (_GIVE, 0, 0, _REFUSE | errno.EAFNOSUPPORT),
        (_GIVE, 0, 0, _ALLOW),  # 12
        (_GIVE, 0, 0, _REFUSE | errno.ENOSYS),  # 13
    )


def _nobody_else() -> None:
    """From now on no limits for other processes, by which one can be ended, and no keys of the kernel's.

    No list of paths holds these. Where the processor's calls are not known, they are not refused.
    """
    calls = _PROCESSORS.get(os.uname().machine)
    if calls is None:
        return
    refuse, allow = (_GIVE, 0, 0, _REFUSE | errno.EPERM), (_GIVE, 0, 0, _ALLOW)
    other = [step for call in calls.other for step in ((_EQUAL, 0, 1, call), refuse)]
    keys = [step for call in calls.keys for step in ((_EQUAL, 0, 1, call), refuse)]
    _filter(
        (_LOAD, 0, 0, 4),  # the processor
        (_EQUAL, len(other) + 2, 0, calls.processor),
        (_LOAD, 0, 0, 0),  # the call of another one, which has numbers of its own
        *other,
        allow,
        (_LOAD, 0, 0, 0),  # the call
        (_FROM_ON, 0, 1, _X32),
        (_GIVE, 0, 0, _REFUSE | errno.ENOSYS),
        *keys,
        (_EQUAL, 0, 7, calls.limits),
        (_LOAD, 0, 0, 16),  # whose: 0 is the caller
        (_EQUAL, 5, 0, 0),
        (_LOAD, 0, 0, 32),  # where the new limit is: nowhere for who only asks
        (_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, 36),
        (_EQUAL, 1, 0, 0),
        refuse,
        allow,
    )


def _filter(*program: tuple[int, int, int, int]) -> None:
    """A filter of system calls, for good: each step has a kind, two ways on, and a value."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    whole = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    _ok(_LIBC.prctl(_SET_SECCOMP, 2, ctypes.byref(whole), 0, 0), "filter its system calls")


def _mount_shm() -> None:
    """Shared memory of our own, with a bound: what is in it is memory until the last program has ended."""
    size = min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4, _SHM_MAX)
    bounds = f"size={size},nr_inodes={_SHM_FILES_MAX}"
    _mount("tmpfs", SHM, "tmpfs", _NO_SUID | _NO_DEVICES, f"mode=1777,{bounds}")


def _mount_terminals() -> bool:
    """Pseudo-terminals of our own, in place of the person's; whether they can be had here."""
    try:
        _mount("devpts", _TERMINALS, "devpts", _NO_SUID | _NO_PROGRAMS, "newinstance,ptmxmode=0666,mode=0600")
        _mount(f"{_TERMINALS}/ptmx", _NEW_TERMINAL, "", _BIND, "")
    except OSError:
        return False
    return True


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = [os.fsencode(word) if word else None for word in (source, target, kind, options)]
    _ok(_LIBC.mount(*words[:3], ctypes.c_ulong(flags), words[3]), f"mount {target}")


def _ok(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        if number == errno.ENOSPC:  # of namespaces, not of the disk
            number = errno.EUSERS
        raise OSError(number, f"cannot {what}: {os.strerror(number)}")


if __name__ == "__main__":
    try:
        _own_namespaces(_NEW_NET)
        _mount_shm()
        _loopback_up()
        _plain_sockets_only()
    except OSError as e:
        sys.exit(e.strerror or str(e))
