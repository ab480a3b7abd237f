"""The sizes of requests that were refused for good."""

from fakes.door import policy
from llmshed.gateway.door.unchanged import MOST_PROMPTS, REMEMBERED_SECONDS, RefusedSize, RefusedSizes

POLICY = policy()
SIZE = RefusedSize((90_000,), untruncated_tokens=95_000)


def test_a_size_is_found_by_its_fingerprint_for_some_minutes() -> None:
    sizes = RefusedSizes()
    sizes.note("a", SIZE, POLICY, 10.0)
    assert sizes.find("a", POLICY, 11.0) == SIZE
    assert sizes.find("b", POLICY, 11.0) is None
    assert sizes.find("a", POLICY, 9.0 + REMEMBERED_SECONDS) == SIZE
    assert sizes.find("a", POLICY, 10.0 + REMEMBERED_SECONDS) is None


def test_another_policy_forgets_everything_since_it_may_count_otherwise() -> None:
    sizes, other = RefusedSizes(), policy()
    sizes.note("a", SIZE, POLICY, 10.0)
    assert sizes.find("a", other, 11.0) is None
    assert sizes.find("a", POLICY, 11.0) is None
    assert len(sizes) == 0


def test_the_newest_are_kept_and_long_lists_of_prompts_are_not() -> None:
    sizes = RefusedSizes(most=2)
    for name in "abac":
        sizes.note(name, SIZE, POLICY, 10.0)
    assert [sizes.find(name, POLICY, 11.0) is not None for name in "abc"] == [True, False, True]
    sizes.note("d", RefusedSize((1,) * (MOST_PROMPTS + 1)), POLICY, 10.0)
    assert len(sizes) == 2
    assert sizes.find("d", POLICY, 11.0) is None
