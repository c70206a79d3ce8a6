import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agents_support import alive, new_tag


@pytest.fixture
def tag():
    """A mark for the environment of children; whoever carries it at the end was left behind."""
    mark = new_tag()
    yield mark
    assert alive(mark) == []
