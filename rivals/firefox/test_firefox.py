"""Page loads in Firefox, and browsers that fail. `make rivals-test` runs it, in less than a minute.

Where there is no Firefox the tests are skipped, and a line says how to get it; with HAYPILE_REQUIRE_RIVALS=1 that is a
failure.
"""

import gzip
import json
import os
import signal
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "necko"), str(HERE.parent / "python")]

import browser  # noqa: E402  pylint: disable=wrong-import-position
import guard  # noqa: E402  pylint: disable=wrong-import-position
from cache_files import index_state  # noqa: E402  pylint: disable=wrong-import-position
from job import JobError  # noqa: E402  pylint: disable=wrong-import-position
from orders import CacheSpec, Resource, Site, partition_of  # noqa: E402  pylint: disable=wrong-import-position
from origin import Origin  # noqa: E402  pylint: disable=wrong-import-position
from run import is_right  # noqa: E402  pylint: disable=wrong-import-position

LIMIT_SECONDS = 30
HOST = "http://www.site.test"
KEPT, NEVER, ASKED = "max-age=86400", "no-store", "no-cache"
TYPES = {"html": "text/html", "css": "text/css", "script": "text/javascript", "image": "image/svg+xml",
         "other": "application/json"}
IMAGE = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
HEAD = '<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,">'


def document(*elements):
    """A document with these elements."""
    return (HEAD + "".join(elements)).encode()


# The first page loads all kinds; the second one may not be stored; the third one has redirects and content codings.
RESOURCES = {
    "/1": ("html", ASKED, document('<link rel="stylesheet" href="/a.css">', '<script src="/a.js" defer></script>',
                                   '<img src="/1.svg">')),
    "/a.css": ("css", KEPT, b"p{background-image:url(/2.svg)}"),
    "/a.js": ("script", KEPT, b'fetch("/a.json").then(r=>r.text());' + b"/*" + b"x" * 70_000 + b"*/"),
    "/1.svg": ("image", KEPT, IMAGE),
    "/a.json": ("other", KEPT, b"{}"),
    "/2": ("html", NEVER, document('<img src="/3.svg">')),
    "/3.svg": ("image", KEPT, IMAGE + b" " * 100),
    "/3": ("html", KEPT, b""),
    "/4": ("html", KEPT, gzip.compress(document('<img src="/4.svg">', '<script src="/4.js"></script>'), mtime=0)),
    "/4.svg": ("image", KEPT, b"a body that nobody reads"),
    "/5.svg": ("image", KEPT, gzip.compress(IMAGE + b" " * 50_000, mtime=0)),
    "/4.js": ("script", KEPT, gzip.compress(b"/*" + b"x" * 50_000 + b"*/", mtime=0)),
}
REDIRECTS = {"/3": "/4", "/4.svg": "/5.svg"}
ENCODED = ("/4", "/5.svg", "/4.js")
PAGES = [["/1", "/a.css", "/a.js", "/1.svg", "/a.json"], ["/2", "/3.svg"], ["/3", "/4", "/4.svg", "/5.svg", "/4.js"]]
ALL, STORED = len(PAGES[0]), len(PAGES[0]) - 1


