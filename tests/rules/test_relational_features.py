"""RelationalFeatures: columns equal a prover's aggregates, in pipelines and model files too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from naive_relational import Prover, plain_rows
from relational_worlds import friends
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import toprank
from toprank import LogisticRanker, Mode, RelationalData, RelationalFeatures
from toprank.rules.relational.clause import Variable, variable_name
from toprank.selection import compare_models, fit_model, make_model


def molecules(n: int = 24) -> tuple[RelationalData, np.ndarray, dict[str, pd.DataFrame]]:
    rng = np.random.default_rng(2)
    owner = rng.integers(0, n - 2, 5 * n)  # the last two have no atoms
    ids = np.array([f"m{k}" for k in range(n)])
    atoms = np.array([f"a{k}" for k in range(len(owner))])
    charge = np.round(rng.normal(size=len(owner)), 2)
    charge[3] = np.nan
    ends = rng.integers(0, len(owner), (4 * n, 2))
    tables = {
        "atom": pd.DataFrame(
            {"m": ids[owner], "a": atoms, "kind": rng.choice(["c", "n"], len(owner)), "q": charge}
        ),
        "bond": pd.DataFrame({"a": atoms[ends[:, 0]], "b": atoms[ends[:, 1]]}),
    }
    types = {"t": ["m"], "atom": ["m", "a", "kind", "q"], "bond": ["a", "a"]}
    modes = [Mode("atom", ("+", "-", "#", "-")), Mode("bond", ("+", "-"))]
    data = RelationalData(tables, pd.DataFrame({"m": ids}), target="t", types=types, modes=modes)
    totals = pd.Series(charge).groupby(owner).sum().reindex(range(n)).fillna(0)
    return data, (totals > totals.median()).astype(int).to_numpy(), tables


def test_columns_equal_a_provers_aggregates() -> None:
    data, _, tables = molecules()
    features = RelationalFeatures(("exists", "count", "min", "max", "mean", "sum")).fit(data)
    columns = features.transform(data)
    prover = Prover.of_tables(tables, data.schema.columns)
    head = Variable(variable_name(0))
    expected = np.array(
        [
            [prover.value(aggregate, {head: name}) for aggregate in features.aggregates_]
            for (name,) in plain_rows(data.examples)
        ],
        dtype=float,
    )
    expected[:, features.exists_] = expected[:, features.exists_] > 0
    np.testing.assert_allclose(columns, expected, atol=1e-9)
    names = features.get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == columns.shape[1]
    assert {"count(atom(A,_,_,_))", "exists(atom(A,_,_,_))", "mean(D: atom(A,_,_,D))"} <= set(names)
    assert "count(atom(A,_,c,_))" in names
    assert any("bond(" in name for name in names)  # along two joins
    np.testing.assert_array_equal(
        columns, RelationalFeatures(features.functions).fit_transform(data)
    )


def test_new_examples_and_other_backgrounds_get_the_same_columns() -> None:
    data, _, _ = molecules()
    features = RelationalFeatures().fit(data[:12])
    whole = features.transform(data)
    np.testing.assert_array_equal(features.transform(data[5:9]), whole[5:9])
    table = pd.DataFrame({"m": ["m7", "a stranger", None]})
    new = features.transform(table)
    np.testing.assert_array_equal(new[0], whole[7])
    counts = [k for k, a in enumerate(features.aggregates_) if a.function == "count"]
    assert (new[1:][:, counts] == 0).all()
    assert np.isnan(np.delete(new[1:], counts, axis=1)).all()


def test_rankers_of_tables_learn_from_relations(tmp_path: Path) -> None:
    data, y, _ = molecules()
    model = make_pipeline(
        RelationalFeatures(), toprank.GradientBoostingRanker("logistic", n_estimators=10, n_jobs=1)
    ).fit(data, y)
    scores = model.decision_function(data)
    assert model.score(data, y) > 0.8
    toprank.save(model, tmp_path / "m.toprank", data, y)
    again = toprank.load(tmp_path / "m.toprank")
    np.testing.assert_array_equal(again.decision_function(data), scores)
    features = RelationalFeatures(max_features=5).fit(data)
    toprank.save(features, tmp_path / "f.toprank")
    loaded = toprank.load(tmp_path / "f.toprank")
    np.testing.assert_array_equal(loaded.transform(data), features.transform(data))
    with pytest.raises(ValueError, match="loaded without its background"):
        loaded.transform(data.examples)


def test_bad_input_is_refused() -> None:
    data, _, _ = molecules()
    with pytest.raises(TypeError, match="learns from a RelationalData of examples; got DataFrame"):
        RelationalFeatures().fit(data.examples)
    with pytest.raises(ValueError, match="functions must be some of exists, count"):
        RelationalFeatures(("median",)).fit(data)
    assert clone(RelationalFeatures(max_features=7)).max_features == 7
    strangers = data.with_examples(pd.DataFrame({"m": ["x", "y"]}))
    with pytest.raises(ValueError, match="no aggregate differs between the examples"):
        RelationalFeatures().fit(strangers)


def test_models_are_compared_and_fitted_on_relational_data_by_name() -> None:
    data, y = friends()
    models = {"clauses": None, "linear": None, "yardstick": make_model("linear", relational=True)}
    models["clauses"] = toprank.RelationalPRankBoost(3, random_state=0)
    found = compare_models(data, y, models=models, n_splits=2, n_repeats=1, n_resamples=20)
    assert set(found.models) == {"clauses", "linear", "yardstick"}
    assert not found.failures
    assert make_model("linear", relational=True).steps[0][0] == "facts"
    fitted, _ = fit_model("linear", data, y, folds=None)
    assert isinstance(fitted.steps[-1][1], LogisticRanker)
    with pytest.raises(ValueError, match="clauses learns clauses over several tables"):
        make_model("clauses")


def test_keys_of_several_columns_are_followed_to_the_tables_behind_them() -> None:
    """Each visit has one shop and one day; rain is known by both, an umbrella shop by its street."""
    rng = np.random.default_rng(0)
    visits = pd.DataFrame({
        "visit": [f"v{k}" for k in range(120)],
        "shop": rng.choice([f"s{k}" for k in range(6)], 120),
        "day": rng.choice([f"d{k}" for k in range(9)], 120),
    })  # fmt: skip
    rain = visits[["shop", "day"]].drop_duplicates().sample(frac=0.4, random_state=0)
    streets = pd.DataFrame({"shop": [f"s{k}" for k in range(6)], "street": list("aabbcc")})
    wet = pd.DataFrame({"street": ["a", "c"]})
    tables = {"made": visits, "rain": rain, "lies": streets, "wet": wet}
    types = {
        "good": ["visit"], "made": ["visit", "shop", "day"], "rain": ["shop", "day"],
        "lies": ["shop", "street"], "wet": ["street"],
    }  # fmt: skip
    data = RelationalData(tables, visits[["visit"]], target="good", types=types)
    features = RelationalFeatures()
    columns = features.fit_transform(data)
    names = features.get_feature_names_out().tolist()
    rained = visits.merge(rain.assign(n=1), how="left")["n"].fillna(0)
    np.testing.assert_array_equal(columns[:, names.index("count(made(A,B,C), rain(B,C))")], rained)
    street = visits["shop"].map(streets.set_index("shop")["street"])
    found = columns[:, names.index("count(made(A,B,_), lies(B,D), wet(D))")]
    np.testing.assert_array_equal(found, street.isin(["a", "c"]))
    assert not any(name.count("made(A,") > 1 for name in names)  # the same row twice
    test = data[np.arange(40)]
    np.testing.assert_array_equal(features.transform(test), columns[:40])
