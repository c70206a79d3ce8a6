"""AGENTS: one module per kind of agent, all behind one contract. Nothing here decides what is due."""
