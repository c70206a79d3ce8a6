"""Which change is reviewed: what a person wrote, and the two commits it is pinned to.

A round keeps to its pins however HEAD and the working tree move on. Uncommitted work is pinned
as a commit of its own, made from the tracked files; the same files give the same commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Annotated

from rondel.errors import GitError, NothingToDo, RondelError, UsageError
from rondel.model.changes import Document
from rondel.model.codec import decode, only
from rondel.model.jsons import parse_json
from rondel.model.refs import BRANCHES, END, branch_in, branch_or_none, commit_or_none, is_commit
from rondel.model.workflow import RepoReader
from rondel.workflows.review.layout import RONDEL, SESSIONS
from rondel.workflows.review.markdown import first_of

NAMED_MAX = 10
DEFAULT_BASES = (  # in full: a tag that somebody else's remote brought may have any short name
    "refs/remotes/origin/HEAD",
    "refs/heads/main",
    "refs/heads/master",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
)
BELOW = "/**"
_REVISION = re.compile(r"[^\s\x00-\x1f~^:?*\[\\-][^\s\x00-\x1f\\]*")
_RANGE = re.compile(r"(?P<base>[^.].*?|)(?P<dots>\.\.\.?)(?P<head>.*)", re.DOTALL)


Revision = Annotated[str, only(lambda text: _REVISION.fullmatch(text) is not None)]
Commit = Annotated[str, only(is_commit)]


class Kind(StrEnum):
    """The ways to name a change."""

    WORK = "work"  # from the merge base to the working tree's tracked files
    STAGED = "staged"  # what is in the index
    RANGE = "range"  # a..b, a...b
    DIFF = "diff"  # a diff in a file
    PR = "pr"  # a pull request, through gh


@dataclass(frozen=True)
class Target:
    """What a person asked to review."""

    kind: Kind = Kind.WORK
    base: Revision = ""  # RANGE, WORK
    head: Revision = ""  # RANGE
    since_fork: bool = False  # RANGE with three dots
    file: str = ""  # DIFF
    number: int = 0  # PR

    def __str__(self) -> str:
        match self.kind:
            case Kind.WORK:
                return self.base or "the branch and its uncommitted work"
            case Kind.STAGED:
                return "staged"
            case Kind.RANGE:
                return f"{self.base}{'...' if self.since_fork else '..'}{self.head}"
            case Kind.DIFF:
                return self.file
            case Kind.PR:
                return f"pull request {self.number}"


@dataclass(frozen=True)
class Pins:
    """A change that cannot move any more. With `given` the diff itself is kept; `head` is where to read."""

    base: Commit
    head: Commit
    branch: str = ""
    label: str = ""
    given: str = ""
    number: int = 0
    left_out: tuple[str, ...] = ()  # changed files whose filter may not run: nobody knows what is new in them

    def document(self) -> Document:
        """As JSON without the diff, which is a file of its own."""
        shown = {k: v for k, v in asdict(self).items() if k != "left_out"}
        return shown | {"given": bool(self.given)}


def reviewed_paths(base: str, head: str, look: RepoReader) -> tuple[str, ...]:
    """What of a change is reviewed, for git: everything but the files of the person's own sessions.

    Whatever else the change brings to the places where sessions lie is part of it: a session that
    is not theirs, or a program that hides there.
    """
    changed = look.git(
        "diff", "--name-only", "--no-renames", "-z", END, base, head, "--", *_places(look)
    ).split("\0")
    return (":(top)", *sorted({f":(top,exclude,literal){path}" for path in _own(changed, look)}))


def _places(look: RepoReader) -> list[str]:
    """Where workflows keep their own record, for git."""
    return [f":(top,glob){path}" for path in (*look.own_paths, f"**/{RONDEL}{BELOW}")]


def _own(changed: Sequence[str], look: RepoReader) -> Iterator[str]:
    folders = set[str]()
    whole = tuple(path.removesuffix("**") for path in look.own_paths if path.endswith(BELOW))
    partly = {RONDEL, *(path.rpartition("/")[2] for path in look.own_paths if not path.endswith(BELOW))}
    for path in filter(None, changed):
        if any(path.startswith(f"{folder}/") for folder in folders):
            continue
        folder = look.own_folder(path)
        if folder == path:
            yield path
        elif folder.startswith(whole):
            folders.add(folder)
            yield folder
        elif folder:
            folders.add(folder)
            yield from (f"{folder}/{name}" for name in partly)


def shipped(pins: Pins, look: RepoReader) -> frozenset[str]:
    """The folders of review sessions that are part of a change."""
    if pins.given:
        return frozenset()
    where = f"{SESSIONS}/"
    spec = f":(top,literal){SESSIONS}"
    names = look.git("diff", "--name-only", "--no-renames", "-z", END, pins.base, pins.head, "--", spec)
    below = (name.removeprefix(where) for name in names.split("\0") if name.startswith(where))
    return frozenset(f"{where}{name.partition('/')[0]}" for name in below if "/" in name)


def pins_of(document: object) -> Pins | None:
    """Pins from a part; None when they are not readable, or name anything but commits."""
    found = decode(Pins, document)
    return found and replace(found, given="", left_out=())


def parse_target(text: str | None, pr: int | None, is_file: Callable[[str], bool]) -> Target:
    """What `rondel review TARGET` means; UsageError when it cannot be one."""
    if pr is not None:
        if text:
            raise UsageError(f"both --pr {pr} and {text!r} name a change; give one of them")
        if pr < 1:
            raise UsageError(f"--pr {pr} is not the number of a pull request")
        return Target(Kind.PR, number=pr)
    if text is None or not text.strip():
        return Target()
    if text in ("staged", "--staged", "cached", "--cached"):
        return Target(Kind.STAGED)
    if is_file(text) and (text.endswith((".diff", ".patch")) or "/" in text):
        return Target(Kind.DIFF, file=text)
    if text.endswith((".diff", ".patch")):
        raise UsageError(f"there is no file {text!r}; name a diff, a range like main...HEAD, or 'staged'")
    match = _RANGE.fullmatch(text)
    if match:
        base, head = match["base"] or "HEAD", match["head"] or "HEAD"
        return Target(Kind.RANGE, _revision(base), _revision(head), since_fork=match["dots"] == "...")
    return Target(Kind.WORK, _revision(text))


def _revision(text: str) -> str:
    if not _REVISION.fullmatch(text):
        raise UsageError(f"{text!r} is not a revision; name a branch, a commit, a range or a diff file")
    return text


def pin(target: Target, look: RepoReader, *, given: str = "", dry: bool = False) -> Pins:
    """The commits of a target, as they are now. `given` is the diff of a DIFF target.

    With `dry` the repository gets no object.
    """
    here = _commit("HEAD", look)
    if here is None:
        raise UsageError("the repository has no commit yet; commit something, then review the next change")
    match target.kind:
        case Kind.WORK:
            base = _fork(target.base, here, look) if target.base else _default_base(here, look)
            left_out = _unfiltered(look)
            head = _snapshot(here, "work", look, left_out, dry=dry)
            return Pins(base, head, branch_of(look), str(target), left_out=left_out)
        case Kind.STAGED:
            return Pins(here, _snapshot(here, "index", look, dry=dry), branch_of(look), str(target))
        case Kind.RANGE:
            return _pin_range(target, look)
        case Kind.DIFF:
            return Pins(here, here, branch_of(look), str(target), given=given)
        case Kind.PR:
            return _pin_pr(target, look)


def branch_of(look: RepoReader) -> str:
    """The branch that is checked out; a detached HEAD has a name of its own."""
    name = branch_in(look.git("symbolic-ref", "--quiet", "HEAD", check=False))
    return name or f"detached-{look.git('rev-parse', '--short=8', 'HEAD', check=False).strip() or 'head'}"


def _commit(revision: str, look: RepoReader) -> str | None:
    spelled = f"{revision}^{{commit}}"
    return look.git("rev-parse", "--verify", "--quiet", END, spelled, check=False).strip() or None


def _known(revision: str, look: RepoReader) -> str:
    found = _commit(revision, look)
    if found is None:
        raise UsageError(f"there is no commit {revision!r} here; see `git branch -a` and `git log`")
    return found


def _fork(revision: str, head: str, look: RepoReader) -> str:
    """Where `head` left `revision`."""
    other = _known(revision, look)
    base = look.git("merge-base", END, other, head, check=False).split()
    if not base:
        raise UsageError(f"{revision!r} and the reviewed change have no common commit; use A..B instead")
    return base[0]


def _default_base(head: str, look: RepoReader) -> str:
    name = next((name for name in DEFAULT_BASES if _commit(name, look)), None)
    if name is None:
        return head
    base = look.git("merge-base", END, name, head, check=False).split()
    if not base and look.git("rev-parse", "--is-shallow-repository", check=False).strip() == "true":
        raise UsageError(
            f"this clone is shallow and does not hold the commit where the branch left {_short(name)}; "
            "run `git fetch --unshallow` first, or name the change: rondel review A..B"
        )
    if not base:
        raise UsageError(
            f"{_short(name)!r} and this branch have no common commit; name the change: rondel review A..B, "
            "or rondel review HEAD for uncommitted work alone"
        )
    return base[0]


def _short(ref: str) -> str:
    return ref.removeprefix("refs/").removeprefix("heads/").removeprefix("remotes/")


def _pin_range(target: Target, look: RepoReader) -> Pins:
    head = _known(target.head, look)
    base = _fork(target.base, head, look) if target.since_fork else _known(target.base, look)
    is_branch = look.git("rev-parse", "--verify", "-q", f"refs/heads/{target.head}", check=False).strip()
    return Pins(base, head, target.head if is_branch else branch_of(look), str(target))


# The index is copied, so that neither the person's index nor their files change; with its time, by which
# git knows that a file may have changed in the second in which it was added. The commit's
# times are those of HEAD, so that the same files always give the same commit. Where a person
# tracks Rondel's own folders, what Rondel writes there is no change to review. Submodules, read from the
# input, are not added like files: git would look into them and follow their configuration.
_SNAPSHOT = """
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
index=$(git rev-parse --git-path index)
if [ -f "$index" ]; then cp -p "$index" "$work/index"; fi
export GIT_INDEX_FILE="$work/index"
if [ "$2" = dry ]; then
  GIT_ALTERNATE_OBJECT_DIRECTORIES=$(cd "$(git rev-parse --git-path objects)" && pwd)
  export GIT_ALTERNATE_OBJECT_DIRECTORIES
  mkdir "$work/objects"
  export GIT_OBJECT_DIRECTORY="$work/objects"
