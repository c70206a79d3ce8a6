"""Named files: which files of a repository command lines name, and the scripts that these name in turn.

Nothing is run to find out. A word of a command is looked up as it is written and as a shell reads it, in
the repository's folder and in each folder that is named. Where a command computes what it runs, or is
too long to be followed, every script of the repository is one of its files.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rondel.model.deciding import DECIDES, FOLDERS
from rondel.model.jsons import parse_json

CALLED_MAX = 500  # files that are read for what they name
WORDS_MAX = 2000  # of one text
LOOKS_MAX = 20_000  # words that are looked up, in all folders together
PROGRAM = " x"  # after the digest of a file that may be executed
ALL = "**"  # every file of the repository, as a path
_RUN_IN_A_FOLDER = (
    *("__main__.py", "__main__.pyc", "index.js", "index.mjs", "index.cjs", "index.json"),
    *("sitecustomize.py", "usercustomize.py"),
)
_ENDINGS = (".js", ".cjs", ".mjs", ".ts", ".rb", ".pm", ".pl", ".lua", ".php")  # that a word goes without
_BIN = "node_modules/.bin"  # where the scripts of a package find their programs; only what git tracks counts
# Settings of programs, in which a path is a file that is loaded.
_SETTINGS = re.compile(r"\.(npmrc|yarnrc|yarnrc\.yml|babelrc|bazelrc|conf|config|properties|toml|cfg)$")
_INCLUDES = re.compile(r"\s*[-s]?include\b|\s*(?:import|mod|load|apply from)\b|\s*(?:includes|extends)\s*:")
_SCRIPT = re.compile(r"\.(sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php|lua)$")
_INCLUDED = re.compile(r"\.(mk|make|mak|cmake|gradle|kts|just|rake|bzl)$")
_SHELL_SCRIPT = re.compile(r"\.(sh|bash|zsh)$")
_COMPUTED = re.compile(r"[$`*?\[]|\{[^{},.]*+(?:\.(?!\.)[^{},.]*+)*+(?:,|\.\.)[^{}]*+\}")
_KNOWN = re.compile(r"\$(PWD\b|\{PWD\}|\(git rev-parse --show-toplevel\))")  # this folder
_INTERPRETER = re.compile(
    r"(sh|bash|dash|zsh|ksh|fish|python|pypy|node|deno|tsx|ts-node|ruby|perl|php|lua|run-parts)[\d.]*"
)
_PREFIXES = re.compile(
    r"(env|exec|nice|nohup|time|timeout|sudo|command|builtin|xargs|eval|then|do|else|elif|if|while|until|!"
    r"|source|\.|cd|pushd|-.*|[\d.]+[smhd]?|\w+=.*)"
)
_TAKES_A_PLACE = re.compile(r"-[fC]|--(file|makefile|directory|prefix|rcfile|init-file|chdir|cwd)")
_BREAKS = re.compile(r"[\s\"'`;|&<>(){}$=,:@]+")
_BLANKS = re.compile(r"[\s;|&<>()]+")
_SHELL_WORD = re.compile(r"""(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s;|&<>()\\'"]|['"\\])+""", re.DOTALL)
_QUOTED = re.compile(r"""\\(.)|'([^']*)'|"((?:\\.|[^"\\])*)\"""", re.DOTALL)
_RUNS = re.compile(  # a line of a script that runs or reads the files which it names
    r"(?<![\w./@+~-])[-@+]*+(?:[\w./~-]*/)?(sh|shell|[bd]ash|zsh|ksh|fish|source|\.|python|pypy|node|deno|tsx|ts-node|ruby|perl"
    r"|php|lua|eval|exec|xargs|run-parts|cd|pushd|s?include|includes|import|mod|taskfile|dir|extends|"
    + "|".join(map(re.escape, DECIDES))
    + r")[\d.]*(?![\w/-])",
    re.IGNORECASE,
)
_OURS = ("/.rondel/lock", "/.rondel/control")  # of sessions, which come and go
_MODULE = re.compile(r"-[A-Za-ln-z]*+m(.*)")

Wanted = Callable[[str, bool], bool]  # a file by its path, and whether it may be executed
Inner = Callable[[Wanted], Iterable[tuple[str, str]]]


