#!/usr/bin/env python3
"""Loads pages in Chromium, as orders say: a loader of `haypile lab pages --browser chromium`.

    PYTHON rivals/chromium/run.py list-subjects
    PYTHON rivals/chromium/run.py run-pages

PYTHON needs the package playwright (`make target/report-test/ready`), and the system Debian's package
chromium. The protocol is that of crates/haypile-pages/src/orders.rs: lines of JSON. The first line
has the orders, and the answer is "ready"; then {"load": N} is answered by a report, and "flush" by the
time that it took. The loader ends with its input.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

ABOUT = "Chromium's own HTTP cache, headless"
# Chromium has this many connections to a host over HTTP/1.1, and no switch for it.
CONNECTIONS = 6
# A load in which nothing happens for this long is over.
PATIENCE_SECONDS = 30
# The interval at which the events of the browser are read. No time is measured by it.
POLL_MS = 5
# A folder in the working directory: the user's data, with the cache.
PROFILE = "chromium"
UNITS = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


class Refused(Exception):
    """Orders that this loader cannot follow, in words for people."""


def program():
    """The browser of the system."""
    found = os.environ.get("HAYPILE_CHROMIUM") or shutil.which("chromium") \
        or shutil.which("chromium-browser")
    if found is None:
        raise Refused("there is no chromium; run: apt-get install chromium")
    return found


def driver():
    """The start of playwright."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise Refused("there is no playwright in this Python; run: make target/report-test/ready") \
            from error
    return sync_playwright


def version():
    """The version of the browser."""
    said = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True,
                          timeout=30).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return found.group() if found else said.strip()


class CacheSpec:
    """A cache, as orders name it."""

    # Modes, with whether each has a size. That of the cache in memory is the browser's own: it ignores
    # --disk-cache-size.
    SIZES = {"none": False, "fresh": False, "memory": False, "file": True, "memory+file": True}

    def __init__(self, text):
        parsed = re.fullmatch(r"(none|fresh|memory|file|memory\+file)(?::size=([0-9.]+)([A-Za-z]*))?",
                              text)
        if parsed is None or parsed[3] not in {None, *UNITS}:
            raise Refused(f"unknown cache '{text}' of Chromium (known: none, fresh, memory, "
                          "file:size=N, memory+file:size=N)")
        self.mode = parsed[1]
        self.size_bytes = int(float(parsed[2]) * UNITS[parsed[3]]) if parsed[2] else None
        wants = self.SIZES[self.mode]
        if wants != (self.size_bytes is not None):
            raise Refused(f"'{text}': {self.mode} has {'a' if wants else 'no'} size")
        if self.size_bytes is not None and not 0 < self.size_bytes < 2**31:
            # The browser refuses neither 0 nor a larger number, and takes a default of its own.
            raise Refused(f"'{text}': --disk-cache-size is 1 byte to 2147483647")

    @property
    def is_on_disk(self):
        """Whether it outlives the browser."""
        return self.mode in ("file", "memory+file")


class Site:
    """What a loader has to know of the site."""

    def __init__(self, path):
        site = json.loads(Path(path).read_text(encoding="utf-8"))
        self.resources = site["resources"]
        self.pages = site["pages"]
        for resource in self.resources:
            if not resource["url"].startswith("http://"):
                raise Refused(f"{resource['url']}: this loader serves http alone, since Chromium stores "
                              "nothing over connections with certificate errors")
            if "typed" not in resource["body"]:
                raise Refused(f"{resource['url']}: a body of random bytes, as those of a HAR are, loads "
                              "nothing in a browser; take a generated site")

    def hosts(self):
        """The hosts of its URLs."""
        return sorted({urlsplit(resource["url"]).hostname for resource in self.resources})

    def urls(self, page):
        """The URLs of a page in the order of its loads, each with its resource."""
        loads = self.pages[page]["loads"]
        return {self.resources[load["resource"]]["url"]: self.resources[load["resource"]]
                for load in loads}


class Response:
    """One request of the page for one of its URLs, as the browser reported it."""

    def __init__(self):
        self.status = None
        # The status on the wire, which is 304 where `status` is that of the stored response.
        self.wire_status = None
        self.awaits_wire = False
        self.level = None
        self.body_bytes = 0
        self.ended = None
        self.failure = None

    @property
    def is_over(self):
        """Whether everything is known."""
        return self.ended is not None and (not self.awaits_wire or self.wire_status is not None)


