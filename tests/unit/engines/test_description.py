"""A page on which an engine tells of itself; `test_info.py` of TGI holds the values that are refused."""

import pytest

from llmshed.engines.description import Description
from llmshed.errors import EngineError


def test_a_page_that_was_not_answered_is_told_with_the_engine_that_should_have() -> None:
    with pytest.raises(
        EngineError, match=r"^/props: there is no such page\. Is a llama\.cpp server at this address\?$"
    ):
        Description.page({}, "/props", "llama.cpp")


@pytest.mark.parametrize("page", [b"", b"<html>", b"[]", b"7", b"null", b"\xff"])
def test_a_page_that_is_no_object_is_another_servers(page: bytes) -> None:
    with pytest.raises(EngineError, match=r"^/version: the answer is not a JSON object, so this is not a vLLM server$"):
        Description.page({"/version": page}, "/version", "vLLM")


def test_an_object_inside_keeps_the_place() -> None:
    page = Description.page({"/props": b'{"slot": {"n_ctx": 0}, "slots": 4}'}, "/props", "llama.cpp")
    assert page.bound("slots") == 4
    with pytest.raises(EngineError, match=r"^/props: `n_ctx` should be a whole number above 0, but it is 0\."):
        page.inside("slot").bound("n_ctx")
    with pytest.raises(EngineError, match=r"^/props: `slots` should be an object, but it is 4\."):
        page.inside("slots")
