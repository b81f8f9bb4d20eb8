"""RelStorage's local client as a subject: what a runner does with it."""

from importlib.metadata import version

from relstorage.cache.local_client import LocalClient
from relstorage.options import Options

NAME = "relstorage"
VERSION = version("RelStorage")

# The client keeps values below this many bytes; 16,384 by default, which is below what jobs have.
LARGEST_VALUE = 1 << 30


class Client:
    """A local client of its own, without compression.

    Its keys are the object ids of a database: numbers of 64 bits. The number of a job's key is that
    id, and the transaction too: a value never changes, and so its transaction does not.
    """

    def __init__(self, capacity_bytes, directory=None):
        options = Options()
        # It multiplies this with 1,000,000 and cuts the fraction off.
        options.cache_local_mb = (capacity_bytes + 0.5) / 1_000_000
        options.cache_local_compression = "none"
        options.cache_local_object_max = LARGEST_VALUE
        options.cache_local_dir = directory
        self._options = options
        self.fresh()

    def fresh(self):
        """Replaces the client by a new, empty one."""
        self._client = LocalClient(self._options, "haypile")

    def entries(self):
        """How many objects there are."""
        return len(self._client)

    def get(self, key):
        """The value of a key, or None."""
        found = self._client[key, key]
        return None if found is None else found[0]

    def set_all(self, keys, values):
        """Sets each of the keys to its value, one by one."""
        client = self._client
        for key in keys:
            client[key, key] = values[key], key

    def get_all(self, keys, seen):
        """Gets each of the keys, one by one, and shows what is found to `seen`; gives the misses."""
        client = self._client
        misses = []
        for key in keys:
            found = client[key, key]
            if found is None:
                misses.append(key)
            else:
                seen(key, found[0])
        return misses

    def get_set_all(self, keys, values, seen):
        """Gets each of the keys, and sets those that are missing; gives the misses."""
        client = self._client
        misses = 0
        for key in keys:
            found = client[key, key]
            if found is None:
                misses += 1
                client[key, key] = values[key], key
            else:
                seen(key, found[0])
        return misses

    def delete_all(self, keys):
        """Removes keys, one by one."""
        for key in keys:
            self._client.invalidate_all((key,))

    def save(self):
        """Writes everything to the directory's database."""
        return self._client.save(overwrite=True)

    def restore(self):
        """Reads the directory's database."""
        self._client.restore()
