"""A grammar of scripts with a value `[v]` in them: everything that bash can do with a text, put together."""

from __future__ import annotations

from hypothesis import strategies as st

_NAMES = st.sampled_from(["x", "y", "q", "n"])
_FILES = st.sampled_from(["z", "n.txt", "run.sh", "m.py", "Makefile", "o.md"])
_LITERALS = st.sampled_from(
    [
        "x",
        "y",
        "a",
        "1",
        "-c",
        "-v",
        "-n",
        "-i",
        "--",
        "bash",
        "eval",
        "z",
        "./z",
        "n.txt",
        "*",
        "{a,b}",
        "%s",
        "''",
    ]
)
_READERS = st.sampled_from(
    [
        *(
            "bash",
            "sh",
            "bash -s",
            "cat",
            "tee z",
            "tee n.txt",
            "read x",
            "read -r y",
            "mapfile -t a",
            "xargs echo",
        ),
        *("xargs bash -c", "xargs -I{} sh -c {}", "python3 -", "awk '{print}'", "sed s/a/b/", "sed s/a/b/e"),
        *(
            "awk '{system($0)}'",
            "make -f -",
            "while read -r x; do echo $x; done",
            "{ read q; echo $q; }",
            "f",
            "g",
        ),
        *(
            "(bash)",
            "env bash",
            "sort",
            "tr a b",
            "head -1",
            ". /dev/stdin",
            "split --filter=sh",
            "m4",
            "xargs -n1",
        ),
    ]
)
_EVALUATORS = st.sampled_from(
    [
        *(
            "eval",
            "bash -c",
            "sh -c",
            "bash",
            "sh",
            ".",
            "source",
            "$x",
            '"$x"',
            "$e",
            "${a[@]}",
            '"${a[@]}"',
        ),
        *(
            "bash $c",
            "command eval",
            "env bash -c",
            "timeout 5 bash -c",
            "exec",
            "let",
            "declare",
            "declare -i",
        ),
        *(
            "unset",
            "trap",
            "test -v",
            "printf -v",
            "[ -v",
            "python3 -c",
            "awk",
            "sed -n",
            "xargs",
            "find . -exec",
        ),
        *(
            "bash x.sh",
            "bash -c 'echo \"$1\"' b",
            "bash -c '$1' b",
            "python3 x.py",
            "command -v",
            "set --",
            "f",
            "g",
        ),
        *(
            "export",
            "alias k=",
            "readonly",
            "local",
            "coproc",
            "nice",
            "nohup",
            "sh -s",
            "bash -o errexit -c",
        ),
        *(
            "cat",
            "ls",
            "wc -l",
            "echo",
            ":",
            "grep -c",
            "mkdir -p",
            "printf %s",
            "printf",
            "cp z",
            "tee",
            "head",
        ),
    ]
)
_ARITHMETIC = st.sampled_from(
    [
        *("echo $(({0}))", "(( {0} ))", "let {0}", "[[ {0} -eq 1 ]]", "[[ ${0} -gt 0 ]]", "echo ${{a[{0}]}}"),
        *(
            "a[{0}]=1",
            "echo ${{!{0}}}",
            "s=abc; echo ${{s:{0}}}",
            "for (({0}; 0; )); do :; done",
            "[[ -v {0} ]]",
        ),
        *("echo $[{0}]", "unset a[{0}]", "echo ${{{0}@P}}", "echo $((${0}))", "[ {0} -eq 1 ]", "(( {0}++ ))"),
        *(
            "declare -i {0}",
            "echo ${{#{0}}}",
            "echo ${{{0}:-a}}",
            "printf %d ${0}",
            "declare -n {0}=x",
            "[ ${0} ]",
        ),
    ]
)


