"""A change of 5 MB in 800 files: bounded prompts, bounded memory, and what was left out is said."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from review_support import commit, git

HERE = Path(__file__).parent
SCRIPT = textwrap.dedent(
    """
    import json, resource, sys
    from pathlib import Path
    sys.path[:0] = sys.argv[2:]
    from rondel.workflows.review.request import ResolvedOptions
    from review_support import files, project_of, look, panel, review

    root = Path(sys.argv[1])
    agent = panel(lambda _: review())
    settings = {"prompt_max": 50_000}
    options = ResolvedOptions(team="quality:2", kind_of=lambda _: "fake", settings=settings)
    opened = files.open_round(root, look(root), options)
    report = project_of(root, agent).run(opened.ref)
    state = files.state_of(root, opened.ref)
    print(json.dumps({
        "exit": report.exit_code,
        "files": len(state.change.files),
        "diff": len(state.change.diff),
        "prompts": [len(r.prompt) for r in agent.seen],
        "said": all("Left out" in r.prompt for r in agent.seen if "/reviews/" in r.action),
        "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }))
    """
)


def test_a_change_of_5_mb_and_800_files_is_reviewed_within_bounds(repo):
    git(repo, "checkout", "-qb", "large")
    line = "value_{n}_{k} = compute(first, second, third)  # a line of ordinary length\n"
    commit(repo, {f"src/m{n}.py": "".join(line.format(n=n, k=k) for k in range(90)) for n in range(800)})
    argv = [sys.executable, "-c", SCRIPT, str(repo), str(HERE), str(HERE.parent)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["exit"], found["files"], found["said"]) == (0, 800, True)
    assert found["diff"] > 5_000_000
    assert max(found["prompts"]) <= 50_000
    assert found["peak_kb"] < 600_000
