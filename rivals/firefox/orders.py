"""The orders of a loader, as crates/haypile-pages/src/orders.rs has them, and the site that they name."""

import base64
import json
import re
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from browser import MEMORY_KB, cache_preferences
from job import JobError

UNITS = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
MAX_KB = 2**31 - 1
REDIRECTS = (301, 302, 303, 307, 308)
# The browser keeps what it knows of these in memory alone (network.cache.persist_permanent_redirects_http).
PERMANENT_REDIRECTS = (301, 308)
USAGE = "none, fresh, memory:size=N, file:size=N, memory+file:size=N"


@dataclass(frozen=True)
class CacheSpec:
    """A cache, as orders name it."""

    mode: str
    size_kb: int | None

    @classmethod
    def parse(cls, text):
        """Returns the cache of a text."""
        parsed = re.fullmatch(r"(none|fresh|memory|file|memory\+file)(?::size=([0-9.]+)([A-Za-z]*))?", text)
        if parsed is None or parsed[3] not in {None, *UNITS}:
            raise JobError(f"unknown cache '{text}' of Firefox (known: {USAGE})")
        mode, size_kb = parsed[1], None
        if (mode in ("none", "fresh")) != (parsed[2] is None):
            raise JobError(f"'{text}': {mode} has {'a' if parsed[2] is None else 'no'} size")
        if parsed[2]:
            size_kb = int(float(parsed[2]) * UNITS[parsed[3]]) >> 10
            if not 0 < size_kb <= MAX_KB:
                raise JobError(f"'{text}': a size is 1 KB to {MAX_KB} KB")
        return cls(mode, size_kb)

    @property
    def is_on_disk(self):
        """Whether entries are files: also with both caches, because the browser then keeps in memory only what may not
        be on disk."""
        return self.mode in ("file", "memory+file")

    @property
    def is_on(self):
        """Whether anything is stored."""
        return self.mode not in ("none", "fresh")

    def preferences(self):
        """Returns the settings of the browser's caches."""
        memory_kb = {"memory": self.size_kb, "memory+file": MEMORY_KB}.get(self.mode)
        return cache_preferences(self.size_kb if self.is_on_disk else None, memory_kb)


