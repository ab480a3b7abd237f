"""Bodies of Text Generation Inference's routes, as calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent
from llmshed.engines.base import BodyError, Call, Route
from llmshed.engines.fields import Kind, kept_fields, malformed, missing, shown, take_fields
from llmshed.engines.prompt_forms import read_prompts
from llmshed.engines.tgi.fields import PARAMETER_FIELDS, ROUTE_FIELDS, STREAM_OPTIONS
from llmshed.engines.tgi.images import count_images
from llmshed.engines.tgi.messages import read_messages
from llmshed.engines.tgi.versions import VersionFacts
from llmshed.errors import PromptError
from llmshed.tokenizing.chat_request import chat_prompt
from llmshed.tokenizing.prompts import Prompt, TextPrompt

ENGINE: Final = "TGI"
NO_ADAPTER: Final = "tgi"
"""The one model name that TGI does not take for an adapter's."""


@dataclass(frozen=True, slots=True)
class TgiCallReader:
    """Reads bodies for one version of TGI; `allow_truncate` lets `truncate` through."""

    facts: VersionFacts
    allow_truncate: bool

    def read(self, route: Route, body: Mapping[str, Any]) -> Call:
        """Turn a parsed body into a call; its `body` is what goes on the wire but for the output ceiling.

        Raises:
            BodyError: a field of another kind, unknown, refused or contradicting another one.
        """
        taken = take_fields(ROUTE_FIELDS[route], body)
        match route:
            case Route.CHAT | Route.CHAT_TOKENIZE:
                return self._chat(route, taken)
            case Route.COMPLETIONS:
                return self._completion(taken)
            case Route.ROOT | Route.GENERATE | Route.GENERATE_STREAM | Route.TOKENIZE:
                return self._native(route, taken)

    def _native(self, route: Route, taken: dict[str, Any]) -> Call:
        inputs = _needed(taken, "inputs", Kind.TEXT)
        if not inputs:
            raise malformed("inputs", "a string that is not empty", inputs)
        streamed = _native_streamed(route, taken)
        kept = kept_fields(ROUTE_FIELDS[route], taken)
        parameters: dict[str, Any] = {}
        if "parameters" in kept:
            parameters = take_fields(PARAMETER_FIELDS, kept["parameters"], "parameters.")
            kept["parameters"] = _listed_stop(parameters)
        if "truncate" in parameters and not self.allow_truncate:
            text = "`parameters.truncate` is not accepted here: it cuts the prompt silently; send a shorter one"
            raise BodyError(Reason.UNSUPPORTED_FIELD, text, "parameters.truncate")
        copies = parameters.get("best_of", 1)
        _refuse_streamed_copies("parameters.best_of", copies, streamed=streamed)
        prompts = (TextPrompt(inputs),)
        return Call(
            route=route,
            body=kept,
            streamed=streamed,
            model=taken.get("model"),
            prompts=prompts,
            copies=copies,
            asked_output_tokens=parameters.get("max_new_tokens"),
            truncate_tokens=parameters.get("truncate"),
            images=sum(map(count_images, prompts)),
        )

    def _chat(self, route: Route, taken: dict[str, Any]) -> Call:
        if "max_tokens" in taken and "max_completion_tokens" in taken:
            text = "`max_tokens` and `max_completion_tokens` are two names of one ceiling; send one of them"
            raise BodyError(Reason.MALFORMED, text, "max_completion_tokens")
        kept = self._openai_kept(route, taken)
        kept["messages"] = read_messages(_needed(taken, "messages", Kind.OBJECTS))
        if "stream_options" in kept:
            options = take_fields(STREAM_OPTIONS, kept["stream_options"], "stream_options.")
            kept["stream_options"] = kept_fields(STREAM_OPTIONS, options)
        try:
            prompts = (chat_prompt(kept),)
        except PromptError as error:
            raise BodyError(Reason.MALFORMED, str(error), str(error).partition(":")[0]) from error
        asked = taken.get("max_tokens", taken.get("max_completion_tokens"))
        return self._openai(route, taken, kept, prompts, asked, taken.get("n", 1))

    def _completion(self, taken: dict[str, Any]) -> Call:
        kept = self._openai_kept(Route.COMPLETIONS, taken)
        prompt = _needed(taken, "prompt", Kind.TEXTS)
        prompts = read_prompts(prompt, "prompt", takes_token_ids=False, engine=ENGINE)
        if not self.facts.takes_prompt_lists and isinstance(prompt, list):
            if len(prompt) > 1:
                text = "`prompt` holds several prompts, which this version of TGI does not take; send one request each"
                raise BodyError(Reason.UNSUPPORTED_FIELD, text, "prompt")
            kept["prompt"] = prompt[0]
        copies, best_of = taken.get("n", 1), taken.get("best_of", 1)
        if "best_of" in taken and best_of < copies:
            raise malformed("best_of", f"at least `n`, which is {copies}", best_of)
        _refuse_streamed_copies("best_of", best_of, streamed=taken.get("stream", False), unless=copies)
        return self._openai(Route.COMPLETIONS, taken, kept, prompts, taken.get("max_tokens"), max(copies, best_of))

    def _openai_kept(self, route: Route, taken: dict[str, Any]) -> dict[str, Any]:
        kept = _listed_stop(kept_fields(ROUTE_FIELDS[route], taken))
        if self.facts.needs_model:
            kept.setdefault("model", NO_ADAPTER)
        return kept

    def _openai(
        self,
        route: Route,
        taken: dict[str, Any],
        kept: dict[str, Any],
        prompts: tuple[Prompt, ...],
        asked_output_tokens: int | None,
        copies: int,
    ) -> Call:
        return Call(
            route=route,
            body=kept,
            streamed=taken.get("stream", False) and route.generates,
            model=taken.get("model"),
            prompts=prompts,
            copies=copies,
            asked_output_tokens=asked_output_tokens,
            declared_intent=_declared_intent(taken),
            session_hint=taken.get("prompt_cache_key"),
            images=sum(map(count_images, prompts)),
        )


