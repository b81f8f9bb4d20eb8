"""A process of a torture, and the values that it has to write: docs/torture.md once more, word by
word, so that what the runners have in common is not tested by itself."""

import subprocess
import tempfile
import threading

from tiny import LIMIT_SECONDS

WORD = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
HEAD_BYTES = 24
NUMBERS = {"capacity": 4 << 20, "keys": 400, "writers": 2, "number": 1, "common": 600,
           "longest": 3000, "first": 1, "audit": 0, "delete": 10, "fetch": 30}


def mix(bits):
    """Makes bits out of bits."""
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & WORD
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & WORD
    return bits ^ bits >> 31


def value_of(key, sequence):
    """The value of a key with this sequence number."""
    identity = mix(key) + mix(sequence ^ WORD) & WORD
    bits = mix(identity)
    if bits % 256 == 0:
        more = (bits >> 16) % (NUMBERS["longest"] + 1)
    else:
        more = (bits >> 16) % (NUMBERS["common"] + 1) >> (bits >> 8) % 8
    head = (key, sequence, HEAD_BYTES + more)
    filler = (mix(identity + STEP * at & WORD) for at in range(1, more // 8 + 2))
    words = b"".join(word.to_bytes(8, "little") for word in (*head, *filler))
    return words[:HEAD_BYTES + more]


class Tortured:
    """A process of a runner."""

    def __init__(self, program, role, place, subject, seed=1, **numbers):
        numbers = {**NUMBERS, **numbers}
        pairs = [f"{name}={number}" for name, number in numbers.items()]
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [program, "run-torture", role, place, str(seed), subject, *pairs],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        # One that hangs must not hang the tests.
        self._limit = threading.Timer(LIMIT_SECONDS, self._process.kill)
        self._limit.start()

    def line(self):
        """Its next line."""
        return self._process.stdout.readline().rstrip("\n")

    def lines_until(self, last):
        """Its lines until one that begins so."""
        lines = []
        while not lines or not lines[-1].startswith(last):
            lines.append(self.line())
            assert lines[-1], (lines, self._said_on_error())
        return lines

    def tell(self, line):
        """Says a line to it."""
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def end(self):
        """What it says when standard input ends; it has to end well."""
        lines, status = self._rest()
        assert status == 0 and lines and lines[-1] == "end", (lines[-3:], self._said_on_error())
        return lines[:-1]

    def kill(self):
        """Ends it as a crash does; gives what it said last."""
        self._process.kill()
        lines, _ = self._rest()
        return lines

    def refusal(self):
        """What it says in the place of opening, and how it ends then."""
        return self._rest()

    def _rest(self):
        """The lines up to its end, and its status. A line that a kill cut is none."""
        self._process.stdin.close()
        output = self._process.stdout.read()
        return output[:output.rfind("\n") + 1].splitlines(), self._process.wait()

    def _said_on_error(self):
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def close(self):
        """Leaves nothing behind."""
        self._limit.cancel()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._errors):
            file.close()


def settled(lines):
    """What a writer acknowledged of each key: the sequence number, or `None` for deleted; and the
    key of the operation that was in hand."""
    known, hand = {}, None
    for line in lines:
        word, _, rest = line.partition(" ")
        if word in ("set", "delete", "get"):
            assert hand is None, line
            key, _, sequence = rest.partition(" ")
            hand = word, int(key), int(sequence or 0)
        elif word == "done":
            known[hand[1]] = hand[2] or None
            hand = None
        elif word in ("hit", "miss"):
            sequence = int(rest.split()[0]) if word == "hit" else None
            assert hand[0] == "get" and known.get(hand[1]) == sequence, (line, hand)
            hand = None
        else:
            raise AssertionError(line)
    return known, hand and hand[0] != "get" and hand[1]
