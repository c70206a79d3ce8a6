"""Analysers as reviewers: real findings on changed lines, and never a clean review by not looking."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rondel.agents.base import AgentSettings, Request
from rondel.agents.checks import build, limited
from rondel.agents.vendors.gemini import _ENV_LINE
from rondel.errors import RondelError, UsageError
from rondel.model.outcomes import Ended
from rondel.workflows.feature.closing import _OPEN_BOX
from rondel.workflows.review import checks
from rondel.workflows.review.aggregate import verify
from rondel.workflows.review.analysers import complexity, patterns, ruff, secrets, shellcheck
from rondel.workflows.review.analysers.base import TYPES, ChangedFile
from rondel.workflows.review.change import Changed, Kind
from rondel.workflows.review.checks import (
    analyse,
    answer,
    changed_lines,
    read_changed,
    without_secret,
)
from rondel.workflows.review.findings import Category, Finding, parse_reviewer_json
from rondel.workflows.review.markdown import fenced
from rondel.workflows.review.prompting import unshown_block


def program(
    argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60, shown: Sequence[str] = ()
) -> tuple[int, str, str]:
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except OSError as e:
        raise RondelError(str(e)) from e
    return done.returncode, done.stdout, done.stderr


def whole(path: str, text: str | bytes) -> ChangedFile:
    data = text.encode() if isinstance(text, str) else text
    return ChangedFile(path, data, frozenset(range(1, data.count(b"\n") + 2)))


def review(kind: str, *files: ChangedFile, tmp: Path, run=program) -> tuple[tuple[Finding, ...], str]:
    text = analyse(kind, files, run, tmp)
    findings, error = parse_reviewer_json(text, f"{kind}-1")
    assert error is None
    return findings, text


def rules(findings: Sequence[Finding]) -> set[str]:
    return {finding.title.partition(":")[0] for finding in findings}


BAD_PYTHON = """\
import os
import subprocess


def load(name, cache={}):
    password = "correct horse battery"
    subprocess.run("cat " + name, shell=True)
    found = []
    for item in cache:
        found.append(item.upper())
    try:
        return undefined_name(found)
    except:
        pass
