"""`python -m rondel.plugin [FOLDER]`: render the plugin of the repository in FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

from rondel.plugin.claude import marketplace_file, plugin_files


def rendered() -> dict[str, str]:
    """Every rendered file of the repository, by its path."""
    made = {f"plugin/{path}": text for path, text in plugin_files().items()}
    return {".claude-plugin/marketplace.json": marketplace_file(), **made}


def main(folder: Path) -> None:
    """Write them, and remove what is no longer rendered."""
    made = rendered()
    for there in sorted((folder / "plugin").rglob("*")):
        if there.is_file() and str(there.relative_to(folder)) not in made:
            there.unlink()
    for path, text in made.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
