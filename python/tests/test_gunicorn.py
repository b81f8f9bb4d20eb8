"""One master, several workers, one cache: gunicorn's pre-fork model, over HTTP."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

import urls

WORKERS = 3
# No machine needs that many seconds.
PATIENCE = 60


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket, which needs no free port."""

    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class GunicornTest:
    """The same for every kind of cache."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)
        self.socket = str(self.directory / "socket")
        self.log = self.directory / "log"
        environment = {**os.environ, "HAYPILE_TEST_DIRECTORY": holder.name,
                       "HAYPILE_TEST_URL": self.url_in(holder.name)}
        command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", str(WORKERS),
                   "--bind", f"unix:{self.socket}", "--chdir", str(pathlib.Path(__file__).parent),
                   "--timeout", str(2 * PATIENCE), "--no-control-socket", "application:application"]
        with open(self.log, "wb") as log:
            self.master = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.addCleanup(self.stop)
        self.pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        self.addCleanup(self.pool.shutdown)
        self.wait_until(self.is_listening)

    def is_listening(self):
        """Whether gunicorn takes connections. Its socket has a path before it does."""
        connection = UnixConnection(self.socket)
        try:
            connection.connect()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        finally:
            connection.close()
        return True

    def stop(self):
        """What is left when a test failed."""
        if self.master.poll() is None:
            self.master.kill()
            self.master.wait()

    def wait_until(self, condition):
        """Waits for something that another process does."""
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertIsNone(self.master.poll(), self.log.read_text)
            self.assertLess(time.monotonic(), end, self.log.read_text())
            time.sleep(0.005)

    def ask(self, path, **query):
        """The answer of some worker, and which one."""
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}")
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        self.assertEqual(response.status, 200, self.log.read_text())
        answer = json.loads(body)
        return answer["answer"], answer["pid"]

    def ask_each(self, path, **query):
        """The answers of all workers, by worker: each has a request before the first may answer."""
        answers = [self.pool.submit(self.ask, path, meet=1, **query) for _ in range(WORKERS)]
        self.wait_until(lambda: len(list(self.directory.glob("met.*"))) == WORKERS)
        (self.directory / "release").touch()
        by_worker = {pid: answer for answer, pid in (each.result(PATIENCE) for each in answers)}
        for file in [*self.directory.glob("met.*"), self.directory / "release"]:
            file.unlink()
        self.assertEqual(len(by_worker), WORKERS)
        return by_worker

    def test_every_worker_serves_and_all_end(self):
        pids = set(self.ask_each("/get", key="key"))
        self.assertNotIn(self.master.pid, pids)
        for index in range(30):
            self.ask("/set", key=f"key {index}", value=index)
            self.ask("/get", key=f"key {index}")
        self.master.send_signal(signal.SIGTERM)
        self.assertEqual(self.master.wait(PATIENCE), 0, self.log.read_text())
        self.assertNotIn("Traceback", self.log.read_text())
        for pid in pids:
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)


class MemoryTest(GunicornTest, unittest.TestCase):
    """`memory:`: each worker has its own."""

    def url_in(self, _directory):
        return urls.MEMORY

    def test_a_worker_begins_with_an_empty_cache(self):
        self.assertEqual(set(self.ask_each("/get", key="from the master").values()), {None})


class FileTest(GunicornTest, unittest.TestCase):
    """`file:`: one cache."""

    def url_in(self, directory):
        return urls.shared(directory)

    def test_all_see_what_one_wrote(self):
        self.assertEqual(set(self.ask_each("/get", key="from the master").values()), {"master"})
        self.ask("/set", key="key", value="of one")
        self.assertEqual(set(self.ask_each("/get", key="key").values()), {"of one"})

    def test_none_of_their_counts_is_lost(self):
        answers = [self.pool.submit(self.ask, "/incr", times=1000) for _ in range(2 * WORKERS)]
        for answer in answers:
            answer.result(PATIENCE)
        self.assertEqual(self.ask("/incr", times=0)[0], 2 * WORKERS * 1000)

    def pids_of(self, name):
        """Which workers have left a file of this name."""
        return [int(file.suffix[1:]) for file in self.directory.glob(f"{name}.*")]

    def test_one_of_them_computes(self):
        answers = [self.pool.submit(self.ask, "/compute", key="page") for _ in range(WORKERS)]
        self.wait_until(lambda: len(self.pids_of("asked")) == WORKERS)
        (self.directory / "computed").touch()
        self.assertEqual([answer.result(PATIENCE)[0] for answer in answers], ["computed"] * WORKERS)
        self.assertEqual(len(self.pids_of("computed")), 1)

    def test_a_worker_that_is_killed_takes_nothing_along(self):
        self.ask("/set", key="key", value="kept")
        victim = min(self.ask_each("/get", key="key"))
        os.kill(victim, signal.SIGKILL)
        # The master starts another in its place.
        answers = self.ask_each("/get", key="key")
        self.assertNotIn(victim, answers)
        self.assertEqual(set(answers.values()), {"kept"})
        self.ask("/set", key="key", value="next")
        self.assertEqual(self.ask("/get", key="key")[0], "next")

    def test_a_worker_that_is_killed_while_it_computes_for_others(self):
        answers = [self.pool.submit(self.ask, "/compute", key="page") for _ in range(WORKERS)]
        self.wait_until(lambda: len(self.pids_of("asked")) == WORKERS)
        self.wait_until(lambda: self.pids_of("computed"))
        (victim,) = self.pids_of("computed")
        os.kill(victim, signal.SIGKILL)
        # Another finds it dead and computes, and the last waits for that one.
        self.wait_until(lambda: len(self.pids_of("computed")) == 2)
        (self.directory / "computed").touch()
        concurrent.futures.wait(answers, PATIENCE)
        served = [answer.result() for answer in answers if answer.exception() is None]
        self.assertEqual([value for value, _ in served], ["computed"] * (WORKERS - 1))
        self.assertNotIn(victim, [pid for _, pid in served])


if __name__ == "__main__":
    unittest.main()
