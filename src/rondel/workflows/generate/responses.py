"""What a response holds: code, in named files that are each safe, or a verdict; or why it cannot be used.

A file is a fenced block with a name, in one of the ways models really write it:

    ```java path=src/Product.java          the name in the fence's own line, also `java:…`,
                                           `title="…"`, or the bare path
    ### `src/Product.java`                 or in the line above: a heading, bold, code, `File: …`
    // src/Product.java                    or in a comment that is the block's first line
    <<<FILE: Product.java>>>               or a marker; the file goes to the next marker

A block without a name is an illustration and is passed over. Whatever is wrong with one
file makes the whole response unusable: half of an answer is none.

A verdict is the block `@@@REVIEW_META` … `@@@`, read so that nothing passes by accident.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rondel.errors import UnsafePath
from rondel.model.names import inside, is_safe_name
from rondel.workflows.generate.models import WorkflowPhase

CODE_MAX = 5_000_000  # characters of a response with code
FILE_MAX = 500_000
FILES_MAX = 200
NAME_MAX = 1_000  # a longer word is no path
LINE_MAX = 4_000  # of the line above a block

OPEN, CLOSE = "@@@REVIEW_META", "@@@"
FORM = f"{OPEN}\nverdict: PASS\nissues_total: 0\nissues_critical: 0\nmissing_inputs: 0\n{CLOSE}"
COUNTS = ("issues_total", "issues_critical", "missing_inputs")
REVIEW_MAX = 2_000_000  # characters of a review
BLOCKS_MAX = 20

# What stands between blanks is stripped by code: two repetitions side by side would take
# the square of a line's length.
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}+|~{3,}+)(.*)")
_MARKER = re.compile(r"[ \t]*<<<[ \t]*FILE:(.*)>>>[ \t]*")
_MARKER_END = re.compile(r"[ \t]*<<<[ \t]*END(?:[ _-]*FILE)?[^>]*>>>[ \t]*", re.IGNORECASE)
_KEYED = re.compile(
    r"""(?:^|[\s{])(?:path|file|filename|filepath|title|name)\s*[=:]\s*("[^"]*"|'[^']*'|[^\s}]+)""",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?:file(?:name| name| ?path)?|path|datei)\s*:\s*", re.IGNORECASE)
_COMMENTS = (
    re.compile(r"[ \t]*+(?://++|#++|--++|;++|%++)(.*)"),
    re.compile(r"[ \t]*+/\*(.*)\*/[ \t]*+"),
    re.compile(r"[ \t]*+<!--(.*)-->[ \t]*+"),
)
_NAME = re.compile(r"[^\s`'\"<>|]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,9}")
_BARE = ("Dockerfile", "Makefile")
_LINE = re.compile(r"[ \t>]*+[*`-]*+[ \t]*+(\w++)[*`]*+[ \t]*+:(.*)")


def unusable(phase: WorkflowPhase, text: str) -> str:
    """What is wrong with a response of a phase; empty when it can be used."""
    if not text.strip():
        return "it is empty"
    if phase is WorkflowPhase.REVIEW:
        return parse_verdict(text).error
    return "" if phase is WorkflowPhase.PLAN else extract(text).error


# -- code ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CodeFile:
    """A file of generated code; `path` is relative and stays in its folder."""

    path: str
    text: str


@dataclass(frozen=True)
class ResponsePlan:
    """The code to leave for a response; with an error the response is not used."""

    files: tuple[CodeFile, ...] = ()
    error: str = ""


def extract(text: str) -> ResponsePlan:
    """The files of a response. Total: whatever comes, it gives files or an error that names one."""
    if len(text) > CODE_MAX:
        return ResponsePlan(error=f"the response has {len(text)} characters; at most {CODE_MAX} are read")
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = list(_marked(lines) if any(_MARKER.fullmatch(line) for line in lines) else _fenced(lines))
    return checked(CodeFile(path.removeprefix("./"), body) for path, body in found)


