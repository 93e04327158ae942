"""The page: our figures against the published ones, and what is reproduced."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.common import Results, markdown_table, mean_interval
from experiments.treerank.published import (
    BENCHMARKS,
    COMPETITORS,
    FIGURES,
    GAUSSIANS,
    INSTABILITY,
    MISPRINTS,
)
from toprank.datasets import gauss20d_bayes_auc

ALLOWED = 0.02
JUDGED = ("RF1-SVM", "RF3-CART")

HEAD = """# Ranking trees and forests: ours against the published figures

Published: M. Depecker, S. Clemencon and N. Vayatis (2011), An empirical comparison of learning
algorithms for nonparametric scoring, hal-00730434, tables 2-6 (the columns of RF1-SVM and RF3-CART return
in tables 10 and 11). Each cell is ours / published, the mean over the repeats or folds that were run.

- Gaussian sets: the paper prints neither means nor covariances. Ours are chosen so that simple methods
  reach its figures (`toprank.datasets.gauss20d` says how and gives the numbers): fresh draws of 1,000
  training rows, one test set of 1,000, depth 8 and 6 in LeafRank, 50 trees, not pruned.
- Benchmark sets: stratified 10-fold; tree and small trees pruned by nested stratified 5-fold. As in the
  paper, vote has democrats as positives and complete rows (232), ionosphere good returns as positives,
  hepatitis goes without PROTIME and incomplete rows (112), breast_cancer_wisconsin without incomplete
  rows (683); german_credit has good credit as positives. The folds are ours: the paper's are not known.
- SVM: a linear kernel (C = .1 or 1) or a Gaussian one (C = .1, .3 or 1), whichever has the highest AUC
  of trees held out inside the training part.
- Local AUC on the benchmark sets counts the whole tie group at the cut: the published values exceed u/p on
  several sets, which no other way of counting allows; on the Gaussian sets they never do, and ties are
  split. What the paper calls AP is compared with the mean precision over all ranks.
- Misprints left out: the local AUCs of RF1-CART on australian.

