"""Whether bytes are what this program has written: signatures, and files of this user alone."""

from __future__ import annotations

import hashlib
import hmac
import os

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
    without losing what it has stored. A signature is valid for one purpose, which these texts say together: what the
    bytes mean to those who read them, and the namespace that they belong to. So bytes that the program has signed
    elsewhere do not pass for others.
    """

    __slots__ = ("_secrets", "_purpose")

    def __init__(self, secrets: Secrets, *purpose: str) -> None:
        listed = [secrets] if isinstance(secrets, (bytes, str)) else secrets
        self._secrets = [secret.encode() if isinstance(secret, str) else secret for secret in listed]
        self._purpose = b"".join(_framed(text.encode()) for text in purpose)
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
        signed = self._purpose + _framed(key.encode() if isinstance(key, str) else key) + data
        return hmac.digest(secret, signed, hashlib.sha256)[:_SIGNATURE_BYTES]


def _framed(text: bytes) -> bytes:
    # With its length, so that no two sequences of texts are the same bytes.
    return b"%d:%b" % (len(text), text)


class Guard:
    """Sees to it that what runs when it is loaded comes from this program and its user: at once, and in each child of a
    fork, where the cache is opened again.
    """

    __slots__ = ("_cache", "_is_signed", "_checked")

    def __init__(self, cache: Cache, is_signed: bool) -> None:
        self._cache = cache
        self._is_signed = is_signed
        self._checked = -1
        self.check()

    def check(self) -> None:
        """Raises UnsafePickle if others can have written what the cache returns in this process."""
        if self._checked != _forks:
            for store, file in self._cache._writers():
                _check(store, file, self._is_signed)
            self._checked = _forks


# Forks between the program and this process.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def _check(store: str, file: tuple[int, int] | None, is_signed: bool) -> None:
    if file is not None:
        owner, mode = file
        if owner != os.geteuid() or mode & 0o077:
            raise UnsafePickle(
                f"{store} can be read or written by others (owner {owner}, mode {mode:o}): make it yours and chmod 600,"
                " or use another serializer"
            )
    elif not is_signed:
        raise UnsafePickle(f"others can write to {store}: give sign=SECRET, or use another serializer")
