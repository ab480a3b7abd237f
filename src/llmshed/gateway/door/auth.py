"""Keys to tenants: what is stored is a digest, what is compared takes the same time, and no key means no entry."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from multidict import CIMultiDictProxy

from llmshed.admission.settings import ANONYMOUS
from llmshed.config.settings import Config
from llmshed.errors import ConfigError
from llmshed.gateway.secret_file import read_secret_file

_DIGEST_LINE = re.compile(r"sha256:([0-9a-fA-F]{64})")
_MOST_KEY_CHARACTERS = 4096
_NOBODY = bytes(32)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The digests of all keys, each with the tenant that owns it; an empty ring asks nobody for a key."""

    owners: Mapping[bytes, str] = field(default_factory=dict)

    @property
    def asks_for_keys(self) -> bool:
        """Say whether a request without a key is refused."""
        return bool(self.owners)

    def tenant(self, key: str | None) -> str | None:
        """Return the tenant that owns a key; None when there is none, or the key is not known.

        A wrong key costs the same work as a right one: one hash, one lookup by digest, one comparison.
        """
        if not self.owners:
            return ANONYMOUS
        if key is None or len(key) > _MOST_KEY_CHARACTERS:
            return None
        digest = _digest(key)
        owner = self.owners.get(digest)
        known = hmac.compare_digest(digest, digest if owner is not None else _NOBODY)
        return owner if known else None


@dataclass(frozen=True, slots=True)
class AdminAccess:
    """Who may use the admin listener: everyone who can reach it, or the holders of a token."""

    digests: tuple[bytes, ...] = ()

    @property
    def asks_for_token(self) -> bool:
        """Say whether a request without a token is refused."""
        return bool(self.digests)

    def allows(self, key: str | None) -> bool:
        """Say whether the bearer of `key` may come in."""
        if not self.asks_for_token:
            return True
        if key is None or len(key) > _MOST_KEY_CHARACTERS:
            return False
        digest = _digest(key)
        return any(hmac.compare_digest(digest, known) for known in self.digests)


def presented_key(headers: CIMultiDictProxy[str]) -> str | None:
    """Return the key of `Authorization: Bearer KEY`, else of `x-api-key`; None when there is none or two readings."""
    credentials = headers.getall("Authorization", [])
    if credentials:
        scheme, _, key = credentials[0].partition(" ")
        one_reading = len(credentials) == 1 and scheme.lower() == "bearer"
        return key.strip() or None if one_reading else None
    keys = headers.getall("X-Api-Key", [])
    return keys[0] or None if len(keys) == 1 else None


def read_key_ring(config: Config) -> KeyRing:
    """Read the keys files of all tenants.

    Raises:
        ConfigError: a file cannot be read, may be read by others, holds no or a bad digest, or two tenants share a key.
    """
    owners: dict[bytes, str] = {}
    problems: list[str] = []
    for index, tenant in enumerate(config.tenants):
        try:
            digests = read_digests(Path(tenant.keys_file), f"tenants[{index}].keys_file")
        except ConfigError as error:
            problems.extend(error.problems)
            continue
        others = {owners.setdefault(digest, tenant.name) for digest in digests} - {tenant.name}
        problems.extend(
            f"tenants[{index}].keys_file: {tenant.keys_file}: tenant {tenant.name} shares a key with tenant {other};"
            " each key belongs to one tenant"
            for other in sorted(others)
        )
    if problems:
        raise ConfigError(tuple(problems))
    return KeyRing(owners)


def read_admin_access(config: Config) -> AdminAccess:
    """Read the admin token's digest file, if one is configured.

    Raises:
        ConfigError: as for `read_key_ring`.
    """
    if config.server.admin_token_file is None:
        return AdminAccess()
    return AdminAccess(read_digests(Path(config.server.admin_token_file), "server.admin_token_file"))


def read_digests(path: Path, setting: str) -> tuple[bytes, ...]:
    """Read the digest lines of a file that only its owner may read.

    Raises:
        ConfigError: names the setting, the file and the line at fault; never a line's text, which may be a bare key.
    """
    try:
        lines = read_secret_file(path, setting).decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise ConfigError((f"{setting}: {path}: cannot be read: not UTF-8 text",)) from None
    digests: list[bytes] = []
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        found = _DIGEST_LINE.fullmatch(text)
        if found is None:
            raise ConfigError(
                (f"{setting}: {path}:{number}: must be `sha256:` and 64 hex digits (see `llmshed config key`)",)
            )
        digests.append(bytes.fromhex(found[1]))
    if not digests:
        raise ConfigError((f"{setting}: {path}: holds no digest line `sha256:HEX` (see `llmshed config key`)",))
    return tuple(digests)


def _digest(key: str) -> bytes:
    # Header bytes that are not UTF-8 arrive as surrogates; they are hashed as the bytes that they were.
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
