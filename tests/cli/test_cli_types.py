"""Types follow the model, not the file; labels are taken as they are written; lists of quiet days."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli_cases import rows, run, written

import toprank


def strangers_rows(n_rows=300, seed=0):
    """Rows as other programs write them: words for truth, codes, money, percentages, decimal commas."""
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows) < 0.25
    amount = rng.gamma(2, 400, n_rows).round(2) * (1 + y)
    share = (rng.random(n_rows) * 0.5 + 0.3 * y).round(2)
    return pd.DataFrame(
        {
            "member": np.where(rng.random(n_rows) < 0.3 + 0.4 * y, "yes", "no"),
            "flag": np.where(rng.random(n_rows) < 0.2 + 0.5 * y, "1", "0"),
            "branch": np.where(rng.random(n_rows) < 0.4 + 0.3 * y, "007", "012"),
            "amount": [f"${value:,.2f}" for value in amount],
            "discount": [f"{100 * value:.0f}%" for value in share],
            "weight": [f"{value:.1f}".replace(".", ",") for value in 3 * share + 1],
            "outcome": np.where(y, "Yes", "No"),
        }
    )


NUMBERS = {"amount", "discount", "weight"}


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """The same rows as CSV and as Parquet, and a model fitted on each."""
    place = tmp_path_factory.mktemp("stranger")
    table = strangers_rows()
    typed = table.assign(
        amount=table["amount"].str.replace("[$,]", "", regex=True).astype(float),
        discount=table["discount"].str.rstrip("%").astype(float) / 100,
        weight=table["weight"].str.replace(",", ".").astype(float),
    )
    for name, kind, rows_of in (("csv", "csv", table), ("parquet", "parquet", typed)):
        data = written(rows_of, place / f"train.{kind}")
        fitted = run("fit", data, "--target", "outcome", "--positive", "Yes", "--model", "linear",
                     "--no-calibration", "--text", "flag", "--out", place / f"{name}.toprank")  # fmt: skip
        assert fitted.exit_code == 0, fitted.stderr
        assert ("read as numbers: amount ('$" in fitted.stderr) == (name == "csv")
    return place, table, typed


def scores_of_file(model, data):
    result = run("score", model, data, "--all", "--json")
    assert result.exit_code == 0, result.stderr
    alerts = pd.DataFrame(json.loads(result.stdout)["alerts"]).sort_values("row")
    return alerts["score"].to_numpy()


def test_one_source_scores_alike_from_csv_parquet_and_pandas(stranger):
    place, table, typed = stranger
    scored = [
        scores_of_file(place / f"{name}.toprank", place / f"train.{kind}")
        for name in ("csv", "parquet")
        for kind in ("csv", "parquet")
    ]
    for name in ("csv", "parquet"):
        model = toprank.load(place / f"{name}.toprank")
        features = [column for column in table if column != "outcome"]
        read_by_pandas = pd.read_csv(place / "train.csv")  # numbers for 007 and for 0/1
        scored += [
            model.decision_function(rows[features]) for rows in (table, typed, read_by_pandas)
        ]
    for other in scored[1:]:
        np.testing.assert_allclose(other, scored[0], atol=1e-9)


def test_a_later_file_without_one_value_keeps_its_types(stranger, tmp_path):
    place, table, _ = stranger
    today = table.iloc[:40]
    today = today[(today["member"] == "yes") & (today["flag"] == "1")].drop(columns="outcome")
    expected = scores_of_file(place / "csv.toprank", written(today, tmp_path / "today.csv"))
    known = scores_of_file(place / "csv.toprank", place / "train.csv")
    np.testing.assert_allclose(expected, known[today.index], atol=1e-9)


def test_thousands_and_decimals_follow_the_training_rows(stranger, tmp_path):
    place, table, _ = stranger
    today = table.head(2).drop(columns="outcome").assign(weight=["1,500", "2,250"])
    found = scores_of_file(place / "csv.toprank", written(today, tmp_path / "today.csv"))
    plain = today.assign(weight=[1.5, 2.25])
    expected = scores_of_file(place / "csv.toprank", written(plain, tmp_path / "plain.csv"))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_booleans_of_a_parquet_model_may_be_words_in_csv(tmp_path):
    table = rows(200).assign(known=lambda t: t["ratio"].fillna(0) > 0)[
        ["amount", "known", "is_fraud"]
    ]
    data = written(table, tmp_path / "train.parquet")
    run("fit", data, "--target", "is_fraud", "--model", "linear", "--no-calibration", "--out",
        tmp_path / "m.toprank")  # fmt: skip
    words = table.assign(known=np.where(table["known"], "Yes", "No"))
    found = [
        scores_of_file(tmp_path / "m.toprank", written(t, tmp_path / f"{name}.csv"))
        for name, t in {"words": words, "booleans": table}.items()
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], scores_of_file(tmp_path / "m.toprank", data))


def test_labels_are_taken_as_written(tmp_path):
    table = rows(120).assign(is_fraud=lambda t: np.where(t["is_fraud"] == 1, "Yes", "No"))
    data = written(table, tmp_path / "rows.csv")
    result = run("compare", data, "--target", "is_fraud", "--positive", "Yes", "--id", "payment",
                 "--drop", "day", "--models", "linear", "--splits", 2, "--repeats", 1, "--no-page",
                 "--json", "--time-budget", 0.001)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == 120


def test_per_day_is_never_a_silent_guess(folder, tmp_path):
    table = rows(seed=1).assign(paid=lambda t: t["day"], day=lambda t: np.arange(len(t)) % 2)
    data = written(table, tmp_path / "late.csv")
    model = folder / "linear.toprank"
    by_time = run("score", model, data, "--budget", 1, "--per", "day", "--time", "paid", "--json")
    assert by_time.exit_code == 0, by_time.stderr
    assert json.loads(by_time.stdout)["n_alerts"] == 10
    assert "the days of --time, not the column 'day'" in by_time.stderr
    by_column = run("score", model, data, "--budget", 1, "--per", "day", "--json")
    assert json.loads(by_column.stdout)["n_alerts"] == 2
    assert "the values of the column 'day'; for the days of a column of times, add --time COL" in (
        by_column.stderr
    )


def test_a_quiet_day_lists_all_its_rows(folder, tmp_path):
    data = written(rows(seed=1).head(30), tmp_path / "quiet.csv")
    result = run("score", folder / "linear.toprank", data, "--budget", 200, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["n_alerts"] == 30
    assert "the file has fewer rows than the budget: all of them are listed" in result.stderr
