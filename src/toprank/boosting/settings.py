"""The settings that boosted trees take from the data where the user gives none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

__all__ = ["AUTO", "Settings"]

AUTO = "auto"  # the objective that stands for several
FEW_ROWS = 5_000
MANY_ROWS = 20_000
MANY_POSITIVES = 1_000
ENOUGH_POSITIVES = 100  # to choose the rounds by: with fewer, chance would choose
FOREST_SHARE = 0.25  # of what is not linear in the score, where there is a forest
LINEAR_SHARE = 0.25  # of the score, where there is a linear model
MOST_LINEAR = 5_000  # columns
MAX_CATEGORIES = 30  # of a column whose categories trees may split into subsets

# These look at the top of the list and leave little curvature to positives that are not high yet: penalties
# of the usual size would keep their leaves at zero.
TOP_ONLY = ("ap_exp", "lambda_mrr")
FREE_LEAVES = {"min_child_weight": 1e-3, "reg_lambda": 1e-3}


@dataclass(frozen=True)
class Settings:
    """What a fit uses for each parameter of `GradientBoostingRanker` that is None by default.

    Attributes
    ----------
    objectives : tuple of str
        Each is boosted, and the scores are averaged.
    n_seeds : int
        Boosters of each objective.
    random_trees : int
        Trees of a random forest that is averaged with the boosters, with a weight of a quarter.
    linear_share : float
        Weight of a logistic regression that is averaged with all of these.
    n_estimators : int
        Rounds of each booster.
    learning_rate : float
    max_leaves : int
    min_child_weight, reg_lambda : float
        The Hessians of a ranking objective sum to about the number of positives: with few of them a
        weight or a penalty of the usual size would leave no split.
    subsample, colsample_bynode : float
    max_categories : int
        A column of more categories is given to the trees as numbers.
    """

    objectives: tuple[str, ...]
    n_seeds: int
    random_trees: int
    linear_share: float
    n_estimators: int
    learning_rate: float
    max_leaves: int
    min_child_weight: float
    reg_lambda: float
    subsample: float
    colsample_bynode: float
    max_categories: int

    @property
    def n_boosters(self) -> int:
        """How many boosters there are, the random trees counted as one and the linear model as another."""
        kinds = len(self.objectives) * self.n_seeds
        return kinds + (self.random_trees > 0) + (self.linear_share > 0)

    @classmethod
    def automatic(
        cls, n_rows: float, n_positives: float, n_columns: int, *, validated: bool = False
    ) -> Settings:
        """Return the settings for a table with so many rows, positives and columns.

        `validated` says that inner validation will have its say: what it may throw out again is begun with.

        Chosen by trials on the sets of `experiments.defaults`, which shows how they do against rivals.

        Examples
        --------
        >>> few, many = Settings.automatic(2_000, 20, 10), Settings.automatic(1_000_000, 2_000, 10)
        >>> (few.n_seeds, few.random_trees), (many.n_seeds, many.random_trees)
        ((3, 300), (1, 0))
        >>> few.reg_lambda, many.reg_lambda
        (0.4, 5.0)
        """
        few, many = n_rows < FEW_ROWS, n_rows >= MANY_ROWS
        rare = n_positives < MANY_POSITIVES
        linear = few or (validated and not many)
        return cls(
            objectives=("lambda_map",) if rare else ("lambda_map", "logistic"),
            n_seeds=3 if few else 1 if many else 2,
            random_trees=0 if not rare else 100 if many else 300,
            linear_share=LINEAR_SHARE if linear and n_columns <= MOST_LINEAR else 0.0,
            n_estimators=300,
            learning_rate=automatic_rate(n_rows),
            max_leaves=int(np.clip(n_rows / 250, 6, 31)),
            min_child_weight=float(np.clip(n_positives / 100, 0.3, 1.0)),
            reg_lambda=float(np.clip(n_positives / 50, 0.3, 5.0)),
            subsample=1.0 if many else 0.7,
            colsample_bynode=0.2 if few else float(np.clip(8 / n_columns, 0.3, 0.7)),
            max_categories=MAX_CATEGORIES,
        )

    @classmethod
    def of(
        cls,
        ranker: Any,
        n_rows: float,
        n_positives: float,
        *,
        queries: bool = False,
        validated: bool = False,
    ) -> Settings:
        """Return the parameters of a ranker that knows its columns, automatic ones where it has None.

        Only the automatic objective brings more than one kind of booster, and not where there are
        queries, of which losses of single rows and random trees know nothing, or constraints.
        """
        n_columns = ranker.n_features_in_
        found = asdict(cls.automatic(n_rows, n_positives, n_columns, validated=validated))
        alone = {"random_trees": 0, "linear_share": 0.0}
        constraints = (ranker.monotone_constraints, ranker.interaction_constraints)
        if ranker.objective != AUTO:
            found |= {"objectives": (ranker.objective,), **alone}
            if getattr(ranker.objective, "name", ranker.objective) in TOP_ONLY:
                found |= FREE_LEAVES
        elif queries:
            found |= {"objectives": found["objectives"][:1], **alone}
        elif any(given is not None for given in constraints):
            found |= alone
        given = {f.name: getattr(ranker, f.name, None) for f in fields(cls)}
        return cls(**found | {name: value for name, value in given.items() if value is not None})


def automatic_rate(n_rows: float) -> float:
    """Return the learning rate for a number of training rows: 0.05 to 500 rows, 0.3 from 20,000 on.

    Examples
    --------
    >>> [round(automatic_rate(n), 3) for n in (100, 5_000, 1_000_000)]
    [0.05, 0.153, 0.3]
    """
    share = np.log(n_rows / 500) / np.log(40)
    return float(0.05 * 6 ** np.clip(share, 0, 1))


@dataclass(frozen=True)
class Round:
    """What a callback sees after each round.

    Attributes
    ----------
    number : int
        Rounds done so far in this fit.
    total : int
        Rounds asked for.
    validation : float or None
        The validation metric after this round, where there is validation data.
    """

    number: int
    total: int
    validation: float | None


Callback = Callable[[Round], Any]
