"""What the loaders and some generators hand back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Dataset", "RelationalDataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """One table with its labels.

    Attributes
    ----------
    name : str
    X : DataFrame (or ndarray, with `as_frame=False`) of shape (n_rows, n_features)
        The features only.
    y : ndarray of shape (n_rows,)
        1 for a positive and 0 for a negative; grades 0, 1, 2, ... for query data.
    qid : ndarray of shape (n_rows,) or None
        Query identifiers, for query data.
    extra : DataFrame
        Columns that are neither features nor labels: time, identifiers, published splits and folds.
        It has no columns when there are none.
    description : str
        Where the data comes from and what to know about it.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> data = Dataset("small", pd.DataFrame({"x": [1.0, 2.0, 3.0]}), np.array([0, 0, 1]))
    >>> data
    Dataset('small', rows=3, features=1, positives=1)
    >>> X, y = data.X, data.y
    """

    name: str
    X: Any
    y: np.ndarray
    qid: np.ndarray | None = None
    extra: pd.DataFrame = field(default_factory=pd.DataFrame)
    description: str = ""

    def to_frame(self, target: str = "target") -> pd.DataFrame:
        """Return extra columns, features and labels as one table.

        Parameters
        ----------
        target : str, default="target"
            Name of the label column.

        Returns
        -------
        frame : DataFrame
        """
        features = self.X if isinstance(self.X, pd.DataFrame) else pd.DataFrame(self.X)
        parts = [self.extra.reset_index(drop=True)] if len(self.extra.columns) else []
        if self.qid is not None:
            parts.append(pd.DataFrame({"qid": self.qid}))
        parts += [features.reset_index(drop=True), pd.DataFrame({target: self.y})]
        return pd.concat(parts, axis=1)

    def __repr__(self) -> str:
        rows, features = self.X.shape
        positives = int(np.count_nonzero(self.y))
        return f"Dataset({self.name!r}, rows={rows}, features={features}, positives={positives})"


@dataclass(frozen=True, eq=False)
class RelationalDataset:
    """Examples of a target predicate and the background tables they refer to.

    Attributes
    ----------
    name : str
    tables : dict of str to DataFrame
        One table for each background predicate, one row for each fact. The columns that are
        arguments are listed in the schema; further columns (a fold, say) may follow them.
    examples : DataFrame
        The arguments of the target predicate, one row for each example.
    y : ndarray of shape (n_examples,)
        1 where the target predicate holds.
    schema : dict
        Plain data: `target_predicate`; `predicates`, with `arguments`, `argument_types`, `rows` and
        `modes` (or None) of each; `examples`, with the same and `positives`.
    extra : DataFrame
        Columns of the examples that are neither arguments nor labels, such as folds.
    rule : dict or None
        The planted rule of generated data: `head` is (predicate, arguments), `body` a list of them.
        Arguments with a capital first letter are variables, all others constants.
    description : str
    """

    name: str
    tables: dict[str, pd.DataFrame]
    examples: pd.DataFrame
    y: np.ndarray
    schema: dict[str, Any]
    extra: pd.DataFrame = field(default_factory=pd.DataFrame)
    rule: dict[str, Any] | None = None
    description: str = ""

    def __repr__(self) -> str:
        facts = sum(len(table) for table in self.tables.values())
        return (
            f"RelationalDataset({self.name!r}, examples={len(self.y)}, "
            f"positives={int(np.count_nonzero(self.y))}, "
            f"predicates={len(self.tables)}, facts={facts})"
        )
