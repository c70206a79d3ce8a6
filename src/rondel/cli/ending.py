"""The end of a feature in the repository: merge, pull request, keep, abandon."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from rondel.agents.workspaces import Conflict
from rondel.api import Hall
from rondel.errors import GitError, RondelError
from rondel.model.commands import command_line
from rondel.model.refs import BRANCHES, END, branch_in
from rondel.model.workflow import SessionRef
from rondel.workflows.feature import layout, place, worktrees
from rondel.workflows.feature.closing import ending, unfinished
from rondel.workflows.feature.meta import title, word
from rondel.workflows.feature.phases import ABANDONED, BRAINSTORM, COMPLETED, IMPLEMENT, REVIEWED
from rondel.workflows.feature.read import State

SHOWN_MAX = 10
TYPED_MAX = 100
APPROVING = [
    p for p in REVIEWED if p != BRAINSTORM
]  # the phases whose end says that the next may build on it


class Way(StrEnum):
    """How a feature may end."""

    MERGE = "merge"
    PR = "pr"
    KEEP = "keep"
    ABANDON = "abandon"


def end_feature(
    hall: Hall, ref: SessionRef, state: State, way: Way, *, force: bool, reason: str
) -> Iterator[str]:
    """End a feature; gives what was done, a line each. Again after a kill, it does the rest.

    Nothing is changed before everything that stands in the way is out of it.
    """
    for done in hall.workspaces().restore():
        yield done.words
    stored = word(state.meta, "worktree")
    worktree = place.resolve(str(hall.root), stored) if stored else ""
    ours = bool(worktree) and worktrees.is_ours(hall.look, worktree)
    _check(hall, state, way, worktree if ours else "", force=force)
    if way in (Way.MERGE, Way.PR):
        yield from hall.see_branch(ref)
    elif way is Way.KEEP:
        hall.check_branch(ref)
    if way is Way.MERGE:
        yield _merge(hall, state)
        yield from _unsigned(hall)
    elif way is Way.PR:
        yield _pull_request(hall, state)
    if ours and way is not Way.KEEP:
        worktrees.remove(hall.look, worktree)
        yield f"removed the worktree {worktree}; the branch {state.branch} stays"
    elif worktree and way is not Way.KEEP and Path(worktree).exists():
        yield f"the worktree {worktree} stays: Rondel did not make it"
    leaves = bool(worktree) and not Path(worktree).exists()
    status = ABANDONED if way is Way.ABANDON else COMPLETED
    hall.change(ref, ending(state, status, hall.look.at, worktree_gone=leaves, reason=reason))
    yield f"{ref.name} is {status}"


def _check(hall: Hall, state: State, way: Way, worktree: str, *, force: bool) -> None:
    open_tasks = unfinished(state)
    if open_tasks and way is not Way.ABANDON and not force:
        raise RondelError(
            f"{len(open_tasks)} unfinished tasks: {_some(open_tasks)}; "
            f"`{command_line('feature', IMPLEMENT, state.ref.id)}` does them, or give --force"
        )
    unproven = [p for p in state.foreign if p in APPROVING]
    if unproven and way in (Way.MERGE, Way.PR) and not force:
        raise RondelError(
            f"not made by Rondel, and so no approval: {_some(unproven)}; "
            f"`{command_line('feature', unproven[0], state.ref.id, '--yes')}` does the first, or give --force"
        )
    if way is Way.KEEP:
        return
    places = [(worktree, True)] if worktree and _is_checkout(hall, worktree) else []
    if way is not Way.ABANDON:
        places.append((str(hall.root), False))
    for path, untracked in places:
        names = worktrees.dirty(hall.look, path, untracked=untracked)
        if names:
            option = " --include-untracked" if untracked else ""
            put = f"git -C {shlex.quote(path)} stash push{option} -- {shlex.join(names[:TYPED_MAX])}"
            raise RondelError(
                f"uncommitted work in {path}: {_some(names)}; commit it, or put it aside: {put}"
            )


def _is_checkout(hall: Hall, path: str) -> bool:
    return bool(hall.look.git_in(path, "rev-parse", "--git-dir", check=False).strip())


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(names[:SHOWN_MAX]) + more


def _require_branch(hall: Hall, state: State) -> None:
    ref = f"refs/heads/{state.branch}"
    if not hall.look.git("rev-parse", "--verify", "--quiet", END, ref, check=False).strip():
        makes = command_line("feature", IMPLEMENT, state.ref.id)
        raise RondelError(
            f"there is no branch {state.branch}; `{makes}` makes it, or end with --keep or --abandon"
        )


def _merge(hall: Hall, state: State) -> str:
    look, branch = hall.look, state.branch
    _require_branch(hall, state)
    here = branch_in(look.git("symbolic-ref", "--quiet", "HEAD", check=False))
    if not here or here == branch:
        raise RondelError(f"check out the branch that {branch} is to be merged into, and run it again")
    words = f"Merge {branch}: {title(state.meta)}"
    try:
        merged = hall.workspaces().merge(branch, here, words)
    except GitError as e:
        raise GitError(f"{branch} was not merged into {here}: {e}", then=e.then) from e
    if isinstance(merged, Conflict):
        files = _some(list(merged.files))
        raise GitError(
            f"{branch} was not merged into {here}: conflicts in {files}; nothing was changed. "
            "Merge it by hand, commit, and finish again",
            then=shlex.join(("git", "merge", branch)),
        )
    return f"merged {branch} into {here}"


def _unsigned(hall: Hall) -> Iterator[str]:
    """What is said to a person who signs commits.

    A program that signs may ask something, and is named by settings that agents can write: no git of ours
    starts one.
    """
    git = hall.look.git
    said = git("config", "--type=bool", "--show-scope", "--get-all", "commit.gpgSign", check=False)
    scopes = [line.split("\t") for line in said.splitlines()]
    values = [value for scope, value in scopes if scope != "command"]  # which is what we say ourselves
    if values[-1:] == ["true"] and "\ngpgsig" not in git("cat-file", "commit", "HEAD"):
        yield "the merge commit is not signed; to sign it: git commit --amend --no-edit -S"


def _pull_request(hall: Hall, state: State) -> str:
    look, branch = hall.look, state.branch
    _require_branch(hall, state)
    if "origin" not in look.git("remote").split():
        raise RondelError("there is no remote `origin` to push to; add one, or end with --merge or --keep")
    ref = f"{BRANCHES}{branch}"
    look.git("push", "--quiet", "--set-upstream", "origin", END, f"{ref}:{ref}")
    code, out, _ = look.run(["gh", "pr", "view", branch, "--json", "url", "--jq", ".url"])
    if code == 0 and out.strip():
        return f"the pull request is there already: {out.strip()}"
    body = state.files.text(layout.SPEC) or ""
    name = title(state.meta, state.ref.id)
    code, out, err = look.run(
        ["gh", "pr", "create", "--head", branch, "--title", name, "--body-file", "-"], stdin=body
    )
    if code != 0:
        raise RondelError(f"{branch} is pushed, but there is no pull request: {err.strip()}")
    return f"opened {out.strip()}"
