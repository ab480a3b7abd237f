"""`llmshed classify`: what a prompt costs, where it would go, and whether it would be taken."""

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import typer

from llmshed.errors import ExitCode

from ._options import JsonOption
from ._output import print_json, print_note, print_table

SCHEMA = "llmshed.classify/1"


class IntentWord(StrEnum):
    """The intents that can be declared; the core's own enumeration would import it before it is needed."""

    INTERACTIVE = "interactive"
    BULK = "bulk"


class ClassWord(StrEnum):
    """The priority classes that can be declared."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


def classify(
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="Prompt text; - reads it from standard input.")
    ] = None,
    request: Annotated[
        str | None, typer.Option("--request", "-r", metavar="FILE", help="JSON request body of any route; - for stdin.")
    ] = None,
    input_tokens: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Input tokens, instead of a prompt.")
    ] = None,
    max_output: Annotated[int | None, typer.Option(min=1, metavar="N", help="Output ceiling asked for.")] = None,
    intent: Annotated[IntentWord | None, typer.Option(help="Declared intent.")] = None,
    priority_class: Annotated[ClassWord | None, typer.Option("--class", help="Declared priority class.")] = None,
    profile: Annotated[Path | None, typer.Option(metavar="FILE", help="Profile of the replica.")] = None,
    active: Annotated[
        int | None, typer.Option(min=0, metavar="TOKENS", help="Reserved tokens that run on the replica; default: 0.")
    ] = None,
    queued: Annotated[
        int | None,
        typer.Option(min=0, metavar="TOKENS", help="Reserved tokens that would be served before; default: 0."),
    ] = None,
    active_sequences: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Sequences that run on the replica; default: 0.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Take the lanes' thresholds from this configuration instead."
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="DIR|ID", help="Tokenizer directory, hub id, or embedded; default: embedded."),
    ] = None,
    gateway: Annotated[str | None, typer.Option(metavar="URL", help="Ask this running gateway instead.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the admin token of that gateway.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Tenant to ask that gateway for.")] = None,
    exit_status: Annotated[
        bool, typer.Option("--exit-status", help="Exit with 10 for the bulk lane, 11 for overflow.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what a prompt costs, where it would go and whether it would be taken; no replica is asked.

    Without --gateway the verdict is that of one replica with the profile's numbers in the stated condition. Nothing is
    then known of when tokens come free, so what does not fit is refused and no wait is promised.

    Example: llmshed classify --input-tokens 14000 --max-output 4000 --profile replica.toml --active 58000
    """
    if sum(source is not None for source in (prompt, request, input_tokens)) != 1:
        raise typer.BadParameter("give exactly one of PROMPT, --request FILE and --input-tokens N")
    if gateway is None:
        given: dict[str, object] = {"--token-file": token_file, "--tenant": tenant}
        _refuse_given(given, "belongs to --gateway URL, which is missing")
    else:
        given = {"--profile": profile, "--config": config, "--tokenizer": tokenizer}
        given |= {"--active": active, "--queued": queued, "--active-sequences": active_sequences}
        _refuse_given(given, "does not go with --gateway URL: a running gateway has its own")
    wishes = {"max_output": max_output, "intent": intent, "class": priority_class}
    body = _body(prompt, request)
    if gateway is not None:
        report = _asked(gateway, token_file, tenant, body, input_tokens, wishes)
    else:
        condition = {
            "active_tokens": active or 0,
            "queued_tokens": queued or 0,
            "active_sequences": active_sequences or 0,
        }
        report = _judged(profile, config, tokenizer or "embedded", body, input_tokens, wishes, condition)
    _show(report, as_json=as_json)
    if exit_status:
        too_large = report["status"] == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or report["lane"] == "overflow"
        raise typer.Exit(ExitCode.OVERFLOW if too_large else ExitCode.BULK if report["lane"] == "bulk" else ExitCode.OK)


def _refuse_given(options: Mapping[str, object], why: str) -> None:
    """Refuse options that would change nothing: whoever gave one meant it to."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise typer.BadParameter(f"{given[0]} {why}")


def _body(prompt: str | None, request: str | None) -> dict[str, Any] | None:
    """Return the request body that was given, a prompt as a native one; None for a stated size.

    Raises:
        InputError: the file holds what a gateway would not read.
    """
    from llmshed.engines.base import BodyError
    from llmshed.gateway.door.body import parse_body

    from ._input import read_bytes, read_text, shown_name
    from ._offline import InputError

    if prompt is not None:
        return {"inputs": read_text(prompt) if prompt == "-" else prompt}
    if request is None:
        return None
    try:
        return parse_body(read_bytes(request))
    except BodyError as error:
        raise InputError(f"{shown_name(request)}: {error}") from error


def _asked(
    gateway: str,
    token_file: Path | None,
    tenant: str | None,
    body: dict[str, Any] | None,
    input_tokens: int | None,
    wishes: dict[str, Any],
) -> dict[str, Any]:
    """Return the report of a running gateway on the same question."""
    from ._gateway import Gateway
    from ._offline import route_of

    question: dict[str, Any] = {name: value for name, value in wishes.items() if value is not None}
    if tenant is not None:
        question["tenant"] = tenant
    question |= {"input_tokens": input_tokens} if body is None else {"route": route_of(body), "body": body}
    return Gateway(gateway, token_file).post("/admin/classify", question)


def _judged(
    profile_path: Path | None,
    config_path: Path | None,
    tokenizer: str,
    body: dict[str, Any] | None,
    input_tokens: int | None,
    wishes: dict[str, Any],
    condition: dict[str, int],
) -> dict[str, Any]:
    """Return the report before a replica in the stated condition."""
    from llmshed.gateway.profile_file import read_profile, simulated_profile

    from ._offline import counted_request, judge, lanes_of, stated_request

    if profile_path is None:
        print_note("no --profile: the numbers of the simulated replica are used")
    profile = simulated_profile() if profile_path is None else read_profile(profile_path)
    sized = stated_request((input_tokens or 0,), wishes)
    request = sized if body is None else counted_request(body, tokenizer, wishes)
    return judge(request, profile, condition, None if config_path is None else lanes_of(config_path))


def _show(report: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(SCHEMA, {name: value for name, value in report.items() if name != "schema"})
        return
    from ._verdict import verdict_rows

    print_table(verdict_rows(report))
