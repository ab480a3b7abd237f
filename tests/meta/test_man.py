"""The manual pages say what the command line does: every command, option, argument and exit code, and nothing else."""

import re
from pathlib import Path

import pytest

from command_tree import Verb, verbs
from llmshed.errors import ExitCode, MonitoringCode

ROOT = Path(__file__).resolve().parents[2]
PAGES = {page.name: page for page in sorted((ROOT / "man").glob("*.[0-9]"))}
COMMAND_PAGES = [name for name in PAGES if name.endswith(".1")]
SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO")
ELSEWHERE = {"curl.1", "man.1", "mandoc.1", "systemctl.1", "sysexits.3", "systemd.service.5", "signal.7"}
"""Pages of other packages that ours may refer to."""


def described_by(page: str) -> list[Verb]:
    return [verb for verb in verbs() if verb.page == page]


def source(page: str) -> str:
    return PAGES[page].read_text("utf-8")


def section(text: str, title: str) -> str:
    """Return the body of one section of a page; empty when there is none."""
    parts = re.split(r"^\.Sh (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True)).get(title, "")


def flags(text: str) -> set[str]:
    """Return the options that macros of a text name, as they are typed."""
    found = re.findall(r"\bFl ((?:\\-)?)([A-Za-z][\w-]*)", text)
    return {("--" if dash else "-" if len(name) == 1 else "--") + name for dash, name in found}


def items(text: str) -> str:
    """Return the heads of a text's lists."""
    return "\n".join(line for line in text.splitlines() if line.startswith(".It "))


def arguments(text: str) -> set[str]:
    """Return the arguments that have an entry of their own."""
    return set(re.findall(r"^\.It Ar ([\w.]+)$", text, flags=re.MULTILINE))


def typed(text: str) -> set[str]:
    """Return the options in lines that call llmshed literally, with what continues them."""
    lines = re.sub(r"\\e\n\s*", " ", text).splitlines()
    calls = [
        re.split(r"[|&;]", line[line.index("llmshed ") :])[0]
        for line in lines
        if re.match(r"(\S.*\| *)?llmshed ", line)
    ]
    return {word for call in calls for word in re.findall(r"(?<=\s)--?[a-z][a-z-]*", call)}


def exit_codes(text: str) -> list[int]:
    """Return the codes that the section on exit status lists, in order."""
    return [int(code) for code in re.findall(r"\d+", items(section(text, "EXIT STATUS")))]


def references(text: str) -> set[str]:
    return {f"{name}.{number}" for name, number in re.findall(r"\bXr (\S+) (\d)", text)}


@pytest.mark.parametrize("verb", verbs(), ids=lambda verb: " ".join(("llmshed", *verb.words)))
def test_every_command_has_a_page_with_its_options_arguments_and_choices(verb: Verb) -> None:
    assert verb.page in PAGES
    options = section(source(verb.page), "OPTIONS")

    assert flags(items(options)) >= verb.options
    assert arguments(options) >= verb.arguments
    assert not {choice for choice in verb.choices if not re.search(rf"\b{choice}\b", options)}


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_a_page_is_of_a_command_and_names_no_other_options_or_arguments(page: str) -> None:
    described = described_by(page)
    assert described, "no command has this page"
    known = frozenset[str]().union(*(verb.options for verb in described))

    text = source(page)
    assert flags(section(text, "SYNOPSIS")) <= known
    assert flags(items(section(text, "OPTIONS"))) <= known
    assert arguments(section(text, "OPTIONS")) <= frozenset[str]().union(*(verb.arguments for verb in described))


@pytest.mark.parametrize("page", PAGES)
def test_no_page_names_an_option_that_no_command_has(page: str) -> None:
    known = frozenset[str]().union(*(verb.options for verb in verbs()))
    assert flags(source(page)) | typed(source(page)) <= known


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_every_option_stands_in_the_synopsis(page: str) -> None:
    long = {option for verb in described_by(page) for option in verb.options if option.startswith("--")}
    assert flags(section(source(page), "SYNOPSIS")) >= long - {"--help"}


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_a_page_has_its_sections_in_their_order(page: str) -> None:
    titles = re.findall(r"^\.Sh (.*)$", source(page), flags=re.MULTILINE)
    assert [title for title in titles if title in SECTIONS] == list(SECTIONS)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_carries_its_own_name(page: str) -> None:
    name, _, number = page.rpartition(".")
    assert f"\n.Dt {name.upper()} {number}\n" in source(page)
    assert f"\n.Sh NAME\n.Nm {name}\n.Nd " in source(page)


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_the_exit_codes_of_a_page_are_those_of_the_program(page: str) -> None:
    codes = exit_codes(source(page))
    assert codes == sorted(set(codes))
    own = set(MonitoringCode) if page == "llmshed-diagnose.1" else set()
    assert {ExitCode.OK, ExitCode.USAGE, *own} <= set(codes) <= {*ExitCode, *own}


def test_the_overview_lists_every_exit_code() -> None:
    assert exit_codes(source("llmshed.1")) == [code.value for code in ExitCode]


def test_the_overview_refers_to_the_page_of_every_command() -> None:
    commands = section(source("llmshed.1"), "COMMANDS")
    assert references(commands) == set(COMMAND_PAGES) - {"llmshed.1"}


@pytest.mark.parametrize("page", PAGES)
def test_every_reference_leads_to_a_page(page: str) -> None:
    found = references(source(page))
    assert found <= PAGES.keys() | ELSEWHERE
    assert page not in references(section(source(page), "SEE ALSO")), "a page need not refer to itself"


class TestTheChecksBite:
    """Each way of reading a page is shown a page with a fault."""

    PAGE = (
        ".Dd November 30, 2026\n.Sh SYNOPSIS\n.Op Fl \\-speed Ar n | Fl x\n.Sh OPTIONS\n"
        ".It Fl \\-file Ar file , Fl f Ar file\nunlike\n.Fl \\-other\n.It Ar place\n"
        ".Sh EXIT STATUS\n.It 0\n.It 3 , 64\n"
        ".Sh EXAMPLES\nllmshed classify --exit-statsu \\e\n    --queued 1 | jq --raw\necho x | llmshed tokenize -f y\n"
        ".Sh SEE ALSO\n.Xr llmshed-srve 1\n"
    )

    def test_flags_are_read_wherever_they_stand(self) -> None:
        assert flags(self.PAGE) == {"--speed", "-x", "--file", "-f", "--other"}
        assert flags(items(section(self.PAGE, "OPTIONS"))) == {"--file", "-f"}

    def test_calls_are_read_over_their_line_ends_and_up_to_the_pipe(self) -> None:
        assert typed(self.PAGE) == {"--exit-statsu", "--queued", "-f"}

    def test_arguments_codes_and_references_are_read(self) -> None:
        assert arguments(self.PAGE) == {"place"}
        assert exit_codes(self.PAGE) == [0, 3, 64]
        assert references(self.PAGE) == {"llmshed-srve.1"}

    def test_the_tree_is_walked_to_its_leaves(self) -> None:
        known = {verb.words: verb for verb in verbs()}
        assert {"--version", "--help"} <= known[()].options
        assert known["config", "check"].arguments == {"file"}
        assert {"-c", "--config", "--origin"} <= known["config", "show"].options
        assert known["tokenize",].choices == {"tgi", "vllm"}
