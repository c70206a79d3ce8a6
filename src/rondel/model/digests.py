"""Digests: what makes two texts the same text."""

from __future__ import annotations

import hashlib


def digest(data: bytes | str) -> str:
    """The SHA-256 in hex."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
