"""Keyed hashes of what must be compared but never told: sessions, bodies, turns, and the key for prompt prefixes."""

import secrets
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from llmshed.errors import ConfigError
from llmshed.gateway.secret_file import read_secret_file

_KEY_BYTES = 32


class Hasher:
    """Hashes under one secret, so that nobody without it can test a guess against a log line."""

    def __init__(self, key: bytes) -> None:
        """Derive the working key from a secret of any length."""
        self.key = blake2b(key, digest_size=_KEY_BYTES, person=b"llmshed-hash").digest()

    def session(self, tenant: str, session: str) -> str:
        """Return the name of a tenant's session: equal sessions of two tenants have different ones."""
        told = f"{len(tenant)}:{tenant}{session}".encode("utf-8", "surrogateescape")
        return blake2b(told, key=self.key, digest_size=12, person=b"llmshed-sessio").hexdigest()

    def body(self, tenant: str, route: str, body: Mapping[str, Any]) -> str:
        """Return the name of a tenant's request, so that its repeats are known.

        Equal bodies of one tenant and route have one name, however their keys were ordered and spaced. It takes a
        millisecond for each megabyte or two, so large bodies are named beside the event loop.

        Args:
            tenant: who asks; equal bodies of two tenants have different names.
            route: where the body was sent.
            body: the body as the engine's adapter keeps it.
        """
        told = orjson.dumps([tenant, route, body], option=orjson.OPT_SORT_KEYS)
        return blake2b(told, key=self.key, digest_size=12, person=b"llmshed-fingerpr").hexdigest()

    def operation(self, tenant: str, route: str, key: str) -> str:
        """Return the name of what a tenant's client calls one operation: its idempotency key, on one route."""
        told = orjson.dumps([tenant, route, key])
        return blake2b(told, key=self.key, digest_size=12, person=b"llmshed-operatio").hexdigest()

    def turns(self, tenant: str) -> blake2b:
        """Return the running hash of a tenant's conversation, to be fed its messages one by one."""
        told = tenant.encode()
        return blake2b(b"%d:%b" % (len(told), told), key=self.key, digest_size=12, person=b"llmshed-turns")


def read_hasher(path: Path | None) -> Hasher:
    """Key the hashes by a file's bytes, or, without one, by a secret that ends with the process.

    Raises:
        ConfigError: the file cannot be read, is empty, or can be read by others.
    """
    if path is None:
        return Hasher(secrets.token_bytes(_KEY_BYTES))
    key = read_secret_file(path, "log.hash_key_file").strip()
    if not key:
        raise ConfigError((f"log.hash_key_file: {path}: is empty, so that anybody could compute the hashes",))
    return Hasher(key)
