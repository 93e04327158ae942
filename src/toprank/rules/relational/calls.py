"""Modes that are ready to be looked up: which facts a bottom clause may gather next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toprank.rules.relational.background import Background

__all__ = ["Call"]


@dataclass(frozen=True)
class Call:
    """A mode ready to be looked up.

    Attributes
    ----------
    predicate : int
        Position in the schema.
    kinds, types : tuple of str
        Of the arguments.
    recall : int
    repeats : tuple of bool
        Whether an output may be a variable that the clause has already, rather than a new one.
    """

    predicate: int
    kinds: tuple[str, ...]
    types: tuple[str, ...]
    recall: int
    repeats: tuple[bool, ...]

    def rows(
        self, background: Background, known: Mapping[str, np.ndarray], *, last: bool
    ) -> np.ndarray:
        """Facts whose inputs are known, at most `recall` for each binding of them.

        In the last layer outputs must be known too: nothing new may be introduced there.
        """
        inputs = [p for p, kind in enumerate(self.kinds) if kind == "+"]
        checked = [p for p, kind in enumerate(self.kinds) if kind == "+" or (last and kind == "-")]
        if not all(self.types[p] in known for p in checked):
            return np.empty(0, dtype=np.int64)
        if not inputs:
            rows = np.arange(min(self.recall, len(background.rows(self.predicate))))
        else:
            first = inputs[0]
            recall = self.recall if len(inputs) == 1 else None
            order, values = background.index(self.predicate, first)
            rows = order[_ranges(values, known[self.types[first]], recall)]
        for p in checked:
            if [p] != inputs[:1]:
                column = background.rows(self.predicate)[rows, p]
                rows = rows[np.isin(column, known[self.types[p]])]
        if len(inputs) > 1:
            rows = _first_of_each(background.rows(self.predicate), rows, inputs, self.recall)
        return rows


def _ranges(values: np.ndarray, wanted: np.ndarray, most: int | None) -> np.ndarray:
    """Positions of the wanted values in a sorted array, at most so many of each."""
    starts = np.searchsorted(values, wanted, side="left")
    counts = np.searchsorted(values, wanted, side="right") - starts
    if most is not None:
        counts = np.minimum(counts, most)
    shifts = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return np.arange(counts.sum()) + shifts


def _first_of_each(
    facts: np.ndarray, rows: np.ndarray, columns: Sequence[int], most: int
) -> np.ndarray:
    """Of the rows with the same values in some columns, the first few."""
    rows = np.sort(rows)
    if not len(rows):
        return rows
    _, group = np.unique(facts[rows][:, list(columns)], axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    ordered = group.ravel()[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1])
    rank = np.arange(len(rows)) - np.repeat(starts, np.diff([*starts, len(rows)]))
    return rows[np.sort(order[rank < most])]
