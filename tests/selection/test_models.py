"""Models by name, and the encoder that lets any table through."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import toprank
from toprank.folds import fit_arguments, fit_takes
from toprank.objectives import OBJECTIVES
from toprank.persistence import ModelFileError
from toprank.registry import ESTIMATORS
from toprank.selection import DEFAULT_MODELS, MODELS, YARDSTICK, TableEncoder, make_model
from toprank.selection.models import training_rows


def mixed_table(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(generator.normal(size=(n, 3)), columns=["amount", "hour", "age"])
    y = (frame["amount"] + generator.normal(size=n) > 1).astype(int).to_numpy()
    frame["shop"] = generator.choice(["web", "street", "phone"], n)
    frame["kind"] = pd.Categorical(np.where(y == 1, "a", "b"))
    frame["new"] = generator.random(n) < 0.5
    frame.loc[::7, "hour"] = np.nan
    frame.loc[::9, "shop"] = None
    return frame, y


def test_every_estimator_and_every_objective_has_a_name():
    assert {candidate.estimator for candidate in MODELS.values()} == set(ESTIMATORS)
    boosted = {c.parameters.get("objective") for c in MODELS.values()} - {None}
    assert boosted == set(OBJECTIVES)
    assert set(DEFAULT_MODELS) <= set(MODELS)
    assert MODELS[YARDSTICK].estimator == "TunedLogisticBooster"
    assert all(candidate.summary for candidate in MODELS.values())


QUICK = {
    "TunedLogisticBooster": {"depths": (2,), "learning_rates": (0.3,), "n_estimators": 10},
    "GradientBoostingRanker": {"n_estimators": 10},
    "RankingForest": {"n_estimators": 3},
    "PRankBoost": {"n_estimators": 5},
}
FAMILIES = sorted({c.estimator: name for name, c in reversed(MODELS.items())}.values())


@pytest.mark.parametrize("name", FAMILIES)
def test_any_table_goes_into_any_model(name, tmp_path):
    frame, y = mixed_table()
    model = make_model(name, random_state=1)
    model.set_params(**QUICK.get(MODELS[name].estimator, {}))
    model.fit(frame, y)
    scores = model.decision_function(frame)
    assert toprank.metrics.roc_auc(y, scores) > 0.7
    strange = frame.assign(shop="elsewhere", kind=None, hour=np.nan)
    assert np.isfinite(model.decision_function(strange)).all()
    toprank.save(model, tmp_path / "model.toprank", frame, y)
    again = toprank.load(tmp_path / "model.toprank")
    np.testing.assert_array_equal(again.decision_function(frame), scores)


def test_names_seeds_and_threads():
    model = make_model("ap_sigmoid", random_state=7, n_jobs=2)
    assert (model.random_state, model.n_jobs, model.objective) == (7, 2, "ap_sigmoid")
    assert make_model("ap_sigmoid", n_jobs=-1).n_jobs == -1
    assert type(make_model("RankBoost")).__name__ == "RankBoost"
    assert make_model("ranksvm", random_state=3).named_steps["model"].random_state == 3
    with pytest.raises(ValueError, match="unknown model 'rankbost'; did you mean 'rankboost'"):
        make_model("rankbost")
    with pytest.raises(ValueError, match="Known: ap_sigmoid"):
        make_model("something else entirely")


def test_a_sample_of_rows_keeps_all_positives():
    y = np.arange(60_000) % 50 == 0
    rows = training_rows("greedy_pauc", y, random_state=1)
    assert rows is not None
    assert y[rows].sum() == y.sum()
    assert (~y[rows]).sum() == MODELS["greedy_pauc"].most_negatives == 20_000
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, training_rows("GreedyPAUC", y, random_state=1))
    assert not np.array_equal(rows, training_rows("greedy_pauc", y, random_state=2))
    assert training_rows("greedy_pauc", y[:10_000]) is None
    assert training_rows("ap_sigmoid", y) is None


def test_weights_and_queries_go_to_the_last_step_that_takes_them():
    known = {"sample_weight": np.arange(4), "qid": np.arange(4), "groups": np.arange(4)}

    def taken(name):
        return {*fit_arguments(make_model(name), skip_unknown=True, **known)}

    assert taken("ranksvm") == {"model__sample_weight", "model__qid"}
    assert taken("yardstick") == {"sample_weight", "groups"}
    assert taken("pauc_linear") == {"model__sample_weight"}
    assert taken("poise") == set()  # makes synthetic rows
    assert not fit_takes(make_model("poise"), "sample_weight")
    some = fit_arguments(make_model("ranksvm"), rows=[3, 1], skip_unknown=True, **known, gap=7)
    np.testing.assert_array_equal(some["model__qid"], [3, 1])
    with pytest.raises(ValueError, match="RankSVM takes no groups"):
        fit_arguments(make_model("ranksvm"), **known)


# -- the encoder ----------------------------------------------------------------------------------


@parametrize_with_checks([TableEncoder()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def naive_encoding(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Column by column, with pandas."""
    parts, marks = [], []
    for name in train:
        old, new = train[name], test[name]
        if name in ("shop", "kind"):
            counts = old.value_counts(sort=False).sort_index()
            frequent = counts.sort_values(ascending=False, kind="stable").index
            dummies = [
                (new == v).fillna(False).astype(float).rename(f"{name}={v}") for v in frequent
            ]
            parts.extend(dummies)
            continue
        old, new = old.astype(float), new.astype(float)
        filled = old.fillna(old.median())
        scaled = (new.fillna(old.median()) - filled.mean()) / filled.std(ddof=0)
        parts.append(scaled.clip(-10, 10))
        if old.isna().any():
            marks.append(new.isna().astype(float).rename(f"{name} is missing"))
    return pd.concat(parts + marks, axis=1)


