"""`/admin/ladder`: where the pools stand on their ladders, what happened, and the rungs that a person holds."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from llmshed.admission.policy import PoolPolicy
from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.gateway.admin.handlers import Administration, number_asked, who_asks
from llmshed.gateway.admin.standings import hold_report, rehearsal_report, status_report
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.answers import json_answer
from llmshed.gateway.door.body import parse_body
from llmshed.gateway.door.intake import read_body
from llmshed.gateway.ladders.book import MOST_REMEMBERED, UnwrittenError
from llmshed.ladder.model import Ladder
from llmshed.ladder.rehearsal import rehearse
from llmshed.ladder.standing import Standing
from llmshed.observability.decisions import MAX_LISTED

STATUS_SCHEMA: Final = "llmshed.ladder_status/1"
HISTORY_SCHEMA: Final = "llmshed.ladder_history/1"
TRIGGER_SCHEMA: Final = "llmshed.ladder_trigger/1"
RELEASE_SCHEMA: Final = "llmshed.ladder_release/1"
LEAST_SECONDS: Final = 60.0
MOST_SECONDS: Final = 7 * 86_400.0
"""A rung that is held for longer than a week is another ladder, which is agreed on and reloaded."""
MOST_REASON_CHARACTERS: Final = 512
PAST_SECONDS: Final = 600.0
"""How far back a rehearsal looks."""


async def status(house: Administration, request: web.BaseRequest) -> web.Response:
    """Return where every pool stands."""
    del request
    return json_answer({"schema": STATUS_SCHEMA, **status_report(house.gateway)})


async def history(house: Administration, request: web.BaseRequest) -> web.Response:
    """Return the last entries of the audit, newest first; `?n=` says how many."""
    entries = house.gateway.ladder_book.last(number_asked(request, MOST_REMEMBERED))
    return json_answer({"schema": HISTORY_SCHEMA, "entries": entries})


async def trigger(house: Administration, request: web.BaseRequest) -> web.Response:
    """Hold a rung of a pool for a time; with `dry_run`, tell what it would have done and change nothing."""
    gateway, question = house.gateway, await _question(house, request)
    _known(question, {"pool", "rung", "for_seconds", "reason", "dry_run"})
    pool, ladder = _pool(gateway, question)
    number = _rung(ladder, question)
    seconds, reason = _seconds(question), _reason(question)
    if reason is None:
        raise _wrong("reason", f"is missing; accepted: 1 to {MOST_REASON_CHARACTERS} characters")
    rung, dry_run = ladder.rungs[number - 1].name, _flag(question, "dry_run")
    before = _standing(gateway, pool.name)
    after = max(before.by_rule, number)
    told: dict[str, Any] = {
        "schema": TRIGGER_SCHEMA,
        "dry_run": dry_run,
        "pool": pool.name,
        "ladder": ladder.label,
        "rung": rung,
        "number": number,
        "for_seconds": seconds,
        "reason": reason,
        "before": before.rung,
        "after": after,
        "in_force": [one.name for one in ladder.rungs[:after]],
        "warnings": _warnings(gateway),
        "rehearsal": None,
    }
    if dry_run:
        past, seconds = _past(gateway)
        told["rehearsal"] = rehearsal_report(rehearse(past, pool.name, ladder, rung), seconds)
        return json_answer(told)
    try:
        await gateway.ladder_book.hold(pool.name, rung, seconds, reason, who_asks(house, request))
    except UnwrittenError as error:
        return _unwritten(TRIGGER_SCHEMA, error)
    now = _standing(gateway, pool.name)
    return json_answer(told | {"after": now.rung, "in_force": [one.name for one in now.in_force]})


async def release(house: Administration, request: web.BaseRequest) -> web.Response:
    """Give up the rung that is held on a pool; nothing is changed where none is."""
    gateway, question = house.gateway, await _question(house, request)
    _known(question, {"pool", "reason"})
    (pool, ladder), reason = _pool(gateway, question), _reason(question)
    before = _standing(gateway, pool.name)
    released = hold_report(before.hold, gateway.clock.now())
    if released is not None:
        try:
            await gateway.ladder_book.release(pool.name, reason, who_asks(house, request))
        except UnwrittenError as error:
            return _unwritten(RELEASE_SCHEMA, error)
    now = _standing(gateway, pool.name)
    told = {"released": released, "before": before.rung, "after": now.rung}
    names = {"schema": RELEASE_SCHEMA, "pool": pool.name, "ladder": ladder.label}
    return json_answer({**names, **told, "in_force": [one.name for one in now.in_force]})


async def _question(house: Administration, request: web.BaseRequest) -> dict[str, Any]:
    return parse_body(await read_body(request, house.gateway.snapshot.config.server, house.gateway.clock.now))


def _known(question: Mapping[str, Any], fields: set[str]) -> None:
    unknown = sorted(set(question) - fields)
    if unknown:
        raise _wrong(unknown[0][:64], f"is not known; accepted: {', '.join(sorted(fields))}")


def _pool(gateway: Gateway, question: Mapping[str, Any]) -> tuple[PoolPolicy, Ladder]:
    """Return the pool that is named, or the only one that has a ladder."""
    agreed = [(pool, pool.ladder) for pool in gateway.policy.pools if pool.ladder is not None]
    if not agreed:
        raise _wrong("pool", "no pool of this gateway has a ladder; `[[pools]] ladder` names one")
    named = question.get("pool")
    found = [(pool, ladder) for pool, ladder in agreed if named is None or pool.name == named]
    if len(found) != 1:
        raise _wrong("pool", f"must be one of {', '.join(pool.name for pool, _ in agreed)}")
    return found[0]


def _rung(ladder: Ladder, question: Mapping[str, Any]) -> int:
    named = question.get("rung")
    number = ladder.rung_number(named) if isinstance(named, str) else None
    if number is None:
        names = ", ".join(rung.name for rung in ladder.rungs)
        raise _wrong("rung", f"must be a rung of ladder {ladder.label}: {names}")
    return number


def _seconds(question: Mapping[str, Any]) -> float:
    value = question.get("for_seconds")
    if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST_SECONDS <= value <= MOST_SECONDS:
        raise _wrong("for_seconds", f"must be a number from {LEAST_SECONDS:.0f} to {MOST_SECONDS:.0f}")
    return float(value)


def _reason(question: Mapping[str, Any]) -> str | None:
    value = question.get("reason")
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_REASON_CHARACTERS or _splits(value):
        raise _wrong("reason", f"must be 1 to {MOST_REASON_CHARACTERS} characters without control characters")
    return value


def _splits(text: str) -> bool:
    """Say whether a text holds what could break or rewrite a line of a log on a terminal."""
    return any(not (character.isprintable() or character == " ") for character in text)


def _flag(question: Mapping[str, Any], name: str) -> bool:
    value = question.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _wrong(name, "must be true or false")


def _standing(gateway: Gateway, pool: str) -> Standing:
    standing = gateway.ladder_book.standing(pool)
    if standing is None:
        raise _wrong("pool", f"{pool} has no ladder any more")
    return standing


def _past(gateway: Gateway) -> tuple[list[dict[str, Any]], float]:
    """Return the remembered decisions that ended in the last minutes, newest first, and how far back they go whole."""
    wall = gateway.clock.wall()
    remembered = gateway.decision_log.last(MAX_LISTED)
    recent = [line for line in remembered if _ended(line) >= wall - PAST_SECONDS]
    most = min(MAX_LISTED, gateway.snapshot.config.server.decision_history)
    if len(recent) < most:
        return recent, PAST_SECONDS
    return recent, round(max(wall - _ended(recent[-1]), 0.0), 3)  # those before the oldest may be forgotten


def _ended(line: Mapping[str, Any]) -> float:
    return float(line["time_seconds"] + (line["total_seconds"] or 0.0))


def _warnings(gateway: Gateway) -> list[str]:
    book = gateway.ladder_book
    told = []
    if book.settings.state_file is None:
        told.append("ladder.state_file is unset: what is held ends with the process")
    if book.settings.audit_file is None:
        told.append("ladder.audit_file is unset: what is done is remembered in memory alone")
    if gateway.snapshot.config.admission.mode == "observe":
        told.append("the gateway observes: no request is changed or refused by what is held")
    return told


def _unwritten(schema: str, error: UnwrittenError) -> web.Response:
    return json_answer({"schema": schema, "error": str(error)}, status=HTTPStatus.SERVICE_UNAVAILABLE)


def _wrong(name: str, sentence: str) -> BodyError:
    return BodyError(Reason.MALFORMED, f"{name}: {sentence}", name)
