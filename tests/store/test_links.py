"""No path of a session follows a link, to read or to write, at any moment; no read is without a bound."""

from __future__ import annotations

import ast
import ctypes
import errno
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rondel
from rondel import paths
from rondel.errors import DamagedFile, RondelError
from rondel.model.changes import Append, Aside, Edit, Keep, Write
from rondel.processes import reaper
from rondel.store import disk, documents, files, lease, logs, ours
from rondel.store.changes import write_changes
from rondel.store.journal import Journal
from rondel.store.lease import Lease
from rondel.store.locks import locked
from rondel.store.snapshot import DiskSnapshot
from rondel.testing.faults import in_child
from support.words import HastyDisk

SOURCE = Path(rondel.__file__).parent
WAYS = {"one call": paths._best(), "a walk": paths._walk}
SECRET = b"not for anybody\n"
RENAME_EXCHANGE = 2


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """However this system opens a path."""
    monkeypatch.setattr(paths, "_open", WAYS[request.param])
    return request.param


@pytest.fixture
def _in_time():
    signal.alarm(30)  # what waits for a pipe waits for ever
    yield
    signal.alarm(0)


# -- links ------------------------------------------------------------------------------------


def test_nothing_is_opened_through_a_link(tmp_path, way):
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "real/inner/file").write_bytes(SECRET)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real/near").symlink_to("inner/file")
    (tmp_path / "real/up").symlink_to("..")
    assert paths.read(tmp_path / "real/inner/file") == SECRET
    for name in ("link/inner/file", "real/near", "real/up/real/inner/file", "link/../real/inner/file"):
        with pytest.raises(OSError, match="symbolic"):
            paths.read(tmp_path / name)
        assert not paths.is_file(tmp_path / name)
    assert paths.is_there(tmp_path / "link")
    assert not paths.is_there(tmp_path / "link/inner")
    assert paths.names(tmp_path / "real") == ["inner", "near", "up"]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 3), out=st.booleans(), operation=st.integers(0, 11))
def test_whatever_is_done_on_whatever_path_nothing_happens_behind_a_link(
    tmp_path_factory, at, out, operation
):
    top = tmp_path_factory.mktemp("t")
    session, outside = top / "repo/session", top / ("outside" if out else "repo/other")
    deep = session / "a/b/c"
    deep.mkdir(parents=True)
    outside.mkdir(parents=True)
    spot = (session, *deep.parents[1::-1], deep)[at] if at else session
    spot.rename(outside / "was")
    spot.symlink_to(outside / "was")
    (outside / "was").joinpath("secret").write_bytes(SECRET)
    inner = outside / "was" / deep.relative_to(spot)
    (inner / "old").write_bytes(SECRET)
    before = tree(outside)
    with suppress(RondelError, OSError):
        assert OPERATIONS[operation](deep) is not SECRET
    assert tree(outside) == before


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))
    }


OPERATIONS: list[Callable[[Path], object]] = [
    lambda here: files.write(here / "new", b"new"),
    lambda here: files.make_folder(here / "new"),
    lambda here: files.claim_folder(here, ["new"]),
    lambda here: files.aside(here / "old", here / "new"),
    lambda here: files.keep(here / "old", here / "new"),
    lambda here: logs.append_line(here / "old", "x"),
    lambda here: documents.edit(here / "new.json", lambda d: {**d, "x": 1}),
    lambda here: files.sweep(str(here)),
    lambda here: paths.write(here / "old", b"x"),
    lambda here: paths.replace(here / "old", b"x"),
    lambda here: paths.make_folders(here / "x/y"),
    paths.remove_folder,
]


@contextmanager
def swapping(place: Path, outside: Path) -> Iterator[None]:
    """The folder at a place and a link to another one take each other's name all the time."""
    link = place.with_name(f"{place.name}.other")
    link.symlink_to(outside)
    libc, over = ctypes.CDLL(None, use_errno=True), threading.Event()
    names = os.fsencode(place), os.fsencode(link)
    if libc.renameat2(-100, names[0], -100, names[1], RENAME_EXCHANGE):
        pytest.skip("this disk cannot exchange two names")
    pid = os.fork()
    if pid == 0:
        while not over.is_set():
            libc.renameat2(-100, names[0], -100, names[1], RENAME_EXCHANGE)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


