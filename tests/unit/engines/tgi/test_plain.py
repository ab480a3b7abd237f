"""What TGI is sent, and what is read of it, to measure a replica."""

import json

import pytest

from llmshed.engines.base import Activity, EngineInfo, StreamFacts
from llmshed.engines.registry import readable_engine
from llmshed.errors import EngineError

TGI = readable_engine("tgi")
INFO = b'{"model_id":"m","version":"3.3.5","max_concurrent_requests":128,"max_input_tokens":9,"max_total_tokens":10}'


def test_a_text_is_completed_in_a_stream_up_to_its_ceiling() -> None:
    request = TGI.text_request("some text", 40, runs_to_ceiling=True, model="m")
    assert request.path == "/generate_stream"
    assert json.loads(request.body) == {
        "inputs": "some text",
        "parameters": {"max_new_tokens": 40, "do_sample": True},
    }


def test_the_stream_is_counted_event_by_event() -> None:
    reader = TGI.text_reader()
    reader.feed(b'data:{"index":1,"token":{"id":7,"text":" a"},"generated_text":null,"details":null}\n\n')
    assert reader.facts.output_tokens == 1
    reader.feed(b'data:{"index":2,"token":{"id":8,"text":" b"},"generated_text":" a b","details":null}\n\n')
    reader.end()
    assert reader.facts == StreamFacts(data_events=2, output_tokens=2, complete=True)


def test_a_text_is_counted_by_its_tokens() -> None:
    request = TGI.count_request("some text", model="m")
    assert (request.path, json.loads(request.body)) == ("/tokenize", {"inputs": "some text"})
    assert TGI.read_text_count(b'[{"id":1,"text":"some"},{"id":2,"text":" text"}]') == 2


def test_a_replica_tells_of_itself_on_one_page() -> None:
    assert TGI.description_paths == ("/info",)
    assert TGI.read_description({"/info": INFO}) == EngineInfo("m", "3.3.5", 128, 9, 10)
    with pytest.raises(EngineError, match=r"^/info: there is no such page\. Is a TGI server at this address\?$"):
        TGI.read_description({"/props": INFO})


def test_activity_is_told_by_gauges_and_prompts() -> None:
    page = b"tgi_batch_current_size 3\ntgi_queue_size 2\ntgi_request_input_length_sum 512\n"
    assert TGI.read_activity(page) == Activity(3.0, 2.0, 512.0)
    assert TGI.read_activity(b"") == Activity(0.0, 0.0, 0.0)