@dataclass(frozen=True)
class Found:
    """What is at a path of the repository: the digest of a file, or that it is a folder."""

    digest: str = ""
    is_folder: bool = False
    inner: Inner = lambda _: ()  # those files below a folder that are wanted, with their digests
    names: Callable[[], Iterable[str]] = lambda: ()  # what is in a folder
    text: str = ""  # of a file that is short enough to be read for what it names
    is_cut: bool = False  # whether it is too long for that


Lookup = Callable[[str], Found | None]  # what is at a path, relative to the repository's folder


@dataclass(frozen=True)
class Named:
    """The files that commands name, and whether more may run than anybody can tell."""

    files: Mapping[str, str]  # path and digest
    is_untold: bool


@dataclass(frozen=True)
class _Word:
    text: str
    is_run: bool = True  # whatever file it is; else only a program
    is_typed: bool = False  # in the command itself: a folder stands for its programs
    is_module: bool = False


def named_files(texts: Iterable[str], look: Lookup, *, untold: bool = False) -> Named:
    """The files of the repository that command lines name, however they are written.

    A word may be a path from the repository's folder, from one that is named, one behind `$PWD/`, a
    folder that Python runs or that holds scripts, or a module. Too many are no harm: they are only
    asked about again. With `untold` every script is one of them.
    """
    texts = list(texts)
    search = _Search(look)
    search.add(_typed(texts))
    search.run()
    files = {path: there.digest for path, there in search.found.items()}
    for there in search.folders.values():
        files |= dict(there.inner(_is_program))
    for there in search.whole.values():
        files |= dict(there.inner(lambda *_: True))
    for there in search.packages.values():
        files |= dict(there.inner(lambda path, _: path.endswith((".py", "/__main__.pyc"))))
    if untold or search.is_cut:
        for path in (ALL, *dict.fromkeys(_before_computed([*texts, *search.computed]))):
            if (whole := look(path)) is not None and whole.is_folder:
                files |= dict(whole.inner(_may_be_a_script if path == ALL else lambda *_: True))
    return Named(dict(sorted(files.items())), untold or search.is_cut)


class _Search:
    """Every word is looked up in every folder that is named; what is found is read for more of them."""

    def __init__(self, look: Lookup) -> None:
        self.found: dict[str, Found] = {}
        self.folders: dict[str, Found] = {}  # named by the command
        self.packages: dict[str, Found] = {}
        self.whole: dict[str, Found] = {}  # every file of them is loaded
        self.is_cut = False
        self.computed: list[str] = []  # what is included by a pattern, or by a name that is computed
        self._look = look
        self._words: dict[_Word, None] = {}
        self._places: dict[str, None] = {"": None}
        self._todo: list[tuple[_Word, str]] = []
        self._seen = dict[str, Found | None]()

    def add(self, words: Iterable[_Word]) -> None:
        for count, word in enumerate(dict.fromkeys(words)):
            if count > WORDS_MAX:
                self.is_cut = True
                return
            if word not in self._words:
                self._words[word] = None
                self._todo += [(word, place) for place in self._places]

    def run(self) -> None:
        looks = 0
        while self._todo:
            looks += 1
            if looks > LOOKS_MAX or len(self.found) > CALLED_MAX:
                self.is_cut = True
                return
            word, place = self._todo.pop()
            for path in _paths(word.text, is_module=word.is_module):
                self._take(word, posixpath.normpath(posixpath.join(place, path)))

    def _at(self, path: str) -> Found | None:
        if path not in self._seen:
            self._seen[path] = self._look(path)
        return self._seen[path]

    def _take(self, word: _Word, path: str) -> None:
        there = self._at(path)
        if there is None:
            return
        if not there.is_folder:
            if word.is_run or _is_program(path, _runs(there)):
                self._read(path, there)
        elif word.is_run:
            self._enter(path)
            if word.text in FOLDERS:
                self.whole[path] = there
            elif word.is_typed:
                self.folders[path] = there
            if word.is_module:
                self.packages[path] = there

    def _enter(self, folder: str) -> None:
        if folder not in self._places:
            self._places[folder] = None
            self._todo += [(word, folder) for word in self._words]
            for name in _RUN_IN_A_FOLDER:
                inner = self._at(f"{folder}/{name}")
                if inner is not None and not inner.is_folder:
                    self._read(f"{folder}/{name}", inner)

    def _read(self, path: str, there: Found) -> None:
        if path in self.found:
            return
        self.found[path] = there
        self.is_cut |= there.is_cut
        above, name = posixpath.split(path)
        for line in _lines(name, there.text):
            if _INCLUDES.match(line) and _COMPUTED.search(line):
                self.is_cut = True
                self.computed += [posixpath.join(above, word) for word in shell_words(line)]
        words = list(_called(name, there.text))
        if words and above:
            self._enter(above)
        self.add(words)
        for pattern in _workspaces(name, there.text):
            for folder in self._matching(above, pattern.strip("/").split("/")):
                inner = self._at(posixpath.join(folder, "package.json"))
                if inner is not None:
                    self._read(posixpath.join(folder, "package.json"), inner)

    def _matching(self, folder: str, pattern: list[str]) -> list[str]:
        """The folders that a pattern of workspaces stands for."""
        if not pattern:
            return [folder]
        first, *rest = pattern
        if not _COMPUTED.search(first):
            return self._matching(posixpath.normpath(posixpath.join(folder, first)), rest)
        there = self._at(folder or ALL)
        names = [n for n in (there.names() if there else ()) if n not in (".git", "node_modules")]
        inner = [posixpath.join(folder, n) for n in names if fnmatchcase(n, first)]
        if len(inner) > CALLED_MAX:
            self.is_cut = True
            return []
        deeper = [path for i in inner for path in self._matching(i, pattern)] if first == "**" else []
        return [*(path for i in inner for path in self._matching(i, rest)), *deeper]


