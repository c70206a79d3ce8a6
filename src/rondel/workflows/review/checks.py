"""Checks as reviewers: what analysers find on changed lines, in the form of a reviewer's answer.

The same answer for the same change, always. What was not looked at, because no analyser
knows it, one is missing, failed or took too long, is said: a review that could not look is
never simply clean.
"""

from __future__ import annotations

import errno
import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from rondel import paths
from rondel.errors import RondelError, UnsafePath, UsageError
from rondel.model import jsons
from rondel.model.names import inside
from rondel.model.trouble import machine
from rondel.workflows.review.analysers.base import TYPES, Analyser, ChangedFile, Hit, Looked, Run
from rondel.workflows.review.analysers.complexity import COMPLEXITY
from rondel.workflows.review.analysers.parsable import PARSABLE
from rondel.workflows.review.analysers.patterns import PATTERN
from rondel.workflows.review.analysers.ruff import RUFF
from rondel.workflows.review.analysers.secrets import SECRETS
from rondel.workflows.review.analysers.shellcheck import SHELLCHECK
from rondel.workflows.review.change import parse_diff
from rondel.workflows.review.findings import Category, Finding, Severity
from rondel.workflows.review.markdown import counted, fenced, first_of
from rondel.workflows.review.result import FAILED

ANALYSERS: tuple[Analyser, ...] = (RUFF, SHELLCHECK, SECRETS, COMPLEXITY, PARSABLE, PATTERN)
ON_ALL = (SECRETS, PATTERN)  # also on text that reviewers are not shown, where only what is grave counts
GRAVE = (Category.BLOCKER, Category.SHOULD_FIX)
FILES_MAX = 1_000
TOO_MANY = f"more than {FILES_MAX} files changed"
FILE_BYTES_MAX = 1_000_000
HITS_MAX = 100
SPAN_MAX = 50
QUOTE_MAX = 300
NAMED_MAX = 10
RUNS_MAX = 24  # of one analyser, where files break it
AGAIN_S = 20.0  # for each run after the first
PASSWORDS = ("S105", "S106", "S107")  # ruff's words for what the secrets scanner says with more certainty


class Asked(Protocol):
    """What an agent was asked: whose seat it has, the prompt with the diff, and the checkout."""

    role: str  # `review.reviewer.security-1`
    prompt: str  # holds the change as a fenced diff
    cwd: Path  # the repository after the change


def answer(asked: Asked, run: Run) -> str:
    """The answer of `checks` in a reviewer's seat. All that the agent calls."""
    seat = asked.role.removeprefix("review.reviewer.")
    if seat == asked.role:
        raise UsageError(f"checks can be a reviewer, not {asked.role}; give that role another agent")
    shown, unshown = _blocks(asked.prompt)
    lines = changed_lines(shown)
    files, skipped = read_changed(asked.cwd, lines)
    more, skipped_too = read_changed(
        asked.cwd, {path: found for path, found in unshown.items() if path not in lines}
    )
    files += [replace(file, shown=False) for file in more]
    skipped += skipped_too
    with tempfile.TemporaryDirectory(prefix="rondel-checks-") as scratch:
        runs = partial(run, shown=(scratch,))
        return analyse(re.sub(r"-\d+$", "", seat), files, runs, Path(scratch), skipped)


def _blocks(prompt: str) -> tuple[str, dict[str, frozenset[int]]]:
    """The diff of a prompt, and the changed lines of the text that is not shown."""
    diff, after = _diff(prompt)
    found = re.search(r"^`{3,}unshown\n(.*)$", after, re.MULTILINE)
    listed = jsons.load(found[1]) if found else {}
    return diff, {
        str(path): frozenset(n for first, last in pairs for n in range(first, last + 1))
        for path, pairs in listed.items()
    }


def _diff(prompt: str) -> tuple[str, str]:
    """The diff of a prompt, and what comes after it."""
    lines = prompt.split("\n")
    closings = {line: at for at, line in enumerate(lines) if line.startswith("```")}  # the last of each
    for start, line in enumerate(lines):
        fence = line.removesuffix("diff")
        is_opening = fence != line and fence.startswith("```") and not fence.strip("`")
        if is_opening and closings.get(fence, -1) > start:
            end = lines.index(fence, start)
            return "".join(f"{one}\n" for one in lines[start + 1 : end]), "\n".join(lines[end + 1 :])
    raise RondelError("the prompt holds no diff; checks read the change from a block fenced as diff")


def changed_lines(diff: str) -> dict[str, frozenset[int]]:
    """The lines that a unified diff wrote, by file; deleted files have none."""
    lines: dict[str, frozenset[int]] = {}
    for file in parse_diff(diff):
        if file.added_lines:
            lines[file.path] = lines.get(file.path, frozenset()) | file.added_lines
    return lines


