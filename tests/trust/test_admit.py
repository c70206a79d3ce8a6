"""What of a repository's settings counts: decisions alone, without a disk."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel import config, installed
from rondel.model.consent import HARMLESS, Brought, Everything, Mark, is_looser
from rondel.trust.admit import Admitted, admit
from rondel.trust.consents import lookup
from rondel.trust.keys import KEYS, Rules
from rondel.trust.named import ALL, WORDS_MAX, Found, is_untold
from rondel.trust.parts import UNTOLD, Part, brought_part

DEFAULTS = {
    "timeout_s": 1800,
    "idle_s": 600,
    "turns_max": 200,
    "agents_max": 4,
    "attempts_max": 2,
    "cutoffs_max": 5,
    "edit_mb_max": 100,
    "edit_files_max": 50_000,
    "usd_max": None,
    "tokens_max": None,
    "seconds_max": None,
    "sandbox": "",
    "prompt_max": 200_000,
    "refuters_max": 30,
    "rounds_max": 0,
    "max_iterations": 5,
    "auto": False,
    "tests_required": True,
    "test_timeout_s": 1800.0,
    "step_timeout_s": 600.0,
    "iterations_max": 3,
    "context_chars_max": 200_000,
}
RULES = config.rules_of(installed.workflows(), installed.workflow)
rule = RULES.of
SCRIPTS = {"agent.py": "one", "tools/run.sh": "two", "script.json": "three"}
TEXT = st.text("abc./ -$", max_size=12)
ORDERED = {
    "limits.agents_max": st.integers(1, 9),
    "limits.usd_max": st.floats(0, 99),
    "limits.edit_mb_max": st.floats(1, 9999),
    "limits.free_mb_min": st.integers(0, 999),
    "workspaces.sandbox": st.sampled_from(["", "bwrap"]),
    "review.rounds_max": st.integers(0, 9),
    "cycle.max_iterations": st.integers(1, 9),
    "cycle.auto": st.booleans(),
    "cycle.tests_required": st.booleans(),
    "cycle.test_timeout_s": st.floats(1, 9999),
    "task.sandbox": st.booleans(),
    "task.step_timeout_s": st.floats(1, 999),
    "generate.gate": st.sampled_from(["manual", "agent", "skip"]),
    "generate.gates.plan": st.sampled_from(["manual", "agent", "skip"]),
    "generate.iterations_max": st.integers(1, 9),
    "agents.mine.timeout_s": st.integers(1, 9999),
    "agents.mine.pass_env": st.lists(st.sampled_from(["A", "B", "AWS_*"]), max_size=3),
    "agents.mine.options.shell": st.lists(st.sampled_from(["git *", "*"]), max_size=2),
    "agents.mine.options.trust": st.booleans(),
}
RUNS = {
    "agents.mine.command": st.lists(TEXT, min_size=1, max_size=3),
    "agents.mine.env": st.dictionaries(TEXT, TEXT, max_size=2),
    "agents.mine.pass_env": st.lists(TEXT, max_size=2),
    "agents.mine.script": st.sampled_from(["script.json", "other.json"]),
    "agents.mine.model": TEXT,
    "agents.mine.options.shell": st.lists(TEXT, max_size=2),
    "project.setup": TEXT,
    "project.test": TEXT,
    "project.checks": TEXT,
    "workspaces.root": TEXT,
    "cycle.branch": TEXT,
    "roles.default": st.sampled_from(["mine", "claude", "other"]),
    "roles.review.lead": st.sampled_from(["mine", "checks"]),
    "limits.agents_max": st.integers(1, 99),
    "generate.gate": st.sampled_from(["manual", "agent", "skip"]),
    "somebody.elses": TEXT,
}


def default(key: tuple[str, ...]) -> object:
    return DEFAULTS[key[-1]]


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in flat.items():
        words = name.split(".", 1) if name.startswith("roles") else name.split(".")
        at = found
        for word in words[:-1]:
            at = at.setdefault(word, {})
        at[words[-1]] = value
    return found


def value_of(settings: dict[str, Any], name: str) -> object:
    at: Any = settings
    for word in name.split(".", 1) if name.startswith("roles") else name.split("."):
        if not isinstance(at, dict) or word not in at:
            return None
        at = at[word]
    return at


def admitted(person: dict[str, Any], repo: dict[str, Any], known=frozenset(), files=SCRIPTS) -> Admitted:
    def below(folder: str):
        runs = False
        return lambda wanted: [(p, t) for p, t in files.items() if p.startswith(folder) and wanted(p, runs)]

    def look(path: str) -> Found | None:
        if path == ALL:
            return Found(is_folder=True, inner=below(""))
        if path in files:
            return Found(files[path], text=files[path])
        inside = any(f.startswith(f"{path}/") for f in files)
        return Found(is_folder=True, inner=below(f"{path}/")) if inside else None

    return admit(nested(person), nested(repo), known, default, look, rules=RULES)


def some(table: dict[str, Any]):
    return st.fixed_dictionaries({}, optional=table)


@given(some(ORDERED), some(ORDERED), st.booleans())
def test_the_persons_stricter_setting_always_wins(person, repo, consented):
    """Whatever a repository says, and whatever was consented to, nothing is looser than the person said."""
    found = admitted(person, repo, Everything() if consented else frozenset())
    for name, value in person.items():
        key = tuple(name.split("."))
        now = value_of(found.settings, name)
        assert not is_looser(rule(key), now, value), (name, now, value)


@given(some(ORDERED), st.sampled_from(["service", "service.plan", "plan.prompt"]))
def test_a_more_exact_key_does_not_get_past_what_the_person_said(person, kind):
    repo = {"generate": {"gates": {kind: "skip"}, "cycles": {kind: {"iterations_max": 99}}}}
    found = admit(nested(person), repo, Everything(), default, lambda _: None, rules=RULES).settings[
        "generate"
    ]
    said = [v for k, v in person.items() if k.startswith("generate.gate")]
    if said:
        assert not any(is_looser(rule(("generate", "gate")), found["gates"][kind], v) for v in said)
    if bound := person.get("generate.iterations_max"):
        assert found["cycles"][kind]["iterations_max"] <= bound


@given(some(ORDERED | RUNS), some(ORDERED | RUNS))
def test_without_consent_only_the_harmless_counts(person, repo):
    """What is left is the person's own, or no looser than where nobody says anything."""
    found = admitted(person, repo)
    left_out = {part.name for part in found.left_out}
    for name, value in repo.items():
        now, own = value_of(found.settings, name), person.get(name)
        if name in RUNS and name not in ORDERED and now != own and now == value:
            assert rule(tuple(name.split("."))).safe(value) or name.startswith("roles"), (name, value)
        if name.startswith("agents.mine") and "agents.mine" in left_out:
            assert now == own
    assert found.parts == found.left_out


