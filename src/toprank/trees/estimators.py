"""TreeRank and RankingForest: one ranking tree, and many randomised ones with their consensus."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, RealNotInt
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker, TrainingData
from toprank.binning import N_BINS, Bins
from toprank.docstrings import fill_docstring
from toprank.encoding import NumericEncoding
from toprank.parallel import ThreadPool, thread_count
from toprank.progress import progress
from toprank.trees.consensus import ORDERS, CellOrder
from toprank.trees.leafrank import (
    LeafRank,
    LeafRankRules,
    LeafRankSplitter,
    apply_order,
    order_categories,
)
from toprank.trees.reading import auc_gained
from toprank.trees.splitters import (
    EstimatorSplitter,
    SVMSplit,
    SVMSplitter,
    check_classifier,
    choose_svm,
)
from toprank.trees.tree import RankTree, Sample, TreeLimits, grow_pruned
from toprank.validation import PARAMETER_CONSTRAINTS, Interval, StrOptions

__all__ = ["VARIANTS", "RankingForest", "TreeRank"]

CHUNK_ROWS = 65_536
Grow = Callable[..., RankTree]  # of a sample and a random generator
MAX_DEPTH = 50  # the position of a leaf among 2^depth must stay exact in a float

# features drawn for each node (d1) and for each cell of LeafRank (d2)
VARIANTS: dict[str, tuple[int | float | str | None, int | float | str | None]] = {
    "sqrt": (None, "sqrt"),
    "bagging": (None, None),
    "rf1": (0.25, None),
    "rf2": (1, None),
    "rf3": (None, 0.25),
    "rf4": (None, 1),
    "rf5": (0.5, 0.25),
    "rf6": (0.25, 1),
}

_DEPTH = [Interval(Integral, 1, MAX_DEPTH, closed="both")]
_WEIGHT = [Interval(Real, 0, None, closed="neither")]
_FEATURES = [
    Interval(Integral, 1, None, closed="left"),
    Interval(RealNotInt, 0, 1, closed="right"),
    StrOptions({"sqrt"}),
    None,
]


class BaseTreeRanker(BaseRanker):
    """What the tree and the forest share: their parameters, and the form of the rows that they read."""

    tree_: RankTree
    _accepts_missing = True
    _accepts_categories = True
    _accepts_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        "max_depth": _DEPTH,
        "min_samples_split": _WEIGHT,
        "min_samples_leaf": _WEIGHT,
        "splitter": [StrOptions({"leafrank", "svm"}), SVMSplit, HasMethods(["fit", "predict"])],
        "leafrank_depth": _DEPTH,
        "leafrank_min_samples_leaf": _WEIGHT,
        "max_features": _FEATURES,
        "leafrank_max_features": _FEATURES,
        "prune": ["boolean", StrOptions({"tree", "leafrank"})],
        "prune_folds": [Interval(Integral, 2, None, closed="left")],
        "max_set_categories": [Interval(Integral, 0, None, closed="left")],
    }

    def _plan(
        self,
        data: TrainingData,
        max_features: int | float | str | None,
        leafrank_max_features: int | float | str | None,
        rng: np.random.Generator,
    ) -> tuple[Sample, Grow]:
        """Learn bins or the encoding, set `space_`; return the rows and what grows a tree on them."""
        n_columns = data.X.shape[1]
        n_node = count_features(max_features, n_columns)
        limits = TreeLimits(
            int(self.max_depth), float(self.min_samples_split), float(self.min_samples_leaf)
        )
        tree_folds, cell_folds = (
            int(self.prune_folds) if self.prune in (True, part) else 0
            for part in ("tree", "leafrank")
        )
        splitter = SVMSplit() if isinstance(self.splitter, str) else self.splitter
        is_leafrank = isinstance(self.splitter, str) and self.splitter == "leafrank"
        X = data.X if is_leafrank else as_dense(data.X)
        columns = (X, self.columns_.is_category, data.sample_weight)
        if is_leafrank:
            n_jobs = getattr(self, "n_jobs", 1)
            self.space_: Any = Bins.of(*columns, max_bins=self.max_bins, n_jobs=n_jobs)
        else:
            self.space_ = NumericEncoding.of(*columns)
        sample, is_ordered = self._sample(data, rng)
        settings = {"limits": limits, "encoding": self.space_, "n_node_features": n_node}
        make: Callable[[Sample], Any]
        if is_leafrank:
            n_cell = min(n_node, count_features(leafrank_max_features, n_columns))
            cells = (int(self.leafrank_depth), float(self.leafrank_min_samples_leaf))
            parameters = LeafRank(*cells, n_node, n_cell, cell_folds)
            make = partial(
                LeafRankSplitter,
                limits=limits,
                bins=self.space_,
                parameters=parameters,
                is_ordered=is_ordered,
            )
        elif isinstance(splitter, SVMSplit):
            self.svm_ = choose_svm(sample, splitter, limits, self.space_, rng)
            make = partial(SVMSplitter, **settings, parameters=self.svm_)
        else:
            check_classifier(splitter)
            make = partial(EstimatorSplitter, **settings, parameters=splitter)
        return sample, partial(grow_pruned, make_splitter=make, limits=limits, n_folds=tree_folds)

    def _sample(self, data: TrainingData, rng: np.random.Generator) -> tuple[Sample, np.ndarray]:
        """Return the rows as the splitting rule reads them, and which columns of categories are in order."""
        n_columns = data.X.shape[1]
        self.category_bytes_ = np.tile(np.arange(N_BINS, dtype=np.uint8), (n_columns, 1))
        positive, weight = data.y.astype(np.uint8), data.weights
        rows = self._prepare(data.X)
        is_ordered = np.zeros(n_columns, dtype=bool)
        if isinstance(self.space_, Bins):
            is_ordered = self.space_.is_category & (self.space_.n_cuts > self.max_set_categories)
        if not is_ordered.any():
            return Sample(rows, positive, weight), is_ordered
        columns = np.flatnonzero(is_ordered)
        self.category_bytes_, training = order_categories(rows, columns, positive, weight, rng)
        return Sample(
            training, positive, weight, apply_order(rows, self.category_bytes_)
        ), is_ordered

    def _by_chunks(self, function: Callable[[np.ndarray], np.ndarray], X: Any) -> np.ndarray:
        """Call a function with a bounded number of prepared rows at a time; join the answers."""
        starts = range(0, max(1, X.shape[0]), CHUNK_ROWS)
        with ThreadPool(1 if len(starts) == 1 else getattr(self, "n_jobs", 1)) as pool:
            parts = pool.map(lambda k: function(self._prepare(X[k : k + CHUNK_ROWS])), starts)
        return np.concatenate(parts)

    def _prepare(self, X: Any) -> np.ndarray:
        """Return the rows in the form that the splitting rule reads."""
        if isinstance(self.space_, Bins):
            return apply_order(self.space_.codes(X, by_row=True), self.category_bytes_)
        return self.space_.transform(as_dense(X))

    def _warn_if_constant(self, trees: list[RankTree], data: TrainingData) -> None:
        """Say so when no tree has a split, since then all scores are equal, and what can be done."""
        if any(tree.n_nodes > 1 for tree in trees):
            return
        reason = "no cut of any column tells positives from negatives"
        if self.prune in (True, "tree"):
            reason = (
                f"pruning left no split: on {self.prune_folds} held-out folds, with {int(data.y.sum())} "
                "positives in all, no subtree ranked better than chance. prune='leafrank' or prune=False "
                "keeps the splits, and more positives would let pruning judge them"
            )
        warnings.warn(
            f"{type(self).__name__} gives all rows the same score: {reason}", stacklevel=3
        )

    @property
    def feature_importances_(self) -> np.ndarray:
        """Return the AUC gained by the cuts on each column, the mean over the trees of a forest."""
        check_is_fitted(self)
        trees = getattr(self, "trees_", None) or [self.tree_]
        if not isinstance(trees[0].rules, LeafRankRules):
            raise AttributeError(
                "only LeafRank's cuts belong to one column each; for other splitters use "
                "sklearn.inspection.permutation_importance"
            )
        return np.mean([auc_gained(tree, self.n_features_in_) for tree in trees], axis=0)


def as_dense(X: Any) -> np.ndarray:
    """Return a matrix as an array."""
    return X.toarray() if sparse.issparse(X) else X


def count_features(wanted: int | float | str | None, n_columns: int) -> int:
    """Return how many features a parameter asks for: all, a number, the root or a share (at least 1).

    Examples
    --------
    >>> [count_features(wanted, 10) for wanted in (None, 3, 0.25, "sqrt")]
    [10, 3, 2, 3]
    """
    if wanted is None:
        return n_columns
    if wanted == "sqrt":
        return int(n_columns**0.5)
    if isinstance(wanted, Integral):
        return min(int(wanted), n_columns)
    return max(1, int(wanted * n_columns))


@fill_docstring
class TreeRank(BaseTreeRanker):
    """A ranking tree: an oriented binary tree whose leaves, from left to right, are the ranking.

    Every node is split so as to maximise TPR - FPR inside it, that is the AUC of the split [1]_. The
    splitting rule is LeafRank by default, a small tree of axis-parallel cuts whose cells go left or
    right [2]_, or a classifier in which both classes have the same weight. A leaf at depth d and position
    k has the score 2^D (1 - k / 2^d).

    Parameters
    ----------
    max_depth : int, default=8
        Most splits on the path to a leaf.
    min_samples_split, min_samples_leaf : float, default=2, 1
        Least weight of a node that is split, and of each of its sides.
    splitter : {"leafrank", "svm"}, SVMSplit or classifier, default="leafrank"
        The splitting rule: LeafRank, support vector machines (`SVMSplit` has their parameters), or any
        scikit-learn classifier that takes sample weights. All but LeafRank see standardised numbers,
        missing cells filled with the mean, and a 0/1 column for each category.
    leafrank_depth : int, default=3
        Most cuts on the path to a cell of LeafRank. A deeper one fits more and reads worse: a single tree
        overfits, a forest gains.
    leafrank_min_samples_leaf : float, default=1
        Least weight of a cell.
    max_features : int, float, "sqrt" or None, default=None
        Features drawn for each node: all, a number, a share or the square root (rounded down).
    leafrank_max_features : int, float, "sqrt" or None, default=None
        Features drawn among those for each cell of LeafRank.
    prune : {False, True, "tree", "leafrank"}, default=False
        Prune the tree, the small trees of LeafRank, or both (True), by the penalty on the number of
        leaves that gives the best AUC on held-out rows.
    prune_folds : int, default=5
        Stratified folds that choose the penalty.
    max_bins : int, default=255
        Bins of a column of numbers; columns with no more distinct values are split exactly (among more
        than 200,000 rows the values are those of a sample).
    max_set_categories : int, default=10
        In a column with at most so many categories every cell looks for the best set of them (LeafRank
        only). In a column with more it would find one in noise: there they are ordered once, by their
        rates of positives in other folds, shrunken, and a cell cuts that order in two.
    random_state : int, RandomState or None, default=None
        Draws of features and folds; without any, the tree does not depend on it.

    Attributes
    ----------
    tree_ : RankTree
        The tree as flat arrays.
    space_ : Bins or NumericEncoding
        How rows are given to the splitting rule.
    feature_importances_ : ndarray of shape (n_columns,)
        AUC gained by the cuts on each column (LeafRank only); they add up to the training AUC - 1/2.
    category_bytes_ : uint8 ndarray of shape (n_columns, 256)
        What `space_`'s bytes become where the categories of a column are in the order of their rates.
    n_leaves_ : int
    %(classes)s

    See Also
    --------
    RankingForest : Many randomised ranking trees and their median ranking.
    toprank.trees.export_text : The tree as text.
    toprank.trees.plot_tree : The tree as a picture.

    References
    ----------
    .. [1] S. Clemencon and N. Vayatis (2009), Tree-based ranking methods, IEEE Transactions on
       Information Theory 55.
    .. [2] S. Clemencon, M. Depecker and N. Vayatis (2011), Adaptive partitioning schemes for bipartite
       ranking, Machine Learning 83.

    Examples
    --------
    >>> from toprank import TreeRank
    >>> from toprank.datasets import gauss20d
    >>> X, y = gauss20d("easy", n_samples=500, random_state=0)
    >>> tree = TreeRank(max_depth=3, leafrank_depth=2).fit(X, y)
    >>> tree.n_leaves_
    8
    """

    def __init__(
        self,
        max_depth: int = 8,
        *,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        splitter: Any = "leafrank",
        leafrank_depth: int = 3,
        leafrank_min_samples_leaf: float = 1,
        max_features: int | float | str | None = None,
        leafrank_max_features: int | float | str | None = None,
        prune: bool | str = False,
        prune_folds: int = 5,
        max_bins: int = 255,
        max_set_categories: int = 10,
        random_state: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.splitter = splitter
        self.leafrank_depth = leafrank_depth
        self.leafrank_min_samples_leaf = leafrank_min_samples_leaf
        self.max_features = max_features
        self.leafrank_max_features = leafrank_max_features
        self.prune = prune
        self.prune_folds = prune_folds
        self.max_bins = max_bins
        self.max_set_categories = max_set_categories
        self.random_state = random_state

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TreeRank:
        """Grow the tree.

        Parameters
        ----------
        %(X)s
            Numbers, categories, missing values. LeafRank reads a sparse matrix as one byte a cell, zeros
            included; other splitters turn it into a dense one.
        %(y)s
        %(pair_weight)s

        Returns
        -------
        self : TreeRank
        """
        data = self._check_training(X, y, sample_weight)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        sample, grow = self._plan(data, self.max_features, self.leafrank_max_features, rng)
        self.tree_ = grow(sample, rng=rng)
        self.n_leaves_ = int(self.tree_.is_leaf.sum())
        self._warn_if_constant([self.tree_], data)
        self._set_threshold(self.tree_.scores[self.tree_.apply(sample.scored_rows)], data)
        return self

    def _raw_scores(self, X: Any) -> np.ndarray:
        return self.tree_.scores[self._by_chunks(self.tree_.apply, X)]

    def apply(self, X: Any) -> np.ndarray:
        """Return the number of the leaf, in `tree_`, that each row falls in."""
        check_is_fitted(self)
        return self._by_chunks(self.tree_.apply, self._check_rows(X))


@fill_docstring
class RankingForest(BaseTreeRanker):
    """A forest of ranking trees, each grown on a bootstrap sample with features drawn at random.

    A row is scored by the mean over the trees of its leaf's precision, which keeps the top of the ranking
    sharp where positives are rare, or by a median of the trees' rankings [1]_, [2]_. The defaults were chosen
    on a hundred sets of rare positives; those of the paper are `RankingForest(50, variant="rf3",
    consensus="spearman", max_depth=8, min_samples_leaf=1, leafrank_depth=6)`.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    variant : {"sqrt", "bagging", "rf1", ..., "rf6"}, default="sqrt"
        How features are drawn: d1 of the d features for each node of a tree, and d2 among those for each
        cell of LeafRank. "sqrt" draws d2 = sqrt(d), "bagging" none; the paper's "rf1" has d1 = d/4, "rf2"
        d1 = 1, "rf3" d2 = d/4, "rf4" d2 = 1, "rf5" d1 = d/2 and d2 = d/4, "rf6" d1 = d/4 and d2 = 1
        (rounded down, at least 1; what is not said is not drawn).
    splitter : {"leafrank", "svm"}, SVMSplit or classifier, default="leafrank"
        See `TreeRank`.
    consensus : {"precision", "spearman", "footrule", "kendall"}, default="precision"
        How the trees are joined. "precision" is the mean over the trees of (p + pi) / (p + n + 1), with p and
        n the positives and negatives that the tree's sample has in the row's leaf and pi the share of
        positives. The other three take the median of the trees' rankings by the distance they name:
        "spearman" is the mean mid-rank, in which a tree that misses a row moves it further than the whole
        top hundredth is long; the last two cost more, and more memory, on many rows.
    max_samples : int, float or None, default=None
        Rows drawn for each tree: as many as there are, a number, or a share. They are drawn with
        replacement, with probabilities in proportion to their weights, from each class on its own, so that
        no tree goes without positives.
    max_depth, min_samples_split, min_samples_leaf, leafrank_depth, leafrank_min_samples_leaf, \
    prune, prune_folds, max_bins, max_set_categories
        Of each tree; see `TreeRank`. Trees are deeper here (16), LeafRank's are not (2), and leaves have a
        weight of at least 2.
    max_features, leafrank_max_features : int, float, "sqrt" or None, default=None
        d1 and d2 in place of the variant's.
    %(n_jobs)s
        A joblib backend set around `fit` has precedence over threads.
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    trees_ : list of RankTree
    consensus_ : str
        How the trees were joined.
    node_scores_ : list of ndarray
        For each tree what a row in each of its leaves scores: the smoothed precision, or the mid-rank among
        the training rows from 0 (worst) to 1 (best).
    oob_decision_function_ : ndarray of shape (n_rows,)
        Mean of these scores of each training row over the trees that were grown without it, on the scale
        of `decision_function` (with the footrule and Kendall's distance on that of mid-ranks); NaN if
        there are none.
    oob_auc_ : float
        AUC of these scores.
    feature_importances_ : ndarray of shape (n_columns,)
        Mean over the trees of the AUC gained by the cuts on each column (LeafRank only).
    %(classes)s

    References
    ----------
    .. [1] S. Clemencon, M. Depecker and N. Vayatis (2013), Ranking forests, JMLR 14.
    .. [2] M. Depecker, S. Clemencon and N. Vayatis (2011), An empirical comparison of learning
       algorithms for nonparametric scoring, HAL preprint hal-00730434.

    Examples
    --------
    >>> from toprank import RankingForest
    >>> from toprank.datasets import gauss20d
    >>> X, y = gauss20d("easy", n_samples=600, random_state=0)
    >>> forest = RankingForest(n_estimators=20, random_state=0).fit(X[:400], y[:400])
    >>> forest.score(X[400:], y[400:]) > 0.65
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseTreeRanker._parameter_constraints,
        "variant": [StrOptions(set(VARIANTS))],
        "consensus": [StrOptions({"precision", "spearman", *ORDERS})],
        "max_samples": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0, None, closed="neither"),
            None,
        ],
    }

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        variant: str = "sqrt",
        splitter: Any = "leafrank",
        consensus: str = "precision",
        max_samples: int | float | None = None,
        max_depth: int = 16,
        min_samples_split: float = 2,
        min_samples_leaf: float = 2,
        leafrank_depth: int = 2,
        leafrank_min_samples_leaf: float = 1,
        max_features: int | float | str | None = None,
        leafrank_max_features: int | float | str | None = None,
        prune: bool | str = False,
        prune_folds: int = 5,
        max_bins: int = 255,
        max_set_categories: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.variant = variant
        self.splitter = splitter
        self.consensus = consensus
        self.max_samples = max_samples
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.leafrank_depth = leafrank_depth
        self.leafrank_min_samples_leaf = leafrank_min_samples_leaf
        self.max_features = max_features
        self.leafrank_max_features = leafrank_max_features
        self.prune = prune
        self.prune_folds = prune_folds
        self.max_bins = max_bins
        self.max_set_categories = max_set_categories
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RankingForest:
        """Grow the trees and find their consensus.

        Parameters
        ----------
        %(X)s
            Numbers, categories, missing values. LeafRank reads a sparse matrix as one byte a cell, zeros
            included; other splitters turn it into a dense one.
        %(y)s
        sample_weight : array of shape (n_rows,), optional
            Rows are drawn with probabilities in proportion to their weights.

        Returns
        -------
        self : RankingForest
        """
        data = self._check_training(X, y, sample_weight)
        random = check_random_state(self.random_state)
        seeds = random.randint(2**31 - 1, size=int(self.n_estimators) + 1)
        rng = np.random.default_rng(seeds[-1])
        d1, d2 = VARIANTS[self.variant]
        d1 = d1 if self.max_features is None else self.max_features
        d2 = d2 if self.leafrank_max_features is None else self.leafrank_max_features
        sample, grow = self._plan(data, d1, d2, rng)
        size = len(data.y)  # rows drawn for each tree, at least one of each class
        if isinstance(self.max_samples, Integral):
            size = int(self.max_samples)
        elif self.max_samples is not None:
            size = max(2, round(self.max_samples * size))
        self.consensus_ = self.consensus
        grow_member = partial(_grow_member, sample, grow, size, self.consensus_ == "precision")
        self._set_threshold(self._grow_trees(grow_member, data, seeds[:-1], rng), data)
        self.oob_decision_function_ -= self.offset_
        self._warn_if_constant(self.trees_, data)
        return self

    def _grow_trees(
        self,
        grow_member: Callable[[int], Any],
        data: TrainingData,
        seeds: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Grow all trees, adding up their scores; return the scores of the training rows."""
        n_rows, n_trees = len(data.y), len(seeds)
        total, outside, times_outside = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
        keep_leaves = self.consensus_ in ORDERS
        leaves = np.empty((n_rows, n_trees if keep_leaves else 0), dtype=np.int32)
        self.trees_, self.node_scores_ = [], []
        workers = Parallel(thread_count(self.n_jobs), prefer="threads", return_as="generator")
        grown = workers(delayed(grow_member)(int(seed)) for seed in seeds)
        with progress(n_trees, "trees", enabled=self.verbose) as advance:
            for number, (tree, node_scores, leaf, unseen, is_outside) in enumerate(grown):
                self.trees_.append(tree)
                self.node_scores_.append(node_scores)
                total += node_scores[leaf]
                outside[is_outside] += node_scores[unseen]
                times_outside += is_outside
                if keep_leaves:
                    leaves[:, number] = leaf
                advance()
        self._set_out_of_bag(data, outside, times_outside)
        if not keep_leaves:
            return total / n_trees
        orders = [tree.leaves for tree in self.trees_]
        self.cell_order_ = CellOrder.of(self.consensus_, leaves, orders, rng)
        return self.cell_order_.scores(leaves)

    def _set_out_of_bag(
        self, data: TrainingData, outside: np.ndarray, times_outside: np.ndarray
    ) -> None:
        """Set the scores of rows by the trees that did not see them, and their AUC."""
        from toprank.metrics import roc_auc

        seen = times_outside > 0
        scores = np.full(len(outside), np.nan)
        scores[seen] = outside[seen] / times_outside[seen]
        self.oob_decision_function_: np.ndarray = scores
        self.oob_auc_ = float("nan")
        if seen.any() and np.ptp(data.y[seen]) > 0:
            part = data.rows(seen)
            self.oob_auc_ = roc_auc(part.y, scores[seen], sample_weight=part.sample_weight)

    def _raw_scores(self, X: Any) -> np.ndarray:
        return self._by_chunks(self._score_rows, X)

    def _score_rows(self, rows: np.ndarray) -> np.ndarray:
        if self.consensus_ in ORDERS:
            leaves = np.column_stack([tree.apply(rows) for tree in self.trees_])
            return self.cell_order_.scores(leaves)
        total = np.zeros(len(rows))
        for tree, node_scores in zip(self.trees_, self.node_scores_, strict=True):
            total += node_scores[tree.apply(rows)]
        return total / len(self.trees_)

    def tree_scores(self, X: Any) -> np.ndarray:
        """Return the score of each row by each tree, of shape (n_trees, n_rows); see `node_scores_`."""
        check_is_fitted(self)
        rows = self._prepare(self._check_rows(X))
        members = zip(self.trees_, self.node_scores_, strict=True)
        return np.stack([node_scores[tree.apply(rows)] for tree, node_scores in members])

    @fill_docstring
    def instability(self, X: Any, *, distance: str = "spearman") -> float:
        """Return the mean distance between the orderings that pairs of trees give to the rows of `X`.

        Parameters
        ----------
        %(X)s
        distance : {"spearman", "kendall", "footrule"}, default="spearman"
            See `toprank.metrics.instability`.

        Returns
        -------
        float
            0 if all trees agree, 1 for opposite orders.
        """
        from toprank.metrics import instability

        return instability(self.tree_scores(X), distance=distance)


def draw_bootstrap(
    positive: np.ndarray, weight: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Return how often each row is drawn: `size` in all, the classes in proportion to their weights."""
    counts = np.zeros(len(positive))
    share = weight[positive == 1].sum() / weight.sum()
    n_positives = min(max(round(share * size), 1), size - 1)
    for label, n_draws in ((1, n_positives), (0, size - n_positives)):
        members = np.flatnonzero(positive == label)
        cumulative = np.cumsum(weight[members])
        drawn = np.searchsorted(cumulative, rng.random(n_draws) * cumulative[-1], side="right")
        drawn = np.minimum(drawn, len(members) - 1)
        counts[members] += np.bincount(drawn, minlength=len(members))
    return counts


def _grow_member(
    sample: Sample, grow: Grow, size: int, by_precision: bool, seed: int
) -> tuple[RankTree, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a tree, the scores of its leaves, and the leaf of every training row.

    Then the leaves of those rows that were not drawn, and which these are.
    """
    rng = np.random.default_rng(seed)
    counts = draw_bootstrap(sample.positive, sample.weight, size, rng)
    tree = grow(replace(sample, weight=counts), rng=rng)
    leaf = tree.apply(sample.scored_rows)
    scores = tree.smoothed_precision if by_precision else tree.mid_ranks(leaf, sample.weight)
    is_outside = counts == 0
    unseen = leaf[is_outside]
    # the order of the categories has seen the labels of these rows
    if sample.final_rows is not None:
        unseen = tree.apply(sample.rows[is_outside])
    return tree, scores, leaf, unseen, is_outside