@dataclass(frozen=True)
class Https:
    """What a loader has to know of the certificates of the site."""

    authority: str
    check_host: str | None
    _certificate: str
    _key: str

    @classmethod
    def of(cls, orders):
        """Returns that of the orders; `None` if the site has no https."""
        https = orders.get("https")
        if https is None:
            return None
        check = https.get("check") or {"host": None, "certificate": "", "key": ""}
        return cls(https["authority"], check["host"], check["certificate"], check["key"])

    def check_context(self):
        """Returns the context of TLS of a server for the check host."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The module reads certificates from files alone.
        with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".pem") as file:
            file.write(pem("CERTIFICATE", self._certificate) + pem("PRIVATE KEY", self._key))
            file.flush()
            context.load_cert_chain(file.name)
        return context


def pem(label, text):
    """Returns DER in base64 as PEM."""
    lines = base64.encodebytes(base64.b64decode(text)).decode("ascii")
    return f"-----BEGIN {label}-----\n{lines}-----END {label}-----\n"


class Site:
    """What a loader has to know of the site."""

    def __init__(self, orders, resource=None):
        """Reads the site; `resource` makes a resource of its description and its checksum: one that a page can load,
        or one of a list."""
        site = json.loads(Path(orders["site"]).read_text(encoding="utf-8"))
        crc32 = json.loads(Path(orders["crc32"]).read_text(encoding="utf-8"))
        self.pages = site["pages"]
        self.resources = [(resource or Resource.of)(*pair) for pair in zip(site["resources"], crc32, strict=True)]
        self._verify_schemes(orders)

    def _verify_schemes(self, orders):
        has_https = any(resource.is_https for resource in self.resources)
        if has_https and orders.get("https") is None:
            raise JobError("the site has URLs by https, and the orders have no certificate of its authority")
        if not has_https and orders.get("protocol", "h1") != "h1":
            raise JobError("browsers speak HTTP/2 over TLS alone, and the site has no URL by https")

    def ports(self, port, tls_port):
        """Returns the ports of the origin by those of the URLs."""
        ports = {80: port, 443: tls_port}
        for resource in self.resources:
            named = urlsplit(resource.url).port
            wanted = tls_port if resource.is_https else port
            if named is not None and ports.setdefault(named, wanted) != wanted:
                raise JobError(f"{resource.url}: port {named} belongs to the other scheme at another host, and the "
                               "browser maps ports for all hosts alike")
        return ports

    def of_page(self, page):
        """Returns the resources of a page in the order of its loads."""
        return [self.resources[load["resource"]] for load in self.pages[page]["loads"]]

    def is_needed(self, page):
        """Returns of each load of a page whether the page waits for it."""
        return [load.get("is_needed", True) for load in self.pages[page]["loads"]]

    def documents(self):
        """Returns the URLs of the pages' documents, in the order of the pages: the first that does not redirect."""
        def document(resources):
            return next((resource for resource in resources if not resource.is_redirect), resources[0]).url
        return [document(self.of_page(page)) for page in range(len(self.pages))]

    def not_on_disk(self):
        """Returns the URLs that the browser does not store on disk: those of responses that may not be stored, all of
        pages with such a document, whose resources the browser treats alike, and permanent redirects by http with what
        they lead to."""
        urls = {resource.url for resource in self.resources if resource.is_never_stored}
        of_url = {resource.url: resource for resource in self.resources}
        for resource in self.resources:
            if resource.is_https or resource.status not in PERMANENT_REDIRECTS:
                continue
            chain = set()
            while resource is not None and resource.url not in chain:
                chain.add(resource.url)
                resource = of_url.get(resource.target)
            urls |= chain
        for resources in map(self.of_page, range(len(self.pages))):
            if any(resource.is_never_stored and resource.kind == "html" for resource in resources):
                urls.update(resource.url for resource in resources)
        return urls


@dataclass(frozen=True)
class Resource:
    """A resource of the site."""

    url: str
    kind: str
    status: int
    size: int
    crc32: int
    is_never_stored: bool
    # The URL to which it redirects.
    target: str | None = None

    @classmethod
    def of(cls, resource, crc32):
        """Returns the resource that a site describes, if a page can load it."""
        if "generated" in resource["body"]:
            raise JobError(f"{resource['url']}: a body of random bytes loads nothing in a browser; take a generated "
                           "site, or the pages of a HAR as the laboratory orders them")
        return cls.of_list(resource, crc32)

    @classmethod
    def of_list(cls, resource, crc32):
        """Returns the resource that a site describes, whose body may be any bytes."""
        url = resource["url"]
        [body] = resource["body"].values()
        directives = ",".join(value for name, value in resource["headers"] if name == "cache-control").lower()
        location = next((value for name, value in resource["headers"] if name == "location"), None)
        target = None if location is None else urljoin(url, location).partition("#")[0]
        return cls(url, resource["kind"], resource["status"], body["bytes"], crc32, "no-store" in directives, target)

    @property
    def is_https(self):
        """Whether the browser asks for it over TLS."""
        return self.url.startswith("https:")

    @property
    def is_redirect(self):
        """Whether the browser follows the answer, and does not read its body."""
        return self.status in REDIRECTS

    @property
    def may_be_on_disk(self):
        """Whether the browser stores the response on disk, if its cache is there."""
        return not self.is_never_stored and (self.is_https or self.status not in PERMANENT_REDIRECTS)


def partition_of(site):
    """Returns the part of the cache that pages of a site have, such as (http,example.test)."""
    scheme, host = site.split("://")
    return f"({scheme},{host})"
