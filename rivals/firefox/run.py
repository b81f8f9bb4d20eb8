#!/usr/bin/env python3
"""Loads pages in Firefox, as orders say: a loader of `haypile lab pages --browser firefox`.

    python3 rivals/firefox/run.py list-subjects
    python3 rivals/firefox/run.py run-pages

It needs Python's standard library and the system's Firefox. The protocol is that of
crates/haypile-pages/src/orders.rs: lines of JSON. The first line has the orders, and the answer is "ready"; then
{"load": N} is answered by a report, "flush" by the time that it took, and "remains" by what the browser found of its
cache. The loader ends with its input.
"""

import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "necko"), str(HERE.parent / "python")]

import browser  # noqa: E402  pylint: disable=wrong-import-position
import guard  # noqa: E402  pylint: disable=wrong-import-position
from cache_files import CacheFiles  # noqa: E402  pylint: disable=wrong-import-position
from job import JobError  # noqa: E402  pylint: disable=wrong-import-position
from orders import CacheSpec, Https, Site, partition_of  # noqa: E402  pylint: disable=wrong-import-position
from origin import Origin  # noqa: E402  pylint: disable=wrong-import-position

NAME = "firefox"
ABOUT = "Firefox's own HTTP cache, headless"
# Without an event for this long, a page that lacks something has failed.
PATIENCE_SECONDS = 30
# Without an event for this long after its load event, a page has got the rest from the caches of its content process.
QUIET_SECONDS = 0.3
# The versions of HTTP for https; http is HTTP/1.1.
PROTOCOLS = ("h1", "h2")
# Kinds of resources that these caches keep.
KEPT_KINDS = ("image", "css")
CHECK_PATH = "/haypile-check"
CHECK_PAGE = b'<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><img src="%s">'
CHECK_IMAGE = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'

# Settings of page loads, in addition to those of the caches.
PREFERENCES = {
    # A page by http would be asked for by https first.
    "dom.security.https_first": False,
    "dom.security.https_first_schemeless": False,
    # What a recorded page loaded by http is not asked for by https, nor refused.
    "network.stricttransportsecurity.preloadlist": False,
    "security.mixed_content.block_active_content": False,
    "security.mixed_content.upgrade_display_content": False,
    # Whether a certificate was revoked or is pinned is asked of hosts elsewhere, as is a way without TCP.
    "security.OCSP.enabled": 0,
    "security.cert_pinning.enforcement_level": 0,
    "security.pki.certificate_transparency.mode": 0,
    "security.remote_settings.crlite_filters.enabled": False,
    "security.remote_settings.intermediates.enabled": False,
    "security.certerrors.mitm.priming.enabled": False,
    "network.dns.native_https_query": False,
    "network.dns.echconfig.enabled": False,
    "network.http.http3.enable": False,
    "network.http.altsvc.enabled": False,
    # Documents that are kept for the back button would take memory, and nobody goes back.
    "browser.sessionhistory.max_total_viewers": 0,
}


class PageBrowser(browser.Browser):
    """A Firefox with one of its caches, on a profile that outlives it."""

    FOLDER = "firefox"
    # The script of the loader's part inside of the browser, and its class.
    SCRIPT, CLASS = "firefox.js", "Pages"

    def __init__(self, spec, orders, site):
        host, port = address(orders["plain"])
        # Without https of the site, what the browser wants of others by it ends at a closed port. With it, the origin
        # refuses the handshakes of other hosts.
        tls_port = address(orders["tls"])[1] if orders.get("https") else browser.CLOSED_PORT
        ports = site.ports(port, tls_port)
        preferences = PREFERENCES | spec.preferences() | {
            "network.dns.forceResolve": host,
            "network.socket.forcePort": ";".join(f"{named}={real}" for named, real in ports.items()),
        }
        # Over HTTP/2 a host has one connection anyway, and hosts by http have as many as the browser wants.
        if orders.get("protocol", "h1") == "h1":
            preferences["network.http.max-persistent-connections-per-server"] = orders["connections"]
        super().__init__(preferences)
        if orders["is_kept"]:
            self._wait_for_predecessor()
        else:
            guard.remove(self._profile)
        self.found = CacheFiles(self._profile)

    def _disposable(self):
        # Nothing is: the next loader goes on with the profile, even after a kill.
        return os.path.join(self.folder, "nothing")

    def _definition(self):
        own = [HERE.joinpath(name).read_text(encoding="utf-8") for name in ("responses.js", self.SCRIPT)]
        is_on_disk = json.dumps(self._preferences["browser.cache.disk.enable"])
        return "\n".join([browser.script_file("necko.js"), *own, f"globalThis.necko = new {self.CLASS}({is_on_disk});"])

    def _wait_for_predecessor(self):
        """Waits until the killed browser of an earlier loader is gone, which the guard of that loader sees to."""
        left = guard.end(-1, f":{self.folder}\0".encode(), spared=(os.getpid(),))
        if left:
            raise JobError(f"processes of the last browser cannot be ended: {left}")


