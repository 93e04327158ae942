"""RelationalData: examples of a target predicate and the background facts they refer to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from toprank.columns import is_table
from toprank.rule import quote_identifier, sql_value
from toprank.rules.relational.background import (
    Background,
    TableSource,
    as_arrow,
    connect,
    describe,
    one_line_errors,
)
from toprank.rules.relational.clause import where_sql
from toprank.rules.relational.schema import (
    Mode,
    Schema,
    check_reachable,
    complete_schema,
    read_schema,
)
from toprank.tables import known_columns

__all__ = ["RelationalData", "check_examples", "without_background"]

TableColumn = tuple[str, str]  # a table and a column


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
        Columns that came with the examples and are not arguments, such as folds.
    notes : tuple of str
        What looks odd in the types that were inferred, if anything.

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
    notes: tuple[str, ...]
    background: Background
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
        if not tables:
            raise ValueError("no background tables were given: there is nothing to learn from")
        sources = {str(n): TableSource.of(table, f"table {n!r}") for n, table in tables.items()}
        rows = as_arrow(examples, "examples")
        self.schema, self.notes = complete_schema(
            sources, rows, target, arguments or {}, types or {}, modes or ()
        )
        self.background = Background(sources, self.schema.predicates)
        self._examples = rows.select(list(self.schema.target.columns))
        self._codes: np.ndarray | None = None
        self.labels = None
        self.extra = pd.DataFrame(index=range(len(self)))

    # -- other constructors ---------------------------------------------------------------------

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
            named after the file; this one holds the examples.
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
        declared: dict[str, Any] = {"target": target, "arguments": arguments, "types": types}
        declared["modes"] = modes
        if not folder.is_dir():
            raise ValueError(f"there is no folder {str(folder)!r}")
        if not (folder / "schema.json").is_file():
            files = _tables_in(folder, examples)
            of_examples = files.pop(examples)
        elif examples != "examples" or target != "target" or label or arguments or types or modes:
            raise ValueError(
                f"{str(folder)!r} has a schema.json; examples, label, target, arguments, types and "
                "modes are for folders without one"
            )
        else:
            schema = json.loads((folder / "schema.json").read_text())
            declared, label = read_schema(schema), "target"
            files = {name: folder / entry["file"] for name, entry in schema["predicates"].items()}
            of_examples = folder / schema["examples"]["file"]
        sources, rows = _read_files(files, of_examples, where)
        own = (declared["arguments"] or {}).get(declared["target"])
        rows, labels, extra = _split_examples(rows, label, own)
        data = cls(sources, rows, **declared)
        data.labels, data.extra = labels, extra
        return data

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
        data = cls(dataset.tables, dataset.examples, **read_schema(dataset.schema))
        data.labels = np.asarray(dataset.y)
        data.extra = dataset.extra.reset_index(drop=True)
        return data

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
        sources, rows, types = _read_database(
            Path(path), examples, target, tables, arguments or {}, types or {}
        )
        return cls(sources, rows, target=target, arguments=arguments, types=types, modes=modes)

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
        """Select some of the examples (an index array, a mask or a slice) with the same background."""
        keep = np.arange(len(self))[rows]
        if keep.ndim == 0:
            raise IndexError("ask for several examples: data[[3]], data[2:5] or data[mask]")
        part = self._with(self._examples.take(pa.array(keep)))
        part.labels = None if self.labels is None else self.labels[keep]
        part.extra = self.extra.iloc[keep].reset_index(drop=True)
        part._codes = None if self._codes is None else self._codes[keep]
        return part

    def with_examples(self, examples: Any) -> RelationalData:
        """Return new examples with the same background.

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
        known_columns(columns, rows.column_names, "the table of examples")
        return self._with(rows.select(list(columns)))

    def with_schema(self, schema: Schema) -> RelationalData:
        """Return the same rows with the predicates and types of another schema.

        A model is applied to another background in this way, so that types which were inferred cannot
        differ between the two. Predicates that the schema does not have are left out.

        Parameters
        ----------
        schema : Schema

        Returns
        -------
        data : RelationalData
        """
        if schema == self.schema:
            return self
        _check_tables(schema, self.schema)
        data = self._with(self._examples)
        data.schema = schema
        if schema.predicates != self.schema.predicates:
            names = [predicate.name for predicate in schema.predicates]
            sources = {name: self.background.sources[name] for name in names}
            data.background = Background(sources, schema.predicates)
        return data

    def _with(self, examples: pa.Table) -> RelationalData:
        data = copy(self)
        data._examples = examples
        data.labels = data._codes = None
        data.extra = pd.DataFrame(index=range(examples.num_rows))
        return data

    # -- for the learner --------------------------------------------------------------------------

    def codes(self) -> np.ndarray:
        """Return the codes of the examples' arguments, by example.

        They are below 0 for values that no fact has (-1 for missing ones).
        """
        if self._codes is None:
            self._codes = self.background.encode(self._examples, self.schema.target.types)
        return self._codes

    def values(self, row: int) -> list[Any]:
        """Return the arguments of one example."""
        return [column[row].as_py() for column in self._examples.columns]

    def numbers(self) -> dict[int, np.ndarray]:
        """Return the values of those arguments of the examples that are numbers and join no facts."""
        known = {t for predicate in self.schema.predicates for t in predicate.types}
        found = {}
        for k, name in enumerate(self.schema.target.types):
            column = self._examples.column(k)
            kind = column.type
            if name not in known and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
                found[k] = np.where(np.isfinite(values), values, np.nan)
        return found

    def text_types(self) -> tuple[str, ...]:
        """Return the types that hold text in some columns and numbers in others, and compare as text."""
        return self.background.text_types(self._examples, self.schema.target.types)

    def __repr__(self) -> str:
        return (
            f"RelationalData({self.schema.target.name!r}, examples={len(self)}, "
            f"predicates={len(self.schema.predicates)})"
        )


