"""Functions that memoize tells apart, and those that it knows again in another process."""

import functools
import inspect
import operator
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import threading
import types
import unittest
from unittest import mock

import haypile


def twice(function):
    @functools.wraps(function)
    def inner(*args):
        return ["twice", function(*args)]

    return inner


class BaseByName:
    def name(self):
        return "base"


class DerivedByName(BaseByName):
    def name(self):
        return f"derived of {super().name()}"


class Counted:
    """A decorator that is a class, with a state of its own."""

    def __init__(self, function, factor):
        functools.update_wrapper(self, function)
        self.factor = factor

    def __call__(self, *args):
        return self.factor * self.__wrapped__(*args)


def load(x):
    return x


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def of(self, x):
        return x * self.factor

    def __cache_key__(self):
        return self.factor


def of_module(function):
    """Gives a function of a test the name that one of a module has."""
    function.__qualname__ = function.__name__
    return function


def made(variable):
    return lambda x: (x, variable)


class IdentityCase(unittest.TestCase):
    def setUp(self):
        self.objects = haypile.Objects("memory:size=8MiB")
        self.addCleanup(self.objects.close)

    def prefix(self, function, **options):
        """Returns what the keys of a function begin with."""
        return self.objects.memoize(**options)(function).cache_key().rpartition(":")[0]

    def assert_told_apart(self, *functions):
        prefixes = [self.prefix(function) for function in functions]
        self.assertEqual(len(set(prefixes)), len(functions), prefixes)
        self.assertEqual([self.prefix(function) for function in reversed(functions)], prefixes[::-1])


