"""The commands of the workflow `feature`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from rondel.cli.common import (
    emit,
    emit_json,
    fail_option,
    here,
    json_list_option,
    json_option,
    project_at,
    run_session,
    say,
    say_foreign,
    wait_option,
)
from rondel.cli.groups import Commands
from rondel.cli.sessions import summary_json
from rondel.errors import GitError, NothingToDo, RondelError, UsageError
from rondel.model.changes import Edit
from rondel.model.commands import command_line
from rondel.model.refs import BRANCHES, END, branch_in
from rondel.model.workflow import SessionRef
from rondel.project import Conflict, Project
from rondel.workflows.feature import layout, place, worktrees
from rondel.workflows.feature.closing import ending, kept_history, unfinished
from rondel.workflows.feature.files import lint_file, start_feature
from rondel.workflows.feature.meta import notes, records, stamped, title, word
from rondel.workflows.feature.phases import (
    ABANDONED,
    ACTIVE,
    BRAINSTORM,
    COMPLETED,
    FINISH,
    IMPLEMENT,
    LIMITS,
    PHASES,
    REVIEWED,
)
from rondel.workflows.feature.read import State
from rondel.workflows.feature.transitions import Transition
from rondel.workflows.feature.workflow import made_by

F = TypeVar("F", bound=Callable[..., object])
WAITS = 3

feature_argument = click.argument("feature", required=False)


@click.group(cls=Commands)
def command() -> None:
    """Work on a feature phase by phase, each under a reviewer."""


def project_of_features() -> Project:
    """The project where the features are kept: from inside a feature's worktree, that of its repository."""
    project = here()
    home = Path(place.home_of_features(str(project.root)))
    return project if home == project.root else project_at(home)


def find(project: Project, feature: str | None) -> tuple[SessionRef, State]:
    """The feature a person means, and what its files show. Says once where its worktree is."""
    ref = project.ref(feature, "feature")
    state: State = project.state(ref)
    if state.damaged:
        raise RondelError(
            f"{ref.folder}/{layout.META} is {state.anomalies[0].message}; `rondel doctor --repair` mends one "
            "stray brace, anything else is mended by hand"
        )
    warning = place.elsewhere(str(project.root), ref.name, state.meta.get("worktree"), str(Path.cwd()))
    if warning and not state.ended and not os.environ.get("CLAUDECODE"):  # there the hook has said it
        say(f"warning: {warning}")
    return ref, state


@command.command()
@click.argument("title")
@click.option(
    "--mode",
    type=click.Choice(list(LIMITS), case_sensitive=False),
    help="How often a phase may be revised: hotfix 1, quick 2, standard 3, full 5.",
)
@click.option("--description", default="", help="What is wanted, in a few sentences.")
@click.option(
    "--from",
    "source",
    type=click.File(encoding="utf-8"),
    help="A brainstorm that is written already; it becomes brainstorm.md.",
)
@click.option("--worktree", is_flag=True, help="Make a worktree beside the repository, with the branch.")
@json_option
def start(title: str, mode: str | None, description: str, source: Any, worktree: bool, as_json: bool) -> None:
    """Begin a feature: docs/features/{id}-{slug}/."""
    project = here()
    main = place.owner(str(project.root))
    if main is not None:
        project = project_at(Path(main))
    chosen = mode or str(project.settings("feature")["mode"])
    text = source.read() if source else None
    if worktree:
        worktrees.require_commit(project.look)
    ref = start_feature(
        project.root,
        title,
        mode=chosen,
        description=description,
        brainstorm=text,
        at=project.look.at,
        claim=project.claim,
    )
    project.begin(ref, new=True)
    state: State = project.state(ref)
    if (own := project.own_branch(ref)) is not None:
        say(f"the branch {state.branch} is there and holds other work; this feature's code goes to {own}")
        project.change(ref, [Edit(layout.META, lambda meta: {**meta, "branch": own})])
        state = project.state(ref)
    if worktree:
        try:
            path = worktrees.add(project.look, ref.id, state.branch)
        except GitError as e:
            raise RondelError(
                f"{ref.name} is there, but without a worktree: {e}; go on without one, or give it up "
                f"(`{command_line('feature', 'finish', ref.id, '--abandon')}`) and start again"
            ) from e
        project.change(ref, [Edit(layout.META, lambda meta: {**meta, "worktree": path})])
        state = project.state(ref)
    if as_json:
        emit({"session": ref.name, "path": ref.folder, "state": project.summary(ref).state})
        return
    click.echo(ref.folder)
    if worktree:
        say(f"worktree: {place.resolve(str(project.root), str(state.meta['worktree']))}")
    say(f"next: {project.summary(ref).next}")


