"""Typing a command in a hostile repository, and what must hold afterwards, whatever the command said."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from corpus import Case, Site, build
from corpus.base import SECRETS
from forked import Forked

from rondel.cli.main import COMMANDS as TOP
from support.person import opens

BOUND_S = 60.0  # the wall clock of a command on a loaded machine; each needs a second or a few
CODES = (0, 1, 2, 3, 4, 5, 6)
TAG = "RONDEL_CORPUS_TAG"
RONDEL = [str(Path(sys.executable).with_name("rondel"))]
SECRET = "corpus-secret"
READ_MAX = 10_000_000
OWN = ("ANTHROPIC_API_KEY",)  # what the person's Claude may see
OURS = (".local/state/rondel", ".cache/rondel")  # of HOME
GENERATE = ("-c", "package=shelf", "-c", "entity=Book", "-c", "scope=models")
NAMED = (
    ("generate", "init", "python-service", *GENERATE),
    *(
        tuple(line.split("|"))
        for line in (
            "review",
            "review|--quick|--json",
            "review|main..HEAD",
            "review|main...change|--json",
            "review|staged",
            "review|--again|--restart",
            "review|resolve|--json",
            "review|show",
            "review|history|--all",
            "review|progress",
            "review|compare",
            "review|post|--dry-run",
            "review|accept|F-1",
            "review|close",
            "review|parse|README.md",
            "review|start",
            "feature|start|It",
            "feature|run",
            "feature|brainstorm",
            "feature|specify",
            "feature|design",
            "feature|create-plan|--yes",
            "feature|create-tasks",
            "feature|implement|--yes",
            "feature|verify",
            "feature|lint|docs/features/001-x/.meta.json",
            "feature|status",
            "feature|check|design",
            "feature|history",
            "feature|finish|--keep",
            "cycle|start|Do it",
            "cycle|start|Do it|--auto|--json",
            "cycle|status",
            "cycle|resume",
            "cycle|pause",
            "cycle|stop",
            "cycle|block|cycle|it is stuck",
            "cycle|unblock|cycle|B-1",
            "cycle|decide|cycle|D-1|--option|yes",
            "cycle|extend|cycle|more of it",
            "cycle|feedback|cycle|do better|--to|cd",
            "cycle|schema",
            "cycle|timeline",
            "cycle|rebuild",
            "task|start|One",
            "task|run",
            "task|run|IMPL-1",
            "task|add|More of it",
            "task|plan|all of it",
            "task|breakdown|IMPL-1|in parts",
            "task|replan|IMPL-1|otherwise",
            "task|reopen|IMPL-1",
            "task|switch|WFS",
            "task|pause",
            "task|resume",
            "task|sessions",
            "task|validate",
            "task|todo",
            "task|allow",
            "task|complete",
            "generate|profiles",
            "generate|profile|show|evil",
            "generate|profile|show|python-service",
            "generate|profile|new|mine",
            "generate|init|evil",
            "generate|run|--auto",
            "generate|approve",
            "generate|reject|--feedback|no",
            "generate|retry",
            "generate|skip|tests",
            "generate|cancel",
            "generate|status",
            "generate|apply",
            "status",
            "status|--json",
            "status|--explain",
            "watch|--once",
            "run|--json",
            "resume",
            "resume|--retry|--refresh",
            "pause",
            "stop",
            "approve",
            "reject|--feedback|no",
            "show",
            "show|--raw",
            "init",
            "init|--no-plugin",
            "trust",
            "trust|--json",
            "trust|--yes",
            "trust|--revoke",
            "doctor",
            "doctor|--json",
            "doctor|--repair",
            "agents",
            "agents|--json",
            "completion|bash",
            "hook|session-start",
        )
    ),
)
COMMANDS = NAMED + tuple((name,) for name in TOP if name not in {words[0] for words in NAMED} | {"demo"})
ELSEWHERE = ("demo",)  # makes a repository of its own


VENDOR = """#!{python} -IS
import json, os, re, sys
if "--version" in sys.argv:
    print("1.0.0 (a fake)")
    sys.exit()
prompt = "" if sys.stdin.isatty() else sys.stdin.read()
with open(os.path.join({asked!r}, str(os.getpid())), "w") as f:
    json.dump({{"argv": sys.argv, "env": dict(os.environ), "prompt": prompt}}, f)
found = re.search(r"phase: (ra|ep|cd|vas)", prompt)
body = json.dumps({{"findings": [], "responses": [], "approved": True, "issues": [], "summary": "x"}})
answer = "## Summary\\n\\nRead.\\n\\n```json\\n" + body + "\\n```\\n"
if found:
    answer += "PHASE_RESULT:\\n- phase: " + found[1] + "\\n- status: success\\n"
    answer += "- files_written: []\\n- summary: x\\n- issues: []\\n"
