"""Subinterpreters: importing in one is refused, and the main one goes on."""

import subprocess
import sys
import unittest

# No machine needs that many seconds.
PATIENCE = 120

# Imports the package in a subinterpreter of each kind, before or after the main interpreter does.
SCRIPT = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def created():
    yield interpreters.create()
    # With the GIL of the main interpreter, as under mod_wsgi; the default of Python 3.11.
    if sys.version_info >= (3, 13):
        yield interpreters.create("legacy")
    elif sys.version_info >= (3, 12):
        yield interpreters.create(isolated=False)

IMPORTING = '''
try:
    import haypile
except ImportError as error:
    print("refused:", error, flush=True)
else:
    print("imported", flush=True)
'''

def check():
    import haypile
    with haypile.open("memory:size=1MiB") as cache:
        cache["key"] = b"value"
        assert cache.get_or_compute("other", 60, lambda: cache["key"] + b"!") == b"value!"
        try:
            haypile.open("memory:sise=1MiB")
        except haypile.OpenError:
            return
    raise AssertionError("it was opened")

if sys.argv[1] == "after":
    check()
for interpreter in created():
    interpreters.run_string(interpreter, IMPORTING)
    interpreters.destroy(interpreter)
    check()
print("done")
"""


def has_subinterpreters():
    """Whether this Python can make some."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            __import__(name)
        except ImportError:
            continue
        return True
    return False


@unittest.skipUnless(has_subinterpreters(), "this Python has no module of subinterpreters")
class InterpreterTest(unittest.TestCase):
    def test_a_subinterpreter_is_refused(self):
        for when in ("before", "after"):
            with self.subTest(when):
                child = subprocess.run([sys.executable, "-c", SCRIPT, when], stdout=subprocess.PIPE, text=True,
                                       check=True, timeout=PATIENCE)
                lines = child.stdout.splitlines()
                self.assertEqual(lines.pop(), "done")
                self.assertEqual(len(lines), 1 if sys.version_info < (3, 12) else 2)
                for line in lines:
                    self.assertRegex(line, "^refused: .*haypile.*subinterpreter")
                # Where Python itself does not refuse.
                self.assertIn("only in the main interpreter", lines[-1])


if __name__ == "__main__":
    unittest.main()