# -- phases -----------------------------------------------------------------------------------


def _phase_options(function: F) -> F:
    for option in (
        feature_argument,
        click.option("--continue", is_flag=True, help="Go on with a phase that is under way."),
        click.option("--fresh", is_flag=True, help="Begin it again; what is there is kept aside."),
        click.option("--review", is_flag=True, help="Only review the document as it stands."),
        click.option("--yes", "-y", is_flag=True, help="Go on past a warning."),
        fail_option,
        wait_option,
        json_option,
    ):
        function = option(function)
    return function


def _add_phase(phase: str) -> None:
    @command.command(phase, help=f"Do the phase {phase}, with its reviewer.")
    @_phase_options
    def phase_command(
        feature: str | None, yes: bool, fail: bool | None, wait: bool, as_json: bool, **ways: bool
    ) -> None:
        _do_phase(phase, feature, _only_one(ways), yes=yes, fail=fail, wait=wait, as_json=as_json)


for _phase in REVIEWED:
    _add_phase(_phase)


def _only_one(flags: Mapping[str, bool]) -> str | None:
    """The one flag that was given; two of them say opposite things."""
    given = [name for name, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(f'--{n}' for n in given)} exclude each other; give one of them")
    return given[0] if given else None


def _do_phase(
    phase: str,
    feature: str | None,
    how: str | None,
    *,
    yes: bool,
    fail: bool | None,
    wait: bool,
    as_json: bool,
) -> NoReturn:
    project = project_of_features()
    ref, state = find(project, feature)
    may = state.transition(phase)
    if not may.allowed:
        raise RondelError(may.message or f"{phase} is blocked")
    under_way = phase in state.partial
    at_once = phase == IMPLEMENT == state.suggested  # what `next:` named
    proceed = yes or under_way or at_once or _proceeds(may)
    if under_way and how is None and sys.stdin.isatty() and not as_json:
        words = click.Choice(["continue", "fresh", "review"])
        how = click.prompt(f"{phase} was started and not completed", type=words, default="continue")
    request = {"command": "phase", "phase": phase, "how": how, "proceed": proceed}
    _ask_and_run(project, ref, request, fail=fail, as_json=as_json, wait=wait)


def _ask_and_run(
    project: Project,
    ref: SessionRef,
    request: Mapping[str, object],
    *,
    fail: bool | None,
    as_json: bool,
    wait: bool,
) -> NoReturn:
    with project.hold(ref) as lease:
        project.ask_for(ref, request, lease)
        # A person asks, so it is tried again.
        run_session(project, ref, as_json=as_json, fail=fail, wait=wait, lease=lease)


def _proceeds(may: Transition) -> bool:
    """Show a warning and ask; where nobody can be asked, skipping goes on and going back waits."""
    if may.type != "warning":
        return True
    say(f"warning: {may.message}")
    if sys.stdin.isatty():
        if not click.confirm("go on?", err=True):
            sys.exit(WAITS)
        return True
    return " skips " in (may.message or "")


