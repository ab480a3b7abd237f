"""Decision logs by hand: logged tries as values, and as the lines that a gateway would write of them."""

from typing import Any

import orjson

from llmshed.admission.request import Lane
from llmshed.workload.logged import LoggedEnding, LoggedRequest

BEGAN = 1_767_225_600.0
"""Wall clock at which every log here begins."""


def logged(at: float, ending: str = "finished", **fields: Any) -> LoggedRequest:
    """Return a try that came so long after the beginning: 100 tokens in, 20 out, within a second."""
    served = ending == "finished"
    usual: dict[str, Any] = {
        "line": int(at * 1000) + 1,
        "total_seconds": 1.0 if served else 0.002,
        "status": 200 if served else 429,
        "lane": Lane.INTERACTIVE,
        "prompt_tokens": (100,),
        "ceiling_tokens": 64,
        "output_tokens": 20 if served else None,
        "tenant": "acme",
        "ttft_seconds": 0.05 if served else None,
        "tpot_seconds": 0.05 if served else None,
    }
    return LoggedRequest(time_seconds=BEGAN + at, ending=LoggedEnding(ending), **{**usual, **fields})


def line(at: float, ending: str = "finished", **fields: Any) -> bytes:
    """Return the line of such a try, with only the fields that readers need and those given."""
    served = ending == "finished"
    usual = {
        "schema": "llmshed.decision/1",
        "time_seconds": BEGAN + at,
        "ending": ending,
        "status": 200 if served else 429,
        "lane": "interactive",
        "tenant": "acme",
        "streamed": True,
        "prompt_tokens": [100],
        "copies": 1,
        "output_ceiling_tokens": 64,
        "output_tokens": 20 if served else None,
        "ttft_seconds": 0.05 if served else None,
        "tpot_seconds": 0.05 if served else None,
        "total_seconds": 1.0 if served else 0.002,
    }
    return orjson.dumps({**usual, **fields}) + b"\n"
