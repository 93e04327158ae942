"""`toprank compare`, `fit`, `models` and `datasets`: which model is best on labelled rows, and a model file."""

from __future__ import annotations

import json
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.app import (
    app,
    check_output,
    note,
    on_terminal,
    print_json,
    print_list_figures,
    print_notes,
    print_table,
    records,
    say,
    shown,
    table_width,
    warn,
    with_interval,
)

if TYPE_CHECKING:
    from toprank.cli.inputs import InputTable, Roles

__all__ = ["compare", "datasets", "fit", "models", "print_comparison"]

TITLES = {
    "average_precision": "AP",
    "precision_at_k": "P@k",
    "pos_at_top": "Pos@Top",
    "partial_auc": "pAUC",
    "roc_auc": "AUC",
}
AFTERWARDS = "unless new rows have it before their outcome is known, leave it out with --drop"
SUMMARISED_ROWS = 20_000  # of a model that was fitted on streamed rows
WIDE_BOARD = 150  # columns that a leaderboard with all intervals takes
SPLITS = {  # of a comparison, one and several
    "stratified": ("stratified fold", "stratified folds"),
    "grouped": ("fold of whole groups", "folds of whole groups"),
    "time": ("block of time", "blocks of time"),
}


@app.command()
def compare(
    target: options.OptionalTarget = None,
    data: options.Data = None,
    sql: options.Sql = None,
    relational: options.Relational = None,
    models: options.Models = None,
    splits: Annotated[
        int, typer.Option("--splits", min=2, help="Folds, or blocks of time with --time.")
    ] = 5,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Repeats of the folds.")] = 2,
    time_budget: Annotated[
        float | None,
        typer.Option(
            "--time-budget",
            metavar="SECONDS",
            help="Stop after about so long, with the splits that are complete.",
        ),
    ] = None,
    time_limit: options.TimeLimit = 60.0,
    k: Annotated[
        int | None,
        typer.Option("--k", min=1, help="List length of P@k; by default as many as positives."),
    ] = None,
    out: options.Page = Path("toprank-comparison.html"),
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the page.")] = True,
    positive: options.Positive = None,
    identifier: options.Identifier = None,
    query: options.Query = None,
    group: options.Group = None,
    group_history: options.GroupHistory = False,
    time: options.Time = None,
    gap: options.Gap = None,
    weight: options.Weight = None,
    value: options.Value = None,
    drop: options.Drop = None,
    text: options.Text = None,
    segment: options.Segment = None,
    per: Annotated[
        str | None,
        typer.Option(
            "--per", metavar="day", help="With --time: the precision of lists of each day."
        ),
    ] = None,
    checks_per_day: options.ChecksPerDay = None,
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    cost_of_check: options.CostOfCheck = None,
    currency: options.Currency = "",
    lengths: options.Lengths = "50,100,200",
    level: options.Level = 0.95,
    jobs: options.Jobs = 1,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Compare models on your data: which is best, how good, how sure; writes a page.

    [bold]Examples[/bold]

    toprank compare payments.parquet --target is_fraud --id payment --drop card

    toprank compare payments.parquet --target is_fraud --time paid_at --gap 7 --time-budget 600

    toprank compare rows.csv --target kind --positive bad --models boosting,linear,treerank

    toprank compare rows.csv --target kind --models auto,catboost --time-limit 30

    toprank compare --relational folder/ --models clauses,boosting
    """
    from toprank.cli.inputs import Roles, input_files, split_names
    from toprank.leaks import find_leaks
    from toprank.selection import compare_models

    if page:
        check_output(out, (".html", ".htm"), input_files(data))
    shown_lengths, names = options.read_lengths(lengths), options.read_model_names(models)
    roles = Roles(
        target, positive, identifier, query, time, weight, value, drop or (), text or (), group
    )
    rows = _read_rows(data, sql, relational, roles)
    rows.notes.extend(group_notes(rows, group, group_history))
    print_notes(rows.notes)
    leaks = find_leaks(rows.X, rows.y) if relational is None else []
    for warning in (*rows.warnings, *(f"{leak}; {AFTERWARDS}" for leak in leaks)):
        warn(warning)
    parts = split_names(segment or (), rows.table, rows.source)
    days = _days(rows, per)
    apart: dict[str, Any] = {
        "time": rows.time, "gap": gap, "groups": rows.group, "group_history": group_history,
    }  # fmt: skip
    comparison = compare_models(
        rows.X, rows.y, models=_with_time_limit(names, time_limit, seed, jobs), qid=rows.qid, **apart,
        sample_weight=rows.weight, n_splits=splits, n_repeats=repeats, time_budget=time_budget,
        k=k, level=level, random_state=seed, n_jobs=jobs, verbose=on_terminal(),
    )  # fmt: skip
    found = None
    if page:
        from toprank.report import write_page

        found = _report_best(
            comparison, rows, apart, days, parts, jobs, warnings=leaks, cost_of_check=cost_of_check,
            currency=currency, lengths=shown_lengths, level=level, random_state=seed, title=title,
            checks_per_day=checks_per_day,
        )  # fmt: skip
        write_page(found, out)
    daily = daily_precisions(comparison, rows, days, checks_per_day or k or max(shown_lengths))
    if as_json:
        answer = {"rows": len(rows.X), "leaks": leaks, **comparison.as_dict()}
        answer |= {} if daily is None else {"daily_precision_at_k": daily}
        print_json({**answer, "file": str(out)} if page else answer)
        return
    print_comparison(comparison)
    if daily is not None:
        shares = ", ".join(f"{name} {share:.3f}" for name, share in daily["models"].items())
        say(
            f"Precision of the first {daily['k']} of each day, the mean over {daily['days']} days: {shares}"
        )
    if found is not None:
        print_list_figures(found)
        say(f"The page: {out}")


@app.command()
def fit(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Model file, *.toprank.", show_default=False),
    ],
    target: options.OptionalTarget = None,
    data: options.Data = None,
    sql: options.Sql = None,
    relational: options.Relational = None,
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="One of those that toprank models lists.")
    ] = "auto",
    time_limit: options.TimeLimit = 60.0,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibration/--no-calibration",
            help="Learn probabilities and cuts from cross-fitted scores; without, fitting is several "
            "times quicker, and only --budget can cut a list.",
        ),
    ] = True,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Folds of the calibration.")] = 5,
    positive: options.Positive = None,
    identifier: options.Identifier = None,
    query: options.Query = None,
    group: options.Group = None,
    group_history: options.GroupHistory = False,
    time: options.Time = None,
    gap: options.Gap = None,
    weight: options.Weight = None,
    drop: options.Drop = None,
    text: options.Text = None,
    memory: options.Memory = None,
    jobs: options.Jobs = 1,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Learn from labelled rows and write a model file.

    [bold]Examples[/bold]

    toprank fit payments.parquet --target is_fraud --id payment --out fraud.toprank

    toprank fit payments.parquet --target is_fraud --time-limit 600 --jobs -1 --out fraud.toprank

    toprank fit 'days/*.csv' --target outcome --positive fraud --model lambda_map --out m.toprank

    toprank fit years/ --target is_fraud --memory 2GB --out fraud.toprank

    toprank fit --sql "SELECT * FROM 'p.parquet' WHERE amount > 1" --target y --out m.toprank

    toprank fit --relational folder/ --model clauses --out m.toprank
    """
    import toprank
    from toprank.cli.inputs import Roles, input_files, would_not_fit
    from toprank.leaks import find_leaks
    from toprank.registry import PEERS
    from toprank.selection.models import find_candidate, fit_model

    check_output(out, (".toprank",), input_files(data))
    if find_candidate(model).estimator in PEERS:
        raise ValueError(
            f"{model} is there to be compared with and has no model file; toprank models lists the others"
        )
    roles = Roles(
        target, positive, identifier, query, time, weight, None, drop or (), text or (), group
    )
    if relational is None and target is not None and would_not_fit(data, sql, memory):
        found = _fit_streamed(model, data, sql, roles, memory=memory, out=out, seed=seed, jobs=jobs)
        if as_json:
            print_json(found)
        else:
            say(
                f"{found['model']} has learnt from {shown(found['rows'])} streamed rows with "
                f"{found['columns']} columns, in {found['seconds']:.1f} s: {out}"
            )
        return
    rows = _read_rows(data, sql, relational, roles)
    rows.notes.extend(group_notes(rows, group, group_history))
    assert rows.y is not None
    start = clock.perf_counter()
    fitted, notes = fit_model(
        model, rows.X, rows.y, sample_weight=rows.weight, qid=rows.qid, time=rows.time, gap=gap,
        groups=rows.group, group_history=group_history,
        folds=folds if calibrate else None, random_state=seed, n_jobs=jobs, verbose=on_terminal(),
        time_limit=time_limit,
    )  # fmt: skip
    toprank.save(fitted, out, rows.X, rows.y)
    print_notes(rows.notes)
    leaks = find_leaks(rows.X, rows.y) if relational is None else []
    new = [note for note in notes if not any(leak in note for leak in leaks)]
    for warning in (*rows.warnings, *(f"{leak}; {AFTERWARDS}" for leak in leaks), *new):
        warn(warning)
    found = {
        "model": model,
        "class": type(getattr(fitted, "estimator_", fitted)).__name__,
        "rows": len(rows.y),
        "positives": int(rows.y.sum()),
        "columns": rows.X.shape[1],
        "leaks": leaks,
        "seconds": round(clock.perf_counter() - start, 2),
        "file": str(out),
    }
    inner = getattr(fitted, "estimator_", fitted)
    if calibrate:
        found["held_out_average_precision"] = fitted.staircase_.average_precision()
    if hasattr(inner, "estimated_"):
        found["estimated"] = inner.estimated_
        found["members"] = {member.name: member.weight for member in inner.members_}
    if as_json:
        print_json(found)
        return
    say(
        f"{model} has learnt from {shown(found['rows'])} rows, {shown(found['positives'])} of them "
        f"positive, with {found['columns']} columns, in {found['seconds']:.1f} s: {out}"
    )
    if hasattr(inner, "estimated_"):
        _print_automatic(inner)
    elif calibrate:
        value = found["held_out_average_precision"]
        say(f"Average precision of its cross-fitted scores: {value:.3f}")


def _fit_streamed(
    name: str, data: str | None, sql: str | None, roles: Roles, *, memory: str | None, out: Path,
    seed: int, jobs: int,
) -> dict[str, Any]:  # fmt: skip
    """Fit a boosted model out of core and save it; return what there is to say."""
    import pandas as pd

    import toprank
    from toprank.cli.inputs import read_labels
    from toprank.selection.models import find_candidate, make_model
    from toprank.sources import Source

    if name == "auto":
        warn("the data would not fit in memory: boosting is fitted, out of core, instead of auto")
        name = "boosting"
    candidate = find_candidate(name)
    if candidate.estimator != "GradientBoostingRanker":
        raise ValueError(
            f"the data would not fit in memory, and {name} cannot be fitted out of core: choose "
            "boosting or another boosted model, a sample of the rows, or a greater --memory"
        )
    if roles.query or roles.time or roles.text or roles.group:
        raise ValueError(
            "the data would not fit in memory, and --query, --time, --group and --text do not go with "
            "an out-of-core fit: choose a greater --memory or a sample of the rows"
        )
    start = clock.perf_counter()
    source = Source.of(data, sql=sql, memory=memory)
    assert roles.target is not None
    labels = source.distinct(roles.target)
    positive = [
        label
        for label, y in zip(labels, read_labels(pd.Series(labels), roles.positive), strict=True)
        if y == 1
    ]
    drop = [part.strip() for text in roles.drop for part in text.split(",")]
    if roles.identifier is not None:
        drop.append(roles.identifier)
    if len(labels) > 2:
        raise ValueError(f"--target: column {roles.target!r} has {len(labels)} labels, not two")
    model = make_model(name, seed, jobs)
    model = getattr(model, "steps", [(None, model)])[-1][1].set_params(verbose=int(on_terminal()))
    model.fit_source(
        source, target=roles.target, pos_label=positive[0], sample_weight=roles.weight, drop=drop,
        memory=memory or "2GB",
    )  # fmt: skip
    columns = [*model.feature_names_in_, roles.target]
    with source.opened(columns) as stream:
        head = next(stream.batches(SUMMARISED_ROWS))
        n_rows = stream.count()
    y = (head[roles.target] == positive[0]).to_numpy().astype(int)
    toprank.save(model, out, head[list(model.feature_names_in_)], y)
    warn(
        "the rows were streamed: the model is not calibrated (--budget and --all can cut a list), and what "
        f"it knows of its training rows comes from the first {len(head):,}"
    )
    return {
        "model": name,
        "class": type(model).__name__,
        "rows": n_rows,
        "positives": None,
        "columns": len(model.feature_names_in_),
        "seconds": round(clock.perf_counter() - start, 2),
        "file": str(out),
    }


def _with_time_limit(names: list[str] | None, time_limit: float, seed: int, jobs: int) -> Any:
    """Return the names of models, and the model auto with its time limit."""
    if names is None or "auto" not in names:
        return names
    from toprank import AutoRanker

    auto = AutoRanker(time_limit=time_limit, random_state=seed, n_jobs=jobs)
    return {name: auto if name == "auto" else None for name in names}


def _print_automatic(model: Any) -> None:
    """Print what an AutoRanker is made of, and what to expect of it."""
    used = model.leaderboard_.query("weight > 0")
    lines = [
        [row["member"], f"{row['value']:.3f}", f"{row['weight']:.2f}", f"{row['seconds']:.1f}"]
        for row in records(used)
    ]
    print_table(["member", "held out", "weight", "seconds"], lines, right_from=1)
    for name, title in TITLES.items():
        if name in model.estimated_:
            entry = model.estimated_[name]
            say(f"{title} to expect: {with_interval(entry['value'], entry['low'], entry['high'])}")


def _read_rows(data: str | None, sql: str | None, relational: str | None, roles: Any) -> InputTable:
    """Read labelled rows of a table, or the examples of a folder of relational data."""
    from toprank.cli.inputs import read_labelled, read_relational

    if relational is None:
        if roles.target is None:
            raise typer.BadParameter("name the column of the labels", param_hint="'--target'")
        return read_labelled(data, sql, roles)
    named = [option for option in roles.columns() if option != "--target"]
    named += ["DATA"] * (data is not None) + ["--sql"] * (sql is not None)
    named += ["--drop"] * bool(roles.drop) + ["--text"] * bool(roles.text)
    named += ["--value"] * (roles.value is not None)
    if named:
        raise ValueError(f"{named[0]} is for one table; --relational names a folder of several")
    rows = read_relational(relational, roles.target, roles.positive)
    if rows.y is None:
        raise ValueError(
            f"{relational} has no labels: name the column of its examples by --target COL"
        )
    return rows


def group_notes(rows: InputTable, group: str | None, history: bool) -> list[str]:
    """Say what is done with the rows of one group when later ones are tested by earlier ones."""
    if group is None or rows.time is None:
        return []
    if history:
        return [f"a {group}'s later rows are tested by models that know its earlier ones"]
    return [
        f"a {group}'s later rows are tested by models that have not seen its earlier ones; if new rows come "
        "from those already known, allow it with --group-history"
    ]


def _days(rows: InputTable, per: str | None) -> Any:
    """Return the day of each row where daily lists are asked for."""
    if per is None:
        return None
    if per != "day" or rows.days() is None:
        raise ValueError("--per day, with a column of dates in --time, is what compare counts by")
    return rows.days()


def daily_precisions(comparison: Any, rows: InputTable, days: Any, k: int) -> dict[str, Any] | None:
    """Return the precision of daily lists for each model, on the rows that it was tested on."""
    from toprank.metrics import daily_precision_at_k

    if days is None:
        return None
    held_out, labels = (comparison.scores[name].to_numpy() for name in ("row", "label"))
    group = None if rows.group is None else rows.group[held_out]
    found = {
        name: daily_precision_at_k(labels, scores, days[held_out], k, group)
        for name, scores in comparison.pooled_scores().items()
    }
    ordered = dict(sorted(found.items(), key=lambda item: -item[1]))
    return {"k": k, "days": len(set(days[held_out])), "models": ordered}


def _report_best(
    comparison: Any,
    rows: InputTable,
    apart: dict[str, Any],
    days: Any,
    parts: list[str],
    jobs: int,
    **settings: Any,
) -> dict[str, Any]:
    """Return the report of the best model on the rows that it was tested on.

    Reasons come from the same model, fitted on all rows; probabilities from the held-out scores.
    """
    from toprank.report import evaluate
    from toprank.selection import fit_model
    from toprank.shortlisting import effects
    from toprank.shortlisting.shortlist import alerts_of_scores

    held_out = comparison.scores["row"].to_numpy()
    best, pooled = comparison.recommended.model, comparison.pooled_scores()
    known = {"time": rows.time, "value": rows.value, "sample_weight": rows.weight, "day": days,
             "group": None if days is None else rows.group}  # fmt: skip
    X, labels = rows.X.iloc[held_out], comparison.scores["label"].to_numpy()
    assert rows.y is not None
    fitted, _ = fit_model(
        best, rows.X, rows.y, sample_weight=rows.weight, qid=rows.qid, **apart, folds=None,
        random_state=settings["random_state"], n_jobs=jobs,
    )  # fmt: skip
    alerts, probability = alerts_of_scores(
        fitted, X, labels, pooled[best], max(settings["lengths"]),
        ids=rows.row_names()[held_out], value=None if rows.value is None else rows.value[held_out],
    )  # fmt: skip
    settings |= {
        "alerts": alerts,
        "probability": probability,
        "effects": effects(fitted, X),
        "segments": {name: rows.table[name].to_numpy()[held_out] for name in parts},
    }
    return evaluate(
        comparison.scores["label"].to_numpy(), pooled[best], model=best, scores_by_model=pooled,
        comparison=comparison.as_dict(), ids=rows.row_names()[held_out],
        source=f"{rows.source}, each scored by a model that was trained without it",
        **{name: column[held_out] for name, column in known.items() if column is not None},
        **settings,
    )  # fmt: skip


def print_comparison(comparison: Any) -> None:
    """Print the leaderboard, the differences, what was left out, and the recommendation."""
    lines = []
    narrow = table_width() < WIDE_BOARD  # then only the first metric has its interval
    for row in records(comparison.leaderboard()):
        figures = [
            with_interval(row[m], row[f"{m}_low"], row[f"{m}_high"])
            if not (narrow and place)
            else with_interval(row[m], None, None)
            for place, m in enumerate(TITLES)
        ]
        lines.append([row["model"], *figures, f"{row['seconds']:.1f}"])
    splits = f"{comparison.n_splits} {SPLITS[comparison.kind][comparison.n_splits > 1]}"
    say(f"{len(lines)} models on {splits}; intervals at {comparison.level:.0%}")
    print_table(["model", *TITLES.values(), "seconds"], lines, right_from=1)
    lines = []
    for row in records(comparison.differences().drop_duplicates(["model", "other"])):
        gain = f"{row['difference']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})"
        if comparison.n_splits == 1:
            gain = f"{row['difference']:+.3f} (one split)"
        lines.append([row["model"], row["other"], gain, row["verdict"]])
    if lines:
        print_table(["model", "against", "difference of AP", "verdict"], lines)
    for name, reason in {**comparison.failures, **comparison.left_out}.items():
        warn(f"{name} was left out: {reason}")
    for text in comparison.notes:
        note(text)
    say(str(comparison.recommended))


# -- models and datasets ----------------------------------------------------------------------------


@app.command()
def models(as_json: options.Json = False) -> None:
    """List the models that can be compared and fitted.

    [bold]Examples[/bold]

    toprank models

    toprank models --json
    """
    from toprank.selection import MODELS, RELATIONAL_MODELS, YARDSTICK, default_models

    chosen = {*default_models(), YARDSTICK}
    found: list[dict[str, Any]] = [
        {"name": name, "class": c.estimator, "default": name in chosen, "summary": c.summary}
        for name, c in {**MODELS, **RELATIONAL_MODELS}.items()
    ]
    if as_json:
        print_json(found)
        return
    lines = [[m["name"], "*" if m["default"] else "", m["class"], m["summary"]] for m in found]
    print_table(["name", "", "class", "summary"], lines)
    say("* compared by default. toprank fit --model takes any but those of PeerRanker.")
    say("Clauses are for --relational FOLDER; there the others get the facts as columns.")


@app.command()
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="One data set, for details.", show_default=False)
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the data sets that can be loaded, or show one.

    [bold]Examples[/bold]

    toprank datasets

    toprank datasets wdbc --json
    """
    from toprank.datasets import describe
    from toprank.datasets.loaders import find

    table = describe()
    if name is not None:
        table = table.loc[[find(name).name]]
    rows = json.loads(table.reset_index().to_json(orient="records"))
    if as_json:
        print_json(rows[0] if name is not None else rows)
        return
    for row in rows:  # an identifier, not a quantity
        row["openml_id"] = None if row["openml_id"] is None else str(row["openml_id"])
    if name is not None:
        print_table(["", ""], [[key, shown(value)] for key, value in rows[0].items()])
        return
    columns = ["name", "task", "rows", "features", "positives", "positive_share", "openml_id"]
    print_table(columns, [[shown(row[key]) for key in columns] for row in rows], right_from=2)
    say("Set TOPRANK_DATA to a folder of Parquet files, or let OpenML provide those with an id.")
