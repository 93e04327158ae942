"""`toprank score`, `report`, `explain` and `evaluate`: what a model, or a ranking in a file, is good for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.app import (
    app,
    check_output,
    figure,
    note,
    print_json,
    print_list_figures,
    print_notes,
    print_table,
    records,
    say,
    shown,
    warn,
    with_interval,
)

if TYPE_CHECKING:
    import pandas as pd

    from toprank.cli.inputs import InputTable

__all__ = ["evaluate", "explain", "report", "score"]

TABLE_FORMATS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
PRINTED_ALERTS = 10
PRINTED_DRIFTS = 5  # columns named in the warning
PRINTED_RULES = 20
PRINTED_FEATURES = 20
KNOWN_ROWS = 0.1  # share of the training rows from which a report warns


def _length(flag: str, help_text: str, **more: Any) -> Any:
    """Return an option about the length of the list."""
    panel = "How long the list is (one of them)"
    return typer.Option(flag, help=help_text, rich_help_panel=panel, **more)


# -- score -----------------------------------------------------------------------------------------


@app.command()
def score(
    model: options.ModelFile,
    data: options.Data = None,
    sql: options.Sql = None,
    relational: options.Relational = None,
    budget: Annotated[int | None, _length("--budget", "So many rows.", min=1)] = None,
    fpr: Annotated[
        float | None, _length("--fpr", "At most this share of the negatives is flagged.")
    ] = None,
    precision: Annotated[
        float | None, _length("--precision", "At least this share of the list is right.")
    ] = None,
    cost: Annotated[
        str | None,
        _length(
            "--cost",
            "The cheapest list: cost of a false alarm, of a miss, gain of a hit.",
            metavar="ALARM,MISS[,GAIN]",
        ),
    ] = None,
    everything: Annotated[bool, _length("--all", "Every row, without reasons.")] = False,
    per: Annotated[
        str | None,
        typer.Option(
            "--per",
            metavar="COL",
            help="A list for each value of a column, or for each hour, day, week or month of --time; "
            "several are joined by commas.",
        ),
    ] = None,
    identifier: options.Identifier = None,
    time: options.NewTime = None,
    value: options.Value = None,
    rank_by: Annotated[
        str,
        typer.Option(
            "--rank-by", metavar="WHAT", help="score, or value: probability times --value."
        ),
    ] = "score",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="COLS", help="Columns of the file to write beside each row, or all."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write the list: .csv or .parquet."),
    ] = None,
    n_reasons: Annotated[
        int, typer.Option("--reasons", min=0, help="Most reasons for each row.")
    ] = 3,
    memory: options.Memory = None,
    level: options.Level = 0.95,
    as_json: options.Json = False,
) -> None:
    """Rank new rows and list those to check, with reasons.

    [bold]Examples[/bold]

    toprank score fraud.toprank today.parquet --budget 200 --id payment --out alerts.csv

    toprank score fraud.toprank 'week/*.csv' --budget 200 --per day --time paid_at --out alerts.csv

    toprank score fraud.toprank today.parquet --precision 0.5 --value amount --json

    toprank score fraud.toprank today.csv --budget 50 --rank-by value --value amount --keep all

    toprank score fraud.toprank years/ --all --id payment --memory 2GB --out scores.parquet

    toprank score clauses.toprank --relational folder/ --budget 50 --out alerts.csv
    """
    import toprank
    from toprank.cli.inputs import (
        Roles,
        input_files,
        load_model,
        read_relational,
        read_scored,
        would_not_fit,
    )
    from toprank.folds import scores_of
    from toprank.persistence.schema import relational_schema

    if out is not None:
        check_output(out, TABLE_FORMATS, [str(model), *input_files(data)])
    cut = {"budget": budget, "fpr": fpr, "precision": precision, "cost": options.read_costs(cost)}
    if everything:
        cut["cut"] = float("-inf")
    if sum(option is not None for option in cut.values()) != 1:
        raise ValueError(
            "say how long the list is by one of --budget, --fpr, --precision, --cost and --all"
        )
    ranker = load_model(model)
    roles = Roles(identifier=identifier, time=time, value=value)
    if relational is None and would_not_fit(data, sql, memory):
        if per is not None or value is not None or (budget is None and not everything):
            raise ValueError(
                "the data would not fit in memory: streamed rows are listed by --budget or --all, "
                "without --per and --value; or choose a greater --memory"
            )
        _score_streamed(ranker, data, sql, budget, identifier, memory, out, n_reasons, as_json)
        return
    if relational is None:
        rows = read_scored(data, sql, ranker, roles)
    elif (schema := relational_schema(ranker)) is None:
        raise ValueError(f"{model} ranks rows of one table; --relational is for models of several")
    else:
        rows = read_relational(relational, schema=schema)
    groups = None if per is None else rows.groups(per)
    print_notes(rows.notes)
    scores = scores_of(ranker, rows.X)
    alerts = toprank.shortlist(
        ranker, rows.X, **cut, per=groups, ids=rows.row_names(), value=rows.value, rank_by=rank_by,
        n_reasons=0 if everything else n_reasons, confidence=level, scores=scores,
    )  # fmt: skip
    expected_value = None
    if rows.value is not None and hasattr(ranker, "calibration_"):
        expected_value = float(ranker.calibration_(scores) @ rows.value)
    found = _summarise_alerts(alerts, rows, expected_value)
    if relational is None and getattr(ranker, "training_summary_", None) is not None:
        found["drift"] = toprank.shortlisting.drift(ranker, rows.X, scores=scores).warnings
    alerts = _with_kept_columns(alerts, rows, keep or [])
    _write_alerts(alerts, found, identifier, out, as_json)


def _write_alerts(
    alerts: pd.DataFrame,
    found: dict[str, Any],
    identifier: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Write the list to its file, and print it with its figures."""
    if identifier is None:
        alerts = alerts.rename(columns={"id": "row"})
    if out is not None:
        from toprank.tables import write_table

        write_table(alerts, out)
        found["file"] = str(out)
    _print_remarks(found)
    if not as_json:
        _print_alerts(alerts, found)
    else:
        print_json(found if out is not None else {**found, "alerts": records(alerts)})


