from llmshed.calibration.events import StopReason


def test_reasons_are_words_for_machines() -> None:
    assert all(reason.value.replace("_", "").isalpha() and reason.value.islower() for reason in StopReason)
