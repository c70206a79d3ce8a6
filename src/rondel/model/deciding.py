"""Which files of a folder say what a program runs that is started there. The one table of them. Pure."""

from __future__ import annotations

_MAKE = ("GNUmakefile", "makefile", "Makefile")
_NODE = (
    *("package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", "pnpm-workspace.yaml", ".pnpmfile.cjs"),
    *(".pnpmfile.mjs", "bunfig.toml", ".babelrc", "lerna.json", "nx.json", "turbo.json", ".yarn/plugins"),
)
_PYTHON = (
    *("pyproject.toml", "setup.py", "setup.cfg", "uv.toml", "poetry.toml", "pdm.toml", "hatch.toml"),
    *("Pipfile", "pip.conf"),
)
_TASK = tuple(f"{t}askfile{d}.{e}" for t in "tT" for d in ("", ".dist") for e in ("yml", "yaml"))
_GRADLE = (
    *(f"{name}.gradle{kts}" for name in ("build", "settings") for kts in ("", ".kts")),
    *("gradle.properties", "gradle/wrapper/gradle-wrapper.properties", "gradle/libs.versions.toml"),
)
_MAVEN = ("pom.xml", *(f".mvn/{name}" for name in ("jvm.config", "maven.config", "extensions.xml")))
_CMAKE = ("CMakeLists.txt", "CMakePresets.json", "CMakeUserPresets.json", "CTestTestfile.cmake")
_COMPOSE = tuple(f"{n}.{e}" for n in ("compose", "docker-compose") for e in ("yaml", "yml"))
_BAZEL = (
    *("WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", "BUILD", "BUILD.bazel", ".bazelrc"),
    *("tools/bazel", ".bazelversion"),
)

DECIDES = {
    **dict.fromkeys(("make", "gmake", "MAKE"), _MAKE),
    **dict.fromkeys(("npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "corepack"), _NODE),
    **dict.fromkeys(("lerna", "nx", "turbo"), _NODE),
    **dict.fromkeys(("pip", "pip3", "uv", "uvx", "poetry", "pdm", "hatch", "poe", "rye", "pipx"), _PYTHON),
    **dict.fromkeys(("pipenv", "flit"), _PYTHON),
    **dict.fromkeys(("task", "go-task"), _TASK),
    **dict.fromkeys(("invoke", "inv"), ("tasks.py", "tasks", "invoke.yaml", "pyproject.toml")),
    **dict.fromkeys(("gradle", "gradlew"), _GRADLE),
    **dict.fromkeys(("mvn", "mvnw"), (*_MAVEN, ".mvn/wrapper/maven-wrapper.properties")),
    **dict.fromkeys(("cmake", "ctest"), _CMAKE),
    **dict.fromkeys(("bazel", "bazelisk"), _BAZEL),
    **dict.fromkeys(("docker", "docker-compose", "podman", "podman-compose"), (*_COMPOSE, "Dockerfile")),
    **dict.fromkeys(("bundle", "bundler"), ("Gemfile", ".bundle/config")),
    **dict.fromkeys(("deno", "denox"), ("deno.json", "deno.jsonc")),
    **dict.fromkeys(
        ("mise", "rtx"), ("mise.toml", ".mise.toml", ".config/mise/config.toml", ".tool-versions")
    ),
    **dict.fromkeys(("phpunit", "composer"), ("composer.json", "phpunit.xml", "phpunit.xml.dist")),
    "just": ("justfile", "Justfile", ".justfile"),
    "tox": ("tox.ini", "tox.toml", "setup.cfg", "pyproject.toml", "setup.py"),
    "nox": ("noxfile.py",),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb", "rakelib"),
    "cargo": ("Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config", "rust-toolchain.toml"),
    "go": ("go.mod", "go.work", "main.go"),
    "ant": ("build.xml",),
    "sbt": ("build.sbt", "project/plugins.sbt", "project/build.properties"),
    "mix": ("mix.exs",),
    "swift": ("Package.swift",),
    "meson": ("meson.build", "meson_options.txt"),
    "ninja": ("build.ninja",),
    "scons": ("SConstruct", "Sconstruct", "sconstruct"),
    "direnv": (".envrc",),
    "pre-commit": (".pre-commit-config.yaml",),
}
FOLDERS = frozenset({"tasks", "rakelib", ".yarn/plugins"})  # of these: all that is in them is loaded
