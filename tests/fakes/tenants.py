"""Tenants and tokens as an operator configures them: a file of digests for each, readable by its owner alone."""

import hashlib
from pathlib import Path


def tenant(directory: Path, name: str, more: str = "") -> str:
    """Write a key file for `name`, whose key is `NAME-key`, and return its table."""
    path = digest_file(directory / name, f"{name}-key")
    return f'[[tenants]]\nname = "{name}"\nkeys_file = "{path}"\n{more}\n'


def digest_file(path: Path, key: str) -> Path:
    """Write the digest of one key."""
    path.write_text(f"sha256:{hashlib.sha256(key.encode()).hexdigest()}\n")
    path.chmod(0o600)
    return path


def bearer(key: str) -> dict[str, str]:
    """Return the header that presents a key."""
    return {"Authorization": f"Bearer {key}"}
