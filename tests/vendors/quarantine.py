"""A network namespace with loopback and nothing else, for this thread and what it starts."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP_RUNNING = 0x41
OUTSIDE = ("192.0.2.1", 80)  # an address reserved for documentation


@contextmanager
def no_network() -> Iterator[bool]:
    """Within it nothing can leave the machine; False where the system does not permit that."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        yield False
        return
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(CLONE_NEWNET) != 0:
            yield False
            return
        try:
            _loopback_up()
            yield True
        finally:
            libc.setns(before, CLONE_NEWNET)
    finally:
        os.close(before)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", IFF_UP_RUNNING, b""))


def can_leave() -> bool:
    """Whether a packet finds a way out of this thread's network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        try:
            handle.connect(OUTSIDE)
        except OSError:
            return False
    return True
