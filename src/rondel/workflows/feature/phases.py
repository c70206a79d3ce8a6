"""The phases of a feature: their order, what each leaves, what the next one needs of it.

Plain tables, so that whatever has to start fast can read them too.
"""

from __future__ import annotations

BRAINSTORM = "brainstorm"
SPECIFY = "specify"
DESIGN = "design"
CREATE_PLAN = "create-plan"
CREATE_TASKS = "create-tasks"
IMPLEMENT = "implement"
VERIFY = "verify"
FINISH = "finish"

PHASES: tuple[str, ...] = (
    BRAINSTORM,
    SPECIFY,
    DESIGN,
    CREATE_PLAN,
    CREATE_TASKS,
    IMPLEMENT,
    VERIFY,
    FINISH,
)

REVIEWED: tuple[str, ...] = PHASES[:-1]  # every phase but `finish` is worked under a reviewer

ARTIFACTS: dict[str, str] = {
    BRAINSTORM: "brainstorm.md",
    SPECIFY: "spec.md",
    DESIGN: "design.md",
    CREATE_PLAN: "plan.md",
    CREATE_TASKS: "tasks.md",
    VERIFY: "verification.md",
}

PREDECESSOR: dict[str, str] = {  # the phase whose document a phase is held against
    SPECIFY: BRAINSTORM,
    DESIGN: SPECIFY,
    CREATE_PLAN: DESIGN,
    CREATE_TASKS: CREATE_PLAN,
    IMPLEMENT: CREATE_TASKS,
    VERIFY: SPECIFY,
}
PREVIOUS: dict[str, str] = {phase: ARTIFACTS[before] for phase, before in PREDECESSOR.items()}

EXPECTATIONS: dict[str, str] = {
    BRAINSTORM: "Spec needs: Clear problem statement, explored options, user intent captured",
    SPECIFY: "Design needs: All requirements listed, acceptance criteria defined, scope boundaries clear",
    DESIGN: ("Plan needs: Components defined, interfaces specified, dependencies identified, risks noted"),
    CREATE_PLAN: ("Tasks needs: Ordered steps with dependencies, all design items covered, clear sequencing"),
    CREATE_TASKS: (
        "Implement needs: Small actionable tasks (<15 min each), clear acceptance criteria per task"
    ),
    IMPLEMENT: "Verify needs: All tasks addressed, tests exist/pass, no obvious issues",
    VERIFY: "Finish needs: Quality confirmed, implementation matches spec, ready to merge",
}

HOTFIX = "hotfix"
LIMITS: dict[str, int] = {HOTFIX: 1, "quick": 2, "standard": 3, "full": 5}
MODE = "standard"

ACTIVE = "active"
COMPLETED = "completed"
ABANDONED = "abandoned"
STATUSES: tuple[str, ...] = (ACTIVE, COMPLETED, ABANDONED)


def limit_of(mode: object) -> int:
    """How often a phase may be drafted and reviewed in this mode; an unknown one is a standard one."""
    return known_limit(mode) or LIMITS[MODE]


def known_limit(mode: object) -> int | None:
    """The limit of a mode of the table, compared without case; None for any other."""
    return LIMITS.get(mode.strip().lower()) if isinstance(mode, str) else None


def next_after(phase: str | None) -> str | None:
    """The phase that is due after this one; the first for None, None after the last."""
    if phase is None:
        return PHASES[0]
    after = PHASES.index(phase) + 1
    return PHASES[after] if after < len(PHASES) else None
