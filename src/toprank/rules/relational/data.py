"""RelationalData: examples of a target predicate and the background facts they refer to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from toprank.rules.relational.background import Background
from toprank.rules.relational.inference import complete_schema
from toprank.rules.relational.modes import Mode, Schema
from toprank.rules.relational.schema_file import SchemaParts, read_schema
from toprank.rules.relational.sources import (
    DatabaseSource,
    ParquetSource,
    Source,
    as_arrow,
    as_source,
    connect,
    describe,
    where_condition,
)

__all__ = ["RelationalData"]


class RelationalData:
    """Examples of a target predicate and the background tables they refer to.

    Each row of a table is a fact: the table's name is the predicate, its columns the arguments. Columns
    of the same type can be joined. It behaves like an array of examples (`len`, `data[rows]`), so that
    scikit-learn can split it; all parts share one background.

    Parameters
    ----------
    tables : mapping of str to table
        pandas, Polars or Arrow tables, or paths of Parquet files, by predicate.
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
        rows = as_arrow(examples, "examples")
        parts = SchemaParts(target, dict(arguments or {}), dict(types or {}), tuple(modes or ()))
        self._set(sources, rows, parts, None, None)

    def _set(
        self,
        sources: dict[str, Source],
        examples: pa.Table,
        parts: SchemaParts,
        labels: np.ndarray | None,
        extra: pd.DataFrame | None,
    ) -> None:
        if not sources:
            raise ValueError("no background tables were given: there is nothing to learn from")
        self.schema = complete_schema(sources, examples, parts)
        self._background = Background(sources, self.schema.predicates)
        self._examples = examples.select(list(self.schema.target.columns))
        self.labels = labels
        self.extra = pd.DataFrame(index=range(len(self))) if extra is None else extra
        self._codes: np.ndarray | None = None

    # -- other ways in ----------------------------------------------------------------------------

    @classmethod
    def from_folder(
        cls, path: str | Path, *, where: Mapping[str, Any] | None = None
    ) -> RelationalData:
        """Read a folder of Parquet files described by its `schema.json`.

        Parameters
        ----------
        path : str or Path
        where : mapping of str to value or values, optional
            Keep only rows of examples and facts with these values, in the files that have the column:
            `where={"fold": [1, 2]}`.

        Returns
        -------
        data : RelationalData
            With `labels` and `extra`.
        """
        folder = Path(path)
        if not (folder / "schema.json").is_file():
            raise ValueError(f"{str(folder)!r} has no schema.json that describes its tables")
        schema = json.loads((folder / "schema.json").read_text())
        condition = where_condition(where)
        connection = connect()
        try:
            sources: dict[str, Source] = {
                name: _parquet(connection, folder / entry["file"], condition)
                for name, entry in schema["predicates"].items()
            }
            scan = _parquet(connection, folder / schema["examples"]["file"], condition).scan(
                connection
            )
            examples = connection.execute(f"SELECT * FROM {scan}").df()
        finally:
            connection.close()
        labels = examples.pop("target").to_numpy() if "target" in examples else None
        return cls._of_schema(sources, examples, labels, schema)

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
        examples = dataset.examples
        if len(dataset.extra.columns):
            new = dataset.extra.columns.difference(examples.columns)
            examples = pd.concat(
                [examples.reset_index(drop=True), dataset.extra[new].reset_index(drop=True)], axis=1
            )
        return cls._of_schema(sources, examples, np.asarray(dataset.y), dataset.schema)

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
            Background tables; all others of the file by default.
        arguments, types, modes
            As for `RelationalData`.

        Returns
        -------
        data : RelationalData
        """
        if not Path(path).is_file():
            raise ValueError(f"there is no database file {str(path)!r}")
        file = str(Path(path).resolve())
        connection = connect()
        try:
            scan = DatabaseSource(file, examples).scan(connection)
            names = _database_tables(connection, scan.split(".")[0])
            unknown = sorted({examples, *(tables or ())} - set(names))
            if unknown:
                raise ValueError(
                    f"{file!r} has no table {', '.join(unknown)}; it has {', '.join(names)}"
                )
            rows = as_arrow(connection.execute(f"SELECT * FROM {scan}").df(), "examples")
        finally:
            connection.close()
        wanted = tables if tables is not None else [name for name in names if name != examples]
        sources: dict[str, Source] = {name: DatabaseSource(file, name) for name in wanted}
        data = cls.__new__(cls)
        parts = SchemaParts(target, dict(arguments or {}), dict(types or {}), tuple(modes or ()))
        data._set(sources, rows, parts, None, None)
        return data

    @classmethod
    def _of_schema(
        cls,
        sources: dict[str, Source],
        examples: pd.DataFrame,
        labels: np.ndarray | None,
        schema: Mapping[str, Any],
    ) -> RelationalData:
        parts = read_schema(schema)
        extra = examples.drop(columns=list(parts.arguments[parts.target])).reset_index(drop=True)
        data = cls.__new__(cls)
        data._set(sources, as_arrow(examples, "examples"), parts, labels, extra)
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

    def __repr__(self) -> str:
        return (
            f"RelationalData({self.schema.target.name!r}, examples={len(self)}, "
            f"predicates={len(self.schema.predicates)})"
        )


def _parquet(connection: Any, path: Path, condition: tuple[Any, ...]) -> ParquetSource:
    """A file with the part of a condition that its columns allow."""
    if not path.is_file():
        raise ValueError(
            f"the schema names the file {path.name!r}, which is not in {str(path.parent)!r}"
        )
    source = ParquetSource(str(path.resolve()))
    if not condition:
        return source
    columns = describe(connection, source.scan(connection))
    return ParquetSource(source.path, tuple(part for part in condition if part[0] in columns))


def _database_tables(connection: Any, alias: str) -> list[str]:
    query = "SELECT table_name FROM information_schema.tables WHERE table_catalog = $1 ORDER BY 1"
    return [row[0] for row in connection.execute(query, [alias]).fetchall()]


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
