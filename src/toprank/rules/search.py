"""Greedy top-down search: from "every row", add the refinement that raises the score most."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from toprank.rules.curve import SCORES, CurvePath, best_candidate
from toprank.rules.source import SearchPath

__all__ = ["Limits", "Refiner", "climb"]

IMPROVEMENT = 1e-10  # relative; anything less is rounding


@dataclass(frozen=True)
class Limits:
    """When a search stops even though it could go on.

    Attributes
    ----------
    max_length : int
        Most refinements (at most 255).
    max_evaluated : int or None
        Stop before a step once this many rules were scored.
    max_seconds : float or None
        Stop before a step once this much time has passed; results then depend on the machine.
    """

    max_length: int = 4
    max_evaluated: int | None = None
    max_seconds: float | None = None


class Refiner(Protocol):
    """One search in progress: the current rule and what could be added to it."""

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the positives and of the negatives under every refinement of the current rule."""

    def refine(self, index: int) -> tuple[Any, np.ndarray]:
        """Take a refinement; return the new rule and the mask of the training rows it covers."""


def climb(
    refiner: Refiner, total_positives: float, total_negatives: float, score: str, limits: Limits
) -> SearchPath | None:
    """Refine greedily until nothing raises the score, or a limit is met.

    Parameters
    ----------
    refiner : Refiner
        Starts at the most general rule.
    total_positives, total_negatives : float
        Total weights of the classes.
    score : str
        A key of `toprank.rules.curve.SCORES`.
    limits : Limits
    """
    path = CurvePath(float(total_positives), float(total_negatives))
    scorer = SCORES[score]
    every_row = np.array([path.end])
    current = float(scorer(every_row[:, 0].copy(), every_row[:, 1].copy(), path)[0])
    rules: list[Any] = []
    depth: np.ndarray | None = None
    n_evaluated, start = 0, time.monotonic()
    while len(rules) < limits.max_length and not _exhausted(limits, n_evaluated, start):
        positives, negatives = refiner.candidates()
        n_evaluated += len(positives)
        if len(positives) == 0:
            break
        index, best = best_candidate(scorer(positives, negatives, path))
        if not best > current + IMPROVEMENT * max(abs(current), 1e-6):
            break
        rule, covered = refiner.refine(index)
        path = path.extended(positives[index], negatives[index])
        depth = covered.astype(np.uint8) if depth is None else depth + covered
        rules.append(rule)
        current = best
    if depth is None:
        return None
    points = np.array(path.positives), np.array(path.negatives)
    return SearchPath(tuple(rules), depth, *points, current, n_evaluated)


def _exhausted(limits: Limits, n_evaluated: int, start: float) -> bool:
    if limits.max_evaluated is not None and n_evaluated >= limits.max_evaluated:
        return True
    return limits.max_seconds is not None and time.monotonic() - start >= limits.max_seconds
