"""Programs: what is known of them, from the table in `programs.txt`; and which variables no program reads."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from importlib.resources import files


def names(text: str) -> frozenset[str]:
    """A set of names."""
    return frozenset(text.split())


BUILTINS = names(  # of bash: each has a rule of its own, or stands in no command that takes a value
    "eval alias unalias bind compgen complete compopt enable fc history hash coproc declare typeset export "
    "readonly unset local caller dirs disown jobs bg fg suspend logout times ulimit umask getopts let "
    "mapfile read readarray set shopt test [ trap printf wait"
)
SHELLS = names("bash sh dash ash rbash")
_INTERPRETERS = names(  # beside those of the table: none is a script of one's own, whatever its folder
    "perl zsh ksh fish csh tcsh tclsh expect deno bun tsx ts-node ipython irb pwsh guile busybox make vim"
)
_OWN = re.compile(r"(\./|~/|\.?[\w+-])[\w./+@-]*")
_INSTALLED = re.compile(r"(^|/)(\.\.|usr|node_modules|vendor|(\.[^/]+|v?env)/(.*/)?s?bin)/|/(\.bin|shims)/")
_VERSION = re.compile(r"(?<![-\d.])[-\d.]++$")
_OPTION = re.compile(r"(?<!\S)(--?[^\s=:!>?^]+)(=\w+|[:!>?^])?")
_LINE = re.compile(
    r"(?P<marks>[@%~^&]*) ?(?P<names>.*?):(?P<options>(?: (?!:: )\S+)*)(?: :: (?P<operands>.*))?"
)


@dataclass(frozen=True)
class Program:
    """A line of the table: what is known of a program, or of its subcommand."""

    name: str
    options: dict[str, str]
    operands: tuple[str, ...]
    marks: str

    @property
    def runs_code(self) -> bool:
        """Whether it runs code of the repository."""
        return "@" in self.marks

    @property
    def is_guarded(self) -> bool:
        """Whether it has options that run something; they are not in the table."""
        return "%" in self.marks

    @property
    def has_whole_options(self) -> bool:
        """Whether `-name` is one option, and not four."""
        return "~" in self.marks

    @property
    def passes_options_on(self) -> bool:
        """Whether what stands behind `--` may be an option for a script."""
        return "&" in self.marks

    @property
    def writes_anywhere(self) -> bool:
        """Whether it writes files that its line does not name."""
        return "^" in self.marks


def _read(table: str) -> dict[str, Program]:
    found: dict[str, Program] = {}
    for line in re.sub(r"(?m)^#.*\n|\A\n", "", table).strip().replace("\n  ", " ").splitlines():
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise ValueError(line)
        options: dict[str, str] = {}
        for name, kind in _OPTION.findall(parts["options"]):
            is_whole = name.startswith("--") or "~" in parts["marks"]
            names = [name] if is_whole else [f"-{letter}" for letter in name[1:]]
            options |= dict.fromkeys(names, kind.lstrip("="))
        operands = tuple((parts["operands"] or "_*").split())
        for name in parts["names"].split(", "):
            found[name] = Program(name, options, operands, parts["marks"])
    return found


PROGRAMS = _read((files(__package__) / "programs.txt").read_text("utf-8"))


def base(path: str) -> str:
    """A program's name without its folder and its version: /usr/bin/python3.11 is python."""
    name = path.rpartition("/")[2]
    known = name in PROGRAMS or name in BUILTINS
    return name if known else _VERSION.sub("", name.lower()) or name


def is_own(path: str) -> bool:
    """Whether a path names a script of the repository or the person, whose own matter a value is."""
    is_path = "/" in path and _OWN.fullmatch(path) is not None and _INSTALLED.search(path) is None
    return is_path and base(path) not in _INTERPRETERS


def is_known(name: str) -> bool:
    """Whether a name has a meaning here, so that no function may have it."""
    return base(name) in PROGRAMS or name in BUILTINS


# -- variables -------------------------------------------------------------------------------

