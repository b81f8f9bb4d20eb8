#!/usr/bin/env python3
"""Loads lists of resources by requests of Firefox, as orders say: a loader of `haypile lab resources --browser firefox`.

    python3 rivals/firefox/lists.py list-subjects
    python3 rivals/firefox/lists.py run-pages

The orders are those of run.py, which loads pages. A list is loaded as it is: each resource is a channel of the browser
(nsIHttpChannel), opened when the one that causes it has ended, without a page that would have to request it.
"""

import run
from job import JobError
from orders import Resource, Site

NAME = "necko"
ABOUT = "Necko: the HTTP cache of Firefox, headless, used by requests"
# The loader's own check is of this site.
CHECK_SITE = "http://site.test"
# Bodies are kept until the load is over, and compared then.
MAX_BODY_BYTES = 1 << 30


class ListBrowser(run.PageBrowser):
    """A Firefox whose channels lead to the origin."""

    SCRIPT, CLASS = "lists.js", "Lists"


class ListLoader(run.Loader):
    """Loads lists by channels, and verifies the cache of the browser."""

    def _read_site(self, orders):
        site = Site(orders, Resource.of_list)
        for resource in site.resources:
            if resource.is_https:
                raise JobError(f"{resource.url}: this loader serves http alone")
        for page in range(len(site.pages)):
            size = sum(resource.size for resource in site.of_page(page))
            if size > MAX_BODY_BYTES:
                raise JobError(f"the list has bodies of {size} bytes; this loader keeps them until it has compared them, "
                               f"and loads lists of up to {MAX_BODY_BYTES}")
        return site

    def _make_browser(self, orders):
        return ListBrowser(self._spec, orders, self._site)

    def _open(self):
        # Requests without a page have one part of the cache in common.
        return [None], CHECK_SITE

    @property
    def _keeps_content(self):
        # No process of a page takes part.
        return False

    def _load(self, urls, keeps_content):
        # The first one causes the others.
        return self._load_list([{"url": url, "after": 0 if at else None, "waitMs": 0} for at, url in enumerate(urls)])

    def _load_page(self, page):
        loads = self._site.pages[page]["loads"]
        urls = [resource.url for resource in self._site.of_page(page)]
        return self._load_list([{"url": url, "after": load["after"], "waitMs": milliseconds(load["wait"])}
                                for url, load in zip(urls, loads, strict=True)])

    def _load_list(self, loads):
        options = {"comparesBodies": self._compares_bodies, "patienceMs": run.PATIENCE_SECONDS * 1000}
        return self.browser.call("load", loads, options, is_timed=True)

    def _is_right(self, resource, response):
        # The body of a redirect is not read.
        if resource.is_redirect:
            return response["status"] == resource.status
        crc32 = response["crc32"] if self._compares_bodies else resource.crc32
        return (response["status"], response["bytes"], crc32) == (resource.status, resource.size, resource.crc32)

    def _find_not_on_disk(self):
        return {resource.url for resource in self._site.resources if not resource.may_be_on_disk}


def milliseconds(wait):
    """Returns a duration of the site, as the browser's timers have it."""
    return wait["secs"] * 1000 + wait["nanos"] / 1e6


if __name__ == "__main__":
    run.main(ListLoader, NAME, ABOUT)
