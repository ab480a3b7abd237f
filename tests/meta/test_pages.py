"""The pages that people read first: what they name exists, their commands work as they stand, their links lead on."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from command_tree import verbs

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path for pattern in ("*.md", "docs/**/*.md", "deploy/*.md", "profiles/*.md") for path in ROOT.glob(pattern)
)
MACHINE = re.compile(
    # A folder of one machine, or of one person.
    r"(?<![\w.$}~-])/(?:work|home|root|Users|mnt|tmp)/\w"
    # Where packages come from is the installer's affair.
    r"|https?://[\w.:-]*(?:pypi|npm|registry|artifactory|nexus|mirror)|index[-_]url",
    re.IGNORECASE,
)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def targets() -> set[str]:
    """Return what `make` can be asked for."""
    return set(re.findall(r"^([a-z-]+):", read("Makefile"), flags=re.MULTILINE))


def links(text: str) -> list[str]:
    """Return where the links of a page lead, but for those that leave the repository."""
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_code(text)))
    return [link for link in found if not link.startswith(("http://", "https://", "mailto:"))]


def without_code(text: str) -> str:
    return re.sub(r"^\s*```.*?^\s*```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the fragments by which a page's headings can be linked to."""
    heads = re.findall(r"^#+ (.+)$", without_code(text), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def broken(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead nowhere."""
    lost = []
    for link in links(text):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            lost.append(link)
    return lost


def paths(text: str) -> set[str]:
    """Return the files and folders that a page names between backticks."""
    words = re.findall(r"`([^`\s]+)`", without_code(text))
    whole = {word for word in words if re.fullmatch(r"[\w./-]+", word) and not word.startswith(("/", ".."))}
    # `llmshed.decision/1` is the name of a schema.
    return {word for word in whole if re.search(r"\w/(?!\d+$)|\w\.(py|md|toml|yaml)$", word)}


def absent(names: set[str], folder: Path = ROOT) -> set[str]:
    places = (ROOT, ROOT / "src" / "llmshed", folder)
    return {name for name in names if not any((place / name).exists() for place in places)}


def calls(text: str) -> list[str]:
    """Return the lines of code on a page that call llmshed, each without what is before and behind the call."""
    blocks = re.findall(r"^\s*```(?:sh|console)?\n(.*?)^\s*```$", text, flags=re.MULTILINE | re.DOTALL)
    joined = re.sub(r"\\\n\s*", " ", "\n".join(blocks))
    return re.findall(r"(?:^|[\s/(])llmshed( (?!llmshed )[a-z][^|&;>#)\n]*)", joined)


def unknown(call: str) -> set[str]:
    """Return what a call asks for that the command line does not have."""
    words = re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", call).split()
    known = max((verb for verb in verbs() if verb.words == tuple(words[: len(verb.words)])), key=lambda v: len(v.words))
    if not known.words:
        return {words[0]}
    return {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"} - known.options


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page, page.read_text("utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), flags=re.MULTILINE)) <= targets()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_call_of_llmshed_on_a_page_is_one_that_it_takes(page: Path) -> None:
    assert [(call, unknown(call)) for call in calls(page.read_text("utf-8")) if unknown(call)] == []


def test_ci_runs_the_test_command_of_the_readme_and_nothing_else() -> None:
    commands = [line for line in read(".ci/run").splitlines() if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["make test"]
    assert re.search(r"^make test$", read("README.md"), flags=re.MULTILINE) or "`make test`" in read("README.md")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "docs/README.md"])
def test_every_path_that_a_page_names_exists(page: str) -> None:
    assert absent(paths(read(page)), (ROOT / page).parent) == set()


def test_the_architecture_names_paths_at_all() -> None:
    assert len(paths(read("ARCHITECTURE.md"))) > 20


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_a_page_that_is_read_first_is_short(page: str) -> None:
    assert len(read(page).splitlines()) <= 120


def test_every_word_that_the_glossary_finds_in_code_is_there() -> None:
    cells = re.findall(r"\| ([^|]+) \|$", read("docs/glossary.md"), flags=re.MULTILINE)
    words = {word for cell in cells for word in re.findall(r"`(\w+)`", cell)}
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    known = set(re.findall(r"\w+", code)) | {f"llmshed_{word}" for word in re.findall(r"\w+", code)}

    assert len(words) > 30
    assert words - known == set()


def test_no_file_names_the_machine_that_it_was_written_on() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so that it is not known which files belong to the project")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    found = {
        f"{named(path)}:{number}: {line.strip()[:120]}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
        if MACHINE.search(line)
    }
    assert found == set()


class TestTheChecksBite:
    """Each way of reading a page is shown a page with faults; paths are put together so that this file has none."""

    def test_a_broken_link_and_a_broken_anchor_are_found(self) -> None:
        text = (
            "# A head, with signs\n[here](#a-head-with-signs) [gone](#other) [no file](nowhere.md) [out](https://x.y)"
        )
        assert broken(ROOT / "docs" / "README.md", text)[1:] == ["#other", "nowhere.md"]

    def test_a_path_that_is_gone_is_found(self) -> None:
        text = "`admission/ledger.py`, `docs/adr/`, `/admin/state`, `gateway/gone.py`, `llmshed.tml`, `gone.toml`"
        assert absent(paths(text)) == {"gateway/gone.py", "gone.toml"}

    @pytest.mark.parametrize(
        ("line", "wrong"),
        [
            ("llmshed classify --input-tokens 4 --jsn", {"--jsn"}),
            (".venv/bin/llmshed serv --config x.toml", {"serv"}),
            ("llmshed config show --profile", {"--profile"}),
            ("llmshed tokenize 'a --text' --ids | jq --raw", set()),
        ],
    )
    def test_a_call_that_is_not_taken_is_found(self, line: str, wrong: set[str]) -> None:
        (call,) = calls(f"```sh\n{line}\n```\n")
        assert unknown(call) == wrong

    @pytest.mark.parametrize("parts", [("", "work", "x"), ("", "home", "me"), ("open('", "tmp", "x')")])
    def test_a_folder_of_a_machine_is_found(self, parts: tuple[str, ...]) -> None:
        assert MACHINE.search("/".join(parts))

    def test_an_address_of_a_registry_is_found(self) -> None:
        assert MACHINE.search("https:" + "//pypi.example/simple")
        assert not MACHINE.search("tmpfs: [/tmp], $TMPDIR/x, ../work/x, https://github.com/x")
