"""Text Generation Inference's `/info`, in the forms of its versions."""

from collections.abc import Mapping
from typing import Any, Final

from llmshed.engines.base import EngineInfo
from llmshed.engines.description import Description
from llmshed.engines.fields import shown
from llmshed.engines.tgi.versions import release_of
from llmshed.errors import EngineError

INFO: Final = "/info"
_INPUT_NAMES: Final = ("max_input_tokens", "max_input_length")
"""The limit on input was renamed in 2.1.0."""


def read_tgi_info(info: Mapping[str, Any]) -> EngineInfo:
    """Read `/info` of versions 1.4 to 3.3.

    `max_batch_total_tokens` and `model_dtype` are told up to 2.2.0 only, `max_client_batch_size` from 2.0.2 on.

    Raises:
        EngineError: a field that every version tells is missing or of another kind; the text names it.
    """
    told = Description.of(INFO, "TGI", info)
    model_id = told.text("model_id")
    version = told.text("version")
    if release_of(version) is None:
        raise EngineError(f"/info: `version` should be like 3.3.5, but it is {shown(version)}. Is this a TGI server?")
    input_name = next((name for name in _INPUT_NAMES if name in info), _INPUT_NAMES[0])
    return EngineInfo(
        model_id=model_id,
        version=version,
        max_concurrent_requests=told.bound("max_concurrent_requests"),
        max_input_tokens=told.bound(input_name),
        max_total_tokens=told.bound("max_total_tokens"),
        max_batch_total_tokens=told.optional_bound("max_batch_total_tokens"),
        max_best_of=told.optional_bound("max_best_of"),
        max_client_batch_size=told.optional_bound("max_client_batch_size"),
        model_revision=told.optional_text("model_sha"),
        dtype=told.optional_text("model_dtype"),
    )