class FunctionsTest(IdentityCase):
    def test_a_function_and_its_wrapper(self):
        plain, doubled = self.objects.memoize()(load), self.objects.memoize()(twice(load))
        self.assertEqual((plain(1), doubled(1)), (1, ["twice", 1]))
        self.assert_told_apart(load, twice(load), twice(twice(load)))

    def test_functions_that_are_dispatched_by_type(self):
        @functools.singledispatch
        def convert(x):
            return "object"

        @convert.register
        @self.objects.memoize()
        @of_module
        def _(x: int):
            return "int"

        @convert.register
        @self.objects.memoize()
        @of_module
        def _(x: float):
            return "float"

        self.assertEqual((convert(1), convert(1.0), convert("")), ("int", "float", "object"))

    def test_a_name_that_is_defined_again(self):
        @self.objects.memoize()
        @of_module
        def value():
            return "first"

        before = value

        @self.objects.memoize()
        @of_module
        def value():
            return "second"

        self.assertEqual((before(), value()), ("first", "second"))

    def test_parameters_by_name(self):
        one = self.objects.memoize()(lambda x, y: x - y)
        other = self.objects.memoize()(lambda y, x: y - x)
        self.assertEqual((one(x=1, y=2), other(x=1, y=2)), (-1, 1))
        self.assert_told_apart(
            lambda x, y: 1, lambda y, x: 1, lambda x, /, y: 1, lambda x, *, y: 1, lambda x, *y: 1, lambda x, **y: 1
        )

    def test_constants(self):
        self.assert_told_apart(
            lambda: 1, lambda: True, lambda: 1.0, lambda: 0.0, lambda: -0.0, lambda: (0.0,), lambda: (-0.0,),
            lambda: 0j, lambda: -0j, lambda: "1", lambda: b"1", lambda: None, lambda: ..., lambda: (1, 2),
            lambda: (1, (2,)),
            lambda x: x in {1, 2}, lambda x: x in {1, 3}, lambda x: x in {True, 2}, lambda: lambda: 1,
            lambda: lambda: 2,
        )

    def test_code(self):
        def caught():
            try:
                return load(1)
            except ValueError:
                return 2

        def caught_elsewhere():
            try:
                return load(1)
            except TypeError:
                return 2

        async def coroutine():
            return 1

        def generator():
            yield 1

        self.assert_told_apart(
            lambda x: x + 1, lambda x: x - 1, lambda x: x.a, lambda x: x.b, caught, caught_elsewhere, coroutine,
            generator,
        )

    def test_all_parts_of_the_code(self):
        def source(a, b, /, c=1, *, d=2):
            inner = a
            return lambda: inner

        code = source.__code__
        changes = [
            {}, {"co_code": code.co_code[::-1]}, {"co_names": ("other",)}, {"co_consts": (None, 1)},
            {"co_varnames": (*code.co_varnames[:-1], "other")}, {"co_cellvars": ("other",)},
            {"co_flags": code.co_flags | inspect.CO_ITERABLE_COROUTINE}, {"co_exceptiontable": b"\x80\x01\x01\x01"},
            {"co_posonlyargcount": 1}, {"co_argcount": 2}, {"co_kwonlyargcount": 0},
        ]
        prefixes = set()
        for change in changes:
            # Never called.
            prefixes.add(self.prefix(types.FunctionType(code.replace(**change), globals(), "source")))
        self.assertEqual(len(prefixes), len(changes))

    def test_defaults_and_variables(self):
        self.assert_told_apart(
            *(lambda x=value: x for value in (1, 2, True, "1", None, [1], (1,))),
            *(lambda *, x=value: x for value in (1, 2)),
            *(made(value) for value in (1, 2, 1.0, "1", [1], (1,), {1: 2}, Scale, Scale(1), Scale(2), operator, os)),
        )

    def test_variables_that_are_functions(self):
        one, other = (lambda x: x + 1), (lambda x: x + 2)
        functions = [
            one, other, [one], [other], {"a": one}, {"a": other}, twice(one), twice(other),
            functools.partial(one, 1), functools.partial(one, 2), functools.partial(other, 1),
            functools.lru_cache(one), functools.lru_cache(other), Counted(one, 1), Counted(one, 2), Counted(other, 1),
            self.objects.memoize()(one), self.objects.memoize()(other), self.objects.memoize(name="one")(one),
            self.objects.memoize(name="other")(one), len, abs, str.upper, str.lower, "a".join, "b".join,
            Scale(1).of, Scale(2).of, operator.itemgetter(1), operator.itemgetter(2), operator.attrgetter("a"),
            operator.methodcaller("a", x=1), operator.methodcaller("a", x=2), staticmethod(one), classmethod(one),
            *(self.objects.memoize()(Scale.of).__get__(Scale(factor)) for factor in (1, 2)),
        ]
        self.assert_told_apart(*(made(function) for function in functions))
        self.assert_told_apart(*(function for function in functions if hasattr(function, "__qualname__")
                                 and not isinstance(function, (classmethod, staticmethod))
                                 and not hasattr(function, "cache_key")))

    def test_a_function_below_lru_cache(self):
        @self.objects.memoize()
        @functools.lru_cache
        def cached(x):
            return x + 1

        self.assertEqual((cached(1), cached(1)), (2, 2))
        self.assert_told_apart(functools.lru_cache(load), load, functools.lru_cache(twice(load)))

    def test_a_memoized_function_is_memoized_again(self):
        inner = self.objects.memoize()(load)
        outer = self.objects.memoize()(inner)
        self.assertEqual((outer(1), inner(1)), (1, 1))
        self.assertNotEqual(outer.cache_key(1), inner.cache_key(1))
        # Its own prefix, though the attributes of the inner one were copied.
        named = self.objects.memoize(name="outer")(inner)
        self.assertEqual(named.cache_key(1).partition(":")[0], "outer")
        wrapper = self.objects.memoize()(twice(inner))
        self.assertEqual((wrapper(1), wrapper.cache_info()[:2], inner(1)), (["twice", 1], (0, 1), 1))

    def test_a_wrapper_that_does_not_hold_what_it_wraps(self):
        def wrapper_of(function):
            def wrapper(x):
                return x

            wrapper.__wrapped__ = function
            return wrapper

        self.assert_told_apart(wrapper_of(load), wrapper_of(twice(load)), wrapper_of(None))

    def test_the_order_of_a_dict_makes_no_difference(self):
        one, other = (lambda x: (one, x)), (lambda x: (other, x))
        names = {"a": one, "b": [one, other], "c": other}
        self.assertEqual(self.prefix(made(names)), self.prefix(made(dict(reversed(names.items())))))

    def test_functions_that_make_keys(self):
        # The same key of different arguments.
        one = self.objects.memoize(key=lambda x, y: x)(lambda x, y: (x, y))
        self.assertEqual(one("a", "b"), ("a", "b"))
        prefixes = {self.prefix(load, key=key) for key in (None, lambda x="": x, lambda x="": x + "")}
        self.assertEqual(len(prefixes), 3)
        first = self.objects.memoize(key=operator.itemgetter("a"))(lambda x: "a")
        second = self.objects.memoize(key=operator.itemgetter("b"))(lambda x: "a")
        self.assertNotEqual(first.cache_key({"a": ""}), second.cache_key({"b": ""}))
        with self.assertRaisesRegex(TypeError, "the variable 'variable' around .*made.*name="):
            self.objects.memoize(key=made(object()))(load)

    def test_with_a_name_nothing_is_compared(self):
        names = {self.prefix(function, name="same") for function in (load, twice(load), made(object()), Scale(1).of)}
        self.assertEqual(names, {"same"})

    def test_calls_do_not_change_a_function(self):
        def total(number):
            return sum(index * 2.5 for index in range(number)) + number

        before = self.prefix(total)
        for _ in range(2000):
            # Python replaces instructions by faster ones.
            total(3)
        self.assertEqual(self.prefix(total), before)


