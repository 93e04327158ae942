"""Hold-out rows, validation metrics with their direction, early stopping, interrupted rounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import metrics
from toprank.stopping import EarlyStopping, ValidationMetric, hold_out, run_rounds


@given(
    n_positives=st.integers(2, 30),
    n_negatives=st.integers(2, 60),
    fraction=st.floats(0.01, 0.99),
    seed=st.integers(0, 2**31),
)
def test_both_parts_of_a_hold_out_have_both_classes(
    n_positives: int, n_negatives: int, fraction: float, seed: int
) -> None:
    y = np.repeat([1, 0], [n_positives, n_negatives])
    held_out = hold_out(y, fraction, seed)
    for size, part in ((n_positives, held_out[y == 1]), (n_negatives, held_out[y == 0])):
        assert part.sum() == min(size - 1, max(1, round(fraction * size)))
    np.testing.assert_array_equal(held_out, hold_out(y, fraction, seed))


def test_queries_stay_whole() -> None:
    qid = np.repeat(np.arange(20), 5)
    y = np.tile([1, 0, 0, 0, 0], 20)
    held_out = hold_out(y, 0.3, 1, qid)
    assert [len(set(held_out[qid == q])) for q in range(20)] == [1] * 20
    assert held_out.sum() == 30


@pytest.mark.parametrize(
    ("y", "fraction", "qid", "message"),
    [
        ([1, 0, 0, 0], 0.2, None, "two positives.*1 positive"),
        ([1, 1, 0], 0.2, None, "two negatives.*1 negative"),
        ([1, 1, 0, 0], 1.0, None, "validation_fraction"),
        ([1, 0, 1, 0], 0.5, [3, 3, 3, 3], "one query"),
        ([1, 1, 0, 0], 0.5, [1, 1, 2, 2], "only one class"),
    ],
)
def test_a_hold_out_that_is_impossible_says_why(y, fraction, qid, message) -> None:
    with pytest.raises(ValueError, match=message):
        hold_out(np.array(y), fraction, 0, None if qid is None else np.array(qid))


@pytest.mark.parametrize("name", metrics.METRICS)
def test_every_metric_brings_its_direction(name: str) -> None:
    found = ValidationMetric.of(name)
    assert found.greater_is_better is metrics.METRICS[name].greater_is_better
    y, qid = np.tile([1, 0, 0, 0, 0], 4), np.repeat([0, 1], 10)
    good, bad = 1.0 * y, -1.0 * y
    better = found(y, good, qid=qid) - found(y, bad, qid=qid)
    assert better > 0 if found.greater_is_better else better < 0


def test_weights_and_queries_reach_metrics_that_take_them() -> None:
    y, scores = np.array([1, 0, 1, 0]), np.array([4.0, 3.0, 2.0, 1.0])
    weight, qid = np.array([1.0, 5.0, 2.0, 1.0]), np.array([0, 0, 1, 1])
    area = ValidationMetric.of("roc_auc")(y, scores, weight, qid)
    assert area == metrics.roc_auc(y, scores, sample_weight=weight)
    gain = ValidationMetric.of("ndcg", k=1)(y, scores, None, qid)
    assert gain == metrics.ndcg(y, scores, k=1, qid=qid)
    assert ValidationMetric.of(lambda y, scores: 7)(y, scores, weight, qid) == 7.0
    with pytest.raises(ValueError, match="Unknown metric 'precision'"):
        ValidationMetric.of("precision")


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.integers(1, 6), st.booleans())
def test_early_stopping_keeps_the_first_best_round(
    values: list[float], patience: int, greater: bool
) -> None:
    stopping = EarlyStopping(patience, greater)
    stopped_at = next((k for k, v in enumerate(values, 1) if stopping.record(v)), len(values))
    seen = values[:stopped_at]
    best = max(seen) if greater else min(seen)
    assert stopping.best_value == best
    assert stopping.best_round == seen.index(best) + 1
    waited = [
        k - (seen[:k].index((max if greater else min)(seen[:k])) + 1)
        for k in range(1, stopped_at + 1)
    ]
    assert all(w < patience for w in waited[:-1])
    assert stopped_at == len(values) or waited[-1] == patience


def test_patience_must_be_positive() -> None:
    with pytest.raises(ValueError, match="early_stopping_rounds"):
        EarlyStopping(0)
    assert EarlyStopping().best_round == 0


def test_rounds_end_when_asked_and_survive_an_interruption() -> None:
    assert run_rounds(iter(range(1, 100)), 5) == [1, 2, 3, 4, 5]
    assert run_rounds(iter(range(1, 4)), 5) == [1, 2, 3]
    assert run_rounds(iter(range(1, 100)), 9, after_round=lambda k: k == 2) == [1, 2]

    def interrupted(at: int) -> Iterator[int]:
        for k in range(1, 10):
            if k == at:
                raise KeyboardInterrupt
            yield k

    with pytest.warns(UserWarning, match="keeping the 3 of 9 rounds"):
        assert run_rounds(interrupted(4), 9) == [1, 2, 3]
    with pytest.raises(KeyboardInterrupt):
        run_rounds(interrupted(1), 9)
