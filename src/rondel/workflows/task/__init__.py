"""TASK: a planned session of tasks and subtasks, run by dependency."""
