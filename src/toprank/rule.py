"""Rules: frozen conjunctions of literals over a table.

A rule is plain data with two evaluators, a mask over a table and SQL text for any database, and one
way to print. It is never parsed from a string. Missing cells are NaN or None in tables and NULL in
SQL; a literal is false for them unless it says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toprank.columns import as_frame, is_table

__all__ = ["DIALECTS", "Literal", "Rule", "find_dialect", "quote_identifier", "sql_value"]

Scalar = str | int | float | bool

_COMPARE = {"<=": np.less_equal, ">": np.greater, "<": np.less, ">=": np.greater_equal}
OPERATORS = (*_COMPARE, "=", "!=", "in", "not in", "is missing", "is present")


@dataclass(frozen=True)
class Dialect:
    """How a database writes text and names.

    Attributes
    ----------
    quote : str
        Before and after a name.
    escapes : bool
        Whether a backslash in text is the start of an escape.
    escaped_quote : str
        A quote inside text.
    escaped_names : bool
        Whether a quote inside a name is escaped by a backslash and not doubled.
    number, text : str
        The types of floats and of text.
    """

    quote: str = '"'
    escapes: bool = False
    escaped_quote: str = "''"
    escaped_names: bool = False
    number: str = "DOUBLE PRECISION"
    text: str = "VARCHAR"


STANDARD = Dialect()
DIALECTS: dict[str, Dialect] = {
    **dict.fromkeys(("duckdb", "postgres", "sqlite", "trino"), STANDARD),
    "mysql": Dialect("`", True, text="CHAR"),
    "bigquery": Dialect("`", True, "\\'", True, "FLOAT64", "STRING"),
    "databricks": Dialect("`", True, "\\'", False, "DOUBLE", "STRING"),
    "clickhouse": Dialect("`", True, "\\'", True, "Float64", "String"),
    "snowflake": Dialect(escapes=True),
    "redshift": Dialect(escapes=True),
}


def find_dialect(name: str | None) -> Dialect:
    """Return the dialect of a database; None is standard SQL."""
    if name is not None and name not in DIALECTS:
        raise ValueError(f"unknown dialect {name!r}; known: {', '.join(sorted(DIALECTS))}")
    return STANDARD if name is None else DIALECTS[name]


def quote_identifier(name: str, dialect: str | None = None) -> str:
    """Quote a column or table name for SQL, whatever characters it has.

    Examples
    --------
    >>> print(quote_identifier('say "hi"; drop'), quote_identifier("a`b", "mysql"))
    "say ""hi""; drop" `a``b`
    """
    if "\0" in name:
        raise ValueError("a name cannot hold a NUL character")
    known = find_dialect(dialect)
    quote = known.quote
    if known.escaped_names:
        return quote + _escape(name).replace(quote, "\\" + quote) + quote
    return quote + name.replace(quote, 2 * quote) + quote


def _escape(text: str) -> str:
    """Escape backslashes and line breaks by backslashes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def sql_value(value: Scalar, dialect: str | None = "duckdb") -> str:
    """Write a value as an SQL literal; floats keep every bit.

    Parameters
    ----------
    value : number, str or bool
    dialect : str or None
        The database; None is what all of them read alike, and text with a backslash is refused then,
        since some take it as the start of an escape.

    Examples
    --------
    >>> sql_value("O'Neil"), sql_value(0.1), sql_value(True), sql_value(3)
    ("'O''Neil'", '0.1e0', 'TRUE', '3')
    >>> print(sql_value("it" + chr(92), "mysql"), sql_value("it" + chr(92), "postgres"))
    'it\\\\' 'it\\'
    """
    value = value.item() if isinstance(value, np.generic) else value
    known = find_dialect(dialect)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not np.isfinite(value):
            if dialect == "mysql":
                raise ValueError(f"MySQL has no number {value}; leave out the rule that names it")
            return f"CAST('{value}' AS {known.number})"
        text = repr(value)
        return text if "e" in text else text + "e0"
    return _sql_text(str(value), dialect, known)


def _sql_text(text: str, dialect: str | None, known: Dialect) -> str:
    """Write text as a literal that ends where it should."""
    if "\0" in text:
        raise ValueError(f"{text[:40]!r} holds a NUL character, which no database takes in SQL")
    if dialect is None and "\\" in text:
        raise ValueError(
            f"{text[:40]!r} holds a backslash, which some databases take as the start of an escape: name "
            f"yours with dialect=, one of {', '.join(sorted(DIALECTS))}"
        )
    if known.escapes:
        text = _escape(text)
    return "'" + text.replace("'", known.escaped_quote) + "'"


