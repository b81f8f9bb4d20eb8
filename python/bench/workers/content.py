"""The values that the site keeps in its cache. The driver imports this module too, to verify every answer."""

import hashlib
import random

# A fixed amount of work: about 2 ms of a processor. The driver measures the time, and its first row has it.
ITERATIONS = 8000
ITEMS = (12, 20)
WORDS = "amber birch cedar delta ember flint grove heron ivory jasper kelp lotus maple north olive pearl".split()


def value(number):
    """Returns the value of a number, which is the same in every process: about 4 KiB when it is pickled."""
    draw = random.Random(number)
    items = [
        {
            "id": draw.getrandbits(40),
            "name": " ".join(draw.choices(WORDS, k=3)),
            "text": " ".join(draw.choices(WORDS, k=32)),
            "price_cents": draw.randrange(100, 100_000),
            "in_stock": draw.random() < 0.8,
        }
        for _ in range(draw.randint(*ITEMS))
    ]
    return {"number": number, "title": f"Page {number}", "items": items}


def compute(number):
    """Returns the value of a number after the work that a cache saves."""
    hashlib.pbkdf2_hmac("sha256", str(number).encode(), b"work", ITERATIONS)
    return value(number)
