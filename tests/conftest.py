"""What every test may use: the scripted model server, and a report of what was not run."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("support", "rondel.testing")
# A clock says nothing on a machine that others use, too.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

from modelserver import FakeModel  # noqa: E402 - after the rewriting is asked for
from support import follow  # noqa: E402
from support.children import alive, new_tag  # noqa: E402
from support.person import YES  # noqa: E402

NOT_RUN = "vendor not run"


@pytest.fixture(scope="session", autouse=True)
def _where_tests_work(tmp_path_factory):
    """What a command says comes next is typed below this folder only."""
    follow.base = tmp_path_factory.getbasetemp().resolve()


@pytest.fixture(scope="session", autouse=True)
def _person_who_said_yes(tmp_path_factory):
    """Tests write the settings that they use: nobody has to be asked. Their state folder is their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        for name, value in YES.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def model_server():
    """A scripted model on loopback for this test: `model_server.script(name, steps)` gives its URL."""
    with FakeModel() as model:
        yield model


@pytest.fixture
def tag():
    """A mark for the environment of children; whoever carries it at the end was left behind."""
    mark = new_tag()
    yield mark
    assert alive(mark) == []


def pytest_collection_modifyitems(items):
    """A whole sweep takes as long as it takes."""
    for item in items if os.environ.get("RONDEL_SWEEP") else ():
        if item.get_closest_marker("sweep"):
            item.add_marker(pytest.mark.timeout(14_400))


def pytest_terminal_summary(terminalreporter):
    """A real CLI that was not driven is said loudly, not hidden among the skipped."""
    reasons = set()
    for report in terminalreporter.stats.get("skipped", ()):
        text = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _, found, reason = text.partition(f"{NOT_RUN}: ")
        if found:
            reasons.add(reason)
    if reasons:
        terminalreporter.write_sep("!", "NOT RUN: real vendors' CLIs", red=True, bold=True)
        for reason in sorted(reasons):
            terminalreporter.write_line(f"  {reason}")
