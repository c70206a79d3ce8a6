"""A feature's branch and worktree: made on request, merged or handed over at the end."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rondel import paths
from rondel.errors import GitError, RondelError
from rondel.model.names import free_name, numbered
from rondel.model.refs import BRANCHES, END, branch_in
from rondel.model.summary import command_line
from rondel.model.workflow import RepoReader, SessionRef
from rondel.workflows.feature import layout, place
from rondel.workflows.feature.closing import ending, unfinished
from rondel.workflows.feature.meta import title, word
from rondel.workflows.feature.phases import ABANDONED, BRAINSTORM, COMPLETED, IMPLEMENT, REVIEWED
from rondel.workflows.feature.read import State

if TYPE_CHECKING:
    from rondel.project import Project

GOING = ".removed"  # the end of a worktree's name while its files are removed
SHOWN_MAX = 10
TYPED_MAX = 100
APPROVING = [
    p for p in REVIEWED if p != BRAINSTORM
]  # the phases whose end says that the next may build on it
MADE = "rondel-feature"  # in git's own folder for a worktree: it is one that Rondel made


def require_commit(look: RepoReader) -> str:
    """The commit that a worktree begins at."""
    commit = look.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).strip()
    if not commit:
        raise RondelError("the repository has no commit yet; commit something before making a worktree")
    return commit


def add(look: RepoReader, feature: str, branch: str) -> str:
    """A worktree beside the repository with a new branch at HEAD; its path as it is stored."""
    commit = require_commit(look)
    root = Path(look.root)
    path = str(root.parent / f"{root.name}-{feature}")
    look.git("worktree", "add", "--quiet", "-b", branch, END, path, commit)
    git_dir = _git_dir(look, path)
    if git_dir is not None:
        (git_dir / MADE).write_text(f"{feature}\n", encoding="utf-8")
    return place.relative(look.root, path)


def is_ours(look: RepoReader, path: str) -> bool:
    """Whether Rondel made the worktree at a path, or the rest of one; any other is somebody's own."""
    return bool(_ours(look, path))


def _ours(look: RepoReader, path: str) -> list[str]:
    """The worktree at a path and what a death left of it, where git knows them and Rondel made them."""
    name = re.compile(rf"{re.escape(os.path.realpath(path))}({re.escape(GOING)}(-\d+)?)?")
    return [at for at, git_dir in _linked(look) if name.fullmatch(at) and (git_dir / MADE).is_file()]


def _git_dir(look: RepoReader, path: str) -> Path | None:
    """Git's own folder for a linked worktree, also when its files are gone."""
    return next((git_dir for at, git_dir in _linked(look) if at == os.path.realpath(path)), None)


def _linked(look: RepoReader) -> Iterator[tuple[str, Path]]:
    """The linked worktrees: where each is, or was, and git's own folder for it."""
    common = Path(look.root, look.git("rev-parse", "--git-common-dir").strip())
    for file in common.glob("worktrees/*/gitdir"):
        known = file.read_text(encoding="utf-8", errors="replace").strip()
        yield os.path.realpath(Path(known).parent), file.parent


def dirty(look: RepoReader, path: str, *, untracked: bool) -> list[str]:
    """What is changed and not committed in a checkout; features' own files do not count."""
    which = "normal" if untracked else "no"
    out = look.git_in(path, "status", "--porcelain", "-z", f"--untracked-files={which}", "--no-renames")
    names = [entry[3:] for entry in out.split("\0") if entry[3:]]
    return [n for n in names if not n.startswith(("docs/features/", ".rondel/"))]


def remove(look: RepoReader, path: str) -> None:
    """The worktree is gone; its branch stays. Of one that is half gone the rest goes.

    It is moved away, in one step, before the first of its files is removed: what a death leaves is
    no checkout in which files are missing. Only this worktree is taken from git's list: one of a
    person's own may be on a disk that is not mounted now.
    """
    ours = _ours(look, path)
    if not ours:
        if Path(path).exists():
            raise GitError(f"Rondel did not make the worktree {path}; it stays")
        return
    for rest in ours:
        if rest != os.path.realpath(path):
            _clear(look, rest)
    if Path(path).is_dir():
        changed = look.git_in(path, "status", "--porcelain", "--untracked-files=normal").splitlines()
        if changed:
            raise GitError(f"the worktree {path} has changes that are not committed: {changed[0][3:]}")
        going = f"{path}{GOING}"
        going = free_name(chain([going], numbered(going)), os.path.lexists)
        look.git("worktree", "move", END, path, going)  # git refuses it where it must not go
        _clear(look, going)
    look.git("worktree", "remove", "--force", END, path, check=False)  # where somebody removed its folder


