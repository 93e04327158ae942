"""A fit that is broken off and started again gives the model of one that was not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import make_classification

from toprank import GradientBoostingRanker
from toprank.boosting.checkpoint import Checkpoint, fingerprint
from toprank.exchange import Exchange


@pytest.fixture(scope="module")
def rows():
    return make_classification(400, weights=[0.9], random_state=0)


class BrokenOffError(Exception):
    pass


def ranker(**parameters):
    usual = {"n_estimators": 60, "n_seeds": 1, "subsample": 0.7, "random_state": 0, "n_jobs": 1}
    return GradientBoostingRanker("ap_sigmoid", **usual | parameters)


@pytest.mark.parametrize("patience", [None, 50])
@pytest.mark.parametrize("break_at", [10, 37])  # before the first checkpoint, and after
def test_going_on_gives_the_same_model(rows, tmp_path, break_at, patience):
    X, y = rows

    def stop(done):
        if done.number == break_at:
            raise BrokenOffError

    whole = ranker(early_stopping_rounds=patience).fit(X, y, checkpoint=tmp_path / "whole")
    with pytest.raises(BrokenOffError):
        ranker(early_stopping_rounds=patience).fit(
            X, y, checkpoint=tmp_path / "broken", callbacks=[stop]
        )
    numbers = []
    again = ranker(early_stopping_rounds=patience).fit(
        X, y, checkpoint=tmp_path / "broken", callbacks=[lambda done: numbers.append(done.number)]
    )
    assert numbers[0] == (26 if break_at > 25 else 1)
    assert again.n_estimators_ == whole.n_estimators_
    np.testing.assert_allclose(again.decision_function(X), whole.decision_function(X), atol=1e-5)


def test_a_finished_fit_is_read(rows, tmp_path):
    X, y = rows
    first = ranker(n_estimators=5).fit(X, y, checkpoint=tmp_path)
    rounds = []
    again = ranker(n_estimators=5).fit(X, y, checkpoint=tmp_path, callbacks=[rounds.append])
    assert not rounds
    np.testing.assert_array_equal(again.decision_function(X), first.decision_function(X))


def test_what_cannot_be_used_is_named(rows, tmp_path):
    X, y = rows
    ranker(n_estimators=5).fit(X, y, checkpoint=tmp_path)
    with pytest.warns(UserWarning, match="is of another fit"):
        other = ranker(n_estimators=6).fit(X, y, checkpoint=tmp_path)
    assert other.n_estimators_ == 6
    trees = tmp_path / "booster-1.json"
    trees.write_bytes(trees.read_bytes()[:-20])
    with pytest.warns(UserWarning, match="is damaged"):
        ranker(n_estimators=6).fit(X, y, checkpoint=tmp_path)
    (tmp_path / "booster-1.note.json").write_text(json.dumps([]))
    with pytest.warns(UserWarning, match="is damaged"):
        ranker(n_estimators=6).fit(X, y, checkpoint=tmp_path)


class WithOneOther(Exchange):
    """Two workers, of which the other has found a checkpoint of so many rounds, or none (-1)."""

    size = 2

    def __init__(self, rounds):
        self.other = np.array([rounds, -rounds])

    def combine(self, array, how):
        return np.minimum(array, self.other)


@pytest.mark.parametrize("rounds", [5, 3, -1])
def test_workers_go_on_only_from_what_all_of_them_find(rows, tmp_path, rounds):
    ranker(n_estimators=5).fit(*rows, checkpoint=tmp_path)
    fit = json.loads((tmp_path / "booster-1.note.json").read_text())["fit"]
    found = Checkpoint(str(tmp_path), 1, fit, exchange=WithOneOther(rounds)).read()
    assert (found is not None) == (rounds == 5)


def test_a_fingerprint_does_not_depend_on_where_a_function_lies():
    first, second = ((lambda y, scores: 0.0) for _ in range(2))
    assert repr(first) != repr(second)
    one, two = (fingerprint(ranker(eval_metric=metric), 1) for metric in (first, second))
    assert one == two
