"""Haypile from Python: what the operations of a job are on it."""

import contextlib
import os
from binascii import a2b_base64, b2a_base64
from operator import itemgetter

import haypile
from job import JobError
from kept import KeptClient
from looped import show
from subject import Subject

VERSION = haypile.__version__

# In the working directory, so that the processes of a job share it.
FILE = "cache.haypile"
# No file is smaller.
MIN_FILE_BYTES = 1 << 20

# JSON has no bytes: they are text there.
SERIALIZERS = ("json", "pickle", "msgpack")


def choice(room_options, name, known):
    """Returns the value of an option, which is the first of those known unless the subject names one."""
    value = room_options.get(name, known[0])
    if value not in known:
        raise JobError(f"unknown {name} '{value}' (known: {', '.join(filter(None, known))})")
    return value


class Client(KeptClient):
    """A cache of bytes of the package, in the file or in memory."""

    def __init__(self, room):
        self._is_file = choice(room.options, "store", ("file", "memory")) == "file"
        if choice(room.options, "many", ("get_many", "get")) == "get":
            self.get_many = self.get
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

    def _bytes(self):
        """Returns the cache of bytes."""
        return self._cache

    def get_many(self, keys, seen):
        """Reads keys by one call and shows the values found to `seen`; returns the number of misses."""
        names = self._keys
        return show(keys, self._cache.get_many([names[key] for key in keys]), seen)

    def _set_expiring(self, name, value):
        """Writes a value for one second."""
        self._cache.set(name, value, ttl=1)

    def compute(self, key, computed):
        """Reads a key, or writes the value of `computed`, which one process calls at a time."""
        return self._cache.get_or_compute(self._keys[key], None, computed)

    def counts(self):
        """How many entries there are, and the bytes that it counts for them and may hold."""
        stats = self._bytes().stats()
        return {"entries": stats.entries, "charged_bytes": stats.bytes,
                "capacity_bytes": stats.capacity_bytes}

    def save(self):
        """Has what was written brought to disk."""
        self._bytes().flush(durable=True)


class ObjectsClient(Client):
    """A cache of objects of the package, each of which has the bytes of a value in it."""

    def __init__(self, room):
        self._serializer = room.options["objects"]
        self._to_object = writes(room.options)
        self._to_bytes = json_body if self._serializer == "json" else itemgetter("body")
        super().__init__(room)

    def _open(self):
        cache = super()._open()
        return haypile.Objects(cache, self._serializer)

    def _bytes(self):
        return self._cache.cache

    def get(self, keys, seen):
        """Reads keys and shows the bytes in the objects found to `seen`; returns the number of misses."""
        get, names, to_bytes = self._cache.get, self._keys, self._to_bytes
        misses = 0
        for key in keys:
            value = get(names[key])
            if value is None:
                misses += 1
            else:
                seen(key, to_bytes(value))
        return misses

    def get_many(self, keys, seen):
        """The same by one call."""
        names, to_bytes = self._keys, self._to_bytes
        found = self._cache.get_many([names[key] for key in keys])
        misses = 0
        for key in keys:
            value = found.get(names[key])
            if value is None:
                misses += 1
            else:
                seen(key, to_bytes(value))
        return misses

    def get_set(self, keys, values, seen, put=None):
        """Reads keys and writes those that are missing, or calls `put` for them; returns their number."""
        to_bytes = self._to_bytes
        return super().get_set(keys, values, lambda key, value: seen(key, to_bytes(value)), put)

    def compute(self, key, computed):
        """Reads a key, or writes the object of the value of `computed`, which one process calls at a time."""
        return self._to_bytes(super().compute(key, lambda: self._to_object(computed())))


def json_body(value):
    """Returns the bytes in an object that was JSON."""
    return a2b_base64(value["body"])


def writes(options):
    """Returns the function that makes the object to write of a value's bytes; `None` to write the bytes."""
    serializer = choice(options, "objects", (None, *SERIALIZERS))
    if serializer is None:
        return None
    if serializer == "json":
        return lambda value: {"bytes": len(value), "body": b2a_base64(value, newline=False).decode()}
    return lambda value: {"bytes": len(value), "body": value}


def open_client(room):
    """Opens a cache of bytes, or of objects."""
    return (ObjectsClient if "objects" in room.options else Client)(room)


SUBJECT = Subject("haypile-python", VERSION,
                  "our own package for Python: a cache in a file, or with store=memory in the process",
                  open=open_client, writes=writes, options=("store", "policy", "objects", "many"), is_shared=True)
