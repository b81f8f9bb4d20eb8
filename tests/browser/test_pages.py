"""Loads a generated site in a real browser. `make pages-browser-test` runs it.

`haypile lab pages --browser chromium` verifies each column by the counts of the origin; this test holds
the numbers of its rows against each other. Chromium is the system's; where it is not installed, the test
is skipped and a line says how to get it. With HAYPILE_REQUIRE_RIVALS=1 that is a failure.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
HAYPILE = TARGET / "debug" / "haypile"
# Of percentile 10.
LOADS_PER_PAGE = 24
LIMIT_SECONDS = 120
COLUMNS = ("chromium:none", "chromium:memory", "chromium:file:size=10MB",
           "chromium:memory+file:size=10MB", "chromium:proxy:size=50MiB")


def lab_pages(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Loads two pages, three times each."""
    command = [HAYPILE, "lab", "pages", "--browser", "chromium", "--pages", "2", "--percentile", "10",
               "--sizes", "10MB", "--links", "unshaped", *arguments]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=LIMIT_SECONDS,
                          env={**os.environ, **environment}, check=False)


class PagesTest(unittest.TestCase):
    """One run, seen from several sides."""

    @classmethod
    def setUpClass(cls) -> None:
        if shutil.which("chromium") is None and shutil.which("chromium-browser") is None:
            text = "there is no chromium: apt-get install chromium"
            if os.environ.get("HAYPILE_REQUIRE_RIVALS") == "1":
                raise AssertionError(text)
            raise unittest.SkipTest(text)
        done = lab_pages("--json")
        assert done.returncode == 0, done.stderr + done.stdout
        cls.columns: dict[str, list[dict]] = {}
        for sample in json.loads(done.stdout)["samples"]:
            assert "error" not in sample or sample["error"] is None, sample
            cls.columns.setdefault(sample["subject"]["name"], []).append(sample)

    def requests(self, column: str, is_repeat: bool) -> int:
        """The requests that came to the origin for the first or the repeat views of a column."""
        return sum(sample["counts"]["origin_requests"] for sample in self.columns[column]
                   if (sample["parameters"]["visit"] > 1) == is_repeat)

    def test_it_has_all_columns_and_loads_all_visits(self) -> None:
        self.assertEqual({name for name in self.columns if name.startswith("chromium:")}, set(COLUMNS))
        for column in COLUMNS:
            self.assertEqual(len(self.columns[column]), 6, column)
            for sample in self.columns[column]:
                self.assertGreater(sample["wall_ns"], 0)
                self.assertRegex(sample["subject"]["version"], r"^\d+\.")

    def test_without_a_cache_it_asks_for_everything_once(self) -> None:
        for sample in self.columns["chromium:none"]:
            self.assertEqual(sample["counts"]["origin_requests"], LOADS_PER_PAGE)
            self.assertEqual((sample["hits"], sample["misses"]), (0, LOADS_PER_PAGE))

    def test_each_cache_asks_for_less_on_repeat_views(self) -> None:
        all_requests = self.requests("chromium:none", is_repeat=True)
        for column in COLUMNS[1:]:
            self.assertLess(self.requests(column, is_repeat=True), all_requests / 2, column)

    def test_hits_are_in_the_level_that_the_column_has(self) -> None:
        def hits(column: str, level: str) -> int:
            return sum(sample["counts"].get(f"hits_{level}", 0) for sample in self.columns[column])
        for column, in_memory, on_disk in (("memory", True, False),
                                           ("file:size=10MB", False, True),
                                           ("memory+file:size=10MB", True, True),
                                           ("proxy:size=50MiB", False, False)):
            self.assertEqual(hits(f"chromium:{column}", "memory") > 0, in_memory, column)
            self.assertEqual(hits(f"chromium:{column}", "file") > 0, on_disk, column)

    def test_the_browser_and_our_loader_ask_for_the_same(self) -> None:
        for ours, other in (("none", "none"), ("memory:size=50MiB", "memory"),
                            ("file:size=10MB", "file:size=10MB")):
            for is_repeat in (False, True):
                self.assertEqual(self.requests(f"http:{ours}", is_repeat),
                                 self.requests(f"chromium:{other}", is_repeat), ours)


class MissingTest(unittest.TestCase):
    """Browsers that cannot be used."""

    def test_a_missing_browser_is_skipped_unless_it_is_required(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            environment = {"PATH": empty, "HAYPILE_REQUIRE_RIVALS": "0"}
            skipped = lab_pages("--json", **environment)
            self.assertEqual(skipped.returncode, 0, skipped.stderr)
            self.assertIn("apt-get install chromium", skipped.stderr)
            names = {sample["subject"]["name"] for sample in json.loads(skipped.stdout)["samples"]}
            self.assertEqual({name for name in names if not name.startswith("http:")}, set())
            required = lab_pages(**{**environment, "HAYPILE_REQUIRE_RIVALS": "1"})
            self.assertNotEqual(required.returncode, 0)
            self.assertIn("apt-get install chromium", required.stderr)

    def test_connections_that_it_cannot_have_are_an_error(self) -> None:
        if shutil.which("chromium") is None:
            self.skipTest("there is no chromium")
        done = lab_pages("--connections", "2")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Chromium has 6", done.stdout)


if __name__ == "__main__":
    unittest.main()
