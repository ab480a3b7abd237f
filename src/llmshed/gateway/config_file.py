"""Where the configuration is read from disk: once by a command at start, again at each reload."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from llmshed.config import paths
from llmshed.config.ladders import SHIPPED_LADDERS
from llmshed.config.loading import LoadedConfig, load_config
from llmshed.config.pools import PoolSettings
from llmshed.config.settings import Config
from llmshed.errors import ConfigError

FILE_NAME = "llmshed.toml"
_MOST_BYTES = 1_048_576
"""A configuration is typed by people; more is a wrong file."""


def find_config(environ: Mapping[str, str], directory: Path) -> Path:
    """Return the configuration that is used when none is named.

    Args:
        environ: the environment; XDG_CONFIG_HOME and HOME say where the user's own file is.
        directory: the working directory.

    Raises:
        ConfigError: none of the places has a file; the text names them.
    """
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    places = [
        directory / FILE_NAME,
        *([Path(home) / "llmshed" / FILE_NAME] if home.startswith("/") else []),  # XDG: a relative path is ignored
        Path("/etc/llmshed") / FILE_NAME,
    ]
    for place in places:
        if place.is_file():
            return place
    looked = ", ".join(map(str, places))
    raise ConfigError((f"no configuration: looked for {looked}; name one with --config FILE",))


def read_config(path: Path, environ: Mapping[str, str], overrides: Mapping[str, str]) -> LoadedConfig:
    """Read and validate a configuration file.

    Relative paths in the file start at its directory; those in variables and flags, at the working directory.

    Args:
        path: the file.
        environ: the environment, of which `LLMSHED_*` is used.
        overrides: settings of the command line by their paths.

    Raises:
        ConfigError: the file cannot be read, or holds mistakes; every mistake is in `problems`.
    """
    loaded = load_config(_text(path), str(path), environ, overrides)
    return replace(loaded, config=_with_whole_paths(loaded, path.absolute().parent, Path.cwd()))


@dataclass(frozen=True, slots=True)
class _Roots:
    """Where a relative path starts, by who wrote it."""

    loaded: LoadedConfig
    file: Path
    shell: Path

    def whole(self, setting: paths.Path, value: str | None) -> str | None:
        if value is None:
            return None
        origin = self.loaded.origin(setting)
        typed = origin.startswith(("env ", "flag "))
        return str((self.shell if typed else self.file) / value)


def _with_whole_paths(loaded: LoadedConfig, file: Path, shell: Path) -> Config:
    config, roots = loaded.config, _Roots(loaded, file, shell)
    server = {"admin_token_file": roots.whole(("server", "admin_token_file"), config.server.admin_token_file)}
    ladder = {
        "state_file": roots.whole(("ladder", "state_file"), config.ladder.state_file),
        "audit_file": roots.whole(("ladder", "audit_file"), config.ladder.audit_file),
    }
    log = {"hash_key_file": roots.whole(("log", "hash_key_file"), config.log.hash_key_file)}
    if config.log.decisions not in {"stderr", "stdout", "off"}:
        log["decisions"] = roots.whole(("log", "decisions"), config.log.decisions)
    tenants = tuple(
        tenant.model_copy(update={"keys_file": roots.whole(("tenants", index, "keys_file"), tenant.keys_file)})
        for index, tenant in enumerate(config.tenants)
    )
    pools = tuple(
        pool.model_copy(update=dict(_pool_paths(roots, index, pool))) for index, pool in enumerate(config.pools)
    )
    return config.model_copy(
        update={
            "server": config.server.model_copy(update=server),
            "log": config.log.model_copy(update=log),
            "ladder": config.ladder.model_copy(update=ladder),
            "tenants": tenants,
            "pools": pools,
        }
    )


def _pool_paths(roots: _Roots, index: int, pool: PoolSettings) -> Iterator[tuple[str, str | None]]:
    tokenizer = pool.tokenizer
    yield "profile", roots.whole(("pools", index, "profile"), pool.profile)
    if pool.ladder not in SHIPPED_LADDERS:
        yield "ladder", roots.whole(("pools", index, "ladder"), pool.ladder)
    directory = roots.whole(("pools", index, "tokenizer"), tokenizer)
    # `org/model` is a hub id unless such a directory stands there; `./org/model` is a directory in any case.
    if tokenizer != "auto" and directory and (tokenizer.startswith(("./", "../")) or Path(directory).is_dir()):
        yield "tokenizer", directory


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError((f"{path}: cannot be read: {error.strerror}",)) from None
    except ValueError:  # a null byte in the name
        raise ConfigError((f"{str(path)!r}: cannot be the name of a file",)) from None
    if len(raw) > _MOST_BYTES:
        raise ConfigError((f"{path}: is larger than {_MOST_BYTES} bytes, so it is no configuration",))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError((f"{path}:{line}: not UTF-8: byte 0x{raw[error.start]:02x}",)) from None
