"""The background facts: where their rows are, their integer codes in DuckDB, queries that can be stopped.

The constants of each argument type are numbered in the sorted order of their values, so every join is a
join of integers and nothing depends on the order of the rows. Facts are distinct. A missing argument
stays NULL: it equals nothing, neither a constant nor a variable, but its fact still counts.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from toprank import tables
from toprank.columns import as_frame, is_table
from toprank.parallel import thread_count
from toprank.rule import Scalar, quote_identifier, sql_value

if TYPE_CHECKING:
    from toprank.rules.relational.clause import CodedAggregate
    from toprank.rules.relational.schema import Predicate


UNSEEN = 2**31 - 2  # the code of constants that no fact holds: it joins with nothing
MEMORY_SHARE = 0.5  # of the machine's memory, for DuckDB
INTERRUPT_SECONDS = 0.05  # between attempts to stop a query: one not yet begun ignores them
BATCH_ROWS = 2**17  # of an answer that are handed over together


# -- where rows are --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TableSource:
    """The rows of a table: what to write after FROM, and what a connection needs to know before.

    It is plain data without a connection, so whatever holds it can be copied and pickled. Names and
    values of users are always quoted.
    """

    sql: str
    table: pa.Table | None = None  # in memory, to be registered under the name `sql`
    database: tuple[str, str] | None = None  # a file to be attached, and the name to give it

    @classmethod
    def of(cls, table: Any, what: str) -> TableSource:
        """Take a source, a table in memory, or the path of a Parquet file or of a folder of them."""
        if isinstance(table, (str, Path)):
            path = Path(table)
            files = sorted(path.glob("**/*.parquet")) if path.is_dir() else [path]
            if not files:
                raise ValueError(f"{what}: there is no Parquet file in {str(path)!r}")
            if not files[0].is_file():
                raise ValueError(f"{what}: there is no file {str(path)!r}")
            for file in files:
                tables.check_header(str(file), what)
            listed = ", ".join(sql_value(str(file.resolve())) for file in files)
            return cls(f"read_parquet([{listed}])")
        return table if isinstance(table, TableSource) else cls.of_arrow(as_arrow(table, what))

    @classmethod
    def of_arrow(cls, table: pa.Table) -> TableSource:
        return cls(f"memory_{uuid.uuid4().hex}", table)

    @classmethod
    def of_database(cls, path: str, table: str) -> TableSource:
        """Take a table or view of a DuckDB database file, which is opened for reading only."""
        catalog = f"file_{uuid.uuid5(uuid.NAMESPACE_URL, path).hex}"
        return cls(f"{catalog}.{quote_identifier(table)}", database=(path, catalog))

    def scan(self, connection: Any) -> str:
        """Make the rows known to a connection; return what to write after FROM."""
        if self.table is not None:
            connection.register(self.sql, self.table)
        if self.database is not None:
            path, catalog = self.database
            with one_line_errors(f"the database file {path!r}"):
                connection.execute(
                    f"ATTACH IF NOT EXISTS {sql_value(path)} AS {catalog} (READ_ONLY)"
                )
        return self.sql


def as_arrow(table: Any, what: str) -> pa.Table:
    """Return a pandas, Polars or Arrow table as an Arrow table (NaN counts as missing)."""
    if not is_table(table):
        raise TypeError(
            f"{what} must be a pandas, Polars or Arrow table, not {type(table).__name__}"
        )
    package = type(table).__module__.split(".")[0]
    if package == "pyarrow":
        converted = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    elif package == "polars":
        converted = (table.collect() if hasattr(table, "collect") else table).to_arrow()
    else:
        frame = as_frame(table)
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        try:
            converted = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
            raise ValueError(f"{what} has a column of mixed types: {error}") from None
    names = converted.column_names
    counts = Counter(name.lower() for name in names)
    repeated = [name for name in names if counts[name.lower()] > 1]
    if repeated:  # SQL could not tell them apart
        raise ValueError(
            f"{what} has columns whose names differ only in case, or not at all: "
            f"{', '.join(map(repr, repeated))}; rename them"
        )
    if "" in names:
        raise ValueError(f"{what} has a column without a name; give it one")
    # a column without any value says nothing about its type
    fields = [
        pa.field(f.name, pa.string()) if pa.types.is_null(f.type) else f for f in converted.schema
    ]
    return converted.cast(pa.schema(fields))


# -- connections -----------------------------------------------------------------------------------


def connect() -> Any:
    """Open an in-memory DuckDB that takes at most half of the machine's memory.

    What does not fit spills to a folder of temporary files.
    """
    connection = tables.connect()
    with suppress(AttributeError, ValueError, OSError):  # where the system does not say
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        connection.execute(f"SET memory_limit = '{int(total * MEMORY_SHARE / 2**20)}MiB'")
    spill = os.path.join(tempfile.gettempdir(), f"toprank-{uuid.uuid4().hex}")
    connection.execute(f"SET temp_directory = {sql_value(spill)}")
    connection.execute("SET preserve_insertion_order = false")
    return connection


def describe(connection: Any, scan: str) -> dict[str, str]:
    """Return the columns of a scan and their SQL types."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
    return {row[0]: str(row[1]).upper() for row in rows}


