"""Types of arguments."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import Any, TypeAlias

# Text stands for its UTF-8.
Key: TypeAlias = str | bytes

# Seconds, or none for no expiry, or `...` for the TTL of the cache's URL.
Ttl: TypeAlias = float | datetime.timedelta | EllipsisType | None

# What values are signed with: one secret, or several of which the first signs and all are accepted.
Secrets: TypeAlias = bytes | str | Sequence[bytes | str]

# Bytes of a value that a loop does not notice: their operations take less time than the way to another thread and back.
SHORT_BYTES = 64 << 10

# Stands for an entry that is not there, where None is a value.
MISSING: Any = object()


def names_of(groups: Iterable[Key]) -> tuple[Key, ...]:
    """Returns the names of groups for those who read them more than once; raises TypeError for a single name."""
    if isinstance(groups, str | bytes):
        raise TypeError(f'groups are an iterable of names, such as ["user:7"], not {type(groups).__name__!r}')
    return tuple(groups)
