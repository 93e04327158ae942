"""Export to ONNX: boosted trees and rules over numeric columns, and linear scores.

The graph takes a matrix of doubles `X` of shape (n_rows, n_columns) and gives `score`, the
`decision_function` of each row. Missing cells are NaN. Boosted trees compare in single precision, as
XGBoost does; sums over trees are rounded to single precision, which ONNX's operator for trees prescribes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from toprank.binning import MISSING

__all__ = ["to_onnx"]

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8  # widely supported by runtimes
LINEAR = (
    "LogisticRanker", "RankSVM", "RankLS", "PartialAUCSVM", "PartialAUCRanker", "GreedyPAUC",
)  # fmt: skip


# Parts of a model that have no ONNX form.
NOT_EXPORTED = {
    "expansion_": "{} with a kernel",
    "embedding_": "{} with an embedding",
    "steps": "the steps of a {}",
}


def to_onnx(model: Any) -> Any:
    """Write a fitted ranker as an ONNX graph.

    Parameters
    ----------
    model : fitted estimator
        A GradientBoostingRanker or an ensemble of rules (RankBoost, PNormPush, PRankBoost,
        PAUCBoost) over numeric columns, or a linear ranker.

    Returns
    -------
    graph : onnx.ModelProto
        Input `X`: doubles of shape (n_rows, n_columns). Output `score`: doubles of shape (n_rows,),
        equal to `decision_function` up to rounding. Write it with ``onnx.save``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import LogisticRanker, to_onnx
    >>> X, y = make_classification(200, random_state=0)
    >>> graph = to_onnx(LogisticRanker().fit(X, y))
    >>> [value.name for value in graph.graph.output]
    ['score']
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    try:
        import onnx
    except ImportError as error:
        raise ImportError("the export needs the onnx package: install toprank[onnx]") from error
    graph = _Graph(onnx)
    name = type(model).__name__
    if hasattr(model, "columns_") and model.columns_.is_category.any():
        raise ValueError(
            f"{name} was trained with categorical columns "
            f"({', '.join(model.columns_.category_names())}), which the ONNX export does not take; "
            "encode them as numbers before training"
        )
    if hasattr(model, "boosters_"):
        raw = _boosted(graph, model)
    elif hasattr(model, "bins_") and hasattr(model, "rounds_"):
        raw = graph.trees("X", _rule_trees(model))
    elif name in LINEAR and hasattr(model, "coef_") and getattr(model, "embedding_", None) is None:
        raw = graph.node("MatMul", "X", graph.constant(model.coef_[:, None]))
    else:
        parts = (part for part in NOT_EXPORTED if getattr(model, part, None) is not None)
        what = NOT_EXPORTED.get(next(parts, ""), "{}").format(name)
        raise ValueError(
            f"{what} cannot be exported to ONNX; boosted trees and rules over numeric columns and "
            "linear rankers can"
        )
    shifted = graph.node("Sub", raw, graph.constant(np.array([[model.offset_]])))
    graph.node("Squeeze", shifted, graph.constant(np.array([1], dtype=np.int64)), output="score")
    return graph.finish(model.n_features_in_, name)


# Tree, node, column, mode, value, the children where the answer is yes or no, and whether a missing value goes
# to the first. A split asks `x <= value` (BRANCH_LEQ) or `x < value` (BRANCH_LT).
Node = tuple[int, int, int, str, float, int, int, bool]


def _leaf(tree: int, node: int, value: float) -> Node:
    return (tree, node, 0, "LEAF", value, 0, 0, False)


