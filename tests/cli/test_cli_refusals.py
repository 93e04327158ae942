"""Bad input: exit code 2, one clear line, nothing half-written."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_cases import one_line, one_real_line, real, rows, run, written

FIT = ["--target", "is_fraud", "--id", "payment", "--drop", "day", "--model", "linear"]


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Run a command that must be refused, and look that it left no file behind."""
    monkeypatch.chdir(tmp_path)

    def check(*arguments, how=run):
        before = sorted(os.listdir(tmp_path))
        line = (one_line if how is run else one_real_line)(how(*arguments))
        assert sorted(os.listdir(tmp_path)) == before
        return line

    return check


def fit_arguments(path, *more):
    return ["fit", path, *FIT, "--out", "m.toprank", *more]


# -- real processes, one for each thing that goes wrong most -----------------------------------------


def one_class(table):
    return table.assign(is_fraud=0)


def twice_the_same_id(table):
    return table.assign(payment=["P7", *table["payment"][1:]])


def text_among_numbers(table):
    return table.assign(amount=[*table["amount"].astype(str)[:-1], "n/a?"])


def test_damaged_files(tmp_path, refused):
    whole = written(rows(), tmp_path / "rows.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-200])
    # compiled code reads it: in a process of its own
    assert "cut.parquet cannot be read" in refused(*fit_arguments("cut.parquet"), how=real)
    latin = rows().assign(country="caf\xe9").to_csv(index=False).encode("latin-1")
    (tmp_path / "latin.csv").write_bytes(latin)
    assert "not UTF-8" in refused(*fit_arguments("latin.csv"))


# -- the same, and more, in this process -------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "more", "words"),
    [
        (lambda t: t, ["--target", "is_fraudulent"], ["no column", "did you mean 'is_fraud'"]),
        (one_class, [], ["only one class"]),
        (twice_the_same_id, [], ["rows 1 and 8 both hold 'P7'"]),
        (text_among_numbers, [], ["'amount' mixes numbers with text", "row 400", "'n/a?'"]),
        (
            lambda t: t.assign(is_fraud=np.arange(len(t)) % 3),
            [],
            ["3 different labels", "--positive"],
        ),
        (
            lambda t: t.assign(is_fraud=t["is_fraud"].where(t.index > 0)),
            [],
            ["lacks a label", "row 1"],
        ),
        (lambda t: t, ["--positive", "yes"], ["the labels are numbers"]),
        (lambda t: t, ["--positive", "7"], ["holds 0, 1"]),
        (lambda t: t.assign(payment=t["payment"].where(t.index > 2)), [], ["lacks an identifier"]),
        (
            lambda t: t.assign(ratio=t["ratio"].where(t.index != 5, np.inf)),
            [],
            ["infinite in row 6"],
        ),
        (lambda t: t, ["--weight", "ratio"], ["--weight", "missing"]),
        (lambda t: t.assign(w=-1.0), ["--weight", "w"], ["negative in row 1"]),
        (lambda t: t, ["--query", "nobody"], ["no column 'nobody'"]),
        (lambda t: t, ["--query", "is_fraud"], ["both --target and --query"]),
        (lambda t: t, ["--drop", "is_fraud"], ["both --target and --drop"]),
        (lambda t: t, ["--drop", "amoun"], ["did you mean 'amount'"]),
        (lambda t: t, ["--drop", "amount,ratio,country"], ["no column is left"]),
        (
            lambda t: t,
            ["--time", "country"],
            ["--time: column 'country'", "neither a number nor a date"],
        ),
        (lambda t: t, ["--gap", "3"], ["gap needs time"]),
        (lambda t: t, ["--model", "random_forest"], ["has no model file"]),
        (lambda t: t, ["--model", "ap_sigmoi"], ["did you mean 'ap_sigmoid'"]),
        (lambda t: t, ["--out", "m.csv"], [".toprank"]),
        (lambda t: t, ["--out", "none/m.toprank"], ["does not exist"]),
        (lambda t: t.head(0), [], ["no rows"]),
        (lambda t: t, ["--sql", "SELECT 1"], ["name the data"]),
        (lambda t: t, ["--folds", "1"], ["--folds"]),
        (lambda t: t, ["--nonsense"], ["No such option"]),
        (lambda t: t[(t.is_fraud == 0) | (t.is_fraud.cumsum() == 1)], [], ["at least 2 rows"]),
    ],
)
def test_bad_tables_and_options(tmp_path, refused, spoil, more, words):
    written(spoil(rows()), tmp_path / "rows.csv")
    line = refused(*fit_arguments("rows.csv", *more))
    for word in words:
        assert word in line


