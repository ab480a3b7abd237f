"""Bodies of every route, read as calls."""

from typing import Any

import pytest

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError, Call, Route
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.engines.tgi.fields import ROUTE_FIELDS
from llmshed.tokenizing.prompts import ChatPrompt, TextPrompt

NATIVE = (Route.ROOT, Route.GENERATE, Route.GENERATE_STREAM)
OPENAI = (Route.CHAT, Route.COMPLETIONS)
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]


def least(route: Route) -> dict[str, Any]:
    """The least body of a route."""
    match route:
        case Route.CHAT | Route.CHAT_TOKENIZE:
            return {"messages": MESSAGES}
        case Route.COMPLETIONS:
            return {"prompt": "Hello"}
        case _:
            return {"inputs": "Hello"}


def read(
    route: Route, more: dict[str, Any] | None = None, *, version: str = "3.3.5", allow_truncate: bool = False
) -> Call:
    engine = TgiEngine(version, allow_truncate=allow_truncate)
    return engine.read_call(route, {**least(route), **(more or {})})


def refusal(route: Route, more: dict[str, Any], **engine: Any) -> BodyError:
    with pytest.raises(BodyError) as caught:
        read(route, more, **engine)
    return caught.value


@pytest.mark.parametrize("route", list(Route))
def test_the_least_body_is_one_sequence_without_a_wish(route: Route) -> None:
    call = read(route)
    assert call.route is route
    assert call.streamed is (route is Route.GENERATE_STREAM)
    assert (call.copies, call.asked_output_tokens, call.truncate_tokens, call.images) == (1, None, None, 0)
    assert (call.model, call.declared_intent, call.session_hint) == (None, None, None)
    assert len(call.prompts) == 1


@pytest.mark.parametrize("route", [*NATIVE, Route.TOKENIZE])
def test_native_text_is_counted_with_special_tokens(route: Route) -> None:
    assert read(route).prompts == (TextPrompt("Hello", add_special_tokens=True),)


def test_completions_count_each_prompt_with_special_tokens() -> None:
    call = read(Route.COMPLETIONS, {"prompt": ["a", "b"], "n": 3})
    assert call.prompts == (TextPrompt("a"), TextPrompt("b"))
    assert call.copies == 3


@pytest.mark.parametrize("route", [Route.CHAT, Route.CHAT_TOKENIZE])
def test_a_chat_is_counted_with_its_tools(route: Route) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    more = {"tools": tools, "tool_choice": "auto", "tool_prompt": "Use them."}
    assert read(route, more).prompts == (ChatPrompt(MESSAGES, tools, "auto", "Use them."),)


@pytest.mark.parametrize("route", list(Route))
def test_every_field_that_is_no_refusal_may_be_null(route: Route) -> None:
    nulls = dict.fromkeys(ROUTE_FIELDS[route].keys() - least(route).keys())
    assert read(route, nulls) == read(route)


@pytest.mark.parametrize(
    ("route", "more", "asked"),
    [
        (Route.GENERATE, {"parameters": {"max_new_tokens": 7}}, 7),
        (Route.GENERATE, {"parameters": {"max_new_tokens": None}}, None),
        (Route.GENERATE, {"parameters": {}}, None),
        (Route.ROOT, {"parameters": None}, None),
        (Route.CHAT, {"max_tokens": 7}, 7),
        (Route.CHAT, {"max_completion_tokens": 7}, 7),
        (Route.CHAT, {"max_completion_tokens": 7, "max_tokens": None}, 7),
        (Route.CHAT, {"max_tokens": 100_000}, 100_000),
        (Route.COMPLETIONS, {"max_tokens": 2**31 - 1}, 2**31 - 1),
        (Route.COMPLETIONS, {"max_tokens": None}, None),
    ],
)
def test_the_ceiling_asked_for_is_read_from_its_field(route: Route, more: dict[str, Any], asked: int | None) -> None:
    assert read(route, more).asked_output_tokens == asked


CEILINGS = [
    (Route.ROOT, "parameters.max_new_tokens"),
    (Route.GENERATE_STREAM, "parameters.max_new_tokens"),
    (Route.CHAT, "max_tokens"),
    (Route.CHAT, "max_completion_tokens"),
    (Route.COMPLETIONS, "max_tokens"),
]


