"""schemathesis makes requests from the OpenAPI documents, right ones and wrong ones, against a running gateway."""

import asyncio
from pathlib import Path

import pytest

from fakes.clients import Environment
from fakes.house import House, house
from fakes.tenants import digest_file, tenant

SCHEMATHESIS = Environment("schemathesis", ("schemathesis==4.32.5",))
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance", "unsupported_method", "ignored_auth",
)  # fmt: skip
"""All but two: an engine may refuse what the document lets pass, and unknown headers are taken from everybody."""
SEED = 7

FEW = pytest.param(("fuzzing",), 1, id="few", marks=pytest.mark.slow)
MANY = pytest.param(("coverage", "fuzzing"), 60, id="many", marks=[pytest.mark.soak, pytest.mark.timeout(1800)])


async def _run(gate: House, url: str, document: str, key: str, phases: tuple[str, ...], examples: int) -> str:
    """Run every operation of a document and return what schemathesis says, empty when it found nothing."""
    folder = await asyncio.to_thread(SCHEMATHESIS.made)
    process = await asyncio.create_subprocess_exec(
        folder / "bin" / "st", "run", url + document, "--url", url, "--header", f"Authorization: Bearer {key}",
        "--phases", ",".join(phases), "--max-examples", str(examples), "--checks", ",".join(CHECKS),
        "--seed", str(SEED), "--no-shrink", "--no-color", "--request-timeout", "60",
        cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert gate.daemon.gateway.driver.violations() == ()
    return "" if process.returncode == 0 and b" passed" in said else said.decode()


@pytest.mark.parametrize(("phases", "examples"), [FEW, MANY])
@pytest.mark.parametrize("listener", ["data", "admin"])
async def test_no_request_that_a_document_leads_to_gets_an_answer_that_it_does_not_tell(
    listener: str, phases: tuple[str, ...], examples: int, tmp_path: Path
) -> None:
    token = digest_file(tmp_path / "token", "operator")
    async with house(f'{tenant(tmp_path, "acme")}\n[server]\nadmin_token_file = "{token}"\n') as gate:
        if listener == "data":
            said = await _run(gate, gate.data, "/openapi.json", "acme-key", phases, examples)
        else:
            said = await _run(gate, gate.admin, "/admin/openapi.json", "operator", phases, examples)
    assert not said, said