@given(some(RUNS), st.sampled_from(sorted(RUNS)), st.data())
def test_any_change_of_any_part_that_can_run_asks_again(repo, name, data):
    """Consent is to exactly this: another value is another part, and the old consent does not cover it."""
    before = admitted({}, repo)
    known = {part.digest for part in before.parts}
    assert admitted({}, repo, known).left_out == ()
    value = data.draw(RUNS[name])
    after = admitted({}, {**repo, name: value}, known)
    found = rule(tuple(name.split(".", 1) if name.startswith("roles") else name.split(".")))
    if repo.get(name, ...) != value and found.mark is Mark.CONSENT and not found.safe(value):
        whole = "agents.mine" if name.startswith("agents") else name
        assert whole in {part.name for part in after.left_out}
        assert value_of(after.settings, name) is None
    others = {part.name for part in after.left_out} - {"agents.mine", name}
    assert not others, "only what changed is asked about"
    assert admitted({}, repo, known | {p.digest for p in after.parts}).left_out == (), (
        "known states never ask"
    )


@pytest.mark.parametrize(
    "command",
    [
        ["python3", "agent.py"],
        ["./agent.py"],
        "bash -c 'exec ./agent.py'",
        "cd . && python3 agent.py --quiet",
        'python3 "$PWD/agent.py"',
        "PYTHONPATH=src python3 -m agent",
        "python3 <agent.py",
        "$(git rev-parse --show-toplevel)/agent.py",
        "cd tools && ./run.sh",
        ["env", "A=tools/run.sh", "b"],
    ],
)
def test_a_changed_script_is_another_command(command):
    """The content of the files that a command names is part of what was said yes to."""
    repo = {"agents.mine.kind": "command", "agents.mine.command": command}
    known = {part.digest for part in admitted({}, repo).parts}
    assert admitted({}, repo, known).left_out == ()
    for name in SCRIPTS:
        files = {**SCRIPTS, name: "changed"}
        named = name.split("/")[-1].split(".")[0] in str(command)
        assert bool(admitted({}, repo, known, files).left_out) is named, name
    assert admitted({}, repo, known, {}).left_out, "a script that is gone is a change"


def test_a_script_that_comes_later_asks():
    repo = {"agents.mine.kind": "command", "agents.mine.command": ["python3", "agent.py"]}
    known = {part.digest for part in admitted({}, repo, files={}).parts}
    assert admitted({}, repo, known).left_out


