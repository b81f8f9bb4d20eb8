"""Loads a generated site in real browsers. `make pages-browser-test` runs it.

`haypile lab pages --browser chromium,firefox` verifies each column by the counts of the origin; this test holds the
numbers of its rows against each other. The browsers are the system's; the tests of one that is not installed are
skipped, and a line says how to get it. With HAYPILE_REQUIRE_RIVALS=1 that is a failure.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
HAYPILE = TARGET / "debug" / "haypile"
# Of percentile 10.
LOADS_PER_PAGE = 24
LIMIT_SECONDS = 240


def lab_pages(browser: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Loads two pages, three times each."""
    command = [HAYPILE, "lab", "pages", "--browser", browser, "--pages", "2", "--percentile", "10",
               "--sizes", "10MB", "--links", "unshaped", *arguments]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=LIMIT_SECONDS,
                          env={**os.environ, **environment}, check=False)


def entry(url: str, kind: str, **response: object) -> dict:
    """A request of a HAR, a tenth of a second after the one before."""
    number = next(NUMBERS)
    headers = [{"name": "Cache-Control", "value": "no-cache" if kind == "text/html" else "max-age=86400"}]
    answer = {"status": 200, "headers": headers, "content": {"size": 3000, "mimeType": kind}, "_transferSize": 3000}
    return {"pageref": "1", "startedDateTime": f"2026-01-01T00:00:{number // 10:02}.{number % 10}00Z", "time": 20,
            "request": {"method": "GET", "url": url, "headers": []}, "response": answer | response}


NUMBERS = itertools.count()
# A page by https behind a redirect from http at the same host, with an image by http and hosts and a port of its own.
REDIRECT = {"status": 301, "content": {"size": 0, "mimeType": "text/html"}, "_transferSize": 0,
            "headers": [{"name": "Location", "value": "https://www.site.test/"},
                        {"name": "Cache-Control", "value": "max-age=86400"}]}
HAR = {"log": {"version": "1.2", "pages": [{"id": "1", "title": "secure"}], "entries": [
    entry("http://www.site.test/", "text/html", **REDIRECT), entry("https://www.site.test/", "text/html"),
    entry("https://static.site.test/a.css", "text/css"), entry("https://static.site.test/a.js", "text/javascript"),
    entry("https://other.test:8443/1.png", "image/png"), entry("http://other.test/2.png", "image/png")]}}
HAR_LOADS, HAR_HTTPS = 6, 4


