"""A simulator of card payments with rare fraud, for any number of rows.

Rows are drawn in blocks with random streams of their own, so they do not depend on how they are read; only the
past of each card is carried from block to block.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numba import njit
from sklearn.utils import check_random_state

from toprank.datasets.loaders import Dataset

__all__ = ["iter_card_fraud", "make_card_fraud", "write_card_fraud"]

TARGET = "is_fraud"
EXTRA = ["time", "day", "card_id", "merchant_id"]
MAX_CARDS = 500_000


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
    a trip. Six kinds of fraud (online sprees, card testing, skimmed and lost cards, account takeover,
    disputes), each with its own categories, hours and amounts, come and go in waves, so what was
    learnt on early days fades on later ones. A stolen card is used several times within hours.
    Much fraud leaves no technical trace, and customers do odd things too: boosted trees trained on
    the first three quarters of 300,000 rows or more reach an average precision between .2 and .6 on
    the last quarter, depending on the waves that the seed brings; on fewer rows less.

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
    if n_cards is None:
        n_cards = min(max(500, int(n_rows) // 40), MAX_CARDS)
    counts = {"n_rows": (n_rows, 2), "days": (days, 1), "n_cards": (n_cards, 1)}
    for name, (value, least) in {**counts, "chunk_rows": (chunk_rows, 1)}.items():
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if not 0.0 < fraud_rate <= 0.1:
        raise ValueError(f"fraud_rate must be above 0 and at most 0.1, got {fraud_rate}")
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    n_fraud = max(1, round(n_rows * fraud_rate))
    return _chunks(_Simulator(seed, n_rows, n_fraud, days, n_cards), chunk_rows)


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


def _chunks(simulator: _Simulator, chunk_rows: int) -> Iterator[pd.DataFrame]:
    """Cut the simulator's own blocks into pieces of the size asked for."""
    held = pd.DataFrame()
    for block in simulator.frames():
        held = block if held.empty else pd.concat([held, block], ignore_index=True)
        whole = len(held) - len(held) % chunk_rows
        for start in range(0, whole, chunk_rows):
            yield held.iloc[start : start + chunk_rows].reset_index(drop=True)
        held = held.iloc[whole:]
    if len(held):
        yield held.reset_index(drop=True)


# -- what a simulation draws from -----------------------------------------------------------------------

