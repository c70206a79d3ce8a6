"""The functions of `generate` that touch files or the clock: starting a session, and taking its code over."""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files as resources
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from rondel import paths
from rondel.errors import RondelError, UnsafePath, UsageError
from rondel.model.actions import Decide, Derive
from rondel.model.changes import Document, Edit, Json, foresee
from rondel.model.codec import request_file
from rondel.model.consent import Admits, admits_nothing
from rondel.model.names import digest, inside, is_safe_name, safe_name, slug
from rondel.model.outcomes import Ended, Outcome
from rondel.model.snapshot import FrozenSnapshot, Snapshot
from rondel.model.times import stamp
from rondel.model.workers import AskProgram, ask_nobody
from rondel.model.workflow import Apply, Claim, SessionRef, Started, Step, unclaimed
from rondel.store import documents as store
from rondel.store import files, ours
from rondel.store.changes import apply_in
from rondel.store.snapshot import DiskSnapshot
from rondel.workflows.generate import layout
from rondel.workflows.generate.models import CycleState, WorkflowState, WorkflowStatus, validate_cycles
from rondel.workflows.generate.profiles.base import WorkflowProfile
from rondel.workflows.generate.profiles.discover import load_profile, profile_names
from rondel.workflows.generate.read import State, check_settings, read

if TYPE_CHECKING:
    from rondel.project import Project

SOURCE_MAX = 2_000_000  # characters of source code a session takes in
SOURCES_MAX = 500
INPUT_MAX = 1_000_000
NAMES = 20
STEPS_MAX = 100  # of what code works out by itself, before an agent or a person is needed
SHARED = ("entity", "table", "bounded_context", "package", "base_package", "tenant_column", "description")

FilesOf = Callable[[SessionRef], Snapshot]


@dataclass(frozen=True)
class GenerateOptions:
    """What a person or a program may say of a new session; a path is relative to the current folder."""

    profile: str
    context: Mapping[str, Any] = field(default_factory=dict)
    with_tests: bool = False
    skip: tuple[str, ...] = ()
    source_session: str | None = None
    source_files: tuple[str, ...] = ()
    dev: str = ""  # who it is for; kept with the session, as the next one is
    task_id: str = ""
    auto: bool = False  # let every prompt and response pass without asking
    parallel: bool = False  # run independent cycles at once


# -- starting -----------------------------------------------------------------------------------


def start(project: Project, options: GenerateOptions) -> Started:
    """A new session, with everything that code works out by itself: its first prompt."""
    check_settings(project.config.source, project.settings("generate"))
    ref = create(
        project.root,
        options,
        base=Path.cwd(),
        admits=project.look.admits,
        ask=project.ask,
        claim=project.claim,
        files_of=project.files,
    )
    project.begin(ref, new=True)
    work_out(project, ref)
    return Started(ref)


