"""The largest prompt of `full --with-tests` in cycles, against one cycle with all standards: at most half.

Both sessions are for the same entity, with the same answers of a scripted agent; every
prompt that was sent is measured.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests/engine"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests/generate"))

from generate_java import FILES
from generate_scene import AT, FULL, PASS, blocks, repo

from rondel.agents.base import Request
from rondel.project import Project
from rondel.testing.scripted import Scripted
from rondel.workflows.generate.files import GenerateOptions, create
from rondel.workflows.generate.workflow import Generate

LIMIT = 0.5
SINGLE = """
from rondel.workflows.generate import CycleConfig
from rondel.workflows.generate.profiles.jpa_mt import JpaMt


class Single(JpaMt):
    name = "single"

    def get_cycles(self, context):
        return [CycleConfig(type="full", scope="full")]
"""


def answer(request: Request) -> str:
    """The same plan and code, layer by layer or all at once."""
    kind = request.action.partition("/")[0]
    layers = list(FILES) if kind == "full" else [kind]
    if "planning" in request.action:
        return "\n\n".join(f"## {layer}\n\n{plan(layer)}" for layer in layers)
    if "review" in request.action:
        return PASS
    return "\n".join(blocks(FILES[layer]) for layer in layers)


def plan(layer: str) -> str:
    """A plan as long as plans are: each file with its members and the reason for it."""
    lines = []
    for path, text in FILES[layer].items():
        lines.append(f"### `{path}`\n\nFollows the standards of {layer}; its members:\n")
        lines += [
            f"- `{line.strip().rstrip('{;').strip()}`: as the schema and the layer below demand"
            for line in text.splitlines()
            if re.match(r"\s+(?:public|private|protected|[A-Z]\w+[<\w>]* \w+\()", line)
        ]
    return "\n".join(lines)


def largest(profile: str, folder: Path) -> tuple[int, str]:
    """The largest prompt of a session: its size and whose it was."""
    root = repo(folder / profile)
    place = root / ".aiwf/profiles/single"
    place.mkdir(parents=True)
    (place / "profile.py").write_text(SINGLE)
    agent = Scripted(answer)
    # The benchmark itself writes the profile that it runs.
    here = Project(root, workflows={"generate": Generate()}, build=lambda _: agent, trust="yes")
    options = GenerateOptions(profile, FULL, with_tests=True, auto=True)
    ref = create(root, options, at=AT, admits=here.look.admits, ask=here.ask)
    report = here.run(ref)
    assert report.exit_code == 0, report.message
    return max((len(r.prompt), r.action) for r in agent.seen)


def main() -> int:
    """Print both and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        one, where_one = largest("single", Path(folder))
        many, where_many = largest("jpa-mt", Path(folder))
    print(f"  one cycle with all standards: {one} characters ({where_one})")
    print(f"  in cycles: {many} characters ({where_many})")
    print(f"  ratio {many / one:.2f} (at most {LIMIT})")
    return 0 if many <= LIMIT * one else 1


if __name__ == "__main__":
    sys.exit(main())
