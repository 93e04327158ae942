"""Splitting rules beside LeafRank: support vector machines, and any classifier that takes weights.

Each splits a node by a classifier trained with both classes at the same total weight: rows above its
threshold go left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from toprank.trees.encoding import Encoding
from toprank.trees.growing import Limits, Sample, grow_tree
from toprank.trees.pruning import stratified_folds
from toprank.trees.svm import (
    Machine,
    SVMSplit,
    balanced_costs,
    decide,
    draw_rows,
    fit_gaussian,
    fit_linear,
)

__all__ = ["EstimatorRules", "EstimatorSplitter", "SVMRules", "SVMSplitter", "choose_machine"]

TRIAL_ROWS = 1000
TRIAL_FOLDS = 3
TRIAL_C = {"linear": (0.1, 1.0), "gaussian": (0.1, 0.3, 1.0)}


@dataclass(frozen=True)
class SVMRules:
    """The machines of a ranking tree, one after the other.

    Attributes
    ----------
    columns, column_starts : int ndarray
        Split k reads the encoded columns `columns[column_starts[k]:column_starts[k + 1]]`.
    coef, centres, coef_starts : ndarray
        Its coefficients `coef[coef_starts[k]:coef_starts[k + 1]]`, and, for a Gaussian kernel, the rows
        of `points` they belong to (-1 in a linear machine).
    intercept, gamma : ndarray of shape (n_splits,)
        `gamma` is 0 for a linear machine.
    points : ndarray of shape (n_points, n_encoded)
    """

    columns: np.ndarray
    column_starts: np.ndarray
    coef: np.ndarray
    centres: np.ndarray
    coef_starts: np.ndarray
    intercept: np.ndarray
    gamma: np.ndarray
    points: np.ndarray

    def goes_left(self, rule: int, rows: np.ndarray) -> np.ndarray:
        """Mask of the encoded rows that split number `rule` sends left."""
        columns = self.columns[self.column_starts[rule] : self.column_starts[rule + 1]]
        own = slice(self.coef_starts[rule], self.coef_starts[rule + 1])
        centres = self.centres[own]
        machine = Machine(
            self.coef[own], float(self.intercept[rule]), centres, float(self.gamma[rule])
        )
        points = None if machine.gamma == 0.0 else self.points[np.ix_(centres, columns)]
        return decide(rows[:, columns], machine, points) > 0.0


@dataclass(frozen=True)
class EstimatorRules:
    """The classifiers of a ranking tree: models, the encoded columns each reads, and its direction."""

    models: tuple[Any, ...]
    columns: tuple[np.ndarray, ...]
    swapped: tuple[bool, ...]

    def goes_left(self, rule: int, rows: np.ndarray) -> np.ndarray:
        """Mask of the encoded rows that split number `rule` sends left."""
        flagged = self.models[rule].predict(rows[:, self.columns[rule]]) == 1
        return ~flagged if self.swapped[rule] else flagged


class ClassifierSplitter(ABC):
    """What splitters by classifiers share: the walk over the nodes, balance, direction, limits."""

    def __init__(
        self, sample: Sample, limits: Limits, encoding: Encoding, n_node_features: int
    ) -> None:
        self.sample = sample
        self.limits = limits
        self.encoding = encoding
        self.n_node_features = n_node_features

    def split(
        self, order: np.ndarray, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Side of each row of `order` (1 left) and whether each range was split."""
        goes_left = np.zeros(len(order), dtype=np.uint8)
        was_split = np.zeros(len(starts), dtype=bool)
        for k, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            rows = order[start:stop]
            columns = self._draw_columns(rng)
            model, flagged = self._train(rows, columns, rng)
            swapped = self._balance(rows, flagged) < 0
            left = ~flagged if swapped else flagged
            if self._balance(rows, left) > 0 and self._heavy_enough(rows, left):
                self._keep(model, columns, rows, swapped)
                goes_left[start:stop] = left
                was_split[k] = True
        return goes_left, was_split

    def _draw_columns(self, rng: np.random.Generator) -> np.ndarray:
        n_columns = self.encoding.n_columns
        if self.n_node_features >= n_columns:
            return np.arange(len(self.encoding.source))
        drawn = rng.choice(n_columns, self.n_node_features, replace=False)
        return self.encoding.encoded_columns(drawn)

    def _balance(self, rows: np.ndarray, left: np.ndarray) -> float:
        """TPR - FPR of a split, times the weights of the classes."""
        weight, positive = self.sample.weight[rows], self.sample.positive[rows] == 1
        return float(
            weight[positive & left].sum() * weight[~positive].sum()
            - weight[~positive & left].sum() * weight[positive].sum()
        )

    def _heavy_enough(self, rows: np.ndarray, left: np.ndarray) -> bool:
        weight = self.sample.weight[rows]
        lighter = min(weight[left].sum(), weight[~left].sum())
        return bool(lighter >= self.limits.min_samples_leaf)

    @abstractmethod
    def _train(
        self, rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator
    ) -> tuple[Any, np.ndarray]:
        """A classifier of the rows of a node, and which of them it flags."""

    @abstractmethod
    def _keep(self, model: Any, columns: np.ndarray, rows: np.ndarray, swapped: bool) -> None:
        """Keep a split that was accepted."""

    @abstractmethod
    def rules(self) -> Any:
        """The splits kept so far, in order."""


