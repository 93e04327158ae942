"""Probabilities: right on average where the list is read, bounded honestly, for every ranker."""

from __future__ import annotations

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from contract_settings import small
from naive_shortlisting import design_effect as naive_design_effect
from naive_shortlisting import isotonic
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import toprank
from toprank import CalibratedRanker, GradientBoostingRanker, LogisticRanker, TreeRank
from toprank.registry import ESTIMATORS, all_estimators
from toprank.shortlisting import calibrate, cross_fitted_scores, top_calibration
from toprank.shortlisting.calibration import ProbabilityMap, probability_bounds
from toprank.shortlisting.counts import LEAST_EFFECT, OutOfFoldCounts, design_effect

NAMES = sorted(ESTIMATORS)


def draw_rows(seed: int = 0, n: int = 3000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels and the true probabilities; 9 percent positives."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)), 1)
    truth = expit(2 * X[:, 0] + X[:, 1] - 3.8)
    return X, (rng.random(n) < truth).astype(int), truth


# -- scikit-learn's conventions -------------------------------------------------------------------

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "folds are drawn from the rows as they come",
    "check_sample_weight_equivalence_on_sparse_data": "folds are drawn from the rows as they come",
    "check_classifiers_train": "as every ranker, it flags as many rows as there are positives, not "
    "those with a probability above one half",
}


@parametrize_with_checks(
    [CalibratedRanker(LogisticRanker())], expected_failed_checks=lambda _: EXPECTED
)
def test_scikit_learn_conventions(estimator, check) -> None:
    check(estimator)


def test_clone_pickle_and_a_seed() -> None:
    X, y, _ = draw_rows(n=400)
    model = CalibratedRanker(LogisticRanker(), cv=3).fit(X, y)
    expected = model.predict_proba(X)
    for again in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, y)):
        np.testing.assert_array_equal(again.predict_proba(X), expected)
    assert clone(model).get_params()["estimator__C"] == 1.0


def test_the_default_is_a_booster() -> None:
    X, y, _ = draw_rows(n=400)
    model = CalibratedRanker(cv=2).fit(X, y)
    assert isinstance(model.estimator_, GradientBoostingRanker)


# -- the wrapper ranks as the ranker --------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_ranker_keeps_its_scores_and_gets_probabilities(name: str) -> None:
    X, y, _ = draw_rows(n=400)
    model = CalibratedRanker(small(name), cv=3).fit(X, y)
    alone = small(name).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores, alone.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    order = np.argsort(scores)
    assert (np.diff(probability[order, 1]) >= 0).all()
    low, high = model.probability_interval(X)
    assert ((low <= probability[:, 1]) & (probability[:, 1] <= high)).all()
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert hasattr(model, "explain") == hasattr(alone, "explain")
    assert model.cut(budget=20).n_flagged <= 20


@pytest.mark.parametrize(
    "name",
    ["GradientBoostingRanker", "RankBoost", "TreeRank", "RankingForest", "RankSVM", "RankLS"],
)
def test_probabilities_are_right_in_the_top_of_the_list(name: str) -> None:
    """Mean predicted probability against the rate of positives among the first rows of new data."""
    X_new, y_new, truth = draw_rows(1, 20_000)
    gaps, overall = [], []
    # a calibration has a few hundred positives and errs on its own: by .07 here, from draw to draw
    for seed in (0, *range(2, 9)):
        X, y, _ = draw_rows(seed, 3000)
        model = CalibratedRanker(small(name), cv=4).fit(X, y)
        scores = model.decision_function(X_new)
        probability = model.predict_proba(X_new)[:, 1]
        table = top_calibration(y_new, probability, (200, 500, 1000, 2000), scores=scores)
        gaps.append(table["predicted"] - table["observed"])
        overall.append(probability.mean() - truth.mean())
    # one tree has few leaves: its first 200 rows are a part of a tie
    assert np.abs(np.mean(gaps, axis=0)).max() < (0.1 if name == "TreeRank" else 0.08)
    assert abs(np.mean(overall)) < 0.01


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_the_top_is_not_flattered_on_average(method: str) -> None:
    """Over many draws the predicted rate of the first rows is neither above nor below the true one."""
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(120):
        scores = rng.logistic(size=2000) - 2.5
        truth = expit(scores)
        y = rng.random(2000) < truth
        learnt = ProbabilityMap.learn(OutOfFoldCounts.of(y, scores), method)
        top = np.sort(scores)[-50:]
        gaps.append(learnt(top).mean() - expit(top).mean())
    assert abs(np.mean(gaps)) < 0.01 + 3 * np.std(gaps) / np.sqrt(120)