"""


def write(results: Results, path: Any) -> None:
    """Write the Markdown page from the cells that are there."""
    parts = [HEAD, _acceptance(results), _gaussians(results), _instability(results)]
    parts += [_benchmarks(results), _competitors(results)]
    path.write_text("\n".join(parts))


def _mean(results: Results, name: str, **wanted: Any) -> float:
    values = results.values(name, **wanted)
    return float(values.mean()) if len(values) else float("nan")


def _pair(ours: float, published: float, digits: int = 3) -> str:
    left = "-" if np.isnan(ours) else f"{ours:.{digits}f}"
    return f"{left} / {published:.{digits}f}"


def _gaussians(results: Results) -> str:
    text = ["## Tables 2 and 3: Gaussian sets\n"]
    for data, table in GAUSSIANS.items():
        counts = [len(results.select(part="gaussian", data=data, method=m)) for m in table]
        rows = []
        for method, published in table.items():
            wanted = {"part": "gaussian", "data": data, "method": method}
            names = [f"{name} split" if name.startswith("Loc") else name for name in FIGURES]
            pairs = [
                _pair(_mean(results, name, **wanted), value)
                for name, value in zip(names, published, strict=True)
            ]
            auc = results.values("AUC", **wanted)
            spread = f"{auc.std(ddof=1):.3f}" if len(auc) > 1 else "-"
            rows.append([method, *pairs, spread])
        text.append(
            f"{data}: Bayes AUC {gauss20d_bayes_auc(data):.3f}, "
            f"{min(counts)} to {max(counts)} repeats\n"
        )
        text.append(markdown_table(["variant", *FIGURES, "s.d. of AUC"], rows))
    return "\n".join(text)


def _instability(results: Results) -> str:
    text = [
        "## Table 4: instability\n",
        "Ours is normalised to [0, 1] (0: the same order each time), theirs is not: compare the order.\n",
    ]
    rows = []
    for method in INSTABILITY["easy"]:
        row: list[Any] = [method]
        for data in INSTABILITY:
            wanted = {"part": "instability", "data": data, "method": method}
            ours = _mean(results, "instability", **wanted)
            left = "-" if np.isnan(ours) else f"{ours:.3f}"
            row.append(f"{left} / {INSTABILITY[data][method]:g}")
        rows.append(row)
    text.append(markdown_table(["variant", *INSTABILITY], rows))
    return "\n".join(text)


def _benchmarks(results: Results) -> str:
    text = ["## Tables 5 and 6: benchmark sets\n"]
    methods = list(next(iter(BENCHMARKS.values())))
    for k, name in enumerate(FIGURES):
        rows = []
        for data, table in BENCHMARKS.items():
            row: list[Any] = [data]
            for method in methods:
                ours = _mean(results, name, part="benchmark", data=data, method=method)
                wrong = (data, method, name) in MISPRINTS
                row.append(f"{ours:.3f} / -" if wrong else _pair(ours, table[method][k]))
            rows.append(row)
        text.append(f"{name}\n")
        text.append(markdown_table(["set", *methods], rows))
    return "\n".join(text)


def _competitors(results: Results) -> str:
    rows = []
    names = list(next(iter(COMPETITORS.values())))
    for data, table in COMPETITORS.items():
        ours = [_mean(results, "AUC", part="benchmark", data=data, method=m) for m in JUDGED]
        best = max(table.values())
        ahead = "-" if np.isnan(ours).all() else "yes" if np.nanmax(ours) >= best else "no"
        rows.append([data, *(f"{v:.3f}" for v in ours), *(table[n] for n in names), ahead])
    header = [
        "set",
        *(f"our {m}" for m in JUDGED),
        *(f"{n} (published)" for n in names),
        "ahead of all",
    ]
    return (
        "## Table 10: our forests against the published AUC of other methods\n\n"
        + markdown_table(header, rows)
    )


def _acceptance(results: Results) -> str:
    """Which claims hold, counted."""
    lines = ["## What is reproduced\n"]
    for method in JUDGED:
        near, missed, done = 0, [], 0
        for data, table in BENCHMARKS.items():
            values = results.values("AUC", part="benchmark", data=data, method=method)
            if not len(values):
                continue
            done += 1
            if values.mean() >= table[method][0] - ALLOWED:
                near += 1
            else:
                mean, low, high = mean_interval(values)
                missed.append(
                    f"{data} {mean:.3f} [{low:.3f}, {high:.3f}] against {table[method][0]:.3f}"
                )
        tail = f"; below: {', '.join(missed)}" if missed else ""
        lines.append(
            f"- {method}: AUC at least the published value - {ALLOWED} on {near} of {done} sets{tail}."
        )
    lines.append(_order(results, "forest above single tree (CART)", "RF3-CART", "TRK-CART"))
    lines.append(_order(results, "forest above single tree (SVM)", "RF1-SVM", "TRK-SVM"))
    lines.append(_order(results, "SVM splits above CART for single trees", "TRK-SVM", "TRK-CART"))
    return "\n".join(lines) + "\n"


def _order(results: Results, claim: str, upper: str, lower: str) -> str:
    """On how many sets one variant has the higher mean AUC, ours and published."""
    ours, theirs, against, done = 0, 0, [], 0
    for part, tables in (("gaussian", GAUSSIANS), ("benchmark", BENCHMARKS)):
        for data, table in tables.items():
            first = _mean(results, "AUC", part=part, data=data, method=upper)
            second = _mean(results, "AUC", part=part, data=data, method=lower)
            if np.isnan(first) or np.isnan(second):
                continue
            done += 1
            theirs += table[upper][0] > table[lower][0]
            ours += first > second
            if first <= second:
                against.append(f"{data} ({first:.3f} against {second:.3f})")
    tail = f"; not on {', '.join(against)}" if against else ""
    return (
        f"- {claim}, {upper} > {lower}: ours on {ours} of {done} sets, published on {theirs}{tail}."
    )
