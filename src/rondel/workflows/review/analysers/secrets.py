"""Secrets, by detect-secrets. Nothing is sent anywhere to find out whether one is valid."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rondel.model import jsons
from rondel.workflows.review.analysers import base
from rondel.workflows.review.findings import Category, Severity

_GUESSES = {
    "Secret Keyword": (Category.SHOULD_FIX, Severity.HIGH),
    "Basic Auth Credentials": (Category.SHOULD_FIX, Severity.HIGH),
    "Base64 High Entropy String": (Category.SUGGESTION, Severity.MEDIUM),
    "Hex High Entropy String": (Category.SUGGESTION, Severity.LOW),
    "Public IP (ipv4)": (Category.STYLE, Severity.INFO),
    "IBM Cloud IAM Key": (Category.SHOULD_FIX, Severity.HIGH),
}
_LOCKS = re.compile(r"(?i)(?:[.-]lock(?:\.json|\.yaml)?|\.resolved|\bgo\.sum)$")
_KNOWN = (Category.BLOCKER, Severity.CRITICAL)
_ADVICE = "Take it out of the change and its history, make a new one, and read it from the environment."


def _wants(file: base.ChangedFile) -> bool:
    return b"\0" not in file.data[:8_000]


# Its own command leaves out, without a word, what is not below the current folder. This one says
# what it looked at. Neither a comment in a file nor the file's name keeps it from looking.
_SCRIPT = """
import json, sys
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings, get_settings
with default_settings():
    get_settings().disable_filters(
        "detect_secrets.filters.allowlist.is_line_allowlisted",
        "detect_secrets.filters.heuristic.is_lock_file",
        "detect_secrets.filters.heuristic.is_non_text_file",
        "detect_secrets.filters.heuristic.is_swagger_file",
    )
    for path in sys.argv[1:]:
        found = [[secret.type, secret.line_number] for secret in scan_file(path)]
        print(json.dumps([path, found]))
"""


def _look(files: Sequence[base.ChangedFile], scratch: Path, run: base.Run) -> base.Looked:
    placed = base.copies(files, scratch)
    paths = [str(scratch / name) for name in placed]
    status, out, err = run([sys.executable, "-I", "-c", _SCRIPT, *paths])
    found = parse(out)
    if status != 0 or found is None or [path for path, _ in found] != paths:
        return base.Looked(trouble=f"detect-secrets ended with status {status}: {err.strip()[-200:]}")
    return base.Looked(tuple(_hits(found, placed)), frozenset(f.path for f in files))


def parse(out: str) -> list[tuple[str, list[tuple[str, int]]]] | None:
    """Kind and line of each secret by file, from one JSON list a line; None when it is not that."""
    files = []
    for row in out.splitlines():
        try:
            path, found = jsons.load(row)
            files.append((str(path), [(str(kind), int(line)) for kind, line in found]))
        except (ValueError, TypeError):
            return None
    return files


def _hits(
    found: Sequence[tuple[str, list[tuple[str, int]]]], placed: dict[str, base.ChangedFile]
) -> Iterator[base.Hit]:
    """One hit for a line, by the surest of its kinds."""
    surest: dict[tuple[str, int], tuple[str, Category, Severity]] = {}
    for name, kind, line in ((name, kind, line) for name, listed in found for kind, line in listed):
        file = base.original(name, placed)
        if file is None or ("Entropy" in kind and _LOCKS.search(file.name)):
            continue  # digests are what a lock file is made of
        category, severity = _GUESSES.get(kind, _KNOWN)
        before = surest.get((file.path, line))
        if before is None or list(Category).index(category) < list(Category).index(before[1]):
            surest[file.path, line] = (kind, category, severity)
    for (path, line), (kind, category, severity) in surest.items():
        rule = "secret-" + "-".join(kind.lower().replace("(", "").replace(")", "").split())
        message = f"This looks like a secret ({kind}). Whoever can read the repository can use it."
        yield base.Hit(
            rule,
            message,
            path,
            line,
            category,
            severity,
            frozenset({base.SECURITY}),
            suggestion=_ADVICE,
            secret=True,
        )


SECRETS = base.Analyser("detect-secrets", frozenset({base.SECURITY}), _wants, _look)
