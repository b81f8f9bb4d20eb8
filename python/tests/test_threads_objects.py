"""One Objects, and memoized functions, that threads use at the same time."""

import asyncio
import dataclasses
import itertools
import threading
import unittest

import haypile
import urls
from hammer import SECONDS, THREADS, hammer


@dataclasses.dataclass
class Article:
    tags: set
    prices: dict


class ObjectsTest(unittest.TestCase):
    def setUp(self):
        self.objects = haypile.Objects(urls.file(self), "pickle", sign="a secret of these tests")
        self.addCleanup(self.objects.close)

    def test_every_operation_on_the_same_keys(self):
        objects = self.objects
        steps = itertools.cycle(range(256))

        def use(number):
            step = next(steps)
            key, value = f"key {step % 5}", [step] * 20
            objects.set(key, value, 60)
            for found in (objects.get(key, [0]), *objects.get_many([key, "key 0"]).values()):
                self.assertEqual(found, found[:1] * 20 if len(found) > 1 else [0])
            objects.set_many({key: value, "key 0": value})
            self.assertEqual(len(objects.get_or_set(key, value)), 20)
            self.assertEqual(len(objects.get_or_compute(key, 60, lambda: value)), 20)
            objects.add(key, value)
            objects.pop(key, None)
            objects.delete(key)

        hammer(self, use)

    def test_one_of_all_threads_adds(self):
        added = {}
        asked = {}

        def add(number):
            asked[number] = asked.get(number, 0) + 1
            if self.objects.add(f"key {asked[number]}", number):
                added.setdefault(asked[number], []).append(number)

        hammer(self, add)
        self.assertEqual([key for key, numbers in added.items() if len(numbers) != 1], [])
        self.assertEqual(set(added), set(range(1, max(asked.values()) + 1)))

    def test_a_dict_that_is_changed_while_it_is_written(self):
        entries = {f"key {number}": number for number in range(50)}

        def change(number):
            for extra in range(50):
                entries[f"{number} {extra}"] = number
            for extra in range(50):
                entries.pop(f"{number} {extra}", None)

        hammer(self, change, lambda number: self.objects.set_many(entries))


class MemoizeTest(unittest.TestCase):
    def setUp(self):
        self.objects = haypile.Objects("memory:size=16MiB")
        self.addCleanup(self.objects.close)

    def test_each_call_is_counted_and_each_result_computed_once(self):
        computed = {}
        calls = [0] * THREADS

        @self.objects.memoize()
        def double(number):
            computed.setdefault(number, []).append(threading.get_ident())
            return 2 * number

        def call(number):
            calls[number] += 1
            self.assertEqual(double(calls[number] % 500), 2 * (calls[number] % 500))

        hammer(self, call)
        self.assertEqual([number for number, by in computed.items() if len(by) != 1], [])
        self.assertEqual(double.cache_info().misses, len(computed))
        self.assertEqual(double.cache_info().hits, sum(calls) - len(computed))

    def test_clearing_while_others_call(self):
        @self.objects.memoize()
        def double(number):
            return 2 * number

        def call(number):
            self.assertEqual(double(number), 2 * number)
            self.assertGreaterEqual(double.cache_info().hits, 0)

        hammer(self, call, call, lambda number: double.cache_clear())
        double.cache_clear()
        self.assertEqual(double.cache_info()[:2], (0, 0))

    def test_arguments_that_others_change(self):
        article = Article(tags={"a"}, prices={"eur": 1})

        @self.objects.memoize()
        def count(article):
            return 1

        def change(number):
            article.tags.update(f"{number} {extra}" for extra in range(50))
            article.tags.intersection_update({"a"})
            for extra in range(50):
                article.prices[f"{number} {extra}"] = extra
            for extra in range(50):
                article.prices.pop(f"{number} {extra}", None)

        hammer(self, change, lambda number: self.assertEqual(count(article), 1))

    def test_loops_of_several_threads(self):
        cache = haypile.AsyncCache(self.objects)
        calls = [0] * THREADS

        @self.objects.memoize()
        async def double(number):
            await asyncio.sleep(0)
            return 2 * number

        def run(number):
            async def steps():
                calls[number] += 1
                await cache.set(f"key {number}", number)
                self.assertEqual(await cache.get(f"key {number}"), number)
                self.assertEqual(await asyncio.gather(*map(double, (calls[number], calls[number]))), [2 * calls[number]] * 2)
            asyncio.run(steps())

        hammer(self, run, seconds=SECONDS / 2)

    def test_loops_that_begin_while_others_are_known(self):
        @self.objects.memoize()
        async def double(number):
            return 2 * number

        # Each call computes, for which it looks through the tables of all loops.
        numbers = itertools.count()

        def call(loop_of):
            number = next(numbers)
            self.assertEqual(loop_of(double(number)), 2 * number)

        loops = [asyncio.new_event_loop() for _ in range(200)]
        try:
            for loop in loops:
                call(loop.run_until_complete)
            hammer(self, lambda _: call(asyncio.run))
        finally:
            for loop in loops:
                loop.close()


if __name__ == "__main__":
    unittest.main()
