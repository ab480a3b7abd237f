"""Tests that bite: each single line that charges, releases or bounds in the core is broken once, and a test must fail.

A mutation is a line of one file and what it becomes; the core's fast tests run on a copy of the package that has it. A
line that is no longer there fails the test, so that the list follows the code.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

LEAST_KILLED_RATIO = 0.9
CORE_TESTS = (
    "tests/unit/admission",
    "tests/scenario/test_worked_example.py",
    "tests/scenario/test_queues.py",
    "tests/scenario/test_queue_faults.py",
    "tests/scenario/test_queue_shares.py",
    "tests/property/test_controller_machine.py",
)


class Mutation(NamedTuple):
    """A piece of text that a file under `admission` holds once, and what stands there instead."""

    file: str
    old: str
    new: str


MUTATIONS = (
    Mutation("ledger.py", "self.active_tokens += charge.reservation.total_tokens", "pass"),
    Mutation("ledger.py", "self.active_sequences += charge.reservation.sequences", "pass"),
    Mutation("ledger.py", "self.active_tokens -= charge.reservation.total_tokens", "pass"),
    Mutation("ledger.py", "self.active_sequences -= charge.reservation.sequences", "pass"),
    Mutation("ledger.py", "self._releasing.pop(key, None)", "pass"),
    Mutation("ledger.py", "self._lane_tokens[charge.lane] -= charge.reservation.total_tokens", "pass"),
    Mutation("ledger.py", "charge.release_at = release_at", "pass"),
    Mutation("controller.py", "self._tenant_use.charge(request.tenant, reservation_of(verdict))", "pass"),
    Mutation("controller.py", "self._tenant_use.charge(request.tenant, waiting.reservation)", "pass"),
    Mutation("controller.py", "self._tenant_use.free(charge.tenant, charge.reservation)", "pass"),
    Mutation("controller.py", "self._forget_wait(pool, pool.leave(key, now))\n            return []", "return []"),
    Mutation("controller.py", "pool.join(waiting, now)", "pass"),
    Mutation("controller.py", "actions += self._evict_expired(now)", "pass"),
    Mutation("controller.py", "actions = self._free_due(now)", "actions: list[Action] = []"),
    Mutation("controller.py", "self._live[key].redispatched = True", "pass"),
    Mutation("controller.py", "self._echoes.served(request.fingerprint)", "pass"),
    Mutation("controller.py", "self._lost_once.add(key)", "pass"),
    Mutation("service/pool.py", "self._charge(waiting, 1)\n        self.changed = True", "self._charge(waiting, 1)"),
    Mutation("service/pool.py", "known.pop(name, None)", "pass"),
    Mutation("service/pool.py", "replica.shadow = None", "pass"),
    Mutation("service/fitting.py", "- replica.held_tokens(key)", ""),
    Mutation("service/fitting.py", "- replica.held_sequences(key)", ""),
    Mutation("service/fitting.py", "return tokens <= replica.bulk_room_tokens(ratio, now)", "return True"),
    Mutation("service/fitting.py", "has_room(candidate, replica, now) and passes_window", "passes_window"),
    Mutation("service/fitting.py", "and passes_window(candidate, replica, now)", ""),
    Mutation("service/fitting.py", "bulk.reserved_floor_ratio if candidate.floor_only else ", ""),
    Mutation("service/choice.py", "same > MOST_LOOKED_AT or ", ""),
    Mutation("service/choice.py", "if pool.waits_above(rank):", "if False:"),
    Mutation(
        "service/choice.py", "too_long = delay.wait_seconds > lane_policy.max_residence_seconds", "too_long = False"
    ),
    Mutation("service/choice.py", "len(queue) >= lane_policy.queue_requests", "False"),
    Mutation("service/choice.py", "queue.tokens + more_tokens > pool.most_queued_tokens(lane_policy)", "False"),
    Mutation("service/serving.py", "if above_waits and not floor_only:", "if False:"),
    Mutation("service/serving.py", "_let_floor_come_first(pool, ranks, now)", "pass"),
    Mutation("service/replica.py", "self.forecast.freed(charge)", "pass"),
    Mutation("service/replica.py", "self.window.end(key, now)", "pass"),
    Mutation("service/starting.py", "expires_at = min(expires_at, now", "min(expires_at, now"),
    Mutation("queueing/class_line.py", "self._counters.rest(tenant)", "pass"),
    Mutation("queueing/class_line.py", "counters.charge(tenant, weight, tokens)", "pass"),
    Mutation("queueing/line.py", "self._expiries.add(waiting.key, waiting.expires_at)", "pass"),
    Mutation("queueing/line.py", "self._expiries.discard(key)", "pass"),
    Mutation("queueing/row.py", "self.tokens -= waiting.total_tokens", "pass"),
    Mutation("queueing/fairness.py", "account.counter += tokens / weight", "pass"),
    Mutation("prefill/window.py", "self._bucket.take(tokens, now)", "pass"),
    Mutation("prefill/window.py", "prompt.bulk = bulk.take(tokens, now)", "pass"),
    Mutation("prefill/inflight.py", "self.tokens += prompt.tokens", "pass"),
    Mutation("prefill/inflight.py", "self.tokens -= prompt.tokens", "pass"),
    Mutation("prefill/bulk.py", "self._cap.take(cap_tokens, now)", "pass"),
    Mutation("prefill/bulk.py", "self._floor.take(floor_tokens, now)", "pass"),
    Mutation("prefill/bucket.py", "self.paid_at -= tokens / self.tokens_per_second", "pass"),
    Mutation("tenancy.py", "self.tokens[tenant] += reservation.total_tokens", "pass"),
    Mutation("tenancy.py", "self.requests[tenant] -= 1", "pass"),
    Mutation("tenancy.py", "if most is None or use.requests[tenant.name] < most:", "if True:"),
    Mutation("tenancy.py", "if over <= 0:", "if True:"),
)


@pytest.fixture(scope="module")
def copy(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, which the tests below break and mend."""
    place = tmp_path_factory.mktemp("broken")
    shutil.copytree(repository / "src" / "llmshed", place / "llmshed", ignore=shutil.ignore_patterns("__pycache__"))
    return place


