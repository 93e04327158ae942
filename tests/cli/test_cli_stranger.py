"""A stranger's file from end to end: dates, money, merchants, yes and no; groups; leaks."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli_cases import run, written

from toprank.parsing import add_date_parts, date_parts


def payments(n_rows=500, seed=0, start="2024-03-01"):
    """Payments as a bank's export has them; new accounts pay the frauds."""
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows) < 0.15
    paid = pd.Timestamp(start) + pd.to_timedelta(
        np.sort(rng.integers(0, 20 * 24 * 60, n_rows)), "min"
    )
    age = np.where(y, rng.integers(1, 20, n_rows), rng.integers(1, 400, n_rows))
    amount = rng.gamma(2, 300, n_rows).round(2) * (1 + y)
    return pd.DataFrame(
        {
            "reference": [f"{seed}-{number:05d}" for number in range(n_rows)],
            "paid_at": paid.strftime("%Y-%m-%d %H:%M:%S"),
            "opened": (paid - pd.to_timedelta(age, "D")).strftime("%d/%m/%Y"),
            "amount": [f"${value:,.2f}" for value in amount],
            "fee": [f"{value:.0f}%" for value in rng.integers(1, 9, n_rows)],
            "merchant": [f"shop {number}" for number in rng.integers(0, 200, n_rows)],
            "card": rng.integers(0, 60, n_rows),
            "online": np.where(rng.random(n_rows) < 0.3 + 0.4 * y, "yes", "no"),
            "fraud": np.where(y, "Yes", "No"),
        }
    )