def create(
    root: Path,
    options: GenerateOptions,
    *,
    base: Path | None = None,
    at: datetime | None = None,
    admits: Admits = admits_nothing,
    ask: AskProgram = ask_nobody,
    claim: Claim = unclaimed,
    files_of: FilesOf | None = None,
    request: Mapping[str, Json] | None = None,
) -> SessionRef:
    """A new session: everything is checked before anything is written; `session.json` comes last.

    Paths in the options are relative to `base`, the repository when not given. A profile of the
    repository's is run, by `ask`, where `admits` says that the person consented to it. Another
    session is read by `files_of`, which leaves out what does not count. More can be asked for in `request`.
    """
    profile = load_profile(options.profile, root, admits, ask)
    sources, inherited = _sources(root, options, base or root, files_of)
    said = {
        "with_tests": options.with_tests,
        "source_session": options.source_session,
        "source_files": list(options.source_files),
    }
    context = {**inherited, **options.context, **{key: value for key, value in said.items() if value}}
    if wrong := profile.check_context(context):
        raise UsageError(wrong)
    cycles = _cycles(profile, context, options.skip)
    inputs = dict(_inputs(root, context, base or root))
    ref = _new_ref(root, context)
    folder = root / ref.folder
    first = next(n for n, c in enumerate(cycles) if c.status is not WorkflowStatus.SKIPPED)
    with files.whole_or_gone(folder):
        claim(ref)
        _leave_texts(folder / layout.INPUTS, inputs)
        _leave_texts(folder / layout.SOURCES, sources)
        now = stamp(at or datetime.now(UTC))
        session = WorkflowState(
            session_id=ref.id,
            profile_name=options.profile,
            context=context,
            cycles=cycles,
            current_cycle_index=first,
            metadata={key: value for key in ("dev", "task_id") if (value := getattr(options, key))},
            created_at=now,
            updated_at=now,
        )
        asked: Document = {"schema_version": 1, "at": now, "auto": options.auto, "parallel": options.parallel}
        files.make_folder(folder / ".rondel")
        ours.keep_out_of_git(folder / ".rondel")
        files.write(folder / request_file(1), store.dump({**asked, **(request or {})}))
        files.write(folder / layout.SESSION, store.dump(session.model_dump(mode="json")))
    return ref


def _cycles(profile: WorkflowProfile, context: dict[str, Any], skip: Iterable[str]) -> list[CycleState]:
    try:
        declared = profile.get_cycles(dict(context))
    except ValueError as e:
        raise UsageError(f"profile {profile.name}: {e}") from e
    cycles = [
        CycleState(type=c.type, scope=c.scope, depends_on=list(c.depends_on))
        for c in validate_cycles(declared)
    ]
    for name in skip:
        found = next((c for c in cycles if c.type == name), None)
        if found is None and name != "tests":
            there = ", ".join(c.type for c in cycles)
            raise UsageError(f"--skip {name}: there is no such cycle; there are: {there}")
        if found is not None:
            found.status = WorkflowStatus.SKIPPED
    if all(c.status is WorkflowStatus.SKIPPED for c in cycles):
        raise UsageError("every cycle is skipped; there would be nothing to do")
    return cycles


def _new_ref(root: Path, context: Mapping[str, Any]) -> SessionRef:
    """A session whose folder is made just now, so that no other one gets its name."""
    words = slug(f"{context.get('entity') or ''} {context.get('scope') or ''}", length_max=40)
    names = [f"{words}-{secrets.token_hex(3)}" for _ in range(NAMES)]
    folder = files.claim_folder(root / layout.SESSIONS, names)
    return SessionRef("generate", folder.name, f"{layout.SESSIONS}/{folder.name}")


def _inputs(root: Path, context: dict[str, Any], base: Path) -> Iterator[tuple[str, str]]:
    """The text of each file that the context names (`schema_file`), as it is now."""
    for key, value in context.items():
        if key.endswith("_file") and isinstance(value, str):
            path = _in_repository(root, base, value, f"-c {key.replace('_', '-')}={value}")
            context[key] = str(path.relative_to(root.resolve()))
            yield f"{safe_name(key, 'the key')}/{path.name}", _text(path, INPUT_MAX)


def _in_repository(root: Path, base: Path, name: str, what: str) -> Path:
    for folder in dict.fromkeys((base, root)):
        path = (folder / name).resolve()
        if path.is_file() and path.is_relative_to(root.resolve()):
            return path
    raise UsageError(f"{what} names no file in this repository")


def _text(path: Path, size_max: int) -> str:
    try:
        data = paths.read(path, size_max)
    except OSError as e:
        raise UsageError(f"{path} cannot be read: {e.strerror}") from e
    return data.decode("utf-8-sig", errors="replace")


