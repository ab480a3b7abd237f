"""What vLLM tells of itself: its version, its model, and the size of its KV cache among its metrics.

The cache stands in `vllm:cache_config_info`, a gauge whose value is always 1 and whose labels hold the numbers as text.
Versions from about 0.20 on tell `kv_cache_size_tokens`; older ones blocks and tokens a block. Nothing tells how many
sequences run together (`--max-num-seqs`).
"""

from collections.abc import Mapping
from typing import Final

from llmshed.engines.base import EngineInfo
from llmshed.engines.description import Description
from llmshed.engines.metrics_text import labelled_values
from llmshed.engines.vllm.signals import MOST_LINES

_ENGINE: Final = "vLLM"
_VERSION: Final = "/version"
_MODELS: Final = "/v1/models"
_METRICS: Final = "/metrics"
DESCRIPTION_PATHS: Final[tuple[str, ...]] = (_VERSION, _MODELS, _METRICS)
_CACHE: Final = "vllm:cache_config_info"


def read_vllm_description(pages: Mapping[str, bytes]) -> EngineInfo:
    """Read `/version`, `/v1/models` and, where it is there, `/metrics`.

    The model is the one that is no adapter of another one.

    Raises:
        EngineError: the first two are not vLLM's.
    """
    version = Description.page(pages, _VERSION, _ENGINE).text("version")
    models = Description.page(pages, _MODELS, _ENGINE)
    card = _base_card(models)
    if card.fields.get("owned_by") != "vllm":
        raise card.unlike("owned_by", "`vllm`")
    return EngineInfo(
        model_id=card.text("id"),
        version=version,
        max_total_tokens=card.optional_bound("max_model_len"),
        max_batch_total_tokens=_kv_tokens(pages.get(_METRICS, b"")),
    )


def _base_card(models: Description) -> Description:
    """Return the entry of the model itself; adapters (LoRA) name it as their parent."""
    cards = models.fields.get("data")
    if not isinstance(cards, list) or not cards:
        raise models.unlike("data", "a list of models")
    entries = [Description.of(models.path, _ENGINE, card) for card in cards]
    return next((entry for entry in entries if entry.fields.get("parent") is None), entries[0])


def _kv_tokens(page: bytes) -> int | None:
    """Sum the caches of all engines behind this address (data parallelism); None unless each tells its size."""
    sizes = [_cache_tokens(series.labels) for series in labelled_values(page, (_CACHE,), MOST_LINES)]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _cache_tokens(labels: Mapping[str, str]) -> int | None:
    told = _number(labels.get("kv_cache_size_tokens"))
    if told is not None:
        return told
    blocks, block_tokens = _number(labels.get("num_gpu_blocks")), _number(labels.get("block_size"))
    return None if blocks is None or block_tokens is None else blocks * block_tokens


def _number(label: str | None) -> int | None:
    """Read a label; what is not set is told as `None`."""
    readable = label is not None and label.isascii() and label.isdigit() and len(label) <= 12 and int(label) > 0
    return int(label) if label is not None and readable else None