def _needed(taken: Mapping[str, Any], name: str, kind: Kind) -> Any:
    """Return a field without which the route means nothing."""
    if name not in taken:
        raise missing(name, kind.text)
    return taken[name]


def _native_streamed(route: Route, taken: Mapping[str, Any]) -> bool:
    """Say whether a native route streams; only `POST /` leaves that to the body."""
    said = taken.get("stream")
    if route is Route.ROOT:
        return bool(said)
    streamed = route is Route.GENERATE_STREAM
    if said is not None and said is not streamed:
        other = Route.GENERATE if streamed else Route.GENERATE_STREAM
        text = f"`stream` contradicts the route {route}; send it to {other} or to {Route.ROOT}"
        raise BodyError(Reason.MALFORMED, text, "stream")
    return streamed


def _refuse_streamed_copies(param: str, copies: int, *, streamed: bool, unless: int = 1) -> None:
    """Refuse to choose the best of several answers that were already sent."""
    if streamed and copies > unless:
        raise BodyError(Reason.UNSUPPORTED_FIELD, f"`{param}` above {unless} is not accepted with a stream", param)


def _listed_stop(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with `stop` in the only form that TGI takes."""
    stop = fields.get("stop")
    return {**fields, "stop": [stop]} if isinstance(stop, str) else fields


def _declared_intent(taken: Mapping[str, Any]) -> str | None:
    """Read the intent that an OpenAI client can declare without headers of its own."""
    declared = taken.get("metadata", {}).get("llmshed_intent")
    if declared is not None:
        if declared not in list(Intent):
            accepted = " or ".join(f"`{intent}`" for intent in Intent)
            told = shown(declared) if isinstance(declared, str) else "no string"
            text = f"`metadata.llmshed_intent` must be {accepted}, not {told}"
            raise BodyError(Reason.MALFORMED, text, "metadata.llmshed_intent")
        return str(declared)
    return Intent.BULK.value if taken.get("service_tier") == "flex" else None
