"""The demo: every workflow to its end on a scratch repository, with no key and no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest


def demo(tmp_path, part: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "rondel", "demo", "--only", part],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("review", ["REQUEST CHANGES", "fixed"]),
        ("feature", ["specify: Phase complete (2 iterations)", "next: rondel feature implement"]),
        ("cycle", ["rondel cycle start"]),
        ("task", ["- [x] **IMPL-3**"]),
        ("generate", ["[✓] tests (completed)", "wrote shelf/service.py", "Ran 8 tests", "OK"]),
    ],
)
def test_each_part_of_the_demo_comes_to_its_end(tmp_path, part, words):
    said = demo(tmp_path, part)
    for word in words:
        assert word in said
    assert "no model was asked" in said
    assert not list(tmp_path.glob("rondel-demo-*")), "nothing is left behind"


def test_the_review_finds_real_defects_and_says_what_was_fixed(tmp_path):
    text = demo(tmp_path, "review")
    assert text.count("# Final review: archive, round") == 2
    assert "**Verdict**: REQUEST CHANGES" in text
    assert "secret-aws-access-key" in text
    assert "SC2115" in text
    compared = text.splitlines()
    fixed = [line for line in compared if line.startswith("fixed ")]
    assert len(fixed) >= 5
    assert any(line.startswith("persisting ") and "S602" in line for line in compared)


def test_the_generated_package_s_own_tests_really_pass(tmp_path):
    text = demo(tmp_path, "generate")
    ran = re.search(r"Ran (\d+) tests", text)
    assert ran
    assert int(ran[1]) == 8
    assert text.partition("Ran 8 tests")[2].split("\n\n")[1].strip().startswith("OK")
    assert "  [✓] tests (completed)" in text
