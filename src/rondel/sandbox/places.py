"""Which places of a machine a confined program may read: decided by names, looked up at the edge.

The kernel's list only grants, with all that is below. So what must stay hidden is never below
something granted: a folder that holds a secret is granted entry by entry, without it.
"""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache


def _listed(text: str) -> tuple[str, ...]:
    """The words of a text; what follows a `#` on a line says why they are there."""
    return tuple(word for line in text.splitlines() for word in line.partition("#")[0].split())


SYSTEM = _listed("""
    /bin /sbin /lib /lib32 /lib64 /libx32 /libexec /usr /etc /opt /nix /gnu /snap /run /var /proc /sys
""")
DEVICES = _listed(
    "/dev/null /dev/zero /dev/full /dev/random /dev/urandom"
)  # no terminal: they are the person's

HOMES = _listed("/var/home /usr/home /opt/home")  # where some systems keep everybody's

# Of the system, what only its administrator may know: it matters where Rondel runs as root.
SYSTEM_SECRETS = _listed("""
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/krb5.keytab
    /etc/ssh /etc/ssl/private /etc/letsencrypt /etc/wireguard /etc/NetworkManager /etc/ppp
    /etc/docker /etc/kubernetes /etc/rancher /etc/cloud
    /run/secrets /run/credentials /run/user /run/cloud-init
    /var/lib/cloud /var/lib/docker /var/lib/containerd /var/lib/kubelet /var/lib/private /var/lib/sudo
    /var/backups /var/mail /var/spool /var/tmp /var/log
""")

# Of the home folder, what opens other doors.
SECRETS = _listed("""
    .ssh .gnupg .putty .pki .password-store .local/share/gnupg .local/share/password-store  # keys
    .local/share/keyrings .local/share/kwalletd .cache/keyring .dbus .gvfs
    .config/op .config/1Password .config/Bitwarden .config/keybase .config/sops .config/age
    .aws .azure .oci .kube .docker .fly .terraform.d .vault-token .s3cfg .boto  # accounts of machines
    .config/gcloud .config/doctl .config/hcloud .config/rclone .config/containers .config/helm
    .config/netlify .config/fly .cf .minikube .config/configstore
    .netrc .git-credentials .config/git/credentials .config/gh .config/glab-cli .config/hub  # forges
    .cargo/credentials .cargo/credentials.toml .gem/credentials .config/composer/auth.json
    .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .pgpass .my.cnf
    .mozilla .thunderbird .cache/mozilla .config/google-chrome .cache/google-chrome  # browsers, letters
    .config/chromium .cache/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi
    .config/opera .config/Slack .config/Signal .config/discord .var .snap
    .electrum .bitcoin .ethereum
    .local/share/fish .local/share/atuin .local/share/mc .zsh_sessions .bash_sessions  # histories
    .claude .codex .gemini .copilot .aider .continue .ollama .cursor .vscode-server  # other vendors' state
    .config/opencode .local/share/opencode .local/state/opencode .cache/opencode .config/claude
    .config/goose .config/github-copilot .config/Code .config/Cursor .cache/claude-cli-nodejs
    .config/anthropic .config/gh-copilot .local/share/amp .config/amp .qwen .kimi .grok .factory .codeium
    .config/zed .local/share/zed .vscode .config/VSCodium .config/Windsurf .windsurf .config/JetBrains
    .cache/huggingface/token .cache/huggingface/stored_tokens .huggingface .kaggle .config/kaggle  # models
    .pulumi .local/share/com.vercel.cli .config/heroku .config/stripe .config/ngrok .config/ngrok2  # clouds
    .config/wrangler .config/.wrangler .wrangler .supabase .railway .doppler .tsh .step .config/scw
    .config/pypoetry/auth.toml .local/share/uv/credentials .sbt/.credentials .ivy2/.credentials  # registries
    .composer/auth.json .local/share/gh .config/tea
    .config/filezilla .config/remmina .local/share/remmina .config/dbeaver .local/share/DBeaverData  # logins
    .config/keepassxc .cache/keepassxc .local/share/keepassxc .config/openvpn .openvpn .config/wireguard
    .librewolf .zen .waterfox .floorp .config/thorium .config/qutebrowser .local/share/qutebrowser  # browsers
    .config/google-chrome-beta .config/opera-beta .config/vivaldi-snapshot .tor-browser
    .local/share/TelegramDesktop .config/Element .config/teams .config/WhatsApp  # letters
    .config/skypeforlinux
    .local/share/evolution .config/evolution .config/geary .local/share/geary
    .mutt .config/mutt .config/neomutt
    .config/monero .monero .config/solana .foundry/keystores .config/Exodus .config/Ledger  # wallets
    .ipython/profile_default/history.sqlite .local/share/zoxide .local/share/nvim/shada  # histories
    .local/state/nvim .local/state/bash .local/share/bash .cache/zsh .local/share/zsh .local/state/zsh
    .config/rondel .local/state/rondel .cache/rondel  # ours
""")
_SECRET_WORDS = re.compile(r"keyring|kwallet|histor|credential|password|cookie", re.IGNORECASE)

