"""Checks of whole estimators in a model file: their parts fit one another and the columns.

Each check belongs to a fitted attribute, whichever estimator has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank.persistence.errors import require
from toprank.persistence.record_checks import FEATURE, exactly, finite, within
from toprank.registry import WRAPPERS

__all__ = ["check_estimator", "check_scikit_learn", "is_wrapper"]

MOST_THREADS = 1024
MOST_COLUMNS = 2_000_000  # of a step of scikit-learn, which does not list them
WITHOUT_CLASSES = ("TableEncoder",)


def check_estimator(model: Any) -> None:
    """Check a fitted estimator of the library."""
    state = vars(model)
    _check_threads(model)
    n_columns = state.get("n_features_in_")
    if n_columns is None:
        return  # not fitted: a parameter of another estimator
    whole = isinstance(n_columns, (int, np.integer)) and 0 < n_columns < 2**31
    require(bool(whole), "a model has no columns")
    if is_wrapper(model):
        _check_wrapped(model, int(n_columns))
    elif "schema_" not in state:
        _check_columns(state, int(n_columns))
    if type(model).__name__ not in WITHOUT_CLASSES:
        _check_classes(state)
    offset = state.get("offset_", 0.0)
    require(isinstance(offset, float) and bool(np.isfinite(offset)), "a threshold is not finite")
    for name, check in CHECKS.items():
        if name in state:
            check(model, int(n_columns))


def is_wrapper(model: Any) -> bool:
    """Whether a ranker stands around another one."""
    return type(model).__name__ in WRAPPERS


def _check_wrapped(model: Any, n_columns: int) -> None:
    """The ranker inside scores rows of these columns and classes, and can be calibrated."""
    state = vars(model)
    inner = state.get("estimator_")
    scores = any(hasattr(inner, name) for name in ("decision_function", "predict_proba"))
    require(scores, "a calibrated model has no ranker inside")
    fits = getattr(inner, "n_features_in_", None) == n_columns
    require(fits, "a calibrated model and its ranker take other columns")
    names, own = state.get("feature_names_in_"), getattr(inner, "feature_names_in_", None)
    same = names is own is None or (
        isinstance(names, np.ndarray)
        and isinstance(own, np.ndarray)
        and names.tolist() == own.tolist()
    )
    require(bool(same), "a calibrated model and its ranker name other columns")
    classes = getattr(inner, "classes_", None)
    alike = isinstance(classes, np.ndarray) and isinstance(state.get("classes_"), np.ndarray)
    require(
        alike and classes.tolist() == state["classes_"].tolist(),  # type: ignore[union-attr]
        "a calibrated model and its ranker have other classes",
    )
    for name, kind in (("staircase_", "OutOfFoldCounts"), ("calibration_", "ProbabilityMap")):
        require(type(state.get(name)).__name__ == kind, "a calibrated model lacks its calibration")


def _check_threads(model: Any) -> None:
    jobs = vars(model).get("n_jobs")
    whole = isinstance(jobs, (int, np.integer)) and -MOST_THREADS <= jobs <= MOST_THREADS
    require(jobs is None or bool(whole), "a model asks for an impossible number of threads")


def _check_columns(state: dict[str, Any], n_columns: int) -> None:
    columns = state.get("columns_")
    known = type(columns).__name__ == "Columns" and len(getattr(columns, "names", ())) == n_columns
    require(known, "a model does not say what its columns are")
    names = state.get("feature_names_in_")
    if names is not None:
        text = isinstance(names, np.ndarray) and names.dtype == object and names.ndim == 1
        same = text and tuple(names.tolist()) == getattr(columns, "names", ())
        require(bool(same), "a model has two kinds of column names")


def _check_classes(state: dict[str, Any]) -> None:
    classes = state.get("classes_")
    known = (
        isinstance(classes, np.ndarray) and classes.shape == (2,) and classes.dtype.kind in "iufbUO"
    )
    require(known, "a model does not say what its classes are")
    assert isinstance(classes, np.ndarray)
    plain = all(isinstance(label, (str, int, float, bool)) for label in classes.tolist())
    require(plain and classes[0] != classes[1], "the classes of a model are damaged")


def _coef(model: Any, n_columns: int) -> None:
    embedded = getattr(model, "embedding_", None) is not None
    width = (None,) if embedded else (n_columns,)
    finite(exactly(model.coef_, np.float64, width, "the coefficients"), "a coefficient")


def _boosters(model: Any, n_columns: int) -> None:
    known = type(model.boosters_) is list and len(model.boosters_) > 0
    require(known, "a model has no boosters")
    for booster in model.boosters_:
        require(type(booster).__name__ == "Booster", "a booster is something else")
    require(type(vars(model).get("trained_on_sparse_")) is bool, "a boosted model is incomplete")


def _rule_bins(model: Any, n_columns: int) -> None:
    known = type(model.bins_).__name__ == "BinnedColumns"
    same = known and model.bins_.columns.names == model.columns_.names
    require(bool(same), "the bins of a model are for other columns")


def _rounds(model: Any, n_columns: int) -> None:
    require(isinstance(model.rounds_, tuple), "a model has no rounds")
    kind = "Clause" if hasattr(model, "schema_") else "Rule"
    for kept in model.rounds_:
        require(type(kept).__name__ == "KeptRound", "a round of a model is something else")
        alike = all(type(rule).__name__ == kind for rule in kept.rules)
        require(alike, "a model holds rules of the wrong kind")


def _schema(model: Any, n_columns: int) -> None:
    fits = type(model.schema_).__name__ == "Schema" and model.schema_.target.arity == n_columns
    require(bool(fits), "a model does not know its predicates")


def _space(model: Any, n_columns: int) -> None:
    space = model.space_
    require(type(space).__name__ in ("Bins", "Encoding"), "a model cannot read its columns")
    require(
        hasattr(space, "prepare") and space.n_columns == n_columns, "bins are for other columns"
    )
    if type(space).__name__ == "Bins":
        same = np.array_equal(space.is_category, model.columns_.is_category)
        require(same, "the bins of a model are for other columns")


def _check_rank_tree(tree: Any, model: Any) -> None:
    require(type(tree).__name__ == "RankTree", "a ranking tree is something else")
    binned = type(tree.rules).__name__ == "LeafRankRules"
    require(binned == (type(model.space_).__name__ == "Bins"), "splits and bins do not fit")
    if binned:
        within(tree.rules.cells[:, FEATURE], -1, model.space_.n_columns, "the column of a cut")
        return
    n_encoded = len(model.space_.source)
    if type(tree.rules).__name__ == "SVMRules":
        within(tree.rules.columns, 0, n_encoded, "the column of a machine")
        return
    for split, columns in zip(tree.rules.models, tree.rules.columns, strict=True):
        within(columns, 0, n_encoded, "the column of a split")
        width = getattr(split, "n_features_in_", None)
        require(width == len(columns), "a split is for other columns")


def _tree(model: Any, n_columns: int) -> None:
    _check_rank_tree(model.tree_, model)


def _trees(model: Any, n_columns: int) -> None:
    require(type(model.trees_) is list and len(model.trees_) > 0, "a model has no trees")
    if hasattr(model, "scaling_"):
        _path_trees(model, n_columns)
        return
    for tree in model.trees_:
        _check_rank_tree(tree, model)
    _node_ranks(model.node_ranks_, model)
    require(model.consensus in ("spearman", "footrule", "kendall"), "unknown consensus")
    if model.consensus != "spearman":
        order = vars(model).get("cell_order_")
        known = type(order).__name__ == "CellOrder" and order.distance == model.consensus
        require(known, "a forest has lost its consensus")
        _node_ranks(list(order.node_ranks), model)


def _node_ranks(ranks: Any, model: Any) -> None:
    """One rank for each node that a row can end in."""
    require(type(ranks) is list and len(ranks) == len(model.trees_), "a forest has lost its ranks")
    for tree, own in zip(model.trees_, ranks, strict=True):
        exactly(own, np.float64, (None,), "the ranks of leaves")
        last = int(np.flatnonzero(tree.left < 0).max())
        require(len(own) > last, "a tree has leaves without a rank")


def _path_trees(model: Any, n_columns: int) -> None:
    """Trees of a path embedding: the linear score is one more column behind the others."""
    n_trees = len(model.trees_)
    exactly(model.score_coef_, np.float64, (n_trees, n_columns), "the linear scores")
    require(model.output in ("concat", "product", "spectral"), "an embedding of unknown output")
    require(type(model.frugal) is bool and type(model.sparse_output) is bool, "unknown options")
    for tree in model.trees_:
        require(type(tree).__name__ == "PathTree", "a tree of an embedding is something else")
        within(tree.feature, -1, n_columns + 1, "the column of a split")
    if model.output == "spectral":
        spectral = vars(model).get("spectral_")
        require(type(spectral) is list and len(spectral) == n_trees, "coordinates are missing")
        for tree, nodes in zip(model.trees_, spectral or [], strict=True):
            exactly(nodes, np.float64, (len(tree.feature), None), "the coordinates of nodes")


def _scaling(model: Any, n_columns: int) -> None:
    known = type(model.scaling_).__name__ == "Scaling" and len(model.scaling_.centre) == n_columns
    require(known, "the scale of a model is for other columns")


def _expansion(model: Any, n_columns: int) -> None:
    known = type(model.expansion_).__name__ == "KernelExpansion"
    fits = known and model.expansion_.landmarks.shape[1] == n_columns
    require(bool(fits), "the kernel of a model is for other columns")


def _encoder(model: Any, n_columns: int) -> None:
    """Every output column is made from a column, or a category, that there is."""
    require(type(vars(model).get("trained_on_sparse_")) is bool, "an encoder is incomplete")
    for name in ("medians_", "centre_", "spread_"):
        cells = exactly(vars(model).get(name), np.float64, (n_columns,), "the scale of an encoder")
        finite(cells, "the scale of an encoder")
    require(bool((model.spread_ > 0).all()), "the scale of an encoder is zero")
    indicated = exactly(
        vars(model).get("indicated_"), np.bool_, (n_columns,), "marks of an encoder"
    )
    require(not (indicated & model.columns_.is_category).any(), "marks of an encoder are astray")
    clip = model.clip
    require(type(clip) in (int, float) and clip > 0, "an encoder has a damaged limit")
    kept = vars(model).get("kept_")
    require(type(kept) is list and len(kept) == n_columns, "an encoder has lost its categories")
    expected: list[int] = []
    for j, (codes, values) in enumerate(zip(kept or [], model.columns_.categories, strict=True)):
        codes = exactly(codes, np.int64, (None,), "the categories of an encoder")
        within(codes, 0, 0 if values is None else len(values), "a category of an encoder")
        require(len(codes) == len(set(codes.tolist())), "an encoder repeats categories")
        expected += [j] * (1 if values is None else len(codes))
    source = exactly(model.source_, np.int64, (None,), "the source of an encoder")
    laid_out = source.tolist() == [*expected, *np.flatnonzero(indicated).tolist()]
    require(laid_out, "an encoder makes columns from others than it says")


# Fitted attribute -> what must hold of it; in this order, since some lean on others.
CHECKS: dict[str, Callable[[Any, int], None]] = {
    "schema_": _schema,
    "coef_": _coef,
    "boosters_": _boosters,
    "bins_": _rule_bins,
    "rounds_": _rounds,
    "space_": _space,
    "scaling_": _scaling,
    "tree_": _tree,
    "trees_": _trees,
    "expansion_": _expansion,
    "source_": _encoder,
}


def check_scikit_learn(name: str, model: Any) -> None:
    """Check those parts of scikit-learn whose state reaches compiled code."""
    _check_threads(model)
    state = vars(model)
    n_columns = state.get("n_features_in_", 0)
    whole = isinstance(n_columns, (int, np.integer)) and 0 <= n_columns <= MOST_COLUMNS
    require(bool(whole), f"a {name} has an impossible number of columns")
    if "tree_" in state:
        fits = hasattr(model.tree_, "n_features") and model.tree_.n_features == model.n_features_in_
        require(bool(fits), "a decision tree is for other columns")
        n_classes = state.get("n_classes_")
        require(
            model.n_outputs_ == 1 and n_classes == model.tree_.n_classes[0], "a tree is damaged"
        )
    if "estimators_" in state:
        for tree in model.estimators_:
            same = getattr(tree, "n_features_in_", None) == model.n_features_in_
            require(same and hasattr(tree, "tree_"), "a forest has trees for other columns")
    if name == "OneHotEncoder" and "categories_" in state:
        _check_one_hot(model)


def _check_one_hot(encoder: Any) -> None:
    """Positions of categories become places in a sparse matrix, which nobody checks again."""
    require(not getattr(encoder, "_infrequent_enabled", False), "a OneHotEncoder groups categories")
    categories = encoder.categories_
    lists = type(categories) is list and len(categories) == encoder.n_features_in_
    require(bool(lists), "a OneHotEncoder has lost categories")
    dropped = getattr(encoder, "drop_idx_", None)
    grouped = getattr(encoder, "_drop_idx_after_grouping", None)
    expected = []
    for k, values in enumerate(categories):
        plain = isinstance(values, np.ndarray) and values.ndim == 1 and len(values) > 0
        require(plain, "the categories of a OneHotEncoder are damaged")
        if values.dtype.kind != "O":
            known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
            ascending = bool((known[1:] > known[:-1]).all()) and len(values) - len(known) <= 1
            require(ascending, "the categories of a OneHotEncoder are out of order")
        drop = None if dropped is None else dropped[k]
        again = None if grouped is None else grouped[k]
        require(drop == again, "a OneHotEncoder drops two things at once")
        whole = drop is None or (isinstance(drop, (int, np.integer)) and 0 <= drop < len(values))
        require(bool(whole), "a OneHotEncoder drops a category that does not exist")
        expected.append(len(values) - (drop is not None))
    counted = [int(n) for n in encoder._n_features_outs]
    require(counted == expected, "the categories of a OneHotEncoder are miscounted")
