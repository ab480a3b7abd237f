"""What an engine tells and how it refuses, engine by engine."""

from dataclasses import replace

import pytest

from fakes.stages import ONE_POOL, stage
from llmshed.admission.settings import EngineLimits, EngineManners
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.manners import engine_limits, engine_manners, engine_name, refusal_status, warnings_of
from llmshed.whatif.replicas import EngineRefusal

VLLM = VllmParameters(max_num_seqs=64, max_model_len=4096, kv_tokens=32_000)


def tgi(version: str) -> ReplicaParameters:
    return ReplicaParameters(version=version, max_batch_prefill_tokens=8191)


@pytest.mark.parametrize(("version", "chunk"), [("3.3.5", 1024), ("3.1.1", 1024), ("3.0.1", 0), ("2.4.0", 0)])
def test_answers_of_tgi_overrun_by_version(version: str, chunk: int) -> None:
    assert engine_manners(tgi(version)) == EngineManners(chunk, prefill_blocks_starts=True)
    assert stage(parameters=tgi(version)).specs[0].overrun_chunk_tokens == chunk


def test_answers_of_vllm_never_overrun() -> None:
    assert engine_manners(VLLM) == EngineManners()


@pytest.mark.parametrize(("version", "told"), [("2.2.0", 49_152), ("2.3.0", None), ("3.3.5", None)])
def test_of_tgi_only_old_versions_tell_the_size_of_their_kv_cache(version: str, told: int | None) -> None:
    assert engine_limits(tgi(version)).max_batch_total_tokens == told


def test_vllm_tells_the_size_of_its_kv_cache_and_its_context() -> None:
    assert engine_limits(VLLM) == EngineLimits(64, 4095, 4096, 32_000)


@pytest.mark.parametrize(("queued", "requests"), [(None, 64), (100, 64), (10, 10)])
def test_its_own_limit_on_requests_binds_where_it_is_below_its_seats(queued: int | None, requests: int) -> None:
    assert engine_limits(replace(VLLM, max_num_queued_reqs=queued)).max_concurrent_requests == requests


@pytest.mark.parametrize(
    ("parameters", "overloaded", "invalid", "overloaded_stream", "invalid_stream"),
    [(tgi("3.3.5"), 429, 422, 200, 200), (VLLM, 503, 400, 503, 400)],
    ids=["tgi", "vllm"],
)
def test_each_engine_refuses_with_its_own_status(
    parameters: ReplicaParameters | VllmParameters,
    overloaded: int,
    invalid: int,
    overloaded_stream: int,
    invalid_stream: int,
) -> None:
    seen = [
        refusal_status(parameters, refusal, streamed=streamed)
        for streamed in (False, True)
        for refusal in (EngineRefusal.OVERLOADED, EngineRefusal.INVALID)
    ]
    assert seen == [overloaded, invalid, overloaded_stream, invalid_stream]


@pytest.mark.parametrize(
    ("queued", "warning"),
    [
        (None, "max_num_seqs is 64: the others would wait in the engine"),
        (100, "max_num_seqs is 64: the others would wait in the engine"),
        (99, "max_num_queued_reqs is 99: the engine would refuse what the gateway admitted"),
    ],
)
def test_a_hard_cap_above_what_vllm_runs_or_takes_is_told(queued: int | None, warning: str) -> None:
    found = stage(text=ONE_POOL, parameters=replace(VLLM, max_num_queued_reqs=queued)).warnings
    assert found[-1] == f"the hard cap of replica main is 100 sequences, its engine's {warning}"
    assert sum("hard cap" in one for one in found) == 1


def test_a_hard_cap_within_them_is_not() -> None:
    within = ONE_POOL.replace("max_concurrent_sequences = 100", "max_concurrent_sequences = 64")
    assert not any("hard cap" in one for one in stage(text=within, parameters=VLLM).warnings)


def test_a_hard_cap_above_the_permits_of_tgi_is_told_as_the_daemon_does() -> None:
    found = stage(parameters=replace(tgi("3.3.5"), max_concurrent_requests=50)).warnings
    assert any("max_concurrent_requests is 50" in one for one in found)


def test_engines_have_names() -> None:
    assert [engine_name(one) for one in (tgi("3.0.1"), VLLM)] == ["TGI 3.0.1", "vLLM"]


@pytest.mark.parametrize("parameters", [tgi("3.3.5"), VLLM], ids=["tgi", "vllm"])
@pytest.mark.parametrize(
    ("share_of_kv", "end"),
    [(1.01, "may wait in the engine"), (1.0, None), (0.5, None), (0.49, "most of it is never lent")],
)
def test_a_gross_ceiling_is_held_against_the_kv_cache(
    parameters: ReplicaParameters | VllmParameters, share_of_kv: float, end: str | None
) -> None:
    (spec, *_) = stage(parameters=parameters).specs
    gross = int(share_of_kv * parameters.kv_tokens)
    spec = replace(spec, budget=replace(spec.budget, gross_ceiling_tokens=gross))
    about = [text for text in warnings_of(spec, parameters, None) if "KV cache" in text]
    assert len(about) == (end is not None)
    for text in about:
        assert f"{gross:,} tokens" in text
        assert f"{parameters.kv_tokens:,}" in text
        assert text.endswith(str(end))
