"""The pages for operators and clients say what the code does: reasons, headers, metrics, fields and exit codes."""

import re
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from conftest import Cli
from fakes.states import GROUND, METERED, POOL
from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.reasons import REASON_TABLE, Reason, Retry
from llmshed.admission.request import Lane
from llmshed.admission.signals.readings import Signal
from llmshed.admission.state import ControllerState, ReplicaState
from llmshed.admission.verdict import Advice, Decision, DelayTerms, QueueTerms, Verdict
from llmshed.engines.base import Dialect
from llmshed.errors import ExitCode
from llmshed.gateway.contract.answer_headers import Timings, answer_headers
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.refusals import ContractWriter
from llmshed.gateway.would import Would
from llmshed.observability.decisions import DecisionLine
from llmshed.observability.endings import Ending, Phase
from llmshed.observability.metrics import REPEATED, Metrics, QueueSize, UpstreamErrorKind
from llmshed.profile.comparison import Kind, Match

RETRY_WORDS = {Retry.NEVER: "retry never", Retry.LATER: "retry later", Retry.UNSAFE: "retry unsafe"}


def rows_of(page: Path, title: str | None = None) -> list[list[str]]:
    """Return the cells of all table rows of a page, or of one of its sections, without heads and rules."""
    text = page.read_text()
    if title is not None:
        sections = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
        text = dict(zip(sections[1::2], sections[2::2], strict=True))[title]
    lines = text.splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line, after in pairwise([*lines, ""])
        if line.startswith("|") and not line.startswith("|---") and not after.startswith("|---")
    ]


def words_of(rows: list[list[str]]) -> list[str]:
    return [row[0].strip("`") for row in rows]


@pytest.fixture
def contract(repository: Path) -> Path:
    return repository / "docs" / "contract.md"


@pytest.fixture
def contract_man(repository: Path) -> str:
    return (repository / "man" / "llmshed-contract.7").read_text()


def test_the_contract_explains_every_reason_with_its_status_meaning_and_retry_advice(contract: Path) -> None:
    explained = re.findall(r"^### (\w+)\n(\d+) · `(\w+)` · ([\w ]+)\. (.*)\.\n\S", contract.read_text(), re.MULTILINE)
    assert [
        (word, int(status), kind, advice, meaning.lower()) for word, status, kind, advice, meaning in explained
    ] == [
        (reason.value, row.status, row.kind.value, RETRY_WORDS[row.retry], row.meaning.lower())
        for reason, row in REASON_TABLE.items()
    ]


def test_the_manual_page_lists_the_same_reasons(contract_man: str) -> None:
    listed = re.findall(r"^\.It Sy (\w+)\n(\d+), ([\w ]+)\.\n(.*)\.$", contract_man, re.MULTILINE)
    assert [(word, int(status), advice, meaning.lower()) for word, status, advice, meaning in listed] == [
        (reason.value, row.status, RETRY_WORDS[row.retry], row.meaning.lower()) for reason, row in REASON_TABLE.items()
    ]


def emitted_headers() -> set[str]:
    """Return every header that the contract can write."""
    writer = ContractWriter(lambda: 0.5, 1.0, 60.0)
    names: set[str] = set()
    for reason in Reason:
        problem = Problem(reason, "why", input_tokens=1, model="m", budget_tokens=1, allow=("GET",))
        names |= set(writer.refusal(problem, Dialect.OPENAI, "r").headers)
    verdict = Verdict(
        Decision.ADMIT,
        lane=Lane.BULK,
        output_ceiling_tokens=1,
        reservation=Reservation(1, 1, 0, 1),
        replica="r",
        profile="p",
    )
    served = answer_headers(
        "r", verdict, input_tokens=1, model="m", timings=Timings(), streamed=True, untruncated_tokens=2
    )
    degraded = answer_headers("r", replace(verdict, degradations=("cap_output",)), input_tokens=1)
    observed = answer_headers("r", verdict, input_tokens=1, would=Would(Decision.ADMIT))
    return names | set(served) | set(observed) | set(degraded)


def test_the_contract_and_its_manual_page_list_every_header_that_is_sent(contract: Path, contract_man: str) -> None:
    documented = words_of(rows_of(contract, "Headers"))
    assert len(documented) == len(set(documented))
    assert set(documented) == emitted_headers()
    assert re.findall(r"^\.It Ic ([\w-]+)$", contract_man, re.MULTILINE) == documented


def test_the_contract_names_every_piece_of_advice(contract: Path) -> None:
    assert all(f"`{advice}`" in contract.read_text() for advice in Advice)


def test_the_contract_and_its_manual_page_name_every_time_that_is_told(contract: Path, contract_man: str) -> None:
    told = re.findall(r"(\w+);dur=", Timings(ttft_seconds=0.0, total_seconds=0.0).header())
    (row,) = [meaning for name, meaning in rows_of(contract, "Headers") if name == "`server-timing`"]
    (page,) = re.findall(r"^\.It Ic server-timing\n(.*?)^\.It ", contract_man, re.MULTILINE | re.DOTALL)
    assert told == ["tok", "queue", "ttft", "total"]
    for name in told:
        assert re.search(rf"`{name}[`;]", row) or f"{name};dur" in row
        assert re.search(rf"\b{name}\b", page)


