"""A simulator of card payments with rare fraud, for any number of rows.

Rows are drawn in blocks with random streams of their own, so they do not depend on how they are read; only the
past of each card is carried from block to block.
"""

from __future__ import annotations

import io
import itertools
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
    Some fraud leaves no technical trace, and customers do odd things too: boosted trees trained on
    the first three quarters of 40,000 rows reach an average precision of about .6 on the last
    quarter where 2% are fraud, and of .1 to .4 where .5% are, depending on the waves that the seed
    brings.

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
    return _chunks(_Simulator(seed, n_rows, n_fraud, days, n_cards).frames(), chunk_rows)


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
    tables = (pa.Table.from_pandas(part, preserve_index=False) for part in parts)
    first = next(tables)
    with (
        atomic_path(path) as temporary,
        progress(n_rows, "payments", verbose) as advance,
        pq.ParquetWriter(temporary, first.schema, compression="zstd") as writer,
    ):
        for table in itertools.chain([first], tables):
            writer.write_table(table)
            advance(len(table))


def _chunks(blocks: Iterator[pd.DataFrame], chunk_rows: int) -> Iterator[pd.DataFrame]:
    """Cut the simulator's own blocks into pieces of the size asked for."""
    held = pd.DataFrame()
    for block in blocks:
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
CASH, SUBSCRIPTION, UTILITIES = map(NAMES.index, ("cash", "subscription", "utilities"))
POPULARITY, LOG_PRICE, ONLINE_TILT = np.array(list(CATEGORIES.values())).T
# Kinds of sessions, the last six of them fraud: how common; chance to buy online (NaN: the customer's own);
# shift and spread of the log of the amount; mean number of purchases and hours between them; share at any hour,
# also at night; chances to be far from home, to begin with a tiny purchase, to leave traces; what is bought.
KINDS = pd.read_csv(io.StringIO("""
kind         share online shift spread size gap  night away tested traces liked
purchase     .94  nan  0    .6   1   0    0   0   0   0    all
spree        .045 nan  0    .6   3.5 .5   0   0   0   0    all
trip         .015 nan  0    .6   3.5 4    0   1   0   0    all
online_spree .32  .98  1    .8   4   .4   .6  0   .3  .85  electronics,gift_cards,clothing,jewellery,marketplace
card_testing .12  1    -1   .8   4.5 .2   .7  0   .9  .9   subscription,gaming,marketplace
skimming     .2   .05  1    .8   3.5 .6   .5  .8  0   .9   cash,electronics,fuel
lost_card    .15  .05  .5   .8   4   .5   .3  0   0   .7   grocery,fuel,restaurant,transit,clothing
takeover     .15  .9   .8   .85  2.5 3    .3  0   0   .7   travel,hotel,electronics,marketplace,furniture
dispute      .06  .6   .1   .7   1.2 12   0   0   0   0    all
"""), sep=r"\s+")  # fmt: skip
OF_KIND = {str(name): column.to_numpy() for name, column in KINDS.items()}
LIKED = np.array(
    [[what == "all" or name in what.split(",") for name in NAMES] for what in KINDS["liked"]]
)
N_GENUINE = 3
HOURS = np.array(
    [2, 1, 1, 1, 1, 2, 5, 10, 14, 16, 18, 21, 26, 23, 19, 18, 20, 25, 28, 24, 18, 13, 8, 4.0]
)
HOURS /= HOURS.sum()
CHANNELS = ("chip", "contactless", "magstripe", "atm", "online", "phone")
CHIP, CONTACTLESS, MAGSTRIPE, ATM, ONLINE, PHONE = range(len(CHANNELS))
# The columns in their order, and the names of what the codes of categories mean.
COLUMNS = (
    "day card_id merchant_id amount hour weekday channel recurring instalments attempts authentication device "
    "address_match ip_risk device_age_days email_age_days security_code_match language_match currency "
    "merchant_category merchant_country merchant_age_days merchant_mean_amount merchant_volume "
    "merchant_chargeback_rate card_age_days card_type card_brand issuer credit_limit holder_age holder_segment "
    "home_region distance_home_km distance_last_km speed_kmh amount_ratio hours_since_last recent_count_1h "
    "recent_count_24h recent_amount_24h card_mean_amount recent_online_share is_fraud"
)
LEVELS: dict[str, Sequence[str]] = {
    "channel": CHANNELS,
    "authentication": ("pin", "signature", "none", "app", "code"),
    "device": ("phone", "laptop", "tablet"),
    "address_match": ("full", "partial", "none"),
    "currency": ("EUR", "GBP", "USD"),
    "merchant_category": NAMES,
    "merchant_country": ("FR", "BE", "DE", "ES", "GB", "IT", "US"),
    "card_type": ("debit", "credit", "prepaid"),
    "card_brand": ("brand_a", "brand_b", "brand_c"),
    "issuer": [f"bank_{k:02d}" for k in range(1, 25)],
    "holder_segment": ("student", "family", "professional", "senior", "business"),
    "home_region": [f"region_{letter}" for letter in "abcdefghijkl"],
}
DTYPES = {"f": np.float32, "i": np.int32, "b": np.int8}
Table = dict[str, np.ndarray]