def arguments(entry):
    """The arguments of a process, which may have ended."""
    try:
        return (entry / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


class LoaderCase(unittest.TestCase):
    """A site, an origin that serves it, and a folder to work in."""

    PROGRAM = HERE / "run.py"

    def browsers(self):
        """The processes of browsers that work in the folder; others may run elsewhere."""
        return guard.members(-1, f":{self.place}/firefox\0".encode())

    def left(self):
        """The same, and their guards."""
        folder = f"{self.place}/firefox".encode()
        guards = [int(entry.name) for entry in Path("/proc").iterdir()
                  if entry.name.isdecimal() and any(argument.startswith(folder) for argument in arguments(entry))]
        return self.browsers() + guards

    @classmethod
    def setUpClass(cls):
        listed = subprocess.run([sys.executable, "-B", cls.PROGRAM, "list-subjects"], capture_output=True, text=True,
                                check=False)
        if listed.returncode == 0:
            return
        why = f"firefox: {listed.stdout.strip() or listed.stderr.strip()}"
        if os.environ.get("HAYPILE_REQUIRE_RIVALS", "0") not in ("", "0"):
            raise RuntimeError(why)
        print(f"Skipped: {why}", flush=True)
        raise unittest.SkipTest(why)

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        folder = Path(holder.name).resolve()
        self.files, self.place = folder / "files", folder / "place"
        self.files.mkdir()
        self.place.mkdir()
        self.origin = self.serve()
        self.write_site()

    def serve(self, tls=None):
        """Starts an origin of the site."""
        pages = {path: (body, TYPES[kind], control) for path, (kind, control, body) in RESOURCES.items()}
        answers = {path: (302, {"Location": target}) for path, target in REDIRECTS.items()}
        answers |= {path: (200, {"Content-Encoding": "gzip"}) for path in ENCODED}
        origin = Origin({}, pages=pages, answers=answers, tls=tls)
        self.addCleanup(origin.close)
        return origin

    def write_site(self, scheme="http"):
        """Writes what a loader has to know of the site."""
        resources = [{"url": f"{scheme}{HOST[4:]}{path}", "kind": kind, "status": 302 if path in REDIRECTS else 200,
                      "headers": [["cache-control", control]],
                      "body": {"encoded" if path in ENCODED else "typed": {"bytes": len(body)}}}
                     for path, (kind, control, body) in RESOURCES.items()]
        places = list(RESOURCES)
        pages = [{"name": page[0], "loads": [{"resource": places.index(path)} for path in page]} for page in PAGES]
        crc32 = [zlib.crc32(body) for _, _, body in RESOURCES.values()]
        (self.files / "site").write_text(json.dumps({"resources": resources, "pages": pages}), encoding="ascii")
        (self.files / "crc32").write_text(json.dumps(crc32), encoding="ascii")

    def start(self, cache, is_kept=False, command=None, **others):
        """Starts a loader, and gives it its orders."""
        command = command or [sys.executable, "-B", self.PROGRAM, "run-pages"]
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, cwd=self.place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            process_group=0, env={**os.environ, "PYTHONPATH": str(HERE)})
        self.addCleanup(self.kill, process)
        orders = {"site": str(self.files / "site"), "crc32": str(self.files / "crc32"), "compares_bodies": True,
                  "cache": cache, "is_kept": is_kept, "plain": self.origin.address, "tls": self.origin.address,
                  "protocol": "h1", "connections": 6, **others}
        self.tell(process, orders)
        return process

    @staticmethod
    def tell(process, order):
        """Says a line."""
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()

    def ready(self, *arguments_, **others):
        """Starts a loader that has to become ready."""
        process = self.start(*arguments_, **others)
        said = process.stdout.readline()
        self.assertEqual(said, '"ready"\n', said or process.stderr.read())
        return process

    def ask(self, process, order):
        """The answer to an order, and how often the origin was asked in the meantime."""
        before = self.origin.requests
        self.tell(process, order)
        said = process.stdout.readline()
        self.assertTrue(said, "no answer" if said or process.poll() is None else process.stderr.read())
        return json.loads(said), self.origin.requests - before

    def load(self, process, page=0):
        """The report on a page that has to be right, and how often the origin was asked."""
        report, asked = self.ask(process, {"load": page})
        self.assertEqual((report["first_failure"], report["failed"], report["wrong"], report["again"]), (None, 0, 0, 0))
        self.assertEqual(report["requests"], len(PAGES[page]))
        self.assertEqual(report["hits"] + asked, len(PAGES[page]), report)
        self.assertEqual(report["body_bytes"], sum(len(RESOURCES[path][2]) for path in PAGES[page]))
        self.assertTrue(0 < report["wall_ns"] < LIMIT_SECONDS * 10**9 and report["cpu_ns"] > 0, report)
        return report["by_level"], asked

    def end(self, process):
        """Has the loader end, and what it said of errors."""
        process.stdin.close()
        status = process.wait(LIMIT_SECONDS)
        said = process.stderr.read()
        self.assertEqual(self.left(), [])
        return status, said

    @staticmethod
    def kill(process):
        """Kills the loader with its group, as the laboratory does."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()

    def refused(self, *arguments_, **others):
        """What a loader says that does not become ready; nothing of it is left."""
        process = self.start(*arguments_, **others)
        self.assertEqual(process.stdout.readline(), "")
        self.assertEqual(process.wait(LIMIT_SECONDS), 1)
        self.assertEqual(self.left(), [])
        return process.stderr.read()


class Loads(LoaderCase):
    """What comes from which cache, and what from the origin."""

    def test_caches_in_memory_and_on_disk_answer(self):
        for cache, level in (("memory:size=50MiB", "memory"), ("file:size=6MB", "file")):
            process = self.ready(cache)
            self.assertEqual(self.load(process), ({}, ALL), cache)
            self.assertEqual(self.load(process), ({level: STORED}, ALL - STORED), cache)
            self.assertEqual(self.end(process), (0, ""))

    def test_both_is_disk_and_the_process_of_the_page_keeps_images_and_style_sheets(self):
        process = self.ready("memory+file:size=6MB")
        self.assertEqual(self.load(process), ({}, ALL))
        self.assertEqual(self.load(process), ({"memory": 2, "file": 2}, 1))
        # All of a page that may not be stored stays off the disk.
        self.assertEqual(self.load(process, 1), ({}, 2))
        self.assertEqual(self.end(process), (0, ""))
        process = self.ready("memory+file:size=6MB", is_kept=True)
        self.assertEqual(self.load(process), ({"file": STORED}, 1))
        # What this process has not loaded, it cannot have kept.
        whole = self.origin.pages["/2"]
        self.origin.pages["/2"] = (document(), *whole[1:])
        report, _ = self.ask(process, {"load": 1})
        self.assertEqual((report["failed"], report["first_failure"]), (1, f"{HOST}/3.svg: was not requested"))
        self.origin.pages["/2"] = whole
        self.assertEqual(self.load(process, 1), ({}, 2))
        self.kill(process)

    def test_a_killed_cache_is_found_by_the_next_browser(self):
        process = self.ready("file:size=6MB")
        self.load(process)
        self.assertEqual(self.ask(process, "remains")[0], {"entries": 0, "index": "rebuild"})
        self.assertGreater(self.ask(process, "flush")[0]["wall_ns"], 0)
        # The loader alone: its guard ends the browser, and leaves the profile.
        process.kill()
        deadline = time.monotonic() + LIMIT_SECONDS
        while self.left() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.left(), [])
        process = self.ready("file:size=6MB", is_kept=True)
        remains, _ = self.ask(process, "remains")
        self.assertEqual(remains["index"], "rebuild")
        self.assertGreaterEqual(remains["entries"], STORED)
        self.assertEqual(self.load(process), ({"file": STORED}, 1))
        self.assertEqual(self.end(process), (0, ""))

    def test_without_a_cache_all_is_asked_for_and_a_wrong_body_of_the_right_length_is_counted(self):
        process = self.ready("none")
        self.assertEqual([self.load(process), self.load(process)], [({}, ALL), ({}, ALL)])
        body, kind, control = self.origin.pages["/1.svg"]
        self.origin.pages["/1.svg"] = (body.replace(b"svg>", b"svG>"), kind, control)
        report, _ = self.ask(process, {"load": 0})
        self.assertEqual((report["wrong"], report["failed"]), (1, 0))
        # By the length alone, which is all that is compared while times count.
        resource = Resource(f"{HOST}/1.svg", "image", 200, len(body), zlib.crc32(body), False)
        response = {"status": 200, "bytes": len(body), "crc32": None, "isAlternative": False}
        self.assertTrue(is_right(resource, response, False))
        self.assertFalse(is_right(resource, response, True))
        self.assertFalse(is_right(resource, response | {"bytes": len(body) - 1}, False))
        self.assertFalse(is_right(resource, response | {"status": 404}, False))
        self.kill(process)

    def test_redirects_are_followed_and_coded_bodies_are_compared_as_they_are_transferred(self):
        process = self.ready("file:size=6MB")
        self.assertEqual(self.load(process, 2), ({}, 5))
        self.assertEqual(self.load(process, 2), ({"file": 5}, 0))
        # Of the same length and the same content, in other bytes.
        body, *rest = self.origin.pages["/4.js"]
        self.origin.pages["/4.js"] = (body[:9] + b"\0" + body[10:], *rest)
        self.assertEqual(self.end(process), (0, ""))
        process = self.ready("none")
        report, _ = self.ask(process, {"load": 2})
        self.assertEqual((report["wrong"], report["failed"], report["first_failure"]), (1, 0, None))
        self.origin.pages["/4.js"] = (body, *rest)
        # A redirect that leads elsewhere.
        self.origin.answers["/4.svg"] = (302, {"Location": "/1.svg"})
        script = ("import sys, run; run.PATIENCE_SECONDS = 1; sys.argv[1:] = ['run-pages']; run.main()")
        self.kill(process)
        process = self.ready("none", command=[sys.executable, "-B", "-c", script])
        report, _ = self.ask(process, {"load": 2})
        self.assertEqual(report["first_failure"], f"{HOST}/5.svg: was not requested")
        self.kill(process)

    def test_what_the_page_does_not_ask_for_is_a_failure(self):
        body, kind, control = self.origin.pages["/a.js"]
        self.origin.pages["/a.js"] = (body.replace(b"fetch", b"toStr"), kind, control)
        script = ("import sys, run; run.PATIENCE_SECONDS = 1; sys.argv[1:] = ['run-pages']; run.main()")
        process = self.ready("none", command=[sys.executable, "-B", "-c", script])
        report, _ = self.ask(process, {"load": 0})
        self.assertEqual(report["first_failure"], f"{HOST}/a.json: was not requested")
        self.assertEqual(report["failed"], 1)
        self.origin.pages["/1"] = (None, kind, control)
        report, _ = self.ask(process, {"load": 0})
        self.assertEqual((report["failed"], report["wrong"]), (ALL - 1, 1), "the document is not there")
        self.kill(process)


class Refusals(LoaderCase):
    """Orders that cannot be followed: no browser is started."""

    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, HAYPILE_FIREFOX="/bin/true")
        patch.start()
        self.addCleanup(patch.stop)

    def test_orders_for_other_caches_sites_and_protocols(self):
        for said, cache in (("unknown cache 'ram'", "ram"), ("memory has a size", "memory"),
                            ("none has no size", "none:size=1MB"), ("a size is 1 KB", "file:size=100")):
            self.assertIn(said, self.refused(cache))

    def test_a_missing_browser_is_named_with_how_to_get_it(self):
        environment = {**os.environ, "PATH": "/nowhere"}
        del environment["HAYPILE_FIREFOX"]
        listed = subprocess.run([sys.executable, "-B", self.PROGRAM, "list-subjects"], capture_output=True, text=True,
                                check=False, env=environment)
        self.assertEqual((listed.returncode, listed.stdout),
                         (2, "error there is no Firefox; run: apt-get install firefox-esr\n"))

    def test_sizes_are_counted_as_the_browser_counts_them(self):
        preferences = CacheSpec.parse("memory+file:size=6MB").preferences()
        self.assertEqual(preferences["browser.cache.disk.capacity"], 5859)
        self.assertTrue(preferences["browser.cache.memory.enable"] and preferences["browser.cache.disk.enable"])
        self.assertEqual(CacheSpec.parse("memory:size=50MiB").preferences()["browser.cache.memory.capacity"], 51_200)
        self.assertFalse(any(CacheSpec.parse("fresh").preferences()[f"browser.cache.{place}.enable"]
                             for place in ("disk", "memory")))
        with self.assertRaises(JobError):
            CacheSpec.parse("file:size=9TB")

    def test_a_site_is_the_part_of_the_cache_that_its_pages_have(self):
        self.assertEqual(partition_of("http://site.test"), "(http,site.test)")
        site = Site({"site": self.files / "site", "crc32": self.files / "crc32"})
        self.assertEqual(site.documents(), [f"{HOST}{path}" for path in ("/1", "/2", "/4")])
        self.assertEqual(site.is_needed(1), [True, True])

    def test_a_permanent_redirect_by_http_and_its_targets_stay_off_the_disk(self):
        def resource(url, status, location=None):
            headers = [] if location is None else [["location", location]]
            return Resource.of({"url": url, "kind": "html", "status": status, "headers": headers,
                                "body": {"typed": {"bytes": 0}}}, 0)
        site = Site({"site": self.files / "site", "crc32": self.files / "crc32"})
        site.pages = []
        site.resources = [resource("http://a.test/", 301, "https://a.test/x#y"),
                          resource("https://a.test/x", 302, "/z"), resource("https://a.test/z", 200),
                          # By https, for a time, and in a circle.
                          resource("https://b.test/", 301, "/to"), resource("https://b.test/to", 200),
                          resource("http://c.test/", 302, "/to"), resource("http://c.test/to", 200),
                          resource("http://d.test/", 308, "http://d.test/")]
        self.assertEqual(site.not_on_disk(), {"http://a.test/", "https://a.test/x", "https://a.test/z",
                                              "http://d.test/"})
        self.assertEqual(site.ports(5, 6), {80: 5, 443: 6})
        site.resources = [resource("http://a.test:81/", 200), resource("https://a.test:8443/", 200)]
        self.assertEqual(site.ports(5, 6), {80: 5, 443: 6, 81: 5, 8443: 6})
        site.resources += [resource("http://b.test:8443/", 200)]
        with self.assertRaises(JobError):
            site.ports(5, 6)

    def test_the_index_is_clean_only_with_its_journal_and_without_the_mark(self):
        index = self.place / "index"
        self.assertEqual(index_state(self.place), "rebuild")
        index.write_bytes(b"short")
        self.assertEqual(index_state(self.place), "rebuild")
        for is_dirty, has_journal, state in ((1, False, "update"), (0, False, "update"), (0, True, "read"),
                                             (1, True, "update")):
            index.write_bytes(struct.pack(">IIII", 10, 0, is_dirty, 0) + b"records")
            (self.place / "index.log").unlink(missing_ok=True)
            if has_journal:
                (self.place / "index.log").touch()
            self.assertEqual(index_state(self.place), state, (is_dirty, has_journal))


class Authority:
    """A certificate authority of a test, with the certificates of the site and of the host of the check."""

    NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30")

    def __init__(self, folder):
        self._folder = folder
        folder.mkdir()
        self._openssl("authority", "-addext", "basicConstraints=critical,CA:TRUE",
                      "-addext", "keyUsage=critical,keyCertSign")
        for name, host in (("site", "www.site.test"), ("check", "check.www.site.test")):
            self._openssl(name, "-CA", folder / "authority.pem", "-CAkey", folder / "authority.key",
                          "-addext", f"subjectAltName=DNS:{host}", "-addext", "basicConstraints=critical,CA:FALSE",
                          "-addext", "extendedKeyUsage=serverAuth")
        check = {"host": "check.www.site.test", "certificate": self._der("check.pem"), "key": self._der("check.key")}
        self.orders = {"authority": self._der("authority.pem"), "check": check}

    def _openssl(self, name, *arguments_):
        path = self._folder / name
        subprocess.run(["openssl", "req", "-x509", *self.NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{path}.key",
                        "-out", f"{path}.pem", *arguments_], check=True, capture_output=True, timeout=LIMIT_SECONDS)

    def _der(self, name):
        """The DER of a file in base64."""
        lines = (self._folder / name).read_text(encoding="ascii").splitlines()
        return "".join(line for line in lines if not line.startswith("-----"))

    def context(self):
        """What the origin of the site needs for TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "site.pem", self._folder / "site.key")
        return context


