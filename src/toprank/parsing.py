"""Numbers and dates that files write as text: currency and percent signs, decimal commas, days and months."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

__all__ = [
    "ParsedNumbers", "add_date_parts", "date_order", "date_parts", "date_source", "holds_text", "parse_dates",
    "parse_numbers", "read_dates", "truth_of",
]  # fmt: skip

TRUE_WORDS = frozenset({"true", "t", "yes", "y", "1", "on"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "0", "off"})

_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|AUD|CAD|NZD|BRL|ZAR|KRW|MXN|TRY|RON|ILS|SGD|HKD"
_CURRENCY = rf"[$\u00a2-\u00a5\u20a0-\u20cf]|{_CODES}|kr\.?"
_SPACES = " '\u00a0\u202f\u2019"
_DIGITS = {
    ".": rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,3}}(?:[{_SPACES}]\d{{3}})+|\d+)(?:\.\d*)?|\.\d+",
    ",": rf"(?:\d{{1,3}}(?:\.\d{{3}})+|\d{{1,3}}(?:[{_SPACES}]\d{{3}})+|\d+)(?:,\d*)?|,\d+",
}
_WRITTEN = {
    decimal: re.compile(
        rf"(?P<open>\()?(?P<sign>[+\u2212-]?)\s*(?P<before>{_CURRENCY})?\s*(?P<inner>[+\u2212-]?)"
        rf"(?P<digits>{digits})\s*(?:(?P<after>{_CURRENCY})|(?P<percent>%))?(?P<close>\))?"
    )
    for decimal, digits in _DIGITS.items()
}
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(
    r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?)?"
)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}.*)?")
_LOOKED_AT = 200  # cells that decide whether a column of text holds dates
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")


@dataclass(frozen=True, eq=False)
class ParsedNumbers:
    """Numbers that were read from text.

    Attributes
    ----------
    values : ndarray
        NaN where the text is missing.
    decimal : {".", ","}
        What separates the decimals.
    example : tuple of (str, float)
        A cell as it is written, and what it was read as.
    """

    values: np.ndarray
    decimal: str
    example: tuple[str, float]


def parse_numbers(cells: pd.Series, decimal: str | None = None) -> ParsedNumbers | None:
    """Read text such as "$1,234.50", "12,5" and "37%" as numbers; None if it is something else.

    All cells of a column must be numbers of one kind: in one currency at most, with a percent sign
    everywhere (beside plain zeros) or nowhere, with the same decimal separator. A percentage is a
    share: "37%" is 0.37. Where "1,234" could be meant either way, the comma separates thousands.
    Numbers without any sign or separator are not for this function: as text they may be codes.

    Parameters
    ----------
    cells : Series
        Text, with missing cells.
    decimal : {".", ","}, optional
        The decimal separator where it is known, as from the training rows.

    Returns
    -------
    parsed : ParsedNumbers or None

    Examples
    --------
    >>> parse_numbers(pd.Series(["$1,234.50", None, "$7"])).values.tolist()
    [1234.5, nan, 7.0]
    >>> parse_numbers(pd.Series(["1.234,50", "7,25"])).values.tolist()
    [1234.5, 7.25]
    >>> parse_numbers(pd.Series(["37%", "5%"])).values.tolist()
    [0.37, 0.05]
    >>> parse_numbers(pd.Series(["007", "012"])) is None, parse_numbers(pd.Series(["A1", "B2"])) is None
    (True, True)
    """
    codes, texts = _distinct_texts(cells)
    if not texts:
        return None
    for separator in (".", ",") if decimal is None else (decimal,):
        numbers = _read_all(texts, separator)
        if numbers is not None:
            signed = next((k for k, text in enumerate(texts) if not _PLAIN.fullmatch(text)), None)
            if signed is None and decimal is None:
                return None  # plain digits: DuckDB and pandas read those that are numbers
            values = np.append(numbers, np.nan)[codes]
            shown = signed or 0
            return ParsedNumbers(values, separator, (texts[shown], float(numbers[shown])))
    return None


def _distinct_texts(cells: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return the distinct texts and which of them each cell holds (-1: missing); none if any is no text."""
    try:
        codes, unique = pd.factorize(cells)
    except TypeError:  # lists and the like
        return np.empty(0, dtype=np.int64), []
    if not all(isinstance(value, str) for value in unique):
        return codes, []
    return codes, [str(value).strip() for value in unique]


