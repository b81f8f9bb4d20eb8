"""Files of other users, and files on a disk that is full."""

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import traceback
import unittest

import haypile
import urls

# No machine needs that many seconds.
PATIENCE = 120
SECRET = b"a secret of sixteen bytes or more"


def as_user(user, work):
    """Calls `work` in a child that is this user; returns the type of what it raised, and its text."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(PATIENCE)
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            try:
                found = ("returned", work())
            except Exception as error:
                found = (type(error).__name__, error)
            os.write(write, "{}\n{}".format(*found).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(write)
    with open(read, encoding="utf-8") as pipe:
        name, _, text = pipe.read().partition("\n")
    if os.waitpid(pid, 0)[1] != 0:
        raise ChildProcessError(f"{name} {text}")
    return name, text


@unittest.skipUnless(os.geteuid() == 0, "only root becomes another user")
class UserTest(unittest.TestCase):
    def setUp(self):
        try:
            self.nobody = pwd.getpwnam("nobody")
        except KeyError:
            self.skipTest("this system has no user 'nobody'")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        os.chmod(directory.name, 0o755)
        self.url = urls.shared(directory.name)
        self.path = self.url.removeprefix("file:").partition(",")[0]
        with haypile.open(self.url) as cache:
            haypile.Objects(cache, "pickle")["key"] = "root's"

    def own(self, uid, mode):
        os.chown(self.path, uid, -1)
        os.chmod(self.path, mode)

    def check_refused(self, found, name, text):
        self.assertEqual(found[0], name, found)
        self.assertRegex(found[1], text)
        self.assertIn(self.path, found[1])

    def test_a_file_of_root_alone(self):
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)
        for options in ("", ",allow_shared=yes", ",mode=ro", ",mode=copy", ",recreate=yes"):
            found = as_user(self.nobody, lambda: haypile.open(f"file:{self.path}{options}"))
            self.check_refused(found, "OpenError", "Permission denied")
        with haypile.open(self.url) as cache:
            self.assertEqual(haypile.Objects(cache, "pickle")["key"], "root's")

    def test_a_directory_of_root(self):
        new = f"{os.path.dirname(self.path)}/new.haypile"
        name, text = as_user(self.nobody, lambda: haypile.open(f"file:{new},size=2MiB"))
        self.assertEqual(name, "OpenError")
        self.assertRegex(text, f"{new}.*Permission denied")
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [os.path.basename(self.path)])

    def test_a_file_that_others_own_or_write(self):
        for uid, mode, text in ((self.nobody.pw_uid, 0o600, "belongs to another user"), (0, 0o666, "mode 666"),
                                (0, 0o660, None), (0, 0o602, "mode 602")):
            self.own(uid, mode)
            with self.subTest(uid=uid, mode=oct(mode)):
                if text is not None:
                    with self.assertRaisesRegex(haypile.OpenError, text):
                        haypile.open(self.url)
                with haypile.open(f"{self.url},allow_shared=yes") as cache:
                    self.assertIsNotNone(cache.get("key"))
                    for sign in (None, SECRET):
                        with self.assertRaisesRegex(haypile.UnsafePickle, self.path):
                            haypile.Objects(cache, "pickle", sign=sign)
        # The owner itself may.
        self.own(self.nobody.pw_uid, 0o600)
        found = as_user(self.nobody, lambda: haypile.Objects(haypile.open(self.url), "pickle")["key"])
        self.assertEqual(found, ("returned", "root's"))

    def test_a_cache_that_a_child_opens_as_another_user(self):
        with haypile.open(self.url) as cache:
            # The child opens the URL itself, and may not.
            self.check_refused(as_user(self.nobody, lambda: cache.get("key")), "OpenError", "Permission denied")
            self.assertIsNotNone(cache.get("key"))


@contextlib.contextmanager
def raises(kind, *texts):
    """As a test's assertRaisesRegex, in a script."""
    try:
        yield
    except kind as error:
        for text in texts:
            if text not in str(error):
                raise AssertionError(f"{error} without {text}") from error
    else:
        raise AssertionError(f"no {kind.__name__}")


