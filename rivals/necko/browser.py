"""A Firefox of the runner's own: its start, its settings, the calls of its privileged context, and its end."""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import guard
from job import JobError

# How long it may take to start, to do what is not timed, and to do nothing at all while it should do something.
SECONDS = 60
SECONDS_NAME = "HAYPILE_FIREFOX_SECONDS"
PAUSE_SECONDS = 0.05
# Its work after a start is over when it takes less than this share of a processor.
QUIET_SECONDS, QUIET_SHARE, MAX_QUIET_SECONDS = 0.25, 0.1, 5
# The same for one that has already done a job. Its clocks count nanoseconds.
KEPT_QUIET_SECONDS = 0.025
# How long its processes may take to stop. One that waits for a disk stops after that.
STOP_SECONDS, STOP_PAUSE_SECONDS = 10, 0.001
# A browser that takes less processor time than this has stopped.
WORKING_NS = 100_000
LOG_BYTES = 600
VERSION = re.compile(r"Firefox [0-9][\w.]*")

# The sizes of the source, in KB of 1,024 bytes, as the browser counts them.
DISK_KB, MEMORY_KB = 1_048_576, 51_200

# Settings of the cache that are the same for all subjects.
CACHE_PREFERENCES = {
    "browser.cache.disk.smart_size.enabled": False,
    "browser.cache.disk.max_entry_size": -1,
    "browser.cache.memory.max_entry_size": -1,
    # Builds that have it (153 has not) race the network against a slow disk.
    "network.http.rcwn.enabled": False,
}

# A port on which nobody answers.
CLOSED_PORT = 1

# What a browser does by itself: it would be counted as work of the cache, or ask hosts elsewhere.
QUIET_PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.auto": False,
    "app.update.disabledForTesting": True,
    "browser.aboutwelcome.enabled": False,
    "browser.newtabpage.enabled": False,
    "browser.safebrowsing.blockedURIs.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.search.update": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.startup.page": 0,
    "datareporting.healthreport.uploadEnabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.ipc.processPrelaunch.enabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.systemAddon.update.enabled": False,
    "extensions.update.enabled": False,
    "marionette.port": 0,
    "media.gmp-manager.updateEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disablePrefetch": True,
    # A build may ignore that its settings come from nowhere; what it wants by https ends here.
    "network.dns.forceResolve": "127.0.0.1",
    "network.socket.forcePort": f"443={CLOSED_PORT}",
    "network.http.speculative-parallel-limit": 0,
    "network.prefetch-next": False,
    "network.proxy.type": 0,
    "privacy.reduceTimerPrecision": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.enabled": False,
    "toolkit.telemetry.server": "",
    "toolkit.telemetry.unified": False,
}


def cache_preferences(disk_kb, memory_kb):
    """Returns the settings of caches of these sizes; `None` is a cache that is off."""
    return {
        "browser.cache.disk.enable": disk_kb is not None,
        "browser.cache.memory.enable": memory_kb is not None,
        "browser.cache.disk.capacity": DISK_KB if disk_kb is None else disk_kb,
        "browser.cache.memory.capacity": MEMORY_KB if memory_kb is None else memory_kb,
    }


def end_in_order():
    """Has this process end in order, and its browser with it, when it is asked to."""
    def interrupted(number, _frame):
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)


def program():
    """Returns the browser: the named build, or that of the system."""
    named = os.environ.get("HAYPILE_FIREFOX")
    if named:
        found = shutil.which(named)
        if found is None:
            raise JobError(f"HAYPILE_FIREFOX is '{named}', and there is no such program")
        return os.path.abspath(found)
    found = shutil.which("firefox-esr") or shutil.which("firefox")
    if found is None:
        raise JobError("there is no Firefox; run: apt-get install firefox-esr")
    return found


def version():
    """Returns the version of the browser without starting it as a whole."""
    return _version_of(program())


@functools.cache
def _version_of(path):
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=15,
                              env={**os.environ, "MOZ_CRASHREPORTER_DISABLE": "1"}).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JobError(f"{path} does not tell its version: {error}") from None
    found = VERSION.search(said)
    if found is None:
        raise JobError(f"{path} is not a Firefox: it says {said[:80]!r} for --version")
    return found.group()


