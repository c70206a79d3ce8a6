"""Programs: what is known of programs by their names.

A program is plain (it runs nothing that it is given), guarded (it runs something by some options), an
interpreter, or one that runs what it is given. Of a program that is not listed nothing is known. An
interpreter may be given values beside a program that is written out, or a file that is named; nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rondel.workflows.task.bash import Input, Word


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = _names("bash sh dash ash rbash")
LANGUAGES = _names(
    "python pypy node nodejs perl ruby php lua luajit rscript pwsh osascript tclsh wish "
    "expect groovy zsh ksh mksh fish csh tcsh elvish nu xonsh guile racket sbcl clojure scala "
    "kotlin julia octave erl escript elixir iex ghci runghc runhaskell ocaml swift java "
    "jshell jrunscript irb ipython pypy ts-node tsx coffee raku tcl gnuplot gst"
)
READERS_OF_CODE = _names("awk gawk mawk nawk sed gsed jq gojq jaq yq")  # their program is a word
PLAIN = _names(
    "[ arch b2sum base32 base64 basename basenc bunzip2 bzcat bzip2 cal cat chgrp chmod chown "
    "cksum clear cmp col colrm column comm cp csplit cut date dd df diff diff3 dir dirname "
    "dos2unix du echo egrep expand expr factor false fgrep file fmt fold free getconf getent "
    "grep groups gunzip gzip head hexdump hostname iconv id install jobs join kill last link "
    "ln locale logname look ls lsof lz4 md5sum mkdir mkfifo mktemp mv nl nm nproc numfmt od "
    "paste pgrep pidof pr printenv printf ps pstree pwd readlink realpath rev rgrep rm rmdir "
    "seq sha1sum sha224sum sha256sum sha384sum sha512sum shasum shuf sleep stat strings stty "
    "sum sync tac tail tee test touch tr tree true truncate tsort tty uname unexpand uniq "
    "unix2dos unlink unxz uptime users vdir wc whereis which who whoami xxd xz xzcat yes zcat "
    "zstd zstdcat : break caller cd continue dirs disown exit false help logout popd pushd "
    "return shift suspend times true type ulimit umask bg fg"
)
BY_RULE = _names("read mapfile readarray set shopt trap printf test [ wait getopts let xargs find")
OF_BASH = _names(
    "eval alias unalias bind compgen complete compopt enable fc history hash coproc declare "
    "typeset export readonly unset local"
)  # of bash, and never without a rule of their own
RUN_WHAT_THEY_GET = _names(
    " at batch crontab ssh sftp scp su runuser sg newgrp script scriptlive tmux screen gdb "
    "lldb vim vi view vimdiff nvim rvim rview ex ed red emacs emacsclient nano editor m4 dc "
    "bc psql mysql mariadb sqlite mongo mongosh redis-cli duckdb make gmake bmake ninja cmake "
    "ctest scons rake just task parallel watch entr fswatch npx pnpx bunx uvx pipx hyperfine "
    "prove run-parts start-stop-daemon systemd-run nsenter unshare flock setpriv capsh "
    "fakeroot runcon choom uclampset prlimit dbus-run-session ssh-agent pg_virtualenv "
    "memusage heaptrack sotruss perf valgrind ltrace deno bun busybox toybox xvfb-run bwrap "
    "firejail proot eatmydata chronic cgexec numactl tini dumb-init daemonize direnv dotenv "
    "xinit startx dbus-launch logsave faketime git-shell ld.so msgexec msgfilter opt llc lli "
    "gcc g++ cc c++ clang clang++ cpp as ld tic man less more pager most zless lesspipe bzexe "
    "gzexe xdg-open open sensible-editor sensible-pager sensible-browser nc ncat netcat socat "
    "telnet openssl cpan pip docker-compose ansible ansible-playbook vagrant terraform nix "
    "nix-shell guix kubectl oc service systemctl init chroot switch_root pivot_root doas "
    "pkexec gosu torsocks proxychains unbuffer catchsegv dpkg apt apt-get rpm yum dnf "
    "envsubst patch cpio rename logrotate tcpdump nmap pdb pydoc easy_install tox nox "
    "build virtualenv ensurepip"
)
# These run the command that follows: by options, options with a word of their own, words before it.
PREFIXES = {
    "builtin": ("", "", 0),
    "chrt": ("abdfior", "", 1),
    "command": ("p", "", 0),
    "env": ("i0v", "uC", 0),
    "exec": ("cl", "a", 0),
    "ionice": ("t", "cn", 0),
    "nice": ("", "n", 0),
    "nohup": ("", "", 0),
    "setsid": ("cfw", "", 0),
    "stdbuf": ("", "ioe", 0),
    "strace": ("fqtv", "eos", 0),
    "sudo": ("nEHSi", "ugChpRT", 0),
    "taskset": ("", "", 1),
    "time": ("pv", "fo", 0),
    "timeout": ("v", "sk", 1),
    "xargs": ("0rtxp", "nPLdasI", 0),
    "!": ("", "", 0),
}
WRITERS = _names(
    "dd cp mv ln link install rsync touch mkdir split csplit tar unzip truncate curl wget sort"
)  # of a value among their words: it names a file, and is not written into it

GIT_COMMANDS = _names(
    "add archive blame branch cat-file check-ignore checkout cherry-pick clean clone commit "
    "describe diff diff-tree fetch for-each-ref format-patch grep init log ls-files ls-remote "
    "ls-tree merge merge-base mv name-rev notes pull push range-diff rebase reflog remote "
    "reset restore rev-list rev-parse revert rm shortlog show show-ref stash status switch "
    "symbolic-ref tag worktree"
)
GUARDED = {  # these run programs by some options; those that do not
    "git": "-C -a -A -b -B -d -D -e -f -F -g -G -i -k -l -m -M -n -N -p -q -r -s -S -t -v -w -W -z "
    "-E -P --no-pager --message --author --date --amend --no-edit --allow-empty "
    "--allow-empty-message --no-verify --signoff --all --cached --staged --stat --numstat "
    "--shortstat --name-only --name-status --no-color --color --oneline --graph --decorate "
    "--patch --follow --since --after --until --before --grep --format --pretty --max-count "
    "--reverse --no-merges --merges --first-parent --diff-filter --quiet --verbose --force "
    "--force-with-lease --set-upstream --track --no-track --detach --orphan --depth --branch "
    "--single-branch --tags --prune --abbrev-ref --short --show-toplevel --verify --hard "
    "--soft --mixed --source --ff-only --no-ff --squash --abort --continue --skip --onto "
    "--porcelain --untracked-files --ignored --others --exclude-standard --deleted --modified "
    "--contains --merged --no-merged --points-at --sort --list --delete --annotate --file "
    "--fixup --dry-run --recursive --keep-index --include-untracked --word-diff --unified "
    "--ignore-all-space --ignore-case --line-number --count --heads --bare",
    "find": "-name -iname -path -ipath -wholename -regex -iregex -type -size -mtime -mmin -atime "
    "-ctime -newer -maxdepth -mindepth -print -print0 -printf -prune -delete -empty -not -and "
    "-or -a -o -perm -user -group -links -depth -xdev -mount -follow -L -H -P -quit -ls "
    "-readable -writable -executable -samefile -lname -regextype -true -false",
    "fd": "-a -d -e -E -g -H -i -I -l -L -p -s -t -u --type --extension --exclude --glob --hidden "
    "--max-depth --no-ignore",
    "rg": "-A -B -C -c -e -F -f -g -h -H -i -I -l -L -m -n -N -o -P -q -r -s -S -t -T -u -U -v -w "
    "-x -z --glob --type --files --hidden --no-ignore --count --fixed-strings "
    "--files-with-matches --json --line-number --no-heading --color --ignore-case "
    "--word-regexp --max-count --context --regexp --sort --multiline --only-matching",
    "sort": "-b -c -C -d -f -g -h -i -k -M -m -n -o -r -R -s -t -u -V -z --unique --reverse "
    "--numeric-sort --key --field-separator --version-sort",
    "split": "-a -b -C -d -e -l -n -x --lines --bytes --number --suffix-length --additional-suffix "
    "--numeric-suffixes",
    "tar": "-c -x -t -z -j -J -v -f -C -k -p -r -u -P --create --extract --list --gzip --file "
    "--directory --exclude --strip-components --verbose",
    "zip": "-r -q -j -9 -x -u -d -m -y -v",
    "unzip": "-o -q -d -l -p -n -j -t -v",
    "rsync": "-a -v -z -r -n -u -t -l -p -P -q -c -h --delete --exclude --include --progress --stats "
    "--archive --dry-run",
    "curl": "-s -S -f -L -X -H -d -F -o -O -i -I -v -k -m -A -G -u -b -w -T --data --data-raw "
    "--data-urlencode --json --header --request --url --output --silent --show-error --fail "
    "--location --max-time --retry --user",
    "wget": "-q -O -P -c -N -nc -nv --quiet --output-document --timeout --tries --header --post-data",
    "pytest": "-k -m -x -q -v -vv -s -l -n -r --maxfail --tb --durations --lf --ff --no-header "
    "--junitxml --co --collect-only --quiet --verbose --strict-markers --deselect --ignore",
    "npm": "-s -w -D -g --silent --workspace --workspaces --if-present --prefix --save-dev --prefer-offline",
    "docker": "-d -e -f -i -t -q -v -w -p -u --rm --name --workdir --env --volume --tag --file --quiet",
    "getopt": "-o -l -n --options --longoptions --name --long",
}
SAME = {
    "egrep": "grep",
    "fdfind": "fd",
    "ripgrep": "rg",
    "gtar": "tar",
    "bsdtar": "tar",
    "gfind": "find",
    "pnpm": "npm",
    "yarn": "npm",
    "podman": "docker",
    "gsort": "sort",
    "py.test": "pytest",
}
OPTION_THAT_RUNS = re.compile(
    r"--?(?>[\w-]*?(?:exec|eval|command|cmd|shell|script|rsh|hook|program|plugin|require|import|load|pager|editor))"
    r"[\w-]*+"
)


class Language(NamedTuple):
    """The options of an interpreter before its program."""

    flags: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()  # with a word of their own
    attached: tuple[str, ...] = ()  # with a text of their own in the same word
    pairs: tuple[str, ...] = ()  # with two words of their own
    code: tuple[str, ...] = ()  # with a program
    first_is_code: bool = False  # the first word that is no option is a program, and not a file


_SHELL = Language(("-e", "-u", "-x", "-f", "-v"))
INTERPRETERS = {
    **dict.fromkeys(SHELLS, _SHELL),
    "python": Language(
        ("-u", "-B", "-I", "-s", "-S", "-E", "-q", "-O", "-P", "-b"), valued=("-W", "-X"), code=("-c",)
    ),
    "node": Language(("--test", "--no-warnings"), code=("-e", "--eval", "-p", "--print")),
    "java": Language(("-jar", "-ea")),
    "awk": Language(valued=("-F", "-v"), attached=("-F", "-v"), first_is_code=True),
    "sed": Language(
        ("-n", "-E", "-r", "-i", "-s", "-z", "-u"), ("-l",), code=("-e", "--expression"), first_is_code=True
    ),
    "jq": Language(
        (
            *("-r", "-c", "-n", "-s", "-e", "-j", "-a", "-S", "-M", "-C", "-R", "--raw-output"),
            "--tab",
            "--slurp",
        ),
        valued=("--indent",),
        pairs=("--arg", "--argjson", "--slurpfile", "--rawfile"),
        first_is_code=True,
    ),
}
KINDS = {
    **dict.fromkeys(("gawk", "mawk", "nawk"), "awk"),
    **dict.fromkeys(("gojq", "jaq", "yq"), "jq"),
    "gsed": "sed",
    "pypy": "python",
    "nodejs": "node",
}
MODULES_THAT_RUN = _names(
    "timeit code codeop pdb bdb cProfile profile trace runpy asyncio idlelib sqlite3 doctest pydoc"
)
EVALUATING = {  # words by which a program runs a text
    "python": re.compile(
        r"\b(eval|exec|system|popen|spawn\w*|subprocess|compile|importlib|runpy|pickle|marshal|ctypes|pty|os|code\w*|pdb|timeit|builtins)\b|__"
    ),
    "node": re.compile(
        r"\b(eval|Function|child_process|exec\w*|spawn\w*|vm|require|import|constructor|set\w+|process\.b\w*)\b"
    ),
    "awk": re.compile(r"\b(system|getline)\b|(?<!\|)\|(?!\|)|@"),
    "jq": re.compile(r"\b(import|include)\b"),
}
_SED_PART = "|".join(
    rf"s{d}(?:[^{d}\\\n]|\\.)*+{d}(?:[^{d}\\\n]|\\.)*+{d}[gpiI\d]*+"
    for d in ("/", r"\|", "#", ",", "@", ":", "!", "%")
)
_SED_ADDRESS = r"(?:\d++|\$|/(?:[^/\\\n]|\\.)*+/)"
SED = re.compile(
    rf"(?:\s*+(?:{_SED_ADDRESS}(?:,{_SED_ADDRESS})?!?\s*+)?(?:{_SED_PART}|[pdq=nhHgGxND])[^\S\n]*+(?:\s*+\Z|;|\n))+"
)
SETTINGS = re.compile(  # variables that bash or programs read to know what to do
    r"IFS|ENV|BASH\w*|PROMPT\w*|PS\d|SHELL\w*|FUNC\w*|HIST\w*|S?RANDOM|SECONDS|LINENO|OPT(IND|ERR)|EPOCH\w+"
    r"|COMP_\w+|DIRSTACK|GROUPS|E?UID|PPID|PIPESTATUS|SHLVL|HOSTNAME|HOSTTYPE|MACHTYPE|OSTYPE|TIMEFORMAT|TMOUT"
    r"|COLUMNS|LINES|CHILD_MAX|(GLOB|EXEC|F)IGNORE|IGNOREEOF|INPUTRC|POSIXLY_CORRECT|READLINE\w*|MAIL\w*|FCEDIT"
    r"|EXINIT|VIMINIT|VISUAL|LANG(UAGE)?|LC_\w+|TEXTDOMAIN\w*|TERM(INFO)?|TZ|TMPDIR|TEMP|TMP|(OLD)?PWD|HOME"
    r"|auto_resume|histchars|COPROC|CC|CXX|CPP|AS|AR|GZIP|BZIP2?|GREP_\w+|XZ_\w+"
    r"|(DYLD|GIT|PYTHON|PERL|RUBY|NODE|LESS|LUA|JAVA|JDK|MAVEN|CARGO|NPM|MAKE|CMAKE)\w*|(PG|LD|UV|GCC)[A-Z_]+"
    r"|(R|GO|RUST|GRADLE|YARN|DOCKER|SSH|PIP|TAR|RSYNC|CURL|WGET|PHP|TCL|XDG|DBUS|MALLOC|VIM|TOX|PYTEST|_JAVA)_\w+"
    r"|\w*(PAGER|EDITOR|BROWSER|ASKPASS|PATH|FLAGS|_OPTS|OPTIONS|COMMAND|_CMD|_PROXY|_proxy|_PRELOAD|STARTUP|_HOOK)"
    r"|npm_\w+|\w*(?<=[A-Z])RC"
)
SET_OPTION = re.compile(r"[-+][euxfvCETh]*o?")
SET_NAMES = _names("pipefail errexit nounset noglob xtrace verbose noclobber errtrace functrace")
SHOPT = _names(
    "-s -u -q nullglob failglob dotglob globstar extglob nocaseglob nocasematch inherit_errexit lastpipe"
)
NO_OPTIONS = _names("cd echo : true false test [ return exit shift")
NAME = re.compile(r"[A-Za-z_]\w*")
UNARY = re.compile(r"-[a-hknoprstuwxzGLNOS]")
BINARY = re.compile(r"==?|!=|<|>|-(eq|ne|lt|le|gt|ge|nt|ot|ef)")
NUMBERED = _names("base32 base64 b2sum bzip2 lz4 m4 diff3")  # whose number is no version
NPM_RUNS = _names("exec x config set explore dlx install i add create init update")
SUBCOMMANDS_THAT_RUN = {  # what runs, or installs and so runs, what it is given
    "cargo": _names("install run"),
    "composer": _names("require exec run-script create-project"),
    "coverage": _names("run"),
    "gem": _names("install exec"),
    "go": _names("run install get generate tool"),
    "hatch": _names("run"),
    "conda": _names("install create run"),
    "brew": _names("install"),
    "bundle": _names("exec add"),
    "pdm": _names("run add install"),
    "poetry": _names("run add"),
    "uv": _names("pip run tool add x sync"),
}
ATTACHED = _names("rg sort pytest split")  # their options have texts of their own in the same word
KNOWN = (
    *(PLAIN, SHELLS, LANGUAGES, READERS_OF_CODE, BY_RULE, OF_BASH, RUN_WHAT_THEY_GET),
    *(PREFIXES, GUARDED, SAME, _names("source .")),
)


def interpreter_problem(name: str, words: Sequence[Word], given: Input) -> str:
    """Why an interpreter may not be given values; empty where it may."""
    kind = KINDS.get(name, name)
    language = INTERPRETERS.get(kind, Language())
    at, has_code = 1, False
    while at < len(words):
        text = words[at].text
        skip = _skipped(language, words[at])
        if any(w.many for w in words[at : at + max(skip, 1)]) or (text is None and not skip):
            return f"{name}, with a word before its program that is not written out"
        if text is not None and text in language.code:
            found = _code(kind, words[at + 1 : at + 2])
            if found or not language.first_is_code:
                return found
            at, has_code = at + 2, True
        elif text == "-m" and kind == "python":
            return _module(words[at + 1 : at + 2])
        elif skip:
            at += skip
        elif (text or "-").startswith(("-", "+")):
            return f"{name} {text}, which is not known to run nothing"
        elif language.first_is_code:
            return "" if has_code else _code(kind, words[at : at + 1])
        else:
            return script_file(name, words[at:], given)
    return "" if has_code else f"{name}, which reads its program from its standard input"


def _skipped(language: Language, word: Word) -> int:
    """How many words an option takes that runs nothing; 0 where it is none."""
    text = word.text or ""
    if text in language.pairs:
        return 3
    if text in language.valued:
        return 2
    attached = any(word.head.startswith(o) and word.head != o for o in language.attached)
    letters = "".join(flag[1] for flag in language.flags if re.fullmatch(r"-\w", flag))
    cluster = re.fullmatch(f"-[{letters or '-'}]+(\\.\\w+)?", text) if letters else None
    return int(text == "--" or text in language.flags or attached or cluster is not None)


def _module(words: Sequence[Word]) -> str:
    module = words[0].text if words else None
    fine = module is not None and module.partition(".")[0] not in MODULES_THAT_RUN
    return "" if fine else f"python -m {module or ''}, which runs what it is given"


def _code(kind: str, words: Sequence[Word]) -> str:
    text = words[0].text if words else None
    if text is None:
        return f"code for {kind}"
    if kind == "sed":
        return "" if SED.fullmatch(text) else "a program of sed that is more than s///, p, d and q"
    return f"a program of {kind} that may run what it reads" if EVALUATING[kind].search(text) else ""


def script_file(name: str, words: Sequence[Word], given: Input) -> str:
    """Why the file that a command runs is not known to hold no value; empty where it is."""
    text = words[0].text if words else None
    if text is None or text.startswith(("-", "/dev/", "/proc/")):
        return f"{name}, whose script is not a file that is written out"
    if given.any_file or given.written.intersection(text.split("/")):
        return f"{name}, which may run a file that a value was written to"
    return ""


def writes_files(name: str, words: Sequence[Word]) -> bool:
    """Whether the text of a program, given to its interpreter, may write a file."""
    texts = [w.text or "" for w in words[1:]]
    if KINDS.get(name, name) == "awk":
        return any(">" in text for text in texts)
    return name == "python" and any(re.search(r"open|Path|File|shutil|temp|logging|sqlite", t) for t in texts)
