"""Digests: what makes two texts the same text."""

from __future__ import annotations

import hashlib


def digest(data: bytes | str) -> str:
    """The SHA-256 in hex."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()