def _runs(there: Found) -> bool:
    return there.digest.endswith(PROGRAM) or there.text.startswith("#!")


def is_script(path: str, sha: str) -> bool:
    """Whether a file of a part, by its path and digest, is a program or a script."""
    return sha.endswith(PROGRAM) or _SCRIPT.search(path) is not None


def _is_program(path: str, runs: bool) -> bool:
    return runs or _SHELL_SCRIPT.search(path) is not None


def _may_be_a_script(path: str, runs: bool) -> bool:
    is_ours = path.endswith(_OURS)
    is_script = _SCRIPT.search(path) is not None or _INCLUDED.search(path) is not None
    return runs or is_script or ("." not in posixpath.basename(path) and not is_ours)


def _typed(texts: Iterable[str]) -> Iterator[_Word]:
    """The words of a command."""
    is_module = False  # the word before it, in a list, is `-m`
    for text in texts:
        for word in (text, *_words(text)):
            yield _Word(word, is_typed=True)
            if posixpath.normpath(word) == ".":  # this folder, which Python and Node run as any other
                yield from (_Word(name, is_typed=True) for name in (*_RUN_IN_A_FOLDER, "package.json"))
        for word in (text,) if is_module else _modules(text):
            yield _Word(word, is_typed=True, is_module=True)
        found = _MODULE.fullmatch(text)
        is_module = found is not None and not found[1]


def _modules(text: str) -> Iterator[str]:
    """The words behind `-m`."""
    words = shell_words(text)
    for word, follows in zip(words, (*words[1:], ""), strict=False):
        if found := _MODULE.fullmatch(word):
            yield found[1] or follows


def _words(text: str) -> Iterator[str]:
    """The words of a text: as a shell reads them, and as they are written, with what is behind an option."""
    for word in (*shell_words(text), *_BLANKS.split(text), *_BREAKS.split(text)):
        yield from filter(None, (word, word.strip("\"'`"), word.partition("=")[2]))
        if re.match(r"-[A-Za-z]", word):
            yield from filter(None, (word[start:] for start in (2, 3, 4)))
    for program in DECIDES.keys() & {
        w.rpartition("/")[2] for w in (*_BREAKS.split(text), *shell_words(text))
    }:
        yield from DECIDES[program]


def shell_words(text: str, depth: int = 3) -> list[str]:
    """The words that a shell makes of a text, and of the texts that are words in it."""
    found = []
    for match in _SHELL_WORD.finditer(text.replace("\\\n", "")):
        word = _QUOTED.sub(lambda m: m[1] or m[2] or re.sub(r'\\(["\\$`])', r"\1", m[3] or ""), match[0])
        found.append(word)
        if depth and word != text and re.search(r"\s", word):
            found += shell_words(word, depth - 1)
    return found


