"""scikit-learn's compiled decision tree as plain arrays, and back.

A compiled tree follows its child and column numbers without looking, so both are checked before a tree
is made.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from toprank.persistence.errors import require

__all__ = ["make_tree", "tree_parts"]

MOST_CLASSES = 10_000


def tree_parts(tree: Any) -> dict[str, Any]:
    """The arrays of a tree, one for each field of its nodes.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]).tree_
    >>> make_tree(tree_parts(tree)).threshold.tolist() == tree.threshold.tolist()
    True
    """
    state = tree.__getstate__()
    nodes = state["nodes"]
    return {
        "n_features": int(tree.n_features),
        "n_classes": np.asarray(tree.n_classes).astype(np.int64),
        "max_depth": int(state["max_depth"]),
        "values": np.ascontiguousarray(state["values"]),
        "nodes": {name: np.ascontiguousarray(nodes[name]) for name in nodes.dtype.names},
    }


def make_tree(parts: Any) -> Any:
    """Check the parts of a tree and put it together."""
    names = {"n_features", "n_classes", "max_depth", "values", "nodes"}
    require(isinstance(parts, dict) and set(parts) == names, "a decision tree lacks parts")
    tree_class, dtype = _tree_class()
    n_classes, values, given = parts["n_classes"], parts["values"], parts["nodes"]
    require(
        isinstance(given, dict) and set(given) == set(dtype.names or ()), "a tree has unknown nodes"
    )
    for name, cells in given.items():
        plain = isinstance(cells, np.ndarray) and cells.dtype == dtype[name] and cells.ndim == 1
        require(plain, f"a decision tree has a damaged field {name!r}")
    n_nodes = len(given["left_child"])
    require(n_nodes > 0 and all(len(c) == n_nodes for c in given.values()), "a tree is incomplete")
    _check_sizes(parts, n_nodes)
    _check_links(given, parts["n_features"], n_nodes)
    nodes = np.zeros(n_nodes, dtype=dtype)
    for name, cells in given.items():
        nodes[name] = cells
    tree = tree_class(parts["n_features"], n_classes.astype(np.intp), 1)
    tree.__setstate__(
        {
            "max_depth": parts["max_depth"],
            "node_count": n_nodes,
            "nodes": nodes,
            "values": np.ascontiguousarray(values),
        }
    )
    return tree


def _check_sizes(parts: dict[str, Any], n_nodes: int) -> None:
    n_features, max_depth = parts["n_features"], parts["max_depth"]
    n_classes, values = parts["n_classes"], parts["values"]
    require(type(n_features) is int and 0 < n_features < 2**31, "a tree has no columns")
    require(type(max_depth) is int and 0 <= max_depth <= n_nodes, "a tree has an impossible depth")
    one = (
        isinstance(n_classes, np.ndarray)
        and n_classes.shape == (1,)
        and n_classes.dtype.kind == "i"
    )
    require(one and 0 < n_classes[0] <= MOST_CLASSES, "a tree has an impossible number of classes")
    shape = (n_nodes, 1, int(n_classes[0]))
    fits = isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == shape
    require(fits, "a decision tree has values of the wrong shape")


def _check_links(nodes: dict[str, np.ndarray], n_features: int, n_nodes: int) -> None:
    """Children stand behind their parents, so a walk down always ends; columns exist."""
    left, right, feature = nodes["left_child"], nodes["right_child"], nodes["feature"]
    inner = left >= 0
    here = np.arange(n_nodes)
    require(bool((left[~inner] == -1).all()), "a decision tree has a child out of range")
    require(bool((right[~inner] == -1).all()), "a decision tree has a child out of range")
    for child in (left[inner], right[inner]):
        forward = (child > here[inner]) & (child < n_nodes)
        require(bool(forward.all()), "a decision tree has a child out of range or a cycle")
    known = (feature[inner] >= 0) & (feature[inner] < n_features)
    require(bool(known.all()), "a decision tree splits on a column that does not exist")


@cache
def _tree_class() -> tuple[Any, np.dtype]:
    """The class of compiled trees and the type of their nodes, from a tree of this scikit-learn."""
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]).tree_
    return type(tree), tree.__getstate__()["nodes"].dtype
