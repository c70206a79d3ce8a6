"""The commands of a review: wired, and leaving with the right exit code."""

import json
import os
import stat
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest
from review_support import APP, CHANGED, commit, content, finding, git, review

from rondel.cli.main import main
from support.follow import follow

AGENT = """
import json, os, sys
sys.stdin.read()
action = os.environ["RONDEL_ACTION"]
if "/reviews/" in action:
    print(open(os.environ["REVIEW_FILE"]).read())
elif "/discourse/" in action:
    print('{"responses": []}')
elif "/refute/" in action:
    print('{"verdict": "stands"}')
else:
    print("words")
"""
WRONG = finding("The sum is a difference", category="blocker")


@pytest.fixture
def here(feature, tmp_path, monkeypatch):
    """A repository whose reviewers say what `review.md` holds."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "review.md").write_text(review(WRONG))
    (feature / ".git/info/exclude").write_text(".ocr/\nrondel.toml\n")
    (feature / "rondel.toml").write_text(
        f"""[agents.fake]
kind = "command"
command = ["{sys.executable}", "{tmp_path / "agent.py"}"]
env = {{ REVIEW_FILE = "{tmp_path / "review.md"}" }}

[roles]
default = "fake"

[review]
team = "quality:1"
"""
    )
    monkeypatch.chdir(feature)
    return feature


def run(capfd, *argv):
    code = None
    try:
        code = main(["review", *argv])
    except SystemExit as e:
        code = e.code
    out, err = capfd.readouterr()
    follow(Path.cwd(), os.environ, code, out, err)
    return code, out, err


def run_json(capfd, *argv):
    code, out, _ = run(capfd, *argv, "--json")
    return code, json.loads(out)


def session_of(root):
    return next(iter((root / ".ocr/sessions").iterdir()))


def test_a_review_prints_its_final_review(here, capfd):
    code, out, _ = run(capfd)
    assert code == 0
    assert out.startswith("# Final review: feature, round 1\n\n**Verdict**: REQUEST CHANGES")
    assert out == (session_of(here) / "rounds/round-1/final.md").read_text()


def test_changes_requested_exit_4_where_somebody_must_notice(here, capfd, monkeypatch):
    assert run(capfd, "--fail-on-changes")[0] == 4
    assert run(capfd, "--again")[0] == 0
    monkeypatch.setenv("CI", "true")
    assert run(capfd, "--again")[0] == 4
    assert run(capfd, "--again", "--no-fail-on-changes")[0] == 0


def test_an_approval_exits_0_in_ci(here, capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("CI", "true")
    (tmp_path / "review.md").write_text(review())
    assert run(capfd)[0] == 0


def test_an_empty_change_exits_5_and_leaves_nothing(here, capfd):
    git(here, "checkout", "-q", "main")
    code, out, err = run(capfd)
    assert (code, out) == (5, "")
    assert "nothing to review" in err
    assert not (here / ".ocr").exists()


def test_nothing_new_exits_5(here, capfd):
    run(capfd)
    code, _, err = run(capfd)
    assert code == 5
    assert "--again" in err


def test_too_few_answers_exit_1(here, capfd, tmp_path):
    (tmp_path / "review.md").write_text("nonsense")
    code, _, err = run(capfd)
    assert code == 1
    assert "only 0 of 1 reviewers answered" in err
    (tmp_path / "review.md").write_text(review())
    assert run(capfd)[0] == 0


def test_a_review_as_json(here, capfd):
    code, found = run_json(capfd)
    assert code == 0
    assert (found["schema_version"], found["verdict"], found["round"]) == (1, "REQUEST CHANGES", 1)
    assert found["counts"] == {"blockers": 1, "should_fix": 0, "suggestions": 0}
    assert (here / found["final"]).exists()


def test_resolve_says_what_the_next_run_would_do_and_writes_nothing(here, capfd):
    name = run_json(capfd, "resolve")[1]["session"]
    assert not (here / ".ocr").exists()
    run(capfd)
    (here / "app.py").write_text(APP + "# x\n")
    before, objects = content(here), git(here, "count-objects", "-v")
    assert run_json(capfd, "resolve") == (
        0,
        {
            "schema_version": 1,
            "session": name,
            "foreign": False,
            "current_round": 2,
            "new_round": True,
            "complete_rounds": [1],
        },
    )
    assert (content(here), git(here, "count-objects", "-v")) == (before, objects)


def test_resolve_sees_an_unfinished_round(here, capfd):
    run(capfd)
    (session_of(here) / "rounds/round-7/reviews").mkdir(parents=True)
    found = run_json(capfd, "resolve")[1]
    assert (found["current_round"], found["new_round"], found["complete_rounds"]) == (7, False, [1])


def as_yesterday(root):
    """The session of today as if it had been opened the day before."""
    day = date.fromisoformat(session_of(root).name[:10]) - timedelta(days=1)
    return session_of(root).rename(root / f".ocr/sessions/{day}-feature")


def test_resolve_sees_an_unfinished_round_of_another_day_that_the_next_run_goes_on_with(
    here, capfd, tmp_path
):
    (tmp_path / "review.md").write_text("nonsense")
    assert run(capfd)[0] == 1
    earlier = as_yesterday(here)
    before, objects = content(here), git(here, "count-objects", "-v")
    found = run_json(capfd, "resolve")[1]
    assert (found["session"], found["current_round"]) == (f"review:{earlier.name}", 1)
    assert found["new_round"] is False
    assert (content(here), git(here, "count-objects", "-v")) == (before, objects)
    (tmp_path / "review.md").write_text(review())
    assert run(capfd)[0] == 0
    assert (earlier / "rounds/round-1/final.md").exists()
    commit(here, {"app.py": APP + "# other\n"})
    assert run_json(capfd, "resolve")[1]["session"] != f"review:{earlier.name}"


@pytest.mark.parametrize("target", ["HEAD~1..HEAD", "main...feature", "main", "HEAD"])
def test_the_ways_to_name_a_change(here, capfd, target):
    (here / "app.py").write_text(CHANGED + "# more\n")
    assert run(capfd, target)[0] == 0


def test_a_diff_file_and_staged_work(here, capfd, tmp_path):
    (here / "app.py").write_text("x = 1\n")
    git(here, "add", "app.py")
    assert run(capfd, "staged")[0] == 0
    (tmp_path / "x.diff").write_text(git(here, "diff", "main", "feature") + "\n")
    assert run(capfd, str(tmp_path / "x.diff"))[0] == 0
    (tmp_path / "empty.diff").write_text("")
    assert run(capfd, str(tmp_path / "empty.diff"))[0] == 5


def test_a_text_that_is_no_diff_is_not_a_passed_review(here, capfd, tmp_path):
    (tmp_path / "notes.txt").write_text("--- a list ---\n\n- not a diff\n")
    code, _, err = run(capfd, str(tmp_path / "notes.txt"))
    assert code == 5
    assert "notes.txt holds no unified diff" in err
    assert not (here / ".ocr").exists()


def test_an_unfinished_round_about_one_diff_is_not_taken_for_another(here, capfd, tmp_path):
    diff = git(here, "diff", "main", "feature") + "\n"
    (tmp_path / "one.diff").write_text(diff)
    (tmp_path / "two.diff").write_text(diff.replace("a - b", "a * b"))
    (tmp_path / "review.md").write_text("nonsense")
    run(capfd, str(tmp_path / "one.diff"))
    assert "keeps to what it pinned" not in run(capfd, str(tmp_path / "one.diff"))[2]
    assert "keeps to what it pinned" in run(capfd, str(tmp_path / "two.diff"))[2]
    earlier = as_yesterday(here)
    (tmp_path / "review.md").write_text(review())
    assert run_json(capfd, str(tmp_path / "two.diff"))[1]["session"] != f"review:{earlier.name}"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["nowhere"], "'nowhere'"),
        (["gone.diff"], "gone.diff"),
        (["--team", "nobody"], "there are: accessibility"),
        (["--requirements", "gone.md"], "gone.md"),
        (["--pr", "0"], "'--pr'"),
        (["compare", "1"], "two rounds"),
        (["show"], "no complete review"),
        (["progress"], "no review"),
        (["parse", "gone.md"], "gone.md"),
        (["parse", "."], "is a folder"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_left(here, capfd, argv, words):
    code, _, err = run(capfd, *argv)
    assert code == 2
    assert words in err
    assert not (here / ".ocr").exists()


def test_show_takes_the_last_complete_round_or_one_by_number(here, capfd):
    run(capfd)
    commit(here, {"app.py": CHANGED + "# more\n"})
    run(capfd)
    (session_of(here) / "rounds/round-3/reviews").mkdir(parents=True)
    assert ", round 2" in run(capfd, "show")[1]
    assert ", round 1" in run(capfd, "show", "--round", "1")[1]
    assert run(capfd, "show", "--round", "3")[0] == 2
    assert run_json(capfd, "show")[1]["round"] == 2


def test_compare_history_and_progress(here, capfd, tmp_path):
    run(capfd)
    commit(here, {"app.py": APP + "# fixed\n"})
    (tmp_path / "review.md").write_text(review())
    run(capfd)
    found = run_json(capfd, "compare")[1]
    assert [f["title"] for f in found["fixed"]] == [WRONG["title"]]
    assert (found["new"], found["persisting"], found["reopened"], found["rounds"]) == ([], [], [], [1, 2])
    code, out, _ = run(capfd, "compare", "1", "2")
    assert (code, "fixed" in out) == (0, True)
    rounds = run_json(capfd, "history")[1]["rounds"]
    assert [(r["round"], r["verdict"]) for r in rounds] == [(2, "APPROVE"), (1, "REQUEST CHANGES")]
    assert "APPROVE" in run(capfd, "history", "--all")[1]
    progress = run_json(capfd, "progress")[1]
    assert (progress["round"], progress["phase"], progress["phase_number"]) == (2, "complete", 8)
    assert progress["reviewers"] == [{"name": "quality-1", "state": "answered"}]
    assert 0 <= progress["seconds"] < 60
    assert "[x] 8 complete" in run(capfd, "progress")[1]


def test_progress_of_an_unfinished_round(here, capfd):
    run(capfd)
    commit(here, {"app.py": CHANGED + "# more\n"})
    (session_of(here) / "rounds/round-2/reviews").mkdir(parents=True)
    progress = run_json(capfd, "progress")[1]
    assert (progress["round"], progress["complete"], progress["phase"]) == (2, False, "context")
    assert progress["phases"][0] == {"number": 1, "name": "context", "state": "due"}


def test_accepting_a_finding(here, capfd):
    run(capfd)
    assert run(capfd, "accept", "F1", "--reason", "wanted")[0] == 0
    assert run(capfd, "accept", "F9")[0] == 2
    run(capfd, "--again")
    assert run_json(capfd, "show")[1]["verdict"] == "APPROVE"


def status_of(capfd, name: str) -> str:
    capfd.readouterr()
    assert main(["status", name, "--json"]) == 0
    return json.loads(capfd.readouterr().out)["sessions"][0]["status"]


def test_closing_a_session(here, capfd):
    run(capfd)
    assert run(capfd, "close")[0] == 0
    assert json.loads((session_of(here) / "state.json").read_text())["status"] == "closed"
    name = f"review:{session_of(here).name}"
    assert status_of(capfd, name) == "completed"
    commit(here, {"app.py": CHANGED + "# more\n"})
    (session_of(here) / "rounds/round-2/reviews").mkdir(parents=True)
    assert run(capfd, "close")[0] == 0
    assert status_of(capfd, name) == "cancelled", "closed before its round was complete"


def test_an_old_session_without_rounds_is_shown_and_left_alone(here, capfd):
    folder = here / ".ocr/sessions/2026-01-02-feature"
    (folder / "reviews").mkdir(parents=True)
    (folder / "final.md").write_text("## Verdict: APPROVE\n\n## Blockers\n\nNone.\n")
    assert "## Verdict: APPROVE" in run(capfd, "show")[1]
    code, shown = run_json(capfd, "show")
    assert (code, shown["verdict"], shown["flat"]) == (0, "APPROVE", True)
    before = content(here)
    for argv in (["close"], ["show", "--round", "1"], ["post", "--dry-run"], ["accept", "F1"]):
        code, _, err = run(capfd, *argv)
        assert (code, " ;" in err) == (2, False)
    assert content(here) == before


def test_parse_reads_our_own_files_and_others(here, capfd, tmp_path):
    run(capfd)
    final = session_of(here) / "rounds/round-1/final.md"
    code, found = run_json(capfd, "parse", str(final))
    assert (code, found["verdict"], found["counts"]["blockers"]) == (0, "REQUEST CHANGES", 1)
    reviewer = session_of(here) / "rounds/round-1/reviews/quality-1.md"
    assert [f["title"] for f in run_json(capfd, "parse", str(reviewer))[1]["findings"]] == [WRONG["title"]]
    (tmp_path / "theirs.md").write_text("## Verdict: APPROVE\n\n## Blockers\n\nNone.\n")
    assert run(capfd, "parse", str(tmp_path / "theirs.md"))[1].startswith("verdict: APPROVE; 0 blockers")


def test_sarif(here, capfd, tmp_path):
    run(capfd, "--sarif", str(tmp_path / "out/a.sarif"))
    log = json.loads((tmp_path / "out/a.sarif").read_text())
    assert [r["ruleId"] for r in log["runs"][0]["results"]] == ["rondel/blocker"]
    run(capfd, "show", "--sarif", str(tmp_path / "b.sarif"))
    assert json.loads((tmp_path / "b.sarif").read_text()) == log


def test_requirements_and_a_one_off_reviewer(here, capfd, tmp_path):
    (tmp_path / "spec.md").write_text("It adds.\n")
    code, _, _ = run(capfd, "--requirements", str(tmp_path / "spec.md"), "--reviewer", "one who has run this")
    assert code == 0
    assert (session_of(here) / "requirements.md").read_text() == "It adds.\n"
    assert (session_of(here) / "rounds/round-1/reviews/ephemeral-1.md").exists()


def fake_gh(folder, pages):
    """A `gh` that answers from a table and notes what it was sent."""
    program = folder / "bin/gh"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\npages = {pages!r}\n"
        f"sent = open({str(folder / 'sent.jsonl')!r}, 'a')\n"
        "if '--input' in sys.argv:\n"
        "    sent.write(json.dumps(json.load(sys.stdin)) + '\\n')\n    sys.exit(0)\n"
        "print(next(v for k, v in pages.items() if k in ' '.join(sys.argv)))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program.parent


def test_posting_sends_once_and_a_dry_run_sends_nothing(here, capfd, tmp_path, monkeypatch):
    run(capfd)
    head = git(here, "rev-parse", "HEAD")
    pages = {"pr view": json.dumps({"number": 3, "headRefOid": head}), "graphql": "me", "api": "[]"}
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{fake_gh(tmp_path, pages)}:{path}")
    code, out, _ = run(capfd, "post", "--dry-run")
    assert (code, (tmp_path / "sent.jsonl").read_text()) == (0, "")
    assert "on app.py:2:" in out
    assert run(capfd, "post", "--pr", "3")[0] == 0
    (sent,) = [json.loads(line) for line in (tmp_path / "sent.jsonl").read_text().splitlines()]
    assert [c["line"] for c in sent["comments"]] == [2]
    foreign, more = tmp_path / "foreign", tmp_path / "again"
    foreign.mkdir()
    more.mkdir()

    def shown_by(login, folder):
        row = {"body": sent["body"], "user": {"login": login}}
        return f"{fake_gh(folder, {**pages, 'api': json.dumps([row])})}:{path}"

    monkeypatch.setenv("PATH", shown_by("somebody", foreign))
    assert run(capfd, "post", "--pr", "3")[0] == 0
    assert (foreign / "sent.jsonl").read_text() != "", "a mark that another account wrote is none"
    monkeypatch.setenv("PATH", shown_by("me", more))
    code, _, err = run(capfd, "post", "--pr", "3")
    assert (code, (more / "sent.jsonl").read_text()) == (0, "")
    assert "there already" in err


def test_a_dry_run_of_posting_works_without_gh(here, capfd, tmp_path, monkeypatch):
    run(capfd)
    (tmp_path / "few").mkdir()
    for name in ("git", "sh"):
        (tmp_path / "few" / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path / "few"))
    code, out, err = run(capfd, "post", "--pr", "12", "--dry-run")
    assert code == 0
    assert "pull request 12" in out
    assert "not known" in err
    assert "to this branch's pull request" in run(capfd, "post", "--dry-run")[1]
    assert run(capfd, "post", "--pr", "12")[0] == 1


def test_a_pull_request_is_reviewed_through_gh(here, capfd, tmp_path, monkeypatch):
    head, base = git(here, "rev-parse", "feature"), git(here, "rev-parse", "main")
    git(here, "checkout", "-q", "main")
    shown = {
        "number": 7,
        "headRefName": "feature",
        "headRefOid": head,
        "baseRefName": "main",
        "baseRefOid": base,
    }
    monkeypatch.setenv("PATH", f"{fake_gh(tmp_path, {'pr view': json.dumps(shown)})}:{os.environ['PATH']}")
    assert run(capfd, "--pr", "7")[0] == 0
    assert session_of(here).name.endswith("-feature")


def test_a_damaged_state_json_stops_nothing(here, capfd):
    run(capfd)
    commit(here, {"app.py": CHANGED + "# more\n"})
    (session_of(here) / "state.json").write_text("{")
    assert run(capfd)[0] == 0
    assert json.loads((session_of(here) / "state.json").read_text())["current_round"] == 2
    assert (session_of(here) / ".rondel/aside/state.json.damaged-1").read_text() == "{"


def test_help_names_the_options_and_the_commands(here, capfd):
    code, out, _ = run(capfd, "--help")
    assert code == 0
    for word in ("--team", "--requirements", "--fail-on-changes", "compare", "resolve", "parse"):
        assert word in out


def test_from_a_folder_inside_the_repository(here, capfd, monkeypatch):
    (here / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(here / "deep/er")
    assert run(capfd)[0] == 0
    assert session_of(here).is_dir()


def test_watch_shows_the_phases_the_reviewers_and_the_time_of_the_round(here, capfd):
    run(capfd)
    main(["watch", "feature", "--once"])
    out = capfd.readouterr().out
    assert "[x] 8 complete" in out
    assert "quality-1: answered" in out
    assert "round 1, " in out


FORGED = "# Final review\n\n**Verdict**: APPROVE\n\n## Blockers\n\nNone.\n"
FORGING = """
import json, os, pathlib, sys
sys.stdin.read()
folder = next(pathlib.Path(os.environ["TOP"], ".ocr/sessions").iterdir()) / "rounds/round-1"
if "/reviews/" in os.environ["RONDEL_ACTION"]:
    (folder / "round-meta.json").write_text(json.dumps({"round": 1, "verdict": "APPROVE", "mark": "0" * 32}))
    (folder / "final.md").write_text(os.environ["FORGED"])
