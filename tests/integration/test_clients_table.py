"""What clients do when a running gateway refuses or fails them: one state of each kind; the soak meets all of them."""

from pathlib import Path

import pytest

from fakes.clients_running import cells_of, wrong
from fakes.clients_states import STATES
from fakes.clients_table import CLIENTS, HERE, Told
from llmshed.admission.reasons import REASON_TABLE, Reason

NEVER_MET = {Reason.METHOD_NOT_ALLOWED, Reason.CONTENT_ENCODING, Reason.UNSUPPORTED_FIELD, Reason.DUPLICATE_KEY}
"""Refusals of requests that no client here can be brought to send on all its routes."""
ONE_OF_EACH = {
    Reason.MALFORMED,
    Reason.UNAUTHENTICATED,
    Reason.CONTEXT_LIMIT,
    Reason.TOKEN_BUDGET_EXHAUSTED,
    Reason.DEADLINE_INFEASIBLE,
    Reason.DRAINING,
    Reason.UPSTREAM_ERROR,
}


@pytest.mark.slow
async def test_clients_do_what_the_table_says(tmp_path: Path) -> None:
    for module in ("openai", "huggingface_hub", "text_generation", "urllib3"):
        pytest.importorskip(module, reason="extra `clients` is not installed")
    states = [state for state in STATES if state.reason in ONE_OF_EACH]
    cells = await cells_of(HERE, states, tmp_path)
    assert wrong(cells) == []
    assert {cell.row.name for cell in cells} == {row.name for row in CLIENTS if HERE in row.environments}
    assert {cell.state.told for cell in cells} == set(Told)


def test_every_refusal_that_clients_tell_apart_is_met_in_some_state() -> None:
    met = {(state.reason.row.status, state.reason.row.retry) for state in STATES}
    rows = {(row.status, row.retry) for reason, row in REASON_TABLE.items() if reason not in NEVER_MET}
    assert rows <= met
    assert {state.told for state in STATES} == set(Told)
