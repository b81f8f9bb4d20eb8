"""Parts that the suites share: an environment with pinned packages, a peer's tests, and the result as JSON."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree

# The versions of all packages.
PEERS = pathlib.Path(__file__).resolve().parent.parent / "peers.txt"


def arguments():
    """Returns the directory for the environment and the wheel of haypile, from the command line."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY WHEEL")
    return pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def run(*command, **options):
    """Runs a command with its output on standard error; returns its exit status."""
    return subprocess.run([str(word) for word in command], stdout=sys.stderr, **options).returncode


def must(*command, **options):
    """Runs a command that has to succeed."""
    if run(*command, **options) != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")


def version(package):
    """Returns the version of a package in PEERS."""
    return re.search(rf"^{re.escape(package)}==(.+)$", PEERS.read_text(), re.MULTILINE)[1]


def environment(directory, packages, wheel, source=None):
    """Returns the Python of an environment with these packages and the wheel, and the folder with the source
    release of the package `source`. Keeps both if they are of the same versions."""
    python = directory / "venv" / "bin" / "python"
    stamp = directory / "stamp"
    wanted = hashlib.sha256(repr((sys.version, packages, source, PEERS.read_text())).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(directory, ignore_errors=True)
        must(sys.executable, "-m", "venv", directory / "venv")
        must(python, "-m", "pip", "install", "--quiet", "--constraint", PEERS, *packages)
        if source:
            _unpack(python, directory, source)
        stamp.write_text(wanted)
    must(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", wheel)
    return python, directory / "source"


def _unpack(python, directory, package):
    """Downloads the source release of a package, and unpacks its tests: the package itself is the installed one."""
    download = directory / "download"
    must(python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package,
         "--dest", download, f"{package}=={version(package)}")
    (release,) = download.glob("*.tar.gz")
    with tarfile.open(release) as archive:
        for member in archive.getmembers():
            member.name = member.name.partition("/")[2]
            if member.name.startswith("tests/"):
                archive.extract(member, directory / "source", filter="data")


class Results:
    """Counts of tests of a suite."""

    def __init__(self, suite, over="file: and memory:"):
        self.suite = suite
        self.over = over
        self.passed = 0
        self.failed = 0
        self.not_applicable = []

    def pytest(self, over, python, *words, cwd, **variables):
        """Runs pytest without the configuration, the cache and the compiled files of the folder, and adds its tests."""
        with tempfile.TemporaryDirectory() as scratch:
            report = pathlib.Path(scratch, "report.xml")
            run(
                python, "-P", "-B", "-m", "pytest", "-c", os.devnull, "--rootdir", cwd, "-q", "-p", "no:cacheprovider",
                "-W", "ignore::pytest.PytestUnknownMarkWarning", f"--junitxml={report}", *words,
                env={**os.environ, **variables}, cwd=cwd,
            )
            self._add(report, over)

    def _add(self, path, over):
        """Adds the tests of an XML file that pytest wrote; one without any is a failure."""
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
        """Prints the line, and ends with status 1 if a test failed or none passed."""
        print(json.dumps({"suite": self.suite, "over": self.over, "passed": self.passed,
                          "failed": self.failed, "not_applicable": self.not_applicable}), flush=True)
        sys.exit(1 if self.failed or not self.passed else 0)