def _score_streamed(
    ranker: Any, data: str | None, sql: str | None, budget: int | None, identifier: str | None,
    memory: str | None, out: Path | None, n_reasons: int, as_json: bool,
) -> None:  # fmt: skip
    """List the rows of data that would not fit in memory: the first so many, or all without reasons."""
    import toprank
    from toprank.cli.inputs import model_columns
    from toprank.out_of_core import score_source

    columns, memory = model_columns(ranker), memory or "2GB"
    named = [] if identifier is None else [identifier]
    if budget is None:
        if out is None or out.suffix.lower() not in (".parquet", ".pq"):
            raise ValueError("--all on data that would not fit in memory needs --out FILE.parquet")
        n_rows = score_source(ranker, data, out, sql=sql, columns=named, memory=memory)
        found: dict[str, Any] = {"rows": n_rows, "file": str(out)}
        print_json(found) if as_json else say(f"{shown(n_rows)} rows are scored: {out}")
        return
    table, scores, numbers, n_rows = _top_rows(ranker, data, sql, budget, named, memory)
    alerts = toprank.shortlist(
        ranker, table[columns], budget=min(budget, len(table)), n_reasons=n_reasons, scores=scores,
        ids=numbers if identifier is None else table[identifier].to_numpy(),
    )  # fmt: skip
    found = {
        "rows": n_rows,
        "n_alerts": len(alerts),
        "unused_columns": [],
        "drift": None,
        **alerts.attrs,
    }
    _write_alerts(alerts, found, identifier, out, as_json)


def _top_rows(
    ranker: Any, data: str | None, sql: str | None, budget: int, columns: list[str], memory: str
) -> tuple[Any, Any, Any, int]:  # fmt: skip
    """Stream rows, keep the highest; return their table, scores, numbers from 1, and how many there were.

    All rows with the score of the last are kept.
    """
    import numpy as np
    import pandas as pd

    from toprank.out_of_core import score_batches

    tables, scores, numbers, n_rows = [], np.zeros(0), np.zeros(0, np.int64), 0
    for table, found in score_batches(ranker, data, sql=sql, columns=columns, memory=memory):
        tables.append(table)
        scores = np.concatenate((scores, found))
        numbers = np.concatenate((numbers, np.arange(n_rows, n_rows + len(found)) + 1))
        n_rows += len(found)
        if len(scores) > budget:
            keep = scores >= np.partition(scores, -budget)[-budget]
            tables = [pd.concat(tables, ignore_index=True)[keep]]
            scores, numbers = scores[keep], numbers[keep]
    return pd.concat(tables, ignore_index=True), scores, numbers, n_rows


