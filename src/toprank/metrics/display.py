"""Curves of a ranking: their points, and their plots in matplotlib in scikit-learn's style."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.docstrings import fill_docstring
from toprank.metrics.lists import (
    partial_auc,
    precision_at_k_core,
    recall_precision_area,
    roc_auc,
)
from toprank.metrics.steps import CumulativeCounts, Staircase, staircase
from toprank.validation import check_choice, check_range

__all__ = ["CURVES", "RankingCurveDisplay", "ranking_curve"]

Points = tuple[np.ndarray, np.ndarray]
AXES = {
    "roc": ("False positive rate", "True positive rate"),
    "recall_precision": ("Recall", "Precision"),
    "list_precision": ("List length (rows)", "Precision"),
}


@fill_docstring
def ranking_curve(
    kind: str,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    max_points: int = 2000,
) -> Points:
    """Points of a curve of a ranking.

    Parameters
    ----------
    kind : {"roc", "recall_precision", "list_precision"}
        - "roc": true positive rate against false positive rate;
        - "recall_precision": precision against recall, with points on the hyperbolas between
          thresholds (Davis and Goadrich 2006), whose area is
          :func:`~toprank.metrics.recall_precision_area`;
        - "list_precision": expected precision against the length of the list.
    %(metric_input)s
    %(metric_options)s
    max_points : int, default=2000
        About how many points; longer curves are thinned out, shorter ones refined where they bend.

    Returns
    -------
    x, y : ndarray
        Points to be joined by straight lines.

    Examples
    --------
    >>> x, y = ranking_curve("roc", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> x.tolist(), y.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    points = CURVES[check_choice(kind, "kind", tuple(CURVES))]
    return points(staircase(y_true, scores, sample_weight, pos_label), max_points)


def roc_points(stairs: Staircase, max_points: int = 2000) -> Points:
    """Return the corners of the ROC curve."""
    passed = CumulativeCounts.of(stairs)
    negatives, positives = passed.negatives, passed.positives
    kept = _spread(len(negatives), max_points)
    x, y = negatives[kept] / stairs.total_negatives, positives[kept] / stairs.total_positives
    moved = np.append(True, (np.diff(x) > 0) | (np.diff(y) > 0))
    return x[moved], y[moved]


def recall_precision_points(stairs: Staircase, max_points: int = 2000) -> Points:
    """Return precision against recall along the hyperbolas between thresholds."""
    steps = _spread(len(stairs.positives), max_points // 2)
    pieces = max(1, min(50, max_points // len(steps)))
    share = np.linspace(0.0, 1.0, pieces + 1)
    passed = CumulativeCounts.of(stairs)
    negatives, positives = passed.negatives, passed.positives
    # corner 2g + 1 is where step g starts, after the negatives above it
    x = negatives[1:-1:2][steps, None] + stairs.negatives_tied[steps, None] * share
    y = positives[1:-1:2][steps, None] + stairs.positives[steps, None] * share
    size = x + y
    precision = np.divide(y, size, out=np.zeros_like(y), where=size > 0)
    if size[0, 0] == 0:  # the empty list: precision is constant up to the first threshold
        precision[0, 0] = precision[0, -1]
    recall = (y / stairs.total_positives).ravel()
    return np.append(recall, 1.0), np.append(
        precision.ravel(), stairs.total_positives / stairs.total
    )


def list_precision_points(stairs: Staircase, max_points: int = 2000) -> Points:
    """Return expected precision against list length, from one row to all."""
    passed = CumulativeCounts.of(stairs)
    negatives, positives = passed.negatives, passed.positives
    kept = _spread(len(negatives), max_points)
    size = negatives + positives
    grid = np.geomspace(min(1.0, size[-1]), size[-1], max_points // 2)
    grid[-1] = size[-1]  # geomspace may end a rounding away
    length = np.union1d(size[kept][size[kept] >= grid[0]], grid)
    distinct = np.append(np.diff(size) > 0, True)
    return length, np.interp(length, size[distinct], positives[distinct]) / length


CURVES: dict[str, Callable[..., Points]] = {
    "roc": roc_points,
    "recall_precision": recall_precision_points,
    "list_precision": list_precision_points,
}


def _spread(count: int, at_most: int) -> np.ndarray:
    """Return at most so many indices, evenly spread, both ends included."""
    if count <= at_most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, max(at_most, 2)).astype(np.int64))


@dataclass(kw_only=True, eq=False, repr=False)
class RankingCurveDisplay:
    """One curve of a ranking.

    Make it with :meth:`from_estimator` or :meth:`from_predictions`; draw it again with
    :meth:`plot`.

    Parameters
    ----------
    kind : {"roc", "recall_precision", "list_precision"}
        What is drawn: the ROC curve, precision against recall with the exact interpolation between
        thresholds, or precision against the length of the list.
    x, y : ndarray
        Points of the curve.
    prevalence : float
        Share of positives, the precision of a random list.
    fpr : tuple (a, b) or None
        Range of false positive rates to shade (ROC only).
    summary : str
        Figure for the legend, such as "AUC = 0.87".
    name : str or None
        Name of the model for the legend.

    Attributes
    ----------
    ax_, figure_, line_ : matplotlib objects
        Set by :meth:`plot`.
    shade_ : matplotlib PolyCollection or None
        The shaded range.
    chance_ : matplotlib Line2D or None
        The line of a random order.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from toprank.metrics import RankingCurveDisplay
    >>> display = RankingCurveDisplay.from_predictions(
    ...     [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], kind="roc", fpr=(0, 0.5), name="model"
    ... )
    >>> display.line_.get_label()
    'model (AUC = 0.750, pAUC(0, 0.5) = 0.500)'
    """

    kind: str
    x: np.ndarray
    y: np.ndarray
    prevalence: float
    fpr: tuple[float, float] | None = None
    summary: str = ""
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        pos_label: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> RankingCurveDisplay:
        """Draw a curve of a fitted two-class estimator on a data set.

        Scores come from `decision_function`, else from `predict_proba`.

        Parameters
        ----------
        estimator : fitted estimator
        X : table of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        pos_label : label, optional
            The positive class; by default the greater of the two labels.
        name : str, optional
            Name for the legend; by default the class of the estimator.
        **options
            As in :meth:`from_predictions`: `kind`, `fpr`, `sample_weight`, `ax`,
            `plot_chance_level` and options of the line.

        Returns
        -------
        RankingCurveDisplay
        """
        return cls.from_predictions(
            y,
            _scores_of(estimator, X, pos_label),
            pos_label=pos_label,
            name=type(estimator).__name__ if name is None else name,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        scores: Any,
        *,
        kind: str = "roc",
        fpr: tuple[float, float] | None = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        plot_chance_level: bool = False,
        **line_options: Any,
    ) -> RankingCurveDisplay:
        """Draw a curve of a list of scores.

        Parameters
        ----------
        y_true, scores, sample_weight, pos_label
            As in the metrics.
        kind : {"roc", "recall_precision", "list_precision"}, default="roc"
            What to draw.
        fpr : tuple (a, b), optional
            With ``kind="roc"``, the range of false positive rates to shade; the legend then gives
            its partial AUC.
        name : str, optional
            Name for the legend.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        plot_chance_level : bool, default=False
            Draw the line of a random order.
        **line_options
            Options of ``Axes.plot``, such as ``color``.

        Returns
        -------
        RankingCurveDisplay
        """
        check_choice(kind, "kind", tuple(CURVES))
        if fpr is not None and kind != "roc":
            raise ValueError("fpr shades a range of the ROC curve: use it with kind='roc'.")
        shaded = None if fpr is None else check_range(fpr)
        stairs = staircase(y_true, scores, sample_weight, pos_label)
        x, y = CURVES[kind](stairs)
        display = cls(
            kind=kind,
            x=x,
            y=y,
            prevalence=stairs.total_positives / stairs.total,
            fpr=shaded,
            summary=_summary(kind, stairs, shaded),
            name=name,
        )
        return display.plot(ax, plot_chance_level=plot_chance_level, **line_options)

    def plot(
        self, ax: Any = None, *, plot_chance_level: bool = False, **line_options: Any
    ) -> RankingCurveDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        plot_chance_level : bool, default=False
            Draw the line of a random order.
        **line_options
            Options of ``Axes.plot``.

        Returns
        -------
        RankingCurveDisplay
            Itself, with `ax_`, `figure_`, `line_`, `shade_` and `chance_`.
        """
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        label = self.summary if self.name is None else f"{self.name} ({self.summary})"
        (self.line_,) = ax.plot(self.x, self.y, **{"label": label, **line_options})
        self.shade_ = self.chance_ = None
        if self.fpr is not None:  # the area under the curve over the range of false positive rates
            low, high = self.fpr
            inside = (self.x > low) & (self.x < high)
            x = np.concatenate(([low], self.x[inside], [high]))
            first, last = np.interp(self.fpr, self.x, self.y)
            height = np.concatenate(([first], self.y[inside], [last]))
            color = self.line_.get_color()
            self.shade_ = ax.fill_between(x, height, alpha=0.2, color=color, linewidth=0)
        if plot_chance_level:
            ends = (0.0, 1.0) if self.kind == "roc" else (self.prevalence, self.prevalence)
            style = {"linestyle": "--", "color": "0.5", "label": "random order"}
            (self.chance_,) = ax.plot((self.x[0], self.x[-1]), ends, **style)
        ax.set_xlabel(AXES[self.kind][0])
        ax.set_ylabel(AXES[self.kind][1])
        ax.set_ylim(-0.01, 1.01)
        if self.kind == "list_precision":
            ax.set_xscale("log")
        else:
            ax.set_xlim(-0.01, 1.01)
        ax.legend(loc="lower right" if self.kind == "roc" else "best")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _summary(kind: str, stairs: Staircase, fpr: tuple[float, float] | None) -> str:
    """Return the figure that goes with the curve."""
    if kind == "recall_precision":
        return f"area = {recall_precision_area.core(stairs):.3f}"
    if kind == "list_precision":
        return f"P@{stairs.total_positives:g} = {precision_at_k_core(stairs):.3f}"
    text = f"AUC = {roc_auc.core(stairs):.3f}"
    if fpr is not None:
        text += f", pAUC({fpr[0]:g}, {fpr[1]:g}) = {partial_auc.core(stairs, fpr=fpr):.3f}"
    return text


def _scores_of(estimator: Any, X: Any, pos_label: Any) -> np.ndarray:
    """Return the scores of the positive class by a two-class estimator."""
    classes = getattr(estimator, "classes_", np.array([0, 1]))
    if len(classes) != 2:
        raise ValueError(f"The estimator knows {len(classes)} classes; a curve needs two.")
    positive = 1 if pos_label is None else int(np.flatnonzero(classes == pos_label)[0])
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X))
        return scores if positive == 1 else -scores
    return np.asarray(estimator.predict_proba(X))[:, positive]
