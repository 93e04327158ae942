"""Bad input gives a ValueError that says what is wrong, the same for every metric."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from toprank import metrics
from toprank.metrics import METRICS

Y, SCORES, QID = [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8], [1, 1, 2, 2]


def call(name: str, y, scores, **options):
    needs = {} if METRICS[name].list_core is not None or METRICS[name].graded else {"qid": QID}
    if needs and len(y) != 4:
        needs = {"qid": np.zeros(len(y))}
    return METRICS[name].function(y, scores, **needs, **options)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("y", "scores", "options", "message"),
    [
        ([0, 0, 0, 0], SCORES, {}, "only one class"),
        ([1, 1, 1, 1], SCORES, {}, "only one class"),
        ([True] * 4, SCORES, {}, "class"),
        (["a"] * 4, SCORES, {}, "class"),
        ([0, 1, np.nan, 1], SCORES, {}, "missing"),
        ([0, 1, None, 1], SCORES, {}, "missing"),
        (pd.array([0, 1, None, 1], dtype="Int64"), SCORES, {}, "missing"),
        (Y, [0.1, np.nan, 0.3, 0.4], {}, "1 NaN or infinite"),
        (Y, [0.1, np.inf, -np.inf, 0.4], {}, "2 NaN or infinite"),
        (Y, pd.array([0.1, None, 0.3, 0.4], dtype="Float64"), {}, "1 NaN or infinite"),
        (Y, ["a", "b", "c", "d"], {}, "numbers"),
        ([], [], {}, "empty"),
        (Y, SCORES[:3], {}, "rows differ: y_true has 4, scores has 3"),
        (Y, SCORES, {"sample_weight": [1, 1]}, "sample_weight has 2"),
        (Y, SCORES, {"sample_weight": [1, -1, 1, 1]}, "negative"),
        (Y, SCORES, {"sample_weight": [1, np.nan, 1, 1]}, "NaN"),
        (Y, SCORES, {"sample_weight": [1, 0, 1, 0]}, "class"),
        (Y, SCORES, {"sample_weight": [0, 1, 0, 1]}, "class"),
        (Y, SCORES, {"sample_weight": [0, 0, 0, 0]}, "class"),
        (Y, SCORES, {"sample_weight": ["a", "b", "c", "d"]}, "numbers"),
        (Y, np.ones((4, 2)), {}, "one-dimensional"),
        (Y, SCORES, {"pos_label": 7}, "class"),
        (["a", "b", "c", "a"], SCORES, {}, "pos_label"),
        (np.array(["a", 1, "c", "a"], dtype=object), SCORES, {}, "mix"),
    ],
)
def test_bad_rows(name, y, scores, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        call(name, y, scores, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("precision_at_k", {"k": 0}, "at least 1"),
        ("precision_at_k", {"k": 5}, "out of range"),
        ("precision_at_k", {"k": "all"}, "k must be"),
        ("precision_at_k", {"k": True}, "k must be"),
        ("ndcg", {"k": -1}, "at least 1"),
        ("ndcg", {"gain": "cubic"}, "gain"),
        ("hit_rate", {"top": 0}, "top"),
        ("hit_rate", {"top": 1.2}, "top"),
        ("local_auc", {"top": -0.1}, "top"),
        ("local_auc", {"ties": "drop"}, "ties"),
        ("partial_auc", {"fpr": (0.3, 0.1)}, "fpr"),
        ("partial_auc", {"fpr": (0, 1.1)}, "fpr"),
        ("partial_auc", {"fpr": (0.2, 0.2)}, "fpr"),
        ("partial_auc", {"fpr": 0.2}, "pair"),
        ("partial_auc", {"fpr": (0, np.nan)}, "fpr"),
        ("partial_auc", {"standardize": "yes"}, "standardize"),
        ("two_way_partial_auc", {"min_tpr": 1.0}, "min_tpr"),
        ("precision_at_recall", {"recall": 0}, "recall"),
        ("recall_at_precision", {"precision": None}, "precision"),
        ("list_length_for_recall", {"recall": 2}, "recall"),
        ("multiclass_auc", {"kind": "all"}, "kind"),
        ("multiclass_auc", {"fpr": (1, 0)}, "fpr"),
        ("multiclass_precision", {"average": "mean"}, "average"),
    ],
)
def test_bad_parameters(name, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        METRICS[name].function(Y, SCORES, **options)


def test_bad_grades_and_queries() -> None:
    with pytest.raises(ValueError, match=">= 0"):
        metrics.ndcg([0, 1, -2, 1], SCORES)
    with pytest.raises(ValueError, match="too large"):
        metrics.ndcg([0, 1, 2000, 1], SCORES)
    assert metrics.ndcg([0, 1, 2000, 1], SCORES, gain="linear") < 1
    with pytest.raises(ValueError, match="missing"):
        metrics.ndcg(Y, SCORES, qid=[1, np.nan, 2, 2])
    with pytest.raises(ValueError, match="missing"):
        metrics.ndcg(Y, SCORES, qid=["a", None, "b", "b"])
    with pytest.raises(ValueError, match="qid has 3"):
        metrics.ndcg(Y, SCORES, qid=[1, 2, 2])
    with pytest.raises(TypeError, match="qid"):
        metrics.mean_average_precision(Y, SCORES)
    with pytest.raises(ValueError, match="No query"):
        metrics.multiclass_auc([0, 1, 2, 3], SCORES, qid=[1, 2, 3, 4])
    with pytest.raises(ValueError, match="4 classes"):
        metrics.roc_auc([0, 1, 2, 3], SCORES)
    assert metrics.roc_auc([0, 1, 2, 3], SCORES, pos_label=3) == 1.0


def test_labels_away_from_zero() -> None:
    assert metrics.roc_auc([3, 7, 3, 7], SCORES) == 1.0
    assert metrics.roc_auc([2, 1, 2, 1], SCORES) == 0.0
    assert metrics.roc_auc([0.5, 0.25, 0.5, 0.25], SCORES) == 0.0


def test_bad_preferences() -> None:
    with pytest.raises(ValueError, match="-1, 0 or 1"):
        metrics.preference_auc([1, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="No pair"):
        metrics.preference_auc([0, 0], [0.1, 0.2])
    with pytest.raises(ValueError, match="one-dimensional"):
        metrics.preference_auc([1, 1], np.ones((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        metrics.preference_auc([1, 1], [[1, np.nan], [0, 1]])
