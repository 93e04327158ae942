"""The demonstration: every model on simulated card fraud, trained on early days, tested on late ones."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toprank.registry import ESTIMATORS, estimator

__all__ = ["METRICS", "comparison_table", "run_demo", "write_report"]

METRICS = ("average_precision", "precision_at_k", "pos_at_top", "roc_auc")

# Lighter settings than the defaults, where the defaults would keep a first-time user waiting.
SETTINGS: dict[str, dict[str, Any]] = {
    "LogisticRanker": {"max_iter": 1000, "tol": 1e-5},
    "GradientBoostingRanker": {"n_estimators": 150},
    "RankingForest": {"n_estimators": 10},
}
# Methods whose cost grows faster than the rows learn from all positives and this many other rows.
MOST_ROWS = {
    "GreedyPAUC": 20_000,
    "KernelLogisticRanker": 5_000,
    "PAUCBoost": 20_000,
    "PartialAUCRanker": 20_000,
    "RankingForest": 10_000,
    "TreeRank": 20_000,
}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "GradientBoostingRanker": {
        "logistic": {"objective": "logistic"},
        "ap_sigmoid": {"objective": "ap_sigmoid"},
    },
}


def run_demo(
    n_rows: int = 100_000,
    *,
    models: Mapping[str, tuple[str, Mapping[str, Any]]] | None = None,
    n_resamples: int = 1000,
    random_state: int = 0,
    verbose: int = 0,
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Simulate payments, train on the first three quarters of the days, rank the rest.

    Parameters
    ----------
    n_rows : int, default=100_000
    models : mapping, optional
        From a label to the name of an estimator and its parameters; by default all estimators.
    n_resamples : int, default=1000
        For the intervals.
    random_state : int, default=0
    verbose : int, default=0
        Show a progress bar.

    Returns
    -------
    report : dict
        Plain data: `data`, and under `models` for each its `seconds`, `training_rows` and `metrics`
        (or `skipped`, with the reason).
    scores : DataFrame
        The label and each model's scores of the test rows.

    Examples
    --------
    >>> only = {"linear": ("LogisticRanker", {"max_iter": 500, "tol": 1e-4})}
    >>> report, scores = run_demo(4000, models=only, n_resamples=50)
    >>> sorted(report), scores.columns.tolist()
    (['data', 'models'], ['is_fraud', 'linear'])
    """
    from toprank.datasets import make_card_fraud
    from toprank.progress import progress

    data = make_card_fraud(n_rows, random_state=random_state)
    early = _early_days(data.extra["day"].to_numpy(), data.y)
    scores = pd.DataFrame({"is_fraud": data.y[~early]})
    chosen = default_models() if models is None else models
    report: dict[str, Any] = {
        "data": {
            "rows": n_rows,
            "training_rows": int(early.sum()),
            "training_frauds": int(data.y[early].sum()),
            "test_rows": int((~early).sum()),
            "test_frauds": int(data.y[~early].sum()),
            "random_state": random_state,
        },
        "models": {},
    }
    with progress(len(chosen), "models", verbose) as advance:
        for label, (name, parameters) in chosen.items():
            entry, ranked = _run_model(name, parameters, data, early, n_resamples, random_state)
            report["models"][label] = {"estimator": name, "parameters": dict(parameters), **entry}
            if ranked is not None:
                scores[label] = ranked
            advance(model=label)
    return report, scores


