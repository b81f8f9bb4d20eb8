"""Functions whose results are remembered."""

import asyncio
import dataclasses
import datetime
import enum
import functools
import inspect
import math
import multiprocessing
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import uuid
import zoneinfo

import haypile
import urls


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int


@dataclasses.dataclass(frozen=True)
class Place:
    x: int
    y: int


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __cache_key__(self):
        return self.factor


class Flags(enum.IntFlag):
    A = 1


class Zone(datetime.tzinfo):
    pass


class Point3(Point):
    pass


def at_top_level(test, *kinds):
    """Gives classes of a test names that find them, for as long as it runs."""
    for kind in kinds:
        kind.__qualname__ = kind.__name__
        finding = unittest.mock.patch.dict(globals(), {kind.__name__: kind})
        finding.start()
        test.addCleanup(finding.stop)


def compute_in_a_process(url, results):
    objects = haypile.Objects(url)

    @objects.memoize(ttl=60, name="shared")
    def shared(number):
        results.put("computed")
        return number + 1

    results.put(shared(1))


class MemoizeTest(unittest.TestCase):
    def setUp(self):
        self.objects = haypile.Objects("memory:size=8MiB")
        self.addCleanup(self.objects.close)
        self.calls = []

    def remembered(self, **options):
        @self.objects.memoize(**{"name": "function"} | options)
        def function(*args, **named):
            """Its documentation."""
            self.calls.append((args, named))
            return len(self.calls)

        return function

    def test_a_call_is_made_once(self):
        function = self.remembered(ttl=60)
        self.assertEqual([function(1), function(1), function(2), function(1)], [1, 1, 2, 1])
        self.assertEqual(function.cache_info()[:2], (2, 2))
        self.assertEqual(function.__wrapped__(1), 3)
        self.assertEqual((function.__name__, function.__doc__), ("function", "Its documentation."))
        self.objects.set("other", 1)
        function.cache_clear()
        self.assertEqual(function.cache_info()[:2], (0, 0))
        self.assertEqual(function(1), 4)
        self.assertIn("other", self.objects)
        self.assertTrue(50 < self.objects.ttl(function.cache_key(1)) <= 60)

    def test_recursion(self):
        @self.objects.memoize(name="factorial")
        def factorial(number):
            return number * factorial(number - 1) if number else 1
        self.assertEqual(factorial(300), math.factorial(300))

        class Numbers:
            def __cache_key__(self):
                return "numbers"
        Numbers.sum = self.objects.memoize(name="sum", key=lambda _self, number: str(number))(
            lambda numbers, number: number + numbers.sum(number - 1) if number else 0)
        self.assertEqual(Numbers().sum(300), 300 * 301 // 2)

    def test_none_is_a_result(self):
        calls = []

        @self.objects.memoize()
        def nothing():
            calls.append(1)

        self.assertEqual((nothing(), nothing(), len(calls)), (None, None, 1))

    def test_what_raises_is_not_remembered(self):
        @self.objects.memoize(name="fails")
        def fails():
            self.calls.append(1)
            raise LookupError("away")

        for _ in range(2):
            with self.assertRaisesRegex(LookupError, "away"):
                fails()
        self.assertEqual(len(self.calls), 2)

    def test_arguments_are_told_apart(self):
        day = datetime.date(2026, 1, 2)
        different = [
            ((), {}), ((None,), {}), (("",), {}), ((b"",), {}), (((),), {}), ((0,), {}), (("0",), {}), ((b"0",), {}),
            ((1, 2), {}), (((1, 2),), {}), (((1,), 2), {}), ((1,), {"a": 2}), ((), {"a": 1}), ((), {"b": 1}),
            (("ab", "c"), {}), (("a", "bc"), {}), ((1.5,), {}), ((float("inf"),), {}), ((float("nan"),), {}), ((-1,), {}),
            ((Colour.RED,), {}), ((Colour.GREEN,), {}), ((Point(1, 2),), {}), ((Point(2, 1),), {}),
            ((Place(1, 2),), {}), ((day,), {}), ((datetime.datetime(2026, 1, 2),), {}), ((uuid.UUID(int=7),), {}),
            ((int,), {}), ((str,), {}), (({1, 2},), {}), (({1: 2},), {}), ((Scaled(1),), {}), ((Scaled(2),), {}),
            ((frozenset(),), {}), (({},), {}), (("\ud800",), {}),
        ]
        function = self.remembered()
        keys = {function.cache_key(*args, **named) for args, named in different}
        self.assertEqual(len(keys), len(different))
        same = [(1, True, 1.0), ([1], [1.0]), ({1, 2, 3}, {3, 2, 1}), ({1: 2, 3: 4}, {3: 4, 1: 2}), (0.0, -0.0)]
        for values in same:
            self.assertEqual(len({function.cache_key(value) for value in values}), 1, values)
        self.assertEqual(function.cache_key(a=1, b=2), function.cache_key(b=2, a=1))
        typed = self.remembered(typed=True)
        self.assertEqual(len({typed.cache_key(value) for value in (1, True, 1.0, [1], (1,))}), 5)
        # Never by address: another process would have another, and another object could have the same.
        for value in (object(), lambda: None, self):
            with self.assertRaisesRegex(TypeError, "__cache_key__"):
                function(value)

    def test_a_key_of_one_process_is_that_of_another(self):
        function = self.remembered(name="n")
        self.assertEqual(function.cache_key(1, "a", b=[2.5]), "n:179ccb773a770fb92fb3f37b8301f8f7")

    def test_own_keys(self):
        function = self.remembered(key=lambda request: request["path"], name="page")
        self.assertEqual([function({"path": "/"}), function({"path": "/", "x": 1}), function({"path": "/a"})], [1, 1, 2])
        self.assertEqual(function.cache_key({"path": "/"}), "page:/")

    def test_methods(self):
        objects, calls = self.objects, self.calls

        class Scale(Scaled):
            @objects.memoize()
            def of(self, number):
                calls.append(number)
                return number * self.factor

            @classmethod
            @objects.memoize()
            def name(cls, number):
                calls.append(number)
                return f"{cls.__name__} {number}"

            @staticmethod
            @objects.memoize()
            def half(number):
                calls.append(number)
                return number / 2

            @objects.memoize()
            @classmethod
            def outer(cls):
                calls.append("outer")
                return cls.__name__

        class Other(Scale):
            pass

        at_top_level(self, Scale, Other)
        self.assertEqual([Scale(2).of(3), Scale(2).of(3), Scale(5).of(3)], [6, 6, 15])
        self.assertEqual([Scale.name(1), Scale(2).name(1), Other.name(1)], ["Scale 1", "Scale 1", "Other 1"])
        self.assertEqual([Scale.half(1), Scale(2).half(1)], [0.5, 0.5])
        self.assertEqual([Scale.outer(), Scale.outer(), Other.outer()], ["Scale", "Scale", "Other"])
        self.assertEqual(calls, [3, 3, 1, 1, 1, "outer", "outer"])
        self.assertEqual(Scale.of.cache_info()[:2], (1, 2))
        Scale(2).of.cache_clear()
        self.assertEqual(Scale(2).of(3), 6)
        self.assertEqual(Scale(2).of.__wrapped__(4), 8)

    def test_it_is_called_to_decorate(self):
        with self.assertRaisesRegex(TypeError, "parentheses"):
            self.objects.memoize(len)

    def test_stale_results_are_served(self):
        function = self.remembered(ttl=50, stale=100)
        self.assertEqual([function(), function()], [1, 1])
        self.assertTrue(140 < self.objects.ttl(function.cache_key()) <= 150)

    def test_of_many_threads_one_computes(self):
        inside = threading.Event()
        leave = threading.Event()
        calls = []

        @self.objects.memoize(name="slow")
        def slow():
            calls.append(1)
            inside.set()
            leave.wait(30)
            return "slow"

        results = []
        threads = [threading.Thread(target=lambda: results.append(slow())) for _ in range(8)]
        for thread in threads:
            thread.start()
        self.assertTrue(inside.wait(30))
        leave.set()
        for thread in threads:
            thread.join(30)
        self.assertEqual((results, calls), (["slow"] * 8, [1]))

    def test_processes_share_results(self):
        url = urls.file(self)
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        for _ in range(2):
            process = context.Process(target=compute_in_a_process, args=(url, results))
            process.start()
            process.join(60)
            self.assertEqual(process.exitcode, 0)
        self.assertEqual([results.get(timeout=30) for _ in range(3)], ["computed", 2, 2])


class ProgramsTest(unittest.TestCase):
    """Programs that share a file, such as scripts that cron runs."""

    PROGRAM = """
import haypile
objects = haypile.Objects("file:{file},size=16MiB")
VALUE = {value!r}

@objects.memoize(ttl=3600)
def price(article):
    return [VALUE, {quality!r}, article]

if __name__ == "__main__":
    print(price("tea")[0], price.cache_info().hits)
"""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)

    def program(self, name, value, quality="good"):
        """Writes a program whose function returns a value of a global variable, and one of its own code."""
        program = self.directory / f"{name}.py"
        text = self.PROGRAM.format(file=self.directory / "shared.haypile", value=value, quality=quality)
        program.write_text(text)
        return program

    def output(self, *arguments):
        return subprocess.run([sys.executable, "-B", *arguments], cwd=self.directory, capture_output=True, text=True,
                              check=True).stdout.split()

    def test_a_script_finds_what_its_last_run_computed(self):
        script = self.program("script", "first")
        self.assertEqual(self.output(script), ["first", "0"])
        # A global variable is not a part of the function.
        self.program("script", "second")
        self.assertEqual(self.output(script), ["first", "1"])

    def test_a_function_that_is_edited_forgets_its_results(self):
        script = self.program("script", "first")
        self.assertEqual(self.output(script), ["first", "0"])
        self.program("script", "second", "better")
        self.assertEqual(self.output(script), ["second", "0"])

    def test_scripts_with_functions_of_one_name_do_not_meet(self):
        self.assertEqual(self.output(self.program("one", "of one")), ["of", "one", "0"])
        self.assertEqual(self.output(self.program("two", "of two")), ["of", "two", "0"])

    def test_a_module_that_is_run_and_one_that_is_imported_meet(self):
        self.program("module", "first")
        self.assertEqual(self.output("-m", "module"), ["first", "0"])
        imported = "import module; print(module.price('tea')[0], module.price.cache_info().hits)"
        self.assertEqual(self.output("-c", imported), ["first", "1"])


