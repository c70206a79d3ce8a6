"""Which words of a command line are run, and from where."""

import pytest

from rondel.agents.words import by_no_link, loads_modules, pinned, run_in


@pytest.fixture
def beside(tmp_path):
    for name in ("tools/review.sh", "agent.py", "README.md", "a b/x.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("bash tools/review.sh", "bash {}/tools/review.sh"),
        ("bash ./tools/review.sh", "bash {}/tools/review.sh"),
        ("tools/review.sh --fast", "{}/tools/review.sh --fast"),
        ("A=1 exec bash -e tools/review.sh README.md", "A=1 exec bash -e {}/tools/review.sh README.md"),
        (
            "cat README.md | python3 agent.py && tools/review.sh",
            "cat README.md | python3 {}/agent.py && {}/tools/review.sh",
        ),
        (
            'python3 agent.py --say "x; bash tools/review.sh"',
            'python3 {}/agent.py --say "x; bash tools/review.sh"',
        ),
        ("cd tools && bash tools/review.sh", "cd tools && bash tools/review.sh"),
        ("bash $X tools/review.sh", "bash $X tools/review.sh"),
        ("agent.py review", "agent.py review"),
        ("bash -c tools/review.sh x", "bash -c {}/tools/review.sh x"),
        ("make review", "make review"),
    ],
)
def test_the_scripts_of_a_line_are_those_beside_its_settings(beside, line, expected):
    words, _ = pinned((line,), beside)
    assert words == (expected.replace("{}", str(beside)),)


def test_a_place_with_odd_letters_stays_one_word(beside):
    (beside / "a b/tools").mkdir()
    (beside / "a b/tools/x.sh").write_text("")
    assert pinned(("bash tools/x.sh",), beside / "a b")[0] == (f"bash '{beside}/a b/tools/x.sh'",)


def test_a_link_names_something_else(beside):
    (beside / "link.sh").symlink_to("agent.py")
    (beside / "folder").symlink_to("tools")
    there = [beside / name for name in ("agent.py", "tools/review.sh", "link.sh", "folder/review.sh")]
    assert by_no_link(there, beside) == tuple(map(str, there[:2]))


def test_what_was_pinned_is_told(beside):
    assert pinned(("python3", "agent.py", "README.md"), beside)[1] == (beside / "agent.py",)
    assert pinned(("bash tools/review.sh",), beside)[1] == (beside / "tools/review.sh",)
    assert pinned(("bash tools/review.sh",), None) == (("bash tools/review.sh",), ())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("make", "review"), ["Makefile"]),
        (("bash", "-lc", "make review"), ["Makefile"]),
        (("npx", "-y", "reviewer"), ["package.json", ".npmrc", "node_modules"]),
        (("bash tools/review.sh",), ["tools/review.sh"]),
        (("cd tools; ./review.sh",), []),
        (("python3", "/opt/agent.py", "agent.py"), []),
        (("python3", "-u", "-W", "ignore", "agent.py"), ["agent.py"]),
        (("python3", "-m", "agent"), []),
        (("my-agent", "make", "agent.py"), []),
        (("tools/review.sh",), ["tools/review.sh"]),
        (("/usr/bin/make", "-C", "."), ["Makefile"]),
    ],
)
def test_what_decides_in_a_folder_what_is_run(beside, words, expected):
    (beside / "node_modules").mkdir()
    for name in ("Makefile", "package.json", ".npmrc"):
        (beside / name).write_text("")
    assert list(run_in(words, beside)) == expected


@pytest.mark.parametrize(
    ("words", "loads"),
    [
        (("python3", "-m", "x"), True),
        (("python3 -u -m x",), True),
        (("/usr/bin/python3.11", "-Im", "x"), True),
        (("bash", "-c", "env A=1 python -c 'import x'"), True),
        (("python3", "/opt/agent.py", "-m", "gpt"), False),
        (("my-agent", "-m", "gpt"), False),
        (("bash run.sh -c",), False),
    ],
)
def test_whether_a_python_takes_modules_from_its_folder(words, loads):
    assert loads_modules(words) is loads