def _with_kept_columns(alerts: pd.DataFrame, rows: InputTable, keep: list[str]) -> pd.DataFrame:
    """Put columns of the file beside the alerts, under their own names."""
    from toprank.cli.inputs import split_names

    names = (
        list(rows.table.columns) if keep == ["all"] else split_names(keep, rows.table, rows.source)
    )
    positions, attrs = alerts.index.to_numpy(), alerts.attrs
    kept = {
        f"{name} (file)" if name in alerts.columns else name: rows.table[name].to_numpy()[positions]
        for name in names
    }
    alerts = alerts.assign(**kept)
    alerts.attrs = attrs
    return alerts


def _summarise_alerts(
    alerts: Any, rows: InputTable, expected_value: float | None = None
) -> dict[str, Any]:
    """Return the figures of a list; `drift` stays None where the model does not know its training rows.

    `expected_value` is what the positives among all rows are worth, by their probabilities.
    """
    found: dict[str, Any] = {
        "rows": len(rows.X),
        "n_alerts": len(alerts),
        **alerts.attrs,  # cut, ties_left_out, short_groups
        "unused_columns": rows.unused,
        "drift": None,
    }
    if "per" in alerts:
        found["groups"] = int(alerts["per"].nunique())
    if "probability" in alerts:
        found["expected_hits"] = float(alerts["probability"].sum())
    if rows.value is not None:
        found["value"] = {"listed": float(alerts["value"].sum()), "all": float(rows.value.sum())}
        if "probability" in alerts:
            expected = (alerts["probability"] * alerts["value"]).sum()
            found["value"]["expected_caught"] = float(expected)
            found["value"]["expected_all"] = expected_value
    return found


def _print_remarks(found: dict[str, Any]) -> None:
    """Print what is unusual about the rows, on the error stream."""
    if found["unused_columns"]:
        names = ", ".join(repr(name) for name in found["unused_columns"])
        note(f"not in training and not used: {names}")
    drifted = found["drift"] or []
    if drifted:
        more = len(drifted) - PRINTED_DRIFTS
        texts = "; ".join(drifted[:PRINTED_DRIFTS] + [f"and {more} more"] * (more > 0))
        warn(f"the rows have drifted from those of training: {texts}")
    if found["short_groups"]:
        some = f"{found['short_groups']} groups have" if "groups" in found else "the file has"
        note(f"{some} fewer rows than the budget: all of them are listed")
    if found["ties_left_out"]:
        note(f"{found['ties_left_out']} rows with the same score as the last are not on the list")


def _print_alerts(alerts: Any, found: dict[str, Any]) -> None:
    """Print the summary and the first rows of the list."""
    hits = f", about {found['expected_hits']:.1f} of them right" if "expected_hits" in found else ""
    say(f"{shown(found['n_alerts'])} of {shown(found['rows'])} rows are on the list{hits}.")
    if found["cut"] is not None:
        say(f"The cut: {found['cut']['guarantee']}.")
        if found["cut"]["expected_cost"] is not None:
            _print_costs(found["cut"])
    if "value" in found:
        money = found["value"]
        if money.get("expected_all") is not None:
            say(
                f"Value of the positives: about {money['expected_caught']:,.2f} of "
                f"{money['expected_all']:,.2f} is on the list."
            )
        say(f"Value of all rows: {money['listed']:,.2f} of {money['all']:,.2f} is on the list.")
    if len(alerts):
        _print_first(alerts.head(PRINTED_ALERTS))
    if len(alerts) > PRINTED_ALERTS:
        end = ":" if "file" in found else "."
        say(f"... and {shown(len(alerts) - PRINTED_ALERTS)} more{end}")
    if "file" in found:
        say(f"Written: {found['file']}")


def _print_costs(cut: dict[str, Any]) -> None:
    """Print what the cheapest list is expected to cost, for as many rows as the model learnt from."""
    costs = ", ".join(
        f"{name.replace('_', ' ')} {value:g}" for name, value in cut["target"].items()
    )
    low, high = cut["expected_cost_low"], cut["expected_cost_high"]
    say(
        f"Its cost ({costs}): {cut['expected_cost']:,.2f} ({low:,.2f} to {high:,.2f}) for every "
        f"{cut['population']:,.0f} rows, with {cut['n_flagged']:,.0f} rows on the list, "
        f"{cut['false_alarms']:,.0f} false alarms and {cut['recall']:.0%} of the positives found."
    )


