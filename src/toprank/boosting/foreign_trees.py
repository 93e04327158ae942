"""Trees that XGBoost did not grow, as a booster of XGBoost.

Rows are single precision for LightGBM, CatBoost and XGBoost alike, and `x <= t` is `x < u` with `u` the next
number of single precision above `t`: so trees can be taken over cut for cut. A linear model becomes a tree for
each column, whose leaves follow the line. Scores, explanations and model files are then those of any booster.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler

from toprank.base import TrainingData
from toprank.boosting.xgboost_helpers import column_types, require_xgboost
from toprank.encoding import NumericEncoding
from toprank.parallel import single_threaded_blas, thread_count

__all__ = ["LEAF", "Node", "linear_trees", "make_booster"]

FLOAT32_MAX = float(np.finfo(np.float32).max)
ROOT_PARENT = 2**31 - 1

# A tree is a list of nodes, parents first: (column, threshold, NaN goes left, left, right, value); the column
# of a leaf is -1. What is at most the threshold goes left.
Node = tuple[int, float, bool, int, int, float]
LEAF = -1


def make_booster(
    trees: list[list[Node]],
    n_columns: int,
    n_jobs: int,
    weights: list[np.ndarray] | None = None,
    types: list[str] | None = None,
) -> Any:
    """Return the sum of some trees as a booster.

    Parameters
    ----------
    trees : list of lists of Node
    n_columns, n_jobs : int
    weights : list of ndarray, optional
        Of each tree the weight of the training rows in each leaf (0 for inner nodes), which SHAP values and
        importances need; by default all leaves weigh the same.
    types : list of str, optional
        XGBoost's types of the columns, where some are categories.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.boosting.xgboost_helpers import predict_margin
    >>> stump = [(0, 2.0, True, 1, 2, 0.0), (-1, 0.0, False, -1, -1, -1.0), (-1, 0.0, False, -1, -1, 1.0)]
    >>> booster = make_booster([stump], n_columns=1, n_jobs=1)
    >>> predict_margin(booster, np.array([[2.0], [2.1], [np.nan]])).tolist()
    [-1.0, 1.0, -1.0]
    """
    xgboost = require_xgboost()
    matrix = xgboost.DMatrix(np.zeros((1, n_columns), dtype=np.float32), nthread=1)
    settings = {"objective": "reg:squarederror", "base_score": 0.0, "nthread": n_jobs}
    model = json.loads(bytes(xgboost.Booster(settings, [matrix]).save_raw(raw_format="json")))
    model["learner"]["feature_types"] = types or []
    kept = model["learner"]["gradient_booster"]["model"]
    known = [None] * len(trees) if weights is None else weights
    kept["trees"] = [
        _tree_json(nodes, number, n_columns, own)
        for number, (nodes, own) in enumerate(zip(trees, known, strict=True))
    ]
    kept["tree_info"] = [0] * len(trees)
    kept["iteration_indptr"] = list(range(len(trees) + 1))
    kept["gbtree_model_param"]["num_trees"] = str(len(trees))
    booster = xgboost.Booster({"nthread": n_jobs})
    booster.load_model(bytearray(json.dumps(model).encode()))
    return booster


def _tree_json(
    nodes: list[Node], number: int, n_columns: int, weights: np.ndarray | None
) -> dict[str, Any]:
    """Return a tree in the words of XGBoost's JSON."""
    column, cut, nan_left, left, right, value = map(list, zip(*nodes, strict=True))
    is_leaf = np.array(column) == LEAF
    cover = np.where(is_leaf, 1.0 if weights is None else weights, 0.0)
    sums, gain = cover * np.array(value), np.zeros(len(nodes))
    parents = [ROOT_PARENT] * len(nodes)
    for k in range(len(nodes) - 1, -1, -1):
        if not is_leaf[k]:
            a, b = left[k], right[k]
            parents[a] = parents[b] = k
            cover[k], sums[k] = cover[a] + cover[b], sums[a] + sums[b]
            if min(cover[a], cover[b]) > 0:
                step = sums[a] / cover[a] - sums[b] / cover[b]
                gain[k] = cover[a] * cover[b] / cover[k] * step**2
    means = np.divide(sums, cover, out=np.array(value, dtype=np.float64), where=cover > 0)
    conditions = np.where(is_leaf, value, _strict_cuts(np.array(cut)))
    return {
        "id": number,
        "tree_param": {
            "num_deleted": "0", "num_feature": str(n_columns), "num_nodes": str(len(nodes)),
            "size_leaf_vector": "1",
        },
        "base_weights": means.tolist(), "loss_changes": gain.tolist(), "sum_hessian": cover.tolist(),
        "split_conditions": conditions.tolist(),
        "left_children": left, "right_children": right, "parents": parents,
        "split_indices": [max(c, 0) for c in column], "split_type": [0] * len(nodes),
        "default_left": [int(goes) for goes in nan_left],
        "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": [],
    }  # fmt: skip


def _strict_cuts(cuts: np.ndarray) -> np.ndarray:
    """Return u with `x < u` exactly where `x <= t`, for x of single precision."""
    inside = np.clip(cuts, -FLOAT32_MAX, FLOAT32_MAX)
    nearest = inside.astype(np.float32)
    with np.errstate(over="ignore"):
        above = np.nextafter(nearest, np.float32(np.inf))
    strict = np.where(nearest > inside, nearest, above).astype(np.float64)
    return np.minimum(strict, FLOAT32_MAX)


# -- a linear model as trees ---------------------------------------------------------------------------

