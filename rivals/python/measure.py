"""What is timed, and what it is timed with."""

import gc
import time
from array import array
from pathlib import Path
from struct import Struct
from zlib import crc32

from job import (CLEAR, COMPUTE, DELETE, EXPIRE, FLUSH, FRESH, GET, GETSET, LOAD, MANY, SET, WAIT,
                 WHOLE)

NAMES = {GET: "get", SET: "set", MANY: "many", DELETE: "delete", FRESH: "fresh", GETSET: "getset",
         FLUSH: "flush", WAIT: "wait", CLEAR: "clear", LOAD: "load", EXPIRE: "expire",
         COMPUTE: "compute"}


class Reader:
    """Sees the values that are read, and counts those that are not the right ones. What is not there
    it makes, or computes."""

    def __init__(self, values, compute_ms):
        self._values = values
        self._compute_seconds = compute_ms / 1000
        # Bytes are copied into a view of an array; the array itself would copy them twice.
        self._room = memoryview(bytearray(max(map(len, values), default=0)))
        self._wrong = 0
        self.touch, self._touched = touching(values)

    @property
    def values(self):
        """The values, by the numbers of their keys."""
        return self._values

    @property
    def wrong(self):
        """How many values were not the right ones."""
        return self._wrong + self._touched()[0]

    @property
    def touched_bytes(self):
        """The bytes of the values that were touched."""
        return self._touched()[1]

    @property
    def touched_crc32(self):
        """The sum of the CRC-32 of each value that was touched."""
        return self._touched()[2]

    def make(self, _, value):
        """Copies the value, and reads it as one that was there."""
        made = bytes(memoryview(value))
        self._room[:len(made)] = made

    def compute(self, client, key):
        """Reads a key, or has its value computed; whether it was computed here."""
        is_computed = False

        def computed():
            nonlocal is_computed
            is_computed = True
            time.sleep(self._compute_seconds)
            return self._values[key]

        value = client.compute(key, computed)
        if is_computed:
            self.compare(key, value)
        else:
            self.touch(key, value)
        return is_computed

    def compare(self, key, value):
        """Compares the whole value; whether it is the right one."""
        is_right = value == self._values[key]
        self._wrong += not is_right
        return is_right


def touching(values):
    """Makes a function that touches the value of a key, and one that returns how many values were not
    the right ones, and the bytes and checksums of the others.

    Every figure of a read contains it, so it reads nothing of its key but the value: of many keys, any
    further object is not in the processor's caches.
    """
    sizes = array("I", map(len, values))
    number_of = Struct("<Q").unpack_from
    wrong = touched = checksum = 0

    def touch(key, value):
        """Compares the value's length and its number, which are its first eight bytes, and reads all
        of it for its checksum."""
        nonlocal wrong, touched, checksum
        size = len(value)
        if size == sizes[key] and (number_of(value)[0] == key if size > 7 else value == values[key]):
            checksum += crc32(value)
            touched += size
        else:
            wrong += 1

    return touch, lambda: (wrong, touched, checksum)


class Runs:
    """Operations, ready to be done: one pass over the file is all the decoding there is."""

    def __init__(self, runs):
        self._runs = runs
        self.operations = 0
        self.reads = 0
        for operation, operands in runs:
            count = len(operands)
            if operation == MANY:
                count = sum(map(len, operands))
            if operation not in WHOLE:
                self.operations += count
            if operation in (GET, MANY, GETSET, LOAD, COMPUTE):
                self.reads += count

    def __iter__(self):
        return iter(self._runs)

    def has(self, operation):
        """Whether there is such an operation."""
        return any(found == operation for found, _ in self._runs)

    def written(self):
        """The keys that are written."""
        return {key for operation, operands in self._runs
                if operation in (SET, GETSET, EXPIRE, COMPUTE) for key in operands}

    def keys(self):
        """The keys of reads, one after the other."""
        return [key for operation, operands in self._runs if operation == GET for key in operands]

    def perform(self, client, reader, values):
        """Does everything; gives the number of misses."""
        misses = 0
        for operation, operands in self._runs:
            misses += perform(client, operation, operands, reader, values)
        return misses

    def perform_each(self, client, reader, values):
        """Does everything, and times each operation by itself: lists of nanoseconds by name."""
        times = {}
        for operation, operands in self._runs:
            taken = times.setdefault(NAMES[operation], [])
            for operand in operands:
                start = time.perf_counter_ns()
                perform(client, operation, [operand], reader, values)
                taken.append(time.perf_counter_ns() - start)
        return times


def perform(client, operation, operands, reader, values):
    """Does a run of operations of one kind; gives the number of misses."""
    if operation == SET:
        client.set(operands, values)
    elif operation == GET:
        return client.get(operands, reader.touch)
    elif operation == MANY:
        # A client without a call for several keys reads them one by one.
        get_many = getattr(client, "get_many", client.get)
        return sum(get_many(keys, reader.touch) for keys in operands)
    elif operation == GETSET:
        return client.get_set(operands, values, reader.touch)
    elif operation == DELETE:
        client.delete(operands)
    elif operation == LOAD:
        return client.load(operands, reader.values, reader.touch, reader.make)
    elif operation == EXPIRE:
        client.expire(operands, values)
    elif operation == COMPUTE:
        return sum(reader.compute(client, key) for key in operands)
    elif operation == CLEAR:
        client.clear()
    elif operation == FLUSH:
        client.save()
    elif operation == WAIT:
        time.sleep(operands[0] / 1000)
    else:
        client.fresh()
    return 0


def timed(work):
    """Does `work` without garbage collection, as Python's timeit; gives its result, and the
    nanoseconds that passed and that the process was given."""
    gc.disable()
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    result = work()
    wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
    gc.enable()
    return result, wall, cpu


def memory(process="self"):
    """Resident memory of a process now and at most, in bytes."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    kib = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines)
           if name in ("VmRSS", "VmHWM")}
    return int(kib["VmRSS"]) * 1024, int(kib["VmHWM"]) * 1024


def percentiles(times):
    """What is said of single operations; `times` is not empty."""
    times = sorted(times)
    at = {name: times[min(len(times) - 1, int(len(times) * share))]
          for name, share in (("p50", .5), ("p90", .9), ("p99", .99), ("p999", .999))}
    return {"count": len(times), **at, "max": times[-1], "mean": round(sum(times) / len(times))}
