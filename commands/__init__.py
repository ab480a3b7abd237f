"""The command line of llmshed: one module a verb; every heavy import waits until its verb runs."""

import sys
import traceback
from typing import cast

import typer

from llmshed import __version__
from llmshed.errors import ExitCode, LlmshedError

from . import (
    calibrate,
    classify,
    config,
    dashboard,
    diagnose,
    ladder,
    man,
    profile,
    replay,
    review,
    rules,
    serve,
    simulate,
    status,
    tokenize_,
    whatif,
)
from ._output import print_note
from ._streams import escape_unwritable, forget_output, open_missing_streams, reader_left

app = typer.Typer(
    name="llmshed",
    help="Admission control and load shedding in front of LLM servers.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
# The first sentence of a verb's own help would be cut in the list of all verbs.
app.command("serve", short_help="Run the gateway.")(serve.serve)
app.command("status", short_help="Look at a running gateway.")(status.status)
app.command("tokenize", short_help="Count the tokens of a text or a chat.")(tokenize_.tokenize)
app.command("classify", short_help="Tell lane, reservation and verdict.")(classify.classify)
app.command("simulate", short_help="Run a simulated TGI replica.")(simulate.simulate)
app.command("whatif", short_help="Replay a trace in virtual time.")(whatif.whatif)
app.command("calibrate", short_help="Measure what a replica carries.")(calibrate.calibrate)
app.command("replay", short_help="Send traffic of a source's lengths.")(replay.replay)
app.add_typer(config.app, name="config", short_help="Check and show settings, draw keys.")
app.add_typer(profile.app, name="profile", short_help="Show, check, find, verify profiles.")
app.add_typer(ladder.app, name="ladder", short_help="Drill the degradation ladder.")
app.command("diagnose", short_help="Find the cause of an overload.")(diagnose.diagnose)
app.command("review", short_help="Tell how days went; ask for GPUs.")(review.review)
app.command("rules", short_help="Print rules and alerts for Prometheus.")(rules.rules)
app.command("dashboard", short_help="Print a dashboard for Grafana.")(dashboard.dashboard)
app.command("man", short_help="Show a manual page.")(man.man)


def _print_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"llmshed {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Admission control and load shedding in front of LLM servers."""


def main() -> None:
    """Run the command line; an expected error is one line on stderr and its exit code.

    Usage errors end with 64 instead of click's 2, which monitoring systems read as critical.
    """
    open_missing_streams()
    escape_unwritable()
    # click's UsageError, which typer carries inside and does not export; it has BadParameter's `show`.
    usage_error = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[1])
    try:
        code = app(standalone_mode=False, prog_name="llmshed")
    except usage_error as error:
        error.show()
        sys.exit(ExitCode.USAGE)
    except LlmshedError as error:
        for line in str(error).splitlines():
            print_note(line)
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):  # click turns the interrupt into its Abort, but not while it starts
        sys.exit(ExitCode.INTERRUPTED)
    except (BrokenPipeError, SystemExit) as error:
        if not reader_left(error):
            raise
        forget_output()
        sys.exit(ExitCode.OK)
    except OSError as error:
        print_note(str(error))
        forget_output()
        sys.exit(ExitCode.IO)
    except Exception:  # noqa: BLE001 - whatever is left is a bug: told as one, with its own exit code
        traceback.print_exc()
        print_note("this is a bug in llmshed; please report it with the lines above")
        sys.exit(ExitCode.BUG)
    sys.exit(code if isinstance(code, int) else ExitCode.OK)
