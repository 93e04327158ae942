"""Encodings, features, ensemble selection, intervals and explanations, against naive twins."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit

from toprank.automatic import ensemble
from toprank.automatic.ensemble import (
    LogOdds,
    assess,
    cross_fitted_ensemble,
    greedy_weights,
    select_weights,
    stacking_weights,
    to_log_odds,
    widen,
)
from toprank.automatic.features import (
    ENCODING_FOLDS,
    SMOOTHING,
    SUSPECTS,
    TableFeatures,
    TargetEncoding,
    suspicious_columns,
)
from toprank.automatic.interpretation import TOLD_APART, shapley_table
from toprank.automatic.portfolio import (
    PORTFOLIO,
    choose_configurations,
    fit_configuration,
    sample_rows,
)
from toprank.base import TrainingData
from toprank.columns import Columns
from toprank.metrics import average_precision
from toprank.parsing import read_dates
from toprank.sampling import stratified_folds

# -- shares of positives ------------------------------------------------------------------------------


def test_shares_are_those_of_the_other_parts() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(80, 1)).astype(float)
    X[::9] = np.nan
    y, weight = (rng.random(80) < 0.3).astype(float), rng.integers(1, 4, 80).astype(float)
    encoding, trained = TargetEncoding.fit_transform(X, y, weight, np.array([4]), seed=5)
    part = stratified_folds(y > 0, ENCODING_FOLDS, 5)
    assert set(part) == set(range(ENCODING_FOLDS))

    def share(rows: np.ndarray, cell: float) -> float:
        overall = weight[rows] @ y[rows] / weight[rows].sum()
        same = rows & (np.isnan(X[:, 0]) if np.isnan(cell) else X[:, 0] == cell)
        return (weight[same] @ y[same] + SMOOTHING * overall) / (weight[same].sum() + SMOOTHING)

    for i in range(80):
        assert trained[i, 0] == pytest.approx(share(part != part[i], X[i, 0]))
    for cell in (0.0, 3.0, np.nan):
        expected = share(np.ones(80, dtype=bool), cell)
        assert encoding.transform(np.array([[cell]]))[0, 0] == pytest.approx(expected)


def test_many_categories_have_counts_and_two_stay_codes() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 60, 300), rng.integers(0, 2, 300), rng.normal(size=300)])
    y = (rng.random(300) < 0.2).astype(float)
    encoding, rows = TargetEncoding.fit_transform(X, y, np.ones(300), np.array([60, 2, 0]), 0)
    assert rows.shape == (300, 4)
    np.testing.assert_array_equal(rows[:, 1:3], X[:, 1:])
    np.testing.assert_allclose(np.expm1(rows[:, 3]), [np.sum(X[:, 0] == c) for c in X[:, 0]])
    unseen = encoding.transform(np.array([[np.nan, 0.0, 1.0]]))
    assert unseen[0, 3] == 0


def test_a_name_that_occurs_once_says_nothing_about_its_label() -> None:
    X, y = np.arange(100.0)[:, None], (np.arange(100) % 4 == 0).astype(float)
    _, rows = TargetEncoding.fit_transform(X, y, np.ones(100), np.array([100]), 0)
    means = [rows[y == label, 0].mean() for label in (0, 1)]
    assert means[0] == pytest.approx(means[1], abs=0.01)


# -- features -----------------------------------------------------------------------------------------


def test_parts_of_dates_are_those_of_pandas() -> None:
    moments = pd.Series(pd.date_range("1969-12-30 07:00", periods=400, freq="53h"))
    days = read_dates(moments)
    later = days + np.tile([1.0, 3.5], 200)
    matrix = np.column_stack([days, later])
    features = TableFeatures.of(matrix, Columns(("a", "b"), (None, None), dates=("", "")))
    found = dict(zip(features.columns.names, features.expand(matrix).T, strict=True))
    np.testing.assert_array_equal(found["a: hour"], moments.dt.hour)
    np.testing.assert_array_equal(found["a: day of the week"], moments.dt.day_of_week)
    np.testing.assert_array_equal(found["a: day of the month"], moments.dt.day)
    np.testing.assert_array_equal(found["a: month"], moments.dt.month)
    np.testing.assert_allclose(found["days from a to b"], later - days)
    assert set(features.source) == {0, 1}


def test_columns_that_say_nothing_are_left_out() -> None:
    rng = np.random.default_rng(0)
    number = rng.normal(size=60)
    X = np.column_stack([number, np.full(60, 3.0), number, np.full(60, np.nan), np.arange(60)])
    categories = (None, None, None, None, np.array([f"n{k:02}" for k in range(60)]))
    features = TableFeatures.of(X, Columns(tuple("abcde"), categories))
    assert features.columns.names == ("a",)
    assert [note.split()[0] for note in features.notes] == ["b", "c", "d", "e"]
    assert "copy of a" in features.notes[1]
    with pytest.raises(ValueError, match="nothing to learn from"):
        TableFeatures.of(np.ones((5, 2)), Columns.numeric(2))


def test_a_column_that_numbers_the_rows() -> None:
    rng = np.random.default_rng(0)
    y = (np.arange(400) > 350).astype(float)
    X = np.column_stack([np.arange(1000, 1400), rng.permutation(400), rng.normal(size=400), 5 * y])
    numbering, perfect = suspicious_columns(X, Columns.numeric(4), y)
    assert "column 'x0' numbers the rows" in numbering
    assert "column 'x3' alone nearly decides" in perfect
    wide = np.column_stack([rng.normal(size=(400, 3 * SUSPECTS)), X])
    assert len(suspicious_columns(wide, Columns.numeric(wide.shape[1]), y)) == 2


# -- ensembles ----------------------------------------------------------------------------------------


def precision(y: np.ndarray, scores: np.ndarray, *_: object) -> float:
    return average_precision(y > 0, scores)


def held_out(n: int = 150, seed: int = 0, positives: float = 0.2) -> TrainingData:
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < positives * n).astype(float)
    noise = rng.normal(size=(n, 4))
    return TrainingData(noise + np.outer(y, [1.5, 1.4, 1.0, 0.0]), y, None, None)


def test_greedy_selection_is_the_one_by_hand() -> None:
    rows = held_out()
    bag: list[int] = []
    best: tuple[float, list[int]] = (-1.0, [])
    for _ in range(15):
        tried = [precision(rows.y, rows.X[:, [*bag, m]].sum(axis=1)) for m in range(4)]
        bag.append(int(np.argmax(tried)))
        if max(tried) > best[0] + 1e-12:
            best = (max(tried), list(bag))
    expected = np.bincount(best[1], minlength=4) / len(best[1])
    np.testing.assert_allclose(greedy_weights(rows, precision), expected)
    single = max(precision(rows.y, rows.X[:, m]) for m in range(4))
    assert precision(rows.y, rows.X @ expected) >= single


@pytest.fixture
def _no_stacking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the weights at the centre of the penalty."""
    monkeypatch.setattr(ensemble, "PENALTY", 1e12)


