"""A configuration as text, variables and flags becomes one Config, or every mistake at once."""

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.config.catalogue import Catalogue
from llmshed.config.loading import STAND_INS, LoadedConfig, load_config
from llmshed.config.settings import Config
from llmshed.errors import ConfigError

POOL = '[[pools]]\nreplicas = [{ name = "r1", url = "simulated:" }]\n'


def load(text: str, environ: dict[str, str] | None = None, overrides: dict[str, str] | None = None) -> LoadedConfig:
    return load_config(text, "llmshed.toml", environ or {}, overrides or {})


def problems_of(
    text: str, environ: dict[str, str] | None = None, overrides: dict[str, str] | None = None
) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as refused:
        load(text, environ, overrides)
    return refused.value.problems


def test_one_pool_with_one_replica_is_a_whole_configuration_without_warnings() -> None:
    loaded = load(POOL)

    assert loaded.config.pools[0].replicas[0].url == "simulated:"
    assert loaded.config.server.listen == "127.0.0.1:8080"
    assert loaded.warnings == ()


def test_every_mistake_is_told_at_once_with_its_line_in_the_order_of_the_file() -> None:
    text = """\
[server]
lisen = "127.0.0.1:1"
max_headers = true
event_loop = "uvlop"

[lanes.interactive]
default_output_tokens = 5000

[[pools]]
name = "a"
replicas = [
  { name = "r1", url = "ftp://h" },
  { nam = "r2", url = "http://h:1" },
]

[[pools]]
name = "a"
replicas = [{ name = "r1", url = "http://other:1" }]

[log]
level = 3
"""

    problems = problems_of(text)

    assert [problem.split(" ", 2)[:2] for problem in problems] == [
        ["llmshed.toml:2:", "server.lisen:"],
        ["llmshed.toml:3:", "server.max_headers:"],
        ["llmshed.toml:4:", "server.event_loop:"],
        ["llmshed.toml:7:", "lanes.interactive.default_output_tokens:"],
        ["llmshed.toml:12:", "pools[0].replicas[0].url:"],
        ["llmshed.toml:13:", "pools[0].replicas[1].name:"],
        ["llmshed.toml:13:", "pools[0].replicas[1].nam:"],
        ["llmshed.toml:17:", "pools[1].name:"],
        ["llmshed.toml:18:", "pools[1].replicas[0].name:"],
        ["llmshed.toml:21:", "log.level:"],
    ]
    assert problems[0].endswith("unknown setting (did you mean `server.listen`?)")
    assert 'accepted: "uvloop" or "asyncio" (did you mean "uvloop"?)' in problems[2]
    assert "5000 is more than `max_output_tokens`, 1024" in problems[3]
    assert "accepted: `http://HOST:PORT`, `https://HOST:PORT` or `simulated:`" in problems[4]
    assert '"a" stands in `pools[0].name` already' in problems[7]


def test_a_syntax_error_has_line_and_column() -> None:
    assert problems_of("[server]\nlisten = \n") == ("llmshed.toml:2: column 10: not TOML: invalid value",)


def test_a_key_that_stands_twice_is_a_syntax_error_with_its_line() -> None:
    (problem,) = problems_of("[log]\nlevel = 'info'\nlevel = 'debug'\n")
    assert problem.startswith("llmshed.toml:3: ")


def test_nesting_without_end_is_refused_in_words() -> None:
    (problem,) = problems_of(f"x = {'[' * 100_000}")
    assert problem.startswith("llmshed.toml:1: not TOML that can be read")


def test_a_file_without_pools_says_what_a_pool_needs() -> None:
    assert problems_of("") == (
        "llmshed.toml:1: pools: is missing; accepted: a list of at least 1, each a table with at least `replicas`",
    )


@pytest.mark.parametrize(
    "setting", ["listen = 8080", 'max_headers = "64"', "keepalive_seconds = '75'", "allow_keyless = 1"]
)
def test_no_value_is_converted_silently(setting: str) -> None:
    (problem,) = problems_of(f"{POOL}[server]\n{setting}\n")
    assert "is refused; accepted: " in problem


@pytest.mark.parametrize("value", ["inf", "nan", "-1", "0", "1e300"])
def test_a_duration_is_a_positive_finite_number(value: str) -> None:
    (problem,) = problems_of(f"{POOL}[server]\nbody_timeout_seconds = {value}\n")
    assert problem.startswith("llmshed.toml:4: server.body_timeout_seconds: ")


def test_a_whole_number_is_a_duration() -> None:
    assert load(f"{POOL}[server]\nbody_timeout_seconds = 5\n").config.server.body_timeout_seconds == 5.0


def test_a_password_in_a_url_is_not_repeated() -> None:
    problems = problems_of('[[pools]]\nreplicas = [{ name = "r1", url = "http://user:hunter2@h:1" }]\n')
    assert "user names and passwords do not belong in a URL" in problems[0]
    assert "hunter2" not in "".join(problems)


def test_a_control_character_in_a_name_cannot_forge_a_line() -> None:
    (problem,) = problems_of(f'{POOL}[server]\n"x\\n\\u001b[31mfake" = 1\n')
    assert problem.isprintable()


