"""The exact input tokens of a call: counted here, bounded from its bytes, or asked of the engine where images are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llmshed.admission.policy import PoolPolicy
from llmshed.engines.base import Call, Route
from llmshed.errors import EngineError, PromptError, TokenizerError
from llmshed.gateway.counting.pool import TooLarge
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.replicas.selfcheck import count_by_engine
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, Prompt, TextPrompt


@dataclass(frozen=True, slots=True)
class CountedCall:
    """What counting a call found.

    Args:
        prompt_tokens: input tokens of each prompt, in order; those that the engine will use after `truncate`.
        prefix_blocks: keyed hashes of the leading blocks of a single prompt.
        untruncated_tokens: count of all sequences before `truncate`; None without one.
    """

    prompt_tokens: tuple[int, ...]
    prefix_blocks: tuple[str, ...] = ()
    untruncated_tokens: int | None = None


class ProvedTooLargeError(Exception):
    """The bytes of one prompt prove more tokens than was useful; `proved` holds that many for it, 0 for others."""

    def __init__(self, proved: CountedCall) -> None:
        """Keep what is proved."""
        super().__init__("more tokens than any replica takes")
        self.proved = proved


async def count_call(
    gateway: Gateway,
    pool: PoolPolicy,
    call: Call,
    max_useful_tokens: int | None = None,
    sizes: tuple[int, ...] | None = None,
) -> CountedCall:
    """Count a call exactly.

    Args:
        gateway: whose pools, replicas and threads count it.
        pool: the pool whose engine and tokenizer read it.
        call: what is counted.
        max_useful_tokens: the longest prompt whose count could matter; None for any.
        sizes: bytes of each of its prompts, where they are known.

    Raises:
        ProvedTooLargeError: a prompt is longer than that, which its bytes prove; nothing was counted.
        BacklogError: too many bytes wait to be counted.
        PromptError: the prompt cannot be counted, as the engine would refuse it.
        TokenizerError: the pool has no tokenizer that counts as its engine does.
    """
    if call.images and _image_tokens(gateway, pool) is None:
        return CountedCall(tuple([await _asked(gateway, pool, call, prompt) for prompt in call.prompts]))
    useful = None if call.truncate_tokens is not None else max_useful_tokens
    counted = await gateway.counting.count(gateway.fleet.counter(pool.name), call.prompts, useful, sizes)
    if isinstance(counted, TooLarge):
        proved = [0] * len(call.prompts)
        proved[counted.index] = counted.at_least_tokens
        raise ProvedTooLargeError(CountedCall(tuple(proved)))
    tokens = tuple(count.tokens for count in counted)
    blocks = counted[0].blocks if len(counted) == 1 else ()
    if call.truncate_tokens is None:
        return CountedCall(tokens, blocks)
    cut = tuple(min(count, call.truncate_tokens) for count in tokens)
    # The engine keeps the end of a prompt that it cuts, so its leading blocks say nothing.
    return CountedCall(cut, blocks if cut == tokens else (), sum(tokens) * call.copies)


def most_useful_tokens(gateway: Gateway, model: str) -> int | None:
    """Return the longest prompt that any replica of a model takes; None while none is up."""
    limits = [
        spec.limits.max_input_tokens
        for pool in gateway.policy.pools
        if pool.model == model
        for spec in gateway.fleet.specs(pool.name)
    ]
    return max(limits, default=None)


def _image_tokens(gateway: Gateway, pool: PoolPolicy) -> int | None:
    """Return the bound of one image that the operator set for a pool."""
    bounds = (settings.image_tokens for settings in gateway.snapshot.config.pools if settings.name == pool.name)
    return next(bounds, None)


async def _asked(gateway: Gateway, pool: PoolPolicy, call: Call, prompt: Prompt) -> int:
    """Ask a replica that is up: only the engine knows how many tokens an image takes."""
    specs = gateway.fleet.specs(pool.name)
    if not specs:
        raise TokenizerError("prompts with images are counted by the engine, and no replica is up")
    replica = specs[0].name
    engine = gateway.fleet.engine_of(replica)
    route, body = _question(call, prompt)
    timeout_seconds = gateway.snapshot.config.upstream.probe_timeout_seconds
    try:
        asked = engine.read_call(route, body)
        tokens = await count_by_engine(gateway.upstream, gateway.fleet.url(replica), engine, asked, timeout_seconds)
    except EngineError as error:
        raise TokenizerError(f"the engine did not count a prompt with images: {error}") from error
    if tokens is None:
        raise PromptError("the engine refuses to count this prompt with its images")
    return tokens


def _question(call: Call, prompt: Prompt) -> tuple[Route, Mapping[str, Any]]:
    match prompt:
        case TextPrompt(text):
            return Route.TOKENIZE, {"inputs": text}
        case ChatPrompt():
            kept = {"messages", "tools", "tool_choice", "tool_prompt"}
            return Route.CHAT_TOKENIZE, {name: value for name, value in call.body.items() if name in kept}
        case IdsPrompt():
            raise PromptError("a prompt of token ids holds no images")