def _clear(look: RepoReader, going: str) -> None:
    paths.remove_tree(going, ignore_errors=True)
    look.git("worktree", "remove", "--force", END, going, check=False)


# -- the end ----------------------------------------------------------------------------------


class Way(StrEnum):
    """How a feature may end."""

    MERGE = "merge"
    PR = "pr"
    KEEP = "keep"
    ABANDON = "abandon"


def end_feature(
    project: Project, ref: SessionRef, state: State, way: Way, *, force: bool, reason: str
) -> Iterator[str]:
    """End a feature; gives what was done, a line each. Again after a kill, it does the rest.

    Nothing is changed before everything that stands in the way is out of it.
    """
    for problem in project.views.cut_moves(repair=True):
        yield problem.message
    stored = word(state.meta, "worktree")
    worktree = place.resolve(str(project.root), stored) if stored else ""
    ours = bool(worktree) and is_ours(project.look, worktree)
    _check(project, state, way, worktree if ours else "", force=force)
    if way in (Way.MERGE, Way.PR):
        yield from project.running.see_branch(ref)
    elif way is Way.KEEP:
        project.running.check_branch(ref)
    if way is Way.MERGE:
        yield _merge(project, state)
        yield from _unsigned(project)
    elif way is Way.PR:
        yield _pull_request(project, state)
    if ours and way is not Way.KEEP:
        remove(project.look, worktree)
        yield f"removed the worktree {worktree}; the branch {state.branch} stays"
    elif worktree and way is not Way.KEEP and Path(worktree).exists():
        yield f"the worktree {worktree} stays: Rondel did not make it"
    leaves = bool(worktree) and not Path(worktree).exists()
    status = ABANDONED if way is Way.ABANDON else COMPLETED
    project.change(ref, ending(state, status, project.look.at, worktree_gone=leaves, reason=reason))
    yield f"{ref.name} is {status}"


def _check(project: Project, state: State, way: Way, worktree: str, *, force: bool) -> None:
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
    places = [(worktree, True)] if worktree and _is_checkout(project, worktree) else []
    if way is not Way.ABANDON:
        places.append((str(project.root), False))
    for path, untracked in places:
        names = dirty(project.look, path, untracked=untracked)
        if names:
            option = " --include-untracked" if untracked else ""
            put = f"git -C {shlex.quote(path)} stash push{option} -- {shlex.join(names[:TYPED_MAX])}"
            raise RondelError(
                f"uncommitted work in {path}: {_some(names)}; commit it, or put it aside: {put}"
            )


def _is_checkout(project: Project, path: str) -> bool:
    return bool(project.look.git_in(path, "rev-parse", "--git-dir", check=False).strip())


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(names[:SHOWN_MAX]) + more


def _require_branch(project: Project, state: State) -> None:
    ref = f"refs/heads/{state.branch}"
    if not project.look.git("rev-parse", "--verify", "--quiet", END, ref, check=False).strip():
        makes = command_line("feature", IMPLEMENT, state.ref.id)
        raise RondelError(
            f"there is no branch {state.branch}; `{makes}` makes it, or end with --keep or --abandon"
        )


def _merge(project: Project, state: State) -> str:
    look, branch = project.look, state.branch
    _require_branch(project, state)
    here = branch_in(look.git("symbolic-ref", "--quiet", "HEAD", check=False))
    if not here or here == branch:
        raise RondelError(f"check out the branch that {branch} is to be merged into, and run it again")
    words = f"Merge {branch}: {title(state.meta)}"
    try:
        conflicts = project.running.merge(branch, here, words)
    except GitError as e:
        raise GitError(f"{branch} was not merged into {here}: {e}", then=e.then) from e
    if conflicts:
        raise GitError(
            f"{branch} was not merged into {here}: conflicts in {_some(conflicts)}; nothing was changed. "
            "Merge it by hand, commit, and finish again",
            then=shlex.join(("git", "merge", branch)),
        )
    return f"merged {branch} into {here}"


def _unsigned(project: Project) -> Iterator[str]:
    """What is said to a person who signs commits.

    A program that signs may ask something, and is named by settings that agents can write: no git of ours
    starts one.
    """
    git = project.look.git
    said = git("config", "--type=bool", "--show-scope", "--get-all", "commit.gpgSign", check=False)
    scopes = [line.split("\t") for line in said.splitlines()]
    values = [value for scope, value in scopes if scope != "command"]  # which is what we say ourselves
    if values[-1:] == ["true"] and "\ngpgsig" not in git("cat-file", "commit", "HEAD"):
        yield "the merge commit is not signed; to sign it: git commit --amend --no-edit -S"


def _pull_request(project: Project, state: State) -> str:
    look, branch = project.look, state.branch
    _require_branch(project, state)
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