def _leave_texts(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = files.safe_join(folder, name)
        files.make_folder(path.parent)
        files.write(path, text.encode())


def work_out(project: Project, ref: SessionRef) -> None:
    """Do what needs neither an agent nor a person: prompts, and what follows from an answer."""
    flow = project.workflow("generate")
    for _ in range(STEPS_MAX):
        state = project.state(ref)
        found = ((s, s.action) for s in flow.steps(state) if isinstance(s.action, Derive))
        step, action = next(found, (None, None))
        if step is None or action is None:
            return
        seen = {path: state.files.digest(path) for path in (action.path, *action.outputs)}
        project.change(ref, step.write(state, Outcome(Ended.DONE, finished_at=project.look.at)), seen)


def questions_to_come(project: Project, ref: SessionRef) -> list[Decide]:
    """What a person has to say once everything that code works out by itself is there; writes nothing."""
    flow, before = project.workflow("generate"), project.files(ref)
    found = {path: before.data(path) or b"" for path in project.artifacts(ref)}
    due: list[Step[State]] = []
    for _ in range(STEPS_MAX):
        shown = FrozenSnapshot(found)
        shown.place = before.place
        state = flow.read(shown, ref, project.given("generate"))
        due = list(flow.steps(state))
        step = next((s for s in due if isinstance(s.action, Derive)), None)
        if step is None:
            break
        foresee(found, step.write(state, Outcome(Ended.DONE, finished_at=project.look.at)))
    return [s.action for s in due if isinstance(s.action, Decide)]


# -- sources ------------------------------------------------------------------------------------


def _sources(
    root: Path, options: GenerateOptions, base: Path, files_of: FilesOf | None
) -> tuple[dict[str, str], dict[str, Any]]:
    """The code of another session or of the project, and what its session says about it."""
    found: dict[str, str] = {}
    inherited: dict[str, Any] = {}
    if options.source_session:
        source = find_session(root, options.source_session, files_of)
        found |= finished_code(source)
        context = source.session.context if source.session else {}
        inherited = {k: context[k] for k in SHARED if k in context}
        if not found:
            raise UsageError(f"session {options.source_session} has no completed code yet")
    for pattern in options.source_files:
        matched = dict(_matching(root, base, pattern))
        if not matched:
            raise UsageError(f"--source-files {pattern!r} matches no file in this repository")
        found |= matched
    if len(found) > SOURCES_MAX or sum(map(len, found.values())) > SOURCE_MAX:
        raise UsageError(
            f"the sources are {len(found)} files with {sum(map(len, found.values()))} characters; "
            f"at most {SOURCES_MAX} files and {SOURCE_MAX} characters are taken: name fewer"
        )
    return found, inherited


def _matching(root: Path, base: Path, pattern: str) -> Iterator[tuple[str, str]]:
    top = root.resolve()
    if pattern.startswith("/") or ".." in PurePosixPath(pattern).parts:
        raise UsageError(f"--source-files {pattern!r} must be relative and without '..'")
    for folder in dict.fromkeys((base.resolve(), top)):
        matched = [p for p in sorted(folder.glob(pattern)) if p.is_file() and not p.is_symlink()]
        inner = [p for p in matched if p.resolve().is_relative_to(top) and ".git" not in p.parts]
        if inner:
            for path in inner:
                yield str(path.resolve().relative_to(top)), _text(path.resolve(), SOURCE_MAX)
            return


def find_session(root: Path, name: str, files_of: FilesOf | None = None) -> State:
    """A session by any unique part of its id."""
    parent = root / layout.SESSIONS
    there = [name for name in paths.names(parent) if is_safe_name(name)]
    names = [n for n in there if n == name] or [n for n in there if name in n]
    if len(names) != 1:
        words = (
            f"may be any of: {', '.join(names)}" if names else f"is not here; there are: {', '.join(there)}"
        )
        raise UsageError(f"--source-session {name!r} {words}")
    ref = SessionRef("generate", names[0], f"{layout.SESSIONS}/{names[0]}")
    return read(files_of(ref) if files_of else DiskSnapshot(parent / names[0]), ref)


def finished_code(state: State) -> dict[str, str]:
    """The newest code of every completed cycle, by its path in the project."""
    found: dict[str, str] = {}
    for name, path in sorted(state.code.items()):
        text = state.files.text(path)
        if text is None:
            raise RondelError(f"{state.ref.folder}/{path} is gone; bring it back, or retry its cycle")
        found[name] = text
    return found


# -- taking the code over -----------------------------------------------------------------------


@dataclass(frozen=True)
class Copy:
    """One file on its way into the project."""

    path: str  # relative to the repository
    old: str | None
    new: str
    changed: bool  # somebody else's: it is there, and not as we left it
    edited: str = ""  # the cycle whose review was about other code

    @property
    def needed(self) -> bool:
        """Whether there is anything to write."""
        return self.old != self.new

    @property
    def diff(self) -> str:
        """What would change, as a unified diff."""
        lines = difflib.unified_diff(
            (self.old or "").splitlines(keepends=True),
            self.new.splitlines(keepends=True),
            "/dev/null" if self.old is None else f"a/{self.path}",
            f"b/{self.path}",
        )
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
        )