@contextmanager
def one_line_errors(what: str) -> Iterator[None]:
    """Turn DuckDB's error about something it cannot read into a ValueError of one line."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(f"{what} cannot be read: {reason}") from error


# -- values of columns -----------------------------------------------------------------------------

_SQL_TYPES = {
    "text": ("VARCHAR", "ENUM", "UUID", "CHAR", "TEXT"),
    "boolean": ("BOOLEAN",),
    "integer": (
        "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
    ),
    "large integer": ("UBIGINT", "HUGEINT", "UHUGEINT"),
    "float": ("FLOAT", "DOUBLE", "DECIMAL", "REAL"),
    "date": ("DATE",),
    "time of day": ("TIME", "TIME_NS"),
    "timestamp": ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "timestamp with time zone": ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"),
}  # fmt: skip
_AGGREGATE_SQL = {"min": "min", "max": "max", "sum": "sum", "mean": "avg"}
_COMPARED_AS = {"integer": "BIGINT", "float": "DOUBLE", "boolean": "BOOLEAN"}  # all others as text


def value_type(sql_type: str) -> str | None:
    """Return what the values of an SQL type are, or None for types that cannot be arguments."""
    if sql_type.endswith("]"):
        return None
    head = sql_type.split("(")[0].strip().upper()
    return next((name for name, heads in _SQL_TYPES.items() if head in heads), None)


def common_sql_type(name: str, columns: Sequence[tuple[str, str]]) -> str:
    """Return the SQL type in which all columns of one argument type are compared.

    `columns` holds pairs of "table.column" and an SQL type. Integers and text compare as text (17 and
    "17" are the same constant), integers and floats as floats; any other mixture does not join.
    """
    first_column: dict[str, str] = {}
    for column, sql_type in columns:
        values = value_type(sql_type)
        if values is None:
            raise ValueError(
                f"{column} holds {sql_type}, which cannot be the argument of a predicate; "
                "turn it into text or numbers, or leave the column out"
            )
        first_column.setdefault(values, column)
    if len(first_column) == 1:
        return _COMPARED_AS.get(next(iter(first_column)), "VARCHAR")
    if set(first_column) <= {"text", "integer", "large integer"}:
        return "VARCHAR"
    if set(first_column) <= {"integer", "large integer", "float"}:
        return "DOUBLE"
    shown = " but ".join(f"{column} holds {values}" for values, column in first_column.items())
    raise ValueError(
        f"the arguments of type {name!r} do not join: {shown}; give the columns different types, "
        "or convert their values to one type"
    )


# -- encoded facts ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArgumentType:
    """The constants of one argument type."""

    table: str  # (value, code) in DuckDB
    sql_type: str  # in which values are compared
    columns: tuple[tuple[str, str], ...]  # as "table.column", with their SQL types

    @property
    def is_number(self) -> bool:
        return self.sql_type in {"BIGINT", "DOUBLE"}


class Background:
    """The facts of some predicates, read from their sources and encoded when they are first asked for."""

    def __init__(self, sources: Mapping[str, TableSource], predicates: Sequence[Predicate]) -> None:
        self.sources = dict(sources)
        self.predicates = tuple(predicates)
        self._connection: Any = None
        self._types: dict[str, ArgumentType] = {}
        self._codes: dict[tuple[str, type, Scalar], int] = {}
        self._values: dict[tuple[str, int], Scalar] = {}
        self._sizes: dict[int, tuple[float, tuple[float, ...]]] = {}
        self._rows: dict[int, np.ndarray] = {}
        self._indexes: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self._projections: dict[tuple[int, tuple[int, ...]], str] = {}
        self._numbers: dict[str, np.ndarray | None] = {}
        self._aggregates: dict[CodedAggregate, str] = {}
        self._answers: dict[str, list[tuple[Any, ...]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Background, (self.sources, self.predicates)

    def cursor(self) -> Any:
        """Return a cursor on the encoded facts: table `fact_j` for predicate j, columns c0, c1, ..."""
        if self._connection is None:
            self._connection = self._encode_facts()
        return self._connection.cursor()

    @contextmanager
    def threads(self, n_jobs: int | None) -> Iterator[None]:
        """Let queries use as many threads as `n_jobs` stands for; their answers do not depend on it."""
        cursor = self.cursor()
        before = cursor.execute("SELECT current_setting('threads')").fetchall()[0][0]
        cursor.execute(f"SET threads = {thread_count(n_jobs)}")
        try:
            yield
        finally:
            cursor.execute(f"SET threads = {int(before)}")

    def _encode_facts(self) -> Any:
        """Open a connection and write the tables of constants and of facts."""
        connection = connect()
        scans = {p.name: self.sources[p.name].scan(connection) for p in self.predicates}
        columns: dict[str, list[tuple[str, str, str]]] = {}
        for predicate in self.predicates:
            sql_types = describe(connection, scans[predicate.name])
            for column, name in zip(predicate.columns, predicate.types, strict=True):
                found = (predicate.name, column, sql_types[column])
                columns.setdefault(name, []).append(found)
        for k, (name, of_type) in enumerate(columns.items()):
            listed = tuple((f"{table}.{column}", sql_type) for table, column, sql_type in of_type)
            known = ArgumentType(f"type_{k}", common_sql_type(name, listed), listed)
            values = " UNION ALL ".join(
                f"SELECT {_cell(column, known.sql_type)} AS value FROM {scans[table]}"
                for table, column, _ in of_type
            )
            connection.execute(
                f"CREATE TABLE {known.table} AS SELECT value, "
                "CAST(row_number() OVER (ORDER BY value) - 1 AS INTEGER) AS code "
                f"FROM (SELECT DISTINCT value FROM ({values})) WHERE value IS NOT NULL"
            )
            self._types[name] = known
        for j, predicate in enumerate(self.predicates):
            self._write_facts(connection, j, scans[predicate.name])
        return connection

    def _write_facts(self, connection: Any, j: int, scan: str) -> None:
        """Write the distinct facts of a predicate in codes, and count them."""
        predicate = self.predicates[j]
        codes, joins, counts = [], [], ["count(*)"]
        for p, (column, name) in enumerate(zip(predicate.columns, predicate.types, strict=True)):
            known = self._types[name]
            codes.append(f"d{p}.code AS c{p}")
            cell = _cell(column, known.sql_type, table="s")
            joins.append(f"LEFT JOIN {known.table} AS d{p} ON d{p}.value = {cell}")
            counts.append(f"approx_count_distinct(c{p})")
        connection.execute(
            f"CREATE TABLE fact_{j} AS SELECT DISTINCT {', '.join(codes)} "
            f"FROM {scan} AS s {' '.join(joins)} ORDER BY ALL"
        )
        row = connection.execute(f"SELECT {', '.join(counts)} FROM fact_{j}").fetchone()
        n_facts, *distinct = (max(float(count), 1.0) for count in row)
        self._sizes[j] = n_facts, tuple(min(count, n_facts) for count in distinct)

    # -- facts ------------------------------------------------------------------------------------

    def sizes(self, j: int) -> tuple[float, tuple[float, ...]]:
        """Return the number of facts of a predicate and, roughly, of distinct values by column (>= 1)."""
        self.cursor()
        return self._sizes[j]

    def rows(self, j: int) -> np.ndarray:
        """Return the facts of a predicate as a sorted int32 array; -1 where an argument is missing."""
        if j not in self._rows:
            query = f"SELECT * FROM fact_{j} ORDER BY ALL NULLS FIRST"
            found = self.cursor().execute(query).fetchnumpy()
            columns = [np.ma.filled(column, -1) for column in found.values()]
            self._rows[j] = np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int32)
        return self._rows[j]

    def index(self, j: int, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the order of a predicate's facts by one column, and the column in that order.

        The facts of one example are found in microseconds with it; a query takes milliseconds.
        """
        if (j, column) not in self._indexes:
            values = self.rows(j)[:, column]
            order = np.argsort(values, kind="stable").astype(np.int32)
            self._indexes[j, column] = order, values[order]
        return self._indexes[j, column]

    def projection(self, j: int, columns: Sequence[int]) -> str:
        """Return the table of the distinct values of some columns of a predicate; it is made once.

        It has the same column names. Where no two facts agree in the columns, it is the table of facts.
        """
        key = (j, tuple(columns))
        if key not in self._projections:
            facts, table = f"fact_{j}", f"fact_{j}_{'_'.join(map(str, columns))}"
            if len(columns) < self.predicates[j].arity:
                cursor = self.cursor()
                listed = ", ".join(f"c{p}" for p in columns) or "1 AS holds"
                cursor.execute(
                    f"CREATE TABLE {table} AS SELECT DISTINCT {listed} FROM {facts} ORDER BY ALL"
                )
                (n_projected,) = cursor.execute(f"SELECT count(*) FROM {table}").fetchone()
                (n_facts,) = cursor.execute(f"SELECT count(*) FROM {facts}").fetchone()
                if n_projected < n_facts or not columns:
                    facts = table
                else:
                    cursor.execute(f"DROP TABLE {table}")
            self._projections[key] = facts
        return self._projections[key]

    def is_key(self, j: int, columns: Sequence[int]) -> bool:
        """Return whether no two facts of a predicate agree in these columns."""
        return self.projection(j, columns) == f"fact_{j}"

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the facts; it is asked once."""
        if query not in self._answers:
            self._answers[query] = self.cursor().execute(query).fetchall()
        return self._answers[query]

    # -- constants --------------------------------------------------------------------------------

    def encode(self, table: pa.Table, types: Sequence[str]) -> np.ndarray:
        """Return the codes of the columns of a table.

        -1 stands for a missing value; values that no fact has get -2, -3, ..., equal ones of one type
        the same.
        """
        codes = np.full((table.num_rows, len(types)), -1, dtype=np.int32)
        unseen: dict[str, list[pd.DataFrame]] = {}
        numbered = table.rename_columns([f"a{k}" for k in range(len(types))])
        numbered = numbered.append_column("row", pa.array(np.arange(table.num_rows)))
        cursor = self.cursor()
        scan = TableSource.of_arrow(numbered).scan(cursor)
        sql_types = describe(cursor, scan)
        for k, (column, name) in enumerate(zip(table.column_names, types, strict=True)):
            given = (f"examples.{column}", sql_types[f"a{k}"])
            known = self._types.get(name)
            common = common_sql_type(name, [*(known.columns if known else ()), given])
            cell = _cell(f"a{k}", common, table="s")
            join, code = "", "NULL"
            if known is not None:
                value = "d.value" if common == known.sql_type else f"CAST(d.value AS {common})"
                join, code = f"LEFT JOIN {known.table} AS d ON {value} = {cell}", "d.code"
            found = cursor.execute(
                f"SELECT s.row AS row, CAST({code} AS INTEGER) AS code, "
                f"CASE WHEN {code} IS NULL THEN CAST({cell} AS VARCHAR) END AS value "
                f"FROM {scan} AS s {join}"
            ).df()
            joined = found[found["code"].notna()]
            codes[joined["row"], k] = joined["code"]
            others = found.loc[found["value"].notna(), ["row", "value"]]
            unseen.setdefault(name, []).append(others.assign(column=k))
        cursor.unregister(scan)
        for parts in unseen.values():
            rows = pd.concat(parts)
            codes[rows["row"], rows["column"]] = -2 - pd.factorize(rows["value"], sort=True)[0]
        return codes

    def numbers(self, name: str) -> np.ndarray | None:
        """Return the values of a type by code, ascending, as floats; None if they are no numbers."""
        if name not in self._numbers:
            cursor, known = self.cursor(), self._types.get(name)
            values = None
            if known is not None and known.is_number:
                query = f"SELECT value FROM {known.table} ORDER BY code"
                values = cursor.execute(query).fetchnumpy()["value"].astype(np.float64)
            self._numbers[name] = values
        return self._numbers[name]

    def aggregate_table(self, pattern: CodedAggregate) -> str:
        """Return the table of an aggregate, as in `aggregate_sql`; it is made once."""
        if pattern not in self._aggregates:
            table = f"aggregate_{len(self._aggregates)}"
            self.cursor().execute(f"CREATE TABLE {table} AS {self.aggregate_sql(pattern)}")
            self._aggregates[pattern] = table
        return self._aggregates[pattern]

    def aggregate_sql(self, pattern: CodedAggregate) -> str:
        """Return SQL of an aggregate, in which every constant is -1.

        Columns b0, b1, ... hold the variables that the aggregate shares with its clause (in the order
        of `pattern.variables`), k0, k1, ... the constants, n the value.
        """
        cells: dict[int, list[str]] = {}
        constants: list[str] = []
        tables = []
        for k, atom in enumerate(pattern.atoms):
            tables.append(f"fact_{atom.predicate} AS t{k}")
            for p, term in enumerate(atom.terms):
                (constants if term < 0 else cells.setdefault(term, [])).append(f"t{k}.c{p}")
        shared = pattern.variables
        grouped = {f"b{k}": cells[v][0] for k, v in enumerate(shared)}
        grouped.update({f"k{k}": cell for k, cell in enumerate(constants)})
        tests = [f"{other} = {first}" for first, *others in cells.values() for other in others]
        tests += [f"{cell} IS NOT NULL" for cell in grouped.values()]
        # facts are distinct, so a row of the join is a binding of all variables, each once
        value = "CAST(count(*) AS INTEGER)"
        if pattern.function != "count":
            of_type = self._type_of(pattern, pattern.variable)
            tables.append(f"{of_type.table} AS d")
            tests.append(f"d.code = {cells[pattern.variable][0]}")
            number = "d.value" if of_type.is_number else "NULL"
            value = f"{_AGGREGATE_SQL[pattern.function]}(CAST({number} AS DOUBLE))"
        columns = ", ".join(f"{cell} AS {name}" for name, cell in grouped.items())
        return (
            f"SELECT {columns}, {value} AS n FROM {', '.join(tables)} WHERE {' AND '.join(tests)} "
            f"GROUP BY {', '.join(grouped.values())}"
        )

    def _type_of(self, aggregate: CodedAggregate, variable: int) -> ArgumentType:
        atom = next(atom for atom in aggregate.atoms if variable in atom.terms)
        return self._types[self.predicates[atom.predicate].types[atom.terms.index(variable)]]

    def text_types(self, table: pa.Table, types: Sequence[str]) -> tuple[str, ...]:
        """Return the types that compare as text although some columns, or examples, hold numbers."""
        cursor = self.cursor()
        scan = TableSource.of_arrow(table).scan(cursor)
        found = {n: {value_type(t) for _, t in known.columns} for n, known in self._types.items()}
        for name, sql_type in zip(types, describe(cursor, scan).values(), strict=True):
            found.get(name, set()).add(value_type(sql_type))
        cursor.unregister(scan)
        return tuple(n for n, values in found.items() if "text" in values and len(values) > 1)

    def code(self, name: str, value: Scalar) -> int:
        """Return the code of one constant of a type; `UNSEEN` when no fact has it."""
        key = (name, type(value), value)
        if key not in self._codes:
            cursor, row = self.cursor(), None
            if name in self._types:
                known = self._types[name]
                compared = _compared_as(value, known.sql_type)
                row = cursor.execute(
                    f"SELECT code FROM {known.table} "
                    f"WHERE CAST(value AS {compared}) = TRY_CAST($1 AS {compared})",
                    [value],
                ).fetchone()
            self._codes[key] = UNSEEN if row is None else int(row[0])
        return self._codes[key]

    def value(self, name: str, code: int) -> Scalar:
        if (name, code) not in self._values:
            cursor = self.cursor()
            query = f"SELECT value FROM {self._types[name].table} WHERE code = {int(code)}"
            self._values[name, code] = cursor.execute(query).fetchone()[0]
        return self._values[name, code]


def _cell(column: str, sql_type: str, *, table: str | None = None) -> str:
    """Return SQL of a cell in the SQL type in which its argument type is compared.

    NaN and the infinities are no values: they become NULL.
    """
    cell = quote_identifier(column) if table is None else f"{table}.{quote_identifier(column)}"
    if sql_type == "DOUBLE":
        number = f"CAST({cell} AS DOUBLE)"
        return f"CASE WHEN isfinite({number}) THEN {number} END"
    return f"CAST({cell} AS {sql_type})"


def _compared_as(value: Scalar, sql_type: str) -> str:
    """Return the SQL type in which a constant is compared with values: nothing is rounded or fails."""
    if isinstance(value, str) or isinstance(value, bool) != (sql_type == "BOOLEAN"):
        return "VARCHAR"
    return "DOUBLE" if isinstance(value, float) and sql_type == "BIGINT" else sql_type


# -- queries that can be stopped -------------------------------------------------------------------


class TimeUpError(Exception):
    """The time of a search is up."""


class Queries:
    """Runs the queries of one cursor, each of which Ctrl-C or a deadline can stop.

    DuckDB knows no deadlines, and with several threads it may not react to Ctrl-C before a query has
    ended: the query runs in another thread while the caller waits and checks.
    """

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        self._pool = ThreadPoolExecutor(1)  # its thread starts with its first task

    def close(self) -> None:
        """Stop what still runs and end the other thread."""
        self._stop()
        self._pool.shutdown()

    def run(
        self, sql: str, take: Callable[[pa.RecordBatch], None], deadline: float = math.inf
    ) -> None:
        """Run a query and hand over its rows batch by batch: there may be more than fit memory.

        Past the deadline (on the clock of `time.monotonic`) it is stopped and `TimeUpError` raised.
        """
        if time.monotonic() >= deadline:
            raise TimeUpError

        def work() -> None:
            for batch in self.cursor.sql(sql).to_arrow_reader(BATCH_ROWS):
                take(batch)

        try:
            running = self._pool.submit(work)
            # in short waits: where signal handlers restart system calls, as Polars' do, Ctrl-C would
            # not end a wait without a limit
            while not wait([running], INTERRUPT_SECONDS).done and time.monotonic() < deadline:
                pass
        except BaseException:  # Ctrl-C, for one: the query may run or wait to run
            self._stop()
            raise
        if not running.done():
            self._stop()
            raise TimeUpError
        running.result()

    def _stop(self) -> None:
        """Interrupt until the thread has worked through its tasks: a query not yet begun ignores it."""
        last = self._pool.submit(int)
        while not wait([last], INTERRUPT_SECONDS).done:
            self.cursor.interrupt()