def _read_all(texts: list[Any], decimal: str) -> np.ndarray | None:
    """Return the numbers that texts stand for; None unless all are of one kind."""
    numbers, currencies, percents, whole = [], set(), 0, 0
    for text in texts:
        if decimal == "." and _PLAIN.fullmatch(text):
            number = float(text)
            numbers.append(number)
            whole += number != 0
            continue
        found = _WRITTEN[decimal].fullmatch(text)
        if found is None or bool(found["open"]) != bool(found["close"]):
            return None
        digits = re.sub(f"[{_SPACES}{',' if decimal == '.' else '.'}]", "", found["digits"])
        number = float(digits.replace(",", "."))
        currencies |= {found["before"], found["after"]} - {None}
        if found["percent"]:
            percents += 1
            number /= 100
        else:
            whole += number != 0
        negative = found["open"] or any(
            c and c in "-\u2212" for c in (found["sign"], found["inner"])
        )
        numbers.append(-number if negative else number)
    if len(currencies) > 1 or (percents and (whole or currencies)):
        return None
    return np.array(numbers, dtype=np.float64)


def truth_of(cell: Any) -> bool | None:
    """Return what a word such as "yes" or "FALSE" says; None for other cells.

    Examples
    --------
    >>> truth_of("Yes"), truth_of("f"), truth_of("maybe")
    (True, False, None)
    """
    word = str(cell).strip().lower()
    return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None


def parse_dates(cells: pd.Series, order: str | None = None) -> tuple[pd.Series, str] | None:
    """Read text such as "31/12/2024" or "2024-12-31 23:59" as dates; None if any cell is something else.

    Days come before months if the cells allow it, except that slashes where both orders are possible put
    the month first. Years of two digits are read with slashes, or where there is a time of day.

    Parameters
    ----------
    cells : Series
        Text, with missing cells.
    order : str, optional
        The order of day, month and year where it is known, such as "%d/%m/%Y".

    Returns
    -------
    dates, order : Series and str, or None

    Examples
    --------
    >>> dates, order = parse_dates(pd.Series(["31.12.2024", None]))
    >>> dates.dt.month.tolist(), order
    ([12.0, nan], '%d.%m.%Y')
    >>> parse_dates(pd.Series(["1/31/13 9:05"]))[0].tolist()
    [Timestamp('2013-01-31 09:05:00')]
    >>> parse_dates(pd.Series(["2024", "soon"])) is None
    True
    """
    codes, texts = _distinct_texts(cells)
    found = [_DATE.fullmatch(text) for text in texts]
    if not texts or any(match is None for match in found):
        return None
    first = next(match for match in found if match is not None)
    mark = first[2]
    orders = [f"%Y{mark}%m{mark}%d"]
    if len(first[1]) < 4:
        year = "%Y" if len(first[4]) == 4 else "%y"
        if year == "%y" and mark != "/" and ":" not in first[0]:
            return None  # rather a code or a version
        orders = [f"%d{mark}%m{mark}{year}", f"%m{mark}%d{mark}{year}"]
        orders = orders[::-1] if mark == "/" else orders
    if order in orders:
        orders = [order]
    clean = pd.Series([text.replace("T", " ").removesuffix("Z") for text in texts])
    for tried in orders:
        for clock in _CLOCKS:
            dates = pd.to_datetime(clean, format=tried + clock, errors="coerce")
            if dates.notna().all():
                known = dates.to_numpy()
                values = np.append(known, np.array("NaT", dtype=known.dtype))[codes]
                return pd.Series(values, index=cells.index, name=cells.name), tried
    return None


# -- dates as numbers ------------------------------------------------------------------------------


def date_order(column: pd.Series) -> str | None:
    """Return the order of day, month and year in a column of dates, or None where it holds none.

    It is empty where the cells are dates by their type, or text that begins year-month-day.

    Examples
    --------
    >>> date_order(pd.Series(["24.12.2024", None])), date_order(pd.Series(["2024-12-24"]))
    ('%d.%m.%Y', '')
    >>> date_order(pd.Series(["red", "blue"])) is None
    True
    """
    kinds = pd.api.types
    if kinds.is_timedelta64_dtype(column.dtype) or kinds.is_datetime64_any_dtype(column.dtype):
        return ""
    if isinstance(column.dtype, pd.CategoricalDtype) or not holds_text(column):
        return None
    if _begins_with_year(column):
        return ""
    some = column.dropna().iloc[:_LOOKED_AT]
    parsed = parse_dates(column) if parse_dates(some) is not None else None
    return None if parsed is None else parsed[1]


def _begins_with_year(column: pd.Series) -> bool:
    """Whether the first cells of a column of text are dates written year-month-day."""
    some = column.dropna().iloc[:_LOOKED_AT]
    return len(some) > 0 and all(_ISO_DATE.fullmatch(str(cell)) for cell in some)


