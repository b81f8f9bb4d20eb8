"""Looks at a report in a real browser. `make report-test` runs it.

The report is made of the rows of a record, of a simulation, and of rows made by hand. Chromium is
the system's; where it is not installed, the test is skipped and a line says how to get it. With
HAYPILE_REQUIRE_RIVALS=1 that is a failure.
"""

import base64
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import rows
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
HAYPILE = TARGET / "debug" / "haypile"
RECORD = "record/2026-11-22-2core-amd-epyc"
# Starts of programs with timelines, page loads, and icons.
LATER = [f"record/2026-11-24-2core-amd-epyc/{name}.jsonl" for name in ("startup", "pages", "icons")]
LOOK = (Path(__file__).parent / "page.js").read_text()
SHAPES = Path(__file__).parent / "shapes"
DIFFERENCE = (Path(__file__).parent / "difference.js").read_text()
# Moves a chart down to a whole pixel.
WHOLE_PIXELS = """chart => {
    const top = chart.getBoundingClientRect().top + window.scrollY;
    chart.style.position = "relative";
    chart.style.top = `${Math.ceil(top) - top}px`;
}"""
# The part of a chart's pixels that may differ: edges are drawn softly, by each version of a browser in its own way.
TOLERANCE = 0.005
# A chart of each kind.
PICTURES = {
    "bars": "#startup .multiples figure >> nth=0",
    "points": "#startup .multiples figure >> nth=2",
    "lines": "#pages .evidence figure >> nth=1",
    "timelines": "#startup .evidence figure >> nth=0",
}
WIDTHS = (360, 400, 768, 1280)
SCHEMES = ("light", "dark")
# A4 with margins of 15 mm, in pixels of 1/96 inch.
PAPER_WIDTH = 680
LIMIT_SECONDS = 120


def haypile(*arguments: str | Path) -> str:
    """Runs our program in the repository's folder, and returns what it prints."""
    done = subprocess.run([HAYPILE, *arguments], cwd=ROOT, check=True, text=True,
                          stdout=subprocess.PIPE, timeout=LIMIT_SECONDS)
    return done.stdout


