"""The fourteen points and the Gaussian clouds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import average_precision_score, roc_auc_score

from toprank.datasets import gauss20d, gauss20d_bayes_auc, gauss20d_bayes_score, toy14
from toprank.datasets.generators import GAUSSIANS, GaussianPair

SETS = list(GAUSSIANS)


def test_toy14_has_the_published_figures():
    X, y = toy14()
    assert X.shape == (14, 1)
    for direction, average_precision, auc in ((1, 0.324, 0.485), (-1, 0.294, 0.515)):
        scores = direction * X[:, 0]
        assert average_precision_score(y, scores) == pytest.approx(average_precision, abs=5e-4)
        assert roc_auc_score(y, scores) == pytest.approx(auc, abs=5e-4)


@pytest.mark.parametrize("difficulty", SETS)
def test_half_of_the_rows_are_positive_and_the_seed_fixes_all(difficulty):
    X, y = gauss20d(difficulty, 501, random_state=3)
    again, labels = gauss20d(difficulty, 501, random_state=3)
    assert X.shape == (501, 20)
    assert y.sum() == 250
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert not np.array_equal(X, gauss20d(difficulty, 501, random_state=4)[0])


@pytest.mark.parametrize("difficulty", SETS)
def test_moments_are_the_documented_ones(difficulty):
    pair = GAUSSIANS[difficulty]
    X, y = gauss20d(difficulty, 60_000, random_state=0)
    centre = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    assert np.linalg.norm(centre) == pytest.approx(pair.distance, abs=0.03)
    assert X[y == 1].var(axis=0).mean() == pytest.approx(pair.variance, abs=0.01)
    assert X[y == 0].var(axis=0).mean() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("difficulty", SETS)
def test_the_bayes_score_is_the_log_likelihood_ratio(difficulty):
    pair = GAUSSIANS[difficulty]
    X, _ = gauss20d(difficulty, 50, random_state=1)
    positive = multivariate_normal(pair.centre, pair.variance * np.eye(20))
    negative = multivariate_normal(np.zeros(20), np.eye(20))
    expected = positive.logpdf(X) - negative.logpdf(X)
    np.testing.assert_allclose(gauss20d_bayes_score(X, difficulty), expected, rtol=1e-10)


@pytest.mark.parametrize("difficulty", SETS)
def test_the_bayes_auc_agrees_with_a_large_draw_and_lies_above_the_published_best(difficulty):
    exact = gauss20d_bayes_auc(difficulty)
    X, y = gauss20d(difficulty, 200_000, random_state=5)
    assert roc_auc_score(y, gauss20d_bayes_score(X, difficulty)) == pytest.approx(exact, abs=0.004)
    published = {"easy": 0.776, "medium": 0.760, "hard": 0.582}[difficulty]
    assert published < exact < published + 0.04


def test_the_bayes_auc_integral_agrees_with_a_sum_over_a_grid_in_one_dimension(monkeypatch):
    monkeypatch.setitem(GAUSSIANS, "line", GaussianPair(distance=0.7, variance=0.5, n_features=1))
    grid = np.linspace(-9.0, 9.0, 3001)
    score = 0.5 * (grid**2 - (grid - 0.7) ** 2 / 0.5)
    positive = norm.pdf(grid, 0.7, np.sqrt(0.5))
    negative = norm.pdf(grid)
    above = (score[:, None] > score) + 0.5 * (score[:, None] == score)
    direct = positive @ above @ negative * (grid[1] - grid[0]) ** 2
    assert gauss20d_bayes_auc("line") == pytest.approx(direct, abs=1e-3)


def test_the_centres_come_closer():
    distances = [GAUSSIANS[name].distance for name in ("easy", "medium", "hard")]
    assert distances == sorted(distances, reverse=True)


@pytest.mark.parametrize(("difficulty", "published"), [("easy", 0.742), ("hard", 0.582)])
def test_a_linear_discriminant_comes_near_what_the_paper_prints_for_klr(difficulty, published):
    X_test, y_test = gauss20d(difficulty, 20_000, random_state=99)
    reached = []
    for seed in range(8):
        model = LinearDiscriminantAnalysis().fit(*gauss20d(difficulty, 1000, random_state=seed))
        reached.append(roc_auc_score(y_test, model.decision_function(X_test)))
    assert np.mean(reached) == pytest.approx(published, abs=0.012)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="easy, medium, hard"):
        gauss20d("simple")
    with pytest.raises(ValueError, match="at least 2"):
        gauss20d("easy", 1)
    with pytest.raises(ValueError, match="20 columns"):
        gauss20d_bayes_score(np.zeros((3, 4)))
