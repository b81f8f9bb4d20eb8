"""The caches that are tested."""

import unittest

import haypile

MEMORY = "memory:size=8MiB"


def shared(directory):
    """The URL of a cache that processes share, in a directory; skips the test where there is none."""
    url = f"file:{directory}/shared.haypile,size=16MiB"
    try:
        haypile.open(url).close()
    except haypile.OpenError as error:
        if "needs Linux" in str(error):
            raise unittest.SkipTest("file: caches are not for this platform") from None
        raise
    return url