def checked(found: Iterable[CodeFile]) -> ResponsePlan:
    """The same files when each may be written; else the first reason why not."""
    files: list[CodeFile] = []
    seen: dict[str, str] = {}
    for number, file in enumerate(found, 1):
        if number > FILES_MAX:
            return ResponsePlan(error=f"there are more than {FILES_MAX} files; give fewer")
        wrong = _wrong(file) or _clash(file.path, seen)
        if wrong:
            return ResponsePlan(error=wrong)
        seen[file.path.casefold()] = file.path
        files.append(CodeFile(file.path, file.text if file.text.endswith("\n") else f"{file.text}\n"))
    if not files:
        return ResponsePlan(
            error="there is no code with a file name; put each file into a fenced block "
            "whose first line is a comment with its path, like `// src/Name.java`"
        )
    return ResponsePlan(tuple(files))


def _wrong(file: CodeFile) -> str:
    try:
        plain = inside(file.path, "the file")
        size = len(file.text.encode())
    except UnsafePath as e:
        return str(e)
    except UnicodeEncodeError:
        return f"the file {file.path!r} is not text"
    bad = next((part for part in plain.split("/") if not is_safe_name(part)), None)
    if bad is not None or plain != file.path:
        return f"the file {file.path!r} has no safe name; use letters, digits, '-', '_' and '.' in each part"
    if not file.text.strip():
        return f"the file {file.path!r} is empty; give its whole text"
    if size > FILE_MAX:
        return f"the file {file.path!r} is larger than {FILE_MAX} bytes; split it"
    return f"the file {file.path!r} is not text" if "\x00" in file.text else ""


def _clash(path: str, seen: dict[str, str]) -> str:
    """Why a path cannot stand beside those before it, also on a disk that ignores case."""
    key = path.casefold()
    if key in seen:
        return f"the file {path!r} is there twice; give each file once"
    for other, name in seen.items():
        if other.startswith(f"{key}/") or key.startswith(f"{other}/"):
            return f"the file {path!r} and the file {name!r} cannot both be there: one is the other's folder"
    return ""