def test_the_other_commands_refuse_the_same(tmp_path, refused, folder):
    written(one_class(rows()), tmp_path / "rows.csv")
    compare = ["compare", "rows.csv", "--target", "is_fraud", "--drop", "payment,day"]
    assert "only one class" in refused(*compare)
    report = ["report", folder / "linear.toprank", "rows.csv", "--target", "is_fraud"]
    assert "only one class" in refused(*report)
    assert "'--target'" in refused("compare", "rows.csv")
    assert ".html" in refused(*compare, "--out", "page.pdf")
    assert "--lengths" in refused(*compare, "--lengths", "10,many")
    assert "unknown model" in refused(*compare, "--models", "linear,best")
    assert "--time-budget" in refused(*compare, "--time-budget", "soon")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], ["--budget, --fpr"]),
        (["--budget", "3", "--fpr", "0.1"], ["one of --budget"]),
        (["--budget", "0"], ["--budget"]),
        (["--budget", "many"], ["--budget"]),
        (["--budget", "3", "--per", "moon"], ["no column 'moon'"]),
        (["--budget", "3", "--per", "day", "--drop", "x"], ["No such option"]),
        (["--budget", "3", "--per", "month"], ["needs the column of times"]),
        (["--budget", "3", "--per", "hour", "--time", "amount"], ["numbers, not dates"]),
        (["--budget", "3", "--value", "country"], ["'country' mixes"]),
        (["--budget", "3", "--value", "ratio"], ["'ratio' is missing in row"]),
        (["--budget", "3", "--id", "country"], ["does not identify rows"]),
        (["--cost", "5"], ["false alarm and of a miss"]),
        (["--cost", "5,x"], ["false alarm and of a miss"]),
        (["--fpr", "2"], ["fpr"]),
        (["--precision", "-1"], ["precision"]),
        (["--fpr", "0.1", "--level", "1.5"], ["confidence"]),
        (["--budget", "3", "--out", "alerts.xlsx"], [".csv"]),
        (["--budget", "3", "--out", "."], [".csv"]),
    ],
)
def test_score_refuses(folder, refused, more, words):
    line = refused("score", folder / "linear.toprank", folder / "late.csv", *more)
    for word in words:
        assert word in line


def test_score_names_missing_and_retyped_columns(folder, tmp_path, refused):
    arguments = ["score", folder / "linear.toprank", "rows.csv", "--budget", 3]
    written(rows().rename(columns={"amount": "Amount"}), tmp_path / "rows.csv")
    line = refused(*arguments)
    assert "lacks columns that the model was trained on: 'amount'" in line
    assert "'Amount'" in line
    written(rows().assign(amount="much"), tmp_path / "rows.csv")
    assert "'amount' held numbers in training" in refused(*arguments)
    written(rows().assign(ratio=[np.inf] + [1.5] * 399), tmp_path / "rows.csv")
    assert "'ratio' is infinite in row 1" in refused(*arguments)


def test_values_that_are_no_scalars(tmp_path, refused):
    table = rows().assign(tags=[["a", "b"]] * 400)
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), tmp_path / "rows.parquet")
    line = refused(*fit_arguments("rows.parquet"))
    assert "'tags' holds a" in line
    assert "--drop" in line


def test_numbers_that_are_text_can_be_said_to_be_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = rows().assign(shop=[*np.arange(300) % 5, *["A1"] * 100])
    written(table, tmp_path / "rows.csv")
    assert "'shop' mixes" in one_line(run(*fit_arguments("rows.csv")))
    result = run(*fit_arguments("rows.csv", "--text", "shop"))
    assert result.exit_code == 0, result.stderr


def test_text_that_looks_like_names_gets_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(rows().drop(columns="day"), tmp_path / "rows.csv")
    result = run("fit", "rows.csv", "--target", "is_fraud", "--model", "linear", "--folds", 2,
                 "--out", "m.toprank")  # fmt: skip
    assert result.exit_code == 0
    assert "'payment' holds 400 different texts" in result.stderr


def test_no_command_overwrites_what_it_reads(folder, tmp_path, refused):
    written(rows(), tmp_path / "rows.csv")
    before = (tmp_path / "rows.csv").read_bytes()
    line = refused(
        "score", folder / "linear.toprank", "rows.csv", "--budget", 3, "--out", "rows.csv"
    )
    assert "overwrite the input" in line
    line = refused("score", folder / "linear.toprank", "r*.csv", "--budget", 3, "--out", "rows.csv")
    assert "overwrite the input" in line
    assert (tmp_path / "rows.csv").read_bytes() == before


def test_no_such_model(tmp_path, refused, folder):
    arguments = [folder / "late.csv", "--budget", 3]
    assert "no such model file" in refused("score", "none.toprank", *arguments)
    assert "is a folder" in refused("score", tmp_path, *arguments)
    assert "not a zip archive" in refused("score", folder / "late.csv", *arguments)


def test_a_bug_is_one_line_too(folder, monkeypatch):
    def fail(*_, **__):
        raise KeyError("oops")

    monkeypatch.setattr("toprank.cli.inputs.read_table", fail)
    arguments = ["score", folder / "linear.toprank", folder / "late.csv", "--budget", 3]
    assert "unexpected KeyError: 'oops' (set TOPRANK_TRACEBACK=1" in one_line(run(*arguments))
    monkeypatch.setenv("TOPRANK_TRACEBACK", "1")
    assert isinstance(run(*arguments).exception, KeyError)


def test_periods_of_dates_as_text(tmp_path):
    from toprank.cli.inputs import to_periods
    from toprank.validation import check_time

    times = check_time(["2024-01-01", "2024-01-02T03:04:05", "2024-02-01T00:00:00+01:00"])
    assert to_periods(times, "month").tolist() == ["2024-01", "2024-01", "2024-01"]  # in UTC
