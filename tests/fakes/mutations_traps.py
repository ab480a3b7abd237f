"""The guards against what the libraries underneath do by default, and against the manners of a real engine."""

from fakes.mutations import Guard, Mutation

SERVER = "gateway/door/server.py"
BODY = "gateway/door/body.py"
GATES = "gateway/door/gates.py"
CALLS = "engines/tgi/calls.py"
POOL = "gateway/counting/pool.py"
AIOHTTP_UPSTREAM = "gateway/relay/aiohttp_upstream.py"

TEST_SERVER = "tests/unit/gateway/door/test_server.py"
TEST_BODY = "tests/unit/gateway/door/test_body.py"
TEST_REFUSALS = "tests/integration/test_serve_refusals.py"
TEST_COUNTING = "tests/unit/gateway/counting/test_pool.py"
TEST_LISTENER = "tests/unit/gateway/door/test_listener.py"
TEST_CONNECTIONS = "tests/integration/test_trap_connections.py"
TEST_RESERVATIONS = "tests/integration/test_trap_reservations.py"
TEST_HOSTILE = "tests/integration/test_hostile_bodies.py"
TEST_TGI_TEMPLATES = "tests/unit/tokenizing/test_minijinja_tgi.py"
TEST_POOL_TOOLS = "tests/unit/gateway/replicas/test_pool_tools.py"

TRAPS = (
    Guard(
        "a handler that runs on after its client left",
        Mutation(SERVER, "handler_cancellation=True", "handler_cancellation=False"),
        (f"{TEST_SERVER}::test_a_client_that_leaves_cancels_its_handler",),
    ),
    Guard(
        "an idle connection that is kept for an hour",
        Mutation(SERVER, '"keepalive_timeout": settings.keepalive_seconds,', '"keepalive_timeout": 3630.0,'),
        (f"{TEST_CONNECTIONS}::test_an_idle_connection_is_closed_after_the_time_that_is_set",),
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
        "streams that wait unseen for one of the client's hundred connections",
        Mutation(AIOHTTP_UPSTREAM, "limit=0,", "limit=100,"),
        ("tests/integration/test_upstream.py::test_more_streams_than_any_pool_default_run_at_once",),
    ),
    Guard(
        "a timer of the client on the whole of an answer",
        Mutation(AIOHTTP_UPSTREAM, "total=None,", "total=0.2,"),
        (f"{TEST_CONNECTIONS}::test_a_slow_answer_is_cut_by_no_timer_of_the_client",),
    ),
    Guard(
        "a long event that a reader of lines does not take",
        Mutation(AIOHTTP_UPSTREAM, "self._response.content.readany()", "self._response.content.readline()"),
        (f"{TEST_CONNECTIONS}::test_a_line_longer_than_any_reader_of_lines_takes_passes",),
    ),
    Guard(
        "a client that vanished in the middle of its answer",
        Mutation("gateway/door/vanished.py", "bool(segments) and unheard_seconds >= UNHEARD_SECONDS", "False"),
        ("tests/unit/gateway/door/test_vanished.py::test_a_peer_is_gone_that_was_not_heard_while_bytes_are_under_way",),
    ),
    Guard(
        "a client that vanished while its connection was idle",
        Mutation(SERVER, "            probe_idle(sock)", "            pass"),
        (f"{TEST_CONNECTIONS}::test_every_connection_notices_within_20_s_that_its_peer_vanished",),
    ),
    Guard(
        "more connections than descriptors",
        Mutation("gateway/door/listener.py", "soft // 2 - 32", "soft"),
        ("tests/integration/test_slow_clients.py::test_fewer_connections_are_taken_than_half_of_the_descriptors",),
    ),
    Guard(
        "a replica that vanished and is waited for",
        Mutation("gateway/relay/connection.py", 'notice_vanished_host(transport.get_extra_info("socket"))', "pass"),
        (f"{TEST_CONNECTIONS}::test_every_connection_notices_within_20_s_that_its_peer_vanished",),
    ),
    Guard(
        "a client that never reads",
        Mutation("gateway/door/unread.py", "elif self.transport is not None:\n            self.transport.abort()", ""),
        ("tests/unit/gateway/door/test_unread.py::test_who_takes_something_is_waited_for",),
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
        (f"{TEST_COUNTING}::test_the_loop_runs_while_a_thread_counts",),
    ),
    Guard(
        "a prompt that is counted although its bytes prove it too long",
        Mutation(POOL, "if low > max_useful_tokens:", "if False:"),
        (f"{TEST_COUNTING}::test_a_prompt_whose_bytes_prove_it_too_large_is_never_counted",),
    ),
    Guard(
        "a prompt that is counted to its end although it is too long by then",
        Mutation(
            POOL,
            "enough = None if max_useful_tokens is None else EXACT_UP_TO * max_useful_tokens",
            "enough = None",
        ),
        (f"{TEST_HOSTILE}::test_a_prompt_far_beyond_the_model_is_counted_no_further_than_shows_it",),
    ),
    Guard(
        "a pattern that backtracks until the tokenizer panics",
        Mutation("tokenizing/panics.py", 'if type(error).__name__ != "PanicException":', "if True:"),
        ("tests/unit/tokenizing/test_steps.py::test_a_tokenizer_that_panics_fails_on_its_prompt_and_on_nothing_else",),
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
        "arguments of any name to the model's template",
        Mutation("tokenizing/chat_request.py", "if name not in TEMPLATE_ARGUMENTS:", "if False:"),
        ("tests/unit/tokenizing/test_chat_request.py::test_other_forms_are_refused_by_the_name_of_the_field",),
    ),
    Guard(
        "a template that reaches into Python",
        Mutation(
            "tokenizing/jinja_hf.py",
            "environment = ImmutableSandboxedEnvironment(",
            'environment = __import__("jinja2").Environment(',
        ),
        ("tests/unit/tokenizing/test_jinja_hf.py::test_a_failure_tells_nothing_of_the_prompt",),
    ),
    Guard(
        "a template whose loops run into each other",
        Mutation(
            "tokenizing/minijinja_tgi.py",
            "self._environment.fuel = min(fuel, _MOST_FUEL)",
            "self._environment.fuel = 50 * _MOST_FUEL",
        ),
        (f"{TEST_TGI_TEMPLATES}::test_loops_that_run_into_each_other_end_however_many_messages_there_are",),
    ),
    Guard(
        "a template that an operator brings and nobody tried",
        Mutation("gateway/replicas/pool_tools.py", 'try_template(files, "tgi")', "pass"),
        (f"{TEST_POOL_TOOLS}::test_a_template_that_is_too_dear_to_render_keeps_its_tokenizer_from_being_used",),
    ),
    Guard(
        "a template that makes hundreds of megabytes",
        Mutation("tokenizing/trial.py", "    _bound_memory()\n    with", "    with"),
        ("tests/unit/tokenizing/test_trial.py::test_a_template_that_is_too_dear_is_not_used_and_told_with_its_file",),
    ),
    Guard(
        "a listener that closes before a balancer notices the end",
        Mutation(
            "gateway/daemon/lifecycle.py", "await self._or_at_once(asyncio.sleep(delay_seconds))", "delay_seconds = 0.0"
        ),
        ("tests/unit/gateway/daemon/test_lifecycle.py::test_an_empty_house_closes_after_the_delay_and_not_before",),
    ),
    Guard(
        "a parser of another reading than the one that was tested",
        Mutation("gateway/door/listener.py", "    require_c_parser()\n    loop = ", "    loop = "),
        (f"{TEST_LISTENER}::test_without_the_parser_whose_readings_were_tested_nothing_is_served",),
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
