"""What is saved comes back, bit for bit, whole or not at all."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from contract_settings import small
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import toprank
from toprank import metrics, objectives
from toprank.persistence import describe, encoding, files
from toprank.registry import ESTIMATORS, RELATIONAL, TRANSFORMERS, all_estimators, estimator

NAMES = sorted(ESTIMATORS)


def rows(n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, 4)), 1)
    return X, (X[:, 0] + 0.7 * X[:, 1] + 0.7 * rng.normal(size=n) > 1.2).astype(int)


def table(*, missing: bool) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["amount", "hour", 'say "hi"', "é<b>"])
    frame["country"] = np.where(X[:, 0] > 0.8, "NL", np.where(X[:, 2] > 0, "DE", "FR"))
    frame["zone"] = pd.Categorical(np.arange(len(y)) % 5)
    if missing:
        frame.loc[::7, "amount"] = np.nan
        frame.loc[::9, "country"] = None
    return frame, y


def round_trip(model: Any, path: Path, *training: Any) -> Any:
    toprank.save(model, path, *training)
    return toprank.load(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.toprank"


# -- every estimator ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_identical(name: str, path: Path) -> None:
    X, y = rows()
    model = small(name).fit(X, y)
    again = round_trip(model, path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    # JSON has no tuples, so one that became a list would show
    assert repr(again.get_params()) == repr(model.get_params())
    assert set(vars(again)) == set(model.__getstate__())  # without what belongs to training rows


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_identical_on_tables_with_what_the_method_takes(name: str, path: Path) -> None:
    cls = all_estimators()[name]
    frame, y = table(missing=cls._accepts_missing)
    if not cls._accepts_categories:
        frame = frame.drop(columns=["country", "zone"])
    labels = np.where(y == 1, "fraud", "a fair one").astype(object)
    model = small(name).fit(frame, labels)
    again = round_trip(model, path, frame, labels)
    for form in (frame, pl.from_pandas(frame.drop(columns="zone", errors="ignore"))):
        if list(form.columns) == list(frame.columns):
            expected = model.decision_function(form)
            np.testing.assert_array_equal(again.decision_function(form), expected)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.columns_.names == model.columns_.names


@pytest.mark.parametrize("name", [n for n in NAMES if all_estimators()[n]._accepts_sparse])
def test_scores_are_identical_on_sparse_rows(name: str, path: Path) -> None:
    X, y = rows()
    X = sparse.csr_matrix(np.where(np.abs(X) < 0.5, 0, X))
    model = small(name).fit(X, y)
    again = round_trip(model, path, X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("name", sorted(RELATIONAL))
def test_scores_of_relational_data_are_identical(name: str, path: Path) -> None:
    tables = {
        "friends": pd.DataFrame({"a": ["ann", "bob", "dan"], "b": ["bob", "carl", "ann"]}),
        "age": pd.DataFrame({"who": ["ann", "bob", "carl", "dan"], "years": [3, 4, 3, 4]}),
    }
    people = pd.DataFrame({"person": ["ann", "bob", "carl", "dan"]})
    data = toprank.RelationalData(tables, people, target="cancer")
    model = estimator(name)(n_estimators=3, random_state=0, n_jobs=1).fit(data, [1, 0, 0, 1])
    again = round_trip(model, path, data, [1, 0, 0, 1])
    np.testing.assert_array_equal(again.decision_function(data), model.decision_function(data))
    assert again.to_sql() == model.to_sql()
    assert describe(path).schema["predicates"] == ["friends", "age"]


TRANSFORMS = {
    "concat": ("TreePathEmbedding", {"output": "concat", "n_folds": 2, "random_state": 0}),
    "spectral": ("TreePathEmbedding", {"output": "spectral", "n_folds": 2, "random_state": 0}),
    "encoder": ("TableEncoder", {"max_categories": 2}),
}


@pytest.mark.parametrize("variant", TRANSFORMS)
def test_rows_are_transformed_identically(variant: str, path: Path) -> None:
    assert {name for name, _ in TRANSFORMS.values()} == set(TRANSFORMERS)
    name, parameters = TRANSFORMS[variant]
    X, y = table(missing=True) if name == "TableEncoder" else rows()
    model = estimator(name)(**parameters).fit(X, y)
    again = round_trip(model, path)
    difference = again.transform(X) - model.transform(X)
    assert abs(difference).max() == 0
    assert list(again.get_feature_names_out()) == list(model.get_feature_names_out())


SPLITTERS = (
    LogisticRegression(), RidgeClassifier(), LinearSVC(random_state=0), GaussianNB(),
    DecisionTreeClassifier(max_depth=3, random_state=0), ExtraTreeClassifier(max_depth=3),
    RandomForestClassifier(2, max_depth=2), ExtraTreesClassifier(2, max_depth=2), "svm",
)  # fmt: skip


@pytest.mark.parametrize("splitter", SPLITTERS, ids=lambda s: s if s == "svm" else type(s).__name__)
def test_forests_with_other_splitters(splitter: Any, path: Path) -> None:
    frame, y = table(missing=True)
    model = toprank.RankingForest(2, splitter=splitter, max_depth=2, random_state=0).fit(frame, y)
    again = round_trip(model, path)
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))


VARIANTS = {
    "booster with everything": lambda: toprank.GradientBoostingRanker(
        objectives.get("ap_sigmoid", alpha=2.0), n_estimators=6, n_seeds=2, early_stopping_rounds=2,
        random_state=np.random.RandomState(3), eval_metric=metrics.average_precision, n_jobs=1),
    "pruned tree": lambda: toprank.TreeRank(prune=True, random_state=0),
    "kendall": lambda: toprank.RankingForest(3, consensus="kendall", random_state=0),
    "footrule": lambda: toprank.RankingForest(3, consensus="footrule", random_state=0),
    "paths": lambda: toprank.PRankBoost(weak="path", n_estimators=5),
    "splines": lambda: toprank.PAUCBoost(weak="spline", n_estimators=5),
    "kernel": lambda: toprank.RankSVM(kernel="rbf"),
    "kernel least squares": lambda: toprank.RankLS(kernel="poly", random_state=0),
    "embedding": lambda: toprank.PartialAUCRanker(
        embedding=toprank.TreePathEmbedding(n_folds=2), random_state=0),
    "scaled first": lambda: toprank.PartialAUCRanker(embedding=StandardScaler()),
    "pipeline": lambda: make_pipeline(StandardScaler(), PCA(2), toprank.LogisticRanker()),
    "sigmoid": lambda: CalibratedClassifierCV(toprank.LogisticRanker(), cv=2),
    "isotonic": lambda: CalibratedClassifierCV(
        toprank.LogisticRanker(), method="isotonic", cv=2, ensemble=False),
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_other_settings_and_wrappers(variant: str, path: Path) -> None:
    X, y = rows()
    model = VARIANTS[variant]().fit(X, y)
    again = round_trip(model, path, X, y)
    for method in ("decision_function", "predict_proba", "predict"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    assert describe(path).header["probed"]


ENCODERS = {
    "one-hot": lambda: make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["country", "zone"]), remainder="passthrough"),
    "dropped, imputed": lambda: ColumnTransformer([
        ("n", make_pipeline(SimpleImputer(add_indicator=True), RobustScaler()), ["amount", "hour"]),
        ("c", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first")),
         ["country"])]),
    "ordinal": lambda: make_column_transformer(
        (OrdinalEncoder(), ["country", "zone"]), (MinMaxScaler(), slice(0, 4))),
}  # fmt: skip


@pytest.mark.parametrize("encoder", ENCODERS)
def test_pipelines_of_tables(encoder: str, path: Path) -> None:
    frame, y = table(missing=False)
    model = make_pipeline(ENCODERS[encoder](), toprank.RankSVM()).fit(frame, y)
    again = round_trip(model, path, frame, y)
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    kinds = {c["name"]: c["kind"] for c in describe(path).schema["columns"]}
    assert kinds["country"] == "category"
    assert kinds["amount"] == "number"
    assert describe(path).header["probed"]


def test_a_loaded_model_can_learn_again(path: Path) -> None:
    X, y = rows()
    model = toprank.GradientBoostingRanker(n_estimators=10, random_state=0, n_jobs=1).fit(X, y)
    again = round_trip(model, path)
    longer = toprank.GradientBoostingRanker(n_estimators=5, random_state=1, n_jobs=1)
    a, b = (longer.fit(X, y, init_model=start).decision_function(X) for start in (model, again))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(again.fit(X, y).decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).explain(X), model.explain(X))


def test_categories_that_came_later_keep_their_codes(path: Path) -> None:
    frame, y = table(missing=False)
    early = frame["country"].to_numpy() != "DE"
    old = toprank.GradientBoostingRanker(n_estimators=5, random_state=0, n_jobs=1)
    old.fit(frame[early], y[early])
    model = toprank.GradientBoostingRanker(n_estimators=5, random_state=0, n_jobs=1)
    model.fit(frame, y, init_model=old)
    known = model.columns_.categories[model.columns_.names.index("country")].tolist()
    assert known[-1] == "DE"  # appended, so the values are not sorted
    again = round_trip(model, path, frame, y)
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))


@pytest.mark.parametrize("kind", ["estimator", "record", "sklearn"])
def test_every_class_that_a_file_can_name_exists(kind: str) -> None:
    names = encoding.modules_of(kind)
    assert names
    for name in names:
        assert encoding.class_of(kind, name).__name__ == name.rpartition(".")[2]


# -- what the file says -----------------------------------------------------------------------------


def test_schema_and_summary_describe_the_training_rows(path: Path) -> None:
    frame, y = table(missing=True)
    model = toprank.TreeRank().fit(frame, y)
    again = round_trip(model, path, frame, y)
    found = describe(path)
    assert found.class_name == "TreeRank"
    assert found.header["toprank"] == toprank.__version__
    assert found.header["written_with"]["numpy"] == np.__version__
    columns = {column["name"]: column for column in found.schema["columns"]}
    assert columns["country"] == {
        "name": "country", "kind": "category", "categories": ["DE", "FR", "NL"]
    }  # fmt: skip
    assert columns["zone"]["categories"] == [0, 1, 2, 3, 4]
    assert found.schema["classes"] == [0, 1]
    summary = found.summary
    assert summary == again.training_summary_
    assert (summary["n_rows"], summary["n_positives"]) == (len(y), int(y.sum()))
    by_name = {column["name"]: column for column in summary["columns"]}
    assert by_name["amount"]["missing"] == frame["amount"].isna().mean()
    present = np.sort(frame["amount"].dropna().to_numpy())
    assert by_name["amount"]["quantiles"][0] == present[0]
    assert by_name["amount"]["quantiles"][50] == present[int(0.5 * (len(present) - 1))]
    assert by_name["amount"]["quantiles"][100] == present[-1]
    shares = frame["country"].value_counts() / len(frame)
    assert by_name["country"]["shares"] == shares.to_dict()
    scores = np.sort(model.decision_function(frame))
    assert summary["scores"]["quantiles"][100] == scores[-1]


def test_a_summary_stays_when_a_loaded_model_is_saved_again(path: Path) -> None:
    X, y = rows()
    again = round_trip(toprank.LogisticRanker().fit(X, y), path, X, y)
    summary = again.training_summary_
    assert round_trip(again, path).training_summary_ == summary
    assert not hasattr(round_trip(toprank.LogisticRanker().fit(X, y), path), "training_summary_")


def test_many_categories_are_summed_up() -> None:
    y = np.arange(400) % 2
    frame = pd.DataFrame({"id": [f"id{k // 2}" for k in range(400)]})
    with pytest.warns(UserWarning, match="same score"):  # each category has both classes
        model = toprank.TreeRank(max_depth=2).fit(frame, y)
    (column,) = toprank.persistence.summarise(model, frame)["columns"]
    assert len(column["shares"]) == 100
    assert column["others"] == pytest.approx(0.5)


def test_the_file_holds_no_row(path: Path) -> None:
    secret = "SECRET-" + "7" * 12
    frame, y = table(missing=False)
    frame = frame.drop(columns=["zone"])
    frame.index = [f"{secret}{k}" for k in range(len(frame))]
    toprank.save(toprank.GradientBoostingRanker(n_estimators=3).fit(frame, y), path, frame, y)
    assert secret.encode() not in path.read_bytes()


# -- whole or not at all ----------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("step", ["write_archive", "_try_out"])
def test_an_interruption_leaves_the_old_file_or_none(
    step: str, trouble: type[BaseException], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows()
    model = toprank.LogisticRanker().fit(X, y)

    def fail(*_: Any) -> None:
        raise trouble

    monkeypatch.setattr(files, step, fail)
    with pytest.raises(trouble):
        toprank.save(model, path)
    assert os.listdir(path.parent) == []
    path.write_text("old")
    with pytest.raises(trouble):
        toprank.save(model, path)
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == [path.name]


def test_a_file_that_would_not_score_alike_is_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows()
    other = toprank.LogisticRanker(C=1e-4).fit(X, y)
    monkeypatch.setattr(files, "_load", lambda *_: other)
    with pytest.raises(RuntimeError, match="nothing was written"):
        toprank.save(toprank.LogisticRanker().fit(X, y), path, X, y)
    assert os.listdir(path.parent) == []


def test_places_that_cannot_be_written(path: Path) -> None:
    X, y = rows()
    model = toprank.LogisticRanker().fit(X, y)
    with pytest.raises(ValueError, match="folder"):
        toprank.save(model, path / "nowhere" / "model.toprank")
    with pytest.raises(ValueError, match="regular file"):
        toprank.save(model, path.parent)
    with pytest.raises(FileNotFoundError):
        toprank.load(path)


# -- what cannot be saved ---------------------------------------------------------------------------


def test_what_is_not_fitted_is_refused(path: Path) -> None:
    with pytest.raises(NotFittedError):
        toprank.save(toprank.LogisticRanker(), path)


def test_functions_are_refused_with_advice(path: Path) -> None:
    X, y = rows()
    model = toprank.RankBoost(
        n_estimators=2, early_stopping_rounds=1, eval_metric=lambda y, scores, **_: 0.0
    ).fit(X, y)
    with pytest.raises(TypeError, match=r"RankBoost\.eval_metric is a function.*set_params"):
        toprank.save(model, path)
    assert not path.exists()
    assert round_trip(model.set_params(eval_metric=None), path) is not None


def test_unknown_parts_are_refused_by_name(path: Path) -> None:
    X, y = rows()
    model = toprank.TreeRank(splitter=SVC(), max_depth=2).fit(X, y)
    with pytest.raises(TypeError, match=r"TreeRank\.splitter is a sklearn\.svm.*SVC"):
        toprank.save(model, path)

    class Mine(toprank.LogisticRanker):
        pass

    with pytest.raises(TypeError, match="Mine"):
        toprank.save(Mine().fit(X, y), path)


def test_loading_leaves_pickle_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    model = toprank.RankingForest(2, splitter=DecisionTreeClassifier(max_depth=2), random_state=0)
    toprank.save(model.fit(X, y), path, X, y)

    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("pickle was used")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert toprank.load(path).trees_


# -- other formats ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, files.FORMAT - 1, files.FORMAT + 1])
def test_another_format_says_so(number: int, path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hardening"))
    from model_mutations import members_of, sealed

    X, y = rows()
    toprank.save(toprank.LogisticRanker().fit(X, y), path)
    members = members_of(path.read_bytes())
    header = {**json.loads(members["header.json"]), "format": number, "toprank": "9.1.0"}
    path.write_bytes(sealed({**members, "header.json": json.dumps(header).encode()}))
    message = rf"by toprank 9\.1\.0 in format {number}; this toprank reads format {files.FORMAT}: fit it again"
    with pytest.raises(toprank.persistence.ModelFileError, match=message):
        toprank.load(path)
