"""What a profile and an agent are given: the context of a phase, and the text of a question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files as resources
from string import Template
from typing import Any

from rondel.errors import RondelError
from rondel.model.actions import Ask
from rondel.model.snapshot import Snapshot
from rondel.workflows.generate import layout
from rondel.workflows.generate.context import CycleContext, LazyFiles
from rondel.workflows.generate.cycles import needed
from rondel.workflows.generate.documents import newest
from rondel.workflows.generate.extract import extract
from rondel.workflows.generate.models import WorkflowPhase
from rondel.workflows.generate.profiles.base import PromptPlan, ResponsePlan, WorkflowProfile
from rondel.workflows.generate.profiles.discover import load_profile
from rondel.workflows.generate.read import State, Track

OWN_CHARS_MAX = 2_000_000
FILES_MAX = 2_000


def profile_of(state: State) -> WorkflowProfile:
    """The profile of a session. RondelError when it is not installed, or is broken."""
    if state.session is None:
        raise RondelError(f"{state.ref.name} cannot be read; see `rondel doctor`")
    return load_profile(state.session.profile_name, state.root, state.admits, state.ask)


def render(state: State, track: Track) -> PromptPlan:
    """The prompt of a phase, by the profile."""
    profile = profile_of(state)
    try:
        made = profile.plan_prompt(context_of(state, track))
    except RondelError:
        raise
    except Exception as e:
        raise RondelError(f"plan_prompt of profile {profile.name}: {type(e).__name__}: {e}") from e
    if not isinstance(made, PromptPlan) or not made.text.strip():
        raise RondelError(f"plan_prompt of profile {profile.name} gave no PromptPlan with a text")
    return made


def receive(state: State, track: Track, text: str) -> ResponsePlan:
    """What a response leads to, by the profile."""
    profile = profile_of(state)
    try:
        made = profile.plan_response(context_of(state, track, response=text))
    except RondelError:
        raise
    except Exception as e:
        raise RondelError(f"plan_response of profile {profile.name}: {type(e).__name__}: {e}") from e
    if not isinstance(made, ResponsePlan):
        raise RondelError(f"plan_response of profile {profile.name} gave no ResponsePlan")
    return made


def context_of(state: State, track: Track, *, response: str = "") -> CycleContext:
    """One phase of one cycle, as its profile sees it."""
    cycle, files = track.cycle, state.files
    given = dict(state.session.context) if state.session else {}
    return CycleContext(
        type=cycle.type,
        scope=cycle.scope,
        phase=cycle.phase,
        iteration=cycle.current_iteration,
        context={**given, "scope": cycle.scope, "cycle_outputs": _outputs(state, track)},
        standards=files.text(track.paths.standards) or "",
        plan=files.text(track.paths.plan) or "",
        review=_last_review(track),
        feedback=track.feedback,
        code=_code(track),
        inputs=_inputs(files),
        sources=LazyFiles(files, _below(files, layout.SOURCES), track.request.context_chars_max),
        response=response,
    )


def _code(track: Track) -> Mapping[str, str]:
    """The cycle's own code; where a v2 session kept none, what its last response holds."""
    places = {n: a.path for n, a in newest(track.cycle.artifacts).items()}
    if places or not track.paths.flat:
        return LazyFiles(track.files, places, OWN_CHARS_MAX)
    for number in range(track.cycle.current_iteration, 0, -1):
        for phase in (WorkflowPhase.REVISE, WorkflowPhase.GENERATE):
            found = extract(track.files.text(track.paths.response(number, phase)) or "")
            if found.files:
                return {file.path: file.text for file in found.files}
    return {}


def _outputs(state: State, track: Track) -> dict[str, Any]:
    """The outputs of the cycles this one depends on; their text is read only when a hook asks for it."""
    if state.session is None:
        return {}
    by_type = {t.cycle.type: t.cycle for t in state.tracks}
    request = track.request
    limit = request.limit_of(track.cycle.type, "context_chars_max", request.context_chars_max)
    found: dict[str, Any] = {}
    for name in needed(state.session, track.cycle):
        places = {n: a.path for n, a in newest(by_type[name].artifacts).items()}
        found[name] = {"files": list(places), "artifacts": LazyFiles(state.files, places, limit)}
    return found


def _last_review(track: Track) -> str:
    """The newest review before this iteration."""
    for number in range(track.cycle.current_iteration - 1, 0, -1):
        text = track.files.text(track.paths.response(number, WorkflowPhase.REVIEW))
        if text:
            return text
    return ""


def _inputs(files: Snapshot) -> Mapping[str, str]:
    out: dict[str, str] = {}
    for name, path in _below(files, layout.INPUTS).items():
        out[name.partition("/")[0]] = files.text(path) or ""
    return out


def _below(files: Snapshot, folder: str) -> dict[str, str]:
    """Every file below a folder: its path in it, and its path in the session."""
    found = {path.removeprefix(f"{folder}/"): path for path in layout.below(files, folder)}
    return dict(sorted(found.items())[:FILES_MAX])


def question(state: State, ask: Ask) -> str:
    """What to ask: the prompt file as it stands, or what a gate is to look at."""
    for track in state.due:
        if ask.path == track.gate_part:
            return _gate(track)
    return state.files.text(ask.prompt_file or "") or ""


def _gate(track: Track) -> str:
    text = track.content or ""
    longest = max((len(run) for run in re.findall(r"~+", text)), default=0)
    template = resources(__package__ or "").joinpath("prompts/gate.md").read_text(encoding="utf-8")
    cycle = track.cycle
    return Template(template).substitute(
        what=cycle.stage.value,
        phase=cycle.phase.name,
        type=cycle.type,
        iteration=cycle.current_iteration,
        fence="~" * max(4, longest + 1),
        text=text,
    )
