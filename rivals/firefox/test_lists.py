"""Lists of resources by requests of Firefox. `make rivals-test` runs it, in less than half a minute.

Where there is no Firefox the tests are skipped, and a line says how to get it; with HAYPILE_REQUIRE_RIVALS=1 that is a
failure.
"""

import gzip
import json
import socket
import sys
import unittest
import zlib

import lists
from test_firefox import ASKED, HERE, KEPT, NEVER, LoaderCase
from orders import Resource, Site

HOST = "http://www.site.test"
OTHER = "http://other.test:8080"
ENCODED = gzip.compress(b"a body that no page would load" * 100, mtime=0)
# By the URL: status, header lines, `Cache-Control`, body, the line that causes it, and the wait in milliseconds.
LINES = {
    f"{HOST}/": (200, {}, ASKED, b"<not a document", None, 0),
    f"{HOST}/encoded": (200, {"Content-Encoding": "gzip"}, KEPT, ENCODED, 0, 0),
    f"{HOST}/redirect": (302, {"Location": "/never-asked-for"}, NEVER, b"moved", 0, 0),
    f"{HOST}/moved": (301, {"Location": "/never-asked-for-either"}, KEPT, b"", 0, 0),
    f"{OTHER}/deep": (200, {}, KEPT, b"x" * 300_000, 1, 120),
    f"{OTHER}/deeper": (404, {}, KEPT, b"nothing", 4, 80),
    f"{HOST}/blank": (200, {}, KEPT, b"", None, 0),
}
ALL = len(LINES)
# The origin is asked again for what has to be confirmed or may not be stored, and the browser reuses no error. Of the
# others, a permanent redirect is in memory also where the cache is on disk.
STORED, ON_DISK = ALL - 3, ALL - 4


class Pages(dict):
    """The bodies of an origin, which notes what it is asked for."""

    def __init__(self, bodies):
        super().__init__(bodies)
        self.asked = []

    def get(self, path, default=None):
        """Returns a body."""
        self.asked.append(path)
        return super().get(path, default)


class ListCase(LoaderCase):
    """A list, an origin that serves it, and a folder to work in."""

    PROGRAM = HERE / "lists.py"

    def setUp(self):
        super().setUp()
        path = {url: "/" + url.split("/", 3)[3] for url in LINES}
        self.origin.pages = Pages({path[url]: (body, "application/octet-stream", control)
                                   for url, (_, _, control, body, _, _) in LINES.items()})
        self.origin.answers = {path[url]: (status, headers) for url, (status, headers, *_) in LINES.items()}

    def write_site(self, scheme="http"):
        """Writes what a loader has to know of the list."""
        resources = [{"url": f"{scheme}{url[4:]}", "kind": "other", "status": status, "body": {"generated": {"bytes": len(body)}},
                      "headers": [["cache-control", control]]} for url, (status, _, control, body, _, _) in LINES.items()]
        loads = [{"resource": at, "after": after, "wait": {"secs": 0, "nanos": wait * 10**6}}
                 for at, (*_, after, wait) in enumerate(LINES.values())]
        crc32 = [zlib.crc32(body) for _, _, _, body, _, _ in LINES.values()]
        (self.files / "site").write_text(json.dumps({"resources": resources, "pages": [{"name": "list", "loads": loads}]}),
                                         encoding="ascii")
        (self.files / "crc32").write_text(json.dumps(crc32), encoding="ascii")

    def load(self, process, page=0):
        """The report on the list, all of which has to be right, and how often the origin was asked."""
        report, asked = self.ask(process, {"load": page})
        self.assertEqual((report["first_failure"], report["failed"], report["wrong"], report["again"]), (None, 0, 0, 0))
        self.assertEqual((report["requests"], report["hits"] + asked), (ALL, ALL))
        self.assertEqual(report["body_bytes"], sum(len(body) for _, _, _, body, _, _ in LINES.values()))
        # Two waits are a part of each load.
        self.assertGreaterEqual(report["wall_ns"], 200 * 10**6)
        self.assertGreater(report["cpu_ns"], 0)
        return report["by_level"], asked