def read_changed(root: Path, lines: Mapping[str, frozenset[int]]) -> tuple[list[ChangedFile], list[str]]:
    """The changed files as they are in the checkout, and those that were not read, with the reason.

    A zero byte is left out, as a shell does: it hides nothing.
    """
    files: list[ChangedFile] = []
    skipped: list[str] = []
    for path in sorted(lines):
        if len(files) >= FILES_MAX:
            skipped.append(f"`{path}`: {TOO_MANY}")
            continue
        data, why = _read(root, path)
        if data is None:
            skipped.append(f"`{path}`: {why}")
        else:
            files.append(ChangedFile(path, data.replace(b"\0", b""), lines[path]))
    return files, skipped


def _read(root: Path, path: str) -> tuple[bytes | None, str]:
    try:
        full = root.resolve() / inside(path, "changed file")
        with machine("read", full):
            data = paths.beginning(full, FILE_BYTES_MAX + 1)
    except OSError as e:
        return None, "a symbolic link is on its path" if e.errno == errno.ELOOP else e.strerror or str(e)
    except UnsafePath as e:
        return None, str(e)
    return (data, "") if len(data) <= FILE_BYTES_MAX else (None, f"it has more than {FILE_BYTES_MAX} bytes")


@dataclass(frozen=True)
class _Seen:
    """What all analysers of one reviewer found, and what they could not look at."""

    findings: tuple[Finding, ...]
    left_out: int
    used: tuple[str, ...]  # `ruff (3 files)`
    not_seen: tuple[str, ...]
    failed: tuple[str, ...] = ()  # what should have been looked at, and was not


def analyse(
    kind: str, files: Sequence[ChangedFile], run: Run, scratch: Path, skipped: Sequence[str] = ()
) -> str:
    """The Markdown answer of a reviewer of this type, with its json block."""
    if kind not in TYPES:
        return _nobody(kind)
    return _render(kind, _see(kind, files, run, scratch, skipped), len(files))


def _see(kind: str, files: Sequence[ChangedFile], run: Run, scratch: Path, skipped: Sequence[str]) -> _Seen:
    hits: list[Hit] = []
    used, trouble, covered = [], [], set[str]()
    for analyser in (a for a in ANALYSERS if kind in a.kinds):
        wanted = [f for f in files if analyser.wants(f) and (f.shown or analyser in ON_ALL)]
        if not wanted:
            continue
        looked = _look(analyser, wanted, run, scratch / analyser.name)
        covered |= looked.covered
        hits += (hit for hit in looked.hits if kind in hit.kinds)
        left = [file.path for file in wanted if file.path not in looked.covered]
        if left:
            trouble.append(f"{looked.trouble}; not checked by it: {_named(left)}")
        if len(left) < len(wanted):
            used.append(f"{analyser.name} ({counted(len(wanted) - len(left), 'file')})")
    beyond = [text for text in skipped if text.endswith(TOO_MANY)]
    failed = (*trouble, *beyond[:NAMED_MAX])
    skipped = [text for text in skipped if text not in beyond]
    unknown = [file.path for file in files if file.path not in covered and file.is_code and file.shown]
    seen = [f"no analyser for {kind} covers: {_named(unknown)}"] if unknown and not trouble else []
    kept = _on_changed_lines(hits, files)
    hidden = _secret_lines([file for _, file in kept[:HITS_MAX]], run, scratch / "hidden")
    findings = tuple(_finding(hit, file, hidden) for hit, file in kept[:HITS_MAX])
    return _Seen(findings, max(0, len(kept) - HITS_MAX), tuple(used), (*seen, *skipped[:NAMED_MAX]), failed)


