"""Definitions that the programs about documents share: which are for readers, and where their links lead."""

import os
import re

# Those of crates are shown by cargo, and test data by nobody.
NOT_FOR_READERS = re.compile(r"^crates/|/tests/data/")


def resolved(page, link):
    """The path from the root of what a page's link names; None for links to other hosts and to the page itself."""
    if re.match(r"[a-z]+:", link) or link.startswith("#"):
        return None
    return os.path.normpath(os.path.join(os.path.dirname(page), link.partition("#")[0]))