class Loader:
    """Loads the pages of a site in a browser, and verifies its cache."""

    def __init__(self, orders):
        self._spec = CacheSpec.parse(orders["cache"])
        if orders.get("protocol", "h1") not in PROTOCOLS:
            raise JobError(f"unknown protocol '{orders['protocol']}' (known: {', '.join(PROTOCOLS)})")
        self._site = self._read_site(orders)
        self._not_on_disk = self._find_not_on_disk()
        self._https = Https.of(orders)
        self._compares_bodies = orders.get("compares_bodies", False)
        # URLs that the content process has loaded, and may have kept.
        self._kept = set()
        self.browser = self._make_browser(orders)
        try:
            self.browser.start()
            if self._https is not None and not self.browser.call("trust", self._https.authority):
                raise JobError("the browser does not trust the authority of the origin's certificates")
            self._partitions, site = self._open()
            self.browser.settle()
            self._check_cache(site)
        except BaseException:
            self.browser.end()
            raise

    def _read_site(self, orders):
        return Site(orders)

    def _make_browser(self, orders):
        return PageBrowser(self._spec, orders, self._site)

    def _open(self):
        """Opens the tab, and returns the partitions of the site's pages and the site of the first one."""
        sites = [self.browser.call("siteOf", url) for url in self._site.documents()]
        self.browser.call("open", sites[0])
        # Of all pages, each once.
        return list(dict.fromkeys(map(partition_of, sites))), sites[0]

    @property
    def _keeps_content(self):
        """Whether the caches of the content process are a part of the column."""
        return self._spec.mode == "memory+file"

    def _load(self, urls, keeps_content):
        options = {"keepsContent": keeps_content, "comparesBodies": self._compares_bodies,
                   "quietMs": QUIET_SECONDS * 1000, "patienceMs": PATIENCE_SECONDS * 1000}
        return self.browser.call("load", urls, options, is_timed=True)

    def _check_cache(self, site):
        """Loads a page of the loader's own in this site twice, whose requests show whether anything is stored; the
        browser then has all that a load needs."""
        image = f"{CHECK_PATH}-{time.time_ns()}.svg"
        pages = {CHECK_PATH: (CHECK_PAGE % image.encode(), "text/html", "no-cache"),
                 image: (CHECK_IMAGE, "image/svg+xml", "max-age=86400")}
        is_https = site.startswith("https:")
        with Origin({}, pages=pages, tls=self._https.check_context() if is_https else None) as origin:
            base = f"https://{self._https.check_host}" if is_https else site.replace("://", "://check.")
            base += f":{address(origin.address)[1]}"
            partition = partition_of(site)
            loads = [self._load([base + CHECK_PATH, base + image], False) for _ in range(2)]
            # An entry is listed when it has been written.
            self.browser.call("flush")
            storages = self.browser.call("pageStorages", partition)
            for path in pages:
                self.browser.call("forgetUrl", partition, base + path)
            requests = origin.requests
        if any(response is None or response["failure"] for load in loads for response in load["responses"]):
            raise JobError(f"the browser did not load a page of the loader's own: {loads}")
        if requests != (3 if self._spec.is_on else 4):
            wrong = "is off although it" if self._spec.is_on else "works although none"
            raise JobError(f"the browser's cache {wrong} was asked for: two loads of a page with an image asked the "
                           f"origin {requests} times")
        used = storages["disk" if self._spec.is_on_disk else "memory"]
        if self._spec.is_on and used["capacity"] != self._spec.size_kb << 10:
            raise JobError(f"the browser reports a cache of {used['capacity']} bytes, not of "
                           f"{self._spec.size_kb << 10}")
        if self._spec.is_on and base + image not in used["urls"]:
            raise JobError("the browser's cache has no entry of an image that it answered")

    def load(self, page):
        """Loads a page, and returns the report."""
        resources = self._site.of_page(page)
        cpu_ns = self.browser.group.cpu_ns()
        found = self._load_page(page)
        cpu_ns = self.browser.group.cpu_ns() - cpu_ns
        report = self._report(resources, self._site.is_needed(page), found)
        return report | {"cpu_ns": cpu_ns, "again": found["again"]}

    def _load_page(self, page):
        return self._load([resource.url for resource in self._site.of_page(page)], self._keeps_content)

    def _report(self, resources, is_needed, found):
        counts = dict.fromkeys(("hits", "revalidated", "body_bytes", "hit_bytes", "wrong", "failed"), 0)
        by_level, end, failure = {}, found["loadedAt"], None
        for resource, is_waited_for, response in zip(resources, is_needed, found["responses"], strict=True):
            level, why = self._level(resource, response)
            if why:
                counts["failed"] += 1
                failure = failure or f"{resource.url}: {why}"
                continue
            counts["body_bytes"] += resource.size
            if response is not None:
                if is_waited_for:
                    end = max(end or 0, response["endedAt"])
                counts["wrong"] += not self._is_right(resource, response)
                counts["revalidated"] += response["from"] == "revalidated"
            if level is not None:
                counts["hits"] += 1
                counts["hit_bytes"] += resource.size
                by_level[level] = by_level.get(level, 0) + 1
            self._kept.add(resource.url)
        if found["loadedAt"] is None:
            counts["failed"] += 1
            failure = failure or "the load event did not come"
        wall_ms = end - found["beganAt"] if end is not None and found["beganAt"] is not None else 0
        return {"wall_ns": round(wall_ms * 1e6), "requests": len(resources), "by_level": by_level,
                "first_failure": failure, **counts}

    def _is_right(self, resource, response):
        return is_right(resource, response, self._compares_bodies)

    def _level(self, resource, response):
        """Returns the level of the cache that answered, `None` for the network, and what failed."""
        if response is None:
            # No request of it left the content process, which has loaded it before and keeps such resources.
            if self._keeps_content and resource.kind in KEPT_KINDS and resource.url in self._kept:
                return "memory", None
            return None, "was not requested"
        if response["failure"] or response["endedAt"] is None:
            return None, response["failure"] or "did not end"
        if response["from"] != "cache":
            return None, None
        is_file = self._spec.is_on_disk and resource.url not in self._not_on_disk
        return "file" if is_file else "memory", None

    def _find_not_on_disk(self):
        return self._site.not_on_disk()

    def flush(self):
        """Has everything written to disk, and returns the time that it took."""
        began = time.monotonic_ns()
        self.browser.call("flush")
        return {"wall_ns": time.monotonic_ns() - began}

    def remains(self):
        """Returns what the browser found of its cache when it started."""
        return {"entries": self.browser.found.entries, "index": self.browser.found.index}

    def close(self):
        """Verifies where the entries are, and has the browser end in order."""
        storages = [self.browser.call("pageStorages", partition) for partition in self._partitions]
        in_memory = {url for storage in storages for url in storage["memory"]["urls"]}
        if not self._spec.is_on_disk and self.browser.cache_files("entries"):
            raise JobError(f"the browser has files of entries, and its cache is '{self._spec.mode}'")
        # With both caches, memory is for what may not be on disk.
        misplaced = sorted(in_memory - self._not_on_disk)
        if self._spec.is_on_disk and misplaced:
            raise JobError(f"the browser has {len(misplaced)} entries in memory, and its cache is '{self._spec.mode}': "
                           f"{misplaced[0]}")
        if not self._spec.is_on and in_memory:
            raise JobError(f"the browser has {len(in_memory)} entries, and its cache is '{self._spec.mode}'")
        self.browser.quit()


