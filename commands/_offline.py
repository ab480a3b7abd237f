"""The verdict of `llmshed classify` without a gateway: a replica in the condition that the options state."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmshed.admission.offline import offline_verdict
from llmshed.admission.policy import AdmissionPolicy, LanePolicy, PoolPolicy, ReplicaSpec, TenantPolicy
from llmshed.admission.report import verdict_report
from llmshed.admission.request import Intent, Lane, PriorityClass, Request
from llmshed.admission.settings import ANONYMOUS, EngineLimits, lane_policies, model_limits, profile_budget
from llmshed.engines.base import Route
from llmshed.engines.registry import engine
from llmshed.engines.tgi.versions import AUTO
from llmshed.errors import ExitCode, LlmshedError
from llmshed.profile import Profile

MODEL = "offline"
"""Stands for the one model of the stated replica; a model named in a request body is not looked at."""


class InputError(LlmshedError):
    """A request body that no gateway would read."""

    exit_code = ExitCode.BAD_DATA


def lanes_of(config_path: Path) -> dict[Lane, LanePolicy]:
    """Return the thresholds of a configuration.

    Raises:
        ConfigError: the file cannot be read, or holds mistakes.
    """
    from llmshed.gateway.config_file import read_config

    lanes = read_config(config_path, os.environ, {}).config.lanes
    return lane_policies(lanes.interactive, lanes.bulk)


def route_of(body: Mapping[str, Any]) -> Route:
    """Return the route that a request body belongs to, by the field that holds its prompt.

    Raises:
        InputError: none of the fields is there, or several.
    """
    routes = {"messages": Route.CHAT, "prompt": Route.COMPLETIONS, "inputs": Route.GENERATE}
    named = [name for name in routes if name in body]
    if len(named) != 1:
        raise InputError(f"a request body holds one of messages, prompt and inputs; this one holds {named or 'none'}")
    return routes[named[0]]


def counted_request(body: Mapping[str, Any], tokenizer: str, wishes: Mapping[str, Any]) -> Request:
    """Count the prompts of a request body as TGI would.

    Raises:
        BodyError: the body is not one that the route takes.
        PromptError: the prompt cannot be counted.
        TokenizerError: the tokenizer cannot be loaded.
    """
    from llmshed.tokenizing.build import build_counter
    from llmshed.tokenizing.load import find

    call = engine("tgi").read_call(route_of(body), body)
    counter = build_counter(find(tokenizer), "tgi")
    return stated_request(
        tuple(counter.count(prompt).tokens for prompt in call.prompts),
        {"max_output": call.asked_output_tokens, "intent": call.declared_intent}
        | {name: value for name, value in wishes.items() if value is not None},
        copies=call.copies,
    )


def stated_request(prompt_tokens: tuple[int, ...], wishes: Mapping[str, Any], copies: int = 1) -> Request:
    """Return a request of that size with the wishes `max_output`, `intent` and `class`, each of which may be None."""
    intent, priority_class = wishes.get("intent"), wishes.get("class")
    return Request(
        key=1,
        tenant=ANONYMOUS,
        model=MODEL,
        prompt_tokens=prompt_tokens,
        copies=copies,
        asked_output_tokens=wishes.get("max_output"),
        asked_intent=None if intent is None else Intent(intent),
        asked_class=None if priority_class is None else PriorityClass(priority_class),
    )


def judge(
    request: Request, profile: Profile, condition: Mapping[str, int], lanes: Mapping[Lane, LanePolicy] | None
) -> dict[str, Any]:
    """Return the report on a request before one replica of that profile.

    Args:
        request: the counted request.
        profile: what the replica may lend; the engine that its fingerprint names decides the overrun.
        condition: `active_tokens`, `active_sequences` and `queued_tokens`.
        lanes: thresholds of a configuration; None for those that the profile was made for.
    """
    both = frozenset({Lane.INTERACTIVE, Lane.BULK})
    policy = AdmissionPolicy(
        lanes=lanes or lane_policies(profile.lanes.interactive, profile.lanes.bulk),
        pools=(PoolPolicy("offline", MODEL, frozenset(), both),),
        tenants={ANONYMOUS: TenantPolicy(ANONYMOUS, top_class=request.asked_class or PriorityClass.NORMAL)},
    )
    verdict = offline_verdict(request, policy, _spec(profile), **condition)
    return verdict_report(verdict, request)


def _spec(profile: Profile) -> ReplicaSpec:
    named = profile.fingerprint
    overrun = engine(named.engine).overrun_chunk_tokens(named.engine_version or AUTO) if named.engine == "tgi" else 0
    told = EngineLimits(max_total_tokens=named.limits.max_total_tokens, max_input_tokens=named.limits.max_input_tokens)
    return ReplicaSpec(
        name="offline",
        pool="offline",
        budget=profile_budget(profile),
        limits=model_limits(None, told, profile),
        overrun_chunk_tokens=overrun,
        profile=profile.label,
    )
