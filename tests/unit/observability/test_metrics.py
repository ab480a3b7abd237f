"""What a scrape shows: names that tools accept, numbers that follow the ledger, series that no client can add."""

import asyncio
import shutil
import subprocess
import time
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakes.quietest import quietest
from fakes.states import METERED, POOL
from llmshed.admission.budget import Equation
from llmshed.admission.echo import Arrival
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.state import ControllerState, LaneUse, ReplicaState
from llmshed.admission.verdict import Decision
from llmshed.config.lanes import InteractiveLane, LaneSettings
from llmshed.observability.decisions import DecisionLine, DecisionLog, Waits
from llmshed.observability.endings import Ending
from llmshed.observability.goodput import objectives_of
from llmshed.observability.metrics import (
    FAILED_AFTER_ADMISSION,
    REPEATED,
    Displaced,
    Metrics,
    QueueSize,
    UpstreamErrorKind,
)
from llmshed.observability.observer import Observer


def replica(name: str, *, up: bool = True, profile: str = "h100/3") -> ReplicaState:
    equation = Equation(
        gross_ceiling_tokens=96_000,
        guard_band_tokens=9_600,
        active_tokens=58_000,
        queued_tokens=8_000,
        active_sequences=9,
        hard_cap_sequences=64,
    )
    lanes = {Lane.INTERACTIVE: LaneUse(3, 4, 50_000), Lane.BULK: LaneUse(1, 5, 6_000)}
    return ReplicaState(name, "main", up, profile, equation, 2_000, lanes, METERED, 0.125, 0.3, 0.05)


def state(*replicas: ReplicaState, draining: bool = False) -> ControllerState:
    return ControllerState(replicas, draining, live_requests=4, pools=(POOL,))


def served(**fields: Any) -> DecisionLine:
    usual: dict[str, Any] = {
        "time_seconds": 0.0,
        "request_id": "r",
        "route": "/generate_stream",
        "status": 200,
        "ending": Ending.FINISHED,
        "termination": "--",
        "lane": Lane.INTERACTIVE,
        "priority_class": PriorityClass.NORMAL,
        "decision": Decision.ADMIT,
        "prompt_tokens": (300,),
        "output_ceiling_tokens": 512,
        "output_tokens": 20,
        "waits": Waits(0.003, 0.0, 0.001, 0.4, 0.02, 0.8),
    }
    return DecisionLine(**usual | fields)


class Page:
    """One scrape, read back by the library's parser."""

    def __init__(self, text: bytes) -> None:
        self.samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text.decode())
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, tuple(sorted(labels.items()))))


@pytest.fixture
def observer() -> Observer:
    return Observer(Metrics(), DecisionLog(lambda _: None, history=10), objectives_of(LaneSettings()))


def page(observer: Observer, *replicas: ReplicaState) -> Page:
    return Page(text_of(observer, *replicas))


def text_of(observer: Observer, *replicas: ReplicaState) -> bytes:
    return b"".join(observer.slices(state(*replicas)))


def test_promtool_finds_nothing_to_say_about_a_full_scrape(observer: Observer) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: tests/debian_tools.sh brings it")
    observer.request_began()
    observer.request_ended(served())
    observer.upstream_failed("gpu-0", UpstreamErrorKind.LOST)
    observer.count_mismatched("main")
    observer.config_loaded("c1", objectives_of(LaneSettings()), 1_767_225_600.0)
    text = text_of(observer, replica("gpu-0"))
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_the_gauges_of_a_replica_are_the_terms_of_its_equation(observer: Observer) -> None:
    seen = page(observer, replica("gpu-0"))
    where = {"replica": "gpu-0", "pool": "main"}
    expected = {
        "llmshed_gross_ceiling_tokens": 96_000,
        "llmshed_guard_band_tokens": 9_600,
        "llmshed_budget_tokens": 86_400,
        "llmshed_active_tokens": 58_000,
        "llmshed_releasing_tokens": 2_000,
        "llmshed_headroom_tokens": 20_400,
        "llmshed_active_sequences": 9,
        "llmshed_hard_cap_sequences": 64,
        "llmshed_replica_up": 1,
        "llmshed_uncalibrated": 0,
    }
    assert {name: seen.value(name, **where) for name in expected} == expected
    assert seen.value("llmshed_reserved_tokens", lane="bulk", **where) == 6_000
    assert seen.value("llmshed_active_requests", lane="interactive", **where) == 3
    assert seen.value("llmshed_profile_info", replica="gpu-0", profile="h100/3") == 1
    assert seen.value("llmshed_live_requests") == 4


