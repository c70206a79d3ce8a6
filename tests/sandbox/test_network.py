"""A network that is closed: what is on the list is reached, the rest is refused and said, loopback works."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.agents.base import AgentSettings
from rondel.agents.command import CommandAgent
from rondel.agents.roster import build
from rondel.errors import RondelError
from rondel.processes import reaper
from rondel.processes.runner import clean_env, output
from rondel.repo.workspaces import Workspaces
from rondel.sandbox import box, landlock, namespaces, proxy
from rondel.sandbox.box import Box, Confined
from rondel.sandbox.hosts import Target, target
from sandbox.inside import _extended, _hello, _named
from sandbox.test_runs import everything, person, say  # noqa: F401 - a fixture
from sandbox.world import Network, ran
from support.cli import rondel
from support.outside import certificate, proxy_to, tls_before

needs_namespaces = pytest.mark.skipif(
    not box.holds() or bool(namespaces.missing()), reason=f"no namespaces here: {namespaces.missing()}"
)

FETCH = """
import socket, sys
def said(host, port, words=""):
    with socket.create_connection((host, port), timeout=10) as s:
        s.sendall(words.encode())
        data = b""
        while more := s.recv(1000):
            data += more
        return data.decode("latin-1")
"""
REQUEST = "GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"


def inside(cwd: Path, script: str, *, network: str, targets: tuple[Target, ...] = (), **env: str) -> str:
    """What a script printed in a network of its own."""
    confined = Confined(Box(network=network, hosts=targets), writes=True)
    return ran([sys.executable, "-c", FETCH + script], cwd, clean_env(env=env), confined)


@pytest.fixture
def cwd(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "cwd").mkdir()
    return tmp_path / "cwd"


@needs_namespaces
@pytest.mark.parametrize("network", ["none", "vendor"])
def test_loopback_works_inside(cwd, network):
    """A test that starts its own server and talks to it goes on as it did."""
    script = """
import threading
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.create_server((host, 0), family=family)
    threading.Thread(target=lambda: server.accept()[0].sendall(b"mine"), daemon=True).start()
    print(socket.create_connection((host, server.getsockname()[1])).recv(9))
server = socket.socket(socket.AF_UNIX)
server.bind("here.sock")
server.listen()
socket.socket(socket.AF_UNIX).connect("here.sock")
"""
    assert inside(cwd, script, network=network).split() == ["b'mine'", "b'mine'"]


@needs_namespaces
def test_a_port_of_the_machine_s_loopback_that_is_named_is_the_same_port_inside(cwd):
    with Network() as outside:
        for host in ("localhost", "127.0.0.1"):
            said = inside(
                cwd,
                f"print(said({host!r}, {outside['allowed']}, {REQUEST!r}.encode().decode('unicode_escape')))",
                network="vendor",
                targets=(Target(host, outside["allowed"]),),
            )
            assert "allowed" in said


@needs_namespaces
def test_what_is_on_the_list_is_reached_through_the_proxy(cwd):
    """In plain, by its URL, with the Host that the URL says; and in a tunnel."""
    with Network() as outside:
        place = f"localhost:{outside['allowed']}"
        script = f"""
import os
port = int(os.environ["http_proxy"].rpartition(":")[2])
print(said("127.0.0.1", port, "GET http://{place}/x?y HTTP/1.1\\r\\nHost: other\\r\\nProxy-A: b\\r\\n\\r\\n"))
place = "LOCALHOST.:{outside["allowed"]}"
print(said("127.0.0.1", port, f"CONNECT {{place}} HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n"))
"""
        said = inside(cwd, script, network="vendor", targets=(Target("localhost", outside["allowed"]),))
    assert f"allowed Host: {place} " in said
    assert "other" not in said
    assert said.count("allowed") == 2


@needs_namespaces
def test_tls_goes_to_the_host_that_it_is_for_through_the_person_s_own_proxy(cwd, tmp_path):
    """A name that only the company's proxy knows; of other names it is not even asked."""
    authority, asked = certificate(tmp_path, "model.test"), []
    script = """
import ssl, os, urllib.request
context = ssl.create_default_context(cafile="authority.pem")
for url in ("https://model.test/v1", "https://other.test/"):
    try:
        print(urllib.request.urlopen(url, context=context, timeout=20).read().decode())
    except OSError as e:
        print(e)
"""
    (cwd / "authority.pem").write_text(authority.read_text())
    with (
        Network() as outside,
        tls_before(outside["allowed"], authority) as tls,
        proxy_to({"model.test:443": tls}, asked) as company,
    ):
        targets = (target("model.test"),)
        said = inside(
            cwd, script, network="vendor", targets=targets, HTTPS_PROXY=f"http://u:p@127.0.0.1:{company}"
        )
    assert "allowed Host: model.test" in said
    assert "403 Forbidden" in said
    assert asked == ["model.test:443"]
    err = output(cwd.parent / "spool", "err")
    assert "rondel: the sandbox refused other.test:443; name it in [sandbox] hosts" in err


