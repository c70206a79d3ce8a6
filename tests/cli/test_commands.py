"""The doors that every workflow shares, through the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import RONDEL, reviewed, rondel


def test_the_version_is_one_line(repo, env):
    done = rondel(repo, env, "--version")
    assert done.returncode == 0
    assert done.stdout.split()[0] == "rondel"


def test_outside_a_repository_it_says_what_to_do(tmp_path, env):
    done = rondel(tmp_path, env, "status")
    assert done.returncode == 1
    assert "git init" in done.stderr


def test_an_empty_git_folder_is_no_repository(repo, env):
    inner = repo / "inner"
    (inner / ".git").mkdir(parents=True)
    assert rondel(inner, env, "init", "--no-plugin").returncode == 0
    assert (repo / "rondel.toml").exists()
    assert not (inner / "rondel.toml").exists()


def test_a_wrong_command_is_usage(repo, env):
    done = rondel(repo, env, "reviw")
    assert (done.returncode, done.stderr) == (2, "rondel: no command 'reviw'; did you mean review?\n")
    assert "did you mean `rondel review show`?" in rondel(repo, env, "review", "shwo").stderr
    assert "there are: review, feature, cycle" in rondel(repo, env, "xyzzy").stderr
    assert (
        rondel(repo, env, "task", "valdate").stderr
        == "rondel: no command 'valdate'; did you mean validate?\n"
    )


def test_a_session_that_is_not_there_is_usage_and_says_what_there_is(repo, env):
    done = rondel(repo, env, "resume", "nothing")
    assert done.returncode == 2
    assert "nothing" in done.stderr


def test_a_folder_that_is_gone_is_said_so(repo, env):
    script = f"mkdir sub && cd sub && rmdir ../sub && exec {sys.executable} -m rondel status"
    done = subprocess.run(
        ["bash", "-c", script], cwd=repo, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("rondel: the current folder is gone")


def test_a_round_is_shown_by_its_number_and_one_that_is_not_there_is_usage(repo, env):
    name = reviewed(repo)
    assert rondel(repo, env, "show", name, "--round", "1").stdout == "# The final review\n"
    done = rondel(repo, env, "show", name, "--round", "9")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no round 9" in done.stderr


def test_looking_without_a_name_means_the_only_session_also_a_completed_one(repo, env):
    reviewed(repo)
    assert rondel(repo, env, "show").stdout == "# The final review\n"
    watched = rondel(repo, env, "watch").stdout
    assert watched.startswith("review:2026-11-15-main: completed")
    assert "nobody works on it" in watched
    assert rondel(repo, env, "resume").returncode == 2


def test_the_beginning_or_the_end_of_a_name_goes_before_its_middle(repo, env):
    for topic in ("User Auth", "User Auth", "auth again"):
        rondel(repo, env, "task", "start", topic)
    assert "WFS-user-auth " in rondel(repo, env, "status", "user-auth").stdout
    assert "WFS-user-auth-002" in rondel(repo, env, "status", "002").stdout
    done = rondel(repo, env, "status", "auth")
    assert done.returncode == 0
    assert "WFS-user-auth " in done.stdout
    assert "may be any of" in rondel(repo, env, "status", "aut").stderr


def test_a_wrong_option_of_a_review_is_told_in_the_words_that_were_typed(repo, env):
    done = rondel(repo, env, "review", "--nix")
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: rondel review [OPTIONS] [TARGET]\nTry 'rondel review --help'")


@pytest.mark.parametrize("words", [("finish", "--merge", "--keep"), ("brainstorm", "--fresh", "--continue")])
def test_flags_that_contradict_each_other_do_nothing(repo, env, words):
    rondel(repo, env, "feature", "start", "Login")
    done = rondel(repo, env, "feature", *words)
    assert done.returncode == 2
    assert "exclude each other" in done.stderr
    entry = json.loads(rondel(repo, env, "status", "--json").stdout)["sessions"][0]
    assert (entry["status"], entry["progress"]["done"]) == ("active", 0)


def test_a_damaged_session_is_no_success_and_a_lost_document_is_missed(repo, env):
    rondel(repo, env, "feature", "start", "Login")
    meta = repo / "docs/features/001-login/.meta.json"
    meta.write_text('{"a":')
    done = rondel(repo, env, "resume", "login")
    assert done.returncode == 1
    assert ".meta.json: not valid JSON" in done.stderr
    assert "next: rondel doctor" in done.stderr
    meta.unlink()
    found = rondel(repo, env, "doctor")
    assert found.returncode == 1
    assert "feature:001-login: meta-missing: .meta.json" in found.stdout


def test_what_waits_for_a_persons_answer_names_the_command_that_goes_on_with_all_of_it(repo, env):
    rondel(repo, env, "feature", "start", "Login")
    done = rondel(repo, env, "feature", "run", "--until", "specify")
    assert done.returncode == 3
    assert "next: rondel resume feature:001-login\n" in done.stderr
    answer = repo / "docs/features/001-login/.rondel/manual/brainstorm.iteration-1.draft.response.md"
    answer.write_text("# Idea\n\nLog in.\n")
    assert "brainstorm: review 1" in rondel(repo, env, "resume", "feature:001-login").stderr


def test_a_branch_that_git_would_refuse_starts_no_cycle(repo, env):
    done = rondel(repo, env, "cycle", "start", "x", "--branch", "a..b")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--branch 'a..b'" in done.stderr
    assert not (repo / ".workflow").exists()


def test_completion_offers_the_sessions(repo, env):
    name = reviewed(repo)
    words = {"COMP_WORDS": "rondel show rev", "COMP_CWORD": "2", "_RONDEL_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [*RONDEL], cwd=repo, env={**env, **words}, capture_output=True, text=True, timeout=60, check=False
    )
    assert name in done.stdout


def test_status_has_the_shape_that_programs_rely_on(repo, env):
    name = reviewed(repo)
    body = json.loads(rondel(repo, env, "status", "--json").stdout)
    assert list(body) == ["schema_version", "sessions"]
    (entry,) = body["sessions"]
    keys = ["session", "workflow", "id", "title", "status", "phase", "progress", "waiting_for", "path"]
    assert list(entry) == [*keys, "runtime", "updated_at", "problems", "foreign", "not_made_by_rondel"]
    assert entry["session"] == f"{entry['workflow']}:{entry['id']}" == name
    assert entry["path"] == ".ocr/sessions/2026-11-15-main"
    assert set(entry["progress"]) == {"done", "total"}
    assert [set(p) for p in entry["problems"]] == [{"rule", "file", "message", "repair"}]
    (one,) = json.loads(rondel(repo, env, "status", "main", "--json").stdout)["sessions"]
    assert {k: one[k] for k in entry} == entry
    assert set(one) - set(entry) == {"state", "usage"}


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_output_that_cannot_be_written_is_an_error_in_one_line(repo, env, how):
    reviewed(repo)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*RONDEL, "status", *how],
            cwd=repo,
            env=env,
            stdout=full,
            stderr=-1,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "rondel: No space left on device\n")


def test_status_of_nothing_is_empty_json(repo, env):
    done = rondel(repo, env, "status", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"schema_version": 1, "sessions": []}


def test_broken_settings_change_nothing_and_are_named(repo, env):
    (repo / "rondel.toml").write_text("[limits]\nagents_max = 'many'\n")
    before = sorted(p for p in repo.rglob("*") if ".git/" not in str(p))
    done = rondel(repo, env, "agents")
    assert done.returncode == 2
    assert "limits.agents_max" in done.stderr
    assert "many" in done.stderr
    assert sorted(p for p in repo.rglob("*") if ".git/" not in str(p)) == before


def test_init_writes_settings_once(repo, env):
    assert rondel(repo, env, "init").returncode == 0
    text = (repo / "rondel.toml").read_text()
    assert "[roles]" in text
    (repo / "rondel.toml").write_text(text + "# mine\n")
    assert rondel(repo, env, "init").returncode == 0
    assert (repo / "rondel.toml").read_text().endswith("# mine\n")


def test_doctor_finds_nothing_wrong_in_a_fresh_repository(repo, env):
    done = rondel(repo, env, "doctor", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["problems"] == []


def test_doctor_looks_into_the_folders_though_the_settings_are_wrong(repo, env):
    reviewed(repo)
    (repo / "rondel.toml").write_text("[agents")
    done = rondel(repo, env, "doctor", "--json")
    assert done.returncode == 1
    rules = [(p["session"], p["rule"]) for p in json.loads(done.stdout)["problems"]]
    assert rules[0] == ("", "settings")
    assert "review:2026-11-15-main" in [session for session, _ in rules]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_for_each_shell(repo, env, shell):
    done = rondel(repo, env, "completion", shell)
    assert done.returncode == 0
    assert "_RONDEL_COMPLETE" in done.stdout


def test_completion_offers_the_commands(repo, env):
    words = {"COMP_WORDS": "rondel st", "COMP_CWORD": "1", "_RONDEL_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [*RONDEL], cwd=repo, env={**env, **words}, capture_output=True, text=True, timeout=60, check=False
    )
    assert "plain,status" in done.stdout
    assert "plain,stop" in done.stdout


def test_no_colour_where_nobody_wants_any(repo, env):
    done = rondel(repo, {**env, "NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm"}, "status")
    assert "\x1b[3" not in done.stdout + done.stderr


def test_an_unreadable_folder_is_named(repo, env):
    if os.geteuid() == 0:
        pytest.skip("root reads everything; the store's tests use a mount instead")
    (repo / ".ocr").mkdir(mode=0)
    assert rondel(repo, env, "status").returncode in (0, 1)


def test_what_init_writes_is_good_settings(repo, env):
    rondel(repo, env, "init")
    assert rondel(repo, env, "agents").returncode == 0


def test_agents_lists_the_vendors_and_what_is_not_installed(repo, env):
    found = json.loads(rondel(repo, env, "agents", "--json").stdout)["agents"]
    vendors = {"claude", "codex", "gemini", "opencode"}
    assert {a["name"] for a in found if a["version"] is None} == vendors


def test_agents_says_who_serves_a_workflow_that_nobody_configured(repo, env):
    found = json.loads(rondel(repo, env, "agents", "--json").stdout)["agents"]
    taken = {w: a["name"] for a in found for w in a["default_for"]}
    assert taken == dict.fromkeys(("feature", "cycle", "task", "generate"), "manual") | {"review": "checks"}
