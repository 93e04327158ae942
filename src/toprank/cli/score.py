"""`toprank score`: the shortlist of new rows, with reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from toprank.cli.application import app
from toprank.cli.inputs import Roles, Rows, input_files, load_model, model_columns, read_scored
from toprank.cli.options import Data, Identifier, Json, Level, ModelFile, Sql, Time, Value
from toprank.cli.output import (
    check_target,
    note,
    print_json,
    print_table,
    records,
    say,
    shown,
    warn,
)

__all__ = ["score"]

FIRST = 10  # alerts that are printed
MOST_DRIFTS = 5  # columns named in the warning
TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
_CUT = "How long the list is (one of them)"


@app.command()
def score(
    model: ModelFile,
    data: Data = None,
    sql: Sql = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", min=1, help="So many rows.", rich_help_panel=_CUT),
    ] = None,
    fpr: Annotated[
        float | None,
        typer.Option(
            "--fpr", help="At most this share of the negatives is flagged.", rich_help_panel=_CUT
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            "--precision", help="At least this share of the list is right.", rich_help_panel=_CUT
        ),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            "--cost",
            metavar="ALARM,MISS[,GAIN]",
            help="The cheapest list: cost of a false alarm, of a miss, gain of a hit.",
            rich_help_panel=_CUT,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every row, without reasons.", rich_help_panel=_CUT)
    ] = False,
    per: Annotated[
        str | None,
        typer.Option(
            "--per",
            metavar="COL",
            help="A list for each value of a column, or for each hour, day, week or month of --time.",
        ),
    ] = None,
    identifier: Identifier = None,
    time: Time = None,
    value: Value = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write the list: .csv or .parquet."),
    ] = None,
    n_reasons: Annotated[
        int, typer.Option("--reasons", min=0, help="Most reasons for each row.")
    ] = 3,
    level: Level = 0.95,
    as_json: Json = False,
) -> None:
    """Rank new rows and list those to check, with reasons.

    [bold]Examples[/bold]

    toprank score fraud.toprank today.parquet --budget 200 --id payment --out alerts.csv

    toprank score fraud.toprank 'week/*.csv' --budget 200 --per day --time paid_at --out alerts.csv

    toprank score fraud.toprank today.parquet --precision 0.5 --value amount --json
    """
    import toprank

    if out is not None:
        check_target(out, TABLES, [str(model), *input_files(data)])
    cut = {"budget": budget, "fpr": fpr, "precision": precision, "cost": _costs(cost)}
    if everything:
        cut["cut"] = float("-inf")
    if sum(option is not None for option in cut.values()) != 1:
        raise ValueError(
            "say how long the list is by one of --budget, --fpr, --precision, --cost and --all"
        )
    ranker = load_model(model)
    roles = Roles(identifier=identifier, time=time, value=value)
    rows = read_scored(data, sql, model_columns(ranker), roles)
    groups = None if per is None else _groups(rows, per)
    alerts = toprank.shortlist(
        ranker, rows.X, **cut, per=groups, ids=rows.names(), value=rows.value,
        n_reasons=0 if everything else n_reasons, confidence=level,
    )  # fmt: skip
    attributes = dict(alerts.attrs)
    if identifier is None:
        alerts = alerts.rename(columns={"id": "row"})
    found = _summary(alerts, attributes, rows, _drift(ranker, rows))
    if out is not None:
        from toprank.tables import write_table

        write_table(alerts, out)
        found["file"] = str(out)
    _print_remarks(found)
    if as_json:
        print_json(found if out is not None else {**found, "alerts": records(alerts)})
        return
    _print(alerts, found)


def _costs(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        costs = tuple(float(part) for part in text.split(","))
    except ValueError:
        costs = ()
    if len(costs) not in (2, 3):
        raise ValueError(
            f"--cost {text}: write the cost of a false alarm and of a miss, such as 5,100"
        )
    return costs


def _groups(rows: Rows, per: str) -> Any:
    """The groups that each have a list: the cells of a column, or the days of a time."""
    from toprank.cli.cells import PERIODS, as_periods
    from toprank.tables import known_columns

    if per in rows.table.columns or per not in PERIODS:
        known_columns([per], [str(name) for name in rows.table.columns], rows.source)
        return rows.table[per].to_numpy()
    if rows.time is None:
        raise ValueError(f"--per {per} needs the column of times: --time COL")
    return as_periods(rows.time, per)


def _drift(ranker: Any, rows: Rows) -> list[str] | None:
    """What has changed since training; None where the file does not say how training was."""
    from toprank.shortlisting import drift

    if getattr(ranker, "training_summary_", None) is None:
        return None
    return drift(ranker, rows.X).warnings


def _summary(
    alerts: Any, attributes: dict[str, Any], rows: Rows, drifted: list[str] | None
) -> dict[str, Any]:
    """What there is to say about a list, as plain data."""
    found: dict[str, Any] = {
        "rows": len(rows.X),
        "n_alerts": len(alerts),
        "cut": attributes.get("cut"),
        "ties_left_out": attributes.get("ties_left_out", 0),
        "unused_columns": rows.unused,
        "drift": drifted,
    }
    if "probability" in alerts:
        found["expected_hits"] = float(alerts["probability"].sum())
    if rows.value is not None:
        found["value"] = {"listed": float(alerts["value"].sum()), "all": float(rows.value.sum())}
        if "probability" in alerts:
            expected = (alerts["probability"] * alerts["value"]).sum()
            found["value"]["expected_caught"] = float(expected)
    return found


def _print_remarks(found: dict[str, Any]) -> None:
    """What is odd about the rows, on the error stream."""
    if found["unused_columns"]:
        names = ", ".join(repr(name) for name in found["unused_columns"])
        note(f"not in training and not used: {names}")
    drifted = found["drift"] or []
    if drifted:
        more = f"; and {len(drifted) - MOST_DRIFTS} more" if len(drifted) > MOST_DRIFTS else ""
        texts = "; ".join(drifted[:MOST_DRIFTS])
        warn(f"the rows have drifted from those of training: {texts}{more}")
    if found["ties_left_out"]:
        note(f"{found['ties_left_out']} rows with the same score as the last are not on the list")


def _print(alerts: Any, found: dict[str, Any]) -> None:
    """The summary and the head of the list."""
    hits = f", about {found['expected_hits']:.1f} of them right" if "expected_hits" in found else ""
    say(f"{shown(found['n_alerts'])} of {shown(found['rows'])} rows are on the list{hits}.")
    if found["cut"] is not None:
        say(f"The cut: {found['cut']['guarantee']}.")
    if "value" in found:
        money = found["value"]
        caught = (
            f"; {money['expected_caught']:,.2f} expected to be caught"
            if "expected_caught" in money
            else ""
        )
        say(f"Value on the list: {money['listed']:,.2f} of {money['all']:,.2f}{caught}.")
    if len(alerts):
        titles, cells = _cells(alerts.head(FIRST))
        print_table(titles, cells)
    if len(alerts) > FIRST:
        say(f"... and {shown(len(alerts) - FIRST)} more" + (":" if "file" in found else "."))
    if "file" in found:
        say(f"Written: {found['file']}")


def _cells(alerts: Any) -> tuple[list[str], list[list[str]]]:
    """Alerts as people read them, the interval beside the probability."""
    titles = [
        name for name in alerts.columns if name not in ("probability_low", "probability_high")
    ]
    cells = []
    for row in records(alerts):
        shown_row = []
        for name in titles:
            text = f"{row[name]:.4g}" if name in ("score", "value") else str(row[name])
            if name == "probability":
                text = f"{row[name]:.3f}"
                if "probability_low" in row:
                    text += f" ({row['probability_low']:.3f} to {row['probability_high']:.3f})"
            shown_row.append(text)
        cells.append(shown_row)
    return titles, cells
