"""Boosting over a real Dask cluster of two workers against one process; workers that are killed on the way."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from contextlib import contextmanager
from functools import partial

import numpy as np
import pandas as pd
import pytest

from toprank import GradientBoostingRanker, metrics, objectives
from toprank.boosting.gradients import TreeGradients
from toprank.boosting.xgboost_helpers import Workers
from toprank.distributed import (
    DaskGradientBoostingRanker,
    WorkerLostError,
    evaluate,
    fit_distributed,
    fit_on_worker,
)

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

# As in Dask's own tests: a process that the system or XGBoost's tracker ends is no fault of the code.
pytestmark = [pytest.mark.flaky(reruns=2), pytest.mark.timeout(240)]
N_ROWS = 4000


@contextmanager
def two_workers(folder):
    """A client of a new cluster of two worker processes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            local_directory=str(folder),
            silence_logs=50,
        )
        with cluster, distributed.Client(cluster) as client:
            yield client


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory):
    with two_workers(tmp_path_factory.mktemp("dask")) as client:
        yield client


@pytest.fixture
def client(shared_client):
    """A client of the cluster that the tests share, once both workers are there."""
    shared_client.wait_for_workers(2, timeout=60)
    return shared_client


@pytest.fixture
def mortal_client(tmp_path_factory):
    """A client of a cluster for one test, which kills a worker: not every one of them is started again."""
    with two_workers(tmp_path_factory.mktemp("dask")) as client:
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
def spread_table(table):
    X, y, _, _ = table
    return dd.from_pandas(X.assign(label=y, weight=1.0 + (np.arange(len(y)) % 3)), npartitions=5)


def features(joined):
    return joined.drop(columns=["label", "weight"])


def _gradients_of_part(cases, y, scores, weight, arguments):
    """What one worker of a small XGBoost cluster computes for its part of the rows, case by case."""
    from xgboost import collective

    with collective.CommunicatorContext(**arguments):
        workers = Workers()
        mine = slice(None, len(y) // 3) if workers.rank == 0 else slice(len(y) // 3, None)
        found = []
        for name, form in cases:
            gradients = TreeGradients(
                objectives.get(name), y[mine], weight[mine], form=form, exchange=workers
            )
            before = workers.bytes_sent
            found.append((np.stack(gradients(scores[mine])), workers.bytes_sent - before))
        return workers.rank, found


def on_two_workers(client, work, *arguments):
    """What a function returns on each of two workers of a small XGBoost cluster: (rank, result) pairs."""
    from xgboost.tracker import RabitTracker

    client.wait_for_workers(2, timeout=60)  # a worker may have ended after an earlier call
    tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1")
    tracker.start()
    names = list(client.scheduler_info(n_workers=-1)["workers"])
    futures = [
        client.submit(
            work, *arguments,
            {**tracker.worker_args(), "dmlc_task_id": str(k)}, workers=[names[k]], pure=False,
        )
        for k in range(2)
    ]  # fmt: skip
    parts = dict(client.gather(futures))
    tracker.wait_for()
    return parts


def gradients_over_workers(client, cases, y, scores, weight):
    """Gradients and Hessians of two workers together, and the bytes that the first one sends, by case."""
    parts = on_two_workers(client, _gradients_of_part, cases, y, scores, weight)
    return [
        (np.concatenate((first, second), axis=1), sent)
        for (first, sent), (second, _) in zip(parts[0], parts[1], strict=True)
    ]


def test_gradients_of_two_workers_are_those_of_one(client, rng):
    names = ("ap_exp", "ap_softmax", "ap_sigmoid", "lambda_map", "lambda_auc", "pauc")
    cases = [(name, form) for name in names for form in ("exact", "binned")]
    cases.remove(("pauc", "binned"))  # its edge is never binned
    y = (rng.random(4000) < 0.1).astype(float)
    scores, weight = rng.normal(size=4000) + y, rng.integers(1, 4, 4000).astype(float)
    rows = objectives.ScoredList.of(y, scores, weight)
    spread = gradients_over_workers(client, cases, y, scores, weight)
    for (name, form), (found, _) in zip(cases, spread, strict=True):
        expected = np.stack(objectives.get(name).scaled_gradient_hessian(rows))
        error = np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)
        assert (error < 1e-5).all(), (name, form, error)