print(json.dumps({{"type": "system", "subtype": "init", "session_id": "s", "model": "m"}}))
end = {{"type": "result", "subtype": "success", "is_error": False, "result": answer, "session_id": "s"}}
print(json.dumps(end))
"""


class Wrong(AssertionError):
    """What did not hold."""


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


class Listener:
    """A server on loopback that nobody may call."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def calls(self) -> int:
        found = 0
        while True:
            try:
                self._socket.accept()[0].close()
            except BlockingIOError:
                return found
            found += 1

    def close(self) -> None:
        self._socket.close()


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()
    try:
        yield listener
    finally:
        listener.close()


def check(
    case: Case,
    commands: Iterable[tuple[str, ...]],
    folder: Path,
    listener: Listener,
    more_env: Mapping[str, str] | None = None,
    *,
    hides_marks: bool = False,
    forked: Forked | None = None,
) -> None:
    """Build the case, type each command in it as it was built; Wrong where something does not hold.

    With `forked` the first command alone is a process from its start, the others are forks.
    The sandbox lets a program write where the marks of the corpus are: what should not have run leaves
    one also where it was confined. With `hides_marks` it does not, as it is for a person.
    """
    site = build(case, folder, listener.url)
    env = _person(site, listener.url, hides_marks=hides_marks) | dict(more_env or {})
    built = folder.with_name(f"{folder.name}-built")
    _copy(folder, built)
    found = []
    for number, words in enumerate(commands):
        if number:
            shutil.rmtree(folder)
            _copy(built, folder)
        found += _wrong(case, site, env, words, listener, forked if number else None)
    if found:
        raise Wrong("\n".join(found))


def _copy(folder: Path, to: Path) -> None:
    """All of it, with its links, pipes and modes, which `shutil` would follow, wait for or drop."""
    subprocess.run(["cp", "-a", str(folder), str(to)], check=True)


def _wrong(
    case: Case,
    site: Site,
    env: Mapping[str, str],
    words: tuple[str, ...],
    listener: Listener,
    forked: Forked | None,
) -> list[str]:
    before = _state(site)
    said = _type(site, env, words, forked)
    wrong = [
        *_unchanged(site, before),
        *_nobody_left(site),
        *(["somebody called the server"] if listener.calls() else []),
        *_kept_to_itself(site, said),
        *(_plain(said) if "--raw" not in words else ()),  # which is for a file
        *_true(site, case, words, said),
    ]
    if not wrong:
        return []
    head = f"{case.name}: rondel {' '.join(words)}:"
    return ["\n  ".join([head, *wrong]), f"exit {said.code}", said.out[-6000:], said.err[-6000:]]


def _person(site: Site, url: str, *, hides_marks: bool) -> dict[str, str]:
    """The environment of somebody with secrets, a vendor's CLI and `gh`, behind a proxy that records."""
    tools, asked = site.folder / "bin", site.folder / "asked"
    tools.mkdir()
    asked.mkdir()
    (site.home / ".claude").mkdir(exist_ok=True)  # where the vendor's own state is
    opens(site.home / ".config", asked, *(() if hides_marks else (site.outside,)))
    for name in ("claude", "gh"):
        (tools / name).write_text(VENDOR.format(python=sys.executable, asked=str(asked)))
        (tools / name).chmod(0o755)
    bases = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return {
        "PATH": f"{tools}::.:bin:{Path(sys.executable).parent}:/usr/bin:/bin",  # some people's is like that
        "HOME": str(site.home),
        "TMPDIR": str(site.folder / "tmp"),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        TAG: str(site.folder),
        **SECRETS,
        **dict.fromkeys((*bases, *proxies), url),
    }