class LateTest(IdentityCase):
    """Functions whose variables have no value yet when they are decorated."""

    def test_a_local_function_that_calls_itself(self):
        def factorial_of(one):
            @self.objects.memoize()
            def factorial(number):
                return number * factorial(number - 1) if number else one

            return factorial

        self.assertEqual((factorial_of(1)(5), factorial_of(2)(5), factorial_of(1)(5)), (120, 240, 120))
        self.assertEqual(factorial_of(1).cache_key(5), factorial_of(1).cache_key(5))

    def test_functions_that_call_each_other(self):
        def make(last):
            @self.objects.memoize()
            def is_even(number):
                return is_odd(number - 1) if number else last

            @self.objects.memoize()
            def is_odd(number):
                return is_even(number - 1) if number else not last

            return is_even, is_odd

        (even, odd), (even_2, odd_2) = make(True), make(False)
        self.assertEqual((even(4), odd(4), even_2(4), odd_2(4)), (True, False, False, True))
        self.assertEqual([function.cache_key(4) for function in make(True)], [even.cache_key(4), odd.cache_key(4)])

    def test_a_variable_that_is_assigned_later(self):
        def make(value):
            @self.objects.memoize()
            def read(x=0):
                return late if x else "early"

            early = read.cache_key(), read()
            late = value
            return early, read.cache_key(), read(1)

        one, other = make(1), make(2)
        self.assertEqual((one[0], one[2], other[2]), (other[0], 1, 2))
        self.assertEqual(len({one[0][0], one[1], other[1]}), 3)

    def test_a_late_function_over_a_memoized_one(self):
        @self.objects.memoize()
        def inner(x):
            return x

        @self.objects.memoize()
        @functools.wraps(inner)
        def outer(x):
            return inner(x) + late

        keys = {inner.cache_key(1), outer.cache_key(1)}
        late = 1
        self.assertEqual(len(keys | {outer.cache_key(1)}), 3)
        self.assertEqual((inner(1), outer(1)), (1, 2))

    def test_threads_that_use_it_first(self):
        @self.objects.memoize()
        def down(number):
            return down(number - 1) if number else 0

        keys = []
        threads = [threading.Thread(target=lambda: keys.append(down.cache_key(1))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual((len(keys), len(set(keys))), (8, 1))

    def test_methods_that_use_super(self):
        objects = self.objects

        def made(base):
            class Derived(base):
                @staticmethod
                @objects.memoize()
                def name():
                    return __class__.__base__.__name__

            return Derived

        # Others of its name have another base.
        with self.assertRaisesRegex(TypeError, "the variable '__class__' around .* is made in a function"):
            made(int).name()
        derived = DerivedByName()
        with mock.patch.object(DerivedByName, "name", objects.memoize(key=lambda self: "")(DerivedByName.name)):
            self.assertEqual([derived.name(), derived.name()], ["derived of base"] * 2)

    def test_a_variable_that_turns_out_to_have_no_key(self):
        @self.objects.memoize()
        def read():
            return thing

        thing = object()
        with self.assertRaisesRegex(TypeError, r"read cannot be told apart.*'thing' around .*read.*memoize\(name="):
            read()


class ErrorsTest(IdentityCase):
    def test_the_function_and_the_variable_are_named(self):
        name = __name__
        for function, text in (
            (made(object()), f"{name}.made.<locals>.<lambda> .*: the variable 'variable' around {name}.made"),
            (made([1, {"a": object()}]), r"the variable 'variable'\[1\]\['a'\] around "),
            (lambda x, y=object(): 1, "the default of parameter 'y' of "),
            (lambda *, y=object(): 1, "the default of parameter 'y' of "),
            (twice(made(object())), f": the variable 'variable' around {name}.made"),
            (made({made(1)}), "the variable 'variable' element around"),
            (made(Counted(load, object())), r"the variable 'variable'\.factor around"),
            (made(functools.partial(load, object())), r"the variable 'variable'\.args\[0\] around"),
        ):
            with self.assertRaisesRegex(TypeError, text + r".*: give memoize\(name="):
                self.objects.memoize()(function)

    def test_classes_that_are_made_in_functions(self):
        def make():
            class Local:
                pass

            return Local

        with self.assertRaisesRegex(TypeError, "the class .*make.<locals>.Local is made in a function"):
            self.objects.memoize()(made(make()))


MODULE = """
import functools, haypile, sys
objects = haypile.Objects("memory:size=1MiB")

def twice(function):
    @functools.wraps(function)
    def inner(x):
        return ["twice", function(x)]
    return inner

class Kind:
    class Inner:
        pass

    @objects.memoize()
    def method(self, kind=Inner, words={"a", "b", "c"}, other=frozenset({("x", "y"), ("z", "w")})):
        return x in {"some", "words", "in", "a", "set"} or x in {("p", "q"), ("r", "s")}

def load(x): return x

def even_and_odd():
    def even(x): return odd(x - 1) if x else True
    def odd(x): return even(x - 1) if x else False
    def third(x): return even(x), odd(x)
    return {name: objects.memoize()(function) for name, function in ORDER([("e", even), ("o", odd), ("t", third)])}

KEYS = {}
def decorate(name, function):
    KEYS[name] = objects.memoize()(function)

for name, function in ORDER([
    ("plain", load), ("wrapper", twice(load)), ("twice", twice(twice(load))), ("lambda", lambda x: x + 1),
    ("other", lambda x: x + 2), ("cached", functools.lru_cache(load)), ("method", Kind.method.__wrapped__),
]):
    decorate(name, function)
KEYS |= even_and_odd()
for name, function in ORDER(sorted(KEYS.items())):
    function.cache_key
print(*(f"{name}={KEYS[name].cache_key(1)}" for name in sorted(KEYS)), sep="\\n")
"""


class ProcessesTest(unittest.TestCase):
    def keys(self, order, seed):
        """The keys that a process finds which decorates functions in an order of its own."""
        with tempfile.TemporaryDirectory() as directory:
            program = textwrap.dedent(MODULE).replace("ORDER", order)
            pathlib.Path(directory, "decorating.py").write_text(program)
            run = subprocess.run(
                [sys.executable, "-B", "-c", "import decorating"], cwd=directory, text=True, check=True,
                capture_output=True, env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            return run.stdout.split("\n")

    def test_keys_do_not_depend_on_the_process_or_on_the_order(self):
        first = self.keys("list", "1")
        self.assertEqual(len({line.partition("=")[2] for line in first[:-1]}), 10)
        for order, seed in (("list", "2"), ("reversed", "3")):
            self.assertEqual(self.keys(order, seed), first)