def address(text):
    """Returns host and port of an address."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def is_right(resource, response, compares_bodies):
    """Whether a response is the site's: its status, its length, and all of its bytes if they were read."""
    if response["status"] not in (resource.status, 304):
        return False
    # The browser's own form of a script has other bytes, and the body of a redirect is not read.
    if response["isAlternative"] or resource.is_redirect:
        return True
    crc32 = response["crc32"] if compares_bodies else resource.crc32
    return response["bytes"] == resource.size and crc32 == resource.crc32


def say(said):
    """Answers with a line."""
    print(json.dumps(said), flush=True)


def run_pages(make_loader):
    """Follows orders until the input ends."""
    loader = make_loader(json.loads(sys.stdin.readline()))
    try:
        say("ready")
        for line in sys.stdin:
            order = json.loads(line)
            if order == "flush":
                say(loader.flush())
            elif order == "remains":
                say(loader.remains())
            else:
                say(loader.load(order["load"]))
        loader.close()
    finally:
        loader.browser.end()


def list_subjects(name, about):
    """Lists the one subject, or says what is missing."""
    print(name, name, "c++", browser.version().removeprefix("Firefox "), about, sep="\t", flush=True)


def main(make_loader=Loader, name=NAME, about=ABOUT):
    """Runs what the command line names, for a loader and the name of its subject."""
    command = " ".join(sys.argv[1:])
    if command not in ("run-pages", "list-subjects"):
        sys.exit(f"usage: {Path(sys.argv[0]).name} run-pages|list-subjects")
    browser.end_in_order()
    try:
        if command == "run-pages":
            run_pages(make_loader)
        else:
            list_subjects(name, about)
    except JobError as error:
        text = " ".join(str(error).split())
        if command == "list-subjects":
            print(f"error {text}")
            sys.exit(2)
        sys.exit(f"{name}: {text}")


if __name__ == "__main__":
    main()
