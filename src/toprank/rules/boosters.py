"""Boosting of weak rankers: weights, steps, and what is kept of each search.

The boosters know a source only through `source.best(y, weights, score)`. Each is an iterator of
`KeptRound`s; the caller decides when to stop (`toprank.stopping.run_rounds`). In every round positives
and negatives carry weights v1 and v0 of fixed totals; with h the weak ranker and alpha its step,

    v1 *= exp(-alpha h),    v0 *= exp(push alpha h),    each rescaled to its total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.optimize import brentq

from toprank.base import TrainingData
from toprank.rules._kernels import count_depths, update_weights
from toprank.rules.weak_rankers import CurvePath, SearchPath, WeakRankerSource, total_weights
from toprank.stopping import EarlyStopping
from toprank.validation import Interval, StrOptions

CLIP = 1e-6  # shares and correlations nearer than this to their ends would make steps infinite
STALL_ROUNDS = 10  # rounds without a better validation metric after which mix4 switches


@dataclass(frozen=True)
class KeptRound:
    """One fitted round: what is needed to score rows and to show the rules.

    Attributes
    ----------
    rules : tuple of Rule
        Nested, from the most general to the most specific.
    levels : float ndarray
        The weak ranker's value of rows whose most specific rule is each of them.
    step : float
        What the ensemble multiplies it by.
    score : float
        r, the quality that the search reached.
    n_evaluated : int
        Rules scored to find it.
    positives, negatives : float ndarray
        Weight of the training rows that each rule covers.
    log_loss : float
        Logarithm of the training loss after the round.
    """

    rules: tuple[Any, ...]
    levels: np.ndarray
    step: float
    score: float
    n_evaluated: int
    positives: np.ndarray
    negatives: np.ndarray
    log_loss: float = float("nan")


def contributions(depth: np.ndarray, levels: np.ndarray, step: float) -> np.ndarray:
    """Return what a round adds to rows, `step * h`, from how many of its nested rules cover them."""
    return (step * np.concatenate([[0.0], levels]))[depth]


def initial_weights(
    y: np.ndarray, sample_weight: np.ndarray | None, total_negatives: float
) -> np.ndarray:
    """Rescale sample weights: positives sum to 1, negatives to `total_negatives`."""
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    positive_sum, negative_sum = total_weights(y, weights)
    return weights * np.where(y > 0, 1.0 / positive_sum, total_negatives / negative_sum)


def exact_step(p: float, q: float, push: float = 1.0) -> float:
    """Return the step that minimises the loss along h in {0, 1}.

    alpha = ln(p (1 - q) / (q (1 - p))) / (push + 1), with p and q the shares of the positives' and of
    the negatives' weight where h = 1 (Rudin 2009 for push > 1; Freund et al. 2003 for push = 1).
    Clipping the shares only ever shortens the step, so the loss still falls.
    """
    p, q = (float(np.clip(share, CLIP, 1 - CLIP)) for share in (p, q))
    return float(np.log(p * (1 - q) / (q * (1 - p))) / (push + 1))


def bound_step(p: float, q: float, push: float = 1.0) -> float:
    """Return the step that minimises Freund's bound: alpha = ln((1 + r)/(1 - r)) / 2, r = p - q.

    With a push the negatives move `push` times as fast; the same bound gives 2 / (push + 1) of it.
    """
    return _bounded(p - q) * 2.0 / (push + 1)


def _bounded(r: float) -> float:
    r = float(np.clip(r, -1 + CLIP, 1 - CLIP))
    return float(np.arctanh(r))


def exact_path_step(levels: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> float:
    """Return the step that minimises the loss over pairs along a path.

    The loss (sum p exp(-alpha h)) (sum q exp(alpha h)) is convex in its logarithm, whose derivative
    is the mean of h under the negatives' shifted weights minus that under the positives'. `levels` are the
    values of h (0 under no rule), `positives` and `negatives` the shares p and q at depth 0, 1, ...
    """
    if len(levels) == 1:
        return exact_step(float(positives[1]), float(negatives[1]))
    h = np.concatenate([[0.0], levels])
    p, q = np.maximum(positives, CLIP), np.maximum(negatives, CLIP)

    def derivative(alpha: float) -> float:
        down, up = p * np.exp(-alpha * h), q * np.exp(alpha * h)
        return float(h @ up / up.sum() - h @ down / down.sum())

    longest = float(np.log(1 / CLIP))
    if derivative(0.0) >= 0 or derivative(longest) <= 0:
        return 0.0 if derivative(0.0) >= 0 else longest
    return float(brentq(derivative, 0.0, longest, xtol=1e-12))


STEPS: dict[str, Callable[[float, float, float], float]] = {
    "exact": exact_step,
    "bound": bound_step,
}


class Booster(Iterator[KeptRound]):
    """Learns one weak ranker each time it is asked for the next round, until its source has none left.

    `depth` says of each training row how many of the nested rules of the last round cover it.
    """

    depth: np.ndarray

    def __init__(self, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        self.positive = np.ascontiguousarray(y > 0)
        self.sample_weight = np.ones(len(y)) if sample_weight is None else sample_weight

    def _kept(
        self,
        rules: tuple[Any, ...],
        levels: np.ndarray,
        step: float,
        score: float,
        n_evaluated: int,
        log_loss: float,
    ) -> KeptRound:
        """Return the last round with the sample weights that its rules cover."""
        counts = count_depths(self.depth, self.positive, self.sample_weight, len(rules) + 1)
        negatives, positives = np.cumsum(counts[:0:-1], axis=0)[::-1].T.copy()
        return KeptRound(rules, levels, step, score, n_evaluated, positives, negatives, log_loss)

    def observe(self, stopping: EarlyStopping) -> None:
        """Look at the validation metric after a round; does nothing by default."""


class RankBooster(Booster):
    """RankBoost.B and the p-norm push: rounds on a source of {0, 1} weak rankers.

    Loss: R = sum over negatives k of (sum over positives i of exp(-(f_i - f_k)))^push, which
    factorises into (sum exp(-f_i))^push (sum exp(push f_k)); push = 1 is RankBoost's pair loss
    (Freund, Iyer, Schapire & Singer 2003; Rudin 2009). The weights are the shares of those two sums.
    """

    def __init__(
        self,
        source: WeakRankerSource,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        push: float = 1.0,
        step: str = "exact",
        learning_rate: float = 1.0,
    ) -> None:
        super().__init__(y, sample_weight)
        self.source = source
        self.push = push
        self.step = STEPS[step]
        self.learning_rate = learning_rate
        self.weights = initial_weights(y, sample_weight, 1.0)
        self.log_loss = 0.0  # of R over its value at f = 0

    def __next__(self) -> KeptRound:
        found = self.source.best(self.positive, self.weights, "auc")
        if found is None:
            raise StopIteration
        p, q = float(found.positives[-1]), float(found.negatives[-1])
        step = self.learning_rate * self.step(p, q, self.push)
        levels, self.depth = np.ones(1), last_rule_only(found)
        self.log_loss += _reweight(self, step * levels, self.push)
        return self._kept(found.rules[-1:], levels, step, p - q, found.n_evaluated, self.log_loss)


#: variant -> (what the search maximises, what is kept) in round t; `late` is true after the switch
#: of mix4. The score that drove the search is also the r that sets alpha, in every variant.
VARIANTS: dict[str, Callable[[int, bool], tuple[str, str]]] = {
    "clause": lambda t, late: ("clause", "clause"),
    "path": lambda t, late: ("path", "path"),
    "mix1": lambda t, late: ("path", "clause"),
    "mix2": lambda t, late: ("clause", "path"),
    "mix3": lambda t, late: ("clause", "clause") if t % 2 == 0 else ("path", "path"),
    "mix4": lambda t, late: ("path", "clause") if late else ("clause", "clause"),
}
#: of the parameters of the estimators that boost on the area under the recall-precision curve
VARIANT_CONSTRAINTS: dict[str, list[Any]] = {
    "weak": [StrOptions(set(VARIANTS))],
    "step": [StrOptions({"area", "exact"})],
    "switch_at": [Interval(Integral, 0, None, closed="left"), StrOptions({"stall"}), None],
}


def waits_for_stall(estimator: Any) -> bool:
    return estimator.weak == "mix4" and estimator.switch_at == "stall"


class PRankBooster(Booster):
    """PRankBoost: rounds that maximise the weighted area under the recall-precision curve.

    Positives' weights sum to 1, negatives' to the skew N/P. A round's r is the area that its search
    maximised (of the clause, or of the whole path), and alpha = ln((1 + r)/(1 - r)) / 2, whatever is
    kept: mix1 keeps a clause with the area of its path, mix2 a path with the area of its clause. mix4
    learns as "clause" before round `switch_at` (counted from 0) and as "mix1" from it on; "stall" switches
    when the validation metric stalls, None never. `step="exact"` minimises the loss over pairs instead.
    """

    def __init__(
        self,
        source: WeakRankerSource,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        weak: str = "clause",
        switch_at: int | str | None = None,
        step: str = "area",
        learning_rate: float = 1.0,
    ) -> None:
        super().__init__(y, sample_weight)
        self.source = source
        self.variant = VARIANTS[weak]
        self.switch_at = switch_at
        self.learning_rate = learning_rate
        positive_sum, negative_sum = total_weights(y, self.sample_weight)
        self.skew = negative_sum / positive_sum
        self.weights = initial_weights(y, sample_weight, self.skew)
        self.area_step = step == "area"
        self.log_loss = 0.0
        self.n_rounds = 0
        self.late = False

    @classmethod
    def of(cls, estimator: Any, source: WeakRankerSource, train: TrainingData) -> PRankBooster:
        """Return the booster of the variant that an estimator's parameters name."""
        switch_at = estimator.switch_at
        return cls(
            source,
            train.y,
            train.sample_weight,
            weak=estimator.weak,
            switch_at=estimator.n_estimators // 2 if switch_at is None else switch_at,
            step=estimator.step,
            learning_rate=estimator.learning_rate,
        )

    def observe(self, stopping: EarlyStopping) -> None:
        """Switch once the validation metric has stalled, if that is what `switch_at` says."""
        if self.switch_at == "stall" and stopping.stalled(STALL_ROUNDS):
            self.late = True

    def __next__(self) -> KeptRound:
        if isinstance(self.switch_at, Integral) and self.n_rounds >= self.switch_at:
            self.late = True
        score, kept = self.variant(self.n_rounds, self.late)
        found = self.source.best(self.positive, self.weights, score)
        if found is None:
            raise StopIteration
        if kept == "clause":
            rules, levels, self.depth = found.rules[-1:], np.ones(1), last_rule_only(found)
        else:
            path = CurvePath(1.0, self.skew)
            for point in zip(found.positives, found.negatives, strict=True):
                path = path.extended(*point)
            rules, levels, self.depth = found.rules, path.levels(), found.depth
        step = self.learning_rate * self._step(found.score, levels)
        self.log_loss += _reweight(self, step * levels, total_negatives=self.skew)
        self.n_rounds += 1
        return self._kept(rules, levels, step, found.score, found.n_evaluated, self.log_loss)

    def _step(self, r: float, levels: np.ndarray) -> float:
        if self.area_step:
            return _bounded(r)
        shares = count_depths(self.depth, self.positive, self.weights, len(levels) + 1)
        return exact_path_step(levels, shares[:, 1], shares[:, 0] / self.skew)


def _reweight(
    booster: RankBooster | PRankBooster,
    steps: np.ndarray,
    push: float = 1.0,
    total_negatives: float = 1.0,
) -> float:
    """Update a booster's weights after steps alpha h by depth; return the change of the log loss."""
    steps = np.concatenate([[0.0], steps])
    rows = (booster.weights, booster.positive, booster.depth)
    sums = update_weights(*rows, np.exp(-steps), np.exp(push * steps), 1.0, total_negatives)
    return float(push * np.log(sums[0]) + np.log(sums[1]))


def last_rule_only(found: SearchPath) -> np.ndarray:
    """Return the depths when only the best rule of a path is kept."""
    if len(found.rules) == 1:
        return found.depth
    return (found.depth == len(found.rules)).astype(np.uint8)
