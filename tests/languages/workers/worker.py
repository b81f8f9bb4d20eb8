"""A process in Python that uses a shared file; README.md has what it is told, and what it answers."""

import random
import sys
import time

import haypile


def unhex(text):
    return b"" if text == "-" else bytes.fromhex(text)


def tohex(data):
    return data.hex() or "-"


def made(key, sequence):
    """A value that says whose it is, and how it goes on."""
    return b"%b:%d:" % (key, sequence) + b"%c" % (97 + sequence % 26) * (sequence * 37 % 3000)


def is_sound(key, value):
    parts = value.split(b":", 3)
    return len(parts) == 4 and parts[2].isdigit() and made(key, int(parts[2])) == value


def load(cache, owner, first, count, keys, others):
    others = others.split(",")
    for sequence in range(first, first + count):
        number = sequence % keys
        print("w", number, sequence, flush=True)
        key = b"%b:%d" % (owner.encode(), number)
        cache.set(key, made(key, sequence))
        print("a", number, sequence, flush=True)
        key = b"%b:%d" % (random.choice(others).encode(), random.randrange(keys))
        value = cache.get(key)
        if value is not None and not is_sound(key, value):
            print("bad", key.hex(), value[:200].hex(), flush=True)
    return "end"


def do(cache, command, *words):
    if command == "load":
        owner, first, count, keys, others = words
        return load(cache, owner, int(first), int(count), int(keys), others)
    if command == "keys":
        return " ".join(["keys", *sorted(tohex(key) for key in cache)])
    key = unhex(words[0])
    if command == "set":
        cache.set(key, unhex(words[1]), ttl=int(words[2]) / 1000 if words[2] != "0" else None)
        return "ok"
    if command == "get":
        value = cache.get(key)
        return "miss" if value is None else f"value {tohex(value)}"
    if command == "add":
        return "ok" if cache.add(key, unhex(words[1])) else "no"
    if command == "delete":
        return "ok" if cache.delete(key) else "no"
    if command == "incr":
        number = cache.incr(key, int(words[1]))
        return "miss" if number is None else f"number {number}"
    if command == "gets":
        found = cache.get_versioned(key)
        return "miss" if found is None else f"versioned {tohex(found[0])} {found[1]}"
    if command == "cas":
        return "ok" if cache.cas(key, unhex(words[1]), int(words[2])) else "no"
    if command == "lease":
        return f"lease {cache.lease(key).hex()}"
    if command == "leased":
        return "ok" if cache.set_leased(key, unhex(words[1]), unhex(words[2])) else "no"
    if command == "compute":
        computed = []

        def compute():
            computed.append(1)
            time.sleep(int(words[1]) / 1000)
            return unhex(words[2])

        value = cache.get_or_compute(key, None, compute)
        return f"{'computed' if computed else 'value'} {tohex(value)}"
    return f"error unknown {command}"


def main():
    cache = haypile.open(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            print(do(cache, *line.split()), flush=True)
        except Exception as error:
            print("error", " ".join(str(error).split()), flush=True)


main()