@pytest.mark.usefixtures("_no_stacking")
def test_weights_fall_with_the_standard_errors_behind_the_best() -> None:
    rows = held_out(positives=0.1)
    random = np.random.default_rng(7)
    halves = [ensemble._draw_half(rows.y, random) for _ in range(ensemble.N_HALVES)]
    values = [precision(rows.y, column) for column in rows.X.T]
    best = int(np.argmax(values))
    expected = []
    for m in range(4):
        differences = [
            precision(rows.y[half], rows.X[half, m]) - precision(rows.y[half], rows.X[half, best])
            for half in halves
        ]
        error = max(np.std(differences), 0.01 * (values[best] - rows.y.mean()))
        expected.append(np.exp((values[m] - values[best]) / error))
    expected = np.array(expected) / np.sum(expected)
    expected[expected < ensemble.SMALLEST] = 0
    np.testing.assert_allclose(select_weights(rows, precision, 7), expected / expected.sum())


@pytest.mark.usefixtures("_no_stacking")
def test_what_the_prior_leaves_goes_by_the_scores() -> None:
    rows, prior = held_out(), np.array([0.0, 0.0, 0.4, 0.3])
    by_scores = np.where((plain := select_weights(rows, precision)) > 0, plain, 0.0)
    expected = prior + 0.3 * by_scores
    found = select_weights(rows, precision, prior=prior)
    # weights below SMALLEST are dropped
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.01)


@pytest.mark.parametrize("weighted", [False, True])
def test_stacking_weights_are_those_of_a_general_optimiser(weighted: bool) -> None:
    rng = np.random.default_rng(3)
    rows, centre = held_out(), np.array([0.1, 0.2, 0.3, 0.4])
    sample_weight = rng.integers(1, 4, 150).astype(float) if weighted else None
    rows = TrainingData(rows.X, rows.y, sample_weight, None)
    copies = np.ones(150) if sample_weight is None else sample_weight

    def loss(slopes: np.ndarray, intercept: float) -> float:
        odds = rows.X @ slopes + intercept
        likelihood = np.where(rows.y > 0, log_expit(odds), log_expit(-odds))
        scale = copies / copies[rows.y > 0].mean()
        return float(-scale @ likelihood + ensemble.PENALTY * np.sum((slopes - centre) ** 2))

    by_differences = minimize(
        lambda p: loss(p[:4], p[4]), np.full(5, 0.5), method="SLSQP",
        bounds=[(0, None)] * 4 + [(None, None)], options={"ftol": 1e-12, "maxiter": 1000},
    ).x  # fmt: skip
    found = stacking_weights(rows, centre)
    np.testing.assert_allclose(found, by_differences[:4] / by_differences[:4].sum(), atol=1e-3)
    assert found[3] < centre[3] - 0.1  # it is noise


