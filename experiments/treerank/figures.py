"""The paper's figures in our form: mean ranks over sets, and AUC with local AUC by set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from experiments.common import Results

MEASURES = (
    "AUC",
    "LocAUC@20% split",
    "LocAUC@10% split",
    "LocAUC@5% split",
    "HR@10%",
    "HR@20%",
    "AP",
)
Members = dict[str, tuple[Results, str]]  # label -> the results it is in, and its method there


def mean_ranks(members: Members, part: str, sets: list[str]) -> dict[str, list[float]]:
    """Return for each member its mean rank over the sets by each measure, 1 for the best."""
    ranks = []
    for name in MEASURES:
        table = [[_mean(*member, part, data, name) for member in members.values()] for data in sets]
        ranks.append(rankdata(-np.round(table, 6), axis=1).mean(axis=0))
    return {label: [float(r[k]) for r in ranks] for k, label in enumerate(members)}


def _mean(results: Results, method: str, part: str, data: str, name: str) -> float:
    values = results.values(name, part=part, data=data, method=method)
    return float(values.mean()) if len(values) else -np.inf


def draw_mean_ranks(members: Members, part: str, sets: list[str], path: Path) -> None:
    """Draw a grid of mean ranks: members down, measures across."""
    plt = _pyplot()
    ranks = mean_ranks(members, part, sets)
    labels = sorted(ranks, key=lambda label: np.mean(ranks[label]))
    table = np.array([ranks[label] for label in labels])
    figure, axes = plt.subplots(figsize=(8, 0.4 * len(labels) + 1.4))
    image = axes.imshow(table, cmap="viridis_r", aspect="auto")
    middle = (table.min() + table.max()) / 2
    for (row, column), value in np.ndenumerate(table):
        colour = "white" if value > middle else "black"
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(MEASURES)), [name.replace(" split", "") for name in MEASURES])
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="x", rotation=30)
    figure.colorbar(image, label="mean rank, 1 is best")
    _save(plt, figure, path)


def draw_bars(members: Members, part: str, sets: list[str], path: Path) -> None:
    """Draw for each set the AUC and the local AUC at 20% of every member, with standard deviations."""
    plt = _pyplot()
    columns = min(5, len(sets))
    rows = -(-len(sets) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(3.4 * columns, 3.4 * rows), squeeze=False)
    places = np.arange(len(members))
    for axes, data in zip(grid.ravel(), sets, strict=False):
        for offset, name in ((-0.2, "AUC"), (0.2, "LocAUC@20% split")):
            values = [r.values(name, part=part, data=data, method=m) for r, m in members.values()]
            means = [v.mean() if len(v) else 0.0 for v in values]
            errors = [v.std(ddof=1) if len(v) > 1 else 0.0 for v in values]
            axes.bar(places + offset, means, 0.4, yerr=errors, label=name.replace(" split", ""))
        axes.set_title(data, fontsize=9)
        axes.set_ylim(0, 1.05)
        axes.set_xticks(places, list(members), rotation=90, fontsize=7)
    for axes in grid.ravel()[len(sets) :]:
        axes.set_axis_off()
    grid[0, 0].legend(fontsize=7, loc="lower left")
    _save(plt, figure, path)


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    return plt


def _save(plt: Any, figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    plt.close(figure)
