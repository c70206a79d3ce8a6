"""The entry point for coding agents' hooks. Standard library only: it runs at every start of a host."""


def main(_argv: list[str]) -> int:
    """Answer a hook; never fail the host."""
    return 0
