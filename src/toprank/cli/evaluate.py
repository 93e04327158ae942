"""`toprank evaluate`: measure a ranking that stands in a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from toprank.cli.application import app
from toprank.cli.options import Data, Json, Level, Positive, Query, Resamples, Seed, Sql, Weight
from toprank.cli.output import figure, print_json, print_table, say, shown

__all__ = ["evaluate"]


@app.command()
def evaluate(
    label: Annotated[
        str,
        typer.Option("--label", "--target", help="Column of the labels.", show_default=False),
    ],
    score: Annotated[
        str, typer.Option("--score", help="Column of the scores.", show_default=False)
    ],
    data: Data = None,
    sql: Sql = None,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="Another file, row by row, with the label column."),
    ] = None,
    positive: Positive = None,
    weight: Weight = None,
    query: Query = None,
    resamples: Resamples = 1000,
    level: Level = 0.95,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Measure a ranking: all metrics, with confidence intervals.

    [bold]Examples[/bold]

    toprank evaluate scores.csv --label is_fraud --score s

    cat scores.csv | toprank evaluate - --label kind --positive fraud --score s --json
    """
    from toprank import metrics
    from toprank.cli.cells import as_label
    from toprank.tables import numbers, read_table

    if (data is None) == (sql is None):
        raise ValueError("name the data: a file, a pattern, - for standard input, or --sql QUERY")
    wanted = [column for column in (score, weight, query) if column is not None]
    columns = wanted if labels is not None else [label, *wanted]
    table = read_table(data, columns, sql=sql)
    truth = table[label] if labels is None else read_table(labels, [label])[label]
    scores = numbers(table, score)
    report = metrics.evaluate(
        truth,
        scores,
        pos_label=None if positive is None else as_label(positive, truth),
        sample_weight=None if weight is None else numbers(table, weight),
        qid=None if query is None else table[query],
        n_resamples=resamples,
        level=level,
        random_state=seed,
    )
    if as_json:
        print_json({"rows": len(scores), "level": level, "metrics": report})
        return
    say(
        f"{len(scores):,} rows of {'the query' if data is None else data}; intervals at {level:.0%}"
    )
    rows = [
        [_metric_name(name, entry), *(figure(entry[key]) for key in ("value", "low", "high"))]
        for name, entry in report.items()
    ]
    print_table(["metric", "value", "low", "high"], rows, right_from=1)


def _metric_name(name: str, entry: dict[str, Any]) -> str:
    """A metric with the parameters that it was computed with."""
    given = {key: value for key, value in entry["parameters"].items() if value is not None}
    inside = ", ".join(f"{key}={shown(value)}" for key, value in given.items())
    return f"{name}({inside})" if inside else name
