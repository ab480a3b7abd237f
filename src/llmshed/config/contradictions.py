"""Rules between settings: values that are valid one by one but cannot all be meant."""

from collections.abc import Callable, Iterator, Sequence

from llmshed.config.addresses import SIMULATED, Address
from llmshed.config.counting import CountingSettings
from llmshed.config.ladders import LadderSettings
from llmshed.config.lanes import BulkThresholds, InteractiveThresholds, LaneSettings
from llmshed.config.paths import Path, spelled
from llmshed.config.pools import PoolSettings
from llmshed.config.server import ServerSettings
from llmshed.config.tenants import TenantSettings
from llmshed.config.validation import Remark


def listener_contradictions(server: ServerSettings, tenants: Sequence[TenantSettings]) -> Iterator[Remark]:
    """Yield what would open the gateway or its administration to strangers, or cannot be bound."""
    listen, admin = ("server", "listen"), ("server", "admin_listen")
    keyless, token = ("server", "allow_keyless"), ("server", "admin_token_file")
    if not tenants and not server.allow_keyless and not Address.parse(server.listen).loopback:
        yield Remark(
            (listen, keyless, ("tenants",)),
            f"`{server.listen}` is reached from other machines and there are no tenants, so that everybody could send"
            " work; add `[[tenants]]` with their keys, listen on 127.0.0.1, or set `allow_keyless = true`",
        )
    if server.admin_token_file is None and not Address.parse(server.admin_listen).loopback:
        yield Remark(
            (admin, token),
            f"`{server.admin_listen}` is reached from other machines; set `admin_token_file`, listen on 127.0.0.1, or"
            " use `unix:/PATH`",
        )
    if server.listen == server.admin_listen and Address.parse(server.listen).port != 0:
        yield Remark((admin, listen), "is the address of the data listener too; each listener needs its own")


def lane_contradictions(
    interactive: InteractiveThresholds, bulk: BulkThresholds, table: Path = ("lanes",)
) -> Iterator[Remark]:
    """Yield default ceilings above their lane's maximum, and a bulk lane that takes less than the interactive one."""
    for name, lane in (("interactive", interactive), ("bulk", bulk)):
        most, unasked = lane.max_output_tokens, lane.default_output_tokens
        if most is not None and unasked > most:
            yield Remark(
                ((*table, name, "default_output_tokens"), (*table, name, "max_output_tokens")),
                f"{unasked} is more than `max_output_tokens`, {most}; at most {most} is accepted",
            )
    pairs = (
        ("max_input_tokens", interactive.max_input_tokens, bulk.max_input_tokens),
        ("max_output_tokens", interactive.max_output_tokens, bulk.max_output_tokens),
    )
    for setting, short, long in pairs:
        if long is not None and long < short:
            yield Remark(
                ((*table, "bulk", setting), (*table, "interactive", setting)),
                f"{long} is less than the interactive lane's {short}, which larger requests leave for this lane;"
                f" at least {short} is accepted",
            )


def ladder_file_contradictions(ladder: LadderSettings, decisions: str) -> Iterator[Remark]:
    """Yield a state file that something else is written to: it is put in place whole, and what was there is gone."""
    if ladder.state_file is None:
        return
    setting = ("ladder", "state_file")
    for other, place in ((("ladder", "audit_file"), ladder.audit_file), (("log", "decisions"), decisions)):
        if place == ladder.state_file:
            yield Remark(
                (setting, other), f"is `{spelled(other)}` too, which each hold would replace; name another file"
            )


def residence_contradictions(lanes: LaneSettings) -> Iterator[Remark]:
    """Yield longest waits within the queue's share of the objective: a signal could then never exceed that share."""
    for name, lane in (("interactive", lanes.interactive), ("bulk", lanes.bulk)):
        share_seconds = lane.queue_share_ratio * lane.ttft_objective_seconds
        if lane.max_residence_seconds is not None and lane.max_residence_seconds <= share_seconds:
            yield Remark(
                (("lanes", name, "max_residence_seconds"), ("lanes", name, "queue_share_ratio")),
                f"{lane.max_residence_seconds:g} is not more than the queue's share of the TTFT objective,"
                f" {share_seconds:g}; more is accepted",
            )


