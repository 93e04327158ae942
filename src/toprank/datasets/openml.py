"""The way to OpenML: which rows, which columns and which labels make up a data set there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toprank.datasets.catalogue import Entry

__all__ = ["fetch"]


@dataclass(frozen=True)
class Recipe:
    """How an OpenML table becomes one of ours.

    Attributes
    ----------
    positive : tuple of str
        Target values that are positives. Numbers are compared as numbers.
    negative : tuple of str
        Target values that are negatives; empty for all others. Rows with other values are left out.
    at_least : float or None
        For a numeric target: positive from here up.
    target : str
        Name of the target column; the one OpenML declares by default.
    columns : pair of (int or None)
        The first feature that is kept and the one after the last.
    complete : bool
        Whether rows with missing values are left out.
    """

    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    at_least: float | None = None
    target: str = "default-target"
    columns: tuple[int | None, int | None] = (None, None)
    complete: bool = False


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


def fetch(entry: Entry, data_home: Any = None) -> tuple[pd.DataFrame, np.ndarray]:
    """Fetch a data set from OpenML through scikit-learn's cache and check that it is the one meant.

    Parameters
    ----------
    entry : Entry
        With an OpenML id.
    data_home : path, optional
        scikit-learn's cache folder.

    Returns
    -------
    X : DataFrame
    y : ndarray
        0 and 1.

    Raises
    ------
    ValueError
        If the numbers of rows, features and positives are not those of the catalogue.
    """
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
    labels = _plain_labels(bunch.target)
    keep = np.ones(len(X), dtype=bool)
    if recipe.complete:
        keep &= X.notna().all(axis=1).to_numpy()
    if recipe.at_least is not None:
        y = labels.astype(float) >= recipe.at_least
    else:
        y = np.isin(labels, recipe.positive)
        if recipe.negative:
            keep &= y | np.isin(labels, recipe.negative)
    X, y = X.loc[keep].reset_index(drop=True), y[keep].astype(np.int8)
    found = (*X.shape, int(y.sum()))
    if found != (entry.rows, entry.features, entry.positives):
        raise ValueError(
            f"OpenML {entry.openml_id} has changed: {entry.name} should have {entry.rows} rows, "
            f"{entry.features} features and {entry.positives} positives, but got "
            f"{found[0]}, {found[1]} and {found[2]}"
        )
    return X, y


def _as_frame(data: Any, names: list[str]) -> pd.DataFrame:
    """A frame with numbers where all categories are numbers, and text elsewhere."""
    if not isinstance(data, pd.DataFrame):
        dense = data.toarray() if hasattr(data, "toarray") else np.asarray(data)
        return pd.DataFrame(dense, columns=list(names))
    columns = {}
    for name in data.columns:
        column = data[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            numbers = pd.to_numeric(pd.Series(column.cat.categories), errors="coerce")
            if numbers.notna().all():
                column = column.cat.rename_categories(numbers.tolist()).astype(float)
            else:
                column = column.astype("str")
        columns[name] = column
    return pd.DataFrame(columns)


def _plain_labels(target: Any) -> np.ndarray:
    """Labels as text, whole numbers without a decimal point."""
    labels = np.asarray(target, dtype=object)
    return np.array([_plain(label) for label in labels], dtype=object)


def _plain(label: Any) -> str:
    """1, 1.0 and "1.0" are all "1"."""
    try:
        number = float(label)
    except (TypeError, ValueError):
        return str(label)
    return str(int(number)) if number.is_integer() else str(number)