# The hidden files of a home folder that programs need to start; of the others nothing is read.
PLAIN_FILES = _listed("""
    .gitconfig .gitignore .gitignore_global .gitattributes .editorconfig .inputrc
    .bashrc .bash_profile .bash_login .bash_aliases .profile .zshenv .zshrc .zprofile
    .tool-versions .nvmrc .python-version .node-version .ruby-version .asdfrc .condarc
""")

ENTRIES_MAX = 5_000
_HEAD = 256
_PACKAGES = re.compile(r"python3\.\d+")
_BIN = ("bin", "sbin", "shims", "Scripts")

Names = Callable[[str], Iterable[str]]


def without(path: str, hidden: frozenset[str], names: Names) -> Iterator[str]:
    """A folder, or of one with something hidden below it, everything else in it."""
    if path in hidden:
        return
    inside = f"{path.rstrip('/')}/"
    held = _on_the_way(hidden, inside)
    if not held:
        yield path
        return
    for name in names(path):
        if name in held:
            yield from without(f"{inside}{name}", hidden, names)
        else:
            yield f"{inside}{name}"


def _on_the_way(places: frozenset[str], inside: str) -> set[str]:
    """The names in a folder that are one of these places, or lead down to one: in order they are together."""
    ordered = _in_order(places)
    found = set[str]()
    for at in range(bisect_left(ordered, inside), len(ordered)):
        if not ordered[at].startswith(inside):
            break
        found.add(ordered[at][len(inside) :].partition("/")[0])
    return found


@lru_cache(maxsize=8)
def _in_order(places: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(places))


def names_in(folder: str, *, links: bool = False) -> list[str]:
    """The names in a folder, without links unless they are asked for; none where it cannot be read."""
    try:
        with os.scandir(folder) as found:
            return sorted(entry.name for entry in found if links or not entry.is_symlink())
    except OSError:
        return []


def secrets(home: str) -> Iterator[str]:
    """The places of secrets: by name, and where one or a folder above it is a link, by what it leads to."""
    reals = {home: os.path.realpath(home)}
    links: dict[str, frozenset[str]] = {}  # in each folder: many secrets are in the same few

    def real(path: str) -> str:
        if path not in reals:
            above, _, name = path.rpartition("/")
            folder = real(above)
            if folder not in links:
                links[folder] = _links_in(folder)
            place = f"{folder}/{name}"
            reals[path] = os.path.realpath(place) if name in links[folder] else place
        return reals[path]

    for name in SECRETS:
        path = f"{home}/{name}"
        yield path
        yield real(path)


def _links_in(folder: str) -> frozenset[str]:
    """The names in a folder that are links; of one that we may go through and not list, those of secrets."""
    try:
        with os.scandir(folder) as found:
            return frozenset(entry.name for entry in found if entry.is_symlink())
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError:
        names = {name for path in SECRETS for name in path.split("/")}
        return frozenset(name for name in names if os.path.islink(f"{folder}/{name}"))  # noqa: PTH114


def of_home(home: str, hidden: frozenset[str]) -> Iterator[str]:
    """What of a home folder may be read: hidden folders that hold no secrets, and some hidden files."""
    for name in names_in(home, links=True):
        path = f"{home}/{name}"
        if not name.startswith(".") or _SECRET_WORDS.search(name) or path in hidden:
            continue
        real = os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114 - dot files kept elsewhere
        if name in PLAIN_FILES or (os.path.isdir(real) and not is_below(home, real)):  # noqa: PTH112
            yield from without(real, hidden, names_in)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def is_below_any(path: str, folders: frozenset[str]) -> bool:
    """Whether a path is one of many folders or below it: whether it, or one above it, is among them."""
    if path in folders or "/" in folders:
        return True
    while path := path.rpartition("/")[0]:
        if path in folders:
            return True
    return False


def leads_to(program: str, home: str, *, alone: bool = False) -> frozenset[str]:
    """What a program needs of its own: where it is installed, through links, to its interpreter.

    One that is `alone` says nothing about the files beside it, unless it is in a folder of programs.
    """
    found: set[str] = set()
    _follow(program, home, found, 0, alone=alone)
    return frozenset(found)


def _follow(program: str, home: str, found: set[str], depth: int, *, alone: bool) -> None:
    if depth > 12 or not os.path.isabs(program):  # noqa: PTH117, PLR2004 - a ring of links
        return
    place = os.path.normpath(program)
    if not os.access(place, os.X_OK) and alone:  # what is not there says nothing about its folder
        return
    in_bin = os.path.basename(os.path.dirname(place)) in _BIN  # noqa: PTH119, PTH120
    found.add(place if alone and not in_bin else _installed(place, home))
    try:
        info = os.lstat(place)
        if stat.S_ISLNK(info.st_mode):
            target = os.path.join(os.path.dirname(place), os.readlink(place))  # noqa: PTH115, PTH118, PTH120
            _follow(target, home, found, depth + 1, alone=alone)
            return
        real = os.path.realpath(place)
        if real != place:  # a folder above it is a link
            _follow(real, home, found, depth + 1, alone=alone)
            return
        if stat.S_ISREG(info.st_mode):
            for other in _interpreters(place):
                _follow(other, home, found, depth + 1, alone=True)
    except OSError:
        return


