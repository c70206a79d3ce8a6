"""Edits: what changed in a worktree, as one commit that is found again by its trailer.

What a commit of the repository would not hold is no edit: files in a submodule, a repository inside.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from rondel import paths
from rondel.errors import GitError
from rondel.model.names import digest, slug
from rondel.model.refs import END
from rondel.model.summary import command_line
from rondel.model.texts import first_few
from rondel.repo import attributes, clone
from rondel.repo.git import Git, Result
from rondel.repo.sizes import EditMax, excess
from rondel.repo.worktrees import Mark, Worktrees

TRAILER = "Rondel-Action"
MESSAGE_MAX = 5_000
SHOWN_MAX = 10
_REFUSED_NOW = re.compile(  # why git adds nothing at all: of the machine or the repository, not of the edit
    r"index\.lock|no space left|quota|too many open files|input/output error|read-only file system"
    r"|cannot allocate memory|out of memory|unable to (create temporary|write)|insufficient permission",
    re.IGNORECASE,
)
_GIVEN = ("--pathspec-from-file=-", "--pathspec-file-nul")
_VALUE = f"%(trailers:key={TRAILER},valueonly,unfold)"


@dataclass(frozen=True)
class Commit:
    """An edit: the commit that holds it, the files it touches, the branch it is on."""

    id: str
    changed: tuple[str, ...]
    branch: str


@dataclass(frozen=True)
class Unusable:
    """What an agent left is no commit, now or later: what is wrong, where, and what helps.

    A GitError, on the other hand, says nothing about the edit: the same may be tried again.
    """

    problem: str


def value_of(session: str, action: str) -> str:
    """What the trailer says, on one line."""
    return " ".join(f"{session}/{action}".split())


def branch_of(session: str, action: str) -> str:
    """The branch of an action's own; no two actions share one."""
    mark = digest(f"{session}/{action}")[:8]
    return (
        f"rondel/{slug(session, fallback='session')}/{slug(action, length_max=40, fallback='action')}-{mark}"
    )


def commit_all(
    trees: Worktrees, path: Path, mark: Mark, session: str, action: str, message: str
) -> Commit | Unusable | None:
    """Everything that differs from the base, as one commit; None when nothing does.

    The same changes give the same commit again. What the agent committed itself, in its clone, is
    part of it.
    """
    git = trees.in_tree(path, mark)
    if (why := unfit(trees, path, mark)) is not None:
        return Unusable(why)
    if trees.is_at(git, mark, mark.base, submodules=True) and clone.tracked(path, mark) == clone.Tracked():
        return None
    names = stage(trees, path, mark)
    if isinstance(names, Unusable):
        return names
    if not names:
        return None
    tree = git("write-tree")
    branch, value = branch_of(session, action), value_of(session, action)
    commit = _same(trees, branch, mark.base, tree, value)
    if commit is None:
        text = f"{_message(message)}\n\n{TRAILER}: {value}\n"
        commit = git("commit-tree", "-p", mark.base, "-F", "-", END, tree, stdin=text)
    (trees.common / f"refs/heads/{branch}.lock").unlink(missing_ok=True)  # of a git that was killed
    moves = f"option no-deref\nupdate HEAD {commit}\nupdate refs/heads/{branch} {commit}\n"
    git("update-ref", "--stdin", stdin=moves)
    trees.save(path, replace(mark, commit=commit, branch=branch, trailer=value, integrating=False))
    return Commit(commit, names, branch)


def unfit(trees: Worktrees, path: Path, mark: Mark) -> str | None:
    """Why what is in a worktree is to be no commit, as far as that is told before git reads it."""
    git = trees.in_tree(path, mark)
    agents = clone.tracked(path, mark)
    return uncommitted(path, git) or excess(path, git, trees.excludes(mark), agents.more, trees.most) or None


def _same(trees: Worktrees, branch: str, base: str, tree: str, value: str) -> str | None:
    """The commit that an earlier call made of the same changes."""
    tip = trees.tip(f"refs/heads/{branch}")
    if not tip:
        return None
    made = trees.git("show", "--no-patch", f"--format=%P%n%T%n{_VALUE}", END, tip).strip()
    return tip if made.split("\n", 2) == [base, tree, value] else None


def _message(message: str) -> str:
    """A commit message that cannot bring a trailer of ours."""
    lines = [line.rstrip() for line in message[:MESSAGE_MAX].replace("\0", "").splitlines()]
    kept = [line for line in lines if not re.match(rf"\s*{TRAILER}\s*:", line, re.IGNORECASE)]
    return "\n".join(kept).strip() or "An edit"


