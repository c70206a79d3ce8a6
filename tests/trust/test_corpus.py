"""Every hostile repository of the corpus, and every command that a person may type first in it.

`make test` takes what was once seen to go wrong, and a share of the rest that is another one with
each commit; `make sweep` takes all.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from corpus import CASES, Case
from forked import Forked, leaves
from hostile import COMMANDS, ELSEWHERE, Wrong, check, listening

from rondel.cli.main import root
from rondel.sandbox.box import holds
from support.kills import commit_number

SHARE = 12  # pairs of a usual run
CASES_MIN = 60
SEEN = (  # each of these did harm once
    ("review_pins_are_options", "review"),
    ("review_spool_is_a_link", "resume"),
    ("settings_pass_env", "review"),
    ("settings_base_url", "review|--quick|--json"),
    ("settings_path", "agents"),
    ("settings_vendor_command", "cycle|start|Do it"),
    ("settings_trust_commands", "task|run"),
    ("profile_named_like_a_shipped_one", "generate|init|python-service|*"),
    ("attributes_filter", "review"),
    ("forged_decisions", "generate|run|--auto"),
)
ALL = [(case, words) for case in CASES.values() for words in COMMANDS]


def _is(pair: tuple[Case, tuple[str, ...]], names: tuple[str, str]) -> bool:
    return fnmatchcase(pair[0].name, names[0]) and fnmatchcase("|".join(pair[1]), names[1])


def _pairs() -> list[tuple[Case, tuple[str, ...]]]:
    if os.environ.get("RONDEL_SWEEP"):
        return ALL
    seen = [pair for pair in ALL if any(_is(pair, names) for names in SEEN)]
    first, step = commit_number() % len(ALL), len(ALL) // SHARE + 1
    return seen + [ALL[(first + n * step) % len(ALL)] for n in range(SHARE)]


@pytest.fixture(scope="module")
def listener():
    with listening() as found:
        yield found


@pytest.fixture(scope="module")
def forked():
    found = Forked()
    yield found
    found.close()


def _by_case() -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for case, words in dict.fromkeys(_pairs()):
        found.setdefault(case.name, []).append(words)
    return found


@pytest.mark.sweep
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("name", "commands"), _by_case().items(), ids=_by_case())
def test_nothing_of_a_hostile_repository_gets_its_way(tmp_path: Path, listener, forked, name, commands):
    first = commit_number() % len(commands)  # which is typed for real is another one with each commit
    check(CASES[name], commands[first:] + commands[:first], tmp_path / "site", listener, forked=forked)


def test_the_corpus_is_as_large_as_promised():
    assert len(CASES) >= CASES_MIN
    assert all(any(_is(pair, names) for pair in ALL) for names in SEEN)


def test_every_command_that_there_is_is_typed():
    typed = {words[:n] for words in COMMANDS for n in range(1, len(words) + 1)}
    assert [words for words in leaves(root) if words not in typed and words[0] not in ELSEWHERE] == []


@pytest.mark.parametrize("sandbox", ["none", "auto"])
@pytest.mark.parametrize(
    ("name", "words"),
    [("settings_agent", ("review",)), ("profile_of_its_own", ("generate", "init", "evil"))],
    ids=["agent", "profile"],
)
def test_whoever_says_yes_to_everything_is_harmed(tmp_path, listener, name, words, sandbox):
    """The corpus bites, also where it is confined: what keeps it from doing so is that nobody said yes."""
    yes = {"RONDEL_TRUST": "all", "RONDEL_SANDBOX": sandbox}
    with pytest.raises(Wrong, match="outside/ran was made"):
        check(CASES[name], [words], tmp_path / "site", listener, yes)


@pytest.mark.skipif(not holds(), reason="this kernel has no Landlock to hold anything")
def test_the_sandbox_holds_an_agent_that_they_said_yes_to(tmp_path, listener):
    """It complains that it may not write outside, which is all that there is to say about it."""
    yes = {"RONDEL_TRUST": "all"}
    with pytest.raises(Wrong, match="Permission denied") as found:
        check(CASES["settings_agent"], [("review",)], tmp_path / "site", listener, yes, hides_marks=True)
    assert "was made" not in str(found.value)
