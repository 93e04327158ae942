"""The catalogue and the two ways to the data, without a network."""

from __future__ import annotations

import json
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils import Bunch

from toprank.datasets import Dataset, RelationalDataset, describe, load, load_relational
from toprank.datasets.loaders import RECIPES, catalogue


@pytest.fixture
def no_folder(monkeypatch):
    monkeypatch.delenv("TOPRANK_DATA", raising=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TOPRANK_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def openml(monkeypatch, no_folder):
    """Stands in for OpenML: answers with what a test puts in, and remembers what was asked."""
    server = {"answer": None, "asked": []}

    def fetch_openml(**arguments):
        server["asked"].append(arguments)
        if isinstance(server["answer"], Exception):
            raise server["answer"]
        return server["answer"]

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return server


def pima_like(n_rows=768, n_positives=268):
    frame = pd.DataFrame(np.arange(n_rows * 8.0).reshape(n_rows, 8)).add_prefix("f")
    return frame, np.arange(n_rows) < n_positives


# -- the catalogue --------------------------------------------------------------------------------


def test_describe_lists_all_with_their_sizes():
    table = describe()
    assert len(table) == 46
    assert table["task"].value_counts().to_dict() == {"binary": 25, "relational": 17, "queries": 4}
    assert (table["positives"] < table["rows"]).all()
    assert table[["source", "licence", "positive_class"]].ne("").all(axis=None)
    assert table.loc["creditcard_fraud", "openml_id"] == 42175


def test_every_openml_id_has_a_recipe_and_every_recipe_an_id():
    with_id = {name for name, entry in catalogue().items() if entry.openml_id is not None}
    assert with_id == set(RECIPES)


def test_an_unknown_name_is_met_with_near_ones():
    with pytest.raises(ValueError, match="did you mean wdbc"):
        load("wdcb")


# -- from a folder --------------------------------------------------------------------------------


def test_a_file_of_the_folder_comes_first(folder, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", None)
    X, y = pima_like()
    X.assign(target=y.astype(np.int8)).to_parquet(folder / "pima.parquet")
    data = load("pima")
    assert isinstance(data, Dataset)
    pd.testing.assert_frame_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.qid is None
    assert data.extra.shape == (768, 0)
    assert "diabetes" in data.description
    assert load("pima", as_frame=False).X.dtype == np.float64


def test_splits_and_queries_are_not_features(folder):
    entry = catalogue()["letor_mq2008"]
    frame = pd.DataFrame(np.zeros((entry.rows, 46))).add_prefix("f")
    grades = np.where(np.arange(entry.rows) < entry.positives, 2, 0)
    frame = frame.assign(
        qid=np.arange(entry.rows) // 20, relevance=grades, fold_split="train", part=1
    )
    frame.to_parquet(folder / "letor_mq2008.parquet")
    data = load("letor_mq2008")
    assert data.X.shape == (entry.rows, 46)
    assert data.extra.columns.tolist() == ["fold_split", "part"]
    assert data.y.max() == 2
    assert data.qid[20] == 1


def test_a_file_that_is_not_the_data_set_is_refused(folder):
    X, y = pima_like(n_positives=200)
    X.assign(target=y).to_parquet(folder / "pima.parquet")
    with pytest.raises(ValueError, match="200 positives instead of 768, 8 and 268"):
        load("pima")
    X.to_parquet(folder / "pima.parquet")
    with pytest.raises(ValueError, match="no column 'target'"):
        load("pima")
    (folder / "pima.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        load("pima")


def test_relational_data_from_a_folder(folder):
    place = folder / "relational" / "toy_cancer"
    place.mkdir(parents=True)
    examples = pd.DataFrame({"person": list("abcdefghijk"), "target": [1] * 7 + [0] * 4})
    examples.assign(split="train").to_parquet(place / "examples.parquet")
    pd.DataFrame({"person": ["a"]}).to_parquet(place / "smokes.parquet")
    schema = {
        "target_predicate": "cancer",
        "predicates": {"smokes": {"file": "smokes.parquet", "arguments": ["person"]},
                       "friends": {"file": "friends.parquet", "arguments": ["p", "q"]}},
        "examples": {"file": "examples.parquet", "arguments": ["person"]},
    }  # fmt: skip
    (place / "schema.json").write_text(json.dumps(schema))
    with pytest.raises(ValueError, match="friends.parquet is missing"):
        load_relational("toy_cancer")
    pd.DataFrame({"p": ["a"], "q": ["b"]}).to_parquet(place / "friends.parquet")
    data = load("relational/toy_cancer")
    assert isinstance(data, RelationalDataset)
    assert data.examples.columns.tolist() == ["person"]
    assert data.extra.columns.tolist() == ["split"]
    assert data.schema == schema
    assert data.rule is None
    assert set(data.tables) == {"smokes", "friends"}


@pytest.mark.data
@pytest.mark.parametrize("name", list(catalogue()))
def test_the_real_data_is_as_the_catalogue_says(name, data_dir):
    data = load(name)  # refuses files of another size
    assert np.isin(data.y, (0, 1)).all() or data.qid is not None
    if isinstance(data, RelationalDataset):
        for predicate, facts in data.schema["predicates"].items():
            assert set(facts["arguments"]) <= set(data.tables[predicate].columns)
            assert facts["rows"] == len(data.tables[predicate])
    else:
        assert len(data.X) == len(data.y) == len(data.extra)


# -- from OpenML ----------------------------------------------------------------------------------


def test_openml_is_asked_by_id_and_labels_become_0_and_1(openml, tmp_path):
    X, y = pima_like()
    labels = pd.Series(np.where(y, "tested_positive", "tested_negative"), dtype="category")
    openml["answer"] = Bunch(data=X, target=labels, feature_names=list(X.columns))
    data = load("pima", data_home=tmp_path)
    assert openml["asked"][0]["data_id"] == 37
    assert openml["asked"][0]["data_home"] == tmp_path
    np.testing.assert_array_equal(data.y, y)
    assert "OpenML 37" in data.description


def test_openml_is_asked_when_the_folder_lacks_the_file(openml, folder):
    X, y = pima_like()
    openml["answer"] = Bunch(
        data=X, target=np.where(y, "tested_positive", "no"), feature_names=list(X.columns)
    )
    assert load("pima").y.sum() == 268


def test_sparse_tables_and_numeric_labels(openml):
    entry = catalogue()["a9a"]
    X = sparse.eye_array(entry.rows, entry.features, format="csr")
    target = np.where(np.arange(entry.rows) < entry.positives, 1.0, -1.0)
    openml["answer"] = Bunch(data=X, target=target, feature_names=[f"f{k}" for k in range(123)])
    data = load("a9a")
    assert data.X.shape == (entry.rows, entry.features)
    assert data.y.sum() == entry.positives


def test_numeric_targets_are_cut_and_incomplete_rows_left_out(openml):
    X = pd.DataFrame(np.ones((398, 7))).add_prefix("f")
    X.iloc[:6, 3] = np.nan
    mpg = pd.Series(np.where(np.arange(398) < 6 + 209, 22.0, 21.9))
    openml["answer"] = Bunch(data=X, target=mpg, feature_names=list(X.columns))
    data = load("auto_mpg")
    assert len(data.y) == 392
    assert data.y.sum() == 209


def test_classes_and_columns_are_selected(openml):
    counts = {"4": 2747, "2": 283_301, "1": 5}
    target = np.repeat(list(counts), list(counts.values()))
    X = pd.DataFrame(np.zeros((len(target), 54), dtype=np.int8)).add_prefix("f")
    openml["answer"] = Bunch(data=X, target=target, feature_names=list(X.columns))
    data = load("covtype_4_vs_2")
    assert data.X.shape == (286_048, 10)
    assert data.y.sum() == 2747


def test_categories_of_numbers_become_numbers_and_others_text(openml):
    n = 690
    X = pd.DataFrame({f"A{k}": np.arange(n) for k in range(14)})
    X["A0"] = pd.Categorical(np.where(np.arange(n) % 2, "1", "0"))
    X["A1"] = pd.Categorical(np.where(np.arange(n) % 2, "u", "y"))
    X.loc[0, ["A0", "A1"]] = None
    target = pd.Series(np.where(np.arange(n) < 307, "1", "0"), dtype="category")
    openml["answer"] = Bunch(data=X, target=target, feature_names=list(X.columns))
    data = load("australian")
    assert data.X["A0"].tolist()[1:4] == [1.0, 0.0, 1.0]
    assert data.X["A1"].tolist()[1:4] == ["u", "y", "u"]
    assert data.X[["A0", "A1"]].isna().sum().tolist() == [1, 1]


def test_data_that_changed_on_openml_is_refused(openml):
    X, y = pima_like()
    openml["answer"] = Bunch(data=X, target=np.where(y, "yes", "no"), feature_names=[])
    with pytest.raises(ValueError, match=r"has changed.*TOPRANK_DATA"):
        load("pima")


# -- neither --------------------------------------------------------------------------------------


def test_without_a_network_the_error_says_both_ways(openml):
    openml["answer"] = URLError("no route to host")
    with pytest.raises(FileNotFoundError) as caught:
        load("pima")
    message = str(caught.value)
    assert "TOPRANK_DATA" in message
    assert "OpenML (id 37)" in message
    assert "no route to host" in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["w8a", "letor_mq2008", "uwcse"])
def test_where_openml_has_no_copy_the_error_says_the_one_way(openml, name):
    with pytest.raises(FileNotFoundError, match=r"TOPRANK_DATA.*the only way"):
        load(name)
    assert openml["asked"] == []


def test_a_table_is_not_relational_data(no_folder):
    with pytest.raises(ValueError, match=r"use load\('pima'\)"):
        load_relational("pima")
