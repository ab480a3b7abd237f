"""llmshed.toml as text, variables and flags as mappings: validated into one Config, or refused with every mistake."""

from collections.abc import Mapping
from dataclasses import dataclass

from llmshed.config.advice import advice
from llmshed.config.catalogue import catalogue_of
from llmshed.config.layers import Layers
from llmshed.config.paths import Path, spelled
from llmshed.config.settings import Config
from llmshed.config.texts import TomlSyntaxError, line_of, read_toml
from llmshed.config.validation import validated
from llmshed.errors import ConfigError

STAND_INS = {
    "pools": [{"replicas": [{"name": "unnamed", "url": "simulated:"}]}],
    "replicas": [{"name": "unnamed", "url": "simulated:"}],
    "name": "unnamed",
    "url": "simulated:",
    "keys_file": "unnamed",
}
"""A valid value for each setting without a default, so that rules between settings can be checked around a gap."""

DEFAULT = "default"
"""Origin of a setting that nobody set."""


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A valid configuration and where it came from.

    Args:
        config: the settings in force.
        source: the file, as it was named.
        places: for each path that was set, `FILE:LINE`, `env VARIABLE` or `flag --set PATH`.
        warnings: what is valid but probably not meant, each line beginning with its place.
    """

    config: Config
    source: str
    places: Mapping[Path, str]
    warnings: tuple[str, ...]

    def origin(self, path: Path) -> str:
        """Return where the value of a setting came from; `default` when nobody set it."""
        return self.places.get(path, DEFAULT)

    @property
    def origins(self) -> Mapping[str, str]:
        """Return the origin of everything that was set, by its spelled path."""
        return {spelled(path): place for path, place in self.places.items()}


def load_config(text: str, source: str, environ: Mapping[str, str], overrides: Mapping[str, str]) -> LoadedConfig:
    """Validate a configuration; flags go before variables, variables before the file, the file before defaults.

    Args:
        text: the contents of the file.
        source: the name of the file, for messages.
        environ: the environment; only `LLMSHED_*` is looked at.
        overrides: settings of the command line by their paths, as text.

    Raises:
        ConfigError: every mistake, in the order of the file, each `PLACE: path: what is wrong, what is accepted`.
    """
    problems: list[str] = []
    try:
        raw, lines = read_toml(text)
    except TomlSyntaxError as error:
        raw, lines = {}, {}
        problems.append(f"{source}:{error}")
    layers = Layers(catalogue_of(Config), raw, {path: f"{source}:{line}" for path, line in lines.items()})
    layers.lay_environment(environ)
    layers.lay_flags(overrides)
    if problems:  # nothing can be said of settings that could not be read
        raise ConfigError((*problems, *layers.problems))
    config, mistakes = validated(Config, layers.raw, STAND_INS)

    def told(path: Path, message: str) -> str:
        return f"{layers.place(path, f'{source}:1')}: {spelled(path)}: {message}"

    in_order = sorted(mistakes, key=lambda mistake: line_of(lines, mistake.path))
    problems = [*(told(mistake.path, mistake.message) for mistake in in_order), *layers.problems]
    if config is None or problems:
        raise ConfigError(tuple(problems))
    return LoadedConfig(
        config, source, layers.places, tuple(told(remark.paths[0], remark.message) for remark in advice(config))
    )