def _marked(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Files between `<<<FILE: …>>>` markers; a fence around a file's text is taken off."""
    name, body = "", list[str]()
    for line in [*lines, "<<<FILE: >>>"]:
        marker = _MARKER.fullmatch(line)
        if marker or (name and _MARKER_END.fullmatch(line)):
            if name:
                yield name, _unfenced(body)
            name, body = (marker[1].strip(" \t").strip("`\"'") if marker else ""), []
        elif name:
            body.append(line)


def _unfenced(body: list[str]) -> str:
    while body and not body[0].strip():
        body = body[1:]
    while body and not body[-1].strip():
        body = body[:-1]
    opening = _FENCE.fullmatch(body[0]) if body else None
    end = next((n for n, line in enumerate(body) if n and opening and _closes(line, opening[1])), None)
    return "\n".join(body if end is None else body[1:end])


def _fenced(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Named fenced blocks; one that is never closed was cut off and is an empty file, so it is refused."""
    fence, info, above, body = "", "", "", list[str]()
    last = ""
    for line in lines:
        if fence:
            if _closes(line, fence):
                yield from _named(info, above, body)
                fence, last = "", ""
            else:
                body.append(line)
        elif (opening := _FENCE.fullmatch(line)) and "`" not in opening[2]:
            fence, info, above, body = opening[1], opening[2].strip(" \t"), last, []
        elif line.strip():
            last = line
    if fence:
        for name, _ in _named(info, above, body):
            yield name, ""


def _closes(line: str, fence: str) -> bool:
    mark = line.strip(" \t")
    return mark.startswith(fence) and not mark.strip(fence[0])


def _named(info: str, above: str, body: list[str]) -> Iterator[tuple[str, str]]:
    name = _of_info(info)
    if name is None:
        first = next((line for line in body if line.strip()), "")
        name = _of_comment(first)
        if name is not None:
            at = body.index(first)
            rest = body[at + 1 :]
            yield name, "\n".join(rest[1:] if rest and not rest[0].strip() else rest)
            return
        name = _of_line(above)
    if name is not None:
        yield name, "\n".join(body)


def _of_info(info: str) -> str | None:
    """The name in a fence's own line."""
    keyed = _KEYED.search(info)
    if keyed:
        return keyed[1].strip("\"'")
    for word in info.split()[:3]:
        language, colon, rest = word.partition(":")
        if colon and rest and re.fullmatch(r"[\w+#-]*", language) and not re.fullmatch(r"[A-Za-z]", language):
            return rest
        if _looks_like_a_path(word):
            return word
    return None


def _of_comment(line: str) -> str | None:
    """The name in a comment that holds nothing else."""
    if line.startswith("#!"):
        return None
    for pattern in _COMMENTS:
        match = pattern.fullmatch(line)
        if match:
            inner = match[1].strip(" \t*")
            labelled = _LABEL.match(inner)
            word = inner[labelled.end() :].strip() if labelled else inner
            return word.strip("`\"'") if _looks_like_a_path(word.strip("`\"'")) else None
    return None


def _of_line(line: str) -> str | None:
    """The name in the line above a block: a heading, bold, code or a label."""
    plain = re.sub(r"^[ \t]*(?:#{1,6}|[-*+]|\d{1,3}[.)])?[ \t]+", "", f" {line[:LINE_MAX]}").strip()
    coded = re.findall(r"`([^`]+)`", plain)
    paths = [str(w) for w in coded if _looks_like_a_path(w)]
    if len(paths) == 1:
        return paths[0]
    for marks in ("*", "*_"):  # `__init__.py` is a name; `__src/app.py__` is one in bold
        word = plain.strip(f"{marks} \t").rstrip(":").strip(f"{marks}` \t")
        labelled = _LABEL.match(word)
        word = word[labelled.end() :].strip(f"{marks}` \t") if labelled else word
        if _looks_like_a_path(word):
            return word
    return None


def _looks_like_a_path(word: str) -> bool:
    return len(word) <= NAME_MAX and (bool(_NAME.fullmatch(word)) or word.rsplit("/", 1)[-1] in _BARE)


# -- verdicts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """PASS or FAIL; or what is wrong with the block, in words its author can act on."""

    passed: bool = False
    counts: tuple[tuple[str, int], ...] = ()
    error: str = ""


def parse_verdict(text: str) -> Verdict:
    """The verdict of a review. Whatever is not clearly one is an error, never a PASS."""
    if len(text) > REVIEW_MAX:
        return Verdict(error=f"the review has {len(text)} characters; at most {REVIEW_MAX} are read")
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    opened = plain.count(OPEN)
    blocks = list(_blocks(plain.split("\n"))) if opened <= BLOCKS_MAX else []
    if not blocks or opened != len(blocks):
        return Verdict(error=f"there is no complete block at its end; end with\n{FORM}")
    found = [_one_verdict(lines) for lines in blocks]
    wrong = next((v for v in found if v.error), None)
    if wrong is not None:
        return wrong
    if len({v.passed for v in found}) > 1:
        return Verdict(error="its verdicts contradict each other; give one block, at the end")
    return found[-1]


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each block, from its opening line to the next closing one."""
    body: list[str] | None = None
    for line in lines:
        mark = line.lstrip(" \t>").rstrip(" \t")
        if body is None:
            body = [] if mark == OPEN else None
        elif mark == CLOSE:
            yield body
            body = None
        else:
            body.append(line)


def _one_verdict(lines: Iterable[str]) -> Verdict:
    fields: dict[str, str] = {}
    for line in filter(str.strip, lines):
        match = _LINE.fullmatch(line)
        if match is None:
            return Verdict(error=f"the line {line.strip()!r} of its block is not `name: value`")
        key, value = match[1].lower(), match[2].strip(" \t")
        if fields.setdefault(key, value) != value:
            return Verdict(error=f"its block says {key} twice")
    word = fields.get("verdict", "").strip("*`\"' ").upper()
    if word not in ("PASS", "FAIL"):
        return Verdict(error=f"its verdict is {fields.get('verdict')!r}; it must be PASS or FAIL")
    counts: list[tuple[str, int]] = []
    for key in COUNTS:
        value = fields.get(key, "0")
        if not re.fullmatch(r"\d{1,6}", value):
            return Verdict(error=f"{key} is {value!r}; it must be a whole number")
        counts.append((key, int(value)))
    open_ = [f"{k}: {n}" for k, n in counts if k != "issues_total" and n]
    if word == "PASS" and open_:
        return Verdict(error=f"it says PASS and {', '.join(open_)}; that is a FAIL, or the number is 0")
    return Verdict(word == "PASS", tuple(counts))
