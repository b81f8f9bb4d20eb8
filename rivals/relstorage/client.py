"""RelStorage's local client: what the operations of a job are on it."""

from importlib.metadata import version

from relstorage.cache.local_client import LocalClient
from relstorage.options import Options
from subject import Subject

VERSION = version("RelStorage")

# Values of this many bytes and more are not kept; its own default is 16,384.
TOO_LARGE = 1 << 30


class Client:
    """A local client of its own, without compression.

    Its keys are object ids, numbers of 64 bits. A job's key is the object of its number, and so is
    the transaction that wrote it: the value of a key never changes.
    """

    def __init__(self, room):
        self._options = Options()
        # It multiplies by 1,000,000 and cuts off what is behind the point.
        self._options.cache_local_mb = (room.capacity_bytes + 0.5) / 1_000_000
        self._options.cache_local_compression = "none"
        self._options.cache_local_object_max = TOO_LARGE
        # Where it writes anything to disk, it is to the working directory.
        self._options.cache_local_dir = "."
        self.fresh()
        if not room.is_new:
            self._client.restore()

    def fresh(self):
        """Replaces the client by a new, empty one."""
        self._client = LocalClient(self._options, "haypile")
        # Whatever the options say, it takes a value that begins with '.z' or '.b' for a compressed
        # one, and fails to decompress it. Objects of ZODB never do; values of jobs may.
        self._client._decompression_functions = {}  # pylint: disable=protected-access

    def counts(self):
        """Returns the number of objects, and the bytes that it charges: 96 for each in addition to
        the value."""
        return {"entries": len(self._client), "charged_bytes": self._client.size}

    def get(self, keys, seen):
        """Reads keys and shows what is found to `seen`; returns the number of misses."""
        client = self._client
        misses = 0
        for key in keys:
            found = client[key, key]
            if found is None:
                misses += 1
            else:
                seen(key, found[0])
        return misses

    def set(self, keys, values):
        """Writes the values of keys."""
        client = self._client
        for key in keys:
            client[key, key] = (values[key], key)

    def get_set(self, keys, values, seen):
        """Reads keys and writes those that are not there; gives their number."""
        client = self._client
        misses = 0
        for key in keys:
            found = client[key, key]
            if found is None:
                misses += 1
                client[key, key] = (values[key], key)
            else:
                seen(key, found[0])
        return misses

    def load(self, keys, values, seen, make):
        """Reads keys and makes the values of those that are not there; gives their number."""
        client = self._client
        misses = 0
        for key in keys:
            found = client[key, key]
            if found is None:
                misses += 1
                make(key, values[key])
            else:
                seen(key, found[0])
        return misses

    def compute(self, key, computed):
        """Reads a key, or writes what `computed` gives: it has no call for that."""
        found = self._client[key, key]
        if found is not None:
            return found[0]
        value = computed()
        self._client[key, key] = (value, key)
        return value

    def clear(self):
        """Removes all entries."""
        self._client.flush_all()

    def delete(self, keys):
        """Deletes keys."""
        for key in keys:
            self._client.invalidate_all((key,))

    def save(self):
        """Writes everything to the database in its directory, in the place of what was there."""
        if self._client.save(overwrite=True) != 1:
            raise OSError("RelStorage has written nothing; its log says why")

    def close(self, keeps):
        """Nothing is on disk but what was saved, which is to stay."""


SUBJECT = Subject("relstorage", VERSION, "RelStorage's local client: segmented LRU in C++",
                  open=Client, has_ttl=False)
