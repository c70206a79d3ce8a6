"""The profile `python-service`: a Python package with models, a service, an API and tests."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, ClassVar

from typing_extensions import override

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

    @override
    def folder(self) -> Traversable:
        return files(__name__)

    @override
    def check_context(self, context: dict[str, Any]) -> str:
        wrong = self.missing(context, {"package": "…", "entity": "…", "scope": "|".join(SCOPES)})
        if wrong or context.get("scope") == "tests":
            return wrong
        package = str(context["package"])
        return "" if package.isidentifier() else f"package={package!r} is no name of a Python package"

    @override
    def get_cycles(self, context: dict[str, Any]) -> list[CycleConfig]:
        """Each layer rests on those below it."""
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
