"""TreeRank and RankingForest: one ranking tree, and many randomised ones with their median ranking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, RealNotInt
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker, TrainingData
from toprank.binning import Bins
from toprank.docstrings import fill_docstring
from toprank.encoding import NumericEncoding
from toprank.parallel import ThreadPool, thread_count
from toprank.progress import progress
from toprank.trees.consensus import ORDERS, CellOrder
from toprank.trees.growing import Sample, TreeLimits, grow_pruned
from toprank.trees.leafrank import LeafRank, LeafRankRules, LeafRankSplitter
from toprank.trees.reading import auc_gained
from toprank.trees.splitters import (
    EstimatorSplitter,
    SVMSplit,
    SVMSplitter,
    check_classifier,
    choose_svm,
)
from toprank.trees.tree import RankTree
from toprank.validation import PARAMETER_CONSTRAINTS, Interval, StrOptions

__all__ = ["VARIANTS", "RankingForest", "TreeRank"]

CHUNK_ROWS = 65_536
Grow = Callable[..., RankTree]  # of a sample and a random generator
MAX_DEPTH = 50  # the position of a leaf among 2^depth must stay exact in a float

# features drawn for each node (d1) and for each cell of LeafRank (d2)
VARIANTS: dict[str, tuple[int | float | None, int | float | None]] = {
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
    None,
]


class BaseTreeRanker(BaseRanker):
    """What the tree and the forest share: their parameters, and the form of the rows that they read."""

    tree_: RankTree
    _accepts_missing = True
    _accepts_categories = True
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
    }

    def _plan(
        self,
        data: TrainingData,
        max_features: int | float | None,
        leafrank_max_features: int | float | None,
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
        columns = (data.X, self.columns_.is_category, data.sample_weight)
        splitter = SVMSplit() if isinstance(self.splitter, str) else self.splitter
        is_leafrank = isinstance(self.splitter, str) and self.splitter == "leafrank"
        if is_leafrank:
            n_jobs = getattr(self, "n_jobs", 1)
            self.space_: Any = Bins.of(*columns, max_bins=self.max_bins, n_jobs=n_jobs)
        else:
            self.space_ = NumericEncoding.of(*columns)
        sample = Sample(self._prepare(data.X), data.y.astype(np.uint8), data.weights)
        settings = {"limits": limits, "encoding": self.space_, "n_node_features": n_node}
        make: Callable[[Sample], Any]
        if is_leafrank:
            n_cell = min(n_node, count_features(leafrank_max_features, n_columns))
            cells = (int(self.leafrank_depth), float(self.leafrank_min_samples_leaf))
            parameters = LeafRank(*cells, n_node, n_cell, cell_folds)
            make = partial(LeafRankSplitter, limits=limits, bins=self.space_, parameters=parameters)
        elif isinstance(splitter, SVMSplit):
            self.svm_ = choose_svm(sample, splitter, limits, self.space_, rng)
            make = partial(SVMSplitter, **settings, parameters=self.svm_)
        else:
            check_classifier(splitter)
            make = partial(EstimatorSplitter, **settings, parameters=splitter)
        return sample, partial(grow_pruned, make_splitter=make, limits=limits, n_folds=tree_folds)

    def _by_chunks(self, function: Callable[[np.ndarray], np.ndarray], X: Any) -> np.ndarray:
        """Call a function with a bounded number of prepared rows at a time; join the answers."""
        starts = range(0, max(1, len(X)), CHUNK_ROWS)
        with ThreadPool(1 if len(starts) == 1 else getattr(self, "n_jobs", 1)) as pool:
            parts = pool.map(lambda k: function(self._prepare(X[k : k + CHUNK_ROWS])), starts)
        return np.concatenate(parts)

    def _prepare(self, X: np.ndarray) -> np.ndarray:
        """Return the rows in the form that the splitting rule reads."""
        if isinstance(self.space_, Bins):
            return self.space_.codes(X, by_row=True)
        return self.space_.transform(X)

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


def count_features(wanted: int | float | None, n_columns: int) -> int:
    """Return how many features a parameter asks for: all, a number, or a share (at least 1).

    Examples
    --------
    >>> count_features(None, 10), count_features(3, 10), count_features(0.25, 10)
    (10, 3, 2)
    """
    if wanted is None:
        return n_columns
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
    max_features : int, float or None, default=None
        Features drawn for each node: all, a number, or a share (rounded down).
    leafrank_max_features : int, float or None, default=None
        Features drawn among those for each cell of LeafRank.
    prune : {False, True, "tree", "leafrank"}, default=False
        Prune the tree, the small trees of LeafRank, or both (True), by the penalty on the number of
        leaves that gives the best AUC on held-out rows.
    prune_folds : int, default=5
        Stratified folds that choose the penalty.
    max_bins : int, default=255
        Bins of a column of numbers; columns with no more distinct values are split exactly (among more
        than 200,000 rows the values are those of a sample).
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
        max_features: int | float | None = None,
        leafrank_max_features: int | float | None = None,
        prune: bool | str = False,
        prune_folds: int = 5,
        max_bins: int = 255,
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
        self.random_state = random_state

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TreeRank:
        """Grow the tree.

        Parameters
        ----------
        %(X)s
            Numbers, categories, missing values.
        %(y)s
        %(sample_weight)s

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
        self._set_threshold(self.tree_.scores[self.tree_.apply(sample.rows)], data)
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

    The trees' rankings are joined into a median ranking [1]_, [2]_; by default rows are ordered by
    their mean mid-rank over the trees, which works for new rows as well.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees.
    variant : {"bagging", "rf1", ..., "rf6"}, default="rf3"
        How features are drawn: d1 of the d features for each node of a tree, and d2 among those for each
        cell of LeafRank. "bagging" draws none; "rf1" has d1 = d/4, "rf2" d1 = 1, "rf3" d2 = d/4, "rf4"
        d2 = 1, "rf5" d1 = d/2 and d2 = d/4, "rf6" d1 = d/4 and d2 = 1 (rounded down, at least 1; what
        is not said is not drawn).
    splitter : {"leafrank", "svm"}, SVMSplit or classifier, default="leafrank"
        See `TreeRank`.
    consensus : {"spearman", "footrule", "kendall"}, default="spearman"
        The distance whose median is taken. The last two cost more, and more memory, on many rows.
    max_samples : int, float or None, default=None
        Rows drawn for each tree: as many as there are, a number, or a share. They are drawn with
        replacement, with probabilities in proportion to their weights, from each class on its own, so that
        no tree goes without positives.
    max_depth, min_samples_split, min_samples_leaf, leafrank_depth, leafrank_min_samples_leaf, \
    prune, prune_folds, max_bins
        Of each tree; see `TreeRank`. LeafRank's depth is 6 here.
    max_features, leafrank_max_features : int, float or None, default=None
        d1 and d2 in place of the variant's.
    %(n_jobs)s
        A joblib backend set around `fit` has precedence over threads.
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    trees_ : list of RankTree
    node_ranks_ : list of ndarray
        For each tree the mid-rank of each leaf among the training rows, from 0 (worst) to 1 (best).
    oob_decision_function_ : ndarray of shape (n_rows,)
        Mean mid-rank of each training row over the trees that were grown without it, on the scale of
        `decision_function` with the Spearman consensus; NaN if there are none.
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
        "consensus": [StrOptions({"spearman", *ORDERS})],
        "max_samples": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0, None, closed="neither"),
            None,
        ],
    }

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        variant: str = "rf3",
        splitter: Any = "leafrank",
        consensus: str = "spearman",
        max_samples: int | float | None = None,
        max_depth: int = 8,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        leafrank_depth: int = 6,
        leafrank_min_samples_leaf: float = 1,
        max_features: int | float | None = None,
        leafrank_max_features: int | float | None = None,
        prune: bool | str = False,
        prune_folds: int = 5,
        max_bins: int = 255,
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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RankingForest:
        """Grow the trees and find their consensus.

        Parameters
        ----------
        %(X)s
            Numbers, categories, missing values.
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
        grow_member = partial(_grow_member, sample, grow, size)
        self._set_threshold(self._grow_trees(grow_member, data, seeds[:-1], rng), data)
        self.oob_decision_function_ -= self.offset_
        return self

    def _grow_trees(
        self,
        grow_member: Callable[[int], Any],
        data: TrainingData,
        seeds: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Grow all trees, one mid-rank vector at a time; return the scores of the training rows."""
        n_rows, n_trees = len(data.y), len(seeds)
        total, outside, times_outside = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
        keep_leaves = self.consensus != "spearman"
        leaves = np.empty((n_rows, n_trees if keep_leaves else 0), dtype=np.int32)
        self.trees_, self.node_ranks_ = [], []
        workers = Parallel(thread_count(self.n_jobs), prefer="threads", return_as="generator")
        grown = workers(delayed(grow_member)(int(seed)) for seed in seeds)
        with progress(n_trees, "trees", enabled=self.verbose) as advance:
            for number, (tree, node_ranks, leaf, in_bag) in enumerate(grown):
                self.trees_.append(tree)
                self.node_ranks_.append(node_ranks)
                ranks = node_ranks[leaf]
                total += ranks
                outside += np.where(in_bag, 0.0, ranks)
                times_outside += ~in_bag
                if keep_leaves:
                    leaves[:, number] = leaf
                advance()
        self._set_out_of_bag(data, outside, times_outside)
        if not keep_leaves:
            return total / n_trees
        orders = [tree.leaves for tree in self.trees_]
        self.cell_order_ = CellOrder.of(self.consensus, leaves, orders, rng)
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
        if self.consensus != "spearman":
            leaves = np.column_stack([tree.apply(rows) for tree in self.trees_])
            return self.cell_order_.scores(leaves)
        total = np.zeros(len(rows))
        for tree, node_ranks in zip(self.trees_, self.node_ranks_, strict=True):
            total += node_ranks[tree.apply(rows)]
        return total / len(self.trees_)

    def tree_scores(self, X: Any) -> np.ndarray:
        """Return the score of each row by each tree, of shape (n_trees, n_rows): mid-ranks from 0 to 1."""
        check_is_fitted(self)
        rows = self._prepare(self._check_rows(X))
        members = zip(self.trees_, self.node_ranks_, strict=True)
        return np.stack([node_ranks[tree.apply(rows)] for tree, node_ranks in members])

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
    sample: Sample, grow: Grow, size: int, seed: int
) -> tuple[RankTree, np.ndarray, np.ndarray, np.ndarray]:
    """Return a tree, the mid-ranks of its leaves, the leaf of every training row, and which were drawn."""
    rng = np.random.default_rng(seed)
    counts = draw_bootstrap(sample.positive, sample.weight, size, rng)
    tree = grow(replace(sample, weight=counts), rng=rng)
    leaf = tree.apply(sample.rows)
    return tree, tree.mid_ranks(leaf, sample.weight), leaf, counts > 0