@command.command()
@feature_argument
@click.option("--until", type=click.Choice(list(REVIEWED)), help="The last phase to do.")
@click.option("--auto", is_flag=True, help="Do not stop for a reviewer's concerns.")
@fail_option
@wait_option
@json_option
def run(
    feature: str | None, until: str | None, auto: bool, fail: bool | None, wait: bool, as_json: bool
) -> None:
    """Do every phase that is left, stopping where a person is needed."""
    project = project_of_features()
    ref, state = find(project, feature)
    if state.ended:
        raise RondelError(f"{ref.name} is {word(state.meta, 'status')}; start another feature")
    if state.due in REVIEWED and until and PHASES.index(state.due) > PHASES.index(until):
        follows = command_line("feature", state.due, ref.id)
        raise NothingToDo(f"{ref.name}: done up to {until}\n  next: {follows}")
    if state.due not in REVIEWED:
        raise NothingToDo(f"{ref.name}: every phase is done; `rondel feature finish` ends it")
    request = {"command": "run", "until": until, "auto": auto, "before": sorted(state.completed)}
    _ask_and_run(project, ref, request, fail=fail, as_json=as_json, wait=wait)


@command.command()
@click.argument("phase")
@feature_argument
@json_option
def check(phase: str, feature: str | None, as_json: bool) -> None:
    """Say whether a phase may start: proceed, warning or blocked, and why."""
    project = project_of_features()
    ref, state = find(project, feature)
    project.require_known(ref)
    may = state.transition(phase)
    if as_json:
        emit({"allowed": may.allowed, "type": may.type, "message": may.message})
    else:
        click.echo(f"{may.type}: {may.message}" if may.message else may.type)
    sys.exit(0 if may.allowed else 1)


# -- looking ----------------------------------------------------------------------------------


@command.command()
@feature_argument
@json_option
def status(feature: str | None, as_json: bool) -> None:
    """Show the features, or one with its phases."""
    project = project_of_features()
    refs = [project.ref(feature, "feature")] if feature else project.sessions("feature")
    if as_json:
        rows = [(ref, project.summary(ref)) for ref in refs]
        emit(
            {"sessions": [summary_json(project, ref, found) | {"state": found.state} for ref, found in rows]}
        )
        return
    if feature is None:
        refs = [r for r in refs if project.state(r).meta.get("status", ACTIVE) == ACTIVE] or refs
    if not refs:
        say('no features here yet; `rondel feature start "title"` begins one')
    for ref in refs:
        _show(project, ref)


def _show(project: Project, ref: SessionRef) -> None:
    found = project.summary(ref)
    state: State = project.state(ref)
    mode = word(state.meta, "mode") or "standard"
    click.echo(f"{ref.name}: {found.title} ({found.status.value}, {mode}, at most {state.limit} iterations)")
    kept = records(state.meta)
    for phase in PHASES:
        record = kept.get(phase)
        if record is not None:
            ended = stamped(record, "completed")
            words = (
                f"completed {ended}{made_by(state, phase)}"
                if ended
                else f"under way since {stamped(record, 'started')}"
            )
            click.echo(f"  {phase}: {words}")
            for note in notes(record):
                click.echo(f"    {note}")
    for problem in found.problems:
        click.echo(f"  {problem.rule}: {problem.message}")
    if found.waiting_for:
        click.echo(f"  waits for: {found.waiting_for}")
    if found.next:
        click.echo(f"  next: {found.next}")


@command.command()
@feature_argument
def history(feature: str | None) -> None:
    """Show every review so far."""
    project = project_of_features()
    ref, state = find(project, feature)
    say_foreign(project, ref)
    text = kept_history(state)
    if text is None:
        raise NothingToDo(f"{ref.name} was not reviewed yet")
    click.echo(text, nl=not text.endswith("\n"))


