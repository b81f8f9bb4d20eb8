"""Parts that the suites share: an environment with pinned packages, and the result as one line of JSON."""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree


def arguments():
    """Returns the directory for the environment and the wheel of haypile, from the command line."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY WHEEL")
    return pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def run(*command, **options):
    """Runs a command with its output on standard error; returns its exit status."""
    return subprocess.run([str(word) for word in command], stdout=sys.stderr, **options).returncode


def environment(directory, packages, wheel, prepare=lambda python: None):
    """Returns the Python of an environment with these packages and the wheel. Keeps it if it has the same ones."""
    python = directory / "bin" / "python"
    stamp = directory / "stamp"
    wanted = hashlib.sha256(repr((sys.version, packages, prepare.__code__.co_consts)).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(directory, ignore_errors=True)
        must(sys.executable, "-m", "venv", directory)
        must(python, "-m", "pip", "install", "--quiet", *packages)
        prepare(python)
        stamp.write_text(wanted)
    must(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", wheel)
    return python


def must(*command, **options):
    if run(*command, **options) != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")


class Results:
    """Counts of tests, read from the XML files that pytest writes."""

    def __init__(self, suite):
        self.suite = suite
        self.passed = 0
        self.failed = 0
        self.not_applicable = []

    def add(self, path, over):
        """Adds the tests of a file; one without any is a failure."""
        cases = list(xml.etree.ElementTree.parse(path).iter("testcase")) if path.exists() else []
        if not cases:
            self.failed += 1
        for case in cases:
            name = f"{case.get('classname')}.{case.get('name')} ({over})"
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed += 1
                print(f"failed: {name}", file=sys.stderr)
            elif (skipped := case.find("skipped")) is not None:
                self.not_applicable.append([name, skipped.get("message")])
            else:
                self.passed += 1

    def end(self):
        """Prints the line, and ends with status 1 if a test failed."""
        print(json.dumps({"suite": self.suite, "over": "file: and memory:", "passed": self.passed,
                          "failed": self.failed, "not_applicable": self.not_applicable}), flush=True)
        sys.exit(1 if self.failed else 0)
