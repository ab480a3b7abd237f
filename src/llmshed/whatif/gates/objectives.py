"""The TTFT objective of a request, for gates that keep to it."""

from llmshed.whatif.gates.work import Work
from llmshed.whatif.idle import idle_times
from llmshed.whatif.setting import Setting


class TtftObjectives:
    """TTFT objectives by input; each length is tried on an idle replica once and remembered.

    There are no more lengths than tokens in the longest prompt, so the memory is bounded.
    """

    def __init__(self, setting: Setting) -> None:
        """Take the replica and the objectives of a setting."""
        self._setting = setting
        self._idle: dict[tuple[int, int], float] = {}

    def idle_seconds(self, input_tokens: int, copies: int = 1) -> float:
        """Return the time to first token on an idle replica; 0 for what it would not take at all."""
        known = self._idle.get((input_tokens, copies))
        if known is None:
            times = idle_times(self._setting.build_model, input_tokens, 1, ceiling_tokens=1, copies=copies)
            known = self._idle[input_tokens, copies] = 0.0 if times is None else times.ttft_seconds
        return known

    def of_work(self, work: Work) -> float:
        """Return the TTFT objective of work, in seconds from its arrival."""
        request = work.request
        idle = self.idle_seconds(request.longest_prompt_tokens, request.sequences)
        return self._setting.objectives.ttft_seconds(idle)