STEPS = 64  # of the stairs that stand for a line
CLIP = 10.0  # standard deviations beyond which a line is flat
MOST_COEFFICIENTS = 50  # of the categories of a column, the most frequent ones
EVERYTHING = FLOAT32_MAX  # no number is above this cut: it parts missing cells from the others


def linear_trees(ranker: Any, data: TrainingData) -> Any:
    """Fit a logistic regression and return it as a booster, the line of each column as stairs.

    Numbers are standardised, missing cells have a coefficient of their own, and so has each category; of a
    sparse matrix the columns are divided by their greatest entry, and what it leaves out is 0.

    Returns
    -------
    booster : xgboost.Booster
        A tree for each column. A leaf holds the mean of what the column adds, over the training rows there.
    """
    data = data.rows(data.weights > 0)
    is_category, weight = ranker.columns_.is_category, data.weights
    n_columns = data.X.shape[1]
    trees: list[list[Node]] = []
    weights: list[np.ndarray] = []
    for j, cells, added, rows in _additions(data, is_category):
        stairs = _stairs(j, cells.astype(np.float32), added, weight[rows], bool(is_category[j]))
        if stairs is not None:
            trees.append(stairs[0])
            weights.append(stairs[1])
    if not trees:
        trees, weights = [[(LEAF, 0.0, False, -1, -1, 0.0)]], [np.ones(1)]
    types = column_types(ranker.columns_).get("feature_types")
    return make_booster(trees, n_columns, thread_count(ranker.n_jobs), weights, types)


def _additions(
    data: TrainingData, is_category: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray, Any]]:
    """Fit a logistic regression; yield of each column its cells, what they add to the score, and their rows."""
    if sparse.issparse(data.X):
        matrix = data.X.tocsc()
        scale = MaxAbsScaler().fit(matrix).scale_
        coefficients = _logistic(matrix @ sparse.diags_array(1 / scale), data) / scale
        for j in range(matrix.shape[1]):
            stored = slice(*matrix.indptr[j : j + 2])
            cells = matrix.data[stored]
            yield j, cells, coefficients[j] * cells, matrix.indices[stored]
        return
    encoding = NumericEncoding.of(
        data.X, is_category, data.weights, max_categories=MOST_COEFFICIENTS, clip=CLIP
    )
    encoded = encoding.transform(data.X)
    added = np.zeros(data.X.shape)
    for k, coefficient in enumerate(_logistic(encoded, data)):
        added[:, encoding.source[k]] += coefficient * encoded[:, k]
    for j in range(data.X.shape[1]):
        yield j, data.X[:, j], added[:, j], slice(None)


def _logistic(X: Any, data: TrainingData) -> np.ndarray:
    """Return the coefficients of an L2-penalised logistic regression."""
    with warnings.catch_warnings(), single_threaded_blas:
        warnings.simplefilter("ignore", ConvergenceWarning)  # close to the optimum is good enough
        model = LogisticRegression(max_iter=200, tol=1e-8)
        return model.fit(X, data.y > 0, sample_weight=data.sample_weight).coef_[0]


def _stairs(
    column: int, cells: np.ndarray, added: np.ndarray, weight: np.ndarray, is_category: bool
) -> tuple[list[Node], np.ndarray] | None:
    """Return a balanced tree that follows a function of one column, and the weights of its leaves.

    Missing cells have a leaf of their own, and so has each category, with one more for what is not known.
    None where all leaves would be alike.
    """
    missing = np.isnan(cells)
    distinct = np.unique(cells[~missing])
    cuts = distinct if is_category else _cuts(distinct)
    absent = len(cuts) + 1  # the number of the last leaf
    leaf = np.where(missing, absent, np.searchsorted(cuts, cells))
    totals = np.bincount(leaf, weight, absent + 1)
    sums = np.bincount(leaf, weight * added, absent + 1)
    values = np.divide(sums, totals, out=np.zeros(absent + 1), where=totals > 0)
    if np.ptp(values) == 0:
        return None
    least = 0.5 * float(weight.mean())  # SHAP values want some weight in every leaf
    nodes: list[Node] = []
    found: list[float] = []
    waiting = [(0, absent + 1)]
    for low, high in waiting:  # which grows on the way
        inner = high - low > 1
        found.append(0.0 if inner else max(float(totals[low]), least))
        if not inner:
            nodes.append((LEAF, 0.0, False, -1, -1, float(values[low])))
            continue
        middle = absent if high > absent else (low + high) // 2
        cut = EVERYTHING if middle == absent else float(cuts[middle - 1])
        nodes.append((column, cut, False, len(waiting), len(waiting) + 1, 0.0))
        waiting += [(low, middle), (middle, high)]
    return nodes, np.array(found)


def _cuts(distinct: np.ndarray) -> np.ndarray:
    """Return cuts half-way between values: between all of few, of many some by number and some by distance."""
    lasts = np.arange(len(distinct) - 1)  # of the values of a step
    if len(distinct) > STEPS:
        inside = np.linspace(float(distinct[0]), float(distinct[-1]), STEPS // 2 + 1)[1:-1]
        by_distance = np.searchsorted(distinct, inside.astype(np.float32))
        by_number = np.linspace(0, len(distinct) - 2, STEPS // 2).astype(np.int64)
        lasts = np.unique(np.append(by_number, np.minimum(by_distance, len(distinct) - 2)))
    below, above = distinct[lasts], distinct[lasts + 1]
    middle = (below / 2 + above / 2).astype(np.float32)
    return np.where((below <= middle) & (middle < above), middle, below)