def test_a_removed_replica_and_a_replaced_profile_leave_no_series_behind(observer: Observer) -> None:
    page(observer, replica("gpu-0"), replica("gpu-1"))
    seen = page(observer, replica("gpu-0", profile="uncalibrated", up=False))
    assert seen.value("llmshed_replica_up", replica="gpu-1", pool="main") is None
    assert seen.value("llmshed_profile_info", replica="gpu-0", profile="h100/3") is None
    assert seen.value("llmshed_uncalibrated", replica="gpu-0", pool="main") == 1
    assert seen.value("llmshed_replica_up", replica="gpu-0", pool="main") == 0


def test_a_replica_is_not_uncalibrated_for_the_name_of_its_profile(observer: Observer) -> None:
    seen = page(observer, replica("gpu-0", profile="uncalibrated-h100@3"))
    assert seen.value("llmshed_uncalibrated", replica="gpu-0", pool="main") == 0


def test_a_page_holds_one_state_though_another_is_scraped_meanwhile(observer: Observer) -> None:
    first = observer.slices(state(replica("gpu-0")))
    begun = next(first)
    later = observer.slices(state(replica("gpu-1")))
    next(later)
    text = (begun + b"".join(first)).decode()
    gauges = {"llmshed_replica_up", "llmshed_reserved_tokens", "llmshed_active_requests", "llmshed_profile_info"}
    told = {
        (sample.name, sample.labels["replica"])
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in gauges
    }
    assert told == {(name, "gpu-0") for name in gauges}


def test_known_label_sets_are_zero_from_the_start(observer: Observer) -> None:
    seen = page(observer)
    for reason in Reason:
        assert seen.value("llmshed_requests_total", lane="none", decision="refuse", reason=reason.value) == 0
    for failed in (*FAILED_AFTER_ADMISSION, "none"):
        assert seen.value("llmshed_requests_total", lane="bulk", decision="admit", reason=failed) == 0
    assert seen.value("llmshed_requests_total", lane="none", decision="none", reason="none") == 0
    assert seen.value("llmshed_good_requests_total", lane="interactive", priority_class="high") == 0
    assert seen.value("llmshed_ttft_seconds_count", lane="bulk") == 0
    assert seen.value("llmshed_counting_queue_bytes", size="small") == 0


def test_a_served_request_is_counted_once_in_each_metric(observer: Observer) -> None:
    observer.request_began()
    assert page(observer).value("llmshed_requests_in_progress") == 1
    observer.request_ended(served())
    seen = page(observer)
    assert seen.value("llmshed_requests_in_progress") == 0
    assert seen.value("llmshed_requests_total", lane="interactive", decision="admit", reason="none") == 1
    assert seen.value("llmshed_endings_total", lane="interactive", ending="finished") == 1
    assert seen.value("llmshed_route_requests_total", route="/generate_stream") == 1
    for name, total in {
        "llmshed_input_tokens": 300,
        "llmshed_requested_output_tokens": 512,
        "llmshed_output_tokens": 20,
        "llmshed_ttft_seconds": 0.4,
        "llmshed_tpot_seconds": 0.02,
        "llmshed_request_duration_seconds": 0.8,
    }.items():
        assert seen.value(f"{name}_count", lane="interactive") == 1
        assert seen.value(f"{name}_sum", lane="interactive") == total
    assert seen.value("llmshed_counting_seconds_sum") == 0.003
    assert seen.value("llmshed_good_requests_total", lane="interactive", priority_class="normal") == 1
    assert seen.value("llmshed_objective_requests_total", lane="interactive", priority_class="normal") == 1


