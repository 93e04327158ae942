"""Ranges of the parameters of the boosted-rule estimators."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

__all__ = ["check_choice", "check_parameters", "check_range_of_rates"]


def _at_least(low: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Real) and float(value) >= low


def _whole(low: int, high: float = float("inf")) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Integral) and low <= int(value) <= high


def _positive(value: Any) -> bool:
    return isinstance(value, Real) and float(value) > 0


def _optional(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or test(value)


_TESTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "n_estimators": (_whole(1), "a whole number of at least 1"),
    "learning_rate": (
        lambda value: _positive(value) and value <= 1,
        "a number above 0 and at most 1",
    ),
    "max_bins": (_whole(2, 255), "a whole number from 2 to 255"),
    "max_length": (_whole(1, 255), "a whole number from 1 to 255"),
    "max_depth": (_whole(0), "a whole number of at least 0"),
    "recall": (_whole(1), "a whole number of at least 1"),
    "lookahead": (_whole(0), "a whole number of at least 0"),
    "max_evaluated": (_optional(_whole(1)), "None or a whole number of at least 1"),
    "max_seconds": (_optional(_positive), "None or a number above 0"),
    "early_stopping_rounds": (_optional(_whole(1)), "None or a whole number of at least 1"),
    "n_passes": (_whole(1), "a whole number of at least 1"),
    "p": (_at_least(1), "a number of at least 1"),
    "sigma": (_positive, "a number above 0"),
    "n_knots": (_whole(3, 40), "a whole number from 3 to 40"),
    "narrowing": (
        lambda value: isinstance(value, Real) and 0 <= float(value) <= 1,
        "a number from 0 to 1",
    ),
    "penalty": (_at_least(0), "a number of at least 0"),
}


def check_parameters(estimator: Any) -> None:
    """Raise a ValueError that names the first parameter out of its range."""
    for name, value in estimator.get_params(deep=False).items():
        if name in _TESTS and not _TESTS[name][0](value):
            raise ValueError(
                f"{type(estimator).__name__}: {name} must be {_TESTS[name][1]}, got {value!r}"
            )


def check_choice(estimator: Any, name: str, choices: Any) -> None:
    """Raise a ValueError when a parameter is not one of its choices."""
    value = getattr(estimator, name)
    if value not in choices:
        raise ValueError(
            f"{type(estimator).__name__}: {name} must be one of "
            f"{', '.join(map(repr, choices))}, got {value!r}"
        )


def check_range_of_rates(estimator: Any) -> tuple[float, float]:
    """The false positive rates (a, b) of an estimator, checked."""
    try:
        low, high = map(float, estimator.fpr)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not 0 <= low < high <= 1:
        raise ValueError(
            f"{type(estimator).__name__}: fpr must be two rates (a, b) with 0 <= a < b <= 1, "
            f"got {estimator.fpr!r}"
        )
    return low, high
