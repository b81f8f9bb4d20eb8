#!/usr/bin/env python3
"""diskcache as a subject of Haypile's laboratory: a runner (docs/job.md).

    target/rivals/diskcache/bin/python rivals/diskcache/run.py list-subjects
    target/rivals/diskcache/bin/python rivals/diskcache/run.py run-job DIRECTORY diskcache
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

# pylint: disable=wrong-import-position
from client import VERSION, Client, Target
from runner import main
from subject import Subject

SUBJECT = Subject("diskcache", VERSION, "diskcache: SQLite, and files for values above 32 KiB",
                  open=Client, options=("policy",), is_shared=True, target=Target)

if __name__ == "__main__":
    sys.exit(main(SUBJECT, sys.argv[1:]))
