"""The coding-agent plugin: its files, rendered from one source."""

from pathlib import Path


def install_plugin(_root: Path) -> list[str]:
    """Install the plugin's files in a repository; says what was done, one line each."""
    return []
