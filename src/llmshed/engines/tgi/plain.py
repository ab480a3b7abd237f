"""A text and its streamed completion on Text Generation Inference's own routes, as a load generator sends it."""

import orjson

from llmshed.engines.base import EngineRequest, Route


def tgi_text_request(text: str, output_ceiling_tokens: int) -> EngineRequest:
    """Ask `/generate_stream` for a sampled output.

    Sampling is what TGI does without parameters, and a greedy output repeats itself. Its router has no word for going
    on past the end of a text.
    """
    parameters = {"max_new_tokens": output_ceiling_tokens, "do_sample": True}
    return EngineRequest(Route.GENERATE_STREAM, orjson.dumps({"inputs": text, "parameters": parameters}))


def tgi_count_request(text: str) -> EngineRequest:
    """Ask `/tokenize`, which adds special tokens as generation does."""
    return EngineRequest(Route.TOKENIZE, orjson.dumps({"inputs": text}))