def default_models() -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Every estimator for tables, some in several variants."""
    models: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for name in ESTIMATORS:
        settings = SETTINGS.get(name, {})
        for variant, parameters in VARIANTS.get(name, {"": {}}).items():
            label = f"{name} {variant}".strip()
            models[label] = (name, {**settings, **parameters})
    return models


def comparison_table(report: Mapping[str, Any]) -> pd.DataFrame:
    """One row for each model that ran, best average precision first.

    Parameters
    ----------
    report : dict
        Of `run_demo`.

    Returns
    -------
    table : DataFrame
        Columns `model`, for each metric its value, low and high end, and `seconds`.
    """
    rows = []
    for label, entry in report["models"].items():
        if "metrics" not in entry:
            continue
        row: dict[str, Any] = {"model": label}
        for metric in METRICS:
            figures = entry["metrics"][metric]
            row |= {metric: figures["value"], f"{metric}_low": figures["low"],
                    f"{metric}_high": figures["high"]}  # fmt: skip
        rows.append({**row, "seconds": entry["seconds"]})
    table = pd.DataFrame(rows)
    if len(table):
        table = table.sort_values("average_precision", ascending=False, ignore_index=True)
    return table


def write_report(report: Mapping[str, Any], scores: pd.DataFrame, folder: str | Path) -> list[Path]:
    """Write `report.json`, `comparison.csv` and `scores.csv` into a folder, which may be new."""
    from toprank.tables import write_table, write_text

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths = [place / name for name in ("report.json", "comparison.csv", "scores.csv")]
    write_text(json.dumps(report, indent=1) + "\n", paths[0])
    write_table(comparison_table(report), paths[1])
    write_table(scores, paths[2])
    return paths


def _early_days(day: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The first three quarters of the days, or fewer if no fraud would be left for the test."""
    cut = round(0.75 * (int(day.max()) + 1))
    while cut > 1 and not y[day >= cut].any():
        cut -= 1
    early = day < cut
    if not (y[early].any() and y[~early].any()):
        raise ValueError("too few rows: fraud is needed both in early and in late days; take more")
    return early


def _run_model(
    name: str,
    parameters: Mapping[str, Any],
    data: Any,
    early: np.ndarray,
    n_resamples: int,
    random_state: int,
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Train one model and measure it; a model whose library is not installed is skipped."""
    from toprank.metrics import evaluate

    try:
        model = estimator(name)(**_seeded(estimator(name), parameters, random_state))
    except ImportError as error:
        return {"skipped": " ".join(str(error).split())}, None
    rows = _training_rows(early, data.y, MOST_ROWS.get(name), random_state)
    pipeline = _with_encoding(model, data.X)
    start = time.perf_counter()
    try:
        pipeline.fit(data.X[rows], data.y[rows])
    except ImportError as error:
        return {"skipped": " ".join(str(error).split())}, None
    seconds = time.perf_counter() - start
    scores = pipeline.decision_function(data.X[~early])
    figures = evaluate(data.y[~early], scores, metrics=METRICS, n_resamples=n_resamples)
    entry = {"seconds": round(seconds, 2), "training_rows": int(rows.sum()), "metrics": figures}
    return entry, scores


def _seeded(kind: type, parameters: Mapping[str, Any], random_state: int) -> dict[str, Any]:
    """The parameters, with the seed where the estimator takes one."""
    names = kind._get_param_names()  # type: ignore[attr-defined]
    seed = {"random_state": random_state} if "random_state" in names else {}
    return {**seed, **parameters}


def _training_rows(
    early: np.ndarray, y: np.ndarray, most: int | None, random_state: int
) -> np.ndarray:
    """All early rows, or all early positives and a draw of the others."""
    others = np.flatnonzero(early & (y == 0))
    if most is None or len(others) <= most:
        return early
    rows = early & (y == 1)
    rows[np.random.RandomState(random_state).choice(others, most, replace=False)] = True
    return rows


def _with_encoding(model: Any, X: pd.DataFrame) -> Any:
    """Put what a model needs before it: numbers for categories, values for missing cells."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, QuantileTransformer

    tags = model.__sklearn_tags__().input_tags
    if tags.allow_nan and tags.categorical:
        return model
    categories = [name for name in X.columns if isinstance(X[name].dtype, pd.CategoricalDtype)]
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    spread = QuantileTransformer(n_quantiles=200, output_distribution="normal", random_state=0)
    numeric = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), spread)
    columns = [name for name in X.columns if name not in categories]
    return make_pipeline(make_column_transformer((encode, categories), (numeric, columns)), model)
