"""Loads a generated site in real browsers. `make pages-browser-test` runs it.

`haypile lab pages --browser chromium,firefox` verifies each column by the counts of the origin; this test holds the
numbers of its rows against each other. The browsers are the system's; the tests of one that is not installed are
skipped, and a line says how to get it. With HAYPILE_REQUIRE_RIVALS=1 that is a failure.
"""

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
