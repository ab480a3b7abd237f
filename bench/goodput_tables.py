"""The tables of docs/performance.md and its drawings, from the rows that `bench/goodput.py` measured."""

from collections.abc import Callable, Iterable, Sequence

from goodput_cases import SCALES, STEP_TIME_ERRORS
from goodput_grid import ORACLE, OTHERS
from goodput_rows import Row

from llmshed.rendering.plots import Caption, curve
from llmshed.whatif.gates.table import OURS
from llmshed.workload.ceilings import CeilingRule

POLICIES = (*OTHERS, ORACLE)
Place = tuple[str, str, str]
"""Trace, replica and ceiling rule."""
_RULE = CeilingRule.POW2.value


class Book:
    """Rows by what they are of."""

    def __init__(self, rows: Iterable[Row]) -> None:
        """Take the rows of one or more cases, each with every policy and scale."""
        self._rows = {(*row.place, row.policy, row.clients, row.step_time_error, row.scale): row for row in rows}
        self.places = tuple(dict.fromkeys(row.place for row in self._rows.values()))

    def row(self, place: Place, policy: str, scale: float, clients: str = "none", error: float = 0.0) -> Row:
        """Return one row.

        Raises:
            KeyError: it was not measured.
        """
        return self._rows[(*place, policy, clients, error, scale)]

    def relative(self, place: Place, policy: str, scale: float, clients: str = "none", error: float = 0.0) -> float:
        """Return good tokens a second as a share of the oracle's at 1x of the same place."""
        row = self.row(place, policy, scale, clients, error)
        return row.good_tokens / self.row(place, ORACLE, SCALES[0]).good_tokens


def tables(rows: Iterable[Row]) -> dict[str, str]:
    """Return every table by its name, in Markdown."""
    book = Book(rows)
    first = [place for place in book.places if place[2] == _RULE]
    doubted = [place for place in first if place[0] == "azure_conv"]
    return {
        "cases": _cases(book),
        "goodput": _by_policy(book.places, lambda place, policy: _scales(
            lambda scale: book.relative(place, policy, scale)
        )),
        "attainment": _by_policy(first, lambda place, policy: _scales(
            lambda scale: book.row(place, policy, scale).attainment
        )),
        "mix": _by_policy(first, lambda place, policy: _mix(book.row(place, policy, SCALES[-1]))),
        "latency": _by_policy(first, lambda place, policy: _latency(book.row(place, policy, SCALES[-1]))),
        "errors": _errors(book, doubted),
        "clients": _clients(book, first),
    }  # fmt: skip


def drawing(rows: Iterable[Row], place: Place, name: str) -> str:
    """Return the curve of all policies at one place as SVG.

    Raises:
        MissingPlotsError: matplotlib is not installed.
    """
    book = Book(rows)
    trace, replica, ceiling = place
    replicas = book.row(place, ORACLE, SCALES[0]).replicas
    series = {policy: [(scale, 100 * book.relative(place, policy, scale)) for scale in SCALES] for policy in POLICIES}
    last = ", ".join(f"{policy} {points[-1][1]:.0f} %" for policy, points in series.items())
    caption = Caption(
        name=name,
        title=f"Goodput under overload: {trace} before {replicas} x {replica}, ceilings {ceiling}",
        description=f"Tokens of good requests, in percent of what the order-keeping oracle has at 1x. At 10x: {last}.",
        x_label="offered load, in multiples of 1x",
        y_label="good tokens, % of the oracle at 1x",
    )
    return curve(caption, series, "log")


def _cases(book: Book) -> str:
    body = []
    for place in book.places:
        row = book.row(place, ORACLE, SCALES[0])
        hurried = f" in {row.seconds / row.hurry:g} s" if row.hurry > 1 else ""
        began = f"from second {row.begin_seconds:,.0f}, " if row.begin_seconds else ""
        body.append([
            row.trace, f"{began}{row.seconds:g} s{hurried}", f"{row.replicas} x {row.replica}", row.ceiling,
            f"{row.offered_requests:.2f}", _percent(row.feasible_share), f"{row.good_tokens:,.0f}",
            _percent(row.attainment),
        ])  # fmt: skip
    head = ["trace", "slice", "replicas", "ceilings", "1x, requests/s", "feasible", "oracle's good tokens/s at 1x",
            "its attainment"]  # fmt: skip
    return _table(head, body)


def _by_policy(places: Sequence[Place], text: Callable[[Place, str], str]) -> str:
    """Return a row for each place and a column for each policy."""
    several = len({place[2] for place in places}) > 1
    body = [
        [place[0], _short(place[1]), *([place[2]] if several else []), *(text(place, policy) for policy in POLICIES)]
        for place in places
    ]
    return _table(["trace", "GPU", *(["ceilings"] if several else []), *map(_quoted, POLICIES)], body)


def _errors(book: Book, places: Sequence[Place]) -> str:
    errors = (STEP_TIME_ERRORS[0], 0.0, STEP_TIME_ERRORS[1])
    columns = [(policy, error) for policy in ("ours", ORACLE) for error in errors]

    def cell(place: Place, policy: str, error: float) -> str:
        return _scales(lambda scale: book.relative(place, policy, scale, error=error))

    body = [
        [place[0], _short(place[1]), *(cell(place, policy, error) for policy, error in columns)] for place in places
    ]
    return _table(["trace", "GPU", *(f"`{policy}`, {_signed(error)}" for policy, error in columns)], body)


def _clients(book: Book, places: Sequence[Place]) -> str:
    """Return how flat ours is with clients that give up and with those that retry, against the oracle and itself."""

    def itself(place: Place, clients: str) -> str:
        first = book.row(place, OURS, SCALES[0], clients).good_tokens
        return _scales(lambda scale: book.row(place, OURS, scale, clients).good_tokens / first)

    def beside(place: Place, clients: str) -> str:
        return _scales(lambda scale: book.relative(place, OURS, scale, clients))

    models = {"none": "give up", "sdk": "SDK"}
    body = [
        [place[0], _short(place[1]), *(text(place, clients) for text in (itself, beside) for clients in models)]
        for place in places
    ]
    heads = [f"{told}, {of}" for of in ("% of its own 1x", "% of the oracle's 1x") for told in models.values()]
    return _table(["trace", "GPU", *heads], body)


def _scales(share: Callable[[float], float]) -> str:
    return " / ".join(f"{100 * share(scale):.0f}" for scale in SCALES)


def _mix(row: Row) -> str:
    whole = sum(row.quartiles)
    return " / ".join(f"{100 * tokens / whole:.0f}" for tokens in row.quartiles) if whole else "-"


def _latency(row: Row) -> str:
    ttft = "-" if row.ttft_p95_seconds is None else f"{row.ttft_p95_seconds:.3g}"
    tpot = "-" if row.tpot_p95_seconds is None else f"{row.tpot_p95_seconds:.3f}"
    return f"{ttft} / {tpot}"


def _short(replica: str) -> str:
    return replica.rpartition("-")[2].upper()


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _signed(error: float) -> str:
    return f"{100 * error:+.0f} %" if error else "right"


def _quoted(policy: str) -> str:
    return f"`{policy}`"


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(cells)} |\n" if cells[0] != "---" else f"|{'|'.join(cells)}|\n" for cells in lines)