def chromium() -> str | None:
    """The system's browser."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class ReportTest(unittest.TestCase):
    """One report, seen on several screens."""

    browser: Browser

    @classmethod
    def setUpClass(cls) -> None:
        program = chromium()
        if program is None:
            text = "there is no chromium: apt-get install chromium"
            if os.environ.get("HAYPILE_REQUIRE_RIVALS") == "1":
                raise AssertionError(text)
            raise unittest.SkipTest(text)
        directory = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        simulation = directory / "simulate.json"
        simulation.write_text(haypile(
            "simulate", "traces/redis-build.csv.zst", "--policy", "lru,s3fifo,sieve,arc,belady",
            "--size", "1MiB,2MiB,4MiB,8MiB", "--curve", "lru", "--json"))
        made = rows.write(directory)
        cls.path = directory / "report.html"
        printed = haypile(
            "lab", "report", RECORD, *LATER, simulation, *made, "--output", cls.path)
        assert printed == f"{cls.path}\n", printed
        playwright = cls.enterClassContext(sync_playwright())
        # Without a sandbox of its own, which is refused to root.
        cls.browser = cls.enterClassContext(
            playwright.chromium.launch(executable_path=program, args=["--no-sandbox"]))

    def open(self, width: int = 1280, scheme: str = "light", **more: object) -> Page:
        """The report on a screen; what it asks for and complains about is kept."""
        page = self.browser.new_page(viewport={"width": width, "height": 900},
                                     color_scheme=scheme, **more)
        self.addCleanup(page.close)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", lambda request: self.complaints.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.goto(self.path.as_uri())
        return page

    def test_it_looks_right_on_every_screen(self) -> None:
        for width in WIDTHS:
            for scheme in SCHEMES:
                with self.subTest(width=width, scheme=scheme):
                    page = self.open(width, scheme)
                    page.locator("details").evaluate_all(
                        "all => all.forEach(details => { details.open = true })")
                    self.assertEqual(page.evaluate(LOOK), [])
                    self.assertEqual(self.requests, [self.path.as_uri()])
                    self.assertEqual(self.complaints, [])

    def test_charts_stand_next_to_answers_where_both_have_room(self) -> None:
        for width, is_beside in ((1280, True), (768, False), (400, False)):
            page = self.open(width)
            answer = page.locator("#startup .answer").bounding_box()
            chart = page.locator("#startup .evidence figure").first.bounding_box()
            with self.subTest(width=width):
                self.assertEqual(chart["x"] >= answer["x"] + answer["width"], is_beside)
                self.assertEqual(chart["y"] < answer["y"] + answer["height"], is_beside)

    def test_charts_look_as_they_did(self) -> None:
        """The shapes of charts, without their letters: fonts differ between machines, and our own code places shapes."""
        page = self.open()
        page.add_style_tag(content="svg text { visibility: hidden } svg { width: auto !important }")
        # The report loads nothing, not even a picture to compare.
        blank = self.browser.new_page()
        self.addCleanup(blank.close)
        for name, place in PICTURES.items():
            with self.subTest(chart=name):
                chart = page.locator(place).locator("svg:visible").first
                # The height of the text above has a fraction, which would round a shape to another pixel.
                chart.evaluate(WHOLE_PIXELS)
                found = chart.screenshot()
                kept = SHAPES / f"{name}.png"
                if os.environ.get("HAYPILE_ACCEPT_PICTURES") == "1":
                    kept.write_bytes(found)
                both = [base64.b64encode(data).decode() for data in (found, kept.read_bytes())]
                part = blank.evaluate(DIFFERENCE, both)
                if part > TOLERANCE:
                    (TARGET / f"{name}.png").write_bytes(found)
                self.assertLessEqual(part, TOLERANCE, f"now {TARGET / name}.png; HAYPILE_ACCEPT_PICTURES=1 keeps it")

    def test_schemes_differ(self) -> None:
        colours = [self.open(scheme=scheme).evaluate(
            "() => [document.body, document.querySelector('svg rect')].map(it => "
            "[getComputedStyle(it).backgroundColor, getComputedStyle(it).fill]).join()")
            for scheme in SCHEMES]
        self.assertNotEqual(colours[0], colours[1])

    def test_it_needs_no_script(self) -> None:
        page = self.open(java_script_enabled=False)
        self.assertEqual(page.get_by_role("heading", level=1).count(), 1)
        self.assertGreater(page.get_by_role("img").count(), 20)

    def test_every_plot_and_table_can_be_found_by_its_name(self) -> None:
        for width in WIDTHS:
            page = self.open(width)
            named = page.get_by_role("img", name=re.compile(r"\w")).count()
            self.assertEqual(named, page.locator("svg:visible").count())
            plots = page.get_by_role("figure").count()
            self.assertEqual(named, plots, "one drawing of each figure is shown")
        captions = page.locator("table > caption").all_text_contents()
        self.assertEqual(len(captions), page.locator("table").count())
        self.assertNotIn("", [caption.strip() for caption in captions])

    def test_links_lead_to_sections(self) -> None:
        page = self.open()
        links = page.get_by_role("navigation").get_by_role("link")
        self.assertEqual(links.count(), page.locator("main > section").count())
        targets = links.evaluate_all("all => all.map(it => document.querySelector(it.hash)?.tagName)")
        self.assertEqual(set(targets), {"SECTION"})

    def test_it_can_be_used_by_keyboard(self) -> None:
        page = self.open(360)
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.className"), "skip")
        reached = page.locator(".scroll").evaluate_all("all => all.map(it => it.tabIndex)")
        self.assertEqual(set(reached), {0})

    def test_paper_has_everything(self) -> None:
        page = self.open(PAPER_WIDTH)
        page.emulate_media(media="print", color_scheme="light")
        hidden = page.evaluate(
            "() => [...document.querySelectorAll('details table, details code')]"
            ".filter(it => it.getBoundingClientRect().height === 0).length")
        self.assertEqual(hidden, 0)
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), PAPER_WIDTH)
        self.assertTrue(page.pdf(format="A4").startswith(b"%PDF"))

    def test_a_question_is_that_of_its_file(self) -> None:
        page = self.open()
        section = page.get_by_role("region", name="asked by how-long-do-i-wait.toml")
        self.assertEqual(section.locator(".question").text_content(),
                         "How long does a single operation take where somebody waits for it?")
        chart = section.get_by_role("img", name="Percentiles of get")
        self.assertEqual(chart.count(), 1)
        words = chart.locator("desc").text_content().replace("\u00a0", " ")
        of_memory = "memory: p50 90.0 ns, p90 180 ns, p99 450 ns, p99.9 27.0 µs, max 810 µs."
        self.assertIn(of_memory, words)

    def test_what_is_hostile_stays_text(self) -> None:
        page = self.open()
        self.assertEqual(page.locator("script, img, iframe, object").count(), 0)
        self.assertGreater(page.get_by_text("<script>alert(2)</script>").count(), 0)


if __name__ == "__main__":
    unittest.main()
