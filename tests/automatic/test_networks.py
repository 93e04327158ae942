"""The neural networks of an AutoRanker: scikit-learn's, kept as arrays, also in a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.special import expit
from sklearn.neural_network import MLPClassifier

import toprank
from toprank import AutoRanker
from toprank.automatic import networks
from toprank.automatic.networks import NEVER_SURE, Layer, NeuralNetworks
from toprank.persistence import ModelFileError


def rows(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0.6).astype(float)


@pytest.fixture(autouse=True)
def _few_epochs() -> Any:
    with mock.patch.object(networks, "EPOCHS", 5):
        yield


def test_the_chance_is_the_mean_of_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    fitted: list[MLPClassifier] = []
    fit = MLPClassifier.fit

    def keep(self: MLPClassifier, *arguments: Any) -> MLPClassifier:
        fitted.append(self)
        return fit(self, *arguments)

    monkeypatch.setattr(MLPClassifier, "fit", keep)
    model = NeuralNetworks.of(X, y)
    assert [network.n_iter_ for network in fitted] == [5] * 4  # no early end
    chances = np.mean([network.predict_proba(X)[:, 1] for network in fitted], axis=0)
    expected = NEVER_SURE + (1 - 2 * NEVER_SURE) * chances
    np.testing.assert_allclose(expit(model.decision_function(X)), expected, rtol=1e-12)


def test_more_rows_have_fewer_networks() -> None:
    X, y = rows(3_000)
    assert [len(NeuralNetworks.of(X[:n], y[:n]).networks) for n in (2_999, 3_000)] == [4, 2]


def test_weights_count() -> None:
    X, y = rows()
    weight = np.where(X[:, 2] > 0, 1.0, 1e-6)
    heavy, light = X[:, 2] > 0.5, X[:, 2] < -0.5
    flipped = np.where(light, 1 - y, y)
    with mock.patch.object(networks, "EPOCHS", 40):
        scores = NeuralNetworks.of(X, flipped, weight).decision_function(X)
    gap = {name: scores[part & (y > 0)].mean() - scores[part & (y <= 0)].mean()
           for name, part in (("heavy", heavy), ("light", light))}  # fmt: skip
    assert gap["heavy"] > 0
    assert gap["light"] > 0  # what the heavy rows teach, not the flipped labels of the light ones


def test_far_from_the_training_rows_scores_stay_finite() -> None:
    model = NeuralNetworks.of(*rows())
    scores = model.decision_function(np.array([[1e200, -1e200, 1e200], [0.0, 0.0, 0.0]]))
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= -np.log(NEVER_SURE)


DAMAGED = {
    "lost networks": lambda model: replace(model, networks=()),
    "layers that do not fit": lambda model: replace(
        model, networks=((model.networks[0][0], model.networks[0][2]), *model.networks[1:])
    ),
    "more than one output": lambda model: replace(
        model, networks=tuple(layers[:-1] for layers in model.networks)
    ),
    "different columns": lambda model: replace(
        model, networks=((Layer(np.zeros((9, 1)), np.zeros(1)),), *model.networks[1:])
    ),
    "bias": lambda model: replace(
        model, networks=((Layer(np.zeros((3, 1)), np.full(1, np.nan)),), *model.networks[1:])
    ),
}


@pytest.fixture(scope="module")
def ranker() -> AutoRanker:
    with mock.patch.object(networks, "EPOCHS", 5):
        return AutoRanker(
            portfolio=["networks"], time_limit=None, n_folds=2, n_repeats=1, n_jobs=1, random_state=0
        ).fit(*rows())  # fmt: skip


def test_a_file_gives_the_same_scores(ranker: AutoRanker, tmp_path) -> None:
    toprank.save(ranker, tmp_path / "m.toprank")
    X, _ = rows()
    again = toprank.load(tmp_path / "m.toprank")
    np.testing.assert_array_equal(again.decision_function(X), ranker.decision_function(X))


@pytest.mark.parametrize("message", DAMAGED)
def test_damaged_networks_are_refused(message: str, ranker: AutoRanker, tmp_path) -> None:
    (member,) = ranker.members_
    damaged = replace(member.models[0], model=DAMAGED[message](member.models[0].model))
    kept = replace(member, models=(damaged, *member.models[1:]))
    with (
        mock.patch.object(ranker, "members_", (kept,)),
        pytest.raises(ModelFileError, match=message),
    ):
        toprank.save(ranker, tmp_path / "m.toprank")  # which opens what it has written
    assert not list(tmp_path.iterdir())