CHANGES = (
    Write("docs/new.md", b"ours\n"),
    Append("docs/log", "ours"),
    Edit("docs/state.json", lambda d: {**d, "x": len(d)}),
    Edit("docs/state.json", lambda d: {**d, "y": 1}, "docs/state.ndjson"),
    Keep("docs/new.md", "docs/kept.md"),
    Aside("docs/new.md", "docs/aside.md"),
)


def test_a_folder_that_becomes_a_link_at_any_moment_leads_nobody_out(tmp_path, way, monkeypatch):
    """Files are read and written while somebody swaps their folder for a link, thousands of times."""
    monkeypatch.setattr(disk, "current", HastyDisk())
    session, outside = tmp_path / "repo/session", tmp_path / "outside"
    (session / "docs").mkdir(parents=True)
    outside.mkdir()
    for name in ("secret", "new.md", "log", "state.json", "state.ndjson"):
        (outside / name).write_bytes(SECRET)
    (session / "docs/inner").write_bytes(b"inner\n")
    before, seen, refused = tree(outside), set(), 0
    with swapping(session / "docs", outside):
        for number in range(150):
            known = DiskSnapshot(session)
            seen |= {known.data("docs/secret"), *known.names("docs")}
            for change in CHANGES:
                try:
                    write_changes(session, [change])
                except (RondelError, files.Changed):
                    refused += 1
            for operation in OPERATIONS[:-1]:
                try:
                    operation(session / "docs")
                except (RondelError, OSError):
                    refused += 1
            with suppress(RondelError):
                seen.add(files.read(session / "docs/secret"))
            with suppress(RondelError), locked(session / "docs"):
                pass
            if number % 10 == 0:
                (session / ".rondel").exists() and paths.remove_folder(session / ".rondel")
    assert SECRET not in seen
    assert "secret" not in seen
    assert refused, "nobody was in the way"
    assert tree(outside) == before


@pytest.mark.parametrize("part", [".rondel", ".rondel/run"])
def test_the_runtime_that_becomes_a_link_at_any_moment_leads_nobody_out(tmp_path, part, monkeypatch):
    monkeypatch.setattr(disk, "current", HastyDisk())
    session, outside = tmp_path / "session", tmp_path / "outside"
    (session / ".rondel/run").mkdir(parents=True)
    (outside / "run").mkdir(parents=True)
    (outside / "secret").write_bytes(SECRET)
    before = tree(outside)
    journal, done = Journal(session / ".rondel/run/journal.jsonl"), 0
    with swapping(session / part, outside):
        for _ in range(150):
            with suppress(RondelError, OSError):
                journal.add("x")
                done += 1
            with suppress(RondelError, OSError):
                ours.write_view(session / ".rondel/run/view.json", b"{}")
            with suppress(RondelError, OSError), Lease.take(session / ".rondel/run", "small:one") as mine:
                mine.check()
            with suppress(RondelError, OSError):
                ours.remove(session / ".rondel/run/view.json")
            lease.holder(session / ".rondel/run")
            with suppress(RondelError):
                assert ours.read(session / part / "secret") is None
    assert done
    assert tree(outside) == before


# -- bounds -----------------------------------------------------------------------------------


def sparse(path: Path) -> None:
    with path.open("wb") as f:
        f.truncate(1 << 40)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as s:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            s.bind(path.name)
        finally:
            os.chdir(here)


def device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
        os.close(os.open(path, os.O_RDONLY))
    except PermissionError:
        pytest.skip("devices are for the administrator")


STRANGE: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": a_socket,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "device": device,
    "larger than the disk": sparse,
    "folder": Path.mkdir,
    "without end": lambda path: path.write_bytes(b"[" * 3_000_000),
    "deep": lambda path: path.write_bytes(b'{"a":' * 500 + b"1" + b"}" * 500),
}
FINE_AS_BYTES = ("without end", "deep")


@pytest.mark.usefixtures("_in_time")
@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_document_is_refused_at_once_by_its_name(tmp_path, way, kind):
    place = tmp_path / "x.json"
    STRANGE[kind](place)
    known = DiskSnapshot(tmp_path)
    assert known.json("x.json") is None
    assert (known.data("x.json") is None) == (kind not in FINE_AS_BYTES)
    with pytest.raises((DamagedFile, RondelError), match=r"x\.json"):
        documents.load(place)
    with pytest.raises(RondelError, match=r"x\.json"):
        documents.edit(place, lambda d: {**d, "x": 1})
    if kind not in FINE_AS_BYTES:
        for act in (lambda: files.read(place), lambda: logs.append_line(place, "x")):
            with pytest.raises(RondelError, match=r"x\.json"):
                act()


