"""The profile `python-service`: a Python package with models, a service, an API and tests."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, ClassVar

from rondel.workflows.generate.models import CycleConfig
from rondel.workflows.generate.profiles.markdown import MarkdownProfile

LAYERS = ("models", "service", "api")
SCOPES = (*LAYERS, "full", "tests")


class PythonService(MarkdownProfile):
    """Models, service, API and tests of one package, each in a cycle of its own."""

    name = "python-service"
    description = "models, service and API of a Python package with the standard library alone, and its tests"
    comment = "#"
    example = "shop/models.py"
    bundles: ClassVar = {
        "models": ("models",),
        "service": ("service",),
        "api": ("api",),
        "tests": ("tests",),
        "full": ("models", "service", "api", "tests"),
    }
    optional: ClassVar = {
        "entity": "the given code",
        "package": "(see the given code)",
        "description": "(none given; take what the name says)",
        "python_version": "3.11",
    }

    def folder(self) -> Traversable:
        """See `MarkdownProfile`."""
        return files(__name__)

    def check_context(self, context: dict[str, Any]) -> str:
        """See `WorkflowProfile`."""
        if context.get("scope") == "tests":
            if context.get("source_session") or context.get("source_files"):
                return ""
            return "scope=tests needs code to test: give --source-session or --source-files"
        asked = {"package": "…", "entity": "…", "scope": "|".join(SCOPES)}
        missing = [f"-c {key}={value}" for key, value in asked.items() if not context.get(key)]
        if missing:
            return f"python-service needs {', '.join(missing)}"
        package = str(context["package"])
        return "" if package.isidentifier() else f"package={package!r} is no name of a Python package"

    def get_cycles(self, context: dict[str, Any]) -> list[CycleConfig]:
        """See `WorkflowProfile`. Each layer rests on those below it."""
        scope = context.get("scope")
        if scope == "full":
            cycles = [
                CycleConfig(type=layer, scope=layer, depends_on=list(LAYERS[:number]))
                for number, layer in enumerate(LAYERS)
            ]
        elif scope in (*LAYERS, "tests"):
            cycles = [CycleConfig(type=scope, scope=scope)]
        else:
            raise ValueError(f"Unknown scope: {scope}; there are: {', '.join(SCOPES)}")
        if context.get("with_tests", False) and scope != "tests":
            cycles.append(CycleConfig(type="tests", scope="tests", depends_on=[c.type for c in cycles]))
        return cycles