def metric_rows() -> set[tuple[str, str, str]]:
    """Return name, type and labels of every metric, as a scrape of one replica shows them."""
    metrics = Metrics()
    replica = ReplicaState("r", "p", True, "profile/1", Equation(1, 0, 0, 0, 0, 1), 0, {}, METERED, 0.1, 0.3, 0.05)  # noqa: FBT003 - `up`
    pool = replace(POOL, ladder=GROUND)
    metrics.state.state = ControllerState((replica,), draining=False, live_requests=0, pools=(pool,))
    metrics.state.evaluations = {("p", "rung"): frozenset()}
    metrics.know_replicas((replica,))
    metrics.know_pools((pool,))
    for seen in (metrics.budget_factor, metrics.signal_age, metrics.metrics_up, metrics.profile_factor):
        seen.of("r")
    metrics.profile_match.of("r", Kind.MODEL, Match.MATCH)
    rows = set()
    for family in metrics.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        rows.add((name, family.type, ", ".join(labels) or "-"))
    return rows


def test_the_metrics_page_lists_every_metric_once_with_its_type_and_labels(repository: Path) -> None:
    documented = [
        (row[0].strip("`"), row[1], row[2])
        for row in rows_of(repository / "docs" / "metrics.md")
        if row[0].startswith("`llmshed_")
    ]
    assert len(documented) == len(set(documented))
    assert set(documented) == metric_rows()


def test_the_metrics_page_lists_the_values_of_its_labels(repository: Path) -> None:
    values = {row[0].strip("`"): row[1] for row in rows_of(repository / "docs" / "metrics.md", "Label values")}
    assert values["kind` of errors"] == ", ".join(f"`{kind}`" for kind in UpstreamErrorKind)
    assert values["kind` of repeats"] == ", ".join(f"`{kind}`" for kind in REPEATED)
    assert values["kind` of facts"] == ", ".join(f"`{kind}`" for kind in Kind)
    assert values["state"] == ", ".join(f"`{match}`" for match in Match)
    assert values["size"] == ", ".join(f"`{size}`" for size in QueueSize)
    assert values["decision"] == ", ".join([*(f"`{decision}`" for decision in Decision), "`none`"])
    assert values["lane"] == ", ".join([*(f"`{lane}`" for lane in Lane), "`none`"])
    assert values["signal"].startswith(", ".join(f"`{signal}`" for signal in Signal))


def test_no_label_can_name_a_client() -> None:
    labels = {label for _, _, row in metric_rows() for label in row.split(", ")}
    assert not labels & {"tenant", "model", "user", "key", "request_id", "session"}


def test_the_decision_log_page_lists_every_field_in_order(repository: Path) -> None:
    page = repository / "docs" / "decision-log.md"
    line = DecisionLine(0.0, "r", "/", 200, Ending.FINISHED, "--")
    fields = [row for row in rows_of(page) if row[0].startswith("`")]
    assert words_of(fields)[: len(line.record())] == list(line.record())
    terms = replace(
        line,
        equation=Equation(1, 0, 0, 0, 0, 1),
        reservation=Reservation(1, 1, 0, 1),
        delay=DelayTerms(0, 0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0),
        window=METERED,
        queue=QueueTerms(0, 0, 1, 1, 1.0),
    ).record()
    meanings = {row[0].strip("`"): row[1] for row in fields}
    for name in ("equation", "reservation", "delay", "window", "queue"):
        assert re.findall(r"`(\w+)`", meanings[name]) == list(terms[name])


def test_the_decision_log_page_lists_endings_and_phases(repository: Path) -> None:
    page = repository / "docs" / "decision-log.md"
    assert words_of(rows_of(page, "Endings")) == [ending.value for ending in Ending]
    assert words_of(rows_of(page, "Termination codes")) == [phase.value for phase in Phase]


def test_the_command_line_page_lists_every_exit_code(repository: Path) -> None:
    rows = rows_of(repository / "docs" / "cli.md", "Exit codes")
    assert [(int(row[0]), row[1].strip("`")) for row in rows] == [(code.value, code.name) for code in ExitCode]


def test_the_command_line_page_lists_every_verb(repository: Path, cli: Cli) -> None:
    shown = cli("--help").stdout
    verbs = re.findall(r"^  (\w+)  ", shown[shown.index("Commands:") :], re.MULTILINE)
    assert verbs
    assert sorted(words_of(rows_of(repository / "docs" / "cli.md"))[: len(verbs)]) == sorted(verbs)


def test_the_contract_page_is_clean_mdoc(repository: Path) -> None:
    mandoc = shutil.which("mandoc")
    if mandoc is None:
        pytest.skip("mandoc is not installed: tests/debian_tools.sh brings it")
    page = repository / "man" / "llmshed-contract.7"
    checked = subprocess.run([mandoc, "-T", "lint", "-W", "warning", page], capture_output=True, check=False, text=True)
    assert (checked.returncode, checked.stdout) == (0, "")