@pytest.mark.usefixtures("_in_time")
@pytest.mark.parametrize("kind", [k for k in STRANGE if k not in FINE_AS_BYTES])
def test_a_log_that_is_none_is_told_or_put_back_in_little_memory(tmp_path, kind):
    place = tmp_path / ".rondel/run/journal.jsonl"
    kept = Journal(place)
    kept.add("first")
    assert [e["kind"] for e in kept.news()] == ["first"]
    kept.keep()
    place.unlink()
    STRANGE[kind](place)

    def with_little_memory() -> None:
        import resource  # noqa: PLC0415 - in the child only

        pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (pages + 400_000_000, pages + 400_000_000))
        with suppress(RondelError):
            assert Journal(place).news() == []
        kept.add("second")

    assert in_child(with_little_memory) == 0
    assert [e["kind"] for e in Journal(place).news()] == ["first", "second"]


# -- removing what others write in ------------------------------------------------------------

REMOVERS = [reaper._remove, paths.remove_tree, paths.remove_folder]


@contextmanager
def swapped_once_listed(place: Path, outside: Path) -> Iterator[None]:
    """As soon as the folder of a place is listed, a link has that place."""
    real = os.scandir
    folder = place.parent.stat()

    class Listing:
        def __init__(self, of: object) -> None:
            with real(of) as entries:
                self.found = list(entries)
                for entry in self.found:
                    entry.is_dir(follow_symlinks=False)
            here = os.fstat(of) if isinstance(of, int) else os.stat(of)
            if os.path.samestat(here, folder) and not place.is_symlink():
                place.rename(place.with_name("away"))
                place.symlink_to(outside)

        def __enter__(self) -> Iterator[os.DirEntry[str]]:
            return iter(self.found)

        def __exit__(self, *_: object) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", Listing)
        yield
    assert place.is_symlink() or not place.exists()


@pytest.mark.parametrize("remove", REMOVERS)
@pytest.mark.parametrize("depth", [0, 1, 40])
def test_a_folder_that_becomes_a_link_while_its_tree_is_removed_is_not_followed(tmp_path, remove, depth):
    outside, top = tmp_path / "outside", tmp_path / "top"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep/thesis.txt").write_bytes(SECRET)
    outside.chmod(0o755)
    place = top.joinpath(*["d"] * depth, "victim")
    place.mkdir(parents=True)
    before = tree(outside)
    with swapped_once_listed(place, outside), suppress(OSError):
        remove(str(top))
    assert tree(outside) == before
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755


@pytest.mark.parametrize("remove", REMOVERS)
def test_a_link_in_the_place_of_a_tree_is_not_followed(tmp_path, remove):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/thesis.txt").write_bytes(SECRET)
    (tmp_path / "top").symlink_to("outside")
    with suppress(OSError):
        remove(str(tmp_path / "top"))
    assert tree(tmp_path / "outside") == {"thesis.txt": SECRET}


@pytest.mark.parametrize("remove", REMOVERS)
def test_a_tree_goes_whatever_its_modes_and_however_deep_it_is(tmp_path, remove):
    top = tmp_path / "top"
    top.mkdir()
    at = os.open(top, os.O_RDONLY)
    for number in range(3000):
        os.close(os.open(f"f{number}", os.O_CREAT, 0, dir_fd=at))
        os.mkdir("d" * 20, dir_fd=at)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=at)
        os.fchmod(at, number % 8 << 6)
        os.close(at)
        at = below
    os.symlink("/", "link", dir_fd=at)
    os.mkfifo("pipe", dir_fd=at)
    os.close(at)
    open_before = len(os.listdir("/proc/self/fd"))
    remove(str(top))
    assert not top.exists()
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_what_keeps_a_tree_from_going_is_said(tmp_path, monkeypatch):
    (tmp_path / "top/a").mkdir(parents=True)
    (tmp_path / "top/a/b").write_bytes(b"")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only"):
        paths.remove_tree(tmp_path / "top")
    paths.remove_tree(tmp_path / "top", ignore_errors=True)
    with pytest.raises(FileNotFoundError):
        paths.remove_tree(tmp_path / "none")


# -- the source -------------------------------------------------------------------------------

