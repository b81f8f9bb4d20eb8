"""JSON in pieces: the standard library's results and errors, whatever the pieces are."""

import collections
import enum
import json
import math
import random
import threading
import unittest
from unittest import mock

from haypile import _json


def plain_dumps(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def outcome(function, argument):
    """Returns the result of a call, with the type and the text of an error, and with what an error carries."""
    try:
        value = function(argument)
    except Exception as error:
        details = [getattr(error, name, None) for name in ("msg", "doc", "pos", "object", "start", "end", "reason")]
        return type(error), str(error), details, type(error.__context__)
    # The text of a value tells 1 from 1.0 and True, and NaN is equal to itself in it; orders of keys count.
    return repr(value)


class Colour(enum.IntEnum):
    RED = 7


class Text(str):
    __slots__ = ()

    def __len__(self):
        raise AssertionError("the length of a subclass was asked for")


class Number(int):
    __slots__ = ()

    def __repr__(self):
        return "not a number"


class Items(dict):
    """A dict with members of its own."""

    def items(self):
        return [("of its own", 1), *super().items()]


class Sequence(list):
    """A list with items of its own."""

    def __iter__(self):
        return iter(["of its own", *super().__iter__()])


class Lists(dict):
    """A dict whose members are not pairs."""

    def items(self):
        return [list(member) for member in super().items()]


class Slices(str):
    """A text with slices of its own."""

    __slots__ = ()

    def __getitem__(self, index):
        return "not a part"


class Unequal(str):
    """A key that is equal to others only later."""

    __slots__ = ()
    is_equal = False

    def __eq__(self, other):
        return self.is_equal

    def __hash__(self):
        return 1


Point = collections.namedtuple("Point", "x y")

SCALARS = [
    *(None, True, False, 0, -1, 7, 10**30, -(10**400), 1.5, -0.0, 1e300, 5e-324, math.inf, -math.inf, math.nan),
    *("", "a", 'quote " inside', "back\\slash", "\\", '\\"', "[{,:}]", "\n\t\x00\x1f\x7f"),
    *(0.1 + 0.2, "\N{SNOWMAN}\u00e9", "\U0001f600"),
    *("x" * 300, "\N{SNOWMAN}\\" * 90, "\U0001f600" * 70, "\n" * 50, '"' * 33),
]
ODD = [Colour.RED, Text("text"), Slices("text"), Number(5), Point(1, "b"), Items(a=2), Sequence([1])]
ODD += [collections.OrderedDict(b=1, a=2)]
WRONG = [object(), Lists(a=1), {1}, b"bytes", "\ud800", {(1, 2): 3}, {b"key": 1}, 10**5000, 1j]
KEYS = [None, True, False, 0, 1, -5, 1.5, math.nan, math.inf, "1", "true", "", "\N{SNOWMAN}", 'a"b']
KEYS += [Colour.RED, Text("k"), Number(3)]


def random_value(rng, depth, odd=0.0, wrong=0.0):
    if rng.random() < wrong:
        return rng.choice(WRONG)
    if rng.random() < odd:
        return rng.choice(ODD)
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(SCALARS)
    length = rng.choice([0, 1, 2, 3, 5, 20])
    items = [random_value(rng, depth - 1, odd, wrong) for _ in range(length)]
    kind = rng.random()
    if kind < 0.4:
        return items
    if kind < 0.5:
        return tuple(items)
    return {rng.choice(KEYS) if rng.random() < 0.3 else f"key {rng.randrange(40)}": item for item in items}


class PiecesTest(unittest.TestCase):
    """Tests with pieces of a few bytes."""

    def set_pieces(self, size):
        # No pauses: there are thousands of pieces.
        for name, value in {
            "SHORT": size * 8,
            "CHUNK_BYTES": size,
            "CHUNK_CHARACTERS": size,
            "RUN_ITEMS": max(1, size // 8),
            "TURN_SECONDS": 3600,
        }.items():
            patch = mock.patch.object(_json, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def check_dumps(self, value):
        self.assertEqual(outcome(_json.dumps, value), outcome(plain_dumps, value))

    def check_dumps_in_pieces(self, value):
        """Checks a value that the encoder does not get as a whole, not even after an error."""
        with mock.patch.object(_json, "_encode", side_effect=_json._encode) as encode:
            self.assertEqual(_json.dumps(value), plain_dumps(value))
        self.assertFalse(any(call.args[0] is value for call in encode.call_args_list))

    def check_loads(self, data):
        self.assertEqual(outcome(_json.loads, data), outcome(json.loads, data))


    def check_loads_in_pieces(self, data):
        """Checks a text that the decoder does not get as a whole, not even after an error."""
        with mock.patch.object(_json, "json") as module:
            value = outcome(_json.loads, data)
        if len(data) > _json.SHORT:
            self.assertFalse(module.loads.called)
            self.assertEqual(value, outcome(json.loads, data))
        else:
            self.check_loads(data)

class DumpsTest(PiecesTest):
    def test_random_values(self):
        rng = random.Random(1)
        for size in (1, 8, 16, 40, 200, 1000):
            self.set_pieces(size)
            for case in range(80):
                value = random_value(rng, rng.randrange(6), odd=rng.choice([0, 0.05]), wrong=rng.choice([0, 0, 0.01]))
                with self.subTest(size=size, case=case):
                    self.check_dumps(value)
                    if case % 10 == 0:
                        self.check_dumps([value, [value] * 3, {"a": value, "b": value}])

    def test_pieces_are_used(self):
        self.set_pieces(8)
        value = {"list": [{"id": i, "text": "x" * 30, 5: [None]} for i in range(50)], "text": "long " * 100}
        with mock.patch.object(_json, "_encode", side_effect=_json._encode) as encode:
            self.assertEqual(_json.dumps(value), plain_dumps(value))
        self.assertLessEqual(max(len(repr(call.args[0])) for call in encode.call_args_list), 100)
        self.assertGreater(encode.call_count, 100)

    def test_values_of_default_size(self):
        for value in (
            [{"id": i, "name": f"name {i}"} for i in range(5000)],
            {f"key {i}": i / 7 for i in range(5000)},
            list(range(20000)),
            "text \N{SNOWMAN}\n" * 30000,
            {"text" * 30000: ["text" * 30000]},
            [[[[i] * 40] * 40] * 4 for i in range(3)],
        ):
            self.check_dumps(value)
            self.assertEqual(_json.loads(_json.dumps(value)), value)

    def test_each_wrong_or_odd_value_in_each_container(self):
        self.set_pieces(2)
        for value in (*WRONG, *ODD, *SCALARS):
            for padded in (
                *(value, [value], [[1] * 50, value, [1] * 50], {"a": value}, {"a": "x" * 300, "b": value}),
                *((1, value) * 20, Point("x" * 300, value), Items(a=value), Sequence([value] * 20)),
                *(collections.OrderedDict([("b", [value] * 50), ("a", value)]), [Text("x" * 900), value]),
            ):
                with self.subTest(value=value, padded=type(padded)):
                    self.check_dumps(padded)

    def test_each_key(self):
        self.set_pieces(2)
        for key in (*KEYS, (1, 2), b"key", "\udc80", object(), frozenset(), "k" * 500):
            for value in (1, [1] * 50, "x" * 300):
                self.check_dumps({"before": 1, key: value, "after": [2] * 50})
        # Equal for JSON, and not for a dict.
        self.check_dumps({1: "x" * 300, "1": "x" * 300, True: 5, "true": [1] * 50})
        keys = [Unequal(key) for key in "abcabc"]
        value = dict.fromkeys(keys, 1)
        Unequal.is_equal = True
        self.addCleanup(setattr, Unequal, "is_equal", False)
        self.set_pieces(100)
        self.check_dumps({"before": [1] * 50, "value": value})
        self.check_dumps({float("nan"): 1, float("nan"): [1] * 50, "a": 2})

    def test_circular_values(self):
        self.set_pieces(2)
        for around in ([], [1] * 50, ["x" * 300]):
            inner = [*around]
            outer = {"a": {"b": [*around, inner]}}
            inner.append(outer)
            for value in (inner, outer):
                self.check_dumps(value)
                with self.assertRaisesRegex(ValueError, "Circular reference detected"):
                    _json.dumps(value)
        # It is noticed at once, not after writing what is around it many times.
        wide = [*["x" * 300] * 20]
        wide.append(wide)
        with mock.patch.object(_json._Writer, "_write_text") as write_text, self.assertRaises(ValueError):
            _json.dumps(wide)
        self.assertEqual(write_text.call_count, 20)
        # The same object twice is not circular.
        shared = ["x" * 300]
        self.check_dumps_in_pieces([shared, shared, {"a": shared, "b": [shared]}])

    def test_deep_values(self):
        self.set_pieces(2)
        for depth in (10, 150, 250, 100_000):
            for wrap in (
                lambda value: [value],
                lambda value: {"a": value},
                lambda value: (value, "x" * 30),
                lambda value: {"a": "x" * 300, "b": value, "c": [1] * 50},
            ):
                value = 1
                for _ in range(depth):
                    value = wrap(value)
                with self.subTest(depth=depth):
                    self.check_dumps(value)

    def test_deep_values_in_pieces(self):
        self.set_pieces(2)
        value = 1
        for _ in range(490):
            value = {"a": "x" * 300, "b": value}
        self.check_dumps_in_pieces(value)

    def test_subclasses_in_pieces(self):
        self.set_pieces(2)
        many = {f"key {i}": i for i in range(50)}
        for value in (collections.OrderedDict(many), collections.defaultdict(int, many), collections.Counter(many)):
            self.check_dumps_in_pieces(value)
        self.check_dumps_in_pieces(Point([1] * 50, many))

    def test_concurrent_changes(self):
        # Each is of a kind that stays a JSON text of this shape; nothing else may be raised.
        value = {"list": [[i] for i in range(50)], "dict": {str(i): [i] for i in range(50)}}
        self.set_pieces(2)
        is_done = threading.Event()

        def change():
            while not is_done.is_set():
                value["list"].append([1])
                value["dict"]["new"] = 1
                del value["list"][0], value["dict"]["new"]

        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(50):
                self.assertEqual(list(json.loads(_json.dumps(value))), ["list", "dict"])
        finally:
            is_done.set()
            thread.join()

    def test_change_of_a_dict_between_pieces(self):
        self.set_pieces(2)
        value = {"a": "x" * 300, "b": 1}
        encode = _json._encode

        def grow(argument):
            value.setdefault("c", "y" * 300)
            return encode(argument)

        with mock.patch.object(_json, "_encode", grow):
            self.assertEqual(_json.dumps(value), plain_dumps(value))


class LoadsTest(PiecesTest):
    SPACES = ["", "", "", " ", "\n", "\t \r\n", " " * 30]

    def spaced(self, rng, text):
        """Returns a JSON text with spaces where they are allowed, and with other escapes."""
        parts = []
        is_inside = is_escaped = False
        for character in text:
            is_structure = not is_inside and character in "[]{},:"
            space = rng.choice(self.SPACES) if is_structure else ""
            parts.append(f"{space}{character}{space}")
            if is_inside:
                is_inside = character != '"' or is_escaped
                is_escaped = character == "\\" and not is_escaped
            elif character == '"':
                is_inside = True
        return "".join(parts)

    def random_text(self, rng):
        value = random_value(rng, rng.randrange(6))
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=rng.random() < 0.5)
        return self.spaced(rng, text).encode() if rng.random() < 0.3 else text.encode()

    def mutated(self, rng, data):
        data = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            at = rng.randrange(len(data) + 1)
            token = rng.choice(
                [*b'[]{},:"\\ 0a\xff\xed\x80\x00\n', b",,", b"[]", b"{}", b'"a":', b"][", b"},{", b'","', b'""',
                 b"\\ud83d", b"\\ude00", b"\\u12", b"\xed\xa0\xbd", b"NaN", b"1.", b"-", b"null", b"/**/"]
            )
            token = bytes([token]) if isinstance(token, int) else token
            kind = rng.random()
            if kind < 0.4:
                data[at:at] = token
            elif kind < 0.6:
                data[at : at + len(token)] = token
            elif kind < 0.8:
                del data[at : at + rng.choice([1, 1, 2, 10])]
            elif kind < 0.9:
                del data[at:]
            else:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[min(at, other) : max(at, other)]
        return bytes(data)

    def test_random_texts_and_mutations(self):
        rng = random.Random(2)
        for size in (1, 2, 5, 16, 60, 300):
            self.set_pieces(size)
            for case in range(40):
                data = self.random_text(rng)
                with self.subTest(size=size, case=case):
                    self.check_loads(data)
                    for _ in range(10):
                        self.check_loads(self.mutated(rng, data))

    def test_random_texts_in_pieces(self):
        rng = random.Random(6)
        # In pieces of one byte, `{}` is one that can be a mistake.
        for size in (2, 5, 16, 60, 300):
            self.set_pieces(size)
            for case in range(40):
                with self.subTest(size=size, case=case):
                    self.check_loads_in_pieces(plain_dumps([random_value(rng, 5), "x" * 3000]))

    def test_each_truncation(self):
        text = json.dumps([{"a": [1, "\U0001f600\\"], "b": {"c": None}}, "text", -1.5e3])
        data = self.spaced(random.Random(3), text).encode()
        for size in (1, 4, 20):
            self.set_pieces(size)
            for end in range(len(data) + 1):
                self.check_loads(data[:end])

    def test_short_texts_of_structure(self):
        # All texts of few tokens: right ones, and each way to be wrong.
        self.set_pieces(1)
        tokens = [b"[", b"]", b"{", b"}", b",", b":", b'"a"', b"1", b" "]
        texts = [b""]
        for _ in range(4):
            texts = [text + token for text in texts for token in tokens]
            for text in texts:
                for outer in (b"%b", b'["long text",%b]', b'{"k":[2],%b}'):
                    data = outer.replace(b"%b", text)
                    if outcome(_json.loads, data) != outcome(json.loads, data):
                        self.fail(f"{data!r} is read as {outcome(_json.loads, data)}")

    def test_pieces_are_used(self):
        self.set_pieces(16)
        value = {"list": [{"id": i, "text": "x" * 8, "5": [None]} for i in range(50)], "text": "long\u00e9\n" * 100}
        for data in (plain_dumps(value), json.dumps(value, indent=1).encode()):
            with mock.patch.object(_json, "_decode", side_effect=_json._decode) as decode:
                self.assertEqual(_json.loads(data), value)
            self.assertLessEqual(max(len(call.args[0]) for call in decode.call_args_list), 60)
            self.assertGreater(decode.call_count, 50)

    def test_texts_are_cut_at_characters(self):
        characters = ["a", "\u00e9", "\N{SNOWMAN}", "\U0001f600", "\\\\", "\\n", '\\"', "\\u00e9"]
        characters += ["\\ud83d\\ude00", "\\uD83D\\uDE00", "\\udbff\\udfff", "\\ud83d", "\\ude00"]
        rng = random.Random(4)
        texts = [(character * 40).encode() for character in characters]
        texts += ["".join(rng.choices(characters, k=40)).encode() for _ in range(100)]
        # Halves of characters, of UTF-16 in UTF-8.
        texts += [b"\xed\xa0\xbd\xed\xb8\x80" * 30, b"\xed\xa0\xbd\\ude00" * 30, b"\\ud83d\xed\xb8\x80" * 30]
        for size in (1, 9, 10, 11, 12, 13, 30):
            self.set_pieces(size)
            for text in texts:
                for data in (b'"%b"' % text, b'["%b"]' % text, b'[1, {"a":1, "%b" : "%b" } ]' % (text, text)):
                    self.check_loads_in_pieces(data)

    def test_encodings(self):
        self.set_pieces(4)
        for text in ('["a", 1, {"b": null}, "\N{SNOWMAN}"]', '"a text"', "[]", '{"a": "b"}', "1", ""):
            for encoding in ("8", "8-sig", "16", "16-le", "16-be", "32", "32-le", "32-be"):
                self.check_loads(text.encode(f"utf-{encoding}"))

    def test_numbers_and_constants(self):
        self.set_pieces(4)
        numbers = "1 -0 0.5 1e5 1E-5 -1.5e+3 NaN Infinity -Infinity 01 1. .5 +1 nan - 1e 0x1 tru nulll".split()
        for number in [*numbers, "1" * 400, "1" * 5000, "1." + "3" * 400, "9" * 400 + ".5"]:
            for form in ("%s", "[%s]", "[1, 2, %s, 3]", '{"a": %s, "b": [1, 2, 3]}', '[[1, 2, 3], %s]'):
                self.check_loads(form.replace("%s", number).encode())

    def test_duplicate_keys(self):
        self.set_pieces(3)
        rng = random.Random(5)
        for _ in range(200):
            keys = rng.choices(['"a"', '"b"', '"c"'], k=8)
            values = rng.choices(["1", "[1, 2, 3]", "{}", '"a long text"'], k=8)
            members = ", ".join(f"{key}: {value}" for key, value in zip(keys, values))
            self.check_loads(f"{{{members}}}".encode())

    def test_deep_texts(self):
        self.set_pieces(4)
        for depth in (10, 200, 300, 600, 100_000):
            for opener, closer in ((b"[", b"]"), (b'{"a":', b"}"), (b'["long text",', b',"long text"]')):
                for end in (closer * depth, closer * (depth - 1), closer * (depth + 1), b"", b"]}" * depth):
                    data = opener * depth + b"1" + end
                    with self.subTest(depth=depth, data=data[:20]):
                        self.assertEqual(self.deep_outcome(_json.loads, data), self.deep_outcome(json.loads, data))

    def deep_outcome(self, function, data):
        """Returns the outcome of a call; a value as its levels, since its text would be too deep."""
        levels = []

        def load(data):
            value = function(data)
            while isinstance(value, (list, dict)):
                levels.append((type(value), len(value)))
                value = value["a"] if isinstance(value, dict) else value[-2:][0]
            return value

        return outcome(load, data), levels

    def test_buffers(self):
        data = plain_dumps([{"id": i, "name": f"name {i}"} for i in range(5000)])
        for buffer in (bytearray(data), memoryview(data), memoryview(bytearray(data)), memoryview(data)[:-1]):
            self.assertEqual(outcome(_json.loads, buffer), outcome(json.loads, bytes(buffer)))
        for length in (0, 3, _json.SHORT - 1, _json.SHORT, _json.SHORT + 1, 2 * _json.SHORT):
            data = b" " * (length - 3) + b"[1]"[-length:] if length else b""
            self.check_loads(data)
            self.assertEqual(outcome(_json.loads, memoryview(data)), outcome(json.loads, data))

    def test_other_types(self):
        for value in (None, 5, ["a"]):
            with self.assertRaises(TypeError):
                _json.loads(value)


class IsShortTest(unittest.TestCase):
    def test_costs(self):
        for value, cost in (
            (None, 64),
            (10**400, 64),
            ("", 64),
            ("abc", 67),
            ("\N{SNOWMAN}" * 3, 67),
            ([], 64),
            ([1, "ab"], 3 * 64 + 2),
            ((1, (2,)), 4 * 64),
            ({"ab": "c", 1: [None]}, 6 * 64 + 3),
            (Point("a", 1), 3 * 64 + 1),
            # Classes whose own code is not run.
            (Text("abc"), 64),
            (Items(a=1), 3 * 64 + 1),
            (Sequence([1, 2]), 3 * 64),
            ({1}, 64),
        ):
            with self.subTest(value=value):
                self.assertTrue(_json.is_short(value, cost))
                self.assertFalse(_json.is_short(value, cost - 1))
        self.assertFalse(_json.is_short(None, 0))

    def test_default(self):
        self.assertTrue(_json.is_short([1] * 1000))
        self.assertFalse(_json.is_short([1] * 1100))
        self.assertTrue(_json.is_short("x" * 65_000))
        self.assertFalse(_json.is_short("x" * 66_000))

    def test_circular_and_deep_values(self):
        circular = []
        circular.append(circular)
        self.assertFalse(_json.is_short(circular))
        deep = []
        for _ in range(100_000):
            deep = [deep]
        self.assertFalse(_json.is_short(deep))


if __name__ == "__main__":
    unittest.main()
