"""The sets of the comparison: how each is read, which half it belongs to, how it is split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from experiments.common import BESIDE
from toprank.folds import make_splits

TEST_SHARE = 1 / 3
MANY_ROWS = 20_000  # above, three splits rather than five
BUCKETS = (40, 100, 300, 1_000)  # most positives of each bucket but the last
BUCKET_NAMES = (*(f"to {most:,}" for most in BUCKETS), "more")


@dataclass(frozen=True)
class Split:
    """Training and test rows of one set, and the groups of the training rows where it is split by groups."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    groups: np.ndarray | None = None


def all_sets() -> pd.DataFrame:
    """Return the binary sets, the smallest first: a row of their manifest each, with `folder` and `half`."""
    folders = [BESIDE, BESIDE / "development"]
    parts = [pd.read_csv(folder / "MANIFEST.csv").assign(folder=folder) for folder in folders]
    sets = pd.concat(parts)
    sets = sets[sets["task"] == "binary"].sort_values("rows").set_index("name")
    sets["half"] = [half_of(name) for name in sets.index]
    sets["splits"] = np.where(sets["rows"] > MANY_ROWS, 3, 5)
    sets["bucket"] = [bucket_of(positives) for positives in sets["positives"]]
    return sets


def half_of(name: str) -> int:
    """Return 0 or 1, by the name alone."""
    return crc32(name.encode()) % 2


def bucket_of(positives: int) -> str:
    """Name the range that a number of positives lies in."""
    return BUCKET_NAMES[int(np.searchsorted(BUCKETS, positives))]


def read_split(row: pd.Series, repeat: int, most_rows: int | None = None) -> Split:
    """Read a set and split it: at random within the classes, or by whole groups where it has a group column.

    An identifier of groups is no feature: none of its values is in both parts. `most_rows` keeps a
    random part of a large set.
    """
    frame = pd.read_parquet(Path(row["folder"]) / f"{row.name}.parquet")
    y = frame.pop("target").to_numpy().astype(int)
    groups = frame.pop(row["group"]).to_numpy() if isinstance(row["group"], str) else None
    X = frame.apply(_plain_column)
    kept = np.arange(len(y))
    if most_rows is not None and len(y) > most_rows:
        kept, _ = train_test_split(kept, train_size=most_rows, stratify=y, random_state=repeat)
    if groups is None:
        train, test = train_test_split(
            kept, test_size=TEST_SHARE, stratify=y[kept], random_state=repeat
        )
    else:
        n_splits = round(1 / TEST_SHARE)
        codes = pd.factorize(groups[kept])[0]
        first = make_splits(y[kept], groups=codes, n_splits=n_splits, random_state=repeat)[0]
        train, test = kept[first.train], kept[first.test]
    rows = [X.iloc[part].reset_index(drop=True) for part in (train, test)]
    told = None if groups is None else pd.factorize(groups)[0][train]
    return Split(rows[0], y[train], rows[1], y[test], told)


def _plain_column(column: pd.Series) -> pd.Series:
    """Return numbers as float64 (dates as days), everything else as text."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return (column - pd.Timestamp(0)).dt.total_seconds() / 86_400
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return column.astype("float64")
    return column.astype(object).map(str, na_action="ignore")