@command.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@json_list_option
def lint(files: tuple[str, ...], as_json: bool) -> None:
    """Say what is wrong with .meta.json files, wherever they lie."""
    found = [(name, lint_file(name)) for name in files]
    if as_json:
        rows = [{"file": name, "problems": [a.to_json() for a in rules]} for name, rules in found]
        emit_json(rows)
        return
    for name, rules in found:
        for anomaly in rules:
            click.echo(f"{name}: {anomaly.rule}: {anomaly.message}")
    if not any(rules for _, rules in found):
        click.echo("nothing wrong was found")


# -- the end ----------------------------------------------------------------------------------


@command.command()
@feature_argument
@click.option("--merge", is_flag=True, help="Merge the branch into the one checked out here.")
@click.option("--pr", is_flag=True, help="Push the branch and open a pull request.")
@click.option("--keep", is_flag=True, help="Leave branch and worktree as they are.")
@click.option("--abandon", is_flag=True, help="Give it up; the branch stays.")
@click.option("--force", is_flag=True, help="Also with unfinished tasks, or phases that Rondel did not do.")
@click.option("--reason", default="", help="Why it is abandoned.")
def finish(feature: str | None, force: bool, reason: str, **ways: bool) -> None:
    """End a feature: merge it, hand it over, keep it, or give it up."""
    way = _only_one(ways)
    project = project_of_features()
    ref, state = find(project, feature)
    if state.ended and FINISH not in state.foreign:
        raise NothingToDo(f"{ref.name} is {word(state.meta, 'status')} already")
    if way is None and sys.stdin.isatty():
        way = click.prompt("how", type=click.Choice([w.value for w in Way]), err=True)
    if way is None:
        say(f"{ref.name} waits for a decision: give --merge, --pr, --keep or --abandon")
        sys.exit(WAITS)
    with project.hold(ref):
        now: State = project.state(ref)  # another command may have gone on while this one asked
        if now.ended and FINISH not in now.foreign:
            raise NothingToDo(f"{ref.name} is {word(now.meta, 'status')} already")
        try:
            for line in end_feature(project, ref, now, Way(way), force=force, reason=reason):
                click.echo(line)
        except GitError as e:
            why = ("--reason", reason) if reason else ()
            again = command_line(
                "feature", FINISH, ref.id, f"--{way}", *(("--force",) if force else ()), *why
            )
            raise GitError(str(e), then=e.then or again) from e


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
    project: Project, ref: SessionRef, state: State, way: Way, *, force: bool, reason: str
) -> Iterator[str]:
    """End a feature; gives what was done, a line each. Again after a kill, it does the rest.

    Nothing is changed before everything that stands in the way is out of it.
    """
    for done in project.workspaces().restore():
        yield done.words
    stored = word(state.meta, "worktree")
    worktree = place.resolve(str(project.root), stored) if stored else ""
    ours = bool(worktree) and worktrees.is_ours(project.look, worktree)
    _check(project, state, way, worktree if ours else "", force=force)
    if way in (Way.MERGE, Way.PR):
        yield from project.see_branch(ref)
    elif way is Way.KEEP:
        project.check_branch(ref)
    if way is Way.MERGE:
        yield _merge(project, state)
        yield from _unsigned(project)
    elif way is Way.PR:
        yield _pull_request(project, state)
    if ours and way is not Way.KEEP:
        worktrees.remove(project.look, worktree)
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
        names = worktrees.dirty(project.look, path, untracked=untracked)
        if names:
            option = " --include-untracked" if untracked else ""
            put = f"git -C {shlex.quote(path)} stash push{option} -- {shlex.join(names[:TYPED_MAX])}"
            raise RondelError(
                f"uncommitted work in {path}: {_some(names)}; commit it, or put it aside: {put}"
            )


def _is_checkout(project: Project, path: str) -> bool:
    return bool(project.look.git_in(path, "rev-parse", "--git-dir", check=False).strip())


def _some(names: list[str]) -> str:
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
        merged = project.workspaces().merge(branch, here, words)
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
