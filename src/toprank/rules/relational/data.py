"""RelationalData: examples of a target predicate and the background facts they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from toprank.rules.relational.background import Background
from toprank.rules.relational.inference import complete_schema
from toprank.rules.relational.modes import Mode, Schema
from toprank.rules.relational.readers import Tables, read_database, read_folder, read_plain_folder
from toprank.rules.relational.schema_file import SchemaParts, read_schema
from toprank.rules.relational.sources import as_arrow, as_source

__all__ = ["RelationalData"]


class RelationalData:
    """Examples of a target predicate and the background tables they refer to.

    Each row of a table is a fact: the table's name is the predicate, its columns the arguments. Columns
    of the same type can be joined. It behaves like an array of examples (`len`, `data[rows]`), so that
    scikit-learn can split it; all parts share one background.

    Parameters
    ----------
    tables : mapping of str to table
        pandas, Polars or Arrow tables, or paths of Parquet files or of folders of them, by predicate.
    examples : table
        The arguments of the target predicate, one row for each example.
    target : str, default="target"
        Name of the target predicate.
    arguments : mapping of str to sequence of str, optional
        Which columns of a table (or, under the target's name, of `examples`) are its arguments, and in
        which order; all of them by default.
    types : mapping of str to sequence of str, optional
        Argument types by predicate, the target's too. Where they are missing, or None, columns join the
        type that shares their values.
    modes : sequence of Mode, optional
        How predicates may be used in clauses. Predicates without any get modes from their columns.

    Attributes
    ----------
    schema : Schema
        Predicates, types and modes, declared or inferred.
    labels : ndarray or None
        Labels that came with the examples (`from_folder`, `from_dataset`).
    extra : DataFrame
        Columns that came with the examples and are no arguments, such as folds.

    Examples
    --------
    >>> import pandas as pd
    >>> tables = {
    ...     "friends": pd.DataFrame({"a": ["ann", "bob"], "b": ["bob", "carl"]}),
    ...     "smokes": pd.DataFrame({"person": ["bob"]}),
    ... }
    >>> data = RelationalData(tables, pd.DataFrame({"person": ["ann", "bob"]}), target="cancer")
    >>> data
    RelationalData('cancer', examples=2, predicates=2)
    >>> for mode in data.schema.modes:
    ...     print(mode)
    friends(+person,-person)
    friends(-person,+person)
    smokes(+person)
    >>> len(data[[1]])
    1
    """

    schema: Schema
    labels: np.ndarray | None
    extra: pd.DataFrame
    _background: Background
    _examples: pa.Table

    def __init__(
        self,
        tables: Mapping[str, Any],
        examples: Any,
        *,
        target: str = "target",
        arguments: Mapping[str, Sequence[str]] | None = None,
        types: Mapping[str, Sequence[str | None]] | None = None,
        modes: Iterable[Mode] | None = None,
    ) -> None:
        sources = {str(name): as_source(table, f"table {name!r}") for name, table in tables.items()}
        parts = _declared(target, arguments, types, modes)
        self._set(Tables(sources, as_arrow(examples, "examples"), parts))

    def _set(self, tables: Tables) -> None:
        if not tables.sources:
            raise ValueError("no background tables were given: there is nothing to learn from")
        self.schema = complete_schema(tables.sources, tables.examples, tables.parts)
        self._background = Background(tables.sources, self.schema.predicates)
        self._examples = tables.examples.select(list(self.schema.target.columns))
        self.labels = tables.labels
        self.extra = pd.DataFrame(index=range(len(self))) if tables.extra is None else tables.extra
        self._codes: np.ndarray | None = None

    # -- other ways in ----------------------------------------------------------------------------

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        *,
        where: Mapping[str, Any] | None = None,
        examples: str = "examples",
        label: str | None = None,
        target: str = "target",
        arguments: Mapping[str, Sequence[str]] | None = None,
        types: Mapping[str, Sequence[str | None]] | None = None,
        modes: Iterable[Mode] | None = None,
    ) -> RelationalData:
        """Read a folder of Parquet files, described by its `schema.json` if it has one.

        Parameters
        ----------
        path : str or Path
        where : mapping of str to value or values, optional
            Keep only rows of examples and facts with these values, in the files that have the column:
            `where={"fold": [1, 2]}`.
        examples : str, default="examples"
            Without a schema.json every Parquet file, and every folder of Parquet files, is a table
            called as the file; this one holds the examples.
        label : str, optional
            Without a schema.json: the examples' column of labels.
        target, arguments, types, modes
            As for `RelationalData`; only without a schema.json.

        Returns
        -------
        data : RelationalData
            With `labels` and `extra`.
        """
        folder = Path(path)
        parts = _declared(target, arguments, types, modes)
        if not folder.is_dir():
            raise ValueError(f"there is no folder {str(folder)!r}")
        if not (folder / "schema.json").is_file():
            return cls._of_tables(read_plain_folder(folder, examples, label, parts, where))
        if (examples, label, parts) != ("examples", None, _declared("target", None, None, None)):
            raise ValueError(
                f"{str(folder)!r} has a schema.json; examples, label, target, arguments, types and "
                "modes are for folders without one"
            )
        return cls._of_tables(read_folder(folder, where))

    @classmethod
    def from_dataset(cls, dataset: Any) -> RelationalData:
        """Take what `toprank.datasets.load_relational` and `make_relational` return.

        Parameters
        ----------
        dataset : RelationalDataset

        Returns
        -------
        data : RelationalData
            With `labels` and `extra`.
        """
        sources = {n: as_source(table, f"table {n!r}") for n, table in dataset.tables.items()}
        rows = as_arrow(dataset.examples, "examples")
        extra = dataset.extra.reset_index(drop=True) if len(dataset.extra.columns) else None
        labels = np.asarray(dataset.y)
        return cls._of_tables(Tables(sources, rows, read_schema(dataset.schema), labels, extra))

    @classmethod
    def from_database(
        cls,
        path: str | Path,
        examples: str,
        *,
        target: str = "target",
        tables: Sequence[str] | None = None,
        arguments: Mapping[str, Sequence[str]] | None = None,
        types: Mapping[str, Sequence[str | None]] | None = None,
        modes: Iterable[Mode] | None = None,
    ) -> RelationalData:
        """Read the tables of a DuckDB database file, which is attached for reading only.

        Parameters
        ----------
        path : str or Path
        examples : str
            Table of the examples.
        target : str, default="target"
        tables : sequence of str, optional
            Background tables; all others of the file's main schema by default.
        arguments, types, modes
            As for `RelationalData`. Columns that foreign keys tie together have one type.

        Returns
        -------
        data : RelationalData
        """
        parts = _declared(target, arguments, types, modes)
        return cls._of_tables(read_database(Path(path), examples, tables, parts))

    @classmethod
    def _of_tables(cls, tables: Tables) -> RelationalData:
        data = cls.__new__(cls)
        data._set(tables)
        return data

    # -- as an array of examples ------------------------------------------------------------------

    def __len__(self) -> int:
        return self._examples.num_rows

    @property
    def shape(self) -> tuple[int, int]:
        """Number of examples and of arguments."""
        return len(self), self.schema.target.arity

    @property
    def examples(self) -> pd.DataFrame:
        """The arguments of the target predicate, one row for each example."""
        return self._examples.to_pandas()

    def __getitem__(self, rows: Any) -> RelationalData:
        """The same background with some of the examples (an index array, a mask or a slice)."""
        keep = np.arange(len(self))[rows]
        if keep.ndim == 0:
            raise IndexError("ask for several examples: data[[3]], data[2:5] or data[mask]")
        part = self._with(self._examples.take(pa.array(keep)))
        part.labels = None if self.labels is None else self.labels[keep]
        part.extra = self.extra.iloc[keep].reset_index(drop=True)
        part._codes = None if self._codes is None else self._codes[keep]
        return part

    def with_examples(self, examples: Any) -> RelationalData:
        """New examples against the same background.

        Parameters
        ----------
        examples : table
            With the columns of the target predicate (others are left out).

        Returns
        -------
        data : RelationalData
        """
        rows = as_arrow(examples, "examples")
        columns = self.schema.target.columns
        missing = [column for column in columns if column not in rows.column_names]
        if missing:
            raise ValueError(
                f"the examples lack the columns {', '.join(missing)} of {self.schema.target.name!r}; "
                f"they have {', '.join(rows.column_names)}"
            )
        return self._with(rows.select(list(columns)))

    def with_schema(self, schema: Schema) -> RelationalData:
        """The same rows read by the predicates and types of another schema.

        What a model learnt on one background is applied to another so: types that were inferred then
        cannot differ between the two. Predicates that the schema does not have are left out.
        """
        if schema == self.schema:
            return self
        _check_tables(schema, self.schema)
        data = self._with(self._examples)
        data.schema = schema
        if schema.predicates != self.schema.predicates:
            names = [predicate.name for predicate in schema.predicates]
            sources = {name: self._background.sources[name] for name in names}
            data._background = Background(sources, schema.predicates)
        return data

    def _with(self, examples: pa.Table) -> RelationalData:
        data = object.__new__(type(self))
        data.__dict__.update(self.__dict__)
        data._examples = examples
        data.labels = None
        data.extra = pd.DataFrame(index=range(examples.num_rows))
        data._codes = None
        return data

    # -- for the learner --------------------------------------------------------------------------

    @property
    def background(self) -> Background:
        """The encoded facts."""
        return self._background

    def codes(self) -> np.ndarray:
        """Codes of the examples' arguments, shape (n_examples, arity); -1 for what no fact names."""
        if self._codes is None:
            self._codes = self._background.encode(self._examples, self.schema.target.types)
        return self._codes

    def text_types(self) -> tuple[str, ...]:
        """Types that hold text in some columns and numbers in others, and so compare as text."""
        return self._background.text_types(self._examples, self.schema.target.types)

    def __repr__(self) -> str:
        return (
            f"RelationalData({self.schema.target.name!r}, examples={len(self)}, "
            f"predicates={len(self.schema.predicates)})"
        )


def _declared(
    target: str,
    arguments: Mapping[str, Sequence[str]] | None,
    types: Mapping[str, Sequence[str | None]] | None,
    modes: Iterable[Mode] | None,
) -> SchemaParts:
    return SchemaParts(target, dict(arguments or {}), dict(types or {}), tuple(modes or ()))


def _check_tables(wanted: Schema, present: Schema) -> None:
    """Say which tables or columns of a schema a set of tables does not have."""
    if wanted.target.name != present.target.name or wanted.target.columns != present.target.columns:
        raise ValueError(
            f"the examples are of {present.target.name}({', '.join(present.target.columns)}), but the "
            f"model was trained on {wanted.target.name}({', '.join(wanted.target.columns)})"
        )
    for name, columns in wanted.columns.items():
        if name not in present.columns:
            raise ValueError(
                f"the background has no table {name!r}, which the model was trained with; give it a "
                "table (it may be empty)"
            )
        if present.columns[name] != columns:
            raise ValueError(
                f"the background table {name!r} has the columns {', '.join(present.columns[name])}, "
                f"but the model was trained with {', '.join(columns)}"
            )
