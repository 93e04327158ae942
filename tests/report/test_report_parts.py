"""The other parts of the dict: models, time, alerts, importance, checks."""

from __future__ import annotations

import csv
import io
import json

import naive_report as naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import FORMULA, HOSTILE, hostile_report

from toprank import metrics, report
from toprank.formatting import to_jsonable
from toprank.metrics import ranking_curve
from toprank.report.details import from_comparison, time_blocks
from toprank.report.inputs import check_rows


@pytest.fixture(scope="module")
def full():
    return hostile_report()


@pytest.fixture
def two(rng):
    y = rng.random(1200) < 0.1
    good = rng.normal(size=1200) + 2 * y
    return y, good, good + rng.normal(size=1200)


# -- models ---------------------------------------------------------------------------------------


def test_paired_differences_are_those_of_compare(two):
    y, good, bad = two
    found = report.evaluate(y, good, model="a", scores_by_model={"b": bad}, n_resamples=300)
    for entry in found["models"]["differences"]:
        parameters = {"fpr": (0, 0.1)} if entry["metric"] == "partial_auc" else {}
        other = metrics.compare(
            entry["metric"], y, bad, good, method="bootstrap", n_resamples=300, **parameters
        )
        assert entry["difference"] == pytest.approx(other.difference)
        assert (entry["low"], entry["high"]) == pytest.approx((other.low, other.high))
        assert entry["p_value"] == pytest.approx(other.p_value)  # one model: nothing to adjust
    verdicts = {entry["metric"]: entry["verdict"] for entry in found["models"]["differences"]}
    assert verdicts["average_precision"] == "worse"


def test_the_same_scores_cannot_be_told_apart(two):
    y, good, _ = two
    found = report.evaluate(y, good, model="a", scores_by_model={"b": good}, n_resamples=50)
    assert {entry["verdict"] for entry in found["models"]["differences"]} == {"cannot tell"}


def test_models_are_sorted_and_the_reports_own_is_not_repeated(two):
    y, good, bad = two
    others = {"a": bad, "b": bad}  # "a" is the report's own name: its scores are those given first
    found = report.evaluate(y, good, model="a", scores_by_model=others, n_resamples=20)
    assert list(found["curves"]) == ["a", "b"]
    assert [row["model"] for row in found["models"]["table"]] == ["a", "b"]
    assert found["models"]["table"][0]["roc_auc"]["value"] == metrics.roc_auc(y, good)


def comparison():
    """What `ModelComparison.as_dict` looks like, with a model that only one split has seen."""
    names = ["average_precision", "precision_at_k", "partial_auc"]
    row = {"seconds": 1.5, "n_splits": 4}
    for name in names:
        row |= {name: 0.5, f"{name}_low": 0.4, f"{name}_high": None}
    entry = {"difference": -0.1, "low": -0.2, "high": -0.01, "p_value": 0.01, "p_adjusted": 0.02}
    entry |= {"model": "slow", "other": "fast", "verdict": "worse"}
    return {
        "metrics": names,
        "leaderboard": [{"model": "fast", **row}, {"model": "slow", **row}],
        "differences": {
            name: [{**entry, "reference": key} for key in ("best", "yardstick")] for name in names
        },
        "yardstick": "fast",
        "kind": "time",
        "method": "bootstrap",
        "n_splits": 4,
        "parameters": {"k": 100, "fpr": [0, 0.1]},
        "notes": ["rows were drawn"],
        "failures": {"broken": "no memory"},
        "left_out": {"late": "no time"},
        "recommended": {"model": "fast", "sentence": "fast is to be trusted."},
    }


