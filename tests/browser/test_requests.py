"""Measures Firefox's HTTP cache by requests, and by lists of them, through the laboratory. `make pages-browser-test` runs it.

Without a Firefox the tests are skipped, and a line says how to get it; with HAYPILE_REQUIRE_RIVALS=1 that is a failure.
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
LIMIT_SECONDS = 240
# Bodies are random bytes, which a page could not use.
LIST = """\
http://www.site.test/ 20KB no-cache etag
  http://static.site.test/a.css 12KB max-age=86400
    http://fonts.site.test:8080/b.woff2 300KB max-age=86400 wait=20ms
  http://api.site.test/data.json 4KB no-store
http://fonts.site.test:8080/c 0
"""


def measured(*arguments: str) -> list[dict]:
    """Does an experiment in one block; its rows, none of which is an error."""
    with tempfile.TemporaryDirectory() as folder:
        command = [HAYPILE, "lab", *arguments, "--blocks", "1", "-d", folder, "--json"]
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=LIMIT_SECONDS, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
        assert not os.listdir(folder), "something is left"
    samples = json.loads(done.stdout)["samples"]
    assert all(sample["error"] is None for sample in samples), samples
    return samples


class Requests(unittest.TestCase):
    """Single requests, and lookups without one."""

    @classmethod
    def setUpClass(cls) -> None:
        if not (os.environ.get("HAYPILE_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")):
            text = "there is no Firefox; run: apt-get install firefox-esr"
            if os.environ.get("HAYPILE_REQUIRE_RIVALS") == "1":
                raise AssertionError(text)
            raise unittest.SkipTest(text)

    def test_a_loop_with_and_without_a_preference(self) -> None:
        samples = measured("loop", "--case", "hit,miss-query", "--sizes", "50", "-n", "20", "--subject", "necko:disk",
                           "--necko-pref", "browser.cache.disk.preload_chunk_count=0")
        self.assertEqual({sample["subject"]["program"] for sample in samples},
                         {"necko", "browser.cache.disk.preload_chunk_count=0"})
        for sample in samples:
            hits = 20 if sample["case"] == "hit over HTTP" else 0
            self.assertEqual((sample["hits"], sample["misses"]), (hits, 20 - hits))
            self.assertRegex(sample["subject"]["version"], "Firefox")

    def test_a_search_in_memory_and_after_a_kill(self) -> None:
        # The search with an index takes a minute: the browser builds it after 50 seconds.
        samples = measured("search", "--http", "--killed", "--subject", "necko:memory,size=100MB,file", "--entries", "40",
                           "--fill", "50", "-n", "40")
        self.assertEqual(sorted((sample["subject"]["name"], sample["parameters"].get("killed", False))
                                for sample in samples),
                         [("http:file", False), ("http:file", True), ("necko:memory,size=100MB", False)])
        for sample in samples:
            self.assertEqual((sample["hits"], sample["misses"]), (0, 40))
            self.assertEqual(sample["counts"]["verified_after"], 20)

    def test_a_preference_needs_a_browser_that_knows_it(self) -> None:
        command = [HAYPILE, "lab", "loop", "--subject", "file", "--necko-pref", "a.b=1"]
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=LIMIT_SECONDS, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--necko-pref is for the caches of Firefox", done.stderr)


    def test_a_list_is_loaded_as_by_our_loader(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "page.txt")
            path.write_text(LIST, encoding="ascii")
            samples = measured("resources", str(path), "--browser", "firefox", "--size", "10MB")
        requests: dict[str, list[int]] = {}
        for sample in samples:
            requests.setdefault(sample["subject"]["name"], []).append(sample["counts"]["origin_requests"])
            self.assertGreaterEqual(sample["wall_ns"], 20_000_000, "a wait is a part of each load")
            self.assertEqual(sample["counts"]["body_bytes"], 336_000)
        columns = {"none": "none", "memory:size=50MiB": "memory:size=50MiB", "file:size=10MB": "file:size=10MB",
                   "memory:size=50MiB+file:size=10MB": "memory+file:size=10MB"}
        self.assertEqual(set(requests), {"necko:proxy:size=50MiB", *(f"http:{name}" for name in columns),
                                         *(f"necko:{name}" for name in columns.values())})
        for ours, browsers in columns.items():
            self.assertEqual(requests[f"necko:{browsers}"], requests[f"http:{ours}"], ours)
        self.assertEqual(requests["necko:none"], [5, 5])
        self.assertEqual(requests["necko:file:size=10MB"], [5, 3])


if __name__ == "__main__":
    unittest.main()
