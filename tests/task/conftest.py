import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from task_support import settle_in


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    settle_in(home, monkeypatch)
    return home
