"""diskcache-community: what the operations of a job are on it."""

import diskcache_community
from diskcached import sqlite_subject

SUBJECT = sqlite_subject(diskcache_community, "diskcache-community")
