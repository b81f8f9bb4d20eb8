#!/usr/bin/env python3
"""Measures RelStorage's local client: a runner of Haypile's laboratory, as `docs/job.md` has it.

    target/rivals/relstorage/bin/python rivals/relstorage/run.py JOB SUBJECT
    target/rivals/relstorage/bin/python rivals/relstorage/run.py --list
"""

import gc
import sys
import time

from client import NAME, VERSION, Client
from job import DELETE, FRESH, GET, GETSET, MANY, SET, Job, JobError


class Reader:
    """Touches what is read, and looks whether it is right."""

    def __init__(self, values):
        self._values = values
        self._heads = [value[:8] for value in values]
        self._room = bytearray(max(map(len, values), default=0))
        self.hits = 0
        self.wrong = 0

    def touch(self, key, value):
        """Copies the value out, and compares its size and its first eight bytes."""
        self.hits += 1
        size = len(value)
        if size == len(self._values[key]) and value[:8] == self._heads[key]:
            self._room[:size] = value
        else:
            self.wrong += 1

    def compare(self, key, value):
        """Compares the value byte by byte."""
        self.hits += 1
        # The client keeps references on bytes: a copy that is not the same object is compared.
        self.wrong += bytes(memoryview(value)) != self._values[key]


def perform(client, runs, reader):
    """Does the operations; gives the number of hits that deletions had, and misses."""
    misses = 0
    values = reader_values(reader)
    for operation, operands in runs:
        if operation == SET:
            client.set_all(operands, values)
        elif operation == GET:
            misses += len(client.get_all(operands, reader.touch))
        elif operation == MANY:
            for keys in operands:
                misses += len(client.get_all(keys, reader.touch))
        elif operation == GETSET:
            misses += client.get_set_all(operands, values, reader.touch)
        elif operation == DELETE:
            client.delete_all(operands)
        elif operation == FRESH:
            client.fresh()
    return misses