class Https(LoaderCase):
    """The same site by https."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.files / "authority")
        self.plain, self.origin = self.origin, self.serve(self.authority.context())
        self.write_site("https")

    def start(self, *arguments_, **others):
        return super().start(*arguments_, **({"https": self.authority.orders, "plain": self.plain.address} | others))

    def test_caches_answer_and_the_authority_survives_a_kill(self):
        process = self.ready("file:size=6MB")
        self.assertEqual(self.load(process), ({}, ALL))
        self.assertEqual(self.load(process), ({"file": STORED}, ALL - STORED))
        self.kill(process)
        process = self.ready("file:size=6MB", is_kept=True)
        self.assertEqual(self.load(process), ({"file": STORED}, 1))
        self.assertEqual(self.end(process), (0, ""))
        process = self.ready("none")
        self.assertEqual([self.load(process), self.load(process)], [({}, ALL), ({}, ALL)])
        self.assertEqual(self.end(process), (0, ""))
        self.assertEqual(self.plain.requests, 0)

    def test_a_certificate_of_another_authority_is_an_error(self):
        other = Authority(self.files / "other").orders
        said = self.refused("none", https=other | {"check": self.authority.orders["check"]})
        self.assertIn("TLS failed", said)
        self.assertIn("the browser did not load a page of the loader's own", said)
        # Where the check passes and the site does not: its pages fail.
        process = self.ready("none", https=other)
        report, asked = self.ask(process, {"load": 0})
        # All of its requests, and the load event.
        self.assertEqual((report["failed"], asked), (ALL + 1, 0))
        self.assertIn("TLS failed", report["first_failure"])
        self.kill(process)

    def test_orders_without_an_authority_and_http2_without_https_are_refused(self):
        self.assertIn("no certificate of its authority", self.refused("none", https=None))
        self.write_site()
        self.assertIn("HTTP/2 over TLS alone", self.refused("none", protocol="h2"))
        self.assertIn("unknown protocol 'h3' (known: h1, h2)", self.refused("none", protocol="h3"))


class Failures(LoaderCase):
    """Browsers that fail: a clear error in bounded time, and nothing left running."""

    def setUp(self):
        super().setUp()
        self.real = browser.program()

    def fake(self, body, seconds=None):
        """Has the loader start a script in the place of the browser."""
        path = self.files / "browser"
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="ascii")
        path.chmod(0o755)
        limit = {} if seconds is None else {browser.SECONDS_NAME: str(seconds)}
        patch = mock.patch.dict(os.environ, HAYPILE_FIREFOX=str(path), **limit)
        patch.start()
        self.addCleanup(patch.stop)

    def test_one_that_ends_or_never_opens_marionette(self):
        self.fake("echo no display >&2\nexit 3")
        self.assertIn("ended with status 3 before it could open Marionette: no display", self.refused("none"))
        self.fake("setsid sleep 600 &\nsleep 600", seconds=1)
        self.assertIn("did not open Marionette within 1 s", self.refused("none"))

    def test_processes_of_the_last_browser_are_ended_before_the_next_one_starts(self):
        mark = f"1:{self.place}/firefox"
        last = subprocess.Popen(  # pylint: disable=consider-using-with
            ["sleep", "600"], env={"HAYPILE_NECKO": mark}, start_new_session=True)
        self.addCleanup(last.wait)
        self.addCleanup(last.kill)
        self.fake("exit 3")
        self.refused("none", is_kept=True)
        self.assertEqual(last.wait(1), -signal.SIGKILL)

    def test_a_cache_that_is_off_is_an_error(self):
        # All settings are what the loader wants, and none of its caches works.
        names = [f"browser.cache.{place}.enable" for place in ("disk", "memory")]
        script = ("import sys, run\n"
                  f"run.CacheSpec.preferences = lambda *_: dict.fromkeys({names}, False)\n"
                  "sys.argv[1:] = ['run-pages']; run.main()")
        said = self.refused("file:size=6MB", command=[sys.executable, "-B", "-c", script])
        self.assertIn("the browser's cache is off although it was asked for", said)

    def test_a_cache_of_another_size_is_an_error(self):
        script = ("import sys, run\n"
                  "own = run.CacheSpec.preferences\n"
                  "run.CacheSpec.preferences = lambda spec: own(spec) | {'browser.cache.disk.capacity': 9999}\n"
                  "sys.argv[1:] = ['run-pages']; run.main()")
        said = self.refused("file:size=6MB", command=[sys.executable, "-B", "-c", script])
        self.assertIn("the browser reports a cache of 10238976 bytes, not of 5999616", said)

    def test_a_killed_browser_is_an_error(self):
        process = self.ready("none")
        os.kill(min(self.browsers()), signal.SIGKILL)
        self.tell(process, {"load": 0})
        self.assertEqual(process.stdout.readline(), "")
        status, said = self.end(process)
        self.assertEqual(status, 1)
        self.assertIn("the browser ended with SIGKILL while it was used", said)

    def test_a_browser_that_hangs_is_an_error(self):
        with mock.patch.dict(os.environ, {browser.SECONDS_NAME: "6"}):
            process = self.ready("none")
        for pid in self.browsers():
            os.kill(pid, signal.SIGSTOP)
        self.tell(process, {"load": 0})
        self.assertEqual(process.stdout.readline(), "")
        status, said = self.end(process)
        self.assertEqual(status, 1)
        self.assertIn("the browser did not finish 'load' within 6 s", said)


if __name__ == "__main__":
    unittest.main()