class SVMSplitter(ClassifierSplitter):
    """Split by support vector machines with a linear or a Gaussian kernel."""

    def __init__(
        self,
        sample: Sample,
        limits: Limits,
        encoding: Encoding,
        n_node_features: int,
        parameters: SVMSplit,
    ) -> None:
        super().__init__(sample, limits, encoding, n_node_features)
        self.parameters = parameters
        self.kept: list[tuple[Machine, np.ndarray, np.ndarray]] = []

    def _train(
        self, rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator
    ) -> tuple[Machine, np.ndarray]:
        matrix = np.ascontiguousarray(self.sample.rows[np.ix_(rows, columns)])
        positive = self.sample.positive[rows]
        drawn = draw_rows(positive, self.parameters.max_rows, rng)
        weight = self.sample.weight[rows[drawn]]
        part = matrix if len(drawn) == len(rows) else matrix[drawn]
        machine, values = fit_machine(part, positive[drawn], weight, self.parameters, rng)
        points = None if machine.centres is None else part[machine.centres]
        if len(drawn) < len(rows):
            values = decide(matrix, machine, points)
        if machine.centres is not None:
            machine = replace(machine, centres=drawn[machine.centres])
        return machine, values > 0.0

    def _keep(self, model: Machine, columns: np.ndarray, rows: np.ndarray, swapped: bool) -> None:
        if swapped:
            model = replace(model, coef=-model.coef, intercept=-model.intercept)
        centres = np.full(len(model.coef), -1)
        if model.centres is not None:
            centres = rows[model.centres]
        self.kept.append((model, columns, centres))

    def rules(self) -> SVMRules:
        """The machines kept so far; their centres are gathered in one table of points."""
        machines = [machine for machine, _, _ in self.kept]
        columns = [columns for _, columns, _ in self.kept]
        centres = np.concatenate([np.empty(0, int), *(c for _, _, c in self.kept)])
        used = np.unique(centres[centres >= 0])
        place = np.where(centres < 0, -1, np.searchsorted(used, centres))
        return SVMRules(
            columns=np.concatenate([np.empty(0, int), *columns]),
            column_starts=_starts([len(c) for c in columns]),
            coef=np.concatenate([np.empty(0), *(m.coef for m in machines)]),
            centres=place,
            coef_starts=_starts([len(m.coef) for m in machines]),
            intercept=np.array([m.intercept for m in machines]),
            gamma=np.array([m.gamma for m in machines]),
            points=self.sample.rows[used],
        )


