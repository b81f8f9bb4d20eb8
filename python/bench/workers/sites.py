"""Sites of `scripts/bench-workers`: the same pages by several frameworks, with the caches that users choose from.

The package of a site describes it in SITE, and has the module `wsgi` for gunicorn. The variable WORKERS_CACHE of the
environment has the settings of its cache, in JSON.
"""

from collections.abc import Callable
from typing import NamedTuple

MIB = 1 << 20


class Limits(NamedTuple):
    """The bound of a cache, in bytes and in entries, and the folder for its files and sockets."""

    folder: str
    mib: int
    # Values of the mean size that fit into `mib`.
    entries: int
    workers: int

    @property
    def entries_of_worker(self):
        """A worker's part of the entries, for a cache that each worker has for itself."""
        return self.entries // self.workers

    @property
    def bytes(self):
        return self.mib * MIB

    @property
    def files(self):
        return f"{self.folder}/cache"

    @property
    def redis_socket(self):
        return f"{self.folder}/redis"


class Cache(NamedTuple):
    """A cache of a site: its settings by limits, and the packages that it needs in addition to the site's."""

    settings: Callable[[Limits], dict]
    packages: tuple[str, ...] = ()
    needs_redis_server: bool = False
    # Measured in the first block alone, because it takes longer than all other caches of a block together.
    slow: bool = False


class Site(NamedTuple):
    """A framework with its caches, in the order of the table; ratios are to the first, which is the default."""

    name: str
    packages: tuple[str, ...]
    caches: dict[str, Cache]

    @property
    def base(self):
        return next(iter(self.caches))

    def measured_in(self, block, names):
        """Those of these caches that a block measures."""
        return [name for name in names if block == 0 or not self.caches[name].slow]

    @property
    def all_packages(self):
        """The packages of the site and those of its caches, each once."""
        of_caches = [package for cache in self.caches.values() for package in cache.packages]
        return list(dict.fromkeys([*self.packages, *of_caches]))

    @property
    def wsgi(self):
        """The module that gunicorn loads."""
        return f"{self.name}_site.wsgi"
