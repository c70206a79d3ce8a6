"""Programs: which words of a command a program takes for code, or for the name of code.

What is not listed gets its words as they are. The author of a command is trusted (a person
allowed it), the values in it are not: this looks for honest mistakes, not for disguises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "busybox", "fish"))
_LANGUAGES = re.compile(
    r"(python|pypy|lua)[\d.]*|perl|ruby|node|nodejs|php|osascript|Rscript|pwsh|bun|deno|tclsh|expect|groovy"
)
_PREFIXES = {  # run the command that follows; by the options that take a word of their own
    "builtin": "",
    "catchsegv": "",
    "chronic": "",
    "chroot": "",
    "chrt": "",
    "command": "",
    "coproc": "",
    "doas": "uC",
    "env": "uC",
    "exec": "a",
    "gosu": "",
    "ionice": "cnp",
    "nice": "n",
    "ltrace": "eop",
    "nohup": "",
    "nsenter": "tSG",
    "pkexec": "",
    "proxychains": "f",
    "setarch": "",
    "setsid": "",
    "stdbuf": "ioe",
    "strace": "eopPs",
    "sudo": "ugChpRTU",
    "systemd-run": "pEuM",
    "taskset": "",
    "time": "fo",
    "timeout": "sk",
    "torsocks": "",
    "unbuffer": "",
    "unshare": "SG",
    "valgrind": "",
    "xvfb-run": "efnpsw",
    "!": "",
}
_FIRST_IS_A_VALUE = frozenset(("timeout", "chroot", "taskset", "gosu", "chrt", "setarch"))
_ALL = frozenset(
    (
        *("eval", "trap", "alias", "bind", "compgen", "complete", "enable", "fc", "let", "unset", "read"),
        *("mapfile", "readarray", "getopts", "wait", "source", ".", "hash", "xargs", "parallel", "watch"),
        *("make", "gmake", "ninja", "at", "batch", "expr", "local", "hyperfine", "tmux", "screen", "entr"),
        *("npx", "pnpx", "bunx", "uvx"),
    )
)  # every word of these
_CODE_OPTIONS = {
    "awk": "-e --source -f --file -i --include -l --load -E --exec",
    "docker": "--entrypoint",
    "emacs": "--eval -eval -l --load -f",
    "ex": "-c -S --cmd",
    "fd": "-x -X --exec --exec-batch",
    "find": "-fprint -fprint0 -fprintf -fls",
    "flock": "-c --command",
    "gdb": "-ex -iex -x --eval-command --command",
    "git": "-c --config-env --exec-path --upload-pack --receive-pack -x --exec --extcmd -O -u --template"
    " --open-files-in-pager --tree-filter --index-filter --msg-filter --env-filter --commit-filter --config",
    "jq": "-f --from-file -L",
    "less": "-P -k",
    "man": "-P -H --pager --html",
    "mysql": "-e --execute",
    "npm": "-c --call --node-options --script-shell",
    "perf": "-c",
    "psql": "-c --command -f --file -v --set --variable",
    "rg": "--pre --hostname-bin",
    "rsync": "-e --rsh --rsync-path",
    "runuser": "-c --command",
    "scp": "-S -o -F",
    "script": "-c --command",
    "sed": "-e --expression -f --file",
    "sort": "--compress-program",
    "ssh": "-o -F",
    "su": "-c --command",
    "tar": "-I --use-compress-program --to-command --checkpoint-action -F --info-script --rsh-command",
    "vim": "-c -S --cmd",
    "wget": "-e --execute --use-askpass",
    "zip": "-TT --unzip-command",
}
_SAME = {
    **dict.fromkeys(("gawk", "mawk", "nawk"), "awk"),
    **dict.fromkeys(("gsed",), "sed"),
    **dict.fromkeys(("vi", "nvim", "view", "vimdiff"), "vim"),
    **dict.fromkeys(("npx", "pnpm", "yarn", "pnpx"), "npm"),
    **dict.fromkeys(("fdfind",), "fd"),
    **dict.fromkeys(("mariadb",), "mysql"),
    **dict.fromkeys(("bsdtar", "gtar"), "tar"),
    **dict.fromkeys(("podman",), "docker"),
    **dict.fromkeys(("sftp",), "scp"),
    **dict.fromkeys(("ripgrep",), "rg"),
    **dict.fromkeys(("emacsclient",), "emacs"),
    **dict.fromkeys(("gojq", "jaq", "yq"), "jq"),
}
_PROGRAM_FIRST = {
    "awk": frozenset(("-F", "-v", "--field-separator", "--assign")),
    "sed": frozenset(("-l", "-E", "-i")) - {"-E", "-i"},
    "jq": frozenset(("--arg", "--argjson", "--slurpfile", "--rawfile", "--indent", "--tab")) - {"--tab"},
}  # their first word that is no option is a program; by the options that take a word of their own
_TAKES_TWO = frozenset(("--arg", "--argjson", "--slurpfile", "--rawfile"))
_FROM_HERE_ON = {
    "find": frozenset(("-exec", "-execdir", "-ok", "-okdir")),
    "fd": frozenset(("-x", "-X", "--exec", "--exec-batch")),
    "git": frozenset(("foreach", "run", "config")),
    "deno": frozenset(("eval",)),
    "jq": frozenset[str](),
}
_CODE_ON_STDIN = frozenset(
    (
        "at",
        "batch",
        "crontab",
        "dc",
        "m4",
        "ed",
        "ex",
        "psql",
        "sqlite3",
        "mysql",
        "mariadb",
        "gdb",
        "ssh",
        "parallel",
    )
)
_STDIN = re.compile(r"-|/dev/(stdin|fd/\d+)|/proc/.*")
_SETTINGS = re.compile(
    r"PATH|IFS|ENV|BASH_ENV|BASH_FUNC.*|PROMPT_COMMAND|PS\d|SHELL|SHELLOPTS|BASHOPTS|FCEDIT|EXINIT|VIMINIT"
    r"|(LD|DYLD|GIT|PYTHON|PERL|RUBY|NODE|LESS|LUA|JAVA|_JAVA|MAVEN|GRADLE|R|RUST|CARGO|NPM|DOCKER|SSH)_?[A-Z\d_]*"
    r"|.*(PAGER|EDITOR|BROWSER|ASKPASS)|VISUAL|MAKEFLAGS|MAKEFILES|TAR_OPTIONS|RSYNC_RSH|CLASSPATH|AWKPATH"
    r"|npm_config_.*",
)
_NO_OPTIONS = frozenset(("echo", ":", "true", "false", "test", "[", "return", "exit", "shift"))
_CODE_OPTION = re.compile(r"-\w*[ceErpm]|--eval|--print|--command")


@dataclass(frozen=True)
class Word:
    """A word of a command."""

    literal: str | None  # what it is; None where the shell puts something in its place
    head: str  # what is known of its beginning
    has_value: bool  # whether a value may be in it

    @property
    def plain(self) -> str:
        """A word to compare with; empty where it is not known."""
        return self.literal or ""


def program(words: Sequence[Word]) -> int:
    """Which of the words is the program that is run in the end; their number where there is none."""
    at = 0
    while at < len(words):
        name = base(words[at])
        if name not in _PREFIXES or (name == "command" and _only_shows(words[at + 1 :])):
            return at
        at = _behind_options(words, at + 1, _PREFIXES[name]) + (name in _FIRST_IS_A_VALUE)
    return at


def _only_shows(rest: Sequence[Word]) -> bool:
    """Whether this is `command -v`, which runs nothing."""
    return bool(rest) and re.fullmatch(r"-p?[vV]", rest[0].plain) is not None


def name(words: Sequence[Word]) -> str:
    """The name of the program that is run in the end; empty where it is not known."""
    return "".join(base(word) for word in words[program(words) :][:1])


def _behind_options(words: Sequence[Word], at: int, with_value: str) -> int:
    while at < len(words):
        word = words[at].head
        if word == "--":
            return at + 1
        if word.startswith("-"):
            at += 2 if re.fullmatch(f"-[{with_value or '-'}]", word) else 1
        elif re.match(r"\w+=", word):
            at += 1
        else:
            break
    return at


def base(word: Word) -> str:
    """A program's name without its folder."""
    return word.plain.rpartition("/")[2]


