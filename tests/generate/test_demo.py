"""The demo: a Python package in four cycles, whose own generated tests pass."""

from __future__ import annotations

import re

from rondel.cli.demo_generate import demo


def test_the_generated_package_s_own_tests_really_pass():
    said: list[str] = []
    demo(said.append)
    text = "\n".join(said)
    ran = re.search(r"Ran (\d+) tests", text)
    assert ran
    assert int(ran[1]) == 8
    assert text.rstrip().endswith("OK")
    assert "  [✓] tests (completed)" in text
    assert "wrote shelf/service.py" in text
