"""`rondel review` and its commands."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from rondel.cli.common import (
    agents_option,
    ask_consent,
    conclude,
    console,
    drive,
    emit,
    fail_option,
    find_project,
    json_option,
    print_markdown,
    say,
    say_foreign,
    wait_option,
)
from rondel.cli.screen import table
from rondel.errors import RondelError, UsageError
from rondel.model.changes import Document, text
from rondel.model.times import stamp
from rondel.project import Project
from rondel.workflows.review import files
from rondel.workflows.review.dialects import parse_review
from rondel.workflows.review.judge import GROUPS, Comparison, compare_rounds
from rondel.workflows.review.layout import DECISIONS, RoundFiles
from rondel.workflows.review.publish import (
    WHO_CALL,
    PullRequest,
    bodies_in,
    describe,
    parse_pull_request,
    plan_post,
    posted_in,
    reading_calls,
    to_sarif,
)
from rondel.workflows.review.read import ReviewState, change_in, entries_of
from rondel.workflows.review.report import place_of, progress_of
from rondel.workflows.review.result import Entry, Made, made
from rondel.workflows.review.target import branch_of, pins_of

session_option = click.option(
    "--session", help="Any unique part of its name; else the newest of this branch."
)
round_option = click.option(
    "--round", "number", type=click.IntRange(min=1), help="Else the last complete one."
)


class _StartContext(click.Context):
    """Of what `rondel review` itself does: its messages do not name a command that nobody typed."""

    @property
    def command_path(self) -> str:
        """That of the group around it."""
        return self.parent.command_path if self.parent else super().command_path


class _Start(click.Command):
    context_class = _StartContext


class ReviewCommands(click.Group):
    """`rondel review TARGET` starts a review; `rondel review show` and the like are commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Whatever is no command is a review to start."""
        if args[:1] not in (["--help"], ["-h"]) and (not args or args[0] not in self.commands):
            args = ["start", *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help of starting, and the other commands."""
        start_ = self.commands["start"]
        inner = click.Context(start_, info_name=ctx.info_name, parent=ctx.parent)
        start_.format_help(inner, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=ReviewCommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Review a change: several reviewers, discourse, one final review, round after round."""


@command.command(cls=_Start, hidden=True)
@click.argument("target", required=False)
@click.option("--pr", type=click.IntRange(min=1), help="A pull request, through gh.")
@click.option("--team", help="Who reviews: principal:2,quality:2,security:1.")
@click.option("--reviewer", "reviewers", multiple=True, help="A one-off reviewer, described in a sentence.")
@click.option("--requirements", type=click.Path(), help="What the change must do.")
@click.option("--quick", is_flag=True, help="Fewer reviewers, no discourse, no refuters.")
@click.option("--again", is_flag=True, help="A new round even though nothing changed.")
@click.option("--restart", is_flag=True, help="Put an unfinished round aside and begin it anew.")
@fail_option
@click.option("--sarif", type=click.Path(path_type=Path), help="Leave the findings as SARIF, too.")
@agents_option
@wait_option
@json_option
def start(
    fail: bool | None, sarif: Path | None, agents_max: int | None, wait: bool, as_json: bool, **asked: Any
) -> None:
    """Review a change and print the final review.

    TARGET is a range (HEAD~3..HEAD, main...feature), a revision to compare with, `staged`, or
    a diff in a file. Without one it is the branch since it left main, with its uncommitted
    work. An unfinished round is resumed; after a complete one comes the next.
    """
    project = find_project()
    ask_consent(project, "review")
    try:
        started = project.start("review", **asked)
    except UsageError as e:
        alike = get_close_matches(asked["target"] or "", set(command.commands) - {"start"}, n=1)
        if not alike:
            raise
        raise UsageError(f"{e}; or did you mean `rondel review {alike[0]}`?") from e
    for note in started.notes:
        say(note)
    report = drive(project, started, as_json=as_json, agents_max=agents_max, wait=wait)
    state: ReviewState = project.state(started.ref)
    if sarif and state.is_complete:
        _write_sarif(state, state.at, sarif)
    conclude(project, started.ref, report, as_json=as_json, fail=fail)


def _write_sarif(state: ReviewState, at: RoundFiles, path: Path) -> None:
    entries = [e for e in entries_of(state.files, at) if e.state.is_open]
    pins = pins_of(state.files.json(at.part("target.json")))
    log = to_sarif([e.finding for e in entries], commit=pins.head if pins else None)
    files.write_text(path, files.dump(log))
    say(f"{len(entries)} findings as SARIF in {path}")


# -- which session ---------------------------------------------------------------------------


def _session(project: Project, name: str | None, *, complete: bool = True) -> ReviewState:
    """The session that is meant: by name, or the newest of this branch."""
    if name:
        found: ReviewState = project.state(project.ref(name, "review"))
        return found
    branch = branch_of(project.look)
    newest = files.sessions_of(project.root, branch, project)
    for state in sorted(newest, key=lambda s: not project.is_known(s.ref)):  # one's own first, newest first
        if not complete or state.last_complete() or state.is_flat:
            mine: ReviewState = project.state(state.ref)
            return mine
    there = [r.name for r in project.sessions("review")]
    what = "complete review" if complete else "review"
    hint = (
        f"; other sessions (--session): {', '.join(there[:10])}" if there else "; `rondel review` starts one"
    )
    raise UsageError(f"there is no {what} of the branch {branch!r}{hint}")


def _round(state: ReviewState, number: int | None) -> RoundFiles:
    """A complete round, or the last one."""
    done = [r for r in state.rounds if r.complete]
    for found in reversed(done):
        if number in (None, found.number):
            return found.files
    which = f"complete round {number}" if number else "complete round"
    there = ", ".join(str(r.number) for r in done) or "none"
    raise UsageError(f"{state.ref.name} has no {which}; complete rounds: {there}")


# -- looking -----------------------------------------------------------------------------------


@command.command()
@round_option
@session_option
@click.option("--sarif", type=click.Path(path_type=Path), help="Leave the findings as SARIF instead.")
@json_option
def show(number: int | None, session: str | None, sarif: Path | None, as_json: bool) -> None:
    """Print the final review of the last complete round."""
    project = find_project()
    state = _session(project, session)
    say_foreign(project, state.ref)
    foreign = not project.is_known(state.ref)
    if state.is_flat and number is None and not sarif:
        final = state.files.text("final.md") or ""
        if as_json:
            emit({"flat": True, **_parsed(final), "session": state.ref.name, "foreign": foreign})
        else:
            print_markdown(final)
        return
    at = _round(state, number)
    if sarif:
        _write_sarif(state, at, sarif)
        return
    final = state.files.text(at.final) or ""
    by = made(state.files, at)
    if not as_json:
        print_markdown(final)
        if by is not Made.HERE:
            say(f"{at.final} is {by}")
        return
    meta = state.files.json(at.meta)
    body: dict[str, object] = dict(meta) if isinstance(meta, dict) else {"round": at.number, **_parsed(final)}
    body["made_by_rondel"] = by is Made.HERE
    body["findings"] = [e.document() for e in entries_of(state.files, at)]
    emit({**body, "session": state.ref.name, "foreign": foreign})


@command.command()
@click.argument("rounds", nargs=-1, type=click.IntRange(min=1))
@session_option
@json_option
def compare(rounds: tuple[int, ...], session: str | None, as_json: bool) -> None:
    """Show what is new, fixed, reopened and persisting between two rounds: the last two, or N and M."""
    if len(rounds) not in (0, 2):
        raise UsageError(f"compare takes two rounds or none, not {len(rounds)}: rondel review compare 1 2")
    project = find_project()
    state = _session(project, session)
    say_foreign(project, state.ref)
    first, second = rounds or (None, None)
    found = compare_rounds(state, first, second)
    if as_json:
        emit({"session": state.ref.name, "foreign": not project.is_known(state.ref), **found.document()})
        return
    print_comparison(state, found)


def print_comparison(state: ReviewState, found: Comparison) -> None:
    """Two rounds side by side, for a person."""
    rows = [
        (group, entry.finding.title, entry.finding.category.value, place_of(entry.finding), entry.reason)
        for group in GROUPS
        for entry in found.groups[group]
    ]
    if not rows:
        click.echo(f"{state.ref.name}: no findings in either round")
        return
    screen = console()
    title = f"{state.ref.name}: round {found.first} → {found.second}"
    screen.print(table(screen, ("", "finding", "category", "place", "why"), rows, title))


@command.command()
@click.option("--all", "every", is_flag=True, help="Of every branch.")
@json_option
def history(every: bool, as_json: bool) -> None:
    """List the rounds of this branch, newest first."""
    project = find_project()
    if every:
        refs = sorted(project.sessions("review"), key=lambda r: r.id, reverse=True)
        states = [project.state(ref) for ref in refs]
    else:
        states = files.sessions_of(project.root, branch_of(project.look), project)
    rows = [
        {**_row(state, r.files, r.complete), "foreign": foreign}
        for state in states
        for foreign in [not project.is_known(state.ref)]
        for r in reversed(state.rounds)
    ]
    if as_json:
        emit({"rounds": rows})
        return
    if not rows:
        say("no reviews of this branch yet; `rondel review` starts one")
        return
    screen = console()
    names = ("session", "round", "verdict", "blockers", "to fix", "suggestions", "reviewers")
    screen.print(table(screen, names, [_cells(row) for row in rows]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    verdict = row["verdict"] or ("unknown" if row["complete"] else "unfinished")
    verdict += " (foreign)" if row["foreign"] else ""
    verdict += " (not made by Rondel)" if row["made_by_rondel"] is False else ""
    counts = [str(row["counts"].get(k, "")) for k in ("blockers", "should_fix", "suggestions")]
    return row["session"], str(row["round"]), verdict, *counts, str(len(row["reviewers"]))


def _row(state: ReviewState, at: RoundFiles, complete: bool) -> dict[str, Any]:
    meta = state.files.json(at.meta)
    found = meta if isinstance(meta, dict) else {}
    parsed = _parsed(state.files.text(at.final) or "") if complete and not found else {}
    names = sorted(n.removesuffix(".md") for n in state.files.names(at.reviews) if n.endswith(".md"))
    return {
        "session": state.ref.name,
        "round": at.number,
        "complete": complete,
        "verdict": found.get("verdict") or parsed.get("verdict"),
        "counts": found.get("synthesis_counts") or parsed.get("counts") or {},
        "completed_at": found.get("completed_at"),
        "made_by_rondel": made(state.files, at) is Made.HERE if complete else None,
        "reviewers": names,
    }


@command.command()
@session_option
@json_option
def progress(session: str | None, as_json: bool) -> None:
    """Show the phases, the reviewers and the time of the round under way."""
    project = find_project()
    state = _session(project, session, complete=False)
    say_foreign(project, state.ref)
    found = progress_of(state, project.look.at)
    if as_json:
        emit({**found.document(), "foreign": not project.is_known(state.ref)})
        return
    click.echo("\n  ".join((found.session, *found.lines())))


@command.command()
@json_option
def resolve(as_json: bool) -> None:
    """Say what the next run would do, and write nothing."""
    project = find_project()
    ref, found = files.resolve(project.root, project.look, branch_of(project.look), project)
    foreign = ref in project.sessions("review") and not project.is_known(ref)
    if foreign:
        say_foreign(project, ref)
    if as_json:
        emit(
            {
                "session": ref.name,
                "foreign": foreign,
                "current_round": found.current_round,
                "new_round": found.new_round,
                "complete_rounds": list(found.complete_rounds),
            }
        )
        return
    how = "opens" if found.new_round else "resumes"
    click.echo(f"{ref.name}: the next run {how} round {found.current_round}")


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def parse(file: Path, as_json: bool) -> None:
    """Read a final review or a reviewer's file, of ours or of another tool."""
    found = _parsed(files.read_review(file))
    if as_json:
        emit(found)
        return
    counts: Any = found["counts"]
    listed = ", ".join(f"{counts[k]} {k.replace('_', ' ')}" for k in counts)
    click.echo(f"verdict: {found['verdict'] or 'none'}; {listed}")


def _parsed(content: str) -> dict[str, object]:
    found = parse_review(content)
    return {
        "verdict": found.verdict,
        "counts": dict(found.counts),
        "findings": [f.document() for f in found.findings],
    }


# -- changing ----------------------------------------------------------------------------------


@command.command()
@session_option
def close(session: str | None) -> None:
    """Close a session: nothing more is planned in it until it is reviewed again."""
    project = find_project()
    state = _session(project, session, complete=False)
    files.refuse_flat(state)
    with project.hold(state.ref):
        files.close(project.root, state.ref, stamp(project.look.at), project)
    say(f"{state.ref.name} is closed")


@command.command()
@click.argument("finding")
@click.option("--reason", default="", help="Why it may stay as it is.")
@session_option
def accept(finding: str, reason: str, session: str | None) -> None:
    """Accept a finding of the last complete round: it stays as it is and blocks no more."""
    project = find_project()
    state = _session(project, session)
    entry = _entry(state, finding)
    body: Document = {"answer": "accept", "by": "person", "at": stamp(project.look.at), "comment": reason}
    path = f"{DECISIONS}/accept-{entry.item.fingerprint}.json"
    project.change(state.ref, [text(path, files.dump(body))])
    say(f"accepted in {state.ref.name}: {entry.finding.title}; the next round says so")


def _entry(state: ReviewState, name: str) -> Entry:
    entries = [e for e in entries_of(state.files, _round(state, None)) if e.state.is_open]
    for entry in entries:
        if name in (entry.item.id, entry.item.fingerprint):
            return entry
    there = ", ".join(e.item.id for e in entries) or "none"
    raise UsageError(f"no open finding {name!r} in {state.ref.name}; there are: {there}")


@command.command()
@click.option("--pr", type=click.IntRange(min=1), help="The pull request; else the one of this branch.")
@click.option("--dry-run", is_flag=True, help="Print what would be sent.")
@click.option("--anyway", is_flag=True, help="Also one that Rondel did not make, or that was changed since.")
@round_option
@session_option
def post(pr: int | None, dry_run: bool, anyway: bool, number: int | None, session: str | None) -> None:
    """Post the final review to GitHub through gh, with comments on lines. Nothing is posted twice."""
    project = find_project()
    state = _session(project, session)
    if dry_run:
        say_foreign(project, state.ref)
    else:
        project.require_known(state.ref)
    at = _round(state, number)
    by = made(state.files, at)
    if by is not Made.HERE and not anyway:
        raise RondelError(
            f"{at.final} of {state.ref.name} is {by}, and so no review of Rondel's to post; "
            "`rondel review --again` makes one, --anyway posts it as it is"
        )
    post_round(project, state, at, pr, dry_run=dry_run)


def post_round(
    project: Project, state: ReviewState, at: RoundFiles, pr: int | None, *, dry_run: bool
) -> None:
    """Send a round, unless it is there, and say so; with `dry_run` print what would be sent."""
    pins = pins_of(state.files.json(at.part("target.json")))
    where, bodies = _pull_request(project, pr or (pins.number if pins else 0) or None, dry_run=dry_run)
    calls = plan_post(
        where,
        f"{state.ref.id}/round-{at.number}",
        state.files.text(at.final) or "",
        [e for e in entries_of(state.files, at) if e.state.is_open],
        change_in(state.files, at),
        pins.head if pins else "",
        posted_in(bodies),
    )
    if not calls:
        say(f"round {at.number} of {state.ref.name} is there already; nothing was sent")
    for call in calls:
        if dry_run:
            click.echo(describe(call))
            continue
        _gh(project, call.argv, call.stdin)
        say(f"posted {call.what}")


def _pull_request(project: Project, number: int | None, *, dry_run: bool) -> tuple[PullRequest, list[str]]:
    """The pull request, and what is there. A dry run without gh shows what would be sent to an empty one."""
    try:
        asked = ("gh", "pr", "view", *([str(number)] if number else []), "--json", "number,headRefOid")
        shown = parse_pull_request(_gh(project, asked))
        where = PullRequest(*shown)
        author = _gh(project, WHO_CALL).strip()
        bodies = [b for argv in reading_calls(where.number) for b in bodies_in(_gh(project, argv), author)]
    except RondelError as e:
        if not dry_run:
            raise
        say(f"what is there already is not known: {e}")
        return PullRequest(number or 0, _head(project)), []
    return where, bodies


def _head(project: Project) -> str:
    """The commit that would be shown if everything were pushed."""
    return project.look.git("rev-parse", "HEAD", check=False).strip()


def _gh(project: Project, argv: tuple[str, ...], stdin: str = "") -> str:
    status, out, err = project.look.run(argv, stdin=stdin, timeout_s=120)
    if status:
        raise RondelError(f"{' '.join(argv[:4])} failed: {err.strip()[-500:] or f'status {status}'}")
    return out
