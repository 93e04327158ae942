"""What a fit takes from the data: settings, the mixture of boosters, random trees."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import toprank
from toprank import GradientBoostingRanker, TunedLogisticBooster, metrics, objectives
from toprank.boosting.base import excess_rates
from toprank.boosting.settings import FOREST_SHARE, LINEAR_SHARE, Settings
from toprank.boosting.training import ROWS_PER_LEAF, best_round, mean_curve, random_trees
from toprank.boosting.xgboost_helpers import predict_margin
from toprank.folds import make_splits
from toprank.objectives import OBJECTIVES


def draw(n: int = 400, seed: int = 0, shift: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > shift).astype(int)
    return X, y


def quick(objective="auto", **parameters) -> GradientBoostingRanker:
    settings = {"n_estimators": 10, "random_trees": 20, "n_jobs": 1, "random_state": 0}
    return GradientBoostingRanker(objective, **{**settings, **parameters})


def test_penalties_and_averaging_follow_the_positives_and_the_rows():
    sizes = [(100, 10), (1_000, 60), (10_000, 300), (50_000, 3_000), (1_000_000, 2_000)]
    found = [Settings.automatic(*size, n_columns=40) for size in sizes]
    for name in ("min_child_weight", "reg_lambda", "learning_rate", "max_leaves"):
        values = [getattr(settings, name) for settings in found]
        assert values == sorted(values)
    assert [settings.n_seeds for settings in found] == [3, 3, 2, 1, 1]
    assert [settings.random_trees > 0 for settings in found] == [True, True, True, False, False]
    assert [settings.linear_share for settings in found] == [LINEAR_SHARE, LINEAR_SHARE, 0, 0, 0]
    both = ("lambda_map", "logistic")
    assert [settings.objectives for settings in found] == [both[:1]] * 3 + [both] * 2


def test_of_few_columns_a_greater_share_is_drawn_where_rows_are_many():
    shares = [
        [Settings.automatic(n_rows, 100, n).colsample_bynode for n in (1, 8, 16, 100)]
        for n_rows in (1_000, 10_000)
    ]
    assert shares == [[0.2] * 4, [0.7, 0.7, 0.5, 0.3]]
    assert Settings.automatic(1_000, 100, 5_001).linear_share == 0
    assert Settings.automatic(10_000, 200, 5, validated=True).linear_share == LINEAR_SHARE
    assert Settings.automatic(20_000, 200, 5, validated=True).linear_share == 0


def test_every_choice_can_be_overridden_and_read():
    X, y = draw()
    given = {"n_estimators": 7, "learning_rate": 0.2, "max_leaves": 4, "min_child_weight": 0.5,
             "reg_lambda": 2.0, "subsample": 0.9, "colsample_bynode": 0.6, "n_seeds": 2,
             "random_trees": 3, "linear_share": 0.1, "max_categories": 9}  # fmt: skip
    model = GradientBoostingRanker(**given, n_jobs=1, random_state=0).fit(X, y)
    assert model.chosen_ == {**given, "objectives": ["lambda_map"]}
    assert [b.num_boosted_rounds() for b in model.boosters_] == [7, 7, 3, X.shape[1]]
    free = quick(n_estimators=None, n_seeds=1, random_trees=0).fit(X, y)
    automatic = Settings.automatic(len(y), y.sum(), X.shape[1])
    assert free.chosen_["reg_lambda"] == automatic.reg_lambda
    assert free.chosen_["n_estimators"] == automatic.n_estimators


def test_what_was_chosen_is_in_the_repr_and_in_the_model_file(tmp_path):
    X, y = draw(120)
    model = quick(n_seeds=1)
    assert "chosen" not in repr(model)
    line = repr(model.fit(X, y)).splitlines()[-1]
    assert line.startswith(
        "# chosen: objectives=['lambda_map'], linear_share=0.25, learning_rate=0.05"
    )
    assert "n_seeds" not in line  # it was given
    toprank.save(model, tmp_path / "m.toprank", X, y)
    again = toprank.load(tmp_path / "m.toprank")
    assert again.training_summary_["chosen"] == again.chosen_ == model.chosen_
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_clean_labels_are_boosted_longer_than_noisy_ones():
    X, y = draw(800, shift=1.0)
    noisy = np.where(np.random.default_rng(1).random(800) < 0.3, 1 - y, y)
    settings = {"random_trees": 0, "n_seeds": 1, "n_jobs": 1, "random_state": 0}
    clean, mixed = (GradientBoostingRanker(**settings).fit(X, labels) for labels in (y, noisy))
    length = [m.chosen_["n_estimators"] * m.chosen_["learning_rate"] for m in (clean, mixed)]
    assert length[0] > 2 * length[1]
    assert clean.n_estimators_ == clean.chosen_["n_estimators"] != 300
    again = GradientBoostingRanker(**settings).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), clean.decision_function(X))


def test_rounds_are_the_best_of_the_mean_validation_curve():
    X, y = draw(900, shift=0.5)
    ranker = GradientBoostingRanker(
        "logistic", learning_rate=0.3, max_leaves=4, min_child_weight=1.0, reg_lambda=1.0,
        subsample=1.0, colsample_bynode=1.0, n_seeds=1, n_jobs=1, random_state=0,
    )  # fmt: skip
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    curves = []
    for split in make_splits(y, n_splits=3, random_state=seed):
        part = clone(ranker).set_params(n_estimators=500, early_stopping_rounds=60)
        rows = split.train, split.test
        (X_train, X_test), (y_train, y_test) = ([a[r] for r in rows] for a in (X, y))
        curves.append(part.fit(X_train, y_train, eval_set=(X_test, y_test)).validation_scores_)
    fitted = ranker.fit(X, y)
    assert fitted.n_estimators_ == best_round(mean_curve(curves))[0]
    assert fitted.chosen_["learning_rate"] == 0.3  # as given


def test_curves_that_end_early_keep_their_last_value_and_are_smoothed():
    np.testing.assert_allclose(mean_curve([[1.0, 3.0], [2.0, 2.0, 5.0]]), [1.5, 2.5, 4.0])
    hill = 1 - (np.arange(100) - 40.0) ** 2 / 1e4
    assert best_round(hill) == (41, pytest.approx(1, abs=1e-3))
    assert best_round(-hill, greater_is_better=False) == (41, pytest.approx(-1, abs=1e-3))
    spike = hill.copy()
    spike[90] = hill.max() + 0.01  # one lucky round
    assert best_round(spike)[0] == 41
    assert best_round(np.array([0.2])) == (1, 0.2)


def test_rounds_are_not_chosen_where_they_are_given_or_positives_are_few():
    X, y = draw(1000)
    few = y * (np.cumsum(y) < 60)
    settings = {"random_trees": 0, "n_seeds": 1, "n_jobs": 1, "random_state": 0}
    assert GradientBoostingRanker(**settings).fit(X, few).n_estimators_ == 300
    assert GradientBoostingRanker(n_estimators=7, **settings).fit(X, y).n_estimators_ == 7
    swapped = quick(n_estimators=None, n_seeds=1).fit(X, (np.arange(1000) > 0).astype(int))
    assert swapped.n_estimators_ == 300  # one negative is no more to choose by
    queries = np.arange(1000) % 20  # too few to make folds of
    assert GradientBoostingRanker(**settings).fit(X, y, qid=queries).n_estimators_ == 300
    many = np.arange(1000) % 500
    chosen = GradientBoostingRanker(**settings).fit(X, y, qid=many)
    assert chosen.n_estimators_ != 300


@pytest.mark.parametrize("name", ["groups", "time"])
def test_what_is_learnt_by_heart_from_groups_or_days_is_not_boosted_for_long(name):
    """Labels depend on the group alone: only validation by others sees that rounds add nothing."""
    generator = np.random.default_rng(0)
    group = np.sort(generator.integers(60, size=1_200))
    y = (generator.random(60) < 0.3).astype(int)[group]
    X = group[:, None] * 37 % 101 + generator.normal(scale=0.1, size=(1_200, 1))
    known = {"groups": [f"shop {g}" for g in group], "time": np.datetime64("2026-01-01") + group}

    def length(**given) -> float:
        chosen = quick(n_estimators=None, random_trees=0).fit(X, y, **given).chosen_
        return chosen["n_estimators"] * chosen["learning_rate"]

    assert length(**{name: known[name]}) < 0.5 * length()


def test_early_stopping_goes_by_groups_and_by_time(monkeypatch):
    X, y = draw()
    seen = []
    held_out = GradientBoostingRanker._validation_split

    def spy(self, data, keys, eval_set, graded):
        split = held_out(self, data, keys, eval_set, graded)
        seen.append((split[0].X[:, 0], split[1].data.X[:, 0]))
        return split

    monkeypatch.setattr(GradientBoostingRanker, "_validation_split", spy)
    X[:, 0] = np.random.default_rng(0).permutation(len(X))  # of which group and moment are read off
    group, model = X[:, 0] // 8, quick(early_stopping_rounds=3, n_estimators=5)
    model.fit(X, y, groups=group)
    train, validation = seen[-1]
    assert not set(train // 8) & set(validation // 8)
    assert len(train) + len(validation) == len(y)
    model.fit(X, y, time=X[:, 0], gap=20)
    train, validation = seen[-1]
    assert train.max() + 20 <= validation.min()
    assert validation.max() == X[:, 0].max()
    assert len(validation) == pytest.approx(0.2 * len(y), abs=2)
    model.fit(X, y, qid=group, time=X[:, 0])
    train, validation = seen[-1]
    assert not set(train // 8) & set(
        validation // 8
    )  # a query that the cut divides is left out of training


def test_groups_and_time_must_fit_the_rows():
    X, y = draw(50)
    for name in ("groups", "time"):
        with pytest.raises(ValueError, match=f"{name} has 3 entries for 50 rows"):
            quick().fit(X, y, **{name: [1, 2, 3]})
    with pytest.raises(ValueError, match="gap needs time"):
        quick().fit(X, y, gap=3)


def test_inner_validation_keeps_a_linear_model_that_does_well_and_drops_one_that_does_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_200, 5))
    straight, bent = X[:, 0] + X[:, 1], np.abs(X[:, 0]) + np.abs(X[:, 1])
    for signal, share in ((straight, LINEAR_SHARE), (bent, 0.0)):
        y = signal + rng.normal(size=1_200) > np.quantile(signal, 0.85)
        assert quick(n_estimators=None, n_seeds=1).fit(X, y).chosen_["linear_share"] == share
        given = quick(n_estimators=None, n_seeds=1, linear_share=0.1).fit(X, y)
        assert given.chosen_["linear_share"] == 0.1


@pytest.fixture
def many(monkeypatch):
    """Let few positives count as many."""
    monkeypatch.setattr("toprank.boosting.settings.MANY_POSITIVES", 1)


def test_the_score_is_the_sum_of_kinds_on_one_scale(many):
    X, y = draw()
    model = quick(n_seeds=2).fit(X, y)
    margins = np.stack([predict_margin(booster, X) for booster in model.boosters_])
    first, second, forest = margins[:2].mean(axis=0), margins[2:4].mean(axis=0), margins[4]
    boosted = (1 - FOREST_SHARE) / 2
    expected = boosted * first / first.std() + boosted * second / second.std()
    expected += FOREST_SHARE * forest / forest.std()
    expected = (1 - LINEAR_SHARE) * expected + LINEAR_SHARE * margins[5] / margins[5].std()
    expected *= first.std()
    np.testing.assert_allclose(model.decision_function(X) + model.offset_, expected, atol=1e-6)
    explained = model.explain(X)
    np.testing.assert_allclose(explained.sum(axis=1), model.decision_function(X), atol=1e-4)
    last = list(model.staged_decision_function(X))[-1]
    np.testing.assert_allclose(last, model.decision_function(X), atol=1e-5)


def test_weights_change_the_scale_of_kinds_as_copies_do(many):
    X, y = draw(200)
    X = X.round(1)
    weight = np.random.default_rng(0).integers(0, 3, size=200)
    copies = np.repeat(np.arange(200), weight)
    settings = {"n_seeds": 1, "subsample": 1.0, "random_trees": 0, "min_child_weight": 1.0}
    weighted = quick(**settings).fit(X, y, weight)
    repeated = quick(**settings).fit(X[copies], y[copies])
    np.testing.assert_allclose(weighted.booster_weights_, repeated.booster_weights_, rtol=1e-3)


def test_queries_and_other_objectives_are_boosted_alone(many):
    X, y = draw()
    model = quick(random_trees=None, n_seeds=2).fit(X, y, qid=np.arange(len(y)) // 20)
    assert (model.chosen_["objectives"], model.chosen_["random_trees"]) == (["lambda_map"], 0)
    assert len(model.boosters_) == 2
    model = quick(objectives.get("pauc", b=0.2), random_trees=None).fit(X, y)
    assert (model.chosen_["objectives"], model.chosen_["random_trees"]) == (["pauc"], 0)
    assert len(model.boosters_) == 3


def test_constraints_hold_for_the_whole_of_the_automatic_mixture():
    X, y = draw()
    grid = np.zeros((50, 5))
    grid[:, 0] = np.linspace(-3, 3, 50)
    falling = -X[:, 0]  # against the constraint
    model = quick(random_trees=None, monotone_constraints=(1, 0, 0, 0, 0))
    model.fit(np.column_stack([falling, X[:, 1:]]), y)
    assert np.diff(model.decision_function(grid)).min() > -1e-9
    assert (model.chosen_["random_trees"], model.chosen_["linear_share"]) == (0, 0)


def test_a_mixture_can_be_continued_and_keeps_its_random_trees(many):
    X, y = draw()
    first = quick(n_seeds=2).fit(X, y)
    more = quick(n_estimators=5).fit(X, y, init_model=first)
    assert [b.num_boosted_rounds() for b in more.boosters_] == [15, 15, 15, 15, 20, 5]
    assert more.boosters_[-2:] == first.boosters_[-2:]
    with pytest.raises(ValueError, match="n_seeds"):
        quick(n_seeds=3).fit(X, y, init_model=first)
    with pytest.raises(ValueError, match="lambda_map and logistic"):
        quick("logistic").fit(X, y, init_model=first)


@pytest.mark.parametrize("n_positives", [1, 2, 3, 5])
def test_few_positives_that_a_column_tells_apart(n_positives):
    rng = np.random.default_rng(n_positives)
    X = rng.normal(size=(2_000, 5))
    y = np.zeros(2_000, dtype=int)
    y[np.argsort(-X[:, 0])[:n_positives]] = 1
    model = quick(random_trees=300, n_estimators=50).fit(X, y)
    assert metrics.average_precision(y, model.decision_function(X)) == 1.0
    for objective in OBJECTIVES:
        model = quick(objective, n_seeds=1).fit(X, y)
        assert np.ptp(model.decision_function(X)) > 0, objective


@pytest.mark.data
def test_the_default_ranks_eight_positives_among_six_thousand_rows(data_dir):
    """Penalties of a usual size leave much of what there is to learn (average precision .6 to .7)."""
    data = toprank.datasets.load("letter_img_z")
    random = np.random.default_rng(0)
    positive, negative = (random.permutation(np.flatnonzero(data.y == k)) for k in (1, 0))
    train = np.concatenate((positive[:8], negative[:6_000]))
    test = np.concatenate((positive[8:], negative[6_000:]))
    model = GradientBoostingRanker(n_jobs=1, random_state=0).fit(data.X.iloc[train], data.y[train])
    assert model.score(data.X.iloc[test], data.y[test]) > 0.75


def test_random_trees_hold_shares_of_positives_of_their_bootstrap_samples():
    X, y = draw(300)
    model = quick()
    data = model._check_training(pd.DataFrame(X), y)
    booster = random_trees(model, data, 12, seed=0)
    share, random = y.mean(), np.random.default_rng(0)
    leaves = booster.trees_to_dataframe()
    for number, tree in leaves[leaves["Feature"] == "Leaf"].groupby("Tree"):
        drawn = random.multinomial(300, np.full(300, 1 / 300))
        at = booster.predict(_matrix(X), pred_leaf=True)[:, number]
        sums = pd.DataFrame({"positives": drawn * y, "rows": drawn}).groupby(at).sum()
        sums = sums[sums["rows"] > 0]
        expected = (sums["positives"] / sums["rows"] - share) / (share * (1 - share)) / 12
        found = tree.set_index("Node")["Gain"].loc[sums.index]
        np.testing.assert_allclose(found, expected, rtol=0.01, atol=1e-3)
        assert (sums["rows"] >= ROWS_PER_LEAF).all()
    # margins are means of shares less the share of all: their mean over the rows is about 0
    assert predict_margin(booster, X).mean() == pytest.approx(0.0, abs=0.3)


def _matrix(X: np.ndarray):
    import xgboost

    return xgboost.DMatrix(X)


def test_random_trees_take_weights_missing_cells_categories_and_sparse_rows():
    from scipy import sparse

    X, y = draw(300)
    weight = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    wrong = np.where(weight == 0, 1 - y, y)
    frame = pd.DataFrame(X).assign(shop=np.where(X[:, 3] > 0, "a", None))
    frame.columns = frame.columns.astype(str)
    frame.iloc[::7, 0] = np.nan
    model = quick(random_trees=60, n_estimators=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = model.fit(frame, wrong, weight).decision_function(frame)
    kept = weight > 0
    assert metrics.average_precision(y[kept], scores[kept]) > 0.8
    assert np.isfinite(model.decision_function(frame.assign(shop="new"))).all()
    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0))
    assert model.fit(rows, y).score(rows, y) > 0.6


# -- categories --------------------------------------------------------------------------------------


def _shops(n_rows: int = 600, n_shops: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of many shops of which the name says nothing; one number tells positives apart."""
    random = np.random.default_rng(0)
    shop = random.integers(n_shops, size=n_rows)
    signal = random.normal(size=n_rows)
    y = (signal + random.normal(size=n_rows) > 2).astype(int)
    return pd.DataFrame({"shop": [f"shop {k}" for k in shop], "signal": signal}), y


