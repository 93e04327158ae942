"""Curves: their points carry the areas that the metrics give, and they draw."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from toprank import metrics
from toprank.metrics import RankingCurveDisplay, ranking_curve

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def rows(rng):
    y = (rng.random(200) < 0.3).astype(int)
    return y, (rng.normal(size=200) + y).round(1)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def test_the_roc_points_hold_the_area(rows) -> None:
    y, scores = rows
    x, height = ranking_curve("roc", y, scores)
    assert np.trapezoid(height, x) == pytest.approx(metrics.roc_auc(y, scores), abs=1e-12)
    assert (x[0], height[0], x[-1], height[-1]) == (0, 0, 1, 1)


def test_the_recall_precision_points_lie_on_the_hyperbolas(rows) -> None:
    y, scores = rows
    recall, precision = ranking_curve("recall_precision", y, scores, max_points=20_000)
    area = metrics.recall_precision_area(y, scores)
    assert np.trapezoid(precision, recall) == pytest.approx(area, abs=1e-4)
    assert (np.diff(recall) >= 0).all()
    for threshold in np.unique(scores):
        flagged = scores >= threshold
        point = (y[flagged].sum() / y.sum(), y[flagged].mean())
        if y[scores == threshold].any():
            assert np.min(np.hypot(recall - point[0], precision - point[1])) < 1e-9
    assert precision[-1] == pytest.approx(y.mean())


@pytest.mark.parametrize("first", [0, 1])
def test_the_curve_near_the_empty_list(first) -> None:
    _, precision = ranking_curve("recall_precision", [first, 1, 0, 1], [4.0, 3.0, 2.0, 1.0])
    assert precision[0] == first


def test_the_precision_of_every_list_length(rows) -> None:
    y, scores = rows
    length, precision = ranking_curve("list_precision", y, scores)
    assert (length[0], length[-1]) == (1, 200)
    for k in (1, 2, 17, 60, 200):
        value = metrics.precision_at_k(y, scores, k=k)
        nearest = np.argmin(np.abs(length - k))
        assert precision[nearest] == pytest.approx(value, abs=2e-3)
    for k, value in zip(length[::50], precision[::50], strict=True):
        assert value == pytest.approx(metrics.precision_at_k(y, scores, k=float(k)), abs=1e-12)


def test_long_curves_are_thinned(rng) -> None:
    y, scores = rng.random(30_000) < 0.5, rng.normal(size=30_000)
    for kind in ("roc", "recall_precision", "list_precision"):
        x, height = ranking_curve(kind, y, scores, max_points=500)
        assert 300 < len(x) < 1100
        assert len(x) == len(height)
    x, height = ranking_curve("roc", y, scores + y, max_points=500)
    assert np.trapezoid(height, x) == pytest.approx(metrics.roc_auc(y, scores + y), abs=1e-3)


@pytest.mark.parametrize("kind", ["roc", "recall_precision", "list_precision"])
def test_every_kind_draws(kind, rows) -> None:
    y, scores = rows
    display = RankingCurveDisplay.from_predictions(
        y, scores, kind=kind, name="model", plot_chance_level=True, color="black"
    )
    assert display.line_.get_color() == "black"
    assert display.line_.get_label().startswith("model (")
    assert display.ax_.get_xlabel()
    assert display.shade_ is None
    assert display.chance_ is not None
    np.testing.assert_array_equal(display.line_.get_xdata(), display.x)
    display.figure_.canvas.draw()
    again = display.plot(pyplot.subplots()[1])
    assert again.chance_ is None


def test_the_shaded_range(rows) -> None:
    y, scores = rows
    display = RankingCurveDisplay.from_predictions(y, scores, fpr=(0.1, 0.4))
    corners = display.shade_.get_paths()[0].vertices
    assert corners[:, 0].min() == pytest.approx(0.1)
    assert corners[:, 0].max() == pytest.approx(0.4)
    assert "pAUC(0.1, 0.4)" in display.line_.get_label()
    with pytest.raises(ValueError, match="kind='roc'"):
        RankingCurveDisplay.from_predictions(y, scores, kind="recall_precision", fpr=(0, 1))
    with pytest.raises(ValueError, match="kind"):
        RankingCurveDisplay.from_predictions(y, scores, kind="lift")


@pytest.mark.parametrize("model", [LogisticRegression(), GaussianNB()])
def test_from_an_estimator(model, rng) -> None:
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] + rng.normal(size=150) > 0, "sick", "fit")
    model.fit(X, y)
    display = RankingCurveDisplay.from_estimator(model, X, y)
    assert type(model).__name__ in display.line_.get_label()
    area = np.trapezoid(display.y, display.x)
    assert area > 0.6
    other = RankingCurveDisplay.from_estimator(model, X, y, pos_label="fit", name="fit first")
    assert np.trapezoid(other.y, other.x) == pytest.approx(area)
    three = LogisticRegression().fit(X, rng.integers(0, 3, size=150))
    with pytest.raises(ValueError, match="3 classes"):
        RankingCurveDisplay.from_estimator(three, X, y)