def stage(trees: Worktrees, path: Path, mark: Mark) -> tuple[str, ...] | Unusable:
    """Put everything in a worktree into its index; the files that differ from its base then.

    How files are converted is said by the attributes of the base, not by those that the edit brings.
    A repository inside it would become a bare pointer, and its files would be lost; so would the commit
    of a submodule that is in this worktree only.
    """
    git = trees.in_tree(path, mark)
    trees.settle(git, mark)
    agents = clone.tracked(path, mark)
    modules = submodules(git)
    added = _add(git, trees.excludes(mark), modules)
    if added.ok and agents.more:
        added = git.run("--literal-pathspecs", "add", "--force", *_GIVEN, stdin="\0".join(agents.more))
    if not added.ok:
        return _refused(path, added, modules)
    if agents.fewer:
        names = "\0".join(agents.fewer)
        ignored = git.run(*trees.excludes(mark), "check-ignore", "--no-index", "-z", "--stdin", stdin=names)
        git("update-index", "--force-remove", "-z", "--stdin", stdin=ignored.out)
    entries = _converted(path, git, mark)
    if isinstance(entries, Unusable):
        return entries
    if apart := _no_part(entries, mark.hidden, trees.unedited):
        git("reset", "--quiet", END, mark.base, "--", *apart)
        entries = differing(git, "diff-index", "--cached", END, mark.base)
    for entry in entries:
        if entry.after == POINTER and entry.before != POINTER:
            git("update-index", "--force-remove", "--", entry.name)  # what is fixed is looked at anew
            return _nested(path, entry.name)
        if entry.after == POINTER and (lost := unkept(trees.repo, path, entry)):
            return Unusable(lost)
    unfiltered = git.unfiltered(entry.name for entry in entries if entry.after in _FILES)
    if unfiltered:
        return Unusable(_unfiltered(unfiltered))
    return tuple(entry.name for entry in entries)


def _no_part(entries: Iterable[Entry], hidden: str, unedited: Iterable[str]) -> list[str]:
    """What of these is no part of an edit, for git: below `hidden`, or by one of the patterns."""
    names = [entry.name for entry in entries]
    apart = [f":(top,glob){one}" for one in unedited if any(fnmatchcase(name, one) for name in names)]
    if hidden and any(f"{name}/".startswith(f"{hidden}/") for name in names):
        apart.append(f":(top,literal){hidden}")
    return apart


def _add(git: Git, excludes: Sequence[str], modules: Sequence[str]) -> Result:
    """Add everything. Not the submodules: `git add` would look into them and follow their configuration."""
    spec = "".join(f"{word}\0" for word in (":(top)", *(f":(exclude,top,literal){p}" for p in modules)))
    added = git.run(*excludes, "add", "--all", *_GIVEN, stdin=spec)
    if not added.ok or not modules:
        return added
    names = "".join(f"{name}\0" for name in modules)
    return git.run("update-index", "--add", "--remove", "-z", "--stdin", stdin=names)


def _converted(path: Path, git: Git, mark: Mark) -> list[Entry] | Unusable:
    """What differs from the base once it is converted as the base says, whatever the edit says of that."""
    entries = differing(git, "diff-index", "--cached", END, mark.base)
    if not attributes.is_among(entry.name for entry in entries):
        return entries
    try:
        attributes.stage_as_at(mark.base, git, Path(mark.git_dir))
    except GitError as e:
        return Unusable(f"what is in {path} cannot be converted as the attributes of its base say: {e}")
    return differing(git, "diff-index", "--cached", END, mark.base)


def _unfiltered(names: Sequence[str]) -> str:
    return (
        f"the attributes of {first_few([*map(repr, names)], SHOWN_MAX)} name a filter that does not run: "
        "it is not in your own git configuration, or it would run what is in the working copy (a script by a "
        "relative path, `python -m`). Without it a commit would hold something else. If it is to run, define "
        "it for yourself, as a program by its name: git config --global filter.NAME.clean COMMAND (and "
        f"smudge), or say yes to the repository's: `{command_line('trust')}` shows it"
    )


_FILES = ("100644", "100755")


def _nested(path: Path, name: str) -> Unusable:
    return Unusable(
        f"{name!r} is a git repository of its own, and a commit does not hold its files; "
        f"to make them part of the edit: rm -rf {shlex.quote(str(path / name / '.git'))}"
    )


