"""diskcache_rs: what the operations of a job are on it."""

import diskcache_rs
from diskcached import Client as DiskClient
from job import JobError
from looped import LoopedClient
from subject import Subject

NAME = "diskcache_rs"

# What it stores and counts with each value.
PREFIX_BYTES = 20
# Bytes that no job writes, and entries that none has.
NO_LIMIT = {"size_limit": 1 << 50, "count_limit": 1 << 50}


class Cache(diskcache_rs.Cache):
    """A `Cache` whose failures are errors: its own `set` returns `False`, whatever the reason was."""

    def set(self, key, value, *options, **named):
        """Writes a value."""
        if not super().set(key, value, *options, **named):
            raise OSError(f"{NAME} has not stored {key!r}")
        return True


class Client(DiskClient):
    """A cache with its own defaults, but for its two limits."""

    # Each caller that misses computes: a lock of the package may have two owners (README.md).
    compute = LoopedClient.compute

    def __init__(self, room):
        stored_bytes = sum(room.written_sizes) + len(room.written_sizes) * PREFIX_BYTES
        if stored_bytes > room.capacity_bytes:
            raise JobError(
                f"{NAME} evicts nearly everything once it has written as much as its limit, so it has none here, "
                f"and does no job of {stored_bytes} bytes with a capacity of {room.capacity_bytes}; ask for "
                f"{NAME}:room=N")
        super().__init__(diskcache_rs, NAME, room, NO_LIMIT)

    def _begin(self, room):
        super()._begin(room)
        try:
            self._keys = [key.decode() for key in room.keys]
        except UnicodeDecodeError:
            raise JobError(f"{NAME} has keys of text, and the job has others") from None

    def _open(self):
        return Cache(self._directory, **self._settings)

    def save(self):
        """Has what was written brought to disk."""
        self._cache.vacuum()


class Target:
    """The same cache for a process of a torture, whichever process created it."""

    # It never raises it.
    busy = diskcache_rs.Timeout

    def __init__(self, _room):
        cache = Cache(NAME, **NO_LIMIT)
        self.get = lambda name: cache.get(name.decode())
        self.set = lambda name, value: cache.set(name.decode(), value)
        self.delete = lambda name: cache.delete(name.decode())
        self.clear, self.close = cache.clear, cache.close


SUBJECT = Subject(NAME, diskcache_rs.__version__, "diskcache_rs: SQLite, and files for values of 32 KiB and above",
                  open=Client, is_shared=True, has_ttl=False, target=Target)