@needs_namespaces
def test_an_agent_s_reply_says_what_was_refused(cwd, tmp_path):
    from rondel.agents.base import Request  # noqa: PLC0415 - one test needs it

    ask = """exec 3<>/dev/tcp/127.0.0.1/${https_proxy##*:}
printf 'CONNECT evil.test:443 HTTP/1.1\\r\\n\\r\\n' >&3; head -c 9 <&3"""
    request = Request("?", "r", "s", "a", 1, cwd, tmp_path / "spool", tmp_path, box=Box(network="vendor"))
    hosts_of = {"MODEL_BASE_URL": "https://model.test/v1"}
    for status, word in ((0, "done"), (1, "failed")):
        command = (f"{ask}; echo answer; echo 'RONDEL_USAGE {{\"input_tokens\": 3}}' >&2; exit {status}",)
        agent = CommandAgent(AgentSettings("x", "command", command, env=hosts_of))
        reply = asyncio.run(agent.run(request, lambda _: None))
        assert reply.ended == word
        assert "the sandbox refused evil.test:443" in reply.refused
        assert ("evil.test:443" in reply.error) == (status == 1)
        assert reply.usage.input_tokens == 3


@needs_namespaces
def test_a_review_says_it_too(person):  # noqa: F811 - the fixture
    repo, env = person
    agent = Path(env["HOME"]) / "agents/agent.py"
    agent.write_text(
        agent.read_text() + "\nimport socket\n"
        "s = socket.create_connection(('127.0.0.1', int(os.environ['https_proxy'][-5:])))\n"
        "s.sendall(b'CONNECT evil.test:443 HTTP/1.1\\r\\n\\r\\n'); s.recv(100)\n"
    )
    say(env, '[sandbox]\nnetwork = "vendor"\nhosts = ["model.test"]\n')
    done = rondel(repo, env, "review", "--quick")
    assert "I looked at README.md" in everything(repo / ".ocr")
    assert "the sandbox refused evil.test:443; name it in [sandbox] hosts" in done.stderr + done.stdout


@needs_namespaces
@pytest.mark.parametrize("network", ["none", "vendor"])
def test_set_up_without_a_network_is_told_so(person, network):  # noqa: F811 - the fixture
    repo, env = person
    trees = Workspaces(repo, Path(env["HOME"]) / "trees", box=Box(hidden=(str(repo),), network=network))
    command = f"{sys.executable} -c \"import socket; socket.getaddrinfo('example.com', 443)\""
    with pytest.raises(RondelError, match=f'network = "{network}"'):
        trees.write("s", "a", "HEAD", setup=command)


def test_a_repository_opens_no_network(person):  # noqa: F811 - the fixture
    repo, env = person
    say(env, '[sandbox]\nnetwork = "none"\n')
    (repo / "rondel.toml").write_text('[sandbox]\nnetwork = "vendor"\nhosts = ["evil.test"]\n')
    said = rondel(repo, env | {"RONDEL_TRUST": "yes"}, "doctor").stdout
    assert "no network" in said


@needs_namespaces
def test_the_doctor_names_the_network(person):  # noqa: F811 - the fixture
    repo, env = person
    assert "shared memory of its own; the network is open" in rondel(repo, env, "doctor").stdout
    say(env, '[sandbox]\nnetwork = "vendor"\nhosts = ["*.example.com"]\n')
    assert "of the network, the vendor's hosts; reach *.example.com" in rondel(repo, env, "doctor").stdout


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('network = "off"', "network"),
        ('network = "none"\nmode = "none"', "needs a sandbox"),
        ('hosts = ["a.example"]', 'count with network = "vendor" only'),
        ('network = "vendor"\nhosts = ["https://a.example"]', "is no host"),
        ('network = "vendor"\nhosts = ["*"]', "is no host"),
        ('network = "vendor"\nhosts = ["a.*.example"]', "is no host"),
        ('network = "vendor"\nhosts = ["a.example:0"]', "is no host"),
        ('network = "vendor"\nhosts = ["localhost"]', "needs a port"),
    ],
)
def test_settings_that_mean_nothing_are_refused(person, settings, words):  # noqa: F811 - the fixture
    repo, env = person
    say(env, f"[sandbox]\n{settings}\n")
    done = rondel(repo, env, "review", "--quick")
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.parametrize("network", ["none", "vendor"])
def test_where_a_network_cannot_be_closed_nothing_runs(monkeypatch, network):
    monkeypatch.setattr(namespaces, "missing", lambda: "cannot make namespaces: not permitted")
    with pytest.raises(RondelError, match="this machine refuses that: cannot make namespaces: not permitted"):
        box.holds(network=network)
    assert "nothing is run" in box.held("auto", network)
    assert box.holds() == (landlock.version() >= landlock.NEEDED)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    with pytest.raises(RondelError, match="no Landlock"):
        box.holds(network=network)


