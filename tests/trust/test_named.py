"""Which files a command names: whatever would run asks again when it changes, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from rondel.trust.consents import TEXT_MAX, lookup
from rondel.trust.named import CALLED_MAX, WORDS_MAX
from rondel.trust.parts import UNTOLD, Part, part


def written(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def part_of(root: Path, command: object) -> Part:
    return part("project.test", {"test": command}, lambda path: lookup(root, path))


def asks(root: Path, command: object, files: dict[str, str], changed: str) -> bool:
    """Whether a command asks again when one file is another."""
    written(root, files)
    before = part_of(root, command).digest
    assert part_of(root, command).digest == before
    written(root, {changed: "changed\n"})
    return part_of(root, command).digest != before


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("sh ci/test@unit.sh", "ci/test@unit.sh"),
        ("sh ci/a=b.sh", "ci/a=b.sh"),
        ("sh ci/a,b.sh", "ci/a,b.sh"),
        ("sh ci/test:unit.sh", "ci/test:unit.sh"),
        ('sh "my tests.sh"', "my tests.sh"),
        (["sh", "-c", "sh 'my tests.sh'"], "my tests.sh"),
        ("sh my\\ tests.sh", "my tests.sh"),
        ("sh evi\\l.sh", "evil.sh"),
        ("sh ev''il.sh", "evil.sh"),
        ('sh "ci"/ev"il".sh', "ci/evil.sh"),
        ("sh ci/a@b.sh # it's", "ci/a@b.sh"),
        ("sh {evil,}.sh", "evil.sh"),
        ("python3 -mtool", "tool.py"),
        ("python3 -Bmtool", "tool.py"),
        ("python3 -m tool", "tool/inner/deep.py"),
        (["python3", "-m", "tool.sub"], "tool/sub/part.py"),
        ("PYTHONPATH=src python3 -m tool", "src/tool/part.py"),
        ("PYTHONPATH=ci python3 -m json", "ci/sitecustomize.py"),
        ("python3 tool", "tool/__main__.pyc"),
        ("make -Cci test", "ci/Makefile"),
        ("make -C ci test", "ci/Makefile"),
        ("make -fx.mk test", "x.mk"),
        ("make -sfx.mk test", "x.mk"),
        ("make --file=x.mk test", "x.mk"),
        ("npm --prefix web test", "web/package.json"),
        ("npm test", ".npmrc"),
        ("cd a && cd b && sh job", "a/b/job"),
        ("cd a; cd b; python3 x.py", "a/b/x.py"),
        ("for f in ci/*; do sh $f; done", "ci/job"),
        ("sh ci/$X", "ci/job.txt"),
        ("sh $(cat name)", "ci/job"),
        ("cd $X && sh job", "ci/job"),
        ("xvfb-run sh $X", "ci/job.sh"),
        ("s''h $X", "ci/job.sh"),
        ("make -f $X", "ci/job"),
        ("task test", "taskfile.yml"),
        ("tox -q", "tox.ini"),
        ("nox", "noxfile.py"),
        ("just test", "justfile"),
        ("poetry run t", "pyproject.toml"),
        ("composer test", "composer.json"),
        ("deno task test", "deno.json"),
        ("cargo t", ".cargo/config.toml"),
        ("cargo t", "build.rs"),
        ("node t", "t.js"),
        ("node -r ./hook t.js", "hook.cjs"),
        ("node .", "index.js"),
        ("python3 .", "__main__.py"),
        ("python3 -m json.tool x", "json.py"),
        ("python3 -m json.tool x", "json/__init__.py"),
        ("PYTHONPATH=. python3 t.py", "sitecustomize.py"),
        ("perl -Ilib -MFoo t.pl", "lib/Foo.pm"),
        ("perl -Ilib -MFoo::Bar t.pl", "lib/Foo/Bar.pm"),
        ("ruby -Ilib -rfoo t.rb", "lib/foo.rb"),
        ("pnpm install", ".pnpmfile.cjs"),
        ("pip install -e .", "setup.py"),
        ("pip install -e .", "pyproject.toml"),
        ("uv run tool", "pyproject.toml"),
        ("cmake -B b", "CMakeLists.txt"),
        ("mvn test", ".mvn/jvm.config"),
        ("gradle test", "gradle.properties"),
        ("./gradlew test", "gradle/wrapper/gradle-wrapper.properties"),
        ("ant test", "build.xml"),
        ("pipenv run t", "Pipfile"),
        ("mise run t", "mise.toml"),
        ("bazel test //...", ".bazelrc"),
        ("docker compose run t", "compose.yaml"),
        ("inv t", "tasks/__init__.py"),
        ("rake t", "rakelib/t.rake"),
    ],
)
def test_a_file_that_a_command_runs_asks_again_when_it_changes(tmp_path, command, file):
    assert asks(tmp_path, command, {file: "x\n"}, file)


LONG = {
    "words": "".join(f"true a.{n}\n" for n in range(WORDS_MAX + 100)),
    "bytes": "#" + "x" * TEXT_MAX + "\n",
}


@pytest.mark.parametrize(
    ("command", "files", "changed"),
    [
        ("sh run.sh", {"run.sh": "sh ci/build\n", "ci/build": "x"}, "ci/build"),
        ("sh run.sh", {"run.sh": "cd ci && sh ./build.sh\n", "ci/build.sh": "x"}, "ci/build.sh"),
        ("sh run.sh", {"run.sh": "cd ci\nsh build\n", "ci/build": "x"}, "ci/build"),
        ("sh run.sh", {"run.sh": "sh ci/a@b.sh\n", "ci/a@b.sh": "x"}, "ci/a@b.sh"),
        ("sh run.sh", {"run.sh": "python3 \\\n ci/x.py\n", "ci/x.py": "x"}, "ci/x.py"),
        ("sh run.sh", {"run.sh": "make -C ci\n", "ci/Makefile": "x"}, "ci/Makefile"),
        ("sh run.sh", {"run.sh": "python3 -m tool\n", "tool/part.py": "x"}, "tool/part.py"),
        ("sh run.sh", {"run.sh": "./job\n", "job": "#!/bin/sh\n"}, "job"),
        ("sh run.sh", {"run.sh": LONG["words"] + "sh $X\n", "ci/build.sh": "x"}, "ci/build.sh"),
        ("sh run.sh", {"run.sh": LONG["bytes"] + "sh ci/build.sh\n", "ci/build.sh": "x"}, "ci/build.sh"),
        ("make test", {"Makefile": "include mk/r.mk\n", "mk/r.mk": "x"}, "mk/r.mk"),
        ("make test", {"Makefile": "-include r.mk\n", "r.mk": "x"}, "r.mk"),
        ("make test", {"Makefile": "include mk/*.mk\n", "mk/r.mk": "x"}, "mk/r.mk"),
        ("make test", {"Makefile": "include mk/*\n", "mk/rules.txt": "x"}, "mk/rules.txt"),
        ("make test", {"Makefile": "include $(wildcard mk/*.mk)\n", "mk/r.mk": "x"}, "mk/r.mk"),
        ("make test", {"Makefile": "include $(D)/r.mk\n", "mk/r.mk": "x"}, "mk/r.mk"),
        ("./run.sh", {"run.sh": "#!tools/interp\n", "tools/interp": "x"}, "tools/interp"),
        ("./run.py", {"run.py": "#!/usr/bin/env -S tools/interp -x\n", "tools/interp": "x"}, "tools/interp"),
        ("npm test", {"package.json": "{}", ".npmrc": "node-options=--require ./h.js", "h.js": "x"}, "h.js"),
        ("bun test", {"bunfig.toml": 'preload = ["./h.ts"]\n', "h.ts": "x"}, "h.ts"),
        (
            "npm test",
            {"package.json": '{"scripts": {"test": "jest"}}', "node_modules/.bin/jest": "#!/bin/sh\n"},
            "node_modules/.bin/jest",
        ),
        ("make test", {"Makefile": "test:\n\t@$(MAKE) -C sub\n", "sub/Makefile": "x"}, "sub/Makefile"),
        ("make test", {"Makefile": "test:\n\t@$(PYTHON) ci/x.py\n", "ci/x.py": "x"}, "ci/x.py"),
        ("npm test", {"package.json": '{"scripts": {"test": "node ci/x.js"}}', "ci/x.js": "x"}, "ci/x.js"),
        (
            "npm -w a test",
            {"package.json": '{"workspaces": ["p/*"]}', "p/a/package.json": "{}"},
            "p/a/package.json",
        ),
        (
            "pnpm -r test",
            {"pnpm-workspace.yaml": "packages:\n  - 'p/**'\n", "p/a/b/package.json": "{}"},
            "p/a/b/package.json",
        ),
        (
            "task t",
            {"Taskfile.yml": "includes:\n  a:\n    taskfile: ./ci/own.yml\n", "ci/own.yml": "x"},
            "ci/own.yml",
        ),
    ],
)
def test_what_is_run_by_what_a_command_names_is_part_of_it(tmp_path, command, files, changed):
    assert asks(tmp_path, command, files, changed)


@pytest.mark.parametrize("text", [*LONG.values()], ids=[*LONG])
def test_a_script_that_is_too_long_to_follow_is_said_to_run_anything(tmp_path, text):
    written(tmp_path, {"run.sh": text})
    assert UNTOLD in part_of(tmp_path, "sh run.sh").lines


def test_a_command_that_calls_very_many_scripts_is_said_to_run_anything(tmp_path):
    names = [f"s/{n}.sh" for n in range(CALLED_MAX + 10)]
    written(tmp_path, dict.fromkeys(names, "true\n") | {"run.sh": "\n".join(f"sh {n}" for n in names)})
    assert UNTOLD in part_of(tmp_path, "sh run.sh").lines


def test_a_linked_folder_in_a_folder_that_is_named_is_looked_into(tmp_path):
    written(tmp_path, {"jobs/a": "", "real/job.sh": "x"})
    (tmp_path / "jobs/in").symlink_to("../real")
    (tmp_path / "real/round").symlink_to("../jobs")
    assert asks(tmp_path, "run-parts jobs", {}, "real/job.sh")


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "python3 -m pytest -q tests",
        "PYTHONPATH=src python3 -m pytest --cov=src",
        "make test",
        "npm test",
        "uv run pytest",
        "sh ci/run.sh",
        "ruff check src && mypy src",
        "cargo test",
    ],
)
@pytest.mark.parametrize("changed", ["src/app/core.py", "tests/test_core.py", "README.md", "web/index.ts"])
def test_honest_commands_do_not_ask_with_every_commit(tmp_path, command, changed):
    files = {
        "src/app/__init__.py": "",
        "src/app/core.py": "import app\n",
        "tests/test_core.py": "import app.core\n",
        "README.md": "make test\n",
        "LICENSE": "MIT\n",
        "web/index.ts": "1\n",
        "Makefile": "test:\n\tpytest -q tests\n\truff check src tests\n",
        "package.json": '{"main": "web/index.ts", "scripts": {"test": "jest web", "build": "tsc -p web"}}',
        "ci/run.sh": "#!/bin/sh\nset -e\ncd src\npytest ../tests -q\n",
        "pyproject.toml": "[project]\nname = 'app'\n",
    }
    assert not asks(tmp_path, command, files, changed)


def test_a_script_that_is_too_long_to_be_read_asks_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr("rondel.trust.consents.FILE_MAX", 1000)
    written(tmp_path, {"run.sh": "#!/bin/sh\ntrue\n" + "#" * 1000})
    first = part_of(tmp_path, "./run.sh").digest
    written(tmp_path, {"run.sh": "#!/bin/sh\nevil\n" + "#" * 1000})
    assert part_of(tmp_path, "./run.sh").digest != first