def test_plain_isotonic_regression_would_flatter_the_very_top() -> None:
    """What the row of doubt is for: a run of positives at the top is not certain to go on."""
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(0)
    plain, ours = [], []
    for _ in range(300):
        scores = 0.5 * rng.logistic(size=1000) - 2.0
        y = rng.random(1000) < expit(scores)
        best = scores.max()
        fitted = IsotonicRegression().fit(scores, y)
        plain.append(fitted.predict([best])[0] - expit(best))
        ours.append(
            ProbabilityMap.learn(OutOfFoldCounts.of(y, scores), "isotonic")(best) - expit(best)
        )
    assert np.mean(plain) > 0.1
    assert abs(np.mean(ours)) < np.mean(plain) / 2


# -- the maps against their naive twins -----------------------------------------------------------


def test_the_isotonic_map_is_the_max_min_formula_with_half_a_row_of_doubt_at_each_end(rng) -> None:
    scores = np.sort(rng.normal(size=60))
    y = (rng.random(60) < expit(2 * scores)).astype(float)
    learnt = ProbabilityMap.learn(OutOfFoldCounts.of(y, scores), "isotonic")
    # the doubting rows share the first and the last score
    values = np.concatenate([[(y[0] + 0.5) / 1.5], y[1:-1], [y[-1] / 1.5]])
    expected = isotonic(values, np.array([1.5, *np.ones(58), 1.5]))
    np.testing.assert_allclose(learnt(scores), expected, atol=1e-9)
    assert 0 < learnt(-99.0) <= learnt(99.0) < 1


def test_the_sigmoid_minimises_the_loss_of_smoothed_labels(rng) -> None:
    scores = 40 * rng.normal(size=300) + 7
    y = (rng.random(300) < expit(scores / 20 - 1)).astype(float)
    learnt = ProbabilityMap.learn(OutOfFoldCounts.of(y, scores), "sigmoid")
    p, n = y.sum(), 300 - y.sum()
    target = np.where(y == 1, (p + 1) / (p + 2), 1 / (n + 2))

    def loss(parameters: np.ndarray) -> float:
        margins = parameters[0] * scores + parameters[1]
        return float(np.sum(np.logaddexp(0, margins) - target * margins))

    best = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-10})
    assert loss(np.array([learnt.slope, learnt.intercept])) <= best.fun + 1e-8


def test_a_ranking_that_is_worse_than_chance_gets_the_rate_of_positives() -> None:
    y = np.array([0, 0, 0, 0, 1, 1])
    for method in ("sigmoid", "isotonic"):
        learnt = ProbabilityMap.learn(OutOfFoldCounts.of(y, np.arange(6.0)[::-1]), method)
        assert np.ptp(learnt(np.array([-9.0, 2.0, 9.0]))) == 0
        assert learnt(0.0) == pytest.approx(1 / 3, abs=0.1)
    tied = ProbabilityMap.learn(OutOfFoldCounts.of(y, np.zeros(6)), "sigmoid")
    assert tied(0.0) == pytest.approx(0.36, abs=0.05)


def test_auto_chooses_by_the_rarer_class(rng) -> None:
    scores = rng.normal(size=1000)
    for n_positives, method in ((99, "sigmoid"), (100, "isotonic")):
        y = np.arange(1000) < n_positives
        assert ProbabilityMap.learn(OutOfFoldCounts.of(y, scores)).method == method
    heavy = np.where(np.arange(1000) < 100, np.where(np.arange(1000) < 5, 100.0, 1.0), 1.0)
    assert ProbabilityMap.learn(OutOfFoldCounts.of(y, scores, heavy)).method == "sigmoid"
    with pytest.raises(ValueError, match="method"):
        ProbabilityMap.learn(OutOfFoldCounts.of(y, scores), "beta")