@pytest.mark.parametrize(("route", "param"), CEILINGS)
@pytest.mark.parametrize("value", [0, -1, 2**31, 7.0, True, "7", [7], {}])
def test_a_ceiling_is_a_whole_number_from_one_on(route: Route, param: str, value: object) -> None:
    name = param.rpartition(".")[2]
    error = refusal(route, {"parameters": {name: value}} if "." in param else {name: value})
    assert (error.reason, error.param) == (Reason.MALFORMED, param)
    assert "a whole number from 1 to 2,147,483,647" in str(error)


def test_two_names_of_one_ceiling_contradict_even_when_they_agree() -> None:
    error = refusal(Route.CHAT, {"max_tokens": 7, "max_completion_tokens": 7})
    assert error.reason is Reason.MALFORMED
    assert "`max_tokens` and `max_completion_tokens`" in str(error)


@pytest.mark.parametrize(
    ("route", "more", "copies"),
    [
        (Route.ROOT, {"parameters": {"best_of": 2}}, 2),
        (Route.GENERATE, {"parameters": {"best_of": 128}}, 128),
        (Route.GENERATE_STREAM, {"parameters": {"best_of": 1}}, 1),
        (Route.CHAT, {"n": 8}, 8),
        (Route.CHAT, {"n": 8, "stream": True}, 8),
        (Route.COMPLETIONS, {"n": 2}, 2),
        (Route.COMPLETIONS, {"best_of": 5}, 5),
        (Route.COMPLETIONS, {"n": 2, "best_of": 5}, 5),
        (Route.COMPLETIONS, {"n": 2, "best_of": 2, "stream": True}, 2),
    ],
)
def test_copies_are_all_reserved(route: Route, more: dict[str, Any], copies: int) -> None:
    assert read(route, more).copies == copies


@pytest.mark.parametrize("value", [0, -1, 129, 10**9, 1.0, True, "2"])
@pytest.mark.parametrize(
    ("route", "param"), [(Route.ROOT, "parameters.best_of"), (Route.CHAT, "n"), (Route.COMPLETIONS, "best_of")]
)
def test_copies_are_bounded(route: Route, param: str, value: object) -> None:
    name = param.rpartition(".")[2]
    error = refusal(route, {"parameters": {name: value}} if "." in param else {name: value})
    assert (error.reason, error.param) == (Reason.MALFORMED, param)
    assert "a whole number from 1 to 128" in str(error)


@pytest.mark.parametrize(
    ("route", "more", "param"),
    [
        (Route.ROOT, {"stream": True, "parameters": {"best_of": 2}}, "parameters.best_of"),
        (Route.GENERATE_STREAM, {"parameters": {"best_of": 2}}, "parameters.best_of"),
        (Route.COMPLETIONS, {"stream": True, "best_of": 2}, "best_of"),
    ],
)
def test_the_best_of_several_is_not_chosen_from_a_stream(route: Route, more: dict[str, Any], param: str) -> None:
    error = refusal(route, more)
    assert (error.reason, error.param) == (Reason.UNSUPPORTED_FIELD, param)


def test_best_of_fewer_than_n_contradicts() -> None:
    assert (
        str(refusal(Route.COMPLETIONS, {"n": 3, "best_of": 2})) == "`best_of` must be at least `n`, which is 3, not 2"
    )


@pytest.mark.parametrize(
    ("route", "stream", "streamed"),
    [
        (Route.ROOT, True, True),
        (Route.ROOT, False, False),
        (Route.GENERATE, False, False),
        (Route.GENERATE_STREAM, True, True),
        (Route.CHAT, True, True),
        (Route.CHAT, False, False),
        (Route.COMPLETIONS, True, True),
        (Route.TOKENIZE, False, False),
        (Route.CHAT_TOKENIZE, True, False),
    ],
)
def test_the_form_of_the_answer_is_read_from_stream_where_the_route_leaves_it_open(
    route: Route,
    stream: bool,  # noqa: FBT001 - a row of the table above
    streamed: bool,  # noqa: FBT001 - as above
) -> None:
    assert read(route, {"stream": stream}).streamed is streamed


@pytest.mark.parametrize(
    ("route", "stream"), [(Route.GENERATE, True), (Route.GENERATE_STREAM, False), (Route.TOKENIZE, True)]
)
def test_a_stream_that_the_route_contradicts_is_refused(route: Route, stream: bool) -> None:  # noqa: FBT001 - as above
    error = refusal(route, {"stream": stream})
    assert (error.reason, error.param) == (Reason.MALFORMED, "stream")


