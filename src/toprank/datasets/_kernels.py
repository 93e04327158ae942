"""What a bank knows of a card's past when a purchase comes in."""

from __future__ import annotations

import numpy as np
from numba import njit

HOUR, DAY = 3600.0, 86_400.0
STATE = ("last", "count_1h", "count_24h", "amount_24h", "mean", "online", "present", "x", "y")
LAST, COUNT_1H, COUNT_24H, AMOUNT_24H, MEAN, ONLINE_SHARE, PRESENT, X, Y = range(len(STATE))


@njit(cache=True, nogil=True)
def card_history(time, card, amount, online, position, state):
    """Read and update the state of each row's card, in order of time.

    The counts and the amount fade exponentially with a time constant of an hour or a day; the mean
    amount and the share of online purchases move a tenth of the way at each purchase. `state` has a
    row for each card and the columns of STATE: `last` and `present` are the times of the last
    purchase and of the last one in a shop (NaN: none), `x` and `y` where the latter was. Returns,
    for each row: hours since the last purchase, the two counts, the amount, the mean,
    the share of online purchases, kilometres from the last shop and hours since then.
    """
    out = np.empty((len(time), 8), np.float64)
    for i in range(len(time)):
        past = state[card[i]]
        elapsed = time[i] - past[LAST]
        if elapsed == elapsed:  # not NaN
            fade = np.exp(-elapsed / HOUR)
            slow_fade = np.exp(-elapsed / DAY)
            past[COUNT_1H] *= fade
            past[COUNT_24H] *= slow_fade
            past[AMOUNT_24H] *= slow_fade
        out[i, 0] = elapsed / HOUR
        out[i, 1] = past[COUNT_1H]
        out[i, 2] = past[COUNT_24H]
        out[i, 3] = past[AMOUNT_24H]
        out[i, 4] = past[MEAN]
        out[i, 5] = past[ONLINE_SHARE]
        out[i, 6] = np.nan
        out[i, 7] = np.nan
        if not online[i]:
            east = position[i, 0] - past[X]
            north = position[i, 1] - past[Y]
            out[i, 6] = np.sqrt(east * east + north * north)
            out[i, 7] = (time[i] - past[PRESENT]) / HOUR
            past[PRESENT] = time[i]
            past[X] = position[i, 0]
            past[Y] = position[i, 1]
        past[LAST] = time[i]
        past[COUNT_1H] += 1.0
        past[COUNT_24H] += 1.0
        past[AMOUNT_24H] += amount[i]
        past[MEAN] += 0.1 * (amount[i] - past[MEAN])
        past[ONLINE_SHARE] += 0.1 * (online[i] - past[ONLINE_SHARE])
    return out
