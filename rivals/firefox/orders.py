"""The orders of a loader, as crates/haypile-pages/src/orders.rs has them, and the site that they name."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from browser import MEMORY_KB, cache_preferences
from job import JobError

UNITS = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
MAX_KB = 2**31 - 1
USAGE = "none, fresh, memory:size=N, file:size=N, memory+file:size=N"


@dataclass(frozen=True)
class CacheSpec:
    """A cache, as orders name it."""

    mode: str
    size_kb: int | None

    @classmethod
    def parse(cls, text):
        """Returns the cache of a text."""
        parsed = re.fullmatch(r"(none|fresh|memory|file|memory\+file)(?::size=([0-9.]+)([A-Za-z]*))?", text)
        if parsed is None or parsed[3] not in {None, *UNITS}:
            raise JobError(f"unknown cache '{text}' of Firefox (known: {USAGE})")
        mode, size_kb = parsed[1], None
        if (mode in ("none", "fresh")) != (parsed[2] is None):
            raise JobError(f"'{text}': {mode} has {'a' if parsed[2] is None else 'no'} size")
        if parsed[2]:
            size_kb = int(float(parsed[2]) * UNITS[parsed[3]]) >> 10
            if not 0 < size_kb <= MAX_KB:
                raise JobError(f"'{text}': a size is 1 KB to {MAX_KB} KB")
        return cls(mode, size_kb)

    @property
    def is_on_disk(self):
        """Whether entries are files: also with both caches, because the browser then keeps in memory only what may not
        be on disk."""
        return self.mode in ("file", "memory+file")

    @property
    def is_on(self):
        """Whether anything is stored."""
        return self.mode not in ("none", "fresh")

    def preferences(self):
        """Returns the settings of the browser's caches."""
        memory_kb = {"memory": self.size_kb, "memory+file": MEMORY_KB}.get(self.mode)
        return cache_preferences(self.size_kb if self.is_on_disk else None, memory_kb)


class Site:
    """What a loader has to know of the site."""

    def __init__(self, orders):
        site = json.loads(Path(orders["site"]).read_text(encoding="utf-8"))
        crc32 = json.loads(Path(orders["crc32"]).read_text(encoding="utf-8"))
        self.pages = site["pages"]
        self.resources = [Resource.of(*pair) for pair in zip(site["resources"], crc32, strict=True)]

    def of_page(self, page):
        """Returns the resources of a page in the order of its loads."""
        return [self.resources[load["resource"]] for load in self.pages[page]["loads"]]

    def not_on_disk(self):
        """Returns the URLs that the browser does not store on disk: those of responses that may not be stored, and all
        of pages with such a document, whose resources the browser treats alike."""
        urls = {resource.url for resource in self.resources if resource.is_never_stored}
        for resources in map(self.of_page, range(len(self.pages))):
            if any(resource.is_never_stored and resource.kind == "html" for resource in resources):
                urls.update(resource.url for resource in resources)
        return urls


@dataclass(frozen=True)
class Resource:
    """A resource of the site."""

    url: str
    kind: str
    status: int
    size: int
    crc32: int
    is_never_stored: bool

    @classmethod
    def of(cls, resource, crc32):
        """Returns the resource that a site describes."""
        url = resource["url"]
        if not url.startswith("http://"):
            raise JobError(f"{url}: this loader serves http alone")
        if "typed" not in resource["body"]:
            raise JobError(f"{url}: a body of random bytes, as those of a HAR are, loads nothing in a browser; take a "
                           "generated site")
        directives = ",".join(value for name, value in resource["headers"] if name == "cache-control").lower()
        return cls(url, resource["kind"], resource["status"], resource["body"]["typed"]["bytes"], crc32,
                   "no-store" in directives)


def partition_of(url):
    """Returns the part of the cache that a page of this URL has: that of its site."""
    scheme, site = site_of(url).split("://")
    return f"({scheme},{site})"


def site_of(url):
    """Returns the site of a URL, as the browser names its content process: the scheme, and the last two labels of the
    host, as the hosts of generated sites are made."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{'.'.join(parts.hostname.split('.')[-2:])}"
