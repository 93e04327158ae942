"""Boosting over a real Dask cluster of two workers against one process."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from toprank import GradientBoostingRanker, metrics, objectives
from toprank.distributed import SpreadObjective, fit_distributed

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

N_ROWS = 6000


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            local_directory=str(tmp_path_factory.mktemp("dask")),
        )
        with cluster, distributed.Client(cluster) as client:
            yield client


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(2 * N_ROWS, 6)), columns=[f"c{j}" for j in range(6)])
    frame["country"] = np.array(["NL", "DE", "FR", "BE"])[rng.integers(0, 4, len(frame))]
    frame.loc[::11, "c3"] = np.nan
    signal = frame["c0"] + frame["c1"] * frame["c2"] + 0.8 * (frame["country"] == "FR")
    y = (signal + rng.normal(scale=0.7, size=len(frame)) > 2.6).to_numpy().astype(int)
    return frame.iloc[:N_ROWS], y[:N_ROWS], frame.iloc[N_ROWS:], y[N_ROWS:]


@pytest.fixture(scope="module")
def spread_table(table, client):
    import dask.dataframe as dd

    X, y, _, _ = table
    return dd.from_pandas(X.assign(label=y, weight=1.0 + (np.arange(len(y)) % 3)), npartitions=5)


def features(joined):
    return joined.drop(columns=["label", "weight"])


def _gradients_on_two_workers(objective, exchange, y, scores, weight, ports):
    """What one worker of a small XGBoost cluster computes for its half of the rows."""
    from xgboost import collective

    rank = ports["rank"]
    with collective.CommunicatorContext(
        dmlc_tracker_uri=ports["host"], dmlc_tracker_port=ports["port"], dmlc_task_id=str(rank)
    ):
        mine = slice(None, len(y) // 3) if collective.get_rank() == 0 else slice(len(y) // 3, None)
        found = SpreadObjective(objective, exchange).gradient_hessian(
            y[mine], scores[mine], weight[mine]
        )
        return collective.get_rank(), found


def gradients_over_workers(client, objective, exchange, y, scores, weight):
    from xgboost.tracker import RabitTracker

    tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1")
    tracker.start()
    arguments = tracker.worker_args()
    address = {"host": arguments["dmlc_tracker_uri"], "port": arguments["dmlc_tracker_port"]}
    names = list(client.scheduler_info(n_workers=-1)["workers"])
    futures = [
        client.submit(
            _gradients_on_two_workers,
            objective, exchange, y, scores, weight, {**address, "rank": rank},
            workers=[names[rank]], pure=False,
        )
        for rank in range(2)
    ]  # fmt: skip
    parts = dict(client.gather(futures))
    tracker.wait_for()
    return np.concatenate([parts[0], parts[1]], axis=1)


@pytest.mark.parametrize("exchange", ["exact", "histogram"])
@pytest.mark.parametrize(
    "name", ["ap_exp", "ap_sigmoid", "ap_softmax", "lambda_auc", "pairwise_logistic"]
)
def test_gradients_of_two_workers_are_those_of_one(client, name, exchange):
    rng = np.random.default_rng(1)
    y = (rng.random(4000) < 0.1).astype(float)
    scores = rng.normal(size=4000) + y
    weight = rng.integers(1, 4, 4000).astype(float)
    objective = objectives.get(name)
    expected = np.stack(
        objective.scaled_gradient_hessian(objectives.ScoredList.of(y, scores, weight))
    )
    found = gradients_over_workers(client, objective, exchange, y, scores, weight)
    scale = np.abs(expected).max(axis=1, keepdims=True)
    # ranks are read from the histogram too, which is coarse in the tails of a short list
    tolerance = 5e-4 if name == "lambda_auc" and exchange == "histogram" else 1e-5
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("objective", "exchange"),
    [
        ("ap_sigmoid", "auto"),
        ("ap_sigmoid", "histogram"),
        ("lambda_map", "auto"),
        ("logistic", "auto"),
    ],
)
def test_two_workers_rank_as_well_as_one_process(client, table, spread_table, objective, exchange):
    X, y, X_test, y_test = table
    ranker = GradientBoostingRanker(
        objective, n_estimators=15, learning_rate=0.3, colsample_bynode=1.0, random_state=0
    )
    alone = ranker.fit(X, y)
    spread = fit_distributed(
        ranker, features(spread_table), spread_table["label"], client=client, exchange=exchange
    )
    one, two = (
        metrics.average_precision(y_test, m.decision_function(X_test)) for m in (alone, spread)
    )
    assert two == pytest.approx(one, abs=0.06)  # the bins are others
    assert one > 3 * y_test.mean()
    assert 0.5 < spread.predict(X).sum() / y.sum() < 2  # as nearly as ties allow
    assert spread.columns_.names == alone.columns_.names
    assert spread.explain(X_test.iloc[:3]).sum(axis=1).to_numpy() == pytest.approx(
        spread.decision_function(X_test.iloc[:3]), abs=1e-4
    )


def test_weights_and_draws(client, table, spread_table):
    _, _, X_test, y_test = table
    ranker = GradientBoostingRanker(n_estimators=15, subsample=0.5, random_state=3)
    arguments = (features(spread_table), spread_table["label"], spread_table["weight"])
    model = fit_distributed(ranker, *arguments, client=client)
    assert metrics.average_precision(y_test, model.decision_function(X_test)) > 3 * y_test.mean()
    with pytest.raises(AttributeError):
        _ = ranker.boosters_  # what was given is not changed


def test_arrays_and_saved_models(client, tmp_path):
    import dask.array as da

    from toprank import load, save

    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 4))
    y = (X[:, 0] + rng.normal(size=1000) > 1.8).astype(int)
    ranker = GradientBoostingRanker(n_estimators=5)
    model = fit_distributed(
        ranker, da.from_array(X, chunks=(300, 4)), da.from_array(y, chunks=300), client=client
    )
    save(model, tmp_path / "model.toprank")
    np.testing.assert_array_equal(
        load(tmp_path / "model.toprank").decision_function(X), model.decision_function(X)
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"step": "line_search"}, "newton"),
        ({"early_stopping_rounds": 5}, "early_stopping_rounds=None"),
    ],
)
def test_what_a_cluster_cannot_do(spread_table, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit_distributed(
            GradientBoostingRanker(**parameters), features(spread_table), spread_table["label"]
        )


def test_what_is_not_spread_is_refused(table, spread_table):
    X, y, _, _ = table
    with pytest.raises(TypeError, match=r"GradientBoostingRanker\.fit"):
        fit_distributed(GradientBoostingRanker(), X, y)
    other = spread_table["label"].repartition(npartitions=2)
    with pytest.raises(ValueError, match="cut at the same rows"):
        fit_distributed(GradientBoostingRanker(), features(spread_table), other)
    with pytest.raises(ValueError, match="exchange must be"):
        fit_distributed(
            GradientBoostingRanker(), features(spread_table), spread_table["label"], exchange="all"
        )
