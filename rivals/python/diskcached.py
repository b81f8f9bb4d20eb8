"""Caches with the interface of diskcache: what the operations of a job are on them."""

import contextlib
import shutil
import sqlite3
from functools import partial

from kept import KeptClient
from subject import Subject


class Client(KeptClient):
    """A `Cache` of such a package, in a directory whose name is always the same."""

    def __init__(self, package, directory, room, settings):
        self._package, self._directory, self._settings = package, directory, settings
        self._begin(room)

    def _open(self):
        return self._package.Cache(self._directory, **self._settings)

    def _remove(self):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._directory)

    def _set_expiring(self, name, value):
        """Writes a value for one second."""
        self._cache.set(name, value, expire=1)

    def compute(self, key, computed):
        """Reads a key, or writes the value of `computed`, which one caller calls at a time."""
        return self.compute_locked(key, computed, partial(self._package.Lock, self._cache))

    def counts(self):
        """How many entries there are, and the size by which it evicts."""
        return {"entries": len(self._cache), "charged_bytes": self._cache.volume()}


class SqliteClient(Client):
    """diskcache, or its fork: a `Cache` with its own defaults, but for the limit of its size."""

    def __init__(self, package, directory, room):
        super().__init__(package, directory, room, sqlite_settings(package, room))

    def save(self):
        """Has SQLite write its log into the database, and the database to disk."""
        with sqlite3.connect(f"{self._directory}/{self._package.core.DBNAME}") as database:
            (is_blocked, _, _), = database.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
        database.close()
        if is_blocked:
            raise OSError("SQLite could not write its log into the database")


class SqliteTarget:
    """The same cache for a process of a torture, whichever process created it."""

    def __init__(self, package, directory, room):
        cache = package.Cache(directory, **sqlite_settings(package, room))
        self.get, self.set, self.delete, self.close = cache.get, cache.set, cache.delete, cache.close
        self.set_in_group = lambda name, value, group: cache.set(name, value, tag=group)
        self.invalidate, self.clear = cache.evict, cache.clear
        # After its 60 seconds without the lock of SQLite; the transaction has not begun.
        self.busy = package.Timeout


def sqlite_settings(package, room):
    """What a cache is opened with."""
    settings = {"size_limit": room.capacity_bytes}
    if "policy" in room.options:
        policies = package.core.EVICTION_POLICY
        if room.options["policy"] not in policies:
            raise ValueError(f"unknown policy '{room.options['policy']}' (known: {', '.join(policies)})")
        settings["eviction_policy"] = room.options["policy"]
    return settings


def sqlite_subject(package, name):
    """diskcache, or its fork."""
    version = f"{package.__version__} (SQLite {sqlite3.sqlite_version})"
    return Subject(name, version, f"{name}: SQLite, and files for values above 32 KiB",
                   open=partial(SqliteClient, package, name), options=("policy",), is_shared=True,
                   target=partial(SqliteTarget, package, name))