@pytest.mark.skipif(not box.holds(), reason="this kernel has no Landlock to hold anything")
def test_where_there_are_no_namespaces_programs_run_as_they_did(cwd, monkeypatch):
    monkeypatch.setattr(namespaces, "missing", lambda: "cannot make namespaces: not permitted")
    assert inside(cwd, "print(1)", network="all") == "1\n"
    with pytest.raises(AssertionError):
        inside(cwd, "open('/dev/shm/x', 'w')", network="all")


@needs_namespaces
def test_a_child_that_cannot_enter_does_not_run(cwd):
    """There are no more namespaces to be had below this one: said, and nothing started."""
    limit = "echo 0 > /proc/sys/user/max_user_namespaces"
    script = f"""
import asyncio, sys
from pathlib import Path
from rondel.processes.runner import Child, clean_env, output, run
from rondel.sandbox.box import Box, Confined
child = Child(("touch", "{cwd}/ran"), Path("{cwd}"), clean_env(), Path("{cwd.parent}/spool"),
    confined=Confined(Box(network="none"), writes=True))
print(asyncio.run(run(child)).code, output(child.spool, "err"))
"""
    words = ["unshare", "-Ur", "sh", "-c", f'{limit} && exec "$@"', "sh", sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "127 cannot start 'touch'" in done.stdout
    assert "it cannot be confined: cannot make namespaces" in done.stdout
    assert "is it installed" not in done.stdout
    assert not (cwd / "ran").exists()


@needs_namespaces
def test_shared_memory_works_and_is_nobody_else_s(cwd):
    before = sorted(os.listdir("/dev/shm"))  # noqa: PTH208 - names
    script = """
import multiprocessing, multiprocessing.shared_memory as m, os
lock = multiprocessing.Lock()
memory = m.SharedMemory(create=True, size=100)
open("/dev/shm/left-behind", "w").close()
print(sorted(os.listdir("/dev/shm")) == sorted([memory.name, "left-behind"]), os.getuid())
memory.unlink()
"""
    assert inside(cwd, script, network="all") == f"True {os.getuid()}\n"
    assert sorted(os.listdir("/dev/shm")) == before  # noqa: PTH208 - names


@needs_namespaces
def test_shared_memory_has_a_bound(cwd):
    script = """
import os
found = os.statvfs("/dev/shm")
print(found.f_blocks * found.f_frsize, found.f_files)
"""
    size, files = map(int, inside(cwd, script, network="all").split())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < size <= min(memory // 4 + os.sysconf("SC_PAGE_SIZE"), 4 * 2**30)
    assert 0 < files <= 100_000


@needs_namespaces
def test_shared_memory_that_the_person_opened_is_the_machine_s(cwd):
    name = f"rondel-test-{os.getpid()}"
    confined = Confined(Box(write=("/dev/shm",)), writes=True)
    try:
        ran(["touch", f"/dev/shm/{name}"], cwd, clean_env(), confined)
        assert Path("/dev/shm", name).exists()
    finally:
        Path("/dev/shm", name).unlink(missing_ok=True)


@needs_namespaces
def test_a_socket_in_a_place_that_the_person_opened_is_reached(cwd):
    with Network() as outside:
        opened = str(Path(outside["by_path"]).parent)
        confined = Confined(Box(network="none", write=(opened,)), writes=True)
        connect = f"s.connect({outside['by_path']!r}); print(s.recv(9))"
        script = f"import socket; s = socket.socket(socket.AF_UNIX); {connect}"
        assert "outside" in ran([sys.executable, "-c", script], cwd, clean_env(), confined)


@needs_namespaces
@pytest.mark.parametrize("name", ["plain", "a b", " leading", "trailing ", "\u2003wide"])
def test_a_socket_of_somebody_outside_is_covered_whatever_its_name(cwd, name):
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as outside:
        outside.bind(f"{folder}/{name}")
        outside.listen()
        attempt = f"print(socket.socket(socket.AF_UNIX).connect_ex({folder + '/' + name!r}))"
        assert inside(cwd, attempt, network="none") == f"{errno.ECONNREFUSED}\n"
        assert inside(cwd, attempt, network="all") == "0\n"


@needs_namespaces
@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
def test_a_port_that_is_named_is_there_by_ipv6_too(cwd):
    with Network() as outside:
        asked = f"{outside['allowed']}, {REQUEST!r}.encode().decode('unicode_escape')"
        found = (Target("localhost", outside["allowed"]),)
        said = inside(cwd, f"print(said('::1', {asked}))", network="vendor", targets=found)
    assert "allowed" in said


def test_entering_loads_nothing_that_the_reaper_has_not_loaded():
    """Each start waits for it."""
    code = (
        "import sys; sys.path.append(sys.argv[1]); from rondel.processes import reaper; "
        "before = {*sys.modules}; from rondel.sandbox import enter; print(*({*sys.modules} - before))"
    )
    words = [sys.executable, "-I", "-S", "-c", code, str(Path(reaper.__file__).parents[2])]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert set(found) <= {"rondel.sandbox", "rondel.sandbox.enter", "errno"}


@needs_namespaces
def test_a_child_in_namespaces_ends_with_its_reaper(cwd):
    """The kernel still ends it when its parent dies, and it is still found."""
    script = "import ctypes; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); print(n.value)"
    assert inside(cwd, script, network="none") == "9\n"


# -- decisions ----------------------------------------------------------------------------

HOST = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?(\.[a-z0-9]{1,8}){0,3}\Z")


@given(HOST, st.integers(1, 65535), HOST, st.integers(1, 65535))
def test_a_target_admits_itself_and_nothing_else(host, port, other, other_port):
    it = Target(host, port)
    assert it.admits(host, port)
    assert it.admits(other, other_port) == ((other, other_port) == (host, port))
    below = Target(f"*.{host}", port)
    assert below.admits(f"{other}.{host}", port)
    assert not below.admits(host, port)
    assert not below.admits(f"{other}{host}", port)


@given(st.text(max_size=40))
def test_no_word_is_a_host_that_admits_everything(word):
    try:
        found = target(word)
    except ValueError:
        return
    assert not found.admits("evil.test", found.port) or found.host in ("evil.test", "*.test")


@given(st.binary(max_size=300))
def test_any_head_asks_for_one_place_or_none(head):
    wanted = proxy.asked(head + b"\r\n\r\n")
    if wanted is not None:
        assert head.startswith(b"CONNECT ") == wanted.tunnel


ELSEWHERE = [
    b"127.0.0.1\0%",
    b"::1%lo\0",
    b"[::1%x",
    b"*",
    b"127.0.0.1/",
    b"x@127.0.0.1\0",
    b"127.0.0.1%00",
    b"\xe9",
]


@given(st.one_of(st.sampled_from(ELSEWHERE), st.binary(min_size=1, max_size=30)))
def test_below_a_domain_there_are_only_names(before):
    """A resolver that stops at a NUL, or at a zone, would reach another host than the admitted one."""
    wanted = proxy.asked(b"CONNECT " + before + b".corp.example:18443 HTTP/1.1\r\n\r\n")
    if wanted is not None and target("*.corp.example:18443").admits(wanted.host, wanted.port):
        assert set(wanted.host) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-")


@needs_namespaces
def test_no_spelling_of_a_name_below_a_domain_reaches_the_machine_s_loopback(cwd):
    with Network() as outside:
        place = f"127.0.0.1\\0%.corp.example:{outside['allowed']}"
        script = f"""
import os
port = int(os.environ["http_proxy"].rpartition(":")[2])
print(said("127.0.0.1", port, "CONNECT {place} HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n"))
"""
        targets = (target(f"*.corp.example:{outside['allowed']}"),)
        assert "400 Bad Request" in inside(cwd, script, network="vendor", targets=targets)


@given(st.lists(st.integers(1, 100), max_size=8), st.binary(max_size=400))
def test_the_name_in_tls_is_found_however_it_is_cut(cuts, noise):
    whole = _hello("model.test")
    assert proxy.server_name(whole) == "model.test"
    for cut in cuts:
        with pytest.raises(EOFError):
            proxy.server_name(whole[:cut])
    body, at, records = whole[5:], 0, b""
    for cut in [*cuts, len(body)]:
        piece = body[at : at + cut]
        at += cut
        if piece:
            records += b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece
    assert proxy.server_name(records) == "model.test"
    with suppress(EOFError, ValueError):
        assert proxy.server_name(noise) is None


@pytest.mark.parametrize(
    ("name", "extension", "why"),
    [
        ("model.test", _named((0, b"evil.test")), "twice"),
        ("model.test", _named((0, b"model.test")), "twice"),
        ("model.test", (0xFE0D, bytes(300)), "encrypted"),
        ("model.test", (0xFE0D, b""), "encrypted"),
        (None, _named((0, b"model.test"), (0, b"evil.test")), "more than one"),
        (None, _named((0, b"model.test"), (7, b"evil.test")), "more than one"),
        (None, (0, _named((0, b"model.test"))[1] + b"evil.test"), "more than one"),
        (None, _named((7, b"model.test"), (0, b"evil.test")), "no host's"),
        (None, _named((7, b"model.test")), "no host's"),
    ],
)
def test_a_greeting_that_another_reader_may_take_for_another_name_s_is_refused(name, extension, why):
    whole = _extended(name, extension)
    with pytest.raises(proxy.Ambiguous, match=why):
        proxy.server_name(whole)


def test_a_greeting_with_one_name_is_understood_whatever_else_it_says():
    assert proxy.server_name(_extended(None, _named((0, b"model.test")))) == "model.test"
    assert proxy.server_name(_extended("model.test", (0xFF99, b"x"))) == "model.test"


@pytest.mark.parametrize(
    ("kind", "files", "env", "command", "expected"),
    [
        ("claude", {}, {}, (), "api.anthropic.com:443"),
        ("claude", {}, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8080/x"}, (), "127.0.0.1:8080"),
        (
            "claude",
            {".claude/settings.json": '{"env": {"ANTHROPIC_BASE_URL": "https://a.test"}}'},
            {},
            (),
            "a.test:443",
        ),
        ("codex", {}, {}, (), "chatgpt.com:443"),
        (
            "codex",
            {".codex/config.toml": '[model_providers.x]\nbase_url = "https://a.test:444/v1"'},
            {},
            (),
            "a.test:444",
        ),
        ("codex", {}, {}, ("codex", "-c", 'model_providers.f={base_url="http://a.test/v1"}'), "a.test:80"),
        ("gemini", {}, {}, (), "generativelanguage.googleapis.com:443"),
        ("gemini", {".gemini/.env": "GOOGLE_GEMINI_BASE_URL=https://a.test\n"}, {}, (), "a.test:443"),
        ("opencode", {}, {"OPENCODE_CONFIG_CONTENT": '{"baseURL":"http://[::1]:99/v1"}'}, (), "::1:99"),
        (
            "opencode",
            {".config/opencode/opencode.json": '{"model": "openrouter/x"}'},
            {},
            (),
            "openrouter.ai:443",
        ),
    ],
)
def test_whom_a_cli_asks(kind, files, env, command, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    agent = build(AgentSettings("x", kind, command, env=env))
    assert expected in {f"{one.host}:{one.port}" for one in agent.hosts()}
    assert not any(one.host.endswith("evil.test") for one in agent.hosts())


@needs_namespaces
def test_a_working_copy_in_shared_memory_is_there(cwd):
    """Some people keep what is temporary there: then it is the machine's, and nothing else of it is open."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        place = Path(name, "copy")
        place.mkdir()
        ran(["touch", f"{place}/made"], place, clean_env(), Confined(Box(), writes=True))
        assert (place / "made").exists()
        with pytest.raises(AssertionError, match="Permission denied"):
            ran(["touch", f"{name}/beside"], place, clean_env(), Confined(Box(), writes=True))


@needs_namespaces
def test_many_connections_at_once_wait_for_their_turn(cwd):
    """None is refused, and the driver keeps open files for itself."""
    with Network() as outside:
        script = f"""
import threading
said_ = []
def one():
    said_.append("allowed" in said("127.0.0.1", {outside["allowed"]}, "GET / HTTP/1.1\\r\\n\\r\\n"))
threads = [threading.Thread(target=one) for _ in range(150)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(said_), all(said_))
"""
        target = Target("127.0.0.1", outside["allowed"])
        assert inside(cwd, script, network="vendor", targets=(target,)) == "150 True\n"
