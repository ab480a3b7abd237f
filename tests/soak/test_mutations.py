"""Tests that bite: each single line that charges, releases, bounds or steps is broken once, and a test must fail.

A mutation is a line of one file and what it becomes; the fast tests about it run on a copy of the package that has it.
A line that is no longer there fails the test, so that the list follows the code.
"""

from pathlib import Path

import pytest

from fakes.mutations import Mutation, broken, copy_package, failing
from fakes.mutations_ladder import LADDER_MUTATIONS, LADDER_TESTS

LEAST_KILLED_RATIO = 0.9
CORE_TESTS = (
    "tests/unit/admission",
    "tests/scenario/test_worked_example.py",
    "tests/scenario/test_queues.py",
    "tests/scenario/test_queue_faults.py",
    "tests/scenario/test_queue_shares.py",
    "tests/scenario/test_hostile_clocks.py",
    "tests/property/test_controller_machine.py",
)


def core(file: str, old: str, new: str) -> Mutation:
    """Return a mutation of a file under `admission`."""
    return Mutation(f"admission/{file}", old, new)


MUTATIONS = (
    core("ledger.py", "self.active_tokens += charge.reservation.total_tokens", "pass"),
    core("ledger.py", "self.active_sequences += charge.reservation.sequences", "pass"),
    core("ledger.py", "self.active_tokens -= charge.reservation.total_tokens", "pass"),
    core("ledger.py", "self.active_sequences -= charge.reservation.sequences", "pass"),
    core("ledger.py", "self._releasing.pop(key, None)", "pass"),
    core("ledger.py", "self._lane_tokens[charge.lane] -= charge.reservation.total_tokens", "pass"),
    core("ledger.py", "charge.release_at = release_at", "pass"),
    core("controller.py", "self._tenant_use.charge(request.tenant, reservation_of(verdict))", "pass"),
    core("controller.py", "self._tenant_use.charge(request.tenant, waiting.reservation)", "pass"),
    core("controller.py", "self._tenant_use.free(charge.tenant, charge.reservation)", "pass"),
    core(
        "controller.py",
        "free(waiting.tenant, waiting.reservation)\n        self._lost_once",
        "requests.get(waiting.tenant)\n        self._lost_once",
    ),
    core("controller.py", "isinstance(event, Cancelled) and self._leave_queue(event.key, now)", "False"),
    core("controller.py", "pool.join(waiting, now)", "pass"),
    core("controller.py", "actions += self._evict_expired(now)", "pass"),
    core("controller.py", "actions = self._free_due(now)", "actions: list[Action] = []"),
    core("controller.py", "self._lost_once.add(waiting.key)", "pass"),
    core("controller.py", "self._echoes.served(request.fingerprint)", "pass"),
    core("controller.py", "self._lost_once.add(key)", "pass"),
    core("service/pool.py", "self._charge(waiting, 1)\n        self.changed = True", "self._charge(waiting, 1)"),
    core("service/pool.py", "known.pop(name, None)", "pass"),
    core("service/pool.py", "replica.shadow = None", "pass"),
    core("service/fitting.py", "- replica.held_tokens(key)", ""),
    core("service/fitting.py", "- replica.held_sequences(key)", ""),
    core("service/fitting.py", "return tokens <= replica.bulk_room_tokens(ratio, now)", "return True"),
    core("service/fitting.py", "has_room(candidate, replica, now) and passes_window", "passes_window"),
    core("service/fitting.py", "and passes_window(candidate, replica, now)", ""),
    core("service/fitting.py", "bulk.reserved_floor_ratio if candidate.floor_only else ", ""),
    core("service/choice.py", "same > MOST_LOOKED_AT or ", ""),
    core("service/choice.py", "if pool.waits_above(rank):", "if False:"),
    core("service/choice.py", "too_long = delay.wait_seconds > lane_policy.max_residence_seconds", "too_long = False"),
    core("service/choice.py", "len(queue) >= lane_policy.queue_requests", "False"),
    core("service/choice.py", "queue.tokens + more_tokens > pool.most_queued_tokens(lane_policy)", "False"),
    core("service/serving.py", "if above_waits and not floor_only:", "if False:"),
    core("service/serving.py", "_let_floor_come_first(pool, ranks, now)", "pass"),
    core("service/replica.py", "self.forecast.freed(charge)", "pass"),
    core("service/replica.py", "self.window.end(key, now)", "pass"),
    core("service/starting.py", "expires_at = min(expires_at, now", "min(expires_at, now"),
    core("queueing/class_line.py", "self._counters.rest(tenant)", "pass"),
    core("queueing/class_line.py", "counters.charge(tenant, weight, tokens)", "pass"),
    core("queueing/line.py", "self._expiries.add(waiting.key, waiting.expires_at)", "pass"),
    core("queueing/line.py", "self._expiries.discard(key)", "pass"),
    core("queueing/row.py", "self.tokens -= waiting.total_tokens", "pass"),
    core("queueing/fairness.py", "account.counter += tokens / weight", "pass"),
    core("prefill/window.py", "self._bucket.take(tokens, now)", "pass"),
    core("prefill/window.py", "prompt.bulk = bulk.take(tokens, now)", "pass"),
    core("prefill/inflight.py", "self.tokens += prompt.tokens", "pass"),
    core("prefill/inflight.py", "self.tokens -= prompt.tokens", "pass"),
    core("prefill/bulk.py", "self._cap.take(cap_tokens, now)", "pass"),
    core("prefill/bulk.py", "self._floor.take(floor_tokens, now)", "pass"),
    core("prefill/bucket.py", "self.paid_at -= tokens / self.tokens_per_second", "pass"),
    core("tenancy.py", "self.tokens[tenant] += reservation.total_tokens", "pass"),
    core("tenancy.py", "self.requests[tenant] -= 1", "pass"),
    core("tenancy.py", "if most is None or use.requests[tenant.name] < most:", "if True:"),
    core("tenancy.py", "if over <= 0:", "if True:"),
    core("ledger.py", "self._releases.add(key, release_at)", "pass"),
    core("ledger.py", "self._releases.discard(key)", "pass"),
    core("service/known.py", "if roster.holds(request.key):", "if False:"),
    core("controller.py", "min(max(output_tokens, 0), charge.reservation.most_output_tokens)", "output_tokens"),
    core("controller.py", "if now - waiting.expires_at > PAUSE_SECONDS:", "if False:"),
    core("controller.py", "pool.learnt.ghosts.forget(name)", "pass"),
    core("service/learning.py", "if reservation.sequences > replica.free_sequences:", "if False:"),
    core("service/learning.py", "if reservation.total_tokens > room_tokens:", "if False:"),
    core("service/choice.py", "if begins_seconds > spare_seconds(", "if 0 > spare_seconds("),
    core("service/choice.py", "if asker.hurries:\n        open_places", "if False:\n        open_places"),
    core("echo.py", "if len(self._told) > self._most:", "if False:"),
    core("echo.py", " or reason.row.status == 503", ""),
    core("queueing/fairness.py", "if len(self._idle) > MOST_IDLE_TENANTS:", "if False:"),
    core("estimate/own_share.py", "if len(self._first) > MOST_TENANTS:", "if False:"),
    core("estimate/ghosts.py", "self._of_rank[rank] >= MOST_PER_RANK or ", ""),
    core("estimate/ghosts.py", "self._of_rank[ghost.rank] -= 1", "pass"),
    core("estimate/promises.py", "if now >= self._forget_at:", "if False:"),
    core(
        "estimate/promises.py",
        "self._promised_tokens + tokens, MOST_PROMISED_SECONDS * self._rate()",
        "self._promised_tokens + tokens, 1e300",
    ),
    core("permanent.py", "if asked is not None and bound is not None and asked > bound:", "if False:"),
)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("mutations", "tests"), [(MUTATIONS, CORE_TESTS), (LADDER_MUTATIONS, LADDER_TESTS)], ids=["core", "ladder"]
)
def test_nine_of_ten_broken_lines_are_noticed(
    repository: Path, tmp_path: Path, mutations: tuple[Mutation, ...], tests: tuple[str, ...]
) -> None:
    copy = copy_package(repository, tmp_path)
    moved = [mutation for mutation in mutations if mutation.places(copy) != 1]
    assert moved == [], "these lines are no longer there, or not once"

    def suite_passes() -> bool:  # the first failure decides
        return not failing(repository, copy, tests, "-x", "-m", "not slow and not soak")

    assert suite_passes(), "the tests fail on the whole package already"
    alive = []
    for mutation in mutations:
        with broken(copy, mutation):
            if suite_passes():
                alive.append(mutation)
    killed = 1.0 - len(alive) / len(mutations)
    print(f"{killed:.0%} of {len(mutations)} broken lines were noticed; not: {alive}")  # noqa: T201 - read with -s
    assert killed >= LEAST_KILLED_RATIO, alive
