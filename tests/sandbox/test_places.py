"""Which places are granted: never a secret, always what a program needs to start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.processes.runner import clean_env
from rondel.sandbox import box, places

NAME = st.sampled_from(["a", "b", "c", ".d"])
PATHS = st.lists(st.lists(NAME, min_size=1, max_size=4).map("/".join), max_size=6)


@given(PATHS, PATHS)
def test_what_is_granted_is_everything_but_what_is_hidden(tmp_path_factory, there, hidden):
    root = tmp_path_factory.mktemp("root")
    for path in there:
        (root / path).mkdir(parents=True, exist_ok=True)
    out_of_sight = frozenset(f"{root}/{path}" for path in hidden)
    granted = list(places.without(str(root), out_of_sight, places.names_in))

    def is_granted(path: str) -> bool:
        return any(places.is_below(path, place) for place in granted)

    for place in out_of_sight:
        assert not is_granted(place)
        assert not any(places.is_below(place, one) for one in granted), "a grant counts for all below it"
    for here, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = f"{here}/{name}"
            near_hidden = any(
                places.is_below(path, place) or places.is_below(place, path) for place in out_of_sight
            )
            assert near_hidden or is_granted(path)


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def granted(argv: list[str], home: Path, **env: str) -> set[str]:
    confined = box.Confined(box.Box(hidden=box.own_places()))
    rules = box.rules(confined, argv, str(home / "cwd"), {"PATH": "/usr/bin", **env}, str(home / "tmp"))
    return {rule.path for rule in rules}


def reaches(rules: set[str], path: Path) -> bool:
    return any(places.is_below(str(path), place) for place in rules)


def test_no_secret_is_granted_whatever_is_in_the_home_folder(home):
    for name in places.SECRETS:
        (home / name).mkdir(parents=True, exist_ok=True)
        (home / name / "key").write_text("x")
    for name in (".local/bin", ".config/nvim", ".cache/pip", ".nvm"):
        (home / name).mkdir(parents=True, exist_ok=True)
    rules = granted(["/usr/bin/true"], home)
    assert [name for name in places.SECRETS if reaches(rules, home / name / "key")] == []
    assert all(reaches(rules, home / name) for name in (".local/bin", ".config/nvim", ".cache/pip", ".nvm"))


OPENS_DOORS = """
    .cache/huggingface/token .huggingface/token .kaggle/kaggle.json .config/kaggle/kaggle.json
    .pulumi/credentials.json .local/share/com.vercel.cli/auth.json .config/pypoetry/auth.toml
    .local/share/uv/credentials/credentials.toml .sbt/.credentials .ivy2/.credentials
    .composer/auth.json .local/share/gh/x .config/heroku/netrc
    .config/stripe/config.toml .config/ngrok/ngrok.yml .config/tea/config.yml
    .config/filezilla/sitemanager.xml .config/wrangler/config/default.toml .wrangler/config/default.toml
    .supabase/access-token .railway/config.json .doppler/.doppler.yaml .tsh/keys/x .step/secrets/key
    .config/anthropic/credentials .config/gh-copilot/x .local/share/amp/secrets.json .qwen/oauth_creds.json
    .kimi/credentials/x.json .grok/user-settings.json .factory/auth.json .config/zed/settings.json
    .vscode/argv.json .config/VSCodium/User/x .config/Windsurf/User/x .librewolf/x/logins.json
    .zen/x/logins.json .config/thorium/Default/Cookies .config/qutebrowser/autoconfig.yml
    .local/share/TelegramDesktop/tdata/key_datas .config/Element/IndexedDB/x
    .local/share/evolution/mail/local/x .local/share/keepassxc/x.kdbx .config/keepassxc/keepassxc.ini
    .config/hub .config/remmina/x.remmina .local/share/remmina/x.remmina
    .config/dbeaver/credentials-config.json .local/share/DBeaverData/workspace6/x
    .config/JetBrains/IntelliJIdea2026.1/c.kdbx .ipython/profile_default/history.sqlite .python_history
    .config/github-copilot/hosts.json .local/share/zoxide/db.zo .local/share/nvim/shada/main.shada
    .local/state/nvim/undo/x .local/state/bash/history .local/share/bash/history .cache/zsh/history
    .config/monero/x .monero/wallet .config/solana/id.json .foundry/keystores/x
