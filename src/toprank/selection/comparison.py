"""ModelComparison: the results of a comparison, as tables, as JSON data and in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from toprank.formatting import join_names, to_jsonable
from toprank.metrics.intervals import (
    bootstrap_interval,
    corrected_interval,
    holm,
    holm_levels,
    interval_verdict,
)
from toprank.selection.peers import PEERS

__all__ = ["ModelComparison", "Recommendation"]

METRIC_NAMES = ("average_precision", "precision_at_k", "pos_at_top", "partial_auc", "roc_auc")
MAIN_METRIC = "average_precision"
Estimate = tuple[float, float, float, float]  # value, low, high, p-value of zero


@dataclass(frozen=True)
class Recommendation:
    """The model to use, and a sentence that says why; `str` gives the sentence."""

    model: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Models compared on the same splits.

    Attributes
    ----------
    models : tuple of str
        Those that were run on every complete split.
    yardstick : str or None
        Name of the tuned logistic booster; None if it failed.
    kind : {"stratified", "grouped", "time"}
        How the rows were split.
    method : {"corrected_t", "bootstrap"}
        Of the intervals, see `compare_models`.
    level : float
        Confidence level.
    values : ndarray of shape (n_splits, n_models, n_metrics)
        The metrics of `metrics` on each complete split.
    resampled : ndarray of shape (n_models, n_metrics, n_resamples) or None
        Means over the splits on resamples of the test rows (bootstrap only).
    seconds : ndarray of shape (n_splits, n_models)
        Time to fit and score.
    splits : tuple of dict
        For each complete split: `repeat`, `fold`, `n_train`, `n_test`, `train_positives`,
        `test_positives`.
    training_rows : dict
        By model, the mean number of rows it was trained on.
    scores : DataFrame
        Scores of the test rows of the first repeat: `row` (position), `fold`, `label` (0 or 1), and a
        column for each model.
    failures : dict
        By model that failed, the reason.
    left_out : dict
        By model that was not run, the reason.
    notes : tuple of str
        What else a reader should know: splits left out, samples of rows, warnings of models.
    parameters : dict
        `k` and `fpr` of the metrics.
    """

    models: tuple[str, ...]
    yardstick: str | None
    kind: str
    method: str
    level: float
    values: np.ndarray
    resampled: np.ndarray | None
    seconds: np.ndarray
    splits: tuple[Mapping[str, int], ...]
    training_rows: Mapping[str, int]
    scores: pd.DataFrame
    failures: Mapping[str, str]
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    parameters: Mapping[str, Any]

    metrics = METRIC_NAMES

    @property
    def n_splits(self) -> int:
        """Number of complete splits."""
        return len(self.splits)

    @property
    def best(self) -> str:
        """The model with the highest mean average precision."""
        return self._best(MAIN_METRIC)

    def leaderboard(self) -> pd.DataFrame:
        """Return one row for each model, the highest average precision first.

        Returns
        -------
        table : DataFrame
            `model`; for each metric its mean over the splits and the ends of its interval (`_low`,
            `_high`); `seconds` (mean of a split), `n_splits` and `training_rows`.
        """
        rows = []
        for number, model in enumerate(self.models):
            row: dict[str, Any] = {"model": model}
            for metric in METRIC_NAMES:
                value, low, high, _ = self._estimate(metric, model)
                row |= {metric: value, f"{metric}_low": max(low, 0.0)}
                row[f"{metric}_high"] = min(high, 1.0)
            row |= {"seconds": float(self.seconds[:, number].mean()), "n_splits": self.n_splits}
            rows.append({**row, "training_rows": self.training_rows[model]})
        table = pd.DataFrame(rows)
        return table.sort_values(MAIN_METRIC, ascending=False, kind="stable", ignore_index=True)

    def differences(self, metric: str = MAIN_METRIC) -> pd.DataFrame:
        """Return paired differences of every model to the best one and to the yardstick.

        Intervals and verdicts are corrected for the number of differences to the same model by Holm's
        method, and say the same: "cannot tell" stands where the interval holds zero. One split gives
        neither interval nor verdict. The best is found on the same splits, so differences to it look a
        little larger than they are; those to the yardstick do not.

        Parameters
        ----------
        metric : str, default="average_precision"
            One of `metrics`.

        Returns
        -------
        table : DataFrame
            `reference` ("best" or "yardstick"), `other` (its name), `model`, `difference` (model
            minus other), `low`, `high`, `p_value`, `p_adjusted` and `verdict` ("better", "worse" or
            "cannot tell", of the model against the other).
        """
        references = {"best": self._best(metric)}
        if self.yardstick is not None:
            references["yardstick"] = self.yardstick
        rows: list[dict[str, Any]] = []
        for reference, other in references.items():
            found: list[dict[str, Any]] = [
                {"reference": reference, "other": other, "model": model}
                | dict(zip(("difference", "low", "high", "p_value"),
                           self._estimate(metric, model, other), strict=True))
                for model in self.models
                if model != other
            ]  # fmt: skip
            p_values = [row["p_value"] for row in found]
            levels = holm_levels(p_values, self.level)
            for row, p_value, level in zip(found, holm(p_values), levels, strict=True):
                row["p_adjusted"] = float(p_value)
                _, low, high, _ = self._estimate(metric, row["model"], other, float(level))
                if self.n_splits == 1:
                    row |= {"p_value": math.nan, "p_adjusted": math.nan}
                    low = high = math.nan
                row |= {"low": low, "high": high, "verdict": interval_verdict(low, high)}
            rows += sorted(found, key=lambda row: -row["difference"])
        columns = ["reference", "other", "model", "difference", "low", "high", "p_value",
                   "p_adjusted", "verdict"]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)

    @property
    def recommended(self) -> Recommendation:
        """The model with the highest average precision, and how sure that is, in a sentence.

        A peer, which has no model file, is named but not recommended.
        """
        table, leader = self.differences(), self.best
        best = self._best(MAIN_METRIC, [m for m in self.models if m not in PEERS] or self.models)
        value, low, high, _ = self._estimate(MAIN_METRIC, best)
        bounds = _with_interval(value, max(low, 0.0), min(high, 1.0))
        sentence = f"{best} has the highest average precision, {bounds}"
        if best != leader:
            sentence = (
                f"{leader}, a model of another library, has the highest average precision, "
                f"{self._estimate(MAIN_METRIC, leader)[0]:.3f}; of those that can be saved here, {best}, "
                f"{bounds}"
            )
        if self.yardstick is None:
            sentence += "; there is no yardstick to compare it with, since that was not run"
        elif best == self.yardstick:
            sentence += "; no other model does better than this tuned logistic booster"
        else:
            of_best = (table["reference"] == "yardstick") & (table["model"] == best)
            row = table[of_best].iloc[0]
            gain = f"({row['difference']:+.3f}, {row['low']:+.3f} to {row['high']:+.3f})"
            better = ", better than the tuned logistic booster by more than chance explains"
            level = ", but cannot be told from the tuned logistic booster"
            if self.n_splits == 1:
                gain = f"({row['difference']:+.3f} on one split, which decides nothing)"
            sentence += f"{better if row['verdict'] == 'better' else level} {gain}"
        as_good = (table["reference"] == "best") & (table["verdict"] == "cannot tell")
        others = [m for m in table["model"][as_good] if m not in (self.yardstick, best)]
        if others:
            sentence += f"; {join_names(others)} may be as good"
        return Recommendation(best, f"{sentence}.")

    def _repr_html_(self) -> str:
        """Show the leaderboard and the recommendation in a notebook."""
        board = self.leaderboard()
        shown = pd.DataFrame({"model": board["model"]})
        for metric in METRIC_NAMES:
            ends = zip(*(board[f"{metric}{end}"] for end in ("", "_low", "_high")), strict=True)
            shown[metric.replace("_", " ")] = [_with_interval(*figures) for figures in ends]
        shown["seconds"] = board["seconds"].map("{:.1f}".format)
        return f"<p>{escape(str(self.recommended))}</p>{shown.to_html(index=False)}"

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the scores as JSON data (None where there is no number).

        Returns
        -------
        data : dict
            `models`, `yardstick`, `kind`, `method`, `level`, `metrics`, `parameters`, `n_splits`,
            `splits`, `leaderboard` and, by metric, `differences` (lists of dicts, a row each),
            `values` (by model and metric, one for each split), `failures`, `left_out`, `notes`,
            `recommended` (`model` and `sentence`).
        """
        plain = ("models", "yardstick", "kind", "method", "level", "metrics", "parameters",
                 "n_splits", "splits")  # fmt: skip
        values = {
            model: {metric: self.values[:, i, j].tolist() for j, metric in enumerate(METRIC_NAMES)}
            for i, model in enumerate(self.models)
        }
        return to_jsonable(
            {
                **{name: getattr(self, name) for name in plain},
                "leaderboard": self.leaderboard(),
                "differences": {metric: self.differences(metric) for metric in METRIC_NAMES},
                "values": values,
                "failures": self.failures,
                "left_out": self.left_out,
                "notes": self.notes,
                "recommended": asdict(self.recommended),
            }
        )

    def pooled_scores(self) -> dict[str, np.ndarray]:
        """Return the scores of the table `scores` by model, on one scale for all folds.

        Each fold has a model of its own, and models need not agree on a scale: joined as they are, the
        rows of one fold might fill the top of the list. So a row gets the share of the rows of its fold
        that it ranks above, and the list of all folds takes an equal share of each.
        """
        folds = self.scores.groupby("fold")
        sizes = folds["fold"].transform("size")
        return {name: ((folds[name].rank() - 0.5) / sizes).to_numpy() for name in self.models}

    def _best(self, metric: str, among: Sequence[str] | None = None) -> str:
        means = self.values[:, :, self._index(metric)].mean(axis=0)
        return max(among or self.models, key=lambda model: means[self.models.index(model)])

    def _index(self, metric: str) -> int:
        if metric not in METRIC_NAMES:
            raise ValueError(f"unknown metric {metric!r}; known: {', '.join(METRIC_NAMES)}")
        return METRIC_NAMES.index(metric)

    def _estimate(
        self, metric: str, model: str, other: str | None = None, level: float | None = None
    ) -> Estimate:
        """Return the mean of a metric, or of its paired difference to another model, with its interval."""
        i, j = self.models.index(model), self._index(metric)
        level = self.level if level is None else level
        k = None if other is None else self.models.index(other)
        values = self.values[:, i, j] - (0.0 if k is None else self.values[:, k, j])
        if self.resampled is not None:
            resampled = self.resampled[i, j] - (0.0 if k is None else self.resampled[k, j])
            return bootstrap_interval(float(values.mean()), resampled, level)
        shares = [split["n_test"] / split["n_train"] for split in self.splits]
        return corrected_interval(values, float(np.mean(shares)), level)


def _with_interval(value: float, low: float, high: float) -> str:
    """Write a figure with its interval; one split has none."""
    return f"{value:.3f}" if np.isnan(low + high) else f"{value:.3f} ({low:.3f} to {high:.3f})"
