"""Objects over a cache of bytes."""

import os
import pickle
import threading
import unittest

import haypile
import urls
from planted import Planted

PATIENCE = 60

SECRET = b"a secret of sixteen bytes or more"


class ObjectsTest(unittest.TestCase):
    def setUp(self):
        self.cache = haypile.open("memory:size=8MiB")
        self.addCleanup(self.cache.close)

    def test_each_serializer(self):
        values = [None, True, -5, 0, 7, 1 << 63, 1.5, "text \N{SNOWMAN}", [1, [2]], {"a": None}, ""]
        pairs = (lambda value: repr(value).encode(), lambda data: eval(data))
        for serializer in ("json", "pickle", pairs):
            objects = haypile.Objects(self.cache, serializer)
            for value in values:
                with self.subTest(serializer=serializer, value=value):
                    objects.set("key", value)
                    self.assertEqual(objects.get("key", "default"), value)
                    self.assertIs(type(objects["key"]), type(value))
        pickles = haypile.Objects(self.cache, "pickle")
        for value in (b"1", "1", (1, 2), {1, 2}, ValueError("a"), 1 << 64, -1):
            pickles["key"] = value
            self.assertEqual(repr(pickles["key"]), repr(value))
        with self.assertRaisesRegex(ValueError, "'xml' is unknown"):
            haypile.Objects(self.cache, "xml")

    def test_add_replaces_what_get_does_not_return(self):
        for url in ("memory:size=8MiB", urls.file(self)):
            with haypile.open(url) as cache:
                signed = haypile.Objects(cache, sign=SECRET)
                foreign = {
                    "no signature": lambda: cache.set("key", b'{"a": 1}'),
                    "the signature of another secret": lambda: haypile.Objects(cache, sign=SECRET * 2).set("key", "a"),
                    "the signature of another key": lambda: cache.set("key", cache.get("other")),
                    "another serializer": lambda: haypile.Objects(cache, "pickle").set("key", {"a"}),
                    "other bytes": lambda: cache.set("key", b"\x00\xff"),
                }
                signed.set("other", "value")
                for name, plant in foreign.items():
                    for objects in (signed, haypile.Objects(cache)):
                        plant()
                        if objects.get("key", "none") != "none":
                            continue
                        with self.subTest(url=url, foreign=name, objects=objects):
                            self.assertTrue(objects.add("key", "added", 60))
                            self.assertEqual(objects.get("key"), "added")
                            self.assertTrue(59 < objects.ttl("key") <= 60)
                            self.assertFalse(objects.add("key", "again"))
                            plant()
                            self.assertEqual(objects.get_or_set("key", "set", 60), "set")
                            self.assertEqual(objects.get("key"), "set")

    def test_add_leaves_a_value_that_another_writes_in_the_meantime(self):
        def loads(data):
            if data != b"foreign":
                return data
            # Another writer, after this one has found what it cannot load.
            self.cache.set("key", b"of another")
            raise ValueError("foreign")

        objects = haypile.Objects(self.cache, (bytes, loads))
        self.cache.set("key", b"foreign")
        self.assertFalse(objects.add("key", b"added"))
        self.assertEqual(self.cache["key"], b"of another")
        self.cache.set("key", b"foreign")
        self.assertEqual(objects.get_or_set("key", b"set"), b"of another")

        def always(data):
            self.cache.set("key", b"foreign")
            raise ValueError("foreign")

        with self.assertRaisesRegex(haypile.Busy, "1000 times"):
            haypile.Objects(self.cache, (bytes, always)).add("key", b"added")

    def test_operations(self):
        objects = haypile.Objects("memory:size=8MiB")
        self.addCleanup(objects.close)
        objects.set_many({"a": 1, "b": [2]})
        self.assertEqual(objects.get_many(["a", "b", "c"]), {"a": 1, "b": [2]})
        self.assertFalse(objects.add("a", 5))
        self.assertTrue(objects.replace("a", 5))
        self.assertEqual(objects.incr("a", 2), 7)
        self.assertEqual(objects.decr("new", 1, initial=4, ttl=50), 3)
        self.assertTrue(40 < objects.ttl("new") <= 50)
        self.assertEqual(objects.get_or_set("b", "other"), [2])
        self.assertEqual(objects.get_or_set("d", "other"), "other")
        self.assertEqual(objects.pop("b"), [2])
        self.assertEqual(objects.pop("b", None), None)
        with self.assertRaises(KeyError):
            objects.pop("b")
        self.assertIn("a", objects)
        self.assertTrue(objects.touch("a", 50))
        self.assertEqual(objects.delete_many(["a", "d", "x"]), 2)
        self.assertEqual(len(objects), 1)
        objects.set("none", None)
        self.assertIsNone(objects.get("none", "default"))
        self.assertIsNone(objects.get_or_compute("none", 50, lambda: "computed"))
        del objects["none"]
        with self.assertRaises(KeyError):
            objects["none"]

    def test_the_caller_that_computes_gets_its_object(self):
        objects = haypile.Objects(self.cache, "pickle")
        computed = [1, 2]
        self.assertIs(objects.get_or_compute("key", 50, lambda: computed), computed)
        again = objects.get_or_compute("key", 50, lambda: self.fail("it is there"))
        self.assertEqual(again, computed)
        self.assertIsNot(again, computed)
        with self.assertRaises(ZeroDivisionError):
            objects.get_or_compute("other", 50, lambda: 1 // 0)

    def test_an_object_that_cannot_be_dumped_leaves_the_old_one(self):
        objects = haypile.Objects(self.cache)
        objects["key"] = "old"
        with self.assertRaises(TypeError):
            objects["key"] = object()
        with self.assertRaises(TypeError):
            objects.get_or_compute("other", 50, object)
        self.assertEqual(objects["key"], "old")
        self.assertNotIn("other", objects)

    def test_an_object_that_asks_for_the_cache_while_it_is_dumped(self):
        objects = haypile.Objects(self.cache, "pickle")

        class Asks:
            def __reduce__(_):
                objects.set("inner", 1)
                return (int, (objects.get("inner"),))

        objects["outer"] = Asks()
        self.assertEqual(objects["outer"], 1)

    def test_bytes_that_are_no_object_are_a_miss(self):
        for serializer in ("json", "pickle"):
            objects = haypile.Objects(self.cache, serializer)
            for data in (b"", b"{", b"\x80\x05", os.urandom(50)):
                self.cache["key"] = data
                self.assertEqual(objects.get("key", "default"), "default")
                self.assertEqual(objects.get_many(["key"]), {})
                self.assertEqual(objects.get_or_compute("key", 50, lambda: "computed"), "computed")
                self.assertEqual(objects.get("key"), "computed")
                self.cache["key"] = data
                self.assertEqual(objects.get_or_set("key", "set"), "set")
                self.assertEqual(objects.get("key"), "set")


    def test_what_get_does_not_return_is_not_there(self):
        objects = haypile.Objects(self.cache)
        self.cache.set("key", b"not JSON", 60)
        self.assertNotIn("key", objects)
        self.assertFalse(objects.touch("key", 5))
        self.assertFalse(objects.replace("key", "replaced"))
        with self.assertRaises(KeyError):
            objects.ttl("key")
        self.assertEqual((self.cache.get("key"), self.cache.ttl("key") > 5), (b"not JSON", True))
        objects.set("key", None)
        self.assertIn("key", objects)
        self.assertTrue(objects.touch("key", 5) and objects.replace("key", "replaced", 7))
        self.assertEqual((objects.get("key"), 5 < objects.ttl("key") <= 7), ("replaced", True))

    def test_replace_leaves_no_value_that_another_deletes_in_the_meantime(self):
        class Contended(haypile.Cache):
            def get_versioned(self, key):
                found = super().get_versioned(key)
                self.delete(key)
                return found
        objects = haypile.Objects(Contended("memory:size=8MiB"))
        self.addCleanup(objects.close)
        objects.set("key", "value")
        self.assertFalse(objects.replace("key", "replaced"))
        self.assertIsNone(objects.get("key"))

    def test_a_refused_value_is_returned_and_counted(self):
        cache = haypile.open("memory:size=1MiB")
        self.addCleanup(cache.close)
        objects = haypile.Objects(cache)
        remembered = objects.memoize(name="long")(lambda: "x" * (2 << 20))
        self.assertEqual(remembered(), "x" * (2 << 20))
        with self.assertRaises(haypile.ValueTooLarge):
            objects.set("key", "x" * (2 << 20))
        self.assertEqual(cache.stats().refused_values, 1)

    def test_of_callers_that_cannot_load_a_value_one_computes(self):
        begun, may_end, calls, results = threading.Event(), threading.Event(), [], []

        def compute():
            calls.append(1)
            begun.set()
            may_end.wait(PATIENCE)
            return "computed"

        def get():
            results.append(objects.get_or_compute("key", 50, compute))

        with haypile.open(urls.file(self)) as shared:
            for cache in (self.cache, shared):
                objects = haypile.Objects(cache)
                cache["key"] = b"not JSON"
                for event in (begun, may_end):
                    event.clear()
                threads = [threading.Thread(target=get) for _ in range(4)]
                for thread in threads:
                    thread.start()
                self.assertTrue(begun.wait(PATIENCE))
                may_end.set()
                for thread in threads:
                    thread.join(PATIENCE)
        self.assertEqual(results, ["computed"] * 8)
        self.assertEqual(len(calls), 2)

    def test_what_others_go_on_writing_is_computed_each_time(self):
        calls = []

        class Contended(haypile.Cache):
            """A cache whose every deletion another program follows with a value of its own."""

            def compare_and_delete(self, *args):
                deleted = super().compare_and_delete(*args)
                self["key"] = b"not JSON either"
                return deleted

        objects = haypile.Objects(Contended("memory:size=8MiB"))
        self.addCleanup(objects.close)
        objects.cache["key"] = b"not JSON"
        self.assertEqual(objects.get_or_compute("key", 50, lambda: calls.append(1) or "computed"), "computed")
        self.assertEqual(objects.get("key"), "computed")
        self.assertEqual(len(calls), 1)


class SigningTest(unittest.TestCase):
    def setUp(self):
        self.cache = haypile.open("memory:size=8MiB")
        self.addCleanup(self.cache.close)
        self.objects = haypile.Objects(self.cache, "pickle", sign=SECRET)

    def test_what_is_not_signed_is_never_loaded(self):
        Planted.loaded = 0
        planted = pickle.dumps(Planted())
        self.objects["key"] = "value"
        signature = self.cache["key"][:16]
        for data in (planted, signature + planted, bytes(16) + planted, b""):
            self.cache["key"] = data
            self.assertEqual(self.objects.get("key", "default"), "default")
            self.assertEqual(self.objects.get_or_compute("key", 50, lambda: "computed"), "computed")
        self.assertEqual(Planted.loaded, 0)
        # The test can tell: without a signature it is loaded.
        self.cache["key"] = planted
        self.assertEqual(haypile.Objects(self.cache, "pickle")["key"], "loaded")
        self.assertEqual(Planted.loaded, 1)

    def test_a_signature_is_of_one_key_and_one_secret(self):
        self.objects["key"] = "value"
        self.cache["other"] = self.cache["key"]
        self.assertEqual(self.objects.get("other", "default"), "default")
        others = haypile.Objects(self.cache, "pickle", sign=b"another secret of some bytes")
        self.assertEqual(others.get("key", "default"), "default")
        self.assertEqual(self.objects.get("key"), "value")
        # Text and bytes are the same key.
        self.assertEqual(self.objects.get(b"key"), "value")
        for short in ("short", [SECRET, b"short"]):
            with self.assertRaisesRegex(ValueError, "16 bytes"):
                haypile.Objects(self.cache, sign=short)
        with self.assertRaisesRegex(ValueError, "no secret"):
            haypile.Objects(self.cache, sign=[])

    def test_the_secret_is_changed_without_a_loss(self):
        self.objects["old"] = "value"
        new = "the next secret of some bytes"
        changed = haypile.Objects(self.cache, "pickle", sign=(new, SECRET))
        self.assertEqual(changed.get("old"), "value")
        changed["new"] = "value"
        self.assertEqual(haypile.Objects(self.cache, "pickle", sign=new).get_many(["old", "new"]), {"new": "value"})
        self.assertEqual(self.objects.get_many(["old", "new"]), {"old": "value"})
        # An accepted signature is of one key too.
        self.cache["other"] = self.cache["old"]
        self.assertIsNone(changed.get("other"))

    def check_refused(self, objects, key, data):
        """Each way to read an entry of these bytes is a miss, and loads nothing."""
        cache, default = objects.cache, object()
        remembered = objects.memoize(key=lambda: "", name=key)(lambda: "computed")
        for read, expected in (
                (lambda: objects.get(key, default), default), (lambda: objects.get_many([key]), {}),
                (lambda: objects.pop(key, default), default), (lambda: objects.get_or_set(key, "new"), "new"),
                (lambda: objects.get_or_compute(key, 50, lambda: "computed"), "computed"),
                (lambda: objects.get_or_compute(key, 50, lambda: "computed", stale=5), "computed")):
            cache[key] = data
            self.assertEqual(read(), expected, data)
        cache[f"{key}:"] = data
        self.assertEqual(remembered(), "computed", data)
        cache[key] = data
        with self.assertRaises(KeyError):
            objects[key]
        self.assertEqual(Planted.loaded, 0)

    def test_every_way_to_read_verifies(self):
        Planted.loaded = 0
        with haypile.open(urls.file(self)) as shared:
            for cache in (self.cache, shared):
                objects = haypile.Objects(cache, "pickle", sign=SECRET)
                others = haypile.Objects(cache, "pickle", sign=SECRET[::-1])
                others["key"] = Planted()
                others["key:"] = Planted()
                forged = [cache["key"], cache["key:"], pickle.dumps(Planted()), b"", cache["key"][:16]]
                # Signed by this secret, under other keys.
                for other in ("other", "ke", "key\0", "Key", "", "ey", "3:key", "k" * 300):
                    objects[other] = Planted()
                    forged.append(cache[other])
                # A value of another key that begins with the rest of this one.
                longer = haypile.Objects(cache, (lambda value: b"y" + pickle.dumps(value), bytes), sign=SECRET)
                longer["ke"] = Planted()
                forged.append(cache["ke"][:16] + cache["ke"][17:])
                for data in forged:
                    self.check_refused(objects, "key", data)
                # What was written under the key itself is loaded.
                objects["key"] = "value"
                self.assertEqual(objects["key"], "value")

    def test_every_damage_is_noticed(self):
        Planted.loaded = 0
        self.objects["key"] = Planted()
        data = self.cache["key"]

        def damaged():
            for bit in range(8 * len(data)):
                yield (int.from_bytes(data, "big") ^ 1 << bit).to_bytes(len(data), "big")
            for length in range(len(data)):
                yield data[:length]
                yield data[length + 1:]
                yield data[:length] + b"\0" + data[length:]
            yield data + b"\0"
            yield data + data
            yield data[16:] + data[:16]

        found = 0
        for found, forged in enumerate(damaged()):
            self.cache["key"] = forged
            if not forged.isdigit():
                self.assertEqual(self.objects.get("key", "default"), "default", forged)
        self.assertGreater(found, 8 * len(data))
        self.assertEqual(Planted.loaded, 0)
        self.cache["key"] = data
        self.assertEqual((self.objects["key"], Planted.loaded), ("loaded", 1))

    def test_digits_are_numbers_at_most(self):
        for digits, number in ((b"7", 7), (b"007", 7), (b"9" * 4000, 10**4000 - 1), (b"1" * 5000, None)):
            self.cache["key"] = digits
            self.assertEqual(self.objects.get("key"), number)

    def test_counters_are_counted(self):
        self.objects["count"] = 5
        self.assertEqual(self.objects.incr("count"), 6)
        self.assertEqual(self.objects["count"], 6)


class SafetyTest(unittest.TestCase):
    def test_pickles_are_loaded_from_a_file_of_this_user_alone(self):
        url = urls.file(self)
        path = url.removeprefix("file:").partition(",")[0]
        with haypile.open(url) as cache:
            haypile.Objects(cache, "pickle")["key"] = {1}
            for mode in (0o640, 0o606, 0o660):
                os.chmod(path, mode)
                for sign in (None, SECRET):
                    with self.assertRaisesRegex(haypile.UnsafePickle, f"mode {mode:o}"):
                        haypile.Objects(cache, "pickle", sign=sign)
                haypile.Objects(cache, "json")
            os.chmod(path, 0o600)
            self.assertEqual(haypile.Objects(cache, "pickle")["key"], {1})

    def test_pickles_of_a_server_are_signed(self):
        with haypile.open(f"memory:size=2MiB -> {urls.memcached(self)}") as cache:
            with self.assertRaisesRegex(haypile.UnsafePickle, "others can write to memcached:"):
                haypile.Objects(cache, "pickle")
            haypile.Objects(cache, "pickle", sign=SECRET)
