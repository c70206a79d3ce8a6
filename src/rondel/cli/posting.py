"""Posting a round to GitHub through `gh`: the pull request, what is there already, what is sent."""

from __future__ import annotations

import click

from rondel.api import Hall
from rondel.cli.common import say
from rondel.errors import RondelError
from rondel.workflows.review.layout import RoundFiles
from rondel.workflows.review.publish import (
    WHO_CALL,
    PullRequest,
    bodies_in,
    describe,
    parse_pull_request,
    plan_post,
    posted_in,
    reading_calls,
)
from rondel.workflows.review.read import ReviewState, change_in, entries_of
from rondel.workflows.review.target import pins_of


def post_round(hall: Hall, state: ReviewState, at: RoundFiles, pr: int | None, *, dry_run: bool) -> None:
    """Send a round, unless it is there, and say so; with `dry_run` print what would be sent."""
    pins = pins_of(state.files.json(at.part("target.json")))
    where, bodies = _pull_request(hall, pr or (pins.number if pins else 0) or None, dry_run=dry_run)
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
        _gh(hall, call.argv, call.stdin)
        say(f"posted {call.what}")


def _pull_request(hall: Hall, number: int | None, *, dry_run: bool) -> tuple[PullRequest, list[str]]:
    """The pull request, and what is there. A dry run without gh shows what would be sent to an empty one."""
    try:
        asked = ("gh", "pr", "view", *([str(number)] if number else []), "--json", "number,headRefOid")
        shown = parse_pull_request(_gh(hall, asked))
        where = PullRequest(*shown)
        author = _gh(hall, WHO_CALL).strip()
        bodies = [b for argv in reading_calls(where.number) for b in bodies_in(_gh(hall, argv), author)]
    except RondelError as e:
        if not dry_run:
            raise
        say(f"what is there already is not known: {e}")
        return PullRequest(number or 0, _head(hall)), []
    return where, bodies


def _head(hall: Hall) -> str:
    """The commit that would be shown if everything were pushed."""
    return hall.look.git("rev-parse", "HEAD", check=False).strip()


def _gh(hall: Hall, argv: tuple[str, ...], stdin: str = "") -> str:
    status, out, err = hall.look.run(argv, stdin=stdin, timeout_s=120)
    if status:
        raise RondelError(f"{' '.join(argv[:4])} failed: {err.strip()[-500:] or f'status {status}'}")
    return out
