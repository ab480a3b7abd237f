"""A review as sentences, tables and a page: what is not known is a dash, and an estimate is called one."""

import pytest

from fakes.reviews import FOUND, NOTHING
from llmshed.rendering.page import render_page
from llmshed.rendering.review_page import review_page, summary


def test_the_summary_says_what_was_refused_who_waited_and_what_is_missing() -> None:
    told = summary(FOUND)
    assert told[0] == "900 requests were served and 100 refused, about 50,000 tokens."
    assert "interactive: 95.0 % met their objectives." in told
    assert "The longest wait was 1 min 15 s, of interactive in <main>." in told
    assert "Pool <main> ran interactive alone and was idle for 25.0 % of the time." in told
    assert any(text.startswith("Data are there for 50.0 % of the 50 min") for text in told)
    assert told[-1] == "Not told: ttft_p95 (no answer within 9 s)."


def test_the_page_escapes_names_and_draws_what_is_known() -> None:
    text = render_page(review_page(FOUND, (("Prometheus", "http://<p>"),), "1.0", drawn=False))
    assert "&lt;main&gt;" in text
    assert "<main>" not in text.replace("<main>\n", "")
    pytest.importorskip("matplotlib")
    drawn = render_page(review_page(FOUND, (), "1.0"))
    assert drawn.count("<svg") == 2
    assert render_page(review_page(NOTHING, (), "1.0")).count("<svg") == 0
