"""`llmshed replay --sanitize`: a decision log to its lengths, and the proof that nothing else is left."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from llmshed.errors import OutputError, TraceError

from ._output import print_json, print_table
from ._signals import ending_in_order
from ._whatif_traffic import unpacked_passages
from ._whole_file import check_place, place_of

if TYPE_CHECKING:
    from llmshed.workload.sanitizing import Proof

SCHEMA = "llmshed.sanitize/1"


def sanitize_log(log: str, output: Path, *, as_json: bool) -> None:
    """Write what is left of a log, read it again, and tell what it holds; no file is left that is empty or fails.

    Raises:
        MissingInputError: the log cannot be read.
        TraceError: the log is none or holds no request, or the proof fails.
        OutputError: the file cannot be written.
    """
    from llmshed.workload.readers.decision_log import read_logged
    from llmshed.workload.sanitizing import KEY_BYTES, prove, sanitized

    check_place("--output", output)
    chunks = unpacked_passages(log)
    place = place_of("--output", output)
    beside = place.with_name(f".llmshed-sanitized-{os.getpid()}")
    with ending_in_order():
        try:
            lines = sanitized(read_logged(chunks()), secrets.token_bytes(KEY_BYTES))
            _write(beside, lines)
            proof = prove(_read(beside), chunks())
            _see_requests(proof)
            beside.replace(place)
        except TraceError as error:
            raise TraceError(f"{log}: {error}") from None
        except OSError as error:
            raise OutputError(f"--output {output}: cannot be written: {error.strerror or error}") from None
        finally:
            beside.unlink(missing_ok=True)
    _tell(output, proof, as_json=as_json)


def _see_requests(proof: "Proof") -> None:
    if not proof.requests:
        raise TraceError("it holds no request, so there is nothing to keep")


def _write(path: Path, lines: Iterator[str]) -> None:
    with path.open("x", encoding="ascii", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(1 << 18), b"")


def _tell(output: Path, proof: "Proof", *, as_json: bool) -> None:
    from llmshed.workload.readers.sanitized import COLUMNS

    if as_json:
        print_json(
            SCHEMA,
            {
                "file": str(output),
                "fields": list(COLUMNS),
                "requests": proof.requests,
                "lanes": dict(proof.lanes),
                "tenants": len(proof.tenants),
                "strings_looked_for": proof.strings,
                "strings_found": 0,
            },
        )
        return
    lanes = ", ".join(f"{lane} {count:,}" for lane, count in sorted(proof.lanes.items()))
    print_table(
        {
            "file": output,
            "fields kept": ", ".join(COLUMNS),
            "requests": proof.requests,
            "lanes": lanes or "none",
            "tenants": f"{len(proof.tenants):,}, by a keyed hash whose key is gone",
            "proof": f"{proof.strings:,} strings of the log looked for, none found",
        }
    )