def is_interpreter(name: str) -> bool:
    """Whether a program runs what it is given as code."""
    return name in SHELLS or _LANGUAGES.fullmatch(name) is not None


def code(words: Sequence[Word], at: int) -> str:
    """What the program takes word `at` for, where that is code or the name of code; else empty."""
    first = program(words)
    if at <= first or first >= len(words):
        return "the name of a command" if at == first else _of_prefix(words, at)
    name = base(words[first])
    given = words[first + 1 : at]
    if name in _ALL:
        return f"an argument of {name}"
    shell = script_word(words)
    if at == shell or (shell is None and is_interpreter(name) and _names_a_file(given, words[at])):
        return f"a script of {name}"
    if _is_option_value(name, given, words[at]) or any(w.plain in _FROM_HERE_ON.get(name, ()) for w in given):
        return f"code for {name}"
    if _is_program_word(_SAME.get(name, name), given, words[at]):
        return f"a program of {name}"
    if name in ("ssh", "sqlite3", "su", "flock") and any(not w.head.startswith("-") for w in given):
        return f"a command for {name}"
    if name in ("printf", "test", "[") and given and given[-1].plain in ("-v", "-R"):
        return f"the name of a variable for {name}"
    return ""


def _of_prefix(words: Sequence[Word], at: int) -> str:
    """A word before the program: `env -S VALUE` is code, `env NAME=VALUE` and `nice -n VALUE` are not."""
    before = words[at - 1].plain if at else ""
    if words[at].head.startswith(("-S", "--split-string")) or before in ("-S", "--split-string"):
        return f"code for {base(words[0])}"
    assigned = re.match(r"(\w+)=", words[at].head)
    if assigned is not None:
        return settings_of_programs(assigned[1])
    takes = _PREFIXES.get(base(words[0]), "")
    plain = re.fullmatch(f"-[{takes or '-'}]", before) is not None or base(words[at - 1]) in _FIRST_IS_A_VALUE
    return "" if plain else f"an option of {base(words[0])}"


