"""The guards against faults that other gateways and balancers shipped."""

from fakes.mutations import Guard, Mutation

CONTROLLER = "admission/controller.py"
REASONS = "admission/reasons.py"
CALLS = "engines/tgi/calls.py"
STREAM = "gateway/relay/stream.py"
PLAIN_UPSTREAM = "gateway/relay/plain_upstream.py"

TEST_HELD = "tests/integration/test_faults_seats.py"
TEST_LONG = "tests/integration/test_long_streams.py"
TEST_SEATS = "tests/integration/test_trap_seats.py"
TEST_RESERVATIONS = "tests/integration/test_trap_reservations.py"
TEST_REFUSALS = "tests/integration/test_trap_refusals.py"
TEST_CLIENT_FAULTS = "tests/integration/test_trap_client_faults.py"
TEST_UPSTREAM = "tests/integration/test_upstream.py"
TEST_STREAM = "tests/integration/test_relay_stream.py"
RESERVED = f"{TEST_RESERVATIONS}::test_every_sequence_is_reserved_with_its_input_and_the_ceiling_that_is_on_the_wire"
COMPLAINTS = f"{TEST_CLIENT_FAULTS}::test_a_thousand_complaints_of_an_engine_about_its_clients_leave_it_in_service"
NOBODY_BEHIND = f"{TEST_REFUSALS}::test_only_a_gateway_without_anybody_behind_it_is_503"
BUSY = f"{TEST_REFUSALS}::test_what_is_only_busy_is_429_with_a_time_to_come_back"

