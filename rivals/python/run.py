"""Runs the subjects of a directory: `SUBJECTS`, or one `SUBJECT`, of the module `client` there.

    PYTHON rivals/python/run.py rivals/NAME list-subjects
    PYTHON rivals/python/run.py rivals/NAME run-job DIRECTORY NAME
"""

import importlib
import sys

from job import JobError
from runner import main

if __name__ == "__main__":
    place, *arguments = sys.argv[1:]
    sys.path.append(place)
    try:
        client = importlib.import_module("client")
    except JobError as error:
        # The server that it is a client of is not installed.
        print(f"error {error}", flush=True)
        sys.exit(2)
    sys.exit(main(getattr(client, "SUBJECTS", None) or [client.SUBJECT], arguments))