@pytest.mark.parametrize(
    "repo",
    [
        {"roles.default": "claude", "roles.review.reviewer.security": "checks"},
        {"review.team": "principal:2", "review.context": "be kind", "feature.mode": "quick"},
        {
            "limits.agents_max": 1,
            "limits.usd_max": 0.5,
            "agents.codex.kind": "codex",
            "agents.codex.idle_s": 5,
        },
        {"cycle.junit": "out/junit.xml", "cycle.utc_offset_h": 1},
        {"workspaces.sandbox": "bwrap", "task.sandbox": True, "generate.gate": "manual"},
    ],
)
def test_the_harmless_asks_nothing(repo):
    found = admitted({}, repo)
    assert found.parts == ()
    assert {name: value_of(found.settings, name) for name in repo} == repo


@pytest.mark.parametrize(
    "repo",
    [
        {"cycle.junit": "/home/somebody"},
        {"cycle.coverage": "../../x"},
        {"limits.free_mb_min": 0},
        {"agents.claude.kind": "claude", "agents.claude.env": {"ANTHROPIC_BASE_URL": "http://localhost:1"}},
        {"agents.claude.kind": "claude", "agents.claude.options.trust": True},
        {"agents.claude.kind": "claude", "agents.claude.options.new": 1},
        {"agents.x.kind": "mock"},
        {"agents.x.kind": "somebodys"},
        {"roles.default": "mine"},
        {"somebody.elses": "x"},
        {"generate.gates.plan": "skip"},
    ],
)
def test_what_runs_redirects_or_loosens_asks(repo):
    assert len(admitted({}, repo).left_out) == 1


def test_a_repository_never_says_what_is_the_persons_only():
    found = admitted({}, {"task.trust_commands": True}, Everything())
    assert found.refused == ("task.trust_commands",)
    assert found.settings == {}


def test_an_agent_of_the_persons_stays_of_its_kind():
    found = admitted({"agents.mine.kind": "command"}, {"agents.mine.kind": "claude"})
    assert [p.name for p in found.left_out] == ["agents.mine"]


@pytest.mark.parametrize(
    ("person", "repo"),
    [
        ({"roles.default": "strict"}, {"roles.review": "checks"}),
        ({"roles.default": "claude"}, {"roles.default": "checks"}),
        ({"roles.review": "strict"}, {"roles.review.reviewer.security": "manual"}),
        ({"review.team": "security:2"}, {"review.team": "performance:1"}),
        ({}, {"agents.claude.kind": "checks"}),
    ],
)
def test_what_the_person_said_of_who_reviews_is_replaced_after_consent_only(person, repo):
    found = admitted(person, repo)
    assert len(found.left_out) == 1
    assert found.settings == nested(person)
    assert admitted(person, repo, Everything()).settings == nested(person | repo)


@pytest.mark.parametrize(
    ("person", "repo"),
    [
        ({"roles.default": "checks"}, {"roles.review": "checks"}),
        ({"roles.review": "strict"}, {"roles.default": "claude", "roles.cycle": "claude"}),
        ({"roles.review.reviewer": "strict"}, {"roles.review": "checks"}),
        ({"review.team": "security:2"}, {"review.team": "security:2"}),
    ],
)
def test_what_the_person_did_not_say_otherwise_asks_nothing(person, repo):
    assert admitted(person, repo).parts == ()


FORGED = "lint: you said yes\nroles.default: you said yes\nagents.zz"


def test_no_name_of_a_setting_forges_a_line():
    table = {FORGED: {"kind": "command", "env": {}, "x\nkind = 'checks'": 1}}
    found = admit({}, {"agents": table, "a\nb": 1}, frozenset(), default, lambda _: None, rules=RULES)
    lines = [line for part in found.parts for line in (part.name, *part.shown)]
    assert not any("\n" in line for line in lines)
    assert f"agents.{json.dumps(FORGED)}" in lines
    refused = admit(
        {}, {"task": {"trust_commands": True}}, frozenset(), default, lambda _: None, rules=RULES
    ).refused
    assert refused == ("task.trust_commands",)


@pytest.mark.parametrize("name", ["git filter x: you said yes", "git filter x\ny", "profile \u202ex"])
def test_no_name_of_anything_else_does(name):
    found = brought_part(Brought(name, "text"), lambda _: None)
    assert found.name == json.dumps(name)
    assert brought_part(Brought("git filter lfs", "text"), lambda _: None).name == "git filter lfs"


def test_no_name_of_a_file_does():
    path = "a\nroles.default"
    found = Part("x", (), ((path, "0"), ("b c", "0"), ("d@1.sh", "0"))).shown
    assert [line.partition(" (")[0] for line in found] == [
        f"file {json.dumps(path)}",
        'file "b c"',
        "file d@1.sh",
    ]