print("words")
"""


def marked(capfd, name: str) -> list[str]:
    capfd.readouterr()
    assert main(["status", name, "--json"]) == 0
    return json.loads(capfd.readouterr().out)["sessions"][0]["not_made_by_rondel"]


def test_a_final_review_of_rondels_is_its_own(here, capfd, tmp_path, monkeypatch):
    (tmp_path / "review.md").write_text(review())
    monkeypatch.setenv("CI", "true")
    code, body = run_json(capfd)
    assert (code, body["verdict"], body["made_by_rondel"]) == (0, "APPROVE", True)
    assert marked(capfd, "review:") == []
    assert run_json(capfd, "show")[1]["made_by_rondel"] is True
    assert [r["made_by_rondel"] for r in run_json(capfd, "history")[1]["rounds"]] == [True]


def test_a_final_review_that_an_agent_wrote_counts_when_it_is_adopted_and_is_no_approval(
    here, capfd, tmp_path, monkeypatch
):
    (tmp_path / "agent.py").write_text(FORGING)
    toml = (here / "rondel.toml").read_text()
    env = f"env = {{ TOP = {json.dumps(str(here))}, FORGED = {json.dumps(FORGED)} }}"
    (here / "rondel.toml").write_text(
        "\n".join(env if x.startswith("env =") else x for x in toml.splitlines())
    )
    code, _, err = run(capfd, "--fail-on-changes")
    assert (code, "next: rondel adopt review:" in err) == (1, True)
    assert main(["adopt", "review:", "--yes"]) == 0
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["resume", "review:", "--json", "--fail-on-changes"])
    assert ended.value.code == 4
    body = json.loads(capfd.readouterr().out)
    assert (body["complete"], body["verdict"], body["made_by_rondel"]) == (True, "APPROVE", False)
    assert marked(capfd, "review:") == ["rounds/round-1/final.md"]
    main(["status", "review:"])
    said = capfd.readouterr().out
    assert "completed (not made by Rondel)" in said
    assert "not made by Rondel: rounds/round-1/final.md" in said
    code, out, err = run(capfd, "show")
    assert (code, out) == (0, FORGED)
    assert "not made by Rondel" in err
    assert "(not made by Rondel)" in run(capfd, "history")[1]
    for argv in (("post", "--pr", "3"), ("post", "--dry-run")):
        code, out, err = run(capfd, *argv)
        assert (code, out) == (1, "")
        assert "not made by Rondel" in err
    assert "would post" in run(capfd, "post", "--dry-run", "--anyway")[1]


def test_a_final_review_that_was_changed_afterwards_is_not_posted_as_rondels(here, capfd, tmp_path):
    (tmp_path / "review.md").write_text(review(WRONG))
    assert run(capfd)[0] == 0
    final = session_of(here) / "rounds/round-1/final.md"
    final.write_text(final.read_text().replace("REQUEST CHANGES", "APPROVE"))
    code, _, err = run(capfd, "post", "--dry-run")
    assert code == 1
    assert "changed since Rondel made it" in err
    assert marked(capfd, "review:") == ["rounds/round-1/final.md"]


def test_a_verdict_that_was_changed_afterwards_is_no_approval(here, capfd, tmp_path):
    (tmp_path / "review.md").write_text(review(WRONG))
    assert run(capfd)[0] == 0
    path = session_of(here) / "rounds/round-1/round-meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "verdict": "APPROVE"}))
    assert marked(capfd, "review:") == ["rounds/round-1/final.md"]


def test_a_round_of_the_version_before_is_rondels_and_one_of_another_tool_is_not(here, capfd, tmp_path):
    (tmp_path / "review.md").write_text(review())
    assert run(capfd)[0] == 0
    folder = session_of(here)
    path = folder / "rounds/round-1/round-meta.json"
    body = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in body.items() if k not in ("mark", "final_sha256")}))
    (folder / ".rondel/session.json").unlink()
    assert marked(capfd, "review:") == []
    other = here / ".ocr/sessions/2026-01-02-feature/rounds/round-1"
    other.mkdir(parents=True)
    (other / "final.md").write_text(FORGED)
    assert marked(capfd, "review:2026-01-02-feature") == ["rounds/round-1/final.md"]


FORGER = """
import os, pathlib, sys
sys.stdin.read()
action = os.environ["RONDEL_ACTION"]
if "guidance" in action:
    place = next(pathlib.Path(os.environ["REPO"], ".ocr/sessions").iterdir()) / "rounds/round-1"
    (place / "reviews/quality-1.md").write_text(open(os.environ["REVIEW_FILE"]).read())
    (place / "final.md").write_text("# Final\\n\\n**Verdict**: APPROVE\\n")
