"""A reviewer's answer is untrusted; nothing becomes "no findings" by accident."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.model.names import inside
from rondel.workflows.review.aggregate import fingerprint, quotable, verify
from rondel.workflows.review.findings import (
    FINDINGS_MAX,
    TEXT_MAX,
    TITLE_MAX,
    Category,
    Finding,
    Severity,
    category_of,
    finding_of,
    locate,
    parse_reviewer_json,
    place,
    severity_of,
)

ONE = {
    "title": "The file is never closed",
    "category": "should_fix",
    "severity": "high",
    "file": "src/app/read.py",
    "line": 12,
    "line_end": 14,
    "problem": "open() without with; the handle leaks on an error.",
    "suggestion": "Use a with statement.",
    "evidence": "handle = open(path)",
}


def answer(*findings: object, before: str = "## Summary\nFine.\n\n") -> str:
    return f"{before}```json\n{json.dumps({'findings': list(findings)}, indent=1)}\n```\n"


def test_a_whole_finding_is_read_as_it_was_written():
    (finding,), error = parse_reviewer_json(answer(ONE), "quality-1")
    assert error is None
    assert finding == Finding(
        **{**ONE, "category": Category.SHOULD_FIX, "severity": Severity.HIGH}, reviewer="quality-1"
    )


def test_a_finding_survives_being_written_down():
    (finding,), _ = parse_reviewer_json(answer(ONE), "quality-1")
    kept = Finding(**{**vars(finding), "verified": True, "fingerprint": "abc"})
    assert finding_of(json.loads(json.dumps(kept.document()))) == kept


def test_an_empty_list_is_no_findings_and_no_error():
    assert parse_reviewer_json(answer()) == ((), None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no fenced json block"),
        ("All good, nothing to report.", "no fenced json block"),
        ('```json\n{"findings": [\n```', "does not parse"),
        ('```json\n{"findings": [{"title": "x",}]}\n```', "does not parse"),
        ('```json\n{"findings": "none"}\n```', "must be a list"),
        (answer("a string"), "finding 1: it is not an object"),
        (answer({"category": "blocker"}), 'no "title"'),
        (answer({"title": "x"}), 'needs a "category"'),
        (answer({"title": "x", "category": "whatever"}), "is not one of blocker, should_fix"),
        (answer(ONE) + answer(), "send exactly one"),
        ("```json\n" + "[" * 100_000, "no fenced json block"),
        ("```json\n{" + '"findings": ' + "[" * 100_000, "does not parse"),
    ],
)
def test_what_cannot_be_read_is_an_error_in_words(text: str, says: str):
    _, error = parse_reviewer_json(text)
    assert error is not None
    assert says in error


def test_a_broken_block_is_an_error_even_beside_a_whole_one():
    broken = '```json\n{"findings": [{"title": "real trouble" "category"}]}\n```\n'
    assert "does not parse" in str(parse_reviewer_json(broken + answer())[1])


def test_what_can_be_read_beside_an_error_is_kept():
    findings, error = parse_reviewer_json(answer(ONE, 3, ONE))
    assert len(findings) == 2
    assert error == "finding 2: it is not an object"


def test_other_json_in_the_answer_is_not_mistaken_for_the_findings():
    other = '```json\n{"name": "package", "version": 3}\n```\n'
    assert len(parse_reviewer_json(other + answer(ONE) + other)[0]) == 1


def test_a_fence_inside_a_text_does_not_end_the_block():
    fenced = {**ONE, "suggestion": "```python\nwith open(path) as f:\n```"}
    raw = answer(fenced).replace("\\n", "\n")
    for text in (answer(fenced), raw):
        (finding,), error = parse_reviewer_json(text)
        assert error is None
        assert finding.suggestion == fenced["suggestion"]


def test_an_answer_that_is_only_json_is_read():
    assert len(parse_reviewer_json(json.dumps({"findings": [ONE]}))[0]) == 1
    assert len(parse_reviewer_json(f"\n {json.dumps([ONE])}")[0]) == 1


@pytest.mark.parametrize(
    ("word", "category"),
    [
        ("BLOCKER", Category.BLOCKER),
        ("Must-Fix", Category.BLOCKER),
        ("should fix", Category.SHOULD_FIX),
        ("Should_Fix ", Category.SHOULD_FIX),
        ("Suggestions", Category.SUGGESTION),
        ("nit", Category.STYLE),
        ("whatever", None),
        (None, None),
        (3, None),
    ],
)
def test_categories_are_read_in_any_case_and_by_synonym(word: object, category: Category | None):
    assert category_of(word) == category


def test_severities_are_read_in_any_case_and_by_synonym():
    words = ["Critical", "MAJOR", "moderate", "minor", "Note", "nonsense"]
    assert [severity_of(word) for word in words] == ["critical", "high", "medium", "low", "info", None]


def test_a_missing_category_follows_from_the_severity_and_the_other_way_round():
    (finding,), _ = parse_reviewer_json(answer({"title": "x", "severity": "critical"}))
    assert finding.category is Category.BLOCKER
    (finding,), _ = parse_reviewer_json(answer({"title": "x", "category": "style"}))
    assert finding.severity is Severity.INFO


def test_too_many_findings_are_cut_and_said():
    findings, error = parse_reviewer_json(answer(*[ONE] * (FINDINGS_MAX + 1)))
    assert len(findings) == FINDINGS_MAX
    assert "that matter most" in str(error)


def test_texts_have_a_bound():
    long = {**ONE, "title": "t" * 9_999, "problem": "p\n" * 9_999, "evidence": "e" * 9_999}
    (finding,), _ = parse_reviewer_json(answer(long))
    assert len(finding.title) <= TITLE_MAX
    assert len(finding.problem) <= TEXT_MAX
    assert len(finding.evidence) <= TEXT_MAX


def test_what_cannot_be_written_to_a_file_is_left_out():
    (finding,), _ = parse_reviewer_json(answer({**ONE, "title": "a\ud800b\x00c\u202ed\ne"}))
    assert finding.title == "abcd e"
    finding.title.encode()


@pytest.mark.parametrize(
    ("file", "line", "end", "expected"),
    [
        ("src/a.py", 3, None, ("src/a.py", 3, None)),
        ("./src/a.py", "3", "5", ("src/a.py", 3, 5)),
        ("`src/a.py:12-15`", None, None, ("src/a.py", 12, 15)),
        ("src/a.py:12", 4, None, ("src/a.py", 4, None)),
        ("src/a.py (line 7)", None, None, ("src/a.py", 7, None)),
        ("src/a.py (lines 7-9)", None, None, ("src/a.py", 7, 9)),
        ("src/a.py#L7-L9", None, None, ("src/a.py", 7, 9)),
        ("src\\a.py", "L7", None, ("src/a.py", 7, None)),
        ("src/a.py", [3, 9], None, ("src/a.py", 3, 9)),
        ("src/a.py", 9, 3, ("src/a.py", 9, None)),
        ("src/a.py", 0, 3, ("src/a.py", None, None)),
        ("src/a.py", -4, None, ("src/a.py", None, None)),
        ("src/a.py", True, None, ("src/a.py", None, None)),
        ("src/a.py", 10**9, None, ("src/a.py", None, None)),
        ("src/a.py", {"x": 1}, None, ("src/a.py", None, None)),
        ("../../etc/passwd", 3, None, (None, None, None)),
        ("/etc/passwd", 3, None, (None, None, None)),
        ("~/.ssh/id_rsa", 3, None, (None, None, None)),
        ("C:/x", 3, None, (None, None, None)),
        ("", 3, None, (None, None, None)),
        (None, 3, None, (None, None, None)),
        (7, 3, None, (None, None, None)),
    ],
)
def test_a_place_is_a_path_in_the_repository_or_none(
    file: object, line: object, end: object, expected: object
):
    assert place(file, line, end) == expected


def test_a_path_from_elsewhere_is_found_among_the_changed_files():
    files = ["src/app/read.py", "src/app/main.py", "tests/main.py"]
    assert locate("src/app/read.py", files) == "src/app/read.py"
    assert locate("b/src/app/read.py", files) == "src/app/read.py"
    assert locate("read.py", files) == "src/app/read.py"
    assert locate("main.py", files) == "main.py"
    assert locate("other.py", files) == "other.py"
    assert locate(None, files) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*ONE, "x"]), inner, max_size=8)
    ),
    max_leaves=30,
)


@given(st.text() | json_values.map(lambda value: f"```json\n{json.dumps({'findings': value})}\n```"))
def test_no_answer_raises_and_every_finding_can_be_written(text: str):
    findings, error = parse_reviewer_json(text)
    assert findings or error or '"findings"' in text
    for finding in findings:
        json.dumps(finding.document()).encode()
        assert finding.title
        assert finding.file is None or inside(finding.file)
        assert finding_of(finding.document()) == finding


@given(st.lists(json_values))
def test_whatever_the_items_are_none_disappears_without_a_word(items: list[object]):
    findings, error = parse_reviewer_json(answer(*items))
    assert len(findings) == len(items) or error


DIFF = """\
diff --git a/src/app/read.py b/src/app/read.py
index 111..222 100644
--- a/src/app/read.py
+++ b/src/app/read.py
@@ -8,6 +8,8 @@ def load(path):
     log.info("loading")
