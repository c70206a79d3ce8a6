"""One editing action from start to end, as the engine does it; dies at the step it is told.

    take_over.py REPO ROOT ANSWERED STEP

STEP counts git calls and marks; at 0 it never dies. Odd steps die before one, even ones after.
"""

import os
import signal
import sys
from pathlib import Path

from rondel.repo.git import Git
from rondel.repo.workspaces import Commit, Workspaces
from rondel.repo.worktrees import Worktrees

repo, root, answered = (Path(word) for word in sys.argv[1:4])
fatal, steps = int(sys.argv[4]), 0


def step() -> None:
    global steps  # noqa: PLW0603 - a script
    steps += 1
    if steps == fatal:
        os.kill(os.getpid(), signal.SIGKILL)


def dangerous(function):
    def wrapped(*args, **kwargs):
        step()
        result = function(*args, **kwargs)
        step()
        return result

    return wrapped


Git.run = dangerous(Git.run)
Worktrees.save = dangerous(Worktrees.save)

spaces = Workspaces(repo, root)
done = spaces.find("cycle:c", "x.md", "main")
if done is None:
    path = spaces.write("cycle:c", "x.md", "start", keep=answered.exists())
    if not answered.exists():
        (path / "b.txt").write_text("by the agent\n")
        step()
        answered.touch()
    commit = spaces.commit(path, "cycle:c", "x.md", "An edit")
    assert commit is not None
    done = spaces.integrate(path, "main", "test -e b.txt; echo junk >junk.txt")
    assert isinstance(done, Commit), done
    spaces.remove(path)
spaces.sweep()
print(steps, done.id, *done.changed)
