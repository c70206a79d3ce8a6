"""The words of a cycle's state document: its enumerations."""

from __future__ import annotations

from enum import StrEnum


class CycleStatus(StrEnum):
    """Where a cycle stands. A stopped one is paused, with the reason in an agent's last message."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"


class Phase(StrEnum):
    """What a cycle is doing."""

    INIT = "init"
    RA = "ra"
    EP = "ep"
    CD = "cd"
    VAS = "vas"
    AGGREGATION = "aggregation"
    COMPLETE = "complete"


class AgentStatus(StrEnum):
    """What one of the four agents is doing."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"


class Effort(StrEnum):
    """How much work a plan task is."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


class TaskStatus(StrEnum):
    """Where a plan task stands."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"


class ChangeAction(StrEnum):
    """What happened to a file."""

    CREATE = "create"
    MODIFY = "modify"
    DELETE = "delete"


class FeedbackType(StrEnum):
    """What a piece of feedback is."""

    REQUIREMENT_UPDATE = "requirement_update"
    BUG_REPORT = "bug_report"
    ISSUE_FIX = "issue_fix"
    CLARIFICATION = "clarification"


class DecisionStatus(StrEnum):
    """Where a decision stands."""

    PENDING = "pending"
    MADE = "made"
    IMPLEMENTED = "implemented"


class BlockerStatus(StrEnum):
    """Where a blocker stands."""

    OPEN = "open"
    RESOLVED = "resolved"
    WORKAROUND = "workaround"
