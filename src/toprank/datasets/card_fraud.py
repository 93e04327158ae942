"""A simulator of card payments with rare fraud, for any number of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from toprank.datasets._base import Dataset

__all__ = ["iter_card_fraud", "make_card_fraud", "write_card_fraud"]

TARGET = "is_fraud"
EXTRA = ["time", "day", "card_id", "merchant_id"]
MOST_CARDS = 500_000


def make_card_fraud(
    n_rows: int = 100_000,
    *,
    fraud_rate: float = 0.002,
    days: int = 60,
    n_cards: int | None = None,
    random_state: Any = None,
) -> Dataset:
    """Simulate card payments in order of time, a few of them fraudulent.

    Customers with their own purse, region and habits pay at merchants of twenty categories, in
    shops, at cash machines and online, by day more than by night; sometimes they go on a spree or on
    a trip. Fraud comes in campaigns (card testing, online sprees, skimmed and lost cards, account
    takeover, disputes) that begin, grow and end, each with its own taste, hours and greed, so what
    was learnt on early days fades on later ones. A stolen card is used several times within hours.
    Much fraud leaves no technical trace, and customers do odd things too: boosted trees trained on
    the first three quarters of 300,000 rows or more reach an average precision between .2 and .6 on
    the last quarter, depending on the campaigns that the seed brings; on fewer rows less.

    The forty features are numbers and categories, some with missing values: the purchase
    (amount, hour, channel, category, ...), technical traces of online purchases (device, address,
    network risk, ..., missing in shops), the merchant, the card and its holder, and the card's past
    (time since the last purchase, faded counts and sums, distance and speed, missing where
    there is none).

    Parameters
    ----------
    n_rows : int, default=100_000
    fraud_rate : float, default=0.002
        Share of the rows that are fraud, at most 0.1. Their number is the rounded product, and at
        least 1.
    days : int, default=60
        Length of the period.
    n_cards : int, optional
        Number of cards; by default one for forty rows, at least 500 and at most 500,000.
    random_state : int, RandomState or None

    Returns
    -------
    data : Dataset
        `X` has the forty features, `y` is 1 for fraud, and `extra` has `time`, `day`, `card_id` and
        `merchant_id`.

    See Also
    --------
    write_card_fraud : The same rows straight to a Parquet file, in bounded memory.
    iter_card_fraud : The same rows, piece by piece.

    Examples
    --------
    >>> data = make_card_fraud(5000, random_state=0)
    >>> data
    Dataset('card_fraud', rows=5000, features=40, positives=10)
    >>> early = data.extra["day"] < 45
    """
    parts = iter_card_fraud(
        n_rows, fraud_rate=fraud_rate, days=days, n_cards=n_cards, random_state=random_state
    )
    frame = pd.concat(list(parts), ignore_index=True)
    return Dataset(
        name="card_fraud",
        X=frame.drop(columns=[*EXTRA, TARGET]),
        y=frame[TARGET].to_numpy(),
        extra=frame[EXTRA],
        description=f"{n_rows:,} simulated card payments over {days} days",
    )


def iter_card_fraud(
    n_rows: int,
    *,
    fraud_rate: float = 0.002,
    days: int = 60,
    n_cards: int | None = None,
    chunk_rows: int = 50_000,
    random_state: Any = None,
) -> Iterator[pd.DataFrame]:
    """Simulate card payments piece by piece; the rows do not depend on the size of the pieces.

    Parameters
    ----------
    n_rows, fraud_rate, days, n_cards, random_state
        As for `make_card_fraud`.
    chunk_rows : int, default=50_000
        Rows of each piece; the last may have fewer.

    Yields
    ------
    frame : DataFrame
        `time`, `day`, `card_id`, `merchant_id`, the forty features and `is_fraud`.

    Examples
    --------
    >>> [len(part) for part in iter_card_fraud(2500, chunk_rows=1000, random_state=0)]
    [1000, 1000, 500]
    """
    _check(n_rows=n_rows, days=days, chunk_rows=chunk_rows)
    if not 0.0 < fraud_rate <= 0.1:
        raise ValueError(f"fraud_rate must be above 0 and at most 0.1, got {fraud_rate}")
    if n_rows < 2:
        raise ValueError(f"n_rows must be at least 2, got {n_rows}")
    if n_cards is None:
        n_cards = min(max(500, n_rows // 40), MOST_CARDS)
    _check(n_cards=n_cards)
    return _chunks(_seed(random_state), n_rows, fraud_rate, days, n_cards, chunk_rows)


def write_card_fraud(
    path: str | os.PathLike[str],
    n_rows: int,
    *,
    fraud_rate: float = 0.002,
    days: int = 60,
    n_cards: int | None = None,
    chunk_rows: int = 100_000,
    random_state: Any = None,
    verbose: int = 0,
) -> None:
    """Simulate card payments straight into a Parquet file, in bounded memory.

    The file appears when it is complete. It holds the columns of `iter_card_fraud`.

    Parameters
    ----------
    path : path
        Where to write.
    n_rows, fraud_rate, days, n_cards, random_state
        As for `make_card_fraud`, with the same rows for the same seed.
    chunk_rows : int, default=100_000
        Rows of a row group of the file.
    verbose : int, default=0
        Show a progress bar.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "payments.parquet"
    ...     write_card_fraud(path, 3000, random_state=0)
    ...     len(pd.read_parquet(path))
    3000
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from toprank.progress import progress
    from toprank.tables import atomic_path

    parts = iter_card_fraud(
        n_rows,
        fraud_rate=fraud_rate,
        days=days,
        n_cards=n_cards,
        chunk_rows=chunk_rows,
        random_state=random_state,
    )
    with atomic_path(path) as temporary, progress(n_rows, "payments", verbose) as advance:
        writer = None
        try:
            for part in parts:
                table = pa.Table.from_pandas(part, preserve_index=False)
                if writer is None:
                    writer = pq.ParquetWriter(temporary, table.schema, compression="zstd")
                writer.write_table(table)
                advance(len(part))
        finally:
            if writer is not None:
                writer.close()


def _chunks(
    seed: int, n_rows: int, fraud_rate: float, days: int, n_cards: int, chunk_rows: int
) -> Iterator[pd.DataFrame]:
    """Cut the simulator's own blocks into pieces of the size asked for."""
    from toprank.datasets._card_features import FeatureBuilder
    from toprank.datasets._card_sessions import Timeline
    from toprank.datasets._card_world import build_world

    world = build_world(seed, n_rows, max(1, round(n_rows * fraud_rate)), days, n_cards)
    timeline, features = Timeline(world), FeatureBuilder(world)
    held: list[pd.DataFrame] = []
    n_held = 0
    while timeline.done < n_rows:
        held.append(features.frame(*timeline.next_block()))
        n_held += len(held[-1])
        if n_held < chunk_rows and timeline.done < n_rows:
            continue
        frame = held[0] if len(held) == 1 else pd.concat(held, ignore_index=True)
        whole = n_held - n_held % chunk_rows if timeline.done < n_rows else n_held
        for start in range(0, whole, chunk_rows):
            yield frame.iloc[start : min(start + chunk_rows, whole)].reset_index(drop=True)
        held, n_held = [frame.iloc[whole:]], n_held - whole


def _seed(random_state: Any) -> int:
    """One integer from any kind of random state."""
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _check(**whole_numbers: int) -> None:
    """Refuse counts that are not positive whole numbers."""
    for name, value in whole_numbers.items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a positive whole number, got {value!r}")