FAULTS = (
    Guard(
        "a seat that no client gives back that leaves",
        Mutation(
            CONTROLLER,
            "replica.ledger.begin_release(key, replica.release_time(replica.ledger[key], now))",
            "replica.release_time(replica.ledger[key], now)",
        ),
        (f"{TEST_HELD}::test_one_seat_survives_streams_that_are_left_and_answers_that_time_out",),
    ),
    Guard(
        "a seat that no engine gives back that fails",
        Mutation(
            CONTROLLER,
            "if not engine_holds:\n            return [self._free(live.replica, key, now)]",
            "if not engine_holds:\n            return []",
        ),
        (f"{TEST_SEATS}::test_an_engine_that_fails_time_and_again_leaves_the_one_seat_free",),
    ),
    Guard(
        "a seat that is free again while its stream still runs",
        Mutation(
            CONTROLLER,
            "self._first_token(key, now)\n            case",
            "actions.append(self._finish(key, None, now))\n            case",
        ),
        (f"{TEST_HELD}::test_a_seat_is_held_until_the_last_byte_of_its_stream",),
    ),
    Guard(
        "a refused request that is charged to another quota",
        Mutation(
            CONTROLLER,
            "verdict = decide(request, self._surroundings(self._policy), echo, now)",
            "self._tenant_use.requests[request.tenant] += 1\n"
            "        verdict = decide(request, self._surroundings(self._policy), echo, now)",
        ),
        (f"{TEST_SEATS}::test_a_hundred_refused_for_a_seat_have_charged_nothing_else",),
    ),
    Guard(
        "a body of megabytes that is parsed on the event loop",
        Mutation("gateway/door/parsing.py", "if size_bytes <= INLINE_BYTES:", "if True:"),
        ("tests/unit/gateway/door/test_parsing.py::test_a_large_body_leaves_the_loop_alone",),
    ),
    Guard(
        "a client's fault that counts as the replica's",
        Mutation(
            "gateway/relay/failures.py",
            "return ExchangeError(Problem.from_engine_failure(Reason.MALFORMED, failure, verdict), None)",
            "return ExchangeError(Problem.from_engine_failure(Reason.MALFORMED, failure, verdict), kind)",
        ),
        (COMPLAINTS,),
    ),
    Guard(
        "a client's fault that is told as another status",
        Mutation(
            "gateway/contract/problem.py",
            "status=failure.status if failure.status in ENGINE_STATUSES else None,",
            "status=None,",
        ),
        (COMPLAINTS,),
    ),
    Guard(
        "a busy answer without a time to come back",
        Mutation("gateway/contract/refusals.py", 'headers["retry-after"] = str(advice.wait_seconds)', "pass"),
        (BUSY,),
    ),
    Guard(
        "nobody there, told as busy",
        Mutation(REASONS, "Reason.NO_REPLICA: ReasonRow(503,", "Reason.NO_REPLICA: ReasonRow(429,"),
        (NOBODY_BEHIND,),
    ),
    Guard(
        "busy, told as nobody there",
        Mutation(
            REASONS, "Reason.QUEUE_TIMEOUT: ReasonRow(\n        429,", "Reason.QUEUE_TIMEOUT: ReasonRow(\n        503,"
        ),
        (BUSY,),
    ),
    Guard(
        "a stream that breaks off and looks complete",
        Mutation(STREAM, "if not self._facts.complete:", "if False:"),
        (f"{TEST_STREAM}::test_a_stream_that_breaks_off_ends_in_one_error_event",),
    ),
    Guard(
        "an engine's error event before a terminator that makes it look complete",
        Mutation(STREAM, "chunk if terminator is None else chunk[: terminator.start()]", "chunk"),
        (f"{TEST_STREAM}::test_the_engines_own_error_event_is_passed_on_and_is_the_last",),
    ),
    Guard(
        "a connection that the replica closed while it was idle",
        Mutation(
            PLAIN_UPSTREAM, "except NotSentError:\n                pass", "except NotSentError:\n                raise"
        ),
        (f"{TEST_UPSTREAM}::test_an_idle_connection_that_closes_under_the_request_is_replaced",),
    ),
    Guard(
        "a connection that is kept for longer than the replica keeps it",
        Mutation("gateway/relay/pool.py", "                connection.abort()", "                pass"),
        ("tests/integration/test_upstream_plain.py::test_a_connection_that_nobody_needs_is_given_up_in_time",),
    ),
    Guard(
        "a timer for the first byte that goes on and cuts a stream",
        Mutation(
            STREAM,
            "            on_beginning()\n            response = await self._commit(answer)\n"
            "            await self._relay",
            "                on_beginning()\n                response = await self._commit(answer)\n"
            "                await self._relay",
        ),
        (f"{TEST_LONG}::test_a_stream_of_two_hours_with_a_token_in_half_a_minute_is_cut_by_nothing",),
    ),
    Guard(
        "a gap between two tokens that may last for seconds only",
        Mutation(
            STREAM,
            "self._silent_until = self._loop.time() + self._idle_seconds",
            "self._silent_until = self._loop.time() + 5.0",
        ),
        (f"{TEST_LONG}::test_a_first_token_and_a_gap_may_take_as_long_as_the_lane_says",),
    ),
    Guard(
        "a request that is sent again after the replica read it",
        Mutation("gateway/relay/connection.py", "if self._witness.left_unread:", "if True:"),
        (f"{TEST_UPSTREAM}::test_a_request_that_was_read_is_never_sent_again",),
    ),
    Guard(
        "a lost answer that its client is told to ask for again",
        Mutation(
            "admission/retry_after.py",
            "case Retry.NEVER | Retry.UNSAFE:\n                return RetryAdvice(None, should_not=True)",
            "case Retry.NEVER | Retry.UNSAFE:\n                return RetryAdvice(None, should_not=False)",
        ),
        ("tests/integration/test_relay_whole.py::test_an_engine_that_dies_with_the_request_is_not_asked_again",),
    ),
    Guard(
        "the best of several texts that is reserved once",
        Mutation(CALLS, 'taken.get("max_tokens"), max(copies, best_of))', 'taken.get("max_tokens"), copies)'),
        (RESERVED,),
    ),
    Guard(
        "the best of several answers that is reserved once",
        Mutation(CALLS, 'copies = parameters.get("best_of", 1)', "copies = 1"),
        (RESERVED,),
    ),
    Guard(
        "several answers of a chat that are reserved once",
        Mutation(CALLS, 'asked, taken.get("n", 1))', "asked, 1)"),
        (RESERVED,),
    ),
    Guard(
        "the newer name of the ceiling that nobody reads",
        Mutation(CALLS, 'taken.get("max_tokens", taken.get("max_completion_tokens"))', 'taken.get("max_tokens")'),
        (RESERVED,),
    ),
    Guard(
        "a ceiling that is reserved once for all sequences",
        Mutation("admission/replica.py", "sequences * ceiling_tokens, overrun", "ceiling_tokens, overrun"),
        (RESERVED,),
    ),
    Guard(
        "what an engine runs beyond the ceiling, unreserved",
        Mutation("admission/replica.py", "overrun * request.copies, sequences)", "0, sequences)"),
        (RESERVED,),
    ),
    Guard(
        "copies without a bound",
        Mutation("engines/fields.py", '1 to 128", _is_integer(1, 128)', '1 to 128", _is_integer(1, 2**31)'),
        (f"{TEST_RESERVATIONS}::test_what_is_no_ceiling_or_beyond_every_bound_reaches_no_engine",),
    ),
    Guard(
        "a token that begins the text, counted twice around a chat",
        Mutation(
            "tokenizing/counter.py",
            "self._renderer.render(prompt), add_special_tokens=False",
            "self._renderer.render(prompt), add_special_tokens=True",
        ),
        (
            "tests/integration/test_trap_counts.py::test_five_hundred_requests_of_every_kind_are_counted_as_the_engine_counts_them",
        ),
    ),
    Guard(
        "a replica that serves though it counts otherwise",
        Mutation(
            "gateway/replicas/serving.py", "if found.mismatches:\n            spec = self._judge(found, spec)", "pass"
        ),
        ("tests/integration/test_trap_counts.py::test_a_token_that_only_one_side_adds_keeps_the_replica_out",),
    ),
    Guard(
        "two requests under one id of their clients that share a state",
        Mutation("gateway/door/generate.py", "key=gateway.driver.new_key(),", "key=hash(visit.request_id),"),
        ("tests/integration/test_serve_routes.py::test_a_hundred_requests_under_one_client_id_are_all_served",),
    ),
    Guard(
        "an id of a client that writes a header line of its own",
        Mutation(
            "gateway/contract/request_ids.py",
            "return given if _HARMLESS.fullmatch(given) else fresh()",
            "return given or fresh()",
        ),
        ("tests/unit/gateway/contract/test_request_ids.py::test_any_other_id_is_replaced",),
    ),
)