def on_a_full_disk(directory):
    """Uses caches in the directory of a file system of 8 MiB, before and after it is full."""
    path = os.path.join(directory, "{}.haypile").format
    with haypile.open(f"file:{path('first')},size=2MiB") as cache:
        cache["key"] = b"value"
    sparse_copy(path("first"), path("sparse"))
    snapshot = os.path.join(directory, "snapshot")
    saved = haypile.open(f"memory:size=4MiB,persist={snapshot}")
    saved["key"] = b"old"
    saved.close()
    before = sorted(os.listdir(directory))
    with raises(haypile.OpenError, path("large"), "no room", "No space left"):
        haypile.open(f"file:{path('large')},size=16MiB")
    assert sorted(os.listdir(directory)) == before
    with open(os.path.join(directory, "filler"), "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    before = sorted(os.listdir(directory))

    with raises(haypile.OpenError, path("second"), "no room", "No space left"):
        haypile.open(f"file:{path('second')},size=2MiB")
    # A write to a page that was never allocated would end the process.
    with raises(haypile.OpenError, path("sparse"), "no room", "No space left"):
        haypile.open(f"file:{path('sparse')}")
    # An old file stays where a new one has no room.
    with raises(haypile.OpenError, path("first"), "no room"):
        haypile.open(f"file:{path('first')},size=4MiB,recreate=yes")
    # All of an existing file is there, and it is overwritten several times.
    with haypile.open(f"file:{path('first')}") as cache:
        assert cache["key"] == b"value"
        objects = haypile.Objects(cache, "pickle", sign=SECRET)
        for number in range(4000):
            objects["large"] = value = number.to_bytes(2) * 1000
            cache[f"key {number}"] = value
            assert objects["large"] == value == cache[f"key {number}"]
        assert cache.get_or_compute("computed", 60, lambda: b"computed") == b"computed"
        assert cache.stats().evictions > 0
    # What cannot be saved is an error, and the old snapshot stays.
    saved = haypile.open(f"memory:size=4MiB,persist={snapshot}")
    assert saved["key"] == b"old"
    saved.set_many({f"key {number}": os.urandom(1000) for number in range(1000)})
    with raises(haypile.BackendError, snapshot, "No space left"):
        saved.close()
    assert sorted(os.listdir(directory)) == before, os.listdir(directory)
    # With room again, everything works again.
    os.unlink(os.path.join(directory, "filler"))
    haypile.open(f"file:{path('sparse')}").close()
    with haypile.open(f"memory:size=4MiB,persist={snapshot}") as saved:
        assert saved["key"] == b"old"
    print("done")


def sparse_copy(source, destination):
    """Copies a file without its pages of zeros."""
    with open(source, "rb") as read, open(destination, "wb") as write:
        os.fchmod(write.fileno(), 0o600)
        while page := read.read(4096):
            if any(page):
                write.write(page)
            else:
                write.seek(len(page), os.SEEK_CUR)
        write.truncate(os.stat(source).st_size)
    assert os.stat(destination).st_blocks < os.stat(source).st_blocks


@unittest.skipUnless(sys.platform == "linux", "it mounts Linux's tmpfs")
class FullDiskTest(unittest.TestCase):
    """A file system in memory, in a mount namespace that ends with its process."""

    def namespace(self):
        """The command that runs another where it may mount."""
        ways = [["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]]
        for way in ways:
            with contextlib.suppress(OSError):
                if subprocess.run([*way, "true"], stderr=subprocess.DEVNULL, timeout=PATIENCE).returncode == 0:
                    return way
        if os.environ.get("HAYPILE_REQUIRE_NAMESPACES"):
            self.fail("namespaces are required, and 'unshare --mount' does not work here")
        self.skipTest("'unshare --mount' does not work here")

    def test_errors_are_clear(self):
        with tempfile.TemporaryDirectory() as directory:
            urls.shared(directory)
            script = 'mount -t tmpfs -o size=8m none "$1" && exec "$2" -B "$3" "$1"'
            child = subprocess.run([*self.namespace(), "sh", "-c", script, "sh", directory, sys.executable, __file__],
                                   stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
            # A negative number would be that of a signal, such as SIGBUS.
            self.assertEqual((child.returncode, child.stdout), (0, "done\n"))


if __name__ == "__main__" and len(sys.argv) == 2 and os.path.isdir(sys.argv[1]):
    on_a_full_disk(sys.argv[1])
elif __name__ == "__main__":
    unittest.main()
