"""Helpers that the programs of measurements share: arguments, messages, raw rows, medians.

    python3 -B scripts/bench_common.py  test them

A program in this folder imports them without installation: Python searches the folder of the program first.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import sys
import tempfile
import unittest

# Debian's programs of servers may be in folders that a user's PATH lacks.
SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])
PROGRAM = pathlib.Path(sys.argv[0]).name


# ---- Arguments -----------------------------------------------------------------------------------
def words(*known):
    """A type of arguments: a list of some of these words."""
    known = [str(word) for word in known]

    def parse(text):
        listed = text.split(",")
        for word in listed:
            if word not in known:
                raise argparse.ArgumentTypeError(f"unknown '{word}' (known: {', '.join(known)})")
        return listed

    return parse


def positive(text):
    """A type of arguments: a whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


# ---- Messages ------------------------------------------------------------------------------------
def fail(reason):
    print(f"{PROGRAM}: {reason}", file=sys.stderr)
    sys.exit(2)


def say(text):
    print(f"{PROGRAM}: {text}", file=sys.stderr, flush=True)


# ---- Servers -------------------------------------------------------------------------------------
def free_port():
    """A port of this machine on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def traffic_server_root(folder):
    """Makes the folders of a Traffic Server of its own; returns that of its settings, and its environment."""
    settings = folder / "etc"
    for name in ("etc", "run", "log.d", "cache"):
        (folder / name).mkdir()
    (settings / "plugin.config").write_text("")
    shutil.copy("/etc/trafficserver/ip_allow.yaml", settings)
    folders = {
        "prefix": folder,
        "exec_prefix": "/usr",
        "bindir": "/usr/bin",
        "sbindir": "/usr/sbin",
        "libdir": "/usr/lib/trafficserver",
        "libexecdir": "/usr/lib/trafficserver/modules",
        "sysconfdir": settings,
        "datadir": folder / "run",
        "localstatedir": folder / "run",
        "runtimedir": folder / "run",
        "logdir": folder / "log.d",
        "cachedir": folder / "cache",
    }
    (folder / "runroot.yaml").write_text("".join(f"{name}: {path}\n" for name, path in folders.items()))
    return settings, {"TS_RUNROOT": str(folder)}


# ---- Rows and tables -----------------------------------------------------------------------------
def read_rows(path):
    """The rows of a file; an interrupted run may leave half a line at its end."""
    rows = []
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"'{path}' cannot be read: {error}")
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
            rows[-1]["type"]
        except (ValueError, TypeError, KeyError):
            if number < len(lines):
                fail(f"'{path}', line {number}: not a row")
            del rows[number - 1 :]
    return rows


def middle(values, form):
    return form.format(statistics.median(values))


def spread(values, form):
    """Median, minimum and maximum; nothing where there is no value."""
    if len(values) < 2:
        return middle(values, form) if values else ""
    return f"{middle(values, form)} ({form.format(min(values))}..{form.format(max(values))})"


class Tests(unittest.TestCase):
    def test_a_list_has_known_words(self):
        self.assertEqual(words("a", 1)("1,a"), ["1", "a"])
        with self.assertRaises(argparse.ArgumentTypeError):
            words("a")("a,b")

    def test_a_number_is_whole_and_above_0(self):
        self.assertEqual(positive("12"), 12)
        for text in ["0", "-1", "1.5", ""]:
            with self.assertRaises(argparse.ArgumentTypeError):
                positive(text)

    def test_half_a_line_is_left_out_at_the_end_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "rows")
            for end in ['{"type": "b', '{"type"', "[]", '{"no": "type"}']:
                file.write_text('{"type": "a"}\n' + end)
                self.assertEqual(read_rows(file), [{"type": "a"}])

    def test_a_spread_is_median_minimum_and_maximum(self):
        self.assertEqual(spread([3, 1, 2], "{:.1f}"), "2.0 (1.0..3.0)")
        self.assertEqual(spread([3], "{:.1f}"), "3.0")
        self.assertEqual(spread([], "{:.1f}"), "")


if __name__ == "__main__":
    unittest.main()
