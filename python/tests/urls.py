"""The caches that are tested."""

import shutil
import socket
import subprocess
import tempfile
import time
import unittest

import haypile

MEMORY = "memory:size=8MiB"


def shared(directory, size="16MiB", **options):
    """The URL of a cache that processes share, in a directory; skips the test where there is none."""
    options = "".join(f",{name}={value}" for name, value in options.items())
    url = f"file:{directory}/shared.haypile,size={size}{options}"
    try:
        haypile.open(url).close()
    except haypile.OpenError as error:
        if "needs Linux" in str(error):
            raise unittest.SkipTest("file: caches are not for this platform") from None
        raise
    return url


def file(test, **options):
    """The URL of such a cache in a directory of its own, for as long as the test runs."""
    holder = tempfile.TemporaryDirectory()
    test.addCleanup(holder.cleanup)
    return shared(holder.name, **options)


def memcached(test, *arguments):
    """The URL of a memcached of its own, for as long as the test runs; skips it where there is none."""
    program = shutil.which("memcached")
    if program is None:
        raise unittest.SkipTest("memcached is not installed: apt-get install memcached")
    port = _free_port()
    server = subprocess.Popen([program, "-l", "127.0.0.1", "-p", str(port), "-u", "nobody", *arguments])
    _await(test, server, port)
    return f"memcached://127.0.0.1:{port}"


def redis(test):
    """The URL of a Redis of its own, for as long as the test runs; skips it where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        raise unittest.SkipTest("redis-server is not installed: apt-get install redis-server")
    holder = tempfile.TemporaryDirectory()
    test.addCleanup(holder.cleanup)
    port = _free_port()
    arguments = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", holder.name]
    server = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
    _await(test, server, port)
    return f"redis://127.0.0.1:{port}"


class Busy(haypile.Cache):
    """A cache of which another process holds a lock whenever something is added to it, or many values are set."""

    def _refuse(self, *_arguments, **_named):
        raise haypile.Busy("another process makes room")

    add = set_many = cas = _refuse


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


# Servers by the port of their URL.
_servers = {}


def end(url):
    """Ends the server of this URL before its test does."""
    server = _servers[int(url.rpartition(":")[2])]
    server.kill()
    server.wait()


def _await(test, server, port):
    """Returns when the server accepts connections; ends it with the test."""
    _servers[port] = server
    test.addCleanup(server.wait)
    test.addCleanup(server.kill)
    end = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if server.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.01)