@st.composite
def _words(draw: st.DrawFn, depth: int) -> str:
    kind = draw(st.integers(0, 13))
    name = draw(_NAMES)
    simple = [
        "[v]",
        '"[v]"',
        "'[v]'",
        f"${name}",
        f'"${name}"',
        f'"${{{name}#a}}"',
        '"${a[@]}"',
        '"$1"',
        "$@",
        "a[v]",
    ]
    if kind < len(simple):
        return simple[kind]
    if kind == len(simple) or depth <= 0:
        return draw(_LITERALS)
    inner = draw(_commands(depth - 1))
    return draw(st.sampled_from([f"$({inner})", f'"$({inner})"', f"<({inner})", "$(<z)", '"$(<n.txt)"']))


@st.composite
def _commands(draw: st.DrawFn, depth: int) -> str:
    """A command with some words."""
    name = draw(st.sampled_from(["echo", "printf %s", "cat", "f", "g"]) | _EVALUATORS)
    words = draw(st.lists(_words(depth), min_size=1, max_size=2))
    end = " ]" if name.startswith("[") else " \\;" if name.startswith("find") else ""
    return f"{name} {' '.join(words)}{end}"


@st.composite
def statements(draw: st.DrawFn, depth: int = 2) -> str:
    """A statement, with others in it."""
    name, file = draw(_NAMES), draw(_FILES)
    word = draw(_words(depth))
    command = draw(_commands(depth))
    inner = draw(statements(depth - 1)) if depth > 0 else ":"
    reader = draw(_READERS)
    forms = [
        *(
            f"{name}={word}",
            f"{name}={word}",
            f"{name}={name}",
            f"{name}+={word}",
            f"a=({word} {word})",
            "c=-c e=eval",
        ),
        *(
            f"export {name}={word}",
            f"declare {name}={word}",
            f"declare -i {name}",
            f"local {name}={word}",
            "a=(bash -c)",
        ),
        *(
            f"{name}=x",
            f"OPTIND={word}",
            f"IFS=, {command}",
            f"{name}={word} {command}",
            f"PATH=.:$PATH {command}",
        ),
        *(f"read {name} <<< {word}", f"for {name} in {word}; do {inner}; done", f"{{ {inner}; }} <<< {word}"),
        *(
            f"f() {{ {inner}; }}",
            f"g() {{ {inner}; }} > {file}",
            f"( {inner} )",
            f"if {command}; then {inner}; fi",
        ),
        *(
            f"{command} > {file}",
            f"{command} >> {file}",
            f"{command} | {reader}",
            f"{{ {inner}; }} | {reader}",
        ),
        *(
            f"{reader} <<< {word}",
            f"{reader} < {file}",
            f"{reader} < <({command})",
            f"{command} > >({reader})",
        ),
        *(
            f"exec > {file}",
            f"exec 3> >({reader}); {command} >&3",
            f"exec < {file}",
            f"{reader} <<E\n{word}\nE\n",
        ),
        *(
            f"bash {file}",
            f". ./{file}",
            f"chmod +x {file}; ./{file}",
            f"cp {file} z",
            f"python3 {file}",
            f"sh < {file}",
        ),
        *(
            f"trap '{inner}' EXIT",
            f"bash -c '{inner}' b {word}",
            f"{name}=$({inner})",
            f"case {word} in {word}) {inner} ;; esac",
        ),
        *(
            draw(_ARITHMETIC).format(name),
            draw(_ARITHMETIC).format(name),
            command,
            command,
            f"while {inner}; do break; done",
        ),
        *(
            f"f {word}",
            "f",
            f"set -- {word}",
            f"{name}=${{!{name}}}",
            f"[[ {word} == {word} ]] && {inner}",
            f"! {inner}",
        ),
    ]
    return draw(st.sampled_from(forms))


scripts = (
    st.lists(statements(), min_size=1, max_size=4)
    .flatmap(
        lambda parts: st.sampled_from(["\n", "; ", " && ", " || "]).map(lambda between: between.join(parts))
    )
    .filter(lambda script: "[v]" in script)
)