def settings_of_programs(variable: str) -> str:
    """What a variable of this name is for, where that is code or where code is found; else empty."""
    return f"{variable}, which tells programs what to run" if _SETTINGS.fullmatch(variable) else ""


def script_word(words: Sequence[Word], *, only_bash: bool = False) -> int | None:
    """The word that is a shell's or an interpreter's script, as in `docker exec it sh -c SCRIPT`."""
    for at, word in enumerate(words[:-1]):
        name = base(word)
        is_shell = name in SHELLS or name in ("su", "runuser", "flock", "script")
        if not is_shell and (only_bash or not is_interpreter(name)):
            continue
        skip = False
        for option in range(at + 1, len(words)):
            text = words[option].head
            if skip:
                skip = False
                continue
            if not text.startswith(("-", "+")) or text == "--":
                break
            skip = is_shell and re.fullmatch(r"[-+]\w*[oO]", text) is not None  # -o pipefail
            pattern = re.compile(r"-\w*c") if name in SHELLS else _CODE_OPTION
            if pattern.fullmatch(words[option].plain):
                return option + 1 if option + 1 < len(words) else None
    return None


def runs_file(words: Sequence[Word], file: Word) -> bool:
    """Whether a command runs this file: as a program, or as the script of one."""
    first = program(words)
    if first < len(words) and words[first] is file:
        return True
    return name(words) in ("source", ".", "chmod", "crontab", "at") or is_interpreter(name(words))


def _names_a_file(given: Sequence[Word], word: Word) -> bool:
    """Whether a word is the first that is no option: a file to run."""
    return not word.head.startswith("-") and all(w.head.startswith("-") for w in given)


def _is_option_value(name: str, given: Sequence[Word], word: Word) -> bool:
    options = _CODE_OPTIONS.get(_SAME.get(name, name), "").split()
    if _LANGUAGES.fullmatch(name):
        options = ["-c", "-e", "-E", "-r", "-p", "-m", "-M", "--eval", "--print", "--require", "--import"]
    elif name in SHELLS:
        options = ["-c", "--rcfile", "--init-file"]
    if given and given[-1].plain in options:
        return True
    letters = "".join(o[1] for o in options if re.fullmatch(r"-\w", o))
    if any(word.head.startswith(f"{o}=") for o in options if o.startswith("--")):
        return True
    return bool(letters) and re.match(rf"-\w*[{letters}]", word.head) is not None


def _is_program_word(name: str, given: Sequence[Word], word: Word) -> bool:
    """Whether a word is the program of awk, sed or jq, and not a file or a variable for it."""
    if name not in _PROGRAM_FIRST or word.head.startswith("-"):
        return False
    if any(w.plain in _CODE_OPTIONS[name].split() for w in given):
        return False
    rest, skip = 0, 0
    for other in [*given, word]:
        if skip:
            skip -= 1
            rest = -1
            continue
        rest = 0
        if other.plain in _TAKES_TWO:
            skip = 2
        elif other.plain in _PROGRAM_FIRST[name]:
            skip = 1
        elif not other.head.startswith("-") and other is not word:
            return False
    return rest == 0


def reads_code(words: Sequence[Word]) -> bool:
    """Whether a command takes its standard input for code."""
    first = program(words)
    if first >= len(words):
        return False
    rest = words[first + 1 :]
    if base(words[first]) in ("xargs", "parallel"):
        return any(base(w) in SHELLS or _LANGUAGES.fullmatch(base(w)) for w in rest)
    if base(words[first]) in _CODE_ON_STDIN:
        return True
    if base(words[first]) in ("source", "."):
        return any(_STDIN.fullmatch(w.plain) for w in rest)
    if not is_interpreter(base(words[first])):
        return any(base(w) in SHELLS and _bare(words[at + 1 :]) for at, w in enumerate(words))
    return _bare(rest) and script_word(words) is None


def _bare(rest: Sequence[Word]) -> bool:
    """Whether a shell gets no file: nothing but options, or the name of its standard input."""
    operands = [w for w in rest if not w.head.startswith("-") or w.plain == "-"]
    return (
        not operands or _STDIN.fullmatch(operands[0].plain) is not None or any(w.plain == "-s" for w in rest)
    )


def takes_as_option(words: Sequence[Word], at: int) -> str:
    """The program that would take word `at` for an option, did it begin with `-`; else empty."""
    first = program(words)
    if at < first:
        return base(words[0])
    if first >= len(words) or at == first:
        return ""
    name, given = base(words[first]), words[first + 1 : at]
    script = script_word(words)
    if script is not None and at > script and name in SHELLS:
        return ""  # an argument of the script
    if name in _NO_OPTIONS or any(w.plain == "--" for w in given):
        return ""
    if name == "printf" and any(not w.head.startswith("-") for w in given):
        return ""
    return name or "the command"
