"""What clients do after a refusal; the SDK's part against the real openai package where it is installed."""

import importlib
import math
from collections.abc import Iterator
from typing import Any

import pytest

from fakes.traces import seeded
from llmshed.workload.clients import (
    RUDE_PAUSE_SECONDS,
    RUDE_RETRIES,
    ClientModel,
    Refusal,
    retry_wait_seconds,
)

BUSY = Refusal(429, retry_after_seconds=3.0)
STATUSES = (400, 401, 404, 408, 409, 413, 422, 424, 429, 500, 502, 503, 504)


def waits(model: ClientModel, refusal: Refusal, seed: int = 1) -> list[float]:
    """Every wait of one client that is refused alike each time."""
    rng = seeded(seed)
    found: list[float] = []
    while (wait := retry_wait_seconds(model, refusal, len(found), rng)) is not None:
        found.append(wait)
        assert len(found) <= 100
    return found


def test_a_client_without_retries_gives_up() -> None:
    assert [waits(ClientModel.NONE, Refusal(status)) for status in STATUSES] == [[]] * len(STATUSES)


def test_a_rude_client_ignores_everything_but_is_bounded() -> None:
    answers = [BUSY, Refusal(413, None, should_retry=False), Refusal(429, 600.0), Refusal(401)]
    assert [waits(ClientModel.RUDE, one) for one in answers] == [[RUDE_PAUSE_SECONDS] * RUDE_RETRIES] * 4


@pytest.fixture(scope="module")
def real_sdk() -> Iterator[Any]:
    """A client of the real package, which decides here and sends nothing."""
    openai = pytest.importorskip("openai", minversion="3.57", reason="the extra `clients` is not installed")
    with openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9") as client:
        yield client


class TestPolite:
    def test_it_never_comes_before_the_time_told_and_spreads_out_above_it(self) -> None:
        first = [waits(ClientModel.POLITE, BUSY, seed)[0] for seed in range(400)]
        assert min(first) >= 3.0
        assert max(first) <= 3.75
        assert max(first) - min(first) > 0.7

    def test_without_a_time_told_it_backs_off_with_full_jitter(self) -> None:
        runs = [waits(ClientModel.POLITE, Refusal(503), seed) for seed in range(400)]
        for tried, longest in enumerate((1.0, 2.0, 4.0, 8.0)):
            drawn = [run[tried] for run in runs]
            assert 0.0 <= min(drawn) < 0.05 * longest
            assert 0.95 * longest < max(drawn) <= longest

    def test_it_tries_a_few_times_only(self) -> None:
        assert len(waits(ClientModel.POLITE, BUSY)) == 4

    @pytest.mark.parametrize("status", sorted(set(STATUSES) - {429, 503}))
    def test_it_repeats_nothing_that_a_wait_does_not_cure(self, status: int) -> None:
        assert waits(ClientModel.POLITE, Refusal(status, 1.0)) == []

    def test_it_stops_where_it_is_told_that_a_retry_is_useless(self) -> None:
        assert waits(ClientModel.POLITE, Refusal(429, 3.0, should_retry=False)) == []

    def test_it_waits_ten_minutes_and_no_longer(self) -> None:
        assert waits(ClientModel.POLITE, Refusal(429, 600.0))[0] >= 600.0
        assert waits(ClientModel.POLITE, Refusal(429, 600.1)) == []


class TestSdk:
    def test_it_tries_three_times_in_all_and_waits_as_told_without_jitter(self) -> None:
        assert waits(ClientModel.SDK, Refusal(429, 2.417)) == [2.417, 2.417]

    def test_without_a_time_told_it_waits_half_a_second_then_one_less_a_quarter_at_most(self) -> None:
        runs = [waits(ClientModel.SDK, Refusal(500), seed) for seed in range(300)]
        for tried, longest in enumerate((0.5, 1.0)):
            drawn = [run[tried] for run in runs]
            assert 0.75 * longest <= min(drawn) < 0.77 * longest
            assert 0.98 * longest < max(drawn) <= longest

    def test_a_wait_of_two_minutes_is_kept_and_a_longer_one_ends_it(self) -> None:
        assert waits(ClientModel.SDK, Refusal(429, 120.0)) == [120.0, 120.0]
        assert waits(ClientModel.SDK, Refusal(429, 120.001)) == []
        assert waits(ClientModel.SDK, Refusal(429, 120.001, should_retry=True)) == []

    def test_the_server_s_word_beats_the_status(self) -> None:
        assert waits(ClientModel.SDK, Refusal(429, 1.0, should_retry=False)) == []
        assert len(waits(ClientModel.SDK, Refusal(413, None, should_retry=True))) == 2

    @pytest.mark.parametrize("status", STATUSES)
    @pytest.mark.parametrize("told", [None, 0.0, 0.25, 1.0, 60.0, 120.0, 121.0, 600.0])
    @pytest.mark.parametrize("should_retry", [None, True, False])
    def test_it_does_what_the_real_one_does(
        self,
        real_sdk: Any,
        status: int,
        told: float | None,
        should_retry: bool | None,  # noqa: FBT001 - a case
    ) -> None:
        headers = {} if told is None else {"retry-after-ms": str(told * 1000)}
        if should_retry is not None:
            headers["x-should-retry"] = str(should_retry).lower()
        http = importlib.import_module("httpx2")
        again = real_sdk._should_retry(http.Response(status, headers=headers))
        options = importlib.import_module("openai._models").FinalRequestOptions(method="post", url="/")
        real = [real_sdk._calculate_retry_timeout(2 - tried, options, http.Headers(headers)) for tried in (0, 1)]
        ours = waits(ClientModel.SDK, Refusal(status, told, should_retry))
        assert bool(ours) == again
        if ours and told:
            assert ours == real
        elif ours:
            # Both draw up to a quarter off the same wait.
            assert all(0.75 <= mine / theirs <= 1 / 0.75 for mine, theirs in zip(ours, real, strict=True))


@pytest.mark.parametrize("model", ClientModel)
@pytest.mark.parametrize(
    "refusal", [BUSY, Refusal(503), Refusal(413), Refusal(429, 0.0), Refusal(500, None, should_retry=True)]
)
def test_every_wait_is_a_time_and_every_client_ends(model: ClientModel, refusal: Refusal) -> None:
    assert all(0.0 <= wait < math.inf for wait in waits(model, refusal))
    assert waits(model, refusal, seed=3) == waits(model, refusal, seed=3)
