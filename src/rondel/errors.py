"""Every exception a person can meet, in one tree.

    RondelError                 exit 1: something is wrong, the message says what and what to do
    ├── UsageError              exit 2: the command line or a setting is not usable
    │   └── ConfigError         exit 2: a setting, named by file and key
    ├── NeedsConsent            exit 3: it would run something of the repository that nobody consented to
    ├── NothingToDo             exit 5: there is no work, and that is not a success
    ├── Held                    exit 1: another driver has the session
    ├── LostLease               exit 1: this driver was replaced; it must not write any more
    ├── UnsafePath              exit 1: a name that would leave its folder
    ├── DamagedFile             exit 1: a document that cannot be read and must not be overwritten
    ├── NewerFile               exit 1: a document of a newer Rondel; it is left alone
    └── GitError                exit 1: git refused, with its own words

    MachineTrouble              exit 6: the machine has no room, files, processes or memory left

The last one is beside the tree on purpose: whoever turns an error into an outcome of an
action, or goes on without what failed, must not do so with the machine's own trouble.

A rejected draft, a failed agent or a spent limit is an outcome, not an exception.
"""


class RondelError(Exception):
    """Something is wrong; the message names the thing and says what to do."""

    exit_code = 1

    def __init__(self, message: str = "", *, then: str = "") -> None:
        """With `then`, the command that leads on: it is printed as the next one."""
        super().__init__(message)
        self.then = then


class UsageError(RondelError):
    """The command line cannot be carried out as it stands."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting is not usable; the message names the file, the key and what is allowed."""


class NeedsConsent(RondelError):
    """What is asked for would run something of the repository that the person did not consent to."""

    exit_code = 3


class NothingToDo(RondelError):
    """There is no work; an empty diff is not a passed review."""

    exit_code = 5


class Held(RondelError):
    """Another driver holds the session."""


class LostLease(RondelError):
    """A newer driver has the session; whatever this one still wanted to write is refused."""


class UnsafePath(RondelError):
    """A name that would leave the folder it belongs to."""


class DamagedFile(RondelError):
    """A document that cannot be read; it is never overwritten to get on."""


class NewerFile(RondelError):
    """A document that a newer Rondel wrote; this one neither writes it nor goes on from it."""


class GitError(RondelError):
    """git refused; the message holds git's own words."""


class MachineTrouble(Exception):
    """The machine refused something for want of room, files, processes or memory.

    Nobody's failure and no attempt: the run stops with its name, and goes on when the machine can.
    """

    exit_code = 6
