"""`/info` as each version of TGI tells it, and as other servers do."""

from typing import Any

import pytest

from llmshed.engines.base import EngineInfo
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.errors import EngineError

REVISION = "e985a63cdc139290c5f700ff1929f0b5942cced2"
V1_4 = {
    "model_id": "mistralai/Mistral-7B-v0.1",
    "model_sha": None,
    "model_dtype": "torch.float16",
    "model_device_type": "cuda",
    "model_pipeline_tag": None,
    "max_concurrent_requests": 128,
    "max_best_of": 2,
    "max_stop_sequences": 4,
    "max_input_length": 1024,
    "max_total_tokens": 2048,
    "waiting_served_ratio": 1.2,
    "max_batch_total_tokens": 32000,
    "max_waiting_tokens": 20,
    "max_batch_size": None,
    "validation_workers": 2,
    "version": "1.4.5",
    "sha": None,
    "docker_label": None,
}
V2_0_2 = {**V1_4, "version": "2.0.2", "max_client_batch_size": 4}
V2_4 = {
    "model_id": "mistralai/Mistral-7B-v0.1",
    "model_sha": REVISION,
    "model_pipeline_tag": "text-generation",
    "max_concurrent_requests": 128,
    "max_best_of": 2,
    "max_stop_sequences": 4,
    "max_input_tokens": 1023,
    "max_total_tokens": 2048,
    "validation_workers": 2,
    "max_client_batch_size": 4,
    "router": "text-generation-router",
    "version": "2.4.0",
    "sha": None,
    "docker_label": None,
}
V3_0 = {**V2_4, "version": "3.0.0", "max_input_tokens": 8191, "max_total_tokens": 8192}
V3_3 = {**V3_0, "version": "3.3.6-dev0"}
EMBEDDINGS = {
    "model_id": "BAAI/bge-small-en",
    "model_dtype": "float16",
    "model_type": {"embedding": {"pooling": "cls"}},
    "max_concurrent_requests": 512,
    "max_input_length": 512,
    "max_batch_tokens": 16384,
    "version": "1.2.3",
}


@pytest.mark.parametrize(
    ("told", "info"),
    [
        (
            V1_4,
            EngineInfo("mistralai/Mistral-7B-v0.1", "1.4.5", 128, 1024, 2048, 32000, 2, None, None, "torch.float16"),
        ),
        (V2_0_2, EngineInfo("mistralai/Mistral-7B-v0.1", "2.0.2", 128, 1024, 2048, 32000, 2, 4, None, "torch.float16")),
        (V2_4, EngineInfo("mistralai/Mistral-7B-v0.1", "2.4.0", 128, 1023, 2048, None, 2, 4, REVISION)),
        (V3_0, EngineInfo("mistralai/Mistral-7B-v0.1", "3.0.0", 128, 8191, 8192, None, 2, 4, REVISION)),
        (V3_3, EngineInfo("mistralai/Mistral-7B-v0.1", "3.3.6-dev0", 128, 8191, 8192, None, 2, 4, REVISION)),
        (
            {**V1_4, "max_batch_total_tokens": None},
            EngineInfo("mistralai/Mistral-7B-v0.1", "1.4.5", 128, 1024, 2048, None, 2, dtype="torch.float16"),
        ),
    ],
)
def test_limits_are_read_from_every_form(told: dict[str, Any], info: EngineInfo) -> None:
    assert TgiEngine().read_info(told) == info


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({}, "`model_id` should be a string, but it is missing; told: nothing"),
        ([], "not a JSON object"),
        ("ok", "not a JSON object"),
        (None, "not a JSON object"),
        (EMBEDDINGS, "`max_total_tokens` should be a whole number above 0, but it is missing; told: `model_id`"),
        ({"object": "list", "data": []}, "told: `object`, `data`"),
        ({**V3_3, "model_id": 7}, "`model_id` should be a string, but it is 7"),
        ({**V3_3, "model_id": "a\r\nb: c"}, "`model_id` should be 1 to 256 printable ASCII characters"),
        ({**V3_3, "model_id": "x" * 257}, "`model_id` should be 1 to 256 printable ASCII characters"),
        ({**V3_3, "model_id": "modèle"}, "`model_id` should be 1 to 256 printable ASCII characters"),
        ({**V3_3, "version": "3.3.5\n"}, "`version` should be 1 to 256 printable ASCII characters"),
        ({**V3_3, "version": "main"}, "`version` should be like 3.3.5, but it is `main`"),
        ({**V3_3, "version": None}, "`version` should be a string"),
        ({**V3_3, "max_total_tokens": 0}, "`max_total_tokens` should be a whole number above 0, but it is 0"),
        ({**V3_3, "max_total_tokens": "8192"}, "but it is a str"),
        ({**V3_3, "max_concurrent_requests": True}, "`max_concurrent_requests`"),
        ({**V3_3, "max_best_of": -1}, "`max_best_of`"),
        ({**V3_3, "max_input_tokens": None}, "`max_input_tokens`"),
        ({**V3_3, "model_sha": 7}, "`model_sha` should be a string, but it is 7"),
        ({"\n\x1b": 1}, r"told: `\n\u001b`"),
    ],
)
def test_another_server_is_told_by_what_came(told: Any, named: str) -> None:
    with pytest.raises(EngineError) as caught:
        TgiEngine().read_info(told)
    assert named in str(caught.value)
    assert str(caught.value).startswith("/info: ")
