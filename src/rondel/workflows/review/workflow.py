"""The workflow `review` under the names of the contract, and a session in short: status, problems, next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from rondel.model.changes import Change
from rondel.model.codec import request_file, requests_in
from rondel.model.consent import HARMLESS, LOWER, Mark, Rule, more_or_none
from rondel.model.identity import IDENTITY
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Conclusion, Problem, Status, Summary, command_line
from rondel.model.times import parse_time
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef, Started, Step, Workflow
from rondel.workflows.review import layout
from rondel.workflows.review.layout import Phase, junk_in, round_in
from rondel.workflows.review.read import ReviewState, phase_due
from rondel.workflows.review.report import conclusion, progress_of
from rondel.workflows.review.request import SETTINGS, ReviewOptions
from rondel.workflows.review.result import Made, made
from rondel.workflows.review.reviewing import ask_again
from rondel.workflows.review.steps import steps

if TYPE_CHECKING:
    import click

    from rondel.project import Project

ROUNDS_GUARDED = 3  # the one under way and those it carries on from
LOOKED_UP = (
    *("standards.json", "change.diff", "change.json", "since.json", "context.json"),
    *("aggregation.json", "quotes.json", "moved.json"),
)
STEPS = 7  # standards, change, context, aggregation, discourse, synthesis, final; and one per reviewer


class Review(Workflow[ReviewState]):
    """Several reviewers, discourse, one final review, round after round."""

    name: ClassVar[str] = "review"
    order: ClassVar[int] = 1
    options: ClassVar[type[ReviewOptions]] = ReviewOptions
    goes_without: ClassVar[bool] = True  # whoever is at hand can review
    fallback: ClassVar[str] = "checks"
    programs: ClassVar[Mapping[str, str]] = {
        "gh": "`rondel review post` and reviews of pull requests need it"
    }
    own_paths: ClassVar[tuple[str, ...]] = (f"{layout.SESSIONS}/**",)

    @override
    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        """Every folder of reviews that ever got an artifact."""
        for name in sorted(n[:-1] for n in repo.names(layout.SESSIONS) if n.endswith("/")):
            folder = f"{layout.SESSIONS}/{name}"
            if layout.day_of(name) and _has_artifact(repo, folder):
                yield SessionRef(self.name, name, folder)

    @override
    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> ReviewState:
        return ReviewState(ref, files, given)

    @override
    def steps(self, state: ReviewState) -> Iterable[Step[ReviewState]]:
        return steps(state)

    @override
    def control(self, state: ReviewState, word: str, at: datetime) -> Sequence[Change]:
        """To try again is to ask the reviewers who did not answer, when too few did."""
        return ask_again(state) if word == "retry" else ()

    @override
    def documents(self, state: ReviewState) -> Iterable[str]:
        """`state.json`, and what the last rounds came to: the next one carries on from it."""
        last = list(state.round_folders.items())[-ROUNDS_GUARDED:]
        return (layout.STATE, *(round_in(state.files, *found).files.meta for found in last))

    @override
    def frozen(self, state: ReviewState) -> Iterable[str]:
        """The complete rounds."""
        for found in state.rounds:
            if found.complete:
                yield found.files.folder
                yield found.files.part("").rstrip("/")

    @override
    def looked_up(self, state: ReviewState) -> Iterable[str]:
        """What was seen of the change in the round under way, and what follows from that without asking.

        The commits stay that it is pinned to: which ones a branch would mean here is another question.
        Whether the change has moved on since is looked up again.
        """
        if state.is_flat or state.is_complete or state.is_closed:
            return
        for name in LOOKED_UP:
            yield state.at.part(name)

    @override
    def details(self, state: ReviewState, at: datetime) -> Sequence[str]:
        """The phases, the reviewers in this round and the time of this round."""
        return progress_of(state, at).lines()

    @override
    def artifact(self, state: ReviewState, number: int | None) -> str | None:
        """The final review of a round, or of the last complete one."""
        done = [r for r in state.rounds if r.complete and number in (None, r.number)]
        if done:
            return done[-1].files.final
        return "final.md" if state.is_flat and state.files.exists("final.md") else None

    @override
    def judges(self, state: ReviewState) -> tuple[str, str] | None:
        """A diff in a file has no base."""
        pins = state.pins
        return None if pins is None or state.is_given else (pins.base, pins.head)

    @override
    def settings(self) -> Mapping[str, object]:
        return SETTINGS

    @override
    def rules(self) -> Mapping[str, Rule]:
        return {
            "team": Rule(Mark.HARMLESS, yields=True),
            "context": HARMLESS,
            "prompt_max": LOWER,
            "refuters_max": LOWER,
            "rounds_max": Rule(Mark.STRICTER, more_or_none),
        }

    @override
    def start(self, project: Project, options: ReviewOptions) -> Started:
        from rondel.workflows.review.files import start

        return start(project, options)

    @override
    def commands(self) -> click.Group:
        from rondel.workflows.review.commands import command

        return command

    @override
    def summary(self, state: ReviewState) -> Summary:
        """A session in short."""
        phase = phase_due(state)
        problems = tuple(problems_in(state))
        status, waiting_for = _status(state)
        if status is Status.FAILED and reviews_are_gone(state):
            problems = (*problems, _gone(state))
        done, total = _progress(state, phase)
        document = state.document or {}
        return Summary(
            title=state.branch or state.ref.id,
            status=status,
            phase="flat" if state.is_flat else phase.value,
            done=done,
            total=total,
            waiting_for=waiting_for,
            updated_at=_updated(document),
            problems=problems,
            next=_next(state),
            foreign=_foreign(state),
        )

    @override
    def conclusion(self, state: ReviewState) -> Conclusion:
        return conclusion(state)

    @override
    def document(self, state: ReviewState) -> dict[str, object]:
        """`state.json` after reconciliation, and what follows from the files."""
        return document_of(state, phase_due(state))


def _has_artifact(repo: Snapshot, folder: str) -> bool:
    """Whether anybody ever left anything there; a folder or a bare state.json is no session."""
    names = repo.names(folder)
    if f"{layout.ROUNDS}/" in names and repo.names(f"{folder}/{layout.ROUNDS}"):
        return True
    if any(not name.startswith(".") for name in names - {layout.STATE, f"{layout.ROUNDS}/"}):
        return True
    return any(name.startswith("request-") for name in repo.names(f"{folder}/{layout.RONDEL}"))


def _status(state: ReviewState) -> tuple[Status, str | None]:
    if state.is_flat or state.is_complete:
        return Status.COMPLETED, None
    if state.is_closed:
        return Status.CANCELLED, None
    if state.lacks_quorum and state.has_part("context.json"):
        return Status.FAILED, quorum_words(state)
    if reviews_are_gone(state):
        return Status.FAILED, "the reviews were under way, and none is there"
    return Status.ACTIVE, None


def _foreign(state: ReviewState) -> tuple[str, ...]:
    """The final review that is shown and that Rondel did not make."""
    if state.is_flat:
        return ("final.md",) if state.files.exists("final.md") else ()
    return (state.at.final,) if state.is_complete and state.made is not Made.HERE else ()


def _gone(state: ReviewState) -> Problem:
    return Problem(
        "reviews-empty",
        state.at.reviews,
        "state.json says the reviews are under way, but there is none",
        f"`{command_line('resume', state.ref.name)}` asks the reviewers again",
        when_idle=True,
    )


def _progress(state: ReviewState, phase: Phase) -> tuple[int, int]:
    if state.is_flat:
        return 0, 0
    if phase is Phase.COMPLETE:
        total = STEPS + len(state.reviewed)
        return total, total
    team = len(state.attendance.team)
    before = phase.number - 1 - (phase.number > Phase.REVIEWS.number)  # the reviews are counted one by one
    return before + team - len(state.asked), STEPS + team


def _updated(document: Mapping[str, object]) -> datetime | None:
    return parse_time(document.get("updated_at")) or parse_time(document.get("started_at"))


def _next(state: ReviewState) -> str:
    if state.is_flat or state.is_closed:
        return command_line("review")
    if state.is_complete:
        return command_line("review", "show", "--session", state.ref.id)
    return command_line("resume", state.ref.name)


def document_of(state: ReviewState, phase: Phase) -> dict[str, object]:
    """`state.json` after reconciliation, and what follows from the files."""
    said = dict(state.document or {})
    resolution = state.resolution
    return {
        **said,
        "session_id": said.get("session_id") or state.ref.id,
        "status": "closed" if state.is_closed else "active",
        "current_phase": phase.value,
        "phase_number": phase.number,
        "current_round": state.at.number,
        "started_at": said.get("started_at"),
        "updated_at": said.get("updated_at"),
        "branch": state.branch,
        "flat": state.is_flat,
        "rounds": [
            {
                "round": r.number,
                "folder": r.files.folder,
                "complete": r.complete,
                "reviewers": reviewers_in(state.files, r.files.reviews),
                "discourse": state.files.exists(r.files.discourse),
                "made_by_rondel": made(state.files, r.files) is Made.HERE if r.complete else None,
            }
            for r in state.rounds
        ],
        "next": {"round": resolution.current_round, "new_round": resolution.new_round},
        "requests": len(requests_in(state.files)),
    }


def reviewers_in(files: Snapshot, folder: str) -> list[str]:
    """Who reviewed in a round."""
    return sorted(name.removesuffix(".md") for name in files.names(folder) if name.endswith(".md"))


def problems_in(state: ReviewState) -> Iterator[Problem]:
    """What the files show and should not."""
    if state.is_flat:
        yield Problem(
            "flat-session",
            "reviews/",
            "an old session without rounds; it is shown as such and left alone",
            "run `rondel review` for a new one; delete the folder when you do not need it",
        )
        return
    yield from _in_state_json(state)
    for name in junk_in(state.files, state.round_folders.values()):
        path, message = f"{layout.ROUNDS}/{name}", "it is not a round's folder and not counted"
        yield Problem("not-a-round", path, message, "move it away")
    yield from _in_meta(state)
    if not state.is_complete and state.lacks_quorum:
        repair = f"`{command_line('resume', state.ref.name)}` asks those who are missing"
        yield Problem("no-quorum", state.at.reviews, quorum_words(state), repair)


def _in_meta(state: ReviewState) -> Iterator[Problem]:
    """Where what the last complete round came to cannot be read."""
    last = state.last_complete()
    if last is None or not state.files.exists(last.files.meta):
        return
    if not isinstance(state.files.json(last.files.meta), dict):
        words = "it is not a JSON object: findings are those of final.md, and nothing says who made the round"
        again = command_line("review", "--again")
        repair = f"put back what git or an editor has of it, or `{again}` reviews the same change once more"
        yield Problem("meta-damaged", last.files.meta, words, repair, loud=True)


def _in_state_json(state: ReviewState) -> Iterator[Problem]:
    """Where `state.json` cannot be read, or says something else than the files."""
    document, number = state.document, state.at.number
    if document is None:
        damaged = state.files.exists(layout.STATE)
        if not damaged and state.files.exists(request_file(1)) and not state.files.exists(IDENTITY):
            return  # its start was cut off, and nothing has run yet
        yield Problem(
            "state-damaged" if damaged else "state-missing",
            layout.STATE,
            "it is not a JSON object" if damaged else "it is not there",
            "everything is taken from the files; the next run writes it anew",
        )
        return
    said, phase = document.get("current_round"), document.get("current_phase")
    if state.round and said != number:
        yield Problem(
            "round-missing" if said not in [*state.round_folders] else "round-behind",
            layout.STATE,
            f"current_round is {said!r}; the last round there is {number}",
            f"round {number} is used; the next run corrects it",
        )
    elif state.is_complete and phase != Phase.COMPLETE:
        yield Problem(
            "round-complete",
            layout.STATE,
            f"current_phase is {phase!r}, but {state.at.final} is there",
            "the round counts as complete; the next run corrects it",
        )


def quorum_words(state: ReviewState) -> str:
    """Why there is no verdict."""
    answered, team = state.attendance.answered, state.attendance.team
    alike: dict[str, list[str]] = {}
    for name, why in state.attendance.missing.items():
        alike.setdefault(why, []).append(name)
    missing = "; ".join(f"{', '.join(names)}: {why}" for why, names in alike.items())
    return f"only {len(answered)} of {len(team)} reviewers answered, so there is no verdict ({missing})"


def reviews_are_gone(state: ReviewState) -> bool:
    """Whether `state.json` says the reviews are under way and none is there: an error when nobody works."""
    said = (state.document or {}).get("current_phase")
    return said == Phase.REVIEWS and not state.is_complete and not state.reviewed and not state.is_flat