class EstimatorSplitter(ClassifierSplitter):
    """Split by any scikit-learn classifier that takes sample weights."""

    def __init__(
        self,
        sample: Sample,
        limits: Limits,
        encoding: Encoding,
        n_node_features: int,
        estimator: Any,
    ) -> None:
        super().__init__(sample, limits, encoding, n_node_features)
        self.estimator = estimator
        self.kept: list[tuple[Any, np.ndarray, bool]] = []

    def _train(
        self, rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator
    ) -> tuple[Any, np.ndarray]:
        matrix = self.sample.rows[np.ix_(rows, columns)]
        positive = self.sample.positive[rows].astype(np.int64)
        model = clone(self.estimator)
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=int(rng.integers(2**31 - 1)))
        model.fit(
            matrix, positive, sample_weight=balanced_costs(positive, self.sample.weight[rows], 1.0)
        )
        return model, model.predict(matrix) == 1

    def _keep(self, model: Any, columns: np.ndarray, rows: np.ndarray, swapped: bool) -> None:
        self.kept.append((model, columns, swapped))

    def rules(self) -> EstimatorRules:
        """The classifiers kept so far."""
        models, columns, swapped = zip(*self.kept, strict=True) if self.kept else ((), (), ())
        return EstimatorRules(models, columns, swapped)


def fit_machine(
    matrix: np.ndarray,
    positive: np.ndarray,
    weight: np.ndarray,
    parameters: SVMSplit,
    rng: np.random.Generator,
) -> tuple[Machine, np.ndarray]:
    """Fit the machine of the kernel asked for, the classes balanced; return it and f of the rows."""
    costs = balanced_costs(positive, weight, float(parameters.C))
    if parameters.kernel == "linear":
        return fit_linear(matrix, positive, costs, rng)
    return fit_gaussian(matrix, positive, costs, parameters, rng)


def choose_machine(
    sample: Sample,
    parameters: SVMSplit,
    limits: Limits,
    encoding: Encoding,
    rng: np.random.Generator,
) -> SVMSplit:
    """Settle what is "auto" in the parameters: the candidate whose trees rank held-out rows best.

    Trees see all columns of at most a thousand rows, in three stratified folds; of more rows, the rarer
    class fills up to half. The AUC of a tree on a fold is 1/2 plus the gains of its splits there.
    """
    candidates = _candidates(parameters)
    if len(candidates) == 1:
        return candidates[0]
    rows = _trial_rows(sample, rng)
    trial = Sample(sample.rows[rows], sample.positive[rows], sample.weight[rows])
    fold = stratified_folds(trial.positive, TRIAL_FOLDS, rng)
    totals = np.zeros(len(candidates))
    for number in range(TRIAL_FOLDS):
        out = fold == number
        rest = replace(trial, weight=np.where(out, 0.0, trial.weight))
        for k, candidate in enumerate(candidates):
            splitter = SVMSplitter(rest, limits, encoding, encoding.n_columns, candidate)
            tree = grow_tree(rest, splitter, limits, rng)
            leaf = tree.apply(trial.rows[out])
            held_out = tree.class_weights(leaf, trial.positive[out], trial.weight[out])
            totals[k] += tree.gains(held_out).sum()
    return candidates[int(np.argmax(totals))]


def _trial_rows(sample: Sample, rng: np.random.Generator) -> np.ndarray:
    """The rows of a trial: all, or at most half of them of the rarer class."""
    present = rng.permutation(np.flatnonzero(sample.weight > 0))
    if len(present) <= TRIAL_ROWS:
        return np.sort(present)
    positive = sample.positive[present] == 1
    rare, other = present[positive], present[~positive]
    if len(rare) > len(other):
        rare, other = other, rare
    n_rare = min(len(rare), TRIAL_ROWS // 2)
    return np.sort(np.concatenate([rare[:n_rare], other[: TRIAL_ROWS - n_rare]]))


def _candidates(parameters: SVMSplit) -> list[SVMSplit]:
    """The machines that the parameters allow."""
    kernels = list(TRIAL_C) if parameters.kernel == "auto" else [parameters.kernel]
    return [
        replace(parameters, kernel=kernel, C=C)
        for kernel in kernels
        for C in (TRIAL_C[kernel] if isinstance(parameters.C, str) else (parameters.C,))
    ]


def check_estimator_splitter(estimator: Any) -> None:
    """Refuse what cannot split a node, and say why."""
    is_instance = hasattr(estimator, "fit") and not isinstance(estimator, type)
    if not is_instance or not is_classifier(estimator):
        raise ValueError(
            f"splitter must be 'leafrank', 'svm', an SVMSplit or a classifier, got {estimator!r}"
        )
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"{type(estimator).__name__} takes no sample_weight in fit, so it cannot balance the two "
            "classes in a node; use a classifier that does"
        )


def _starts(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
