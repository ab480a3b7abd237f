"""The rungs in force on a request that was read: another body, another pool, or as it was sent."""

from dataclasses import dataclass
from functools import partial

from llmshed.admission.lanes import allowed_class
from llmshed.admission.policy import PoolPolicy
from llmshed.admission.request import Lane
from llmshed.engines.base import Call, Engine
from llmshed.gateway.counting.prompt_bytes import prompt_bytes
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.degrading.applying import Degraded, apply_rungs
from llmshed.gateway.door.drilling import drilled_rungs
from llmshed.gateway.door.visit import Visit
from llmshed.gateway.door.wishes import Wishes
from llmshed.ladder.model import Rung, RungAction


@dataclass(frozen=True, slots=True)
class Taken:
    """A request as it is counted and sent.

    Args:
        pool: the pool whose engine and tokenizer read it.
        call: the request.
        sizes: bytes of each of its prompts.
        actions: ladder actions that changed it.
        declined: those that would have, had it not declined.
        moved_from: the pool that it came to, where another one answers.
        output_tokens: the ceiling that a drill grants; None for any other request, which the core lowers.
    """

    pool: PoolPolicy
    call: Call
    sizes: tuple[int, ...]
    actions: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    moved_from: str | None = None
    output_tokens: int | None = None

    @property
    def changed(self) -> bool:
        """Say whether it is another request than the one that was sent."""
        return bool(self.actions)


async def degrade(gateway: Gateway, visit: Visit, pool: PoolPolicy, call: Call, wishes: Wishes) -> Taken:
    """Return a request as the rungs in force leave it.

    A pool that a rung sends it to has a ladder too, which holds for it as for who comes there straight. Where that one
    sends it on it goes on, once.

    Raises:
        BodyError: the pool that is to answer takes no such request, or a drill is not permitted.
    """
    as_sent = Taken(pool, call, visit.prompt_sizes)
    drilled = drilled_rungs(gateway, visit, pool)
    rungs = _usable(gateway, _touching(gateway, visit, pool, wishes) if drilled is None else drilled)
    if not rungs:
        return as_sent
    degraded = await _applied(gateway, visit, call, rungs, pool)
    target = _answering(gateway, degraded, pool)
    if target is not None and target is not pool and drilled is None:
        onward = _usable(gateway, _touching(gateway, visit, target, wishes))
        if onward:
            degraded = await _applied(gateway, visit, call, (*rungs, *onward), target)
            target = _answering(gateway, degraded, pool)
    capped = None if drilled is None else degraded.output_tokens
    if target is None or (not degraded.actions and capped is None):
        return as_sent
    if wishes.declines_degrading:
        return Taken(pool, call, visit.prompt_sizes, declined=degraded.actions)
    visit.degradations = degraded.actions
    visit.moved_from = pool.name if target is not pool else None
    taken = await _read_anew(gateway, target, call, degraded, visit, capped)
    visit.left_out_bytes = max(0, sum(visit.prompt_sizes) - sum(taken.sizes))  # a suffix may make it longer
    return taken


async def _applied(
    gateway: Gateway, visit: Visit, call: Call, rungs: tuple[Rung, ...], answering: PoolPolicy
) -> Degraded:
    arguments = gateway.fleet.engine(answering.name).takes_template_arguments
    work = partial(apply_rungs, call.body, visit.declared, rungs, takes_template_arguments=arguments)
    return await gateway.parsing.run(work, sum(visit.prompt_sizes))


def _answering(gateway: Gateway, degraded: Degraded, pool: PoolPolicy) -> PoolPolicy | None:
    """Return the pool that is to answer; None where a reload took it away meanwhile."""
    if degraded.pool is None:
        return pool
    return next((one for one in gateway.policy.pools if one.name == degraded.pool), None)


async def _read_anew(
    gateway: Gateway, target: PoolPolicy, call: Call, degraded: Degraded, visit: Visit, capped: int | None
) -> Taken:
    """Let the engine that is to answer read the changed body, which is counted as any other."""
    body = dict(degraded.body)
    if visit.moved_from is not None and "model" in body:
        body["model"] = target.model
    engine = gateway.fleet.engine(target.name)
    read, sizes = await gateway.parsing.run(partial(_read, engine, call, body), sum(visit.prompt_sizes))
    actions = degraded.actions
    # Which lane a drill comes into is told later; its cases are interactive unless their key says otherwise.
    granted = read.asked_output_tokens or gateway.policy.lanes[Lane.INTERACTIVE].default_output_tokens
    lowered = capped is not None and capped < granted
    if lowered:
        actions = (*actions, RungAction.CAP_OUTPUT)
    return Taken(target, read, sizes, actions, (), visit.moved_from, capped if lowered else None)


def _read(engine: Engine, call: Call, body: dict[str, object]) -> tuple[Call, tuple[int, ...]]:
    read = engine.read_call(call.route, body)
    return read, tuple(map(prompt_bytes, read.prompts))


def _usable(gateway: Gateway, rungs: tuple[Rung, ...]) -> tuple[Rung, ...]:
    """Leave out rungs whose pool serves nobody now: its model is no better than the one that was asked for."""
    return tuple(rung for rung in rungs if rung.pool is None or gateway.fleet.specs(rung.pool))


def _touching(gateway: Gateway, visit: Visit, pool: PoolPolicy, wishes: Wishes) -> tuple[Rung, ...]:
    """Return the rungs in force that touch a request; none where decisions are only observed."""
    if visit.snapshot.config.admission.mode == "observe":
        return ()
    rungs = gateway.driver.rungs_in_force(pool.name)
    tenant = gateway.policy.tenants.get(visit.tenant or "")
    if not rungs or tenant is None:
        return ()
    priority_class = allowed_class(tenant, wishes.priority_class)
    return tuple(rung for rung in rungs if rung.scope.covers(priority_class, tenant.name))
