"""The dbm backend of dogpile.cache: what the operations of a job are on it."""

import contextlib
import dbm
import importlib
import os
from importlib.metadata import version
from pathlib import Path

from dogpile.cache import make_region
from dogpile.cache.api import NO_VALUE
from job import JobError
from kept import KeptClient
from subject import Subject

NAME = "dogpile"

# In the order of Python, which takes the first that there is; those above the last need libraries.
MODULES = ("dbm.sqlite3", "dbm.gnu", "dbm.ndbm", "dbm.dumb")


def module():
    """The name of the module of Python that writes the file."""
    for name in MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
            return name
    raise JobError("this Python has no module for dbm files")


class Cache:
    """A region over a file in the working directory, whose keys and values are bytes."""

    def __init__(self):
        self._region = make_region().configure("dogpile.cache.dbm", arguments={"filename": NAME})

    def get(self, name):
        """Reads a key; `None` is a miss."""
        value = self._region.get(name.decode())
        return None if value is NO_VALUE else value

    def set(self, name, value):
        """Writes a value."""
        self._region.set(name.decode(), value)

    def delete(self, name):
        """Deletes a key."""
        self._region.delete(name.decode())

    def compute(self, name, computed):
        """Reads a key, or writes what `computed` returns, which one process calls at a time."""
        return self._region.get_or_create(name.decode(), computed)

    def close(self):
        """Each operation opens the file and closes it."""


def files():
    """The files of the database, without those of its locks."""
    return [path for path in Path().glob(f"{NAME}*") if path.suffix != ".lock"]


class Client(KeptClient):
    """A region with its own defaults."""

    def __init__(self, room):
        if sum(room.written_sizes) > room.capacity_bytes:
            raise JobError(f"{NAME} has no limit and evicts nothing, and does no job of {sum(room.written_sizes)} bytes with a "
                           f"capacity of {room.capacity_bytes}; ask for {NAME}:room=N")
        try:
            for key in room.keys:
                key.decode()
        except UnicodeDecodeError:
            raise JobError(f"{NAME} has keys of text, and the job has others") from None
        self._begin(room)

    def _open(self):
        return Cache()

    def _remove(self):
        for path in Path().glob(f"{NAME}*"):
            path.unlink()

    def clear(self):
        """It has no call that removes all entries for all processes: it begins with a new file."""
        self.fresh()

    def compute(self, key, computed):
        """Reads a key, or writes the value of `computed`."""
        return self._cache.compute(self._keys[key], computed)

    def save(self):
        """Has the file brought to disk."""
        for path in files():
            with path.open("rb") as file:
                os.fsync(file.fileno())

    def counts(self):
        """How many entries there are, and the size of the file."""
        with dbm.open(NAME, "r") as database:
            entries = len(database.keys())
        return {"entries": entries, "charged_bytes": sum(path.stat().st_size for path in files())}


class Busy(Exception):
    """It waits for its locks without an end, and so never refuses an operation."""


class Target(Cache):
    """The same cache for a process of a torture, whichever process created it."""

    busy = Busy

    def __init__(self, _room):
        super().__init__()


SUBJECT = Subject(NAME, f"{version('dogpile.cache')} ({module()})", "dogpile.cache: a dbm file, and locks of files",
                  open=Client, is_shared=True, has_ttl=False, target=Target)
