"""Scorers in scikit-learn's searches, with and without queries."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from toprank import metrics
from toprank.metrics import METRICS, SCORERS, get_scorer


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(240, 3))
    y = (X[:, 0] + rng.normal(size=240) > 0.8).astype(int)
    return X, y, np.repeat(np.arange(24), 10)


def test_every_metric_of_scores_has_a_scorer() -> None:
    assert set(SCORERS) == {*METRICS, "preference_auc"}


@pytest.mark.parametrize("name", [n for n, m in METRICS.items() if m.list_core or m.graded])
def test_scorers_drive_a_grid_search(name, rows) -> None:
    X, y, _ = rows
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1]}, scoring=SCORERS[name], cv=3)
    search.fit(X, y)
    sign = 1 if METRICS[name].greater_is_better else -1
    model = LogisticRegression().fit(X, y)
    direct = METRICS[name].function(y, model.decision_function(X))
    assert SCORERS[name](model, X, y) == pytest.approx(sign * direct)
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize("labels", [np.array(["bad", "good"]), np.array([-1, 1])])
def test_probabilities_and_other_labels(labels, rows) -> None:
    X, y, _ = rows
    model = GaussianNB().fit(X, labels[y])
    expected = metrics.average_precision(y, model.predict_proba(X)[:, 1])
    got = SCORERS["average_precision"](model, X, labels[y])
    assert got == pytest.approx(expected)


@pytest.mark.parametrize("name", ["mean_average_precision", "ndcg", "mean_reciprocal_rank"])
def test_queries_come_by_metadata_routing(name, rows) -> None:
    X, y, qid = rows
    y[qid == 3] = 0
    with config_context(enable_metadata_routing=True):
        values = cross_val_score(
            LogisticRegression(),
            X,
            y,
            scoring=SCORERS[name],
            cv=GroupKFold(3),
            params={"groups": qid, "qid": qid},
        )
    expected = []
    for train, test in GroupKFold(3).split(X, y, qid):
        scores = LogisticRegression().fit(X[train], y[train]).decision_function(X[test])
        expected.append(METRICS[name].function(y[test], scores, qid=qid[test]))
    np.testing.assert_allclose(values, expected)


def test_grid_search_with_queries_and_weights(rows, rng) -> None:
    X, y, qid = rows
    weight = rng.integers(1, 3, size=len(y))
    with config_context(enable_metadata_routing=True):
        scorer = get_scorer("precision_at_k", k=3).set_score_request(qid=True, sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=True)
        search = GridSearchCV(model, {"C": [0.1, 10]}, scoring=scorer, cv=GroupKFold(3))
        search.fit(X, y, groups=qid, qid=qid, sample_weight=weight)
        assert 0 < search.best_score_ <= 1


def test_parameters_and_unknown_names(rows) -> None:
    X, y, _ = rows
    model = LogisticRegression().fit(X, y)
    scores = model.decision_function(X)
    got = get_scorer("partial_auc", fpr=(0, 0.05))(model, X, y)
    assert got == pytest.approx(metrics.partial_auc(y, scores, fpr=(0, 0.05)))
    with pytest.raises(ValueError, match="Unknown metric"):
        get_scorer("auc")
    with pytest.raises(TypeError, match="no parameter"):
        get_scorer("roc_auc", k=3)


def test_preferences_of_a_linear_model(rng) -> None:
    """A linear model without intercept scores the difference of two rows."""
    gap = rng.normal(size=(200, 3))
    z = np.where(gap[:, 0] + 0.3 * rng.normal(size=200) > 0, 1, -1)
    model = LogisticRegression(fit_intercept=False).fit(gap, z)
    direct = metrics.preference_auc(z, gap @ model.coef_[0])
    assert SCORERS["preference_auc"](model, gap, z) == pytest.approx(direct)
    assert direct > 0.8