# -- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [False, True])
def test_probability_bounds_cover(ties: bool) -> None:
    rng = np.random.default_rng(3)
    at = np.array([-4.0, -2.0, 0.0, 1.0, 3.0])
    missed_low, missed_high, widths = np.zeros(5), np.zeros(5), []
    for _ in range(400):
        scores = rng.logistic(size=800) - 1.0
        scores = np.round(scores) if ties else scores
        counts = OutOfFoldCounts.of(rng.random(800) < expit(scores), scores)
        low, high = probability_bounds(counts, at, 0.9)
        missed_low += low > expit(at)
        missed_high += high < expit(at)
        widths.append(high - low)
    assert (missed_low / 400 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)).all()
    assert (missed_high / 400 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)).all()
    assert np.mean(widths) < 0.5


def test_probability_bounds_of_tiny_data_say_nearly_nothing() -> None:
    low, high = probability_bounds(
        OutOfFoldCounts.of(np.array([1, 0]), np.array([1.0, 0.0])), [9.0, -9.0]
    )
    assert low.tolist() == [pytest.approx(0.0127, abs=0.02), 0.0]
    assert high[0] == 1.0
    assert high[1] > 0.9


def test_bounds_of_a_thinned_list_hold_those_of_the_whole(rng) -> None:
    scores = rng.logistic(size=5000)
    counts = OutOfFoldCounts.of(rng.random(5000) < expit(scores), scores)
    at = np.linspace(-5, 5, 50)
    exact, thin = (probability_bounds(s, at, 0.9) for s in (counts, counts.thin(200)))
    np.testing.assert_allclose(thin[0], exact[0], atol=0.1)
    np.testing.assert_allclose(thin[1], exact[1], atol=0.1)


