"""Settings that are valid together but probably not what was meant: told as warnings, never refused."""

from collections.abc import Iterator

from llmshed.config.addresses import SIMULATED, Address
from llmshed.config.contradictions import model_clashes
from llmshed.config.settings import Config
from llmshed.config.validation import Remark

_TGI_BODY_BYTES = 2_000_000
"""The bound that TGI's router puts on every body (axum's default of 2 MB)."""


def advice(config: Config) -> Iterator[Remark]:
    """Yield what an operator should look at once."""
    yield from _listener_advice(config)
    yield from _lane_advice(config)
    yield from _pool_advice(config)
    yield from model_clashes(config.pools, lambda _index: True)


def _listener_advice(config: Config) -> Iterator[Remark]:
    server, keyless = config.server, ("server", "allow_keyless")
    if server.allow_keyless and config.tenants:
        yield Remark((keyless,), "has no effect, since there are tenants: every request needs a key")
    elif server.allow_keyless and not Address.parse(server.listen).loopback:
        yield Remark((keyless,), f"whoever reaches {server.listen} may send work, without a key")
    if server.max_body_bytes > _TGI_BODY_BYTES:
        yield Remark(
            (("server", "max_body_bytes"),),
            f"TGI refuses bodies over {_TGI_BODY_BYTES} bytes itself, so {server.max_body_bytes} only moves the error",
        )


def _lane_advice(config: Config) -> Iterator[Remark]:
    for name in ("interactive", "bulk"):
        if not any(name in pool.lanes for pool in config.pools):
            yield Remark((("pools",),), f"no pool serves the {name} lane: its requests are refused")
    for lane, settings in (("interactive", config.lanes.interactive), ("bulk", config.lanes.bulk)):
        if settings.first_byte_timeout_seconds < settings.ttft_objective_seconds:
            yield Remark(
                (("lanes", lane, "first_byte_timeout_seconds"),),
                f"{settings.first_byte_timeout_seconds} s cuts answers off before `ttft_objective_seconds`,"
                f" {settings.ttft_objective_seconds} s, has passed",
            )


def _pool_advice(config: Config) -> Iterator[Remark]:
    for index, pool in enumerate(config.pools):
        if pool.profile is not None and pool.gross_ceiling_tokens is not None:
            yield Remark(
                (("pools", index, "gross_ceiling_tokens"),), "has no effect, since the pool has a `profile`, which wins"
            )
        simulated = all(replica.url == SIMULATED for replica in pool.replicas)
        if pool.profile is None and not simulated:
            yield Remark(
                (("pools", index, "profile"),),
                f"is unset, so pool `{pool.name}` runs uncalibrated, on what its engines tell of themselves",
            )
