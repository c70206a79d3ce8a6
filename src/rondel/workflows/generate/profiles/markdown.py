"""A profile whose prompts and standards are Markdown files beside it.

`prompts/{planning,generation,review,revision}.md` are templates: `{{name}}` is a value of the
context or one of the sections below; a name that is neither is an error. Values are put in
as they are and are not templates themselves. `standards/<name>.md` are the standards.

    standards  plan  review  code  feedback        of this cycle
    outputs    the code of the cycles it depends on
    sources    code of another session or of the project
    inputs     the files named in the context, such as the schema
    answer     how to answer: with files, or with a verdict
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources.abc import Traversable
from typing import Any, ClassVar

from typing_extensions import override

from rondel.errors import RondelError
from rondel.model.templates import fill, without_gaps
from rondel.workflows.generate.layout import WORDS
from rondel.workflows.generate.models import WorkflowPhase
from rondel.workflows.generate.profiles.base import CycleContext, PromptPlan, WorkflowProfile
from rondel.workflows.generate.responses import FORM

_LANGUAGES = {
    "py": "python",
    "java": "java",
    "sql": "sql",
    "md": "markdown",
    "ts": "typescript",
    "kt": "kotlin",
}
ANSWER_FILES = (
    "Answer with every file in full, each in a fenced block of its own whose first line is a comment with\n"
    "its relative path, like `{comment} {example}`. No patches, no parts left out."
)
ANSWER_VERDICT = f"End with exactly this block, with your own verdict (PASS or FAIL) and numbers:\n\n{FORM}"
ANSWER_PLAN = "Answer with the plan as Markdown and nothing else."


class MarkdownProfile(WorkflowProfile):
    """A profile that consists of Markdown files and a table of which standards a scope needs."""

    bundles: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    optional: ClassVar[Mapping[str, str]] = {}  # context values that prompts use, with their defaults
    comment: ClassVar[str] = "#"
    example: ClassVar[str] = "src/name.py"

    def folder(self) -> Traversable:
        """Where the Markdown files are."""
        raise NotImplementedError

    @override
    def standards(self, scope: str, context: dict[str, Any]) -> str:
        names = self.bundles.get(scope, ())
        parts = [self._text(f"standards/{name}.md").strip() for name in names]
        return "\n\n".join([f"# Standards: {scope}", *parts]) + "\n"

    def missing(self, context: Mapping[str, Any], needed: Mapping[str, str]) -> str:
        """Which of the needed values are not given, as options; tests need code to test and nothing else."""
        if context.get("scope") == "tests":
            if context.get("source_session") or context.get("source_files"):
                return ""
            return "scope=tests needs code to test: give --source-session or --source-files"
        lacking = [f"-c {k.replace('_', '-')}={value}" for k, value in needed.items() if not context.get(k)]
        return f"{self.name} needs {', '.join(lacking)}" if lacking else ""

    @override
    def plan_prompt(self, cycle: CycleContext) -> PromptPlan:
        template = self._text(f"prompts/{WORDS[cycle.phase]}.md")
        sections: dict[str, Callable[[], str]] = {
            "standards": lambda: re.sub(r"\A# .*\n", "", cycle.standards).strip(),
            "plan": cycle.plan.strip,
            "review": cycle.review.strip,
            "code": lambda: fenced(cycle.code),
            "feedback": lambda: feedback(cycle.feedback),
            "outputs": lambda: _outputs(cycle),
            "sources": lambda: f"## Existing code\n\n{fenced(cycle.sources)}" if cycle.sources else "",
            "inputs": lambda: _inputs(cycle),
            "answer": lambda: self._answer(cycle.phase),
            "type": lambda: cycle.type,
            "scope": lambda: cycle.scope,
            "iteration": lambda: str(cycle.iteration),
        }

        where = f"the {WORDS[cycle.phase]} prompt of profile {self.name}"
        values = {**self.optional, **{k: str(v) for k, v in cycle.context.items() if v}}
        slots: dict[str, str | Callable[[], str]] = {**values, **sections}
        return PromptPlan(
            without_gaps(
                fill(template, slots, lambda name: f"{where} needs {name!r}; give it with -c {name}=…")
            )
        )

    def _answer(self, phase: WorkflowPhase) -> str:
        if phase is WorkflowPhase.REVIEW:
            return ANSWER_VERDICT
        if phase is WorkflowPhase.PLAN:
            return ANSWER_PLAN
        return ANSWER_FILES.format(comment=self.comment, example=self.example)

    def _text(self, path: str) -> str:
        try:
            return self.folder().joinpath(path).read_text(encoding="utf-8")
        except OSError as e:
            raise RondelError(f"profile {self.name} has no file {path}: {e.strerror}") from e


def fenced(files: Mapping[str, str]) -> str:
    """Files as Markdown: each under its name, in a fence that its text cannot close."""
    return "\n\n".join(_block(name, files[name]) for name in files)


def _block(name: str, text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"`{name}`\n\n{fence}{_LANGUAGES.get(name.rpartition('.')[2], '')}\n{text.rstrip()}\n{fence}"


def feedback(said: Iterable[str]) -> str:
    """What a person wanted to be different."""
    points = "\n".join(f"- {' '.join(words.split())}" for words in said if words.strip())
    heading = "## Feedback\n\nAn earlier version was rejected. Do better in these points:"
    return f"{heading}\n\n{points}" if points else ""


def _outputs(cycle: CycleContext) -> str:
    parts = [
        f"### From the cycle {name}\n\n{fenced(found['artifacts'])}"
        for name, found in cycle.outputs.items()
        if found.get("files")
    ]
    return "\n\n".join(["## Code it builds on", *parts]) if parts else ""


def _inputs(cycle: CycleContext) -> str:
    parts = [_block(str(cycle.context.get(key, key)), text) for key, text in cycle.inputs.items()]
    return "\n\n".join(["## Given files", *parts]) if parts else ""
