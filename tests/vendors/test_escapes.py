"""The list of escapes, tried by each vendor's real CLI as it is really started: through its own shell."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from rondel.model.actions import Access
from rondel.model.outcomes import Ended
from rondel.sandbox import namespaces
from rondel.sandbox.box import Box, holds, own_places
from sandbox.world import INSIDE, Outside, confined, make_world, tried_in

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not holds(), reason="this kernel has no Landlock to hold anything"),
]
OWN = {"codex": {"the login of another vendor"}}  # what is a secret for the others is its own login
STARTED = {"an open file that the driver left", "a signal to the reaper"}  # between it and us is the CLI


@pytest.mark.parametrize("network", ["all"] if namespaces.missing() else ["all", "vendor"])
def test_no_escape_succeeds_from_the_shell_of_a_real_cli(rig, tmp_path, monkeypatch, network):
    world = make_world(tmp_path / "world")
    rig.home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", world["home"])
    cwd = Path(world["cwd"])
    names = sorted(set(tried_in(network)) - OWN.get(rig.kind, set()) - STARTED)
    with Outside() as outside:
        (cwd / "told.json").write_text(json.dumps({"world": world | outside, "names": names}))
        words = [sys.executable, str(INSIDE), "told.json"]
        command = f"{shlex.join(words)} > got.json"
        tools = (str(INSIDE.parent), sys.prefix, sys.base_prefix)
        hosts = confined(world | outside, network).box.hosts
        hidden = (world["repo"], str(cwd.parent), *own_places())
        box = Box(read=tools, hidden=hidden, network=network, hosts=hosts)
        reply = rig.ask(
            [{"tools": [{"shell": {"command": command}}]}, "Done."],
            request=rig.request(cwd=cwd, access=Access.WRITE, box=box),
            options={"shell": ["*"]},
        )
    assert (reply.ended, reply.text, reply.tampered) == (Ended.DONE, "Done.", ""), reply.error
    assert json.loads((cwd / "got.json").read_text().splitlines()[-1]) == {}


def test_what_decides_how_a_cli_behaves_is_put_back(rig):
    """Through its own shell an agent writes a setting for tomorrow; it is gone, and said."""
    watched = next(p for p in rig.agent("it").watches().paths if p.suffix == ".md")
    place = f"__import__('pathlib').Path({str(watched)!r})"
    write = f"p = {place}; p.parent.mkdir(exist_ok=True); p.write_text('owned')"
    command = f"/usr/bin/python3 -c {shlex.quote(write)}"
    reply = rig.ask([{"tools": [{"shell": {"command": command}}]}, "Done."], options={"shell": ["*"]})
    assert reply.ended is Ended.DONE, reply.error
    assert f"{watched} was added (undone" in reply.tampered
    assert reply.tampered.count("undone") == 1
    assert not watched.exists()
    kept = "".join(p.read_text() for p in (rig.request().spool / "changed").iterdir())
    assert "owned" in kept
