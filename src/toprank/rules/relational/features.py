"""RelationalFeatures: the facts around examples as columns, for any ranker of tables.

The columns are the aggregates that the clause language knows over the arguments of the target: counts,
existence, and least, greatest, mean and total numbers, along one join or two, as the modes allow, and a
third behind a table that holds the foreign keys of the examples.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from toprank.rules.relational.clause import (
    AGGREGATES,
    Aggregate,
    Variable,
    decode_aggregate,
    encode_aggregate,
    show_aggregate,
    variable_name,
)
from toprank.rules.relational.coverage import Coverage
from toprank.rules.relational.data import RelationalData, check_examples, without_background
from toprank.rules.relational.schema import Schema
from toprank.rules.relational.search import Language
from toprank.validation import Interval

__all__ = ["RelationalFeatures"]

FUNCTIONS = ("exists", *AGGREGATES)
BATCH = 16  # aggregates that are asked for together


class RelationalFeatures(TransformerMixin, BaseEstimator):
    """Turn examples of relational data into columns of numbers.

    Each column is an aggregate over the facts that are joined with an example's arguments: how many
    publications a person has, how many of them together with another, the mean charge of a molecule's atoms.
    Where each example has one row in a table that holds its foreign keys, what lies behind these counts as
    near: whether it rained at the shop of a visit on its day, how many visits that shop has.
    Put it before any ranker of tables: the same `RelationalData` then serves a model of clauses, to be
    read, and a model of trees. No label is looked at.

    Parameters
    ----------
    functions : sequence of str, default=("count", "min", "max", "mean", "sum")
        Of "exists" (1 or 0), "count", "min", "max", "mean" and "sum". Of no facts the counts are 0 and
        the last four are missing (NaN).
    max_features : int, default=300
        Most aggregates that are tried: those of one atom first, then those of two.
    n_jobs : int or None, default=None
        Threads of DuckDB; None is 1, -1 all.

    Attributes
    ----------
    aggregates_ : tuple of Aggregate
        Of each column after those of numbers among the arguments; those that were constant on
        the training examples, or equal to one before, are left out.
    exists_ : tuple of bool
        Whether a column only says that its count is not 0.
    numbers_ : tuple of int
        The arguments that are numbers themselves, and the first columns.
    schema_ : Schema
    n_features_in_ : int
        Number of arguments.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import RelationalData, RelationalFeatures
    >>> tables = {
    ...     "friends": pd.DataFrame({"a": ["ann", "ann", "dan"], "b": ["bob", "carl", "ann"]}),
    ...     "smokes": pd.DataFrame({"who": ["bob"]}),
    ... }
    >>> people = pd.DataFrame({"person": ["ann", "bob", "carl", "dan"]})
    >>> data = RelationalData(tables, people, target="cancer")
    >>> features = RelationalFeatures(max_features=3).fit(data)
    >>> features.get_feature_names_out().tolist()
    ['count(friends(A,_))', 'count(friends(_,A))', 'count(smokes(A))']
    >>> features.transform(data)[:, 0].tolist()
    [2.0, 0.0, 0.0, 1.0]
    """

    schema_: Schema
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "functions": [list, tuple],
        "max_features": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        functions: Any = ("count", "min", "max", "mean", "sum"),
        *,
        max_features: int = 300,
        n_jobs: int | None = None,
    ) -> None:
        self.functions = functions
        self.max_features = max_features
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the columns.

        Parameters
        ----------
        X : RelationalData
        y : ignored

        Returns
        -------
        self
        """
        self._learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Choose the columns and return them.

        Parameters
        ----------
        X : RelationalData
        y : ignored

        Returns
        -------
        columns : ndarray of shape (n_examples, n_columns)
        """
        return self._learn(X)

    def transform(self, X: Any) -> np.ndarray:
        """Compute the columns of examples.

        Parameters
        ----------
        X : RelationalData
            Or a table of examples with the background of training.

        Returns
        -------
        columns : ndarray of shape (n_examples, n_columns)
        """
        check_is_fitted(self)
        data = check_examples(self, X, training=False)
        return self._columns(data, self.aggregates_, self.exists_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns: arguments that are numbers, then aggregates.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        target = self.schema_.target
        outer = [Variable(variable_name(k)) for k in range(target.arity)]
        names = [target.columns[k] for k in self.numbers_]
        for aggregate, exists in zip(self.aggregates_, self.exists_, strict=True):
            shown = show_aggregate(aggregate, outer)
            names.append(shown.replace("count(", "exists(", 1) if exists else shown)
        return np.array(names, dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        return without_background(super().__getstate__())

    # -- private ----------------------------------------------------------------------------------

    def _learn(self, X: Any) -> np.ndarray:
        """Choose the columns; return those of the training examples."""
        self._validate_params()
        unknown = sorted(set(self.functions) - set(FUNCTIONS))
        if unknown or not self.functions:
            raise ValueError(
                f"functions must be some of {', '.join(FUNCTIONS)}; got {tuple(self.functions)!r}"
            )
        data = check_examples(self, X, training=True)
        self.numbers_ = tuple(sorted(data.numbers()))
        aggregates, exists = self._candidates(data)
        columns = self._columns(data, aggregates, exists)
        n_numbers = len(self.numbers_)
        kept = [k for k in _informative(columns) if k >= n_numbers]
        self.aggregates_ = tuple(aggregates[k - n_numbers] for k in kept)
        self.exists_ = tuple(exists[k - n_numbers] for k in kept)
        if not self.aggregates_ and not self.numbers_:
            raise ValueError(
                "no aggregate differs between the examples: no fact is about them, or each has the "
                "same. Compare the values of the examples' columns "
                f"({', '.join(data.schema.target.columns)}) with those of the tables, and the types"
            )
        return columns[:, [*range(n_numbers), *kept]]

    def _candidates(self, data: RelationalData) -> tuple[list[Aggregate], list[bool]]:
        """Return the aggregates that the schema allows, and whether each is about existence only."""
        functions = tuple(f for f in AGGREGATES if f in self.functions and f != "count")
        language = Language(
            data.schema,
            data.background,
            functions=("count", *functions),
            max_aggregates=self.max_features,
            through_links=True,
        )
        aggregates: list[Aggregate] = []
        exists: list[bool] = []
        for coded in language.of_head:
            shown = decode_aggregate(coded, data.schema, data.background, data.schema.target.arity)
            kinds = [False] if shown.function != "count" or "count" in self.functions else []
            if shown.function == "count" and "exists" in self.functions:
                kinds.append(True)
            aggregates += [shown] * len(kinds)
            exists += kinds
        return aggregates, exists

    def _columns(self, data: RelationalData, aggregates: Any, exists: Any) -> np.ndarray:
        coded = [encode_aggregate(a, data.schema, data.background) for a in aggregates]
        numbers = data.numbers()
        out = np.full((len(data), len(self.numbers_) + len(coded)), np.nan)
        for k, argument in enumerate(self.numbers_):
            if argument in numbers:
                out[:, k] = numbers[argument]
        with (
            data.background.threads(self.n_jobs),
            Coverage(data.background, data.codes(), numbers) as coverage,
        ):
            # one after the other, so that no more than one column beside the answer is in memory;
            # those that differ in their constants only are asked for together
            for start in range(0, len(coded), BATCH):
                found = coverage.ranges((), coded[start : start + BATCH])
                for k, ranges in enumerate(found, start=start):
                    assert ranges is not None
                    values = ranges.low[coverage.heads(ranges.arguments).number]
                    out[:, len(self.numbers_) + k] = values > 0 if exists[k] else values
        return out


def _informative(columns: np.ndarray) -> list[int]:
    """Return the columns that are not constant and not equal to one before."""
    seen: set[bytes] = set()
    kept = []
    for k, column in enumerate(columns.T):
        content = np.ascontiguousarray(column).tobytes()
        constant = np.isnan(column).all() or bool((column == column[0]).all())
        if not constant and content not in seen:
            kept.append(k)
        seen.add(content)
    return kept
