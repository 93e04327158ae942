"""Export to ONNX: boosted trees and rules, linear scores, and calibrated probabilities.

Boosted trees compare in single precision, as XGBoost does; sums over trees are rounded to single precision,
which ONNX's operator for trees prescribes. A split by a set of categories becomes a split of a column that is 1
for those of the set: text is turned into the number of its category, and that looks up all such columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from toprank.binning import MISSING, OTHER

__all__ = ["to_onnx"]

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8  # widely supported by runtimes
OUTPUTS = ("score", "probability")
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
        A GradientBoostingRanker, an ensemble of rules (RankBoost, PNormPush, PRankBoost, PAUCBoost,
        RuleScorecard) or a linear ranker; also in a CalibratedRanker.

    Returns
    -------
    graph : onnx.ModelProto
        Input `X`: doubles of shape (n_rows, n_columns), NaN where missing. For a model with categories instead
        one input for each column under its name, of shape (n_rows, 1): doubles, or text for categories, empty
        where missing. Output `score`: doubles of shape (n_rows,), equal to `decision_function` up to rounding;
        for a calibrated model also `probability`, of the positive class. Write it with ``onnx.save``.

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
    probability = getattr(model, "calibration_", None)
    if type(model).__name__ == "CalibratedRanker":
        model = model.estimator_
    name, graph = type(model).__name__, _Graph(onnx)
    if hasattr(model, "boosters_"):
        raw = _boosted(graph, model)
    elif hasattr(model, "bins_") and hasattr(model, "rounds_"):
        cells = _Cells(model)
        trees = _rule_trees(model, cells)
        raw = graph.trees(cells.matrix(graph), trees)
    elif name in LINEAR and hasattr(model, "coef_") and getattr(model, "embedding_", None) is None:
        rows = _Cells(model).matrix(graph)
        if hasattr(model, "limits_"):
            rows = graph.node("Max", rows, graph.constant(model.limits_[:1]))
            rows = graph.node("Min", rows, graph.constant(model.limits_[1:]))
        raw = graph.node("MatMul", rows, graph.constant(model.coef_[:, None]))
    else:
        parts = (part for part in NOT_EXPORTED if getattr(model, part, None) is not None)
        what = NOT_EXPORTED.get(next(parts, ""), "{}").format(name)
        raise ValueError(
            f"{what} cannot be exported to ONNX; boosted trees, boosted rules and linear rankers can"
        )
    score = graph.node("Sub", raw, graph.constant(np.array([[float(model.offset_)]])))
    outputs = {"score": score}
    if probability is not None:
        outputs["probability"] = _probability(graph, score, probability)
    return graph.finish(outputs, name)


class _Cells:
    """The columns that trees look at: numbers, and what is looked up for each category of the others."""

    def __init__(self, model: Any) -> None:
        columns = getattr(model, "columns_", None)
        n_columns = model.n_features_in_
        self.names = None if columns is None else list(columns.names)
        self.categories = (None,) * n_columns if columns is None else columns.categories
        self.place = {
            j: k for k, j in enumerate(j for j in range(n_columns) if self.categories[j] is None)
        }
        self.tables: dict[tuple[int, bytes], tuple[int, np.ndarray]] = {}

    def look_up(self, column: int, known: np.ndarray, unseen: float, missing: float) -> int:
        """Return the place of the column that holds a number for each category, and for no known one."""
        table = np.array([*known, unseen, missing], dtype=np.float64)
        return (
            len(self.place)
            + self.tables.setdefault((column, table.tobytes()), (len(self.tables), table))[0]
        )

    def matrix(self, graph: _Graph) -> str:
        """Add the inputs, and what turns them into the matrix of all these columns."""
        double, text = graph.onnx.TensorProto.DOUBLE, graph.onnx.TensorProto.STRING
        if all(values is None for values in self.categories):
            return graph.input("X", double, len(self.categories))
        assert self.names is not None
        inputs = [
            graph.input(name, double if values is None else text, 1)
            for name, values in zip(self.names, self.categories, strict=True)
        ]
        parts, order = [inputs[j] for j in self.place], list(range(len(self.place)))
        for j, values in enumerate(self.categories):
            own = [entry for (column, _), entry in self.tables.items() if column == j]
            if values is None or not own:
                continue
            keys = [str(value) for value in values]
            codes = list(range(len(keys)))
            if "" not in keys:
                keys, codes = [*keys, ""], [*codes, len(values) + 1]
            code = graph.node(
                "LabelEncoder", inputs[j], domain="ai.onnx.ml", keys_strings=keys, values_int64s=codes,
                default_int64=len(values),
            )  # fmt: skip
            code = graph.node("Squeeze", code, graph.constant(np.array([1], dtype=np.int64)))
            table = graph.constant(np.column_stack([numbers for _, numbers in own]))
            parts.append(graph.node("Gather", table, code, axis=0))
            order += [len(self.place) + place for place, _ in own]
        together = graph.node("Concat", *parts, axis=1)
        return graph.node("Gather", together, graph.constant(np.argsort(order)), axis=1)


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
        self.inputs: list[Any] = []

    def input(self, name: str, kind: int, n_columns: int) -> str:
        """Add an input of so many columns; return its name."""
        if name in OUTPUTS or name.startswith("toprank:"):
            raise ValueError(
                f"a column called {name!r} would be taken for a part of the ONNX graph: rename it"
            )
        info = self.onnx.helper.make_tensor_value_info(name, kind, [None, n_columns])
        self.inputs.append(info)
        return name

    def constant(self, array: np.ndarray) -> str:
        """Add a constant; return its name."""
        name = f"toprank:constant {len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add an operation; return the name of its output."""
        output = output or f"toprank:value {len(self.nodes)}"
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

    def finish(self, outputs: dict[str, str], name: str) -> Any:
        """Return the checked model, with columns of shape (n_rows, 1) as its outputs."""
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        axis = self.constant(np.array([1], dtype=np.int64))
        for output, column in outputs.items():
            self.node("Squeeze", column, axis, output=output)
        infos = [helper.make_tensor_value_info(output, double, [None]) for output in outputs]
        graph = helper.make_graph(self.nodes, name, self.inputs, infos, initializer=self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="toprank")
        model.ir_version = IR_VERSION
        self.onnx.checker.check_model(model)
        return model