def read_dates(column: pd.Series, order: str = "") -> np.ndarray | None:
    """Return dates as days since 1970 (NaN where missing), or None where a column holds none.

    Numbers are taken for days already; text must be written in the order (see `date_order`).

    Examples
    --------
    >>> read_dates(pd.Series(["1970-01-02", None, "1970-01-03 12:00"])).tolist()
    [1.0, nan, 2.5]
    >>> read_dates(pd.Series(["1/3/1970"]), "%m/%d/%Y").tolist()
    [2.0]
    >>> read_dates(pd.Series(["red", "blue"])) is None
    True
    """
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return column.dt.total_seconds().to_numpy(dtype=np.float64) / 86_400
    moments = column
    if not pd.api.types.is_datetime64_any_dtype(column.dtype):
        if isinstance(column.dtype, pd.CategoricalDtype) or not holds_text(column):
            return None
        if _begins_with_year(column):
            moments = pd.to_datetime(
                column.astype(object), errors="coerce", utc=True, format="ISO8601"
            )
        elif (parsed := parse_dates(column, order)) is not None:
            moments = parsed[0]
        else:
            return None
    if getattr(moments.dt, "tz", None) is not None:
        moments = moments.dt.tz_convert("UTC").dt.tz_localize(None)
    days = (moments - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64, na_value=np.nan)


def holds_text(column: pd.Series) -> bool:
    """Whether the cells of a column may be text, by its type."""
    dtype = column.dtype
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_numeric_dtype(dtype):
        return False
    return bool(pd.api.types.is_string_dtype(dtype) or dtype.kind == "O")


DATE_PARTS = ("year", "month", "day", "weekday", "hour")
DISTANCE = "days_before"


def date_parts(table: pd.DataFrame, name: str, time: str | None = None) -> pd.DataFrame:
    """Return the parts of a column of dates as numbers, and its distance in days to the time of the row.

    The names of the new columns say how they are made, so that `add_date_parts` makes them again.

    Parameters
    ----------
    table : DataFrame
    name : str
        A column of dates.
    time : str, optional
        The column that says when the row happened.

    Returns
    -------
    parts : DataFrame
        `name.year`, `name.month`, `name.day`, `name.weekday` (0 for Monday), `name.hour` unless all dates
        are without a clock, and `name.days_before.time`.

    Examples
    --------
    >>> days = pd.to_datetime(["2024-01-31", "2024-02-01"])
    >>> table = pd.DataFrame({"opened": days, "paid": days + pd.Timedelta("36h")})
    >>> date_parts(table, "opened", "paid").iloc[0].to_dict()
    {'opened.year': 2024.0, 'opened.month': 1.0, 'opened.day': 31.0, 'opened.weekday': 2.0,
     'opened.days_before.paid': 1.5}
    """
    wanted = [f"{name}.{part}" for part in DATE_PARTS]
    clocks = table[name].dt.normalize() != table[name]
    if not (clocks & table[name].notna()).any():
        wanted.remove(f"{name}.hour")
    if time is not None:
        wanted.append(f"{name}.{DISTANCE}.{time}")
    return add_date_parts(table, wanted)[0][wanted]


def add_date_parts(
    table: pd.DataFrame, wanted: Sequence[str], orders: Mapping[str, str | None] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Add columns that `date_parts` named, as far as the table has what they are made of.

    Returns
    -------
    table : DataFrame
    used : list of str
        The columns of dates that were used.

    Examples
    --------
    >>> table = pd.DataFrame({"opened": ["31/12/2024"]})
    >>> add_date_parts(table, ["opened.month", "closed.month"])[0]["opened.month"].tolist()
    [12.0]
    """
    known: dict[str, pd.Series | None] = {}

    def dates(name: str) -> pd.Series | None:
        if name not in known:
            known[name] = (
                _as_dates(table[name], (orders or {}).get(name)) if name in table else None
            )
        return known[name]

    added = {}
    for column in wanted:
        name, _, part = column.rpartition(".")
        if part in DATE_PARTS and (found := dates(name)) is not None:
            cells = found.dt.day_of_week if part == "weekday" else getattr(found.dt, part)
            added[column] = cells.to_numpy(dtype=np.float64, na_value=np.nan)
            continue
        name, mark, time = column.partition(f".{DISTANCE}.")
        start, end = (dates(name), dates(time)) if mark else (None, None)
        if start is not None and end is not None:
            seconds = (end - start).dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan)
            added[column] = seconds / 86_400
    used = [name for name, found in known.items() if found is not None]
    return table.assign(**added) if added else table, used


def date_source(name: str) -> str:
    """Return the column of dates that a column named by `date_parts` is made from, else the name itself.

    Examples
    --------
    >>> date_source("opened.weekday"), date_source("opened.days_before.paid"), date_source("amount")
    ('opened', 'opened', 'amount')
    """
    source, mark, _ = name.partition(f".{DISTANCE}.")
    start, _, part = name.rpartition(".")
    return source if mark else start if part in DATE_PARTS else name


def _as_dates(column: pd.Series, order: str | None) -> pd.Series | None:
    """Return a column as dates without a time zone; None if it holds something else."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return column.dt.tz_convert("UTC").dt.tz_localize(None)
    if column.dtype.kind == "M":
        return column
    if not pd.api.types.is_string_dtype(column.dtype):
        return None
    parsed = parse_dates(column, order)
    return None if parsed is None else parsed[0]