def script_file(name):
    """Returns a script of this folder, for the browser."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def patience():
    """Returns the limit of everything that the runner waits for, in seconds."""
    text = os.environ.get(SECONDS_NAME) or str(SECONDS)
    if not text.isdecimal() or not 0 < int(text) <= 3600:
        raise JobError(f"{SECONDS_NAME} is '{text}'; it is from 1 to 3600")
    return int(text)


class Group:
    """The processes of the runner and of its browser: the runner's process group, as far as it leads one."""

    def __init__(self):
        # A killed runner leaves its group to the guard, which therefore must not be that of somebody else.
        if os.getpgrp() != os.getpid():
            os.setpgid(0, 0)
        self.number = os.getpgrp()

    def cpu_ns(self, spared=()):
        """Returns the processor time of all processes and of their ended children, except for those that are spared."""
        tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        total = 0
        for pid, fields in self._members():
            if pid in spared:
                continue
            with contextlib.suppress(OSError):
                # The clock that clock_getcpuclockid makes in Linux.
                total += time.clock_gettime_ns((~pid << 3) | 2) + tick * (int(fields[13]) + int(fields[14]))
        return total

    def pss_bytes(self):
        """Returns the proportional memory of the browser's processes; `None` where the system does not tell."""
        total = 0
        for pid, _ in self._members():
            if pid == os.getpid():
                continue
            try:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
                total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
            except (OSError, StopIteration):
                return None
        return total

    def stop(self):
        """Stops the browser's processes: they take no processor time until `go_on`."""
        deadline = time.monotonic() + STOP_SECONDS
        # One that is not yet stopped may start another one.
        while running := [pid for pid, (state, *_) in self._others() if state not in (b"T", b"t")]:
            if time.monotonic() > deadline:
                raise JobError(f"processes of the browser did not stop within {STOP_SECONDS} s: {running}")
            self._signal(running, signal.SIGSTOP)
            time.sleep(STOP_PAUSE_SECONDS)

    def go_on(self):
        """Has the processes go on that `stop` has stopped."""
        self._signal([pid for pid, _ in self._others()], signal.SIGCONT)

    @staticmethod
    def _signal(pids, number):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _others(self):
        """Returns the living processes but the runner."""
        gone = (b"Z", b"X")
        return [(pid, fields) for pid, fields in self._members() if pid != os.getpid() and fields[0] not in gone]

    def _members(self):
        for entry in os.listdir("/proc"):
            if entry.isdecimal():
                with contextlib.suppress(OSError):
                    fields = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
                    if int(fields[2]) == self.number:
                        yield int(entry), fields


