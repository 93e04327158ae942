"""Checks of the records in a model file, one function for each class.

Types were checked before; here lengths agree, numbers are in range and walks down a tree end. That is what
compiled code takes for granted. Checks that need to know the columns of the model are in
`toprank.persistence.estimator_checks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank.persistence.errors import require

__all__ = ["check_record"]

DEEPEST = 62  # of a ranking tree: positions are whole numbers of 64 bits
CELL_COLUMNS = 6
FEATURE, THRESHOLD, MISSING_FIRST, FIRST, SECOND, SIDE = range(CELL_COLUMNS)


def check_record(name: str, record: Any) -> None:
    """Check a record that was just made."""
    check = CHECKS.get(name)
    if check is not None:
        check(record)


def plain(array: Any, kinds: str, ndim: int, what: str) -> np.ndarray:
    """An array of some kinds of cells and number of dimensions, its numbers finite or NaN."""
    fits = isinstance(array, np.ndarray) and array.dtype.kind in kinds and array.ndim == ndim
    require(fits, f"{what} is not the array it should be")
    return array


def exactly(array: Any, dtype: type, shape: tuple[int | None, ...], what: str) -> np.ndarray:
    """An array of one type and shape (None: any length)."""
    fits = (
        isinstance(array, np.ndarray)
        and array.dtype == dtype
        and array.ndim == len(shape)
        and all(s is None or s == side for s, side in zip(shape, array.shape, strict=True))
    )
    require(fits, f"{what} is not the array it should be")
    return array


def within(array: np.ndarray, low: int, high: int, what: str) -> None:
    """All cells lie from `low` to before `high`."""
    inside = len(array) == 0 or (array.min() >= low and array.max() < high)
    require(bool(inside), f"{what} is out of range")


def finite(array: np.ndarray, what: str) -> None:
    require(bool(np.isfinite(array).all()), f"{what} is not finite")


def starts_of(starts: np.ndarray, n_parts: int, total: int, what: str) -> None:
    """Ascending starts of parts, from 0 to the end."""
    exactly(starts, np.int64, (n_parts + 1,), what)
    whole = starts[0] == 0 and starts[-1] == total and bool((np.diff(starts) >= 0).all())
    require(bool(whole), f"{what} does not add up")


def _columns(columns: Any) -> None:
    n = len(columns.names)
    require(len(columns.categories) == n, "the columns have too few or too many categories")
    require(len(set(columns.names)) == n, "two columns have the same name")
    for values in columns.categories:
        if values is not None:
            plain(values, "Uifbu", 1, "a list of categories")
            require(len(np.unique(values)) == len(values), "a list of categories repeats itself")


def _rule(rule: Any) -> None:
    require(len(rule.literals) < 10_000, "a rule has too many conditions")


def _rule_bins(bins: Any) -> None:
    n = len(bins.columns.names)
    require(len(bins.cuts) == n, "bins do not match their columns")
    exactly(bins.is_boolean, np.bool_, (n,), "the marks of truth values")
    for cuts, values in zip(bins.cuts, bins.columns.categories, strict=True):
        plain(cuts, "f", 1, "a list of cut points")
        require(len(cuts) <= 255, "a column has too many bins")
        finite(cuts, "a cut point")
        require(bool((np.diff(cuts) > 0).all()), "cut points do not ascend")
        if values is not None:
            within(cuts, 0, len(values), "a category with a bin")


def _kept_round(kept: Any) -> None:
    n = len(kept.rules)
    require(isinstance(kept.rules, tuple) and 0 < n < 256, "a round has no rules, or too many")
    for name in ("levels", "positives", "negatives"):
        finite(exactly(getattr(kept, name), np.float64, (n,), f"the {name} of a round"), "a round")
    require(bool(np.isfinite(kept.step)), "a step is not finite")


def _clause(clause: Any) -> None:
    require(len(clause.body) <= 256, "a clause is too long")


def _schema(schema: Any) -> None:
    for predicate in (schema.target, *schema.predicates):
        arity = 0 < len(predicate.columns) == len(predicate.types)
        require(arity, f"the predicate {predicate.name!r:.40} has columns without types")
    names = [predicate.name for predicate in schema.predicates]
    require(
        0 < len(names) == len(set(names)), "two predicates have the same name, or there are none"
    )


def _tree_bins(bins: Any) -> None:
    n = len(bins.n_bins)
    exactly(bins.n_bins, np.int64, (n,), "the numbers of bins")
    exactly(bins.is_category, np.bool_, (n,), "the kinds of the columns")
    exactly(bins.has_missing, np.bool_, (n,), "the marks of missing cells")
    exactly(bins.cuts, np.float64, (None,), "the cut points")
    starts_of(bins.starts, n, len(bins.cuts), "the table of cut points")
    within(bins.n_bins, 1, 256, "a number of bins")
    for column in range(n):
        table = bins.table(column)
        if bins.is_category[column]:
            whole = bool((np.floor(table) == table).all())
            require(whole, "the bins of categories are damaged")
            within(table, 0, 256, "the bin of a category")
        else:
            require(len(table) < 255 and not np.isnan(table).any(), "cut points are damaged")


def _encoding(encoding: Any) -> None:
    n = len(encoding.source)
    exactly(encoding.source, np.int64, (n,), "the columns of an encoding")
    exactly(encoding.kind, np.int8, (n,), "the kinds of an encoding")
    within(encoding.source, 0, int(encoding.n_columns), "a column of an encoding")
    within(encoding.kind, 0, 3, "a kind of an encoding")
    for part in (encoding.shift, encoding.scale):
        finite(exactly(part, np.float64, (n,), "the scale of an encoding"), "an encoding")


def check_children(left: np.ndarray, right: np.ndarray, what: str) -> np.ndarray:
    """Both children or none, each behind its parent and of one parent only; return the inner nodes."""
    n = len(left)
    inner = left != -1
    require(bool((inner == (right != -1)).all()), f"{what} has a node with one child")
    here = np.flatnonzero(inner)
    for child in (left[inner], right[inner]):
        require(bool(((child > here) & (child < n)).all()), f"{what} has a child out of range")
    children = np.concatenate([left[inner], right[inner]])
    require(len(np.unique(children)) == len(children), f"{what} has a node with two parents")
    return inner


def _rank_tree(tree: Any) -> None:
    n = len(tree.left)
    require(n > 0, "a ranking tree is empty")
    for name in ("left", "right", "rule"):
        exactly(getattr(tree, name), np.int32, (n,), f"the {name} of a ranking tree")
    for name in ("depth", "position"):
        exactly(getattr(tree, name), np.int64, (n,), f"the {name} of a ranking tree")
    finite(exactly(tree.weights, np.float64, (n, 2), "the weights of a tree"), "a weight of a tree")
    inner = check_children(tree.left, tree.right, "a ranking tree")
    require(type(tree.rules).__name__ in SPLITS, "a ranking tree has unknown splits")
    within(
        tree.rule[inner], 0, SPLITS[type(tree.rules).__name__](tree.rules), "the number of a split"
    )
    within(tree.depth, 0, DEEPEST, "the depth of a ranking tree")
    inside = (tree.position >= 0) & (tree.position < (1 << tree.depth))
    require(bool(inside.all()), "the position of a node is out of range")
    if type(tree.rules).__name__ == "LeafRankRules":
        used = tree.rules.roots[tree.rule[inner]]
        within(used, 0, len(tree.rules.cells), "a small tree")


def _leafrank(rules: Any) -> None:
    n = len(rules.cells)
    cells = exactly(rules.cells, np.int32, (n, CELL_COLUMNS), "the cells of a tree")
    finite(exactly(rules.weights, np.float64, (n, 2), "the weights of cells"), "a weight of a cell")
    exactly(rules.bits, np.uint8, (None, 32), "the sets of categories")
    require(len(rules.bits) in {1, max(n, 1)}, "the sets of categories do not match their cells")
    exactly(rules.roots, np.int32, (None,), "the roots of small trees")
    within(rules.roots, -1, max(n, 1), "the root of a small tree")
    cut = cells[:, FEATURE] >= 0
    require(bool((cells[~cut, FEATURE] == -1).all()), "a cell has an unknown column")
    here = np.flatnonzero(cut)
    for part in (FIRST, SECOND):
        child = cells[cut, part]
        require(bool(((child > here) & (child < n)).all()), "a cell has a part out of range")
    within(cells[:, SIDE], 0, 2, "the side of a cell")
    within(cells[cut, THRESHOLD], -1, 256, "the threshold of a cell")


def _svm_rules(rules: Any) -> None:
    n = len(rules.intercept)
    for name in ("intercept", "gamma"):
        finite(exactly(getattr(rules, name), np.float64, (n,), f"the {name} of machines"), name)
    exactly(rules.columns, np.int64, (None,), "the columns of machines")
    exactly(rules.centres, np.int64, (len(rules.coef),), "the centres of machines")
    finite(
        exactly(rules.coef, np.float64, (None,), "the coefficients of machines"), "a coefficient"
    )
    finite(exactly(rules.points, np.float64, (None, None), "the points of machines"), "a point")
    starts_of(rules.column_starts, n, len(rules.columns), "the columns of machines")
    starts_of(rules.coef_starts, n, len(rules.coef), "the coefficients of machines")
    within(rules.columns, 0, rules.points.shape[1], "a column of a machine")
    within(rules.centres, -1, max(len(rules.points), 1), "a centre of a machine")
    for k in range(n):
        own = slice(rules.coef_starts[k], rules.coef_starts[k + 1])
        if rules.gamma[k] == 0.0:
            width = rules.column_starts[k + 1] - rules.column_starts[k]
            require(own.stop - own.start == width, "a linear machine is damaged")
        else:
            within(rules.centres[own], 0, len(rules.points), "a centre of a machine")


def _estimator_rules(rules: Any) -> None:
    n = len(rules.models)
    require(len(rules.columns) == len(rules.swapped) == n, "a tree has lost some of its splits")
    for columns in rules.columns:
        plain(columns, "i", 1, "the columns of a split")


def _cell_order(order: Any) -> None:
    n, n_trees = len(order.keys), len(order.node_ranks)
    require(order.distance in ("footrule", "kendall"), "a consensus has an unknown distance")
    require(n > 0 and n_trees > 0, "a consensus is empty")
    exactly(order.keys, np.uint64, (n,), "the keys of a consensus")
    require(bool((order.keys[1:] > order.keys[:-1]).all()), "the keys of a consensus are damaged")
    within(exactly(order.places, np.int64, (n,), "the places of a consensus"), 0, n, "a place")
    exactly(order.multipliers, np.uint64, (n_trees,), "the multipliers of a consensus")
    n_ranks = n if order.distance == "kendall" else 0
    finite(exactly(order.ranks, np.float32, (n_ranks, n_trees), "the ranks of cells"), "a rank")
    for ranks in order.node_ranks:
        finite(exactly(ranks, np.float64, (None,), "the ranks of leaves"), "a rank")


def _scaling(scaling: Any) -> None:
    n = len(scaling.centre)
    finite(exactly(scaling.centre, np.float64, (n,), "the means of columns"), "a mean")
    finite(exactly(scaling.spread, np.float64, (n,), "the spreads of columns"), "a spread")
    require(bool((scaling.spread > 0).all()), "a spread is not above 0")


def _kernel_function(function: Any) -> None:
    known = function.name in ("rbf", "laplacian", "poly", "linear")
    require(known, f"the kernel {function.name!r:.40} is unknown")
    sane = (
        np.isfinite(function.gamma) and np.isfinite(function.coef0) and 0 <= function.degree < 100
    )
    require(bool(sane), "the parameters of a kernel are damaged")


def _kernel_expansion(expansion: Any) -> None:
    n_columns = len(expansion.function.scaling.centre)
    n = len(expansion.landmarks)
    require(n > 0, "a kernel has no landmarks")
    finite(exactly(expansion.landmarks, np.float64, (n, n_columns), "the landmarks"), "a landmark")
    finite(exactly(expansion.dual_coef, np.float64, (n,), "the coefficients"), "a coefficient")


def _path_tree(tree: Any) -> None:
    n = len(tree.feature)
    require(n > 0, "a decision tree is empty")
    for name in ("feature", "left", "right", "sign"):
        exactly(getattr(tree, name), np.int64, (n,), f"the {name} of a decision tree")
    exactly(tree.threshold, np.float64, (n,), "the thresholds of a decision tree")
    require(not np.isnan(tree.threshold).any(), "a threshold is missing")
    inner = check_children(tree.left, tree.right, "a decision tree")
    require(bool(((tree.feature >= 0) == inner).all()), "a decision tree has leaves that split")
    within(tree.sign, -1, 2, "the sign of a leaf")


def _staircase(stairs: Any) -> None:
    n = len(stairs.tops)
    require(0 < n <= 100_000, "out-of-fold scores are missing, or too many")
    for name in ("tops", "bottoms"):
        finite(exactly(getattr(stairs, name), np.float64, (n,), "out-of-fold scores"), "a score")
    apart = (stairs.tops >= stairs.bottoms).all() and (stairs.bottoms[:-1] > stairs.tops[1:]).all()
    require(bool(apart), "out-of-fold scores do not descend")
    for name in ("positives", "negatives", "positive_squares", "negative_squares"):
        sums = exactly(getattr(stairs, name), np.float64, (n,), "out-of-fold counts")
        finite(sums, "a count")
        rising = sums[0] >= 0 and sums[-1] > 0 and bool((np.diff(sums) >= 0).all())
        require(bool(rising), "out-of-fold counts do not add up")
    rows = np.diff(stairs.positives + stairs.negatives, prepend=0.0)
    require(bool((rows > 0).all()), "a step of the out-of-fold scores is empty")


def _probability_map(rising: Any) -> None:
    require(rising.method in ("isotonic", "sigmoid"), "an unknown kind of calibration")
    line = np.isfinite(rising.slope) and np.isfinite(rising.intercept) and rising.slope >= 0
    require(bool(line), "a calibration is damaged")
    n = len(exactly(rising.knots, np.float64, (None,), "the knots of a calibration"))
    values = exactly(rising.values, np.float64, (n,), "the values of a calibration")
    finite(rising.knots, "a knot")
    finite(values, "a probability")
    require((n > 0) == (rising.method == "isotonic"), "a calibration lacks its curve")
    steady = bool((np.diff(rising.knots) > 0).all() and (np.diff(values) >= 0).all())
    inside = n == 0 or (values[0] >= 0 and values[-1] <= 1)
    require(steady and bool(inside), "a calibration does not rise from 0 to 1")


SPLITS: dict[str, Callable[[Any], int]] = {
    "LeafRankRules": lambda rules: len(rules.roots),
    "SVMRules": lambda rules: len(rules.intercept),
    "EstimatorRules": lambda rules: len(rules.models),
}

CHECKS: dict[str, Callable[[Any], None]] = {
    "Columns": _columns,
    "Rule": _rule,
    "BinnedColumns": _rule_bins,
    "KeptRound": _kept_round,
    "Clause": _clause,
    "Schema": _schema,
    "trees.Bins": _tree_bins,
    "Encoding": _encoding,
    "RankTree": _rank_tree,
    "LeafRankRules": _leafrank,
    "SVMRules": _svm_rules,
    "EstimatorRules": _estimator_rules,
    "CellOrder": _cell_order,
    "Scaling": _scaling,
    "KernelFunction": _kernel_function,
    "KernelExpansion": _kernel_expansion,
    "PathTree": _path_tree,
    "OutOfFoldCounts": _staircase,
    "ProbabilityMap": _probability_map,
}
