"""The world of the card-fraud simulator: places, categories, merchants, cards and fraud campaigns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DAY = 86_400.0
CATEGORIES = (
    "grocery", "restaurant", "fuel", "pharmacy", "clothing", "electronics", "furniture", "travel",
    "hotel", "transit", "entertainment", "gaming", "gift_cards", "jewellery", "utilities",
    "subscription", "health", "education", "cash", "marketplace",
)  # fmt: skip
POPULARITY = np.array(
    [22, 16, 8, 5, 6, 3, 1.5, 1.5, 1.5, 9, 4, 3, 0.8, 0.6, 3, 5, 2, 0.8, 4, 7], dtype=float
)
LOG_PRICE = np.array(
    [3.4, 3.0, 3.7, 2.7, 3.8, 4.6, 5.2, 5.3, 5.0, 1.6, 2.8, 2.6, 3.7, 5.0, 4.2, 2.4, 3.9, 4.8,
     4.2, 3.3]
)  # fmt: skip
ONLINE_TILT = np.array(
    [0.2, 0.5, 0.0, 0.3, 1.2, 1.6, 1.0, 3.0, 2.5, 0.5, 1.2, 5.0, 2.0, 0.7, 3.0, 6.0, 0.3, 2.0, 0.0,
     5.0]
)  # fmt: skip
CASH = CATEGORIES.index("cash")
SUBSCRIPTION = CATEGORIES.index("subscription")
SEGMENTS = ("student", "family", "professional", "senior", "business")
REGIONS = tuple(f"region_{letter}" for letter in "abcdefghijkl")
FOREIGN = ("BE", "DE", "ES", "GB", "IT", "US")
HOME_COUNTRY = "FR"
COUNTRIES = (HOME_COUNTRY, *FOREIGN)
N_REGIONS, N_FOREIGN = len(REGIONS), len(FOREIGN)
ONLINE = N_REGIONS + N_FOREIGN  # the place of all merchants without a shop
N_PLACES = ONLINE + 1
FOREIGN_KM = np.array([[250.0, 900.0], [900.0, 700.0], [100.0, -700.0], [-100.0, 1000.0],
                       [1000.0, 0.0], [-6000.0, 300.0]])  # fmt: skip

# keys of the random streams; the blocks of rows use 0
_CARD_STREAM, _MERCHANT_STREAM, _CAMPAIGN_STREAM, _TASTE_STREAM = 1, 2, 3, 4
_HOURS = np.array(
    [2, 1, 1, 1, 1, 2, 5, 10, 14, 16, 18, 21, 26, 23, 19, 18, 20, 25, 28, 24, 18, 13, 8, 4.0]
)
_WEEK = np.array([0.95, 0.95, 1.0, 1.05, 1.2, 1.25, 0.8])
_NIGHT = np.array([9, 9, 9, 8, 7, 5, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5, 6, 6, 7, 8, 9, 9.0])


@dataclass(frozen=True)
class Kind:
    """How one kind of fraud is done; campaigns are drawn around it.

    Attributes
    ----------
    share : float
        How common campaigns of the kind are.
    online : float
        Share of purchases without the card.
    categories : tuple of str
        What is bought.
    shift, spread : float
        Mean and deviation, in logs, of the amount beyond what a customer would pay.
    size : float
        Mean number of purchases in a burst.
    gap_hours : float
        Mean time between two of them.
    night : float
        0: shopping hours; 1: mostly at night.
    abroad : float
        Share of bursts far from the card's home.
    tested : float
        Share of bursts that begin with a tiny purchase.
    stealth : float
        Share of bursts whose technical traces (address, device, ...) look like the customer's.
    """

    share: float
    online: float
    categories: tuple[str, ...]
    shift: float
    spread: float
    size: float
    gap_hours: float
    night: float = 0.3
    abroad: float = 0.0
    tested: float = 0.0
    stealth: float = 0.4


KINDS: dict[str, Kind] = {
    "online_spree": Kind(0.30, 0.98, ("electronics", "gift_cards", "clothing", "jewellery",
                         "marketplace"), 0.7, 0.6, 3.5, 0.6, night=0.6, tested=0.3, stealth=0.25),
    "card_testing": Kind(0.12, 1.00, ("subscription", "gaming", "marketplace"), -1.0, 0.5, 4.5, 0.2,
                         night=0.7, tested=0.9, stealth=0.2),
    "skimming": Kind(0.18, 0.05, ("cash", "electronics", "fuel"), 0.8, 0.5, 3.0, 1.0, night=0.5,
                     abroad=0.7, stealth=0.3),
    "lost_card": Kind(0.15, 0.05, ("grocery", "fuel", "restaurant", "transit", "clothing"), 0.2, 0.5,
                      3.5, 0.8, night=0.2, stealth=0.5),
    "takeover": Kind(0.15, 0.90, ("travel", "hotel", "electronics", "marketplace", "furniture"), 0.5,
                     0.6, 2.0, 6.0, night=0.2, stealth=0.6),
    "dispute": Kind(0.10, 0.60, CATEGORIES, 0.1, 0.4, 1.2, 12.0, night=0.0, stealth=1.0),
}  # fmt: skip


@dataclass(frozen=True)
class Cards:
    """One entry for each card."""

    cumulative: np.ndarray  # of the activity, ending at 1
    log_spend: np.ndarray
    online_share: np.ndarray
    trips: np.ndarray
    segment: np.ndarray
    region: np.ndarray
    position: np.ndarray
    kind: np.ndarray
    brand: np.ndarray
    issuer: np.ndarray
    age_days: np.ndarray
    limit: np.ndarray
    holder_age: np.ndarray


@dataclass(frozen=True)
class Merchants:
    """One entry for each merchant, those of one place and category side by side."""

    cumulative: np.ndarray  # of the popularity over all merchants
    group_start: np.ndarray  # of the cumulative popularity; group = place * categories + category
    category: np.ndarray
    country: np.ndarray
    position: np.ndarray
    log_price: np.ndarray
    risk: np.ndarray
    age_days: np.ndarray
    volume: np.ndarray


@dataclass(frozen=True)
class Campaigns:
    """One entry for each fraud campaign, and when each is active."""

    kind: np.ndarray
    category_cumulative: np.ndarray
    shift: np.ndarray
    place: np.ndarray
    by_hour: np.ndarray  # cumulative share of each campaign in each hour of the period


@dataclass(frozen=True)
class World:
    """Everything that is drawn once, and the two clocks that spread rows over time."""

    seed: int
    n_rows: int
    n_fraud: int
    days: int
    cards: Cards
    merchants: Merchants
    campaigns: Campaigns
    tastes: np.ndarray  # cumulative shares of the categories by segment, in shops and online
    clock: np.ndarray  # cumulative share of all rows at the end of each hour
    fraud_clock: np.ndarray  # cumulative share of the fraud

    @property
    def hour_ends(self) -> np.ndarray:
        """Seconds at which the entries of the clocks hold."""
        return np.arange(len(self.clock)) * 3600.0


def build_world(seed: int, n_rows: int, n_fraud: int, days: int, n_cards: int) -> World:
    """Draw a world; every part has its own random stream."""
    hour_of_day = np.tile(np.arange(24), days)
    weekday = np.repeat(np.arange(days) % 7, 24)
    clock = _cumulative(_HOURS[hour_of_day] * _WEEK[weekday])
    campaigns, activity = _draw_campaigns(np.random.default_rng([seed, _CAMPAIGN_STREAM]), days)
    return World(
        seed=seed,
        n_rows=n_rows,
        n_fraud=n_fraud,
        days=days,
        cards=_draw_cards(np.random.default_rng([seed, _CARD_STREAM]), n_cards),
        merchants=_draw_merchants(
            np.random.default_rng([seed, _MERCHANT_STREAM]), max(2 * N_PLACES * 20, n_cards // 8)
        ),
        campaigns=campaigns,
        tastes=_draw_tastes(np.random.default_rng([seed, _TASTE_STREAM])),
        clock=np.concatenate([[0.0], clock]),
        fraud_clock=np.concatenate([[0.0], _cumulative(activity)]),
    )


def _cumulative(weights: np.ndarray) -> np.ndarray:
    """Running share of non-negative weights, ending at exactly 1."""
    total = np.cumsum(weights)
    total /= total[-1]
    total[-1] = 1.0
    return total


def _draw_cards(random: np.random.Generator, n: int) -> Cards:
    """Customers: how much, where, how often and how they pay."""
    segment = random.choice(len(SEGMENTS), n, p=[0.15, 0.35, 0.25, 0.17, 0.08])
    kind = (random.random((n, 1)) > np.array([[0.62, 0.94]])).sum(axis=1)  # debit, credit, prepaid
    log_spend = random.normal(0.0, 0.45, n) + np.array([-0.4, 0.1, 0.2, -0.1, 0.5])[segment]
    region = random.choice(N_REGIONS, n, p=_falling_shares(N_REGIONS))
    limit = np.round(np.exp(random.normal(7.8, 0.5, n) + 0.5 * log_spend) / 100) * 100
    holder_age = np.clip(
        random.normal(np.array([22, 42, 40, 70, 47])[segment], np.array([3, 9, 9, 8, 10])[segment]),
        18, 95,
    ).round()  # fmt: skip
    holder_age[random.random(n) < 0.06] = np.nan
    return Cards(
        cumulative=_cumulative(random.gamma(0.8, 1.0, n) + 0.02),
        log_spend=log_spend,
        online_share=random.beta(2.0, 5.0, n),
        trips=random.gamma(0.5, 0.03, n),
        segment=segment,
        region=region,
        position=region_centres()[region] + random.normal(0.0, 18.0, (n, 2)),
        kind=kind,
        brand=random.choice(3, n, p=[0.5, 0.4, 0.1]),
        issuer=random.choice(24, n, p=_falling_shares(24)),
        age_days=random.exponential(900.0, n).astype(np.int64),
        limit=np.where(kind == 1, limit, np.nan),
        holder_age=holder_age,
    )


def _draw_merchants(random: np.random.Generator, n: int) -> Merchants:
    """Merchants, at least two in every place for every category."""
    n_groups = N_PLACES * len(CATEGORIES)
    group = np.sort(np.concatenate([np.arange(n_groups).repeat(2),
                                    random.integers(0, n_groups, n - 2 * n_groups)]))  # fmt: skip
    place, category = group // len(CATEGORIES), group % len(CATEGORIES)
    weight = random.pareto(1.2, n) + 0.05
    cumulative = np.cumsum(weight)
    starts = np.searchsorted(group, np.arange(n_groups + 1))
    country = np.where((place >= N_REGIONS) & (place < ONLINE), place - N_REGIONS + 1, 0)
    from_abroad = (place == ONLINE) & (random.random(n) < 0.3)
    country[from_abroad] = random.integers(1, len(COUNTRIES), from_abroad.sum())
    centres = np.concatenate([region_centres(), FOREIGN_KM, np.zeros((1, 2))])
    return Merchants(
        cumulative=cumulative,
        group_start=np.concatenate([[0.0], cumulative])[starts],
        category=category,
        country=country,
        position=centres[place] + random.normal(0.0, 15.0, (n, 2)),
        log_price=LOG_PRICE[category] + random.normal(0.0, 0.35, n),
        risk=random.beta(1.2, 30.0, n),
        age_days=random.exponential(1500.0, n).astype(np.int64) + 30,
        volume=np.round(weight / weight.mean() * 40.0 + 1.0),
    )


def _draw_tastes(random: np.random.Generator) -> np.ndarray:
    """What each segment buys in shops (0) and online (1)."""
    tilt = random.gamma(6.0, 1.0 / 6.0, (len(SEGMENTS), 1, len(CATEGORIES)))
    place = np.stack([POPULARITY / (1.0 + ONLINE_TILT), POPULARITY * ONLINE_TILT])
    weights = tilt * place[None]
    return np.cumsum(weights, axis=2) / weights.sum(axis=2, keepdims=True)


def _draw_campaigns(random: np.random.Generator, days: int) -> tuple[Campaigns, np.ndarray]:
    """Fraud comes in campaigns that begin, grow and end; one of each kind runs all the time."""
    names = list(KINDS)
    n = len(names) + max(6, round(days / 2.5))
    shares = np.array([spec.share for spec in KINDS.values()])
    kind = np.concatenate([np.arange(len(names)),
                           random.choice(len(names), n - len(names), p=shares)])  # fmt: skip
    middle = random.uniform(0.0, days, n)
    width = random.uniform(2.0, 8.0, n)
    strength = random.gamma(3.0, 1.0, n) * 3.0 / width
    day = np.arange(days)[:, None] + 0.5
    activity = strength * np.exp(-0.5 * np.square((day - middle) / width))
    activity[:, : len(names)] = shares * activity[:, len(names) :].sum(axis=1).mean() * 0.8
    total = activity.sum(axis=1, keepdims=True)
    activity *= (0.7 * total.mean() + 0.3 * total) / total  # the mix changes more than the volume
    night = np.array([spec.night for spec in KINDS.values()])[kind]
    hours = (1 - night) * (_HOURS / _HOURS.sum())[:, None] + night * (_NIGHT / _NIGHT.sum())[
        :, None
    ]
    by_hour = (activity[:, None, :] * hours[None, :, :]).reshape(24 * days, n)
    weights = np.zeros((n, len(CATEGORIES)))
    for row, code in enumerate(kind):  # each campaign has its own taste within the kind
        liked = [CATEGORIES.index(name) for name in KINDS[names[code]].categories]
        weights[row, liked] = random.gamma(0.7, 1.0, len(liked)) + 0.02
        if names[code] == "dispute":
            weights[row] = POPULARITY * (0.5 + ONLINE_TILT)
    shifts = np.array([spec.shift for spec in KINDS.values()])[kind] + random.normal(0.0, 0.3, n)
    return (
        Campaigns(
            kind=kind,
            category_cumulative=np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True),
            shift=shifts,
            place=random.integers(0, ONLINE, n),
            by_hour=np.cumsum(by_hour, axis=1) / by_hour.sum(axis=1, keepdims=True),
        ),
        by_hour.sum(axis=1),
    )


def region_centres() -> np.ndarray:
    """Centres of the home country's regions on a plane, in kilometres."""
    angle = np.linspace(0.0, 2.0 * np.pi, N_REGIONS, endpoint=False)
    radius = np.where(np.arange(N_REGIONS) % 2 == 0, 180.0, 380.0)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _falling_shares(n: int) -> np.ndarray:
    """Shares that fall like one over the square root of the rank."""
    weights = 1.0 / np.sqrt(np.arange(1, n + 1))
    return weights / weights.sum()
