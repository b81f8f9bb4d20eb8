"""Programs with mistakes, which type checkers have to find: each line that ends with `# mistake` has one, and no other.

`test_types.py` runs the checkers. Nothing here runs.
"""

from __future__ import annotations

import datetime
import json
from typing import Any, assert_type

import haypile

cache = haypile.open("memory:size=8MiB")
objects = haypile.Objects(cache)
numbers: haypile.Objects[int] = haypile.Objects(cache)
texts = haypile.Objects(cache, (str.encode, bytes.decode))


# Memoized functions keep their signature.


@objects.memoize(ttl=60)
def price(article: int, discount: float = 0.0) -> str:
    return str(article * discount)


assert_type(price(5), str)
assert_type(price(5, discount=0.5), str)
price.cache_clear()
price.cache_key(5)
print(price.cache_info().hits, price.__wrapped__(5))
price("a")  # mistake
price(5, nonsense=1)  # mistake
price()  # mistake
price(5) + 1  # mistake
price.cache_clearr()  # mistake
price.cache_key("a")  # mistake
objects.memoize(ttl="60")  # mistake
objects.memoize(timeout=60)  # mistake
objects.memoize(key=5)  # mistake


class Shop:
    def __cache_key__(self) -> str:
        return "shop"

    @objects.memoize()
    def stock(self, article: int) -> int:
        return article

    @objects.memoize()
    @classmethod
    def name(cls, number: int) -> str:
        return cls.__name__ * number

    @classmethod
    @objects.memoize()
    def founded(cls, number: int) -> str:
        return cls.__name__ * number

    @objects.memoize()
    @staticmethod
    def tax(country: str) -> float:
        return len(country)

    @objects.memoize()
    async def order(self, article: int) -> bytes:
        return b"%d" % article


assert_type(Shop().stock(5), int)
assert_type(Shop.stock(Shop(), 5), int)
assert_type(Shop.name(2), str)
assert_type(Shop.founded(2), str)
assert_type(Shop.tax("de"), float)
Shop().stock.cache_key(5)
Shop().stock("a")  # mistake
Shop().stock()  # mistake
Shop.name("a")  # mistake
Shop.founded("a")  # mistake
Shop.tax(5)  # mistake
Shop().stock.cache_key("a")  # mistake


@objects.memoize(ttl=datetime.timedelta(minutes=1))
async def fetch(url: str) -> bytes:
    return url.encode()


async def coroutines() -> None:
    assert_type(await fetch("/"), bytes)
    assert_type(await Shop().order(5), bytes)
    await fetch(5)  # mistake
    fetch("/").decode()  # mistake
    (await fetch("/")).encode()  # mistake
    await Shop().order("a")  # mistake


# A cache of bytes.

assert_type(cache.get("key"), bytes | None)
assert_type(cache.get("key", 5), bytes | int)
assert_type(cache.get_or_compute("key", 60, lambda: b"value"), bytes)
cache.get("key").decode()  # mistake
cache.set("key", "text")  # mistake
cache.set(5, b"value")  # mistake
cache.set("key", b"value", ttl="60")  # mistake
cache.get_or_compute("key", 60, lambda: "text")  # mistake
haypile.open(5)  # mistake

# A cache of objects.

assert_type(objects["key"], Any)
assert_type(numbers.get("key"), int | None)
assert_type(numbers.get("key", "none"), int | str)
assert_type(numbers["key"], int)
assert_type(numbers.pop("key"), int)
assert_type(numbers.get_many(["key"]), dict[str | bytes, int])
assert_type(numbers.get_or_compute("key", 60, lambda: 5), int)
assert_type(texts.get("key"), str | None)
haypile.Objects(cache, (lambda value: json.dumps(value).encode(), json.loads))
haypile.Objects(cache, serializer="yaml")  # mistake
haypile.Objects(cache, sign=5)  # mistake
numbers.set("key", "text")  # mistake
numbers["key"] = "text"  # mistake
numbers.add("key", None)  # mistake
numbers.get("key") + 1  # mistake
numbers.get_or_compute("key", 60, lambda: 5).upper()  # mistake
numbers.get_or_compute("key", 60, 5)  # mistake
texts.set("key", b"bytes")  # mistake

# Both for asyncio.

of_bytes = haypile.AsyncCache("memory:size=8MiB")
of_numbers = haypile.AsyncCache(numbers)


async def awaited() -> None:
    async def compute() -> float:
        return 0.5

    assert_type(await of_bytes.get("key"), bytes | None)
    assert_type(await of_numbers.get("key"), int | None)
    assert_type(await of_numbers.get("key", "none"), int | str)
    assert_type(await of_numbers.pop("key"), int)
    assert_type(await of_bytes.get_or_compute("key", 60, lambda: b"value"), bytes)
    assert_type(await of_numbers.get_or_compute("key", 60, compute), float)
    assert_type(await of_numbers.get_or_compute("key", 60, lambda: 5), int)
    await of_bytes.set("key", bytearray(5))
    async with haypile.AsyncCache(cache) as opened:
        await opened.set("key", b"value")
    of_bytes.get("key").decode()  # mistake
    (await of_bytes.get("key")).decode()  # mistake
    await of_bytes.set("key", "text")  # mistake
    await of_numbers.set("key", "text")  # mistake
    await of_numbers.add("key", b"bytes")  # mistake
    (await of_numbers.get("key")).upper()  # mistake
    await of_numbers.get_or_compute("key", 60, 5)  # mistake
    (await of_numbers.get_or_compute("key", 60, compute)).upper()  # mistake
