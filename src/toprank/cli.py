"""The command line.

Commands only read arguments and print; the work is done by the library. Whatever goes wrong is one
line on the error stream and exit code 2.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

__all__ = ["app", "main"]

BAD_INPUT, INTERRUPTED = 2, 130


class _Commands(TyperGroup):
    """Turns errors that a user can do something about into one line."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has seen enough
            raise
        except (ValueError, OSError, ImportError, MemoryError) as error:
            message = " ".join(str(error).split()) or type(error).__name__
            typer.echo(f"toprank: error: {message}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo("toprank: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Rank rows so that the rare positives come first.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Seed = Annotated[int, typer.Option("--seed", help="Fixes everything that is drawn.")]
Resamples = Annotated[
    int, typer.Option("--resamples", min=0, help="Bootstrap resamples for the intervals; 0: none.")
]


def main() -> None:
    """Run the command line."""
    app(prog_name="toprank")


def _print_version(asked: bool) -> None:
    if asked:
        from toprank._version import __version__

        typer.echo(f"toprank {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for report.json, comparison.csv and scores.csv."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1000, help="Payments to simulate.")] = 100_000,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Simulate card fraud, train every model on early days and compare them on late ones."""
    from toprank.demo import comparison_table, run_demo, write_report

    report, scores = run_demo(
        rows, n_resamples=resamples, random_state=seed, verbose=int(sys.stderr.isatty())
    )
    paths = write_report(report, scores, out) if out is not None else []
    if as_json:
        _print_json(report)
        return
    data = report["data"]
    typer.echo(
        f"{data['rows']:,} simulated payments: trained on {data['training_rows']:,} of the early "
        f"days ({data['training_frauds']} frauds), tested on {data['test_rows']:,} of the late ones "
        f"({data['test_frauds']} frauds)."
    )
    _print_comparison(comparison_table(report))
    for label, entry in report["models"].items():
        if "skipped" in entry:
            typer.echo(f"{label} was left out: {entry['skipped']}")
    if paths:
        typer.echo("Written: " + ", ".join(str(path) for path in paths))


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="One data set, for details.")] = None,
    as_json: Json = False,
) -> None:
    """List the data sets that can be loaded, or show one."""
    from toprank.datasets import describe
    from toprank.datasets.catalogue import find

    table = describe()
    if name is not None:
        table = table.loc[[find(name).name]]
    rows = json.loads(table.reset_index().to_json(orient="records"))
    if as_json:
        _print_json(rows[0] if name is not None else rows)
        return
    for row in rows:  # an identifier, not a quantity
        row["openml_id"] = None if row["openml_id"] is None else str(row["openml_id"])
    if name is not None:
        _print_table(["", ""], [[key, _shown(value)] for key, value in rows[0].items()])
        return
    columns = ["name", "task", "rows", "features", "positives", "positive_share", "openml_id"]
    _print_table(columns, [[_shown(row[key]) for key in columns] for row in rows], right_from=2)
    typer.echo(
        "Set TOPRANK_DATA to a folder of Parquet files, or let OpenML provide those with an id."
    )


@app.command()
def evaluate(
    path: Annotated[str, typer.Argument(help="CSV, TSV or Parquet; - for standard input.")],
    label: Annotated[str, typer.Option("--label", help="Column of the labels.")],
    score: Annotated[str, typer.Option("--score", help="Column of the scores.")],
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="Another file, row by row, with the label column."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option("--positive", help="The positive label; by default the greater.")
    ] = None,
    weight: Annotated[str | None, typer.Option("--weight", help="Column of row weights.")] = None,
    query: Annotated[str | None, typer.Option("--query", help="Column of query ids.")] = None,
    resamples: Resamples = 1000,
    level: Annotated[float, typer.Option("--level", help="Confidence level.")] = 0.95,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Measure a ranking: all metrics, with confidence intervals."""
    from toprank import metrics
    from toprank.tables import numbers, read_table

    wanted = [column for column in (score, weight, query) if column is not None]
    table = read_table(path, wanted if labels is not None else [label, *wanted])
    truth = table[label] if labels is None else read_table(labels, [label])[label]
    scores = numbers(table, score)
    report = metrics.evaluate(
        truth,
        scores,
        pos_label=None if positive is None else _as_label(positive, truth),
        sample_weight=None if weight is None else numbers(table, weight),
        qid=None if query is None else table[query],
        n_resamples=resamples,
        level=level,
        random_state=seed,
    )
    if as_json:
        _print_json({"rows": len(scores), "level": level, "metrics": report})
        return
    typer.echo(f"{len(scores):,} rows of {path}; intervals at {level:.0%}")
    rows = [
        [_metric_name(name, entry), *(_figure(entry[key]) for key in ("value", "low", "high"))]
        for name, entry in report.items()
    ]
    _print_table(["metric", "value", "low", "high"], rows, right_from=1)


def _as_label(text: str, truth: Any) -> Any:
    """A label as typed on the command line, in the type of the column."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if is_bool_dtype(truth.dtype):
        names = {"true": True, "1": True, "false": False, "0": False}
        if text.lower() not in names:
            raise ValueError(f"--positive {text}: the labels are true and false")
        return names[text.lower()]
    if is_numeric_dtype(truth.dtype):
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"--positive {text}: the labels are numbers") from None
    return text


def _metric_name(name: str, entry: dict[str, Any]) -> str:
    """A metric with the parameters that it was computed with."""
    given = {key: value for key, value in entry["parameters"].items() if value is not None}
    inside = ", ".join(f"{key}={_shown(value)}" for key, value in given.items())
    return f"{name}({inside})" if inside else name


def _print_comparison(table: Any) -> None:
    """Figures with their intervals, one line for each model."""
    titles = {
        "average_precision": "AP",
        "precision_at_k": "P@k",
        "pos_at_top": "Pos@Top",
        "roc_auc": "AUC",
    }
    rows = []
    for _, row in table.iterrows():
        figures = [_with_interval(row, metric) for metric in titles]
        rows.append([row["model"], *figures, f"{row['seconds']:.1f}"])
    _print_table(["model", *titles.values(), "seconds"], rows, right_from=1)


def _with_interval(row: Any, metric: str) -> str:
    value, low, high = row[metric], row[f"{metric}_low"], row[f"{metric}_high"]
    if low is None or low != low:
        return f"{value:.3f}"
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def _print_table(titles: list[str], rows: list[list[str]], right_from: int | None = None) -> None:
    """A table as wide as it needs to be in a pipe, and as wide as the window in a terminal."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console() if sys.stdout.isatty() else Console(width=200)
    table = Table(box=SIMPLE, show_header=any(titles))
    for position, title in enumerate(titles):
        right = right_from is not None and position >= right_from
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # as text: nothing in it is markup
    console.print(table)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(_finite(value), indent=1))


def _finite(value: Any) -> Any:
    """JSON knows no NaN and no infinity."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value


def _figure(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4f}"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return "-".join(_shown(inner) for inner in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