def test_a_key_that_nobody_marked_needs_consent():
    assert rule(("review", "brand_new")).mark is Mark.CONSENT
    assert all(rule(tuple(name.split("."))) is found for name, found in KEYS.items())


def test_a_workflow_says_the_rules_of_its_own_table_and_loosens_none_of_the_core():
    for name in installed.workflows():
        flow = installed.workflow(name)
        assert set(flow.settings()) == {key for key in flow.rules() if "*" not in key}
        assert all(rule((name, *key.split("."))) == found for key, found in flow.rules().items())
    loose = Rules({"limits.usd_max": HARMLESS, "sandbox.mode": HARMLESS, "agents.*.command": HARMLESS})
    assert all(loose.of(tuple(name.split("."))) is found for name, found in KEYS.items())


# -- scripts that are not named, or not by the command itself ---------------------------

TREE = {
    "run.sh": "#!/bin/sh\n./tools/one.sh && . tools/lib.sh\n",
    "tools/one.sh": '#!/bin/sh\nexec "$(dirname "$0")/two.sh"\n',
    "tools/two.sh": "#!/bin/sh\necho\n",
    "tools/lib.sh": "true\n",
    "app/code.py": "print('./never.sh')\n",
    "README.txt": "see run.sh\n",
}


def asks_for(command: object, changed: str) -> bool:
    """Whether a command that was said yes to asks again when one file of the tree is another."""
    repo = {"agents.mine.kind": "command", "agents.mine.command": command}
    known = {part.digest for part in admitted({}, repo, files=TREE).parts}
    assert admitted({}, repo, known, TREE).left_out == ()
    return bool(admitted({}, repo, known, {**TREE, changed: TREE[changed] + "more\n"}).left_out)


@pytest.mark.parametrize("changed", ["run.sh", "tools/one.sh", "tools/two.sh", "tools/lib.sh"])
def test_a_script_that_a_script_calls_is_part_of_it(changed):
    assert asks_for(["sh", "run.sh"], changed)


@pytest.mark.parametrize("changed", ["app/code.py", "README.txt"])
def test_what_no_script_calls_is_not(changed):
    assert not asks_for(["sh", "run.sh"], changed)


def test_a_folder_stands_for_its_scripts():
    assert asks_for(["run-parts", "tools"], "tools/two.sh")
    assert not asks_for(["pytest", "app"], "app/code.py"), "that is code that a test loads"


@pytest.mark.parametrize("changed", ["tools/two.sh", "app/code.py"])
@pytest.mark.parametrize(
    "command",
    [
        'F=a; sh "$F"',
        "./$(cat name)",
        "for f in tools/*; do bash $f; done",
        "python3 app/*.py",
        "env A=1 timeout 5 $X",
        "`cat name`",
        ["bash", "-c", "exec $F"],
        ["python3", *(f"w{n}" for n in range(WORDS_MAX + 1)), "app/code.py"],
    ],
    ids=str,
)
def test_where_a_command_computes_what_it_runs_every_script_is_part_of_it(command, changed):
    assert asks_for(command, changed)
    if len(command) < WORDS_MAX:
        assert (
            UNTOLD
            in admitted({}, {"agents.mine.kind": "command", "agents.mine.command": command}).parts[0].lines
        )


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q $PYTEST_ARGS",
        "make test",
        "cd $PWD && ./run.sh",
        "A=$B npm test",
        "echo $HOME; ruff check *.md",
        "",
    ],
)
def test_an_argument_that_is_computed_is_no_script(command):
    assert not is_untold(command)


@given(st.lists(st.sampled_from(sorted(TREE)), min_size=1, max_size=3), st.data())
def test_any_change_of_a_file_that_a_command_names_asks_again(names, data):
    """Whichever of them it is."""
    changed = data.draw(st.sampled_from(names))
    assert asks_for(["sh", "-c", "; ".join(f"sh ./{name}" for name in names)], changed)


def test_a_file_of_the_repository_is_known_however_its_path_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    script = tmp_path / "repo/run.sh"
    script.parent.mkdir()
    script.write_text("true\n")
    found = {lookup(tmp_path / "repo", path) for path in ("run.sh", str(script), "~/repo/run.sh")}
    assert len(found) == 1
    assert None not in found
    (tmp_path / "repo/~/repo").mkdir(parents=True)
    (tmp_path / "repo/~/repo/run.sh").write_text("false\n")
    assert lookup(tmp_path / "repo", "~/repo/run.sh") not in found
    assert lookup(tmp_path / "repo", "~/elsewhere.sh") is None
