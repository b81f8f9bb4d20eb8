#!/usr/bin/env python3
"""Haypile's Python package as a subject of its own laboratory: a runner (docs/job.md).

    target/rivals/haypile-python/bin/python rivals/haypile-python/run.py list-subjects
    target/rivals/haypile-python/bin/python rivals/haypile-python/run.py run-job DIRECTORY haypile-python
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

# pylint: disable=wrong-import-position
from client import VERSION, Client
from runner import main
from subject import Subject

SUBJECT = Subject("haypile-python", VERSION,
                  "our own package for Python: a cache in a file, or with store=memory in the process",
                  open=Client, options=("store",), is_shared=True)

if __name__ == "__main__":
    sys.exit(main(SUBJECT, sys.argv[1:]))