def _print_first(alerts: pd.DataFrame) -> None:
    """Print alerts as a table, the interval beside the probability."""
    bounds = ("probability_low", "probability_high")
    titles = [name for name in alerts.columns if name not in bounds]
    lines = []
    for row in records(alerts):
        line = {name: str(row[name]) for name in titles}
        line["score"] = f"{row['score']:.4g}"
        line |= {name: f"{row[name]:,.2f}" for name in ("value", "expected_value") if name in row}
        if "probability" in row:
            line["probability"] = with_interval(row["probability"], *map(row.get, bounds))
        lines.append(list(line.values()))
    print_table(titles, lines)


# -- report ------------------------------------------------------------------------------------------


@app.command()
def report(
    model: options.ModelFile,
    target: options.Target,
    data: options.Data = None,
    sql: options.Sql = None,
    out: options.Page = Path("toprank-report.html"),
    positive: options.Positive = None,
    identifier: options.Identifier = None,
    time: options.NewTime = None,
    weight: options.Weight = None,
    value: options.Value = None,
    group: options.NewGroup = None,
    segment: options.Segment = None,
    checks_per_day: options.ChecksPerDay = None,
    cost_of_check: options.CostOfCheck = None,
    currency: options.Currency = "",
    lengths: options.Lengths = "50,100,200",
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    resamples: options.PageResamples = 1000,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Write the page of a model: how good it is on labelled rows that it has not learnt from.

    [bold]Examples[/bold]

    toprank report fraud.toprank may.parquet --target is_fraud --id payment --time paid_at

    toprank report fraud.toprank may.csv --target is_fraud --value amount --cost-of-check 12
    """
    import toprank
    from toprank.cli.inputs import Roles, input_files, load_model, read_scored, split_names
    from toprank.folds import scores_of
    from toprank.leaks import find_leaks
    from toprank.report import evaluate, write_page

    check_output(out, (".html", ".htm"), [str(model), *input_files(data)])
    shown_lengths = options.read_lengths(lengths)
    ranker = load_model(model)
    roles = Roles(target, positive, identifier, None, time, weight, value, group=group)
    rows = read_scored(data, sql, ranker, roles)
    parts = split_names(segment or (), rows.table, rows.source)
    assert rows.y is not None
    print_notes(rows.notes)
    scores, names = scores_of(ranker, rows.X), rows.row_names()
    budget = min(max(shown_lengths), len(rows.X))
    warnings = [*_warn_of_training_rows(ranker, rows), *find_leaks(rows.X, rows.y)]
    alerts = toprank.shortlist(
        ranker, rows.X, budget=budget, ids=names, value=rows.value, scores=scores
    )
    moved = None
    if getattr(ranker, "training_summary_", None) is not None:
        moved = toprank.shortlisting.drift(ranker, rows.X, scores=scores)
    found = evaluate(
        rows.y, scores, model=model.stem, ids=names, alerts=alerts, drift=moved, day=rows.days(),
        effects=toprank.shortlisting.effects(ranker, rows.X, scores=scores),
        probability=ranker.calibration_(scores) if hasattr(ranker, "calibration_") else None,
        segments={name: rows.table[name] for name in parts}, group=rows.group,
        checks_per_day=checks_per_day, time=rows.time, value=rows.value, cost_of_check=cost_of_check,
        currency=currency, lengths=shown_lengths, level=level, n_resamples=resamples,
        random_state=seed, sample_weight=rows.weight, title=title, warnings=warnings,
        source=rows.source,
    )  # fmt: skip
    write_page(found, out)
    if as_json:
        print_json({**found, "file": str(out)})
        return
    say(f"{shown(len(rows.y))} rows of {rows.source}, {shown(int(rows.y.sum()))} of them positive.")
    print_list_figures(found)
    say(f"The page: {out}")


def _warn_of_training_rows(ranker: Any, rows: InputTable) -> list[str]:
    """Warn when the rows are those that the model has learnt from; return the warnings."""
    from toprank.persistence.schema import share_of_training_rows

    share = share_of_training_rows(ranker, rows.X)
    if share < KNOWN_ROWS:
        return []
    text = (
        f"the model has learnt from these rows: {share:.0%} of its training rows are among them, so the "
        "figures are better than on new rows"
    )
    warn(text)
    return [text]


# -- explain -----------------------------------------------------------------------------------------


@app.command()
def explain(
    model: options.ModelFile,
    data: options.Data = None,
    sql: options.Sql = None,
    row: Annotated[
        list[str] | None,
        typer.Option(
            "--row",
            metavar="ROWS",
            help="Rows to explain: identifiers (with --id) or numbers from 1.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=0, help="Without --row: so many of the highest rows.")
    ] = 5,
    n_reasons: Annotated[
        int, typer.Option("--reasons", min=1, help="Most reasons for each row.")
    ] = 5,
    identifier: options.Identifier = None,
    as_json: options.Json = False,
) -> None:
    """Describe a model file; with data, say what drives the scores and why rows rank where they do.

    [bold]Examples[/bold]

    toprank explain fraud.toprank

    toprank explain fraud.toprank today.parquet --id payment --row P15174,P15037
    """
    from toprank.cli.inputs import Roles, load_model, read_scored

    ranker = load_model(model)
    if data is None and sql is None:
        found = _describe_file(ranker, str(model))
        print_json(found) if as_json else _print_description(found)
        return
    rows = read_scored(data, sql, ranker, Roles(identifier=identifier))
    print_notes(rows.notes)
    found = _explain_rows(ranker, rows, row, top, n_reasons)
    print_json(found) if as_json else _print_explanation(found)


def _describe_file(ranker: Any, path: str) -> dict[str, Any]:
    """Return what a model file holds."""
    from toprank.persistence import describe

    file = describe(path)
    inner = getattr(ranker, "estimator_", ranker)
    if hasattr(inner, "steps"):
        inner = inner.steps[-1][1]
    summary = file.summary or {}
    found: dict[str, Any] = {
        "class": type(inner).__name__,
        "calibrated": hasattr(ranker, "staircase_"),
        "toprank": file.header["toprank"],
        "rows": summary.get("n_rows"),
        "positives": summary.get("n_positives"),
        "columns": _describe_columns(file.schema["columns"], summary.get("columns", [])),
    }
    if hasattr(inner, "rules_"):
        rules = inner.rules_
        found["n_rules"] = len(rules)
        found["rules"] = records(rules.head(PRINTED_RULES))
    return found


def _describe_columns(
    schema: list[dict[str, Any]], summary: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return name, kind and range of each column."""
    known = {column["name"]: column for column in summary}
    found = []
    for column in schema:
        seen = known.get(column["name"], {})
        entry = {"name": column["name"], "kind": column["kind"], "missing": seen.get("missing")}
        quantiles, shares = seen.get("quantiles"), seen.get("shares")
        if quantiles:
            entry["range"] = [quantiles[0], quantiles[50], quantiles[-1]]
        elif shares:
            entry["most_frequent"] = list(shares)[:3]
        found.append(entry)
    return found


def _print_description(found: dict[str, Any]) -> None:
    kind = "calibrated " if found["calibrated"] else ""
    trained = ""
    if found["rows"] is not None:
        positives = shown(found["positives"])
        trained = f", trained on {shown(found['rows'])} rows, {positives} of them positive"
    say(f"A {kind}{found['class']}{trained}; written by toprank {found['toprank']}.")
    rows = []
    for column in found["columns"]:
        values = ""
        if "range" in column:
            low, middle, high = (f"{value:.4g}" for value in column["range"])
            values = f"{low} to {high}, half of them above {middle}"
        elif "most_frequent" in column:
            values = ", ".join(column["most_frequent"]) + ", ..."
        missing = "" if column["missing"] is None else f"{column['missing']:.1%}"
        rows.append([column["name"], column["kind"], missing, values])
    print_table(["column", "kind", "missing", "values"], rows)
    if "rules" in found:
        all_shown = found["n_rules"] <= PRINTED_RULES
        say("Rules:" if all_shown else f"The first of {found['n_rules']} rules:")
        titles = list(found["rules"][0]) if found["rules"] else []
        print_table(titles, [[shown(value) for value in rule.values()] for rule in found["rules"]])


def _explain_rows(
    ranker: Any, rows: InputTable, wanted: list[str] | None, top: int, n_reasons: int
) -> dict[str, Any]:
    """Return what drives the scores, and the reasons of some rows."""
    import numpy as np

    from toprank.folds import scores_of
    from toprank.ranking import descending_order
    from toprank.shortlisting import global_importance, reasons

    scores = scores_of(ranker, rows.X)
    order = descending_order(scores)
    ranks = np.argsort(order) + 1
    chosen = order[:top] if wanted is None else rows.row_positions(wanted)
    texts = reasons(
        ranker, rows.X.iloc[chosen], n_reasons, background=rows.X.head(1000), scores=scores[chosen]
    )
    columns = (rows.row_names()[chosen], ranks[chosen].tolist(), scores[chosen].tolist(), texts)
    names = ("row", "rank", "score", "reasons")
    explained = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    importance = global_importance(ranker, rows.X, scores=scores)
    return {"rows": len(rows.X), "importance": records(importance), "explained": explained}


def _print_explanation(found: dict[str, Any]) -> None:
    say(f"What moves the scores of {shown(found['rows'])} rows, and by how much on average:")
    lines = [
        [str(entry["feature"]), f"{entry['importance']:.4g}", f"{entry['share']:.1%}"]
        for entry in found["importance"][:PRINTED_FEATURES]
    ]
    print_table(["column", "moves the score by", "share"], lines, right_from=1)
    for entry in found["explained"]:
        say(f"Row {entry['row']}: rank {shown(entry['rank'])}, score {entry['score']:.4g}")
        for reason in entry["reasons"] or ["nothing moves it"]:
            say(f"  {reason}")


# -- evaluate ----------------------------------------------------------------------------------------


@app.command()
def evaluate(
    label: Annotated[
        str, typer.Option("--label", "--target", help="Column of the labels.", show_default=False)
    ],
    score: Annotated[
        str, typer.Option("--score", help="Column of the scores.", show_default=False)
    ],
    data: options.Data = None,
    sql: options.Sql = None,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="Another file, row by row, with the label column."),
    ] = None,
    positive: options.Positive = None,
    weight: options.Weight = None,
    query: options.Query = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="COL", help="Column of times: adds daily lists.")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="COL", help="Column of cards, for daily lists.")
    ] = None,
    checks_per_day: Annotated[
        int, typer.Option("--checks-per-day", metavar="K", min=1, help="Length of the daily lists.")
    ] = 100,
    resamples: options.Resamples = 1000,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Measure a ranking: all metrics, with confidence intervals.

    [bold]Examples[/bold]

    toprank evaluate scores.csv --label is_fraud --score s

    cat scores.csv | toprank evaluate - --label kind --positive fraud --score s --json
    """
    from toprank import metrics
    from toprank.cli.inputs import read_input, read_truth
    from toprank.tables import numbers, read_table

    wanted = [c for c in (score, weight, query, time, group) if c is not None]
    table, source = read_input(data, sql, wanted if labels is not None else [label, *wanted])
    truth = table[label] if labels is None else read_table(labels, [label])[label]
    scores = numbers(table, score)
    found = metrics.evaluate(
        read_truth(truth, positive),
        scores,
        sample_weight=None if weight is None else numbers(table, weight),
        qid=None if query is None else table[query],
        n_resamples=resamples,
        level=level,
        random_state=seed,
    )
    if time is not None:
        found["daily_precision_at_k"] = _daily_entry(
            table, truth, scores, positive, time, group, checks_per_day
        )
    if as_json:
        print_json({"rows": len(scores), "level": level, "metrics": found})
        return
    say(f"{len(scores):,} rows of {source}; intervals at {level:.0%}")
    lines = []
    for name, entry in found.items():
        given = {key: value for key, value in entry["parameters"].items() if value is not None}
        inside = ", ".join(f"{key}={shown(value)}" for key, value in given.items())
        figures = (figure(entry[key]) for key in ("value", "low", "high"))
        lines.append([f"{name}({inside})" if inside else name, *figures])
    print_table(["metric", "value", "low", "high"], lines, right_from=1)


def _daily_entry(
    table: pd.DataFrame,
    truth: Any,
    scores: Any,
    positive: str | None,
    time: str,
    group: str | None,
    checks: int,
) -> dict[str, Any]:
    """Return the precision of daily lists in the form of the other metrics; it has no interval."""
    from toprank.cli.inputs import read_labels, to_periods
    from toprank.metrics import daily_precision_at_k
    from toprank.validation import check_time

    days = to_periods(check_time(table[time], name=f"--time: column {time!r}"), "day")
    cards = None if group is None else table[group]
    value = daily_precision_at_k(read_labels(truth, positive), scores, days, checks, cards)
    return {"value": value, "low": None, "high": None, "parameters": {"k": checks, "group": group}}
