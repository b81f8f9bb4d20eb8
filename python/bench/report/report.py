"""A report that cron could write: what the modules of a folder define, the largest first.

    REPORT_CACHE=file:~/.cache/report.haypile,size=16MiB python3 report.py FOLDER

Parsing a module is what takes time, and its result is remembered: with REPORT_CACHE in that cache, which the next run
finds, and without it by functools.lru_cache, which begins empty. docs/python-memoize.md measures both.
"""

import ast
import functools
import os
import pathlib
import sys

import haypile


def remembered():
    """The decorator that this run remembers results with."""
    url = os.environ.get("REPORT_CACHE")
    return haypile.Objects(url).memoize() if url else functools.lru_cache(maxsize=None)


@remembered()
def defined(path, _size, _changed_ns):
    """Returns how many functions and classes a module defines. What it was when it had another size or time is not asked
    for again, and leaves the cache in the end."""
    module = ast.parse(pathlib.Path(path).read_bytes())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [sum(isinstance(node, kind) for node in ast.walk(module)) for kind in (functions, ast.ClassDef)]


def main():
    rows = []
    for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
        status = path.stat()
        functions, classes = defined(str(path), status.st_size, status.st_mtime_ns)
        rows.append((functions, classes, str(path)))
    for functions, classes, path in sorted(rows, reverse=True)[:10]:
        print(f"{functions:5} functions, {classes:4} classes: {path}")
    print(defined.cache_info())


if __name__ == "__main__":
    main()
