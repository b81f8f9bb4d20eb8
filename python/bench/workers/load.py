"""The load of `scripts/bench-workers`: processes that send requests to the site and verify every answer."""

import contextlib
import hashlib
import itertools
import multiprocessing
import random
import re
import signal
import socket
import time

ZIPF_EXPONENT = 0.9
WITHIN_S = 60


class Wrong(Exception):
    """An answer that is not the right one."""


def zipf(count, keys, seed):
    """Numbers of pages, drawn by Zipf's law."""
    weights = list(itertools.accumulate(1 / rank**ZIPF_EXPONENT for rank in range(1, keys + 1)))
    return random.Random(seed).choices(range(keys), cum_weights=weights, k=count)


def ask(path, number):
    """Sends one request over a connection of its own; returns the response's head and body."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(WITHIN_S)
        connection.connect(path)
        connection.sendall(b"GET /page/%d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % number)
        head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")
    return head, body


def verify(number, head, body, digests):
    """Returns whether the response is a hit, or raises Wrong."""
    if not head.startswith(b"HTTP/1.1 200 "):
        status = head.partition(b"\r\n")[0].decode(errors="replace")
        raise Wrong(f"page {number}: {status or 'no answer'}")
    if hashlib.sha256(body).digest() != digests[number]:
        raise Wrong(f"page {number}: its {len(body)} bytes are not those of its value")
    found = re.search(rb"\r\nX-Cache: (hit|computed)(?:\r\n|$)", head)
    if not found:
        raise Wrong(f"page {number}: no header X-Cache")
    return found[1] == b"hit"


def load(path, numbers, position, digests, results):
    """Sends requests until all processes together have sent the list; then sends hits and latencies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    hits, latencies, wrong = 0, [], None
    while True:
        with position.get_lock():
            index = position.value
            position.value += 1
        if index >= len(numbers):
            break
        try:
            begin = time.perf_counter()
            head, body = ask(path, numbers[index])
            latencies.append(time.perf_counter() - begin)
            hits += verify(numbers[index], head, body, digests)
        except (Wrong, OSError) as error:
            wrong = f"page {numbers[index]}: {error}" if isinstance(error, OSError) else str(error)
            # The other processes find the list sent.
            position.value = len(numbers)
    results.send((hits, latencies, wrong))


def send_all(path, numbers, digests, processes):
    """Sends a list of requests from several processes; returns the hits, the sorted latencies, and the seconds."""
    context = multiprocessing.get_context("fork")
    position = context.Value("l", 0)
    pipes = []
    begin = time.monotonic()
    for _ in range(processes):
        receiver, sender = context.Pipe(duplex=False)
        context.Process(target=load, args=(path, numbers, position, digests, sender), daemon=True).start()
        sender.close()
        pipes.append(receiver)
    try:
        results = [pipe.recv() for pipe in pipes]
    except EOFError:
        raise Wrong("a process of the load ended early") from None
    elapsed_s = time.monotonic() - begin
    for process in multiprocessing.active_children():
        process.join()
    for _, _, wrong in results:
        if wrong:
            raise Wrong(wrong)
    latencies = sorted(itertools.chain.from_iterable(latencies for _, latencies, _ in results))
    return sum(hits for hits, _, _ in results), latencies, elapsed_s
