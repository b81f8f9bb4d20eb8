"""haypile.cachelib, in addition to cachelib's own tests, which make test-suites runs; under Flask as well."""

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import haypile
import test_fork
import urls
from planted import Planted

try:
    import cachelib
except ImportError:
    raise unittest.SkipTest("cachelib is not installed: pip install 'haypile[cachelib]'") from None

from cachelib.serializers import BaseSerializer, JSONSerializer

from haypile.cachelib import HaypileCache

try:
    import flask
except ImportError:
    flask = None
try:
    import flask_caching
except ImportError:
    flask_caching = None
try:
    import flask_session
except ImportError:
    flask_session = None

# No machine needs that many seconds.
PATIENCE = 60

SECRET = "a secret of these tests"


class DerivedJson(JSONSerializer):
    """Of which nobody knows what it loads."""


class CachelibTest(unittest.TestCase):
    """Over a file."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)
        self.url = urls.shared(holder.name)

    def cache(self, *args, **named):
        cache = HaypileCache(*(args or (self.url,)), **named)
        self.addCleanup(cache.close)
        return cache

    def test_entries_of_another_secret_are_misses(self):
        first, second = self.cache(sign=SECRET), self.cache(sign="another secret of them")
        first.set("key", "first", 0)
        self.assertIsNone(second.get("key"))
        self.assertFalse(second.has("key"))
        self.assertEqual(second.get_many("key"), [None])
        self.assertTrue(second.add("key", "second"))
        self.assertEqual(second.get("key"), "second")
        self.assertIsNone(first.get("key"))

    def test_a_set_after_a_miss_does_not_undo_a_deletion(self):
        other = self.cache()
        for many in (False, True):
            cache = self.cache(leases=True)
            self.assertEqual(cache.get_many("key", "other") if many else [cache.get("key"), None], [None, None])
            # Somebody else has changed what the value is made of.
            other.delete("key")
            if many:
                self.assertEqual(cache.set_many({"key": "old", "other": "kept"}), ["other"])
                self.assertEqual(cache.get("other"), "kept")
            else:
                self.assertFalse(cache.set("key", "old"))
            self.assertIsNone(other.get("key"))
            # That was the miss's one write. The next follows the miss of its own.
            self.assertIsNone(cache.get("key"))
            self.assertTrue(cache.set("key", "new"))
            self.assertTrue(cache.set("key", "newer"), "it knows more than a miss")
            self.assertEqual(other.get("key"), "newer")
            other.delete_many("key", "other")
        without = self.cache()
        self.assertIsNone(without.get("key"))
        other.delete("key")
        self.assertTrue(without.set("key", "old"))
        # Of another thread, a miss says nothing.
        thread = threading.Thread(target=cache.get, args=("absent",))
        thread.start()
        thread.join()
        other.delete("absent")
        self.assertTrue(cache.set("absent", "value"))

    def test_a_planted_pickle_is_not_loaded(self):
        Planted.loaded = 0
        with haypile.open(self.url) as raw:
            raw.set("key", pickle.dumps(Planted()))
        signed = self.cache(sign=SECRET)
        self.assertIsNone(signed.get("key"))
        self.assertFalse(signed.has("key"))
        self.assertEqual(Planted.loaded, 0)
        self.assertEqual(self.cache().get("key"), "loaded")
        self.assertEqual(Planted.loaded, 1)

    def test_a_file_that_others_can_read_is_refused(self):
        self.cache()
        os.chmod(self.directory / "shared.haypile", 0o644)
        for options in ({}, {"sign": SECRET}, {"serializer": BaseSerializer()}, {"serializer": DerivedJson()}):
            with self.assertRaisesRegex(haypile.UnsafePickle, "mode 644"):
                self.cache(**options)
        cache = self.cache(serializer=JSONSerializer())
        cache.set("key", "value")
        cache.serializer = BaseSerializer()
        with self.assertRaises(haypile.UnsafePickle):
            cache.get("key")

    def test_timeouts(self):
        raw = haypile.open(self.url)
        self.addCleanup(raw.close)
        cache = self.cache(default_timeout=1000)
        cache.set("default", 1)
        cache.set("forever", 1, 0)
        cache.set("ten", 1, 10)
        self.assertTrue(990 < raw.ttl("default") <= 1000)
        self.assertIsNone(raw.ttl("forever"))
        self.assertTrue(0 < raw.ttl("ten") <= 10)
        cache.set("ten", 1, -1)
        self.assertIsNone(cache.get("ten"))
        self.assertTrue(cache.add("ten", 1, -1))
        self.assertIsNone(cache.get("ten"))
        self.assertFalse(cache.add("forever", 2, -1))
        # New numbers have the default, and others keep theirs.
        cache.inc("new")
        cache.dec("below")
        cache.dec("forever", 5)
        self.assertTrue(990 < raw.ttl("new") <= 1000)
        self.assertTrue(990 < raw.ttl("below") <= 1000)
        self.assertIsNone(raw.ttl("forever"))
        self.assertIsNone(_ttl_of(self.cache(default_timeout=0), raw))

    def test_values_that_are_too_large(self):
        cache = self.cache(urls.MEMORY)
        large = b"x" * (16 << 20)
        cache.set_many({"set": "old", "many": "old"})
        self.assertFalse(cache.set("set", large))
        self.assertIsNone(cache.get("set"))
        self.assertEqual(cache.set_many({"many": large, "small": "new"}), ["small"])
        self.assertEqual(cache.get_many("many", "small"), [None, "new"])
        self.assertFalse(cache.add("add", large))

    def test_a_refusal_is_counted_and_raises_nothing(self):
        opened = urls.Busy("memory:size=1MiB")
        self.addCleanup(opened.close)
        cache = HaypileCache(opened)
        cache.set("old", "value")
        self.assertFalse(cache.set("old", bytes(2 << 20)))
        self.assertIsNone(cache.get("old"))
        self.assertEqual(cache.set_many({"one": bytes(2 << 20)}), [])
        self.assertFalse(cache.add("new", bytes(2 << 20)))
        self.assertEqual(opened.stats().refused_values, 2)

    def test_what_cannot_be_pickled(self):
        for serializer in ("pickle", BaseSerializer()):
            with self.assertRaises((pickle.PickleError, AttributeError)):
                self.cache(urls.MEMORY, serializer=serializer).set("key", lambda: None)

    def test_an_opened_cache_and_prefixes(self):
        raw = haypile.open(self.url)
        self.addCleanup(raw.close)
        first, second = self.cache(raw, key_prefix="1:"), self.cache(raw, key_prefix="2:")
        first.set("key", 1)
        self.assertIsNone(second.get("key"))
        self.assertEqual(raw.get("1:key"), b"1")
        second.clear()
        self.assertIsNone(first.get("key"))

    def test_clear_of_a_namespace(self):
        sessions, pages = self.cache(self.url + ",namespace=sessions"), self.cache(self.url + ",namespace=pages")
        sessions.set("key", 1)
        pages.set("key", 2)
        pages.clear()
        self.assertIsNone(pages.get("key"))
        self.assertEqual(sessions.get("key"), 1)

    def test_processes_share_numbers(self):
        program = ("import sys, test_cachelib\n"
                   "cache = test_cachelib.HaypileCache(sys.argv[1], sign=test_cachelib.SECRET)\n"
                   "for _ in range(200):\n"
                   "    cache.inc('up'); cache.dec('down')\n")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        processes = [subprocess.Popen([sys.executable, "-c", program, self.url], env=environment) for _ in range(3)]
        for process in processes:
            self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(self.cache(sign=SECRET).get_many("up", "down"), [600, -600])

    def test_threads_share_a_cache(self):
        cache = self.cache()
        threads = [threading.Thread(target=lambda: [cache.dec("down") for _ in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(cache.get("down"), -400)

    def test_forks(self):
        cache = self.cache()
        cache.set("key", "parent's")

        def exercise():
            self.assertEqual(cache.get("key"), "parent's")
            cache.set("key", "child's")

        self.assertTrue(test_fork.in_child(exercise))
        self.assertEqual(cache.get("key"), "child's")


def _ttl_of(cache, raw):
    cache.inc("of zero")
    return raw.ttl("of zero")


@unittest.skipUnless(flask and flask_caching, "Flask-Caching is not installed")
class FlaskCachingTest(unittest.TestCase):
    """An application with Flask-Caching, by the name of the class."""

    def application(self, url, **options):
        app = flask.Flask("application")
        app.config.update(CACHE_TYPE="haypile.cachelib.HaypileCache", CACHE_OPTIONS={"url": url, **options},
                          CACHE_DEFAULT_TIMEOUT=100)
        cache = flask_caching.Cache(app)
        self.addCleanup(app.extensions["cache"][cache].close)
        calls = []

        @app.route("/")
        @cache.cached()
        def page():
            calls.append("page")
            return f"page {len(calls)}"

        @cache.memoize(60)
        def square(number):
            calls.append(number)
            return number * number

        return app, cache, square, calls

    def test_application(self):
        with tempfile.TemporaryDirectory() as directory:
            url = urls.shared(directory)
            app, cache, square, calls = self.application(url, sign=SECRET, key_prefix="pages:")
            backend = app.extensions["cache"][cache]
            self.assertIsInstance(backend, HaypileCache)
            self.assertEqual(backend.default_timeout, 100)
            client = app.test_client()
            self.assertEqual({client.get("/").text for _ in range(3)}, {"page 1"})
            with app.app_context():
                self.assertEqual([square(3), square(3)], [9, 9])
                self.assertEqual(calls, ["page", 3])
                cache.delete_memoized(square)
                self.assertEqual(square(3), 9)
                self.assertEqual(calls, ["page", 3, 3])
            # Another application, as another worker is, finds the page.
            other, _, _, calls = self.application(url, sign=SECRET, key_prefix="pages:")
            self.assertEqual(other.test_client().get("/").text, "page 1")
            self.assertEqual(calls, [])
            with app.app_context():
                cache.clear()
            self.assertEqual(client.get("/").text, "page 4")


@unittest.skipUnless(flask and flask_session, "Flask-Session is not installed")
class FlaskSessionTest(unittest.TestCase):
    """An application with Flask-Session, by an instance."""

    def application(self, url):
        app = flask.Flask("application")
        cache = HaypileCache(url, sign=SECRET)
        self.addCleanup(cache.close)
        app.config.update(SESSION_TYPE="cachelib", SESSION_CACHELIB=cache)
        flask_session.Session(app)

        @app.route("/count")
        def count():
            flask.session["count"] = flask.session.get("count", 0) + 1
            return str(flask.session["count"])

        @app.route("/end")
        def end():
            flask.session.clear()
            return ""

        return app

    def test_application(self):
        with tempfile.TemporaryDirectory() as directory:
            url = urls.shared(directory)
            app = self.application(url)
            client = app.test_client()
            self.assertEqual([client.get("/count").text for _ in range(2)], ["1", "2"])
            self.assertEqual(app.test_client().get("/count").text, "1")
            # Another worker knows the session.
            other = self.application(url).test_client()
            other.set_cookie("session", client.get_cookie("session").value)
            self.assertEqual(other.get("/count").text, "3")
            client.get("/end")
            self.assertEqual(other.get("/count").text, "1")


if __name__ == "__main__":
    unittest.main()