def _refused(path: Path, added: Result, modules: Sequence[str]) -> Unusable:
    """Why git adds nothing: something is wrong with what is there; or, a GitError, with the rest."""
    if _REFUSED_NOW.search(added.err):
        raise GitError(f"git add failed in {path}: {added.message}")
    for _, inside, folders, names in paths.walk_open(path):
        if inside and ".git" in (*folders, *names) and inside not in modules:
            return _nested(path, inside)
    return Unusable(f"git does not add what is in {path}: {added.message}")


def newest(trees: Worktrees, session: str) -> str | None:
    """The last commit of a session that a branch holds; those of single actions wait to be taken over."""
    refs = ("--exclude=rondel/*", "--branches", "--remotes")
    log = ("log", *refs, "--topo-order", "-1", "--format=%H", "--fixed-strings")
    return trees.git.run(*log, f"--grep={TRAILER}: {session}/").out.strip() or None


def changed(git: Git, before: str, after: str) -> tuple[str, ...]:
    """The files in which two commits differ."""
    return git.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", END, before, after)


# -- submodules ----------------------------------------------------------------------------------


POINTER = "160000"  # the mode of an entry that only names a commit of another repository


@dataclass(frozen=True)
class Entry:
    """A file that differs."""

    before: str  # its mode
    after: str
    id: str  # of what it is after
    name: str


def differing(git: Git, *words: str) -> list[Entry]:
    """What a command such as `diff-index` finds to differ."""
    out = git(words[0], "--raw", "-z", "--no-renames", "--no-abbrev", *words[1:]).split("\0")
    pairs = zip(out[::2], out[1::2], strict=False)
    heads = ((head.removeprefix(":").split(" "), name) for head, name in pairs)  # ":100644 160000 id id M"
    return [Entry(fields[0], fields[1], fields[3], name) for fields, name in heads]


def submodules(git: Git) -> tuple[str, ...]:
    """The paths that only name a commit of another repository: submodules, and what an agent made one."""
    entries = git.paths("ls-files", "-z", "--stage")
    return tuple(entry.partition("\t")[2] for entry in entries if entry.startswith(POINTER))


def uncommitted(path: Path, git: Git) -> str | None:
    """What is in a submodule of a worktree and in no commit there; `git add` passes over it."""
    if not (path / ".gitmodules").exists():
        return None
    for name in submodules(git):
        place = path / name
        if place.is_symlink() or not place.is_dir():
            continue
        if not (place / ".git").exists() and any(place.iterdir()):
            return (
                f"{name!r} is a submodule without its repository, and no commit holds the files in it; move "
                "them elsewhere, or commit them in the submodule: git submodule update --init"
            )
        if (place / ".git").exists() and _has_changes(place):
            return (
                f"files in the submodule {name!r} are changed or new, and a commit of this repository does "
                f"not hold them; commit them there: cd {shlex.quote(str(place))}"
            )
    return None


def _has_changes(place: Path) -> bool:
    """Whether something is not committed there. A git of its own looks: it has a configuration of its own."""
    git = Git(place, by_agents=True)
    if excess(place, git, (), (), EditMax()):  # of which git would read
        return True
    status = git.run("status", "--porcelain", "-z", "--untracked-files=normal")
    return not status.ok or bool(status.out) or uncommitted(place, git) is not None


def unkept(repo: Path, path: Path, entry: Entry) -> str | None:
    """Why a submodule must not be moved to a commit: nothing but this worktree has it."""
    own, place = repo / entry.name, path / entry.name
    has_own = (own / ".git").exists()
    if has_own and Git(own).run("cat-file", "-e", END, f"{entry.id}^{{commit}}").ok:
        return None
    if not (place / ".git").exists():  # it was not made here
        return None
    if Git(place, by_agents=True).run("branch", "--remotes", f"--contains={entry.id}").out.strip():
        return None
    root, name, here = (shlex.quote(str(part)) for part in (repo, entry.name, place))
    first = "" if has_own else f"git -C {root} submodule update --init -- {name} && "
    ref = f"HEAD:refs/heads/rondel-{entry.id[:12]}"
    return (
        f"the submodule {entry.name!r} is moved to a commit that only this working copy has; push it from "
        f"there, or take it into your own: {first}git -C {shlex.quote(str(own))} fetch {here} {ref}"
    )