class Loads(ListCase):
    """What comes from which cache, and what from the origin."""

    def test_caches_in_memory_and_on_disk_answer_all_kinds_of_lines(self):
        for cache, levels in (("memory:size=50MiB", {"memory": STORED}), ("file:size=6MB", {"file": ON_DISK, "memory": 1}),
                              ("memory+file:size=6MB", {"file": ON_DISK, "memory": 1})):
            process = self.ready(cache)
            self.assertEqual(self.load(process), ({}, ALL), cache)
            self.assertEqual(self.load(process), (levels, ALL - STORED), cache)
            self.assertEqual(self.end(process), (0, ""))
        process = self.ready("file:size=6MB", is_kept=True)
        # The profile has what the column `both` has left.
        self.assertEqual(self.load(process), ({"file": ON_DISK}, ALL - ON_DISK))
        self.assertEqual(self.end(process), (0, ""))

    def test_without_a_cache_each_line_is_asked_for_after_the_one_that_causes_it(self):
        for cache in ("none", "fresh"):
            process = self.ready(cache)
            self.origin.pages.asked.clear()
            self.assertEqual(self.load(process), ({}, ALL))
            self.assertEqual(self.load(process), ({}, ALL))
            self.assertEqual(self.end(process), (0, ""))
            for asked in (self.origin.pages.asked[:ALL], self.origin.pages.asked[ALL:]):
                self.assertCountEqual(asked, ["/", "/encoded", "/redirect", "/moved", "/deep", "/deeper", "/blank"])
                order = [asked.index(path) for path in ("/", "/encoded", "/deep", "/deeper")]
                self.assertEqual(order, sorted(order))
                self.assertLess(asked.index("/blank"), asked.index("/deep"))

    def test_bodies_that_are_not_those_of_the_list_are_counted(self):
        process = self.ready("file:size=6MB")
        wrong = self.origin.pages["/deep"]
        self.origin.pages["/deep"] = (b"y" + wrong[0][1:], *wrong[1:])
        report, _ = self.ask(process, {"load": 0})
        self.assertEqual((report["wrong"], report["failed"]), (1, 0))
        self.origin.answers["/redirect"] = (301, {})
        report, _ = self.ask(process, {"load": 0})
        self.assertEqual((report["wrong"], report["hits"]), (2, STORED))

    def test_a_line_that_fails_is_named_and_those_that_it_causes_are_loaded_all_the_same(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            # It accepts, and never answers; the loader has less patience than a user's.
            address = "127.0.0.1:%d" % silent.getsockname()[1]
            script = (f"import sys; sys.path.insert(0, {str(HERE)!r}); import lists, run\n"
                      "own = lists.ListLoader._check_cache\n"
                      "def check(loader, site):\n    own(loader, site)\n    run.PATIENCE_SECONDS = 0.5\n"
                      "lists.ListLoader._check_cache = check\n"
                      "sys.argv[1:] = ['run-pages']; run.main(lists.ListLoader, lists.NAME, lists.ABOUT)")
            process = self.ready("none", command=[sys.executable, "-B", "-c", script], plain=address)
            report, asked = self.ask(process, {"load": 0})
        self.assertEqual((report["failed"], report["requests"], asked), (ALL, ALL, 0))
        self.assertRegex(report["first_failure"], f"^{HOST}/: 0x804b")
        self.kill(process)


class Orders(ListCase):
    """Orders that cannot be followed: a clear error before anything starts."""

    def test_lists_and_caches_that_it_cannot_load(self):
        self.assertIn("unknown cache 'disk'", self.refused("disk"))
        self.write_site("https")
        self.assertIn("URLs by https", self.refused("none"))
        self.write_site()
        site = json.loads((self.files / "site").read_text(encoding="ascii"))
        site["resources"][0]["body"] = {"generated": {"bytes": lists.MAX_BODY_BYTES}}
        (self.files / "site").write_text(json.dumps(site), encoding="ascii")
        self.assertIn(f"lists of up to {lists.MAX_BODY_BYTES}", self.refused("none"))

    def test_bodies_of_a_list_may_be_any_bytes(self):
        site = Site({"site": self.files / "site", "crc32": self.files / "crc32"}, Resource.of_list)
        self.assertEqual([resource.size for resource in site.of_page(0)], [len(line[3]) for line in LINES.values()])


if __name__ == "__main__":
    unittest.main()
