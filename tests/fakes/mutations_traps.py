"""The guards against what the libraries underneath do by default, and against the manners of a real engine."""

from fakes.mutations import Guard, Mutation

SERVER = "gateway/door/server.py"
BODY = "gateway/door/body.py"
GATES = "gateway/door/gates.py"
CALLS = "engines/tgi/calls.py"
POOL = "gateway/counting/pool.py"

TEST_SERVER = "tests/unit/gateway/door/test_server.py"
TEST_BODY = "tests/unit/gateway/door/test_body.py"
TEST_REFUSALS = "tests/integration/test_serve_refusals.py"
TEST_RESERVATIONS = "tests/integration/test_trap_reservations.py"

TRAPS = (
    Guard(
        "a handler that runs on after its client left",
        Mutation(SERVER, "handler_cancellation=True", "handler_cancellation=False"),
        (f"{TEST_SERVER}::test_a_client_that_leaves_cancels_its_handler",),
    ),
    Guard(
        "headers that never end",
        Mutation(
            SERVER, "self._header_timer = self._loop.call_later(HEADER_TIMEOUT_SECONDS, self.force_close)", "pass"
        ),
        (f"{TEST_SERVER}::test_headers_that_never_end_are_closed",),
    ),
    Guard(
        "a body that never ends",
        Mutation(
            "gateway/door/intake.py",
            "async with asyncio.timeout(max(0.0, began + allowed - now())):",
            "async with asyncio.timeout(None):",
        ),
        (f"{TEST_REFUSALS}::test_a_body_that_comes_too_slowly_is_refused_and_its_connection_closed",),
    ),
    Guard(
        "a compressed body that is inflated",
        Mutation(GATES, 'if any(coding.strip().lower() not in {"", "identity"} for coding in codings):', "if False:"),
        ("tests/unit/gateway/door/test_gates.py::test_a_body_that_is_compressed_or_not_json_is_415",),
    ),
    Guard(
        "a parse error told as text that echoes the bytes",
        Mutation(
            SERVER,
            "response = self._door.error_answer(*_reading(status, exc))",
            "response = web.Response(status=status, text=str(exc))",
        ),
        (f"{TEST_SERVER}::test_what_is_no_request_of_one_reading_is_a_json_400_without_an_echo",),
    ),
    Guard(
        "a banner with the versions of the libraries",
        Mutation(SERVER, 'response.headers.popall("Server", None)', "pass"),
        (f"{TEST_SERVER}::test_an_answer_has_no_banner",),
    ),
    Guard(
        "a count that holds the interpreter's lock",
        Mutation(
            "tokenizing/encode.py",
            "self._tokenizer.encode_batch_fast(batch, add_special_tokens=add_special_tokens)",
            "(self._tokenizer.encode(text, add_special_tokens=add_special_tokens) for text in batch)",
        ),
        ("tests/unit/tokenizing/test_encode.py::test_counting_a_megabyte_in_a_thread_leaves_other_threads_running",),
    ),
    Guard(
        "a count on the event loop",
        Mutation(POOL, "if sum(sizes) <= self._inline_bytes:", "if True:"),
        ("tests/integration/test_counting_stall.py::test_eight_megabytes_in_counting_do_not_stop_the_loop",),
    ),
    Guard(
        "a prompt that is counted although its bytes prove it too long",
        Mutation(POOL, "if low > max_useful_tokens:", "if False:"),
        (f"{TEST_REFUSALS}::test_prompts_whose_bytes_prove_too_much_are_refused_uncounted",),
    ),
    Guard(
        "half a surrogate pair that passes the parser",
        Mutation(BODY, "body = orjson.loads(raw)", 'body = json.loads(raw.decode("utf-8", "surrogatepass"))'),
        (f"{TEST_BODY}::test_texts_that_json_leaves_open_are_read_or_refused_and_nothing_else",),
    ),
    Guard(
        "of two equal keys the last",
        Mutation(BODY, "if _strings_held(body, max_depth) != written:", "if _strings_held(body, max_depth) < 0:"),
        (
            f"{TEST_BODY}::test_a_key_that_stands_twice_is_named",
            f"{TEST_BODY}::test_every_json_text_is_read_but_for_the_two_with_a_duplicate_key",
        ),
    ),
    Guard(
        "a body nested without end",
        Mutation(BODY, "if depth > max_depth:", "if False:"),
        (f"{TEST_BODY}::test_nesting_is_accepted_up_to_its_bound_and_not_beyond",),
    ),
    Guard(
        "two megabytes of empty lists, twenty times as large when parsed",
        Mutation(BODY, "if _values_written(raw, max_nodes) > max_nodes:", "if False:"),
        (f"{TEST_BODY}::test_values_are_accepted_up_to_their_bound_and_not_beyond",),
    ),
    Guard(
        "a template of the client's own",
        Mutation("engines/tgi/fields.py", '"chat_template": refused(_OTHER_TEMPLATE)', '"chat_template": dropped("")'),
        ("tests/unit/engines/tgi/test_calls.py::test_what_would_change_prompt_length_or_address_is_refused_by_name",),
    ),
    Guard(
        "a listener that closes before a balancer notices the end",
        Mutation(
            "gateway/daemon/lifecycle.py", "await self._or_at_once(asyncio.sleep(delay_seconds))", "delay_seconds = 0.0"
        ),
        ("tests/unit/gateway/daemon/test_lifecycle.py::test_an_empty_house_closes_after_the_delay_and_not_before",),
    ),
    Guard(
        "a transfer coding that fronts read otherwise",
        Mutation(GATES, "if codings and (", "if False and ("),
        (f"{TEST_REFUSALS}::test_a_framing_that_others_may_read_otherwise_is_refused_and_closed",),
    ),
    Guard(
        "an output without a ceiling on a native route",
        Mutation(
            "engines/tgi/engine.py",
            'parameters = {**parameters, "max_new_tokens": output_ceiling_tokens}',
            "parameters = {**parameters}",
        ),
        (f"{TEST_RESERVATIONS}::test_every_sequence_is_reserved_with_its_input_and_the_ceiling_that_is_on_the_wire",),
    ),
    Guard(
        "an output without a ceiling on OpenAI's routes",
        Mutation("engines/tgi/engine.py", 'written.setdefault("max_tokens", output_ceiling_tokens)', "pass"),
        (f"{TEST_RESERVATIONS}::test_every_sequence_is_reserved_with_its_input_and_the_ceiling_that_is_on_the_wire",),
    ),
    Guard(
        "an output beyond the context, of which the engine checks the first chunk alone",
        Mutation(
            "admission/options.py", "and longest + self.ceiling_tokens <= limits.max_total_tokens", "and longest >= 0"
        ),
        (f"{TEST_RESERVATIONS}::test_the_gateway_holds_the_context_that_the_engine_checks_only_for_its_first_chunk",),
    ),
    Guard(
        "a prompt that is cut in silence",
        Mutation(CALLS, 'if "truncate" in parameters and not self.allow_truncate:', "if False:"),
        ("tests/unit/engines/tgi/test_calls.py::test_truncate_is_refused_unless_the_operator_allows_it",),
    ),
)