fi
cat > "$work/links"
{
  printf ':(top)\\0'
  [ ! -s "$work/links" ] || xargs -0 printf ':(exclude,top,literal)%s\\0' < "$work/links"
} > "$work/spec"
if [ "$3" = work ]; then
  git add -u --pathspec-from-file="$work/spec" --pathspec-file-nul
  git update-index --remove -z --stdin < "$work/links"
fi
base=$1
shift 3
[ "$#" = 0 ] || git reset -q "$base" -- "$@"
tree=$(git write-tree)
[ "$tree" != "$(git rev-parse "$base^{tree}")" ] || { echo "$base"; exit 0; }
when=$(git show -s --format=%ci "$base")
export GIT_AUTHOR_DATE="$when" GIT_COMMITTER_DATE="$when"
export GIT_AUTHOR_NAME=rondel GIT_AUTHOR_EMAIL=rondel@localhost
export GIT_COMMITTER_NAME=rondel GIT_COMMITTER_EMAIL=rondel@localhost
git commit-tree --no-gpg-sign -p "$base" -m "uncommitted work under review" "$tree"
"""


def _unfiltered(look: RepoReader) -> tuple[str, ...]:
    changed = look.git("diff-files", "--name-only", "-z", "--diff-filter=d").split("\0")
    return look.unfiltered([name for name in changed if name])


def _snapshot(head: str, what: str, look: RepoReader, left_out: Sequence[str] = (), *, dry: bool) -> str:
    """A commit of the tracked files (`work`) or of what is staged (`index`)."""
    mode = "dry" if dry else "keep"
    specs = [f":(top,literal){name}" for name in left_out]
    argv = ["sh", "-c", _SNAPSHOT, "rondel", head, mode, what, *_places(look), *specs]
    entries = look.git("ls-files", "-z", "--stage").split("\0")
    links = [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]
    if any("\ufffd" in link for link in links):
        raise GitError("the name of a submodule is not UTF-8; name the change: rondel review A..B")
    status, out, err = look.run(argv, stdin="".join(f"{link}\0" for link in links), timeout_s=300)
    lines = out.split()
    if status or not lines:
        raise GitError(f"the uncommitted work cannot be pinned: {err.strip()[-500:] or f'status {status}'}")
    return lines[-1]


def _pin_pr(target: Target, look: RepoReader) -> Pins:
    """The commits of a pull request. Without its base it would be judged by what is checked out."""
    fields = "number,headRefName,headRefOid,baseRefName,baseRefOid"
    shown = parse_json(_gh(look, "pr", "view", str(target.number), "--json", fields).encode())
    if not isinstance(shown, dict):
        raise UsageError(f"gh pr view {target.number} did not answer with JSON; try it by hand")
    into = branch_or_none(shown.get("baseRefName"))
    pull = f"refs/pull/{target.number}/head"
    head = _fetched(commit_or_none(shown.get("headRefOid")), pull, look)
    base = _fetched(commit_or_none(shown.get("baseRefOid")), f"{BRANCHES}{into}" if into else "", look)
    if not head or not base:
        raise UsageError(
            f"the commits of {target} are not all here, and cannot be fetched from `origin`; get them first, "
            f"from the remote that it is for: git fetch REMOTE {into or 'BRANCH'} {pull}"
        )
    branch = str(shown.get("headRefName") or f"pr-{target.number}")
    fork = look.git("merge-base", END, base, head, check=False).split()
    return Pins((fork or [base])[0], head, branch, str(target), number=target.number)


def _fetched(commit: str | None, ref: str, look: RepoReader) -> str | None:
    """A commit that is here, or comes with a ref of `origin`; else it is asked for itself."""
    for wanted in (ref, commit):
        if commit is None or _commit(commit, look):
            return commit
        if wanted and "origin" in look.git("remote").split():
            look.git("fetch", "--quiet", "--no-tags", "--refmap=", "origin", END, wanted, check=False)
    return commit if commit and _commit(commit, look) else None


def _gh(look: RepoReader, *args: str) -> str:
    try:
        status, out, err = look.run(["gh", *args], timeout_s=120)
    except RondelError as e:
        status, out, err = 1, "", str(e)
    if status:
        raise UsageError(
            f"gh {' '.join(args[:3])} failed: {err.strip()[-500:]}; "
            "install and log in with gh, or fetch the branch and name it: rondel review main...BRANCH"
        )
    return out


def without_filter(names: Sequence[str]) -> str:
    """What to say about files that are not part of a review because their filter may not run."""
    shown = first_of([repr(name) for name in names], NAMED_MAX)
    return f"not part of this review: {shown}, whose filter is not in your own git configuration"


def nothing(target: Target, left_out: Sequence[str] = ()) -> NothingToDo:
    """What to say about a change without a single line; an empty diff is not a passed review."""
    if left_out:
        return NothingToDo(f"nothing to review: {target} changes no other file; {without_filter(left_out)}")
    what = "holds no unified diff" if target.kind is Kind.DIFF else "changes no tracked file"
    return NothingToDo(
        f"nothing to review: {target} {what}; name another change, e.g. rondel review HEAD~1..HEAD"
    )
