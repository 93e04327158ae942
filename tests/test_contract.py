"""What every public ranker promises, checked over the registry."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from contract_settings import DRAWS, GRIDS, small
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import toprank
from toprank import metrics, parallel
from toprank.base import BaseRanker
from toprank.datasets import make_relational
from toprank.registry import (
    ESTIMATORS,
    MEMBERS,
    PEERS,
    RELATIONAL,
    TRANSFORMERS,
    WRAPPERS,
    all_estimators,
    estimator,
)

NAMES = sorted(ESTIMATORS)
every = pytest.mark.parametrize("name", NAMES)
WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


def takes(name: str, argument: str) -> bool:
    return argument in inspect.signature(all_estimators()[name].fit).parameters


def draw_rows(seed: int = 0, n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Rows with few distinct values in each column, so that bins hold them exactly."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1)
    y = (X[:, 0] + 0.7 * X[:, 1] + 0.7 * rng.normal(size=n) > 1.2).astype(int)
    return X, y


def test_none_escapes() -> None:
    found = set()
    for module in pkgutil.walk_packages(toprank.__path__, "toprank."):
        if module.name == "toprank.__main__":
            continue
        for name, cls in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(cls) and issubclass(cls, BaseRanker) and not inspect.isabstract(cls):
                found.add(name)
    public = {name for name in found if not name.startswith("_")}
    known = {*ESTIMATORS, *WRAPPERS, *PEERS, *MEMBERS, "DaskGradientBoostingRanker"}
    assert public - {"BaseRanker"} == known | (set(RELATIONAL) & public)


def expected_failures(model: BaseRanker) -> dict[str, str]:
    reason = DRAWS.get(type(model).__name__)
    return {} if reason is None else dict.fromkeys(WEIGHT_CHECKS, reason)


@pytest.mark.filterwarnings("ignore:all scores are equal")  # one class of next to no weight
@parametrize_with_checks([small(name) for name in NAMES], expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check) -> None:
    check(estimator)


@every
def test_a_weight_is_a_number_of_copies(name: str) -> None:
    if not takes(name, "sample_weight"):
        pytest.skip(f"{name}.fit takes no weights")
    X, y = draw_rows()
    weight = np.random.default_rng(1).integers(0, 3, size=len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    if name in DRAWS:
        X_test, y_test = draw_rows(seed=7, n=2000)
        weighted, repeated = (
            np.mean(
                [
                    model.set_params(random_state=s).fit(*args).score(X_test, y_test)
                    for s in range(5)
                ]
            )
            for model, args in (
                (small(name), (X, y, weight)),
                (small(name), (X[copies], y[copies])),
            )
        )
        assert weighted == pytest.approx(repeated, abs=0.06)
        return
    weighted = small(name).fit(X, y, sample_weight=weight).decision_function(X)
    repeated = small(name).fit(X[copies], y[copies]).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-5, atol=1e-6)


@every
@pytest.mark.parametrize("kind", ["any", "whole"])
def test_weights_times_any_constant_give_the_same_model(name: str, kind: str) -> None:
    """Bit by bit, also where the constant turns whole numbers into others."""
    if not takes(name, "sample_weight"):
        pytest.skip(f"{name}.fit takes no weights")
    X, y = draw_rows()
    random = np.random.default_rng(1)
    weight = random.uniform(0.5, 2.0, len(y)) if kind == "any" else random.integers(0, 4, len(y))
    expected = small(name).fit(X, y, sample_weight=weight).decision_function(X)
    for constant in (1e-3, 7, 1000, 1 / len(y)):
        scaled = small(name).fit(X, y, sample_weight=constant * weight)
        np.testing.assert_array_equal(scaled.decision_function(X), expected, str(constant))


@every
@pytest.mark.parametrize("size", [1 / 240, 7])
def test_equal_weights_of_any_size_are_no_weights(name: str, size: float) -> None:
    if not takes(name, "sample_weight"):
        pytest.skip(f"{name}.fit takes no weights")
    X, y = draw_rows()
    plain = small(name).fit(X, y)
    weighted = small(name).fit(X, y, sample_weight=np.full(len(y), size))
    if name in DRAWS:
        X_test, y_test = draw_rows(seed=7, n=2000)
        assert weighted.score(X_test, y_test) == pytest.approx(
            plain.score(X_test, y_test), abs=0.05
        )
        return
    np.testing.assert_allclose(
        weighted.decision_function(X), plain.decision_function(X), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("setting", ["balanced", {0: 1, 1: 5}, {0: 0.3}])
@pytest.mark.parametrize(
    "name", [name for name in NAMES if "class_weight" in small(name).get_params()]
)
def test_a_class_weight_is_the_same_weight_for_all_rows_of_a_class(name: str, setting: Any) -> None:
    X, y = draw_rows()
    weight = np.random.default_rng(1).integers(0, 3, size=len(y))  # "balanced" counts copies
    of_class = dict(enumerate(weight.sum() / (2 * np.bincount(y, weight))))
    of_class = of_class if setting == "balanced" else {0: 1.0, 1: 1.0} | setting
    expected = small(name).fit(X, y, sample_weight=weight * np.where(y, of_class[1], of_class[0]))
    model = small(name, class_weight=setting).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        model.decision_function(X), expected.decision_function(X), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(ValueError, match="are not in class_weight"):
        small(name, class_weight={"yes": 2}).fit(X, y)


def test_logistic_losses_take_class_weights() -> None:
    taken = {name for name in NAMES if "class_weight" in small(name).get_params()}
    assert taken == {"GradientBoostingRanker", "KernelLogisticRanker", "LogisticRanker"}


@every
def test_a_huge_cell_is_named_by_column_and_row(name: str) -> None:
    X, y = draw_rows()
    X[16, 1] = 1e200
    with pytest.raises(ValueError, match=r"column 'x1' holds 1e\+200 in row 17"):
        small(name).fit(X, y)


@every
def test_rows_of_weight_zero_do_not_count_even_with_wrong_labels(name: str) -> None:
    if not takes(name, "sample_weight"):
        pytest.skip(f"{name}.fit takes no weights")
    X, y = draw_rows(n=400)
    weight = np.ones(len(y))
    weight[::2] = 0
    corrupt = y.copy()
    corrupt[::2] = 1 - corrupt[::2]
    model = small(name).fit(X, corrupt, sample_weight=weight)
    if name in DRAWS:
        X_test, y_test = draw_rows(seed=7, n=2000)
        honest = small(name).fit(X[1::2], y[1::2]).score(X_test, y_test)
        assert model.score(X_test, y_test) == pytest.approx(honest, abs=0.1)
        return
    expected = small(name).fit(X[1::2], y[1::2])
    np.testing.assert_allclose(
        model.decision_function(X), expected.decision_function(X), rtol=1e-5, atol=1e-6
    )


@every
def test_a_seed_fixes_everything(name: str) -> None:
    X, y = draw_rows()
    first = small(name).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(first, small(name).fit(X, y).decision_function(X))


@every
def test_clone_and_pickle(name: str) -> None:
    X, y = draw_rows()
    model = small(name).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), scores)
    np.testing.assert_array_equal(clone(model).fit(X, y).decision_function(X), scores)


@every
def test_tables_of_all_makes_give_the_same_model(name: str) -> None:
    X, y = draw_rows()
    expected = small(name).fit(X, y).decision_function(X)
    frame = pd.DataFrame(X, columns=["amount", "hour", "visits", "select"])
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        model = small(name).fit(table, y)
        assert model.feature_names_in_.tolist() == frame.columns.tolist()
        np.testing.assert_allclose(model.decision_function(table), expected, rtol=1e-9, atol=1e-12)


@every
def test_labels_of_all_kinds_give_the_same_model(name: str) -> None:
    X, y = draw_rows()
    expected = small(name).fit(X, y).decision_function(X)
    kinds = (2 * y - 1, y.astype(bool), y.astype(float), np.where(y == 1, "fraud", "a fair one"))
    for labels in (*kinds, kinds[-1].astype(object)):
        model = small(name).fit(X, labels)
        np.testing.assert_array_equal(model.decision_function(X), expected)
        flagged = model.predict(X)
        assert set(flagged) <= set(labels)
        np.testing.assert_array_equal(flagged == model.classes_[1], expected > 0)


@every
def test_row_order_does_not_matter_and_does_not_leak(name: str) -> None:
    X, y = draw_rows(n=400)
    X_test, y_test = draw_rows(seed=7, n=2000)
    plain = small(name).fit(X, y).score(X_test, y_test)
    shuffled = np.random.default_rng(3).permutation(len(y))
    by_label = np.argsort(-y, kind="stable")
    for order in (shuffled, by_label):
        assert small(name).fit(X[order], y[order]).score(X_test, y_test) == pytest.approx(
            plain, abs=0.08
        )
    noise = np.random.default_rng(4).normal(size=X.shape)
    leaked = small(name).fit(noise[by_label], y[by_label])
    fresh = np.random.default_rng(5).normal(size=X_test.shape)
    assert leaked.score(fresh, y_test) < y_test.mean() + 0.1


@every
def test_it_learns(name: str) -> None:
    X, y = draw_rows(n=500)
    X_test, y_test = draw_rows(seed=7, n=2000)
    model = small(name).fit(X, y)
    assert model.score(X_test, y_test) > 3 * y_test.mean()
    scores = model.decision_function(X_test)
    assert model.score(X_test, y_test) == metrics.average_precision(y_test, scores)


@every
def test_it_flags_about_as_many_rows_as_there_are_positives(name: str) -> None:
    X, y = draw_rows(n=500)
    scores = small(name).fit(X, y).decision_function(X)
    largest_tie = np.unique(scores, return_counts=True)[1].max()
    assert abs((scores > 0).sum() - y.sum()) <= max(largest_tie, 0.2 * y.sum())


@every
def test_missing_values(name: str) -> None:
    X, y = draw_rows()
    X[::7, 1] = np.nan
    if not all_estimators()[name]._accepts_missing:
        with pytest.raises(ValueError, match="NaN"):
            small(name).fit(X, y)
        return
    model = small(name).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.score(X, y) > 2 * y.mean()


@every
def test_categories(name: str) -> None:
    X, y = draw_rows()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["country"] = np.where(y == 1, "NL", np.where(X[:, 2] > 0, "DE", "FR"))
    frame.loc[::9, "country"] = None
    if not all_estimators()[name]._accepts_categories:
        with pytest.raises(ValueError, match=r"country.*OneHotEncoder"):
            small(name).fit(frame, y)
        return
    model = small(name).fit(frame, y)
    assert model.score(frame, y) > 0.8
    unseen = frame.assign(country="ZZ")
    assert np.isfinite(model.decision_function(unseen)).all()
    with pytest.raises(ValueError, match="features|categorical"):
        model.decision_function(X)


@every
def test_sparse_rows_score_as_dense_rows(name: str) -> None:
    X, y = draw_rows()
    X[np.abs(X) < 0.5] = 0
    if not all_estimators()[name]._accepts_sparse:
        with pytest.raises(TypeError, match="[Ss]parse"):
            small(name).fit(sparse.csr_matrix(X), y)
        return
    model = small(name).fit(sparse.csr_matrix(X), y)
    for form in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array):
        np.testing.assert_array_equal(
            model.decision_function(form(X)), model.decision_function(sparse.csr_matrix(X))
        )
    assert model.score(sparse.csr_matrix(X), y) > 2 * y.mean()


BAD = {
    "one class": (lambda X, y: (X, np.ones_like(y)), "class"),
    "missing label": (lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.nan, y)), "NaN"),
    "missing text label": (
        lambda X, y: (X, np.where(np.arange(len(y)) == 3, None, y.astype(str))), "NaN|missing"),
    "infinite cell": (lambda X, y: (np.where(X.max() == X, np.inf, X), y), "inf"),
    "empty": (lambda X, y: (X[:0], y[:0]), "0 sample|minimum of 1"),
    "lengths": (lambda X, y: (X, y[:-1]), "inconsistent|length|samples"),
    "three labels": (lambda X, y: (X, np.arange(len(y)) % 3), "binary"),
    "continuous labels": (lambda X, y: (X, X[:, 0] + 0.123), "Unknown label type"),
}  # fmt: skip


@every
@pytest.mark.parametrize("kind", BAD)
def test_bad_input_gets_a_clear_error(name: str, kind: str) -> None:
    spoil, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        small(name).fit(*spoil(*draw_rows()))


@every
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (lambda y: -np.ones(len(y)), "[Nn]egative"),
        (lambda y: np.ones(3), "shape|length|inconsistent"),
        (lambda y: np.where(y == 1, 0.0, 1.0), "class"),
        (lambda y: np.full(len(y), np.nan), "NaN"),
    ],
)
def test_bad_weights_get_a_clear_error(name: str, weight, message: str) -> None:
    if not takes(name, "sample_weight"):
        pytest.skip(f"{name}.fit takes no weights")
    X, y = draw_rows()
    with pytest.raises(ValueError, match=message):
        small(name).fit(X, y, sample_weight=weight(y))


@every
def test_queries_of_the_wrong_length_get_a_clear_error(name: str) -> None:
    if not takes(name, "qid"):
        pytest.skip(f"{name}.fit takes no queries")
    X, y = draw_rows()
    with pytest.raises(ValueError, match="qid"):
        small(name).fit(X, y, qid=np.zeros(3))


@every
def test_grid_search_in_a_pipeline_with_our_scorers(name: str) -> None:
    X, y = draw_rows()
    model = make_pipeline(FunctionTransformer(), small(name))
    parameter, values = GRIDS[name]
    key = f"{model.steps[-1][0]}__{parameter}"
    search = GridSearchCV(
        model,
        {key: values},
        scoring=metrics.SCORERS["average_precision"],
        cv=2,
        error_score="raise",
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] != scores[1], f"{key} makes no difference"
    assert search.best_params_ == {key: values[int(np.argmax(scores))]}
    assert search.best_score_ == scores.max() > 2 * y.mean()
    refitted = small(name, **{parameter: search.best_params_[key]}).fit(X, y)
    np.testing.assert_array_equal(search.decision_function(X), refitted.decision_function(X))


# -- what n_jobs means ---------------------------------------------------------------------------

THREADED = [name for name in NAMES if "n_jobs" in estimator(name)().get_params()]
with_threads = pytest.mark.parametrize("name", THREADED)


@with_threads
def test_the_model_does_not_depend_on_the_number_of_threads(name: str) -> None:
    X, y = draw_rows(n=400)
    one = small(name, n_jobs=1).fit(X, y).decision_function(X)
    for n_jobs in (2, None, -1):
        np.testing.assert_array_equal(
            small(name, n_jobs=n_jobs).fit(X, y).decision_function(X), one
        )


@with_threads
def test_none_and_minus_one_are_all_cores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw_rows()
    asked: list[int] = []

    def cores() -> int:
        asked.append(1)
        return 2

    monkeypatch.setattr(parallel, "available_cores", cores)
    for n_jobs in (None, -1):
        asked.clear()
        small(name, n_jobs=n_jobs).fit(X, y)
        assert asked, f"n_jobs={n_jobs} was not asked about"
    asked.clear()
    small(name, n_jobs=1).fit(X, y)
    assert not asked, "n_jobs=1 is one thread, whatever the cores"
    with pytest.raises(ValueError, match="n_jobs"):
        small(name, n_jobs=0).fit(X, y)


@with_threads
def test_none_is_one_thread_inside_a_joblib_worker(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = draw_rows()

    def cores() -> int:
        raise AssertionError("a worker among others must not take all cores")

    monkeypatch.setattr(parallel, "available_cores", cores)
    fits = (delayed(small(name, n_jobs=None).fit)(X, y) for _ in range(2))
    Parallel(n_jobs=2, backend="threading")(fits)


# -- rankers of relational data ------------------------------------------------------------------

related = pytest.mark.parametrize("name", sorted(RELATIONAL))


@pytest.fixture(scope="module")
def accounts() -> tuple[toprank.RelationalData, np.ndarray]:
    drawn = make_relational(400, skew=9.0, noise=0.0, random_state=0)
    return toprank.RelationalData.from_dataset(drawn), drawn.y


def relational_ranker(name: str, **parameters: Any) -> Any:
    return estimator(name)(**{"n_estimators": 5, "random_state": 0, **parameters})


@related
def test_a_relational_ranker_learns_and_repeats_itself(name: str, accounts: Any) -> None:
    data, y = accounts
    model = relational_ranker(name).fit(data, y)
    scores = model.decision_function(data)
    assert metrics.average_precision(y, scores) > 2 * np.mean(y)
    again = relational_ranker(name).fit(data, y).decision_function(data)
    np.testing.assert_array_equal(again, scores)
    np.testing.assert_array_equal(clone(model).fit(data, y).decision_function(data), scores)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(data), scores)
    np.testing.assert_array_equal(model.predict(data) == model.classes_[1], scores > 0)
    assert model.score(data, y) == metrics.average_precision(y, scores)


@related
def test_threads_do_not_change_a_relational_ranker(name: str, accounts: Any) -> None:
    data, y = accounts
    one, two = (relational_ranker(name, n_jobs=n_jobs).fit(data, y) for n_jobs in (1, None))
    np.testing.assert_array_equal(one.decision_function(data), two.decision_function(data))


@related
def test_weights_of_a_relational_ranker(name: str, accounts: Any) -> None:
    data, y = accounts
    plain = relational_ranker(name).fit(data, y)
    weighted = relational_ranker(name).fit(data, y, sample_weight=np.full(len(y), 3.0))
    np.testing.assert_allclose(weighted.decision_function(data), plain.decision_function(data))
    with pytest.raises(ValueError, match="class"):
        relational_ranker(name).fit(data, y, sample_weight=np.where(y == 1, 0.0, 1.0))


@related
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: np.ones_like(y), "class"),
        (lambda y: y[:-1], "inconsistent|length|samples|rows"),
        (lambda y: np.where(np.arange(len(y)) == 3, np.nan, y), "NaN"),
        (lambda y: np.arange(len(y)) % 3, "binary"),
    ],
)
def test_a_relational_ranker_refuses_bad_labels(
    name: str, accounts: Any, labels: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        relational_ranker(name).fit(accounts[0], labels(accounts[1]))


# -- rankers around a ranker ---------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_a_wrapper_keeps_the_contract_of_what_it_wraps(name: str) -> None:
    X, y = draw_rows(n=400)
    wrapper = estimator(name)(small("LogisticRanker", C=0.5))
    model = clone(wrapper).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(clone(wrapper).fit(X, y).decision_function(X), scores)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), scores)
    np.testing.assert_array_equal(model.predict(X) == model.classes_[1], scores > 0)
    assert model.score(X, y) == metrics.average_precision(y, scores)
    assert model.get_params()["estimator__C"] == 0.5
    assert model.set_params(estimator__C=2.0).estimator.C == 2.0
    frame = pd.DataFrame(X, columns=["amount", "hour", "visits", "select"])
    np.testing.assert_allclose(clone(wrapper).fit(frame, y).decision_function(frame), scores)
    text = np.where(y == 1, "fraud", "a fair one")
    labelled = clone(wrapper).fit(X, text)
    assert labelled.classes_.tolist() == ["a fair one", "fraud"]
    np.testing.assert_array_equal(labelled.decision_function(X), scores)


@pytest.mark.parametrize("name", sorted(WRAPPERS))
@pytest.mark.parametrize("kind", BAD)
def test_a_wrapper_refuses_bad_input(name: str, kind: str) -> None:
    spoil, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        estimator(name)(small("LogisticRanker")).fit(*spoil(*draw_rows()))


# -- transformers --------------------------------------------------------------------------------


def expected_failures_of_transformers(transformer: Any) -> dict[str, str]:
    if type(transformer).__name__ != "TreePathEmbedding":
        return {}
    checks = ("check_transformer_general", "check_transformer_data_not_an_array")
    return dict.fromkeys(checks, "fit_transform embeds each row by trees that have not seen it")


@parametrize_with_checks(
    [small(name) for name in sorted(TRANSFORMERS)],
    expected_failed_checks=expected_failures_of_transformers,
)
def test_scikit_learn_conventions_of_transformers(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("name", sorted(TRANSFORMERS))
def test_a_transformer_repeats_itself_and_names_its_columns(name: str) -> None:
    X, y = draw_rows()
    model = small(name).fit(X, y)
    out = model.transform(X)
    np.testing.assert_array_equal(_dense(small(name).fit(X, y).transform(X)), _dense(out))
    np.testing.assert_array_equal(
        _dense(pickle.loads(pickle.dumps(model)).transform(X)), _dense(out)
    )
    assert len(set(model.get_feature_names_out())) == out.shape[1]
    frame = pd.DataFrame(X, columns=["amount", "hour", "visits", "select"])
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        fitted = small(name).fit(table, y)
        np.testing.assert_allclose(_dense(fitted.transform(table)), _dense(out), atol=1e-12)
    ranker = make_pipeline(small(name), small("LogisticRanker")).fit(X, y)
    assert ranker.score(X, y) > 2 * y.mean()


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sparse.issparse(matrix) else matrix
