"""Haypile from Python: what the operations of a job are on it."""

import contextlib
import os

import haypile
from job import JobError
from kept import KeptClient
from subject import Subject

VERSION = haypile.__version__

# In the working directory, so that the processes of a job share it.
FILE = "cache.haypile"
# No file is smaller.
MIN_FILE_BYTES = 1 << 20


class Client(KeptClient):
    """A cache of the package, in the file or in memory."""

    def __init__(self, room):
        store = room.options.get("store", "file")
        if store not in ("file", "memory"):
            raise JobError(f"there is no store '{store}'; there are file, memory")
        self._is_file = store == "file"
        policy = room.options.get("policy")
        if self._is_file:
            if policy is not None:
                raise JobError("haypile-python has a policy= with store=memory only")
            size = max(room.capacity_bytes, MIN_FILE_BYTES)
            self._url = f"file:{os.path.abspath(FILE)},size={size}"
        else:
            if room.processes > 1:
                raise JobError("haypile-python:store=memory cannot be shared by processes")
            if not room.is_new:
                raise JobError("haypile-python:store=memory leaves nothing that could be opened")
            self._url = f"memory:size={room.capacity_bytes}"
            if policy is not None:
                self._url += f",policy={policy}"
        self._begin(room)

    def _open(self):
        return haypile.open(self._url)

    def _remove(self):
        if self._is_file:
            with contextlib.suppress(FileNotFoundError):
                os.remove(FILE)

    def _set_expiring(self, name, value):
        """Writes a value for one second."""
        self._cache.set(name, value, ttl=1)

    def compute(self, key, computed):
        """Reads a key, or writes what `computed` gives, which one process does at a time."""
        return self._cache.get_or_compute(self._keys[key], None, computed)

    def counts(self):
        """How many entries there are, and the bytes that it counts for them and may hold."""
        stats = self._cache.stats()
        return {"entries": stats.entries, "charged_bytes": stats.bytes,
                "capacity_bytes": stats.capacity_bytes}

    def save(self):
        """Has what was written brought to disk."""
        self._cache.flush(durable=True)


SUBJECT = Subject("haypile-python", VERSION,
                  "our own package for Python: a cache in a file, or with store=memory in the process",
                  open=Client, options=("store", "policy"), is_shared=True)