PROPERTIES = (
    *("id", "title", "status", "type", "agent", "requirements", "focus_paths", "acceptance", "parent"),
    *("depends_on", "target_files"),
)  # of a task, which a command finds in its environment too
_FREE = names(
    "_ reply mapfile name names file files dir dirs folder text message msg body value values query pattern "
    "topic summary description label labels branch task note notes foo bar content line word words item items"
).union(PROPERTIES)
_READ = re.compile(r"\w*_proxy|(npm|pnpm|yarn|rvm|ac)_\w*|histchars|auto_resume")  # though in small letters
_EVALUATED = re.compile(
    r"\w*(EDITOR|PAGER|COMMAND|ASKPASS|DIFF|SHELL|BROWSER)|VISUAL|ENV|BASH\w*|PS\d|LESS\w*|LD_\w*|TAR_OPTIONS"
    r"|GIT_(CONFIG|SSH|TEMPLATE|EXEC)\w*|RSYNC\w+|RIPGREP\w+|PERL\w+|RUBY\w+|PYTHON(STARTUP|HOME|INSPECT)"
)


def may_hold(variable: str, *, exported: bool) -> bool:
    """Whether a value may be in a variable: no program, and not bash, reads one of that name."""
    if variable.lower() in _FREE or re.fullmatch(r"[A-Za-z]\d?", variable):
        return True
    return (
        not exported
        and re.fullmatch(r"[a-z][a-z\d_]*", variable) is not None
        and not _READ.fullmatch(variable)
    )


def is_evaluated(variable: str) -> bool:
    """Whether bash or programs run what a variable of this name holds."""
    return _EVALUATED.fullmatch(variable) is not None


# -- programs that stand on a line -----------------------------------------------------------


def code_problem(name: str, text: str | None) -> str:
    """Why a program that stands on the line may run what it reads."""
    if text is None:
        return f"code for {name}"
    if "sed" in name:
        return "" if _SED.fullmatch(text) else "a program of sed that is more than s///, p, d and q"
    if name in ("python", "pypy"):
        return "" if _is_tame(text) else "a program of python that does more than print what it reads"
    pattern = _AWK if "awk" in name else _JQ if name in ("jq", "gojq", "jaq", "yq") else None
    return (
        ""
        if pattern is not None and not pattern.search(text)
        else f"a program of {name} that may run what it reads"
    )


_AWK = re.compile(r"\b(system|getline)\b|(?<!\|)\|(?!\|)|@")
_JQ = re.compile(r"\b(import|include|eval|load\w*|system)\b")
_SED_PART = "|".join(
    rf"s{d}(?:[^{d}\\\n]|\\.)*+{d}(?:[^{d}\\\n]|\\.)*+{d}[gpiI\d]*+"
    for d in ("/", r"\|", "#", ",", "@", ":", "!", "%")
)
_SED_ADDRESS = r"(?:\d++|\$|/(?:[^/\\\n]|\\.)*+/)"
_SED = re.compile(
    rf"(?:\s*+(?:{_SED_ADDRESS}(?:,{_SED_ADDRESS})?!?\s*+)?(?:{_SED_PART}|[pdq=nhHgGxND])[^\S\n]*+(?:\s*+\Z|;|\n))+"
)
_PYTHON = {
    "sys": "argv stdin stdout stderr exit",
    "json": "load loads dump dumps",
    "re": "sub match search fullmatch findall split escape compile I M S",
    "math": "ceil floor sqrt log",
    "textwrap": "dedent indent fill wrap shorten",
    "html": "escape unescape",
    "hashlib": "md5 sha1 sha256 sha512",
    "base64": "b64encode b64decode",
    "collections": "Counter defaultdict",
    "datetime": "date datetime timedelta timezone",
    "string": "ascii_letters digits",
}
_PYTHON_NAMES = names(
    "print len str int float bool list dict set tuple sorted reversed sum min max any all enumerate zip map "
    "filter range repr ord chr abs round isinstance next iter True False None"
)


def _is_tame(text: str) -> bool:
    """Whether a program of Python only computes, and prints, what it reads."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    nodes = list(ast.walk(tree))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    modules = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names if a.asname is None}
    for node in nodes:
        match node:
            case ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef() | ast.Lambda():
                return False
            case ast.Import() if any(a.asname or a.name not in _PYTHON for a in node.names):
                return False
            case ast.Attribute(value=ast.Name(id=owner)) if owner in modules - stored:
                if node.attr not in _PYTHON[owner].split():
                    return False
            case ast.Attribute() if node.attr.startswith(("_", "gi_", "format")):
                return False
            case ast.Name(id=name) if name not in _PYTHON_NAMES | stored | modules:
                return False
    return True
