"""Type checkers find the mistakes of programs that use the package, and no others."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# No machine needs that many seconds.
PATIENCE = 300

MISTAKES = pathlib.Path(__file__).parent / "types" / "mistakes.py"


def planted():
    lines = MISTAKES.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# mistake")}


def run(*arguments):
    """Runs a module in a directory without modules: the installed package is checked."""
    with tempfile.TemporaryDirectory() as directory:
        return subprocess.run([sys.executable, "-m", *arguments, str(MISTAKES)], cwd=directory, capture_output=True,
                              text=True, timeout=PATIENCE, env=os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})


def checker(name):
    return unittest.skipUnless(importlib.util.find_spec(name), f"a Python without {name}: pip install {name}")


class TypesTest(unittest.TestCase):
    @checker("mypy")
    def test_mypy_finds_all_mistakes(self):
        done = run("mypy", "--strict", "--cache-dir", os.devnull)
        found = {int(line) for line in re.findall(r"^\S*mistakes\.py:(\d+): error", done.stdout, re.MULTILINE)}
        self.assertEqual(found, planted(), done.stdout + done.stderr)

    @checker("pyright")
    def test_pyright_finds_all_mistakes(self):
        done = run("pyright", "--pythonpath", sys.executable, "--outputjson")
        found = json.loads(done.stdout)["generalDiagnostics"]
        errors = [each for each in found if each["severity"] == "error"]
        self.assertEqual({each["range"]["start"]["line"] + 1 for each in errors}, planted(), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
