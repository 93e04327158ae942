"""Margin methods: pairwise and structural support vector machines, least squares, kernels.

The estimators are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from toprank.registry import ESTIMATORS, TRANSFORMERS

_HOMES = {
    name: module
    for name, module in {**ESTIMATORS, **TRANSFORMERS}.items()
    if module.startswith("toprank.margin.")
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'toprank.margin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
