"""What llama.cpp's server tells of itself: its build and its context on `/props`, its model on `/v1/models`.

The context is split among the slots, and `/props` tells that of one slot and their number. With `--kv-unified` all
slots share one cache of the size that is then told for each, and nothing tells that this is so: slots times context is
the size of the cache or more.
"""

from collections.abc import Mapping
from typing import Final

from llmshed.engines.base import EngineInfo
from llmshed.engines.description import Description

_ENGINE: Final = "llama.cpp"
_PROPS: Final = "/props"
_MODELS: Final = "/v1/models"
DESCRIPTION_PATHS: Final[tuple[str, ...]] = (_PROPS, _MODELS)


def read_llamacpp_description(pages: Mapping[str, bytes]) -> EngineInfo:
    """Read both pages.

    More requests than there are slots wait, without end and without a refusal, so `max_concurrent_requests`, which
    stands for permits, is not told.

    Raises:
        EngineError: they are not llama.cpp's.
    """
    props = Description.page(pages, _PROPS, _ENGINE)
    build = props.text("build_info")
    slots = props.bound("total_slots")
    context_tokens = props.inside("default_generation_settings").bound("n_ctx")
    models = Description.page(pages, _MODELS, _ENGINE)
    cards = models.fields.get("data")
    if not isinstance(cards, list) or not cards:
        raise models.unlike("data", "a list of models")
    return EngineInfo(
        model_id=Description.of(_MODELS, _ENGINE, cards[0]).text("id"),
        version=build,
        max_running_sequences=slots,
        max_total_tokens=context_tokens,
        max_batch_total_tokens=slots * context_tokens,
    )
