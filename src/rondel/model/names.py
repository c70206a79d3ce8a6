"""Safe names: whatever becomes a path is made or checked here.

Ids, branch names, cycle types and file names come from people, agents and repositories.
None of them may leave its folder, hide, or mean something else on another system. A content is named by
its digest.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from rondel.errors import UnsafePath

NAME_MAX = 100
BYTES_MAX = 240
PATH_MAX = 1000
_RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")
_UNSAFE = re.compile(r"^[/~]|^[A-Za-z]:|[\x00-\x1f\x7f\\]")
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\/]')


def slug(title: str, *, length_max: int = 60, fallback: str = "session") -> str:
    """A lower-case name of letters, digits and hyphens.

    Latin letters lose their accents; other scripts keep their letters, so that a title in
    any language gives a usable name. A title without a single letter or digit, or one that is
    a reserved word somewhere, gives `fallback` and a few digits of its digest.
    """
    plain = unicodedata.normalize("NFKD", title).casefold()
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", kept))
    name = _cut("-".join(words), length_max)
    return name if is_safe_name(name) else f"{fallback}-{digest(title)[:6]}"


def _cut(name: str, length_max: int) -> str:
    """At most `length_max` characters and three times that in bytes, ending on a whole word if it can."""
    short = name[:length_max]
    while len(short.encode()) > min(3 * length_max, BYTES_MAX):
        short = short[:-1]
    if len(short) < len(name) and "-" in short[length_max // 2 :]:
        short = short.rpartition("-")[0]
    return short.strip("-")


def is_safe_name(name: str) -> bool:
    """Whether `name` is one visible path segment that means the same everywhere."""
    return (
        0 < len(name) <= NAME_MAX
        and len(name.encode("utf-8", "surrogatepass")) <= BYTES_MAX
        and not _FORBIDDEN.search(name)
        and not name.startswith(("-", ".", "~"))
        and not name.endswith((".", " "))
        and not _RESERVED.match(name)
        and name.isprintable()
    )


def safe_name(name: str, what: str) -> str:
    """`name` itself; UnsafePath when it cannot be one path segment."""
    if not is_safe_name(name):
        raise UnsafePath(f"{what} {name!r} cannot be a file name; use letters, digits, '-', '_' and '.'")
    return name


def free_name(names: Iterable[str], is_taken: Callable[[str], bool]) -> str:
    """The first of some names that nothing has yet."""
    return next(name for name in names if not is_taken(name))


def numbered(stem: str, suffix: str = "") -> Iterator[str]:
    """`stem-1`, `stem-2` and so on, without an end."""
    return (f"{stem}-{number}{suffix}" for number in count(1))


def folder_name(text: str) -> str:
    """Any text as one path segment that `is_safe_name`: a branch `fix/a b` becomes `fix-a-b`.

    Different texts may give the same name; where that matters the caller keeps them apart.
    """
    name = re.sub(r"(?:[^\w.+=@-]|\.{2,})+", "-", unicodedata.normalize("NFC", text)).strip("-. ")
    while len(name.encode()) > BYTES_MAX or len(name) > NAME_MAX:
        name = name[:-1].rstrip("-. ")
    return name if is_safe_name(name) else f"x-{digest(text)[:8]}"


def inside(path: str, what: str = "path") -> str:
    """A relative path in plain form that stays in its folder; UnsafePath for any other.

    Refuses absolute paths, drive letters, `..`, backslashes, control characters and empty
    segments. Symbolic links are the business of whoever opens it.
    """
    plain = path.rstrip("/")
    unsafe = (
        len(path) > PATH_MAX
        or _UNSAFE.search(path) is not None
        or not {"", ".", ".."}.isdisjoint(plain.split("/"))
    )
    if unsafe:
        raise UnsafePath(f"{what} {path!r} does not stay in its folder; use a relative path without '..'")
    return plain


def digest(data: bytes | str) -> str:
    """The SHA-256 in hex."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()