def copies(root: Path, state: State, into: str = "") -> list[Copy]:
    """What taking the finished code over would do, file by file. Nothing is written."""
    if state.flat and state.session and state.session.status is not WorkflowStatus.COMPLETED:
        return []
    applied = state.files.json(layout.APPLIED)
    left = applied if isinstance(applied, dict) else {}
    out, edited = [], state.edited
    below = into.rstrip("/").removeprefix("./")
    for name, text in finished_code(state).items():
        path = inside(name if below in ("", ".") else f"{below}/{name}", "the file")
        parts = PurePosixPath(path.casefold()).parts
        if ".git" in parts or parts[0] == ".aiwf":
            raise UnsafePath(
                f"the file {path!r} would change the repository's own files; choose another folder"
            )
        place = files.real_path(root, path)
        data = files.read(place)
        old = None if data is None else data.decode(errors="replace")
        theirs = data is not None and old != text and left.get(path) != digest(data)
        out.append(Copy(path, old, text, theirs, edited.get(name, "")))
    return out


def copy_code(root: Path, ref: SessionRef, chosen: Iterable[Copy], apply: Apply | None = None) -> list[str]:
    """Write the chosen files into the project, and note what they were when they were left there."""
    done: list[str] = []
    note = apply or partial(apply_in, root)
    for copy in chosen:
        place = files.real_path(root, copy.path)
        now = files.read(place)
        if (None if now is None else now.decode(errors="replace")) != copy.old:
            raise RondelError(f"{copy.path} has changed since the diff was shown; run it again")
        if copy.needed:
            files.make_folder(place.parent)
            files.write(place, copy.new.encode())
            done.append(copy.path)
        note(ref, [Edit(layout.APPLIED, partial(_noted, copy))])
    return done


def _noted(copy: Copy, applied: Document) -> Document:
    return {**applied, copy.path: digest(copy.new)}


# -- a new profile ------------------------------------------------------------------------------


def new_profile(root: Path, name: str) -> Path:
    """A working profile in the repository's own folder, with tests that pass."""
    safe_name(name, "the profile name")
    if name in profile_names(root):
        raise UsageError(f"there is a profile {name!r} already; choose another name")
    folder = files.claim_folder(root / layout.PROFILES, [name])
    skeleton = resources("rondel.workflows.generate.profiles").joinpath("skeleton")
    title = "".join(word.capitalize() for word in slug(name).split("-"))
    texts = [
        *(f"prompts/{word}.md" for word in layout.WORDS.values()),
        "standards/main.md",
        "standards/tests.md",
    ]
    for path in (*texts, "test_profile.py.txt", "profile.py.txt"):  # what makes it a profile comes last
        text = skeleton.joinpath(path).read_text(encoding="utf-8")
        place = folder / path.removesuffix(".txt")
        files.make_folder(place.parent)
        files.write(place, text.replace("__NAME__", name).replace("__CLASS__", f"{title}Profile").encode())
    return folder
