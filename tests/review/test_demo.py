from rondel.cli.demo_review import demo
from rondel.project import Project


def test_the_demo_finds_real_defects_and_says_what_was_fixed(capsys):
    lines: list[str] = []
    demo(Project.find, lines.append)
    text = "\n".join(lines)
    assert text.count("# Final review: archive, round") == 2
    assert "**Verdict**: REQUEST CHANGES" in text
    assert "secret-aws-access-key" in text
    assert "SC2115" in text
    compared = capsys.readouterr().out.splitlines()
    fixed = [line for line in compared if line.startswith("fixed ")]
    assert len(fixed) >= 5
    assert any(line.startswith("persisting ") and "S602" in line for line in compared)
