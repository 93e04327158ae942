"""Who pays when: purchases in order of time, block by block.

Rows come in sessions (one purchase, a shopping spree, a trip, a burst of fraud). A session that
begins in one block may end in a later one; what is still to come is carried over. Blocks have
a fixed number of rows and their own random stream, so the rows do not depend on how they are read.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from toprank.datasets._card_world import KINDS, N_REGIONS, ONLINE, World

BLOCK_ROWS = 50_000
_ROW_STREAM = 0
AT_HOME = -1
GENUINE = -1


@dataclass(frozen=True)
class Purchases:
    """Rows before their details are drawn.

    Attributes
    ----------
    time : seconds since the start
    card : index of the card
    campaign : index of the fraud campaign, or GENUINE
    place : where the session takes place, or AT_HOME
    step : position in the session
    stealth : whether a fraud leaves no technical traces
    tested : whether the session begins with a tiny purchase
    """

    time: np.ndarray
    card: np.ndarray
    campaign: np.ndarray
    place: np.ndarray
    step: np.ndarray
    stealth: np.ndarray
    tested: np.ndarray

    def take(self, index: np.ndarray) -> Purchases:
        """Select rows."""
        return Purchases(*(getattr(self, column.name)[index] for column in fields(self)))

    @staticmethod
    def join(parts: list[Purchases]) -> Purchases:
        """Put rows one after the other."""
        columns = (column.name for column in fields(Purchases))
        return Purchases(*(np.concatenate([getattr(p, name) for p in parts]) for name in columns))

    def __len__(self) -> int:
        return len(self.time)


class Timeline:
    """Walks through the period once; holds what is carried from block to block."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.done = 0
        self._planned_fraud = 0
        self._carried = _no_purchases()

    def next_block(self) -> tuple[Purchases, np.random.Generator]:
        """Return the next rows, in order of time, and the block's random stream."""
        world = self.world
        random = np.random.default_rng([world.seed, _ROW_STREAM, self.done // BLOCK_ROWS])
        n = min(BLOCK_ROWS, world.n_rows - self.done)
        shares = np.array([self.done, self.done + n]) / world.n_rows
        start, end = np.interp(shares, world.clock, world.hour_ends)
        is_last = self.done + n == world.n_rows
        fraud = self._begin_fraud(random, start, end, is_last)
        waiting = Purchases.join([self._carried, fraud])
        due = np.flatnonzero(waiting.time < end) if not is_last else _due_at_the_end(waiting)
        due = due[np.argsort(waiting.campaign[due] == GENUINE, kind="stable")][:n]
        later = np.setdiff1d(np.arange(len(waiting)), due)
        genuine, carried = _genuine(random, world, shares, end, n - len(due))
        block = Purchases.join([waiting.take(due), genuine])
        self._carried = _not_before(Purchases.join([waiting.take(later), carried]), end)
        self.done += n
        return block.take(np.argsort(block.time, kind="stable")), random

    def _begin_fraud(
        self, random: np.random.Generator, start: float, end: float, is_last: bool
    ) -> Purchases:
        """Bursts that begin in the block, all of their purchases."""
        world, campaigns = self.world, self.world.campaigns
        shares = np.interp([start, end], world.hour_ends, world.fraud_clock)
        target = world.n_fraud if is_last else round(world.n_fraud * float(shares[1]))
        missing = target - self._planned_fraud
        if missing <= 0:
            return _no_purchases()
        begin = np.interp(
            random.uniform(shares[0], shares[1], missing), world.fraud_clock, world.hour_ends
        )
        hour = np.minimum((begin // 3600).astype(np.int64), len(campaigns.by_hour) - 1)
        campaign = (random.random((missing, 1)) > campaigns.by_hour[hour]).sum(axis=1)
        kind = campaigns.kind[campaign]
        size = random.geometric(1.0 / _of_kind("size")[kind])
        n_bursts = int(np.searchsorted(np.cumsum(size), missing)) + 1
        burst = np.arange(n_bursts)
        size = size[:n_bursts]
        size[-1] -= max(0, self._planned_fraud + int(size.sum()) - world.n_fraud)
        self._planned_fraud += int(size.sum())
        place = np.where(random.random(n_bursts) < _of_kind("abroad")[kind[burst]],
                         campaigns.place[campaign[burst]], AT_HOME)  # fmt: skip
        rows = _unfold(
            random, begin[:n_bursts], size, _of_kind("gap_hours")[kind[burst]], world.days
        )
        owner = rows.owner
        return Purchases(
            time=rows.time,
            card=random.integers(0, len(world.cards.cumulative), n_bursts)[owner],
            campaign=campaign[owner],
            place=place[owner],
            step=rows.step,
            stealth=(random.random(n_bursts) < _of_kind("stealth")[kind[burst]])[owner],
            tested=(random.random(n_bursts) < _of_kind("tested")[kind[burst]])[owner],
        )


@dataclass(frozen=True)
class _Unfolded:
    """Sessions as rows: which session, when, and the position in it."""

    owner: np.ndarray
    time: np.ndarray
    step: np.ndarray


def _unfold(
    random: np.random.Generator,
    begin: np.ndarray,
    size: np.ndarray,
    gap_hours: np.ndarray,
    days: int,
) -> _Unfolded:
    """Turn sessions into rows; those that would outlast the period are squeezed into it."""
    owner = np.repeat(np.arange(len(size)), size)
    first = np.cumsum(size) - size
    gaps = random.exponential(3600.0, len(owner)) * gap_hours[owner]
    gaps[first] = 0.0
    offset = np.cumsum(gaps)
    offset -= offset[first][owner]
    length = np.zeros(len(size))
    np.maximum.at(length, owner, offset)
    room = np.maximum(days * 86_400.0 - 1.0 - begin, 0.0)
    squeeze = np.minimum(1.0, room / np.maximum(length, 1e-9))
    step = np.arange(len(owner)) - first[owner]
    return _Unfolded(owner, begin[owner] + offset * squeeze[owner], step)


def _genuine(
    random: np.random.Generator, world: World, shares: np.ndarray, end: float, n: int
) -> tuple[Purchases, Purchases]:
    """Customers' purchases: exactly `n` before `end`, and those of their sessions that follow."""
    begin = np.interp(random.uniform(shares[0], shares[1], n), world.clock, world.hour_ends)
    cards = world.cards
    card = np.searchsorted(cards.cumulative, random.random(n), side="right")
    on_trip = random.random(n) < cards.trips[card]
    on_spree = ~on_trip & (random.random(n) < 0.05)
    more = random.geometric(0.4, n)
    size = np.where(on_trip | on_spree, 1 + more, 1)
    gap_hours = np.where(on_trip, 4.0, 0.5)
    abroad = random.random(n) < 0.35
    away = np.where(abroad, random.integers(N_REGIONS, ONLINE, n), random.integers(0, N_REGIONS, n))
    rows = _unfold(random, begin, size, gap_hours, world.days)
    n_rows = len(rows.time)
    purchases = Purchases(
        time=rows.time,
        card=card[rows.owner],
        campaign=np.full(n_rows, GENUINE),
        place=np.where(on_trip, away, AT_HOME)[rows.owner],
        step=rows.step,
        stealth=np.ones(n_rows, dtype=bool),
        tested=np.zeros(n_rows, dtype=bool),
    )
    inside = rows.time < end
    kept = np.cumsum(inside) <= n  # sessions are in random order, so this cuts none in particular
    return purchases.take(inside & kept), purchases.take(~inside & kept)


def _due_at_the_end(waiting: Purchases) -> np.ndarray:
    """All that waits is due in the last block."""
    return np.arange(len(waiting))


def _not_before(purchases: Purchases, start: float) -> Purchases:
    """Move rows that found no room to the start of the next block."""
    late = purchases.take(np.arange(len(purchases)))
    np.maximum(late.time, start, out=late.time)
    return late


def _no_purchases() -> Purchases:
    """An empty block."""
    whole, flags = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    return Purchases(np.empty(0), whole, whole, whole, whole, flags, flags)


def _of_kind(name: str) -> np.ndarray:
    """One parameter of all kinds of fraud."""
    return np.array([getattr(kind, name) for kind in KINDS.values()])