def ok(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def test_compare_fit_score_another_day_and_report(tmp_path):
    days = written(payments(), tmp_path / "march.csv")
    columns = ["--target", "fraud", "--positive", "Yes", "--id", "reference", "--time", "paid_at",
               "--group", "card"]  # fmt: skip
    page = tmp_path / "compare.html"
    compared = ok("compare", days, *columns, "--models", "linear", "--splits", 2, "--value", "amount",
                  "--per", "day", "--checks-per-day", 3, "--segment", "online", "--out", page,
                  "--title", "Payments of March", "--time-budget", 0.001, "--json")  # fmt: skip
    found = json.loads(compared.stdout)
    assert found["daily_precision_at_k"]["k"] == 3
    assert "read as numbers: amount ('$" in compared.stderr
    assert (
        "dates became numbers: opened (year, month, day, weekday, days_before.paid_at, read as %d/%m/%Y)"
        in (compared.stderr)
    )
    assert "have not seen its earlier ones" in compared.stderr
    text = page.read_text()
    assert '<h1 id="title">Payments of March</h1>' in text
    assert "raises the chance from" in text  # reasons beside the alerts
    model = tmp_path / "fraud.toprank"
    ok("fit", days, *columns, "--group-history", "--model", "linear", "--folds", 3, "--out", model)
    today = payments(80, seed=1, start="2024-04-02").drop(columns="fraud")
    today = today[today["online"] == "yes"]  # a day with one value only
    alerts = tmp_path / "alerts.csv"
    ranked = ["--rank-by", "value", "--value", "amount", "--keep", "merchant,opened"]
    scored = ok("score", model, written(today, tmp_path / "today.csv"), "--budget", 5, "--id",
                "reference", *ranked, "--out", alerts)  # fmt: skip
    assert "Value of the positives: about" in scored.stdout
    table = pd.read_csv(alerts)
    assert table["expected_value"].is_monotonic_decreasing
    assert table["merchant"].str.startswith("shop ").all()
    assert table["opened"].str.fullmatch(r"\d\d/\d\d/\d{4}").all()
    assert table["reasons"].str.contains("raises the (?:chance from|score by)").any()
    later = written(payments(300, seed=2, start="2024-04-05"), tmp_path / "april.csv")
    reported = ok("report", model, later, "--target", "fraud", "--positive", "Yes", "--id", "reference",
                  "--time", "paid_at", "--value", "amount", "--segment", "online", "--resamples", 50,
                  "--checks-per-day", 3, "--group", "card", "--out", tmp_path / "april.html",
                  "--json")  # fmt: skip
    report = json.loads(reported.stdout)
    assert report["daily"]["k"] == 3
    assert [part["part"] for part in report["segments"][0]["parts"]]
    assert report["reliability"]
    assert report["drift"]["columns"]
    assert report["effects"]
    assert report["lists"]["money"]["best"] >= 1
    assert "opened.days_before.paid_at" in {entry["feature"] for entry in report["importance"][:2]}


def test_a_model_of_dates_scores_parquet_and_other_orders_alike(tmp_path):
    table = payments(300)
    columns = ["--target", "fraud", "--positive", "Yes", "--id", "reference", "--time", "paid_at",
               "--drop", "merchant,card", "--model", "linear", "--no-calibration"]  # fmt: skip
    model = tmp_path / "m.toprank"
    ok("fit", written(table, tmp_path / "train.csv"), *columns, "--out", model)
    # days that could be months
    early = table[table["opened"].str[:2].astype(int) <= 12].drop(columns="fraud")
    typed = early.assign(
        opened=pd.to_datetime(early["opened"], format="%d/%m/%Y"),
        paid_at=pd.to_datetime(early["paid_at"]),
        amount=early["amount"].str.replace("[$,]", "", regex=True).astype(float),
        fee=early["fee"].str.rstrip("%").astype(float) / 100,
    )
    scored = [
        pd.DataFrame(
            json.loads(ok("score", model, written(t, path), "--all", "--json").stdout)["alerts"]
        )
        for t, path in ((early, tmp_path / "early.csv"), (typed, tmp_path / "early.parquet"))
    ]
    np.testing.assert_allclose(scored[0]["score"], scored[1]["score"])


def test_date_parts_are_made_again_by_their_names():
    table = pd.DataFrame({"a.b": pd.to_datetime(["2024-02-29 13:00", None]),
                          "t": pd.to_datetime(["2024-03-02 01:00", "2024-03-01 00:00"])})  # fmt: skip
    parts = date_parts(table, "a.b", "t")
    assert parts.iloc[0].tolist() == [2024, 2, 29, 3, 13, 1.5]
    assert parts.iloc[1].isna().all()
    again, used = add_date_parts(table, list(parts))
    pd.testing.assert_frame_equal(again[list(parts)], parts)
    assert sorted(used) == ["a.b", "t"]


def test_columns_that_tell_too_much_are_named(tmp_path):
    rng = np.random.default_rng(0)
    table = payments(400).drop(columns=["opened", "merchant", "card", "paid_at"])
    fraud = table["fraud"] == "Yes"
    table["chargeback"] = np.where(fraud & (rng.random(400) < 0.95), 1.0, np.nan)
    table["status"] = np.where(fraud, "blocked", "paid")
    data = written(table, tmp_path / "leaky.csv")
    result = ok("fit", data, "--target", "fraud", "--positive", "Yes", "--id", "reference", "--model",
                "linear", "--no-calibration", "--out", tmp_path / "m.toprank", "--json")  # fmt: skip
    leaks = json.loads(result.stdout)["leaks"]
    assert [leak.split("'")[1] for leak in leaks] == ["chargeback", "status"]
    assert "leave it out with --drop" in result.stderr


@pytest.mark.parametrize("column", ["amount", "day"])
def test_groups_of_several_columns(column, tmp_path):
    from toprank.cli.inputs import InputTable

    times = pd.to_datetime(["2024-01-01", "2024-01-02"]).to_numpy()
    table = pd.DataFrame({"region": ["n", "s"], "amount": [1, 2]})
    rows = InputTable("rows", table, table, time=times)
    expected = {"amount": ["n / 1", "s / 2"], "day": ["n / 2024-01-01", "s / 2024-01-02"]}[column]
    assert rows.groups(f"region,{column}").tolist() == expected