class Tab:
    """A tab, and what the browser tells of its loads. All times are those of the browser's own
    monotonic clock, which its network events carry."""

    def __init__(self, context, is_cache_disabled):
        self.page = context.new_page()
        self.session = context.new_cdp_session(self.page)
        self._forget({})
        for name in ("requestWillBeSent", "requestServedFromCache", "responseReceived",
                     "responseReceivedExtraInfo", "dataReceived", "loadingFinished", "loadingFailed"):
            self.session.on(f"Network.{name}", getattr(self, f"_{name}"))
        self.session.on("Page.loadEventFired", self._loaded)
        self.session.send("Page.enable")
        self.session.send("Network.enable")
        if is_cache_disabled:
            self.session.send("Network.setCacheDisabled", {"cacheDisabled": True})

    def _forget(self, urls):
        self.urls = urls
        self.responses = {}
        # By the identity of the request: a URL may be asked for twice.
        self.by_id = {}
        # What is reported before the request itself.
        self.early = {}
        self.again = 0
        self.began = None
        self.load_event = None
        self.last_event = time.monotonic()

    def load(self, urls):
        """Loads a page until it has all of its URLs and its load event has come."""
        self._forget(urls)
        top = next(iter(urls))
        answer = self.session.send("Page.navigate", {"url": top})
        if "errorText" in answer:
            return f"{top}: {answer['errorText']}"
        while not self.is_over() and time.monotonic() - self.last_event < PATIENCE_SECONDS:
            self.page.wait_for_timeout(POLL_MS)
        return None

    def is_over(self):
        """Whether the page has everything."""
        return (self.load_event is not None and len(self.responses) == len(self.urls)
                and all(response.is_over for response in self.by_id.values()))

    def close(self):
        """Closes it, and with it the renderer's memory cache."""
        self.page.close()

    def _of(self, event):
        self.last_event = time.monotonic()
        return self.by_id.get(event["requestId"])

    def _requestWillBeSent(self, event):
        redirect = event.get("redirectResponse")
        before = self._of(event)
        if redirect is not None and before is not None:
            before.status, before.ended = redirect["status"], event["timestamp"]
        url = event["request"]["url"]
        if url not in self.urls:
            return
        if self.began is None:
            self.began = event["timestamp"]
        response = Response()
        response.wire_status = self.early.pop(event["requestId"], None)
        self.by_id[event["requestId"]] = response
        if url in self.responses:
            self.again += 1
        self.responses.setdefault(url, response)

    def _requestServedFromCache(self, event):
        response = self._of(event)
        if response is not None:
            response.level = "renderer"

    def _responseReceived(self, event):
        response = self._of(event)
        if response is None:
            return
        received = event["response"]
        response.status = received["status"]
        # What the renderer has is not on any wire, although the event may promise it.
        response.awaits_wire = bool(event.get("hasExtraInfo")) and response.level is None
        if received.get("fromDiskCache") and response.level is None:
            response.level = "store"

    def _responseReceivedExtraInfo(self, event):
        response = self._of(event)
        if response is None:
            self.early[event["requestId"]] = event["statusCode"]
        else:
            response.wire_status = event["statusCode"]

    def _dataReceived(self, event):
        response = self._of(event)
        if response is not None:
            response.body_bytes += event["dataLength"]

    def _loadingFinished(self, event):
        response = self._of(event)
        if response is not None:
            response.ended = event["timestamp"]

    def _loadingFailed(self, event):
        response = self._of(event)
        if response is not None:
            response.ended = event["timestamp"]
            response.awaits_wire = False
            response.failure = event.get("errorText", "failed")

    def _loaded(self, event):
        self.last_event = time.monotonic()
        self.load_event = event["timestamp"]


class Browser:
    """A browser with one of its caches."""

    def __init__(self, playwright, spec, orders, hosts):
        self._playwright = playwright
        self.spec = spec
        # Nothing but the site's hosts is reachable: what the browser wants for itself neither leaves
        # the machine nor comes to the origin.
        rules = [f"MAP {host} {orders['plain']}" for host in hosts] + ["MAP * ~NOTFOUND"]
        arguments = ["--no-sandbox", f"--host-resolver-rules={', '.join(rules)}"]
        if spec.size_bytes is not None:
            arguments.append(f"--disk-cache-size={spec.size_bytes}")
        self._options = {"executable_path": program(), "args": arguments}
        if orders["is_kept"] is False:
            shutil.rmtree(PROFILE, ignore_errors=True)
        self._tab = None
        self._open()

    def _open(self):
        launch = self._playwright.chromium
        if self.spec.is_on_disk:
            self._browser = None
            # It begins with an empty tab, which keeps the browser open.
            self._context = launch.launch_persistent_context(PROFILE, **self._options)
        else:
            self._browser = launch.launch(**self._options)
            self._context = self._browser.new_context()
            self._context.new_page()

    def tab(self):
        """The tab for the next view: a new one has no memory cache of its renderer."""
        if self.spec.mode == "memory+file":
            if self._tab is None:
                self._tab = Tab(self._context, False)
            return self._tab
        tab = Tab(self._context, self.spec.mode == "none")
        if self.spec.mode == "fresh":
            tab.session.send("Network.clearBrowserCache")
        return tab

    def done(self, tab):
        """Ends the use of a tab."""
        if tab is not self._tab:
            tab.close()

    def level(self, level):
        """The level of the cache as reports name it."""
        return "file" if level == "store" and self.spec.is_on_disk else "memory"

    def flush(self):
        """Writes the cache to disk. Nothing but the browser's end does that."""
        began = time.monotonic_ns()
        self.close()
        took = time.monotonic_ns() - began
        self._tab = None
        self._open()
        return took

    def close(self):
        """Ends the browser."""
        self._context.close()
        if self._browser is not None:
            self._browser.close()