def test_refused_interactive_work_is_in_the_denominator_and_its_wait_in_a_histogram(observer: Observer) -> None:
    refused = served(
        ending=Ending.REFUSED,
        decision=Decision.REFUSE,
        reason=Reason.COUNTING_BACKLOG,
        lane=None,
        intent=Intent.INTERACTIVE,
        retry_after_seconds=7.5,
        waits=Waits(),
    )
    observer.request_began()
    observer.request_ended(refused)
    seen = page(observer)
    assert seen.value("llmshed_requests_total", lane="none", decision="refuse", reason="counting_backlog") == 1
    assert seen.value("llmshed_objective_requests_total", lane="interactive", priority_class="normal") == 1
    assert seen.value("llmshed_good_requests_total", lane="interactive", priority_class="normal") == 0
    assert seen.value("llmshed_retry_after_seconds_bucket", lane="none", le="8.0") == 1
    assert seen.value("llmshed_retry_after_seconds_bucket", lane="none", le="4.0") == 0


def test_the_first_token_buckets_reach_queued_bulk_and_bound_the_objectives(observer: Observer) -> None:
    seen = page(observer)
    for bound in ("2.0", "20.0", "40.0", "80.0", "120.0", "160.0"):
        assert seen.value("llmshed_ttft_seconds_bucket", lane="bulk", le=bound) == 0


def test_changed_objectives_hold_for_what_ends_later(observer: Observer) -> None:
    strict = LaneSettings(interactive=InteractiveLane(ttft_objective_seconds=0.1))
    observer.config_loaded("c2", objectives_of(strict), 1_767_225_600.0)
    observer.request_ended(served())
    seen = page(observer)
    assert seen.value("llmshed_good_requests_total", lane="interactive", priority_class="normal") == 0
    assert seen.value("llmshed_config_info", version="c2") == 1
    assert seen.value("llmshed_config_last_reload_success_timestamp_seconds") == 1_767_225_600.0


def test_a_refused_configuration_shows_and_keeps_the_time_of_the_one_in_force(observer: Observer) -> None:
    observer.config_loaded("c1", objectives_of(LaneSettings()), 100.0)
    observer.config_refused()
    seen = page(observer)
    assert seen.value("llmshed_config_last_reload_successful") == 0
    assert seen.value("llmshed_config_last_reload_success_timestamp_seconds") == 100.0


def test_recounts_and_what_they_find_are_shown_and_each_new_finding_is_logged_once(
    observer: Observer, caplog: pytest.LogCaptureFixture
) -> None:
    observer.self_checked(())
    observer.self_checked(("gpu-0 counts 5 tokens too many",))
    observer.self_checked(("gpu-0 counts 5 tokens too many",))
    seen = page(observer)
    assert seen.value("llmshed_ledger_checks_total") == 3
    assert seen.value("llmshed_ledger_violations_total") == 2
    assert [record.message for record in caplog.records] == ["invariant_broken"]
    assert seen.value("llmshed_invariant_violations") == 1
    observer.self_checked(())
    assert page(observer).value("llmshed_invariant_violations") == 0


