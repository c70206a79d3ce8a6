"""The profile `jpa-mt`: JPA entities, services and controllers for a multi-tenant Spring Boot application."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, ClassVar

from typing_extensions import override

from rondel.workflows.generate.models import CycleConfig
from rondel.workflows.generate.profiles.markdown import MarkdownProfile

SCOPES = ("domain", "service", "api", "full", "tests")
NEEDED = ("entity", "table", "bounded_context", "scope")


class JpaMt(MarkdownProfile):
    """Domain, service, API and tests of one entity, each in a cycle of its own."""

    name = "jpa-mt"
    description = "JPA entity, repository, service and REST API of a multi-tenant Spring Boot application"
    comment = "//"
    example = "src/main/java/com/example/Name.java"
    bundles: ClassVar = {
        "domain": ("tenancy", "domain"),
        "service": ("tenancy", "service"),
        "api": ("api",),
        "tests": ("tests",),
        "full": ("tenancy", "domain", "service", "api", "tests"),
    }
    optional: ClassVar = {
        "entity": "the given code",
        "table": "(see the given code)",
        "bounded_context": "(see the given code)",
        "base_package": "com.example",
        "tenant_column": "tenant_id",
        "java_version": "17",
    }

    @override
    def folder(self) -> Traversable:
        return files(__name__)

    @override
    def check_context(self, context: dict[str, Any]) -> str:
        """Tests need code to test; everything else an entity and its table."""
        return self.missing(context, {key: "|".join(SCOPES) if key == "scope" else "…" for key in NEEDED})

    @override
    def get_cycles(self, context: dict[str, Any]) -> list[CycleConfig]:
        scope = context.get("scope")
        if scope in ("domain", "service", "api", "tests"):
            cycles = [CycleConfig(type=scope, scope=scope)]
        elif scope == "full":
            cycles = [
                CycleConfig(type="domain", scope="domain"),
                CycleConfig(type="service", scope="service", depends_on=["domain"]),
                CycleConfig(type="api", scope="api", depends_on=["service"]),
            ]
        else:
            raise ValueError(f"Unknown scope: {scope}; there are: {', '.join(SCOPES)}")
        if context.get("with_tests", False) and scope != "tests":
            cycles.append(CycleConfig(type="tests", scope="tests", depends_on=[cycles[-1].type]))
        return cycles
