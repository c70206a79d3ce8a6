"""What a probe may do in the repository: git, files, programs; each bounded in time and in size."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from typing_extensions import override

from rondel import paths
from rondel.errors import GitError, MachineTrouble, RondelError
from rondel.model.consent import Admits, admits_nothing
from rondel.model.trouble import machine, trouble
from rondel.model.workflow import RepoReader
from rondel.processes.runner import clean_env
from rondel.repo import attributes
from rondel.repo.git import Git, NotAValue
from rondel.store import files

GIT_S = 120
OUTPUT_MAX = 64_000_000
_PASSED = ("GH_TOKEN", "GITHUB_TOKEN", "GH_HOST")  # to programs other than git


class DiskReader(RepoReader):
    """The repository on this disk, with the programs of this machine."""

    def __init__(
        self,
        root: Path,
        clock: Callable[[], datetime],
        admits: Admits = admits_nothing,
        own_folder: Callable[[str], str] = lambda path: path,
        own_paths: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.root = str(root)
        self.admits = admits
        self._clock = clock
        self._trees: dict[str, tuple[Git, TemporaryDirectory[str]]] = {}
        self._own_folder = own_folder
        self._own_paths = own_paths

    @property
    @override
    def at(self) -> datetime:
        return self._clock()

    def git(self, *args: str, stdin: str = "", check: bool = True) -> str:
        """See `RepoReader`."""
        return self._git(Git(Path(self.root)), args, stdin, check=check)

    @override
    def git_in(self, folder: str, *args: str, check: bool = True) -> str:
        return self._git(Git(Path(folder)), args, "", check=check)

    def git_with_attributes(self, commit: str, *args: str, stdin: str = "", check: bool = True) -> str:
        """See `RepoReader`. Git works in a folder with the attributes' files of that commit alone."""
        if commit not in self._trees:
            folder = TemporaryDirectory(prefix="rondel-attributes-")
            own = Path(self.git("rev-parse", "--absolute-git-dir").removesuffix("\n"))
            self._trees[commit] = attributes.as_at(commit, own, Path(folder.name).resolve()), folder
        return self._git(self._trees[commit][0], args, stdin, check=check)

    @staticmethod
    def _git(git: Git, args: tuple[str, ...], stdin: str, *, check: bool) -> str:
        try:
            done = git.run(*args, stdin=stdin, timeout_s=GIT_S)
        except GitError as e:
            if check or (git.folder.is_dir() and not isinstance(e, NotAValue)):
                raise
            return ""  # there is no such checkout, or nothing that has such a name
        if check and not done.ok:
            raise GitError(f"git {' '.join(args[:3])}: {done.err.strip() or f'status {done.status}'}")
        if len(done.out) > OUTPUT_MAX:  # a part of it would pass for the whole
            raise GitError(f"git {args[0]} said more than {OUTPUT_MAX} bytes; ask for less at once")
        return done.out

    @property
    @override
    def own_paths(self) -> tuple[str, ...]:
        return self._own_paths()

    @override
    def own_folder(self, path: str) -> str:
        return self._own_folder(path)

    @override
    def unfiltered(self, names: Sequence[str]) -> tuple[str, ...]:
        return Git(Path(self.root)).unfiltered(names)

    @override
    def file(self, path: str, size_max: int = 1_000_000) -> bytes | None:
        try:
            root = Path(self.root).resolve()
            if (root / path).is_symlink():
                return None
            full = files.real_path(root, path)
            with machine("read", full):
                return paths.beginning(full, size_max)
        except (OSError, RondelError):
            return None

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60) -> tuple[int, str, str]:
        """See `RepoReader`."""
        env = clean_env(_PASSED) | Git(Path(self.root)).env | {"PWD": self.root}
        try:
            done = subprocess.run(
                list(argv),
                cwd=self.root,
                env=env,
                input=stdin.encode(errors="replace"),
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except OSError as e:
            if (trouble_is := trouble(e)) is not None:
                raise MachineTrouble(f"{argv[0]} cannot run in {self.root!r}: {trouble_is}") from e
            why = "it is not installed" if isinstance(e, FileNotFoundError) else e.strerror
            raise RondelError(f"{argv[0]} cannot run in {self.root}: {why}") from e
        except subprocess.TimeoutExpired as e:
            raise RondelError(f"{argv[0]} did not end within {timeout_s:.0f} s") from e
        if len(done.stdout) > OUTPUT_MAX:  # a part of it would pass for the whole
            raise RondelError(f"{argv[0]} said more than {OUTPUT_MAX} bytes; ask for less at once")
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
