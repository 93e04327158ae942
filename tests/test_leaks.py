"""Columns that tell too much are named, and honest ones are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from toprank.leaks import find_leaks

RANDOM = np.random.default_rng(0)
N_ROWS = 600
Y = (RANDOM.random(N_ROWS) < 0.1).astype(int)
HONEST = {
    "amount": RANDOM.normal(size=N_ROWS) + 2 * Y,
    "merchant": RANDOM.integers(0, 400, N_ROWS).astype(str),
    "shuffled_number": RANDOM.permutation(N_ROWS),
}


def test_honest_columns_are_not_named() -> None:
    assert find_leaks(pd.DataFrame(HONEST), Y) == []


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (np.where(Y, "chargeback", "none"), "nearly decides"),
        (np.where(Y, 1.0, RANDOM.normal(size=N_ROWS) - 9), "nearly decides"),
        (np.where(Y, RANDOM.normal(size=N_ROWS), np.nan), "filled in almost only"),
        (np.argsort(np.argsort(Y, kind="stable")) + 100, "numbers the rows"),
        (-np.argsort(np.argsort(Y, kind="stable")).astype(float), "numbers the rows"),
    ],
)
def test_columns_that_know_too_much_are_named(column: np.ndarray, said: str) -> None:
    (found,) = find_leaks(pd.DataFrame({**HONEST, "late": column}), Y)
    assert "'late'" in found
    assert said in found


def test_arrays_have_numbered_columns_and_few_positives_say_nothing() -> None:
    X = np.column_stack([HONEST["amount"], 5.0 * Y])
    assert [text.split("'")[1] for text in find_leaks(X, Y)] == ["x1"]
    assert find_leaks(X[Y == 0], np.arange(np.sum(Y == 0)) < 5) == []
