"""TreeRank: one ranking tree, read from left to right."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.trees.leafrank import LeafRankRules
from toprank.trees.preparation import BaseTreeRanker, chunks
from toprank.trees.reading import auc_gained

__all__ = ["TreeRank"]


class TreeRank(BaseTreeRanker):
    """A ranking tree: an oriented binary tree whose leaves, from left to right, are the ranking.

    Every node is split so as to maximise TPR - FPR inside it, that is the AUC of the split [1]_. The
    splitting rule is LeafRank by default, a small tree of axis-parallel cuts whose cells go left or
    right [2]_, or a classifier in which both classes weigh the same. A leaf at depth d and position k
    has the score 2^D (1 - k / 2^d).

    Parameters
    ----------
    max_depth : int, default=8
        Most splits on the way to a leaf.
    min_samples_split, min_samples_leaf : float, default=2, 1
        Least weight of a node that is split, and of each of its sides.
    splitter : {"leafrank", "svm"}, SVMSplit or classifier, default="leafrank"
        The splitting rule: LeafRank, support vector machines (`SVMSplit` has their parameters), or any
        scikit-learn classifier that takes sample weights. All but LeafRank see standardised numbers,
        missing cells filled with the mean, and a 0/1 column for each category.
    leafrank_depth : int, default=3
        Most cuts on the way to a cell of LeafRank. A deeper one fits more and reads worse: a single tree
        overfits, a forest gains.
    leafrank_min_samples_leaf : float, default=1
        Least weight of a cell.
    max_features : int, float or None, default=None
        Features drawn for each node: all, a number, or a share (rounded down).
    leafrank_max_features : int, float or None, default=None
        Features drawn among those for each cell of LeafRank.
    prune : {False, True, "tree", "leafrank"}, default=False
        Cut back the tree, the small trees of LeafRank, or both (True), by the penalty on the number of
        leaves that gives the best AUC on rows held out.
    prune_folds : int, default=5
        Stratified folds that choose the penalty.
    max_bins : int, default=255
        Bins of a column of numbers; columns with no more distinct values are split exactly.
    random_state : int, RandomState or None, default=None
        Draws of features and folds; without any, the tree does not depend on it.

    Attributes
    ----------
    tree_ : RankTree
        The tree as flat arrays.
    space_ : Bins or Encoding
        How rows are prepared for the splitting rule.
    feature_importances_ : ndarray of shape (n_columns,)
        AUC gained by the cuts on each column (LeafRank only); they add up to the training AUC - 1/2.
    n_leaves_ : int
    classes_ : ndarray of shape (2,)
    offset_ : float
        The threshold that was subtracted from the scores.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TreeRank:
        """Grow the tree.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)
            Numbers, categories, missing values.
        y : array of shape (n_rows,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.

        Returns
        -------
        self : TreeRank
        """
        data = self._check_training(X, y, sample_weight)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        plan = self._plan(data, self.max_features, self.leafrank_max_features, rng)
        self.tree_ = plan.grow(plan.sample.weight, rng)
        self.n_leaves_ = int(self.tree_.is_leaf.sum())
        self._set_threshold(self.tree_.scores[self.tree_.apply(plan.sample.rows)], data)
        return self

    def _raw_scores(self, X: Any) -> np.ndarray:
        return self.tree_.scores[self._leaves(X)]

    def _leaves(self, X: Any) -> np.ndarray:
        parts = [self.tree_.apply(self.space_.prepare(X[part])) for part in chunks(len(X))]
        return np.concatenate(parts)

    def apply(self, X: Any) -> np.ndarray:
        """The number of the leaf, in `tree_`, that each row falls in."""
        check_is_fitted(self)
        return self._leaves(self._check_rows(X))

    @property
    def feature_importances_(self) -> np.ndarray:
        """AUC gained by the cuts on each column."""
        check_is_fitted(self)
        if not isinstance(self.tree_.rules, LeafRankRules):
            raise AttributeError(
                "only LeafRank's cuts belong to one column each; for other splitters use "
                "sklearn.inspection.permutation_importance"
            )
        return auc_gained(self.tree_, self.n_features_in_)