def process_tree_cpu_ns():
    """Processor time of all processes under this one and of those that have ended there, in steps of
    the kernel's clock tick."""
    parents, ticks = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        parents[int(entry)] = int(fields[1])
        # User, system, and both of the children that have ended and were waited for.
        ticks[int(entry)] = sum(int(field) for field in fields[11:15])
    own, total = os.getpid(), 0
    for process, used in ticks.items():
        above = parents[process]
        while above in parents and above != own:
            above = parents[above]
        total += used if above == own else 0
    return total * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def report(browser, tab, urls, failure, cpu_ns):
    """The loading of one page."""
    counts = dict.fromkeys(("hits", "revalidated", "body_bytes", "hit_bytes", "wrong", "failed"), 0)
    by_level = {}
    end = tab.load_event
    for url, resource in urls.items():
        response = tab.responses.get(url)
        if response is None or response.failure is not None or not response.is_over:
            counts["failed"] += 1
            why = "was not requested" if response is None else response.failure or "did not end"
            failure = failure or f"{url}: {why}"
            continue
        end = max(end or 0, response.ended)
        is_revalidated = 304 in (response.wire_status, response.status)
        # Neither what the renderer has nor what it revalidates is read again.
        is_read = response.level != "renderer" and response.status != 304
        length = response.body_bytes if is_read else resource["body"]["typed"]["bytes"]
        counts["body_bytes"] += length
        is_right = response.status in (resource["status"], 304)
        counts["wrong"] += not is_right or length != resource["body"]["typed"]["bytes"]
        if is_revalidated:
            counts["revalidated"] += 1
        elif response.level is not None:
            counts["hits"] += 1
            counts["hit_bytes"] += length
            level = browser.level(response.level)
            by_level[level] = by_level.get(level, 0) + 1
    if tab.load_event is None:
        counts["failed"] += 1
        failure = failure or "the load event did not come"
    wall = (end - tab.began) if end is not None and tab.began is not None else 0
    return {"wall_ns": round(wall * 1e9), "cpu_ns": cpu_ns, "requests": len(urls),
            "by_level": by_level, "again": tab.again, "first_failure": failure, **counts}


def say(said):
    """Answers with a line."""
    print(json.dumps(said), flush=True)


def run_pages():
    """Follows orders until the input ends."""
    orders = json.loads(sys.stdin.readline())
    site = Site(orders["site"])
    if orders["connections"] != CONNECTIONS:
        raise Refused(f"{orders['connections']} connections to a host: Chromium has {CONNECTIONS}, and no "
                      "switch for it")
    with driver()() as playwright:
        browser = Browser(playwright, CacheSpec(orders["cache"]), orders, site.hosts())
        say("ready")
        for line in sys.stdin:
            order = json.loads(line)
            if order == "flush":
                say({"wall_ns": browser.flush()})
                continue
            urls = site.urls(order["load"])
            tab = browser.tab()
            cpu_ns = process_tree_cpu_ns()
            failure = tab.load(urls)
            say(report(browser, tab, urls, failure, process_tree_cpu_ns() - cpu_ns))
            browser.done(tab)
        browser.close()


def list_subjects():
    """Lists the one subject, or says what is missing."""
    driver()
    print("chromium", "chromium", "c++", version(), ABOUT, sep="\t")


def main():
    """Runs what the command line names."""
    commands = {"run-pages": run_pages, "list-subjects": list_subjects}
    command = commands.get(" ".join(sys.argv[1:]))
    if command is None:
        sys.exit(f"usage: run.py {'|'.join(commands)}")
    try:
        command()
    except Refused as refused:
        if command is list_subjects:
            print(f"error {refused}")
            sys.exit(2)
        sys.exit(f"chromium: {refused}")


if __name__ == "__main__":
    main()