def test_binned_bytes_do_not_grow_with_the_rows(client, rng):
    cases = [("ap_sigmoid", "binned"), ("lambda_map", "binned")]
    sent = []
    for n in (40_000, 80_000):
        y, scores = (np.arange(n) < 200).astype(float), rng.normal(size=n)
        spread = gradients_over_workers(client, cases, y, scores, np.ones(n))
        sent.append([figure for _, figure in spread])
    assert sent[0][0] == sent[1][0]
    assert sent[0][1] == pytest.approx(sent[1][1], rel=0.05)  # whole cells of the first rows


@pytest.mark.parametrize(
    ("objective", "exchange"),
    [
        ("ap_sigmoid", "auto"),
        ("ap_sigmoid", "binned"),
        ("lambda_map", "auto"),
        ("logistic", "auto"),
    ],
)
def test_two_workers_rank_as_well_as_one_process(client, table, spread_table, objective, exchange):
    X, y, X_test, y_test = table
    ranker = GradientBoostingRanker(
        objective, n_estimators=8, n_seeds=1, learning_rate=0.3, subsample=1.0,
        colsample_bynode=1.0, random_state=0, n_jobs=1,
    )  # fmt: skip
    alone = ranker.fit(X, y)
    rows = features(spread_table)
    spread = fit_distributed(ranker, rows, spread_table["label"], client=client, exchange=exchange)
    if exchange == "auto":  # the same bins, and gradients but for the order of sums
        differences = np.abs(spread.decision_function(X_test) - alone.decision_function(X_test))
        assert np.quantile(differences, 0.9) < 1e-3
    one, two = (
        metrics.average_precision(y_test, m.decision_function(X_test)) for m in (alone, spread)
    )
    assert two == pytest.approx(one, abs=0.01)
    assert one > 3 * y_test.mean()
    assert 0.5 < spread.predict(X).sum() / y.sum() < 2  # as nearly as ties allow
    assert spread.columns_.names == alone.columns_.names
    assert spread.explain(X_test.iloc[:3]).sum(axis=1).to_numpy() == pytest.approx(
        spread.decision_function(X_test.iloc[:3]), abs=1e-4
    )


def test_weights_and_draws(client, table, spread_table):
    _, _, X_test, y_test = table
    ranker = GradientBoostingRanker(n_estimators=8, random_trees=10, subsample=0.5, random_state=3)
    arguments = (features(spread_table), spread_table["label"], spread_table["weight"])
    model = fit_distributed(ranker, *arguments, client=client)
    assert metrics.average_precision(y_test, model.decision_function(X_test)) > 3 * y_test.mean()
    with pytest.raises(AttributeError):
        _ = ranker.boosters_  # what was given is not changed


# nothing is drawn, so one machine and several give one model
PLAIN = {
    "n_estimators": 4, "learning_rate": 0.3, "random_trees": 0, "subsample": 1.0, "n_seeds": 1,
    "random_state": 0, "n_jobs": 1,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["any", "whole"])