def counting_contradictions(counting: CountingSettings, server: ServerSettings) -> Iterator[Remark]:
    """Yield queues that could never take what is meant for them."""
    rules = (
        (("counting", "inline_bytes"), counting.inline_bytes, ("counting", "small_bytes"), counting.small_bytes),
        (
            ("counting", "small_bytes"),
            counting.small_bytes,
            ("counting", "small_queue_bytes"),
            counting.small_queue_bytes,
        ),
        (
            ("server", "max_body_bytes"),
            server.max_body_bytes,
            ("counting", "large_queue_bytes"),
            counting.large_queue_bytes,
        ),
    )
    for path, value, bound_path, bound in rules:
        if value > bound:
            yield Remark((path, bound_path), f"{value} is more than `{spelled(bound_path)}`, {bound}")


def tenant_contradictions(tenants: Sequence[TenantSettings]) -> Iterator[Remark]:
    """Yield names and key files that two tenants share, and default intents that the tenant may not use."""
    yield from _repeated([(("tenants", index, "name"), tenant.name) for index, tenant in enumerate(tenants)])
    yield from _repeated([(("tenants", index, "keys_file"), tenant.keys_file) for index, tenant in enumerate(tenants)])
    for index, tenant in enumerate(tenants):
        if tenant.default_intent not in tenant.intents:
            yield Remark(
                (("tenants", index, "default_intent"), ("tenants", index, "intents")),
                f'"{tenant.default_intent}" is not among the tenant\'s `intents`, {", ".join(tenant.intents)}',
            )


def pool_contradictions(pools: Sequence[PoolSettings]) -> Iterator[Remark]:
    """Yield names, engines and model names that lead to two places."""
    yield from _repeated([(("pools", index, "name"), pool.name) for index, pool in enumerate(pools)])
    replicas = [
        (("pools", index, "replicas", number), replica)
        for index, pool in enumerate(pools)
        for number, replica in enumerate(pool.replicas)
    ]
    yield from _repeated([((*path, "name"), replica.name) for path, replica in replicas])
    yield from _repeated(
        [((*path, "url"), replica.url) for path, replica in replicas if replica.url != SIMULATED],
        "one engine with two budgets would be lent twice",
    )
    yield from model_clashes(pools, lambda index: "aliases" in pools[index].model_fields_set)


def model_clashes(pools: Sequence[PoolSettings], matters: Callable[[int], bool]) -> Iterator[Remark]:
    """Yield the names that clients could mean two models by.

    Pools of one model may share every name, and so may two pools that leave their model to the engine and serve
    different lanes. `matters(index)` says whether the aliases of a pool are to be looked at.
    """
    for index, pool in enumerate(pools):
        for earlier, other in enumerate(pools[:index]):
            same = pool.model == other.model and (pool.model != "auto" or not set(pool.lanes) & set(other.lanes))
            if same:
                continue
            shared = _names(other, aliases=matters(earlier)) & _names(pool, aliases=matters(index))
            for name in sorted(shared):
                yield Remark(
                    (_name_path(pool, index, name), _name_path(other, earlier, name)),
                    f'"{name}" leads to pool `{other.name}` too, which may serve another model; a name that clients'
                    " send leads to one model",
                )


def _names(pool: PoolSettings, *, aliases: bool) -> set[str]:
    known = set() if pool.model == "auto" else {pool.model}
    return known | set(pool.aliases) if aliases else known


def _name_path(pool: PoolSettings, index: int, name: str) -> Path:
    return ("pools", index, "model" if pool.model == name else "aliases")


def _repeated(named: Sequence[tuple[Path, str]], why: str = "each must be the only one") -> Iterator[Remark]:
    first: dict[str, Path] = {}
    for path, value in named:
        if value in first:
            yield Remark((path, first[value]), f'"{value}" stands in `{spelled(first[value])}` already; {why}')
        first.setdefault(value, path)
