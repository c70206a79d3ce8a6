"""What a run works with: worktrees, the session's branch, the sandbox, agents as they were consented to."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from rondel.agents import roster
from rondel.agents.base import Agent, AgentSettings
from rondel.agents.words import by_no_link, pinned, pinned_words, run_in
from rondel.config import BUILT_IN, Config
from rondel.engine.branch import move_onto, own_branch, see_branch
from rondel.engine.executor import LocalExecutor
from rondel.engine.judged import touches
from rondel.engine.perform import Tools
from rondel.errors import GitError
from rondel.model.actions import match_role
from rondel.model.consent import Everything
from rondel.model.names import digest
from rondel.model.summary import command_line
from rondel.model.workflow import SessionRef
from rondel.project.repository import Repository, now
from rondel.project.views import Views
from rondel.repo.clone import object_folders
from rondel.repo.integrate import Conflict
from rondel.repo.sizes import MB, EditMax
from rondel.repo.workspaces import Workspaces
from rondel.sandbox.box import VARIABLE as SANDBOX_VARIABLE
from rondel.sandbox.box import Box, held, holds, own_places, unclosable
from rondel.sandbox.box import mode as sandbox_mode
from rondel.sandbox.hosts import named
from rondel.store.lease import Lease
from rondel.trust import consents
from rondel.trust.named import is_script
from rondel.trust.parts import Part, key_name

BESIDE_MAX = 500  # files beside the scripts of an agent


class Running:
    """Where and as what programs run for one repository."""

    def __init__(self, repository: Repository, views: Views, build: Callable[[AgentSettings], Agent]) -> None:
        self._repository = repository
        self._views = views
        self._build = build
        self._box: tuple[Config, Box | None] | None = None  # and the settings that it is made from

    def tools(self) -> Tools:
        """What the engine needs to perform actions."""
        places = (self._work_folder, Path(tempfile.gettempdir()))
        return Tools(
            self._repository.config,
            self._repository.look,
            LocalExecutor(now),
            self.workspaces(),
            now,
            self._build,
            places,
            self._changed,
            self._replaced,
            self._scripts,
            self.box,
        )

    def workspaces(self) -> Workspaces:
        """Where agents work in this repository."""
        limits = self._repository.config.limits
        most = EditMax(int(limits.edit_mb_max * MB), limits.edit_files_max)
        unedited = self._repository.unedited()
        return Workspaces(
            self._repository.root, self.own_work_folder, box=self.box, most=most, unedited=unedited
        )

    @property
    def own_work_folder(self) -> Path:
        """The folder for the worktrees of this repository, in the person's cache."""
        root = self._repository.root
        return self._work_folder / f"{root.name}-{digest(str(root))[:8]}"

    @property
    def _work_folder(self) -> Path:
        root = self._repository.config.workspaces.root
        own = Path(root).expanduser() if root else Path(platformdirs.user_cache_dir("rondel")) / "workspaces"
        return own.resolve()

    # -- the branch of a session ------------------------------------------------------------------

    def check_branch(self, ref: SessionRef) -> None:
        """GitError where a session's branch does not hold what counts as done: nobody completes that."""
        views = self._views
        if (loss := views.loss(ref, views.state(ref), views.files(ref))) is not None:
            raise GitError(loss.words, then=loss.next)

    def see_branch(self, ref: SessionRef) -> list[str]:
        """See that a session's branch holds what counts as done; gives what had to be put right."""
        session, said = self._views.session(ref), list[str]()
        session.begin(self._repository.look)
        asyncio.run(see_branch(session, self.workspaces(), lambda _, f: said.append(str(f["message"]))))
        return said

    def own_branch(self, ref: SessionRef) -> str | None:
        """Another name for a new session's branch, where a branch of that name holds somebody else's work."""
        wanted = self._repository.workflow(ref.workflow).target(self._views.state(ref))
        found = own_branch(self._repository.look, wanted) if wanted else wanted
        return found if found != wanted else None

    def move_onto(self, ref: SessionRef, branch: str, lease: Lease) -> list[str]:
        """Let a session's work go to another branch from now on; gives what that branch lacks of it."""
        session, look = self._views.session(ref), self._repository.look
        lacking = move_onto(session, branch, look, lease, self._views.branches)
        self.workspaces().accept(self._views.session(ref).begin(look, lease).id, branch)
        return lacking

    def merge(self, branch: str, into: str, message: str) -> tuple[str, ...]:
        """Merge a branch into the one that is checked out; the files in conflict, where nothing changed."""
        merged = self.workspaces().merge(branch, into, message)
        return tuple(merged.files) if isinstance(merged, Conflict) else ()

    # -- the sandbox ------------------------------------------------------------------------------

    @property
    def sandbox_mode(self) -> str:
        """Whether programs are confined: as the person's settings or their environment say."""
        return sandbox_mode(self._repository.config.sandbox.mode, os.environ.get(SANDBOX_VARIABLE))

    def unconfined(self) -> str:
        """Why nothing is confined here though nobody asked for that; said once per repository, then empty."""
        if self.sandbox_mode != "auto" or holds():
            return ""
        return held("auto") if consents.once(self._repository.root, "no-sandbox") else ""

    def held(self) -> str:
        """What confines programs here, in words."""
        return held(self.sandbox_mode, self._repository.config.sandbox.network)

    def unclosable(self) -> str:
        """Why a command cannot be held without a network here; empty where it can."""
        off = "it is switched off ([sandbox] mode, RONDEL_SANDBOX)"
        return off if self.sandbox_mode == "none" else unclosable()

    @property
    def box(self) -> Box | None:
        """What everything that runs here may reach; None where nothing is confined."""
        config = self._repository.config
        if self._box is None or self._box[0] is not config:
            self._box = config, self._make_box(config)
        return self._box[1]

    def _make_box(self, config: Config) -> Box | None:
        mode, network = self.sandbox_mode, config.sandbox.network
        if mode == "none" or not holds(required=mode == "required", network=network):
            return None
        common = self._views.trees.common
        return Box(
            read=(*map(_own_path, config.sandbox.read), *self._git_settings()),
            write=tuple(map(_own_path, config.sandbox.write)),
            objects=tuple(object_folders(common)),
            hidden=(str(self._repository.root), str(common), str(self._work_folder), *own_places()),
            cache=str(self.own_work_folder / "cache"),
            network=network,
            hosts=named(config.sandbox.hosts),
        )

    def _git_settings(self) -> list[str]:
        """The files of the person's own git settings: git does not work where it cannot read one of them."""
        words = ("config", "--global", "--includes", "--list", "--show-origin", "--name-only", "-z")
        fields = self._repository.look.git(*words, check=False).split("\0")[::2]
        named = {f.removeprefix("file:") for f in fields if f.startswith("file:")}
        return sorted(str(path) for f in named if (path := Path(f).expanduser()).is_absolute())

    # -- agents ---------------------------------------------------------------------------------

    def detected(self) -> Sequence[str]:
        """The vendors' agents on the PATH."""
        return roster.detect()

    def agents(self) -> list[AgentRow]:
        """Which agents are installed, and who has which role.

        Of one that the repository's settings describe, only where its program is: nothing of the
        repository is run to show something.
        """
        repository = self._repository
        config = repository.read_config(all_installed=False)
        configured = dict(config.agents)
        for kind in (*roster.VENDORS, *BUILT_IN):
            configured.setdefault(kind, AgentSettings(name=kind, kind=kind, root=repository.root))
        brought, rows = {part.name for part in config.admitted.parts}, []
        for name, table in configured.items():
            is_brought = key_name(("agents", name)) in brought
            version = _program(table) if is_brought else roster.build(table).version()
            has = sorted(r for r, agent in config.roles.items() if agent == name)
            unset = [w for w in repository.workflow_names() if match_role(config.roles, w) is None]
            serves = [w for w in unset if config.agent_for(w).name == name]
            is_vendor = table.kind in roster.VENDORS
            rows.append(AgentRow(name, table.kind, version, table.model, has, serves, is_vendor))
        return rows

    # -- as they were consented to -----------------------------------------------------------

    def _changed(self, agent: AgentSettings) -> str:
        """What is not as it was when the settings were read: a file of an agent, or the consent to it."""
        if isinstance(self._repository.consents.parts, Everything):  # yes to whatever it is, in this process
            return ""
        shows = command_line("trust")
        for part in self._parts_of(agent):
            if part.digest not in self._repository.consents_now().parts:
                return f"your yes to {part.name} was taken back while this ran; `{shows}` shows it"
            for path, before in part.files:
                found = consents.lookup(self._repository.root, path)
                if found is None or found.digest != before:
                    return f"{path} of {part.name} has changed while this ran; `{shows}` shows it"
        return ""

    def _replaced(self, agent: AgentSettings, cwd: Path) -> str:
        """What of an agent's program a working copy brings that nobody consented to, in words.

        What the command runs from beside its settings is not looked for there. Every other file that the
        consent to it covers is as it was consented to; and what decides what a command runs is not what the
        change under review made of it.
        """
        if agent.kind == "command":
            words, scripts = pinned(agent.command, agent.beside)
        else:
            first, scripts = pinned_words(agent.command[:1], agent.beside)
            words = (*first, *agent.command[1:])
        root, change, look = self._repository.root, self._repository.change, self._repository.look
        pins = {str(place.relative_to(root)) for place in scripts if place.is_relative_to(root)}
        covered = {} if isinstance(self._repository.consents.parts, Everything) else self._covered(agent)
        for path, before in covered.items():
            found = consents.lookup(cwd, path) if path not in pins else None
            if found is not None and found.digest != before:
                return _not_asked(agent, f"{path} is not as you consented to it")
        for path in run_in(words, cwd):
            if path not in covered and change and touches(change, path, cwd, look):
                return _not_asked(agent, f"the change under review brings its own {path}, which would be run")
        return ""

    def _scripts(self, agent: AgentSettings) -> tuple[str, ...]:
        """The scripts among the files that the consent to an agent covers, and what git tracks beside them.

        A working copy shows the latter to everybody; what is not tracked there may be a secret.
        """
        scripts = [path for path, sha in self._covered(agent).items() if is_script(path, sha)]
        if not scripts:
            return ()
        root, folders = self._repository.root, {path.rpartition("/")[0] for path in scripts}
        specs = sorted(f":(top,literal){folder}" if folder else ":(top,glob)*" for folder in folders)
        listed = self._repository.look.git("ls-files", "-z", "--", *specs, check=False).split("\0")
        beside = [path for path in listed if path and path.rpartition("/")[0] in folders][:BESIDE_MAX]
        return by_no_link((root / path for path in dict.fromkeys((*scripts, *beside))), root)

    def _covered(self, agent: AgentSettings) -> dict[str, str]:
        """The files of the repository that the person's consent to an agent covers, with their digests."""
        return dict(file for part in self._parts_of(agent) for file in part.files)

    def _parts_of(self, agent: AgentSettings) -> list[Part]:
        """What of an agent the person consented to."""
        admitted, name = self._repository.config.admitted, key_name(("agents", agent.name))
        return [part for part in admitted.parts if part.name == name and part not in admitted.left_out]


@dataclass(frozen=True)
class AgentRow:
    """An agent, as `rondel agents` shows it."""

    name: str
    kind: str
    version: str | None
    model: str
    roles: list[str]
    default_for: list[str]  # workflows in which it serves where no role says another
    is_vendor: bool


def _program(table: AgentSettings) -> str | None:
    """Where the program of an agent is, without running it."""
    if not table.command:
        return "configured"
    first = table.command[0]
    beside = table.beside / first if table.beside else Path(first)
    return str(beside) if beside.is_file() else shutil.which(first)


def _not_asked(agent: AgentSettings, why: str) -> str:
    """What a person reads where a working copy would choose an agent's program."""
    return (
        f"agents.{agent.name} is not asked: in the working copy {why}. Name its program by its whole "
        "path, or by one beside the settings; or look at that file, check it out, and say yes to it "
        f"(`{command_line('trust')}`)"
    )


def _own_path(path: str) -> str:
    """A path of the person's settings; `~` is their home folder."""
    return str(Path(path).expanduser())
