"""The processes of a torture (docs/torture.md): they write, read or do as they are told, and say each thing that they do.

    PROGRAM run-torture ROLE PATH SEED SUBJECT NAME=NUMBER...
"""

import os
import select
import sys
import time

from job import JobError
from subject import Room
from value import Draw, Values, WrongValue, key_bytes

ROLES = ("writer", "reader", "computer", "client")

# The groups of the keys, and that of all.
GROUPS = 6


def run(subject, arguments):
    """Does what the arguments order, until standard input ends."""
    orders = Orders(arguments)
    options = subject.options_of(orders.subject)
    if subject.target is None:
        raise JobError(f"{subject.name} takes no part in tortures")
    os.chdir(orders.path)
    begun = time.perf_counter_ns()
    capacity_bytes = orders.number("capacity") * int(options.get("room", 1))
    # Its readers come and go; the writers alone are more than one.
    room = Room(capacity_bytes, False, options, [], orders.number("writers") + 1)
    target = subject.target(room)
    say(f"opened {time.perf_counter_ns() - begun}\n")
    if orders.role == "writer":
        Writer(orders, target).run()
    elif orders.role == "reader":
        read(orders, target)
    elif orders.role == "client":
        Client(orders, target).run()
    else:
        compute(orders, target)
    target.close()


class Orders:
    """What a process is told to do."""

    def __init__(self, arguments):
        if len(arguments) < 4 or arguments[0] not in ROLES:
            raise JobError("run-torture takes ROLE PATH SEED SUBJECT NAME=NUMBER...")
        self.role, self.path, seed, self.subject, *numbers = arguments
        pairs = [number.partition("=") for number in numbers]
        if not all(number.isdecimal() for number in (seed, *(pair[2] for pair in pairs))):
            raise JobError(f"what {' '.join(arguments)} orders is not in numbers")
        self.seed = int(seed)
        self._numbers = {name: int(number) for name, _, number in pairs}
        self.values = Values(self.number("common"), self.number("longest"))

    def number(self, name):
        """One of the numbers; 0 where it is missing."""
        return self._numbers.get(name, 0)


class Writer:
    """Writes the keys that are its own, and says each operation before it and after it."""

    def __init__(self, orders, target):
        self._target, self._values, self._orders = target, orders.values, orders
        self._writers = max(1, orders.number("writers"))
        self._number = orders.number("number")
        # What is to be said together with what comes next.
        self._said = ""

    def run(self):
        """Looks for what is there, and then writes until nobody wants that any more."""
        self._audit()
        orders = self._orders
        own_keys = orders.number("keys") // self._writers
        deletes = orders.number("delete")
        fetches = deletes + orders.number("fetch")
        draw, sequence = Draw(orders.seed), orders.number("first")
        while not is_over():
            key = self._own(draw.skewed(own_keys))
            what = draw.below(100)
            if what < deletes:
                self._do(f"delete {key}", lambda name: self._target.delete(name), key)
            elif what >= fetches or self._is_missing(key):
                value = self._values.make(key, sequence)
                self._do(f"set {key} {sequence}",
                         lambda name, value=value: self._target.set(name, value), key)
                sequence += 1
        say(f"{self._said}end\n")

    def _own(self, rank):
        return rank * self._writers + self._number

    def _audit(self):
        said = []
        for rank in range(self._orders.number("audit")):
            key = self._own(rank)
            try:
                value = self._target.get(key_bytes(key))
                if value is not None:
                    said.append(f"found {key} {self._values.read(key, value)}\n")
            except WrongValue as wrong:
                said.append(f"wrong {key} {wrong}\n")
            except Exception as error:  # pylint: disable=broad-exception-caught
                said.append(self._refused(error, 0))
        say("".join(said) + "ready\n")

    def _do(self, what, operation, key):
        """An operation, and how long it took; gives what it gave."""
        name = key_bytes(key)
        # What was done last and what comes now: one call of the system.
        say(f"{self._said}{what}\n")
        begun = time.perf_counter_ns()
        try:
            found = operation(name)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self._said = self._refused(error, time.perf_counter_ns() - begun)
            return None
        self._said = f"done {time.perf_counter_ns() - begun}\n"
        return found

    def _is_missing(self, key):
        """Reads a key; whether it is not there."""
        value = self._do(f"get {key}", self._target.get, key)
        if not self._said.startswith("done "):
            return False
        taken = self._said.removeprefix("done ")
        if value is None:
            self._said = f"miss {taken}"
            return True
        try:
            self._said = f"hit {self._values.read(key, value)} {taken}"
        except WrongValue as wrong:
            self._said = f"wrong {key} {wrong}\n"
        return False

    def _refused(self, error, taken):
        if isinstance(error, self._target.busy):
            return f"busy {taken}\n"
        return f"failed {taken} {one_line(error)}\n"


class Unsupported(Exception):
    """The cache has no such operation."""


