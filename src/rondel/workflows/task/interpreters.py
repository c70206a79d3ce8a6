"""Interpreters: a program that is written out, or a file that is named, may be given values; nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rondel.workflows.task import programs
from rondel.workflows.task.programs import Language
from rondel.workflows.task.values import Input, Word


def problem(name: str, words: Sequence[Word], given: Input) -> str:
    """Why an interpreter may not be given values; empty where it may."""
    kind = programs.KINDS.get(name, name)
    language = programs.INTERPRETERS.get(kind, Language())
    at, has_code = 1, False
    while at < len(words):
        text = words[at].text
        skip = _skipped(language, words[at])
        if any(w.many for w in words[at : at + max(skip, 1)]) or (text is None and not skip):
            return f"{name}, with a word before its program that is not written out"
        if text is not None and text in language.code:
            found = _code(kind, words[at + 1 : at + 2])
            if found or not language.first_is_code:
                return found
            at, has_code = at + 2, True
        elif text == "-m" and kind == "python":
            return _module(words[at + 1 : at + 2])
        elif skip:
            at += skip
        elif (text or "-").startswith(("-", "+")):
            return f"{name} {text}, which is not known to run nothing"
        elif language.first_is_code:
            return "" if has_code else _code(kind, words[at : at + 1])
        else:
            return script_file(name, words[at:], given)
    return "" if has_code else f"{name}, which reads its program from its standard input"


def _skipped(language: Language, word: Word) -> int:
    """How many words an option takes that runs nothing; 0 where it is none."""
    text = word.text or ""
    if text in language.pairs:
        return 3
    if text in language.valued:
        return 2
    attached = any(word.head.startswith(o) and word.head != o for o in language.attached)
    letters = "".join(flag[1] for flag in language.flags if re.fullmatch(r"-\w", flag))
    cluster = re.fullmatch(f"-[{letters or '-'}]+(\\.\\w+)?", text) if letters else None
    return int(text == "--" or text in language.flags or attached or cluster is not None)


def _module(words: Sequence[Word]) -> str:
    module = words[0].text if words else None
    fine = module is not None and module.partition(".")[0] not in programs.MODULES_THAT_RUN
    return "" if fine else f"python -m {module or ''}, which runs what it is given"


def _code(kind: str, words: Sequence[Word]) -> str:
    text = words[0].text if words else None
    if text is None:
        return f"code for {kind}"
    if kind == "sed":
        return "" if programs.SED.fullmatch(text) else "a program of sed that is more than s///, p, d and q"
    return f"a program of {kind} that may run what it reads" if programs.EVALUATING[kind].search(text) else ""


def script_file(name: str, words: Sequence[Word], given: Input) -> str:
    """Why the file that a command runs is not known to hold no value; empty where it is."""
    text = words[0].text if words else None
    if text is None or text.startswith(("-", "/dev/", "/proc/")):
        return f"{name}, whose script is not a file that is written out"
    if given.any_file or given.written.intersection(text.split("/")):
        return f"{name}, which may run a file that a value was written to"
    return ""


def writes_files(name: str, words: Sequence[Word]) -> bool:
    """Whether the text of a program, given to its interpreter, may write a file."""
    texts = [w.text or "" for w in words[1:]]
    if programs.KINDS.get(name, name) == "awk":
        return any(">" in text for text in texts)
    return name == "python" and any(re.search(r"open|Path|File|shutil|temp|logging|sqlite", t) for t in texts)
