"""The recording rules, evaluated by Prometheus on series whose figures can be worked out in the head."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fakes.promtool import needs_promtool, unit_test
from llmshed.monitoring.rule_file import rule_file

RULES = rule_file(0.99, 0.9)


def at(minutes: int, rule: str, samples: Sequence[tuple[str, float]]) -> dict[str, Any]:
    return {
        "expr": rule,
        "eval_time": f"{minutes}m",
        "exp_samples": [{"labels": labels, "value": value} for labels, value in samples],
    }


@needs_promtool
def test_demand_counts_what_is_refused_and_no_repeat(tmp_path: Path) -> None:
    """Four first arrivals a second of 100 + 50 tokens, each of which comes twice; what is served takes 3 s."""
    series = [
        {"series": 'llmshed_first_arrivals_total{lane="interactive"}', "values": "0+120x40"},
        {"series": 'llmshed_client_retries_total{lane="interactive",kind="repeat"}', "values": "0+120x40"},
        {"series": 'llmshed_input_tokens_sum{lane="interactive"}', "values": "0+24000x40"},
        {"series": 'llmshed_requested_output_tokens_sum{lane="interactive"}', "values": "0+12000x40"},
        {"series": 'llmshed_request_duration_seconds_sum{lane="interactive"}', "values": "0+180x40"},
        {"series": 'llmshed_request_duration_seconds_count{lane="interactive"}', "values": "0+60x40"},
        {"series": 'llmshed_budget_tokens{pool="main",replica="a"}', "values": "900x40"},
        {"series": 'llmshed_budget_tokens{pool="main",replica="b"}', "values": "900x40"},
    ]
    test = {
        "interval": "30s",
        "input_series": series,
        "promql_expr_test": [
            at(15, name, [(f'{name}{{lane="interactive"}}', value)])
            for name, value in (
                ("lane:llmshed_amplification:ratio_rate5m", 2),
                ("lane:llmshed_offered_tokens:rate5m", 600),
                ("lane:llmshed_demanded_tokens:rate5m", 1800),
            )
        ]
        + [at(15, "llmshed:demanded_replicas:rate5m", [("llmshed:demanded_replicas:rate5m", 2)])],
    }
    unit_test(RULES, test, tmp_path)


@needs_promtool
def test_where_nobody_repeats_or_comes_the_amplification_is_one(tmp_path: Path) -> None:
    series = [
        {"series": f'{name}{{lane="{lane}"}}', "values": values}
        for lane, first in (("bulk", "0+0x40"), ("interactive", "0+30x40"))
        for name, values in (("llmshed_first_arrivals_total", first), ("llmshed_client_retries_total", "0+0x40"))
    ]
    name = "lane:llmshed_amplification:ratio_rate5m"
    told = [(f'{name}{{lane="{lane}"}}', 1) for lane in ("bulk", "interactive")]
    unit_test(RULES, {"interval": "30s", "input_series": series, "promql_expr_test": [at(15, name, told)]}, tmp_path)