class PagesOf:
    """One run with a browser, seen from several sides."""

    browser: str
    programs: tuple[str, ...]
    install: str
    memory: str
    arguments: tuple[str, ...] = ()

    @classmethod
    def setUpClass(cls) -> None:
        if not any(map(shutil.which, cls.programs)):
            text = f"there is no {cls.browser}: {cls.install}"
            if os.environ.get("HAYPILE_REQUIRE_RIVALS") == "1":
                raise AssertionError(text)
            raise unittest.SkipTest(text)
        done = lab_pages(cls.browser, "--json", *cls.arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        cls.columns: dict[str, list[dict]] = {}
        cls.killed: list[dict] = []
        for sample in json.loads(done.stdout)["samples"]:
            assert "error" not in sample or sample["error"] is None, sample
            if sample["case"] == "killed":
                cls.killed.append(sample)
            else:
                cls.columns.setdefault(sample["subject"]["name"], []).append(sample)

    def column(self, name: str) -> list[dict]:
        """The rows of a column of the browser."""
        return self.columns[f"{self.browser}:{name}"]

    def names(self) -> tuple[str, ...]:
        """The columns of the browser."""
        return ("none", self.memory, "file:size=10MB", "memory+file:size=10MB", "proxy:size=50MiB")

    @staticmethod
    def requests(samples: list[dict], is_repeat: bool) -> int:
        """The requests that came to the origin for the first or the repeat views of a column."""
        return sum(sample["counts"]["origin_requests"] for sample in samples
                   if (sample["parameters"]["visit"] > 1) == is_repeat)

    def test_it_has_all_columns_and_loads_all_visits(self) -> None:
        own = {name for name in self.columns if name.startswith(f"{self.browser}:")}
        self.assertEqual(own, {f"{self.browser}:{name}" for name in self.names()})
        for name in self.names():
            self.assertEqual(len(self.column(name)), 6, name)
            for sample in self.column(name):
                self.assertGreater(sample["wall_ns"], 0)
                self.assertRegex(sample["subject"]["version"], r"^\d+\.")

    def test_without_a_cache_it_asks_for_everything_once(self) -> None:
        for sample in self.column("none"):
            self.assertEqual(sample["counts"]["origin_requests"], LOADS_PER_PAGE)
            self.assertEqual((sample["hits"], sample["misses"]), (0, LOADS_PER_PAGE))

    def test_each_cache_asks_for_less_on_repeat_views(self) -> None:
        all_requests = self.requests(self.column("none"), is_repeat=True)
        for name in self.names()[1:]:
            self.assertLess(self.requests(self.column(name), is_repeat=True), all_requests / 2, name)

    def test_hits_are_in_the_level_that_the_column_has(self) -> None:
        def hits(name: str, level: str) -> int:
            return sum(sample["counts"].get(f"hits_{level}", 0) for sample in self.column(name))
        for name, in_memory, on_disk in zip(self.names()[1:], (True, False, True, False),
                                            (False, True, True, False)):
            self.assertEqual(hits(name, "memory") > 0, in_memory, name)
            self.assertEqual(hits(name, "file") > 0, on_disk, name)

    def test_the_browser_and_our_loader_ask_for_the_same(self) -> None:
        for ours, other in (("none", "none"), ("memory:size=50MiB", self.memory),
                            ("file:size=10MB", "file:size=10MB")):
            for is_repeat in (False, True):
                self.assertEqual(self.requests(self.columns[f"http:{ours}"], is_repeat),
                                 self.requests(self.column(other), is_repeat), ours)


class ChromiumTest(PagesOf, unittest.TestCase):
    """Chromium."""

    browser, memory = "chromium", "memory"
    programs, install = ("chromium", "chromium-browser"), "apt-get install chromium"

    def test_connections_that_it_cannot_have_are_an_error(self) -> None:
        done = lab_pages(self.browser, "--connections", "2")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Chromium has 6", done.stdout)


class FirefoxTest(PagesOf, unittest.TestCase):
    """Firefox, which is also killed."""

    browser, memory = "firefox", "memory:size=50MiB"
    programs, install = ("firefox-esr", "firefox"), "apt-get install firefox-esr"
    arguments = ("--kills", "1")

    def test_what_is_left_of_its_killed_cache_is_counted_next_to_ours(self) -> None:
        for name in ("firefox:file:size=10MB", "http:file:size=10MB"):
            rows = [sample for sample in self.killed if sample["subject"]["name"] == name]
            self.assertEqual(len({row["parameters"]["when"] for row in rows}), 4, name)
            for row in rows:
                counts = row["counts"]
                # A kill may lose what was not written yet, but nothing that was flushed.
                least = counts["entries_storable"] if row["parameters"]["when"] == "after a flush" else 1
                # Two of them may be stored, and have no lifetime: the origin confirms them.
                self.assertGreaterEqual(counts["entries_answering"], least - 2, row)
                self.assertLessEqual(counts["entries_answering"], counts["entries_storable"], row)
        own = [sample for sample in self.killed if sample["subject"]["name"].startswith("firefox:")]
        for row in own:
            states = [row["counts"].get(f"index_{state}", 0) for state in ("read", "update", "rebuild")]
            self.assertEqual(sum(states), 1, row)
            self.assertGreater(row["counts"]["entries_found"], 0)


class HttpsTest(unittest.TestCase):
    """Pages by https in Firefox, and browsers and options that cannot have them."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.har = Path(folder.name, "secure.har")
        self.har.write_text(json.dumps(HAR), encoding="ascii")

    def require_firefox(self) -> None:
        """Skips the test where there is no Firefox."""
        if not any(map(shutil.which, FirefoxTest.programs)):
            text = f"there is no firefox: {FirefoxTest.install}"
            if os.environ.get("HAYPILE_REQUIRE_RIVALS") == "1":
                raise AssertionError(text)
            raise unittest.SkipTest(text)

    def samples(self, *arguments: str) -> tuple[list[dict], str]:
        """The rows of a run that has to succeed, and what the command noted."""
        command = [HAYPILE, "lab", "pages", *arguments, "--browser", "firefox", "--sizes", "10MB", "--links",
                   "unshaped", "--json"]
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=LIMIT_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        samples = json.loads(done.stdout)["samples"]
        self.assertEqual([sample for sample in samples if sample.get("error")], [])
        return samples, done.stderr

    def verify_loads(self, samples: list[dict], loads: int, https: int, version: str) -> None:
        """Checks the rows of Firefox's columns by the counts of the origin."""
        own = [sample for sample in samples if sample["subject"]["name"].startswith("firefox:")
               and sample["case"] != "killed"]
        names = {sample["subject"]["name"] for sample in own}
        self.assertEqual(names, {f"firefox:{name}" for name in ("none", "memory:size=50MiB", "file:size=10MB",
                                                                "memory+file:size=10MB")})
        for sample in own:
            counts, parameters = sample["counts"], sample["parameters"]
            self.assertEqual((parameters["https"], parameters["protocol"]), (True, version))
            self.assertEqual(sample["hits"] + counts["origin_requests"], loads, sample)
            self.assertEqual(counts["origin_http2_requests"], counts["origin_tls_requests"] * (version == "h2"))
            if sample["subject"]["name"] == "firefox:none" or parameters["visit"] == 1:
                self.assertEqual((counts["origin_requests"], counts["origin_tls_requests"]), (loads, https), sample)
            else:
                # All but the document, which the origin has to confirm.
                self.assertEqual((counts["origin_requests"], counts["origin_tls_requests"]), (1, 1), sample)

    def test_a_har_is_loaded_by_its_schemes_and_its_cache_survives_kills(self) -> None:
        self.require_firefox()
        for version, kills in (("h1", "0"), ("h2", "1")):
            samples, noted = self.samples(str(self.har), "--protocol", version, "--kills", kills)
            self.verify_loads(samples, HAR_LOADS, HAR_HTTPS, version)
            self.assertIn("the column proxy is left out", noted)
            self.assertNotIn("left out: their URL is https", noted)
            rows = [sample for sample in samples if sample["case"] == "killed"
                    and sample["subject"]["name"].startswith("firefox:")]
            for row in rows:
                self.assertEqual((row["parameters"]["https"], row["parameters"]["protocol"]), (True, version))
            killed = {row["parameters"]["when"]: row["counts"] for row in rows}
            self.assertEqual(len(killed), 4 * int(kills))
            for when, counts in killed.items():
                self.assertEqual(counts["entries_storable"], HAR_LOADS, counts)
                # The origin has to confirm the document, and the permanent redirect by http is not kept on disk.
                kept = HAR_LOADS - 2
                # A kill may lose what was not written.
                least = kept if when in ("closed, not killed", "after a flush") else 1
                self.assertTrue(least <= counts["entries_answering"] <= kept, (when, counts))

    def test_generated_pages_have_https_when_it_is_asked_for(self) -> None:
        self.require_firefox()
        samples, _ = self.samples("--https", "--pages", "1", "--percentile", "10", "--protocol", "h2", "--rounds", "1")
        for sample in samples:
            self.assertEqual(sample["parameters"]["site"], "generated:1x10 by https")
            if sample["subject"]["name"].startswith("firefox:"):
                counts = sample["counts"]
                self.assertEqual((counts["origin_tls_requests"], counts["origin_http2_requests"]),
                                 (LOADS_PER_PAGE, LOADS_PER_PAGE))

    def test_what_browsers_cannot_load_is_an_error_that_says_what_to_do(self) -> None:
        if shutil.which("chromium") or shutil.which("chromium-browser"):
            done = lab_pages("chromium", "--https")
            self.assertEqual(done.returncode, 2)
            self.assertIn("chromium does not load pages by https here yet; leave --https out", done.stderr)
        self.require_firefox()
        done = lab_pages("firefox", "--protocol", "h2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("browsers speak HTTP/2 over TLS alone, and the pages have no https; add --https", done.stderr)


class MissingTest(unittest.TestCase):
    """Browsers that cannot be used."""

    def test_a_missing_browser_is_skipped_unless_it_is_required(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            # Python is there, and no browser.
            os.symlink(os.path.realpath(sys.executable), Path(empty, "python3"))
            environment = {"PATH": empty, "HAYPILE_REQUIRE_RIVALS": "0"}
            skipped = lab_pages("chromium,firefox", "--json", **environment)
            self.assertEqual(skipped.returncode, 0, skipped.stderr)
            for package in ("chromium", "firefox-esr"):
                self.assertIn(f"apt-get install {package}", skipped.stderr)
            names = {sample["subject"]["name"] for sample in json.loads(skipped.stdout)["samples"]}
            self.assertEqual({name for name in names if not name.startswith("http:")}, set())
            for browser, package in (("chromium", "chromium"), ("firefox", "firefox-esr")):
                required = lab_pages(browser, **{**environment, "HAYPILE_REQUIRE_RIVALS": "1"})
                self.assertNotEqual(required.returncode, 0)
                self.assertIn(f"apt-get install {package}", required.stderr)


if __name__ == "__main__":
    unittest.main()