@pytest.mark.parametrize("value", ["true", 1, 0, []])
@pytest.mark.parametrize("route", [Route.ROOT, *OPENAI])
def test_a_stream_is_true_or_false(route: Route, value: object) -> None:
    assert refusal(route, {"stream": value}).param == "stream"


@pytest.mark.parametrize("route", list(Route))
def test_the_model_is_read_everywhere_and_forwarded_where_tgi_has_the_field(route: Route) -> None:
    call = read(route, {"model": "a/b"})
    assert call.model == "a/b"
    assert ("model" in call.body) is (route not in {*NATIVE, Route.TOKENIZE})
    assert refusal(route, {"model": 7}).param == "model"


@pytest.mark.parametrize("route", OPENAI)
@pytest.mark.parametrize(
    ("more", "intent"),
    [
        ({"metadata": {"llmshed_intent": "bulk"}}, "bulk"),
        ({"metadata": {"llmshed_intent": "interactive", "team": "a"}}, "interactive"),
        ({"metadata": {"llmshed_intent": "interactive"}, "service_tier": "flex"}, "interactive"),
        ({"metadata": {"team": "a"}, "service_tier": "flex"}, "bulk"),
        ({"service_tier": "flex"}, "bulk"),
        ({"service_tier": "priority"}, None),
        ({"metadata": {"llmshed_intent": None}}, None),
        ({"metadata": {}}, None),
    ],
)
def test_the_intent_is_declared_in_fields_that_every_openai_client_can_send(
    route: Route, more: dict[str, Any], intent: str | None
) -> None:
    assert read(route, more).declared_intent == intent


@pytest.mark.parametrize("declared", ["urgent", "", "BULK", 1, ["bulk"], True, {"a": 1}])
def test_an_unknown_intent_is_told_which_are_accepted(declared: object) -> None:
    error = refusal(Route.CHAT, {"metadata": {"llmshed_intent": declared}})
    assert (error.reason, error.param) == (Reason.MALFORMED, "metadata.llmshed_intent")
    assert "`interactive` or `bulk`" in str(error)


def test_the_session_is_hinted_by_the_cache_key() -> None:
    assert read(Route.CHAT, {"prompt_cache_key": "s" * 256}).session_hint == "s" * 256
    assert refusal(Route.CHAT, {"prompt_cache_key": "s" * 257}).param == "prompt_cache_key"
    assert refusal(Route.CHAT, {"prompt_cache_key": 7}).param == "prompt_cache_key"


@pytest.mark.parametrize("route", NATIVE)
def test_truncate_is_refused_unless_the_operator_allows_it(route: Route) -> None:
    more = {"parameters": {"truncate": 100}}
    error = refusal(route, more)
    assert (error.reason, error.param) == (Reason.UNSUPPORTED_FIELD, "parameters.truncate")
    assert "is not accepted here: it cuts the prompt silently" in str(error)
    assert read(route, more, allow_truncate=True).truncate_tokens == 100
    assert refusal(route, {"parameters": {"truncate": 0}}, allow_truncate=True).reason is Reason.MALFORMED


@pytest.mark.parametrize("route", NATIVE)
@pytest.mark.parametrize("inputs", ["", None, 7, ["Hello"], {"text": "Hello"}])
def test_inputs_are_one_text_that_is_not_empty(route: Route, inputs: object) -> None:
    error = refusal(route, {"inputs": inputs})
    assert (error.reason, error.param) == (Reason.MALFORMED, "inputs")


@pytest.mark.parametrize("prompt", ["", [], ["a", ""], None, 7, {}])
def test_a_completion_has_a_prompt(prompt: object) -> None:
    error = refusal(Route.COMPLETIONS, {"prompt": prompt})
    assert (error.reason, error.param) == (Reason.MALFORMED, "prompt")


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1], [2]]])
def test_token_ids_are_refused_since_tgi_takes_text(prompt: object) -> None:
    error = refusal(Route.COMPLETIONS, {"prompt": prompt})
    assert (error.reason, error.param) == (Reason.UNSUPPORTED_FIELD, "prompt")
    assert "token ids, which TGI does not take" in str(error)


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "Hello"}, "messages"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"tool_choice": {"type": "function"}}, "tool_choice"),
        ({"tools": {}}, "tools"),
    ],
)
def test_a_chat_that_no_template_can_render_is_malformed(more: dict[str, Any], param: str) -> None:
    error = refusal(Route.CHAT, more)
    assert (error.reason, error.param) == (Reason.MALFORMED, param)


