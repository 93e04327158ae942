"""Region: what a leaf of a ranking tree covers, in the manner of a `Rule`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.rule import Rule

__all__ = ["Region"]


@dataclass(frozen=True, slots=True)
class Region:
    """Rows that meet every part; a part is met when any of its rules is.

    A split of a ranking tree sends a union of cells to each side, so the way to a leaf is a conjunction of
    unions. With one rule in each part it is a plain `Rule` (see `rule`).

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.rule import Literal, Rule
    >>> high, low = Rule((Literal("x0", ">", 5.0),)), Rule((Literal("x0", "<=", 1.0),))
    >>> region = Region(((high, low), (Rule((Literal("x1", ">", 0.0),)),)))
    >>> print(region)
    (x0 > 5 or x0 <= 1) and x1 > 0
    >>> region.mask(np.array([[6.0, 1.0], [3.0, 1.0]])).tolist()
    [True, False]
    >>> print(region.sql())
    ("x0" > 5.0e0 OR "x0" <= 1.0e0) AND "x1" > 0.0e0
    """

    parts: tuple[tuple[Rule, ...], ...] = ()

    def mask(self, table: Any) -> np.ndarray:
        """Rows of a table or array that the region covers."""
        covered = Rule().mask(table)
        for rules in self.parts:
            covered &= np.logical_or.reduce([rule.mask(table) for rule in rules])
        return covered

    def sql(self, *, table: str | None = None) -> str:
        """The region as an SQL condition (`TRUE` if it covers every row)."""
        return (
            _join(
                [[rule.sql(table=table) for rule in rules] for rules in self.parts], " OR ", " AND "
            )
            or "TRUE"
        )

    @property
    def rule(self) -> Rule:
        """The region as one conjunction, if it is one."""
        if any(len(rules) != 1 for rules in self.parts):
            raise ValueError(
                "this region is a union of cells, not one conjunction; toprank.trees.leaf_rules "
                "gives its conjunctions, and leafrank_depth=1 grows leaves that are one"
            )
        return Rule(tuple(literal for (rule,) in self.parts for literal in rule.literals))

    def __len__(self) -> int:
        return len(self.parts)

    def __str__(self) -> str:
        return (
            _join([list(map(str, rules)) for rules in self.parts], " or ", " and ") or "every row"
        )


def _join(parts: list[list[str]], either: str, both: str) -> str:
    """Alternatives in brackets where there are several."""
    return both.join(f"({either.join(rules)})" if len(rules) > 1 else rules[0] for rules in parts)
