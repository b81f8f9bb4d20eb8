#!/usr/bin/env python3
"""RelStorage's local client as a subject of Haypile's laboratory: a runner (docs/job.md).

    target/rivals/relstorage/bin/python rivals/relstorage/run.py list-subjects
    target/rivals/relstorage/bin/python rivals/relstorage/run.py run-job DIRECTORY relstorage
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

# pylint: disable=wrong-import-position
from client import VERSION, Client
from runner import main
from subject import Subject

SUBJECT = Subject("relstorage", VERSION, "RelStorage's local client: segmented LRU in C++",
                  open=Client, has_ttl=False)

if __name__ == "__main__":
    sys.exit(main(SUBJECT, sys.argv[1:]))
