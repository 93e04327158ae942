"""Splitting rules beside LeafRank: support vector machines, and any classifier that takes weights.

Each splits a node by a classifier trained with both classes at the same total weight: rows above its
threshold go left. The SVM minimises

    |f|^2 / 2 + sum over rows of C_i max(0, 1 - y_i f(x_i)),   f(x) = sum_j a_j y_j (K(x_j, x) + 1)

by coordinate descent on the dual (Hsieh, Chang, Lin, Keerthi & Sundararajan 2008, ICML); the 1 added to
the kernel is the intercept. `C_i` gives both classes the same total weight: the aim is TPR - FPR. A fit
of fifty rows takes a tenth of the millisecond that the calls around a general library take.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from toprank.encoding import NumericEncoding
from toprank.sampling import sample_classes, sample_rows
from toprank.trees._kernels import shuffle
from toprank.trees.tree import RankTree, Sample, TreeLimits, grow_without_fold
from toprank.validation import check_choice

__all__ = [
    "EstimatorRules",
    "EstimatorSplitter",
    "SVMRules",
    "SVMSplit",
    "SVMSplitter",
    "choose_svm",
]

TOLERANCE = 1e-2
MAX_PASSES = 100
BLOCK = 4_000_000  # kernel values held at once
TRIAL_ROWS = 1000
TRIAL_FOLDS = 3
TRIAL_C = {"linear": (0.1, 1.0), "gaussian": (0.1, 0.3, 1.0)}


@dataclass(frozen=True)
class SVMSplit:
    """Parameters of the splitting rule by support vector machines.

    Parameters
    ----------
    kernel : {"auto", "linear", "gaussian"}, default="auto"
    C : float or "auto", default="auto"
        Weight of an average row's hinge loss. Where the kernel or `C` is "auto", trees are tried on
        held-out rows, once before anything is grown, and the choice of the highest AUC is kept (of C = .1
        and 1 for a linear kernel, of .1, .3 and 1 for a Gaussian one).
    gamma : float or "scale", default="scale"
        Of the Gaussian kernel exp(-gamma |x - z|^2); "scale" is one over the number of (standardised)
        columns at hand.
    exact_rows : int, default=2000
        In nodes with more rows the Gaussian kernel goes through Nystrom's approximation.
    n_components : int, default=64
        Rows drawn for the approximation.
    max_rows : int, default=20000
        In nodes with more rows the SVM learns from so many, half of them of each class if it can.
    """

    kernel: str = "auto"
    C: float | str = "auto"
    gamma: float | str = "scale"
    exact_rows: int = 2000
    n_components: int = 64
    max_rows: int = 20_000

    def __post_init__(self) -> None:
        check_choice(self.kernel, "kernel of SVMSplit", ("auto", "linear", "gaussian"))
        for name, word in (("C", "auto"), ("gamma", "scale")):
            value = getattr(self, name)
            if value != word and (isinstance(value, str) or not value > 0):
                raise ValueError(
                    f"{name} of SVMSplit must be {word!r} or a number above 0, got {value!r}"
                )


# -- the splits of a tree --------------------------------------------------------------------------


class ClassifierRules(ABC):
    """Splits by classifiers, one for each inner node."""

    @abstractmethod
    def goes_left(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Return which of the encoded rows a split sends left."""

    def apply(self, tree: RankTree, rows: np.ndarray) -> np.ndarray:
        """Return the leaf of each encoded row."""
        node = np.zeros(len(rows), dtype=np.int32)
        for split in np.flatnonzero(~tree.is_leaf):
            here = np.flatnonzero(node == split)
            if len(here):
                left = self.goes_left(int(tree.rule[split]), rows[here])
                node[here] = np.where(left, tree.left[split], tree.right[split])
        return node


@dataclass(frozen=True)
class SVMRules(ClassifierRules):
    """The support vector machines of a ranking tree, one after the other.

    Split k reads the encoded columns `columns[column_starts[k]:column_starts[k + 1]]` and has the
    coefficients `coef[coef_starts[k]:coef_starts[k + 1]]`; `centres` are, for a Gaussian kernel, the rows
    of `points` they belong to (-1, and a gamma of 0, for a linear kernel).
    """

    columns: np.ndarray
    column_starts: np.ndarray
    coef: np.ndarray
    centres: np.ndarray
    coef_starts: np.ndarray
    intercept: np.ndarray
    gamma: np.ndarray
    points: np.ndarray

    def goes_left(self, number: int, rows: np.ndarray) -> np.ndarray:
        columns = self.columns[self.column_starts[number] : self.column_starts[number + 1]]
        own = slice(self.coef_starts[number], self.coef_starts[number + 1])
        svm = SVM(
            self.coef[own], float(self.intercept[number]), self.centres[own], self.gamma[number]
        )
        points = None if svm.gamma == 0.0 else self.points[np.ix_(self.centres[own], columns)]
        return decision_values(rows[:, columns], svm, points) > 0.0


