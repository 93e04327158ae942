"""Relational data with a planted rule, of any size and skew."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd

from toprank.datasets.loaders import RelationalDataset

__all__ = ["make_relational"]

BANDS = ("small", "middle", "large")
CHANNELS = ("branch", "online", "broker")
KINDS = ("phone", "laptop", "tablet", "emulator")
RULE: dict[str, Any] = {
    "head": ("suspicious", ("A",)),
    "body": [
        ("opened", ("A", "online")),
        ("transfer", ("A", "B", "large")),
        ("uses", ("B", "C")),
        ("device_kind", ("C", "emulator")),
    ],
}
_MODES = {
    "opened": "opened(+account,#channel)",
    "transfer": "transfer(+account,-payee,#band)",
    "uses": "uses(+payee,-device)",
    "device_kind": "device_kind(+device,#kind)",
    "suspicious": "suspicious(+account)",
}


def make_relational(
    n_examples: int = 10_000,
    *,
    skew: float = 149.0,
    noise: float = 0.1,
    n_distractors: int = 3,
    n_folds: int = 5,
    random_state: Any = None,
) -> RelationalDataset:
    """Draw accounts, their payees and the payees' devices, with a planted rule for the positives.

    The planted rule is

        suspicious(A) :- opened(A, online), transfer(A, B, large), uses(B, C),
                         device_kind(C, emulator).

    It covers as many examples as there are positives, and the share `noise` of either is not in the
    other: both its precision and its recall are 1 - noise. Each of its literals is common
    on its own, and many negatives satisfy all but one. Further predicates say nothing
    about the label. With its defaults the skew is that of the protein localization data of [1]_,
    which `make_relational(281_071)` matches in size.

    Parameters
    ----------
    n_examples : int, default=10_000
    skew : float, default=149.0
        Negatives for each positive.
    noise : float, default=0.1
        At least 0 and below 1.
    n_distractors : int, default=3
        Number of further predicates, at least 0.
    n_folds : int, default=5
        Folds given in `extra`, with the positives spread evenly.
    random_state : int, RandomState or None

    Returns
    -------
    data : RelationalDataset
        `rule` holds the planted rule.

    References
    ----------
    .. [1] L. Oliphant, E. Burnside and J. Shavlik (2009), Boosting first-order clauses for large,
       skewed data sets, Inductive Logic Programming.

    Examples
    --------
    >>> data = make_relational(3000, random_state=0)
    >>> data.rule["head"], len(data.rule["body"]), int(data.y.sum())
    (('suspicious', ('A',)), 4, 20)
    >>> sorted(data.tables)[:3]
    ['attribute_1', 'attribute_2', 'attribute_3']
    """
    from sklearn.utils import check_random_state

    if not (0 <= noise < 1 and skew > 0 and n_distractors >= 0 and n_folds >= 1):
        raise ValueError(
            "noise must be at least 0 and below 1, skew above 0, n_distractors at least 0 and n_folds "
            f"at least 1; got {noise}, {skew}, {n_distractors} and {n_folds}"
        )
    n_positives = round(n_examples / (1.0 + skew))
    if n_positives < 1 or n_positives * (1 + noise) >= n_examples:
        raise ValueError(
            f"{n_examples} examples at a skew of 1:{skew:g} give {n_positives} positives: too few "
            "or too many; change n_examples or skew"
        )
    random = check_random_state(random_state)
    order, n_noisy = random.permutation(n_examples), round(noise * n_positives)
    y, covered = np.zeros(n_examples, dtype=np.int64), np.zeros(n_examples, dtype=bool)
    y[order[:n_positives]] = 1
    covered[order[n_noisy : n_positives + n_noisy]] = True
    tables, risky_payee = _payees(random, n_examples)
    opened, transfers = _accounts(random, covered, risky_payee)
    accounts = _names("a", np.arange(n_examples))
    tables["opened"] = pd.DataFrame({"account": accounts, "channel": opened})
    tables["transfer"] = transfers.assign(
        account=accounts.to_numpy()[transfers["account"]],
        payee=_names("p", transfers["payee"]),
    )
    for k in range(1, n_distractors + 1):
        tables[f"attribute_{k}"] = _distractor(random, accounts, k)
    fold = np.empty(n_examples, dtype=np.int64)
    order = random.permutation(n_examples)
    order = order[np.argsort(y[order], kind="stable")]
    fold[order] = np.arange(n_examples) % n_folds + 1
    return RelationalDataset(
        name="planted_rule",
        tables=tables,
        examples=pd.DataFrame({"account": accounts}),
        y=y,
        schema=_schema(tables, n_examples, n_positives),
        extra=pd.DataFrame({"fold": fold}),
        rule=deepcopy(RULE),
        description=f"{n_examples:,} generated accounts; the planted rule has precision and "
        f"recall {1 - noise:g}",
    )


def _payees(
    random: np.random.RandomState, n_accounts: int
) -> tuple[dict[str, pd.DataFrame], np.ndarray]:
    """Draw payees with one to three devices, and return which of them has an emulator."""
    n_payees = max(20, n_accounts // 5)
    n_devices = max(40, n_accounts // 4)
    emulator = KINDS.index("emulator")
    kind = random.choice(len(KINDS), n_devices, p=[0.5, 0.25, 0.15, 0.1])
    payee = np.repeat(np.arange(n_payees), random.randint(1, 4, n_payees))
    device = random.randint(0, n_devices, len(payee))
    kind[:2] = emulator, KINDS.index("phone")
    device[payee < 2] = payee[payee < 2]  # one payee of either kind, however small the data
    risky = np.zeros(n_payees, dtype=bool)
    risky[payee[kind[device] == emulator]] = True
    uses = pd.DataFrame({"payee": payee, "device": device}).drop_duplicates(ignore_index=True)
    uses = uses.assign(payee=_names("p", uses["payee"]), device=_names("d", uses["device"]))
    devices = {"device": _names("d", np.arange(n_devices)), "kind": np.array(KINDS)[kind]}
    return {"uses": uses, "device_kind": pd.DataFrame(devices)}, risky


def _accounts(
    random: np.random.RandomState, covered: np.ndarray, risky_payee: np.ndarray
) -> tuple[np.ndarray, pd.DataFrame]:
    """Draw channels and transfers such that the rule holds exactly for the covered accounts."""
    n = len(covered)
    online, large = CHANNELS.index("online"), BANDS.index("large")
    channel = random.choice(len(CHANNELS), n, p=[0.35, 0.5, 0.15])
    account = np.repeat(np.arange(n), random.randint(1, 6, n))
    payee = random.randint(0, len(risky_payee), len(account))
    band = random.choice(len(BANDS), len(account), p=[0.5, 0.3, 0.2])
    first = np.searchsorted(account, np.flatnonzero(covered))
    payee[first] = random.choice(np.flatnonzero(risky_payee), len(first))
    band[first] = large
    channel[covered] = online
    decisive = (band == large) & risky_payee[payee]
    reaches = np.zeros(n, dtype=bool)
    reaches[account[decisive]] = True
    to_break = np.flatnonzero(reaches & (channel == online) & ~covered)
    how = random.randint(0, 3, n)  # break one literal, and only as much as needed
    channel[to_break[how[to_break] == 0]] = CHANNELS.index("branch")
    broken = np.zeros(n, dtype=bool)
    broken[to_break] = True
    smaller = decisive & broken[account] & (how[account] == 1)
    band[smaller] = BANDS.index("middle")
    safer = decisive & broken[account] & (how[account] == 2)
    payee[safer] = random.choice(np.flatnonzero(~risky_payee), int(safer.sum()))
    transfers = pd.DataFrame({"account": account, "payee": payee, "band": np.array(BANDS)[band]})
    return np.array(CHANNELS)[channel], transfers.drop_duplicates(ignore_index=True)


def _distractor(random: np.random.RandomState, accounts: pd.Series, k: int) -> pd.DataFrame:
    """Draw a predicate that has nothing to do with the label."""
    values = np.array([f"v{k}_{j}" for j in range(2 + 2 * k)])
    known = random.random_sample(len(accounts)) < 0.9
    drawn = values[random.randint(0, len(values), int(known.sum()))]
    column = accounts[known].reset_index(drop=True)
    return pd.DataFrame({"account": column, f"value_{k}": drawn})


def _schema(tables: dict[str, pd.DataFrame], n: int, n_positives: int) -> dict[str, Any]:
    """Return the schema as plain data, in the form that `RelationalDataset` describes."""
    predicates: dict[str, Any] = {}
    for name, table in tables.items():
        arguments = [str(column) for column in table.columns]
        predicates[name] = {
            "file": f"{name}.parquet",
            "arguments": arguments,
            "argument_types": arguments.copy(),
            "rows": len(table),
            "modes": [_MODES.get(name, f"{name}(+account,#{arguments[1]})")],
        }
    return {
        "name": "planted_rule",
        "domain": "synthetic",
        "target_predicate": "suspicious",
        "predicates": predicates,
        "examples": {
            "file": "examples.parquet",
            "arguments": ["account"],
            "argument_types": ["account"],
            "rows": n,
            "positives": n_positives,
            "modes": [_MODES["suspicious"]],
            "extra_columns": ["fold"],
        },
    }


def _names(prefix: str, numbers: Any) -> pd.Series:
    """Return constants such as a17."""
    return prefix + pd.Series(numbers).astype(str)
