"""A gate that keeps a decision log, so that a run in virtual time leaves what the gateway would have written."""

from dataclasses import dataclass, field
from typing import Any

from llmshed.admission.actions import Action, Dispatch, Evict, Refuse
from llmshed.admission.events import Arrived, Event, Finished, FirstToken
from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.observability.decisions import DecisionLine, DecisionLog, Waits
from llmshed.observability.endings import EndedBy, Ending, Phase, termination
from llmshed.whatif.gate import Gate

BEGAN = 1_767_225_600.0


@dataclass(slots=True)
class LoggingGate:
    """Passes everything on to a gate, and writes a line at the end of each request as the gateway does."""

    gate: Gate
    lines: list[bytes] = field(default_factory=list)
    _inside: dict[int, Request] = field(default_factory=dict)
    _verdicts: dict[int, Verdict] = field(default_factory=dict)
    _first: dict[int, float] = field(default_factory=dict)

    def handle(self, event: Event, now: float) -> list[Action]:
        match event:
            case Arrived(request):
                self._inside[request.key] = request
            case FirstToken():
                self._first.setdefault(event.key, now)
            case Finished():
                self._write(event.key, now, Ending.FINISHED, 200, event.output_tokens)
            case _:
                pass
        actions = self.gate.handle(event, now)
        for action in actions:
            match action:
                case Dispatch(key):
                    self._verdicts[key] = action.verdict
                case Refuse(key, verdict) | Evict(key, verdict):
                    self._verdicts[key] = verdict
                    assert verdict.reason is not None
                    self._write(key, now, Ending.REFUSED, verdict.reason.row.status, None)
                case _:
                    pass
        return actions

    def next_wakeup(self) -> float | None:
        return self.gate.next_wakeup()

    def check(self) -> tuple[str, ...]:
        return self.gate.check()

    def _write(self, key: int, now: float, ending: Ending, status: int, output_tokens: int | None) -> None:
        request, verdict, first = self._inside.pop(key), self._verdicts.pop(key), self._first.pop(key, None)
        paced = first is not None and output_tokens is not None and output_tokens > 1
        told: dict[str, Any] = {
            "time_seconds": BEGAN + request.arrived_at,
            "request_id": str(key),
            "route": "/generate_stream",
            "status": status,
            "ending": ending,
            "termination": termination(EndedBy.NOBODY, Phase.COMPLETE),
            "tenant": request.tenant,
            "streamed": True,
            "prompt_tokens": request.prompt_tokens,
            "asked_output_tokens": request.asked_output_tokens,
            "output_tokens": output_tokens,
            "fingerprint": request.session,
            "waits": Waits(
                ttft_seconds=None if first is None else first - request.arrived_at,
                tpot_seconds=(now - first) / (output_tokens - 1) if paced and first and output_tokens else None,
                total_seconds=now - request.arrived_at,
            ),
        }
        DecisionLog(self.lines.append, 1).write(DecisionLine(**told).with_verdict(verdict))