OPENING = {
    *("open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "rmdir", "touch"),
    *("rename", "replace", "symlink_to", "hardlink_to", "rmtree", "scandir", "listdir", "iterdir", "glob"),
    *("rglob", "walk", "copy", "copy2", "copyfile", "copytree", "move", "makedirs", "remove", "link"),
    *("truncate", "utime", "chmod", "fdopen"),
}
OS_ONLY = {"open", "replace", "remove", "rename", "link", "walk", "copy", "move", "truncate"}
ALLOWED = {
    # what opens every path
    "paths.py": "the one place",
    # the process that imports nothing of ours: it has its folder open, and names in it
    "processes/reaper.py": "names in its open folder",
    "sandbox/serve.py": "pipes that it was started with",
    # git's own folder, the trees that git makes, and the person's checkout: not of a session
    **dict.fromkeys(
        (
            *(
                "repo/worktrees.py",
                "repo/workspaces.py",
                "repo/clone.py",
                "repo/checkout.py",
                "repo/moves.py",
            ),
            *("repo/reflocks.py", "repo/tampering.py", "repo/config.py", "repo/branches.py"),
            *("repo/integrate.py", "repo/edits.py", "workflows/feature/worktrees.py"),
            "workflows/feature/place.py",
            *("agents/vendors/opencode.py",),
        ),
        "git's folder or a worktree",
    ),
    # /proc
    "processes/leftovers.py": "/proc",
    "sandbox/enter.py": "/proc, and /dev/shm that was mounted a moment ago",
    "sandbox/namespaces.py": "/proc",
    # the person's home folder and the system: what may be granted is looked up, and nothing is taken from it
    "sandbox/places.py": "names, links and first lines of programs",
    "sandbox/landlock.py": "paths that are granted, opened for nothing else",
    # what is installed beside Rondel
    "cli/hook.py": "the folders that Python imports from",
    # settings, and a file that the person names on the command line
    "agents/mock.py": "files that the person's settings name",
    # texts that come with Rondel; folders that a demo has just made; profiles that were consented to
    **dict.fromkeys(
        (
            *("cli/demo.py", "workflows/generate/commands.py"),
            *("cli/main.py", "plugin/__main__.py", "plugin/commands.py"),
            *("model/templates.py", "workflows/task/programs.py", "workflows/review/request.py"),
            *("workflows/generate/profiles/markdown.py", "workflows/generate/profiles/discover.py"),
            *("workflows/review/analysers/base.py", "workflows/review/checks.py"),
        ),
        "what comes with Rondel, or a folder that it has just made",
    ),
    # the harness of tests
    **dict.fromkeys(
        (
            *("testing/chains.py", "testing/conformance.py", "testing/faults.py", "testing/kills.py"),
            "testing/scripted.py",
        ),
        "what a test made, and /proc",
    ),
    # texts that come with Rondel, and the person's own sources by a pattern
    "workflows/generate/files.py": "sources by the person's pattern; what is read is resolved first",
}
STORE = {"store/disk.py": "operations on open files", "store/snapshot.py": "listing an open folder"}


def test_no_module_but_the_named_ones_opens_a_path_itself():
    found: dict[str, list[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and opens(node):
                found.setdefault(name, []).append(f"{name}:{node.lineno} {ast.unparse(node)[:80]}")
    wrong = [one for name, calls in found.items() if name not in ALLOWED | STORE for one in calls]
    assert wrong == [], "go through rondel.paths or rondel.store"
    assert set(ALLOWED) <= set(found), "a name on the list that needs to be there no more"


def opens(call: ast.Call) -> bool:
    """Whether a call reaches a file by its path."""
    if isinstance(call.func, ast.Name):
        return call.func.id == "open"
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in OPENING:
        return False
    owner = ast.unparse(call.func.value)
    if owner in ("paths", "disk.current", "files", "re", "webbrowser") or any(
        k.arg == "dir_fd" for k in call.keywords
    ):
        return False
    return call.func.attr not in OS_ONLY or owner in ("os", "shutil")


def test_json_of_anybody_is_parsed_in_one_place():
    ours_only = {
        "model/jsons.py": "the one place",
        "processes/reaper.py": "the driver's own line",
        "sandbox/serve.py": "the driver's own line",
        "model/changes.py": "what was just made",
        "model/doclog.py": "what was just dumped",
        "store/documents.py": "what was just dumped",
        "workflows/review/files.py": "what was just dumped",
        "workflows/review/publish.py": "our own call",
        "workflows/review/analysers/base.py": "our own question",
        "workflows/review/analysers/parsable.py": "in a process of its own",
    }
    found = {
        file.relative_to(SOURCE).as_posix()
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("json.loads", "json.load", "json.JSONDecoder")
    }
    assert found <= set(ours_only)
