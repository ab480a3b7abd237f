from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.explain import equation_sentence, fit_sentence, reservation_sentence

EQUATION = Equation(96_000, 9_600, 58_000, 8_000, 12, 64)


def test_the_equation_is_told_with_its_numbers() -> None:
    assert equation_sentence(EQUATION) == (
        "96,000 gross - 9,600 guard - 58,000 active - 8,000 queued = 20,400 free tokens"
    )


def test_only_terms_that_exist_are_named() -> None:
    assert reservation_sentence(Reservation(14_000, 4_000, 0, 1)) == "14,000 input + 4,000 output = 18,000 tokens"
    assert reservation_sentence(Reservation(200, 3_000, 1_096, 2)) == (
        "200 input + 3,000 output + 1,096 engine overrun = 4,296 tokens over 2 sequences"
    )


def test_fits_or_not_is_said() -> None:
    assert " fits: 96,000 gross" in fit_sentence(EQUATION, Reservation(14_000, 4_000, 0, 1))
    refused = fit_sentence(EQUATION, Reservation(19_000, 4_000, 0, 1))
    assert " does not fit: 96,000 gross" in refused
    assert refused.endswith("12 of 64 sequences run")
