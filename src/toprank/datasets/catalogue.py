"""The data sets that can be loaded, and what is known of each."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files

import pandas as pd

__all__ = ["Entry", "catalogue", "describe", "find"]


@dataclass(frozen=True)
class Entry:
    """One data set.

    Attributes
    ----------
    name : str
    task : {"binary", "queries", "relational"}
    rows, features, positives : int
        For relational data the features are background predicates; for queries the positives are
        rows with a relevance above 0.
    positive_class : str
    licence, source, note : str
    openml_id : int or None
        The same data on OpenML; None where no copy is known to be the same.
    """

    name: str
    task: str
    rows: int
    features: int
    positives: int
    positive_class: str
    licence: str
    source: str
    note: str
    openml_id: int | None

    @property
    def description(self) -> str:
        """One paragraph for people."""
        sentences = [self.source, f"positive: {self.positive_class}", self.note,
                     f"licence: {self.licence}"]  # fmt: skip
        return "; ".join(sentence for sentence in sentences if sentence)


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
            entries[line["name"]] = Entry(
                name=line["name"],
                task=line["task"],
                rows=int(line["rows"]),
                features=int(line["features"]),
                positives=int(line["positives"]),
                positive_class=line["positive_class"],
                licence=line["licence"],
                source=line["source"],
                note=line["note"],
                openml_id=int(line["openml_id"]) if line["openml_id"] else None,
            )
    return entries


def find(name: str) -> Entry:
    """Return the entry called `name`; a folder before the name, as in relational/uwcse, may stay."""
    from difflib import get_close_matches

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
