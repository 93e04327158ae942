"""Cross-fitting: every row is scored by a model that has not seen it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from toprank import LogisticRanker, TreeRank, choose_cut
from toprank.folds import match_quantiles
from toprank.shortlisting import cross_fitted_scores


def test_cross_fitted_scores_are_those_of_models_that_have_not_seen_the_row(rng) -> None:
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0.8).astype(int)
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    scores = cross_fitted_scores(LogisticRanker(), X, y, folds)
    for train, test in folds:
        expected = LogisticRanker().fit(X[train], y[train]).decision_function(X[test])
        np.testing.assert_array_equal(scores[test], expected)
    assert np.isnan(scores[20:40]).all()


def test_groups_and_queries_stay_together(rng) -> None:
    """A column that names the group tells everything about rows of the same group, and nothing else."""
    n_groups = 40
    groups = np.repeat(np.arange(n_groups), 10)
    label = rng.permutation(np.arange(n_groups) % 2)
    X = np.eye(n_groups)[groups]
    y = label[groups]
    apart = cross_fitted_scores(LogisticRanker(), X, y, groups=groups)
    mixed = cross_fitted_scores(LogisticRanker(), X, y)
    assert choose_cut(y, mixed, budget=200).precision > 0.95
    assert np.ptp(apart) < 0.2 * np.ptp(mixed)


def test_too_few_rows_to_cross_fit() -> None:
    X = np.arange(8.0)[:, None]
    with pytest.raises(ValueError, match="at least 2 rows of each class"):
        cross_fitted_scores(LogisticRanker(), X, [0] * 7 + [1])
    with pytest.raises(ValueError, match="at least 2 folds"):
        cross_fitted_scores(LogisticRanker(), X, [0, 1] * 4, 1)
    with pytest.raises(ValueError, match="one class to train on"):
        cross_fitted_scores(LogisticRanker(), X, [0] * 6 + [1] * 2, [(np.arange(6), [6, 7])])
    with pytest.raises(ValueError, match="cv must be"):
        cross_fitted_scores(LogisticRanker(), X, [0, 1] * 4, "five")
    assert not np.isnan(cross_fitted_scores(LogisticRanker(), X, [0] * 6 + [1] * 2)).any()


def test_scores_are_brought_to_the_scale_of_the_final_model(rng) -> None:
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 1).astype(int)
    final = TreeRank(max_depth=3).fit(X, y)
    deep = cross_fitted_scores(TreeRank(max_depth=6), X, y)
    aligned = cross_fitted_scores(TreeRank(max_depth=6), X, y, final=final)
    assert np.ptp(aligned) < np.ptp(deep) / 2  # scores of a tree grow with 2^depth


def test_any_increasing_map_of_the_scores_is_undone(rng) -> None:
    final = rng.normal(size=50)
    for own in (np.exp(final), 2 * final - 7, final**3):
        np.testing.assert_allclose(match_quantiles(own, own, final), final)
        between = match_quantiles(np.sort(own)[:-1] + np.diff(np.sort(own)) / 2, own, final)
        assert (np.diff(between) >= 0).all()
    far = match_quantiles(np.array([-1e3, 1e3]), 2 * final, final)
    np.testing.assert_allclose(far, [-500, 500])
    np.testing.assert_array_equal(match_quantiles(final, np.zeros(50), np.zeros(50)), final)


def test_scores_of_the_folds_come_to_the_scale_of_the_final_model(rng) -> None:
    """A model whose scores grow with its rows: the final one's are a quarter larger."""
    X = rng.normal(size=(1000, 1))
    y = (X[:, 0] + rng.normal(size=1000) > 1.5).astype(int)
    final = GrowingScale().fit(X, y)
    plain, matched = (cross_fitted_scores(GrowingScale(), X, y, final=f) for f in (None, final))
    np.testing.assert_allclose(plain, 0.8 * X[:, 0])
    np.testing.assert_allclose(matched, X[:, 0], atol=1e-9)


class GrowingScale(ClassifierMixin, BaseEstimator):
    """The score is the first column times the thousands of training rows."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.scale_ = len(X) / 1000
        return self

    def decision_function(self, X):
        return X[:, 0] * self.scale_