def test_stacking_leaves_the_centre_where_the_scores_say_nothing() -> None:
    centre = np.array([0.7, 0.3])
    rows = TrainingData(np.zeros((4, 2)), np.array([1.0, 0.0, 0.0, 0.0]), None, None)
    np.testing.assert_allclose(stacking_weights(rows, centre), centre, atol=1e-6)


def test_halves_have_half_of_each_class() -> None:
    y = (np.arange(101) < 3).astype(float)
    half = ensemble._draw_half(y, np.random.default_rng(0))
    assert len(set(half)) == len(half)
    assert [int(np.sum(y[half] == label)) for label in (1, 0)] == [2, 49]


def test_one_model_is_left_where_the_others_are_far_behind() -> None:
    rng = np.random.default_rng(0)
    y = (np.arange(600) < 90).astype(float)
    best = rng.normal(size=600) + 4 * y
    worse = best[:, None] + rng.normal(scale=3, size=(600, 2))  # the same, with more noise
    far = TrainingData(np.insert(worse, 1, best, axis=1), y, None, None)
    far = replace(far, X=to_log_odds(far, far.X)[1])
    assert select_weights(far, precision).tolist() == [0, 1, 0]
    near = TrainingData(rng.normal(size=(600, 3)) + np.outer(y, [2, 2, 2]), y, None, None)
    assert (select_weights(near, precision) > 0).sum() >= 2


@pytest.mark.usefixtures("_no_stacking")
def test_greedy_selection_has_a_say_with_many_positives(monkeypatch: pytest.MonkeyPatch) -> None:
    many = held_out(n=5_000)  # 1,000 positives
    mixed = select_weights(many, precision)
    monkeypatch.setattr(ensemble, "PRIOR_POSITIVES", 1e12)
    plain = select_weights(many, precision)
    monkeypatch.setattr(ensemble, "PRIOR_POSITIVES", 1e-12)
    greedy = select_weights(many, precision)
    assert mixed[3] == plain[3] == greedy[3] == 0  # noise
    np.testing.assert_allclose(mixed, 0.3 / 1.3 * plain + 1 / 1.3 * greedy, atol=0.03)


def test_the_choice_of_weights_is_quick_on_many_rows() -> None:
    calls: list[int] = []

    def counted(y: np.ndarray, scores: np.ndarray, *_: object) -> float:
        calls.append(len(y))
        return precision(y, scores)

    select_weights(held_out(n=60_000), counted)
    assert max(calls) <= 2 * ensemble.MOST_ROWS
    assert sum(calls) < 3e6  # about a second


def test_weights_of_rows_count_in_the_choice() -> None:
    rng = np.random.default_rng(0)
    y = np.tile([1.0, 0.0], 100)
    first = np.arange(200) < 100
    noise = rng.normal(size=(200, 2))
    columns = noise + np.column_stack([3 * y * first, 3 * y * ~first])
    for half, expected in ((first, 0), (~first, 1)):
        weighted = TrainingData(columns, y, np.where(half, 100.0, 1.0), None)
        chosen = select_weights(
            weighted, lambda y, s, w, q: average_precision(y > 0, s, sample_weight=w)
        )
        assert chosen.argmax() == expected


def test_a_part_has_no_say_in_its_own_scores() -> None:
    rows = held_out()
    parts = np.arange(150) % 5
    plain = cross_fitted_ensemble(rows, parts, precision)
    flipped = rows.y.copy()
    flipped[parts == 2] = 1 - flipped[parts == 2]
    other = cross_fitted_ensemble(TrainingData(rows.X, flipped, None, None), parts, precision)
    np.testing.assert_array_equal(plain[parts == 2], other[parts == 2])
    assert not np.array_equal(plain[parts != 2], other[parts != 2])


def test_log_odds_keep_the_order_and_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=4_000)
    y = (rng.random(4_000) < 1 / (1 + np.exp(-truth))).astype(float)
    line = LogOdds.of(y, 7 * truth + 3)
    np.testing.assert_allclose(line(7 * np.array([-1.0, 0.0, 1.0]) + 3), [-1, 0, 1], atol=0.15)
    assert (np.diff(line(np.sort(truth))) >= 0).all()
    assert LogOdds.of(y, -truth).slope == 0  # never falling
    assert LogOdds.of(y, np.ones(4_000)).slope == 0
    assert np.isfinite(line(np.array([1e300, -1e300]))).all()
    scales, columns = to_log_odds(TrainingData(truth[:, None], y, None, None), truth[:5, None])
    np.testing.assert_array_equal(columns[:, 0], scales[0](truth[:5]))


