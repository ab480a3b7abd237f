"""Fields of a ladder that are valid one by one but not together."""

import pytest

from fakes.ladders import shipped, small
from llmshed.errors import LadderError
from llmshed.ladder.contradictions import FIELDS
from llmshed.ladder.model import Rung, RungAction

STOP = 'action = "stop_bulk"'
SHED = 'action = "shed_interactive"; scope = { classes = [%s] }'
LOW = '"low"'

CASES = {
    "a name twice": (f'name = "a"; {STOP}\nname = "a"; {STOP}', "rungs[1].name", "another rung"),
    "a cap without its height": ('action = "cap_output"', "rungs[0].max_output_tokens", "is missing"),
    "a shrinking without its share": ('action = "shrink_context"', "rungs[0].drop_share", "is missing"),
    "a move to nowhere": ('action = "smaller_model"', "rungs[0].pool", "is missing"),
    "no way to disable thinking": (
        'action = "disable_thinking"', "rungs[0].template_argument", "or `prompt_suffix` or `pool`",
    ),
    "two ways that exclude each other": (
        'action = "disable_thinking"; pool = "p"; prompt_suffix = "/x"', "rungs[0].pool", "another pool",
    ),
    "jobs without their pace": ('action = "preempt_bulk"', "rungs[0].requeue_tokens_per_minute", "is missing"),
    "a field of another action": (f"{STOP}; max_output_tokens = 9", "rungs[0].max_output_tokens", '"cap_output"'),
    "a field of two other actions": (
        f'{STOP}; pool = "p"', "rungs[0].pool", 'belongs to "smaller_model" and "disable_thinking"',
    ),
    "a signal without its bound": (
        f'{STOP}; entry = {{ signal = "kv_used_ratio" }}', "rungs[0].entry.above", "is missing",
    ),
    "a rung that is never left": (
        f'{STOP}; entry = {{ signal = "replicas_lost", above = 0 }}', "rungs[0].entry.above", "0.5 is exceeded",
    ),
    "an objective that is never kept": (f"{STOP}; entry = {{ above = 0 }}", "rungs[0].entry.above", "never be left"),
    "a share above the whole": (
        f'{STOP}; entry = {{ signal = "kv_used_ratio", above = 1 }}', "rungs[0].entry.above", "never entered",
    ),
    "people before bulk": (SHED % '"low"', "rungs[0].action", "while bulk is still admitted"),
    "people before some of bulk": (
        f'{STOP}; scope = {{ classes = ["low"] }}\n' + SHED % '"low"', "rungs[1].action", "while bulk",
    ),
    "people before the bulk of some": (
        f'{STOP}; scope = {{ tenants = ["a"] }}\n' + SHED % '"low"', "rungs[1].action", "while bulk",
    ),
    "normal before low": (f"{STOP}\n" + SHED % '"normal"', "rungs[1].scope.classes", 'leaves "low" admitted'),
    "high with low, but not normal": (
        f"{STOP}\n" + SHED % '"high", "low"', "rungs[1].scope.classes", 'leaves "normal" admitted',
    ),
    "normal once low of one tenant is shed": (
        f'{STOP}\naction = "shed_interactive"; scope = {{ classes = ["low"], tenants = ["a"] }}\n' + SHED % '"normal"',
        "rungs[2].scope.classes", "of all tenants",
    ),
    "low and normal of one tenant": (
        f'{STOP}\naction = "shed_interactive"; scope = {{ classes = ["normal", "low"], tenants = ["a"] }}',
        "rungs[1].scope.classes", 'leaves "low" admitted',
    ),
    "a class twice": (
        f"{STOP}\n{SHED % LOW}\n{SHED % LOW}", "rungs[2].scope.classes", "already",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rungs", "path", "word"), CASES.values(), ids=CASES)
def test_each_is_the_one_mistake_told_at_its_field(rungs: str, path: str, word: str) -> None:
    with pytest.raises(LadderError) as refused:
        small(rungs)

    (line,) = str(refused.value).splitlines()
    assert line.split(": ")[1] == path
    assert word in line


def test_a_way_back_longer_than_the_most() -> None:
    with pytest.raises(LadderError, match=r"rungs\[0\]\.exit\.windows: 6 is more than `windows.most_exit_windows`, 5"):
        small(f"{STOP}; exit = {{ windows = 6 }}", windows="most_exit_windows = 5")


def test_mistakes_of_several_rungs_are_told_together() -> None:
    with pytest.raises(LadderError) as refused:
        small('action = "cap_output"\naction = "smaller_model"\n' + SHED % '"low"')
    assert len(str(refused.value).splitlines()) == 3


@pytest.mark.parametrize("signal", ["gpu_utilization", "gpu_utilisation", "DCGM_FI_DEV_GPU_UTIL", "utilization"])
def test_gpu_utilisation_is_refused_with_the_reason_and_what_can_be_used(signal: str) -> None:
    with pytest.raises(LadderError) as refused:
        small(f'{STOP}; entry = {{ signal = "{signal}", above = 0.9 }}')

    (line,) = str(refused.value).splitlines()
    assert "thirty seconds from a full KV cache" in line
    assert '"queue_delay_seconds", "queued_prefill_tokens"' in line


@pytest.mark.parametrize(
    "rungs",
    [
        f"{STOP}; scope = {{ classes = ['low'] }}\n{STOP}\n" + SHED % '"low"',
        f"{STOP}\n" + SHED % '"low", "normal"',
        f"{STOP}\n" + SHED % '"low"' + "\n" + SHED % '"normal"' + "\n" + SHED % '"high"',
        f'{STOP}\naction = "shed_interactive"; scope = {{ classes = ["low"], tenants = ["a"] }}\n' + SHED % '"low"',
        f"{STOP}\n{SHED % LOW}\n" + 'action = "shed_interactive"; scope = { classes = ["normal"], tenants = ["a"] }',
        'action = "disable_thinking"; prompt_suffix = "/x"; template_argument = "enable_thinking"',
        f'{STOP}; entry = {{ signal = "replicas_lost", above = 0.5 }}',
    ],
)
def test_what_is_agreed_on_sensibly_is_taken(rungs: str) -> None:
    assert small(rungs).label == "small@1"


def test_the_shipped_ladders_are_valid() -> None:
    assert shipped("source").label == "source@1"
    assert {rung.action for rung in shipped("full").rungs} == set(RungAction) - {RungAction.PREEMPT_BULK}


def test_the_fields_of_actions_are_fields_of_actions() -> None:
    assert set(FIELDS) <= set(RungAction)
    assert {field for fields in FIELDS.values() for field in fields} <= set(Rung.model_fields)
