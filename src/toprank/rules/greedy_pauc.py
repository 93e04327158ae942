"""The greedy heuristic: a linear score built one coefficient at a time for its partial AUC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from toprank.base import BaseRanker, TrainingData
from toprank.progress import progress
from toprank.rules.checks import check_choice, check_parameters, check_range_of_rates

__all__ = ["GreedyPAUC"]

ANGLES = 24  # tried over the half circle on a sample
REFINEMENTS = 10  # tried near the best of them
SAMPLE_ROWS = 20_000  # of each class
GOLDEN = (np.sqrt(5.0) - 1) / 2


class GreedyPAUC(BaseRanker):
    """Rank by a linear combination of the columns, chosen greedily for its partial AUC.

    Starts from the column with the greatest partial AUC, up or down, and takes in one column after the
    other [1]_: the score so far, f, becomes cos(t) f + sin(t) x for the angle t that maximises the
    empirical partial AUC of the training rows, both scaled to unit variance. Covering the half circle
    covers both forms f + c x and c f + x of the pairwise combination. Columns that do not help are
    left out. The angle is looked for on a sample of up to 20,000 rows of each class, and it and two
    others near it are tried on all rows; each trial costs one sort.

    Parameters
    ----------
    fpr : tuple of two floats, default=(0.0, 0.1)
        The range (a, b) of false positive rates.
    selection : {"ranked", "greedy"}, default="ranked"
        Which column comes next: the one with the next greatest partial AUC of its own, or the one
        whose combination with the score so far has the greatest (as many more trials as columns).
    n_passes : int, default=1
        How often all columns are gone through.
    random_state : int, RandomState or None
        Draws the sample.
    verbose : int, default=0
        Above 0 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        Coefficients on the scale of the data as given.
    order_ : ndarray of int
        The columns in the order in which they were taken in.
    train_scores_ : ndarray
        Partial AUC of the training rows after each of them.
    classes_ : ndarray of shape (2,)
    offset_ : float
        The threshold that was subtracted from the scores.

    References
    ----------
    .. [1] Ricamato & Tortorella (2011), "Partial AUC maximization in a linear combination of
       dichotomizers", Pattern Recognition 44.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import GreedyPAUC
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = GreedyPAUC(fpr=(0, 0.05), random_state=0).fit(X, y)
    >>> bool((model.train_scores_[1:] > model.train_scores_[:-1]).all())
    True
    """

    def __init__(
        self,
        fpr: tuple[float, float] = (0.0, 0.1),
        *,
        selection: str = "ranked",
        n_passes: int = 1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.fpr = fpr
        self.selection = selection
        self.n_passes = n_passes
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GreedyPAUC:
        """Learn the coefficients.

        Parameters
        ----------
        X : array or table of numbers of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.

        Returns
        -------
        self : GreedyPAUC
        """
        check_parameters(self)
        check_choice(self, "selection", ("ranked", "greedy"))
        fpr = check_range_of_rates(self)
        data = self._check_training(X, y, sample_weight)
        random = check_random_state(self.random_state)
        search = _Search(data, fpr, _sample(data.y, random))
        with progress(None, type(self).__name__, enabled=self.verbose) as advance:
            search.start()
            for _ in range(self.n_passes):
                waiting = search.ranked_columns()
                while waiting:
                    column = search.best_of(waiting) if self.selection == "greedy" else waiting[0]
                    waiting.remove(column)
                    search.take_in(column)
                    advance()
        self.coef_ = search.coefficients
        self.order_ = np.array(search.order, dtype=np.int64)
        self.train_scores_ = np.array(search.values)
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _raw_scores(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_, dtype=np.float64)


class _Search:
    """The score so far and its coefficients."""

    def __init__(self, data: TrainingData, fpr: tuple[float, float], sample: np.ndarray) -> None:
        from toprank.metrics import partial_auc

        self.data = data
        self.sample = sample
        self.spread = _spread(data)
        self.coefficients = np.zeros(data.X.shape[1])
        self.scores = np.zeros(len(data.y))
        self.deviation = 1.0
        self.value = -np.inf
        self.order: list[int] = []
        self.values: list[float] = []
        weight = data.sample_weight

        def measure(scores: np.ndarray, rows: Any = slice(None)) -> float:
            part = None if weight is None else weight[rows]
            return partial_auc(data.y[rows], scores, fpr=fpr, sample_weight=part)

        self.measure: Callable[..., float] = measure

    def column(self, j: int, rows: Any = slice(None)) -> np.ndarray:
        """A column at unit variance (zeros if it is constant)."""
        cells = np.asarray(self.data.X[rows, j], dtype=np.float64)
        return cells / self.spread[j] if self.spread[j] > 0 else np.zeros_like(cells)

    def start(self) -> None:
        """Take the single column with the greatest partial AUC, up or down."""
        usable = np.flatnonzero(self.spread > 0).tolist()
        both = [
            (self.measure(sign * self.column(j, self.sample), self.sample), -j, sign)
            for j in usable
            for sign in (1.0, -1.0)
        ]
        self.single = {-j: value for value, j, _ in sorted(both)}  # the greater of the two
        if not both:
            return
        _, negated, sign = max(both)
        self._set(-negated, 0.0, sign, self.measure(sign * self.column(-negated)))

    def ranked_columns(self) -> list[int]:
        """Columns other than the last one taken in, the greatest partial AUC of their own first."""
        waiting = [j for j in self.single if not self.order or j != self.order[-1]]
        return sorted(waiting, key=lambda j: (-self.single[j], j))

    def best_of(self, columns: list[int]) -> int:
        """The column whose combination with the score so far is best on the sample."""
        return max(columns, key=lambda j: (self._coarse(j)[1], -j))

    def take_in(self, j: int) -> None:
        """Add a column at its best angle, if that raises the partial AUC of all rows."""
        width = np.pi / ANGLES
        coarse, _ = self._coarse(j)
        on_sample = self._trial(j, self.sample)
        near, _ = _refine(on_sample, coarse - width, coarse + width, REFINEMENTS, start=coarse)
        on_all = self._trial(j, slice(None))
        value, angle = max((on_all(t), t) for t in (near, near - width / 8, near + width / 8))
        if value > self.value + 1e-12:
            self._set(j, np.cos(angle), np.sin(angle), value)

    def _trial(self, j: int, rows: Any) -> Callable[[float], float]:
        """Partial AUC, as a function of the angle, of the combination with a column."""
        column, unit = self.column(j, rows), self.scores[rows] / self.deviation
        return lambda t: self.measure(np.cos(t) * unit + np.sin(t) * column, rows)

    def _coarse(self, j: int) -> tuple[float, float]:
        """The best of evenly spaced angles on the sample, and its partial AUC there."""
        # straight up and straight down leave out the score so far, and are not tried
        angles = (np.arange(1, ANGLES) / ANGLES - 0.5) * np.pi
        trial = self._trial(j, self.sample)
        values = [trial(t) for t in angles]
        best = int(np.argmax(values))
        return float(angles[best]), float(values[best])

    def _set(self, j: int, keep: float, add: float, value: float) -> None:
        self.coefficients *= keep / self.deviation
        self.coefficients[j] += add / self.spread[j]
        self.scores = self.scores * (keep / self.deviation) + add * self.column(j)
        self.deviation = max(_deviation(self.scores, self.data.sample_weight), 1e-300)
        self.value = value
        self.order.append(j)
        self.values.append(value)


def _refine(
    function: Callable[[float], float], low: float, high: float, n_trials: int, *, start: float
) -> tuple[float, float]:
    """The best point that a golden-section search for a maximum tries, `start` included."""
    tried = [(function(start), start)]
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    tried += [(at_left, left), (at_right, right)]
    for _ in range(n_trials - 2):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
            tried.append((at_left, left))
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
            tried.append((at_right, right))
    value, point = max(tried)
    return point, value


def _sample(y: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Rows on which angles are tried first: all, or as many of each class as are enough."""
    kept = []
    for rows in (np.flatnonzero(y > 0), np.flatnonzero(y <= 0)):
        few = len(rows) <= SAMPLE_ROWS
        kept.append(rows if few else np.sort(random.choice(rows, SAMPLE_ROWS, replace=False)))
    return np.concatenate(kept)


def _spread(data: TrainingData) -> np.ndarray:
    """Standard deviation of every column, 0 where it is only rounding."""
    weight = data.sample_weight
    deviations = np.array([_deviation(data.X[:, j], weight) for j in range(data.X.shape[1])])
    size = np.abs(data.X).max(axis=0)
    return np.where(deviations > 1e-12 * size, deviations, 0.0)


def _deviation(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Weighted standard deviation."""
    values = np.asarray(values, dtype=np.float64)
    mean = np.average(values, weights=weight)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
