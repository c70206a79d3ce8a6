"""Small parts: tasks, drafts, the beginning of an implementation, where a worktree is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.workflows.feature import place
from rondel.workflows.feature.drafting import changes_made, complaint, parse_draft
from rondel.workflows.feature.prompt import document
from rondel.workflows.feature.tasks import parse_tasks


def keys(text: str) -> list[tuple[str, str]]:
    return [(t.key, t.title) for t in parse_tasks(text)]


def test_tasks_are_the_headings_that_say_so():
    text = "# Tasks\n\n## Phase 1\n\n### Task 1.1: First\n\nDo.\n\n#### Steps\n\n1. a\n\n"
    text += "## Phase 2\n\n### Task 2: Second\n"
    assert keys(text) == [("1-1", "First"), ("2", "Second")]
    assert "Steps" in parse_tasks(text)[0].text
    assert "Phase 2" not in parse_tasks(text)[0].text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## 1. First\n\n## 2. Second\n", [("1", "First"), ("2", "Second")]),
        ("## 1. Group\n\n### 1.1 First\n\n### 1.2 Second\n", [("1-1", "First"), ("1-2", "Second")]),
        ("### T01 - First\n\n### T02 - Second\n", [("t01", "First"), ("t02", "Second")]),
        ("### Task 1\n", [("1", "task 1")]),
        ("- [ ] First\n- [x] Second\n", [("1", "First"), ("2", "Second")]),
        ("Just do it.\n", [("1", "the whole feature")]),
        ("### Task 1: A\n\n### Task 1: B\n", [("1", "A"), ("1x", "B")]),
        ("", []),
        ("\r\n## Task 1: CR\r\n", [("1", "CR")]),
    ],
)
def test_task_lists_are_read_in_many_forms(text, expected):
    assert keys(text) == expected


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(["## Task 1: x\n", "- [ ] y\n", "# z\n", "### 1.2 a\n"])).map("".join)
)
def test_every_text_gives_tasks_with_different_names(text):
    found = parse_tasks(text)
    assert len({t.key for t in found}) == len(found)
    assert bool(found) == bool(text.strip())
    for task in found:
        assert task.key
        assert "/" not in task.key


@pytest.mark.parametrize(
    "answer",
    [
        "# A\n\ntext\n",
        "```markdown\n# A\n\ntext\n```",
        "\n\n# A\n\ntext\n\n=== CHANGES ===\nWrote it.\n",
        "# A\r\n\r\ntext\r\n",
    ],
)
def test_a_document_is_taken_out_of_its_wrapping(answer):
    assert parse_draft(answer).document == "# A\n\ntext\n"
    assert complaint(answer) is None


def test_fences_inside_a_document_stay():
    text = "```sh\nmake\n```\n\n# A\n\n```sh\nmake\n```\n"
    assert parse_draft(text).document == text


@pytest.mark.parametrize("answer", ["", "Done, see the file.", "=== CHANGES ===\nall\n", "x" * 500_000])
def test_an_answer_that_is_no_document_is_refused(answer):
    assert complaint(answer)


def test_changes_are_the_authors_words_or_counted():
    assert changes_made("# A\n", parse_draft("# B\n=== CHANGES ===\nRenamed.")) == "Renamed."
    assert changes_made(None, parse_draft("# B\n")) == "First draft."
    assert changes_made("# A\n", parse_draft("# A\n")) == "Nothing."
    assert changes_made("# A\nx\n", parse_draft("# A\ny\nz\n")) == "2 lines added, 1 removed."


def test_a_document_in_a_prompt_has_a_name_a_beginning_and_an_end():
    assert document("spec.md", "# S\n") == '<document name="spec.md">\n# S\n</document>'
    assert document("spec.md", None) == document("spec.md", " ") == "(none)"


def test_a_worktree_is_stored_relative_and_resolved_at_run_time(tmp_path):
    root, tree = str(tmp_path / "repo"), str(tmp_path / "repo-001")
    assert place.relative(root, tree) == "../repo-001"
    assert place.resolve(root, "../repo-001") == tree
    assert place.resolve(root, "/old/absolute") == "/old/absolute"
    assert place.resolve(str(tmp_path / "moved/repo"), "../repo-001") == str(tmp_path / "moved/repo-001")


def test_the_warning_comes_only_from_elsewhere(tmp_path):
    root, tree = tmp_path / "repo", tmp_path / "repo-001"
    (tree / "src").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tree)
    for inside in (tree, tree / "src", tmp_path / "link/src"):
        assert place.elsewhere(str(root), "f", "../repo-001", str(inside)) is None
    for outside in (root, tmp_path / "repo-0011", tmp_path):
        assert "repo-001" in place.elsewhere(str(root), "f", "../repo-001", str(outside))
    for nothing in (None, "", " ", 3):
        assert place.elsewhere(str(root), "f", nothing, str(root)) is None
