"""Whatever a response says, what is written stays in the cycle's own folder. Decisions without a disk."""

from __future__ import annotations

import json

from generate_scene import AT, FULL
from hypothesis import given, settings
from hypothesis import strategies as st

from rondel.model.actions import Decide, Derive
from rondel.model.changes import Edit, Write
from rondel.model.names import inside
from rondel.model.outcomes import Ended, Outcome
from rondel.model.snapshot import FrozenSnapshot
from rondel.model.workflow import SessionRef
from rondel.workflows.generate.workflow import Generate

REF = SessionRef("generate", "one", ".aiwf/sessions/one")
FLOW = Generate()
SESSION = {
    "session_id": "one",
    "profile_name": "jpa-mt",
    "context": FULL,
    "cycles": [
        {
            "type": "domain",
            "scope": "domain",
            "phase": "generate",
            "stage": "response",
            "iterations": [{"number": 1}],
        }
    ],
}
PIECES = [
    "```java path={}\nclass A {{}}\n```",
    "### `{}`\n```java\nclass A {{}}\n```",
    "```java\n// {}\nclass A {{}}\n```",
    "<<<FILE: {}>>>\nclass A {{}}\n",
]
PATHS = st.one_of(
    st.lists(
        st.sampled_from(["..", ".", "", "a", "~", "C:", "\\", "A.java", ".git", "session.json", "code"]),
        min_size=1,
        max_size=6,
    ).map("/".join),
    st.text(min_size=1, max_size=30),
    st.sampled_from(["../../session.json", "/etc/passwd.txt", "a/../../b.java", "..\\x.java", "good/A.java"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PIECES), PATHS), min_size=1, max_size=3))
def test_a_response_writes_below_its_code_folder_or_nothing(pieces):
    response = "\n\n".join(piece.format(path) for piece, path in pieces)
    files = FrozenSnapshot(
        {
            "session.json": json.dumps(SESSION),
            ".rondel/request-1.json": '{"auto": true}',
            "domain/iteration-1/prompts/generation-prompt.md": "Generate.\n",
            "domain/iteration-1/responses/generation-response.md": response,
        }
    )
    state = FLOW.read(files, REF)
    (step,) = FLOW.steps(state)
    if isinstance(step.action, Decide):
        assert step.action.options == ("reject",)
        return
    assert isinstance(step.action, Derive)
    changes = step.write(state, Outcome(Ended.DONE, finished_at=AT))
    writes = [c for c in changes if isinstance(c, Write)]
    assert writes
    for write in writes:
        assert inside(write.path).startswith("domain/iteration-1/code/")
    assert isinstance(changes[-1], Edit)
    after = changes[-1].change(json.loads(json.dumps(SESSION)))
    assert {a["path"] for a in after["cycles"][0]["artifacts"]} == {w.path for w in writes}
    assert after["cycles"][0]["phase"] == "review"
