"""diskcache: what the operations of a job are on it."""

import diskcache
from diskcached import sqlite_subject

SUBJECT = sqlite_subject(diskcache, "diskcache")
