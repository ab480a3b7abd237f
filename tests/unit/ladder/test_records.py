import pytest
from pydantic import ValidationError

from fakes.drills import drill_record, path_record
from llmshed.ladder.records import MOST_KEPT, NO_DRILLS, DrillFile


def test_a_file_is_read_back_as_it_was_written() -> None:
    file = NO_DRILLS.with_newest(drill_record(path_record("r2", ("cap_output 400",))))
    assert DrillFile.model_validate_json(file.model_dump_json(by_alias=True)) == file
    assert file.model_dump(by_alias=True)["schema"] == "llmshed.drills/1"


def test_the_newest_comes_first_and_the_oldest_go() -> None:
    file = NO_DRILLS
    for number in range(MOST_KEPT + 3):
        file = file.with_newest(drill_record(set_name=f"{number}"))
    assert [drill.set_name for drill in file.drills] == [f"{number}" for number in range(MOST_KEPT + 2, 2, -1)]


def test_a_path_is_found_by_its_rung() -> None:
    drill = drill_record(path_record("r2"), path_record("r3"))
    assert drill.primary.rung is None
    assert (drill.path("r3"), drill.path("r4")) == (drill.paths[2], None)


@pytest.mark.parametrize("text", ["{}", '{"schema": "llmshed.drills/2"}', '{"schema": "llmshed.drills/1", "x": 1}'])
def test_other_files_are_no_drills(text: str) -> None:
    with pytest.raises(ValidationError):
        DrillFile.model_validate_json(text)
