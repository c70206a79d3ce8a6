"""The vendors' CLIs at pinned versions, in a cache: `python tests/vendors/install.py [NAME …]`.

Without names it installs those of RONDEL_VENDORS, by default claude and codex. The cache is
RONDEL_CACHE, by default `.cache/agents` of this repository. An installation is made aside,
asked for its version, and appears whole or not at all. Where it comes from is what pip and
npm are configured with.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ALL = ("claude", "codex", "gemini", "opencode")
EVERY_RUN = "claude,codex"
STAMP = "installed"
INSTALL_S = 900
VERSION_S = 60


class NotInstalled(Exception):
    """A CLI that could not be installed, and why."""


def pins() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((HERE / "pins.toml").read_text())


def cache() -> Path:
    return Path(os.environ.get("RONDEL_CACHE") or HERE.parent.parent / ".cache/agents").absolute()


def selected() -> tuple[str, ...]:
    """The vendors this run is about."""
    names = os.environ.get("RONDEL_VENDORS", EVERY_RUN).replace(",", " ").split()
    unknown = sorted(set(names) - set(ALL))
    if unknown:
        raise SystemExit(f"RONDEL_VENDORS: no vendor {', '.join(unknown)}; there are: {', '.join(ALL)}")
    return tuple(name for name in ALL if name in names)


def folder(name: str) -> Path:
    pin = json.dumps(pins()[name], sort_keys=True)
    return cache() / f"{name}-{hashlib.sha256(pin.encode()).hexdigest()[:12]}"


def binary(name: str) -> Path | None:
    """The installed program; None when it is not there."""
    place = folder(name)
    return place / pins()[name]["binary"] if (place / STAMP).is_file() else None


def install(name: str) -> Path:
    """The program, installed now if it was not."""
    with _lock(name):
        found = binary(name)
        if found is not None:
            return found
        shutil.rmtree(folder(name), ignore_errors=True)
        aside = Path(tempfile.mkdtemp(dir=cache(), prefix=f".{name}-"))
        try:
            _fetch(pins()[name], aside)
            version = _check(pins()[name], aside)
            (aside / STAMP).write_text(version + "\n")
            aside.chmod(0o755)
            aside.rename(folder(name))
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return folder(name) / pins()[name]["binary"]


@contextmanager
def _lock(name: str) -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f".{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _fetch(pin: Mapping[str, str], aside: Path) -> None:
    if "npm" in pin:
        _run(
            "npm",
            "install",
            "--prefix",
            str(aside),
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            pin["npm"],
        )
        return
    wheels = aside / ".wheel"
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
    _run(*pip, "--only-binary", ":all:", "--dest", str(wheels), pin["wheel"])
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(aside)
            for item in archive.infolist():
                mode = item.external_attr >> 16
                if mode & 0o111:
                    (aside / item.filename).chmod(0o755)
    shutil.rmtree(wheels)


def _check(pin: Mapping[str, str], aside: Path) -> str:
    """Ask for the version: a package manager may quietly give another one than it was asked for."""
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home}
        done = _run(str(aside / pin["binary"]), "--version", env=env, seconds=VERSION_S)
    if pin["says"] not in done:
        raise NotInstalled(f"--version says {done.strip()!r}, not {pin['says']}")
    return done.strip()


def _run(*argv: str, env: Mapping[str, str] | None = None, seconds: float = INSTALL_S) -> str:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=env,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise NotInstalled(f"{argv[0]}: {e}") from e
    if done.returncode != 0:
        raise NotInstalled(
            f"{Path(argv[0]).name} exited with {done.returncode}: {done.stderr.strip()[-500:]}"
        )
    return done.stdout


def main(names: list[str]) -> None:
    for name in names or selected():
        if name not in ALL:
            raise SystemExit(f"no vendor {name!r}; there are: {', '.join(ALL)}")
        try:
            print(f"{name}: {install(name)}", flush=True)
        except NotInstalled as e:
            print(
                f"\n{'!' * 70}\n{name} COULD NOT BE INSTALLED; its tests will not run\n{e}\n{'!' * 70}\n",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