def test_a_comparison_over_splits_takes_the_place_of_ours(two):
    y, good, bad = two
    found = report.evaluate(
        y, good, model="slow", scores_by_model={"fast": bad}, comparison=comparison(), n_resamples=9
    )
    models = found["models"]
    assert models == from_comparison(comparison())
    assert models["source"] == "splits"
    assert models["table"][0]["average_precision"] == {"value": 0.5, "low": 0.4, "high": None}
    assert models["differences"][0]["p_value"] == 0.02
    assert models["notes"] == [
        "rows were drawn",
        "broken failed: no memory",
        "late was left out: no time",
    ]
    page = report.render(found)
    for text in ("fast is to be trusted.", "k = 100", "FPR 0 to 0.1", "late was left out: no time"):
        assert text in page


# -- curves ---------------------------------------------------------------------------------------


def test_curves_are_the_exact_ones_and_bands_hold_them(two):
    y, good, _ = two
    found = report.evaluate(y, good, n_resamples=300)
    for kind in ("roc", "recall_precision", "list_precision"):
        x, height = ranking_curve(kind, y, good, max_points=400)
        curve = found["curves"]["model"][kind]
        np.testing.assert_allclose(curve["x"], x, rtol=1e-5)
        np.testing.assert_allclose(curve["y"], height, rtol=1e-5)
    band = found["bands"]["roc"]
    inside = [
        low - 0.02 <= naive.recall_at_rate(y, good, rate) <= high + 0.02
        for rate, low, high in zip(
            band["x"][::15], band["low"][::15], band["high"][::15], strict=True
        )
    ]
    assert np.mean(inside) > 0.95
    assert all(low <= high for low, high in zip(band["low"], band["high"], strict=True))


# -- time -----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 8))
def test_blocks_are_ordered_and_never_split_a_moment(time, n_blocks):
    time = np.array(time)
    codes = time_blocks(time, n_blocks)
    assert set(codes) == set(range(codes.max() + 1))
    assert codes.max() < n_blocks
    order = np.argsort(time, kind="stable")
    assert (np.diff(codes[order]) >= 0).all()
    for moment in set(time):
        assert len(set(codes[time == moment])) == 1