"""
BUILDS_NEED = """
    .pyenv/versions/x .nvm/versions/x .rustup/toolchains/x .cargo/registry/x .cargo/config.toml
    .config/pip/pip.conf .config/uv/uv.toml .nuget/NuGet/NuGet.Config .gradle/init.gradle .bundle/config
    .m2/repository/x .gradle/caches/x .npm/_cacache/x .nuget/packages/x .sbt/boot/x .ivy2/cache/x
    .bundle/cache/x .composer/vendor/x .foundry/bin/forge .cache/huggingface/hub/x .cache/pip/x
    .config/git/config .config/pypoetry/config.toml .local/share/uv/python/x .local/share/nvim/lazy/x
    .ipython/profile_default/startup/x
"""


def test_what_opens_other_doors_is_not_read_and_what_builds_need_is(home):
    for name in (*OPENS_DOORS.split(), *BUILDS_NEED.split()):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    rules = granted(["/usr/bin/true"], home)
    assert [name for name in OPENS_DOORS.split() if reaches(rules, home / name)] == []
    assert [name for name in BUILDS_NEED.split() if not reaches(rules, home / name)] == []


def test_a_secret_named_in_a_command_is_not_granted(home):
    key = home / ".ssh/id"
    key.parent.mkdir()
    key.write_text("x")
    key.chmod(0o755)
    assert not reaches(granted(["bash", "-c", f"cat {key}"], home), key)
    assert not reaches(granted(["cat", str(key)], home), key)
    letter = home / "letter.txt"
    letter.write_text("x")
    assert not reaches(granted(["bash", "-c", f"cat {letter}"], home), letter)


def test_a_program_below_home_brings_what_it_is_installed_with(home):
    for name in ("tools/node/bin/node", "tools/node/lib/x.js", "tools/other/secret"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("")
    (home / "tools/node/bin/node").chmod(0o755)
    on_path = granted(["node"], home, PATH=f"{home}/tools/node/bin:/usr/bin")
    in_command = granted(["bash", "-c", f"FOO=1 {home}/tools/node/bin/node x.js"], home)
    for rules in (on_path, in_command):
        assert reaches(rules, home / "tools/node/lib/x.js")
        assert not reaches(rules, home / "tools/other/secret")
    (home / "bin").mkdir()
    (home / "bin/node").symlink_to(home / "tools/node/bin/node")
    assert reaches(granted(["node"], home, PATH=f"{home}/bin"), home / "tools/node/lib/x.js")


def test_of_a_tree_that_is_hidden_only_what_a_command_names_is_granted(home):
    """Whatever lies beside it: a repository names its own program, and its owner keeps secrets there."""
    repo = home / "repo"
    for name in ("app/bin/agent", "app/.env", "app/bin/key", "tools/run.sh", "tools/key", ".git/config"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("#!/bin/sh\n")
        (repo / name).chmod(0o755)
    (repo / "tools/link.sh").symlink_to("../app/.env")
    confined = box.Confined(box.Box(hidden=(str(repo),)))

    def rules(*argv: str, path: str = "/usr/bin") -> set[str]:
        found = box.rules(confined, argv, str(home / "cwd"), {"PATH": path}, str(home / "tmp"))
        return {rule.path for rule in found}

    for argv in (
        [f"{repo}/app/bin/agent"],
        ["bash", f"{repo}/app/bin/agent"],
        ["bash", "-c", f"{repo}/app/bin/agent x"],
    ):
        found = rules(*argv)
        assert reaches(found, repo / "app/bin/agent")
        assert [
            n for n in ("app/.env", "app/bin/key", "tools/key", ".git/config") if reaches(found, repo / n)
        ] == []
    assert not reaches(rules("bash", f"{repo}/tools/run.sh"), repo / "tools/key")
    assert not reaches(rules("bash", f"{repo}/tools/link.sh"), repo / "app/.env")
    assert not reaches(rules("agent", path=f"{repo}/app/bin"), repo / "app/.env")


def test_an_environment_in_a_hidden_tree_is_its_programs_and_packages(home, monkeypatch):
    repo = home / "repo"
    for name in (".venv/bin/tool", ".venv/pyvenv.cfg", ".venv/lib/python3.11/x.py", ".venv/key"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("#!/bin/sh\n")
        (repo / name).chmod(0o755)
    confined = box.Confined(box.Box(hidden=(str(repo),)))
    path = f"{repo}/.venv/bin"

    def rules(*argv: str) -> set[str]:
        return {
            rule.path for rule in box.rules(confined, argv, str(home / "cwd"), {"PATH": path}, f"{home}/tmp")
        }

    named = rules(f"{repo}/.venv/bin/tool")
    assert reaches(named, repo / ".venv/lib/python3.11/x.py")
    assert not reaches(named, repo / ".venv/key")
    assert not reaches(rules("tool"), repo / ".venv/bin/tool")
    monkeypatch.setenv("PATH", path)  # the person's own word
    assert reaches(rules("tool"), repo / ".venv/lib/python3.11/x.py")


def test_no_kind_of_child_reaches_the_caches_of_another(home, tmp_path):
    """A program that a reader leaves there is not what the checks of an edit start."""
    ours = box.Box(hidden=(str(home / "work"),), cache=str(home / "work/cache"))
    caches = {}
    for kind in box.Kind:
        confined = box.Confined(ours, kind=kind)
        rules = box.rules(confined, ["true"], str(home / "cwd"), {"PATH": "/usr/bin"}, str(home / "tmp"))
        places_of_it = {rule.path for rule in rules}
        caches[kind] = Path(box.environment(confined, str(tmp_path), {})["npm_config_cache"])
        assert reaches(places_of_it, caches[kind])
        others = [f"{home}/work/cache/{other}/npm" for other in box.Kind if other is not kind]
        assert not any(reaches(places_of_it, Path(other)) for other in others)
        assert box.missing(confined) == [str(home / "work/cache" / kind)]
    assert len(set(caches.values())) == len(box.Kind)


def test_dot_files_that_are_kept_elsewhere_are_read(home):
    (home / "dotfiles").mkdir()
    (home / "dotfiles/gitconfig").write_text("[user]\n")
    (home / ".gitconfig").symlink_to(home / "dotfiles/gitconfig")
    rules = granted(["git"], home)
    assert reaches(rules, home / "dotfiles/gitconfig")
    assert not reaches(rules, home / "dotfiles/other")


def test_a_folder_that_is_a_link_hides_its_secrets_all_the_same(home):
    for name in ("dotfiles/config/gh/hosts.yml", "dotfiles/config/nvim/init.lua"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    (home / ".config").symlink_to(home / "dotfiles/config")
    rules = granted(["/usr/bin/true"], home)
    assert reaches(rules, home / "dotfiles/config/nvim/init.lua")
    assert not reaches(rules, home / "dotfiles/config/gh/hosts.yml")


def test_a_home_below_a_place_of_the_system_is_a_home(monkeypatch):
    there = {"/var": ["home", "lib"], "/var/home": ["u"], "/var/home/u": [".ssh", ".nvm", "letter"]}
    there["/var/lib"] = ["dpkg"]
    monkeypatch.setattr(places, "names_in", lambda folder, **_: there.get(folder, []))
    found = set(box.readable("/var/home/u", frozenset(), ()))
    assert not any(places.is_below("/var/home/u/.ssh", one) for one in found)
    assert not any(places.is_below("/var/home/u/letter", one) for one in found)
    assert any(places.is_below("/var/lib/dpkg", one) for one in found)


def test_a_folder_of_path_that_a_child_can_write_leads_nowhere(home):
    own = home / ".claude/local"
    own.mkdir(parents=True)
    (home / "Documents").mkdir()
    (home / "Documents/x").write_text("x")
    (home / "Documents/x").chmod(0o755)
    (own / "x").symlink_to(home / "Documents/x")
    confined = box.Confined(box.Box(), own=(str(home / ".claude"),))
    rules = box.rules(confined, ["x"], str(home / "cwd"), {"PATH": str(own)}, str(home / "tmp"))
    assert not reaches({rule.path for rule in rules}, home / "Documents/x")


def test_a_script_chooses_no_interpreter_that_is_not_there(home):
    (home / "Documents").mkdir()
    (home / "photos").mkdir()
    (home / "tools/bin").mkdir(parents=True)
    (home / "tools/bin/agent.sh").write_text(f"#!{home}/Documents/bin/sh\n")
    (home / "tools/pyvenv.cfg").write_text(f"home = {home}/photos/bin\n")
    (home / "tools/bin/agent.sh").chmod(0o755)
    rules = granted(["bash", str(home / "tools/bin/agent.sh")], home)
    assert reaches(rules, home / "tools/bin/agent.sh")
    assert not reaches(rules, home / "Documents/letter")
    assert not reaches(rules, home / "photos/p")


@pytest.mark.skipif(not box.holds(), reason="this kernel has no Landlock to hold anything")
def test_a_python_below_home_starts(home, tmp_path):
    """Named by its path in a shell command, or found on the PATH; its modules come with it."""
    from sandbox.world import ran  # noqa: PLC0415 - imports what only Linux has

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "envs/x")], check=True)
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    confined = box.Confined(box.Box())
    named = ran(
        ["bash", "-c", f"{home}/envs/x/bin/python -c 'import json; print(1)'"], cwd, clean_env(), confined
    )
    env = clean_env() | {"PATH": f"{home}/envs/x/bin:/usr/bin:/bin"}
    found = ran(["bash", "-c", "python -c 'import json; print(2)'"], cwd, env, confined)
    assert (named, found) == ("1\n", "2\n")


@pytest.fixture
def own_python(home):
    """A Python below the home folder that no PATH names, whole but for its size: its parts are links."""
    place = home / "pythons/own"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in ("bin", "lib"):
        (place / name).mkdir(parents=True)
    shutil.copy2(os.path.realpath(sys.executable), place / "bin" / version)
    (place / "lib" / version).mkdir()
    for entry in Path(os.__file__).parent.iterdir():
        if entry.name not in ("site-packages", "test", "__pycache__"):
            (place / "lib" / version / entry.name).symlink_to(entry)
    shutil.copy2(os.__file__, place / "lib" / version / "os.py.copy")
    (place / "lib" / version / "os.py").unlink()
    (place / "lib" / version / "os.py.copy").rename(place / "lib" / version / "os.py")
    return place / "bin" / version


def test_what_an_environment_of_the_working_copy_was_made_from_is_read(home, own_python):
    """However the command names it: by a relative path, in a Makefile, after `activate`."""
    cwd = home / "cwd"
    for folder, config in {
        ".venv": f"home = {own_python.parent}\n",
        "env": f"home = {home}/letters/bin\n",
        "other": f"home = {home}/projects/lib/..\n",
    }.items():
        (cwd / folder).mkdir(parents=True)
        (cwd / folder / "pyvenv.cfg").write_text(config)
    (home / "letters/bin").mkdir(parents=True)
    (home / "letters/bin/python3").write_text("#!/bin/sh\n")
    (home / "letters/bin/python3").chmod(0o755)
    (home / "projects/lib").mkdir(parents=True)
    rules = granted(["bash", "-c", "make test"], home)
    assert reaches(rules, own_python)
    assert reaches(rules, own_python.parents[1] / "lib/x")
    assert not reaches(rules, home / "letters/x")
    assert not reaches(rules, home / "projects/x")
    assert not reaches(rules, home / "pythons/other")
    (cwd / "pipe").mkdir()
    os.mkfifo(cwd / "pipe/pyvenv.cfg")
    assert granted(["true"], home)  # and nobody waits for what is never written


def test_an_environment_does_not_open_a_folder_that_is_no_python(home):
    """A child that can write its working copy says nothing about what the next one may read."""
    cwd = home / "cwd"
    (cwd / ".venv").mkdir(parents=True)
    (home / "bin").mkdir()
    (home / "lib/python3.11").mkdir(parents=True)
    (home / "lib/python3.11/os.py").write_text("")
    (home / "bin/python3").write_text("")
    (home / "bin/python3").chmod(0o755)
    for config in (f"home = {home}/bin\n", f"home = {home}/.ssh\n", "home = /\n", "home = bin\n", "x"):
        (cwd / ".venv/pyvenv.cfg").write_text(config)
        rules = granted(["bash", "-c", ".venv/bin/python x.py"], home)
        assert not reaches(rules, home / "letter")
        assert not reaches(rules, home / ".ssh/id")


@pytest.mark.skipif(not box.holds(), reason="this kernel has no Landlock to hold anything")
def test_an_environment_of_the_working_copy_starts_with_a_python_below_home(home, own_python, tmp_path):
    from sandbox.world import ran  # noqa: PLC0415 - imports what only Linux has

    cwd = tmp_path / "cwd"
    (cwd / ".venv/bin").mkdir(parents=True)
    (cwd / ".venv/pyvenv.cfg").write_text(f"home = {own_python.parent}\nversion = 3.11\n")
    (cwd / ".venv/bin/python").symlink_to(own_python)
    confined = box.Confined(box.Box(read=(sys.base_prefix,)), writes=True)  # where the links lead
    said = ran(["bash", "-c", ".venv/bin/python -S -c 'print(1)'"], cwd, clean_env(), confined)
    assert said == "1\n"


@given(
    hidden=st.frozensets(
        st.lists(st.sampled_from("ab.-0"), min_size=1, max_size=4).map("/".join), max_size=8
    ),
    folder=st.lists(st.sampled_from("ab.-0"), min_size=1, max_size=3).map("/".join),
)
def test_what_is_hidden_below_a_folder_is_found(hidden, folder):
    shown = list(places.without(folder, hidden, lambda _: []))
    has_below = any(place.startswith(f"{folder}/") for place in hidden)
    assert shown == ([] if folder in hidden or has_below else [folder])


def test_a_secret_is_known_by_its_name_and_by_what_a_link_leads_to(tmp_path):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (elsewhere / "config/gh").mkdir(parents=True)
    (elsewhere / "keys").mkdir()
    home.mkdir()
    (home / ".config").symlink_to(elsewhere / "config")
    (home / ".ssh").symlink_to(elsewhere / "keys")
    named = {f"{home}/{name}" for name in places.SECRETS}
    assert set(places.secrets(str(home))) == named | {os.path.realpath(path) for path in named}


def test_a_secret_is_known_where_its_folder_can_be_gone_through_and_not_listed(tmp_path, monkeypatch):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (elsewhere / "config/gh").mkdir(parents=True)
    home.mkdir()
    (home / ".config").symlink_to(elsewhere / "config")
    (elsewhere / "config/fly").symlink_to(elsewhere / "keys")

    def refused(path):
        raise PermissionError(path)

    monkeypatch.setattr(places.os, "scandir", refused)
    named = {f"{home}/{name}" for name in places.SECRETS}
    assert set(places.secrets(str(home))) == named | {os.path.realpath(path) for path in named}


FOLDERS = st.lists(NAME, max_size=4).map(lambda names: "/" + "/".join(names))


@given(FOLDERS, st.frozensets(FOLDERS, max_size=6))
def test_below_any_of_many_is_below_one_of_them(path, folders):
    assert places.is_below_any(path, folders) == any(places.is_below(path, one) for one in folders)