HOUR, DAY = 3600.0, 86_400.0
BLOCK_ROWS = 50_000
START = np.datetime64("2024-01-01T00:00:00", "ms")  # the unit that Parquet keeps
SEGMENTS = ("student", "family", "professional", "senior", "business")
REGIONS = tuple(f"region_{letter}" for letter in "abcdefghijkl")
COUNTRIES = ("FR", "BE", "DE", "ES", "GB", "IT", "US")
CHANNELS = ("chip", "contactless", "magstripe", "atm", "online", "phone")
CHIP, CONTACTLESS, MAGSTRIPE, ATM, ONLINE, PHONE = range(len(CHANNELS))
# Category of merchants: popularity, logarithm of the usual price, how much of it is bought online.
CATEGORIES: dict[str, tuple[float, float, float]] = {
    "grocery": (22, 3.4, 0.2), "restaurant": (16, 3.0, 0.5), "fuel": (8, 3.7, 0.0),
    "pharmacy": (5, 2.7, 0.3), "clothing": (6, 3.8, 1.2), "electronics": (3, 4.6, 1.6),
    "furniture": (1.5, 5.2, 1.0), "travel": (1.5, 5.3, 3.0), "hotel": (1.5, 5.0, 2.5),
    "transit": (9, 1.6, 0.5), "entertainment": (4, 2.8, 1.2), "gaming": (3, 2.6, 5.0),
    "gift_cards": (0.8, 3.7, 2.0), "jewellery": (0.6, 5.0, 0.7), "utilities": (3, 4.2, 3.0),
    "subscription": (5, 2.4, 6.0), "health": (2, 3.9, 0.3), "education": (0.8, 4.8, 2.0),
    "cash": (4, 4.2, 0.0), "marketplace": (7, 3.3, 5.0),
}  # fmt: skip
NAMES = list(CATEGORIES)
CASH = NAMES.index("cash")
POPULARITY, LOG_PRICE, ONLINE_TILT = np.array(list(CATEGORIES.values())).T
# Kinds of fraud. share: how common it is; online: purchases without the card; shift, spread: of the log of
# the amount; size: purchases of a burst; gap: hours between them; night: 1 for mostly at night; away, tested,
# stealth: bursts far from home, with a tiny purchase first, without technical traces.
FRAUD = ("share", "online", "shift", "spread", "size", "gap", "night", "away", "tested", "stealth")
KINDS: dict[str, tuple[tuple[float, ...], str]] = {
    "online_spree": ((0.30, 0.98, 0.7, 0.6, 3.5, 0.6, 0.6, 0.0, 0.3, 0.25),
                     "electronics gift_cards clothing jewellery marketplace"),
    "card_testing": ((0.12, 1.00, -1.0, 0.5, 4.5, 0.2, 0.7, 0.0, 0.9, 0.20),
                     "subscription gaming marketplace"),
    "skimming": ((0.18, 0.05, 0.8, 0.5, 3.0, 1.0, 0.5, 0.7, 0.0, 0.30), "cash electronics fuel"),
    "lost_card": ((0.15, 0.05, 0.2, 0.5, 3.5, 0.8, 0.2, 0.0, 0.0, 0.50),
                  "grocery fuel restaurant transit clothing"),
    "takeover": ((0.15, 0.90, 0.5, 0.6, 2.0, 6.0, 0.2, 0.0, 0.0, 0.60),
                 "travel hotel electronics marketplace furniture"),
    "dispute": ((0.10, 0.60, 0.1, 0.4, 1.2, 12.0, 0.0, 0.0, 0.0, 1.00), " ".join(CATEGORIES)),
}  # fmt: skip
OF_KIND = dict(zip(FRAUD, np.array([numbers for numbers, _ in KINDS.values()]).T, strict=True))
SKIMMING = list(KINDS).index("skimming")
HOURS = np.array(
    [2, 1, 1, 1, 1, 2, 5, 10, 14, 16, 18, 21, 26, 23, 19, 18, 20, 25, 28, 24, 18, 13, 8, 4.0]
)
NIGHT = np.array([9, 9, 9, 8, 7, 5, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5, 6, 6, 7, 8, 9, 9.0])
WEEK = np.array([0.95, 0.95, 1.0, 1.05, 1.2, 1.25, 0.8])
Table = dict[str, Any]  # columns by name


def _cumulative(weights: np.ndarray) -> np.ndarray:
    """Return running shares of weights along the last axis, ending at exactly 1."""
    total = np.cumsum(weights, axis=-1)
    return total / total[..., -1:]


def _categorical(codes: np.ndarray, names: Sequence[str]) -> pd.Categorical[str]:
    """Return categories from their codes, -1 for missing."""
    return pd.Categorical.from_codes(codes.astype(np.int8), categories=pd.Index(names))


