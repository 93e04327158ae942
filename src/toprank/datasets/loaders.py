"""Data sets: what they look like, the catalogue, and how one is loaded from a folder or from OpenML."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = [
    "Dataset",
    "RelationalDataset",
    "catalogue",
    "describe",
    "find",
    "load",
    "load_relational",
]

FOLDER_VARIABLE = "TOPRANK_DATA"
_SPLIT_COLUMNS = ("split", "fold_split", "part", "fold", "subset")
_TIME_COLUMNS = ("Time",)


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


# -- the catalogue -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue, for the task "binary", "queries" or "relational"."""

    name: str
    task: str
    rows: int
    features: int  # background predicates of relational data
    positives: int  # rows with a relevance above 0
    positive_class: str
    licence: str
    source: str
    note: str
    openml_id: int | None  # None where no copy on OpenML is known to be the same

    @property
    def description(self) -> str:
        """Source, positive class, note and licence in one paragraph."""
        parts = (
            self.source,
            f"positive: {self.positive_class}",
            self.note,
            f"licence: {self.licence}",
        )
        return "; ".join(filter(None, parts))


@cache
def catalogue() -> dict[str, Entry]:
    """Return all entries by name.

    Examples
    --------
    >>> catalogue()["pima"].positives
    268
    """
    entries = {}
    with files("toprank.datasets").joinpath("catalogue.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            values: dict[str, Any] = {**line, "openml_id": line["openml_id"] or None}
            for name in ("rows", "features", "positives", "openml_id"):
                values[name] = values[name] and int(values[name])
            entries[line["name"]] = Entry(**values)
    return entries


def find(name: str) -> Entry:
    """Return the entry called `name`; a folder before the name, as in relational/uwcse, may stay."""
    entries = catalogue()
    short = str(name).removeprefix("relational/")
    if short not in entries:
        near = get_close_matches(short, entries, n=3)
        hint = f"; did you mean {', '.join(near)}" if near else ""
        raise ValueError(
            f"unknown data set {name!r}{hint}; toprank.datasets.describe() lists all of them"
        )
    return entries[short]


def describe() -> pd.DataFrame:
    """Return a table of all data sets that `load` and `load_relational` know.

    Returns
    -------
    table : DataFrame
        Indexed by name: task, rows, features, positives, share of positives, positive class, OpenML
        id (missing where there is none), licence, source, note.

    Examples
    --------
    >>> table = describe()
    >>> table.loc["wdbc", ["rows", "features", "positives"]].tolist()
    [569, 30, 212]
    """
    table = pd.DataFrame([asdict(entry) for entry in catalogue().values()]).set_index("name")
    table["openml_id"] = table["openml_id"].astype("Int64")
    table.insert(4, "positive_share", (table["positives"] / table["rows"]).round(5))
    return table


# -- loading -------------------------------------------------------------------------------------------


def load(name: str, *, as_frame: bool = True, data_home: Any = None) -> Dataset | RelationalDataset:
    """Load a data set of the catalogue.

    It is read from the folder named by the environment variable TOPRANK_DATA (`<name>.parquet`, or
    `relational/<name>/` with one Parquet file for each predicate). If it is not there, it comes from
    OpenML through scikit-learn, which keeps a copy; not all data sets are there. Features from OpenML
    have its column names.

    Parameters
    ----------
    name : str
        One of the names of `describe`.
    as_frame : bool, default=True
        Whether `X` is a DataFrame; otherwise it is an array, of floats if all columns are numbers.
    data_home : path, optional
        scikit-learn's cache folder, for OpenML.

    Returns
    -------
    data : Dataset, or RelationalDataset for relational data

    Raises
    ------
    ValueError
        If the name is unknown, or a file is not what it should be.
    FileNotFoundError
        If the data is in neither place; the message says how to get it.

    Examples
    --------
    >>> from toprank.datasets import load
    >>> data = load("pima")  # doctest: +SKIP
    >>> data  # doctest: +SKIP
    Dataset('pima', rows=768, features=8, positives=268)
    """
    entry = find(name)
    if entry.task == "relational":
        return load_relational(entry.name)
    path = _local(f"{entry.name}.parquet")
    data = _from_parquet(entry, path) if path is not None else _from_openml(entry, data_home)
    if as_frame:
        return data
    if all(map(pd.api.types.is_numeric_dtype, data.X.dtypes)):
        return replace(data, X=data.X.to_numpy(dtype=np.float64, na_value=np.nan))
    return replace(data, X=data.X.to_numpy(dtype=object))


def load_relational(name: str) -> RelationalDataset:
    """Load relational data of the catalogue from the folder named by TOPRANK_DATA.

    Parameters
    ----------
    name : str
        One of the names of `describe` with the task "relational".

    Returns
    -------
    data : RelationalDataset

    Raises
    ------
    ValueError
        If the name is unknown or not relational.
    FileNotFoundError
        If the data is not in the folder.

    Examples
    --------
    >>> from toprank.datasets import load_relational
    >>> data = load_relational("uwcse")  # doctest: +SKIP
    """
    entry = find(name)
    if entry.task != "relational":
        raise ValueError(f"{entry.name} is one table, not relational data: use load({name!r})")
    folder = _local(f"relational/{entry.name}")
    if folder is None:
        raise FileNotFoundError(_how_to_get(entry))
    schema = json.loads(_existing(folder / "schema.json").read_text(encoding="utf-8"))
    tables = {name: _read(folder / facts["file"]) for name, facts in schema["predicates"].items()}
    arguments = schema["examples"]["arguments"]
    rows = _read(folder / schema["examples"]["file"], [*arguments, "target"])
    y = rows["target"].to_numpy(dtype=np.int8)
    _check_size(entry, len(y), len(tables), int(y.sum()), folder)
    return RelationalDataset(
        name=entry.name,
        tables=tables,
        examples=rows[arguments],
        y=y,
        schema=schema,
        extra=rows.drop(columns=[*arguments, "target"]),
        description=entry.description,
    )


def _local(relative: str) -> Path | None:
    """Return the path inside the data folder, if there is such a folder and path."""
    folder = os.environ.get(FOLDER_VARIABLE)
    path = Path(folder) / relative if folder else None
    return path if path and path.exists() else None


def _from_parquet(entry: Entry, path: Path) -> Dataset:
    """Read a file, and split its columns into features, labels, queries and others."""
    needed = ["relevance", "qid"] if entry.task == "queries" else ["target"]
    frame, label = _read(path, needed), needed[0]
    splits = [column for column in _SPLIT_COLUMNS if column in frame.columns]
    X = frame.drop(columns=[*needed, *splits])
    y = frame[label].to_numpy()
    _check_size(entry, *X.shape, int(np.count_nonzero(y)), path)
    qid = frame["qid"].to_numpy() if entry.task == "queries" else None
    extra = frame[[*splits, *_times(X)]]
    return Dataset(entry.name, X, y, qid, extra, entry.description)


def _from_openml(entry: Entry, data_home: Any) -> Dataset:
    """Fetch a data set from OpenML, if it has it; otherwise say both ways to get it."""
    if entry.openml_id is None:
        raise FileNotFoundError(_how_to_get(entry))
    try:
        X, y = _fetch(entry, data_home)
    except OSError as error:  # no connection, or the server does not answer
        raise FileNotFoundError(f"{_how_to_get(entry)} (OpenML: {error})") from error
    source = f"OpenML {entry.openml_id}"
    hint = f"; it has changed; set {FOLDER_VARIABLE} to a folder that holds the data set"
    _check_size(entry, *X.shape, int(y.sum()), source, hint)
    description = f"{entry.description}; {source}"
    return Dataset(entry.name, X, y, extra=X[_times(X)], description=description)


def _times(X: pd.DataFrame) -> list[str]:
    """Return features that are times of the rows too, so that splits by time find them in `extra`."""
    return [column for column in _TIME_COLUMNS if column in X.columns]


def _how_to_get(entry: Entry) -> str:
    """Say where the data can come from."""
    relational = entry.task == "relational"
    place = f"relational/{entry.name}/" if relational else f"{entry.name}.parquet"
    folder = os.environ.get(FOLDER_VARIABLE)
    state = f"is set to {folder}, which lacks it" if folder else "is not set"
    local = (
        f"data set {entry.name!r} not found: set {FOLDER_VARIABLE} to a folder that holds "
        f"{place} ({FOLDER_VARIABLE} {state})"
    )
    if entry.openml_id is None:
        return f"{local}; no copy on OpenML is known to be the same, so that is the only way"
    return f"{local}, or connect to the internet to fetch it from OpenML (id {entry.openml_id})"


def _existing(path: Path) -> Path:
    """Return the path if it exists."""
    if not path.exists():
        raise ValueError(f"{path} is missing: the data set is incomplete")
    return path


def _read(path: Path, needed: Sequence[str] = ()) -> pd.DataFrame:
    """Read a Parquet file that must have some columns."""
    import pyarrow as pa

    try:
        frame = pd.read_parquet(_existing(path))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error
    missing = [column for column in needed if column not in frame.columns]
    if missing:
        raise ValueError(f"{path} has no column {', '.join(map(repr, missing))}")
    return frame


def _check_size(
    entry: Entry, rows: int, features: int, positives: int, source: Any, hint: str = ""
) -> None:
    """Refuse data that is not the data set of the catalogue."""
    if (rows, features, positives) != (entry.rows, entry.features, entry.positives):
        raise ValueError(
            f"{source} is not the data set {entry.name!r} of the catalogue: it has {rows} rows, "
            f"{features} features and {positives} positives instead of {entry.rows}, "
            f"{entry.features} and {entry.positives}{hint}"
        )


# -- OpenML --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """How an OpenML table becomes one of ours."""

    positive: tuple[str, ...] = ()  # target values; numbers are compared as numbers
    negative: tuple[str, ...] = ()  # empty for all others; rows with other values are left out
    at_least: float | None = None  # of a numeric target: positive from here up
    target: str = "default-target"
    columns: tuple[int | None, int | None] = (None, None)  # the first, and the one after the last
    complete: bool = False  # leave out rows with missing values


RECIPES: dict[str, Recipe] = {
    "a9a": Recipe(("1",)),
    "australian": Recipe(("1",)),
    "auto_mpg": Recipe(at_least=22.0, complete=True),
    "breast_cancer_ljubljana": Recipe(("recurrence-events",)),
    "breast_cancer_wisconsin": Recipe(("malignant",)),
    "congressional_vote": Recipe(("republican",)),
    "covtype_4_vs_2": Recipe(("4",), ("2",), columns=(0, 10)),
    "covtype_4_vs_rest_nominal": Recipe(("4",), columns=(10, None)),
    "creditcard_fraud": Recipe(("1",), target="Class"),
    "german_credit": Recipe(("good",)),
    "hepatitis": Recipe(("DIE",)),
    "ionosphere": Recipe(("b",)),
    "japanese_credit_crx": Recipe(("+",)),
    "letter_img_z": Recipe(("Z",)),
    "pima": Recipe(("tested_positive",)),
    "statlog_heart": Recipe(("present",)),
    "wdbc": Recipe(("2",)),
}


def _fetch(entry: Entry, data_home: Any) -> tuple[pd.DataFrame, np.ndarray]:
    """Fetch features and labels of 0 and 1 from OpenML, through scikit-learn's cache."""
    import sklearn.datasets

    recipe = RECIPES[entry.name]
    bunch = sklearn.datasets.fetch_openml(
        data_id=entry.openml_id,
        target_column=recipe.target,
        data_home=data_home,
        as_frame="auto",
        parser="auto",
    )
    X = _as_frame(bunch.data, bunch.feature_names).iloc[:, slice(*recipe.columns)]
    labels = np.array([_label_text(label) for label in np.asarray(bunch.target, dtype=object)])
    keep = np.ones(len(X), dtype=bool)
    if recipe.complete:
        keep &= X.notna().all(axis=1).to_numpy()
    if recipe.at_least is not None:
        y = labels.astype(float) >= recipe.at_least
    else:
        y = np.isin(labels, recipe.positive)
        if recipe.negative:
            keep &= y | np.isin(labels, recipe.negative)
    return X.loc[keep].reset_index(drop=True), y[keep].astype(np.int8)


def _as_frame(data: Any, names: list[str]) -> pd.DataFrame:
    """Return a frame with numbers where all categories are numbers, and text elsewhere."""
    if not isinstance(data, pd.DataFrame):
        dense = data.toarray() if hasattr(data, "toarray") else np.asarray(data)
        return pd.DataFrame(dense, columns=list(names))
    columns = dict(data.items())
    for name, column in data.select_dtypes("category").items():
        numbers = pd.to_numeric(pd.Series(column.cat.categories), errors="coerce")
        if numbers.notna().all():
            columns[name] = column.cat.rename_categories(numbers.tolist()).astype(float)
        else:
            columns[name] = column.astype("str")
    return pd.DataFrame(columns)


def _label_text(label: Any) -> str:
    """Return a label as text: 1, 1.0 and "1.0" are all "1"."""
    try:
        number = float(label)
    except (TypeError, ValueError):
        return str(label)
    return str(int(number)) if number.is_integer() else str(number)
