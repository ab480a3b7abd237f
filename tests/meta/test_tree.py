"""The shape of the tree: files of one idea, and tests where a reader looks for them."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 400
MIRRORED = (
    "admission", "calibration", "config", "diagnosis", "ladder", "profile", "routing", "simulation", "whatif",
    "workload",
)  # fmt: skip

TESTED_ELSEWHERE = {
    "admission/options.py": "the choice inside a decision; tests/unit/admission/test_decide.py",
    "admission/permanent.py": "the refusals that no wait cures; tests/unit/admission/test_decide.py",
    "admission/policy.py": "values; the guard band's rounding is in tests/unit/admission/test_budget.py",
    "admission/replica.py": "one replica's ledger; tests/unit/admission/test_controller.py and the state machine",
    "admission/verdict.py": "values; tests/unit/admission/test_decide.py compares whole verdicts",
    "simulation/batching.py": "a phase of the scheduler; tests/unit/simulation/test_scheduler.py",
    "simulation/step.py": "the scheduler's step; tests/unit/simulation/test_scheduler.py",
    "whatif/monitors/floor.py": "a bound; tests/unit/whatif/monitors/test_watched.py meets it from both sides",
    "whatif/monitors/idle.py": "one of the monitors; tests/unit/whatif/monitors/test_watched.py",
    "whatif/monitors/ledger.py": "one of the monitors; tests/unit/whatif/monitors/test_watched.py",
    "whatif/monitors/priority.py": "one of the monitors; tests/unit/whatif/monitors/test_watched.py",
    "whatif/monitors/room.py": "its counterfactual; tests/unit/whatif/monitors/test_watched.py",
    "whatif/monitors/seen.py": "what both see; tests/unit/whatif/monitors/test_watched.py",
    "config/base.py": "types only; tests/unit/config/test_settings.py walks all models",
    "config/texts.py": "tests/unit/config/test_loading.py and tests/unit/profile/test_parsing.py read through it",
    "ladder/judging.py": "what windows say to rungs; tests/unit/ladder/test_machine.py",
    "ladder/model.py": "tests/unit/ladder/test_parsing.py reads every field",
    "profile/model.py": "tests/unit/profile/test_parsing.py reads every field",
    "profile/sections.py": "tests/unit/profile/test_parsing.py reads every field",
    "profile/contradictions.py": "tests/unit/profile/test_profile_contradictions.py",
}
"""Modules with behaviour whose tests do not stand in a file of their name, and where they stand."""


def sources() -> list[Path]:
    folders = ("src", "commands", "tests", "bench")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py") if "fixtures" not in path.parts)


def test_a_file_holds_one_idea() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in sources()}
    assert {name: number for name, number in lines.items() if number > MOST_LINES} == {}


def behaves(path: Path) -> bool:
    """Say whether a module decides anything: it has a function with a branch, a loop or a comprehension."""
    tree = ast.parse(path.read_text("utf-8"))
    deciding = (ast.If, ast.IfExp, ast.For, ast.While, ast.Match, ast.Try, ast.comprehension, ast.BoolOp)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return any(isinstance(inner, deciding) for function in functions for inner in ast.walk(function))


def mirrored() -> list[Path]:
    library = ROOT / "src" / "llmshed"
    return sorted(path for package in MIRRORED for path in (library / package).rglob("*.py"))


def test_a_pure_module_has_its_test_file() -> None:
    behaving = [path.relative_to(ROOT / "src" / "llmshed") for path in mirrored() if behaves(path)]
    assert len(behaving) > 50
    wanted = {
        inside.as_posix(): ROOT / "tests" / "unit" / inside.parent / f"test_{inside.name}"
        for inside in behaving
        if inside.as_posix() not in TESTED_ELSEWHERE
    }
    assert [name for name, test in wanted.items() if not test.is_file()] == []


def test_the_list_of_modules_tested_elsewhere_names_no_module_that_is_gone() -> None:
    assert [name for name in TESTED_ELSEWHERE if not (ROOT / "src" / "llmshed" / name).is_file()] == []


def test_no_test_folder_is_a_package() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))
