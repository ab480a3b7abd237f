"""What TGI's gauges come to, read from the page that the simulated replica writes."""

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.emulator.metrics import TgiMetrics
from llmshed.engines.registry import engine
from llmshed.simulation.parameters import ReplicaParameters

TGI = engine("tgi", "3.3.5")


def test_the_queue_is_told_and_the_cache_only_where_its_size_is_known() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    metrics.count("tgi_request_count")
    metrics.put("tgi_queue_size", 7)
    metrics.put("tgi_batch_current_max_tokens", 12_000)
    metrics.observe("tgi_request_queue_duration", 0.5)
    page = metrics.render().encode()
    assert TGI.read_metrics(page, None, 5.0) == ReplicaReading(5.0, queued_requests=7.0)
    assert TGI.read_metrics(page, 16_000, 5.0) == ReplicaReading(5.0, queued_requests=7.0, kv_used_ratio=0.75)


def test_a_replica_that_was_never_used_tells_nothing() -> None:
    reading = TGI.read_metrics(TgiMetrics(ReplicaParameters()).render().encode(), 16_000, 5.0)
    assert reading == ReplicaReading(5.0)
    assert not reading.tells
