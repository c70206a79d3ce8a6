"""Whatever a command is, reading it takes little time: the parser of bash sees only so much of it."""

from __future__ import annotations

import resource
import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from rondel.workflows.task.bash import BYTES_MAX, parse

SECONDS_MAX = 4.0  # of the processor; the worst that is known takes 0.4 on an idle machine
MEMORY_MAX = 1_500_000  # kB
PIECES = [
    *(
        "a|",
        "a=(",
        "$(",
        "${",
        "$((",
        "((",
        "[[",
        "{",
        "(",
        "`",
        '"',
        "'",
        "$'",
        "<<a\n",
        "<(",
        ">",
        "&&",
        "|&",
    ),
    *(
        ";",
        "!",
        "#",
        "~",
        "*",
        "[",
        "{a,",
        "\\\n",
        "if ",
        "case a in ",
        "for ",
        "do ",
        "function f ",
        "while ",
    ),
    *("then ", "fi ", "done ", "esac ", ")", "}", "]]", "))", "\n", "a ", "é", "0", "-", "="),
]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join))
@example("a|")
@example("a=(")
@example("$(")
@example("{a=(>")
@example("((")
def test_no_command_takes_the_parser_of_bash_long(unit):
    text = (unit * BYTES_MAX)[:BYTES_MAX]
    began = time.process_time()
    parse(text, ())
    assert time.process_time() - began < SECONDS_MAX
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < MEMORY_MAX


def test_a_longer_command_is_not_parsed_at_all():
    began = time.process_time()
    assert parse("a|" * BYTES_MAX, ()) is None
    assert parse("echo a" + " " * BYTES_MAX, ()) is None  # not looked at is never "nothing found"
    assert time.process_time() - began < 1