def test_the_encoder_does_what_pandas_does():
    train, y = mixed_table()
    test, _ = mixed_table(seed=1)
    test.loc[0, "amount"] = 1e6
    encoder = TableEncoder().fit(train, y)
    expected = naive_encoding(train, test)
    assert encoder.get_feature_names_out().tolist() == expected.columns.tolist()
    np.testing.assert_allclose(encoder.transform(test), expected.to_numpy(), atol=1e-9)
    sources = [train.columns[j] for j in encoder.source_]
    assert sources == [name.split("=")[0].split(" is")[0] for name in expected.columns]
    for table in (pl.from_pandas(test), pl.from_pandas(test).to_arrow()):
        np.testing.assert_allclose(encoder.transform(table), expected.to_numpy(), atol=1e-9)


def test_columns_that_tell_nothing_do_no_harm():
    frame = pd.DataFrame(
        {"same": [3.0] * 6, "empty": [np.nan] * 6, "none": [None] * 6, "text": ["a"] * 6}
    )
    encoder = TableEncoder().fit(frame)
    assert np.isfinite(encoder.transform(frame)).all()
    assert np.isfinite(encoder.transform(frame.assign(same=np.nan, empty=1.0))).all()


def test_rare_categories_share_the_zero():
    frame = pd.DataFrame({"city": [*"aaabbc", *"defgh"]})
    encoder = TableEncoder(max_categories=2).fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["city=a", "city=b"]
    assert encoder.transform(frame)[5:].sum() == 0


def test_sparse_rows_stay_sparse():
    X = sparse.random(50, 8, density=0.3, random_state=0, format="csr")
    encoder = TableEncoder().fit(X)
    expected = X.toarray() / np.where(X.toarray().std(axis=0) > 0, X.toarray().std(axis=0), 1)
    found = encoder.transform(X)
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-12)
    dense = encoder.transform(X.toarray())
    np.testing.assert_allclose(dense.toarray(), expected, atol=1e-12)


def test_clone_and_pickle():
    frame, _ = mixed_table()
    encoder = clone(TableEncoder(max_categories=2)).fit(frame)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))


@pytest.mark.parametrize("parameters", [{"max_categories": 0}, {"clip": -1.0}])
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        TableEncoder(**parameters).fit([[1.0]])


HARM = {
    "lost categories": lambda e: setattr(e, "kept_", e.kept_[:-1]),
    "a category that is not there": lambda e: setattr(e, "kept_", [k + 90 for k in e.kept_]),
    "no spread": lambda e: setattr(e, "spread_", e.spread_ * 0),
    "other source": lambda e: setattr(e, "source_", e.source_[::-1].copy()),
    "not finite": lambda e: setattr(e, "centre_", e.centre_ * np.nan),
    "short marks": lambda e: setattr(e, "indicated_", e.indicated_[:1]),
    "a limit of nothing": lambda e: setattr(e, "clip", "wide"),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_encoder_is_not_stored_or_opened(harm, tmp_path):
    frame, _ = mixed_table()
    encoder = TableEncoder().fit(frame)
    HARM[harm](encoder)
    with pytest.raises(ModelFileError):
        toprank.save(encoder, tmp_path / "encoder.toprank")