def check_examples(owner: Any, X: Any, *, training: bool) -> RelationalData:
    """Return X as examples for an estimator; in training, let it keep their schema and background.

    A table of examples takes the background of training.
    """
    name = type(owner).__name__
    if is_table(X) and not training:
        if not hasattr(owner, "_background_data"):
            raise ValueError(
                f"this {name} was loaded without its background; give it a RelationalData "
                "(`data.with_examples(table)`)"
            )
        X = owner._background_data.with_examples(X)
    if not isinstance(X, RelationalData):
        use = "learns from a RelationalData" if training else "takes a RelationalData or a table"
        raise TypeError(f"{name} {use} of examples; got {type(X).__name__}")
    if not training:
        return X.with_schema(owner.schema_)
    check_reachable(X.schema)
    owner.schema_, owner._background_data = X.schema, X
    owner.n_features_in_ = X.schema.target.arity
    return X


def without_background(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an estimator without the background, which only serves tables of examples."""
    return {name: value for name, value in state.items() if name != "_background_data"}


def _check_tables(wanted: Schema, present: Schema) -> None:
    """Refuse tables that lack a table or columns of the schema of a model."""
    for name, columns in wanted.columns.items():
        trained = f"the model was trained on {name}({', '.join(columns)})"
        if name == wanted.target.name != present.target.name:
            raise ValueError(f"the examples are of {present.target.name!r}, but {trained}")
        if name not in present.columns:
            raise ValueError(f"{trained}; there is no table {name!r} (an empty one would do)")
        if present.columns[name] != columns:
            found = ", ".join(present.columns[name])
            raise ValueError(f"the table {name!r} has the columns {found}, but {trained}")


# -- readers of folders and databases --------------------------------------------------------------


def _tables_in(folder: Path, examples: str) -> dict[str, Path]:
    """Return the Parquet files, and folders of them, in a folder, by name; one holds the examples."""
    files = {
        path.stem if path.is_file() else path.name: path
        for path in sorted(folder.iterdir())
        if path.suffix == ".parquet" or path.is_dir()
    }
    if examples not in files:
        raise ValueError(
            f"{str(folder)!r} has no schema.json that describes its tables, nor a file "
            f"{examples + '.parquet'!r} with the examples; it has the tables "
            f"{', '.join(map(repr, files)) or 'none'}"
        )
    return files


def _read_files(
    files: Mapping[str, Path], of_examples: Path, where: Mapping[str, Any] | None
) -> tuple[dict[str, TableSource], pa.Table]:
    """Return the background tables and the examples of Parquet files, restricted by `where`."""
    condition = {column: pd.Series(values) for column, values in (where or {}).items()}
    for column, listed in condition.items():
        if listed.empty or listed.isna().any():
            raise ValueError(f"where: the column {column!r} needs one value or more, none missing")
    used: set[str] = set()

    def restricted(connection: Any, path: Path, what: str) -> TableSource:
        source = TableSource.of(path, what)
        with one_line_errors(f"{what}: {str(path)!r}"):
            present = describe(connection, source.sql) if condition else {}
        tests = [
            f"{quote_identifier(column)} IN ({', '.join(map(sql_value, listed.tolist()))})"
            for column, listed in condition.items()
            if column in present
        ]
        used.update(present)
        return TableSource(f"(SELECT * FROM {source.sql}{where_sql(tests)})") if tests else source

    with connect() as connection:
        examples = restricted(connection, of_examples, "examples")
        sources = {
            name: restricted(connection, path, f"table {name!r}") for name, path in files.items()
        }
        for column in condition:
            if column not in used:
                raise ValueError(f"where: no file has a column {column!r}")
        with one_line_errors(f"the file of the examples, {str(of_examples)!r},"):
            rows = connection.sql(f"SELECT * FROM {examples.sql}").to_arrow_table()
    return sources, rows


def _split_examples(
    rows: pa.Table, label: str | None, arguments: Sequence[str] | None
) -> tuple[pa.Table, np.ndarray | None, pd.DataFrame]:
    """Return a table of examples without its labels, the labels, and the columns that are not arguments."""
    labels = None
    if label in rows.column_names and label not in (arguments or ()):
        labels = rows.column(label).to_numpy()
        rows = rows.drop_columns([label])
    names = rows.column_names if arguments is None else arguments
    names = known_columns(names, rows.column_names, "the table of examples")
    extra = rows.drop_columns(names).to_pandas()
    extra.index = pd.RangeIndex(rows.num_rows)
    return rows, labels, extra


def _read_database(
    path: Path,
    examples: str,
    target: str,
    tables: Sequence[str] | None,
    arguments: Mapping[str, Sequence[str]],
    types: Mapping[str, Sequence[str | None]],
) -> tuple[dict[str, TableSource], pa.Table, dict[str, Sequence[str | None]]]:
    """Return the sources of a database file, its examples, and the types with those of foreign keys."""
    if not path.is_file():
        raise ValueError(f"there is no database file {str(path)!r}")
    file = str(path.resolve())
    of_examples = TableSource.of_database(file, examples)
    with connect() as connection:
        scan = of_examples.scan(connection)
        catalog = scan.split(".")[0]
        query = (
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_catalog = $1 AND table_schema = 'main' ORDER BY 1"
        )
        present = [row[0] for row in connection.execute(query, [catalog]).fetchall()]
        unknown = sorted({examples, *(tables or ())} - set(present))
        if unknown:
            raise ValueError(
                f"{file!r} has no table {', '.join(unknown)}; it has {', '.join(present)}"
            )
        rows = connection.sql(f"SELECT * FROM {scan}").to_arrow_table()
        names = tables if tables is not None else [name for name in present if name != examples]
        sources = {name: TableSource.of_database(file, name) for name in names}
        columns = {target: list(arguments.get(target) or rows.column_names)}
        for name, source in sources.items():
            columns[name] = list(arguments.get(name) or describe(connection, source.sql))
        predicate_of = {examples: target, **{name: name for name in names}}
        keys = [
            ((predicate_of[table], column), (predicate_of[other], referenced))
            for table, column, other, referenced in _foreign_keys(connection, catalog)
            if table in predicate_of and other in predicate_of
        ]
    return sources, rows, _tied_types(keys, columns, types)


def _foreign_keys(connection: Any, catalog: str) -> list[tuple[str, str, str, str]]:
    """Return the foreign keys of a database: table, column, table and column referred to."""
    query = (
        "SELECT table_name, unnest(constraint_column_names), referenced_table, "
        "unnest(referenced_column_names) "
        "FROM duckdb_constraints() WHERE database_name = $1 AND schema_name = 'main' "
        "AND constraint_type = 'FOREIGN KEY' ORDER BY table_name, constraint_index"
    )
    return connection.execute(query, [catalog]).fetchall()


def _tied_types(
    keys: Iterable[tuple[TableColumn, TableColumn]],
    columns: Mapping[str, Sequence[str]],
    declared: Mapping[str, Sequence[str | None]],
) -> dict[str, Sequence[str | None]]:
    """Return the declared types, and one type for each set of columns that foreign keys tie together.

    A set is named after one of its declared types, or after the column that is referred to.
    """
    given = {
        (name, column): declared_type
        for name, types in declared.items()
        for column, declared_type in zip(columns.get(name, ()), types, strict=False)
        if declared_type
    }
    groups: dict[TableColumn, list[TableColumn]] = {}
    for first, second in keys:
        merged = [*groups.get(second, [second]), *groups.get(first, [first])]
        groups.update(dict.fromkeys(merged, merged))

    def tied_type(column: TableColumn) -> str | None:
        group = groups.get(column, [])
        own = ".".join(group[0]) if group else None
        return next((given[member] for member in (column, *group) if member in given), own)

    tied = {name: [tied_type((name, column)) for column in own] for name, own in columns.items()}
    wrong = {
        name: types for name, types in declared.items() if len(types) != len(tied.get(name, ()))
    }
    return {**tied, **wrong}  # what is wrong is refused later
