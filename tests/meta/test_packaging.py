"""What pyproject.toml lists by hand is what is there: a forgotten package works here and is absent from a wheel."""

from pathlib import Path
from typing import Any

import pytest
import tomli

ROOT = Path(__file__).resolve().parents[2]
SETUPTOOLS: dict[str, Any] = tomli.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
FOLDERS = {"llmshed.commands": "commands", "llmshed.man": "man", "llmshed.profiles": "profiles"}
"""The folders at the top level that are mapped into the package."""


def folder_of(package: str) -> Path:
    return ROOT / FOLDERS.get(package, f"src/{package.replace('.', '/')}")


def is_data(path: Path) -> bool:
    return path.is_file() and path.suffix not in {".py", ".pyc"} and "__pycache__" not in path.parts


def test_every_package_on_disk_is_listed_and_every_listed_one_is_there() -> None:
    library = {init.parent.relative_to(ROOT / "src") for init in (ROOT / "src").rglob("__init__.py")}
    found = {".".join(folder.parts) for folder in library} | set(FOLDERS)
    assert all((ROOT / folder / "__init__.py").is_file() for folder in FOLDERS.values())
    assert sorted(SETUPTOOLS["packages"]) == sorted(found)


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "src/llmshed").rglob("*.py")}
    assert not [folder for folder in folders if not (folder / "__init__.py").is_file()]


def test_the_mapped_folders_are_mapped() -> None:
    assert SETUPTOOLS["package-dir"] == {"llmshed": "src/llmshed", **FOLDERS}


@pytest.mark.parametrize("package", SETUPTOOLS["packages"])
def test_every_data_file_of_a_package_is_shipped(package: str) -> None:
    folder = folder_of(package)
    shipped = {path for glob in SETUPTOOLS["package-data"].get(package, ()) for path in folder.glob(glob)}
    inner = [folder_of(other) for other in SETUPTOOLS["packages"] if other.startswith(f"{package}.")]
    data = {path for path in folder.rglob("*") if is_data(path) and not any(path.is_relative_to(one) for one in inner)}
    assert not {path for path in data if path.suffix != ".md"} - shipped, "README files stay in the source tree"


def test_only_what_is_listed_is_shipped_whatever_version_control_knows() -> None:
    assert SETUPTOOLS["include-package-data"] is False


@pytest.mark.parametrize("page", sorted((ROOT / "man").glob("*.[0-9]")), ids=lambda page: page.name)
def test_every_page_lies_where_man_looks_for_it(page: Path) -> None:
    assert page in laid_down(f"share/man/man{page.suffix[1:]}")


@pytest.mark.parametrize("profile", sorted((ROOT / "profiles").rglob("*.toml")), ids=lambda profile: profile.name)
def test_every_profile_lies_where_an_operator_looks_for_it(profile: Path) -> None:
    assert profile in laid_down(f"share/llmshed/{profile.parent.relative_to(ROOT).as_posix()}")


def laid_down(target: str) -> set[Path]:
    return {path for glob in SETUPTOOLS["data-files"].get(target, ()) for path in ROOT.glob(glob)}
