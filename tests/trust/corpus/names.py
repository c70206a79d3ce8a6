"""Names: files whose names are options, orders, paths or no text at all."""

from __future__ import annotations

import os

from corpus.base import Site, case


@case()
def names_like_options(site: Site) -> None:
    """Files named like options."""
    for name in ("-rf", "--output=x", "-", "--", "--help", "-c", "@x", ":(glob)x", ":!x", "*", "~", "$HOME"):
        site.put(name, "import os\n")
        site.put(f"{name}.py" if name != "-" else "-.py", "import os\nx = 1\n")
    site.commit()


@case()
def names_with_orders(site: Site) -> None:
    """Files whose names hold escapes, line ends and right-to-left marks."""
    for name in (
        "\x1b[2J\x1b]0;owned\x07.py",
        "a\nb.py",
        "a\tb.py",
        "\u202eyp.exe",
        "a\u200bb.py",
        "\x7f\x9b31m.py",
    ):
        site.put(name, "import os\nx = 1\n")
    site.put("a.py\n+++ b/other.py", "x\n")
    site.commit()


@case()
def names_not_text(site: Site) -> None:
    """Files whose names are no UTF-8."""
    for raw in (b"\xff\xfe.py", b"caf\xe9.py", b"\xed\xa0\x80.py", b"docs/features/001-\xff/.meta.json"):
        site.put(os.fsdecode(raw), "{}\n")
    site.commit()


@case()
def names_long(site: Site) -> None:
    """Names and paths as long as they can be."""
    site.put("x" * 250 + ".py", "import os\n")
    site.put("/".join(["d" * 200] * 12) + "/a.py", "import os\n")
    site.put("docs/features/001-" + "y" * 200 + "/.meta.json", "{}")
    site.commit()


@case()
def names_unicode(site: Site) -> None:
    """Names that look alike, combine without end, and differ only in their case."""
    for name in (
        "é.py",
        "e\u0301.py",
        "a" + "\u0301" * 80 + ".py",
        "APP.py",
        "app.PY",
        "\u0430pp.py",
        "🏴\U000e0067\U000e007f.py",
    ):
        site.put(name, "import os\nx = 1\n")
    site.commit()


@case()
def names_deep(site: Site) -> None:
    """Folders in folders, deeper than a recursion goes, where Rondel looks for its own."""
    for folder in ("docs/features/001-x", ".aiwf/sessions/x/a/iteration-1/code", ".ocr/sessions/x"):
        site.put(folder + "/d" * 900 + "/x.md", "x\n")


@case()
def names_many(site: Site) -> None:
    """Very many files, and very many that changed."""
    for n in range(2000):
        site.put(f"many/{n % 50}/{n}.py", f"x = {n}\n")
    site.commit()


@case()
def names_of_sessions(site: Site) -> None:
    """Sessions whose names are options, paths and orders."""
    for name in ("--help", "x\x1b[2J", "\u202ex", "a b;c", "$(x)", "-rf"):
        site.put(f".ocr/sessions/{site.today}-{name}/state.json", "{}")
        site.put(f".workflow/WFS-{name}/workflow-session.json", "{}")
        site.put(f".workflow/.cycle/{name}.json", "{}")
        site.put(f".aiwf/sessions/{name}/session.json", "{}")
        site.put(f"docs/features/001-{name}/.meta.json", "{}")
    site.commit()


@case()
def names_of_rounds(site: Site) -> None:
    """Rounds, iterations and requests with numbers that are too large, negative or no numbers."""
    for n in ("9" * 200, "-1", "0", "1e9", "٣", "1/../../../../outside", "00000001"):
        site.put(f".ocr/sessions/{site.today}-change/rounds/round-{n}/final.md", "# Final\n\nAPPROVE\n")
    for n in ("9" * 200, "0", "٣", "99999999999"):
        site.put(f".ocr/sessions/{site.today}-change/.rondel/request-{n}.json", "{}")
        site.put(f"docs/features/001-x/.rondel/request-{n}.json", "{}")
        site.put(f".workflow/WFS-x/.rondel/request-{n}.json", "{}")
    site.put("docs/features/001-x/.meta.json", "{}")
    site.commit()


@case()
def names_links(site: Site) -> None:
    """Links in the change: to secrets, out of the tree, in a circle, to a device."""
    site.link("key.py", site.home / ".ssh/id_ed25519")
    site.link("out", site.outside)
    site.link("loop.py", "loop.py")
    site.link("zero.py", "/dev/zero")
    site.link("app2.py", "app.py")
    site.commit()


@case()
def names_replaced_by_links(site: Site) -> None:
    """Files of the change that are links, pipes and folders in the working tree."""
    site.put("one.py", "import os\n")
    site.put("two.py", "import os\n")
    site.put("three.py", "import os\n")
    site.commit()
    for name in ("one.py", "two.py", "three.py"):
        (site.root / name).unlink()
    site.link("one.py", site.home / ".ssh/id_ed25519")
    site.fifo("two.py")
    site.link("three.py", "/dev/zero")