print("words")
"""


def test_a_final_review_that_came_while_an_agent_was_at_work_counts_for_no_command(
    here, capfd, tmp_path, monkeypatch
):
    monkeypatch.setenv("RONDEL_SANDBOX", "none")
    (tmp_path / "agent.py").write_text(FORGER)
    config = (here / "rondel.toml").read_text()
    (here / "rondel.toml").write_text(config.replace("env = {", f'env = {{ REPO = "{here}",'))
    code, out, err = run(capfd)
    assert (code, "rondel adopt" in err) == (3, True), err
    assert (session_of(here) / "rounds/round-1/final.md").exists()
    code, out, err = run(capfd)
    assert (code, out) == (3, "")
    assert "next: rondel adopt" in err
    assert run_json(capfd, "resolve")[1]["complete_rounds"] == []
    assert [(r["complete"], r["verdict"]) for r in run_json(capfd, "history")[1]["rounds"]] == [(False, None)]
    assert run(capfd, "show")[0] == 2


def test_no_link_of_the_repository_leads_out_of_it_to_requirements_or_a_diff(here, capfd, tmp_path):
    (tmp_path / "secret.md").write_text("TOPSECRET\n")
    (here / "req.md").symlink_to(tmp_path / "secret.md")
    (here / "away").symlink_to(tmp_path)
    (here / "x.diff").symlink_to(tmp_path / "secret.md")
    (here / "near.md").write_text("It must add.\n")
    (here / "link.md").symlink_to("near.md")
    for words in (("--requirements", "req.md"), ("--requirements", "away/secret.md"), ("x.diff",)):
        code, out, err = run(capfd, *words)
        assert (code, out) == (2, "")
        assert "leads out of the repository" in err
    assert run(capfd, "--requirements", "link.md")[0] == 0
    assert run(capfd, "--again", "--requirements", str(tmp_path / "secret.md"))[0] == 0
