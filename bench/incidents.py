"""Two public incidents before llmshed, in virtual time: `python bench/incidents.py`, a few minutes.

Interactive bursts beside batches (llm-d-incubation/batch-gateway issue 491, where TTFT p95 rose 1.30-fold at best and
52-fold at worst), and a surge to twice what eight replicas carry (llm-d/llm-d-router issue 2295, where nothing had
recovered a quarter of an hour later). No figure comes from a GPU.
"""

from incident_runs import run_bursts, run_surge
from incident_traffic import Bursts, Surge

CALM_RATE = 6.0
SURGE_RATE = 24.0
"""Requests a second. Eight such replicas carry about 12: with more the share of good requests falls below 99 %."""


def main() -> None:
    """Print both tables."""
    print("interactive bursts beside batches, 2 x llama-3.1-8b-h100\n")
    for line in run_bursts(Bursts()).lines():
        print(line)
    print("\na surge before 8 x llama-3-8b-a10g\n")
    for line in run_surge(Surge(CALM_RATE, SURGE_RATE)).lines():
        print(line)


if __name__ == "__main__":
    main()
