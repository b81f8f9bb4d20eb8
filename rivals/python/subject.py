"""What the runner has to know of a cache."""

from dataclasses import dataclass
from typing import Callable

from job import JobError


@dataclass(frozen=True)
class Room:
    """What a cache is opened with."""

    capacity_bytes: int
    is_new: bool
    """Whether what an earlier process left is thrown away; otherwise it is opened."""
    options: dict
    """What stands behind the subject's name, by name."""
    keys: list
    """The keys of the job by their numbers, in bytes."""
    processes: int
    """How many processes use it at once."""
    expires: bool = False
    """Whether entries are written that expire."""
    written_sizes: tuple = ()
    """The sizes of the values of all keys that are prepared, or that this process may write."""
    capacity_entries: int = 0
    """The capacity of a cache that counts entries."""
    sizes: tuple = ()
    """The sizes of the values by the numbers of their keys."""


@dataclass(frozen=True)
class Subject:
    """A cache that jobs are done on."""

    name: str
    version: str
    about: str
    open: Callable
    """Makes a client from a `Room`; `rivals/diskcache/client.py` shows what a client can do."""
    writes: Callable | None = None
    """Makes, from the options, the function of a value that returns what is written in its place; `None` writes
    the value itself. The client recovers the value when it reads."""
    options: tuple = ()
    """Names of settings that may follow the name, in addition to `room`."""
    is_shared: bool = False
    """Whether several processes can use one cache."""
    is_kept: bool = True
    """Whether a process that comes later can find what was flushed."""
    has_ttl: bool = True
    """Whether entries can expire."""
    check: Callable | None = None
    """Raises a `JobError` if the cache cannot do the operations: those of `prepare.ops`, the timed ones, and how
    often these are done."""
    target: Callable | None = None
    """Makes what a torture needs of the cache from a `Room` without keys: `get` (`None` is a miss),
    `set`, `delete`, `close`, and `busy`, the error of an operation that changed nothing; and where the cache has them,
    `set_in_group`, `invalidate` of a group, `clear`, and `compute`, which stores what a function returns."""

    @property
    def usage(self):
        """Returns its syntax."""
        return "".join([self.name, "[:", "".join(f"{option}=...," for option in self.options),
                        "room=N]"])

    def options_of(self, text):
        """Returns the options of a subject: `NAME:OPTION=VALUE,OPTION=VALUE`."""
        name, _, rest = text.partition(":")
        if name != self.name:
            raise JobError(f"unknown subject '{text}' (known: {self.usage})")
        options = dict(option.partition("=")[::2] for option in rest.split(",") if option)
        unknown = [option for option in options if option not in (*self.options, "room")]
        if unknown or not options.get("room", "1").isdecimal() or options.get("room") == "0":
            raise JobError(f"invalid subject '{text}'; written as {self.usage}")
        return options