def alone_below(hidden: frozenset[str], said: frozenset[str], led: frozenset[str]) -> Iterator[str]:
    """What a command line leads to; below a hidden place only the files that it names, each alone.

    Of a virtual environment that is its programs and packages.
    """
    for path in said | led:
        real = os.path.realpath(path)
        is_itself = path in said and real == os.path.normpath(path)  # a link names something else
        if is_itself or not any(is_below(real, place) for place in hidden):
            yield path
        elif os.path.isfile(f"{real}/pyvenv.cfg"):  # noqa: PTH113
            yield from (f"{real}/pyvenv.cfg", f"{real}/bin")
            yield from (f"{real}/lib/{name}" for name in names_in(f"{real}/lib") if _PACKAGES.fullmatch(name))


def _installed(program: str, home: str) -> str:
    """The folder that a program was installed into; the program alone where that would be too much."""
    folder = os.path.dirname(program)  # noqa: PTH120
    prefix = os.path.dirname(folder) if os.path.basename(folder) in _BIN else folder  # noqa: PTH119, PTH120
    for place in (prefix, folder):
        if place != "/" and not is_below(home, place) and not is_shared(place):
            return place
    return program


def is_shared(folder: str) -> bool:
    """Whether a folder holds what belongs to many, so that one program in it says nothing about the rest."""
    if folder in ("/tmp", "/var/tmp", "/home", "/Users", "/mnt", "/media", "/srv", "/dev", "/dev/shm"):  # noqa: S108
        return True
    return os.path.lexists(f"{folder}/.git") or os.path.lexists(f"{folder}/rondel.toml")


def _interpreters(program: str) -> Iterator[str]:
    """What a script says it is run with, and what a virtual environment was made from."""
    with open(program, "rb") as f:  # noqa: PTH123
        head = f.read(_HEAD)
    if head.startswith(b"#!"):
        words = os.fsdecode(head[2:].split(b"\n")[0]).split()
        yield from words[:1]
    config = os.path.join(os.path.dirname(os.path.dirname(program)), "pyvenv.cfg")  # noqa: PTH118, PTH120
    yield from _base_of(config)


def base_pythons(folder: str, home: str) -> Iterator[str]:
    """What the virtual environments in a folder were made from, each the folder of a Python and nothing else.

    Whoever can write there chooses what they name: so it is only believed that is a Python.
    """
    for _, name in zip(range(ENTRIES_MAX), names_in(folder), strict=False):
        for program in _base_of(f"{folder}/{name}/pyvenv.cfg"):
            if not os.path.isabs(program):  # noqa: PTH117
                continue
            place = os.path.dirname(os.path.dirname(os.path.realpath(program)))  # noqa: PTH120
            if not is_below(home, place) and not is_shared(place) and _is_python(place):
                yield place


def _is_python(place: str) -> bool:
    """Whether a folder is what a Python was installed into."""
    return any(
        name.startswith("python3") and os.path.isfile(f"{place}/lib/{name}/os.py")  # noqa: PTH113
        for name in names_in(f"{place}/lib")
    )


def _base_of(config: str) -> Iterator[str]:
    try:
        fd = os.open(config, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # nobody is waited for at a pipe
    except OSError:
        return
    try:
        text = os.read(fd, 10_000).decode(errors="replace") if stat.S_ISREG(os.fstat(fd).st_mode) else ""
    except OSError:
        return
    finally:
        os.close(fd)
    if found := re.search(r"^home *= *(.+)$", text, re.MULTILINE):
        yield f"{found[1].strip()}/python3"


def on_path(path: str, home: str) -> frozenset[str]:
    """What the folders of a PATH lead to, besides those of the system."""
    found: set[str] = set()
    for folder in path.split(os.pathsep):
        if os.path.isabs(folder) and not any(is_below(folder, s) for s in SYSTEM):  # noqa: PTH117
            try:
                changed = os.stat(folder).st_mtime_ns  # noqa: PTH116
            except OSError:
                continue
            found |= _in_folder(os.path.normpath(folder), changed, home)
    return frozenset(found)


@lru_cache(maxsize=64)
def _in_folder(folder: str, _changed: int, home: str) -> frozenset[str]:
    found = {_installed(f"{folder}/-", home)} if not is_shared(folder) else set[str]()
    if os.path.basename(folder) in _BIN:  # noqa: PTH119
        for base in _base_of(f"{os.path.dirname(folder)}/pyvenv.cfg"):  # noqa: PTH120
            found |= leads_to(base, home, alone=True)
    with os.scandir(folder) as entries:
        for _, entry in zip(range(ENTRIES_MAX), entries, strict=False):
            if entry.is_symlink():
                found |= leads_to(entry.path, home)
    return frozenset(found)
