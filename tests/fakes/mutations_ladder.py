"""Broken lines of the degradation ladder: what counts, climbs, damps, holds and tells the pool."""

from fakes.mutations import Mutation

LADDER_TESTS = (
    "tests/unit/ladder",
    "tests/unit/admission/service",
    "tests/scenario/test_ladder_core.py",
    "tests/property/test_ladder_machine.py",
)


def _rule(file: str, old: str, new: str) -> Mutation:
    return Mutation(f"ladder/{file}", old, new)


def _core(file: str, old: str, new: str) -> Mutation:
    return Mutation(f"admission/service/{file}", old, new)


LADDER_MUTATIONS = (
    _rule("windows.py", "if seconds > objective:", "if seconds >= objective:"),
    _rule("windows.py", "if seconds > entry:", "if seconds >= entry:"),
    _rule("windows.py", "if seconds >= exit_seconds:", "if seconds > exit_seconds:"),
    _rule("windows.py", "_ONE_IN * self._above_entry > self.arrivals", "_ONE_IN * self._above_entry >= self.arrivals"),
    _rule("windows.py", "self._oldest = max(ages_seconds, default=0.0)", "pass"),
    _rule("windows.py", "self.arrivals >= self._least or", "True or"),
    _rule("damping.py", "rung.exit.windows << self._doublings", "rung.exit.windows"),
    _rule("damping.py", "self._since_back += 1", "pass"),
    _rule("damping.py", "if on_ground and self", "if self"),
    _rule("rates.py", "if lost <= replicas_lost", ""),
    _rule("rates.py", "maxlen=_WINDOWS", ""),
    _rule("machine.py", "self._window.let_in_tokens += tokens", "pass"),
    _rule("machine.py", "self._window.offered_tokens += tokens", "pass"),
    _rule("machine.py", "window.sample_waiting(reading.waiting_ages_seconds)", "pass"),
    _rule("machine.py", "hold if now < hold.until else None", "hold"),
    _rule(
        "machine.py", "self._ladder.rungs[: max(self._by_rule, held)]", "self._ladder.rungs[: held or self._by_rule]"
    ),
    _rule("machine.py", "self._above = self._calm = 0\n        self._damping = Damping()", "self._damping = Damping()"),
    _rule(
        "machine.py",
        "        self._damping = Damping()\n        self._begin(now)\n        if",
        "        self._begin(now)\n        if",
    ),
    _rule("machine.py", "window.under_pressure() and not any(", "window.under_pressure() or not any("),
    _rule("machine.py", "self._above + 1 >= following.entry.windows", "True"),
    _rule("machine.py", "self._calm + 1 < self._exit_windows()", "False"),
    _rule("machine.py", "Shown.LONG_CALM if self._has_room(window) else Shown.CROWDED", "Shown.LONG_CALM"),
    _rule("machine.py", "            self._rate.forget()\n            return True", "            return True"),
    _rule("machine.py", "calm=not above and self", "calm=self"),
    _rule("machine.py", "return self._settle(Cause.EXPIRED, by_itself=True)", "return None"),
    _rule("machine.py", "if by_itself or before != after", "if before != after"),
    _rule("machine.py", "max(self._exit_windows() - self._calm - 1, 0)", "0"),
    _core("laddering.py", "verdict.arrival in {Arrival.REPEAT, Arrival.EARLY}", "False"),
    _core("laddering.py", "self._machine.sample(verdict.delay.wait_seconds)", "pass"),
    _core("laddering.py", "elif verdict.decision is Decision.ADMIT or verdict.rung is not None:", "elif False:"),
    _core("laddering.py", "self._machine.offered(tokens)", "pass"),
    _core("laddering.py", "self._machine.let_in(tokens)", "pass"),
    _core(
        "laddering.py",
        "        if steps:\n            self._measure()",
        "        if False:\n            self._measure()",
    ),
    _core("ladders.py", "self.in_force = any(", "self.in_force = all("),
    _core("ladders.py", "steps += self._by_pool.pop(name).dropped()", "self._by_pool.pop(name)"),
    _core("ladders.py", "for replica in pool if replica.up]", "for replica in pool]"),
    _core("ladders.py", "not replica.up and not replica.removed", "not replica.up"),
)