def _number(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return numbers where they are known, NaN elsewhere."""
    return np.where(known, values, np.nan).astype(np.float32)


def _take(table: Table, rows: np.ndarray) -> Table:
    return {name: values[rows] for name, values in table.items()}


class _Simulator:
    """Draws cards, merchants and the waves of fraud once, then rows block by block."""

    def __init__(self, seed: int, n_rows: int, n_fraud: int, days: int, n_cards: int) -> None:
        self.seed, self.n_rows, self.n_fraud, self.days = seed, n_rows, n_fraud, days
        self.random = random = np.random.default_rng([seed, 0])
        self.hours = np.arange(24 * days + 1) * HOUR
        per_hour = np.outer(WEEK[np.arange(days) % 7], HOURS).ravel()
        # shares of the rows by the end of each hour
        self.clock = np.append(0.0, _cumulative(per_hour))
        tilt = random.gamma(6.0, 1.0 / 6.0, (len(SEGMENTS), 1, len(NAMES)))
        tastes = tilt * np.stack([POPULARITY / (1.0 + ONLINE_TILT), POPULARITY * ONLINE_TILT])
        self.tastes = _cumulative(tastes)  # of each segment, in shops and online
        self.draw_fraud()
        self.draw_cards(n_cards)
        self.draw_merchants(max(20, n_cards // 320))
        self.state = self.first_state()

    def draw_fraud(self) -> None:
        """Draw when each kind of fraud is common, in waves, and what it likes to buy."""
        random, days, n = self.random, self.days, len(KINDS)
        day = np.arange(days)[:, None, None] + 0.5
        middle, width = random.uniform(0.0, days, (n, 4)), random.uniform(2.0, 8.0, (n, 4))
        waves = np.exp(-0.5 * ((day - middle) / width) ** 2) * random.gamma(1.0, 1.0, (n, 4))
        activity = OF_KIND["share"] * (0.2 + waves.sum(axis=2))
        # the mix changes more than the volume
        activity /= activity.sum(axis=1, keepdims=True) ** 0.7
        night = OF_KIND["night"]
        hours = np.outer(HOURS / HOURS.sum(), 1 - night) + np.outer(NIGHT / NIGHT.sum(), night)
        by_hour = (activity[:, None, :] * hours).reshape(24 * days, n)
        self.by_hour = _cumulative(by_hour)  # shares of the kinds
        self.fraud_clock = np.append(0.0, _cumulative(by_hour.sum(axis=1)))
        liked = np.array([[name in names.split() for name in NAMES] for _, names in KINDS.values()])
        tastes = liked * (random.gamma(0.7, 1.0, liked.shape) + 0.02)
        everything = liked.all(axis=1, keepdims=True)
        self.fraud_tastes = _cumulative(tastes * np.where(everything, POPULARITY, 1.0))

    def draw_cards(self, n: int) -> None:
        """Draw customers: how much, where, how often and how they pay."""
        random = self.random
        segment = random.choice(len(SEGMENTS), n, p=[0.15, 0.35, 0.25, 0.17, 0.08])
        kind = random.choice(3, n, p=[0.62, 0.32, 0.06])
        brand = random.choice(3, n, p=[0.5, 0.4, 0.1])
        region, issuer = (random.random((2, n)) ** 1.5 * [[12], [24]]).astype(np.int64)
        log_spend = random.normal(np.array([-0.4, 0.1, 0.2, -0.1, 0.5])[segment], 0.45)
        limit = np.round(np.exp(random.normal(7.8, 0.5, n) + 0.5 * log_spend), -2)
        mean_age, spread = np.array([[22, 42, 40, 70, 47], [3, 9, 9, 8, 10]])[:, segment]
        age = random.normal(mean_age, spread)
        radius, angle = np.where(region % 2, 380.0, 180.0), region * np.pi / 6
        self.card_columns: Table = {
            "card_type": _categorical(kind, ("debit", "credit", "prepaid")),
            "card_brand": _categorical(brand, ("brand_a", "brand_b", "brand_c")),
            "issuer": _categorical(issuer, [f"bank_{k:02d}" for k in range(1, 25)]),
            "credit_limit": _number(limit, kind == 1),
            "holder_age": _number(age.clip(18, 95).round(), random.random(n) > 0.06),
            "holder_segment": _categorical(segment, SEGMENTS),
            "home_region": _categorical(region, REGIONS),
        }
        self.cards: Table = {
            "age_days": random.exponential(900.0, n),
            "use": _cumulative(random.gamma(0.8, 1.0, n) + 0.02),
            "segment": segment,
            "log_spend": log_spend,
            "online": random.beta(2.0, 5.0, n),
            "trips": random.gamma(0.5, 0.03, n),
            "x": radius * np.cos(angle) + random.normal(0.0, 18.0, n),  # kilometres
            "y": radius * np.sin(angle) + random.normal(0.0, 18.0, n),
        }

    def draw_merchants(self, n_shops: int) -> None:
        """Draw merchants: of every category as many at home as abroad, the most popular first."""
        random, self.n_shops = self.random, n_shops
        category, abroad, rank = np.indices((len(NAMES), 2, n_shops)).reshape(3, -1)
        n, age = len(rank), 30 + random.exponential(1500.0, len(rank)).astype(np.int32)
        country = np.where(abroad, random.integers(1, len(COUNTRIES), n), 0)
        price, risk = LOG_PRICE[category] + random.normal(0.0, 0.35, n), random.beta(1.2, 30.0, n)
        volume = (1 + random.gamma(3.0, 40.0, n) / (1 + rank)).round()
        currency = np.select([country == 4, country == 6], [1, 2])
        self.merchants: Table = {
            "log_price": price,
            "risk": risk,
            "abroad": abroad,
            "currency": currency,
        }
        self.merchant_columns: Table = {
            "merchant_category": _categorical(category, NAMES),
            "merchant_country": _categorical(country, COUNTRIES),
            "merchant_age_days": age,
            "merchant_mean_amount": np.exp(price + 0.18).astype(np.float32),
            "merchant_volume": volume.astype(np.float32),
            "merchant_chargeback_rate": _number(risk, age >= 120),
        }

    # -- who pays when

    def frames(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of one block after the other, in order of time."""
        n_blocks, n_fraud = -(-self.n_rows // BLOCK_ROWS), 0
        for block in range(n_blocks):
            self.random = random = np.random.default_rng([self.seed, 1, block])
            n_before, n_after = (self.n_rows * k // n_blocks for k in (block, block + 1))
            shares = np.array([n_before, n_after]) / self.n_rows
            ends = np.interp(shares, self.clock, self.hours)
            fraud_shares = np.interp(ends, self.hours, self.fraud_clock)
            n_new = min(round(self.n_fraud * fraud_shares[1]) - n_fraud, n_after - n_before)
            n_fraud += n_new
            places = random.uniform(fraud_shares[0], fraud_shares[1], n_new)
            times = np.interp(places, self.fraud_clock, self.hours)
            fraud = self.unfold(self.draw_bursts(times), ends[1])
            places = random.uniform(shares[0], shares[1], n_after - n_before - n_new)
            times = np.interp(places, self.clock, self.hours)
            genuine = self.unfold(self.draw_sessions(times), ends[1])
            rows = {name: np.concatenate([fraud[name], genuine[name]]) for name in fraud}
            yield self.frame(_take(rows, np.argsort(rows["time"], kind="stable")))

    def draw_bursts(self, begin: np.ndarray) -> Table:
        """Draw bursts of fraud: a stolen card is used several times within hours."""
        n, random = len(begin), self.random
        hour = np.minimum((begin // HOUR).astype(np.int64), len(self.by_hour) - 1)
        kind = (random.random((n, 1)) > self.by_hour[hour]).sum(axis=1)
        chance = {
            name: random.random(n) < OF_KIND[name][kind] for name in ("away", "tested", "stealth")
        }
        return {
            "begin": begin,
            "size": random.geometric(1.0 / OF_KIND["size"][kind]),
            "gap": OF_KIND["gap"][kind],
            "card": random.integers(0, len(self.cards["use"]), n),
            "kind": kind,
            "away": chance["away"],
            "tested": chance["tested"],
            "traces": ~chance["stealth"],
        }

    def draw_sessions(self, begin: np.ndarray) -> Table:
        """Draw what customers do: most purchases stand alone, some belong to a spree or a trip."""
        n, random = len(begin), self.random
        card = np.searchsorted(self.cards["use"], random.random(n), side="right")
        away = random.random(n) < self.cards["trips"][card]
        several = away | (random.random(n) < 0.05)
        no = np.zeros(n, dtype=bool)
        return {
            "begin": begin,
            "size": 1 + several * random.geometric(0.4, n),
            "gap": np.where(away, 4.0, 0.5),
            "card": card,
            "kind": np.full(n, -1),
            "away": away,
            "tested": no,
            "traces": no,
        }

    def unfold(self, sessions: Table, end: float) -> Table:
        """Turn the first sessions into as many rows as there are sessions, in the time up to `end`.

        Where a session is away from home, all of it is at one place (`east`, `north`, in kilometres).
        """
        n, random = len(sessions["begin"]), self.random
        size = np.diff(np.minimum(np.cumsum(sessions["size"]), n), prepend=0)
        session = np.repeat(np.arange(n), size)
        first = (np.cumsum(size) - size)[session]
        step = np.arange(n) - first
        angle = random.uniform(0.0, 2 * np.pi, n)
        distance = random.lognormal(6.3, 0.7, n) * sessions["away"]
        sessions["abroad"] = distance > 700.0
        sessions["east"], sessions["north"] = distance * np.cos(angle), distance * np.sin(angle)
        rows = _take(sessions, session)
        offset = np.cumsum(np.where(step > 0, random.exponential(HOUR, n) * rows["gap"], 0.0))
        offset -= offset[first]
        longest = np.maximum(offset[first + size[session] - 1], 1e-9)
        squeeze = np.clip((end - 1.0 - rows["begin"]) / longest, 0.0, 1.0)
        rows["time"] = np.clip(rows["begin"] + offset * squeeze, 0.0, end - 1e-3)
        rows["tested"] &= step == 0
        return rows

    # -- the columns of a payment

    def frame(self, rows: Table) -> pd.DataFrame:
        """Draw the columns of some rows, and bring the state of their cards up to date."""
        time, card, fraud, n = rows["time"], rows["card"], rows["kind"] >= 0, len(rows["time"])
        holder = _take(self.cards, card)
        online, category, merchant = self.choose_merchant(rows, holder)
        shop = _take(self.merchants, merchant)
        amount = self.choose_amount(rows, holder, shop, category == CASH)
        stripe = np.select([rows["kind"] == SKIMMING, shop["abroad"] == 1], [0.45, 0.15], 0.03)
        u = self.random.random((3, n))
        channel = np.select(
            [online & (u[0] < 0.04), online, category == CASH, u[1] < stripe, (amount < 50) & (u[2] < 0.65)],
            [PHONE, ONLINE, ATM, MAGSTRIPE, CONTACTLESS], CHIP,
        )  # fmt: skip
        x, y = np.stack([holder["x"], holder["y"]]) + self.random.normal(0.0, 22.0, (2, n))
        x, y = x + rows["east"], y + rows["north"]
        past = card_history(time, card, amount, online, x, y, self.state)
        second = time.astype(np.int64)
        history = {
            "distance_home_km": np.where(
                online, np.nan, np.hypot(x - holder["x"], y - holder["y"])
            ),
            "distance_last_km": past[:, 6],
            "speed_kmh": past[:, 6] / np.maximum(past[:, 7], 0.05),
            "amount_ratio": amount / np.maximum(past[:, 4], 1.0),
            **dict(zip(PAST, past.T[:6], strict=True)),
        }
        return pd.DataFrame({
            "time": START + (1000 * second).astype("timedelta64[ms]"),
            "day": (second // 86_400).astype(np.int16),
            "card_id": card,
            "merchant_id": merchant,
            "amount": amount.astype(np.float32),
            "hour": (second // 3600 % 24).astype(np.int8),
            "weekday": (second // 86_400 % 7).astype(np.int8),
            **self.draw_details(rows, channel, category, amount, shop["currency"]),
            **_take(self.merchant_columns, merchant),
            "card_age_days": (holder["age_days"] + time // DAY).astype(np.int32),
            **_take(self.card_columns, card),
            **{name: values.astype(np.float32) for name, values in history.items()},
            TARGET: fraud.astype(np.int8),
        })  # fmt: skip

    def choose_merchant(self, rows: Table, holder: Table) -> tuple[np.ndarray, ...]:
        """Choose whether to buy online, what, and from whom.

        Slowly more is bought online. Careless fraud goes to the riskier of two merchants.
        """
        n, fraud, random = len(rows["time"]), rows["kind"] >= 0, self.random
        share = holder["online"] * (1.0 + 0.15 * rows["time"] / (self.days * DAY))
        share = np.where(
            fraud, OF_KIND["online"][rows["kind"]], np.where(rows["away"], 0.5 * share, share)
        )
        online = random.random(n) < share
        tastes = self.tastes[holder["segment"], online.astype(np.int64)]
        tastes[fraud] = self.fraud_tastes[rows["kind"][fraud]]
        category = (random.random((n, 1)) > tastes).sum(axis=1)
        online &= category != CASH
        abroad = np.where(online, random.random(n) < 0.3, rows["abroad"])
        rank = (self.n_shops * random.random((2, n)) ** 3).astype(np.int64)
        first, second = (2 * category + abroad) * self.n_shops + rank
        risk = self.merchants["risk"]
        careless = rows["traces"] & (risk[second] > risk[first])
        return online, category, np.where(careless, second, first)

    def choose_amount(
        self, rows: Table, holder: Table, shop: Table, cash: np.ndarray
    ) -> np.ndarray:
        """Draw the amount from prices, the customer's spending and the kind of fraud."""
        fraud, random = rows["kind"] >= 0, self.random
        mean = shop["log_price"] + 0.6 * holder["log_spend"] + 0.0008 * rows["time"] / DAY
        shift, spread = (
            np.where(fraud, OF_KIND[k][rows["kind"]], 0.0) for k in ("shift", "spread")
        )
        log_amount = random.normal(mean + shift, np.hypot(0.6, spread))
        log_amount = np.where(rows["tested"], random.normal(0.4, 0.5, len(fraud)), log_amount)
        amount = np.maximum(np.exp(log_amount).round(2), 0.5)
        return np.where(cash, np.maximum(10.0, np.round(amount, -1)), amount)

    def draw_details(
        self, rows: Table, channel: np.ndarray, category: np.ndarray, amount: np.ndarray,
        currency: np.ndarray,
    ) -> Table:  # fmt: skip
        """Draw how the purchase was made; technical traces are missing in shops."""
        random, n, traces, fraud = self.random, len(channel), rows["traces"], rows["kind"] >= 0
        online, remote = channel == ONLINE, channel >= ONLINE

        def chance(usual: float, odd: float | None = None, of: np.ndarray = traces) -> np.ndarray:
            return random.random(n) < (usual if odd is None else np.where(of, odd, usual))

        often = np.isin(category, [NAMES.index("subscription"), NAMES.index("utilities")])
        dear = (amount > 200.0) & np.isin(channel, (CHIP, ONLINE)) & chance(0.25)
        pin = (channel == ATM) | chance(0.94)
        in_shop = np.select([channel == CONTACTLESS, channel == MAGSTRIPE, pin], [2, 1, 0], 1)
        check = np.where(chance(0.55, 0.2), 3, np.where(chance(0.35), 4, 2))
        check = np.where(chance(0.02), -1, np.where(remote, check, in_shop))
        device = np.where(online, np.where(chance(0.07), 2, chance(0.38, 0.6)), -1)
        address = np.where(remote, chance(0.18, 0.5) * (1 + chance(0.35, 0.6)), -1)
        device_age = random.exponential(np.where(traces, 150.0, 300.0)) * ~chance(0.1, 0.5)
        email_age = random.exponential(np.where(traces, 800.0, 1800.0))
        risk = random.beta(np.where(traces, 2.4, 1.5), np.where(traces, 4.0, 7.0))
        attempts = 1 + chance(0.04, 0.12, fraud) + chance(0.01, 0.05, fraud)
        return {
            "channel": _categorical(channel, CHANNELS),
            "recurring": (often & chance(0.7, 0.05, fraud)).astype(np.int8),
            "instalments": np.where(dear, random.choice([3, 4, 10], n), 1).astype(np.int8),
            "attempts": attempts.astype(np.int8),
            "authentication": _categorical(check, ("pin", "signature", "none", "app", "code")),
            "device": _categorical(device, ("phone", "laptop", "tablet")),
            "address_match": _categorical(address, ("full", "partial", "none")),
            "ip_risk": _number(risk, online & chance(0.92)),
            "device_age_days": _number(np.floor(device_age), online),
            "email_age_days": _number(np.floor(email_age), online & chance(0.85)),
            "security_code_match": _number(chance(0.97, 0.86), remote),
            "language_match": _number(chance(0.95, 0.82), online),
            "currency": _categorical(np.where(chance(0.1), 0, currency), ("EUR", "GBP", "USD")),
        }

    def first_state(self) -> np.ndarray:
        """Give cards a past before the first day; one in ten is new."""
        random, cards, n = self.random, self.cards, len(self.cards["use"])
        state = np.zeros((n, 9))
        state[:, LAST] = state[:, PRESENT] = -random.exponential(1.5 * DAY, n)
        state[:, MEAN] = np.exp(3.6 + 0.6 * cards["log_spend"] + random.normal(0.0, 0.3, n))
        state[:, ONLINE_SHARE] = cards["online"]
        state[:, X], state[:, Y] = cards["x"], cards["y"]
        new = random.random(n) < 0.1
        for column in (LAST, PRESENT, X, Y):
            state[new, column] = np.nan
        return state


# -- the past of a card ---------------------------------------------------------------------------------

# Columns of the state of a card; PRESENT, X and Y are time and place of the last purchase in a shop.
PAST = ("hours_since_last", "recent_count_1h", "recent_count_24h", "recent_amount_24h", "card_mean_amount",
        "recent_online_share")  # fmt: skip
LAST, COUNT_1H, COUNT_24H, AMOUNT_24H, MEAN, ONLINE_SHARE, PRESENT, X, Y = range(9)


@njit(cache=True, nogil=True)
def card_history(time, card, amount, online, x, y, state):
    """Read and update the state of each row's card, in order of time.

    The counts and the amount fade exponentially with a time constant of an hour or a day; the mean
    amount and the share of online purchases move a tenth of the way at each purchase. Returns, for
    each row: hours since the last purchase, the two counts, the amount, the mean, the share of online
    purchases, kilometres from the last shop and hours since then.
    """
    out = np.full((len(time), 8), np.nan)
    for i in range(len(time)):
        past = state[card[i]]
        elapsed = time[i] - past[LAST]
        if elapsed == elapsed:  # not NaN
            past[COUNT_1H] *= np.exp(-elapsed / HOUR)
            past[COUNT_24H] *= np.exp(-elapsed / DAY)
            past[AMOUNT_24H] *= np.exp(-elapsed / DAY)
        out[i, 0] = elapsed / HOUR
        out[i, 1:6] = past[COUNT_1H:PRESENT]
        if not online[i]:
            out[i, 6] = np.hypot(x[i] - past[X], y[i] - past[Y])
            out[i, 7] = (time[i] - past[PRESENT]) / HOUR
            past[PRESENT] = time[i]
            past[X] = x[i]
            past[Y] = y[i]
        past[LAST] = time[i]
        past[COUNT_1H] += 1.0
        past[COUNT_24H] += 1.0
        past[AMOUNT_24H] += amount[i]
        past[MEAN] += 0.1 * (amount[i] - past[MEAN])
        past[ONLINE_SHARE] += 0.1 * (online[i] - past[ONLINE_SHARE])
    return out