class _Graph:
    """An ONNX graph under construction."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, array: np.ndarray) -> str:
        """Add a constant; return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add an operation; return the name of its output."""
        output = output or f"value_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], **attributes))
        return output

    def trees(self, source: str, nodes: list[Node]) -> str:
        """Add the sum of the leaves of some trees, of shape (n_rows, 1); without trees it is 0."""
        nodes = nodes or [_leaf(0, 0, 0.0)]
        numbers, ids, columns, modes, _, first, second, missing_first = zip(*nodes, strict=True)
        leaves = [node for node in nodes if node[3] == "LEAF"]
        tensors = {
            "nodes_values_as_tensor": [0.0 if node[3] == "LEAF" else node[4] for node in nodes],
            "target_weights_as_tensor": [leaf[4] for leaf in leaves],
        }
        double = self.onnx.TensorProto.DOUBLE
        total = self.node(
            "TreeEnsembleRegressor",
            source,
            domain="ai.onnx.ml",
            n_targets=1,
            nodes_treeids=numbers,
            nodes_nodeids=ids,
            nodes_featureids=columns,
            nodes_modes=modes,
            nodes_truenodeids=first,
            nodes_falsenodeids=second,
            nodes_missing_value_tracks_true=[int(goes) for goes in missing_first],
            target_treeids=[leaf[0] for leaf in leaves],
            target_nodeids=[leaf[1] for leaf in leaves],
            target_ids=[0] * len(leaves),
            **{
                name: self.onnx.helper.make_tensor(name, double, [len(cells)], cells)
                for name, cells in tensors.items()
            },
        )
        return self.node("Cast", total, to=double)  # the operator rounds its sums

    def finish(self, n_columns: int, name: str) -> Any:
        """Return the checked model."""
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("X", double, [None, n_columns])],
            [helper.make_tensor_value_info("score", double, [None])],
            initializer=self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="toprank")
        model.ir_version = IR_VERSION
        self.onnx.checker.check_model(model)
        return model


def _boosted(graph: _Graph, model: Any) -> str:
    """Add the mean of the boosters, which compare in single precision."""
    onnx = graph.onnx
    single = graph.node("Cast", "X", to=onnx.TensorProto.FLOAT)
    if model.trained_on_sparse_:  # what a sparse matrix leaves out is missing
        zero = graph.node("Equal", single, graph.constant(np.zeros(1, dtype=np.float32)))
        single = graph.node("Where", zero, graph.constant(np.full(1, np.nan, np.float32)), single)
    cells = graph.node("Cast", single, to=onnx.TensorProto.DOUBLE)
    parts = [graph.trees(cells, _booster_trees(booster)) for booster in model.boosters_]
    total = reduce(partial(graph.node, "Add"), parts)
    return graph.node("Div", total, graph.constant(np.array([[float(len(model.boosters_))]])))


def _booster_trees(booster: Any) -> list[Node]:
    """Return the trees of a booster; a value below the threshold goes left."""
    learner = json.loads(bytes(booster.save_raw(raw_format="json")))["learner"]
    trees, nodes = learner["gradient_booster"]["model"]["trees"], []
    for t, tree in enumerate(trees):
        left, right = tree["left_children"], tree["right_children"]
        thresholds = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
        for node, value in enumerate(thresholds.tolist()):
            if left[node] == -1:
                nodes.append(_leaf(t, node, value))
            else:
                column, default = tree["split_indices"][node], bool(tree["default_left"][node])
                children = left[node], right[node]
                nodes.append((t, node, column, "BRANCH_LT", value, *children, default))
    base = float(learner["learner_model_param"]["base_score"].strip("[]"))
    return [*nodes, _leaf(len(trees), 0, base)] if base else nodes


def _rule_trees(model: Any) -> list[Node]:
    """Return each round as a chain: a row passes one literal after the other until one fails."""
    from toprank.rules.scoring import PathLookup

    lookup, nodes = PathLookup.of(model.bins_, model.rounds_), []
    for t in range(len(model.rounds_)):
        start, stop = int(lookup.starts[t]), int(lookup.starts[t + 1])
        values = [0.0, *lookup.values[start:stop].tolist()]
        for k, literal in enumerate(range(start, stop)):
            column = int(lookup.used[lookup.columns[literal]])
            members = lookup.members[literal]
            threshold, below = _threshold(members, model.bins_.cuts[column])
            passed, failed = 2 * k + 2, 2 * k + 1
            children = (passed, failed) if below else (failed, passed)
            missing_first = bool(members[MISSING]) == below
            nodes.append((t, 2 * k, column, "BRANCH_LEQ", threshold, *children, missing_first))
            nodes.append(_leaf(t, failed, values[k]))
        nodes.append(_leaf(t, 2 * (stop - start), values[-1]))
    return nodes


def _threshold(members: np.ndarray, cuts: Sequence[float]) -> tuple[float, bool]:
    """Return the threshold of a literal on a column of numbers, and whether it holds below it.

    `members` says in which bins it holds. Bin k holds the values in (cuts[k - 1], cuts[k]]; the last
    one, all above the last cut.
    """
    inside = members[: len(cuts) + 1].astype(bool)
    changes = np.flatnonzero(inside[1:] != inside[:-1])
    assert len(changes) <= 1, "a literal on a column of numbers is one threshold"
    if len(changes) == 0:  # holds in all bins or in none
        return np.inf, bool(inside[0])
    return float(cuts[changes[0]]), bool(inside[0])
