"""The inner end of a worker: questions come in on a pipe of their own, answers go out on another.

One line of JSON each way at a time. What the program prints is not on these pipes, and every message has the
number of its question, a random one: what was meant for another question is never taken for an answer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from rondel.errors import RondelError
from rondel.model.workers import Read

ERROR_MAX = 2_000

Answer = Callable[[Any, Read], object]


def serve(answer: Answer) -> int:
    """Answer questions until there are no more. The first two words of the command line are the pipes."""
    source, target = int(sys.argv[1]), int(sys.argv[2])
    for fd in (source, target):
        os.set_inheritable(fd, False)  # noqa: FBT003 - it takes no names
    with os.fdopen(source, "rb") as questions, os.fdopen(target, "wb") as answers:

        def write(line: str) -> None:
            answers.write(line.encode() + b"\n")
            answers.flush()

        for line in questions:
            asked = json.loads(line)
            number = asked["number"]

            def read(wanted: object, number: object = number) -> object:
                write(json.dumps({"number": number, "wanted": wanted}))
                return json.loads(questions.readline())["read"]

            write(_answered(number, asked["question"], answer, read))
    return 0


def _answered(number: object, question: object, answer: Answer, read: Read) -> str:
    """The line that says what an answer is, or why there is none."""
    try:
        return json.dumps({"number": number, "answer": answer(question, read)})
    except RondelError as e:
        return json.dumps({"number": number, "refused": str(e)[:ERROR_MAX]})
    except (Exception, SystemExit) as e:  # noqa: BLE001 - whatever it is, it is what the program does
        return json.dumps({"number": number, "raised": f"{type(e).__name__}: {e}"[:ERROR_MAX]})
