"""Load the data sets of the catalogue from a folder of Parquet files, or from OpenML."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toprank.datasets._base import Dataset, RelationalDataset
from toprank.datasets.catalogue import Entry, find

__all__ = ["FOLDER_VARIABLE", "load", "load_relational"]

FOLDER_VARIABLE = "TOPRANK_DATA"
_SPLIT_COLUMNS = ("split", "fold_split", "part", "fold", "subset")
_TIME_COLUMNS = ("Time",)


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
    return Dataset(data.name, _as_array(data.X), data.y, data.qid, data.extra, data.description)


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
    tables = {
        predicate: _read(_existing(folder / facts["file"]))
        for predicate, facts in schema["predicates"].items()
    }
    rows = _read(_existing(folder / schema["examples"]["file"]))
    arguments = schema["examples"]["arguments"]
    _check_columns(rows, [*arguments, "target"], folder)
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
    """The path inside the data folder, if there is such a folder and path."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    path = Path(folder) / relative
    return path if path.exists() else None


def _from_parquet(entry: Entry, path: Path) -> Dataset:
    """Split a file's columns into features, labels, queries and the rest."""
    frame = _read(path)
    label = "relevance" if entry.task == "queries" else "target"
    needed = [label, "qid"] if entry.task == "queries" else [label]
    _check_columns(frame, needed, path)
    splits = [column for column in _SPLIT_COLUMNS if column in frame.columns]
    X = frame.drop(columns=[*needed, *splits])
    y = frame[label].to_numpy()
    _check_size(entry, *X.shape, int(np.count_nonzero(y)), path)
    qid = frame["qid"].to_numpy() if entry.task == "queries" else None
    extra = frame[[*splits, *_times(X)]]
    return Dataset(entry.name, X, y, qid, extra, entry.description)


def _from_openml(entry: Entry, data_home: Any) -> Dataset:
    """Fetch from OpenML if it has the data; say both ways if that fails."""
    from toprank.datasets.openml import fetch

    if entry.openml_id is None:
        raise FileNotFoundError(_how_to_get(entry))
    try:
        X, y = fetch(entry, data_home)
    except OSError as error:  # no connection, or the server does not answer
        raise FileNotFoundError(f"{_how_to_get(entry)} (OpenML: {error})") from error
    except ValueError as error:
        raise ValueError(f"{error}; set {FOLDER_VARIABLE} to a folder that holds it") from error
    description = f"{entry.description}; OpenML {entry.openml_id}"
    return Dataset(entry.name, X, y, extra=X[_times(X)], description=description)


def _times(X: pd.DataFrame) -> list[str]:
    """Features that also say when a row happened, so that splits by time find them in `extra`."""
    return [column for column in _TIME_COLUMNS if column in X.columns]


def _how_to_get(entry: Entry) -> str:
    """One line on where the data can come from."""
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
    """The path, if it exists."""
    if not path.exists():
        raise ValueError(f"{path} is missing: the data set is incomplete")
    return path


def _read(path: Path) -> pd.DataFrame:
    """A Parquet file as a frame."""
    import pyarrow as pa

    try:
        return pd.read_parquet(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error


def _check_columns(frame: pd.DataFrame, needed: list[str], path: Path) -> None:
    """Refuse a file without the columns that every set of its sort has."""
    missing = [column for column in needed if column not in frame.columns]
    if missing:
        raise ValueError(f"{path} has no column {', '.join(map(repr, missing))}")


def _check_size(entry: Entry, rows: int, features: int, positives: int, path: Path) -> None:
    """Refuse a file that is not the data set of the catalogue."""
    if (rows, features, positives) != (entry.rows, entry.features, entry.positives):
        raise ValueError(
            f"{path} is not the data set {entry.name!r} of the catalogue: it has {rows} rows, "
            f"{features} features and {positives} positives instead of {entry.rows}, "
            f"{entry.features} and {entry.positives}"
        )


def _as_array(X: pd.DataFrame) -> np.ndarray:
    """Floats if all columns are numbers, objects otherwise."""
    if all(pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    return X.to_numpy(dtype=object)
