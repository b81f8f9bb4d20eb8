"""diskcache: what the operations of a job are on it."""

import contextlib
import shutil
import sqlite3

import diskcache
from kept import KeptClient
from subject import Subject

VERSION = f"{diskcache.__version__} (SQLite {sqlite3.sqlite_version})"

# In the working directory, so that the processes of a job share it.
DIRECTORY = "diskcache"

# Prefix of the entry that is the lock of a key.
LOCK_PREFIX = b"lock:"


def settings_of(room):
    """What a cache is opened with."""
    settings = {"size_limit": room.capacity_bytes}
    if "policy" in room.options:
        if room.options["policy"] not in diskcache.core.EVICTION_POLICY:
            raise ValueError(f"there is no policy {room.options['policy']}; there are "
                             + ", ".join(diskcache.core.EVICTION_POLICY))
        settings["eviction_policy"] = room.options["policy"]
    return settings


class Client(KeptClient):
    """A `diskcache.Cache` with its own defaults, but for the limit of its size."""

    def __init__(self, room):
        self._settings = settings_of(room)
        self._begin(room)

    def _open(self):
        return diskcache.Cache(DIRECTORY, **self._settings)

    def _remove(self):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(DIRECTORY)

    def _set_expiring(self, name, value):
        """Writes a value for one second."""
        self._cache.set(name, value, expire=1)

    def compute(self, key, computed):
        """Reads a key, or writes the value of `computed`, by one caller at a time: a caller that had to
        wait reads again."""
        cache, name = self._cache, self._keys[key]
        value = cache.get(name)
        if value is None:
            with diskcache.Lock(cache, LOCK_PREFIX + name):
                value = cache.get(name)
                if value is None:
                    value = computed()
                    cache.set(name, value)
        return value

    def counts(self):
        """How many entries there are, and the size by which it evicts."""
        return {"entries": len(self._cache), "charged_bytes": self._cache.volume()}

    def save(self):
        """Has SQLite write its log into the database, and the database to disk."""
        with sqlite3.connect(f"{DIRECTORY}/{diskcache.core.DBNAME}") as database:
            (is_blocked, _, _), = database.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
        database.close()
        if is_blocked:
            raise OSError("SQLite could not write its log into the database")


class Target:
    """The same cache for a process of a torture, whichever process created it."""

    # After its 60 seconds without the lock of SQLite; the transaction has not begun.
    busy = diskcache.Timeout

    def __init__(self, room):
        cache = diskcache.Cache(DIRECTORY, **settings_of(room))
        self.get, self.set, self.delete, self.close = cache.get, cache.set, cache.delete, cache.close


SUBJECT = Subject("diskcache", VERSION, "diskcache: SQLite, and files for values above 32 KiB",
                  open=Client, options=("policy",), is_shared=True, target=Target)
