"""Waits for another caller's computation: a signal ends them, and `compute_wait=` bounds them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import haypile
import urls

# No machine needs that many seconds, and they are fewer than the default of `compute_wait=`.
PATIENCE = 20

# Computes a value until its standard input has a line or ends.
HOLDER = """
import sys
import haypile

def compute():
    print("computing", flush=True)
    sys.stdin.readline()
    return b"theirs"

haypile.open(sys.argv[1]).get_or_compute("key", 60, compute)
"""


class Late(Exception):
    """What a handler raises."""


@contextlib.contextmanager
def in_a_process(url):
    """Another process computes the value of `key`; the result ends that."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "computing\n"
            yield holder.stdin.close
        finally:
            holder.stdin.close()
            if holder.wait(PATIENCE) != 0:
                raise ChildProcessError(f"the holder ended with {holder.returncode}")


@contextlib.contextmanager
def in_a_thread(cache):
    """Another thread of this process computes the value of `key`; the result ends that."""
    begun, end = threading.Event(), threading.Event()

    def compute():
        begun.set()
        end.wait(2 * PATIENCE)
        return b"theirs"

    thread = threading.Thread(target=cache.get_or_compute, args=("key", 60, compute))
    thread.start()
    try:
        assert begun.wait(PATIENCE)
        yield end.set
    finally:
        end.set()
        thread.join(PATIENCE)


class WaitingTest:
    """The same for every kind of cache and of holder."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.url = self.url_in(directory.name)
        self.cache = haypile.open(self.url)
        self.addCleanup(self.cache.close)
        self.calls = []

    def holder(self, cache):
        """Another caller, which computes."""
        return in_a_thread(cache)

    def compute(self):
        """The function of the waiting caller."""
        self.calls.append(threading.current_thread())
        return b"its own"

    def handle(self, number, handler):
        """Sets a signal's handler for the time of a test."""
        self.addCleanup(signal.signal, number, signal.signal(number, handler))

    @contextlib.contextmanager
    def signalled(self, number):
        """Sends this process a signal when its main thread has missed: the thread is within the
        engine then, without the GIL. The wait has to end before `compute_wait=` ends it."""
        misses, begun = self.cache.stats().misses, time.monotonic()

        def send():
            end = time.monotonic() + PATIENCE
            while self.cache.stats().misses == misses and time.monotonic() < end:
                time.sleep(0.001)
            os.kill(os.getpid(), number)

        sender = threading.Thread(target=send)
        sender.start()
        yield
        sender.join()
        self.assertLess(time.monotonic() - begun, PATIENCE)

    def test_ctrl_c_ends_a_wait(self):
        self.handle(signal.SIGINT, signal.default_int_handler)
        with self.holder(self.cache):
            with self.signalled(signal.SIGINT), self.assertRaises(KeyboardInterrupt) as caught:
                self.cache.get_or_compute("key", 60, self.compute)
            self.assertIs(type(caught.exception), KeyboardInterrupt)
            self.assertEqual(self.calls, [])
        # The one that computed was not disturbed.
        self.assertEqual(self.cache.get("key"), b"theirs")

    def test_what_a_handler_raises_is_raised(self):
        error = Late()

        def fail(_number, _frame):
            raise error

        self.handle(signal.SIGALRM, fail)
        with self.holder(self.cache):
            with self.signalled(signal.SIGALRM), self.assertRaises(Late) as caught:
                self.cache.get_or_compute("key", 60, self.compute)
            self.assertIs(caught.exception, error)
            self.assertEqual(self.calls, [])

    def test_a_wait_goes_on_after_a_handler(self):
        with self.holder(self.cache) as end:
            self.handle(signal.SIGUSR1, lambda _number, _frame: end())
            with self.signalled(signal.SIGUSR1):
                value = self.cache.get_or_compute("key", 60, self.compute)
        self.assertEqual(value, b"theirs")
        self.assertEqual(self.calls, [])

    def test_a_wait_is_bounded(self):
        with haypile.open(f"{self.url},compute_wait=200ms") as cache, self.holder(cache):
            begun = time.monotonic()
            value = cache.get_or_compute("key", 60, self.compute)
            waited = time.monotonic() - begun
        self.assertEqual(value, b"its own")
        self.assertEqual(self.calls, [threading.current_thread()])
        self.assertGreaterEqual(waited, 0.2)
        self.assertLess(waited, PATIENCE)


class MemoryTest(WaitingTest, unittest.TestCase):
    """`memory:`, where a thread computes."""

    def url_in(self, _directory):
        return urls.MEMORY


class FileTest(WaitingTest, unittest.TestCase):
    """`file:`, where a thread computes."""

    def url_in(self, directory):
        return urls.shared(directory)


class ProcessTest(FileTest):
    """`file:`, where another process computes."""

    def holder(self, _cache):
        return in_a_process(self.url)


class ClosingTest(unittest.TestCase):
    def relay(self, port):
        """The port of a thread that passes bytes on to a server: without the GIL it passes nothing."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)

        def copy(source, target):
            with contextlib.suppress(OSError), source, target:
                while data := source.recv(1 << 16):
                    target.sendall(data)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    client = listening.accept()[0]
                    server = socket.create_connection(("127.0.0.1", port))
                    for pair in ((client, server), (server, client)):
                        threading.Thread(target=copy, args=pair, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return listening.getsockname()[1]

    def test_the_last_reference_lets_other_threads_run_while_the_cache_closes(self):
        server = urls.memcached(self)
        relay = self.relay(int(server.rpartition(":")[2]))
        cache = haypile.open(f"memory:size=8MiB,write=back -> memcached://127.0.0.1:{relay}?timeout=10s")
        for number in range(100):
            cache.set(f"key {number}", b"value")
        # What is not written yet is written now.
        del cache
        with haypile.open(server) as below:
            self.assertEqual(below.get_many([f"key {number}" for number in range(100)]), [b"value"] * 100)


if __name__ == "__main__":
    unittest.main()
