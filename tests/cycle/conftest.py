import sys
from pathlib import Path

import pytest

from rondel.store import disk

sys.path.insert(0, str(Path(__file__).parent))


class HastyDisk(disk.Disk):
    """The real disk without waiting for it: no test here turns the power off."""

    def sync(self, fd: int, path: str) -> None:
        disk.point("sync", path)

    def sync_folder(self, path: str) -> None:
        disk.point("sync-folder", path)


@pytest.fixture(autouse=True)
def hasty_disk(monkeypatch):
    monkeypatch.setattr(disk, "current", HastyDisk())