class NamesTest(unittest.TestCase):
    """Functions that have a name in common, and arguments that look alike."""

    def setUp(self):
        self.objects = haypile.Objects("memory:size=8MiB")
        self.addCleanup(self.objects.close)

    def test_functions_of_one_name_have_their_own_results(self):
        one, other = self.objects.memoize()(lambda x: x + 1), self.objects.memoize()(lambda x: x * 100)
        self.assertEqual((one(5), other(5)), (6, 500))

        def make(number):
            @self.objects.memoize()
            def add(x):
                return x + number

            return add

        self.assertEqual((make(1)(10), make(2)(10)), (11, 12))
        self.assertEqual(make(1).cache_key(10), make(1).cache_key(10))
        default = [self.objects.memoize()(lambda x, y=number: x + y) for number in (1, 2)]
        self.assertEqual([function(1) for function in default], [2, 3])

    def test_a_variable_without_a_key_needs_a_name(self):
        thing = object()
        with self.assertRaisesRegex(TypeError, "give memoize\\(name="):
            self.objects.memoize()(lambda: thing)
        self.assertEqual(self.objects.memoize(name="thing")(lambda: str(thing))(), str(thing))

    def test_no_name_begins_with_another(self):
        rates = self.objects.memoize(name="rates", key=lambda x: x)(lambda x: x)
        of_europe = self.objects.memoize(name="rates:eu", key=lambda x: x)(lambda x: "eu")
        self.assertEqual((rates("eu:a"), of_europe("a")), ("eu:a", "eu"))
        rates.cache_clear()
        self.assertEqual(len(list(self.objects)), 1)

    def test_keys_are_text_or_bytes(self):
        for key in (5, (1, 2), None, 1.5):
            with self.assertRaisesRegex(TypeError, "a key is text or bytes"):
                self.objects.memoize(name="x", key=lambda: key)(lambda: 1)()
        remembered = self.objects.memoize(name="x", key=lambda x: x)(repr)
        self.assertEqual((remembered(b"ab"), remembered("6162")), ("b'ab'", "'6162'"))
        for wrong, text in ((functools.partial(int), "no name"), (property(len), "@property above")):
            with self.assertRaisesRegex(TypeError, text):
                self.objects.memoize()(wrong)

    def test_arguments_that_look_alike(self):
        key = self.objects.memoize(name="x")(repr).cache_key
        self.assertNotEqual(key(Flags(8)), key(Flags(16)))
        self.assertEqual(key(slice(1, 2)), key(slice(1, 2)))
        berlin = datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
        self.assertNotEqual(key(berlin), key(berlin.replace(tzinfo=datetime.timezone.utc)))
        for argument in (slice(object()), datetime.datetime(2026, 1, 1, tzinfo=Zone()), Point3(1, 2)):
            with self.assertRaisesRegex(TypeError, "has no key"):
                key(argument)

    def test_bound_coroutines_are_coroutine_functions(self):
        class Thing:
            @self.objects.memoize(name="m")
            async def m(self):
                return 5

        self.assertTrue(asyncio.iscoroutinefunction(Thing().m))


class CoroutineTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.objects = haypile.Objects("memory:size=8MiB")
        self.addCleanup(self.objects.close)
        self.calls = 0

    async def test_of_many_tasks_one_computes(self):
        leave = asyncio.Event()

        @self.objects.memoize(name="slow")
        async def slow(number):
            self.calls += 1
            await leave.wait()
            return number + 1

        self.assertTrue(asyncio.iscoroutinefunction(slow) or inspect.iscoroutinefunction(slow))
        tasks = [asyncio.create_task(slow(1)) for _ in range(40)]
        while self.calls == 0:
            await asyncio.sleep(0)
        leave.set()
        self.assertEqual(await asyncio.gather(*tasks), [2] * 40)
        self.assertEqual(self.calls, 1)
        self.assertEqual(await slow(1), 2)
        self.assertEqual(slow.cache_info().misses, 1)

    async def test_nested_calls(self):
        @self.objects.memoize()
        async def sum_to(number):
            return number + (await sum_to(number - 1) if number else 0)

        self.assertEqual(await asyncio.gather(*(sum_to(number) for number in range(40, 0, -1))),
                         [number * (number + 1) // 2 for number in range(40, 0, -1)])

    async def test_what_raises(self):
        @self.objects.memoize()
        async def fails():
            raise LookupError("away")

        with self.assertRaisesRegex(LookupError, "away"):
            await fails()

    async def test_a_task_that_is_cancelled_leaves_the_others(self):
        inside = asyncio.Event()
        leave = asyncio.Event()

        @self.objects.memoize(name="slow")
        async def slow():
            inside.set()
            await leave.wait()
            return "slow"

        first = asyncio.create_task(slow())
        await inside.wait()
        second = asyncio.create_task(slow())
        await asyncio.sleep(0)
        first.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await first
        leave.set()
        self.assertEqual(await second, "slow")