# -- intervals ----------------------------------------------------------------------------------------


def test_intervals_for_a_new_list_cover_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = (np.arange(n) < n // 5).astype(float)
        return y, rng.normal(size=n) + 1.2 * y

    monkeypatch.setattr(ensemble, "MOST", 100)
    inside = []
    for _ in range(40):
        found = assess(*draw(200), n_rows=100)["average_precision"]
        y, scores = draw(100)
        inside.append(found["low"] <= average_precision(y > 0, scores) <= found["high"])
    assert np.mean(inside) > 0.85


@pytest.mark.parametrize("value", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_a_widened_interval_stays_between_0_and_1(value: float) -> None:
    low, high = widen(value, max(value - 0.1, 0), min(value + 0.1, 1), 2.0, 0.02)
    assert 0 <= low <= value <= high <= 1
    assert high - low >= 0.02


def test_what_a_final_model_gains_moves_the_upper_end_alone() -> None:
    plain, moved = (widen(0.3, 0.2, 0.45, 1.5, 0.01, gain) for gain in (0.0, 0.1))
    assert moved[0] == plain[0]
    odds = [high / (1 - high) for _, high in (plain, moved)]
    assert np.log(odds[1] / odds[0]) == pytest.approx(0.1)


# -- explanations -------------------------------------------------------------------------------------


def test_sampled_shapley_values_are_exact_for_two_columns() -> None:
    def score(rows: np.ndarray) -> np.ndarray:
        return rows[:, 0] * rows[:, 1] + rows[:, 0]

    X, usual = np.array([[2.0, 3.0], [1.0, 0.0]]), np.array([1.0, 1.0])
    table = shapley_table(score, X, usual, np.arange(2), ["a", "b"]).to_numpy()
    for row, found in zip(X, table, strict=True):
        exact = np.zeros(2)
        for order in itertools.permutations(range(2)):
            current = usual.copy()
            for j in order:
                before = score(current[None])[0]
                current[j] = row[j]
                exact[j] += (score(current[None])[0] - before) / 2
        np.testing.assert_allclose(found[:2], exact)
        assert found.sum() == pytest.approx(score(row[None])[0])


def test_wide_tables_are_explained_by_the_columns_that_matter() -> None:
    n_columns = TOLD_APART + 50
    X = np.ones((3, n_columns))
    effects = np.zeros(n_columns)
    effects[[7, 149]] = [2.0, -1.0]
    table = shapley_table(
        lambda rows: rows @ effects,
        X,
        np.zeros(n_columns),
        np.arange(n_columns),
        list(range(n_columns)),
    )
    assert table[7].tolist() == [2.0] * 3
    assert table[149].tolist() == [-1.0] * 3
    np.testing.assert_allclose(table.sum(axis=1), 1.0)


# -- the portfolio ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(PORTFOLIO))
def test_every_configuration_fits_numbers_categories_and_missing_cells(name: str) -> None:
    if PORTFOLIO[name].method in ("lightgbm", "catboost"):
        pytest.importorskip(PORTFOLIO[name].method)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(80, 2)), rng.integers(0, 3, 80), rng.integers(0, 55, 80)])
    y = (X[:, 0] + (X[:, 2] == 1) > 0.9).astype(float)
    X[::7, 1] = X[::11, 2] = np.nan
    names = np.array([f"c{k:02}" for k in range(55)])
    columns = Columns(tuple("abcd"), (None, None, names[:3], names))
    fitted = fit_configuration(PORTFOLIO[name], X, y, columns, seed=0)
    scores = fitted.scores(X, columns)
    assert np.isfinite(scores).all()
    assert precision(y, scores) > 1.5 * y.mean()
    assert np.isfinite(fitted.scores(np.full((2, 4), np.nan), columns)).all()


def test_the_choice_of_configurations() -> None:
    with pytest.raises(ValueError, match="unknown configuration 'lineer'"):
        choose_configurations(["lineer"], 10)
    assert "kernel logistic" in choose_configurations(None, 10)
    assert not {"kernel logistic", "prankboost"} & set(choose_configurations(None, 10_000))
    assert not {"prankboost", "rankboost", "ranking forest"} & set(choose_configurations(None, 10))
    # nothing else is left
    assert list(choose_configurations(["prankboost"], 10_000)) == ["prankboost"]


@pytest.mark.parametrize("share", [0.01, 0.4, 0.95])
def test_samples_keep_rare_positives(share: float) -> None:
    y = np.arange(10_000) < share * 10_000
    rows = sample_rows(y, 1_000, 0)
    assert len(rows) == 1_000
    assert (np.diff(rows) > 0).all()
    assert y[rows].sum() == min(y.sum(), max(500, 1_000 - np.sum(~y)))
