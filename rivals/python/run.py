"""Runs the subject of a directory: `SUBJECT` of the module `client` there.

    PYTHON rivals/python/run.py rivals/NAME list-subjects
    PYTHON rivals/python/run.py rivals/NAME run-job DIRECTORY NAME
"""

import importlib
import sys

from runner import main

if __name__ == "__main__":
    place, *arguments = sys.argv[1:]
    sys.path.append(place)
    sys.exit(main(importlib.import_module("client").SUBJECT, arguments))