def _type(site: Site, env: Mapping[str, str], words: tuple[str, ...], forked: Forked | None) -> Said:
    if forked:
        code, out, err = forked.type(words, site.root, env, BOUND_S)
    else:
        code, out, err = _start(words, site.root, env)
    if code is None:
        late = f"{site.folder.name}: {' '.join(words)} did not end within {BOUND_S:g} s"
        raise Wrong(f"{late}\n{err[-2000:]!r}")
    return Said(code, out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"))


def _start(words: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> tuple[int | None, bytes, bytes]:
    child = subprocess.Popen(
        [*RONDEL, *words],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=BOUND_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return None, *child.communicate()
    return child.returncode, out, err


# -- what must hold -------------------------------------------------------------------------


def _state(site: Site) -> dict[str, str]:
    """Everything of the person's that is none of Rondel's: outside, and HOME."""
    found: dict[str, str] = {}
    for top in (site.outside, site.home):
        for here, folders, names in os.walk(top):
            for name in (*folders, *names):
                path = Path(here, name)
                key = path.relative_to(site.folder).as_posix()
                if not key.removeprefix("home/").startswith(OURS):
                    found[key] = _content(path)
    return found


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"link {path.readlink()}"
    if path.is_file():
        return f"{path.stat().st_mode:o} {_digest(path)}"
    return f"{path.stat().st_mode:o}"


def _digest(path: Path) -> str:
    size = path.stat().st_size
    return str(size) if size > READ_MAX else hashlib.sha256(path.read_bytes()).hexdigest()


def _unchanged(site: Site, before: Mapping[str, str]) -> Iterator[str]:
    after = _state(site)
    ours = {".local", ".local/state", ".cache"}  # the folders that ours are in
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name) and name.removeprefix("home/") not in ours:
            yield f"{name} was {'changed' if name in before and name in after else 'made or removed'}"


def _nobody_left(site: Site) -> Iterator[str]:
    """Processes that the command left behind; what is just ending has a moment."""
    end = time.monotonic() + 5
    while (left := _tagged(site)) and time.monotonic() < end:
        time.sleep(0.05)
    for pid, line in left:
        yield f"process {pid} was left behind: {line}"
        _end(pid)


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _tagged(site: Site) -> list[tuple[int, str]]:
    word = f"{TAG}={site.folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if word in (entry / "environ").read_bytes().split(b"\0"):
                found.append((int(entry.name), (entry / "cmdline").read_text().replace("\0", " ")[:200]))
        except OSError:
            continue
    return found


def _kept_to_itself(site: Site, said: Said) -> Iterator[str]:
    if SECRET in said.out + said.err:
        yield "a secret was printed"
    for path in sorted((site.folder / "asked").iterdir()):
        asked = json.loads(path.read_text())
        if SECRET in asked["prompt"] or SECRET in str(asked["argv"]):
            yield "a secret was in a prompt"
        env = {k: v for k, v in asked["env"].items() if k not in OWN}
        if SECRET in str(env.values()):
            yield f"a secret was in a vendor's environment: {[k for k, v in env.items() if SECRET in v]}"
        if "stolen" in asked["env"].get("ANTHROPIC_BASE_URL", ""):
            yield "a vendor was sent to another host"
    for path in site.root.rglob("*"):
        small = path.is_file() and not path.is_symlink() and path.stat().st_size < READ_MAX
        if small and SECRET.encode() in path.read_bytes():
            yield f"a secret was written to {path.relative_to(site.root)}"


def _plain(said: Said) -> Iterator[str]:
    for sign in sorted(set(said.out + said.err) - set("\n\t")):
        if unicodedata.category(sign) in ("Cc", "Cf", "Cs") and sign not in "\u200c\u200d":
            yield f"{sign!r} was printed"


def _true(site: Site, case: Case, words: tuple[str, ...], said: Said) -> Iterator[str]:
    """The exit code is a known one, and what it claims is so."""
    if said.code not in CODES:
        yield f"the exit code {said.code} is not known"
    if "Traceback" in said.err + said.out:
        yield "it ended with a traceback"
    if not (said.out + said.err).strip():
        yield "it said nothing"
    if said.code == 0 and ("--json" in words or words[0] == "hook"):
        try:
            json.loads(said.out)
        except ValueError:
            yield "what it printed is no JSON"
    if case.asks and words[0] == "trust" and "nothing here needs your consent" in said.err:
        yield "it said that nothing needs consent"
    if said.code == 0:
        yield from _done(site, words, said)


def _done(site: Site, words: tuple[str, ...], said: Said) -> Iterator[str]:
    """Where a command says that it did something, it is there, and it is not what the repository brought."""
    brought = set(_committed(site))
    match words[:2]:
        case ("review", *rest) if not rest or rest[0] not in SHOWING:
            made = [p for p in _made(site, ".ocr/sessions/*/rounds/round-*/final.md") if p not in brought]
            if not made:
                yield "a review claims to be done, and there is none but what the repository brought"
        case ("feature", "start"):
            if not [p for p in _made(site, "docs/features/*/.meta.json") if p not in brought]:
                yield "a feature was begun, and there is none"
        case ("init", *_):
            if not os.path.lexists(site.root / "rondel.toml"):
                yield "it says that there are settings, and there is no such file"
        case ("completion", _):
            if "_RONDEL_COMPLETE" not in said.out:
                yield "that is no completion"


SHOWING = ("resolve", "show", "history", "progress", "compare", "post", "accept", "close")


def _made(site: Site, pattern: str) -> list[str]:
    root = site.root.resolve()
    return [
        p.relative_to(site.root).as_posix()
        for p in site.root.glob(pattern)
        if p.resolve().is_relative_to(root) and p.is_file()
    ]


def _committed(site: Site) -> list[str]:
    try:
        return site.git("-c", "core.quotePath=false", "ls-tree", "-r", "-z", "--name-only", "HEAD").split(
            "\0"
        )
    except RuntimeError:
        return []