-    return old(path)
+    handle = open(path)
+    data = handle.read()
     return parse(data)
@@ -40,3 +42,3 @@ def save(path):
-    x = 1
+    x = 2
"""


def quoting(evidence: str) -> Finding:
    return Finding("t", Category.STYLE, Severity.LOW, file="src/app/read.py", evidence=evidence)


@pytest.mark.parametrize(
    "evidence",
    [
        "handle = open(path)",
        "`handle = open(path)`",
        "handle   =\topen( path )",
        "+    handle = open(path)\n+    data = handle.read()",
        "```python\nhandle = open(path)\ndata = handle.read()\n```",
        "12: handle = open(path)\n13: data = handle.read()",
        "12 | +    handle = open(path)",
        "return old(path)",
        "-    return old(path)\n+    handle = open(path)",
        'log.info("loading")\nhandle = open(path)',
        'log.info("loading")\nreturn old(path)',
        "handle = open(path)\n...\nreturn parse(data)",
        "def load(path):",
    ],
)
def test_a_quotation_of_the_change_is_verified(evidence: str):
    assert verify(quoting(evidence), DIFF)


@pytest.mark.parametrize(
    "evidence",
    [
        "",
        "   ",
        "...",
        "x",
        "(){}[]",
        "handle = open(other)",
        "return parse(data)\nx = 2",
        "handle = open(path)\n...\nhandle.close()",
        "index 111..222 100644",
        "--- a/src/app/read.py",
    ],
)
def test_what_is_not_in_the_change_is_not_verified(evidence: str):
    assert not verify(quoting(evidence), DIFF)


@given(st.text(), st.text())
def test_verifying_never_raises(evidence: str, diff: str):
    verify(quoting(evidence), diff)


@pytest.mark.parametrize("mark", ["\x0c", "\u2028", "\x85", "\r"])
def test_a_line_goes_on_after_a_character_that_ends_lines_elsewhere(mark: str):
    diff = f"@@ -0,0 +1,2 @@\n+first = 1{mark}second = 2\n+third = 3\n"
    assert verify(quoting("second = 2\nthird = 3"), diff)


def test_many_quotations_in_a_large_change_are_looked_up_quickly():
    large = "@@ -1 +1 @@\n" + "\n".join(f"+line_{n} = compute({n})" for n in range(150_000))
    start = time.process_time()
    change = quotable(large)
    assert all(verify(quoting(f"line_{n} = compute({n})"), change) for n in range(0, 150_000, 1_500))
    assert time.process_time() - start < 15


def test_a_fingerprint_survives_moved_lines_and_other_words():
    (one,), _ = parse_reviewer_json(answer(ONE))
    (two,), _ = parse_reviewer_json(
        answer(
            {
                **ONE,
                "title": "Unclosed file handle",
                "line": 99,
                "line_end": None,
                "problem": "It leaks.",
                "evidence": "+    handle  =  open(path)",
            }
        )
    )
    assert fingerprint(one) == fingerprint(two)


def test_a_fingerprint_tells_files_and_places_apart():
    (one,), _ = parse_reviewer_json(answer(ONE))
    (file,), _ = parse_reviewer_json(answer({**ONE, "file": "src/app/write.py"}))
    (code,), _ = parse_reviewer_json(answer({**ONE, "evidence": "socket = connect(host)"}))
    assert len({fingerprint(one), fingerprint(file), fingerprint(code)}) == 3


def test_two_rules_broken_on_one_line_are_two_findings():
    (one,), _ = parse_reviewer_json(answer({**ONE, "rule": "S602"}))
    (two,), _ = parse_reviewer_json(answer({**ONE, "rule": "B006"}))
    assert fingerprint(one) != fingerprint(two)


@pytest.mark.parametrize("rule", ["", "a b", "../x", "-x", 3, None, "x" * 100])
def test_what_cannot_be_the_name_of_a_rule_is_none(rule: object):
    (finding,), _ = parse_reviewer_json(answer({**ONE, "rule": rule}))
    assert finding.rule == ""


def test_without_a_quotation_the_code_at_the_place_counts_and_then_the_words():
    bare = Finding("File never closed", Category.STYLE, Severity.LOW, file="src/app/read.py")
    other = Finding("Never closed: file!", Category.STYLE, Severity.LOW, file="src/app/read.py")
    assert fingerprint(bare) == fingerprint(other)
    assert fingerprint(bare, "handle = open(path)") == fingerprint(quoting("handle = open(path)"))
    assert fingerprint(bare, "handle = open(path)") != fingerprint(bare)
