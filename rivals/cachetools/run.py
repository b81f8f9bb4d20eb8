#!/usr/bin/env python3
"""cachetools as a subject of Haypile's laboratory: a runner (docs/job.md).

    target/rivals/cachetools/bin/python rivals/cachetools/run.py list-subjects
    target/rivals/cachetools/bin/python rivals/cachetools/run.py run-job DIRECTORY cachetools
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

# pylint: disable=wrong-import-position
from client import VERSION, Client
from runner import main
from subject import Subject

SUBJECT = Subject("cachetools", VERSION, "cachetools.LRUCache: a dict of the process, bounded in bytes",
                  open=Client, is_kept=False)

if __name__ == "__main__":
    sys.exit(main(SUBJECT, sys.argv[1:]))
