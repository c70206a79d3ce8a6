"""The example states of the cycle's document: a new cycle, and the fragments its later sections show."""

from __future__ import annotations

import copy

INITIAL = {
    "cycle_id": "cycle-v1-20260122T100000-abc123",
    "title": "Implement OAuth authentication",
    "description": "Add OAuth2 login support with Google and GitHub providers",
    "task_history": ["Implement OAuth authentication"],
    "status": "created",
    "created_at": "2026-01-22T10:00:00+08:00",
    "updated_at": "2026-01-22T10:00:00+08:00",
    "max_iterations": 5,
    "current_iteration": 0,
    "agents": {
        "ra": {"status": "idle", "output_files": [], "iterations_completed": 0},
        "ep": {"status": "idle", "output_files": [], "iterations_completed": 0},
        "cd": {"status": "idle", "output_files": [], "iterations_completed": 0},
        "vas": {"status": "idle", "output_files": [], "iterations_completed": 0},
    },
    "current_phase": "init",
    "completed_phases": [],
    "phase_errors": [],
    "iterations": [],
    "coordination": {"feedback_log": [], "pending_decisions": [], "blockers": []},
}

FIRST_ITERATION = {
    "status": "running",
    "current_iteration": 1,
    "current_phase": "ra",
    "agents": {
        "ra": {"status": "running", "started_at": "2026-01-22T10:05:00+08:00"},
        "ep": {"status": "idle"},
        "cd": {"status": "idle"},
        "vas": {"status": "idle"},
    },
    "requirements": {
        "version": "1.0.0",
        "specification": "...",
        "edge_cases": ["OAuth timeout handling", "PKCE validation"],
        "last_updated": "2026-01-22T10:15:00+08:00",
    },
    "iterations": [
        {
            "number": 1,
            "started_at": "2026-01-22T10:00:00+08:00",
            "agent_results": {
                "ra": {"status": "completed", "files_modified": 3},
                "ep": {"status": "completed", "files_modified": 2},
                "cd": {"status": "partial", "files_modified": 5},
                "vas": {"status": "pending", "files_modified": 0},
            },
        }
    ],
}

AFTER_THE_PHASES = {
    "current_phase": "aggregation",
    "completed_phases": ["ra", "ep", "cd", "vas"],
    "plan": {
        "version": "1.0.0",
        "tasks": [
            {
                "id": "TASK-001",
                "description": "Setup OAuth application credentials",
                "effort": "small",
                "status": "completed",
                "files": ["src/config/oauth.ts"],
            }
        ],
    },
    "changes": {"total_files": 12, "iteration_markers": {"1": "2026-01-22T10:30:00+08:00"}},
    "test_results": {
        "version": "1.0.0",
        "pass_rate": 85,
        "coverage": 78,
        "failed_tests": ["test: OAuth timeout retry"],
        "total_tests": 20,
    },
}

EXTENDED = {
    "status": "running",
    "current_iteration": 2,
    "task_history": ["Implement OAuth authentication", "Also add multi-factor authentication"],
    "description": (
        "Add OAuth2 login support with Google and GitHub providers\n\n"
        "--- ITERATION 2 ---\nAlso add multi-factor authentication"
    ),
    "agents": {
        "ra": {"status": "running", "iterations_completed": 1},
        "ep": {"status": "idle", "iterations_completed": 1},
        "cd": {"status": "idle", "iterations_completed": 1},
        "vas": {"status": "idle", "iterations_completed": 1},
    },
    "requirements": {
        "version": "1.1.0",
        "specification": "...",
        "last_updated": "2026-01-22T11:00:00+08:00",
    },
    "iterations": [
        {"number": 1, "completed_at": "..."},
        {
            "number": 2,
            "extension": "Also add multi-factor authentication",
            "started_at": "2026-01-22T10:45:00+08:00",
            "agent_results": {},
        },
    ],
    "coordination": {
        "feedback_log": [
            {
                "timestamp": "2026-01-22T10:45:00+08:00",
                "source": "user",
                "target": "ra",
                "content": "Add multi-factor authentication to requirements",
                "type": "requirement_update",
            }
        ]
    },
}

FRAGMENTS = {"first": FIRST_ITERATION, "after": AFTER_THE_PHASES, "extended": EXTENDED}


def merged(under: dict, over: dict) -> dict:
    """One document over another: objects field by field, everything else as a whole."""
    out = copy.deepcopy(under)
    for key, value in over.items():
        both = isinstance(out.get(key), dict) and isinstance(value, dict)
        out[key] = merged(out[key], value) if both else copy.deepcopy(value)
    return out


def whole() -> dict:
    """A state with every field there is."""
    state = merged(merged(INITIAL, FIRST_ITERATION), AFTER_THE_PHASES)
    state |= {
        "completed_at": "2026-01-22T12:00:00+08:00",
        "failure_reason": "none",
        "phase_errors": [{"phase": "cd", "error": "no answer", "timestamp": "2026-01-22T10:20:00+08:00"}],
        "exploration": {
            "version": "1.0.0",
            "architecture_summary": "One module",
            "integration_points": ["src/app.ts"],
            "identified_risks": ["tokens"],
            "last_updated": "2026-01-22T10:10:00+08:00",
        },
    }
    state["agents"]["cd"] |= {
        "started_at": "2026-01-22T10:20:00+08:00",
        "completed_at": "2026-01-22T10:30:00+08:00",
        "last_message": "done",
        "error": "none",
    }
    state["plan"] |= {
        "total_estimated_effort": "1 small",
        "critical_path": ["TASK-001"],
        "last_updated": "2026-01-22T10:15:00+08:00",
    }
    state["plan"]["tasks"][0] |= {"depends_on": [], "assigned_to": "cd"}
    state["changes"]["changes"] = [
        {
            "timestamp": "2026-01-22T10:25:00+08:00",
            "file": "src/config/oauth.ts",
            "action": "create",
            "iteration": 1,
            "agent": "cd",
            "description": "credentials",
        }
    ]
    state["test_results"]["last_run"] = "2026-01-22T10:40:00+08:00"
    state["iterations"][0] |= {
        "extension": "more",
        "completed_at": "2026-01-22T10:50:00+08:00",
        "issues_found": ["a test fails"],
        "resolved": False,
    }
    state["coordination"] = {
        "feedback_log": EXTENDED["coordination"]["feedback_log"],
        "pending_decisions": [
            {
                "id": "D-1",
                "description": "Which first?",
                "options": ["google", "github"],
                "made_by": "user",
                "chosen_option": "google",
                "status": "made",
            }
        ],
        "blockers": [
            {
                "id": "B-1",
                "description": "no credentials",
                "reported_by": "cd",
                "status": "resolved",
                "resolution": "sent",
            }
        ],
    }
    return copy.deepcopy(state)
