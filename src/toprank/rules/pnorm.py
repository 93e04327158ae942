"""The p-norm push: RankBoost with a price on the highest negatives."""

from __future__ import annotations

from typing import Any

from toprank.rules.rankboost import RankBoost

__all__ = ["PNormPush"]


class PNormPush(RankBoost):
    """Rank by a weighted sum of rules that pushes down the highest negatives.

    The loss is the sum over negatives k of (the sum over positives i of exp(-(f_i - f_k)))^p [1]_: the
    greater p, the more the negatives at the top of the list weigh. p = 1 is RankBoost. The loss
    factorises into (sum exp(-f_i))^p (sum exp(p f_k)), so each round costs one pass over the rows.

    Parameters
    ----------
    p : float, default=4.0
        At least 1.
    n_estimators, weak, step, learning_rate, max_length, max_evaluated, max_seconds, max_bins, \
early_stopping_rounds, validation_fraction, eval_metric, n_jobs, random_state, verbose
        As in :class:`RankBoost`.

    Attributes
    ----------
    rules_, rounds_, n_evaluated_, train_loss_, bins_, classes_, offset_
        As in :class:`RankBoost`.

    References
    ----------
    .. [1] Rudin (2009), "The P-norm push: a simple convex ranking algorithm that concentrates at the
       top of the list", Journal of Machine Learning Research 10.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import PNormPush
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = PNormPush(p=8, n_estimators=30).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        p: float = 4.0,
        n_estimators: int = 100,
        *,
        weak: str = "stump",
        step: str = "exact",
        learning_rate: float = 1.0,
        max_length: int = 4,
        max_evaluated: int | None = None,
        max_seconds: float | None = None,
        max_bins: int = 255,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.1,
        eval_metric: Any = "average_precision",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_estimators,
            weak=weak,
            step=step,
            learning_rate=learning_rate,
            max_length=max_length,
            max_evaluated=max_evaluated,
            max_seconds=max_seconds,
            max_bins=max_bins,
            early_stopping_rounds=early_stopping_rounds,
            validation_fraction=validation_fraction,
            eval_metric=eval_metric,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.p = p

    def _push(self) -> float:
        return float(self.p)
