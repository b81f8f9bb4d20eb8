"""What the files of the browser's cache on disk say before it starts."""

import struct
from pathlib import Path

# Of cache2/index: its version, its time, whether it is dirty, and the kilobytes written; all in network byte order.
HEADER = struct.Struct(">IIII")


class CacheFiles:
    """The folder of the cache on disk, as an earlier browser has left it."""

    def __init__(self, profile):
        folder = Path(profile, "cache2")
        self.entries = sum(path.is_file() for path in folder.glob("entries/*"))
        self.index = index_state(folder)


def index_state(folder):
    """Returns what the browser has to do with the index of a cache before it knows its entries: "read" it; "update" it
    by the files of all entries, because it was written before the last changes; or "rebuild" it from them.

    The browser marks its index as dirty when it has read it, and writes the mark back with a journal when it quits.
    """
    try:
        header = (folder / "index").read_bytes()[:HEADER.size]
        _, _, is_dirty, _ = HEADER.unpack(header)
    except (OSError, struct.error):
        return "rebuild"
    return "read" if not is_dirty and (folder / "index.log").is_file() else "update"
