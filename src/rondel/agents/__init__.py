"""HANDS: one module per agent, the process runner, workspaces. Nothing here decides what is due."""
