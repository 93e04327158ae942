"""`toprank explain`: what a model file holds, what drives its scores, why rows stand where they do."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from toprank.cli.application import app
from toprank.cli.inputs import Roles, Rows, load_model, model_columns, read_scored
from toprank.cli.options import Data, Identifier, Json, ModelFile, Sql
from toprank.cli.output import print_json, print_table, records, say, shown

__all__ = ["explain"]

MOST_RULES = 20
MOST_FEATURES = 20


@app.command()
def explain(
    model: ModelFile,
    data: Data = None,
    sql: Sql = None,
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
    identifier: Identifier = None,
    as_json: Json = False,
) -> None:
    """Say what a model knows; with data, what drives its scores and why rows stand where they do.

    [bold]Examples[/bold]

    toprank explain fraud.toprank

    toprank explain fraud.toprank today.parquet --id payment --row P15174,P15037
    """
    ranker = load_model(model)
    if data is None and sql is None:
        found = _description(ranker, str(model))
        print_json(found) if as_json else _print_description(found)
        return
    rows = read_scored(data, sql, model_columns(ranker), Roles(identifier=identifier))
    found = _explanation(ranker, rows, row, top, n_reasons)
    print_json(found) if as_json else _print_explanation(found)


def _description(ranker: Any, path: str) -> dict[str, Any]:
    """What a model file holds, as plain data."""
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
        "columns": _columns(file.schema["columns"], summary.get("columns", [])),
    }
    if hasattr(inner, "rules_"):
        rules = inner.rules_
        found["n_rules"] = len(rules)
        found["rules"] = records(rules.head(MOST_RULES))
    return found


def _columns(schema: list[dict[str, Any]], summary: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Name, kind and range of each column."""
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
    trained = (
        ""
        if found["rows"] is None
        else f", trained on {shown(found['rows'])} rows, {shown(found['positives'])} of them positive"
    )
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
        say(
            f"The first of {found['n_rules']} rules:" if found["n_rules"] > MOST_RULES else "Rules:"
        )
        titles = list(found["rules"][0]) if found["rules"] else []
        print_table(titles, [[shown(_plain(cell)) for cell in r.values()] for r in found["rules"]])


def _explanation(
    ranker: Any, rows: Rows, wanted: list[str] | None, top: int, n_reasons: int
) -> dict[str, Any]:
    """What drives the scores, and the reasons of some rows, as plain data."""
    import numpy as np

    from toprank.ranking import descending_order
    from toprank.shortlisting import global_importance, reasons

    scores = np.asarray(ranker.decision_function(rows.X))
    order = descending_order(scores)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    chosen = order[:top] if wanted is None else np.array(_positions(rows, wanted), dtype=np.int64)
    part = rows.X.iloc[chosen]
    texts = reasons(ranker, part, n_reasons, background=rows.X.head(1000)) if len(part) else []
    names = rows.names()
    explained = [
        {
            "row": _plain(names[position]),
            "rank": int(ranks[position]),
            "score": float(scores[position]),
            "reasons": words,
        }
        for position, words in zip(chosen, texts, strict=True)
    ]
    importance = global_importance(ranker, rows.X)
    return {"rows": len(rows.X), "importance": records(importance), "explained": explained}


def _positions(rows: Rows, wanted: list[str]) -> list[int]:
    """Where the named rows stand."""
    names = [str(name) for name in rows.names()]
    places = {name: position for position, name in enumerate(names)}
    asked: list[str] = []
    for text in wanted:
        asked += [text] if text in places else [part.strip() for part in text.split(",")]
    for name in asked:
        if name not in places:
            what = f"a number from 1 to {len(names)}" if rows.ids is None else "an identifier"
            raise ValueError(f"--row {name}: {rows.source} has no such row; name it by {what}")
    return [places[name] for name in asked]


def _print_explanation(found: dict[str, Any]) -> None:
    say(f"What moves the scores of {shown(found['rows'])} rows, and by how much on average:")
    cells = [
        [str(entry["feature"]), f"{entry['importance']:.4g}", f"{entry['share']:.1%}"]
        for entry in found["importance"][:MOST_FEATURES]
    ]
    print_table(["column", "moves the score by", "share"], cells, right_from=1)
    for entry in found["explained"]:
        say(f"Row {entry['row']}: rank {shown(entry['rank'])}, score {entry['score']:.4g}")
        for reason in entry["reasons"] or ["nothing moves it"]:
            say(f"  {reason}")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