@dataclass(frozen=True, slots=True)
class Literal:
    """One condition on one column.

    Parameters
    ----------
    column : str
    operator : {"<=", ">", "<", ">=", "=", "!=", "in", "not in", "is missing", "is present"}
    value : number, str or tuple, optional
        What the column is compared with; a tuple for "in" and "not in".
    or_missing : bool, default=False
        Whether the condition also holds where the cell is missing.

    Examples
    --------
    >>> print(Literal("amount", ">", 900.0))
    amount > 900
    >>> print(Literal("country", "in", ("NL", "DE"), or_missing=True).sql())
    ("country" IN ('NL', 'DE') OR "country" IS NULL)
    """

    column: str
    operator: str
    value: Scalar | tuple[Scalar, ...] | None = None
    or_missing: bool = False

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"unknown operator {self.operator!r}; known: {', '.join(OPERATORS)}")
        takes_many = self.operator in {"in", "not in"}
        if takes_many != isinstance(self.value, tuple):
            raise ValueError(
                f"operator {self.operator!r} takes {'a tuple' if takes_many else 'one value'}"
            )

    def mask(self, column: Any) -> np.ndarray:
        """Return where the literal holds, for the cells of its column."""
        cells = pd.Series(column)
        missing = cells.isna().to_numpy(dtype=bool)
        if self.operator == "is missing":
            return missing
        if self.operator == "is present":
            return ~missing
        holds = np.zeros(len(cells), dtype=bool)
        present = cells[~missing]
        holds[~missing] = self._holds(present)
        return holds | missing if self.or_missing else holds

    def _holds(self, cells: pd.Series) -> np.ndarray:
        """Return where the condition holds, for cells that are present."""
        if self.operator in _COMPARE:
            bound = float(self.value)  # type: ignore[arg-type]
            return _COMPARE[self.operator](cells.to_numpy(dtype=np.float64), bound)
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        inside = _as_values(cells, values).isin(list(values)).to_numpy(dtype=bool)
        return ~inside if self.operator in {"!=", "not in"} else inside

    def sql(self, *, table: str | None = None, dialect: str | None = None) -> str:
        """Write the literal as an SQL condition, in the dialect of a database (`sql_value`)."""
        column = quote_identifier(self.column, dialect)
        if table is not None:
            column = f"{quote_identifier(table, dialect)}.{column}"
        if self.operator == "is missing":
            return f"{column} IS NULL"
        if self.operator == "is present":
            return f"{column} IS NOT NULL"
        condition = f"{column} {self._sql_comparison(dialect)}"
        return f"({condition} OR {column} IS NULL)" if self.or_missing else condition

    def _sql_comparison(self, dialect: str | None) -> str:
        if isinstance(self.value, tuple):
            if not self.value:
                raise ValueError(f"the literal on {self.column!r} compares with no value at all")
            values = ", ".join(sql_value(v, dialect) for v in self.value)
            return f"{self.operator.upper()} ({values})"
        assert self.value is not None
        operator = "<>" if self.operator == "!=" else self.operator
        return f"{operator} {sql_value(self.value, dialect)}"

    def __str__(self) -> str:
        if self.operator in {"is missing", "is present"}:
            return f"{self.column} {self.operator}"
        if isinstance(self.value, tuple):
            shown = "{" + ", ".join(_show(v) for v in self.value) + "}"
        else:
            shown = _show(self.value)
        text = f"{self.column} {self.operator} {shown}"
        return f"({text} or missing)" if self.or_missing else text


@dataclass(frozen=True, slots=True)
class Rule:
    """A conjunction of literals; the empty rule holds everywhere.

    Examples
    --------
    >>> import pandas as pd
    >>> rule = Rule((Literal("amount", ">", 900.0), Literal("country", "=", "XX")))
    >>> print(rule)
    amount > 900 and country = 'XX'
    >>> rule.mask(pd.DataFrame({"amount": [1000, 1000], "country": ["XX", "NL"]})).tolist()
    [True, False]
    >>> print(rule.sql())
    "amount" > 900.0e0 AND "country" = 'XX'
    """

    literals: tuple[Literal, ...] = ()

    def mask(self, table: Any) -> np.ndarray:
        """Return which rows of a table it covers; the columns of an array are x0, x1, ..."""
        frame = as_frame(table) if is_table(table) else _array_frame(table)
        unknown = sorted({lit.column for lit in self.literals} - set(map(str, frame.columns)))
        if unknown:
            raise ValueError(
                f"the rule names columns the table does not have: {', '.join(unknown)}; "
                f"the table has {', '.join(map(str, frame.columns))}"
            )
        position = {str(name): j for j, name in enumerate(frame.columns)}
        covered = np.ones(len(frame), dtype=bool)
        for literal in self.literals:
            covered &= literal.mask(frame.iloc[:, position[literal.column]])
        return covered

    def sql(self, *, table: str | None = None, dialect: str | None = None) -> str:
        """Write the rule as an SQL condition (`TRUE` for the empty rule).

        Parameters
        ----------
        table : str, optional
            Name or alias before each column.
        dialect : str, optional
            The database that will read it: one of `toprank.rule.DIALECTS`. By default only what all of
            them read alike is written, and text with a backslash is refused.
        """
        parts = [literal.sql(table=table, dialect=dialect) for literal in self.literals]
        return " AND ".join(parts) or "TRUE"

    def __and__(self, other: Rule | Literal) -> Rule:
        more = other.literals if isinstance(other, Rule) else (other,)
        return Rule(self.literals + more)

    def __len__(self) -> int:
        return len(self.literals)

    def __str__(self) -> str:
        return " and ".join(map(str, self.literals)) or "every row"


def _as_values(cells: pd.Series, values: tuple[Any, ...]) -> pd.Series:
    """Return the cells as text where they are compared with text."""
    if all(isinstance(v, str) for v in values):
        return cells.astype(object).map(str)
    return cells


def _array_frame(array: Any) -> pd.DataFrame:
    array = np.asarray(array)
    return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])


def _show(value: Any) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:.6g}"
    return "'" + str(value) + "'"