def _look(analyser: Analyser, files: Sequence[ChangedFile], run: Run, scratch: Path) -> Looked:
    """What an analyser finds. Where it fails it looks again at half of the files, and so on.

    So only the files that break it are not looked at, as long as it needs no more than `RUNS_MAX` runs.
    """
    scratch.mkdir()
    due = [tuple(files)]
    found = Looked()
    runs = 0
    while due and runs < RUNS_MAX:
        part = due.pop(0)
        runs += 1
        limited = run if runs == 1 else partial(run, timeout_s=AGAIN_S)
        looked = _look_once(analyser, part, limited, scratch / str(runs))
        if looked.trouble and len(part) > 1:
            due += [part[: len(part) // 2], part[len(part) // 2 :]]
        found = Looked(
            (*found.hits, *looked.hits), found.covered | looked.covered, found.trouble or looked.trouble
        )
    return found


def _look_once(analyser: Analyser, files: Sequence[ChangedFile], run: Run, scratch: Path) -> Looked:
    scratch.mkdir()
    try:
        return analyser.look(files, scratch, run)
    except RondelError as e:
        return Looked(trouble=f"{analyser.name} did not run: {e}")


def _secret_lines(files: Iterable[ChangedFile], run: Run, scratch: Path) -> frozenset[tuple[str, int]]:
    """Where a secret stands: such a line is quoted by nobody, whatever else is wrong with it."""
    wanted = [f for f in {file.path: file for file in files}.values() if SECRETS.wants(f)]
    looked = _look(SECRETS, wanted, run, scratch) if wanted else Looked()
    blind = [file for file in wanted if file.path not in looked.covered]  # any line of theirs may be one
    return frozenset(
        (
            *((hit.path, hit.line) for hit in looked.hits),
            *((file.path, line) for file in blind for line in file.changed),
        )
    )


def _on_changed_lines(hits: Iterable[Hit], files: Sequence[ChangedFile]) -> list[tuple[Hit, ChangedFile]]:
    """The hits that begin on or reach over a changed line, each once, the gravest first."""
    by_path = {file.path: file for file in files}
    found: dict[tuple[str, int, str], tuple[Hit, ChangedFile]] = {}
    for hit in hits:
        file = by_path[hit.path]
        if not file.shown and hit.category not in GRAVE:
            continue
        span = range(hit.line, min(hit.line_end or hit.line, hit.line + SPAN_MAX) + 1)
        touched = [number for number in span if number in file.changed]
        if touched:
            at = replace(hit, line=touched[0], line_end=touched[-1] if touched[-1] > touched[0] else None)
            found.setdefault((hit.path, at.line, hit.rule), (at, file))
    named = {(path, line) for path, line, rule in found if rule.startswith("secret-")}
    for path, line, rule in list(found):
        again = rule == "complexity" and (path, line, "C901") in found
        if again or (rule in PASSWORDS and (path, line) in named):
            del found[path, line, rule]
    order = list(Category), list(Severity)
    return sorted(
        found.values(),
        key=lambda pair: (
            order[0].index(pair[0].category),
            order[1].index(pair[0].severity),
            pair[0].path,
            pair[0].line,
            pair[0].rule,
        ),
    )


def _finding(hit: Hit, file: ChangedFile, hidden: frozenset[tuple[str, int]]) -> Finding:
    line = file.line(hit.line).strip()
    first = re.split(r"(?<=[.:;])\s", hit.message)[0].rstrip(".:;")
    is_secret = hit.secret or (hit.path, hit.line) in hidden
    return Finding(
        title=f"{hit.rule}: {first}"[:200],
        category=hit.category,
        severity=hit.severity,
        file=hit.path,
        line=hit.line,
        line_end=hit.line_end,
        problem=hit.message,
        suggestion=hit.suggestion,
        evidence=without_secret(line) if is_secret else line[:QUOTE_MAX],
        rule=hit.rule,
    )


def without_secret(line: str) -> str:
    """The beginning of a line, up to where its value begins: a quotation that gives nothing away."""
    if re.fullmatch(r"-+BEGIN [A-Z ]+-+", line.strip()):
        return line.strip()
    head = re.match(r"[^=:\"'`]*[=:\"'`]?", line)
    kept = head[0] if head and head[0] != line else ""
    return f"{kept}…" if kept.strip() else ""


def _nobody(kind: str) -> str:
    words = f"No analyser covers {kind}: this review looked at nothing. A model or a person can."
    return _document(words, [], "", [words])


def _render(kind: str, seen: _Seen, count: int) -> str:
    number = len(seen.findings)
    found = f"report {counted(number, 'finding')}" if number else "report nothing"
    words = [f"Analysers looked at the changed lines of {counted(count, 'file')} for {kind} and {found}."]
    words.append(f"Used: {', '.join(seen.used)}." if seen.used else "None of them could look at this change.")
    if seen.left_out:
        words.append(f"{seen.left_out} more, no graver than these, are left out.")
    well = f"Nothing was found by {', '.join(seen.used)}." if seen.used and not number else ""
    questions = [f"{FAILED}{text}" for text in seen.failed]
    questions += [f"Not checked: {text}" for text in seen.not_seen]
    return _document(" ".join(words), seen.findings, well, questions)


def _document(summary: str, findings: Sequence[Finding], well: str, questions: Sequence[str]) -> str:
    parts = ["## Summary", summary, "## Findings"]
    parts += [_shown(number, finding) for number, finding in enumerate(findings, 1)] or ["None."]
    parts += ["## What works well", f"- {well}" if well else "None."]
    parts += ["## Questions", "\n".join(f"- {_plain(text)}" for text in questions) or "None."]
    ours = {"reviewer", "verified", "fingerprint"}
    block = {"findings": [{k: v for k, v in f.document().items() if k not in ours} for f in findings]}
    text = json.dumps(block, indent=1, ensure_ascii=False)
    return "\n\n".join((*parts, fenced(text, "json"))) + "\n"


def _shown(number: int, finding: Finding) -> str:
    rows = [
        f"### {number}. {_plain(finding.title)}",
        f"`{finding.file}:{finding.line}` · {finding.category} · {finding.severity}",
        _plain(finding.problem),
    ]
    if finding.evidence:
        rows.append(fenced(finding.evidence))
    if finding.suggestion:
        rows.append(f"Suggestion: {_plain(finding.suggestion)}")
    return "\n\n".join(rows)


def _plain(text: str) -> str:
    """A text of one line that starts no heading, list, quotation or fence."""
    line = " ".join(text.split()).replace("```", "...")
    return re.sub(r"^(?=[#>*+~|=-])", r"\\", line)


def _named(paths: Sequence[str]) -> str:
    return first_of([f"`{path}`" for path in paths], NAMED_MAX)
