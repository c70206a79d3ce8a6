"""Putting the plugin into a repository, without touching what a person wrote.

What was written is noted by digest in `.rondel/plugin.json`; a file, or a section, that is
no longer what was written has been edited, and stays.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from rondel.errors import RondelError, UsageError
from rondel.model.names import digest
from rondel.plugin.claude import plugin_files
from rondel.plugin.hosts import BEGIN, END, agents_section, gemini_files, opencode_files
from rondel.store import documents, files

HOSTS = ("claude", "codex", "gemini", "opencode")
CLAUDE = ".claude/skills/rondel"  # where Claude Code finds the plugins of a project it trusts
AGENTS = "AGENTS.md"
NOTES = ".rondel/plugin.json"
SIGNS = {"codex": (".codex", AGENTS), "gemini": (".gemini", "GEMINI.md"), "opencode": (".opencode",)}


def install_plugin(root: Path, hosts: Sequence[str] | None = None) -> list[str]:
    """Install the plugin's files in a repository; says what was done, one line each.

    Without `hosts`: Claude Code, and whichever of the others is on the PATH or has left
    something in the repository.
    """
    chosen = tuple(hosts) if hosts is not None else _present(root)
    for host in chosen:
        if host not in HOSTS:
            raise UsageError(f"no host {host!r}; there are: {', '.join(HOSTS)}")
    noted = _noted(root)
    lines: list[str] = []
    for host in chosen:
        lines += _install(root, host, noted)
    if noted:
        _write(root, NOTES, json.dumps({"written": noted}, indent=2, sort_keys=True) + "\n")
    return lines


def _present(root: Path) -> tuple[str, ...]:
    others = (h for h, signs in SIGNS.items() if shutil.which(h) or any((root / s).exists() for s in signs))
    return ("claude", *others)


def _install(root: Path, host: str, noted: dict[str, str]) -> list[str]:
    if host == "claude":
        made = {f"{CLAUDE}/{path}": text for path, text in plugin_files().items()}
        return _put_all(root, made, noted, f"claude: {CLAUDE}/ (/rondel:specify …)")
    if host == "gemini":
        return _put_all(root, gemini_files(), noted, "gemini: .gemini/commands/rondel/ (/rondel:specify …)")
    lines = _put_section(root, noted, host)
    if host == "opencode":
        what = "opencode: .opencode/commands/rondel/ (/rondel/specify …)"
        lines += _put_all(root, opencode_files(), noted, what)
    return lines


def _put_all(root: Path, made: dict[str, str], noted: dict[str, str], what: str) -> list[str]:
    kept = [path for path, text in made.items() if not _put(root, path, text, noted)]
    lines = [what] if len(kept) < len(made) else []
    return lines + [f"kept {path}: it was not written by `rondel init`, or was edited since" for path in kept]


def _put(root: Path, path: str, text: str, noted: dict[str, str]) -> bool:
    """Write a file that is not there, or still as it was written; False when it is a person's."""
    there = files.read(files.real_path(root, path))
    if there is not None and there != text.encode() and digest(there) != noted.get(path):
        return False
    if there != text.encode():
        _write(root, path, text)
    noted[path] = digest(text)
    return True


def _put_section(root: Path, noted: dict[str, str], host: str) -> list[str]:
    """Our section of AGENTS.md; everything around it stays to the byte."""
    data = files.read(files.real_path(root, AGENTS)) or b""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [f"kept {AGENTS}: it is not UTF-8; save it as UTF-8 and run `rondel init` again"]
    section = agents_section()
    key = f"{AGENTS}#rondel"
    before, begin, rest = text.partition(BEGIN)
    ours, end, after = rest.partition(END)
    if text.count(BEGIN) > 1 or bool(begin) != bool(end):
        return [f"kept {AGENTS}: the marks around Rondel's section are not a pair; mend or remove them"]
    if begin:
        there = f"{begin}{ours}{end}\n"
        if there != section and digest(there) != noted.get(key):
            return [f"kept {AGENTS}: Rondel's section was edited"]
        new = before + section.removesuffix("\n") + after
    else:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        new = text + gap + section
    if new != text:
        _write(root, AGENTS, new)
    noted[key] = digest(section)
    return [f"{host}: a section of {AGENTS}"]


def _write(root: Path, path: str, text: str) -> None:
    """A link inside the repository is followed, so that it stays a link."""
    target = files.real_path(root, path)
    files.make_folder(target.parent)
    files.write(target, text.encode())


def _noted(root: Path) -> dict[str, str]:
    """What was written last time. Lost, everything that differs counts as a person's."""
    try:
        found = documents.load(files.real_path(root, NOTES)).get("written")
    except RondelError:
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}
