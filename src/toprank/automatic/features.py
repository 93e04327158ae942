"""What a table becomes before a model sees it: dates, text, target encoding, columns left out or warned about.

Features are made once, without the labels. Target encoding learns from them, so it is fitted inside each
fold; the warnings about columns that know too much look at them and change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import pandas as pd
from scipy import sparse, stats

from toprank.columns import Columns
from toprank.leaks import find_leaks
from toprank.parsing import holds_text
from toprank.sampling import stratified_folds

__all__ = [
    "MANY_CATEGORIES",
    "TableFeatures",
    "TargetEncoding",
    "TextProjection",
    "read_columns",
    "reads_like_text",
    "suspicious_columns",
    "text_columns",
]

LOOKED_AT = 200  # cells that decide what a column of text holds
MANY_TEXTS = 50  # different texts; with fewer, they are categories
WORDS = 3  # on average, from which on cells read like text rather than names or codes
HASHED, COMPONENTS = 4_096, 12  # columns of n-grams, and what is left of them
MOST_ROWS = 20_000  # that a projection, or a warning, looks at
MOST_DATES = 5  # columns between which distances are taken
NO_CATEGORIES = np.empty(0, dtype="U1")  # of a column of text


@dataclass(frozen=True)
class TextProjection:
    """The directions in which the character n-grams of a column of text vary most.

    Attributes
    ----------
    column : int
        Place of the column in the table.
    components : ndarray of shape (n_components, 4096)
        Of the hashed counts of n-grams; no text is kept.
    """

    column: int
    components: np.ndarray

    @classmethod
    def of(cls, column: int, cells: pd.Series) -> TextProjection:
        """Learn the directions from a column."""
        from sklearn.decomposition import TruncatedSVD

        counts = _ngrams(cells.iloc[:: max(1, len(cells) // MOST_ROWS)])
        size = min(COMPONENTS, counts.shape[0] - 1)
        found = TruncatedSVD(max(size, 1), random_state=0).fit(counts)
        return cls(column, np.ascontiguousarray(found.components_))

    def transform(self, cells: pd.Series) -> np.ndarray:
        """Return the length of each text and its place along the directions; NaN where it is missing."""
        rows = np.column_stack(
            [cells.fillna("").map(str).str.len(), _ngrams(cells) @ self.components.T]
        )
        rows[cells.isna().to_numpy(dtype=bool)] = np.nan
        return rows


def _ngrams(cells: pd.Series) -> sparse.csr_matrix:
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4), n_features=HASHED)
    return hashing.transform(cells.fillna("").map(str))


@dataclass(frozen=True)
class TableFeatures:
    """How the columns of a table become numbers and codes of categories.

    Attributes
    ----------
    dates : tuple of int
        Places of the columns of dates; the matrix that `expand` takes has them in days.
    texts : tuple of TextProjection
    kept : int ndarray
        Places of the features that are kept: not the same in all rows, and not a copy of another.
    columns : Columns
        Of the kept features.
    source : int ndarray
        The column of the table that each kept feature comes from.
    notes : tuple of str
        What was left out, and why.
    """

    dates: tuple[int, ...]
    texts: tuple[TextProjection, ...]
    kept: np.ndarray
    columns: Columns
    source: np.ndarray
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        matrix: np.ndarray,
        columns: Columns,
        frame: pd.DataFrame | None = None,
    ) -> TableFeatures:
        """Learn from training rows which features there are, and which of them say something.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_columns)
            Numbers, codes of categories, dates in days; text is not looked at.
        columns : Columns
            Of the matrix.
        frame : DataFrame, optional
            The table, for its columns of text.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.array([[1.0, 5.0, 1.0], [2.0, 5.0, 2.0]])
        >>> features = TableFeatures.of(X, Columns.numeric(3))
        >>> features.columns.names, features.notes
        (('x0',), ('x1 is the same in all rows', 'x2 is a copy of x0'))
        """
        dates = tuple(j for j, order in enumerate(columns.dates) if order is not None)
        texts: tuple[int, ...] = ()
        projections: tuple[TextProjection, ...] = ()
        if frame is not None:
            texts = text_columns(frame, columns)
            projections = tuple(TextProjection.of(j, frame.iloc[:, j]) for j in texts)
        whole = cls(dates, projections, np.arange(0), columns, np.arange(0), ())
        parts = [*_names(whole)]
        table = whole._all(matrix, frame)
        ids, hidden = _identifiers(matrix, columns), set(texts)  # text has features of its own
        kept, notes = _telling(table, [name for name, _ in parts], ids, hidden, matrix.shape[1])
        if not kept and len(matrix) < 2:
            # one row tells nothing about its columns; other checks will say so
            kept, notes = [0], []
        if not kept:
            raise ValueError(
                "every column is the same in all rows, or another in every row: there is nothing to learn from"
            )
        names = _distinct([parts[j][0] for j in kept])
        sources = [parts[j][1] for j in kept]
        categories = tuple(
            columns.categories[s] if j < len(columns.names) else None
            for j, s in zip(kept, sources, strict=True)
        )
        return cls(
            dates, projections, np.array(kept, dtype=np.int64), Columns(tuple(names), categories),
            np.array(sources, dtype=np.int64), tuple(notes),
        )  # fmt: skip

    def expand(self, matrix: np.ndarray, frame: pd.DataFrame | None = None) -> np.ndarray:
        """Return the features of rows."""
        if not self.dates and not self.texts:
            return matrix if len(self.kept) == matrix.shape[1] else matrix[:, self.kept]
        return self._all(matrix, frame)[:, self.kept]

    def usual_values(self, features: np.ndarray) -> np.ndarray:
        """Return the median of each feature, or its most frequent category: what explanations compare with."""
        usual = (
            pd.DataFrame(features)
            .quantile(0.5, interpolation="lower")
            .to_numpy(np.float64, copy=True)
        )
        for j in np.flatnonzero(self.columns.is_category):
            codes = features[~np.isnan(features[:, j]), j].astype(np.int64)
            usual[j] = np.bincount(codes).argmax() if len(codes) else np.nan
        return usual

    def _all(self, matrix: np.ndarray, frame: pd.DataFrame | None) -> np.ndarray:
        """Return all features: the columns, parts of dates and distances between them, text."""
        parts = [matrix]
        parts += [_date_parts(matrix[:, j]) for j in self.dates]
        parts += [matrix[:, [k]] - matrix[:, [j]] for j, k in _pairs(self.dates)]
        if self.texts:
            assert frame is not None
            parts += [text.transform(frame.iloc[:, text.column]) for text in self.texts]
        return np.column_stack(parts) if len(parts) > 1 else matrix


DATE_PARTS = ("hour", "day of the week", "day of the month", "month")


def _names(features: TableFeatures) -> Iterator[tuple[str, int]]:
    """Yield the name of each feature and the column that it comes from."""
    names = features.columns.names
    yield from ((name, j) for j, name in enumerate(names))
    for j in features.dates:
        yield from ((f"{names[j]}: {part}", j) for part in DATE_PARTS)
    for j, k in _pairs(features.dates):
        yield f"days from {names[j]} to {names[k]}", k
    for text in features.texts:
        yield f"{names[text.column]}: length", text.column
        for k in range(len(text.components)):
            yield f"{names[text.column]}: direction {k + 1}", text.column


def _pairs(dates: Iterable[int]) -> list[tuple[int, int]]:
    few = list(dates)[:MOST_DATES]
    return [(j, k) for place, j in enumerate(few) for k in few[place + 1 :]]


def _distinct(names: list[str]) -> list[str]:
    """Return the names, those that are there already with a number behind."""
    found: dict[str, None] = {}
    for name in names:
        unique, k = name, 2
        while unique in found:
            unique, k = f"{name} ({k})", k + 1
        found[unique] = None
    return list(found)


def _date_parts(days: np.ndarray) -> np.ndarray:
    """Return hour, day of the week, day of the month and month of days since 1970."""
    known = np.isfinite(days)
    whole = np.floor(np.where(known, days, 0.0)).astype(np.int64).astype("datetime64[D]")
    months = whole.astype("datetime64[M]")
    parts = np.column_stack([
        np.floor((np.where(known, days, 0.0) % 1.0) * 24 + 1e-9),
        (whole.astype(np.int64) + 3) % 7,
        (whole - months).astype(np.int64) + 1,
        months.astype(np.int64) % 12 + 1,
    ]).astype(np.float64)  # fmt: skip
    parts[~known] = np.nan
    return parts


def _telling(
    table: np.ndarray, names: list[str], identifiers: set[int], hidden: set[int], n_columns: int
) -> tuple[list[int], list[str]]:
    """Return the features that are worth keeping, and why the columns among the others are not."""
    kept: list[int] = []
    notes: list[str] = []
    seen: dict[bytes, int] = {}
    for j, name in enumerate(names):
        cells = np.ascontiguousarray(table[:, j]) + 0.0  # minus zero is zero
        present = cells[~np.isnan(cells)]
        derived = j >= n_columns  # that cells are missing, the column itself says
        if not len(present) or ((derived or len(present) == len(cells)) and np.ptp(present) == 0):
            if not derived and j not in hidden:
                notes.append(f"{name} is the same in all rows")
            continue
        if j in identifiers:
            notes.append(
                f"{name} has another value in every row, like a name or a number of the row"
            )
            continue
        digest = blake2b(cells.tobytes(), digest_size=16).digest()
        if digest in seen:
            notes.append(f"{name} is a copy of {names[seen[digest]]}")
            continue
        seen[digest] = j
        kept.append(j)
    return kept, notes


def _identifiers(matrix: np.ndarray, columns: Columns) -> set[int]:
    """Return the columns of categories that have a category for every row."""
    return {
        j
        for j, values in enumerate(columns.categories)
        if values is not None and len(values) > 20 and len(values) >= 0.98 * len(matrix)
    }


# -- what a column holds -----------------------------------------------------------------------------


def reads_like_text(column: pd.Series) -> bool:
    """Whether a column holds sentences rather than names: many of them, of several words each.

    Examples
    --------
    >>> import pandas as pd
    >>> reads_like_text(pd.Series([f"complaint number {k} about a late delivery" for k in range(99)]))
    True
    >>> reads_like_text(pd.Series([f"customer-{k}" for k in range(99)]))
    False
    """
    if isinstance(column.dtype, pd.CategoricalDtype) or not holds_text(column):
        return False
    present = column.dropna()
    if present.nunique() <= max(MANY_TEXTS, 0.05 * len(present)):
        return False
    some = present.iloc[:: max(1, len(present) // LOOKED_AT)].map(str)
    return bool(some.map(lambda text: len(text.split())).mean() >= WORDS)


def text_columns(frame: pd.DataFrame, columns: Columns) -> tuple[int, ...]:
    """Return the places of the columns that read like text."""
    return tuple(
        j
        for j, values in enumerate(columns.categories)
        if values is not None and reads_like_text(frame.iloc[:, j])
    )


def read_columns(frame: pd.DataFrame) -> Columns:
    """Return the columns of a table; of those that read like text, the texts are not kept."""
    columns = Columns.of(frame, dates=True)
    texts = text_columns(frame, columns)
    pairs = enumerate(columns.categories)
    kept = tuple(NO_CATEGORIES if j in texts else values for j, values in pairs)
    return replace(columns, categories=kept)


# -- target encoding ---------------------------------------------------------------------------------

MANY_CATEGORIES = 50  # above, how frequent a category is becomes a feature of its own
SMOOTHING = 10.0  # rows of the overall share that are added to each category
ENCODING_FOLDS = 5


@dataclass(frozen=True)
class TargetEncoding:
    """Smoothed shares of positives, and counts, of the categories of each column (Micci-Barreca 2001).

    A training row must not see its own label in its own feature, so it gets shares learnt from the other
    folds of the training rows; rows that are scored later get those of all training rows. scikit-learn's
    TargetEncoder does the same without sample weights.

    Attributes
    ----------
    shares : tuple of (ndarray or None)
        For each column of categories the share of each code, and last that of missing and unseen ones;
        None for a column that stays as it is: numbers, and categories of two values.
    counts : tuple of (ndarray or None)
        For each column of many categories the logarithm of one plus the weight of each code, and last 0.
    """

    shares: tuple[np.ndarray | None, ...]
    counts: tuple[np.ndarray | None, ...]

    @classmethod
    def fit_transform(
        cls, X: np.ndarray, y: np.ndarray, weight: np.ndarray, n_categories: np.ndarray, seed: int
    ) -> tuple[TargetEncoding, np.ndarray]:
        """Learn the shares, and return the training rows with shares of the rows of other parts.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Numbers and codes of categories.
        y, weight : ndarray of shape (n_rows,)
        n_categories : int ndarray of shape (n_columns,)
            Number of codes of each column of categories, 0 for numbers.
        seed : int
            Of the parts.

        Examples
        --------
        >>> import numpy as np
        >>> X, y = np.arange(60.0)[:, None] % 3, (np.arange(60) % 3 == 2).astype(float)
        >>> encoding, rows = TargetEncoding.fit_transform(X, y, np.ones(60), np.array([3]), seed=0)
        >>> encoding.transform(np.array([[0.0], [2.0], [np.nan]])).round(2).ravel().tolist()
        [0.11, 0.78, 0.33]
        """
        shares: list[np.ndarray | None] = [None] * X.shape[1]
        counts: list[np.ndarray | None] = [None] * X.shape[1]
        rows = np.array(X, dtype=np.float64)
        part = stratified_folds(y > 0, ENCODING_FOLDS, seed)
        for j in np.flatnonzero(n_categories > 2):
            n_codes = int(n_categories[j])
            codes = _codes(X[:, j], n_codes)
            sums = [
                np.bincount(
                    codes * ENCODING_FOLDS + part, w, (n_codes + 1) * ENCODING_FOLDS
                ).reshape(-1, ENCODING_FOLDS)
                for w in (weight * y, weight)
            ]
            shares[j] = _shares(*(s.sum(axis=1) for s in sums))
            others = [s.sum(axis=1, keepdims=True) - s for s in sums]
            by_part = np.stack(
                [_shares(p, n) for p, n in zip(others[0].T, others[1].T, strict=True)]
            )
            rows[:, j] = by_part[part, codes]
            if n_codes > MANY_CATEGORIES:
                counts[j] = np.append(np.log1p(sums[1].sum(axis=1)[:-1]), 0.0)
        encoding = cls(tuple(shares), tuple(counts))
        return encoding, encoding._with_counts(X, rows)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return rows with the shares of all training rows."""
        rows = np.array(X, dtype=np.float64)
        for j, share in enumerate(self.shares):
            if share is not None:
                rows[:, j] = share[_codes(X[:, j], len(share) - 1)]
        return self._with_counts(X, rows)

    def _with_counts(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        found = [
            count[_codes(X[:, j], len(count) - 1)]
            for j, count in enumerate(self.counts)
            if count is not None
        ]
        return np.column_stack([rows, *found]) if found else rows


def _codes(cells: np.ndarray, n_codes: int) -> np.ndarray:
    """Return codes as integers; missing and unseen ones as one more code."""
    return np.where(np.isnan(cells) | (cells < 0), n_codes, cells).astype(np.int64)


def _shares(positives: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return the smoothed share of each code."""
    overall = positives.sum() / max(totals.sum(), np.finfo(float).tiny)
    return (positives + SMOOTHING * overall) / (totals + SMOOTHING)


# -- columns that say too much ------------------------------------------------------------------------

SUSPECTS = 100  # columns that are looked at closely


def suspicious_columns(X: np.ndarray, columns: Columns, y: np.ndarray) -> list[str]:
    """Say which features know more than they should, of those that alone rank the rows best.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(100) >= 90
    >>> suspicious_columns(np.arange(100.0)[:, None], Columns.numeric(1), y)[0].split(",")[0]
    "column 'x0' numbers the rows"
    """
    rows = np.arange(len(y))
    if len(y) > MOST_ROWS:
        rows = np.union1d(rows[:: len(y) // MOST_ROWS], np.flatnonzero(y > 0)[:MOST_ROWS])
    ranks = stats.rankdata(np.where(np.isnan(X[rows]), -np.inf, X[rows]), axis=0)
    above = np.abs(ranks[y[rows] > 0].mean(axis=0) - ranks.mean(axis=0))
    suspects = np.sort(np.argsort(-above, kind="stable")[:SUSPECTS])
    return find_leaks(pd.DataFrame(X[:, suspects], columns=[columns.names[j] for j in suspects]), y)