def test_blocks_have_the_metrics_of_their_rows(two):
    y, good, _ = two
    time = np.arange(1200) // 100
    blocks = report.evaluate(y, good, time=time, n_resamples=100)["time"]["blocks"]
    assert len(blocks) == min(12, int(y.sum()) // 10) == 10
    covered = 0
    for block in blocks:
        rows = (time >= float(block["start"])) & (time <= float(block["end"]))
        covered += rows.sum()
        assert block["n_rows"] == rows.sum()
        assert block["n_positives"] == y[rows].sum()
        ap = metrics.average_precision(y[rows], good[rows])
        assert block["average_precision"]["value"] == pytest.approx(ap)
        assert block["average_precision"]["low"] <= ap <= block["average_precision"]["high"]
        assert block["roc_auc"]["value"] == pytest.approx(metrics.roc_auc(y[rows], good[rows]))
    assert covered == len(y)


def test_decay_is_seen_and_steadiness_is_not_called_decay(two):
    y, good, _ = two
    late = np.arange(1200) >= 600
    steady = report.evaluate(y, good, time=np.arange(1200), n_resamples=20)
    assert steady["time"]["change"]["verdict"] == "cannot tell"
    broken = np.where(late, np.random.default_rng(0).normal(size=1200), good)
    change = report.evaluate(y, broken, time=np.arange(1200), n_resamples=20)["time"]["change"]
    assert change["verdict"] == "worse"
    assert change["earlier"] == pytest.approx(metrics.roc_auc(y[~late], broken[~late]))
    assert change["later"] == pytest.approx(metrics.roc_auc(y[late], broken[late]))


@pytest.mark.parametrize(
    ("time", "start"),
    [
        (["2024-05-31 14:00"] * 30 + ["2024-06-01"] * 30, "2024-05-31 14:00"),
        (pd.Series(pd.to_datetime(["2024-05-31"] * 30 + ["2024-06-01"] * 30)), "2024-05-31"),
        (list(range(60)), "0"),
    ],
)
def test_times_may_be_text_dates_or_numbers(time, start):
    y = np.arange(60) % 3 == 0
    found = report.evaluate(y, np.arange(60.0), time=time, n_resamples=5)["time"]
    assert found["blocks"][0]["start"] == start


def test_a_block_of_one_class_is_counted_but_not_scored():
    y = np.r_[np.arange(100) % 5 == 0, np.zeros(100, bool)]
    scores = np.random.default_rng(0).normal(size=200) + y
    found = report.evaluate(y, scores, time=np.arange(200) // 100, n_resamples=20)
    first, last = found["time"]["blocks"]
    assert first["average_precision"] is not None
    assert last["average_precision"] is None
    assert last["prevalence"] == 0
    assert found["time"]["change"] is None
    page = report.render(found)
    assert "Over 1 consecutive block (1 more with rows of one class only)" in page
    assert "too few positives" in page


def test_one_moment_or_too_few_positives_give_no_history():
    y = np.arange(20) == 3
    assert report.evaluate(y, np.arange(20.0), time=np.arange(20), n_resamples=5)["time"] is None
    y = np.arange(40) % 2 == 0
    assert report.evaluate(y, np.arange(40.0), time=np.zeros(40), n_resamples=5)["time"] is None


# -- alerts and importance ------------------------------------------------------------------------


def test_without_alerts_the_highest_rows_are_listed_with_the_truth(two):
    y, good, _ = two
    alerts = report.evaluate(y, good, lengths=(5, 20), n_resamples=5)["alerts"]
    assert alerts["columns"] == ["rank", "row", "outcome", "score"]
    order = np.argsort(-good)[:20]
    assert [row[1] for row in alerts["rows"]] == order.tolist()
    assert [row[2] == "right" for row in alerts["rows"]] == y[order].tolist()


def test_alerts_know_their_truth_by_id(full):
    alerts = full["alerts"]
    assert alerts["columns"][:3] == ["rank", "id", "outcome"]
    assert {row[2] for row in alerts["rows"]} == {"right", "false alarm"}
    hits = [row[2] == "right" for row in alerts["rows"][:50]]
    assert sum(hits) == full["lists"]["hits"]["value"][full["lists"]["length"].index(50)]


def test_alerts_know_their_truth_by_position_only_if_the_scores_agree(two):
    y, good, _ = two
    order = np.argsort(-good)[:30]
    index = pd.Index(order, name="row")
    alerts = pd.DataFrame({"rank": range(1, 31), "score": good[order]}, index=index)
    found = report.evaluate(y, good, alerts=alerts, n_resamples=5)["alerts"]
    place = found["columns"].index("outcome")
    assert [row[place] == "right" for row in found["rows"]] == y[order].tolist()
    elsewhere = alerts.assign(score=alerts["score"] + 1)
    assert (
        "outcome"
        not in report.evaluate(y, good, alerts=elsewhere, n_resamples=5)["alerts"]["columns"]
    )


def test_csv_lines_read_back_and_run_nothing(full):
    lines = full["alerts"]["csv"]
    read = list(csv.reader(io.StringIO("\r\n".join(lines), newline="")))
    assert len(read) == len(lines) == 251
    names = read[0]
    assert read[3][names.index("id")] == "'" + FORMULA
    assert read[2][names.index("id")] == HOSTILE
    assert float(read[1][names.index("score")]) == full["alerts"]["rows"][0][names.index("score")]


def test_long_alert_lists_are_cut_and_counted():
    y = np.arange(6000) % 7 == 0
    alerts = pd.DataFrame({"rank": range(1, 5001), "note": ["x" * 2000] * 5000})
    found = report.evaluate(y, np.arange(6000.0), alerts=alerts, n_resamples=5)["alerts"]
    assert len(found["rows"]) == 2000
    assert found["n_total"] == 5000
    assert len(found["rows"][0][1]) == 500


def test_importance_from_a_mapping_or_a_table():
    y, scores = [0, 1, 0, 1], [1, 2, 3, 4]
    table = pd.DataFrame({"feature": ["a", "b", "c"], "importance": [1.0, 3.0, np.nan]})
    by_table = report.evaluate(y, scores, importance=table, n_resamples=5)["importance"]
    assert [entry["feature"] for entry in by_table] == ["b", "a"]
    by_name = report.evaluate(y, scores, importance={"a": 1, "b": 3}, n_resamples=5)["importance"]
    assert by_name == [{"feature": "b", "importance": 3.0}, {"feature": "a", "importance": 1.0}]
    with pytest.raises(ValueError, match="two columns"):
        report.evaluate(y, scores, importance=pd.DataFrame({"z": [1]}), n_resamples=5)


# -- the whole ------------------------------------------------------------------------------------


def test_the_dict_is_plain_json_and_does_not_change_with_the_run_or_the_threads(full):
    text = json.dumps(full, allow_nan=False)
    assert json.loads(text) == full
    assert json.dumps(hostile_report(n_jobs=3), allow_nan=False) == text
    assert len(text) < 1_500_000


def test_values_of_numpy_and_pandas_become_plain_data():
    obj = {1: np.float64("nan"), "a": (np.int32(3), pd.NaT, pd.Timestamp("2024-01-02"), b"x")}
    obj["b"] = pd.DataFrame({"c": [np.inf]})
    obj["d"] = "lone \ud800 surrogate"
    found = to_jsonable(obj)
    assert found["1"] is None
    assert found["a"][:3] == [3, None, "2024-01-02 00:00:00"]
    assert found["b"] == [{"c": None}]
    found["d"].encode("utf-8")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [0, 0, 0, 0]}, "one class"),
        ({"scores": [1, 2, np.nan, 4]}, "NaN"),
        ({"scores_by_model": {"b": [1, 2]}}, "Numbers of rows differ.*'b'"),
        ({"scores_by_model": {"b": [1, 2, np.inf, 3]}}, "'b'.*infinite"),
        ({"value": [1, 2, np.nan, 4]}, "value must be"),
        ({"value": list("abcd")}, "value must be numbers"),
        ({"time": ["yesterday"] * 4}, "time holds 'yesterday' in row 1"),
        ({"time": [1, 2, np.nan, 3]}, "time is missing in 1 rows, the first of them row 3"),
        ({"ids": [1, 2]}, "Numbers of rows differ"),
        ({"cost_of_check": -1}, "cost_of_check"),
        ({"level": 1.0}, "level"),
        ({"n_resamples": 0}, "n_resamples"),
    ],
)
def test_wrong_input_is_named(changes, message):
    given_rows = {"y": [0, 1, 0, 1], "scores": [1, 2, 3, 4], "n_resamples": 5, **changes}
    with pytest.raises(ValueError, match=message):
        report.evaluate(given_rows.pop("y"), given_rows.pop("scores"), **given_rows)


def test_rows_of_weight_zero_leave_every_column():
    rows = check_rows(
        [0, 1, 0, 1], [1.0, 2, 3, 4], ids=list("abcd"), value=[1, 2, 3, 4], time=[1, 2, 3, 4],
        scores_by_model={"b": [4, 3, 2, 1]}, sample_weight=[1, 0, 1, 2],
    )  # fmt: skip
    assert rows.ids.tolist() == ["a", "c", "d"]
    assert rows.value.tolist() == [1, 3, 4]
    assert rows.time.tolist() == [1, 3, 4]
    assert rows.scores["b"].tolist() == [4, 2, 1]
    assert rows.total == 4


@pytest.mark.parametrize("labels", [["no", "yes", "no", "yes"], [-1, 1, -1, 1], [True, False] * 2])
def test_labels_of_any_kind(labels):
    found = report.evaluate(labels, [1, 2, 3, 4], pos_label=labels[1], n_resamples=5)
    assert found["metrics"]["roc_auc"]["value"] == 0.75
    assert report.render(found).startswith("<!doctype html>")
