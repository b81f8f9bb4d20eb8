"""A job as `docs/job.md` describes it: keys, values and operations, read from a directory."""

import sys
from array import array
from pathlib import Path

SCHEMA = 3
GET, SET, MANY, DELETE, FRESH, GETSET, FLUSH, WAIT, CLEAR, LOAD, EXPIRE, COMPUTE = range(12)
# Those that are done to the cache as a whole, and count as none.
WHOLE = (FRESH, FLUSH, WAIT, CLEAR)
OPERAND = (1 << 28) - 1
VALUE_STEP = 61
MAX_COMPUTE_MS = 60_000


class JobError(Exception):
    """A job that cannot be done, and why."""


class Job:
    """The settings, and lists of what belongs to the keys by their numbers."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.settings = read_settings(self.directory / "job.txt")
        if self.number("schema") > SCHEMA:
            raise JobError(f"the job has schema {self.number('schema')}, known is {SCHEMA}")
        ends = words(self.directory / "keys.idx")
        keys = (self.directory / "keys.bin").read_bytes()
        self.keys = [keys[start:end] for start, end in zip(ends, ends[1:])]
        self.sizes = words(self.directory / "sizes.bin")
        if not len(self.keys) == len(self.sizes) == self.number("keys"):
            raise JobError(f"{directory}: {self.number('keys')} keys have {len(self.keys)} places "
                           f"and {len(self.sizes)} sizes")
        self.pool = (self.directory / "pool.bin").read_bytes()
        span = self.number("pool_span")
        self.values = [self._value(key, size, span) for key, size in enumerate(self.sizes)]

    def number(self, name, otherwise=None):
        """A setting that is a number; `otherwise` is what it is where it is left out."""
        if otherwise is not None and name not in self.settings:
            return otherwise
        try:
            return int(self.settings[name])
        except (KeyError, ValueError):
            raise JobError(f"job.txt has no number '{name}'") from None

    def compute_ms(self):
        """How long it takes to compute a value, in milliseconds."""
        compute_ms = self.number("compute_ms", 0)
        if not 0 <= compute_ms <= MAX_COMPUTE_MS:
            raise JobError(f"compute_ms is {compute_ms}; it is from 0 to {MAX_COMPUTE_MS}")
        return compute_ms

    def operations(self, name):
        """The operations of a file as runs of one kind: (operation, operands).

        The operands of MANY are lists of keys, one for each call.
        """
        code = words(self.directory / name)
        runs = []
        at = 0
        while at < len(code):
            operation, operand = code[at] >> 28, code[at] & OPERAND
            at += 1
            keys = () if operation in WHOLE else (operand,)
            if operation == MANY:
                keys = operand = list(code[at:at + operand])
                at += code[at - 1] & OPERAND
            elif operation > COMPUTE:
                raise JobError(f"{name}: unknown operation {operation}")
            if at > len(code) or max(keys, default=0) >= len(self.keys):
                raise JobError(f"{name}: a key that is none of the {len(self.keys)}")
            if not runs or runs[-1][0] != operation or operation in WHOLE:
                runs.append((operation, []))
            runs[-1][1].append(operand)
        return runs

    def _value(self, key, size, span):
        start = key * VALUE_STEP % span
        return (key.to_bytes(8, "little") + self.pool[start + 8:start + size])[:size]


def read_settings(path):
    """`job.txt`: lines of a name and a value."""
    lines = path.read_text(encoding="ascii").splitlines()
    return dict(line.split(" ", 1) for line in lines if line)


def words(path):
    """Little-endian numbers of 32 bits."""
    numbers = array("I")
    if numbers.itemsize != 4:
        raise JobError("this Python has no arrays of 32-bit numbers")
    numbers.frombytes(path.read_bytes())
    if sys.byteorder != "little":
        numbers.byteswap()
    return numbers
