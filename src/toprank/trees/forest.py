"""RankingForest: many randomised ranking trees and their median ranking."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import TrainingData
from toprank.progress import progress
from toprank.trees.consensus import ORDERS, CellOrder
from toprank.trees.leafrank import LeafRankRules
from toprank.trees.preparation import BaseTreeRanker, Plan, chunks
from toprank.trees.reading import auc_gained
from toprank.trees.tree import RankTree

__all__ = ["VARIANTS", "RankingForest"]

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
        replacement, with odds in proportion to their weights, from each class on its own, so that
        no tree goes without positives.
    max_depth, min_samples_split, min_samples_leaf, leafrank_depth, leafrank_min_samples_leaf, \
    prune, prune_folds, max_bins
        Of each tree; see `TreeRank`. LeafRank's depth is 6 here.
    max_features, leafrank_max_features : int, float or None, default=None
        d1 and d2 in place of the variant's.
    n_jobs : int or None, default=None
        Trees grown at the same time, in threads (a joblib backend set around `fit` has precedence). The
        forest is the same for any number.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        Above 0, a progress bar is shown.

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
    classes_ : ndarray of shape (2,)
    offset_ : float

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RankingForest:
        """Grow the trees and find their consensus.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)
            Numbers, categories, missing values.
        y : array of shape (n_rows,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_rows,), optional
            Odds of being drawn.

        Returns
        -------
        self : RankingForest
        """
        data = self._check_training(X, y, sample_weight)
        self._check_forest()
        random = check_random_state(self.random_state)
        seeds = random.randint(2**31 - 1, size=int(self.n_estimators) + 1)
        rng = np.random.default_rng(seeds[-1])
        node_features, cell_features = self._drawn_features()
        plan = self._plan(data, node_features, cell_features, rng)
        scores = self._grow(plan, data, seeds[:-1], rng)
        self._set_threshold(scores, data)
        self.oob_decision_function_ -= self.offset_
        return self

    def _grow(
        self, plan: Plan, data: TrainingData, seeds: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Grow all trees, one mid-rank vector at a time; return the scores of the training rows."""
        n_rows, n_trees = len(data.y), len(seeds)
        size = _sample_size(self.max_samples, n_rows)
        total, outside, times_outside = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
        keep_leaves = self.consensus != "spearman"
        leaves = np.empty((n_rows, n_trees if keep_leaves else 0), dtype=np.int32)
        self.trees_, self.node_ranks_ = [], []
        workers = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        members = workers(delayed(_grow_member)(plan, size, int(seed)) for seed in seeds)
        with progress(n_trees, "trees", enabled=self.verbose) as advance:
            for number, (tree, node_ranks, leaf, in_bag) in enumerate(members):
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
        """Scores of rows by the trees that did not see them, and their AUC."""
        from toprank.metrics import roc_auc

        seen = times_outside > 0
        scores = np.full(len(outside), np.nan)
        scores[seen] = outside[seen] / times_outside[seen]
        self.oob_decision_function_: np.ndarray = scores
        weight = None if data.sample_weight is None else data.sample_weight[seen]
        both = seen.any() and np.ptp(data.y[seen]) > 0
        self.oob_auc_ = (
            roc_auc(data.y[seen], scores[seen], sample_weight=weight) if both else float("nan")
        )

    def _raw_scores(self, X: Any) -> np.ndarray:
        parts = chunks(len(X))
        jobs = 1 if len(parts) == 1 else self.n_jobs
        workers = Parallel(n_jobs=jobs, prefer="threads", require="sharedmem")
        return np.concatenate(workers(delayed(self._score_part)(X[part]) for part in parts))

    def _score_part(self, X: Any) -> np.ndarray:
        rows = self.space_.prepare(X)
        if self.consensus != "spearman":
            leaves = np.column_stack([tree.apply(rows) for tree in self.trees_])
            return self.cell_order_.scores(leaves)
        total = np.zeros(len(rows))
        for tree, node_ranks in zip(self.trees_, self.node_ranks_, strict=True):
            total += node_ranks[tree.apply(rows)]
        return total / len(self.trees_)

    def tree_scores(self, X: Any) -> np.ndarray:
        """The score of each row by each tree, of shape (n_trees, n_rows): mid-ranks from 0 to 1."""
        check_is_fitted(self)
        X = self._check_rows(X)
        rows = self.space_.prepare(X)
        return np.stack(
            [
                node_ranks[tree.apply(rows)]
                for tree, node_ranks in zip(self.trees_, self.node_ranks_, strict=True)
            ]
        )

    def instability(self, X: Any, *, distance: str = "spearman") -> float:
        """Mean distance between the orderings that pairs of trees give to the rows of `X`.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)
        distance : {"spearman", "kendall", "footrule"}, default="spearman"
            See `toprank.metrics.instability`.

        Returns
        -------
        float
            0 if all trees agree, 1 for opposite orders.
        """
        from toprank.metrics import instability

        return instability(self.tree_scores(X), distance=distance)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean AUC gained by the cuts on each column."""
        check_is_fitted(self)
        if not isinstance(self.trees_[0].rules, LeafRankRules):
            raise AttributeError(
                "only LeafRank's cuts belong to one column each; for other splitters use "
                "sklearn.inspection.permutation_importance"
            )
        return np.mean([auc_gained(tree, self.n_features_in_) for tree in self.trees_], axis=0)

    def _drawn_features(self) -> tuple[int | float | None, int | float | None]:
        """d1 and d2 as given, or else as the variant has them."""
        node, cell = VARIANTS[self.variant]
        return (
            node if self.max_features is None else self.max_features,
            cell if self.leafrank_max_features is None else self.leafrank_max_features,
        )

    def _check_forest(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {list(VARIANTS)}, got {self.variant!r}")
        if self.consensus not in {"spearman", *ORDERS}:
            raise ValueError(
                f"consensus must be one of {['spearman', *ORDERS]}, got {self.consensus!r}"
            )
        whole = isinstance(self.n_estimators, Integral) and not isinstance(self.n_estimators, bool)
        if not whole or self.n_estimators < 1:
            raise ValueError(
                f"n_estimators must be a whole number from 1 up, got {self.n_estimators!r}"
            )


def _sample_size(max_samples: int | float | None, n_rows: int) -> int:
    """Rows drawn for each tree, at least one of each class."""
    if max_samples is None:
        return n_rows
    if isinstance(max_samples, Integral) and max_samples >= 2:
        return int(max_samples)
    if isinstance(max_samples, Real) and not isinstance(max_samples, Integral) and max_samples > 0:
        return max(2, round(max_samples * n_rows))
    raise ValueError(
        f"max_samples must be None, a whole number from 2 up or a share above 0, got {max_samples!r}"
    )


def draw_bootstrap(
    positive: np.ndarray, weight: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """How often each row is drawn: `size` in all, the classes in proportion to their weights."""
    counts = np.zeros(len(positive))
    share = weight[positive == 1].sum() / weight.sum()
    n_positives = min(max(round(share * size), 1), size - 1)
    for label, n_draws in ((1, n_positives), (0, size - n_positives)):
        members = np.flatnonzero(positive == label)
        odds = np.cumsum(weight[members])
        drawn = np.searchsorted(odds, rng.random(n_draws) * odds[-1], side="right")
        drawn = np.minimum(drawn, len(members) - 1)
        counts[members] += np.bincount(drawn, minlength=len(members))
    return counts


def _grow_member(
    plan: Plan, size: int, seed: int
) -> tuple[RankTree, np.ndarray, np.ndarray, np.ndarray]:
    """One tree, the mid-ranks of its leaves, the leaf of every training row, and who was drawn."""
    rng = np.random.default_rng(seed)
    sample = plan.sample
    counts = draw_bootstrap(sample.positive, sample.weight, size, rng)
    tree = plan.grow(counts, rng)
    leaf = tree.apply(sample.rows)
    return tree, tree.mid_ranks(leaf, sample.weight), leaf, counts > 0