class Client:
    """Does the orders of standard input."""

    def __init__(self, orders, target):
        self._target, self._values = target, orders.values
        self._operations = {"get": self._get, "compute": self._compute, "fill": self._fill, "delete": self._delete,
                            "invalidate": self._invalidate, "clear": self._clear}

    def run(self):
        """Answers each order by a line."""
        say("ready\n")
        for order in iter(sys.stdin.readline, ""):
            word, _, number = order.rstrip("\n").partition(" ")
            if word not in self._operations or not (number or "0").isdecimal():
                raise JobError(f"{order!r} is no order")
            begun = time.perf_counter_ns()
            try:
                answer, *found = self._operations[word](int(number or 0))
                taken = time.perf_counter_ns() - begun
                said = " ".join([answer, *(str(self._values.read(int(number), value)) for value in found), str(taken)])
            except WrongValue as wrong:
                said = f"wrong {number} {wrong}"
            except Unsupported:
                said = "unsupported"
            except self._target.busy:
                said = f"busy {time.perf_counter_ns() - begun}"
            except Exception as error:  # pylint: disable=broad-exception-caught
                said = f"failed {time.perf_counter_ns() - begun} {one_line(error)}"
            say(f"{said}\n")
        say("end\n")

    def _get(self, key):
        value = self._target.get(key_bytes(key))
        return ("miss",) if value is None else ("hit", value)

    def _compute(self, key):
        return "value", self._operation("compute")(key_bytes(key), lambda: self._asked(key))

    def _fill(self, key):
        name = key_bytes(key)
        value = self._target.get(name)
        if value is not None:
            return "hit", value
        value = self._asked(key)
        if hasattr(self._target, "set_in_group"):
            self._target.set_in_group(name, value, group(key % GROUPS))
        else:
            self._target.set(name, value)
        return ("stored",)

    def _delete(self, key):
        self._target.delete(key_bytes(key))
        return ("done",)

    def _invalidate(self, number):
        if number == GROUPS:
            # Each entry of these caches is in one group at most.
            raise Unsupported
        self._operation("invalidate")(group(number))
        return ("done",)

    def _clear(self, _number):
        self._operation("clear")()
        return ("done",)

    def _operation(self, name):
        operation = getattr(self._target, name, None)
        if operation is None:
            raise Unsupported
        return operation

    def _asked(self, key):
        """The value of a key by the database, which is whoever gives the orders."""
        say("computing\n")
        word, _, number = sys.stdin.readline().rstrip("\n").partition(" ")
        if word != "go":
            # Nobody is there any more: a value must not come of it.
            os._exit(0)
        return self._values.make(key, int(number))


def compute(orders, target):
    """Is a computer: asks the cache for a value, computes it if nobody else does, and says which value it got."""
    def computed():
        say("computing\n")
        if sys.stdin.readline() != "go\n":
            # Nobody is there any more: a value must not come of it.
            os._exit(0)
        return orders.values.make(key, orders.number("first"))
    key = orders.number("key")
    say("ready\nasking\n")
    if not hasattr(target, "compute"):
        say("unsupported\nend\n")
        return
    begun = time.perf_counter_ns()
    value = target.compute(key_bytes(key), computed)
    taken = time.perf_counter_ns() - begun
    say(f"value {orders.values.read(key, value)} {taken}\nend\n")


def group(number):
    """The name of a group."""
    return f"torture-group:{number}"


def read(orders, target):
    """Reads a mix of keys; values have to be whole, and time must not run backwards."""
    draw, values = Draw(orders.seed), orders.values
    keys = orders.number("keys")
    newest = {}
    say("ready\n")
    for order in iter(sys.stdin.readline, ""):
        word, _, reads = order.rstrip("\n").partition(" ")
        if word != "read" or not reads.isdecimal():
            raise JobError(f"{order!r} is no order")
        hits, busy, failed, longest = 0, 0, 0, 0
        said = []
        for _ in range(int(reads)):
            key = draw.skewed(keys)
            name = key_bytes(key)
            begun = time.perf_counter_ns()
            try:
                value = target.get(name)
            except target.busy:
                value = None
                busy += 1
            except Exception as error:  # pylint: disable=broad-exception-caught
                value = None
                failed += 1
                said.append(f"failed {one_line(error)}\n")
            longest = max(longest, time.perf_counter_ns() - begun)
            if value is None:
                continue
            hits += 1
            try:
                sequence = values.read(key, value)
                if sequence < newest.get(key, 0):
                    raise WrongValue(f"{sequence} after {newest[key]} was read: it was overwritten")
                newest[key] = sequence
            except WrongValue as wrong:
                said.append(f"wrong {key} {wrong}\n")
        say("".join(said) + f"round {reads} {hits} {busy} {failed} {longest}\n")
    say("end\n")


def is_over():
    """Whether standard input has ended; nothing comes there."""
    ready, _, _ = select.select([0], [], [], 0)
    return bool(ready) and not os.read(0, 4096)


def one_line(error):
    """What an error says."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:1000]


def say(text):
    """Writes lines to the laboratory, by one system call."""
    sys.stdout.write(text)
    sys.stdout.flush()
