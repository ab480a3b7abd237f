from llmshed.calibration.results import UNITS, Phase, Result


def test_every_phase_has_a_unit() -> None:
    assert set(UNITS) == set(Phase)


def test_a_sweep_that_has_not_begun_is_none() -> None:
    assert Result(None, (), (), 0, 0, 0, None, "").sweep(Phase.KV) is None
