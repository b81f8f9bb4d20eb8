"""Whether bytes are what this program has written: signatures, and files of this user alone."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat

from haypile._cache import Cache
from haypile._haypile import Error
from haypile._types import Key, Secrets

# Bytes of a signature: half of a SHA-256, beyond what anybody can guess.
_SIGNATURE_BYTES = 16

_LEAST_SECRET_BYTES = 16


class UnsafePickle(Error):
    """Pickles would be read from where others can write: loading one runs what it says."""


class Signer:
    """Signs values under their keys with a secret of this program (HMAC-SHA-256).

    Of several secrets, the first signs, and the signature of any of them is valid: so a program changes its secret
    without losing what it has stored. `purpose` separates the values of several users of one secret.
    """

    __slots__ = ("_secrets", "_purpose")

    def __init__(self, secrets: Secrets, purpose: bytes = b"") -> None:
        listed = [secrets] if isinstance(secrets, (bytes, str)) else secrets
        self._secrets = [secret.encode() if isinstance(secret, str) else secret for secret in listed]
        self._purpose = purpose
        if not self._secrets:
            raise ValueError("there is no secret to sign with")
        if any(len(secret) < _LEAST_SECRET_BYTES for secret in self._secrets):
            raise ValueError(f"a secret to sign with has at least {_LEAST_SECRET_BYTES} bytes")

    def signed(self, key: Key, data: bytes) -> bytes:
        """Returns data behind their signature."""
        return self._signature(self._secrets[0], key, data) + data

    def verified(self, key: Key, data: bytes) -> bytes | None:
        """Returns data without their signature, or None if it is not valid."""
        signature, data = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
        for secret in self._secrets:
            if hmac.compare_digest(signature, self._signature(secret, key, data)):
                return data
        return None

    def _signature(self, secret: bytes, key: Key, data: bytes) -> bytes:
        name = key.encode() if isinstance(key, str) else key
        signed = b"%b%d:%b%b" % (self._purpose, len(name), name, data)
        return hmac.digest(secret, signed, hashlib.sha256)[:_SIGNATURE_BYTES]


def check_safe(cache: Cache, is_signed: bool) -> None:
    """Raises UnsafePickle if others can write what is loaded from this cache."""
    for scheme, path in cache._levels():
        if scheme == "file":
            found = os.stat(path)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise UnsafePickle(
                    f"{path} can be read or written by others (owner {found.st_uid}, mode"
                    f" {stat.S_IMODE(found.st_mode):o}): make it yours and chmod 600, or use another serializer"
                )
        elif scheme not in ("memory", "none") and not is_signed:
            raise UnsafePickle(
                f"{scheme} is a server that others can write to: give sign=SECRET, or use another serializer"
            )
