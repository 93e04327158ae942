"""The background facts as integers in DuckDB.

The constants of each type are numbered in the sorted order of their values, so every join is a join of
integers and nothing depends on the order in which rows came. Facts are distinct. A missing argument
stays NULL: it equals nothing, neither a constant nor a variable, but the fact itself still stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from toprank.parallel import thread_count
from toprank.rule import Scalar, quote_identifier
from toprank.rules.relational.kinds import common_type, kind_of
from toprank.rules.relational.modes import Predicate
from toprank.rules.relational.sources import ArrowSource, Source, connect, describe

__all__ = ["UNSEEN", "Background"]

UNSEEN = 2**31 - 2  # the code of constants that no fact holds: no join can meet it


class Background:
    """Facts, encoded when they are first asked for.

    Parameters
    ----------
    sources : mapping of str to Source
        Where the rows of each predicate are.
    predicates : sequence of Predicate
        Their columns and types.
    """

    def __init__(self, sources: Mapping[str, Source], predicates: Sequence[Predicate]) -> None:
        self.sources = dict(sources)
        self.predicates = tuple(predicates)
        self._clear()

    def _clear(self) -> None:
        self._connection: Any = None
        self._sql_types: dict[str, tuple[str, list[tuple[str, str]]]] = {}
        self._codes: dict[tuple[str, Any], int] = {}
        self._values: dict[tuple[str, int], Scalar] = {}
        self._sizes: dict[int, tuple[float, tuple[float, ...]]] = {}
        self._rows: dict[int, np.ndarray] = {}
        self._indexes: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self._projections: dict[tuple[int, tuple[int, ...]], str] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"sources": self.sources, "predicates": self.predicates}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clear()

    # -- tables -----------------------------------------------------------------------------------

    def cursor(self) -> Any:
        """A cursor on the encoded facts: table `fact_j` for predicate j, columns c0, c1, ..."""
        if self._connection is None:
            self._connection = self._build()
        return self._connection.cursor()

    @contextmanager
    def threads(self, n_jobs: int | None) -> Iterator[None]:
        """Let queries use so many threads for a while; what they answer does not depend on it."""
        wanted = thread_count(n_jobs)
        cursor = self.cursor()
        before = cursor.execute("SELECT current_setting('threads')").fetchall()[0][0]
        cursor.execute(f"SET threads = {wanted}")
        try:
            yield
        finally:
            cursor.execute(f"SET threads = {int(before)}")

    def type_table(self, name: str) -> str | None:
        """Name of the table (value, code) of a type; None when no fact has an argument of it."""
        self.cursor()
        known = list(self._sql_types)
        return f"type_{known.index(name)}" if name in known else None

    def projection(self, j: int, columns: Sequence[int]) -> str:
        """Table of the distinct values of some columns of a predicate; made once.

        It has the same column names. Where projecting joins no rows, it is the table of facts itself.
        """
        key = (j, tuple(columns))
        if key not in self._projections:
            self._projections[key] = self._project(j, key[1])
        return self._projections[key]

    def is_key(self, j: int, columns: Sequence[int]) -> bool:
        """Whether no two facts of a predicate agree in these columns."""
        return self.projection(j, columns) == f"fact_{j}"

    def _project(self, j: int, columns: tuple[int, ...]) -> str:
        facts = f"fact_{j}"
        if len(columns) == self.predicates[j].arity:
            return facts
        cursor, table = self.cursor(), f"fact_{j}_{'_'.join(map(str, columns))}"
        listed = ", ".join(f"c{p}" for p in columns) or "1 AS holds"
        cursor.execute(
            f"CREATE TABLE {table} AS SELECT DISTINCT {listed} FROM {facts} ORDER BY ALL"
        )
        sizes = cursor.execute(
            f"SELECT (SELECT count(*) FROM {table}), (SELECT count(*) FROM {facts})"
        )
        n_projected, n_facts = sizes.fetchone()
        if n_projected < n_facts or not columns:
            return table
        cursor.execute(f"DROP TABLE {table}")
        return facts

    def sizes(self, j: int) -> tuple[float, tuple[float, ...]]:
        """Number of facts of a predicate and, roughly, of distinct values of each column; at least 1."""
        self.cursor()
        return self._sizes[j]

    def rows(self, j: int) -> np.ndarray:
        """The facts of a predicate as an int32 array, sorted; -1 where an argument is missing."""
        if j not in self._rows:
            found = (
                self.cursor()
                .execute(f"SELECT * FROM fact_{j} ORDER BY ALL NULLS FIRST")
                .fetchnumpy()
            )
            columns = [np.ma.filled(column, -1) for column in found.values()]
            self._rows[j] = np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int32)
        return self._rows[j]

    def index(self, j: int, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Order of the facts of a predicate by one column, and the column in that order.

        Looking up the facts of one example takes microseconds so; a query for it takes milliseconds.
        """
        if (j, column) not in self._indexes:
            values = self.rows(j)[:, column]
            order = np.argsort(values, kind="stable")
            self._indexes[j, column] = order, values[order]
        return self._indexes[j, column]

    def _build(self) -> Any:
        connection = connect()
        scans, columns = {}, {}
        for predicate in self.predicates:
            scans[predicate.name] = self.sources[predicate.name].scan(connection)
            columns[predicate.name] = describe(connection, scans[predicate.name])
        self._sql_types = self._common_types(columns)
        for k, name in enumerate(self._sql_types):
            connection.execute(self._dictionary_sql(k, name, scans))
        for j, predicate in enumerate(self.predicates):
            connection.execute(self._facts_sql(j, predicate, scans[predicate.name]))
            counts = "".join(f", approx_count_distinct(c{p})" for p in range(predicate.arity))
            row = connection.execute(f"SELECT count(*){counts} FROM fact_{j}").fetchone()
            n_facts, *distinct = (max(float(count), 1.0) for count in row)
            self._sizes[j] = n_facts, tuple(min(count, n_facts) for count in distinct)
        return connection

    def _common_types(
        self, columns: Mapping[str, Mapping[str, str]]
    ) -> dict[str, tuple[str, list[tuple[str, str]]]]:
        """SQL type of each argument type, and the places (table.column, SQL type) it was seen in."""
        places: dict[str, list[tuple[str, str]]] = {}
        for predicate in self.predicates:
            for column, name in zip(predicate.columns, predicate.types, strict=True):
                place = f"{predicate.name}.{column}"
                places.setdefault(name, []).append((place, columns[predicate.name][column]))
        return {name: (common_type(name, found), found) for name, found in places.items()}

    def _dictionary_sql(self, k: int, name: str, scans: Mapping[str, str]) -> str:
        sql_type = self._sql_types[name][0]
        parts = [
            f"SELECT {_cell(column, sql_type)} AS value FROM {scans[predicate.name]}"
            for predicate in self.predicates
            for column, of_column in zip(predicate.columns, predicate.types, strict=True)
            if of_column == name
        ]
        return (
            f"CREATE TABLE type_{k} AS SELECT value, "
            "CAST(row_number() OVER (ORDER BY value) - 1 AS INTEGER) AS code FROM "
            f"(SELECT DISTINCT value FROM ({' UNION ALL '.join(parts)})) WHERE value IS NOT NULL"
        )

    def _facts_sql(self, j: int, predicate: Predicate, scan: str) -> str:
        known = list(self._sql_types)
        codes, joins = [], []
        for p, (column, name) in enumerate(zip(predicate.columns, predicate.types, strict=True)):
            codes.append(f"d{p}.code AS c{p}")
            joins.append(
                f"LEFT JOIN type_{known.index(name)} AS d{p} "
                f"ON d{p}.value = {_cell(column, self._sql_types[name][0], table='s')}"
            )
        return (
            f"CREATE TABLE fact_{j} AS SELECT DISTINCT {', '.join(codes)} "
            f"FROM {scan} AS s {' '.join(joins)} ORDER BY ALL"
        )

    # -- constants --------------------------------------------------------------------------------

    def encode(self, table: pa.Table, names: Sequence[str]) -> np.ndarray:
        """Codes of the columns of a table with argument types `names`; -1 where no fact has the value."""
        n_rows = table.num_rows
        codes = np.full((n_rows, len(names)), -1, dtype=np.int32)
        plain = table.rename_columns([f"a{k}" for k in range(len(names))])
        cursor = self.cursor()
        scan = ArrowSource(plain.append_column("row", pa.array(np.arange(n_rows)))).scan(cursor)
        sql_types = describe(cursor, scan)
        for k, (column, name) in enumerate(zip(table.column_names, names, strict=True)):
            place = (f"examples.{column}", sql_types[f"a{k}"])
            sql_type, places = self._sql_types.get(name, ("", []))
            common = common_type(name, [*places, place])  # refuses what cannot join
            if not places:
                continue
            value = "d.value" if common == sql_type else f"CAST(d.value AS {common})"
            found = cursor.execute(
                f"SELECT s.row AS row, d.code AS code FROM {scan} AS s "
                f"JOIN {self.type_table(name)} AS d ON {value} = {_cell(f'a{k}', common, table='s')}"
            ).fetchnumpy()
            codes[found["row"], k] = found["code"]
        cursor.unregister(scan)
        return codes

    def text_types(self, table: pa.Table, names: Sequence[str]) -> tuple[str, ...]:
        """Types that text and numbers share, in the facts or in a table of examples.

        Their values are compared as text.
        """
        cursor = self.cursor()
        scan = ArrowSource(table).scan(cursor)
        own = list(zip(names, describe(cursor, scan).values(), strict=True))
        cursor.unregister(scan)
        found = []
        for name, (_, places) in self._sql_types.items():
            sql_types = [t for _, t in places] + [t for given, t in own if given == name]
            kinds = {kind_of(sql_type) for sql_type in sql_types}
            if "text" in kinds and len(kinds) > 1:
                found.append(name)
        return tuple(found)

    def code(self, name: str, value: Scalar) -> int:
        """Code of one constant of a type; `UNSEEN` when no fact has it."""
        key = (name, (type(value), value))
        if key not in self._codes:
            table = self.type_table(name)
            row = None
            if table is not None:
                sql_type = _compared_as(value, self._sql_types[name][0])
                query = f"SELECT code FROM {table} WHERE CAST(value AS {sql_type}) = TRY_CAST($1 AS {sql_type})"
                row = self.cursor().execute(query, [value]).fetchone()
            self._codes[key] = UNSEEN if row is None else int(row[0])
        return self._codes[key]

    def values(self, name: str, codes: Iterable[int]) -> dict[int, Scalar]:
        """The constants of a type with these codes."""
        wanted = set(codes)
        missing = sorted(code for code in wanted if (name, code) not in self._values)
        if missing:
            codes_listed = ", ".join(map(str, missing))
            table = self.type_table(name)
            query = f"SELECT code, value FROM {table} WHERE code IN ({codes_listed})"
            for code, value in self.cursor().execute(query).fetchall():
                self._values[name, code] = value
        return {code: self._values[name, code] for code in wanted}


def _cell(column: str, sql_type: str, *, table: str | None = None) -> str:
    """A cell in the SQL type in which its argument type is compared; NaN becomes NULL."""
    cell = quote_identifier(column) if table is None else f"{table}.{quote_identifier(column)}"
    if sql_type == "DOUBLE":
        number = f"CAST({cell} AS DOUBLE)"
        return f"CASE WHEN isnan({number}) THEN NULL ELSE {number} END"
    return f"CAST({cell} AS {sql_type})"


def _compared_as(value: Scalar, sql_type: str) -> str:
    """SQL type in which a constant is compared with values: nothing is rounded, nothing fails."""
    if isinstance(value, str) or isinstance(value, bool) != (sql_type == "BOOLEAN"):
        return "VARCHAR"
    return "DOUBLE" if isinstance(value, float) and sql_type == "BIGINT" else sql_type
