"""The query generator: shapes, grades, and that ranking inside a query can be learnt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score

from toprank.datasets import make_queries


def test_the_shape_of_mq2007():
    X, y, qid = make_queries(1_700, 69_623 / 1_700, random_state=0)
    assert X.shape == (69_623, 46)
    assert len(np.unique(qid)) == 1_700
    shares = np.bincount(y) / len(y)
    assert len(shares) == 3
    assert 0.65 < shares[0] < 0.85
    assert shares[1] > shares[2] > 0.02


@settings(max_examples=25)
@given(
    n_queries=st.integers(1, 30),
    mean=st.floats(1.0, 20.0),
    n_features=st.integers(1, 12),
    levels=st.integers(2, 5),
    seed=st.integers(0, 1000),
)
def test_counts_are_exact(n_queries, mean, n_features, levels, seed):
    X, y, qid = make_queries(
        n_queries, mean, n_features=n_features, levels=levels, random_state=seed
    )
    assert X.shape == (round(n_queries * mean), n_features)
    assert set(np.unique(qid)) == set(range(n_queries))
    assert (np.diff(qid) >= 0).all()
    assert y.min() >= 0
    assert y.max() < levels
    assert np.isfinite(X).all()


def mean_auc(scores, y, qid):
    """AUC inside the queries that have both kinds."""
    found = [roc_auc_score(y[qid == q] > 0, scores[qid == q]) for q in np.unique(qid)
             if 0 < (y[qid == q] > 0).sum() < (qid == q).sum()]  # fmt: skip
    return np.mean(found)


def test_features_rank_inside_a_query_better_than_across():
    X, y, qid = make_queries(300, 30, n_features=20, random_state=1)
    early = qid < 200
    scores = LinearRegression().fit(X[early], y[early]).predict(X)
    inside = mean_auc(scores[~early], y[~early], qid[~early])
    assert 0.7 < inside < 0.95
    assert roc_auc_score(y[~early] > 0, scores[~early]) < inside - 0.03


def test_less_noise_makes_it_easier():
    found = []
    for noise in (0.0, 1.0, 4.0):
        X, y, qid = make_queries(150, 20, n_features=20, noise=noise, random_state=2)
        found.append(mean_auc(LinearRegression().fit(X, y).predict(X), y, qid))
    assert found == sorted(found, reverse=True)


def test_the_seed_fixes_all():
    for one, other in zip(make_queries(random_state=4), make_queries(random_state=4), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "arguments",
    [{"n_queries": 0}, {"rows_per_query": 0.5}, {"n_features": 0}, {"levels": 1}, {"noise": -1}],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        make_queries(**arguments)