def test_columns_of_names_that_say_nothing_do_little_harm() -> None:
    def score(seed: int, columns: slice, max_categories: int) -> float:
        random = np.random.default_rng(seed)
        signal = random.normal(size=800)
        y = (signal + random.normal(size=800) > 1.5).astype(int)
        texts = {f"text {k}": random.integers(60, size=800).astype(str) for k in range(4)}
        X = pd.DataFrame({"signal": signal, **texts}).iloc[:, columns]
        model = GradientBoostingRanker(
            "logistic", n_estimators=60, n_seeds=1, max_categories=max_categories, n_jobs=1,
            random_state=0,
        )  # fmt: skip
        return model.fit(X[:400], y[:400]).score(X[400:], y[400:])

    counted = np.mean([score(seed, slice(None), 30) for seed in range(3)])
    in_subsets = np.mean([score(seed, slice(None), 1_000) for seed in range(3)])
    without = np.mean([score(seed, slice(0, 1), 30) for seed in range(3)])
    assert counted > in_subsets + 0.02
    assert counted > without - 0.03


def test_inner_validation_chooses_between_rates_and_subsets_of_many_categories():
    """Of two columns alone the rate is nothing, their pairs are all: subsets of both can say so."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(40, size=(2, 3_000))
    parity = (first + second) % 2 == 1
    frame = pd.DataFrame({"a": first, "b": second}).astype(str)
    chosen = quick(n_estimators=None, random_trees=0, n_seeds=1)
    chosen.fit(frame, parity & (rng.random(3_000) < 0.4))
    assert chosen.chosen_["max_categories"] == 40
    assert chosen.columns_.is_category.all()
    plain = clone(chosen).fit(frame, rng.random(3_000) < np.where(first < 4, 0.6, 0.05))
    assert plain.chosen_["max_categories"] == 30
    assert not plain.columns_.is_category.any()
    given = clone(chosen).set_params(max_categories=30).fit(frame, parity)
    assert given.chosen_["max_categories"] == 30


def test_counted_categories_survive_a_model_file_and_take_new_names(tmp_path) -> None:
    X, y = _shops()
    model = GradientBoostingRanker(n_estimators=5, random_state=0).fit(X, y)
    assert model.columns_.category_names() == ["shop"]
    toprank.save(model, tmp_path / "shops.toprank")
    loaded = toprank.load(tmp_path / "shops.toprank")
    new = X.assign(shop=["never seen", None, *X["shop"][2:]])
    np.testing.assert_array_equal(loaded.decision_function(new), model.decision_function(new))
    explained = model.explain(new)
    np.testing.assert_allclose(explained.sum(axis=1), model.decision_function(new), atol=1e-5)
    assert explained.columns.tolist() == ["shop", "signal", "(base)"]


def test_an_array_is_refused_where_a_table_had_counted_categories() -> None:
    X, y = _shops()
    model = GradientBoostingRanker(n_estimators=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="categorical columns \\(shop\\)"):
        model.decision_function(np.zeros((3, 2)))


def test_the_tuned_booster_counts_many_categories_too() -> None:
    X, y = _shops()
    model = TunedLogisticBooster(n_candidates=2, n_estimators=5, random_state=0).fit(X, y)
    assert not model.columns_.is_category.any()


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_few_columns(n_columns) -> None:
    X, y = draw(200)
    X = X[:, :n_columns]
    assert np.ptp(quick(n_seeds=1).fit(X, y).decision_function(X)) > 0


def test_rates_of_a_row_are_learnt_without_its_own_label():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, 600).astype(float)
    codes[::50] = np.nan
    positive, weight = rng.random(600) < 0.2, rng.uniform(0.5, 2.0, 600)
    rates, rows = excess_rates(codes, positive, weight, 40)
    share = weight[~np.isnan(codes)] @ positive[~np.isnan(codes)] / weight[~np.isnan(codes)].sum()
    for code in range(40):
        own = codes == code
        found, total = weight[own] @ positive[own], weight[own].sum()
        assert rates[code] == pytest.approx((found - share * total) / (total + 10 * weight.mean()))
    assert np.isnan(rows[::50]).all()
    known = ~np.isnan(rows)
    assert abs(metrics.roc_auc(positive[known], rows[known]) - 0.5) < 0.1  # nothing leaks
    assert metrics.roc_auc(positive[known], rates[codes[known].astype(int)]) > 0.65  # as it would


def test_many_categories_are_given_as_rates_where_they_tell_and_as_counts_where_not():
    rng = np.random.default_rng(0)
    terminal, noise = rng.integers(0, 300, 3000), rng.integers(0, 300, 3000)
    y = (rng.random(3000) < np.where(terminal < 15, 0.6, 0.02)).astype(int)
    frame = pd.DataFrame({"terminal": terminal, "noise": noise, "amount": rng.normal(size=3000)})
    frame = frame.astype({"terminal": str, "noise": str})
    train, test = frame[:2000], frame[2000:]
    model = quick(n_estimators=30).fit(train, y[:2000])
    rates, counts, none = model.columns_.numbers
    assert none is None
    assert rates.min() < 0 < rates.max() < 1
    assert counts.sum() == 2000
    # counts alone would leave it at the share of positives
    assert metrics.average_precision(y[2000:], model.decision_function(test)) > 4 * y.mean()
    unseen = test[:1].assign(terminal="never seen")
    assert np.isfinite(model.decision_function(unseen)).all()
