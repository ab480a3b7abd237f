"""A diagnosis as a page of its own file."""

from typing import TYPE_CHECKING

from llmshed import __version__
from llmshed.diagnosis.diagnose import Diagnosis
from llmshed.rendering.diagnosis_page import diagnosis_page
from llmshed.rendering.page import Page

from ._diagnose_told import headline
from ._spans import written_span

if TYPE_CHECKING:
    from ._diagnose_read import Asking


def page(told: Diagnosis, asking: "Asking", drawn: bool) -> Page:
    """Return the page of a diagnosis."""
    facts = (
        ("Prometheus", asking.url),
        ("window", written_span(asking.window_seconds)),
        ("baseline", f"the {written_span(asking.baseline_seconds)} before"),
        ("a value every", written_span(asking.step_seconds)),
    )
    return diagnosis_page(told, headline(told), facts, __version__, drawn=drawn)
