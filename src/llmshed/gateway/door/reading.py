"""From the bytes of a body to a counted request: the steps that generating and counting routes share."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from llmshed.admission.policy import PoolPolicy
from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError, Call, Engine, Route
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.conversations import Turns, turns_of
from llmshed.gateway.counting.prompt_bytes import prompt_bytes
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.degrading.declared import Declared, read_declared
from llmshed.gateway.door.body import parse_body
from llmshed.gateway.door.gates import check_body_headers
from llmshed.gateway.door.intake import read_body
from llmshed.gateway.door.problems import RefusedError
from llmshed.gateway.door.visit import Visit
from llmshed.gateway.hashing import Hasher
from llmshed.observability.endings import Phase
from llmshed.tokenizing.prompts import ChatPrompt


class _Understood(NamedTuple):
    """A body as an engine reads it, and what is derived from all of its bytes; the fields are those of `Visit`."""

    call: Call
    prompt_sizes: tuple[int, ...]
    fingerprint: str
    turns: Turns | None
    declared: Declared


def check_open(gateway: Gateway, visit: Visit) -> None:
    """Refuse what needs no body: draining, no replica, the tenant's own quota, a length or form that is not taken.

    Raises:
        RefusedError: the gateway's own refusal.
        BodyError: as `gates.check_body_headers`.
    """
    verdict = gateway.gate(visit.tenant or "")
    if verdict is not None and visit.snapshot.desk.upholds(verdict):
        visit.verdict = verdict
        raise RefusedError(Problem.from_verdict(verdict))
    check_body_headers(visit.request.headers, visit.snapshot.config.server)


async def read_call(gateway: Gateway, visit: Visit) -> tuple[PoolPolicy, Call]:
    """Read, parse and understand the body; returns the pool whose engine and tokenizer read it.

    Raises:
        BodyError: anything that `intake`, `body` or the engine refuse, or a model that no pool serves.
    """
    visit.phase = Phase.BODY
    raw = await read_body(visit.request, visit.snapshot.config.server, gateway.clock.now)
    body = await gateway.parsing.run(partial(parse_body, raw), len(raw))
    pool = pool_of(gateway.policy.pools, body, gateway.fleet.is_met)
    visit.model = pool.model
    engine, route = gateway.fleet.engine(pool.name), Route(visit.path)
    visit.engine = engine
    work = partial(_understand, engine, route, body, gateway.hasher, visit.tenant or "")
    understood = await gateway.parsing.run(work, len(raw))
    visit.call, visit.prompt_sizes, visit.fingerprint, visit.turns, visit.declared = understood
    return pool, understood.call


def _understand(engine: Engine, route: Route, body: dict[str, Any], hasher: Hasher, tenant: str) -> _Understood:
    """Do all work on a body that takes time in proportion to its size, but for counting its tokens."""
    call = engine.read_call(route, body)
    sizes = tuple(map(prompt_bytes, call.prompts))
    fingerprint = hasher.body(tenant, route.value, call.body)
    return _Understood(call, sizes, fingerprint, _turns(call, hasher, tenant), read_declared(body))


def _turns(call: Call, hasher: Hasher, tenant: str) -> Turns | None:
    """Return the beginnings of a chat that asks for an answer; a raw prompt shows no turns."""
    prompt = call.prompts[0] if call.prompts else None
    if isinstance(prompt, ChatPrompt) and call.route.generates:
        return turns_of(hasher.turns(tenant), prompt.messages)
    return None


def pool_of(pools: tuple[PoolPolicy, ...], body: Mapping[str, Any], is_met: Callable[[str], bool]) -> PoolPolicy:
    """Return the pool that reads a body: of the model that it names, or of the first pool's when it names none.

    Pools of one model share its tokenizer and differ in lanes, which the core chooses later. So the first that `is_met`
    knows is as good as any, and one that cannot be used yet does not keep the others from their work; for who names no
    model that goes for pools of other models too.

    Raises:
        BodyError: `not_found`, with the models that are served; the name that was sent is not repeated.
    """
    model = body.get("model")
    if not isinstance(model, str):  # an absent model is the engine's own, a number is refused by the engine's adapter
        serving = sorted(pools, key=lambda pool: pool.model != pools[0].model)
    else:
        serving = [pool for pool in pools if pool.serves(model)]
    if serving:
        return next((pool for pool in serving if is_met(pool.name)), serving[0])
    served = ", ".join(dict.fromkeys(pool.model for pool in pools))
    raise BodyError(Reason.NOT_FOUND, f"That model is not served here. Models: {served}.", "model")