def test_the_gateways_own_troubles_are_counted(observer: Observer) -> None:
    observer.loop_lagged(0.3)
    observer.loop_lagged(-1e-9)
    observer.upstream_failed("gpu-0", UpstreamErrorKind.IDLE_TIMEOUT)
    observer.count_mismatched("main")
    observer.fastokens_dropped()
    observer.counting_queue(QueueSize.LARGE, 4096)
    observer.lines_dropped(3)
    observer.connection_displaced(Displaced.IDLE)
    observer.count_compared("gpu-0", equal=False)
    seen = page(observer)
    assert seen.value("llmshed_connections_displaced_total", which="idle") == 1
    assert seen.value("llmshed_connections_displaced_total", which="newcomer") == 0
    assert seen.value("llmshed_served_counts_total", replica="gpu-0", equal="no") == 1
    assert seen.value("llmshed_loop_lag_seconds_count") == 2
    assert seen.value("llmshed_upstream_errors_total", replica="gpu-0", kind="idle_timeout") == 1
    assert seen.value("llmshed_count_mismatch_total", pool="main") == 1
    assert seen.value("llmshed_fastokens_dropped_total") == 1
    assert seen.value("llmshed_counting_queue_bytes", size="large") == 4096
    assert seen.value("llmshed_log_lines_dropped_total") == 3


@pytest.mark.parametrize(
    "names", [pytest.param(10_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.soak)]
)
def test_any_number_of_models_tenants_and_paths_adds_no_series(observer: Observer, names: int) -> None:
    before = set(page(observer, replica("gpu-0")).samples)
    for number in range(names):
        observer.request_ended(
            served(
                request_id=f"id-{number}",
                client_request_id=f"client-{number}",
                route=f"/path/{number}",
                model=f"model-{number}",
                tenant=f"tenant-{number}",
                session=f"session-{number}",
                profile=f"profile-{number}",
                config_version=f"config-{number}",
            )
        )
    seen = page(observer, replica("gpu-0"))
    assert set(seen.samples) == before
    assert seen.value("llmshed_route_requests_total", route="other") == names


def test_twenty_replicas_stay_below_the_bounds_of_a_page(observer: Observer) -> None:
    text = text_of(observer, *(replica(f"gpu-{number}") for number in range(20)))
    assert len(Page(text).samples) <= 5_000
    assert len(text) <= 1_000_000


async def test_a_scrape_lets_others_run_between_its_slices(observer: Observer) -> None:
    longest = await quietest(lambda: gap_while_scraping(observer), 0.1)
    assert longest < 0.1, "the goal is 5 ms; the bound is wide, since the machine is shared"


async def gap_while_scraping(observer: Observer) -> float:
    """Scrape beside a task that runs whenever it may and return the longest that it had to wait."""
    replicas = state(*(replica(f"gpu-{number}") for number in range(20)))
    turns = 0
    longest = 0.0

    async def others() -> None:
        nonlocal turns, longest
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last, turns = max(longest, now - last), now, turns + 1

    task = asyncio.ensure_future(others())
    await asyncio.sleep(0)
    text = await observer.scrape(replicas)
    task.cancel()
    assert text == b"".join(observer.slices(replicas))
    assert turns > 30
    return longest


async def test_a_configured_replica_that_never_came_up_is_told_as_down(observer: Observer) -> None:
    known = replica("gpu-1")
    page = Page(await observer.scrape(state(known), ((known.name, known.pool), ("late", "main"))))
    assert page.value("llmshed_replica_up", replica="late", pool="main") == 0.0
    assert page.value("llmshed_replica_up", replica=known.name, pool=known.pool) == 1.0
    assert page.value("llmshed_headroom_tokens", replica="late", pool="main") is None


def test_amplification_is_all_arrivals_over_the_first_ones(observer: Observer) -> None:
    kinds = [Arrival.FIRST] * 4 + [Arrival.EARLY] * 3 + [Arrival.REPEAT, Arrival.DECLARED, Arrival.UNCHANGED, None]
    for arrival in kinds:
        observer.request_began()
        observer.request_ended(served(arrival=arrival))
    seen = page(observer)
    first = seen.value("llmshed_first_arrivals_total", lane="interactive")
    retries = {kind: seen.value("llmshed_client_retries_total", lane="interactive", kind=kind) for kind in REPEATED}
    assert first == 4
    assert retries == {"early": 3, "repeat": 1, "declared": 1, "unchanged_413": 1}
    assert seen.value("llmshed_client_retries_total", lane="none", kind="early") == 0, "exported before the first one"
