"""What a model file may hold beside numbers, strings and arrays: an explicit list.

Names in files are the keys here, never module paths, so that a module can move and no file can
name what it likes.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from toprank.persistence.errors import require
from toprank.registry import ESTIMATORS, RELATIONAL, TRANSFORMERS, WRAPPERS

__all__ = ["RECORDS", "SCIKIT_LEARN", "class_of", "name_of"]

# Frozen dataclasses of the library: they are made by their constructors.
RECORDS: dict[str, str] = {
    "Columns": "toprank.columns",
    "Literal": "toprank.rule",
    "Rule": "toprank.rule",
    "rules.Bins": "toprank.rules.bins",
    "KeptRound": "toprank.rules.scoring",
    "Variable": "toprank.rules.relational.clause",
    "Constant": "toprank.rules.relational.clause",
    "Atom": "toprank.rules.relational.clause",
    "Clause": "toprank.rules.relational.clause",
    "Mode": "toprank.rules.relational.modes",
    "Predicate": "toprank.rules.relational.modes",
    "Schema": "toprank.rules.relational.modes",
    "trees.Bins": "toprank.trees.binning",
    "Encoding": "toprank.trees.encoding",
    "RankTree": "toprank.trees.tree",
    "LeafRankRules": "toprank.trees.leafrank",
    "SVMRules": "toprank.trees.splitters",
    "EstimatorRules": "toprank.trees.splitters",
    "SVMSplit": "toprank.trees.svm",
    "CellOrder": "toprank.trees.consensus",
    "KernelFunction": "toprank.margin.kernels",
    "KernelExpansion": "toprank.margin.kernels",
    "PathTree": "toprank.margin.tree_path",
    "Staircase": "toprank.shortlisting.staircase",
    "ProbabilityMap": "toprank.shortlisting.probability",
}

# Objectives, by their class.
OBJECTIVES = "toprank.objectives"

# scikit-learn's parts of pipelines, splitters and calibrators whose fitted state is plain, so that no
# state of theirs can reach compiled code unchecked.
SCIKIT_LEARN: dict[str, str] = {
    "Pipeline": "sklearn.pipeline",
    "FeatureUnion": "sklearn.pipeline",
    "ColumnTransformer": "sklearn.compose",
    "FunctionTransformer": "sklearn.preprocessing",
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MaxAbsScaler": "sklearn.preprocessing",
    "RobustScaler": "sklearn.preprocessing",
    "OneHotEncoder": "sklearn.preprocessing",
    "OrdinalEncoder": "sklearn.preprocessing",
    "LabelEncoder": "sklearn.preprocessing",
    "LabelBinarizer": "sklearn.preprocessing",
    "SimpleImputer": "sklearn.impute",
    "MissingIndicator": "sklearn.impute",
    "PCA": "sklearn.decomposition",
    "TruncatedSVD": "sklearn.decomposition",
    "VarianceThreshold": "sklearn.feature_selection",
    "LogisticRegression": "sklearn.linear_model",
    "RidgeClassifier": "sklearn.linear_model",
    "LinearSVC": "sklearn.svm",
    "GaussianNB": "sklearn.naive_bayes",
    "DecisionTreeClassifier": "sklearn.tree",
    "ExtraTreeClassifier": "sklearn.tree",
    "RandomForestClassifier": "sklearn.ensemble",
    "ExtraTreesClassifier": "sklearn.ensemble",
    "CalibratedClassifierCV": "sklearn.calibration",
    "_CalibratedClassifier": "sklearn.calibration",
    "_SigmoidCalibration": "sklearn.calibration",
    "IsotonicRegression": "sklearn.isotonic",
}

# Types that scikit-learn keeps as parameters or fitted state.
TYPES: dict[str, Any] = {"float": float, "int": int, "str": str, "bool": bool, "object": object}
NUMPY_TYPES = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "str_",
)  # fmt: skip


def _modules(kind: str) -> dict[str, str]:
    if kind == "estimator":
        return {**ESTIMATORS, **RELATIONAL, **TRANSFORMERS, **WRAPPERS}
    return {"record": RECORDS, "sklearn": SCIKIT_LEARN}[kind]


@cache
def _objectives() -> dict[str, type]:
    classes = import_module(OBJECTIVES).OBJECTIVES.values()
    return {f"objectives.{cls.__name__}": cls for cls in classes}


def class_of(kind: str, name: Any) -> type:
    """The class of that kind ("estimator", "record" or "sklearn") and name."""
    require(isinstance(name, str), f"it names a {kind} that is not text")
    if kind == "record" and name in _objectives():
        return _objectives()[name]
    modules = _modules(kind)
    require(name in modules, f"it holds a {kind} {name[:60]!r}, which is not among those allowed")
    return getattr(import_module(modules[name]), name.rpartition(".")[2])


def name_of(value: Any) -> tuple[str, str] | None:
    """Kind and name under which an object is stored; None for what cannot be.

    Examples
    --------
    >>> from toprank.rule import Rule
    >>> name_of(Rule()), name_of(print)
    (('record', 'Rule'), None)
    """
    cls = type(value)
    for kind in ("estimator", "record", "sklearn"):
        for name in _modules(kind):
            if name.rpartition(".")[2] == cls.__name__ and class_of(kind, name) is cls:
                return kind, name
    if cls.__module__.startswith(OBJECTIVES):
        name = f"objectives.{cls.__name__}"
        if _objectives().get(name) is cls:
            return "record", name
    return None