def _called(name: str, text: str) -> Iterator[_Word]:
    """The words of a script that may be files: all in a line that runs something, else those like paths."""
    if text.startswith("#!"):  # who runs the script
        yield from map(_Word, _words(text[2:].partition("\n")[0]))
    is_code = _SCRIPT.search(name) is not None and _SHELL_SCRIPT.search(name) is None
    loads = _SETTINGS.search(name) is not None or name == "package.json"
    if name == "package.json":
        yield _Word(_BIN)
    for line in _lines(name, text):
        is_run = loads or (not is_code and _RUNS.search(line) is not None)
        modules = set(_modules(line)) if is_run else set[str]()
        for word in dict.fromkeys(_words(line)):
            if is_run or "/" in word or "." in word:
                yield _Word(word, is_run=is_run, is_module=word in modules)


def _lines(name: str, text: str) -> Iterator[str]:
    scripts = _json(text).get("scripts") if name == "package.json" else None
    if isinstance(scripts, dict):
        yield from map(str, scripts.values())
        return
    has_comments = not re.search(r"\.(js|mjs|cjs|ts|php)$", name)
    for line in text.replace("\\\n", " ").splitlines():
        if not (has_comments and re.match(r"\s*#", line)):
            yield line


def _workspaces(name: str, text: str) -> list[str]:
    """The patterns of the folders that a package has its workspaces in."""
    if name == "pnpm-workspace.yaml":
        return [found[1] for found in re.finditer(r"^[ \t]*+-[ \t]*+[\"']?([^\"'\s#!]+)", text, re.MULTILINE)]
    found = _json(text).get("workspaces") if name == "package.json" else None
    listed = found.get("packages") if isinstance(found, dict) else found
    return list(map(str, listed)) if isinstance(listed, list) else []


def _json(text: str) -> dict[str, object]:
    found = parse_json(text)
    return found if isinstance(found, dict) else {}


def _before_computed(texts: Iterable[str]) -> Iterator[str]:
    """The folders that hold what is computed: `ci` of `ci/*`."""
    for text in texts:
        for word in (*shell_words(_KNOWN.sub(".", text)), *_BLANKS.split(text)):
            if found := _COMPUTED.search(word):
                folder = posixpath.dirname(word[: found.start()].strip("\"'"))
                if folder.strip("./"):
                    yield posixpath.normpath(folder)


def is_untold(command: str) -> bool:
    """Whether a command line computes which program or script it runs, so that nobody can tell which."""
    runs, before = True, ""  # the next word is a program, or what an interpreter runs
    for word in re.findall(r"[;|&\n]+|[^\s;|&]+", _KNOWN.sub(".", command)):
        plain = word.strip("\"'(){}")
        name = re.sub(r"[\\\"']", "", plain).rpartition("/")[2]
        computed = _COMPUTED.search(word) is not None
        if word[0] in ";|&\n":
            runs, before = True, ""
            continue
        places = _TAKES_A_PLACE.fullmatch(before) or re.match(r"-[fC].|--(file|directory|prefix|cwd)=", plain)
        if (
            computed
            and (runs or places or _SCRIPT.search(plain))
            and not re.fullmatch(r"\w+=.*", plain, re.DOTALL)
        ):
            return True
        if plain:
            runs = bool(_INTERPRETER.fullmatch(name) or (runs and _PREFIXES.fullmatch(name or plain)))
            before = plain
    return False


def _paths(word: str, *, is_module: bool = False) -> list[str]:
    """Where in a folder the file of this word may be."""
    plain = word.lstrip("/").removeprefix("./")
    if not plain.strip("./"):
        return []
    _, _, below = plain.partition("/")
    module = plain.replace(".", "/")
    paths = [word, plain, below, module, f"{module}.py", f"{module}/__main__.py"]
    if "." not in posixpath.basename(plain):
        paths += [f"{plain.replace('::', '/')}{ending}" for ending in _ENDINGS]
    if is_module:  # the package around it is loaded first
        top = module.partition("/")[0]
        paths += [f"{top}.py", f"{top}/__init__.py"]
    return list(dict.fromkeys(map(posixpath.normpath, filter(None, paths))))
