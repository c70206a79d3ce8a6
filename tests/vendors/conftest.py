"""The real CLIs of the tests: installed, in quarantine, talking to the scripted model."""

from __future__ import annotations

import pytest

from modelserver import FakeModel
from vendors.install import ALL
from vendors.quarantine import no_network
from vendors.rig import Rig, program_or_skip


@pytest.fixture(scope="module")
def quarantined():
    with no_network() as cut_off:
        yield cut_off


@pytest.fixture(params=ALL)
def rig(request, quarantined, tmp_path):
    """Each vendor in turn; afterwards no process of it may be left."""
    program = program_or_skip(request.param)
    with FakeModel() as model:
        it = Rig(request.param, program, model, tmp_path, quarantined)
        yield it
        assert it.left_behind() == []
