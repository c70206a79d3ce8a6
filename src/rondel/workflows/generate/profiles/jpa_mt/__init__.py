"""The profile `jpa-mt`: JPA entities, services and controllers for a multi-tenant Spring Boot application."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, ClassVar

from rondel.workflows.generate.models import CycleConfig
from rondel.workflows.generate.profiles.markdown import MarkdownProfile

SCOPES = ("domain", "service", "api", "full", "tests")
NEEDED = ("entity", "table", "bounded_context", "scope")
SCOPES = ("domain", "service", "api", "full", "tests")


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

    def folder(self) -> Traversable:
        """See `MarkdownProfile`."""
        return files(__name__)

    def check_context(self, context: dict[str, Any]) -> str:
        """See `WorkflowProfile`. Tests need code to test; everything else an entity and its table."""
        if context.get("scope") == "tests":
            if context.get("source_session") or context.get("source_files"):
                return ""
            return "scope=tests needs code to test: give --source-session or --source-files"
        asked = {key: "|".join(SCOPES) if key == "scope" else "…" for key in NEEDED}
        missing = [f"-c {k.replace('_', '-')}={value}" for k, value in asked.items() if not context.get(k)]
        return f"jpa-mt needs {', '.join(missing)}" if missing else ""

    def get_cycles(self, context: dict[str, Any]) -> list[CycleConfig]:
        """See `WorkflowProfile`."""
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
