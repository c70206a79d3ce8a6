"""Answers of all four agents, by role: a cycle that needs two iterations, and three tasks in each."""

from __future__ import annotations

from cycle_loop import EP, RA, VAS, block, plan_reply

from rondel.agents.base import Request

TASKS = plan_reply(
    {"id": "A", "description": "subtract"},
    {"id": "B", "description": "beside"},
    {"id": "C", "description": "after", "depends_on": ["A", "B"]},
)
REPLIES = {"requirements.md": RA, "exploration.md": EP, "plan.json": TASKS, "validation.md": VAS}


def answer(request: Request) -> str:
    """By role; the code is right only after a test failed. Task B has nothing to do the second time."""
    name = request.action.rpartition("/")[2]
    if request.role != "cycle.cd":
        return REPLIES[name]
    task = name.partition(".")[0]
    if task == "A":
        code = request.cwd / "calc.py"
        right = "test failed" in request.prompt or "a - b" in code.read_text()
        code.write_text(f"def sub(a, b):\n    return a {'-' if right else '+'} b\n# {request.action}\n")
    elif task != "B" or "iteration-1/" in request.action:
        (request.cwd / f"{task}.py").write_text(f"# {request.action}\n")
    return f"Did {task}.\n\n" + block("cd", summary=f"did {task}")