def _boosted(graph: _Graph, model: Any) -> str:
    """Add the weighted sum of the boosters, which compare in single precision."""
    onnx, cells = graph.onnx, _Cells(model)
    trees = [_booster_trees(booster, cells, model.columns_) for booster in model.boosters_]
    single = graph.node("Cast", cells.matrix(graph), to=onnx.TensorProto.FLOAT)
    if model.trained_on_sparse_:  # what a sparse matrix leaves out is missing
        zero = graph.node("Equal", single, graph.constant(np.zeros(1, dtype=np.float32)))
        single = graph.node("Where", zero, graph.constant(np.full(1, np.nan, np.float32)), single)
    source = graph.node("Cast", single, to=onnx.TensorProto.DOUBLE)
    parts = []
    for nodes, weight in zip(trees, model.booster_weights_, strict=True):
        margin = graph.trees(source, nodes)
        parts.append(graph.node("Mul", margin, graph.constant(np.array([[float(weight)]]))))
    return reduce(partial(graph.node, "Add"), parts)


def _booster_trees(booster: Any, cells: _Cells, columns: Any) -> list[Node]:
    """Return the trees of a booster; a value below the threshold, or no member of the set, goes left."""
    learner = json.loads(bytes(booster.save_raw(raw_format="json")))["learner"]
    trees, nodes = learner["gradient_booster"]["model"]["trees"], []
    counts = columns.numbers or (None,) * len(columns.names)
    for t, tree in enumerate(trees):
        left, right = tree["left_children"], tree["right_children"]
        thresholds = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
        sets = zip(tree["categories_segments"], tree["categories_sizes"], strict=True)
        members = [tree["categories"][start : start + size] for start, size in sets]
        set_of = dict(zip(tree["categories_nodes"], members, strict=True))
        for node, value in enumerate(thresholds.tolist()):
            if left[node] == -1:
                nodes.append(_leaf(t, node, value))
                continue
            column, values = (
                tree["split_indices"][node],
                columns.categories[tree["split_indices"][node]],
            )
            if values is None:
                place = cells.place[column]
            elif counts[column] is not None:
                place = cells.look_up(column, counts[column], 0.0, np.nan)
            elif node in set_of:
                inside = np.isin(np.arange(len(values)), set_of[node])
                place, value = cells.look_up(column, inside, np.nan, np.nan), 0.5
            else:  # by the number of the category
                place = cells.look_up(column, np.arange(len(values)), np.nan, np.nan)
            children, default = (left[node], right[node]), bool(tree["default_left"][node])
            nodes.append((t, node, place, "BRANCH_LT", value, *children, default))
    base = float(learner["learner_model_param"]["base_score"].strip("[]"))
    return [*nodes, _leaf(len(trees), 0, base)] if base else nodes


def _probability(graph: _Graph, score: str, calibration: Any) -> str:
    """Add the map from scores to probabilities: a sigmoid, or straight lines between knots."""
    if calibration.method == "sigmoid":
        scaled = graph.node("Mul", score, graph.constant(np.array([[calibration.slope]])))
        shifted = graph.node("Add", scaled, graph.constant(np.array([[calibration.intercept]])))
        return graph.node("Sigmoid", shifted)
    knots, values = calibration.knots, calibration.values
    widths = np.diff(knots)
    slopes = np.divide(np.diff(values), widths, out=np.zeros(len(widths)), where=widths > 0)
    beyond = graph.node("Sub", score, graph.constant(knots[None, :-1]))
    inside = graph.node("Max", beyond, graph.constant(np.zeros((1, 1))))
    inside = graph.node("Min", inside, graph.constant(widths[None, :]))
    risen = graph.node("MatMul", inside, graph.constant(slopes[:, None]))
    return graph.node("Add", risen, graph.constant(values[None, :1]))


def _rule_trees(model: Any, cells: _Cells) -> list[Node]:
    """Return each round as a chain: a row passes one literal after the other until one fails."""
    from toprank.rules.ensemble import PathLookup

    lookup, nodes = PathLookup.of(model.bins_, model.rounds_), []
    for t in range(len(model.rounds_)):
        start, stop = int(lookup.starts[t]), int(lookup.starts[t + 1])
        values = [0.0, *lookup.values[start:stop].tolist()]
        for k, literal in enumerate(range(start, stop)):
            column = int(lookup.used[lookup.columns[literal]])
            members = lookup.members[literal]
            cuts, known = model.bins_.cuts[column], cells.categories[column]
            if known is None:
                place = cells.place[column]
                threshold, below = _threshold(members, cuts)
            else:  # of each category, whether the literal holds in its bin
                own = np.full(len(known), OTHER)
                own[cuts.astype(np.int64)] = np.arange(len(cuts))
                place = cells.look_up(column, members[own], members[OTHER], members[MISSING])
                threshold, below = 0.5, False
            passed, failed = 2 * k + 2, 2 * k + 1
            children = (passed, failed) if below else (failed, passed)
            missing_first = bool(members[MISSING]) == below
            nodes.append((t, 2 * k, place, "BRANCH_LEQ", threshold, *children, missing_first))
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
