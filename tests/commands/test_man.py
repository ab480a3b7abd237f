"""`llmshed man`: the packaged pages, with and without man(1)."""

import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest


def pages(repository: Path) -> list[Path]:
    return sorted((repository / "man").glob("*.[0-9]"))


def words_of_mandoc(path: Path) -> list[str]:
    """Return the words of a page as mandoc(1) renders it, without its running head and foot."""
    rendered = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=78", str(path)], check=True, capture_output=True)
    # Bold and underlined characters come as overstrikes: a character, a backspace, the character again.
    text = rendered.stdout.decode()
    while "\b" in text:
        at = text.index("\b")
        text = text[: at - 1] + text[at + 1 :]
    return " ".join(text.strip().splitlines()[1:-1]).split()


def test_every_page_is_listed_with_its_description(cli: Any, repository: Path) -> None:
    listed = cli("man", "--list", "--json").json()

    assert listed["schema"] == "llmshed.man_list/1"
    assert {f"{page['name']}.{page['section']}" for page in listed["pages"]} == {
        path.name for path in pages(repository)
    }
    assert all(page["title"] for page in listed["pages"])


def test_the_list_for_people_has_the_same_pages(cli: Any, repository: Path) -> None:
    shown = cli("man", "--list").stdout
    for path in pages(repository):
        assert f"{path.stem}({path.suffix[1:]})" in shown


@pytest.mark.parametrize("name", ["llmshed.toml", "toml", "llmshed.toml.5", "llmshed.toml(5)"])
def test_a_page_is_found_by_each_of_its_names(cli: Any, name: str) -> None:
    ran = cli("man", name)

    assert ran.exit_code == 0
    assert ran.stdout.startswith("LLMSHED.TOML(5)\n")


def test_json_holds_the_text(cli: Any) -> None:
    result = cli("man", "llmshed.toml", "--json").json()

    assert (result["schema"], result["name"], result["section"]) == ("llmshed.man/1", "llmshed.toml", "5")
    assert result["text"] == cli("man", "llmshed.toml").stdout


def test_an_unknown_page_is_answered_with_the_nearest(cli: Any) -> None:
    ran = cli("man", "lmshed.toml")

    assert (ran.exit_code, ran.stdout) == (66, "")
    assert "did you mean llmshed.toml" in ran.stderr


def test_without_any_page_the_error_says_so(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "files", lambda _package: tmp_path)

    ran = cli("man")

    assert ran.exit_code == 66
    assert "holds no manual pages" in ran.stderr


def test_plain_text_has_the_words_of_mandoc_in_their_order(cli: Any, repository: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    for path in pages(repository):
        ran = cli("man", path.name)
        assert " ".join(ran.stdout.splitlines()[1:]).split() == words_of_mandoc(path), path.name


def test_plain_text_fits_80_columns(cli: Any, repository: Path) -> None:
    for path in pages(repository):
        literal = {line.strip() for line in path.read_text("utf-8").splitlines()}
        long = [line for line in cli("man", path.name).stdout.splitlines() if len(line) > 80]
        assert not [line for line in long if line.strip() not in literal], path.name


def test_every_page_is_clean_for_mandoc(repository: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    ran = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *map(str, pages(repository))],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, "")
