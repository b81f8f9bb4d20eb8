"""Pickles are loaded only where nobody else can have written them, however a cache came to have them."""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

import haypile
import planted
import urls
from test_fork import in_child

SECRET = "a secret of this program"


class TrustTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)
        planted.Planted.loaded = 0

    def open(self, url):
        cache = haypile.open(url)
        self.addCleanup(cache.close)
        return cache

    def snapshot(self, mode):
        """The URL of a cache whose snapshot has a pickle of others, and this mode."""
        path = self.directory / "snapshot"
        url = f"memory:size=1MiB,persist={path},allow_shared=yes"
        with haypile.open(url) as cache:
            haypile.Objects(cache, "pickle").set("key", planted.Planted())
        path.chmod(mode)
        return url

    def test_a_snapshot_that_others_can_write_is_refused(self):
        url = self.snapshot(0o666)
        for opened in (url, f"{url},compress=lz4", f"{url},record={self.directory / 'recording'}"):
            with self.assertRaisesRegex(haypile.UnsafePickle, "snapshot can be read or written by others"):
                haypile.Objects(self.open(opened), "pickle")
        self.assertIsNone(haypile.Objects(self.open(url)).get("key"))
        self.assertEqual(planted.Planted.loaded, 0)

    def test_a_snapshot_of_this_user_alone_is_loaded(self):
        self.assertEqual(haypile.Objects(self.open(self.snapshot(0o600)), "pickle").get("key"), "loaded")

    def test_levels_are_as_safe_as_each_of_them(self):
        path = self.directory / "cache"
        url = f"memory:size=1MiB -> file:{path},size=1MiB,allow_shared=yes"
        haypile.Objects(self.open(url), "pickle")
        path.chmod(0o666)
        with self.assertRaises(haypile.UnsafePickle):
            haypile.Objects(self.open(url), "pickle")

    def test_a_file_is_judged_as_it_was_opened(self):
        path = self.directory / "cache"
        cache = self.open(f"file:{path},size=1MiB")
        path.rename(self.directory / "moved")
        path.write_bytes(b"")
        path.chmod(0o666)
        haypile.Objects(cache, "pickle")

    @unittest.skipUnless(hasattr(os, "fork"), "a system without forks")
    def test_a_child_looks_again(self):
        path = self.directory / "snapshot"
        objects = haypile.Objects(self.open(f"memory:size=1MiB,persist={path},allow_shared=yes"), "pickle")
        objects.set("key", "ours")
        # Another one has put a file there; the child loads it when it opens the cache again.
        self.snapshot(0o666)

        def use():
            with self.assertRaises(haypile.UnsafePickle):
                objects.get("key")
            assert planted.Planted.loaded == 0
        self.assertTrue(in_child(use))
        self.assertEqual(objects.get("key"), "ours")

        def use_own():
            assert objects.get("key") == "loaded"
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
        self.assertTrue(in_child(use_own))


class SignatureTest(unittest.TestCase):
    def setUp(self):
        self.url = urls.file(self)

    def objects(self, serializer, namespace=None):
        url = self.url if namespace is None else f"{self.url},namespace={namespace}"
        objects = haypile.Objects(url, serializer, sign=SECRET)
        self.addCleanup(objects.close)
        return objects

    def test_signed_bytes_are_not_taken_for_those_of_another_serializer(self):
        planted.Planted.loaded = 0
        uploads, pickles = self.objects((bytes, bytes)), self.objects("pickle")
        # What a user uploads is a pickle, and somebody who can write to the cache moves it.
        uploads.set("key", haypile._serializers._pickle_dumps(planted.Planted()))
        self.assertIsNone(pickles.get("key"))
        self.assertEqual(planted.Planted.loaded, 0)
        for one, other in (("json", "pickle"), ("pickle", "json"), ("json", (str.encode, bytes.decode))):
            self.objects(one).set("key", ["value"] if one != "json" else "text")
            self.assertIsNone(self.objects(other).get("key"))
            self.assertIsNotNone(self.objects(one).get("key"))

    def test_serializers_of_one_name_are_told_apart(self):
        def of(prefix):
            return (lambda text: prefix + text.encode(), lambda data: data.removeprefix(prefix).decode())
        one, other = self.objects(of(b"1")), self.objects(of(b"2"))
        one.set("key", "text")
        self.assertIsNone(other.get("key"))
        self.assertEqual(self.objects(of(b"1")).get("key"), "text")
        with self.assertRaisesRegex(TypeError, "cannot be told apart from others.*name="):
            self.objects(of(object()))
        named = haypile.Serializer(*of(object()), name="mine")
        haypile.Objects(self.url, named, sign=SECRET).close()

    def test_a_script_and_the_processes_that_it_spawns_have_the_same_names(self):
        program = """if True:
            import multiprocessing, sys
            import haypile

            def dumps(value):
                return repr(value).encode()

            def loads(data):
                return data.decode()

            def read(url):
                assert haypile.Objects(url, (dumps, loads), sign="a secret of this program").get("key") == "[1]"

            if __name__ == "__main__":
                haypile.Objects(sys.argv[1], (dumps, loads), sign="a secret of this program").set("key", [1])
                process = multiprocessing.get_context("spawn").Process(target=read, args=sys.argv[1:])
                process.start()
                process.join()
                sys.exit(process.exitcode)
        """
        with tempfile.TemporaryDirectory() as directory:
            script = pathlib.Path(directory) / "script.py"
            script.write_text(program)
            done = subprocess.run([sys.executable, script, self.url], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_values_do_not_move_between_namespaces(self):
        a, b, none = self.objects("json", "a"), self.objects("json", "b"), self.objects("json")
        a.set("key", {"tenant": "a"})
        for other in (b, none):
            other.cache.set("key", a.cache.get("key"))
            self.assertIsNone(other.get("key"))
        self.assertEqual(a.get("key"), {"tenant": "a"})

    def test_levels_share_the_signatures_of_their_last_one(self):
        below = self.objects("json", "a")
        above = haypile.Objects(f"memory:size=1MiB -> {self.url},namespace=a", sign=SECRET)
        self.addCleanup(above.close)
        below.set("key", "value")
        self.assertEqual(above.get("key"), "value")

    def test_digits_that_are_no_number_are_signed(self):
        texts = self.objects((str.encode, bytes.decode))
        texts.set("key", "1000")
        self.assertNotEqual(texts.cache.get("key"), b"1000")
        self.assertEqual(texts.get("key"), "1000")
        texts.cache.set("key", b"0")
        self.assertIsNone(texts.get("key"))
        for serializer in ("json", "pickle", "msgpack"):
            numbers = self.objects(serializer)
            numbers.set("count", 7)
            self.assertEqual(numbers.cache.get("count"), b"7")
            self.assertEqual((numbers.incr("count"), numbers.get("count")), (8, 8))
            for other in (True, "7", [7], 7.0, -7):
                numbers.set("other", other)
                self.assertEqual(numbers.get("other"), other)
                self.assertFalse(numbers.cache.get("other").isdigit(), (serializer, other))

    def test_another_writer_of_the_same_serializer_reads_them(self):
        self.objects((str.encode, bytes.decode)).set("key", "text")
        self.assertEqual(self.objects((str.encode, bytes.decode)).get("key"), "text")


if __name__ == "__main__":
    unittest.main()