def _cumulative(weights: np.ndarray) -> np.ndarray:
    """Return running shares of weights along the last axis, ending at exactly 1."""
    total = np.cumsum(weights, axis=-1)
    return total / total[..., -1:]


def _take(table: Table, rows: np.ndarray) -> Table:
    return {name: values[rows] for name, values in table.items()}


class _Simulator:
    """Draws cards, merchants and the waves of fraud once, then rows block by block."""

    def __init__(self, seed: int, n_rows: int, n_fraud: int, days: int, n_cards: int) -> None:
        self.seed, self.n_rows, self.n_fraud = seed, n_rows, n_fraud
        random = np.random.default_rng([seed, 0])
        self.hours = np.arange(24 * days + 1) * HOUR
        # shares of the rows by the end of each hour
        self.clock = np.append(0.0, _cumulative(np.tile(HOURS, days)))
        # kinds of fraud come and go in waves; the mix changes more than the volume
        share, night = OF_KIND["share"][N_GENUINE:], OF_KIND["night"][N_GENUINE:]
        size = (len(share), 4)
        middle, width = random.uniform(0.0, days, size), random.uniform(2.0, 8.0, size)
        distance = (np.arange(days)[:, None, None] + 0.5 - middle) / width
        waves = np.exp(-0.5 * distance**2) * random.gamma(1.0, 1.0, size)
        activity = share * (0.2 + waves.sum(axis=2))
        activity /= activity.sum(axis=1, keepdims=True) ** 0.7
        hours = np.outer(HOURS, 1 - night) + night / 24
        fraud_by_hour = (activity[:, None, :] * hours).reshape(24 * days, len(share))
        self.fraud_kinds = _cumulative(fraud_by_hour)
        self.fraud_clock = np.append(0.0, _cumulative(fraud_by_hour.sum(axis=1)))
        # what each kind of session buys, in shops and online
        everything = LIKED.all(axis=1, keepdims=True)
        tastes = np.where(everything, POPULARITY, random.gamma(0.7, 1.0, LIKED.shape) + 0.02)
        online = np.stack([1.0 / (1.0 + ONLINE_TILT), ONLINE_TILT])
        self.tastes = _cumulative((LIKED * tastes)[:, None, :] * online)
        self.cards = draw_cards(random, n_cards)
        self.n_shops = max(20, n_cards // 320)
        self.shops = draw_shops(random, self.n_shops)
        self.state = np.full((n_cards, 9), np.nan)  # no purchase yet
        self.state[:, COUNT_1H:MEAN] = 0.0
        self.state[:, MEAN] = np.exp(3.6 + 0.6 * self.cards["log_spend"])
        self.state[:, ONLINE_SHARE] = self.cards["online_share"]

    def frames(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of one block after the other, in order of time."""
        n_blocks, n_fraud = -(-self.n_rows // BLOCK_ROWS), 0
        for block in range(n_blocks):
            random = np.random.default_rng([self.seed, 1, block])
            before, after = (self.n_rows * k // n_blocks for k in (block, block + 1))
            shares = np.array([before, after]) / self.n_rows
            ends = np.interp(shares, self.clock, self.hours)
            fraud_shares = np.interp(ends, self.hours, self.fraud_clock)
            n_new = min(round(self.n_fraud * fraud_shares[1]) - n_fraud, after - before)
            n_fraud += n_new
            places = random.uniform(fraud_shares[0], fraud_shares[1], n_new)
            begin = np.interp(places, self.fraud_clock, self.hours)
            hour = np.minimum((begin // HOUR).astype(np.int64), len(self.fraud_kinds) - 1)
            kind = N_GENUINE + (random.random((n_new, 1)) > self.fraud_kinds[hour]).sum(axis=1)
            fraud = self.unfold(random, begin, kind, ends[1])
            places = random.uniform(shares[0], shares[1], after - before - n_new)
            begin = np.interp(places, self.clock, self.hours)
            kind = random.choice(N_GENUINE, len(begin), p=OF_KIND["share"][:N_GENUINE])
            genuine = self.unfold(random, begin, kind, ends[1])
            rows = {name: np.concatenate([fraud[name], genuine[name]]) for name in fraud}
            yield self.frame(random, _take(rows, np.argsort(rows["time"], kind="stable")))

    def unfold(
        self, random: np.random.Generator, begin: np.ndarray, kind: np.ndarray, end: float
    ) -> Table:
        """Turn the first sessions into as many rows as there are sessions, in the time up to `end`.

        All of a session is of one card, at home or at one place away (`east`, `north`, in kilometres).
        """
        n = len(begin)
        away, tested, traces = (
            random.random(n) < OF_KIND[name][kind] for name in ("away", "tested", "traces")
        )
        use = self.cards["use"]
        user = np.searchsorted(use, random.random(n), side="right")
        distance, angle = random.lognormal(6.3, 0.7, n) * away, random.uniform(0.0, 2 * np.pi, n)
        sessions = {
            "begin": begin,
            "kind": kind,
            "tested": tested,
            "traces": traces,
            "card_id": np.where(kind < N_GENUINE, user, random.integers(0, len(use), n)),
            "abroad": distance > 700.0,
            "east": distance * np.cos(angle),
            "north": distance * np.sin(angle),
        }
        size = random.geometric(1.0 / OF_KIND["size"][kind])
        size = np.diff(np.minimum(np.cumsum(size), n), prepend=0)
        session = np.repeat(np.arange(n), size)
        first = (np.cumsum(size) - size)[session]
        rows = _take(sessions, session)
        passed = np.cumsum(random.exponential(HOUR, n) * OF_KIND["gap"][rows["kind"]])
        left = np.maximum(end - rows["begin"], 1e-3)
        # waiting times shrink as the end comes near, so that blocks do not overlap
        offset = -left * np.expm1((passed[first] - passed) / left)
        rows["time"] = np.clip(rows["begin"] + offset, 0.0, end - 1e-3)
        rows["tested"] &= first == np.arange(n)
        return rows

    def frame(self, random: np.random.Generator, rows: Table) -> pd.DataFrame:
        """Draw the columns of some rows, and bring the state of their cards up to date."""
        second = rows["time"].astype(np.int64)
        rows |= _take(self.cards, rows["card_id"])
        rows |= self.choose_merchant(random, rows)
        rows |= choose_amount(random, rows)
        rows |= draw_details(random, rows)
        x, y = random.normal([rows["east"], rows["north"]], 22.0)  # kilometres from home
        place = rows["x"] + x, rows["y"] + y
        past = card_history(
            rows["time"], rows["card_id"], rows["amount"], rows["is_online"], *place, self.state
        )
        rows |= dict(zip(PAST, past.T[:6], strict=True))
        rows |= {
            "day": second // 86_400,
            "hour": second // 3600 % 24,
            "weekday": second // 86_400 % 7,
            "card_age_days": (rows["opened"] + rows["time"] // DAY).astype(np.int32),
            "distance_home_km": np.where(rows["is_online"], np.nan, np.hypot(x, y)),
            "distance_last_km": past[:, 6],
            "speed_kmh": past[:, 6] / np.maximum(past[:, 7], 0.05),
            "amount_ratio": rows["amount"] / np.maximum(rows["card_mean_amount"], 1.0),
            "is_fraud": rows["kind"] >= N_GENUINE,
        }
        columns: dict[str, Any] = {"time": START + (1000 * second).astype("timedelta64[ms]")}
        for name in COLUMNS.split():
            values, levels = rows[name], LEVELS.get(name)
            if levels is None:
                columns[name] = values.astype(DTYPES[values.dtype.kind])
            else:
                codes = values.astype(np.int8)
                columns[name] = pd.Categorical.from_codes(codes, categories=pd.Index(levels))
        return pd.DataFrame(columns)

    def choose_merchant(self, random: np.random.Generator, rows: Table) -> Table:
        """Choose whether to buy online, what, and from whom.

        Fraud that leaves traces goes to the riskier of two merchants.
        """
        kind, n = rows["kind"], len(rows["kind"])
        share = OF_KIND["online"][kind]
        online = random.random(n) < np.where(np.isnan(share), rows["online_share"], share)
        tastes = self.tastes[kind, online.astype(np.int64)]
        category = (random.random((n, 1)) > tastes).sum(axis=1)
        abroad = np.where(online, random.random(n) < 0.3, rows["abroad"])
        rank = (self.n_shops * random.random((2, n)) ** 3).astype(np.int64)
        first, second = (2 * category + abroad) * self.n_shops + rank
        risk = self.shops["risk"]
        careless = rows["traces"] & (risk[second] > risk[first])
        merchant = np.where(careless, second, first)
        return {"is_online": online, "merchant_id": merchant, **_take(self.shops, merchant)}


def draw_cards(random: np.random.Generator, n: int) -> Table:
    """Draw cards and their holders: how much, where, how often and how they pay."""
    segment = random.choice(5, n, p=[0.15, 0.35, 0.25, 0.17, 0.08])
    card_type = random.choice(3, n, p=[0.62, 0.32, 0.06])
    region, issuer = (random.random((2, n)) ** 1.5 * [[12], [24]]).astype(np.int64)
    log_spend = random.normal(np.array([-0.4, 0.1, 0.2, -0.1, 0.5])[segment], 0.45)
    limit = np.round(np.exp(random.normal(7.8, 0.5, n) + 0.5 * log_spend), -2)
    age = random.normal(*np.array([[22, 42, 40, 70, 47], [3, 9, 9, 8, 10]])[:, segment])
    radius, angle = np.where(region % 2, 380.0, 180.0), region * np.pi / 6
    return {
        "card_type": card_type,
        "card_brand": random.choice(3, n, p=[0.5, 0.4, 0.1]),
        "issuer": issuer,
        "credit_limit": np.where(card_type == 1, limit, np.nan),
        "holder_age": np.where(random.random(n) > 0.06, age.clip(18, 95).round(), np.nan),
        "holder_segment": segment,
        "home_region": region,
        "opened": random.exponential(900.0, n),
        "use": _cumulative(random.gamma(0.8, 1.0, n) + 0.02),
        "log_spend": log_spend,
        "online_share": random.beta(2.0, 5.0, n),
        "x": radius * np.cos(angle) + random.normal(0.0, 18.0, n),  # kilometres
        "y": radius * np.sin(angle) + random.normal(0.0, 18.0, n),
    }


def draw_shops(random: np.random.Generator, n_shops: int) -> Table:
    """Draw merchants: of every category as many at home as abroad, the most popular first."""
    category, abroad, rank = np.indices((len(NAMES), 2, n_shops)).reshape(3, -1)
    n, age = len(rank), 30 + random.exponential(1500.0, len(rank)).astype(np.int32)
    country = np.where(abroad, random.integers(1, 7, n), 0)
    log_price, risk = LOG_PRICE[category] + random.normal(0.0, 0.35, n), random.beta(1.2, 30.0, n)
    return {
        "merchant_category": category,
        "merchant_country": country,
        "merchant_age_days": age,
        "merchant_mean_amount": np.exp(log_price + 0.18),
        "merchant_volume": (1 + random.gamma(3.0, 40.0, n) / (1 + rank)).round(),
        "merchant_chargeback_rate": np.where(age >= 120, risk, np.nan),
        "risk": risk,
        "log_price": log_price,
        "currency": np.select([country == 4, country == 6], [1, 2]),
    }


def choose_amount(random: np.random.Generator, rows: Table) -> Table:
    """Draw the amount from prices, the customer's spending and the kind of session."""
    shift, spread = OF_KIND["shift"][rows["kind"]], OF_KIND["spread"][rows["kind"]]
    log_amount = random.normal(rows["log_price"] + 0.6 * rows["log_spend"] + shift, spread)
    tiny = random.normal(0.4, 0.5, len(spread))
    amount = np.maximum(np.exp(np.where(rows["tested"], tiny, log_amount)).round(2), 0.5)
    cash = rows["merchant_category"] == CASH
    return {"amount": np.where(cash, np.maximum(10.0, np.round(amount, -1)), amount)}


def draw_details(random: np.random.Generator, rows: Table) -> Table:
    """Draw how the purchase was made; technical traces are missing in shops."""
    category, amount = rows["merchant_category"], rows["amount"]
    traces, n = rows["traces"], len(amount)

    def chance(usual: float, odd: float | None = None) -> np.ndarray:
        return random.random(n) < (usual if odd is None else np.where(traces, odd, usual))

    remote, cash = rows["is_online"], category == CASH
    small = (amount < 50) & chance(0.65)
    channel = np.select([remote & chance(0.04), remote, cash, chance(0.04, 0.4), small],
                        [PHONE, ONLINE, ATM, MAGSTRIPE, CONTACTLESS], CHIP)  # fmt: skip
    online, dear = channel == ONLINE, (amount > 200.0) & chance(0.2)
    app = np.where(chance(0.55, 0.15), 3, np.where(chance(0.35), 4, 2))
    check = np.select([remote, channel == CONTACTLESS, channel == MAGSTRIPE], [app, 2, 1], 0)
    return {
        "channel": channel,
        "recurring": np.isin(category, [SUBSCRIPTION, UTILITIES]) & chance(0.7, 0.05),
        "instalments": np.where(dear, random.choice([3, 4, 10], n), 1),
        "attempts": 1 + chance(0.04, 0.2) + chance(0.01, 0.08),
        "authentication": np.where(chance(0.02), -1, check),
        "device": np.where(online, np.where(chance(0.07), 2, chance(0.38, 0.6)), -1),
        "address_match": np.where(remote, chance(0.18, 0.5) * (1 + chance(0.35, 0.6)), -1),
        "ip_risk": np.where(online, random.beta(1.5 + 1.5 * traces, 7.0 - 3.5 * traces), np.nan),
        "device_age_days": np.where(online, 300.0 * random.exponential(~chance(0.1, 0.6)), np.nan),
        "email_age_days": np.where(online, random.exponential(1800.0 - 1200.0 * traces), np.nan),
        "security_code_match": np.where(remote, chance(0.97, 0.86), np.nan),
        "language_match": np.where(online, chance(0.95, 0.82), np.nan),
    }


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