# -- weights, queries, tables, pipelines ----------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_weights_and_queries_where_the_ranker_takes_them(name: str) -> None:
    import inspect

    X, y, _ = draw_rows(n=300)
    takes = inspect.signature(all_estimators()[name].fit).parameters
    weight = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    model = CalibratedRanker(small(name), cv=2)
    if "sample_weight" in takes:
        model.fit(X, np.where(weight == 0, 1 - y, y), sample_weight=weight)
        assert model.staircase_.total == 200
        assert model.staircase_.total_positives == y[weight > 0].sum()
    else:
        with pytest.raises(ValueError, match="sample_weight"):
            model.fit(X, y, sample_weight=weight)
    if "qid" not in takes:
        with pytest.raises(ValueError, match="qid"):
            model.fit(X, y, qid=np.arange(300) // 30)
    else:
        assert model.fit(X, y, qid=np.arange(300) // 30).staircase_.total == 300


def test_grades_are_positives_above_zero() -> None:
    X, y, truth = draw_rows(n=400)
    grades = y + (truth > 0.3) * y
    ranker = small("GradientBoostingRanker", objective="lambda_ndcg")
    model = CalibratedRanker(ranker, cv=2).fit(X, grades, qid=np.arange(400) // 20)
    assert model.staircase_.total_positives == (grades > 0).sum()
    assert model.score(X, grades) > 0.3


def test_tables_with_categories_and_missing_cells() -> None:
    X, y, _ = draw_rows(n=600)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["kind"] = np.where(X[:, 0] > 1, "late", "early")
    frame.loc[::9, "kind"] = None
    labels = np.where(y == 1, "fraud", "a fair one")
    model = CalibratedRanker(small("GradientBoostingRanker"), cv=3).fit(frame, labels)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "kind"]
    assert model.columns_.category_names() == ["kind"]
    assert set(model.predict(frame)) == {"fraud", "a fair one"}
    expected = model.predict_proba(frame)
    np.testing.assert_allclose(model.predict_proba(pl.from_pandas(frame)), expected)


def test_pipelines_sparse_rows_and_plain_classifiers() -> None:
    X, y, _ = draw_rows(n=400)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(day=pd.Timestamp("2024-01-01"))
    frame["kind"] = np.where(X[:, 0] > 1, "late", "early")
    encode = make_column_transformer(
        (StandardScaler(), ["a", "b", "c"]), (OneHotEncoder(handle_unknown="ignore"), ["kind"])
    )
    weight = np.ones(400)
    weight[:100] = 0
    pipeline = make_pipeline(encode, LogisticRanker())
    model = CalibratedRanker(pipeline, cv=3).fit(frame, y, sample_weight=weight)
    assert model.staircase_.total == 300
    assert not hasattr(model, "columns_")
    assert model.score(frame, y) > 0.3
    wide = sparse.csr_matrix(X)
    assert CalibratedRanker(LogisticRanker(), cv=2).fit(wide, y).score(wide, y) > 0.3
    for classifier in (LogisticRegression(), GaussianNB()):
        other = CalibratedRanker(classifier, cv=2).fit(X, y)
        np.testing.assert_array_equal(other.predict(X), classifier.fit(X, y).predict(X))


def test_folds_by_time_leave_the_first_rows_out() -> None:
    X, y, _ = draw_rows(n=600)
    model = CalibratedRanker(LogisticRanker(), cv=TimeSeriesSplit(3)).fit(X, y)
    assert model.staircase_.total == 450
    scores = cross_fitted_scores(LogisticRanker(), X, y, TimeSeriesSplit(3))
    assert np.isnan(scores[:150]).all()


class Recorder(LogisticRanker):
    """Notes what its fits are given beside the rows."""

    seen: ClassVar[list[dict]] = []

    def fit(self, X, y, sample_weight=None, qid=None, *, groups=None, time=None, gap=None):
        self.seen.append({"groups": groups, "time": time, "gap": gap})
        return super().fit(X, y, sample_weight)


def test_groups_and_time_are_handed_to_a_ranker_that_takes_them() -> None:
    X, y, _ = draw_rows(n=600)
    time, groups = np.arange(600) // 2, np.arange(600) // 4
    Recorder.seen.clear()
    model = CalibratedRanker(Recorder(), cv=3).fit(X, y, groups=groups, time=time, gap=5)
    whole, *parts = Recorder.seen
    assert [len(whole[name]) for name in ("groups", "time")] == [600, 600]
    assert [part["time"].max() for part in parts] == [
        70,
        145,
        220,
    ]  # the blocks begin at 75, 150, 225
    assert {known["gap"] for known in Recorder.seen} == {5}
    assert model.staircase_.total == 450
    CalibratedRanker(LogisticRanker(), cv=3).fit(X, y, groups=groups, time=time)  # not to others


def test_blocks_of_time_leave_the_first_rows_out() -> None:
    X, y, _ = draw_rows(n=600)
    when = np.random.default_rng(0).permutation(600)
    scores = cross_fitted_scores(LogisticRanker(), X, y, 3, time=when)
    np.testing.assert_array_equal(np.isnan(scores), when < 150)
    late = when >= 450
    alone = LogisticRanker().fit(X[~late], y[~late]).decision_function(X[late])
    np.testing.assert_allclose(scores[late], alone)
    with pytest.raises(ValueError, match="gap needs time"):
        cross_fitted_scores(LogisticRanker(), X, y, 3, gap=2)


def test_relational_data() -> None:
    rng = np.random.default_rng(0)
    people = [f"p{k}" for k in range(60)]
    age = pd.DataFrame({"who": people, "years": np.arange(60) % 3})
    y = ((np.arange(60) % 3 == 0) & (rng.random(60) < 0.8)).astype(int)
    data = toprank.RelationalData({"age": age}, pd.DataFrame({"person": people}), target="ill")
    ranker = toprank.RelationalRankBoost(n_estimators=3, random_state=0, n_jobs=1)
    model = CalibratedRanker(ranker, cv=2).fit(data, y)
    probability = model.predict_proba(data)[:, 1]
    assert probability[y == 1].mean() > probability[y == 0].mean()
    table = toprank.shortlist(model, data, budget=5, n_reasons=1)
    assert len(table) == 5
    assert "raises the " in table["reasons"].iloc[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CalibratedRanker(LogisticRanker(), method="x"), "method"),
        (lambda: CalibratedRanker(LogisticRanker(), cv=1), "folds"),
        (lambda: CalibratedRanker(TreeRank(), cv=[(np.arange(200), np.arange(5))]), "of one class"),
    ],
)
def test_bad_settings_get_a_clear_error(make, message: str) -> None:
    X, _, _ = draw_rows(n=200)
    y = (np.arange(200) % 20 == 19).astype(int)
    with pytest.raises(ValueError, match=message):
        make().fit(X, y)


