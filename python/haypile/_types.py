"""Types of arguments."""

from __future__ import annotations

import datetime
from types import EllipsisType
from typing import Any, TypeAlias

# Text stands for its UTF-8.
Key: TypeAlias = str | bytes

# Seconds, or none for no expiry, or `...` for the TTL of the cache's URL.
Ttl: TypeAlias = float | datetime.timedelta | EllipsisType | None

# Stands for an entry that is not there, where None is a value.
MISSING: Any = object()