@contextmanager
def broken(copy: Path, mutation: Mutation) -> Iterator[None]:
    """Break the copy, and mend it afterwards."""
    path = copy / "llmshed" / "admission" / mutation.file
    whole = path.read_text("utf-8")
    path.write_text(whole.replace(mutation.old, mutation.new), "utf-8")
    yield
    path.write_text(whole, "utf-8")


def suite_passes(repository: Path, copy: Path) -> bool:
    """Say whether the core's fast tests pass on the copy; the first failure decides."""
    options = ("-x", "-q", "-p", "no:cacheprovider", "--timeout", "120")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *CORE_TESTS],
        cwd=repository,
        env=os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"},
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode in {0, 1, 2}, ran.stdout.decode()
    return ran.returncode == 0


def survives(repository: Path, copy: Path, mutation: Mutation) -> bool:
    """Say whether no test notices a broken line."""
    with broken(copy, mutation):
        return suite_passes(repository, copy)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_nine_of_ten_broken_lines_are_noticed(repository: Path, copy: Path) -> None:
    sources = repository / "src" / "llmshed" / "admission"
    counts = {one: (sources / one.file).read_text("utf-8").count(one.old) for one in MUTATIONS}
    assert [one for one, count in counts.items() if count != 1] == [], "these lines are no longer there, or not once"
    assert suite_passes(repository, copy), "the tests fail on the whole package already"
    alive = [mutation for mutation in MUTATIONS if survives(repository, copy, mutation)]
    killed = 1.0 - len(alive) / len(MUTATIONS)
    print(f"{killed:.0%} of {len(MUTATIONS)} broken lines were noticed; not: {alive}")  # noqa: T201 - read with -s
    assert killed >= LEAST_KILLED_RATIO, alive