class TestPrecedence:
    """Flags go before variables, variables before the file, the file before defaults."""

    text = f"{POOL}[server]\nlisten = '127.0.0.1:1'\nmax_headers = 10\nmax_header_bytes = 2048\n"
    environ: ClassVar = {"LLMSHED_SERVER__LISTEN": "127.0.0.1:2", "LLMSHED_SERVER__MAX_HEADERS": "20", "HOME": "/root"}

    def test_the_first_that_says_something_is_used(self) -> None:
        server = load(self.text, self.environ, {"server.listen": "127.0.0.1:3"}).config.server

        assert (server.listen, server.max_headers, server.max_header_bytes) == ("127.0.0.1:3", 20, 2048)

    def test_each_value_knows_where_it_came_from(self) -> None:
        loaded = load(self.text, self.environ, {"server.listen": "127.0.0.1:3"})

        assert loaded.origin(("server", "listen")) == "flag --set server.listen"
        assert loaded.origin(("server", "max_headers")) == "env LLMSHED_SERVER__MAX_HEADERS"
        assert loaded.origin(("server", "max_header_bytes")) == "llmshed.toml:6"
        assert loaded.origin(("server", "keepalive_seconds")) == "default"
        assert loaded.origin(("pools", 0, "replicas", 0, "url")) == "llmshed.toml:2"

    def test_a_mistake_is_told_where_it_was_made(self) -> None:
        loud, text = sorted(problems_of(self.text, {"LLMSHED_LOG__LEVEL": "loud"}, {"server.max_headers": "x"}))

        assert loud == (
            'env LLMSHED_LOG__LEVEL: log.level: "loud" is refused; accepted: "debug", "info", "warning" or "error"'
        )
        assert text.startswith('flag --set server.max_headers: server.max_headers: "x" is refused; accepted: a whole')

    def test_a_mistake_of_the_file_that_a_variable_replaces_is_no_mistake(self) -> None:
        loaded = load(f"{POOL}[log]\nlevel = 'loud'\n", {"LLMSHED_LOG__LEVEL": "debug"})
        assert loaded.config.log.level == "debug"


class TestContradictionsAroundAGap:
    """A rule between settings is checked although another setting is wrong, and never on a setting that is."""

    def test_the_default_of_a_wrong_setting_is_not_compared(self) -> None:
        text = f"{POOL}[lanes.interactive]\nmax_output_tokens = 'x'\ndefault_output_tokens = 5000\n"
        (problem,) = problems_of(text)
        assert "lanes.interactive.max_output_tokens" in problem

    def test_nor_is_the_default_of_a_misspelt_one(self) -> None:
        text = f"{POOL}[lanes.interactive]\nmax_ouput_tokens = 9000\ndefault_output_tokens = 5000\n"
        (problem,) = problems_of(text)
        assert "did you mean `lanes.interactive.max_output_tokens`?" in problem

    @pytest.mark.parametrize("required", [path for path in Catalogue(Config).leaves() if path[-1] in STAND_INS])
    def test_every_setting_without_a_default_has_a_stand_in(self, required: tuple[Any, ...]) -> None:
        text = f"""\
[[pools]]
{"" if required[0] == "pools" else "# "}replicas = [{{ {"name" if required[-1] == "url" else "url"} = "simulated:" }}]
{"# " if required[0] == "pools" else ""}replicas = [{{ name = "r1", url = "simulated:" }}]
[[tenants]]
{"keys_file" if required[-1] == "name" else "name"} = "x"
intents = ["bulk"]
"""
        problems = problems_of(text)

        assert any("is missing" in problem for problem in problems)
        assert any('"interactive" is not among the tenant' in problem for problem in problems)

    def test_the_stand_ins_are_all_there_is_without_a_default(self) -> None:
        schema = Config.model_json_schema()
        needed = {name for table in (schema, *schema["$defs"].values()) for name in table.get("required", ())}
        assert needed == set(STAND_INS)


values = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.dates(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["name", "url", "replicas", "listen", "interactive", "x"]), inner, max_size=3),
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*Config.model_fields, "x"]), values, max_size=5))
def test_any_data_is_loaded_or_refused_with_places(document: dict[str, Any]) -> None:
    import tomli_w  # noqa: PLC0415 - only this test writes TOML

    text = tomli_w.dumps(without_none(document))
    problems = problems_or_none(text, {})

    assert problems is None or problems
    assert all(problem.startswith("llmshed.toml:") and problem.isprintable() for problem in problems or ())


@given(st.dictionaries(st.from_regex(r"LLMSHED_[A-Z0-9_]{0,20}", fullmatch=True), st.text(max_size=20), max_size=4))
def test_any_variables_are_used_or_refused_by_name(environ: dict[str, str]) -> None:
    problems = problems_or_none(POOL, environ)

    assert environ or problems is None
    assert all(any(f"env {name}:" in problem for name in environ) for problem in problems or ())


def problems_or_none(text: str, environ: dict[str, str]) -> tuple[str, ...] | None:
    try:
        load(text, environ)
    except ConfigError as error:
        return error.problems
    return None


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_none(element) for key, element in value.items() if element is not None}
    return [without_none(element) for element in value if element is not None] if isinstance(value, list) else value