"""


def test_python_is_read_for_all_four_reviewers(tmp_path):
    found = {
        kind: rules(
            review(kind, whole("app/load.py", BAD_PYTHON), tmp=tmp_path / kind_folder(tmp_path, kind))[0]
        )
        for kind in TYPES
    }
    assert "F401" in found["quality"]
    assert {"S602", "secret-secret-keyword"} <= found["security"]
    assert "PERF401" in found["performance"]
    assert {"B006", "F821", "S110"} <= found["reliability"]


def kind_folder(tmp_path: Path, kind: str) -> str:
    (tmp_path / kind).mkdir()
    return kind


def test_only_changed_lines_are_reported(tmp_path):
    file = ChangedFile("app/load.py", BAD_PYTHON.encode(), frozenset({7}))
    findings, _ = review("security", file, tmp=tmp_path)
    assert [(f.line, f.evidence) for f in findings] == [(7, 'subprocess.run("cat " + name, shell=True)')]


def test_a_finding_that_reaches_over_a_changed_line_is_reported_there(tmp_path):
    text = 'import subprocess\n\nsubprocess.run(\n    "ls",\n    shell=True,\n    cwd="/x",\n)\n'
    findings, _ = review("security", ChangedFile("a.py", text.encode(), frozenset({5})), tmp=tmp_path)
    assert all(f.line == 5 for f in findings)


def test_every_quotation_is_in_the_change(tmp_path):
    diff = "@@ -0,0 +1,14 @@\n" + "".join(f"+{line}\n" for line in BAD_PYTHON.splitlines())
    for kind in TYPES:
        findings, _ = review(kind, whole("load.py", BAD_PYTHON), tmp=tmp_path / kind_folder(tmp_path, kind))
        assert findings
        assert all(verify(finding, diff) for finding in findings)


def test_code_that_does_not_parse_blocks_even_if_the_mistake_shows_elsewhere(tmp_path):
    text = "def f():\n    x = (1,\n    return x\n"
    findings, _ = review("reliability", ChangedFile("a.py", text.encode(), frozenset({2})), tmp=tmp_path)
    assert {(f.category, f.line) for f in findings} == {(Category.BLOCKER, 2)}


def test_shell_scripts_are_read(tmp_path):
    script = whole("bin/run", "#!/usr/bin/env -S bash -e\nrm -rf $1/*\n")
    assert "SC2115" in rules(review("reliability", script, tmp=tmp_path)[0])
    (tmp_path / "r").mkdir()
    script = whole("bin/run", '#!/bin/bash\ncd "$2"\n')
    assert rules(review("reliability", script, tmp=tmp_path / "r")[0]) == {"SC2164"}
    (tmp_path / "b").mkdir()
    broken = whole("x.sh", "if [ $3 == ]; then\n  echo\nfi\n")
    findings, _ = review("reliability", broken, tmp=tmp_path / "b")
    assert {finding.category for finding in findings} == {Category.BLOCKER}
    other = whole("lib.sh", 'echo "$(cat $file)"\n')
    (tmp_path / "q").mkdir()
    assert "SC2086" in rules(review("quality", other, tmp=tmp_path / "q")[0])


def test_secrets_are_found_and_never_repeated(tmp_path):
    key = "AKIA" + "Z7QXW3RT5YVB2NML"
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    text = f"region: eu\naws_key: {key}\ngithub: '{token}'\n-----BEGIN RSA PRIVATE KEY-----\n"
    findings, answered = review("security", whole("deploy.yaml", text), tmp=tmp_path)
    assert {f.line for f in findings} == {2, 3, 4}
    assert all(f.category is Category.BLOCKER for f in findings)
    assert key not in answered
    assert token not in answered


def test_nobody_quotes_a_secret_whatever_else_is_wrong_with_its_line(tmp_path):
    value = "correct-horse-battery"
    file = whole("app.py", f'def f():\n    password = "{value}"\n')
    findings, answered = review("quality", file, tmp=tmp_path)
    assert [(f.rule, f.line, f.evidence) for f in findings] == [("F841", 2, "password =…")]
    assert value not in answered


def test_where_nobody_could_look_for_secrets_no_line_is_quoted_whole(tmp_path):
    def run(argv, **more):
        if "detect_secrets" in " ".join(argv):
            raise RondelError("it was ended")
        return program(argv, **more)

    file = whole("app.py", 'def f():\n    password = "correct-horse-battery"\n')
    _, answered = review("quality", file, tmp=tmp_path, run=run)
    assert "F841" in answered
    assert "correct-horse" not in answered


HOSTILE = {
    "sql": ("a.js", b'"select a from a from a from a from ' * 50),
    "deep json": ("a.json", b"[" * 900_000),
    "deep toml": ("a.toml", b"a = " + b"[" * 900_000),
    "wide toml": ("a.toml", b"".join(b"a.b%d.c = 1\n" % n for n in range(20_000))),
    "deep yaml": ("a.yaml", b"[" * 190_000),
    "aliases": ("a.yaml", b"a: &a [x]\n" + b"b: [*a,*a]\n" * 9_000),
    "deep xml": ("a.xml", b"<a>" * 300_000),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_looked_at_in_a_process_of_its_own_or_named(tmp_path, kind):
    """The driver parses none of it; whatever becomes of the process, the answer says what nobody saw."""
    asked = []

    def run(argv, *, stdin="", timeout_s=60, shown=()):
        asked.append(argv)
        return program(limited(argv, 3), stdin=stdin, timeout_s=timeout_s)

    path, data = HOSTILE[kind]
    _, answered = review("reliability", whole(path, data), tmp=tmp_path, run=run)
    assert any("analysers.base" in " ".join(argv) for argv in asked)
    assert f"not checked by it: `{path}`" in answered or "(1 file)" in answered


LINEAR = {
    "a fenced diff": (checks._diff, "```diff\n", "\n```diff\nx\n```\n"),
    "open tasks": (_OPEN_BOX.findall, "\n", ""),
    "settings of a vendor": (_ENV_LINE.findall, "\n", ""),
}


@pytest.mark.parametrize("name", LINEAR)
def test_twice_as_much_text_takes_about_twice_as_long(name):
    parse, unit, end = LINEAR[name]

    def seconds(count: int) -> float:
        text, best = unit * count + end, 9e9
        for _ in range(3):
            began = time.process_time()
            parse(text)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(40_000) < 3.2 * seconds(20_000) + 0.005


def test_a_process_that_is_ended_has_looked_at_nothing(tmp_path):
    def run(argv, **_):
        return (-9, "", "") if "analysers.base" in " ".join(argv) else (0, "[]", "")

    file = whole("a.js", "debugger;\n")
    _, answered = review("reliability", file, tmp=tmp_path, run=run)
    assert "patterns ended with status -9" in answered
    assert "not checked by it: `a.js`" in answered


def test_a_password_that_two_analysers_see_is_one_finding(tmp_path):
    findings, _ = review("security", whole("app.py", 'password = "correct-horse-battery"\n'), tmp=tmp_path)
    assert [f.rule for f in findings] == ["secret-secret-keyword"]


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ('password = "hunter2"', "password =…"),
        ("DB_URL=postgres://me:pw@host/db", "DB_URL=…"),
        ("connect('pw')", "connect('…"),
        ("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"),
        ("AKIAZ7QXW3RT5YVB2NML", ""),
        ('"AKIAZ7QXW3RT5YVB2NML"', '"…'),
    ],
)
def test_a_line_with_a_secret_is_quoted_without_it(line: str, kept: str):
    assert without_secret(line) == kept


def test_complex_functions_are_found_in_other_languages(tmp_path):
    branches = "".join(f"  if (a === {n}) return {n};\n" for n in range(20))
    source = f"function pick(a) {{\n{branches}  return 0;\n}}\nfunction small() {{ return 1; }}\n"
    (finding,), _ = review(
        "quality", ChangedFile("src/pick.js", source.encode(), frozenset({9})), tmp=tmp_path
    )
    assert "`pick` has 21 paths" in finding.problem
    assert finding.line == 9
    (tmp_path / "2").mkdir()
    assert (
        review("quality", ChangedFile("src/pick.js", source.encode(), frozenset({24})), tmp=tmp_path / "2")[0]
        == ()
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.json", '{"a": 1,\n"b": }\n'),
        ("a.toml", "a = 1\na = 2\n"),
        ("a.xml", "<a>\n<b>\n</a>\n"),
        ("a.yml", "a: 1\n b: 2\n"),
    ],
)
def test_files_that_no_longer_parse_block(tmp_path, path: str, text: str):
    findings, _ = review("reliability", whole(path, text), tmp=tmp_path)
    assert [f.category for f in findings] == [Category.BLOCKER]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.json", '{"a": [1, 2]}\n'),
        ("tsconfig.json", "{ // comments are fine here\n}\n"),
        ("chart/values.yaml", "name: {{ .Values.name }}\n"),
        ("a.yaml", "key: !Custom [a, b]\n---\nother: document\n"),
        ("a.svg", "<svg/>\n"),
        ("bomb.xml", '<!DOCTYPE a [<!ENTITY x "y">]>\n<a>&x;</a>\n'),
    ],
)
def test_files_that_are_fine_are_not_reported(tmp_path, path: str, text: str):
    assert review("reliability", whole(path, text), tmp=tmp_path)[0] == ()


@pytest.mark.parametrize(
    ("kind", "path", "line", "rule"),
    [
        ("reliability", "a.c", "<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> branch", "conflict"),
        ("quality", "a.js", "  debugger;", "debugger"),
        ("quality", "a.rb", "  binding.pry", "debugger"),
        ("quality", "a.ts", "  console.log(x)", "console"),
        ("reliability", "a.test.ts", "it.only('x', () => {})", "only"),
        ("quality", "a.go", "// TODO: later", "todo"),
        ("security", "a.go", "cfg := tls.Config{InsecureSkipVerify: true}", "tls"),
        ("security", "a.ts", "el.innerHTML = text", "html"),
        ("security", "a.js", "eval(input)", "eval"),
        ("security", "a.java", 'q = "SELECT a FROM b WHERE c = " + c;', "sql"),
        ("security", "a.js", "q = `select a from b where c = ${c}`", "sql"),
    ],
)
def test_lines_that_speak_for_themselves_are_found(tmp_path, kind: str, path: str, line: str, rule: str):
    assert rule in rules(review(kind, whole(path, f"{line}\n"), tmp=tmp_path)[0])


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.md", "# TODO: later"),
        ("guide.rst", "Title\n=======\n"),
        ("a.js", "el.innerHTML === text"),
        ("a.js", "my.eval(x)"),
        ("a.js", 'q = "select a letter from the list"'),
        ("a.go", "// this method does all"),
    ],
)
def test_lines_that_only_look_like_it_are_not(tmp_path, path: str, line: str):
    for kind in ("quality", "security", "reliability"):
        assert review(kind, whole(path, f"{line}\n"), tmp=tmp_path / kind_folder(tmp_path, kind))[0] == ()


def test_a_reviewer_that_no_analyser_can_be_says_so(tmp_path):
    findings, text = review("accessibility", whole("a.py", BAD_PYTHON), tmp=tmp_path)
    assert findings == ()
    assert "No analyser covers accessibility" in text


def test_files_that_no_analyser_of_the_type_covers_are_named(tmp_path):
    _, text = review("performance", whole("main.go", "package main\n"), tmp=tmp_path)
    assert "no analyser for performance covers: `main.go`" in text
    assert "Nothing was found" not in text


def test_a_missing_or_failing_analyser_is_named_with_its_files(tmp_path):
    def missing(argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60) -> tuple[int, str, str]:
        raise RondelError("no such program")

    def failing(argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60) -> tuple[int, str, str]:
        return 2, "", "it crashed"

    def babbling(argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60) -> tuple[int, str, str]:
        return 0, "welcome to ruff!", ""

    for number, run in enumerate((missing, failing, babbling)):
        (tmp_path / str(number)).mkdir()
        findings, text = review("performance", whole("a.py", BAD_PYTHON), tmp=tmp_path / str(number), run=run)
        assert findings == ()
        assert "## Questions\n\n- Could not be checked: ruff" in text
        assert "`a.py`" in text
        assert "None of them could look at this change." in text


def test_no_configuration_of_the_repository_is_read_and_none_of_its_code_runs(tmp_path, monkeypatch):
    repository = tmp_path / "repository"
    repository.mkdir()
    for name, text in {
        "ruff.toml": "exclude = ['*']\n",
        ".shellcheckrc": "disable=all\n",
        "sitecustomize.py": "raise SystemExit('ran')\n",
        "ruff.py": "raise SystemExit('ran')\n",
        "lizard.py": "raise SystemExit('ran')\n",
        "detect_secrets.py": "raise SystemExit('ran')\n",
        ".secrets.baseline": "{}",
        "a.py": "import os\n",
        "a.sh": "cd $1\n",
    }.items():
        (repository / name).write_text(text)
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PYTHONPATH", str(repository))
    files, _ = read_changed(
        repository, {"a.py": frozenset({1}), "a.sh": frozenset({1}), "ruff.toml": frozenset({1})}
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    findings, text = review("quality", *files, tmp=scratch)
    assert {"F401", "SC2086"} <= rules(findings)
    assert "Not checked" not in text


def test_the_same_change_gives_the_same_answer(tmp_path):
    files = [whole(f"d{n}/a{n}.py", BAD_PYTHON) for n in range(4)]
    answers = []
    for n, order in enumerate((files, files[::-1])):
        (tmp_path / str(n)).mkdir()
        answers.append(review("security", *order, tmp=tmp_path / str(n))[1])
    assert answers[0] == answers[1]


def test_many_findings_are_cut_and_counted(tmp_path, monkeypatch):
    text = "".join(f"import module_{n}\n" for n in range(checks.HITS_MAX + 7))
    findings, answered = review("quality", whole("a.py", text), tmp=tmp_path)
    assert len(findings) == checks.HITS_MAX
    assert "7 more, no graver than these, are left out." in answered


def test_odd_names_and_contents_do_no_harm(tmp_path):
    files = [
        whole("-rf.py", "import os\n"),
        whole("a b'$(x)\".py", "import os\n"),
        whole("ü/ß.py", "import os\n"),
        whole("bin.py", b"\xff\xfe\x00import os\n"),
        whole("empty.py", ""),
        whole("__init__.py", "from a import b\n"),
        whole("con.py", "import os\r\nimport sys\r\n"),
    ]
    findings, text = review("quality", *files, tmp=tmp_path)
    assert {f.file for f in findings if f.title.startswith("F401")} >= {
        "-rf.py",
        "a b'$(x)\".py",
        "ü/ß.py",
        "con.py",
    }
    assert "be checked: ruff" not in text


@dataclass
class Seat:
    role: str
    prompt: str
    cwd: Path


DIFF = """\
diff --git a/app.py b/app.py
new file mode 100644
--- /dev/null
+++ b/app.py
@@ -0,0 +1,2 @@
+import os
+++ x
diff --git a/gone.py b/gone.py
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-import os
diff --git a/b.txt b/b.txt
--- a/b.txt
+++ b/b.txt
@@ -1,3 +1,4 @@ def f():
 a
