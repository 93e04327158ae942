"""Rank rows so that the rare positives come first.

The estimators, metrics and tools are imported when they are first used, so `import toprank` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from toprank._version import __version__
from toprank.registry import ESTIMATORS, RELATIONAL, RELATIONAL_TRANSFORMERS, TRANSFORMERS

_SUBMODULES = (
    "automatic", "boosting", "cli", "datasets", "distributed", "margin", "metrics", "objectives",
    "out_of_core", "pairs", "persistence", "report", "rules", "selection", "shortlisting", "trees",
)  # fmt: skip
_FUNCTIONS = {
    "SGBAP": "toprank.boosting",
    "SGBAPsig": "toprank.boosting",
    "LambdaMART": "toprank.boosting",
    "DaskGradientBoostingRanker": "toprank.distributed",
    "POISE": "toprank.margin",
    "RelationalData": "toprank.rules.relational.data",
    "Mode": "toprank.rules.relational.schema",
    "show_versions": "toprank._version",
    "save": "toprank.persistence",
    "load": "toprank.persistence",
    "to_onnx": "toprank.persistence.onnx",
    "CalibratedRanker": "toprank.shortlisting.calibration",
    "choose_cut": "toprank.shortlisting.cut",
    "shortlist": "toprank.shortlisting.shortlist",
}
_LAZY = {
    **ESTIMATORS,
    **RELATIONAL,
    **RELATIONAL_TRANSFORMERS,
    **TRANSFORMERS,
    **_FUNCTIONS,
}

__all__ = ["__version__", *_SUBMODULES, *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"toprank.{name}")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'toprank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
