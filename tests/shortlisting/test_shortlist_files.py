"""Calibrated models in files: they come back whole, and lies in them are found."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from calibrated_cases import calibrated, table
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import toprank
from toprank import CalibratedRanker, LogisticRanker
from toprank.persistence import ModelFileError, describe
from toprank.registry import ESTIMATORS
from toprank.shortlisting.calibration import ProbabilityMap
from toprank.shortlisting.counts import OutOfFoldCounts

DAMAGE = Path(__file__).resolve().parents[1] / "hardening"


def rows(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).round(1)
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0.6).astype(int)


def round_trip(model: Any, path: Path, *training: Any) -> Any:
    toprank.save(model, path, *training)
    return toprank.load(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.toprank"


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_ranker_comes_back_with_its_calibration(name: str, path: Path) -> None:
    X, y = table()
    model = calibrated(name)
    again = round_trip(model, path, X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for before, after in zip(
        model.probability_interval(X), again.probability_interval(X), strict=True
    ):
        np.testing.assert_array_equal(after, before)
    for rule in ({"fpr": 0.1}, {"precision": 0.6}, {"budget": 30}, {"cost": (1, 2)}):
        cuts = [asdict(m.cut(**rule, n_resamples=5)) for m in (again, model)]
        np.testing.assert_equal(*cuts)  # the precision of an empty list is NaN
    assert again.training_summary_["n_rows"] == 300
    assert repr(again.get_params()) == repr(model.get_params())


@pytest.mark.parametrize("handle", ["ignore", "error"])
def test_a_pipeline_inside(handle: str, path: Path) -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.where(y == 1, "x", "y"))
    encode = make_column_transformer(
        (StandardScaler(), ["a", "b"]), (OneHotEncoder(handle_unknown=handle), ["kind"])
    )
    model = CalibratedRanker(make_pipeline(encode, LogisticRanker()), cv=2).fit(frame, y)
    again = round_trip(model, path, frame, y)
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert [c["name"] for c in describe(path).schema["columns"]] == ["a", "b", "c", "kind"]
    assert toprank.shortlist(again, frame, budget=3)["reasons"].str.contains("kind").any()


def test_relational_data_inside(path: Path) -> None:
    people = [f"p{k}" for k in range(40)]
    age = pd.DataFrame({"who": people, "years": np.arange(40) % 3})
    y = (np.arange(40) % 3 == 0).astype(int)
    data = toprank.RelationalData({"age": age}, pd.DataFrame({"person": people}), target="ill")
    ranker = toprank.RelationalRankBoost(n_estimators=2, random_state=0, n_jobs=1)
    model = CalibratedRanker(ranker, cv=2).fit(data, y)
    again = round_trip(model, path, data, y)
    np.testing.assert_array_equal(again.predict_proba(data), model.predict_proba(data))


def test_columns_that_differ_are_named(path: Path) -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = round_trip(CalibratedRanker(LogisticRanker(), cv=2).fit(frame, y), path)
    with pytest.raises(ValueError, match="missing 'b'"):
        model.predict_proba(frame.drop(columns="b"))


def test_the_file_stays_small(path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 2))
    y = (X[:, 0] + rng.normal(size=30_000) > 2).astype(int)
    model = round_trip(CalibratedRanker(LogisticRanker(), cv=2).fit(X, y), path)
    assert model.staircase_.n_steps == 10_000
    assert path.stat().st_size < 500_000


# -- lies -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    import sys

    sys.path.insert(0, str(DAMAGE))
    from model_mutations import members_of

    X, y = rows()
    path = tmp_path_factory.mktemp("calibrated") / "model.toprank"
    toprank.save(CalibratedRanker(LogisticRanker(), method="isotonic", cv=2).fit(X, y), path)
    return members_of(path.read_bytes())


def state_of(tree: dict[str, Any]) -> dict[str, Any]:
    return tree["state"]


def swap_ranker(tree: Any) -> None:
    state_of(tree)["estimator_"] = state_of(tree)["staircase_"]


def unfit_ranker(tree: Any) -> None:
    state_of(state_of(tree)["estimator_"]).pop("n_features_in_")


def other_columns(tree: Any) -> None:
    state_of(tree)["n_features_in_"] = 7


def other_classes(tree: Any) -> None:
    state_of(tree)["classes_"] = {"~": "objects", "shape": [2], "items": ["a", "b"]}


def no_calibration(tree: Any) -> None:
    state_of(tree)["calibration_"] = None


def wrong_method(tree: Any) -> None:
    state_of(tree)["calibration_"]["fields"]["method"] = "magic"


def falling(tree: Any) -> None:
    state_of(tree)["calibration_"]["fields"]["slope"] = -1.0


def own_method(tree: Any) -> None:
    state_of(tree)["predict_proba"] = 1


@pytest.mark.parametrize(
    "lie",
    [
        swap_ranker,
        unfit_ranker,
        other_columns,
        other_classes,
        no_calibration,
        wrong_method,
        falling,
        own_method,
    ],
)
def test_lies_about_the_wrapper_are_refused(members, lie, path: Path) -> None:
    from model_mutations import sealed

    tree = json.loads(members["model.json"])
    lie(tree)
    path.write_bytes(sealed({**members, "model.json": json.dumps(tree).encode()}))
    with pytest.raises(ModelFileError) as caught:
        toprank.load(path)
    assert "\n" not in str(caught.value)


def test_random_damage_never_gets_through_as_nonsense(members, path: Path) -> None:
    """Refused, or a model whose probabilities are probabilities and whose cuts can be chosen."""
    from model_mutations import damaged_member, sealed

    X, _ = rows(20)
    dice = random.Random(0)
    opened = 0
    for _ in range(150):
        name = dice.choice(["model.json", "arrays/f8.bin"])
        path.write_bytes(sealed(damaged_member(members, name, dice)))
        try:
            model = toprank.load(path)
        except ModelFileError:
            continue
        opened += 1
        try:
            probability = model.predict_proba(X)[:, 1]
            low, high = model.probability_interval(X)
        except ValueError:
            continue  # scores that overflow, as those of the ranker alone would
        known = ~np.isnan(probability)
        assert ((probability[known] >= 0) & (probability[known] <= 1)).all()
        assert (low[known] <= high[known]).all()
        assert 0 <= model.cut(budget=10).n_flagged <= 10
    assert opened > 0


@pytest.mark.parametrize(
    "change",
    [
        {"tops": np.array([1.0, 2.0])},
        {"tops": np.array([np.nan, 0.0])},
        {"bottoms": np.array([3.0, 0.0])},
        {"positives": np.array([2.0, 1.0])},
        {"negatives": np.array([0.0, 0.0])},
        {"negatives": np.array([-1.0, 1.0])},
        {"positive_squares": np.array([1.0])},
        {"tops": np.array([2, 0])},
    ],
)
def test_damaged_counts_are_refused(change) -> None:
    from toprank.persistence.checks import check_record

    good = OutOfFoldCounts.of(np.array([1, 0]), np.array([2.0, 0.0]))
    check_record("OutOfFoldCounts", good)
    fields = {**vars(good), **change}
    with pytest.raises(ModelFileError):
        check_record("OutOfFoldCounts", OutOfFoldCounts(**fields))


@pytest.mark.parametrize(
    "change",
    [
        {"method": "isotonic", "knots": np.empty(0), "values": np.empty(0)},
        {"knots": np.array([1.0, 0.0])},
        {"values": np.array([0.5, 0.4])},
        {"values": np.array([0.5, 1.4])},
        {"values": np.array([np.nan, 0.4])},
        {"values": np.array([0.5])},
        {"slope": float("nan")},
        {"slope": -1.0},
        {"method": "none"},
    ],
)
def test_damaged_calibrations_are_refused(change) -> None:
    from toprank.persistence.checks import check_record

    good = {"method": "isotonic", "knots": np.array([0.0, 1.0]), "values": np.array([0.1, 0.9])}
    check_record("ProbabilityMap", ProbabilityMap(**good))
    with pytest.raises(ModelFileError):
        check_record("ProbabilityMap", ProbabilityMap(**{**good, **change}))