+b
-c
+d
 e
\\ No newline at end of file
"""


def test_the_changed_lines_of_a_diff_are_known():
    assert changed_lines(DIFF) == {"app.py": frozenset({1, 2}), "b.txt": frozenset({2, 3})}


@given(st.text() | st.lists(st.sampled_from(DIFF.splitlines())).map("\n".join))
def test_any_text_has_changed_lines_or_none(text: str):
    assert all(numbers for numbers in changed_lines(text).values())


def test_the_agent_answers_from_its_checkout(tmp_path):
    (tmp_path / "app.py").write_text("import os\n++ x\n")
    (tmp_path / "b.txt").write_text("a\nb\nd\ne")
    text = answer(Seat("review.reviewer.quality-1", f"Analyse.\n\n```diff\n{DIFF}```\n", tmp_path), program)
    findings, error = parse_reviewer_json(text)
    assert error is None
    assert "F401" in rules(findings)


def test_the_checks_agent_finds_the_analysers_and_ends_their_programs(tmp_path):
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "app.py").write_text("import os\n++ x\n")
    asked = Request(
        prompt=f"Analyse.\n\n```diff\n{DIFF}```\n",
        role="review.reviewer.quality-1",
        session="review:x",
        action="reviews/quality-1.md",
        attempt=1,
        cwd=tmp_path / "checkout",
        spool=tmp_path / "spool",
        home=tmp_path / "home",
    )
    agent = build(AgentSettings("checks", "checks"))
    reply = asyncio.run(agent.run(asked, lambda _: None))
    assert reply.ended is Ended.DONE, reply.error
    findings, error = parse_reviewer_json(reply.text)
    assert error is None
    assert "F401" in {finding.rule for finding in findings}


def test_checks_are_reviewers_and_nothing_else(tmp_path):
    with pytest.raises(UsageError, match="give that role another agent"):
        answer(Seat("review.lead", "", tmp_path), program)


def test_without_a_diff_there_is_no_answer(tmp_path):
    with pytest.raises(RondelError, match="holds no diff"):
        answer(Seat("review.reviewer.quality-1", "Analyse.", tmp_path), program)


def test_a_change_never_makes_us_read_elsewhere(tmp_path):
    outside = tmp_path / "outside.py"
    outside.write_text("import os\n")
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "link.py").symlink_to(outside)
    (root / "d" / "up").symlink_to(tmp_path)
    lines = dict.fromkeys(
        ["link.py", "../outside.py", "d/up/outside.py", str(outside), "d", "gone.py"], frozenset({1})
    )
    files, skipped = read_changed(root, lines)
    assert files == []
    assert len(skipped) == 6


def test_a_file_that_is_too_large_is_named(tmp_path):
    (tmp_path / "a.py").write_bytes(b"x" * (checks.FILE_BYTES_MAX + 1))
    files, skipped = read_changed(tmp_path, {"a.py": frozenset({1})})
    assert files == []
    assert "`a.py`: it has more than" in skipped[0]


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
@settings(max_examples=60)
def test_reports_of_any_shape_are_read_or_refused(text: str):
    for read in (ruff.parse, shellcheck.parse, secrets.parse, complexity.parse):
        assert isinstance(read(text), list | None)


def test_patterns_are_quick_on_long_lines():
    line = ("select " * 400 + '"' * 200)[: patterns.LINE_MAX]
    file = whole("a.js", "\n".join([line] * 200))
    start = time.process_time()
    list(patterns._lines(file))
    assert time.process_time() - start < 10


def test_this_python_has_the_analysers():
    assert shellcheck.program()
    assert program([sys.executable, "-I", "-m", "ruff", "--version"])[0] == 0


KEY = 'AWS = "AKIAIOSFODNN7EXAMPLF"\n'


def test_secrets_are_found_in_text_that_no_reviewer_is_shown_and_nothing_lesser_is_said_of_it(tmp_path):
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor/a.py").write_text(f"import os\n# TODO: this\n{KEY}")
    (tmp_path / "run.sh").write_bytes(b"#!/bin/sh\n# \0" + KEY.encode())
    diff = "--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+# \ufffdAWS\n"
    unshown = [Changed("vendor/a.py", "modified", 3, 0, Kind.VENDORED, wrote=((1, 3),))]
    prompt = f"{fenced(diff, 'diff')}\n\n{unshown_block(unshown)}\n"
    for kind, expected in (("security", {("vendor/a.py", 3), ("run.sh", 2)}), ("quality", set())):
        text = answer(Seat(f"review.reviewer.{kind}-1", prompt, tmp_path), program)
        found, _ = parse_reviewer_json(text, f"{kind}-1")
        assert {(f.file, f.line) for f in found if f.category is Category.BLOCKER} == expected
        assert {f.file for f in found if f.category is not Category.BLOCKER} <= {"run.sh"}


def test_only_the_files_that_break_an_analyser_are_not_looked_at(tmp_path):
    files = [whole(f"a{n}.py", KEY) for n in range(9)]
    files[4] = whole("a4.py", f"{KEY}BOMB\n")
    runs = []

    def fragile(argv: Sequence[str], *, timeout_s: float = 60, **_: object) -> tuple[int, str, str]:
        if "detect_secrets" in " ".join(argv):
            runs.append(timeout_s)
            if any(b"BOMB" in Path(name).read_bytes() for name in argv if name.startswith(str(tmp_path))):
                raise RondelError("it was ended, by signal 9")
        return program(argv, **_)

    findings, text = review("security", *files, tmp=tmp_path, run=fragile)
    assert {f.file for f in findings if f.category is Category.BLOCKER} == {f"a{n}.py" for n in range(9)} - {
        "a4.py"
    }
    assert "Could not be checked: detect-secrets did not run: it was ended, by signal 9" in text
    assert "not checked by it: `a4.py`" in text
    assert "detect-secrets (8 files)" in text
    assert len(runs) <= 2 * checks.RUNS_MAX
    assert set(runs[1:7]) == {checks.AGAIN_S}


def test_an_analyser_that_always_fails_is_run_a_bounded_number_of_times(tmp_path):
    runs = []

    def failing(argv: Sequence[str], **_: object) -> tuple[int, str, str]:
        runs.append(argv)
        return 1, "", "no"

    _, text = review(
        "performance", *(whole(f"a{n}.py", "x = 1\n") for n in range(40)), tmp=tmp_path, run=failing
    )
    assert len(runs) == checks.RUNS_MAX
    assert "`a0.py`" in text
    assert "and 30 more" in text


KEY = "AKIA" + "Z7Q4M2X9K1B8D3T5"
PATHS = "".join(f"  if (a == {n}) {{ b({n}); }}\n" for n in range(20))
TANGLE = f"function tangle(a, b) {{\n{PATHS}}}\n"
SHELL = "import subprocess\n\n\ndef go(name):\n    subprocess.run(name, shell=True)"


@pytest.mark.parametrize(
    ("kind", "path", "text", "rule"),
    [
        ("security", "go.py", f"{SHELL}  # noqa\n", "S602"),
        ("security", "go.py", f"{SHELL}  # noqa: S602\n", "S602"),
        ("security", "go.py", f"# ruff: noqa\n{SHELL}\n", "S602"),
        ("security", "go.py", f"# flake8: noqa\n{SHELL}\n", "S602"),
        ("security", "a.py", f"key = '{KEY}'  # pragma: allowlist secret\n", "secret-aws-access-key"),
        (
            "security",
            "a.py",
            f"# pragma: allowlist nextline secret\nkey = '{KEY}'\n",
            "secret-aws-access-key",
        ),
        ("security", "yarn.lock", f"key '{KEY}'\n", "secret-aws-access-key"),
        ("security", "package-lock.json", f'{{"key": "{KEY}"}}\n', "secret-aws-access-key"),
        ("security", "swagger.py", f"key = '{KEY}'\n", "secret-aws-access-key"),
        ("security", "logo.png", f"key = '{KEY}'\n", "secret-aws-access-key"),
        ("quality", "go.sh", "#!/bin/bash\n# shellcheck disable=SC2086\nrm -rf $1/x\n", "SC2086"),
        ("quality", "go.sh", "#!/bin/bash\n#shellcheck disable=all\nrm -rf $1/x\n", "SC2086"),
        ("quality", "a.js", TANGLE.replace("{", "{ // #lizard forgives", 1), "complexity"),
        ("quality", "a.js", f"// GENERATED CODE\n{TANGLE}", "complexity"),
    ],
)
def test_neither_a_comment_nor_a_file_name_of_the_change_silences_an_analyser(
    tmp_path, kind, path, text, rule
):
    assert rule in rules(review(kind, whole(path, text), tmp=tmp_path)[0])


def test_the_digests_in_a_lock_file_are_no_secrets(tmp_path):
    digest = "sha512-Zm9vYmFyYmF6cXV4Q0xVRUxFU1MxMjM0NTY3ODkwcXdlcnR5dWlvcGFzZGZnaGprbA=="
    lock = whole("package-lock.json", json.dumps({"a": {"integrity": digest}}, indent=1))
    assert review("security", lock, tmp=tmp_path)[0] == ()
