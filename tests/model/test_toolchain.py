"""How a project is set up and tested: one answer, from its own files."""

from __future__ import annotations

import pytest

from rondel.model.toolchain import Toolchain, toolchain

NODE = '{"scripts": {"pretest": "tsc", "test": "jest", "build": "vite"}}'
MAKE = "all:\n\ntest: all\n\tpytest\n\t./more\n\nother:\n\trm x\n"


def found(files: dict[str, str]) -> Toolchain:
    return toolchain(files, files.__getitem__)


@pytest.mark.parametrize(
    ("files", "setup", "test"),
    [
        ({}, "", ""),
        ({"README.md": ""}, "", ""),
        ({"src/testing.py": "", "pyproject.toml": ""}, "", ""),
        ({"tests/test_a.py": ""}, "", "python3 -m pytest -q"),
        ({"a_test.py": "", "uv.lock": "", "pyproject.toml": ""}, "uv sync", "python3 -m pytest -q"),
        ({"tox.ini": ""}, "", "tox -q"),
        ({"noxfile.py": ""}, "", "nox"),
        ({"package.json": NODE}, "npm install", "npm test --silent"),
        ({"package.json": NODE, "package-lock.json": ""}, "npm ci", "npm test --silent"),
        ({"package.json": NODE, "yarn.lock": ""}, "yarn install --frozen-lockfile", "yarn test"),
        ({"package.json": NODE, "pnpm-lock.yaml": ""}, "pnpm install --frozen-lockfile", "pnpm test"),
        ({"package.json": "{broken"}, "", ""),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, "", ""),
        ({"go.mod": ""}, "go mod download", "go test ./..."),
        ({"Cargo.toml": ""}, "cargo fetch", "cargo test --quiet"),
        ({"pom.xml": ""}, "", "mvn -q -B test"),
        ({"build.gradle.kts": "", "gradlew": ""}, "", "./gradlew -q test"),
        ({"Makefile": MAKE}, "", "make test"),
        ({"Makefile": "testing:\n"}, "", ""),
        ({"Makefile": MAKE, "tools/test_a.py": "", "package.json": NODE}, "npm install", "npm test --silent"),
    ],
)
def test_the_projects_tests_are_found_where_they_are_plain_to_see(files, setup, test):
    tool = found(files)
    assert (tool.setup, tool.test) == (setup, test)
    assert bool(tool.tests) == bool(test)


def test_a_person_consents_to_what_a_command_stands_for():
    (node,) = found({"package.json": NODE}).tests
    assert node.text == "npm test --silent\npretest: tsc\ntest: jest"
    (make,) = found({"Makefile": MAKE}).tests
    assert make.text == "make test\ntest: all\npytest\n./more"
    (gradle,) = found({"build.gradle": "", "gradlew": ""}).tests
    assert gradle.files == ("gradlew",)