def test_one_positive_cannot_be_calibrated() -> None:
    X, _, _ = draw_rows(n=50)
    with pytest.raises(ValueError, match="at least 2 rows of each class"):
        CalibratedRanker(LogisticRanker()).fit(X, (np.arange(50) == 3).astype(int))
    two = CalibratedRanker(LogisticRanker()).fit(X, (np.arange(50) < 2).astype(int))
    assert two.predict_proba(X)[:, 1].max() < 0.9


def test_cuts_of_the_model_are_kept_on_new_rows() -> None:
    X, y, _ = draw_rows(0, 4000)
    X_new, y_new, _ = draw_rows(1, 20_000)
    model = CalibratedRanker(LogisticRanker()).fit(X, y)
    scores = model.decision_function(X_new)
    assert (scores[y_new == 0] > model.cut(fpr=0.02).threshold).mean() < 0.02
    assert y_new[scores > model.cut(precision=0.5).threshold].mean() > 0.5
    narrow, wide = (model.probability_interval(X_new[:50], c) for c in (0.5, 0.99))
    assert (wide[1] - wide[0] >= narrow[1] - narrow[0]).all()
    with pytest.raises(ValueError, match="confidence"):
        model.probability_interval(X_new, 1.0)


def test_top_calibration_counts() -> None:
    y, p = np.array([0, 1, 1, 0, 0]), np.array([0.1, 0.9, 0.5, 0.6, 0.2])
    table = top_calibration(y, p, (1, 3, 50))
    assert table["k"].tolist() == [1, 3]
    np.testing.assert_allclose(table["predicted"], [0.9, 2.0 / 3])
    np.testing.assert_allclose(table["observed"], [1.0, 2 / 3])
    assert table["agrees"].all()
    by_score = top_calibration(y, p, 1, scores=-p)
    assert by_score["observed"].tolist() == [0.0]
    with pytest.raises(ValueError, match="between 0 and 1"):
        top_calibration(y, p + 1)


def test_a_ranker_has_probabilities_once_it_is_calibrated(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = (X[:, 0] + rng.normal(size=800) > 1.5).astype(int)
    ranker = LogisticRanker().fit(X[:400], y[:400])
    assert not hasattr(ranker, "predict_proba")
    with pytest.raises(AttributeError) as error:
        _ = ranker.predict_proba
    assert "toprank.shortlisting.calibrate" in str(error.value.__cause__ or error.value)
    calibrate(ranker, X[400:], y[400:])
    probability = ranker.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert abs(probability[400:, 1].mean() - y[400:].mean()) < 0.02
    toprank.save(ranker, tmp_path / "m.toprank")
    again = toprank.load(tmp_path / "m.toprank")
    np.testing.assert_array_equal(again.predict_proba(X), probability)
    assert not hasattr(ranker.fit(X, y), "predict_proba")


# -- how far the models of the folds differ --------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_design_effect_is_its_definition(shift: float) -> None:
    rng = np.random.default_rng(0)
    positive, folds = rng.random(900) < 0.1, rng.integers(0, 4, 900)
    scores = rng.normal(size=900) + shift * folds
    expected = naive_design_effect(
        scores[~positive], folds[~positive], chi2.isf(0.2, 3), LEAST_EFFECT
    )
    assert design_effect(positive, scores, folds) == pytest.approx(expected)
    assert (expected > LEAST_EFFECT) == (shift > 0)


def test_cross_fitted_bounds_allow_for_models_that_differ() -> None:
    """Also where nothing shows that they do, and where the folds are not known."""
    X, y, _ = draw_rows(n=600)
    fitted = CalibratedRanker(LogisticRanker()).fit(X, y).staircase_
    assert fitted.effective_negatives <= fitted.total_negatives / LEAST_EFFECT * (1 + 1e-12)
    assert design_effect(y > 0, X[:, 0]) == LEAST_EFFECT