class Browser:
    """A headless Firefox on a profile of its own, driven by Marionette in its privileged context."""

    # All that the browser writes, in the working directory.
    FOLDER = "necko"

    def __init__(self, preferences, further=None):
        """Makes one with the preferences of its cache; `further` are others, or other values."""
        self._seconds = patience()
        self._further = further or {}
        self._preferences = preferences | CACHE_PREFERENCES | self._further
        self.group = Group()
        self.folder = os.path.abspath(self.FOLDER)
        self._profile = os.path.join(self.folder, "profile")
        # By it the guard finds processes that have left the group.
        self._mark = f"HAYPILE_NECKO={os.getpid()}:{self.folder}"
        self._process = self._wire = None
        self._calls = 0
        guard.remove(self._disposable())
        self._guard = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, "-S", "-B", guard.__file__, self._disposable(), str(self.group.number), self._mark],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def _disposable(self):
        """Returns the folder that is removed before the first start and after the end."""
        return self.folder

    def _definition(self):
        """Returns the script that defines `necko` in the browser, whose methods `call` calls."""
        is_on_disk = json.dumps(self._preferences["browser.cache.disk.enable"])
        return f"{script_file('necko.js')}\nglobalThis.necko = new Necko({is_on_disk});"

    def start(self):
        """Starts it, on the profile of an earlier start if there is one, and verifies its settings."""
        for folder in (self._profile, self._path("home"), self._path("tmp")):
            os.makedirs(folder, exist_ok=True)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
                 for name, value in (QUIET_PREFERENCES | self._preferences).items()]
        Path(self._profile, "user.js").write_text("".join(lines), encoding="ascii")
        port_file = Path(self._profile, "MarionetteActivePort")
        port_file.unlink(missing_ok=True)
        name, _, value = self._mark.partition("=")
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", name: value,
            "HOME": self._path("home"), "TMPDIR": self._path("tmp"), "XDG_RUNTIME_DIR": self._path("tmp"),
            # Its helper would leave the group.
            "MOZ_CRASHREPORTER_DISABLE": "1", "MOZ_HEADLESS": "1",
        }
        with open(self._path("log"), "ab") as log:
            try:
                self._process = subprocess.Popen(  # pylint: disable=consider-using-with
                    [program(), "--headless", "--no-remote", "--marionette", "--remote-allow-system-access",
                     "--profile", self._profile],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=environment)
            except OSError as error:
                raise JobError(f"the browser cannot be started: {error}") from None
        port = self._wait_for(lambda: _port(port_file), "open Marionette")
        self._wire = socket.create_connection(("127.0.0.1", port), self._seconds)
        self._wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._receive(self._seconds)
        self._command("WebDriver:NewSession", {})
        # The runner has limits of its own.
        self._command("WebDriver:SetTimeouts", {"script": 2**31 - 1})
        self._command("Marionette:SetContext", {"value": "chrome"})
        self._script("WebDriver:ExecuteScript", self._definition(), ())
        self._verify_settings()

    def call(self, method, *arguments, is_timed=False):
        """Calls a method of `Necko` in the browser and returns its result."""
        script = f"""const done = arguments[arguments.length - 1];
            Promise.resolve(globalThis.necko.{method}(...arguments[0])).then(
                value => done({{value: value ?? null}}), error => done({{error: String(error)}}));"""
        try:
            answer = self._script("WebDriver:ExecuteAsyncScript", script, [list(arguments)], is_timed)
        except TimeoutError:
            raise JobError(f"the browser did not finish '{method}' within {self._seconds} s") from None
        if "error" in answer:
            raise JobError(f"the browser's '{method}' failed: {answer['error']}")
        return answer["value"]

    def settle(self, quiet_seconds=QUIET_SECONDS):
        """Waits until the browser has done next to nothing for this long: until its own work after its start is over.
        It does not wait for long."""
        deadline = time.monotonic() + MAX_QUIET_SECONDS
        # The runner's own work is reading these times.
        own = (os.getpid(),)
        used = self.group.cpu_ns(spared=own)
        while time.monotonic() < deadline:
            time.sleep(quiet_seconds)
            before, used = used, self.group.cpu_ns(spared=own)
            if used - before < quiet_seconds * QUIET_SHARE * 1e9:
                return

    def rest(self):
        """Stops its processes until `go_on`."""
        self.group.stop()

    def go_on(self):
        """Has it go on after `rest`, and verifies its settings once more."""
        self.group.go_on()
        self._verify_settings()

    def is_running(self):
        """Whether its main process has not ended; it may be stopped."""
        return self._process is not None and self._process.poll() is None

    def has(self, preferences):
        """Whether these are the preferences of its cache."""
        return all(self._preferences[name] == self._further.get(name, value) for name, value in preferences.items())

    def quit(self):
        """Has it end in order, with everything written, and keeps its profile."""
        self._command("Marionette:Quit", {"flags": ["eForceQuit"]})
        self._wire.close()
        try:
            self._process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            raise JobError(f"the browser did not quit within {self._seconds} s") from None
        self._end_processes()

    def kill(self):
        """Kills it as it is, and keeps its profile."""
        self._wire.close()
        left = self._end_processes()
        if left:
            raise JobError(f"processes of the browser cannot be ended: {left}")

    def cache_files(self, folder=""):
        """Returns the files of the cache on disk; those of its entries are in the folder "entries"."""
        return [path for path in Path(self._profile, "cache2", folder).rglob("*") if path.is_file()]

    def end(self):
        """Kills it and its children, and removes the folder."""
        if self._wire is not None:
            self._wire.close()
        left = self._end_processes()
        guard.remove(self._disposable())
        with contextlib.suppress(OSError):
            self._guard.stdin.write("done\n")
            self._guard.stdin.close()
        self._guard.wait()
        if left:
            raise JobError(f"processes of the browser cannot be ended: {left}")

    def _end_processes(self):
        left = guard.end(self.group.number, self._mark.encode(), spared=(os.getpid(), self._guard.pid))
        if self._process is not None and not left:
            self._process.wait()
        return left

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _verify_settings(self):
        # A preference that is only in the profile may be one that nobody asks for.
        unknown = self.call("unknownSettings", list(self._further))
        if unknown:
            raise JobError(f"the browser has no preference {', '.join(unknown)}")
        has = self.call("settings", list(self._preferences))
        for name, value in self._preferences.items():
            if has[name] != value:
                raise JobError(f"the browser has {name} = {json.dumps(has[name])}, not {json.dumps(value)}")

    def _wait_for(self, found, what):
        """Waits until the browser has done something."""
        deadline = time.monotonic() + self._seconds
        while True:
            if self._process.poll() is not None:
                raise JobError(self._ended(f"before it could {what}"))
            result = found()
            if result is not None:
                return result
            if time.monotonic() > deadline:
                raise JobError(f"the browser did not {what} within {self._seconds} s{self._said()}")
            time.sleep(PAUSE_SECONDS)

    def _script(self, command, script, arguments, is_timed=False):
        # One sandbox of the privileged context, which keeps what the first script defines.
        parameters = {"script": script, "args": list(arguments), "sandbox": "system", "newSandbox": False}
        return self._command(command, parameters, is_timed)["value"]

    def _command(self, name, parameters, is_timed=False):
        self._calls += 1
        text = json.dumps([0, self._calls, name, parameters]).encode()
        try:
            self._wire.sendall(b"%d:%s" % (len(text), text))
            _, number, error, result = self._receive(None if is_timed else self._seconds)
        except TimeoutError:
            raise
        except OSError:
            raise JobError(self._ended("while it was used")) from None
        if number != self._calls:
            raise JobError(f"the browser answered call {number} instead of {self._calls}")
        if error:
            raise JobError(f"the browser refused {name}: {error.get('message', error)}")
        return result

    def _receive(self, limit):
        """Returns a message; without a limit, waits as long as the browser works."""
        data = b""
        head = None
        used, used_at, begin = 0, time.monotonic(), time.monotonic()
        self._wire.settimeout(1)
        while head is None or len(data) < head:
            try:
                piece = self._wire.recv(1 << 16)
            except TimeoutError:
                now = time.monotonic()
                if limit is not None and now - begin > limit:
                    raise
                if limit is None:
                    # Even a browser that only waits takes some time for its timers.
                    now_used = self.group.cpu_ns(spared=(os.getpid(),))
                    if now_used - used > WORKING_NS:
                        used, used_at = now_used, now
                    if now - used_at > self._seconds:
                        raise
                continue
            if not piece:
                raise ConnectionError("Marionette has closed")
            data += piece
            if head is None and b":" in data:
                digits, _, data = data.partition(b":")
                head = int(digits)
        return json.loads(data[:head])

    def _ended(self, when):
        """Returns the words for a browser that has ended."""
        try:
            status = self._process.wait(PAUSE_SECONDS * 20)
        except subprocess.TimeoutExpired:
            return f"the browser closed its connection {when}{self._said()}"
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return f"the browser ended with {how} {when}{self._said()}"

    def _said(self):
        """Returns the end of its output, for messages."""
        try:
            text = Path(self._path("log")).read_bytes()[-LOG_BYTES:].decode(errors="replace")
        except OSError:
            return ""
        return f": {' '.join(text.split())}" if text.strip() else ""


def _port(path):
    """Returns the port in a file that the browser writes."""
    try:
        text = path.read_text(encoding="ascii")
    except OSError:
        return None
    return int(text) if text.strip().isdecimal() else None
