"""Keys of arguments: values that are not equal have different keys, the same in each process."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import ipaddress
import itertools
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import types
import typing
import unittest
import uuid
import zoneinfo

import hypothesis.configuration
import numpy
import pydantic
from hypothesis import strategies

import haypile

settings = hypothesis.settings(database=None, deadline=None, max_examples=200)


def setUpModule():
    # Hypothesis keeps files between runs.
    holder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(holder.cleanup)
    hypothesis.configuration.set_hypothesis_home_dir(holder.name)


class Colour(enum.Enum):
    RED = 1
    CRIMSON = 1
    GREEN = 2


class Size(enum.IntEnum):
    ONE = 1


class Rights(enum.Flag, boundary=enum.KEEP):
    READ = 1
    WRITE = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: typing.Any
    y: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    x: typing.Any
    y: int = 1


@dataclasses.dataclass(eq=False)
class Unequal:
    x: int


@dataclasses.dataclass
class ByItself:
    x: int

    def __eq__(self, other):
        return self is other


class Pair(typing.NamedTuple):
    x: typing.Any
    y: int = 1


OtherPair = collections.namedtuple("OtherPair", "a b")


class Text(str):
    pass


class SlotText(str):
    __slots__ = ("note",)


class Number(int):
    pass


class Real(float):
    pass


class Data(bytes):
    pass


class CaselessText(str):
    def __eq__(self, other):
        return self is other

    __hash__ = str.__hash__


class Keyed:
    def __init__(self, key):
        self.key = key

    def __eq__(self, other):
        return type(other) is Keyed and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def __cache_key__(self):
        return self.key


class Model(pydantic.BaseModel):
    x: typing.Any
    y: int = 1
    _own: int = pydantic.PrivateAttr(0)

    @functools.cached_property
    def computed(self):
        return object()


class OpenModel(pydantic.BaseModel, extra="allow"):
    x: int = 1


class ModelByItself(pydantic.BaseModel):
    x: int

    def __eq__(self, other):
        return self is other


class RootModel(pydantic.RootModel[list[int]]):
    pass


Item = typing.TypeVar("Item")


class Generic(pydantic.BaseModel, typing.Generic[Item]):
    x: Item


def noted(text, note):
    text.note = note
    return text


def private(model, own):
    model._own = own
    return model


BERLIN, PARIS = zoneinfo.ZoneInfo("Europe/Berlin"), zoneinfo.ZoneInfo("Europe/Paris")
NOON = datetime.datetime(2026, 10, 25, 2, 30)

# Values of all types, of which some differ by little. None of them is equal to itself alone.
HASHABLE = [
    None, ..., NotImplemented, "", "?", ("?",), ("\ud800",), "a", "b", "0", "1", "\ud800", "\ud83d\ude00",
    "\U0001f600", b"", b"a", b"1", 0, 1, -1, 2, True, False, 0.0, -0.0, 1.0, 1.5, -1.5, 1e300, float("inf"),
    -float("inf"), 0j, 1j, 1 + 1j, (), (1,), ((1,),), (1, 2), ("1", "2"), frozenset(), frozenset({1}), frozenset({1,
    2}), frozenset({"ab", "c"}), frozenset({(1, 2), (2, 1)}), decimal.Decimal("1"), decimal.Decimal("1.5"),
    decimal.Decimal("-0"), fractions.Fraction(1, 3), range(3), range(0, 4, 2), range(4), NOON, NOON.replace(fold=1),
    NOON.replace(tzinfo=BERLIN), NOON.replace(tzinfo=PARIS), NOON.replace(tzinfo=datetime.timezone.utc),
    NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1))), NOON.date(), NOON.time(),
    datetime.timedelta(1), datetime.timezone.utc, BERLIN, PARIS, uuid.UUID(int=1), uuid.UUID(int=2), Colour.RED,
    Colour.CRIMSON, Colour.GREEN, Size.ONE, Rights.READ, Rights.WRITE, Rights.READ | Rights.WRITE, Rights(0),
    Rights(8), int, str, type(None), dict, Colour, Point, Pair, Point(1), Point(1, 2), Point((1,)), Place(1), Place(1,
    2), Pair(1), Pair(1, 2), Pair("1"), OtherPair(1, 1), OtherPair(1, 2), Text("a"), Text("1"), Text(""), Number(1),
    Number(2), Real(1.5), Real(1), Data(b"a"), SlotText("a"), Keyed(1), Keyed("1"), Keyed((1,)),
    pathlib.PosixPath("a"), pathlib.PosixPath("a/b"), pathlib.PosixPath("/a"), pathlib.PurePosixPath("a"),
    pathlib.PurePosixPath("a\\b"), pathlib.PureWindowsPath("a/b"), pathlib.PosixPath("\udcff"), pathlib.PosixPath("?"),
    ipaddress.ip_address("1.2.3.4"), ipaddress.ip_address("::1"), ipaddress.ip_address("::1%1"),
    ipaddress.ip_network("1.2.3.4"), ipaddress.ip_network("::1"), ipaddress.ip_interface("1.2.3.4/24"),
    ipaddress.ip_interface("1.2.3.4/25"), ipaddress.ip_interface("::1"), re.compile("a"), re.compile("a", re.I),
    re.compile(b"a"), re.compile("b"), numpy.float64(1.5), numpy.float32(1.5), numpy.int64(1), numpy.int32(1),
    numpy.bool_(True), numpy.str_("a"), numpy.bytes_(b"a"), numpy.datetime64("2026-01-01"),
    numpy.datetime64("2026-01-02"), numpy.timedelta64(1, "s"), numpy.timedelta64(1, "h"), numpy.complex64(1j),
    numpy.longdouble("1.5"), numpy.longdouble("1.25"),
]
OTHERS = [
    bytearray(), bytearray(b"a"), memoryview(b"a"), memoryview(b"\1\0\0\0").cast("I"),
    memoryview(b"\1\0\0\0").cast("f"), memoryview(b"\1\0\0\0"), slice(1), slice(1, 2), slice(None), [], [1], [[1]],
    ["1"], {}, {1: 2}, {1: 1, 2: 2}, {2: 1, 1: 2}, {"a": {}}, set(), {1}, {1, 2}, collections.OrderedDict(),
    collections.OrderedDict({1: 1, 2: 2}), collections.OrderedDict({2: 2, 1: 1}), collections.Counter("a"),
    collections.Counter("aa"), collections.defaultdict(int), collections.defaultdict(list, {1: 2}),
    collections.deque([1]), collections.deque([1, 2]), collections.deque([1], 3), noted(Text("a"), 1),
    noted(Text("a"), 2), noted(SlotText("a"), 1), Model(x=1), Model(x=1, y=2), Model(x=[1]), Model(x=(1,)),
    private(Model(x=1), 1), OpenModel(), OpenModel(x=2), OpenModel(z=1), OpenModel(z=2), RootModel([1]),
    RootModel([2]), Generic(x=1), Generic[int](x=1), Generic[str](x="1"),
]


def containers(inner, hashable):
    """Strategies for values that hold others."""
    pairs = strategies.lists(strategies.tuples(hashable, inner), max_size=3)
    lists = strategies.lists(inner, max_size=3)
    return [
        lists, lists.map(tuple), lists.map(collections.deque), strategies.lists(hashable, max_size=3).map(set),
        pairs.map(dict), pairs.map(collections.OrderedDict),
        pairs.map(lambda value: collections.defaultdict(int, value)),
        strategies.builds(Point, inner), strategies.builds(Pair, inner), strategies.builds(slice, inner, inner),
        strategies.builds(Keyed, inner), strategies.builds(lambda value: Model(x=value), inner),
    ]


def hashable_containers(inner):
    tuples = strategies.lists(inner, max_size=3).map(tuple)
    sets = strategies.frozensets(inner, max_size=3)
    return tuples | sets | strategies.one_of([strategies.builds(kind, inner) for kind in (Point, Pair, Keyed)])


SCALARS = (strategies.integers(-3, 3) | strategies.booleans() | strategies.floats(allow_nan=False, width=16)
           | strategies.text(strategies.sampled_from("01a:="), max_size=3) | strategies.binary(max_size=2))
HASHABLES = strategies.recursive(strategies.sampled_from(HASHABLE) | SCALARS, hashable_containers, max_leaves=5)
VALUES = strategies.recursive(
    # By their places: hypothesis asks for the hash of what it chooses from, and a view of integers has none.
    strategies.integers(0, len(OTHERS) - 1).map(OTHERS.__getitem__) | HASHABLES,
    lambda inner: strategies.one_of(containers(inner, HASHABLES)),
    max_leaves=5,
)


def function(*args, **named):
    """What has the arguments."""


def different(one, other):
    try:
        # A number may be too large for the type of another.
        with numpy.errstate(over="ignore"):
            return bool(one != other)
    except (TypeError, ValueError):
        # Such as of aware and naive times.
        return True


class KeysCase(unittest.TestCase):
    def setUp(self):
        objects = haypile.Objects("memory:size=1MiB")
        self.addCleanup(objects.close)
        self.key = objects.memoize(name="n")(function).cache_key
        self.typed = objects.memoize(name="n", typed=True)(function).cache_key

    def assert_no_key(self, value, text):
        with self.assertRaisesRegex(TypeError, text):
            self.key(value)


class PropertiesTest(KeysCase):
    def assert_told_apart(self, one, other):
        for key in (self.key, self.typed):
            if different(one, other):
                self.assertNotEqual(key(one), key(other), (one, other))

    def test_all_pairs_of_the_examples(self):
        for one, other in itertools.combinations(HASHABLE + OTHERS, 2):
            self.assert_told_apart(one, other)

    @settings
    @hypothesis.given(strategies.lists(VALUES, min_size=2, max_size=6))
    def test_values_that_are_not_equal_have_different_keys(self, values):
        for one, other in itertools.combinations(values, 2):
            self.assert_told_apart(one, other)

    @settings
    @hypothesis.given(HASHABLES, strategies.lists(SCALARS, max_size=3))
    def test_containers_of_the_same_elements(self, first, rest):
        elements = [first, *rest]
        made = [kind(elements) for kind in (list, tuple, set, collections.deque, dict.fromkeys, collections.Counter)]
        made += [*elements, [elements], (tuple(elements),), [*elements, []], elements[:-1]]
        for one, other in itertools.combinations(made, 2):
            self.assert_told_apart(one, other)

    @settings
    @hypothesis.given(VALUES)
    def test_an_equal_value_has_the_same_key(self, value):
        self.assertEqual(self.key(value), self.key(value))
        self.assertEqual(self.key([value]), self.key([value]))

    @settings
    @hypothesis.given(*[strategies.tuples(
        strategies.lists(SCALARS | strategies.lists(SCALARS, max_size=2), max_size=3),
        strategies.dictionaries(strategies.sampled_from(["a", "b", "a0", "s"]), SCALARS, max_size=2),
    )] * 2)
    def test_calls_that_differ_have_different_keys(self, one, other):
        if one != other:
            self.assertNotEqual(self.key(*one[0], **one[1]), self.key(*other[0], **other[1]))


def random_value(source, depth):
    """A value that holds others, of a source of random numbers that each process has."""
    if depth == 0 or source.random() < 0.3:
        return source.choice(HASHABLE + OTHERS)
    inner = [random_value(source, depth - 1) for _ in range(source.randrange(4))]
    texts = [f"{source.random()}" for _ in range(6)]
    return source.choice([
        inner, tuple(inner), set(texts), frozenset(texts), dict(zip(texts, inner)), Point(inner), Keyed(inner),
        collections.defaultdict(str, zip(texts, inner)), collections.Counter(texts), {"set": set(texts)},
    ])


def print_keys():
    source = random.Random(7)
    objects = haypile.Objects("memory:size=1MiB")
    key = objects.memoize(name="n")(function).cache_key
    for value in HASHABLE + OTHERS + [random_value(source, 4) for _ in range(500)]:
        print(key(value))


class ProcessesTest(unittest.TestCase):
    def keys(self, seed):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run([sys.executable, "-B", "-c", f"import {__name__}; {__name__}.print_keys()"], check=True,
                              env=environment, capture_output=True, text=True).stdout.split()

    def test_keys_do_not_depend_on_the_process(self):
        keys = self.keys("1")
        self.assertEqual(len(keys), len(HASHABLE + OTHERS) + 500)
        self.assertEqual(keys, self.keys("2"))


class TypesTest(KeysCase):
    def test_equal_values_share_a_key(self):
        for values in (
            (1, 1.0, True), (0, 0.0, -0.0, False), (b"a", bytearray(b"a"), memoryview(b"a")), ([1], [True]),
            ({1}, frozenset({1.0})), ({1: 2, 3: 4}, {3.0: 4, True: 2}), (float("nan"), -float("nan")),
            (Colour.RED, Colour.CRIMSON),
        ):
            self.assertEqual(len({self.key(value) for value in values}), 1, values)
        self.assertEqual(len({self.typed(value) for value in (1, 1.0, True)}), 3)
        self.assertEqual(len({self.typed([value]) for value in (1, 1.0, True)}), 3)

    def test_numbers_of_many_digits(self):
        huge = [10**5000, -(10**5000), 10**5000 + 1, fractions.Fraction(10**5000, 3), fractions.Fraction(3, 10**5000)]
        self.assertEqual(len({key(value) for value in huge for key in (self.key, self.typed)}), 2 * len(huge))
        self.assertEqual(self.key(1e300), self.key(int(1e300)))
        self.assert_no_key({10**5000: object()}, "has no key")

    def test_a_list_is_not_a_tuple(self):
        for key in (self.key, self.typed):
            for one, other in (([1, 9], (1, 9)), ([[1]], [(1,)]), ({"a": [1]}, {"a": (1,)}), (Point([]), Point(()))):
                self.assertNotEqual(key(one), key(other))

    def test_arrays(self):
        array = numpy.arange(6)
        arrays = [
            array, array.reshape(2, 3), array.reshape(3, 2), array.astype("f8"), array.astype("i4"), array[:0],
            array > 2, array + 1, numpy.zeros((0, 1)), numpy.zeros((1, 0)), numpy.array(5), array.astype("M8[s]"),
            array.astype("M8[h]"), array.astype("U1"), array.astype("S1"), numpy.zeros(1, "i4,f4"),
            numpy.zeros(1, "i4,u4"), numpy.zeros(1, [("a", "i4")]), numpy.zeros(1, [("b", "i4")]),
            numpy.longdouble("0.1") * array,
        ]
        self.assertEqual(len({self.key(value) for value in arrays}), len(arrays))
        # By their elements, whatever their place in memory.
        self.assertEqual(self.key(array.reshape(2, 3)), self.key(numpy.asfortranarray(array.reshape(2, 3))))
        self.assertEqual(self.key(array[::2]), self.key(array[::2].copy()))
        self.assertEqual(self.key(numpy.longdouble(1) / 3), self.key(numpy.longdouble(1) / 3))
        self.assert_no_key(numpy.array([1, "a"], dtype=object), "numpy's type object has no key")
        self.assert_no_key(numpy.ma.array([1]), "MaskedArray has no key")

    def test_models_are_equal_by_their_fields(self):
        one, other = Model(x=1), Model(x=1)
        self.assertIsNotNone(one.computed)
        self.assertEqual(self.key(one), self.key(other))
        self.assert_no_key(ModelByItself(x=1), "the model .*ModelByItself compares by an __eq__ of its own")

    def test_dataclasses_that_do_not_compare_by_their_fields(self):
        for value in (Unequal(1), ByItself(1)):
            self.assert_no_key(value, f"{type(value).__name__} does not compare by its fields")

    def test_subclasses_of_builtin_types(self):
        self.assert_no_key(CaselessText("a"), "CaselessText compares by an __eq__ of its own")
        for value in (types.SimpleNamespace(), type("Mine", (dict,), {})(), type("Mine", (list,), {})(), object()):
            self.assert_no_key(value, "a value of type .* has no key: give memoize.key=.* __cache_key__")

    def test_values_that_are_equal_and_yet_differ(self):
        for values in (
            [noted(Text("a"), 1), noted(Text("a"), 2), Text("a"), "a"],
            [noted(SlotText("a"), 1), noted(SlotText("a"), 2), SlotText("a")],
            [collections.deque([1]), collections.deque([1], 1), collections.deque([1], 2)],
            [collections.defaultdict(int), collections.defaultdict(list), collections.defaultdict(None), {}],
            [numpy.float64(1), numpy.float32(1), numpy.int64(1), 1],
        ):
            self.assertEqual(len({self.key(value) for value in values}), len(values), values)

    def test_attributes_of_the_object_alone_make_no_key(self):
        class Proxy:
            def __getattr__(self, name):
                return lambda: 1

        self.assert_no_key(Proxy(), "Proxy has no key")

    def test_zones_without_a_name(self):
        with open(next(pathlib.Path(root, "Europe/Berlin") for root in zoneinfo.TZPATH
                       if pathlib.Path(root, "Europe/Berlin").exists()), "rb") as file:
            zone = zoneinfo.ZoneInfo.from_file(file)
        for value in (zone, NOON.replace(tzinfo=zone), NOON.time().replace(tzinfo=zone)):
            self.assert_no_key(value, "without a key has no key")


def made(base, **content):
    return type("Made", (base,), content | {"__module__": __name__, "__qualname__": "Made"})


class ClassesTest(KeysCase):
    """Classes whose name another class has, or may have."""

    def test_classes_of_a_factory(self):
        for kind in (made(object), made(object)):
            self.assert_no_key(kind, "the class .*Made is not what its module has by this name.*top level of a module")

        def make():
            class Local:
                pass

            return Local

        self.assert_no_key(make(), "make.<locals>.Local is made in a function, so that another class may have its name")

    def test_values_of_such_classes(self):
        model = pydantic.create_model("Made", __module__=__name__, x=(int, ...))
        values = [
            enum.Enum("Made", "A", module=__name__).A, made(Keyed)(1), model(x=1),
            dataclasses.make_dataclass("Made", ["x"], module=__name__)(1) if sys.version_info >= (3, 12)
            else dataclasses.dataclass(made(object, __annotations__={"x": int}))(1),
        ]
        for value in values:
            self.assert_no_key(value, "the class .*Made is not what its module has by this name")
            self.assert_no_key([{"a": value}], r"argument '\*args'\[0\]\[0\]\['a'\] of ")

    def test_named_tuples_are_equal_by_their_elements(self):
        one, other = collections.namedtuple("Made", "x"), collections.namedtuple("Made", "y")
        self.assertEqual(self.key(one(1)), self.key(collections.namedtuple("Made", "x")(1)))
        self.assertNotEqual(self.key(one(1)), self.key(other(1)))


class MessagesTest(unittest.TestCase):
    def setUp(self):
        self.objects = haypile.Objects("memory:size=1MiB")
        self.addCleanup(self.objects.close)

    def assert_message(self, function, args, named, text):
        text = f"^argument {text}: a value of type builtins.object has no key: give memoize"
        with self.assertRaisesRegex(TypeError, text):
            self.objects.memoize(name="n")(function).cache_key(*args, **named)

    def test_the_function_and_the_parameter_are_named(self):
        thing = object()

        def load(path, *rest, mode="r", **options):
            pass

        name = f"of {__name__}.MessagesTest.*load"
        self.assert_message(load, (thing,), {}, f"'path' {name}")
        self.assert_message(load, ("a", 1, thing), {}, rf"'\*rest'\[1\] {name}")
        self.assert_message(load, ("a",), {"mode": thing}, f"'mode' {name}")
        self.assert_message(load, ("a",), {"other": thing}, f"'other' {name}")
        self.assert_message(load, ([1, (2, {"a": thing})],), {}, rf"'path'\[1\]\[1\]\['a'\] {name}")
        self.assert_message(load, ({thing},), {}, f"'path' element {name}")
        self.assert_message(load, (Point(thing),), {}, rf"'path'\.x {name}")
        self.assert_message(load, (Keyed(thing),), {}, rf"'path'\.__cache_key__\(\) {name}")
        self.assert_message(max, (1, thing), {}, "2 of builtins.max")

    def test_errors_of_a_method_of_an_argument_stay(self):
        class Failing:
            def __cache_key__(self):
                raise TypeError("its own")

        Failing.__qualname__ = "Failing"
        module = sys.modules[__name__]
        module.Failing = Failing
        self.addCleanup(delattr, module, "Failing")
        with self.assertRaisesRegex(TypeError, "^its own$"):
            self.objects.memoize(name="n")(function).cache_key(Failing())


class MadeTest(unittest.TestCase):
    """Classes that others may have the names of."""

    def setUp(self):
        objects = haypile.Objects("memory:size=8MiB")
        self.addCleanup(objects.close)
        self.key = objects.memoize(name="f")(lambda value: None).cache_key

    def test_subclasses_of_texts_numbers_and_named_tuples_that_a_function_makes(self):
        def made(base, *arguments):
            class Made(base):
                def render(self):
                    return arguments
            return Made(*arguments)
        for base, arguments in ((str, ("a",)), (int, (1,)), (float, (1.5,)), (bytes, (b"a",)), (OtherPair, (1, 2))):
            with self.assertRaisesRegex(TypeError, "is made in a function"):
                self.key(made(base, *arguments))
        plain = collections.namedtuple("Made", "a b")
        self.assertNotEqual(self.key(plain(1, 2)), self.key(plain(2, 1)))

    def test_scalars_of_numpy_that_are_more_than_their_elements(self):
        class Meters(numpy.float64):
            pass
        with self.assertRaises(TypeError):
            self.key(Meters(1.0))
        self.assertNotEqual(self.key(numpy.float64(1.0)), self.key(numpy.float64(2.0)))

    def test_zones_that_somebody_has_given_a_name(self):
        files = [pathlib.Path(place) / "Europe" / "Berlin" for place in zoneinfo.TZPATH]
        found = next((file for file in files if file.exists()), None)
        if found is None:
            self.skipTest("a system without zones: apt-get install tzdata")
        with found.open("rb") as file:
            zone = zoneinfo.ZoneInfo.from_file(file, key="Asia/Tokyo")
        for value in (zone, datetime.datetime(2026, 1, 1, tzinfo=zone)):
            with self.assertRaisesRegex(TypeError, "is not the zone Asia/Tokyo"):
                self.key(value)
        self.key(zoneinfo.ZoneInfo("Asia/Tokyo"))

    def test_values_that_contain_themselves(self):
        loop = []
        loop.append(loop)
        with self.assertRaisesRegex(TypeError, "contains itself, or is too deep"):
            self.key(loop)
