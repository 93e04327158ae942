"""The details of each purchase: forty columns, as a bank would see them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from toprank.datasets._card_sessions import AT_HOME, GENUINE, Purchases
from toprank.datasets._card_world import (
    CASH,
    CATEGORIES,
    COUNTRIES,
    DAY,
    KINDS,
    ONLINE,
    REGIONS,
    SEGMENTS,
    SUBSCRIPTION,
    World,
)
from toprank.datasets._kernels import card_history

CHANNELS = ("chip", "contactless", "magstripe", "atm", "online", "phone")
CHIP, CONTACTLESS, MAGSTRIPE, ATM, ONLINE_CHANNEL, PHONE = range(len(CHANNELS))
AUTHENTICATIONS = ("pin", "signature", "none", "app", "code")
PIN, SIGNATURE, NO_CHECK, APP, CODE = range(len(AUTHENTICATIONS))
DEVICES = ("phone", "laptop", "tablet")
ADDRESSES = ("full", "partial", "none")
CURRENCIES = ("EUR", "GBP", "USD")
CARD_KINDS = ("debit", "credit", "prepaid")
BRANDS = ("brand_a", "brand_b", "brand_c")
ISSUERS = tuple(f"bank_{k:02d}" for k in range(1, 25))
START = np.datetime64("2024-01-01T00:00:00", "ms")  # the unit that Parquet keeps


class FeatureBuilder:
    """Draws the columns of block after block; remembers the past of every card."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._state = _initial_state(world)

    def frame(self, rows: Purchases, random: np.random.Generator) -> pd.DataFrame:
        """Return the identifiers, the forty features and the label of a block."""
        world, fraud = self.world, rows.campaign != GENUINE
        kind = np.where(fraud, world.campaigns.kind[rows.campaign], -1)
        online = _choose_online(random, world, rows, kind)
        category, merchant = _choose_merchant(random, world, rows, online)
        amount = _choose_amount(random, world, rows, kind, category, merchant)
        channel = _choose_channel(random, world, rows, kind, online, category, merchant, amount)
        traces = fraud & ~rows.stealth
        moment = rows.time.astype(np.int64)
        columns: dict[str, object] = {
            "time": START + (1000 * moment).astype("timedelta64[ms]"),
            "day": (moment // 86_400).astype(np.int16),
            "card_id": rows.card,
            "merchant_id": merchant,
            "amount": amount.astype(np.float32),
            "hour": (moment // 3600 % 24).astype(np.int8),
            "weekday": (moment // 86_400 % 7).astype(np.int8),
        }
        columns |= _purchase_columns(random, channel, category, amount, fraud)
        columns |= _online_columns(random, channel, traces)
        columns |= _merchant_columns(random, world, merchant)
        columns |= _card_columns(world, rows)
        columns |= self._history_columns(rows, online, merchant, amount)
        columns["is_fraud"] = fraud.astype(np.int8)
        return pd.DataFrame(columns)

    def _history_columns(
        self, rows: Purchases, online: np.ndarray, merchant: np.ndarray, amount: np.ndarray
    ) -> dict[str, object]:
        """The card's recent past, and how this purchase compares with it."""
        cards, position = self.world.cards, self.world.merchants.position[merchant]
        past = card_history(rows.time, rows.card, amount, online, position, self._state)
        from_home = np.sqrt(np.square(position - cards.position[rows.card]).sum(axis=1))
        speed = past[:, 6] / np.maximum(past[:, 7], 0.05)
        numbers = {
            "distance_home_km": np.where(online, np.nan, from_home),
            "distance_last_km": past[:, 6],
            "speed_kmh": speed,
            "hours_since_last": past[:, 0],
            "recent_count_1h": past[:, 1],
            "recent_count_24h": past[:, 2],
            "recent_amount_24h": past[:, 3],
            "card_mean_amount": past[:, 4],
            "amount_ratio": amount / np.maximum(past[:, 4], 1.0),
            "recent_online_share": past[:, 5],
        }
        return {name: values.astype(np.float32) for name, values in numbers.items()}


def _initial_state(world: World) -> np.ndarray:
    """Cards have a past before the first day; one in ten is new."""
    random = np.random.default_rng([world.seed, 5])
    cards, n = world.cards, len(world.cards.cumulative)
    state = np.zeros((n, 9))
    state[:, 0] = -random.exponential(1.5 * DAY, n)
    state[:, 4] = np.exp(3.6 + 0.6 * cards.log_spend + random.normal(0.0, 0.3, n))
    state[:, 5] = cards.online_share
    state[:, 6] = state[:, 0]
    state[:, 7:] = cards.position + random.normal(0.0, 20.0, (n, 2))
    is_new = random.random(n) < 0.1
    for column in (0, 6, 7, 8):
        state[is_new, column] = np.nan
    return state


def _choose_online(
    random: np.random.Generator, world: World, rows: Purchases, kind: np.ndarray
) -> np.ndarray:
    """Whether the purchase is made without the card; slowly more are."""
    drift = 1.0 + 0.15 * rows.time / (world.days * DAY)
    share = world.cards.online_share[rows.card] * drift
    share = np.where(rows.place == AT_HOME, share, 0.5 * share)
    of_kind = np.array([spec.online for spec in KINDS.values()])
    share = np.where(kind >= 0, of_kind[kind], share)
    return random.random(len(rows)) < share


def _choose_merchant(
    random: np.random.Generator, world: World, rows: Purchases, online: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What is bought and from whom; careless fraud goes to the riskier of two merchants."""
    n, fraud = len(rows), rows.campaign != GENUINE
    segment = world.cards.segment[rows.card]
    cumulative = world.tastes[segment, online.astype(np.int64)]
    cumulative[fraud] = world.campaigns.category_cumulative[rows.campaign[fraud]]
    category = (random.random((n, 1)) > cumulative).sum(axis=1)
    category = np.minimum(category, len(CATEGORIES) - 1)
    online &= category != CASH
    home = world.cards.region[rows.card]
    place = np.where(online, ONLINE, np.where(rows.place == AT_HOME, home, rows.place))
    group = place * len(CATEGORIES) + category
    low, high = world.merchants.group_start[group], world.merchants.group_start[group + 1]
    picks = low + random.random((2, n)) * (high - low)
    last = len(world.merchants.cumulative) - 1
    first, second = np.minimum(np.searchsorted(world.merchants.cumulative, picks, "right"), last)
    riskier = np.where(world.merchants.risk[first] >= world.merchants.risk[second], first, second)
    return category, np.where(fraud & ~rows.stealth, riskier, first)


def _choose_amount(
    random: np.random.Generator,
    world: World,
    rows: Purchases,
    kind: np.ndarray,
    category: np.ndarray,
    merchant: np.ndarray,
) -> np.ndarray:
    """The merchant's prices, the customer's purse and, for fraud, the campaign's greed."""
    n, fraud = len(rows), kind >= 0
    spread = np.array([spec.spread for spec in KINDS.values()])
    log_amount = (
        world.merchants.log_price[merchant]
        + 0.6 * world.cards.log_spend[rows.card]
        + random.normal(0.0, 0.6, n)
        + 0.0008 * rows.time / DAY
    )
    greed = world.campaigns.shift[rows.campaign] + spread[kind] * random.normal(0.0, 1.0, n)
    log_amount += np.where(fraud, greed, 0.0)
    log_amount = np.where(rows.tested & (rows.step == 0), random.normal(0.4, 0.5, n), log_amount)
    amount = np.maximum(np.exp(log_amount).round(2), 0.5)
    return np.where(category == CASH, np.maximum(10.0, np.round(amount, -1)), amount)


def _choose_channel(
    random: np.random.Generator,
    world: World,
    rows: Purchases,
    kind: np.ndarray,
    online: np.ndarray,
    category: np.ndarray,
    merchant: np.ndarray,
    amount: np.ndarray,
) -> np.ndarray:
    """How the card is read."""
    n = len(rows)
    foreign = world.merchants.country[merchant] > 0
    stripe = np.where(foreign, 0.15, 0.03)
    stripe = np.where(kind == list(KINDS).index("skimming"), 0.45, stripe)
    u = random.random((3, n))
    in_shop = np.where((amount < 50.0) & (u[0] < 0.65), CONTACTLESS, CHIP)
    in_shop = np.where(u[1] < stripe, MAGSTRIPE, in_shop)
    in_shop = np.where(category == CASH, ATM, in_shop)
    return np.where(online, np.where(u[2] < 0.04, PHONE, ONLINE_CHANNEL), in_shop)


def _purchase_columns(
    random: np.random.Generator,
    channel: np.ndarray,
    category: np.ndarray,
    amount: np.ndarray,
    fraud: np.ndarray,
) -> dict[str, object]:
    """Columns that every purchase has."""
    n = len(channel)
    u = random.random((4, n))
    often_recurring = np.isin(category, (SUBSCRIPTION, CATEGORIES.index("utilities")))
    recurring = often_recurring & (u[0] < np.where(fraud, 0.05, 0.7))
    dear = (amount > 200.0) & np.isin(channel, (CHIP, ONLINE_CHANNEL))
    instalments = np.where(dear & (u[1] < 0.25), random.choice([3, 4, 10], n), 1)
    attempts = 1 + (u[2] < np.where(fraud, 0.12, 0.04)) + (u[3] < np.where(fraud, 0.05, 0.01))
    return {
        "channel": _categorical(channel, CHANNELS),
        "merchant_category": _categorical(category, CATEGORIES),
        "recurring": recurring.astype(np.int8),
        "instalments": instalments.astype(np.int8),
        "attempts": attempts.astype(np.int8),
    }


def _online_columns(
    random: np.random.Generator, channel: np.ndarray, traces: np.ndarray
) -> dict[str, object]:
    """Technical traces of purchases without the card, missing for all others."""
    n = len(channel)
    online = channel == ONLINE_CHANNEL
    remote = online | (channel == PHONE)
    u = random.random((11, n))
    risk = np.where(traces, random.beta(2.4, 4.0, n), random.beta(1.5, 7.0, n))
    device_age = np.where(
        u[0] < np.where(traces, 0.5, 0.1), 0.0, random.exponential(np.where(traces, 150.0, 300.0))
    )
    email_age = random.exponential(np.where(traces, 800.0, 1800.0))
    address = (u[1] > np.where(traces, 0.5, 0.82)).astype(np.int64) + (
        u[1] > np.where(traces, 0.68, 0.94)
    )
    device = (u[2] > np.where(traces, 0.4, 0.62)).astype(np.int64) + (u[2] > 0.93)
    code = u[3] < np.where(traces, 0.86, 0.97)
    language = u[4] < np.where(traces, 0.82, 0.95)
    check = np.where(u[5] < np.where(traces, 0.2, 0.55), APP, np.where(u[6] < 0.35, CODE, NO_CHECK))
    in_shop = np.select(
        [channel == CONTACTLESS, channel == ATM, channel == MAGSTRIPE, u[7] < 0.94],
        [NO_CHECK, PIN, SIGNATURE, PIN],
        SIGNATURE,
    )
    authentication = np.where(u[8] < 0.02, -1, np.where(remote, check, in_shop))
    return {
        "authentication": _categorical(authentication, AUTHENTICATIONS),
        "device": _categorical(np.where(online, device, -1), DEVICES),
        "address_match": _categorical(np.where(remote, address, -1), ADDRESSES),
        "ip_risk": _where(online & (u[9] > 0.08), risk),
        "device_age_days": _where(online, np.floor(device_age)),
        "email_age_days": _where(online & (u[10] > 0.15), np.floor(email_age)),
        "security_code_match": _where(remote, code),
        "language_match": _where(online, language),
    }


def _merchant_columns(
    random: np.random.Generator, world: World, merchant: np.ndarray
) -> dict[str, object]:
    """What is known of the merchant."""
    merchants = world.merchants
    country = merchants.country[merchant]
    native = np.select(
        [country == COUNTRIES.index("GB"), country == COUNTRIES.index("US")], [1, 2], 0
    )
    converted = random.random(len(merchant)) < 0.1
    age = merchants.age_days[merchant]
    return {
        "merchant_country": _categorical(country, COUNTRIES),
        "currency": _categorical(np.where(converted, 0, native), CURRENCIES),
        "merchant_age_days": age.astype(np.int32),
        "merchant_mean_amount": np.exp(merchants.log_price[merchant] + 0.18).astype(np.float32),
        "merchant_volume": merchants.volume[merchant].astype(np.float32),
        "merchant_chargeback_rate": _where(age >= 120, merchants.risk[merchant]),
    }


def _card_columns(world: World, rows: Purchases) -> dict[str, object]:
    """What is known of the card and its holder."""
    cards, card = world.cards, rows.card
    return {
        "card_type": _categorical(cards.kind[card], CARD_KINDS),
        "card_brand": _categorical(cards.brand[card], BRANDS),
        "issuer": _categorical(cards.issuer[card], ISSUERS),
        "card_age_days": (cards.age_days[card] + rows.time // DAY).astype(np.int32),
        "credit_limit": cards.limit[card].astype(np.float32),
        "holder_age": cards.holder_age[card].astype(np.float32),
        "holder_segment": _categorical(cards.segment[card], SEGMENTS),
        "home_region": _categorical(cards.region[card], REGIONS),
    }


def _where(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Numbers where they are known, missing elsewhere."""
    return np.where(known, values, np.nan).astype(np.float32)


def _categorical(codes: np.ndarray, names: tuple[str, ...]) -> pd.Categorical[str]:
    """Category codes, -1 for missing, with their names."""
    return pd.Categorical.from_codes(codes.astype(np.int8), categories=pd.Index(names))