def test_weights_times_any_constant_give_the_same_model(client, kind):
    """As on one machine, though no worker sees all weights."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 4)).round(1)  # each value has a bin of its own
    y = (X[:, 0] + rng.normal(size=1000) > 1.8).astype(int)
    weight = rng.uniform(0.5, 2, 1000) if kind == "any" else rng.integers(0, 4, 1000).astype(float)
    weight[:500] *= 3  # the partitions have other means
    spread = [da.from_array(cells, chunks=(300, *cells.shape[1:])) for cells in (X, y)]
    ranker = GradientBoostingRanker(**PLAIN)
    expected = ranker.fit(X, y, weight).decision_function(X)
    for constant in (1, 1e-3, 7, 1000, 1 / 1000):
        weights = da.from_array(constant * weight, chunks=300)
        model = fit_distributed(ranker, *spread, weights, client=client)
        np.testing.assert_allclose(
            model.decision_function(X), expected, rtol=1e-4, atol=1e-5, err_msg=str(constant)
        )
    with pytest.raises(ValueError, match="sample_weight must be finite and at least 0"):
        fit_distributed(ranker, *spread, da.from_array(-weight, chunks=300), client=client)


def _scores_on_worker(X, y, weight, arguments):
    """What a model of two workers scores, each with a part of the rows; or why it is refused."""
    from xgboost import collective

    with collective.CommunicatorContext(**arguments):
        rank = Workers().rank
        mine = slice(None, len(y) // 3) if rank == 0 else slice(len(y) // 3, None)
        ranker = GradientBoostingRanker(**PLAIN)
        try:
            model = fit_on_worker(ranker, X[mine], y[mine], weight[mine])
        except ValueError as error:
            return rank, str(error)
        return rank, model.decision_function(X)


def test_workers_that_others_start_agree_on_the_unit_of_weights(client):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 4)).round(1)
    y = (X[:, 0] + rng.normal(size=1000) > 1.8).astype(int)
    weight = np.where(np.arange(1000) < 400, rng.integers(4, 7, 1000), rng.integers(1, 3, 1000))
    ranker = GradientBoostingRanker(**PLAIN)
    expected = ranker.fit(X, y, weight).decision_function(X)
    for constant in (1.0, 0.1):
        found = on_two_workers(client, _scores_on_worker, X, y, constant * weight)
        for scores in found.values():
            np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    found = on_two_workers(client, _scores_on_worker, X, y, np.where(y == 0, weight, -1.0))
    assert set(found.values()) == {"sample_weight must be finite and at least 0"}


def test_arrays_and_saved_models(client, tmp_path):
    from toprank import load, save

    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 4))
    y = (X[:, 0] + rng.normal(size=1000) > 1.8).astype(int)
    ranker = GradientBoostingRanker(n_estimators=3, random_trees=5)
    model = fit_distributed(
        ranker, da.from_array(X, chunks=(300, 4)), da.from_array(y, chunks=300), client=client
    )
    save(model, tmp_path / "model.toprank")
    np.testing.assert_array_equal(
        load(tmp_path / "model.toprank").decision_function(X), model.decision_function(X)
    )


@pytest.mark.parametrize("setting", [{"step": "line_search"}, {"class_weight": "balanced"}])
def test_what_needs_all_rows_at_once_is_refused(spread_table, setting):
    ranker = GradientBoostingRanker(**setting)
    with pytest.raises(ValueError, match="on a cluster .*(newton|sample_weight)"):
        fit_distributed(ranker, features(spread_table), spread_table["label"])
    with pytest.raises(ValueError, match="out of core .*(newton|sample_weight)"):
        ranker.fit_source(sql="SELECT 1 AS a, 0 AS y", target="y")


@pytest.mark.parametrize("partitions_of_eval_set", [1, 3])  # one: a worker has no validation rows
@pytest.mark.parametrize("subsample", [1.0, 0.7])
def test_early_stopping_and_scores_of_collections(
    client, table, spread_table, partitions_of_eval_set, subsample
):
    X, y, X_test, y_test = table
    settings = {
        "n_estimators": 12, "early_stopping_rounds": 3, "random_state": 0, "n_seeds": 1,
        "colsample_bynode": 1.0, "subsample": subsample, "n_jobs": 1,
    }  # fmt: skip
    alone = GradientBoostingRanker("ap_sigmoid", **settings).fit(X, y, eval_set=(X_test, y_test))
    test = dd.from_pandas(X_test.assign(label=y_test), npartitions=partitions_of_eval_set)
    model = DaskGradientBoostingRanker("ap_sigmoid", **settings).fit(
        features(spread_table), spread_table["label"], client=client,
        eval_set=(test.drop(columns="label"), test["label"]),
    )  # fmt: skip
    if subsample == 1:  # nothing is drawn
        assert model.n_estimators_ == alone.n_estimators_
        np.testing.assert_allclose(model.validation_scores_, alone.validation_scores_, atol=1e-3)
    else:  # each worker draws among its own rows
        assert max(model.validation_scores_) > 3 * y_test.mean()
    scores = model.decision_function(test.drop(columns="label"))
    kept = model.validation_scores_[model.n_estimators_ - 1]
    found = evaluate(test["label"], scores)["average_precision"]["value"]
    assert found == pytest.approx(metrics.average_precision(y_test, scores.compute()), rel=1e-9)
    # what the rounds measured is the metric of all workers' rows
    assert found == pytest.approx(kept, abs=1e-4)
    local = model.to_local()
    assert type(local) is GradientBoostingRanker
    np.testing.assert_allclose(local.decision_function(X_test), scores.compute())
    assert model.bytes_per_round_ > 0


def test_queries_are_brought_together(client):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1200, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=1200) > 1).astype(int)
    qid = np.arange(1200) % 60  # each in every partition
    ranker = {
        "objective": "lambda_map",
        "n_estimators": 6,
        "colsample_bynode": 1.0,
        "subsample": 1.0,
    }
    ranker |= {"n_seeds": 1, "random_state": 0, "n_jobs": 1}
    alone = GradientBoostingRanker(**ranker).fit(X, y, qid=qid)
    model = DaskGradientBoostingRanker(**ranker).fit(
        da.from_array(X, chunks=(400, 3)), da.from_array(y, chunks=400),
        qid=da.from_array(qid, chunks=400), client=client,
    )  # fmt: skip
    one, two = (m.to_local() if hasattr(m, "to_local") else m for m in (alone, model))
    found = [metrics.mean_average_precision(y, m.decision_function(X), qid=qid) for m in (one, two)]
    assert found[1] == pytest.approx(found[0], abs=0.02)


def test_few_rows_on_many_workers(client):
    X = np.arange(12.0)[:, None] % 7
    y = (X[:, 0] > 4).astype(int)
    for chunk in (12, 1):  # a worker without rows; parts of one row, most without positives
        model = DaskGradientBoostingRanker("ap_softmax", n_estimators=3, min_child_weight=0.0).fit(
            da.from_array(X, chunks=(chunk, 1)), da.from_array(y, chunks=chunk), client=client
        )
        assert metrics.roc_auc(y, model.to_local().decision_function(X)) == 1.0


def test_dates_written_as_text_are_days_in_every_partition(client):
    days = np.arange(600) % 366
    moments = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(days), "D")
    y = (moments.month == 12).astype(int)
    X = pd.DataFrame({"day": moments.strftime("%d/%m/%Y"), "noise": days % 7})
    ranker = {"n_estimators": 5, "n_seeds": 1, "random_state": 0, "n_jobs": 1}
    # some hold days below 13 alone
    spread = dd.from_pandas(X.assign(label=y, weight=1), npartitions=60)
    model = DaskGradientBoostingRanker(**ranker).fit(
        features(spread), spread["label"], client=client
    )
    assert model.to_local().columns_.dates == ("%d/%m/%Y", None)
    assert metrics.roc_auc(y, model.to_local().decision_function(X)) == 1.0


def test_what_is_wrong_with_partitions_is_named(client, spread_table):
    ranker = DaskGradientBoostingRanker(n_estimators=1)
    with pytest.raises(ValueError, match="without a value in any row: 'gone'"):
        ranker.fit(features(spread_table).assign(gone=np.nan), spread_table["label"], client=client)

    def mixed(part):
        return part.assign(c0="text") if part.index[0] > 1500 else part

    changed = features(spread_table).map_partitions(mixed, meta=features(spread_table)._meta)
    with pytest.raises(
        ValueError, match="column 'c0' holds numbers or dates in one of partitions 0 and 2"
    ):
        ranker.fit(changed, spread_table["label"], client=client)


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


# -- a worker process is killed: an error that names it, or the fit goes on --------------------------


def die_at(call, folder, *_, **__):
    """Kill this process if this is the call of that number, over all processes and for ever."""
    for number in range(1000):
        try:
            os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        if number == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return


def fatal_part(part, call, folder):
    """A partition that kills the process that makes it, the `call`-th time that any is made."""
    die_at(call, folder)
    return part


def fatal_metric(y, scores, call, folder):
    """A metric that kills a process after a number of rounds."""
    die_at(call, folder)
    return metrics.average_precision(y, scores)


def few_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=2000) > 1.5).astype(int)
    return X, y, da.from_array(X, chunks=(1000, 4)), da.from_array(y, chunks=1000)


SETTINGS = {"n_seeds": 1, "subsample": 1.0, "colsample_bynode": 1.0, "n_jobs": 1, "random_state": 0}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [0, 6])  # two partitions are read, counted, sampled, encoded
def test_a_worker_lost_before_the_rounds_is_made_up_for(mortal_client, tmp_path, call):
    X_rows, y_rows, X, y = few_rows()
    X = X.map_blocks(fatal_part, call, str(tmp_path), dtype=float, meta=np.empty((0, 0)))
    alone = GradientBoostingRanker("ap_softmax", n_estimators=5, **SETTINGS).fit(X_rows, y_rows)
    model = DaskGradientBoostingRanker("ap_softmax", n_estimators=5, **SETTINGS)
    model.fit(X, y, client=mortal_client)
    assert len(os.listdir(tmp_path)) > 8  # some partition was made once more
    one, two = (
        metrics.average_precision(y_rows, m.decision_function(X_rows))
        for m in (alone, model.to_local())
    )
    assert two == pytest.approx(one, abs=0.02)  # no rows are missing


@pytest.mark.filterwarnings("ignore")
def test_a_worker_lost_when_the_rounds_begin_ends_the_fit_with_an_error(mortal_client):
    _, _, X, y = few_rows()
    processes = mortal_client.run(os.getpid)

    def kill_one():
        while not any(
            "_train" in key for keys in mortal_client.processing().values() for key in keys
        ):
            time.sleep(0.02)
        os.kill(next(iter(processes.values())), signal.SIGKILL)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    ranker = DaskGradientBoostingRanker("ap_softmax", n_estimators=1_000_000, **SETTINGS)
    with pytest.raises(WorkerLostError, match=r"boosting: .*worker tcp://.* was lost"):
        ranker.fit(X, y, client=mortal_client)
    killer.join()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_worker_lost_in_the_rounds(mortal_client, tmp_path, checkpoint):
    X_rows, y_rows, X, y = few_rows()
    calls = tmp_path / "calls"
    calls.mkdir()
    metric = partial(fatal_metric, call=60, folder=str(calls))  # in round 30, on two workers
    ranker = DaskGradientBoostingRanker(
        "ap_sigmoid", n_estimators=35, learning_rate=0.1, eval_metric=metric, **SETTINGS
    )
    if not checkpoint:
        with pytest.raises(WorkerLostError, match=r"boosting: .*worker tcp://.* was lost"):
            ranker.fit(X, y, client=mortal_client, eval_set=(X, y))
        return
    model = ranker.fit(X, y, client=mortal_client, eval_set=(X, y), checkpoint=tmp_path / "kept")
    assert model.n_estimators_ == 35
    assert len(os.listdir(calls)) < 2 * 35 + 2 * 12  # it went on from round 25
    alone = GradientBoostingRanker("ap_sigmoid", n_estimators=35, learning_rate=0.1, **SETTINGS)
    alone.fit(X_rows, y_rows)
    one, two = (
        metrics.average_precision(y_rows, m.decision_function(X_rows))
        for m in (alone, model.to_local())
    )
    assert two == pytest.approx(one, abs=0.02)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_lost_as_the_scores_are_gathered_ends_the_fit_with_an_error(
    mortal_client, tmp_path
):
    """After its last round: what is left are the scores that decide on weights and threshold."""
    _, _, X, y = few_rows()
    metric = partial(fatal_metric, call=9, folder=str(tmp_path))  # two workers, five rounds
    ranker = DaskGradientBoostingRanker(
        "ap_sigmoid", n_estimators=5, learning_rate=0.1, eval_metric=metric, **SETTINGS
    )
    with pytest.raises(WorkerLostError, match=r"boosting: .*worker tcp://.* was lost"):
        ranker.fit(X, y, client=mortal_client, eval_set=(X, y))


@pytest.mark.filterwarnings("ignore")
def test_a_worker_lost_while_it_scores_is_made_up_for(mortal_client, tmp_path):
    X_rows, _, X, y = few_rows()
    model = DaskGradientBoostingRanker("ap_softmax", n_estimators=5, **SETTINGS)
    model.fit(X, y, client=mortal_client)
    fatal = X.rechunk((250, 4)).map_blocks(
        fatal_part, 3, str(tmp_path), dtype=float, meta=np.empty((0, 0))
    )
    scores = model.decision_function(fatal).compute()
    assert len(os.listdir(tmp_path)) > 8  # some partition was made once more
    np.testing.assert_array_equal(scores, model.to_local().decision_function(X_rows))