@pytest.mark.parametrize(
    ("route", "field"),
    [(route, name) for route in OPENAI for name in ("api_base", "base_url", "prompt_embeds", "priority", "adapter_id")]
    + [(route, name) for route in NATIVE for name in ("api_base", "base_url", "adapter_id", "priority")]
    + [(Route.CHAT, name) for name in ("chat_template", "chat_template_kwargs", "truncate_prompt_tokens", "functions")]
    + [(Route.CHAT_TOKENIZE, "chat_template"), (Route.COMPLETIONS, "suffix"), (Route.COMPLETIONS, "echo")]
    + [(Route.COMPLETIONS, "max_completion_tokens"), (Route.CHAT, "ignore_eos"), (Route.CHAT, "best_of")],
)
def test_what_would_change_prompt_length_or_address_is_refused_by_name(route: Route, field: str) -> None:
    error = refusal(route, {field: "x"})
    assert (error.reason, error.param) == (Reason.UNSUPPORTED_FIELD, field)
    assert f"`{field}` is not accepted here: " in str(error)


def test_an_adapter_is_refused_inside_parameters_too() -> None:
    assert refusal(Route.GENERATE, {"parameters": {"adapter_id": "a"}}).param == "parameters.adapter_id"


@pytest.mark.parametrize(
    ("route", "more", "param", "hint"),
    [
        (Route.CHAT, {"max_token": 7}, "max_token", "did you mean `max_tokens`?"),
        (Route.CHAT, {"message": []}, "message", "did you mean `messages`?"),
        (Route.CHAT, {"max_new_tokens": 7}, "max_new_tokens", "`max_tokens`"),
        (Route.GENERATE, {"input": "a"}, "input", "did you mean `inputs`?"),
        (Route.GENERATE, {"messages": MESSAGES}, "messages", "accepted: inputs, parameters"),
        (Route.GENERATE, {"parameters": {"max_new_token": 7}}, "parameters.max_new_token", "parameters.max_new_tokens"),
        (Route.GENERATE, {"parameters": {"max_tokens": 7}}, "parameters.max_tokens", "`max_new_tokens`"),
        (Route.CHAT, {"stream_options": {"include_usages": True}}, "stream_options.include_usages", "include_usage`?"),
    ],
)
def test_an_unknown_field_is_refused_by_name_with_what_was_meant(
    route: Route, more: dict[str, Any], param: str, hint: str
) -> None:
    error = refusal(route, more)
    assert (error.reason, error.param) == (Reason.UNSUPPORTED_FIELD, param)
    assert hint in str(error)


def test_images_are_told_and_the_prompt_is_left_whole() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "see "}, image]}]
    call = read(Route.CHAT, {"messages": messages})
    assert (call.images, call.prompts) == (1, (ChatPrompt(messages),))
    assert read(Route.GENERATE, {"inputs": "![](http://a/b.png)see ![](data:image/png;base64,AAAA)"}).images == 2
    assert read(Route.COMPLETIONS, {"prompt": ["![](http://a)", "![](http://b)"]}).images == 2


def test_a_version_without_prompt_lists_takes_one_prompt_only() -> None:
    assert refusal(Route.COMPLETIONS, {"prompt": ["a", "b"]}, version="1.4.5").param == "prompt"
    assert read(Route.COMPLETIONS, {"prompt": ["a"]}, version="1.4.5").body["prompt"] == "a"
    assert read(Route.COMPLETIONS, {"prompt": ["a"]}, version="2.0.2").body["prompt"] == ["a"]


@pytest.mark.parametrize("route", OPENAI)
def test_a_version_that_needs_a_model_is_given_the_name_that_means_none(route: Route) -> None:
    assert read(route, version="2.0.2").body["model"] == "tgi"
    assert read(route, version="2.0.2").model is None
    assert read(route, {"model": "a"}, version="2.0.2").body["model"] == "a"
    assert "model" not in read(route, version="2.2.0").body


@pytest.mark.parametrize(
    ("route", "told"),
    [
        (Route.GENERATE, "`inputs` is missing; send a string"),
        (Route.CHAT, "`messages` is missing; send a list of objects"),
        (Route.COMPLETIONS, "`prompt` is missing; send a string or a list of strings"),
    ],
)
def test_a_body_without_its_prompt_is_told_what_is_missing(route: Route, told: str) -> None:
    with pytest.raises(BodyError) as caught:
        TgiEngine().read_call(route, {})
    assert str(caught.value) == told