@dataclass(frozen=True)
class EstimatorRules(ClassifierRules):
    """The classifiers of a ranking tree: models, the encoded columns each reads, and its direction."""

    models: tuple[Any, ...]
    columns: tuple[np.ndarray, ...]
    swapped: tuple[bool, ...]

    def goes_left(self, number: int, rows: np.ndarray) -> np.ndarray:
        flagged = self.models[number].predict(rows[:, self.columns[number]]) == 1
        return ~flagged if self.swapped[number] else flagged


# -- splitters -------------------------------------------------------------------------------------


class ClassifierSplitter(ABC):
    """Split encoded rows by classifiers, trained on columns that are drawn for each node.

    `n_node_features` counts columns before encoding; `parameters` is an SVMSplit or a classifier.
    """

    def __init__(
        self,
        sample: Sample,
        limits: TreeLimits,
        encoding: NumericEncoding,
        n_node_features: int,
        parameters: Any,
    ) -> None:
        self.sample = sample
        self.limits = limits
        self.encoding = encoding
        self.n_node_features = n_node_features
        self.parameters = parameters
        self.kept: list[tuple[Any, np.ndarray, bool]] = []  # model, columns, whether swapped

    def split(
        self, order: np.ndarray, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Split the nodes of a level; return the side of each row (1 left) and which were split."""
        goes_left = np.zeros(len(order), dtype=np.uint8)
        was_split = np.zeros(len(starts), dtype=bool)
        for k, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            rows = order[start:stop]
            columns = np.arange(len(self.encoding.source))
            if self.n_node_features < self.encoding.n_columns:
                drawn = rng.choice(self.encoding.n_columns, self.n_node_features, replace=False)
                columns = self.encoding.encoded_columns(drawn)
            model, left = self._train(rows, columns, rng)
            weight, positive = self.sample.weight[rows], self.sample.positive[rows] == 1
            P, N = weight[positive].sum(), weight[~positive].sum()
            # TPR - FPR, times the weights of both classes
            difference = weight[positive & left].sum() * N - weight[~positive & left].sum() * P
            lighter = min(weight[left].sum(), weight[~left].sum())
            if difference != 0 and lighter >= self.limits.min_samples_leaf:
                swapped = bool(difference < 0)
                self.kept.append((model, columns, swapped))
                goes_left[start:stop] = left != swapped
                was_split[k] = True
        return goes_left, was_split

    @abstractmethod
    def _train(
        self, rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator
    ) -> tuple[Any, np.ndarray]:
        """Train a classifier on the rows of a node; return it and which of them it flags."""

    @abstractmethod
    def rules(self) -> ClassifierRules:
        """Return the splits kept so far, in order."""


class EstimatorSplitter(ClassifierSplitter):
    """Split by any scikit-learn classifier that takes sample weights."""

    def _train(
        self, rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator
    ) -> tuple[Any, np.ndarray]:
        matrix = self.sample.rows[np.ix_(rows, columns)]
        positive = self.sample.positive[rows].astype(np.int64)
        model = clone(self.parameters)
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=int(rng.integers(2**31 - 1)))
        model.fit(
            matrix, positive, sample_weight=balanced_costs(positive, self.sample.weight[rows], 1.0)
        )
        return model, model.predict(matrix) == 1

    def rules(self) -> EstimatorRules:
        models, columns, swapped = zip(*self.kept, strict=True) if self.kept else ((), (), ())
        return EstimatorRules(models, columns, swapped)


def check_classifier(estimator: Any) -> None:
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


class SVMSplitter(ClassifierSplitter):
    """Split by support vector machines with a linear or a Gaussian kernel."""

    def _train(
        self, rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator
    ) -> tuple[SVM, np.ndarray]:
        matrix = np.ascontiguousarray(self.sample.rows[np.ix_(rows, columns)])
        positive = self.sample.positive[rows]
        drawn = np.arange(len(rows))
        if len(rows) > self.parameters.max_rows:
            most = max(1, self.parameters.max_rows // 2)
            drawn = sample_classes(positive, most, most, rng)
        part = matrix if len(drawn) == len(rows) else matrix[drawn]
        weight = self.sample.weight[rows[drawn]]
        svm, values = fit_svm(part, positive[drawn], weight, self.parameters, rng)
        if len(drawn) < len(rows):
            points = None if svm.centres is None else part[svm.centres]
            values = decision_values(matrix, svm, points)
        centres = None if svm.centres is None else rows[drawn[svm.centres]]  # in the sample
        return replace(svm, centres=centres), values > 0.0

    def rules(self) -> SVMRules:
        columns = [np.empty(0, int)]
        coef, centres, intercept, gamma = [np.empty(0)], [np.empty(0, int)], [], []
        for svm, own_columns, swapped in self.kept:
            sign = -1.0 if swapped else 1.0
            columns.append(own_columns)
            coef.append(sign * svm.coef)
            centres.append(np.full(len(svm.coef), -1) if svm.centres is None else svm.centres)
            intercept.append(sign * svm.intercept)
            gamma.append(svm.gamma)
        rows = np.concatenate(centres)
        used = np.unique(rows[rows >= 0])  # gathered in one table of points
        return SVMRules(
            columns=np.concatenate(columns),
            column_starts=np.cumsum([len(own) for own in columns]),
            coef=np.concatenate(coef),
            centres=np.where(rows < 0, -1, np.searchsorted(used, rows)),
            coef_starts=np.cumsum([len(own) for own in coef]),
            intercept=np.array(intercept),
            gamma=np.array(gamma),
            points=self.sample.rows[used],
        )


def choose_svm(
    sample: Sample,
    parameters: SVMSplit,
    limits: TreeLimits,
    encoding: NumericEncoding,
    rng: np.random.Generator,
) -> SVMSplit:
    """Replace what is "auto" in the parameters by the candidate whose trees rank held-out rows best.

    Trees see all columns of at most a thousand rows, in three stratified folds; of more rows, the rarer
    class fills up to half. The AUC of a tree on a fold is 1/2 plus the gains of its splits there.
    """
    candidates = [
        replace(parameters, kernel=kernel, C=C)
        for kernel in (TRIAL_C if parameters.kernel == "auto" else (parameters.kernel,))
        for C in (TRIAL_C[kernel] if isinstance(parameters.C, str) else (parameters.C,))
    ]
    if len(candidates) == 1:
        return candidates[0]
    rows = sample_rows(sample.positive, np.flatnonzero(sample.weight > 0), TRIAL_ROWS, rng)
    trial = Sample(sample.rows[rows], sample.positive[rows], sample.weight[rows])
    fold = trial.folds(TRIAL_FOLDS, rng)
    totals = np.zeros(len(candidates))
    for number in range(TRIAL_FOLDS):
        for k, candidate in enumerate(candidates):
            make = partial(
                SVMSplitter,
                limits=limits,
                encoding=encoding,
                n_node_features=encoding.n_columns,
                parameters=candidate,
            )
            _, gains = grow_without_fold(trial, fold == number, make, limits, rng)
            totals[k] += gains.sum()
    return candidates[int(np.argmax(totals))]


# -- support vector machines -----------------------------------------------------------------------


@dataclass(frozen=True)
class SVM:
    """A fitted SVM: f(x) = x . coef + intercept, or sum of coef_j K(centre_j, x) + intercept.

    `centres` are rows of the training matrix; None, and gamma is 0, for a linear kernel.
    """

    coef: np.ndarray
    intercept: float
    centres: np.ndarray | None
    gamma: float


def balanced_costs(positive: np.ndarray, weight: np.ndarray, C: float) -> np.ndarray:
    """Return C_i: `C` on average, each class half of the total."""
    P = weight[positive == 1].sum()
    N = weight[positive == 0].sum()
    return C * weight * np.where(positive == 1, 0.5 / P, 0.5 / N) * (P + N)


def fit_svm(
    matrix: np.ndarray,
    positive: np.ndarray,
    weight: np.ndarray,
    parameters: SVMSplit,
    rng: np.random.Generator,
) -> tuple[SVM, np.ndarray]:
    """Fit an SVM to a contiguous matrix, the classes balanced; return it and f of the rows."""
    costs = balanced_costs(positive, weight, float(parameters.C))
    sign = np.where(positive == 1, 1.0, -1.0)
    if parameters.kernel == "linear":
        coef, intercept = descend_linear(matrix, sign, costs, TOLERANCE, MAX_PASSES, rng)
        return SVM(coef, float(intercept), None, 0.0), matrix @ coef + intercept
    gamma = parameters.gamma
    gamma = 1.0 / max(1, matrix.shape[1]) if isinstance(gamma, str) else float(gamma)
    if len(matrix) > parameters.exact_rows:  # a linear SVM on Nystrom's features of a few rows
        centres = np.sort(rng.choice(len(matrix), parameters.n_components, replace=False))
        powers, vectors = np.linalg.eigh(gaussian_kernel(matrix[centres], matrix[centres], gamma))
        kept = powers > 1e-10 * powers[-1]
        whiten = vectors[:, kept] / np.sqrt(powers[kept])
        features = _kernel_product(matrix, matrix[centres], gamma, whiten)
        coef, intercept = descend_linear(features, sign, costs, TOLERANCE, MAX_PASSES, rng)
        return SVM(whiten @ coef, float(intercept), centres, gamma), features @ coef + intercept
    kernel = gaussian_kernel(matrix, matrix, gamma)
    dual, values = descend_kernel(kernel, sign, costs, TOLERANCE, MAX_PASSES, rng)
    centres = np.flatnonzero(dual)
    return SVM((dual * sign)[centres], float((dual * sign).sum()), centres, gamma), values


def decision_values(rows: np.ndarray, svm: SVM, points: np.ndarray | None) -> np.ndarray:
    """Return f of each row; `points` are the centres themselves."""
    if points is None:
        return rows @ svm.coef + svm.intercept
    return _kernel_product(rows, points, svm.gamma, svm.coef) + svm.intercept


def _kernel_product(
    rows: np.ndarray, points: np.ndarray, gamma: float, factor: np.ndarray
) -> np.ndarray:
    """Return the kernel matrix times a vector or matrix, a block of rows at a time."""
    out = np.empty((len(rows), *factor.shape[1:]))
    step = max(1, BLOCK // max(1, len(points)))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        out[part] = gaussian_kernel(rows[part], points, gamma) @ factor
    return out


def gaussian_kernel(first: np.ndarray, second: np.ndarray, gamma: float) -> np.ndarray:
    """Return exp(-gamma |x - z|^2) for every pair of rows."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :]
    squares -= 2.0 * (first @ second.T)
    np.maximum(squares, 0.0, out=squares)
    squares *= -gamma
    return np.exp(squares, out=squares)


@njit(cache=True, nogil=True)
def _new_dual(dual, gradient, curvature, cost):
    """Minimise the dual over one coordinate, inside [0, cost]."""
    return min(max(dual - gradient / curvature, 0.0), cost)


@njit(cache=True, nogil=True)
def _violation(dual, gradient, cost):
    """Return how far a coordinate is from its optimum: the projected gradient."""
    if dual <= 0.0:
        return max(0.0, -gradient)
    if dual >= cost:
        return max(0.0, gradient)
    return abs(gradient)


@njit(cache=True, nogil=True)
def descend_linear(rows, sign, costs, tolerance, max_passes, rng):
    """Return coefficients and intercept of the linear SVM."""
    n_rows, n_columns = rows.shape
    coef = np.zeros(n_columns)
    intercept = 0.0
    dual = np.zeros(n_rows)
    order = np.arange(n_rows)
    for _ in range(max_passes):
        shuffle(rng, order, n_rows - 1)
        worst = 0.0
        for i in order:
            value, curvature = intercept, 1.0
            for c in range(n_columns):
                value += rows[i, c] * coef[c]
                curvature += rows[i, c] * rows[i, c]
            gradient = sign[i] * value - 1.0
            violation = _violation(dual[i], gradient, costs[i])
            worst = max(worst, violation)
            if violation > 1e-12:
                new = _new_dual(dual[i], gradient, curvature, costs[i])
                step = (new - dual[i]) * sign[i]
                dual[i] = new
                intercept += step
                for c in range(n_columns):
                    coef[c] += step * rows[i, c]
        if worst < tolerance:
            break
    return coef, intercept


@njit(cache=True, nogil=True)
def descend_kernel(kernel, sign, costs, tolerance, max_passes, rng):
    """Return dual variables of an SVM, from the kernel matrix of its rows, and f of the rows."""
    n_rows = len(kernel)
    dual = np.zeros(n_rows)
    value = np.zeros(n_rows)
    order = np.arange(n_rows)
    for _ in range(max_passes):
        shuffle(rng, order, n_rows - 1)
        worst = 0.0
        for i in order:
            gradient = sign[i] * value[i] - 1.0
            violation = _violation(dual[i], gradient, costs[i])
            worst = max(worst, violation)
            if violation > 0.1 * tolerance:  # a step costs a pass over all rows
                new = _new_dual(dual[i], gradient, kernel[i, i] + 1.0, costs[i])
                step = (new - dual[i]) * sign[i]
                dual[i] = new
                for j in range(n_rows):
                    value[j] += step * (kernel[i, j] + 1.0)
        if worst < tolerance:
            break
    return dual, value
